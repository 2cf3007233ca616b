"""Registry of the reference's formulas: one function an atom, entered under the atom's word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtldsl.errors import ModelError

__all__ = [
    "AUXILIARY",
    "FORMULAS",
    "SPECTRA",
    "STRUCTURES",
    "ReferenceFormula",
    "ReferenceSpectrum",
    "ReferenceStructureFormula",
    "auxiliary",
    "formula",
    "formula_of",
    "formula_of_loss",
    "needs_semidefinite_cone",
    "spectrum",
    "spectrum_of",
    "structure",
    "structure_of",
]


@dataclass(frozen=True)
class ReferenceFormula:
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
    of_labellings    : a loss of whole labellings: a maximum or a sum over all 2^K of a sample; s holds weights of samples (n,), while
                       z is their scores, all of one entry after all of another
    of_rows          : a loss of all tasks' scores of a row together; z, y and s as there, a task in the place of an entry
    own_variables    : f(W, atom) -> a statement of a regularizer in variables of its own, where it has any: convex in `.value`,
                       with the constraints `.ties`, and `.settle()` gives them their best values for the value of W
    """

    function: Callable
    sum_over_samples: bool = False
    semidefinite: bool = False
    exponential: bool = False
    by_planes: bool = False
    of_rankings: bool = False
    of_labellings: bool = False
    of_rows: bool = False
    own_variables: Callable | None = None

    def __call__(self, *args):
        return self.function(*args)


FORMULAS: dict[str, ReferenceFormula] = {}

#: Beside FORMULAS, under names that nobody types: functions that the reference puts in place of others.
AUXILIARY: dict[str, ReferenceFormula] = {}


def _entering(table: dict, what: str, word: str, definition: Callable) -> Callable:
    """Function decorator: what `definition` makes of the function is entered into the table, under a word that is free."""

    def enter(function: Callable) -> Callable:
        if word in table:
            raise ValueError(f"two reference {what} are called {word!r}")
        table[word] = definition(function)
        return function

    return enter


def formula(word: str, **marks):
    """Function decorator: this is the definition of the atom that is called `word`."""
    return _entering(FORMULAS, "formulas", word, lambda function: ReferenceFormula(function, **marks))


def auxiliary(name: str, **marks: bool):
    """Function decorator: this is the definition of a function of the reference's own."""
    return _entering(
        AUXILIARY, "functions of its own", name, lambda function: ReferenceFormula(function, **marks)
    )


def formula_of(word: str, typed: str) -> ReferenceFormula:
    """The formula of an atom; a ModelError that quotes the term where there is none."""
    if word in AUXILIARY:
        return AUXILIARY[word]
    if word in SPECTRA:
        raise ModelError(
            f"{typed} is not convex, so cvxpy cannot state it; at a solution it can be given a convex function that touches it: "
            "write problem.to_cvxpy(at=solution)"
        )
    if word not in FORMULAS:
        raise ModelError(
            f"the reference has no formula for {word!r}, so this model cannot be written in cvxpy. "
            f"Add a function decorated with @formula({word!r}) to mtldsl.reference.",
            term=typed,
        )
    return FORMULAS[word]


def formula_of_loss(term) -> ReferenceFormula:
    """The formula of a loss of the normal form; of the largest of the tasks' losses, that of one task's."""
    return formula_of(getattr(term.atom, "of", term.atom).name, term.typed)


def needs_semidefinite_cone(atom, typed: str) -> bool:
    """Tell whether the formula of an atom does; of the ball of a norm, that of the norm."""
    return formula_of(getattr(atom, "of", atom).name, typed).semidefinite


@dataclass(frozen=True)
class ReferenceStructureFormula:
    """The definition of a learned structure with its matrices kept, in cvxpy.

    Called as f(W, matrices, atom): W (d, m) and every matrix is an array or a cvxpy expression. The result is convex and
    DCP where the expressions among them are ones in which the structure is convex together; else a ModelError.

    bound : f(k, W, matrices, atom) -> float, with arrays throughout: no more than the minimum over matrix k
    scale : f(k, W, matrices, atom) -> array, of the order of the minimiser, in whose units it is sought; for structures that
            are quadratic forms of W in matrix k, so that S = L T L^T may be taken into W
    inverse : they are so in the inverse of matrix k, which may have zeros where W has
    """

    function: Callable
    bound: Callable
    scale: Callable | None = None
    inverse: bool = False

    def __call__(self, *args):
        return self.function(*args)


#: Beside FORMULAS, where a convex structure is defined with its matrices eliminated: as a function of W alone.
STRUCTURES: dict[str, ReferenceStructureFormula] = {}


def structure(word: str, *, bound: Callable, scale: Callable | None = None, inverse: bool = False):
    """Function decorator: this is the definition, matrices kept, of the learned structure that is called `word`."""
    return _entering(
        STRUCTURES,
        "structures",
        word,
        lambda function: ReferenceStructureFormula(function, bound, scale, inverse),
    )


def structure_of(word: str, typed: str) -> ReferenceStructureFormula:
    """The definition of a learned structure; a ModelError that quotes the term where there is none."""
    if word not in STRUCTURES:
        raise ModelError(
            f"the reference has no learned structure {word!r}, so its blocks cannot be written in cvxpy. "
            f"Add a function decorated with @structure({word!r}) to mtldsl.reference.",
            term=typed,
        )
    return STRUCTURES[word]


@dataclass(frozen=True)
class ReferenceSpectrum:
    """The definition of a penalty sum_j r(x_j), x_j the eigenvalues of W W^T + eps I, in numpy: r as f(x, atom), elementwise.

    slope        : f(x, atom), the derivative of r; inf where it has none at 0
    largest_rank : of a constraint on the rank, f(atom) -> the rank allowed
    cut          : singular values below this, relative to the largest, are zero by definition
    """

    function: Callable
    slope: Callable
    largest_rank: Callable | None = None
    cut: float = 0.0

    def __call__(self, *args):
        return self.function(*args)


#: Beside FORMULAS: penalties and constraints that are not convex, which cvxpy is never given.
SPECTRA: dict[str, ReferenceSpectrum] = {}


def spectrum(word: str, *, slope: Callable, largest_rank: Callable | None = None, cut: float = 0.0):
    """Function decorator: this is r of the penalty of the spectrum that is called `word`."""
    return _entering(
        SPECTRA,
        "penalties of the spectrum",
        word,
        lambda function: ReferenceSpectrum(function, slope, largest_rank, cut),
    )


def spectrum_of(word: str, typed: str) -> ReferenceSpectrum:
    """The definition of a penalty of the spectrum; a ModelError that quotes the term where there is none."""
    if word not in SPECTRA:
        raise ModelError(
            f"the reference has no penalty of the spectrum {word!r}, so no convex function that touches it is known. "
            f"Add a function decorated with @spectrum({word!r}) to mtldsl.reference.",
            term=typed,
        )
    return SPECTRA[word]
