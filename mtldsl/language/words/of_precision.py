"""A norm of a precision that is learned beside the weights: `l1_norm(Sigma2)`."""

from __future__ import annotations

from typing import Any, cast

from mtldsl.atoms.function import Regularizer
from mtldsl.errors import ModelError
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.scalar import ONE
from mtldsl.language.unknowns.learned import LearnedUnknown

__all__ = ["of_precision"]


def of_precision(cls: type[Regularizer], unknown: LearnedUnknown, args, kwargs) -> Objective:
    """The term of it. ModelError for anything but `l1_norm(Sigma2)` of a precision, without weights."""
    typed = f"{cls.name}({unknown.text})"
    if unknown.kind == "covariance":
        raise ModelError(
            f"{unknown.text} is a covariance, whose update has a closed form that no norm fits into; a sparse precision says which tasks "
            "have nothing to do with each other, given the others",
            term=typed,
            write_instead="write matrix_normal(W, np.eye(d), Sigma2) + lam * l1_norm(Sigma2) with Sigma2 = TaskPrecision(tasks)",
        )
    if unknown.kind != "precision":
        raise ModelError(
            f"{unknown.text} {unknown.what}, and not a matrix of weights",
            term=typed,
            write_instead=f"bound it: p_norm({unknown.text}, 1) <= 1",
        )
    if not cls.of_precisions:
        raise ModelError(
            f"{unknown.text} is a precision that is learned, and of those there is l1_norm alone",
            term=typed,
            write_instead=f"write l1_norm({unknown.text}), or bounds on its eigenvalues, {unknown.text} >> 0.01, {unknown.text} << 100",
        )
    if args or kwargs:
        raise ModelError(
            "the norm of a precision takes no weights: every entry counts alike, the diagonal too",
            term=f"{cls.name}({unknown.text}, ...)",
            write_instead=f"write lam * {typed}",
        )
    atom = cls()
    return Objective([Term(ONE, atom, cast(Any, unknown), typed, atom.latex(unknown.latex), of_learned=True)])
