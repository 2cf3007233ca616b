"""What to say of a column that was to hold numbers and has text: what the text is decides what there is to write."""

from __future__ import annotations

from collections.abc import Sequence

from mtldsl.datasets.formats.cells import ANSWERS, is_lost, is_number, with_point
from mtldsl.errors import Spelled

__all__ = ["no_number"]

#: A column with at most this share of text is one of numbers in which some cells are wrong.
_FEW = 0.1


def no_number(texts: Sequence[str], lines: Sequence[int], role: str) -> str | Spelled:
    """The end of a sentence that begins with the column.

    role : "feature", "label", or "answer" for a label that was to say yes or no

    >>> print(no_number(["no", "yes", "?"], [2, 3, 4], "label"))
    has text that is not a number, 'no' in line 2; write binary=True, which reads no and yes as -1 and +1
    >>> print(no_number(["1,5", "2,5"], [2, 3], "feature").on("file"))
    has text that is not a number, '1,5' in line 2; where commas stand for decimal points write decimal = ','
    """
    wrong = [(line, text) for line, text in zip(lines, texts, strict=True) if not is_number(text)]
    line, text = wrong[0]
    if is_lost(text):
        return (
            f"has {text!r} in line {line}, a whole number that float64 does not have; subtract a constant, or, where it is a code, "
            "leave the column out with " + Spelled.option("drop", "[...]")
        )
    said = f"has text that is not a number, {text!r} in line {line}"
    if role == "answer":
        return f"has {text!r} in line {line}, which says neither yes nor no; mend it, or leave the cell empty: the label is then missing"
    if role == "label" and all(one.strip().lower() in ANSWERS for _, one in wrong):
        return f"{said}; write " + Spelled.option("binary", "True") + ", which reads no and yes as -1 and +1"
    if all(is_number(with_point(one)) for _, one in wrong):
        return f"{said}; where commas stand for decimal points write " + Spelled.option("decimal", "','")
    if len(wrong) <= _FEW * len(texts):
        many = (
            "this cell alone is none" if len(wrong) == 1 else f"{len(wrong):,} such cells of {len(texts):,}"
        )
        said = f"{said} ({many}); mend {'it' if len(wrong) == 1 else 'them'} or leave {'it' if len(wrong) == 1 else 'them'} empty, or "
    else:
        said = f"{said}; "
    if role == "label":
        return (
            f"{said}write "
            + Spelled.option("one_vs_rest", "True")
            + " where it holds classes, or name another label"
        )
    return (
        f"{said}leave the column out with "
        + Spelled.option("drop", "[...]")
        + ", or, where it holds categories, write "
        + Spelled.option("one_hot", "[...]")
    )
