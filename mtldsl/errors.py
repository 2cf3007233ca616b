"""The errors a user can meet: each says what was typed, what is wrong, and what to write instead.

These stand in fields, put into a sentence once, by the face that shows it.

A message may be one text, as in `ModelError("W is not a matrix")`. What a face has to write in another way, or to point at, stands in
fields: `term`, `write_instead`, `argument`, `place`. `str(error)` is Python's face; with a `place` it is that of a problem file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Self, TypeVar

__all__ = [
    "CrossCheckError",
    "DataError",
    "InfeasibleError",
    "Interrupted",
    "LostClusterError",
    "MTLError",
    "MissingExtraError",
    "ModelError",
    "Place",
    "ProofError",
    "SolverError",
    "Spelled",
]


@dataclass(frozen=True)
class Spelled:
    """A piece of a message that Python and a problem file spell in different ways; added to text, it stays one.

    >>> made = "write S = " + Spelled("TaskPrecision(tasks)", '"TaskPrecision" in [learned]')
    >>> print(made)
    write S = TaskPrecision(tasks)
    >>> print(made.on("file"))
    write S = "TaskPrecision" in [learned]
    """

    python: str
    file: str

    @classmethod
    def option(cls, name: str, value: str) -> Spelled:
        """An option with its value: drop=['a'] in a call, drop = ['a'] in a table.

        >>> print(Spelled.option("binary", "True").on("file"))
        binary = true
        """
        return cls(f"{name}={value}", f"{name} = {value.lower() if value in ('True', 'False') else value}")

    def on(self, face: str) -> str:
        """The text on a face, "python" or "file"."""
        return self.file if face == "file" else self.python

    def __add__(self, other: str | Spelled) -> Spelled:
        return Spelled(self.python + _on("python", other), self.file + _on("file", other))

    def __radd__(self, other: str) -> Spelled:
        return Spelled(other + self.python, other + self.file)

    def __str__(self) -> str:
        return self.python


def _on(face: str, text: str | Spelled) -> str:
    return text.on(face) if isinstance(text, Spelled) else str(text)


@dataclass(frozen=True)
class Place:
    """Place of an error in a text: `name` of the text, line and column from 1, the lines to show below the message.

    `key` is the path of a key or value of a problem file, such as ("solve", "starts"); () in other texts.
    """

    name: str
    line: int
    column: int
    shown: str = field(default="", repr=False)
    key: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}"


class MTLError(Exception):
    """Base of every error that mtldsl raises on purpose.

    what          : what is wrong, a text (or `Spelled`)
    term          : what was typed, quoted before it
    write_instead : the advice that ends the message, such as "write ridge(W)"
    argument      : the name of the argument of the call that is wrong, or their names where any of them may be
    place         : where it stands in a text, such as a problem file
    solution      : what was solved before the error came up, as in a `solve(cross_check=...)` that disagrees; else None

    >>> from mtldsl.errors import ModelError, Place
    >>> error = ModelError("the weights are not a number", term="l1_norm(W, weights='a')", write_instead="write weights=2.0")
    >>> print(error)
    l1_norm(W, weights='a'): the weights are not a number; write weights=2.0
    >>> print(error.at(Place("p.toml", 2, 5)))
    p.toml:2:5: l1_norm(W, weights='a'): the weights are not a number; write weights=2.0
    """

    # here too, for subclasses that do not call this constructor
    term: str | Spelled = ""
    write_instead: str | Spelled = ""
    argument: str | tuple[str, ...] = ""
    place: Place | None = None
    solution: Any = None

    def __init__(
        self,
        *what,
        term: str | Spelled | PurePath = "",
        write_instead: str | Spelled = "",
        argument: str | tuple[str, ...] = "",
        place: Place | None = None,
    ):
        super().__init__(*what)
        self.term = str(term) if isinstance(term, PurePath) else term
        self.write_instead, self.argument, self.place = write_instead, argument, place

    @property
    def what(self) -> str | Spelled:
        """Return what is wrong, without the term, the advice and the place."""
        if len(self.args) == 1:
            return self.args[0] if isinstance(self.args[0], Spelled) else str(self.args[0])
        return str(self.args) if self.args else ""

    def said(self, face: str = "python") -> str:
        """The sentence without its place, as a face spells it: "python", or "file" for a problem file."""
        term, what, advice = (_on(face, text) for text in (self.term, self.what, self.write_instead))
        wrong = "; ".join(text for text in (what, advice) if text)
        return ": ".join(text for text in (term, wrong) if text)

    def __str__(self) -> str:
        if self.place is None:
            return self.said()
        lines = f"{self.place}: {self.said('file')}", self.place.shown
        return "\n".join(text for text in lines if text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def at(self, place: Place) -> Self:
        """The same error at a place in a text; one that has a place keeps it."""
        return self if self.place is not None else self._with(place=place)

    def within(self, term: str | Spelled) -> Self:
        """The same error inside what was typed around it: `term: ` stands before its own term."""
        return self._with(term=term + ": " + self.term if self.term else term)

    def about(self, term: str | Spelled) -> Self:
        """The same error with this term in place of its own."""
        return self._with(term=term)

    def as_kind(self, kind: type[MTLError]) -> MTLError:
        """Return what it says, as an error of another class."""
        fields = {name: getattr(self, name) for name in ("term", "write_instead", "argument", "place")}
        return kind(*self.args, **fields)

    def _with(self, **fields) -> Self:
        other: Any = _rebuilt(type(self), self.args, self.__dict__)
        other.__dict__ |= fields
        return other

    def __reduce__(self):
        # a subclass may have any constructor: what it was called with is not known, what it made is
        return _rebuilt, (type(self), self.args, self.__dict__)


_Error = TypeVar("_Error", bound=MTLError)


def _rebuilt(kind: type[_Error], args: tuple, attributes: dict) -> _Error:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__ |= attributes
    if "__notes__" in attributes:  # a note that is added to a copy is of that copy
        error.__notes__ = list(attributes["__notes__"])
    return error


@contextmanager
def quote_in_errors(term: str | Spelled) -> Iterator[None]:
    """Context in which errors that quote nothing quote this term.

    >>> with quote_in_errors("l1_norm(W)"):
    ...     raise ModelError("no")
    Traceback (most recent call last):
    mtldsl.errors.ModelError: l1_norm(W): no
    """
    try:
        yield
    except MTLError as error:
        error.term = error.term or term
        raise


class DataError(MTLError, ValueError):
    """The data cannot be used: wrong lengths, NaN, an empty or one-class task, a label outside {-1, +1}, ..."""


class ModelError(MTLError, ValueError):
    """The model cannot be used: not convex, an unknown word, a wrong shape, a term that no solver takes."""


class InfeasibleError(ModelError):
    """No weights satisfy all constraints at once. From `solve` always with a proof of our own."""


class SolverError(MTLError, RuntimeError):
    """A solver was asked for something it refuses, an unknown option, or it failed numerically."""


class LostClusterError(SolverError):
    """The cluster that the rows are on is gone, or has no worker that works: no other solver would find them."""


class ProofError(MTLError, RuntimeError):
    """A fault of mtldsl itself: a bound above an attained objective. The message names the term; please report it."""


class MissingExtraError(MTLError, ImportError):
    """Error of what needs a package that only an optional extra installs."""


class CrossCheckError(MTLError, AssertionError):
    """Two computations of one thing disagree: the fast solver and the reference formulation beyond the tolerance, or the objective that a
    solve claims and the statement as typed beyond rounding. The text has both sides."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or SIGTERM, ended what is done in many parts: folds of a cross-validation, samples of a bootstrap, halves. Like every
    KeyboardInterrupt it is not an Exception. The text says how many parts were complete.

    completed : the result of these alone, such as a `CrossValidation` of fewer folds, without a refit; None where there were too few
    """

    def __init__(self, text: str = "", completed: Any = None):
        super().__init__(text)
        self.completed = completed
