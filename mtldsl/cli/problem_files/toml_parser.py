"""Parser of TOML with the place of every key and value: tomllib reads it, a second walk over the text finds where things stand."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any

from mtldsl.errors import DataError, MTLError, Place
from mtldsl.language.source_text import Source

# --------------------------------------------------------------------------------------------------------------
# How large a TOML file of a stranger may be, asked before tomllib reads it: it goes down into itself with every bracket, spends
# the cube of the number of a key's parts, and makes whole numbers of any length.


@dataclass(frozen=True)
class TomlSettings:
    """Limits of a file of a stranger."""

    max_bytes: int = 1 << 20  # bytes of it
    max_brackets: int = 40  # brackets inside each other
    max_key_parts: int = 20  # parts of a dotted key
    max_characters: int = 1000  # characters of a number or of a name without quotes


SETTINGS = TomlSettings()

#: Whole numbers that TOML promises to hold: 64 bits. Everything else here computes in float64.
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
            if depth > SETTINGS.max_brackets:
                raise refuse(token.start(), f"more than {SETTINGS.max_brackets} brackets inside each other")
        elif first in "]}":
            depth = max(0, depth - 1)
        if first == ".":
            parts += 1
            if parts > SETTINGS.max_key_parts:
                raise refuse(token.start(), f"a key has at most {SETTINGS.max_key_parts} parts")
        elif first in "=,[]{}\n#":
            parts = 1
        if first not in "#'\"" and len(token[0]) > SETTINGS.max_characters:
            raise refuse(
                token.start(),
                f"a number or name of {len(token[0]):,} characters; at most {SETTINGS.max_characters:,} can be read",
            )


Path = tuple[str | int, ...]  # ("data", "path"), ("subject_to", 0)

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_OTHER = re.compile(r"[^,\]\}#\r\n]*")  # a number, a truth value, a date
_LETTER = re.compile(r"\r\n|.", re.DOTALL)
_NEWLINE = re.compile(r"(?:\r?\n)?")
#: and where backslashes mean something: a folded line end, a number, a letter
_ESCAPED = re.compile(r"\\[ \t]*\r?\n\s*|\\u.{4}|\\U.{8}|\\.|\r\n|.", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


@dataclass
class TomlFile:
    """`content` as tomllib reads it; `keys` and `values` hold the text of every key and value, by path."""

    name: str
    text: str
    content: dict = field(default_factory=dict)
    keys: dict[Path, Source] = field(default_factory=dict)
    values: dict[Path, Source] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, name: str) -> TomlFile:
        """Raises DataError with the place where the text is not TOML, or beyond the limits of `mtldsl.cli.problem_files.toml_parser`.

        >>> file = TomlFile.read('[data]\\nlabels = ["a", "b"]', "p.toml")
        >>> file.values["data", "labels", 1].place()
        (2, 17)
        """
        file = cls(name, text)
        check_limits(text, name)
        try:
            file.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _syntax_error(text, name, str(error)) from None
        _Scanner(file).file_()
        for path in file.values:
            value = file.at(path)
            if isinstance(value, int) and value not in _WHOLE:
                said = "this whole number is too large; write it with a decimal point or an exponent, such as 1e20"
                raise file.error(said, path, value=True)
        return file

    def at(self, path: Path) -> Any:
        """Return what stands there."""
        return reduce(getitem, path, self.content)

    def place(self, path: Path = (), *, value: bool = False) -> Place:
        """Return where a key (or its value) stands; the nearest table around it where the file has no such key."""
        places = {**self.keys, **(self.values if value else {})}
        while path and path not in places:
            path = path[:-1]
        if path:
            return places[path].spot(key=path)
        return Source.of(self.text, self.name).spot(0, 1)

    @contextmanager
    def placing(self, path: Path, *, value: bool = True) -> Iterator[None]:
        """Errors inside that have no place yet get that of the value, or the key."""
        try:
            yield
        except MTLError as error:
            raise error.at(self.place(path, value=value)) from error

    def error(
        self, message: str, path: Path = (), kind: type[MTLError] = DataError, *, value: bool = False
    ) -> MTLError:
        """An error to raise, at `place(path, value=value)`."""
        return kind(message, place=self.place(path, value=value))


def _hint(reason: str, text: str, start: int) -> str:
    """Advice for what people write most where TOML wants something else; begins with a semicolon."""
    line, rest = text[text.rfind("\n", 0, start) + 1 : start], text[start:]
    if reason == "Invalid value":
        flag = re.match(r"(?i)(true|false|yes|no)\b", rest)
        if flag:
            return f"; write {'true' if flag[1].lower() in ('true', 'yes') else 'false'}"
        if rest[:1] in ("\u201c", "\u201d", "\u201e", "\u2018", "\u2019"):
            return "; the quotes of TOML are straight"
        return f'; text is written in quotes, {line.partition("=")[0].strip() or "minimize"} = "..."'
    if rest[:1] == "," and line[-1:].isdigit():
        return "; the decimal mark is a point"
    if reason == "Cannot overwrite a value":
        return ": this key is there already; leave one of the two"
    return "; the quote before it is not closed" if reason.startswith("Illegal character '\\n'") else ""


def _syntax_error(text: str, name: str, message: str) -> MTLError:
    """Return what tomllib says, at the place that it means: until Python 3.14 it tells that at the end of its message alone."""
    where = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    start = len(text)
    if where and where[1]:
        lines = text.replace("\r\n", "\n").split("\n")
        start = sum(len(line) + 1 for line in lines[: int(where[1]) - 1]) + int(where[2]) - 1
    reason = message[: where.start()] if where else message
    hint = _hint(reason, text.replace("\r\n", "\n"), start)
    source = Source.of(text.replace("\r\n", "\n"), name)
    start = min(start, len(source.text))
    return source.error(
        f"this is not TOML: {reason[:1].lower()}{reason[1:]}{hint}", start, start + 1, DataError
    )


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where what the pattern finds at that place ends; that it is there, the parser of TOML has seen."""
    match = pattern.match(text, at)
    assert match is not None
    return match.end()


class _Scanner:
    """Walks over text that tomllib has accepted, so it looks for places only, not for mistakes."""

    def __init__(self, file: TomlFile):
        self.file, self.text, self.at = file, file.text, 0
        self.whole = Source.of(file.text, file.name)

    def file_(self) -> None:
        table: Path = ()
        repeated: dict[Path, int] = {}
        while self.skip():
            if self.text.startswith("[", self.at):
                start, brackets = self.at, 2 if self.text.startswith("[[", self.at) else 1
                self.at += brackets
                table = self.key_path()
                self.skip()
                self.at += brackets
                if brackets == 2:
                    repeated[table] = repeated.get(table, -1) + 1
                    table = (*table, repeated[table])
                self.file.keys[table] = self.whole.part(start, self.at)
            else:
                self.pair(table)

    def skip(self) -> bool:
        """Past space and comments; whether anything follows."""
        self.at = _end(_SPACE, self.text, self.at)
        return self.at < len(self.text)

    def pair(self, table: Path) -> None:
        start = self.at
        path = (*table, *self.key_path())
        self.file.keys[path] = self.whole.part(start, self.at)
        self.skip()
        self.at += 1  # the equals sign
        self.value(path)

    def key_path(self) -> Path:
        parts = []
        while True:
            self.skip()
            parts.append(self.string().text if self.text[self.at] in "'\"" else self.token())
            end = self.at
            self.skip()
            if self.text[self.at] != ".":
                self.at = end
                return tuple(parts)
            self.at += 1

    def token(self) -> str:
        start, self.at = self.at, _end(_TOKEN, self.text, self.at)
        return self.text[start : self.at]

    def value(self, path: Path) -> None:
        self.skip()
        start, first = self.at, self.text[self.at]
        if first in "'\"":
            self.file.values[path] = self.string()
            return
        if first == "[":
            self.members("]", lambda i: self.value((*path, i)))
        elif first == "{":
            self.members("}", lambda i: self.pair(path))
        else:
            self.at += len(self.text[self.at : _end(_OTHER, self.text, self.at)].rstrip())
        self.file.values[path] = self.whole.part(start, self.at)

    def members(self, closing: str, read) -> None:
        """The members of an array or of an inline table."""
        self.at += 1
        count = 0
        while self.skip() and self.text[self.at] != closing:
            if self.text[self.at] == ",":
                self.at += 1
            else:
                read(count)
                count += 1
        self.at += 1

    def string(self) -> Source:
        """The content of a string, each character with its place: escapes are one character, or none at a folded line end."""
        start, token = self.at, self.token()
        fence = 3 if token.startswith(('"""', "'''")) else 1
        start, end = start + fence, self.at - fence
        if fence == 3:
            start = _end(_NEWLINE, self.text, start)
        letters, offsets = [], []
        for piece in (_ESCAPED if token[0] == '"' else _LETTER).finditer(self.text, start, end):
            letter = _meaning(piece[0])
            letters.append(letter)
            offsets += [piece.start()] * len(letter)
        return Source("".join(letters), self.text, self.file.name, (*offsets, end))


def _meaning(piece: str) -> str:
    """The character that stands in the file as this, none for a folded line end."""
    if piece == "\r\n":
        return "\n"
    if len(piece) == 1:
        return piece
    if "\n" in piece:
        return ""
    return chr(int(piece[2:], 16)) if piece[1] in "uU" else _ESCAPES.get(piece[1], piece[1])
