"""The catalogue on the site: words.md, which the repository keeps as one wide table, is written here with a section a word, from the same registry.

What is told of a word is what the code says: formula, convexity and solvers are asked for, prox, conjugate and dual norm stand in its
docstring under labels that all words share.
"""

from __future__ import annotations

import re

from api_pages import public_name
from sphinx.application import Sphinx

from mtldsl.cli.catalogue import KINDS, CatalogueEntry, catalogue
from mtldsl.cli.catalogue_pages import ABOUT, HEADINGS, groups_of_helpers, other_names
from mtldsl.language import vocabulary

#: in the order in which they are shown
LABELS = ("prox", "Projection", "gradient", "Dual norm", "Conjugate", "Support function", "Source")
_LABEL = re.compile(rf"(?:^|(?<=[.;] ))({'|'.join(LABELS)}|Violation|Reweighting)(?: [^:.]{{1,30}})?: ")


def told(entry: CatalogueEntry) -> dict[str, str]:
    """Label -> what the notes of the word's docstring say under it.

    >>> from mtldsl.cli.catalogue import entry
    >>> told(entry("l21_norm"))["Dual norm"]
    'max ||Z_r||_2 / a_r.'
    """
    notes = re.search(
        r"^Notes\n-+\n(.*?)(?=\n\n[A-Z]\w+\n---|\Z)", entry.documentation, re.DOTALL | re.MULTILINE
    )
    pieces = _LABEL.split(" ".join(notes[1].split())) if notes else []
    found = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return {label: found[label].strip() for label in LABELS if label in found}


def convex(entry: CatalogueEntry) -> str:
    return {True: "yes", False: "no", None: ""}[entry.traits.get("convex")]


def page() -> str:
    """words.md, as the site shows it."""
    entries = catalogue()
    parts = [
        "# The catalogue",
        "Every word of the language, as the code itself describes it; `mtldsl words` prints the same in a terminal, `mtldsl words NAME` everything about "
        "one. Formulas of a loss are those of one task with predictions $z_i = X_i w_i\\,(+\\,b_i)$. **Solvers** are those that take the smallest model with "
        "the word, in the order in which they are tried; `problem.explain()` says it of yours.",
    ]
    for kind in KINDS:
        there = [entry for entry in entries if entry.kind == kind]
        parts += [f"## {HEADINGS[kind]}", _plain(ABOUT[kind]), _overview(there), *map(_section, there)]
    for heading, about, helpers in groups_of_helpers():
        rows = [f"| `{one.short}` | {_plain(one.summary)} |" for one in helpers]
        parts += [
            f"## {heading}",
            _plain(about),
            "\n".join(["| typed | what it is |", "| --- | --- |", *rows]),
        ]
    return "\n\n".join([*parts, "\n".join(other_names())]) + "\n"


def _overview(entries: list[CatalogueEntry]) -> str:
    head = ["| word | formula | convex |", "| --- | --- | --- |"]
    rows = [f"| [`{one.name}`](#{one.name}) | ${_math(one.latex)}$ | {convex(one)} |" for one in entries]
    if not any(convex(one) for one in entries):  # a metric is neither
        return "\n".join(line.rsplit("|", 2)[0] + "|" for line in [*head, *rows])
    return "\n".join([*head, *rows])


def _section(entry: CatalogueEntry) -> str:
    facts = {"convex": convex(entry)} if convex(entry) else {}
    facts |= {label.lower(): _plain(text) for label, text in told(entry).items()}
    facts |= {"solvers": ", ".join(f"`{name}`" for name in entry.solvers)}
    facts |= {"cross-checked": "yes, by a formula of its own in cvxpy" if entry.reference else "no"}
    source = facts.pop("source", None)
    if source:
        facts["source"] = source
    listed = "\n".join(f"{label}\n: {text}\n" for label, text in facts.items())
    api = (
        f" [Everything about it](/api/{public_name(entry.name)}.rst)."
        if entry.name in vocabulary.WORDS
        else ""
    )
    return (
        f"### {entry.name}\n\n```python\n{entry.typed}\n```\n\n$$\n{entry.latex}\n$$\n\n{_plain(entry.summary)}{api}\n\n"
        f":::{{div}} facts\n{listed}:::"
    )


def _plain(text: str) -> str:
    """Plain text of a docstring as Markdown: code between backticks stays, all else means only itself."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_|\[\]<$])", r"\\\1", part) for part in parts
    )


def _math(latex: str) -> str:
    """Bars would end the cell of a table."""
    return latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")


def write(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == "words":
        source[0] = page()
    elif docname == "models":  # who edits the file is told so; who reads the site is not
        source[0] = re.sub(r"^Written by .*?; do not edit\. ", "", source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> dict:
    app.connect("source-read", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
