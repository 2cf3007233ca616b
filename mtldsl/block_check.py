"""Models that are not convex against the reference: block by block, each a convex problem for cvxpy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.certificate import objective_scale
from mtldsl.comparison_blocks import BlockCheck, BlockRow
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.structure_term import Structures, StructureTerm, kept_form, kept_value, structure_terms
from mtldsl.errors import ModelError
from mtldsl.solution import Solution

if TYPE_CHECKING:
    from mtldsl.problem import Problem

__all__ = ["check_blocks", "kept_at"]

#: Relative difference of a matrix's block that counts as agreement: what Clarabel leaves of a log-determinant (measured: 6e-9).
MATRIX_TOLERANCE = 1e-7


def kept_at(problem: Problem, solution: Solution) -> tuple[NormalForm, Structures]:
    """(the convex form that is left with a solution's matrices kept, these matrices); ModelError where they are not the model's."""
    form, structures = problem.form(), {name: matrix.spectral for name, matrix in solution.learned.items()}
    for term in structure_terms(form):
        for name, given in zip(term.names, term.structure.start(term.map.shape), strict=True):
            if name is not None and (name not in structures or structures[name].side != given.side):
                held = ", ".join(f"{key} {S.side} x {S.side}" for key, S in structures.items()) or "none"
                raise ModelError(
                    f"the solution is not one of this problem: {term.typed} learns {name} {given.side} x {given.side}, and its "
                    f"learned matrices are: {held}; give a solution of this problem"
                )
    return kept_form(form, structures), structures


def check_blocks(
    problem: Problem, solution: Solution, scope: str, backend: str | None, tol: float | None
) -> BlockCheck:
    """Every block at the solution against the reference; `tol` as in `cross_check`."""
    from mtldsl.cross_check import TOLERANCE
    from mtldsl.reference.solve import solve_reference

    form, (kept, structures) = problem.form(), kept_at(problem, solution)
    blocks, started = solution.blocks, time.perf_counter()
    objective, violation = _by_reference(form, blocks, structures)
    size = max(
        abs(objective),
        sum(loss.value(loss.predictions(blocks)) for loss in form.losses),
        objective_scale(form),
    )
    point = solve_reference(kept, backend)
    allowed = (TOLERANCE[point.backend] if tol is None else tol) + solution.tol
    least, _ = _by_reference(form, point.blocks, structures)
    seconds = time.perf_counter() - started
    rows = [BlockRow("weights", objective, least, f"cvxpy, {point.backend}", size, seconds, allowed)]
    for term in structure_terms(form):
        if not term.atom.convex:
            rows += _matrix_rows(term, blocks, structures, objective, size, tol, solution.tol)
    return BlockCheck(
        model=form.typed,
        scope=scope,
        solver=solution.solver,
        status=solution.status,
        objective=kept_value(form, blocks, structures),
        objective_by_reference=objective,
        claimed=solution.objective,
        dual_bound=solution.dual_bound,
        residual=solution.stationarity.residual if solution.stationarity is not None else np.nan,
        violation=violation,
        blocks=tuple(rows),
        size=size,
        fast_seconds=solution.seconds,
        tol=allowed,
    )


def _by_reference(form: NormalForm, blocks: Blocks, structures: Structures) -> tuple[float, float]:
    """(objective, violation) by the reference's formulas alone: log-determinants too."""
    from dataclasses import replace

    from mtldsl.reference.compile import to_cvxpy
    from mtldsl.reference.structures import objective

    terms = [term for term in structure_terms(form) if not term.atom.convex]
    rest = replace(form, functions=tuple(f for f in form.functions if f not in terms))
    model = to_cvxpy(rest)
    total = model.objective_value(blocks)
    for term in terms:
        total += term.coefficient * objective(term.structure, _image(term, blocks), _dense(term, structures))
    return float(total), model.violation(blocks)


def _image(term: StructureTerm, blocks: Blocks) -> np.ndarray:
    """The weights that the structure sees, by the reference's own map."""
    import cvxpy as cp

    from mtldsl.reference.maps import image

    return np.asarray(image(term.map, {name: cp.Constant(block) for name, block in blocks.items()}).value)


def _dense(term: StructureTerm, structures: Structures) -> list[np.ndarray]:
    return [S.dense() for S in term.matrices(structures)]


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
