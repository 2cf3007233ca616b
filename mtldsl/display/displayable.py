"""Base classes of objects that notebooks and terminals show as a panel of sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mtldsl.display.sections import GOOD, WRONG, Panel, Table, aligned_lines

# --------------------------------------------------------------------------------------------------------------
# The bases of what lists its names for users, and of what notebooks show.


class ListedType(type):
    """The type of classes that list, as their objects do, only the names that users need."""

    _unlisted: frozenset[str]

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name not in cls._unlisted]


class Listed(metaclass=ListedType):
    """An object of whose names `dir` lists those that users need."""

    #: what other parts of the package ask: not listed by `dir`, it works all the same
    _unlisted: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._unlisted]


class Displayable(Listed):
    """An object that notebooks show as its panel."""

    def _panel(self) -> Panel:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from mtldsl.display.html import html_of

        return html_of(self._panel())


# --------------------------------------------------------------------------------------------------------------
# A comparison of two sides, as text and in a notebook.


class Comparison(Displayable):
    """Base of what a cross-check found: a table under `head`, and the verdict in sentences."""

    head: ClassVar[tuple[str, ...]]
    #: what the two agree on where they do, beside the scope
    agreed_on: ClassVar[str] = ""
    model: str
    scope: str

    @property
    def disagreements(self) -> list[str]:
        raise NotImplementedError

    @property
    def notes(self) -> list[str]:
        raise NotImplementedError

    @property
    def agrees(self) -> bool:
        return not self.disagreements

    def rows(self) -> Sequence[tuple[str, ...]]:
        """The table as text, one row a quantity."""
        raise NotImplementedError

    def verdict(self) -> list[str]:
        """Sentences: agreement and its scope, then every disagreement and note."""
        found = f"agree{self.agreed_on}" if self.agrees else "DISAGREE"
        first = f"The two {found} ({self.scope})."
        return [first, *(f"- {text}" for text in (*self.disagreements, *self.notes))]

    def __str__(self) -> str:
        table = [self.head, *self.rows()]
        rule = ["-" * max(map(len, column)) for column in zip(*table, strict=True)]
        lines = aligned_lines([table[0], rule, *table[1:]])
        return "\n".join([self.model, "", *lines, "", *self.verdict()])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict()[0]}>"

    def __rich__(self):
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table as RichTable

        table = RichTable(*self.head)
        for row in self.rows():
            table.add_row(*map(escape, row))
        return Group(escape(self.model), table, *map(escape, self.verdict()))

    def _panel(self) -> Panel:
        first, *others = self.verdict()
        return Panel(
            "Cross-check", "agree" if self.agrees else "DISAGREE", GOOD if self.agrees else WRONG, first,
            tables=[Table(self.head, self.rows())], notes=[text.removeprefix("- ") for text in others],
            folded=[Panel("The model", text=self.model)],
        )  # fmt: skip
