"""Objectives: terms and their sums, which stand after `minimize(`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import Atom, Regularizer, Set
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError, quote_in_errors
from mtldsl.language.constraints import Constraint, refused_comparison
from mtldsl.language.expressions import Affine
from mtldsl.language.scalars import ONE, NoArray, Number, Operation, Parameter, Scalar, as_scalar, bracket
from mtldsl.utils.validation import quoted


@dataclass(frozen=True, eq=False)
class Term:
    """coefficient * atom(argument): a loss (then `tasks` is set), a regularizer, or a structure (then `learned` is set)."""

    coefficient: Scalar
    atom: Atom
    argument: Affine
    atom_text: str
    atom_latex: str
    tasks: Tasks | None = None
    mean: bool = False
    worst: bool = False  # of a loss: the largest of the tasks' losses, not their sum
    source: Tasks | None = None  # the tasks as typed, where the loss makes others of them
    of_learned: bool = False  # a norm of a matrix that is learned, which then is the argument
    learned: tuple = ()  # of a structure: each of its matrices, a `LearnedUnknown` or, where it is given, a `SpectralMatrix`
    of_transpose: Atom | None = (
        None  # the word that was typed of the argument's transpose, where `atom` is the same of the argument
    )

    @property
    def is_loss(self) -> bool:
        return isinstance(self.atom, Loss)

    @property
    def typed_atom(self) -> Atom:
        """The word as typed."""
        return self.atom if self.of_transpose is None else self.of_transpose

    @property
    def tree(self) -> Operation:
        """The argument as typed."""
        tree = self.argument.tree
        return tree if self.of_transpose is None else Operation("T", (tree,))

    @property
    def data(self) -> Tasks | None:
        """The tasks of a loss, as typed."""
        return self.source or self.tasks

    @property
    def parameters(self) -> list[Parameter]:
        """Those of the coefficient, then those inside the argument, as in l1_norm(lam * W); by name."""
        inside = frozenset().union(*(part.coefficient.parameters for part in self.argument.parts))
        return sorted(self.coefficient.parameters, key=lambda p: p.name) + sorted(
            inside - self.coefficient.parameters, key=lambda p: p.name
        )

    @property
    def text(self) -> str:
        c = self.coefficient
        return self.atom_text if _is_one(c) else f"{bracket(c, 2)} * {self.atom_text}"

    @property
    def latex(self) -> str:
        c = self.coefficient
        return self.atom_latex if _is_one(c) else rf"{bracket(c, 2, 'latex')} \, {self.atom_latex}"


#: comparison -> (what is wrong with it, what to write instead)
_REFUSED = {
    "<": ("a strict inequality has no closed feasible set", "write <="),
    ">": ("the outside of a ball is not convex", "write <="),
    ">=": ("the outside of a ball is not convex", "write <= to bound a norm from above"),
    "==": ("the surface of a ball is not convex", "write <= to bound a norm from above"),
}


class Objective(NoArray):
    """A sum of terms. Made by the words of the vocabulary and by + and *."""

    __array_ufunc__ = None
    __pandas_priority__ = 10_000  # and pandas tables

    def __init__(self, terms):
        self.terms: tuple[Term, ...] = tuple(terms)

    @property
    def text(self) -> str:
        return _join([term.text for term in self.terms])

    @property
    def latex(self) -> str:
        return _join([term.latex for term in self.terms])

    def __repr__(self):
        return self.text

    def __add__(self, other):
        if isinstance(other, Objective):
            return Objective(self.terms + other.terms)
        scalar = as_scalar(other)
        if isinstance(scalar, Number) and scalar.value == 0.0:  # sum([...]) starts from 0
            return self
        instead = f"; write it into subject_to=[{other.text}]" if isinstance(other, Constraint) else ""
        raise ModelError(
            f"{self.text} + {_describe(other)}: only terms (losses and regularizers) can be added to an objective{instead}"
        )

    def __radd__(self, other):
        return self.__add__(other)

    def __sub__(self, other):
        return self + (-1.0) * other if isinstance(other, Objective) else self.__add__(other)

    def __mul__(self, other):
        scalar = as_scalar(other)
        if scalar is None:
            raise ModelError(
                f"{self._bracketed} * {_describe(other)}: a term can be multiplied by a number or a Parameter only; "
                "a product of terms is not convex"
            )
        return Objective(replace(t, coefficient=scalar * t.coefficient) for t in self.terms)

    __rmul__ = __mul__

    def __truediv__(self, other):
        scalar = as_scalar(other)
        if scalar is None or (isinstance(scalar, Number) and scalar.value == 0):
            raise ModelError(
                f"{self._bracketed} / {_describe(other)}: divide by a nonzero number or a Parameter"
            )
        return self * (ONE / scalar)

    def __rtruediv__(self, other):
        raise ModelError(
            f"{_describe(other)} / {self._bracketed}: one over a term is not convex, and not in the language"
        )

    def __neg__(self):
        return self * -1.0

    @property
    def _bracketed(self) -> str:
        alone = len(self.terms) == 1 and _is_one(self.terms[0].coefficient)
        return self.text if alone else f"({self.text})"

    def __pow__(self, power):
        raise ModelError(
            f"{self._bracketed} ** {_describe(power)}: powers of a term are not in the language; there are ridge(W), half the squared "
            "frobenius_norm, and squared_trace_norm(W)"
        )

    # ------------------------------------------------------------------------------------------- balls

    def __le__(self, other):
        text = f"{self.text} <= {_describe(other)}"
        with quote_in_errors(text):
            return self._bounded(other, text)

    def _bounded(self, other, text: str) -> Constraint:
        if len(self.terms) == 1 and self.terms[0].is_loss:
            raise ModelError(
                "a loss stands in the objective; a norm of residuals may be bounded, where tasks share X",
                write_instead=f"write frobenius_norm(X @ W - Y) <= c, whose half square is squared_loss, beside {self.terms[0].atom_text} with any "
                "coefficient >= 0",
            )
        if len(self.terms) != 1:
            raise ModelError(
                "only a single norm may be bounded, such as l1_norm(W) <= 1",
                write_instead="put the expression into the objective with a coefficient instead",
            )
        (term,) = self.terms
        if term.of_learned:
            raise ModelError(
                "the norm of a matrix that is learned stands in the objective, not in a constraint",
                write_instead=f"add lam * {term.atom_text} to the objective",
            )
        radius, c = as_scalar(other), term.coefficient
        if radius is None or c.parameters:
            named = next(iter(c.parameters), None)
            advice = f"divide the radius by {named.text} instead" if named is not None else ""
            raise ModelError(
                "the radius of a ball must be a number or a Parameter, and its factor a plain number",
                write_instead=advice,
            )

        ball = partial(_ball, term, text)
        now = ball(radius.value)  # what is wrong with it is said here, also where a Parameter will change
        given, changes = (ball, radius) if radius.parameters else (now, None)
        tree = Operation("ball", (c, term.typed_atom, term.tree, radius))
        latex = rf"{term.latex} \leq {radius.latex}"
        return Constraint(given, term.argument, text, latex, tree, changes)

    def _refuse(self, symbol: str, other):
        text = f"{self.text} {symbol} {_describe(other)}"
        if symbol in (">=", "==") and len(self.terms) == 1 and not self.terms[0].atom.convex:
            what = "not convex and not" if symbol == ">=" else "not"
            raise ModelError(
                f"{text}: the set is {what} one of the language; {self.terms[0].atom_text} can be bounded from above: write <="
            )
        what, write_instead = _REFUSED[symbol]
        raise ModelError(f"{text}: {what}", write_instead=write_instead)

    __lt__, __gt__, __ge__, __eq__ = map(refused_comparison, ("<", ">", ">=", "=="))
    __hash__ = object.__hash__


def _ball(term: Term, text: str, radius: float) -> Set:
    """The set where term <= radius; a function of this module, so that a problem can be pickled."""
    factor = term.coefficient.value
    if factor <= 0 or radius < 0:
        raise ModelError(
            "the set is not convex or is empty; the factor must be > 0 and the radius >= 0", term=text
        )
    ball = term.atom.ball(radius / factor) if isinstance(term.atom, Regularizer) else None
    if ball is None:
        raise ModelError(
            f"{term.typed_atom.name} is not a norm, and only norms and rank may be bounded",
            term=text,
            write_instead=f"bound a norm, such as l1_norm, or add lam * {term.atom_text} to the objective",
        )
    return ball.stated(term.argument.shape)


def _is_one(scalar: Scalar) -> bool:
    return isinstance(scalar, Number) and scalar.value == 1.0


def _join(texts: list[str]) -> str:
    joined = texts[0] if texts else "0"
    for text in texts[1:]:
        joined += f" - {text[1:]}" if text.startswith("-") else f" + {text}"
    return joined


def _describe(value) -> str:
    text = getattr(value, "text", None)
    return text if isinstance(text, str) else quoted(value, 60)
