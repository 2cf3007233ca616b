"""Solving the reference: which cvxpy backend, how accurately, and what came of it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np

from mtldsl.errors import InfeasibleError, SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.utils import interrupts

from . import backends
from .compile import to_cvxpy
from .model import SETTINGS as PLANES
from .model import CvxpyModel


@dataclass(frozen=True)
class ReferenceSolveSettings:
    """Sizes that choose between Clarabel's interior point method and SCS."""

    # side of a semidefinite cone up to which Clarabel comes first (measured: side 40 takes 0.7 s, 74 takes 6.6 s, growing with the fourth
    # to sixth power); above it SCS, one eigendecomposition an iteration
    interior_point_rows: int = 45
    # scalars of data up to which it does, save for quadratic programs (measured with norms of rows, 50 features and 20 tasks: at 200,000
    # Clarabel takes 4 to 8 s and SCS about 1 s, at equal objectives to nine digits)
    interior_point_entries: int = 100_000
    second_chance_rows: int = 90  # side up to which Clarabel is still worth trying after SCS
    # time of SCS where Clarabel can take over (measured: with many exponential cones it may crawl for minutes)
    second_chance_seconds: float = 60.0
    second_accuracy: float = 5e-12  # accuracy from which on it is not the first solve
    # accuracy of solves as long as structured hinges lack planes that matter much
    rough_accuracy: float = 1e-5


SETTINGS = ReferenceSolveSettings()


BACKENDS = {
    "clarabel": lambda accuracy, iterations: {
        "tol_gap_abs": accuracy,
        "tol_gap_rel": accuracy,
        "tol_feas": accuracy,
        "max_iter": iterations or 500,
        # a second, tighter try goes another way: it would stop where the first one did
        "equilibrate_max_iter": 10 if accuracy > SETTINGS.second_accuracy else 50,
    },
    "scs": lambda accuracy, iterations: {
        "eps_abs": accuracy,
        "eps_rel": accuracy,
        "max_iters": iterations or 20_000,
    },
    "osqp": lambda accuracy, iterations: {
        "eps_abs": accuracy,
        "eps_rel": accuracy,
        "polishing": True,
        "max_iter": iterations or 100_000,
    },
}

#: What stops a backend from calling a model infeasible, where it is known not to be: large labels look so to Clarabel.
_UNDOUBTED = {"clarabel": {"tol_infeas_abs": 0.0, "tol_infeas_rel": 0.0}}

#: The accuracies asked for by default: what each backend reaches on most losses x regularizers (measured).
ACCURACY = {"clarabel": 1e-10, "scs": 1e-8, "osqp": 1e-9}


@dataclass
class ReferencePoint:
    """Point at which a cvxpy backend came to rest. The members up to `stopped` are those of every solver's point, signs included."""

    blocks: Blocks
    loss_duals: list | None
    function_duals: list[np.ndarray] | None
    iteration: int = 0
    state: dict = field(default_factory=dict)
    notes: dict = field(default_factory=dict)
    structures: dict | None = None
    majorizations: tuple = ()
    stopped: str = ""
    objective: float = np.nan  # recomputed by cvxpy at `blocks`, so it holds whatever the backend's accuracy
    violation: float = np.nan  # of the typed constraints, likewise
    backend: str = ""
    status: str = ""  # cvxpy's word: "optimal", "optimal_inaccurate", "user_limit"
    accuracy: float = np.nan  # what the backend was asked for
    seconds: float = np.nan


def backends_to_try(model: CvxpyModel, backend: str | None = None) -> list[str]:
    """The backend asked for; else Clarabel or SCS, the likely faster first, the other where the first fails.

    Raises SolverError for an unknown backend and for OSQP on a model that is not a quadratic program.
    """
    if backend in (None, "auto"):
        side = model.semidefinite_side
        if side > SETTINGS.interior_point_rows:
            if side > SETTINGS.second_chance_rows:
                return ["scs"]
            # measured with ten structured hinges of 33 samples and a side of 74: Clarabel takes 27 s, SCS 8 s or more than 60
            return ["clarabel", "scs"] if model.states_hinges else ["scs", "clarabel"]
        small = model.data_size <= SETTINGS.interior_point_entries or model.is_quadratic
        return ["clarabel", "scs"] if small else ["scs", "clarabel"]
    if not isinstance(backend, str) or backend.lower() not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS))
        raise SolverError(
            f"backend={backend!r}: cvxpy is used with one of 'auto', {known}",
            write_instead="write one of these",
        )
    if backend.lower() == "osqp" and not model.is_quadratic:
        raise SolverError(
            "backend='osqp' solves quadratic programs only and this model is none (norms of rows, singular "
            "values, logarithms or exponentials are in it)",
            write_instead="write backend='clarabel' or 'scs'",
        )
    return [backend.lower()]


def solve_reference(
    form: NormalForm,
    backend: str | None = None,
    *,
    accuracy: float | None = None,
    max_iter: int | None = None,
    model: CvxpyModel | None = None,
    is_feasible: bool = False,
) -> ReferencePoint:
    """Solve a normal form through cvxpy with 'clarabel', 'scs', 'osqp' or (None) the one that fits.

    accuracy : the tolerance handed to the backend (None: ACCURACY)
    max_iter : its iterations (None: its own limit)
    model    : `to_cvxpy(form, split=True)`, where the caller has it already
    is_feasible : whether weights are known that satisfy the constraints, as they always do where there are none

    Ends at the time limit of `mtldsl.utils.interrupts` too, where a backend has a point by then; TimeIsUp where none has.

    Raises InfeasibleError where a backend says that the constraints contradict each other (its word, not a
    proof), unless they are known not to; SolverError, with cvxpy's status in it, where every backend tried came back without a point.
    """
    started = time.perf_counter()
    model = to_cvxpy(form, split=True) if model is None else model
    is_feasible = is_feasible or not form.constraints
    points, failures = [], []
    *others, last = backends_to_try(model, backend)
    for name in (*others, last):
        if points and interrupts.remaining_seconds() <= 0.0:
            break
        seconds = SETTINGS.second_chance_seconds if name == "scs" and name != last else None
        try:
            points.append(_solve(form, model, name, accuracy, max_iter, seconds, is_feasible))
        except _NoPointError as failure:
            failures.append(str(failure))
            continue
        if (
            points[-1].status == "optimal" or name == "clarabel"
        ):  # Clarabel's "inaccurate" is as good as SCS's best
            break
    if not points:
        raise SolverError("; ".join(failures))
    best = min(points, key=lambda point: (point.status != "optimal", point.objective))
    best.seconds = time.perf_counter() - started
    return best


class _NoPointError(Exception):
    """A backend came back without a point; another may do better."""


def _infeasible(form: NormalForm, backend: str) -> str:
    """A backend's word, which rounding can make false: who repeats it proves it first."""
    typed = "; ".join(term.typed for term in form.functions if term.is_constraint)
    return f"no weights satisfy all constraints at once ({backend} says so): {typed}. Relax or leave out one of them"


def _solve(
    form: NormalForm, model: CvxpyModel, backend: str, accuracy, max_iter, seconds, is_feasible
) -> ReferencePoint:
    accuracy = ACCURACY[backend] if accuracy is None else accuracy
    undoubted = _UNDOUBTED.get(backend, {}) if is_feasible else {}
    options = BACKENDS[backend](accuracy, max_iter) | undoubted
    if seconds is not None:
        options["time_limit_secs"] = seconds
    try:
        with warnings.catch_warnings():
            # cvxpy warns that a solution may be inaccurate; `status` says so to the caller
            warnings.simplefilter("ignore")
            status = model.solve(
                run=backends.solve,
                solver=backend.upper(),
                tight=max(PLANES.relaxation_tol, 10.0 * accuracy),
                rough=BACKENDS[backend](max(accuracy, SETTINGS.rough_accuracy), max_iter) | undoubted,
                **options,
            )
    except cp.error.SolverError as error:
        raise _NoPointError(f"cvxpy's backend {backend!r} failed on {form.typed}: {error}") from error
    if any(variable.value is None for variable in model.variables.values()):
        # unbounded is none: every loss and every penalty has a least value
        if status == cp.INFEASIBLE and not is_feasible:
            raise InfeasibleError(_infeasible(form, backend))
        raise _NoPointError(
            f"cvxpy's backend {backend!r} found no point of {form.typed}: its status is {status!r}"
        )
    loss_duals, function_duals = model.duals() or (None, None)
    blocks = model.blocks()
    return ReferencePoint(
        blocks=blocks,
        loss_duals=loss_duals,
        function_duals=function_duals,
        iteration=model.iterations,
        objective=model.objective_value(blocks),
        violation=model.violation(blocks),
        backend=backend,
        status=status,
        accuracy=accuracy,
    )
