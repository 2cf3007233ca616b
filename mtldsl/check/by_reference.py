"""What the reference says of a form: its optimum, its value at a point, and how far another value may be from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.check.comparison import TOLERANCE
from mtldsl.check.touching import learning_terms
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.structure import Structures, StructureTerm
from mtldsl.errors import SolverError
from mtldsl.proof.certificate import objective_scale

if TYPE_CHECKING:
    from mtldsl.reference.model import CvxpyModel
    from mtldsl.reference.solve import ReferencePoint

__all__ = ["dense", "image", "size_of", "solved_by_reference", "tolerance", "value_and_violation"]

#: Side of a semidefinite cone up to which a splitting method still comes back (measured: two minutes at 1010).
MAX_SEMIDEFINITE_SIDE = 1000

#: Variables of a formula's own, beside W, up to which a backend comes back (measured: 12 s at 33,000).
MAX_OWN_VARIABLES = 200_000


def solved_by_reference(form: NormalForm, backend: str | None) -> tuple[CvxpyModel, ReferencePoint]:
    """cvxpy's optimum. SolverError where its semidefinite matrix is too large for cvxpy's solvers."""
    from mtldsl.reference.compile import to_cvxpy
    from mtldsl.reference.solve import solve_reference

    model = to_cvxpy(form, split=True)
    if model.semidefinite_side > MAX_SEMIDEFINITE_SIDE:
        raise SolverError(
            f"in cvxpy its trace norm needs a semidefinite matrix of side {model.semidefinite_side}, and its solvers "
            f"manage {MAX_SEMIDEFINITE_SIDE}; cross-check the model on fewer features",
            term=form.typed,
        )
    own = sum(part.size for statement in model.statements for part in statement.parts)
    if own > MAX_OWN_VARIABLES:
        raise SolverError(
            f"in cvxpy the parts of W that mkl_norm is defined by are {own:,} variables, and its solvers manage "
            f"{MAX_OWN_VARIABLES:,}; cross-check the model on fewer tasks or features (similarities times features count)",
            term=form.typed,
        )
    return model, solve_reference(form, backend, model=model)


def tolerance(backend: str, tol: float | None) -> float:
    """The relative difference that counts as agreement with this backend of cvxpy."""
    return TOLERANCE[backend] if tol is None else tol


def size_of(form: NormalForm, blocks: Blocks, objective: float) -> float:
    """What differences are relative to: log-determinants may make an objective small."""
    losses = sum(loss.value(loss.predictions(blocks)) for loss in form.losses)
    return max(abs(objective), losses, objective_scale(form))


def value_and_violation(form: NormalForm, blocks: Blocks, structures: Structures) -> tuple[float, float]:
    """(objective, violation) by the reference's formulas alone: log-determinants and spectra too."""
    from mtldsl.reference.majorization import spectral_terms, spectral_value, spectral_violation
    from mtldsl.reference.structures import objective
    from mtldsl.reference.task_subset import value_and_violation as of_convex

    terms = [term for term in learning_terms(form) if not term.atom.convex]
    apart = [*terms, *spectral_terms(form)]
    rest = replace(form, functions=tuple(f for f in form.functions if f not in apart))
    total, violation = of_convex(rest, blocks)
    for term in terms:
        total += term.coefficient * objective(term.structure, image(term, blocks), dense(term, structures))
    return float(total + spectral_value(form, blocks)), max(violation, spectral_violation(form, blocks))


def image(term: StructureTerm, blocks: Blocks) -> np.ndarray:
    """The weights that the structure sees, by the reference's own map."""
    from mtldsl.reference.maps import image_at

    return image_at(term.map, blocks)


def dense(term: StructureTerm, structures: Structures) -> list[np.ndarray]:
    """The matrices of a structure as arrays, which the reference's formulas take."""
    return [S.dense() for S in term.matrices(structures)]
