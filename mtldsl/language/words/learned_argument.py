"""A matrix that a word learns: the unknown that stands there, or a given matrix, where it fits."""

from __future__ import annotations

from numbers import Real

from mtldsl.atoms import metrics, structures
from mtldsl.atoms.regularizers.kronecker import checked_symmetric
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constants import constant_text
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.expressions.scalar import Scalar
from mtldsl.language.spelling import declared_in, made
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.tasks import Tasks

__all__ = ["checked_matrix", "short", "unknown_of"]


def unknown_of(description: structures.Learned) -> type[LearnedUnknown]:
    """The class of unknowns that stand where a structure learns such a matrix."""
    return next(
        kind
        for kind in LearnedUnknown.__subclasses__()
        if (kind.axis, kind.kind) == (description.axis, description.kind)
    )


def checked_matrix(cls, matrix, description: structures.Learned, W: Affine, typed: str):
    """The unknown, or the matrix that is given, where it fits; ModelError where it does not."""
    wanted, side = unknown_of(description), W.shape[0 if description.axis == "features" else 1]
    if isinstance(matrix, LearnedUnknown):
        if not isinstance(matrix, wanted):
            raise ModelError(
                f"{description.name} must be a {wanted.__name__}, and {matrix.text} is a {type(matrix).__name__}",
                term=typed,
                write_instead=f"write {description.name} = " + made(wanted.__name__),
            )
        if matrix.side != side:
            raise ModelError(
                f"{matrix.text} is {matrix.side} x {matrix.side}, but {W.text} has {side} "
                f"{'rows (features)' if description.axis == 'features' else 'columns (tasks)'}; the word takes an expression of "
                "the full shape",
                term=typed,
            )
        return matrix
    if isinstance(matrix, (Affine, Objective, Scalar, Tasks, str, Real)) or matrix is None:
        given = f", or an array ({side}, {side}) that fixes it" if description.kind == "precision" else ""
        raise ModelError(
            f"{description.name} must be a {wanted.__name__}{given}; this is {short(matrix)}"
            + declared_in(wanted.__name__, description.name),
            term=typed,
        )
    if description.kind == "covariance":
        sides = (
            "rows=inv(D), columns=eye(m)"
            if description.axis == "features"
            else "rows=eye(d), columns=inv(Omega)"
        )
        raise ModelError(
            f"{description.name} is a matrix that is learned, and an array is given; with a given covariance the penalty "
            f"is 2 * kronecker_ridge({W.text}, {sides})",
            term=typed,
        )
    fixed = checked_symmetric(matrix, typed, positive=True)
    if fixed.side != side:
        raise ModelError(
            f"{description.name} is given as a {fixed.side} x {fixed.side} matrix, but {W.text} needs {side} x {side}",
            term=typed,
        )
    return fixed


def short(value) -> str:
    if isinstance(value, (list, tuple)) and any(isinstance(item, metrics.Metric) for item in value):
        return repr(list(value))
    if callable(value) and not isinstance(value, type):  # a user's own function
        return getattr(value, "__name__", repr(value)[:40])
    return constant_text(value)
