"""A typed text that knows where it stands in its file, so that every message can point at the place."""

from __future__ import annotations

from dataclasses import dataclass

from mtldsl.errors import ModelError, MTLError, Place

__all__ = ["Source"]

#: Characters of a long line that are shown around the place a message is about.
_SHOWN = 100


@dataclass(frozen=True)
class Source:
    """`text` as it is read; `offsets` says for each of its characters, and its end, where it stands in `whole`.

    They differ where the text is a string inside a file: quotes, escapes and line ends are not part of it.

    >>> Source.of("l1_norm(V)", "typed").error("there is no V", 8, 9)
    ModelError('typed:1:9: there is no V\\n  1 | l1_norm(V)\\n    |         ^')
    """

    text: str
    whole: str
    name: str
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, whole: str, name: str) -> Source:
        """A text that is its own file."""
        return cls(whole, whole, name, tuple(range(len(whole) + 1)))

    def part(self, start: int, end: int) -> Source:
        """The characters start to end."""
        return Source(self.text[start:end], self.whole, self.name, self.offsets[start : end + 1])

    def place(self, start: int = 0) -> tuple[int, int]:
        """(line, column) in the file of a character of the text, both counted from 1."""
        at = self.offsets[min(start, len(self.offsets) - 1)]
        return self.whole.count("\n", 0, at) + 1, at - (self.whole.rfind("\n", 0, at) + 1) + 1

    def spot(self, start: int = 0, end: int | None = None, key: tuple[str | int, ...] = ()) -> Place:
        """Where characters start to end stand, with their line and a caret under them; `key` as in `Place`."""
        line, column = self.place(start)
        lines = self.whole.split("\n")
        shown = lines[line - 1].rstrip("\r").replace("\t", " ")
        last = self.offsets[min(len(self.text) if end is None else end, len(self.offsets) - 1)]
        width = max(1, min(last - self.offsets[min(start, len(self.offsets) - 1)], len(shown) - column + 1))
        if not shown.strip():  # there is nothing to point at
            return Place(self.name, line, column, "", key)
        first = 0
        if len(shown) > _SHOWN:
            first = max(0, min(column - 1 - _SHOWN // 3, len(shown) - _SHOWN))
            shown, width = shown[first : first + _SHOWN], min(width, _SHOWN - (column - 1 - first))
        gutter = " " * len(str(line))
        caret = " " * (column - 1 - first) + "^" * width
        return Place(self.name, line, column, f"  {line} | {shown}\n  {gutter} | {caret}", key)

    def error(
        self, message: str, start: int = 0, end: int | None = None, kind: type[MTLError] = ModelError
    ) -> MTLError:
        """An error to raise: `file:line:column: message`, the line, and a caret under characters start to end."""
        return kind(message, place=self.spot(start, end))
