"""Norms of learned precisions in a model: what is wrong with them, and the structure that such a term becomes a part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mtldsl.atoms.structures.matrix_normal import MatrixNormal
from mtldsl.atoms.structures.sparse_matrix_normal import SparseMatrixNormal
from mtldsl.errors import ModelError
from mtldsl.language.expressions.objective import Term
from mtldsl.language.unknowns.learned import LearnedUnknown

__all__ = ["check_penalised", "penalised_in", "with_norms"]


def penalised_in(terms: Sequence[Term]) -> dict[LearnedUnknown, list[Term]]:
    """Every learned matrix of which a norm is a term -> these terms."""
    found: dict[LearnedUnknown, list[Term]] = {}
    for term in terms:
        if term.of_learned:
            found.setdefault(term.argument, []).append(term)  # type: ignore[arg-type]
    return found


def check_penalised(terms: Sequence[Term], bounds: Sequence, ranges: Mapping[Any, Any]) -> None:
    """ModelError for a norm of a matrix that is in no other term, that is bounded too, or beside which another one is learned."""
    for matrix, (norm, *_) in penalised_in(terms).items():
        owner = next((term for term in terms if any(m is matrix for m in term.learned)), None)
        if owner is None:
            others = "W, np.eye(d), " if matrix.axis == "tasks" else "W, "
            rest = "" if matrix.axis == "tasks" else ", np.eye(m)"
            raise ModelError(
                f"{matrix.text} is in no other term of the objective, so that nothing is learned of it",
                term=norm.text,
                write_instead=f"add the term, such as matrix_normal({others}{matrix.text}{rest})",
            )
        for bound in bounds:
            if bound.unknown is matrix:
                raise ModelError(
                    f"{matrix.text} has the norm {norm.text} in the objective, which keeps it from growing without end as the log-determinant "
                    "keeps it from becoming singular; bounds on its eigenvalues beside that are not in the language",
                    term=bound.text,
                    write_instead="leave the bounds out, or the norm",
                )
        for other in owner.learned:
            fixed = ranges.get(other) if isinstance(other, LearnedUnknown) else None
            if other is matrix or not isinstance(other, LearnedUnknown):
                continue
            if fixed is None or fixed.lower != fixed.upper:
                side = "d" if other.axis == "features" else "m"
                raise ModelError(
                    f"{other.text} is learned beside {matrix.text} in {owner.atom_text}: for {matrix.text} with {norm.text} the minimum is "
                    "known where the other matrix is given",
                    term=norm.text,
                    write_instead=f"give an array, such as np.eye({side}), in place of {other.text}",
                )


def with_norms(term: Term, penalised: Mapping[LearnedUnknown, list[Term]]):
    """The structure of a term with the norms of its matrices in it; that of the term where there are none, or with the coefficient 0."""
    norms = [sum(one.coefficient.value for one in penalised.get(m, ())) for m in _hashable(term.learned)]
    if not any(norms):
        return term.atom
    first, second = (norm / term.coefficient.value for norm in norms)
    return SparseMatrixNormal.of(
        cast(MatrixNormal, term.atom), (first, second)
    )  # what else learns precisions


def _hashable(learned) -> list:
    return [m if isinstance(m, LearnedUnknown) else None for m in learned]
