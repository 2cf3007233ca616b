"""Where the reference keeps its formulas: one function an atom, entered under the atom's word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtldsl.errors import ModelError

__all__ = [
    "FORMULAS",
    "STRUCTURES",
    "Formula",
    "KeptFormula",
    "formula",
    "formula_of",
    "structure",
    "structure_of",
]


@dataclass(frozen=True)
class Formula:
    """A definition in cvxpy.

    A loss is called as f(z, y, s, atom) with an expression z (n,), a regularizer as f(W, atom) with an
    expression W (p, q), a set as f(W, atom) and then returns a list of constraints, a metric as
    f(b, c, positives, negatives, atom) (one of rankings as f(z, y, atom)). The marks say what it costs to
    solve:

    sum_over_samples : a loss that may be stated for the samples of all tasks at once
    semidefinite     : a semidefinite cone of side p + q
    exponential      : an exponential cone or two for every sample
    by_planes        : a maximum of too many planes to state, found one by one for larger tasks
    of_rankings      : a metric of rankings, not of labellings
    """

    function: Callable
    sum_over_samples: bool = False
    semidefinite: bool = False
    exponential: bool = False
    by_planes: bool = False
    of_rankings: bool = False

    def __call__(self, *args):
        return self.function(*args)


FORMULAS: dict[str, Formula] = {}


def formula(word: str, **marks: bool):
    """Function decorator: this is the definition of the atom that is called `word`."""

    def enter(function: Callable) -> Callable:
        if word in FORMULAS:
            raise ValueError(f"two reference formulas are called {word!r}")
        FORMULAS[word] = Formula(function, **marks)
        return function

    return enter


def formula_of(word: str, typed: str) -> Formula:
    """The formula of an atom; a ModelError that quotes the term where there is none."""
    if word not in FORMULAS:
        raise ModelError(
            f"{typed}: the reference has no formula for {word!r}, so this model cannot be written in cvxpy. "
            f"Add a function decorated with @formula({word!r}) to mtldsl.reference."
        )
    return FORMULAS[word]


@dataclass(frozen=True)
class KeptFormula:
    """The definition of a learned structure with its matrices kept, in cvxpy.

    Called as f(W, matrices, atom): W (d, m) and every matrix is an array or a cvxpy expression. The result is convex and
    DCP where the expressions among them are ones in which the structure is convex together; else a ModelError.

    bound : f(k, W, matrices, atom) -> float, with arrays throughout: no more than the minimum over matrix k
    scale : f(k, W, matrices, atom) -> array, of the order of the minimiser, in whose units it is sought; for structures that
            are quadratic forms of W in matrix k, so that S = L T L^T may be taken into W
    """

    function: Callable
    bound: Callable
    scale: Callable | None = None

    def __call__(self, *args):
        return self.function(*args)


#: Beside FORMULAS, where a convex structure is defined with its matrices eliminated: as a function of W alone.
STRUCTURES: dict[str, KeptFormula] = {}


def structure(word: str, *, bound: Callable, scale: Callable | None = None):
    """Function decorator: this is the definition, matrices kept, of the learned structure that is called `word`."""

    def enter(function: Callable) -> Callable:
        if word in STRUCTURES:
            raise ValueError(f"two reference structures are called {word!r}")
        STRUCTURES[word] = KeptFormula(function, bound, scale)
        return function

    return enter


def structure_of(word: str, typed: str) -> KeptFormula:
    """The definition of a learned structure; a ModelError that quotes the term where there is none."""
    if word not in STRUCTURES:
        raise ModelError(
            f"{typed}: the reference has no learned structure {word!r}, so its blocks cannot be written in cvxpy. "
            f"Add a function decorated with @structure({word!r}) to mtldsl.reference."
        )
    return STRUCTURES[word]
