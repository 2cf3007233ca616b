"""Models that are not convex against the reference: block by block, each a convex problem for cvxpy."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from mtldsl.check.by_reference import (
    dense,
    image,
    size_of,
    solved_by_reference,
    tolerance,
    value_and_violation,
)
from mtldsl.check.comparison_blocks import BlockCheck, BlockRow, MajorizationRow
from mtldsl.check.touching import learning_terms, matrices_at
from mtldsl.compile.majorization import MajorizationStep
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.kept import Kept
from mtldsl.compile.terms.structure import Structures, StructureTerm
from mtldsl.solution.solution import Solution
from mtldsl.system.threads import on_one_blas_thread

__all__ = ["check_blocks"]

#: Relative difference of a matrix's block that counts as agreement: what Clarabel leaves of a log-determinant (measured: 6e-9).
MATRIX_TOLERANCE = 1e-7


@on_one_blas_thread
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

    structures = matrices_at(form, solution)
    objective, violation = value_and_violation(form, solution.blocks, structures)
    size = size_of(form, solution.blocks, objective)
    at = _At(form, solution.blocks, structures, objective, size, solution.tol, backend, tol, which)
    rows = []
    for text, touching in convex_forms(form, solution.blocks, random_state):
        rows += at.weights_row(f"weights, {text}" if text else "weights", touching)
    for term in learning_terms(form):
        if not term.atom.convex:
            rows += at.matrix_rows(term)
    for step in solution.majorizations:
        rows += at.majorization_rows(step)
    return BlockCheck(
        model=form.typed,
        scope=scope,
        solver=solution.solver,
        status=solution.status,
        objective=_by_fast(form, solution.blocks, structures),
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


def _by_fast(form: NormalForm, blocks: Blocks, structures: Structures) -> float:
    """The objective by mtldsl's formulas, at weights and learned matrices."""
    learning = learning_terms(form)
    losses = sum(loss.value(loss.predictions(blocks)) for loss in form.losses)
    functions = sum(
        f.value_at(blocks, structures) if isinstance(f, StructureTerm) and f in learning else f.value(blocks)
        for f in form.functions
    )
    return float(losses + functions) + form.constant


@dataclass(frozen=True)
class _At:
    """A point of a form, and how the reference is asked about it: rows of the check, one a block."""

    form: NormalForm
    blocks: Blocks
    structures: Structures
    objective: float  # by the reference's formulas
    size: float  # what differences are relative to
    solution_tol: float
    backend: str | None
    tol: float | None
    which: np.ndarray | None  # tasks whose weights the reference may choose; None: all

    def weights_row(self, name: str, touching: NormalForm) -> list[BlockRow]:
        """`touching` is convex but for matrices that are kept. No row where some tasks alone are compared, and they cannot be told apart."""
        started = time.perf_counter()
        found = self._least(touching, self.blocks, self.structures, self.size)
        if found is None:
            return []
        allowed = tolerance(found.backend, self.tol) + self.solution_tol
        least, method = self.objective - found.gain, f"cvxpy, {found.backend}"
        seconds = time.perf_counter() - started
        return [BlockRow(name, self.objective, least, method, found.size, seconds, allowed)]

    def majorization_rows(self, step: MajorizationStep) -> list[BlockRow]:
        """The majoriser of a step, formed by the reference: that it touches, lies above, and is least where the step ended."""
        from mtldsl.reference.majorization import convex_forms, reweighted_losses

        form, rows = self.form, []
        structures = {
            name: S for term in learning_terms(form) for name, S in term.update(step.before).items()
        }  # the best for the weights before the step
        before, after = (value_and_violation(form, x, structures)[0] for x in (step.before, step.after))
        for _, majorizer in convex_forms(form, step.before):
            started = time.perf_counter()
            majorizer = reweighted_losses(majorizer, step.before) if step.reweights_losses else majorizer
            at_before, at_after = (
                value_and_violation(majorizer, x, structures)[0] for x in (step.before, step.after)
            )
            size = size_of(form, step.after, at_after)
            found = self._least(majorizer, step.after, structures, size)
            if found is None:
                continue
            rows.append(
                MajorizationRow(
                    f"majorisation step {step.iteration}: weights",
                    at_after,
                    at_after - found.gain,
                    f"cvxpy, {found.backend}",
                    found.size,
                    time.perf_counter() - started,
                    tolerance(found.backend, self.tol) + step.accuracy,
                    touching=(at_before - before) / size_of(form, step.before, before),
                    margin=(at_after - after) / size,
                )
            )
        return rows

    def matrix_rows(self, term: StructureTerm) -> list[BlockRow]:
        """Every matrix of a structure, with the weights and its other matrices kept."""
        from mtldsl.reference.structures import (
            LARGEST_INTERIOR_POINT_SIDE,
            block_bound,
            block_optimum,
            objective,
        )

        W, matrices, rows = image(term, self.blocks), dense(term, self.structures), []
        now = objective(term.structure, W, matrices)
        for k, name in enumerate(term.names):
            if name is None:
                continue
            started = time.perf_counter()
            if len(matrices[k]) <= LARGEST_INTERIOR_POINT_SIDE:
                found, method = block_optimum(term.structure, k, W, matrices).value, "cvxpy, log-det SDP"
            else:  # too large for a semidefinite program
                found, method = block_bound(term.structure, k, W, matrices), "Lagrange bound"
            least = self.objective + term.coefficient * (found - now)
            allowed = (MATRIX_TOLERANCE if self.tol is None else self.tol) + self.solution_tol
            seconds = time.perf_counter() - started
            rows.append(BlockRow(name, self.objective, least, method, self.size, seconds, allowed))
        return rows

    def _least(self, form: NormalForm, blocks: Blocks, structures: Structures, size: float) -> _Least | None:
        """What the reference gains over the weights; None where the form cannot be restricted to the tasks `which`."""
        from mtldsl.reference.task_subset import of_tasks, why_not_by_tasks
        from mtldsl.reference.task_subset import value_and_violation as of_convex

        if self.which is None:
            _, point = solved_by_reference(Kept(structures).apply(form)[0], self.backend)
            now, least = (value_and_violation(form, x, structures)[0] for x in (blocks, point.blocks))
            return _Least(now - least, size, point.backend)
        if why_not_by_tasks(form) is not None:
            return None
        form, blocks = of_tasks(form, blocks, self.which)
        _, point = solved_by_reference(form, self.backend)
        now, least, at_zero = (of_convex(form, x)[0] for x in (blocks, point.blocks, form.zeros()))
        return _Least(now - least, max(abs(now), 1e-8 * abs(at_zero)), point.backend)


@dataclass(frozen=True)
class _Least:
    """By how much the reference lowers an objective, what that is relative to, and the backend of cvxpy that did."""

    gain: float
    size: float
    backend: str
