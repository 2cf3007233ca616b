"""Models that are not convex against the reference: block by block, each a convex problem for cvxpy."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.check.comparison import TOLERANCE
from mtldsl.check.comparison_blocks import BlockCheck, BlockRow, MajorizationRow
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.kept import Kept
from mtldsl.compile.terms.structure import (
    Structures,
    StructureTerm,
    structure_terms,
)
from mtldsl.errors import ModelError, SolverError
from mtldsl.proof.certificate import objective_scale
from mtldsl.solution.solution import Solution
from mtldsl.system.threads import has_fitting_blas_threads

if TYPE_CHECKING:
    from mtldsl.compile.majorization import MajorizationStep
    from mtldsl.reference.model import CvxpyModel
    from mtldsl.reference.solve import ReferencePoint

__all__ = ["check_blocks", "kept_at", "solved_by_reference", "some_tasks"]

#: Relative difference of a matrix's block that counts as agreement: what Clarabel leaves of a log-determinant (measured: 6e-9).
MATRIX_TOLERANCE = 1e-7

#: Side of a semidefinite cone up to which a splitting method still comes back (measured: two minutes at 1010).
MAX_SEMIDEFINITE_SIDE = 1000

#: Variables of a formula's own, beside W, up to which a backend comes back (measured: 12 s at 33,000).
MAX_OWN_VARIABLES = 200_000


def kept_at(form: NormalForm, solution: Solution) -> tuple[NormalForm, Structures]:
    """(a convex form that touches the model at a solution, the learned matrices kept in it).

    Convex in the weights, because learned matrices are kept and penalties of the spectrum that are not convex are majorised; where
    they cannot be and where the rank is bounded, the column space of the solution's weights is kept. ModelError where the
    solution is not the model's.
    """
    from mtldsl.reference.majorization import convex_forms

    structures = _matrices_at(form, solution)
    return Kept(structures).apply(convex_forms(form, solution.blocks)[0][1])[0], structures


def _matrices_at(form: NormalForm, solution: Solution) -> Structures:
    # kernel weights are not a block of their own: their penalty is convex, and stays eliminated
    structures = {name: one.spectral for name, one in solution.learned.items() if hasattr(one, "spectral")}
    for term in _learning_terms(form):
        for name, given in zip(term.names, term.structure.start(term.map.shape), strict=True):
            if name is not None and (name not in structures or structures[name].side != given.side):
                held = ", ".join(f"{key} {S.side} x {S.side}" for key, S in structures.items()) or "none"
                raise ModelError(
                    f"the solution is not one of this problem: {term.typed} learns {name} {given.side} x {given.side}, and its "
                    f"learned matrices are: {held}; give a solution of this problem"
                )
    shapes = {name: block.shape for name, block in solution.blocks.items()}
    if shapes != form.shapes:
        raise ModelError(
            f"the solution is not one of this problem: it has the unknowns {shapes}, but the problem has {form.shapes}; give a "
            "solution of this problem"
        )
    return structures


def _learning_terms(form: NormalForm) -> list[StructureTerm]:
    """Those whose matrices are unknowns of the model."""
    return [
        term for term in structure_terms(form) if not term.atom.weighs_kernels and not term.atom.is_reweighted
    ]


def some_tasks(form: NormalForm, kept: NormalForm, share: float, random_state: int) -> np.ndarray | None:
    """A random share of the tasks on which the blocks of a large model are compared; None where that is not possible."""
    from mtldsl.reference.majorization import spectral_terms
    from mtldsl.reference.task_subset import why_not_by_tasks

    m = form.losses[0].tasks.n_tasks
    if not spectral_terms(form) or _learning_terms(form) or why_not_by_tasks(kept) or m * share < 1:
        return None
    return np.sort(np.random.default_rng(random_state).permutation(m)[: int(m * share)])


@has_fitting_blas_threads(lambda form, *_: form.data_size)
def check_blocks(
    form: NormalForm,
    solution: Solution,
    scope: str,
    backend: str | None,
    tol: float | None,
    which: np.ndarray | None = None,
    random_state: int = 0,
) -> BlockCheck:
    """Every block at the solution, and every step of majorisation that it kept, against the reference.

    tol   : as in `cross_check`
    which : the tasks whose weights the reference is free to choose (None: all)
    """
    from mtldsl.reference.majorization import convex_forms

    blocks = solution.blocks
    structures = _matrices_at(form, solution)
    objective, violation = _by_reference(form, blocks, structures)
    size = _size(form, blocks, objective)
    rows = []
    for text, touching in convex_forms(form, blocks, random_state):
        name = f"weights, {text}" if text else "weights"
        rows += _weights_rows(
            name, touching, blocks, structures, objective, size, backend, tol, solution.tol, which
        )
    for term in _learning_terms(form):
        if not term.atom.convex:
            rows += _matrix_rows(term, blocks, structures, objective, size, tol, solution.tol)
    for step in getattr(solution, "majorizations", ()):
        rows += _majorization_rows(form, step, backend, tol, which)
    return BlockCheck(
        model=form.typed,
        scope=scope,
        solver=solution.solver,
        status=solution.status,
        objective=_by_fast(form, blocks, structures),
        objective_by_reference=objective,
        claimed=solution.objective,
        dual_bound=solution.dual_bound,
        residual=solution.stationarity.residual if solution.stationarity is not None else np.nan,
        violation=violation,
        blocks=tuple(rows),
        size=size,
        fast_seconds=solution.seconds,
        tol=max(row.allowed for row in rows),
    )


def _size(form: NormalForm, blocks: Blocks, objective: float) -> float:
    """What differences are relative to: log-determinants may make an objective small."""
    losses = sum(loss.value(loss.predictions(blocks)) for loss in form.losses)
    return max(abs(objective), losses, objective_scale(form))


def _by_fast(form: NormalForm, blocks: Blocks, structures: Structures) -> float:
    """The objective by mtldsl's formulas, at weights and learned matrices."""
    learning = _learning_terms(form)
    losses = sum(loss.value(loss.predictions(blocks)) for loss in form.losses)
    functions = sum(
        f.value_at(blocks, structures) if f in learning else f.value(blocks) for f in form.functions
    )
    return float(losses + functions) + form.constant


def _by_reference(form: NormalForm, blocks: Blocks, structures: Structures) -> tuple[float, float]:
    """(objective, violation) by the reference's formulas alone: log-determinants and spectra too."""
    from mtldsl.reference.majorization import spectral_terms, spectral_value, spectral_violation
    from mtldsl.reference.structures import objective
    from mtldsl.reference.task_subset import value_and_violation

    terms = [term for term in _learning_terms(form) if not term.atom.convex]
    apart = [*terms, *spectral_terms(form)]
    rest = replace(form, functions=tuple(f for f in form.functions if f not in apart))
    total, violation = value_and_violation(rest, blocks)
    for term in terms:
        total += term.coefficient * objective(term.structure, _image(term, blocks), _dense(term, structures))
    return float(total + spectral_value(form, blocks)), max(violation, spectral_violation(form, blocks))


def _image(term: StructureTerm, blocks: Blocks) -> np.ndarray:
    """The weights that the structure sees, by the reference's own map."""
    from mtldsl.reference.maps import image_at

    return image_at(term.map, blocks)


def _dense(term: StructureTerm, structures: Structures) -> list[np.ndarray]:
    return [S.dense() for S in term.matrices(structures)]


# ------------------------------------------------------------------------------------------------ the weights


def _weights_rows(
    name, form, blocks, structures, objective, size, backend, tol, solution_tol, which
) -> list[BlockRow]:
    """`form` is convex but for matrices that are kept. No row where the tasks cannot be told apart, and only some are compared."""
    started = time.perf_counter()
    found = _least(form, blocks, structures, size, backend, which)
    if found is None:
        return []
    now, least, size, used = found
    allowed = _tolerance(used, tol) + solution_tol
    seconds = time.perf_counter() - started
    return [BlockRow(name, objective, objective + (least - now), f"cvxpy, {used}", size, seconds, allowed)]


def _least(form, blocks, structures, size, backend, which):
    """(value at the blocks, least value, size, backend); None where the form cannot be restricted to the tasks `which`."""
    from mtldsl.reference.task_subset import of_tasks, value_and_violation, why_not_by_tasks

    if which is None:
        _, point = solved_by_reference(Kept(structures).apply(form)[0], backend)
        now, least = (_by_reference(form, at, structures)[0] for at in (blocks, point.blocks))
        return now, least, size, point.backend
    if why_not_by_tasks(form) is not None:
        return None
    form, blocks = of_tasks(form, blocks, which)
    _, point = solved_by_reference(form, backend)
    now, least, at_zero = (value_and_violation(form, at)[0] for at in (blocks, point.blocks, form.zeros()))
    return now, least, max(abs(now), 1e-8 * abs(at_zero)), point.backend


def solved_by_reference(form: NormalForm, backend: str | None) -> tuple[CvxpyModel, ReferencePoint]:
    """SolverError where its semidefinite matrix is too large for cvxpy's solvers."""
    from mtldsl.reference.compile import to_cvxpy
    from mtldsl.reference.solve import solve_reference

    model = to_cvxpy(form, split=True)
    if model.semidefinite_side > MAX_SEMIDEFINITE_SIDE:
        raise SolverError(
            f"{form.typed}: in cvxpy its trace norm needs a semidefinite matrix of side {model.semidefinite_side}, and its solvers "
            f"manage {MAX_SEMIDEFINITE_SIDE}; cross-check the model on fewer features"
        )
    own = sum(part.size for statement in model.statements for part in statement.parts)
    if own > MAX_OWN_VARIABLES:
        raise SolverError(
            f"{form.typed}: in cvxpy the parts of W that mkl_norm is defined by are {own:,} variables, and its solvers manage "
            f"{MAX_OWN_VARIABLES:,}; cross-check the model on fewer tasks or features (similarities times features count)"
        )
    return model, solve_reference(form, backend, model=model)


def _tolerance(backend: str, tol: float | None) -> float:
    return TOLERANCE[backend] if tol is None else tol


# ------------------------------------------------------------------------------------------------- its majorisers


def _majorization_rows(form, step: MajorizationStep, backend, tol, which) -> list[BlockRow]:
    """The majoriser of a step, formed by the reference: that it touches, lies above, and is least where the step ended."""
    from mtldsl.reference.majorization import convex_forms, reweighted_losses

    structures = {
        name: S for term in _learning_terms(form) for name, S in term.update(step.before).items()
    }  # the best for the weights before the step
    before, after = (_by_reference(form, at, structures)[0] for at in (step.before, step.after))
    rows = []
    for _, majorizer in convex_forms(form, step.before):
        started = time.perf_counter()
        majorizer = reweighted_losses(majorizer, step.before) if step.reweights_losses else majorizer
        at_before, at_after = (
            _by_reference(majorizer, at, structures)[0] for at in (step.before, step.after)
        )
        size = _size(form, step.after, at_after)
        found = _least(majorizer, step.after, structures, size, backend, which)
        if found is None:
            continue
        now, least, size_of_difference, used = found
        rows.append(
            MajorizationRow(
                f"majorisation step {step.iteration}: weights",
                at_after,
                at_after + (least - now),
                f"cvxpy, {used}",
                size_of_difference,
                time.perf_counter() - started,
                _tolerance(used, tol) + step.accuracy,
                touching=(at_before - before) / _size(form, step.before, before),
                margin=(at_after - after) / size,
            )
        )
    return rows


# ------------------------------------------------------------------------------------------------- the matrices


def _matrix_rows(term, blocks, structures, objective, size, tol, solution_tol) -> list[BlockRow]:
    from mtldsl.reference.structures import LARGEST_INTERIOR_POINT_SIDE, block_bound, block_optimum
    from mtldsl.reference.structures import objective as structure_objective

    W, matrices, rows = _image(term, blocks), _dense(term, structures), []
    now = structure_objective(term.structure, W, matrices)
    for k, name in enumerate(term.names):
        if name is None:
            continue
        started = time.perf_counter()
        if len(matrices[k]) <= LARGEST_INTERIOR_POINT_SIDE:
            found, method = block_optimum(term.structure, k, W, matrices).value, "cvxpy, log-det SDP"
        else:  # too large for a semidefinite program
            found, method = block_bound(term.structure, k, W, matrices), "Lagrange bound"
        reference = objective + term.coefficient * (found - now)
        allowed = (MATRIX_TOLERANCE if tol is None else tol) + solution_tol
        rows.append(
            BlockRow(name, objective, reference, method, size, time.perf_counter() - started, allowed)
        )
    return rows
