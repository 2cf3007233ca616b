"""Cross-check of the fast solver by the reference: two implementations that share the language and no formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.certificates.certificate import certify, objective_scale
from mtldsl.errors import CrossCheckError, ModelError, MTLError, SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.problems.cross_check_blocks import (
    check_blocks,
    convex_form,
    learned_excess,
    require_unknowns,
    solved_by_reference,
    some_tasks,
)
from mtldsl.problems.cross_check_comparison import FORMULA_TOL, TOLERANCE, BlockCheck, CrossCheck
from mtldsl.problems.statement_check import require_own_weights
from mtldsl.solution.solution import Solution
from mtldsl.utils import interrupts
from mtldsl.utils.parallel import on_one_blas_thread
from mtldsl.utils.progress import default_cross_check
from mtldsl.utils.validation import as_flag, as_float

# --------------------------------------------------------------------------------------------------------------
# The cross-check that a solve makes by itself: `solve(cross_check=...)`, and what `mtl.defaults` says where that is not given.


@dataclass(frozen=True)
class CrossCheckSettings:
    """Sizes up to which cvxpy is given a problem; entries are scalars of input data, as the workload counts them.

    subsample_entries : of what "subsample" compares: some seconds at most
    max_entries       : of a whole problem (measured: five to ten seconds, hinge losses with a trace norm half a minute); logistic and Poisson losses count ten times
    max_tasks         : of a larger problem, from which on no subsample of rows is small enough
    """

    subsample_entries: int = 100_000
    max_entries: int = 1_000_000
    max_tasks: int = 10_000


SETTINGS = CrossCheckSettings()


_TIME = "the time was up"


def attach(problem, solution: Solution, asked: bool | str | None, max_seconds: float | None) -> None:
    """Sets `solution.cross_check`: what the comparison found, or a sentence why there is none.

    asked       : as typed in `solve(cross_check=...)`; None: the default, which leaves alone what is large or beyond the reference
    max_seconds : of the whole solve: the check has what is left of them

    Raises CrossCheckError on disagreement, and, where the check was asked for in the call, what `cross_check` raises of a model that it
    cannot compare. The error has the solution as `.solution`, so that nothing is lost.
    """
    how = default_cross_check() if asked is None else asked
    if how == "never":
        return
    left = None if max_seconds is None else max_seconds - solution.seconds - solution.compile_seconds
    size = SETTINGS.subsample_entries if how == "subsample" else SETTINGS.max_entries
    try:
        found = _why_not(solution, left)
        if found is None and asked is None and how is True:
            found = _too_large(problem, solution)
        if found is None:
            found = compare_sides(problem, solution, max_size=size, max_seconds=left)
    except interrupts.TimeIsUp:
        found = _TIME
    except KeyboardInterrupt:  # Ctrl-C ends what is left to do; the solution is there
        solution.interrupted, found = True, "it was interrupted"
    except MTLError as error:
        error.solution = solution
        if asked is not None:
            raise
        found = str(error)
    solution.cross_check = f"not made: {found}" if isinstance(found, str) else found
    if not isinstance(found, str) and not found.agrees:
        error = CrossCheckError(str(found))
        error.solution = solution
        raise error


def _why_not(solution: Solution, left: float | None) -> str | None:
    """Why there is nothing to compare, or no time to."""
    if solution.interrupted:
        return "the solve was interrupted"
    if not solution.is_certified:
        return f"the solution is not certified ({solution.status})"
    return _TIME if left is not None and left <= 0 else None


def _too_large(problem, solution: Solution) -> str | None:
    from mtldsl.reference.workload import workload

    form = problem.form()
    if not form.in_memory:
        return "the rows are elsewhere"
    size = workload(convex_form(form, solution))
    return (
        None
        if size <= SETTINGS.max_entries
        else f"the model is too large (workload {size:,} > {SETTINGS.max_entries:,})"
    )


def cross_check(
    problem: Any,
    solution: Solution | None = None,
    *,
    tol: float | None = None,
    solver: str | None = None,
    max_size: int | None = SETTINGS.max_entries,
    random_state: int = 0,
    max_seconds: float | None = None,
    raise_on_disagreement: bool = False,
) -> CrossCheck | BlockCheck:
    """Solve a problem with the fast solver (unless `solution` is given) and with cvxpy, and compare.

    tol          : relative difference of objectives that counts as agreement (None: TOLERANCE of the
    backend);
                   the gap that the fast solution was solved to is added
    solver       : cvxpy's backend "clarabel", "scs" or "osqp" (None: the one that fits)
    max_size     : scalars of input data, as `mtldsl.reference.workload.workload` counts them, above which both
                   sides solve a subsample of the rows, seeded by `random_state`, in place of the whole
                   problem (None: never)
    max_seconds  : wall-clock limit of all that is solved for it (None: none)

    The two agree where (1) both formulas give the same value at both points to 1e-9 (max_norm: 1e-7, as its value comes of
    iterations), (2) both points are feasible, (3) the fast objective is not above the reference's, (4) the reference's is above the fast one
    by no more than the gap that its own multipliers leave, (5) neither side's proven lower bound is above the
    other's objective, and (6) weights whose solution is unique are as near to each other as both gaps imply;
    (2) to (6) within tol.

    Where the rows are elsewhere, both sides solve a subsample that is drawn there: the fast side with its rows in parts, as the whole is.

    A model that is not convex is compared block by block, at the fast solution: cvxpy minimises over the
    weights with every learned matrix kept, then over each matrix with everything else kept (a log-determinant
    program; above side 45 Lagrange's bound of it), and no block may gain more than tol. In place of a penalty
    of the spectrum that is not convex, cvxpy is given a convex function that lies above it and touches it at
    the solution; where its slope at zero is infinite and where the rank is bounded, it keeps the column space
    of the weights, then their row space. Every step of majorisation that the solution kept is repeated: cvxpy
    minimises the majoriser that the reference forms at the point before. The result is a `BlockCheck`. Where
    the data are too large, some tasks drawn at random are compared, the weights of all others kept.

    A loss over a graph of labels is stated labelling by labelling, for up to 6 labels; with more of them, make the model of some.

    Ctrl-C, and likewise SIGTERM, raises KeyboardInterrupt: a comparison has no best point so far.

    Raises CrossCheckError on disagreement where raise_on_disagreement=True; SolverError where cvxpy fails, takes longer than
    max_seconds, or the model is beyond it; ModelError where the model has no optimum or too many labels, a subsample cannot be made (a model on
    two data sets), or `solution` is not of this problem at its present parameters.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[3.0, 0], [0, 1], [0, 0]]))
    >>> W = mtl.Weights(tasks)
    >>> check = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).cross_check()
    >>> check.agrees, round(check.fast_by_reference, 6)
    (True, 3.0)
    """
    if max_seconds is not None and not (as_float(max_seconds) or 0.0) > 0.0:
        raise SolverError(
            term=f"cross_check(max_seconds={max_seconds!r})",
            write_instead="write a positive number of seconds, or None",
        )
    raise_on_disagreement = as_flag(raise_on_disagreement, "cross_check(raise_on_disagreement", SolverError)
    if tol is not None and not 0.0 < (as_float(tol) or 0.0) < 1.0:
        raise SolverError(
            "tol is a relative difference between 0 and 1, such as 1e-6, or None",
            term=f"cross_check(tol={tol!r})",
        )
    try:
        check = compare_sides(problem, solution, tol, solver, max_size, random_state, max_seconds)
    except interrupts.TimeIsUp:
        raise SolverError(
            "the time was up before both sides had solved the model",
            term=f"cross_check(max_seconds={max_seconds!r})",
            write_instead=f"write a larger max_seconds, or a "
            f"smaller max_size than {max_size!r} for a subsample",
        ) from None
    if raise_on_disagreement and not check.agrees:
        raise CrossCheckError(str(check))
    return check


def compare_sides(
    problem: Any,
    solution: Solution | None,
    tol: float | None = None,
    solver: str | None = None,
    max_size: int | None = SETTINGS.max_entries,
    random_state: int = 0,
    max_seconds: float | None = None,
) -> CrossCheck | BlockCheck:
    """Return what both sides say, as in `cross_check`; stops.TimeIsUp where max_seconds were not enough."""
    with interrupts.handle_signals(raises=True), interrupts.time_limit(max_seconds):
        check = _checked(problem, solution, tol, solver, max_size, random_state)
        if interrupts.remaining_seconds() <= 0.0:  # of a solve that was cut short nothing can be said
            raise interrupts.TimeIsUp
    return check


def _checked(problem, solution, tol, solver, max_size, random_state) -> CrossCheck | BlockCheck:
    from mtldsl.reference.label_graph import refuse

    form = problem.form()
    if solution is not None:
        _check_belongs(problem, form, solution)
    if not form.in_memory:
        here, ours, scope = _check_drawn_rows(problem, solution, max_size, random_state)
        if not here.is_convex:
            return check_blocks(here, ours, scope, solver, tol, None, random_state)
        return _compare(here, ours, solver, tol, scope)
    if not form.is_convex and solution is None:
        solution = _solved(problem)  # what is convex of it depends on its matrices
    smaller, scope, which = _within_reach(problem, form, solution, max_size, random_state)
    if smaller is not None:
        problem, form = smaller, smaller.form()
    for loss in form.losses:
        refuse(loss)  # too many labellings, before anything is solved
    if solution is None:
        solution = _solved(problem)
    elif smaller is not None:  # the check is of the solver that made the solution
        solution = _solved(problem, solver=solution.solver, tol=solution.tol)
    if not form.is_convex:
        return check_blocks(form, solution, scope, solver, tol, which, random_state)
    return _compare(form, solution, solver, tol, scope)


def _check_drawn_rows(problem: Any, solution: Solution | None, max_size: int | None, random_state: int):
    """(the form of some rows, drawn where they are and brought here; the solution of these in parts, as the whole is solved; scope)."""
    tasks = problem.data
    entries = max_size or SETTINGS.max_entries
    rows = max(2, int(min(np.mean(tasks.counts), entries / (tasks.n_features * tasks.n_tasks))))
    some, apart = tasks.sample_for_check(rows, random_state)
    options = {} if solution is None else {"solver": solution.solver, "tol": solution.tol}
    ours = _solved(problem.with_tasks(apart), **options)
    parts = apart.storage_facts()["parts"]
    scope = f"on {rows} rows a task, drawn where the rows are (random_state={random_state}), in {parts} parts"
    return problem.with_tasks(some).form(), ours, scope


def _solved(problem: Any, **options) -> Solution:
    """KeyboardInterrupt where it was interrupted: a comparison has no best point so far."""
    left = interrupts.remaining_seconds()
    limit = max(left, 1e-3) if np.isfinite(left) else None
    solution = problem.solve(**options, max_seconds=limit, cross_check="never")
    if solution.interrupted:
        raise KeyboardInterrupt
    return solution


def _check_belongs(problem: Any, form: NormalForm, solution: Solution) -> None:
    now = {parameter.name: parameter.value for parameter in problem.parameters}
    if solution.parameters != now:
        raise ModelError(
            f"the solution was computed at {solution.parameters}, but the "
            f"problem now stands at {now}; solve again, or set the parameters back",
            term="cross_check(solution=...)",
        )
    require_unknowns(form, solution, "cross_check(solution=...)")
    if not solution.verified:
        require_own_weights(problem, form, solution)


def _within_reach(
    problem: Any, form: NormalForm, solution: Solution | None, max_size: int | None, random_state: int
):
    """(the model on a subsample of its rows, None where it is checked as it is; scope; some of its tasks, None: all of them)."""
    from mtldsl.reference.workload import workload

    kept = convex_form(form, solution)  # `_checked` solves a model that is not convex first
    size = workload(kept)
    if max_size is None or size <= max_size:
        return None, "the whole problem", None
    large = "is too large for cvxpy" if max_size >= SETTINGS.max_entries else "is larger than was asked for"
    why = f"random_state={random_state}, because the whole {large} (workload {size:,} > {max_size:,})"
    which = None if form.is_convex else some_tasks(form, kept, max_size / size, random_state)
    if which is not None:  # a check of this very solution, where one of fewer rows would be of another
        m = form.losses[0].tasks.n_tasks
        return None, f"over the weights of {len(which)} of {m} tasks, the others kept, {why}", which
    # as typed: a loss over a graph of labels makes one task of every entry of it
    tasks = problem.data
    # fewer rows do not make them fewer, and cvxpy states each: many GiB
    if tasks.n_tasks > SETTINGS.max_tasks:
        raise ModelError(
            f"cross_check: {tasks.n_tasks:,} tasks are too many to state in cvxpy, up to {SETTINGS.max_tasks:,} are not: check the model on some of "
            "them, tasks.select([...]), or write cross_check(max_size=None) to give cvxpy the whole of it"
        )
    rows = max(2, int(np.mean(tasks.counts) * max_size / size))
    try:
        small = problem.with_tasks(tasks.subsample(rows, random_state))
    except ModelError as error:
        raise ModelError(
            f"cross_check: the problem is of size {size:,}, above max_size={max_size:,}, and a subsample of it "
            f"cannot be made: {error}. Write cross_check(max_size=None) to give cvxpy the whole of it"
        ) from error
    return small, f"on {rows} rows a task, {why}", None


@on_one_blas_thread
def _compare(form: NormalForm, solution: Solution, backend: str | None, tol: float | None, scope: str):
    model, point = solved_by_reference(form, backend, form.violation(solution.blocks) <= solution.tol)
    moduli = _strong_convexity(form)
    distances = [np.sum((solution.blocks[name] - point.blocks[name]) ** 2) for name in moduli]
    return CrossCheck(
        model=form.typed,
        scope=scope,
        solver=solution.solver,
        status=solution.status,
        backend=point.backend,
        reference_status=point.status,
        fast_objective=form.value(solution.blocks),
        fast_by_reference=model.objective_value(solution.blocks),
        reference_objective=point.objective,
        reference_by_fast=form.value(point.blocks),
        dual_bound=solution.dual_bound,
        reference_bound=certify(form, point.blocks, point.loss_duals, point.function_duals).dual_bound,
        scale=objective_scale(form),
        fast_violation=model.violation(solution.blocks),
        reference_violation=point.violation,
        prediction_difference=_prediction_difference(form, solution.blocks, point.blocks),
        weights_difference=float(np.sqrt(sum(distances))) if moduli else None,
        strong_convexity=min(moduli.values(), default=0.0),
        fast_seconds=solution.seconds,
        reference_seconds=point.seconds,
        tol=(TOLERANCE[point.backend] if tol is None else tol) + solution.tol,
        learned_excess=learned_excess(form, solution),
        formula_tolerance=max(FORMULA_TOL, *(term.atom.accuracy for term in form.functions), 0.0),
    )


def _prediction_difference(form: NormalForm, a: Blocks, b: Blocks) -> float:
    """The largest difference between predictions, relative to the largest prediction of the same loss."""
    largest = 0.0
    for loss in form.losses:
        za, zb = loss.predictions(a), loss.predictions(b)
        size = max(np.abs(za).max(), np.abs(zb).max())
        largest = max(largest, float(np.abs(za - zb).max() / size) if size > 0 else 0.0)
    return largest


def _strong_convexity(form: NormalForm) -> dict[str, float]:
    """The modulus of every block in which the objective is strongly convex: there the solution is unique."""
    moduli: dict[str, float] = {}
    for term in form.regularizers:
        block, modulus = term.map.identity_of, term.coefficient * term.atom.strong_convexity
        if block is not None and modulus > 0:
            moduli[block] = moduli.get(block, 0.0) + modulus
    return moduli
