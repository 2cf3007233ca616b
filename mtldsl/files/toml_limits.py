"""How large a TOML file of a stranger may be, asked before tomllib reads it: it goes down into itself with every bracket, spends
the cube of the number of a key's parts, and makes whole numbers of any length."""

from __future__ import annotations

import re

from mtldsl.errors import DataError
from mtldsl.language.text.source import Source

__all__ = ["MAX_BRACKETS", "MAX_BYTES", "MAX_PARTS", "MAX_WORD", "check_limits", "check_whole_numbers"]

#: Bytes of a file; brackets inside each other; parts of a dotted key; characters of a number or of a name without quotes.
MAX_BYTES, MAX_BRACKETS, MAX_PARTS, MAX_WORD = 1 << 20, 40, 20, 1000
#: What TOML promises of whole numbers: 64 bits.
_WHOLE = range(-(2**63), 2**63)

_TOKEN = re.compile(
    r"""
    \#[^\n]*                                        # a comment
    | \"\"\"(?:[^\\"]|\\.|\"(?!\"\"))*(?:\"{3,5}|\Z)    # texts of several lines
    | '''(?:[^']|'(?!''))*(?:'{3,5}|\Z)
    | "(?:[^\\"\n]|\\.)*"? | '[^'\n]*'?             # texts
    | [A-Za-z0-9_+-]+                               # numbers, names
    | .                                             # punctuation, one at a time
    """,
    re.VERBOSE | re.DOTALL,
)


def check_limits(text: str, name: str) -> None:
    """DataError with its place where brackets, parts of a key or a word are beyond the limits. What is not TOML is left to tomllib."""
    depth, parts = 0, 1

    def refuse(at: int, message: str):
        return Source.of(text, name).error(message, at, at + 1, DataError)

    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
            if depth > MAX_BRACKETS:
                raise refuse(token.start(), f"more than {MAX_BRACKETS} brackets inside each other")
        elif first in "]}":
            depth = max(0, depth - 1)
        if first == ".":
            parts += 1
            if parts > MAX_PARTS:
                raise refuse(token.start(), f"a key has at most {MAX_PARTS} parts")
        elif first in "=,[]{}\n#":
            parts = 1
        if first not in "#'\"" and len(token[0]) > MAX_WORD:
            raise refuse(
                token.start(),
                f"a number or name of {len(token[0]):,} characters; at most {MAX_WORD:,} can be read",
            )


def check_whole_numbers(file) -> None:
    """DataError with its place for a whole number that 64 bits do not hold: everything else here computes in float64."""

    def walk(value, path):
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, (*path, key))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                walk(item, (*path, i))
        elif isinstance(value, int) and value not in _WHOLE:
            raise file.error(
                "this whole number is too large; write it with a decimal point or an exponent, such as 1e20",
                path,
                value=True,
            )

    walk(file.content, ())
