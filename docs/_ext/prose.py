"""Docstrings here are plain text, to be read in a terminal: indented formulas, aligned lists of arguments, ||W||_* as it stands.

This writes such text as reStructuredText, which would otherwise take bars, stars and underscores for markup. Sections of numpydoc keep their
headings; napoleon reads them afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: numpydoc's sections of fields: a line "name : type", its description indented below
_FIELDS = {"Parameters", "Attributes", "Returns", "Yields", "Raises", "Other Parameters"}
_EMPHASIS = re.compile(r"(?<![\w*\\])(\*\*?)(?=[^\s*])([^*]+?)(?<=\S)\1(?![\w*])")
#: lines of notes that begin something new
_LABEL = re.compile(r"(?:Source|Shapes|Conjugate|Dual norm|Range|Raises|prox|Prox)\b[^.:]{0,30}[: ]")
_ENTRY = re.compile(r"^(?P<name>\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*)(?P<gap> +: +| {2,})(?=\S)")


def inline(text: str, link: Callable[[str], str | None] = lambda code: None) -> str:
    """A piece of prose: code between backticks stays code, or becomes what `link` makes of it; *words* stay emphasised; the rest is escaped.

    >>> inline("||W||_* of `W`, *every* x_i * y_")
    '\\\\|\\\\|W\\\\|\\\\|\\\\_\\\\* of ``W``, *every* x\\\\_i \\\\* y\\\\_'
    """
    parts = re.split(r"(?s)(`+)(.+?)\1", text)
    made = []
    for at in range(0, len(parts), 3):
        made.append(_escaped(parts[at]))
        if at + 2 < len(parts):
            code = " ".join(parts[at + 2].split())
            # a word character beside markup would keep it from being read as such
            before = "\\ " if re.search(r"[^\s(\[{\"'/—-]$", parts[at]) else ""
            after = "\\ " if re.match(r"[\w(]", parts[at + 3]) else ""
            made.append(f"{before}{link(code) or f'``{code}``'}{after}")
    return "".join(made)


def _escaped(text: str) -> str:
    made, at = [], 0
    for match in _EMPHASIS.finditer(text):
        made += [_raw(text[at : match.start()]), match[1], _raw(match[2]), match[1]]
        at = match.end()
    return "".join([*made, _raw(text[at:])])


def _raw(text: str) -> str:
    return re.sub(r"[\\*_|`]", r"\\\g<0>", text)


def to_rst(text: str, link: Callable[[str], str | None] = lambda code: None) -> list[str]:
    """The lines of a dedented docstring, or of any such text."""
    made: list[str] = []
    section = ""
    for lines in _blocks(text):
        if len(lines) > 1 and re.fullmatch(r"-{3,}", lines[1]):
            section = lines[0].strip()
            made += lines[:2]
            lines = lines[2:]
            if not lines:
                continue
        if section in _FIELDS:
            made += [_field(line, link) for line in lines]
        else:
            made += _block(lines, link)
        made.append("")
    return made


def _blocks(text: str) -> list[list[str]]:
    """Runs of lines between empty ones; runs of indented lines that follow each other are one, the empty lines in it."""
    blocks: list[list[str]] = []
    for piece in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = [line.rstrip() for line in piece.split("\n") if line.strip()]
        if lines and blocks and _indent(lines) >= 4 and _indent(blocks[-1]) >= 4:
            blocks[-1] += ["", *lines]
        elif lines:
            blocks.append(lines)
    return blocks


def _indent(lines: list[str]) -> int:
    return min(len(line) - len(line.lstrip()) for line in lines if line)


def _field(line: str, link) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    if indent:
        return indent + inline(line.strip(), link)
    name, colon, kind = line.partition(" : ")
    return f"{name}{colon}{inline(kind, link)}" if colon else line


def _block(lines: list[str], link) -> list[str]:
    if lines[0].lstrip().startswith(">>>"):
        return lines
    if _indent(lines) >= 2:
        least = _indent(lines)
        return [".. code-block:: text", "", *(f"    {line[least:]}".rstrip() for line in lines)]
    if lines[0].startswith("- "):
        return _bullets(lines, link)
    column = _column(lines)
    if column:
        return _entries(lines, column, link)
    # prose up to where a list or a formula begins, without an empty line between
    for at in range(1, len(lines)):
        starts = (
            _LABEL.match(lines[at])
            or lines[at].startswith("- ")
            or (lines[at].startswith("    ") and not lines[at - 1].startswith(" "))
        )
        if starts or _column(lines[at:]):
            return [*_paragraph(lines[:at], link), "", *_block(lines[at:], link)]
    return _paragraph(lines, link)


def _paragraph(lines: list[str], link) -> list[str]:
    text = inline("\n".join(line.strip() for line in lines), link)
    # "(1) ..." and "1. ..." would begin a list whose next lines are not indented
    return re.sub(r"^(?=\(?\w{1,2}[.)] |--|\.\. |:\w)", r"\\", text, flags=re.MULTILINE).split("\n")


def _bullets(lines: list[str], link) -> list[str]:
    made, item = [], []
    for at, line in enumerate([*lines, "- "]):
        if line.startswith("- "):
            if item:
                made += _hung("- ", item, link)
            item = [line[2:]]
        elif line.startswith(" "):
            item.append(line.strip())
        else:  # the list is over
            return [*made, *_hung("- ", item, link), "", *_block(lines[at:], link)]
    return made


def _hung(mark: str, item: list[str], link) -> list[str]:
    first, *rest = _paragraph(item, link)
    return [mark + first, *(f"  {line}" for line in rest)]


def _column(lines: list[str]) -> int:
    """Where the descriptions of an aligned list begin, such as `W     the weights`; 0 where the lines are not such a list."""
    match = _ENTRY.match(lines[0])
    if not match:
        return 0
    column = match.end()
    if ":" in match["gap"]:
        return column
    # two spaces may be an accident: the next line has to be aligned with it
    return column if len(lines) > 1 and (lines[1][:column].isspace() or _name(lines[1], column)[0]) else 0


def _name(line: str, column: int) -> tuple[str, str]:
    """The name of an entry and where its description begins: in that column, or after a colon or two spaces; ("", "") of another line."""
    head = line[:column].strip().rstrip(":").strip()
    aligned = len(line) > column and line[column - 1] == " " and line[column] != " "
    if aligned and re.fullmatch(r"\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*", head) and not line.startswith(" "):
        return head, line[column:]
    match = _ENTRY.match(line)
    return (match["name"], line[match.end() :]) if match else ("", "")


def _entries(lines: list[str], column: int, link) -> list[str]:
    """A definition list."""
    made: list[str] = []
    item: list[str] = []
    for at, line in enumerate(lines):
        name, rest = _name(line, column)
        if not name and not line.startswith(" "):
            return [*made, *_defined(item, link), "", *_block(lines[at:], link)]
        if name:
            made += _defined(item, link)
            item = [name, rest]
        else:
            item.append(line.strip())
    return [*made, *_defined(item, link)]


def _defined(item: list[str], link) -> list[str]:
    if not item:
        return []
    names = ", ".join(f"``{name.strip()}``" for name in item[0].split(","))
    return [names, *(f"    {line}" for line in _paragraph(item[1:], link))]
