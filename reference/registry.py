"""Registry of the reference's formulas: one function an atom, entered under the atom's word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtldsl.errors import ModelError


@dataclass(frozen=True)
class ReferenceDefinition:
    """A function of arrays or of cvxpy's expressions, and marks."""

    function: Callable

    def __call__(self, *args):
        return self.function(*args)


@dataclass(frozen=True)
class ReferenceFormula(ReferenceDefinition):
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

    sum_over_samples: bool = False
    semidefinite: bool = False
    exponential: bool = False
    by_planes: bool = False
    of_rankings: bool = False
    of_labellings: bool = False
    of_rows: bool = False
    own_variables: Callable | None = None


@dataclass(frozen=True)
class ReferenceStructureFormula(ReferenceDefinition):
    """The definition of a learned structure with its matrices kept, in cvxpy.

    Called as f(W, matrices, atom): W (d, m) and every matrix is an array or a cvxpy expression. The result is convex and
    DCP where the expressions among them are ones in which the structure is convex together; else a ModelError.

    bound : f(k, W, matrices, atom) -> float, with arrays throughout: no more than the minimum over matrix k
    scale : f(k, W, matrices, atom) -> array, of the order of the minimiser, in whose units it is sought; for structures that
            are quadratic forms of W in matrix k, so that S = L T L^T may be taken into W
    inverse : they are so in the inverse of matrix k, which may have zeros where W has
    """

    bound: Callable
    scale: Callable | None = None
    inverse: bool = False


@dataclass(frozen=True)
class ReferenceSpectrum(ReferenceDefinition):
    """The definition of a penalty sum_j r(x_j), x_j the eigenvalues of W W^T + eps I, in numpy: r as f(x, atom), elementwise.

    slope        : f(x, atom), the derivative of r; inf where it has none at 0
    of_sizes     : x_j are the squares of the entries of W instead, or where atom.rows is True of the lengths of its rows
    largest_rank : of a constraint on the rank, f(atom) -> the rank allowed
    cut          : singular values below this, relative to the largest, are zero by definition
    """

    slope: Callable
    of_sizes: bool = False
    largest_rank: Callable | None = None
    cut: float = 0.0


class DefinitionTable(dict):
    """Definitions of one kind by word; `plural` and `lack` are what messages call them, and say where one is missing."""

    def __init__(self, kind: type[ReferenceDefinition], plural: str, lack: str = ""):
        super().__init__()
        self.kind, self.plural, self.lack = kind, plural, lack

    def enter(self, word: str, **marks):
        """Function decorator: this is the definition of `word`, with these marks."""

        def entered(function: Callable) -> Callable:
            if word in self:
                raise ValueError(f"two reference {self.plural} are called {word!r}")
            self[word] = self.kind(function, **marks)
            return function

        return entered

    def of(self, word: str, typed: str):
        """The definition; a ModelError that quotes the term where there is none."""
        if word not in self:
            raise ModelError(
                f"the reference has no {self.lack.format(repr(word))} to mtldsl.reference.", term=typed
            )
        return self[word]


FORMULAS = DefinitionTable(
    ReferenceFormula, "formulas",
    "formula for {0}, so this model cannot be written in cvxpy. Add a function decorated with @formula({0})",
)  # fmt: skip

#: Beside FORMULAS, under names that nobody types: functions that the reference puts in place of others.
AUXILIARY = DefinitionTable(ReferenceFormula, "functions of its own")

#: Beside FORMULAS, where a convex structure is defined with its matrices eliminated: as a function of W alone.
STRUCTURES = DefinitionTable(
    ReferenceStructureFormula, "structures",
    "learned structure {0}, so its blocks cannot be written in cvxpy. Add a function decorated with @structure({0})",
)  # fmt: skip

#: Beside FORMULAS: penalties and constraints that are not convex, which cvxpy is never given.
SPECTRA = DefinitionTable(
    ReferenceSpectrum, "penalties of the spectrum",
    "penalty of the spectrum {0}, so no convex function that touches it is known. Add a function decorated with @spectrum({0})",
)  # fmt: skip

formula, auxiliary, structure, spectrum = (
    table.enter for table in (FORMULAS, AUXILIARY, STRUCTURES, SPECTRA)
)
structure_of, spectrum_of = STRUCTURES.of, SPECTRA.of


def formula_of(word: str, typed: str) -> ReferenceFormula:
    """The formula of an atom; a ModelError that quotes the term where there is none."""
    if word in AUXILIARY:
        return AUXILIARY[word]
    if word in SPECTRA:
        raise ModelError(
            f"{typed} is not convex, so cvxpy cannot state it; at a solution it can be given a convex function that touches it: "
            "write problem.to_cvxpy(at=solution)"
        )
    return FORMULAS.of(word, typed)


def formula_of_loss(term) -> ReferenceFormula:
    """The formula of a loss of the normal form; of the largest of the tasks' losses, that of one task's."""
    return formula_of(getattr(term.atom, "of", term.atom).name, term.typed)


def needs_semidefinite_cone(atom, typed: str) -> bool:
    """Tell whether the formula of an atom does; of the ball of a norm, that of the norm."""
    return formula_of(getattr(atom, "of", atom).name, typed).semidefinite
