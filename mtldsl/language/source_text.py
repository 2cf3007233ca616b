"""Source text of a model: its syntax tree, and the place in the text that every message points at."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.tasks import Tasks
from mtldsl.display.sections import visible
from mtldsl.errors import ModelError, MTLError, Place
from mtldsl.language.constraints import Constraint, RangeConstraint, Trace, UpperBounded
from mtldsl.language.expressions import Affine, Transposed
from mtldsl.language.learned_unknowns import KernelWeights, LearnedUnknown, WeightsNorm
from mtldsl.language.objective import Objective
from mtldsl.language.scalars import Scalar
from mtldsl.language.similarity_helpers import TaskSimilarity

# --------------------------------------------------------------------------------------------------------------
# What a value of the language is, in words, for messages.

_KINDS = [
    (bool, "a truth value"),
    (Affine, "an expression of weights"),
    (Transposed, "a transpose of weights"),
    (Objective, "a sum of losses and regularizers"),
    (Constraint, "a constraint"),
    (RangeConstraint, "a constraint"),
    (KernelWeights, "weights that are learned"),
    (LearnedUnknown, "a matrix that is learned"),
    (Trace, "the trace of a matrix"),
    (WeightsNorm, "a norm of kernel weights"),
    (TaskSimilarity, "a similarity of tasks"),
    (Scalar, "a parameter"),
    (Tasks, "a Tasks object"),
    (Metric, "a metric"),
    (Real, "a number"),
    (str, "text in quotes"),
    (list, "a list"),
    (dict, "a table"),
    (np.ndarray, "an array"),
]


def kind_of(value) -> str:
    """Such as "an expression of weights"; None and other kinds as they print.

    >>> kind_of(2.5), kind_of([1, 2])
    ('a number', 'a list')
    """
    return next((text for kind, text in _KINDS if isinstance(value, kind)), repr(value))


def place_of(value) -> str:
    """Return where a metric, a similarity, or a trace or norm of what is learned belongs; nothing for values of other kinds."""
    if isinstance(value, Metric):
        return f"; write structured_hinge(W, tasks, metric={value!r})"
    if isinstance(value, TaskSimilarity):
        return f"; write mkl_norm(W, [{value!r}], p=2)"
    return f"; it is bounded, {value!r} <= 1" if isinstance(value, UpperBounded) else ""


# --------------------------------------------------------------------------------------------------------------
# A typed text that knows where it stands in its file, so that every message can point at the place.


@dataclass(frozen=True)
class ReaderSettings:
    """Limits of what is read, and of what a message shows of it.

    text_characters  : most characters of one expression
    nested_levels    : most operators, or brackets, inside each other
    constant_flops   : most products that a constant such as A @ B takes
    shown_characters : characters of a long line that are shown around the place a message is about
    """

    text_characters: int = 10_000
    nested_levels: int = 200
    constant_flops: int = 10_000_000
    shown_characters: int = 100


SETTINGS = ReaderSettings()


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
        """Return where characters start to end stand, with their line and a caret under them; `key` as in `Place`."""
        line, column = self.place(start)
        lines = self.whole.split("\n")
        shown = lines[line - 1].rstrip("\r").replace("\t", " ")
        last = self.offsets[min(len(self.text) if end is None else end, len(self.offsets) - 1)]
        width = max(1, min(last - self.offsets[min(start, len(self.offsets) - 1)], len(shown) - column + 1))
        if not shown.strip():  # there is nothing to point at
            return Place(self.name, line, column, "", key)
        first = 0
        room = SETTINGS.shown_characters
        if len(shown) > room:
            first = max(0, min(column - 1 - room // 3, len(shown) - room))
            shown, width = shown[first : first + room], min(width, room - (column - 1 - first))
        gutter = " " * len(str(line))
        caret = " " * (column - 1 - first) + "^" * width
        return Place(self.name, line, column, f"  {line} | {shown}\n  {gutter} | {caret}", key)

    def error(
        self, message: str, start: int = 0, end: int | None = None, kind: type[MTLError] = ModelError
    ) -> MTLError:
        """An error to raise: `file:line:column: message`, the line, and a caret under characters start to end."""
        return kind(message, place=self.spot(start, end))


# --------------------------------------------------------------------------------------------------------------
# Text to Python's syntax tree, every node of which can point at its place in the text. Nothing is executed.


class Syntax:
    """The tree `body` of one expression, which may run over several lines and hold comments."""

    def __init__(self, source: Source):
        self.source = source
        self._check_size()
        self.body = self._parse()

    def _check_size(self) -> None:
        """Length and brackets, before Python's parser sees the text: it reports neither where we could point at it."""
        text = self.source.text
        if all(not line.partition("#")[0].strip() for line in text.split("\n")):
            raise self.source.error("the text is empty; write an expression")
        if len(text) > SETTINGS.text_characters:
            raise self.source.error(
                f"the text has {len(text)} characters; at most {SETTINGS.text_characters} can be read", 0, 1
            )
        for i, c in enumerate(text.replace("\r\n", "\n ")):
            if (
                c not in "\n\t" and visible(c) != c
            ):  # Python's parser counts some as ends of lines, and refuses others anywhere
                raise self.source.error(
                    f"this cannot be read as an expression: the character {visible(c)} cannot stand in one",
                    i,
                    i + 1,
                )
        open_at, quote, comment, escaped = [], "", False, False
        for i, c in enumerate(text):
            if comment:
                comment = c != "\n"
            elif quote:
                quote = "" if not escaped and c in (quote, "\n") else quote
                escaped = c == "\\" and not escaped
            elif c in "'\"":
                quote = c
            elif c == "#":
                comment = True
            elif c in "([{":
                open_at.append(i)
                if len(open_at) > SETTINGS.nested_levels:
                    raise self.source.error(
                        f"more than {SETTINGS.nested_levels} brackets inside each other", i, i + 1
                    )
            elif c in ")]}":
                if not open_at or text[open_at[-1]] + c not in ("()", "[]", "{}"):
                    raise self.source.error(f"{c!r} closes no bracket", i, i + 1)
                open_at.pop()
        if open_at:
            raise self.source.error(f"{text[open_at[-1]]!r} is never closed", open_at[-1], open_at[-1] + 1)

    def _parse(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about code that is never run
                # brackets of our own let the expression run over several lines: its first line is Python's second
                return ast.parse(f"(\n{self.source.text}\n)", mode="eval").body
        except SyntaxError as error:
            start = self._offset((error.lineno or 2) - 2, max((error.offset or 1) - 1, 0))
            message = f"this cannot be read as an expression: {error.msg}"
            raise self.source.error(message, start, start + 1) from None
        except (RecursionError, MemoryError):
            raise self.source.error("the expression is nested too deeply", 0, 1) from None
        except ValueError as error:
            raise self.source.error(f"this cannot be read as an expression: {error}", 0, 1) from None

    def _offset(self, line: int, column: int) -> int:
        """Return where in the text a column of a line is, both counted from 0; our own brackets lie outside the text."""
        lines = self.source.text.split("\n")
        if not 0 <= line < len(lines):
            return 0 if line < 0 else len(self.source.text)
        return sum(len(before) + 1 for before in lines[:line]) + min(column, len(lines[line]))

    def span(self, node: Any) -> tuple[int, int]:
        """(start, end) of a node in the text. Python counts its columns in bytes."""
        lines = self.source.text.split("\n")

        def offset(line, in_bytes):
            if not 0 <= line < len(lines):
                return self._offset(line, 0)
            return self._offset(line, len(lines[line].encode()[:in_bytes].decode(errors="ignore")))

        return offset(node.lineno - 2, node.col_offset), offset(node.end_lineno - 2, node.end_col_offset)

    def placed(self, error: MTLError, node: ast.AST) -> MTLError:
        """The error, at the place of a node."""
        return error.at(self.source.spot(*self.span(node)))

    def error(self, message: str, node: ast.AST, kind: type[MTLError] = ModelError) -> MTLError:
        return self.source.error(message, *self.span(node), kind=kind)
