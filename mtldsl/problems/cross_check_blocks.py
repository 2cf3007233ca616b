"""Cross-check of models that are not convex: every block against the reference, the others kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.learned_structures.task_kernels import KernelWeightBall
from mtldsl.certificates.certificate import objective_scale
from mtldsl.errors import ModelError, SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.reductions.block_reductions import FixedStructures
from mtldsl.normal_form.terms.structure_term import (
    MajorizationStep,
    Structures,
    StructureTerm,
    kept_value,
    structure_terms,
)
from mtldsl.problems.cross_check_comparison import TOLERANCE, BlockCheck, BlockRow, MajorizationRow
from mtldsl.solution.learned import LearnedMatrix, LearnedWeights
from mtldsl.solution.solution import Solution
from mtldsl.utils.parallel import on_one_blas_thread

if TYPE_CHECKING:
    from mtldsl.reference.model import CvxpyModel
    from mtldsl.reference.solve import ReferencePoint

# --------------------------------------------------------------------------------------------------------------
# The convex form that touches a model at a solution, and which of its tasks are compared where it is too large.


def convex_form(form: NormalForm, at: Solution | None) -> NormalForm:
    """The form that cvxpy can state: itself where it is convex, else the one that touches it at a solution. ModelError without one, and where
    the solution is not the model's.

    Convex in the weights, because learned matrices are kept and penalties of the spectrum that are not convex are majorised; where
    they cannot be and where the rank is bounded, the column space of the solution's weights is kept.
    """
    if form.is_convex:
        return form
    if at is None:
        culprit = next(f for f in form.functions if not f.atom.convex)
        raise ModelError(
            f"{culprit.typed} is not convex, so cvxpy cannot state this model; at a solution it can, with learned matrices kept and "
            "the spectrum majorised: write to_cvxpy(at=solution)"
        )
    from mtldsl.reference.majorization import convex_forms

    return FixedStructures(matrices_of_solution(form, at)).apply(convex_forms(form, at.blocks)[0][1])[0]


def matrices_of_solution(form: NormalForm, solution: Solution) -> Structures:
    """The learned matrices of a solution. ModelError where it is not one of this form."""
    # kernel weights are not a block of their own: their penalty is convex, and stays eliminated
    structures = {
        name: one.spectral for name, one in solution.learned.items() if isinstance(one, LearnedMatrix)
    }
    for term in learning_terms(form):
        for name, given in zip(term.names, term.structure.start(term.map.shape), strict=True):
            if name is not None and (name not in structures or structures[name].side != given.side):
                held = ", ".join(f"{key} {S.side} x {S.side}" for key, S in structures.items()) or "none"
                raise ModelError(
                    f"the solution is not one of this problem: {term.typed} learns {name} {given.side} x {given.side}, and its "
                    f"learned matrices are: {held}",
                    write_instead="give a solution of this problem",
                )
    require_unknowns(form, solution, "the solution is not one of this problem")
    return {**structures}


def require_unknowns(form: NormalForm, solution: Solution, term: str) -> None:
    """ModelError where a solution has other unknowns, or unknowns of other shapes."""
    shapes = {name: block.shape for name, block in solution.blocks.items()}
    if shapes != form.shapes:
        raise ModelError(
            f"the solution has the unknowns {shapes}, but the problem has {form.shapes}",
            term=term,
            write_instead="give a solution of this problem",
        )


def learning_terms(form: NormalForm) -> list[StructureTerm]:
    """Those whose matrices are unknowns of the model."""
    return [
        term for term in structure_terms(form) if not term.atom.weighs_kernels and not term.atom.is_reweighted
    ]


def some_tasks(form: NormalForm, kept: NormalForm, share: float, random_state: int) -> np.ndarray | None:
    """A random share of the tasks on which the blocks of a large model are compared; None where that is not possible."""
    from mtldsl.reference.majorization import spectral_terms, why_not_by_tasks

    m = form.losses[0].tasks.n_tasks
    if not spectral_terms(form) or learning_terms(form) or why_not_by_tasks(kept) or m * share < 1:
        return None
    return np.sort(np.random.default_rng(random_state).permutation(m)[: int(m * share)])


# --------------------------------------------------------------------------------------------------------------
# What the reference says of a form: its optimum, its value at a point, and how far another value may be from it.


@dataclass(frozen=True)
class BlockCheckSettings:
    """Limits of the comparison block by block.

    semidefinite_rows : rows of a semidefinite cone up to which a splitting method still comes back (measured: two minutes at 1010)
    own_entries       : variables of a formula's own, beside W, up to which a backend comes back (measured: 12 s at 33,000)
    matrix_tol        : relative difference of a matrix's block that is agreement: what Clarabel leaves of a log-determinant (measured: 6e-9)
    """

    semidefinite_rows: int = 1000
    own_entries: int = 200_000
    matrix_tol: float = 1e-7


SETTINGS = BlockCheckSettings()


def solved_by_reference(
    form: NormalForm, backend: str | None, is_feasible: bool
) -> tuple[CvxpyModel, ReferencePoint]:
    """cvxpy's optimum. SolverError where its semidefinite matrix is too large for cvxpy's solvers.

    is_feasible : whether the weights that are checked satisfy the constraints, whatever a backend says of them
    """
    from mtldsl.reference.compile import to_cvxpy
    from mtldsl.reference.solve import solve_reference

    model = to_cvxpy(form, split=True)
    if model.semidefinite_side > SETTINGS.semidefinite_rows:
        raise SolverError(
            f"in cvxpy its trace norm needs a semidefinite matrix of side {model.semidefinite_side}, and its solvers "
            f"manage {SETTINGS.semidefinite_rows}; cross-check the model on fewer features",
            term=form.typed,
        )
    own = sum(part.size for statement in model.statements for part in statement.parts)
    if own > SETTINGS.own_entries:
        raise SolverError(
            f"in cvxpy the parts of W that mkl_norm is defined by are {own:,} variables, and its solvers manage "
            f"{SETTINGS.own_entries:,}; cross-check the model on fewer tasks or features (similarities times features count)",
            term=form.typed,
        )
    return model, solve_reference(form, backend, model=model, is_feasible=is_feasible)


def size_of(form: NormalForm, blocks: Blocks, objective: float) -> float:
    """Return what differences are relative to: log-determinants may make an objective small."""
    losses = sum(loss.value(loss.predictions(blocks)) for loss in form.losses)
    return max(abs(objective), losses, objective_scale(form))


def value_and_violation(form: NormalForm, blocks: Blocks, structures: Structures) -> tuple[float, float]:
    """(objective, violation) by the reference's formulas alone: log-determinants and spectra too."""
    from mtldsl.reference.majorization import spectral_terms, spectral_value, spectral_violation
    from mtldsl.reference.majorization import value_and_violation as of_convex
    from mtldsl.reference.structures import objective

    terms = [term for term in learning_terms(form) if not term.atom.convex]
    apart = [*terms, *spectral_terms(form)]
    rest = replace(form, functions=tuple(f for f in form.functions if f not in apart))
    total, violation = of_convex(rest, blocks)
    for term in terms:
        total += term.coefficient * objective(term.structure, image(term, blocks), dense(term, structures))
    return float(total + spectral_value(form, blocks)), max(violation, spectral_violation(form, blocks))


def image(term: StructureTerm, blocks: Blocks) -> np.ndarray:
    """The weights that the structure sees, by the reference's own map."""
    from mtldsl.reference.maps import map_value

    return map_value(term.map, blocks)


def dense(term: StructureTerm, structures: Structures) -> list[np.ndarray]:
    """The matrices of a structure as arrays, which the reference's formulas take."""
    return [S.dense() for S in term.matrices(structures)]


# --------------------------------------------------------------------------------------------------------------
# Models that are not convex against the reference: block by block, each a convex problem for cvxpy.


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

    structures = matrices_of_solution(form, solution)
    objective, violation = value_and_violation(form, solution.blocks, structures)
    size = size_of(form, solution.blocks, objective)
    at = _ComparedPoint(form, solution.blocks, structures, objective, size, solution.tol, backend, tol, which)
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
        objective=kept_value(form, solution.blocks, structures),
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


@dataclass(frozen=True)
class _ComparedPoint:
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

    def _tolerance(self, backend: str) -> float:
        return TOLERANCE[backend] if self.tol is None else self.tol

    def weights_row(self, name: str, touching: NormalForm) -> list[BlockRow]:
        """`touching` is convex but for matrices that are kept. No row where some tasks alone are compared, and they cannot be told apart."""
        started = time.perf_counter()
        found = self._least(touching, self.blocks, self.structures, self.size)
        if found is None:
            return []
        gain, size, backend = found
        allowed, seconds = self._tolerance(backend) + self.solution_tol, time.perf_counter() - started
        least, method = self.objective - gain, f"cvxpy, {backend}"
        return [BlockRow(name, self.objective, least, method, size, seconds, allowed)]

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
            gain, relative_to, backend = found
            rows.append(
                MajorizationRow(
                    f"majorisation step {step.iteration}: weights",
                    at_after,
                    at_after - gain,
                    f"cvxpy, {backend}",
                    relative_to,
                    time.perf_counter() - started,
                    self._tolerance(backend) + step.accuracy,
                    touching=(at_before - before) / size_of(form, step.before, before),
                    margin=(at_after - after) / size,
                )
            )
        return rows

    def matrix_rows(self, term: StructureTerm) -> list[BlockRow]:
        """Every matrix of a structure, with the weights and its other matrices kept."""
        from mtldsl.reference.structures import SETTINGS as STRUCTURES
        from mtldsl.reference.structures import block_bound, block_optimum, objective

        W, matrices, rows = image(term, self.blocks), dense(term, self.structures), []
        now = objective(term.structure, W, matrices)
        for k, name in enumerate(term.names):
            if name is None:
                continue
            started = time.perf_counter()
            if len(matrices[k]) <= STRUCTURES.interior_point_rows:
                found, method = block_optimum(term.structure, k, W, matrices).value, "cvxpy, log-det SDP"
            else:  # too large for a semidefinite program
                found, method = block_bound(term.structure, k, W, matrices), "Lagrange bound"
            least = self.objective + term.coefficient * (found - now)
            allowed = (SETTINGS.matrix_tol if self.tol is None else self.tol) + self.solution_tol
            seconds = time.perf_counter() - started
            rows.append(BlockRow(name, self.objective, least, method, self.size, seconds, allowed))
        return rows

    def _least(
        self, form: NormalForm, blocks: Blocks, structures: Structures, size: float
    ) -> tuple[float, float, str] | None:
        """(by how much the reference lowers the objective over the weights, what that is relative to, cvxpy's backend); None where the form
        cannot be restricted to the tasks `which`."""
        from mtldsl.reference.majorization import of_tasks, why_not_by_tasks
        from mtldsl.reference.majorization import value_and_violation as of_convex

        if self.which is None:
            now, missed = value_and_violation(form, blocks, structures)
            convex = FixedStructures(structures).apply(form)[0]
            _, point = solved_by_reference(convex, self.backend, missed <= self.solution_tol)
            return now - value_and_violation(form, point.blocks, structures)[0], size, point.backend
        if why_not_by_tasks(form) is not None:
            return None
        form, blocks = of_tasks(form, blocks, self.which)
        now, missed = of_convex(form, blocks)
        _, point = solved_by_reference(form, self.backend, missed <= self.solution_tol)
        least, at_zero = (of_convex(form, x)[0] for x in (point.blocks, form.zeros()))
        return now - least, max(abs(now), 1e-8 * abs(at_zero)), point.backend


# --------------------------------------------------------------------------------------------------------------
# What a solution shows as learned, held against the best for its weights by the reference's formulas.


def learned_excess(form: NormalForm, solution: Solution) -> float:
    """By how much what is shown as learned misses the minimum that the weights' penalty stands for, by the reference's formula."""
    from mtldsl.reference.structures import objective

    worst = 0.0
    for term in structure_terms(form):
        if term.structure.weighs_kernels:
            worst = max(worst, _weights_excess(term, solution, objective_scale(form)))
            continue
        learned = [solution.learned[name] for name in term.names if name in solution.learned]
        shown = [one.spectral for one in learned if isinstance(one, LearnedMatrix)]
        if len(shown) < len(term.names):
            return np.inf
        W = term.map.forward(solution.blocks)
        best = term.structure.value(W)
        value = objective(term.structure, W, [S.dense() for S in shown])
        said = zip(shown, term.structure.said, strict=True)
        if any(S.trace() > (1.0 + 1e-9) * about.trace for S, about in said if isinstance(about, Range)):
            return np.inf
        worst = max(worst, abs(value - best) / max(best, objective_scale(form), np.finfo(float).tiny))
    return worst


def _weights_excess(term: StructureTerm, solution: Solution, scale: float) -> float:
    """The same for kernel weights, relative to the objective, whose gap they are a part of: inf where they are missing or leave their
    ball. Nothing where the model has none as an unknown and none are shown.
    """
    from mtldsl.reference.kernels import least, violation
    from mtldsl.reference.structures import objective

    (name,) = term.names
    if name not in solution.learned:
        return (
            np.inf if isinstance(cast(MKLNorm, term.structure).about, KernelWeightBall) else 0.0
        )  # `weighs_kernels`
    shown = solution.learned[name]
    if not isinstance(shown, LearnedWeights):
        return np.inf
    W, theta = term.map.forward(solution.blocks), np.asarray(shown.values)
    if not violation(theta, term.structure) <= 1e-9:
        return np.inf
    best = least(W, term.structure).value
    excess = term.coefficient * abs(objective(term.structure, W, [theta]) - best)
    return excess / max(abs(solution.objective), scale, np.finfo(float).tiny)
