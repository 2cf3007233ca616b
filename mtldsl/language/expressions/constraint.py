"""Constraints: comparisons of affine expressions with constants, and norm balls."""

from __future__ import annotations

from dataclasses import dataclass

from mtldsl.atoms.function import Set
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constants import as_matrix, constant_text
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.latex import constant_latex

__all__ = ["Constraint", "compare"]

_LATEX = {">=": r"\geq", "<=": r"\leq", "==": "="}


@dataclass(frozen=True, eq=False)
class Constraint:
    """atom's set contains argument; `text` as typed."""

    atom: Set
    argument: Affine
    text: str
    latex: str

    def __bool__(self):
        raise ModelError(
            f"{self.text} has no truth value: a chained comparison such as 0 <= W <= 1 must be written as two constraints, "
            "subject_to=[W >= 0, W <= 1]"
        )

    def __repr__(self):
        return self.text


def compare(left: Affine, symbol: str, right) -> Constraint:
    """left (symbol) right as a constraint on an affine expression; right may be a number, an array or another expression."""
    from mtldsl.atoms.sets import AtLeast, AtMost, EqualTo

    kind = {">=": AtLeast, "<=": AtMost, "==": EqualTo}[symbol]
    if isinstance(right, Affine):
        text = f"{left.text} {symbol} {right.text}"
        return Constraint(kind(0.0), left - right, text, f"{left.latex} {_LATEX[symbol]} {right.latex}")
    typed = f"{left.text} {symbol} {_right_text(right)}"
    bound = as_matrix(right, left.shape, typed)
    if bound is None:
        raise ModelError(
            f"{typed}: the right-hand side must be a number, an array or another expression of weights"
            + ("" if not hasattr(right, "value") else "; a Parameter may only multiply a term")
        )
    if left.offset is not None:
        # constants move to the right, so that `W - 1 >= 0` is a bound on W itself
        bound = bound - left.offset
        left = Affine(left.parts, left.shape, left.text, left.latex, left.precedence)
    uniform = bound.flat[0] if bound.size and (bound == bound.flat[0]).all() else None
    latex = f"{left.latex} {_LATEX[symbol]} {constant_latex(right)}"
    return Constraint(kind(bound if uniform is None else float(uniform)), left, typed, latex)


def _right_text(value) -> str:
    return constant_text(value)
