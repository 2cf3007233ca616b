"""One random model, solved, and every claim of the answer held to points that are known to attain what they attain."""

import re
import signal
import time
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from mtldsl.errors import InfeasibleError, MTLError
from tests.fuzz.draw import draw
from tests.fuzz.feasible import repaired
from tests.fuzz.formulas import LONG, objective, rounding_of_objective, sizes_of_predictions, violation
from tests.fuzz.label_graphs import GRAPH_LOSSES
from tests.fuzz.oracle import Oracle, consult
from tests.fuzz.recipes import Model
from tests.fuzz.typed import problem_of

#: what may be found, and what it means
FINDINGS = {
    "false optimal": "called optimal, and a feasible point lies below its objective by more than tol",
    "false bound": "a feasible point lies below the dual bound",
    "false infeasible": "said to have no weights that satisfy the constraints, and has",
    "optimal where infeasible": "called optimal, and no weights satisfy the constraints to tol",
    "false stationary": "called stationary, and a step of 1 % lowers the objective by more than 1 %",
    "violated": "called optimal, and a constraint is missed by more than tol",
    "wrong objective": "the objective that is claimed is not that of the weights",
    "exception": "an exception that is not an MTLError",
    "refused": "an MTLError for a model of the language, other than that no solver takes it, or that one broke down",
    "warning": "a RuntimeWarning",
    "overrun": "max_seconds exceeded by more than 10 % + 1 s of CPU time",
}

#: what an honest MTLError for a model of the language says
SAID = ("broke down numerically", "no solver takes this model")

#: what the rounding of a bound may be, relative to the objective, and to the objective at the best constants
ROUNDING, ROUNDING_OF_SCALE = 1e-9, 1e-13

#: relative to the objective at the best constants: below it an optimum counts as zero
FLOOR = 1e-8


@dataclass
class Case:
    """What came of one seed."""

    seed: int
    tags: tuple[str, ...]
    text: str = ""  # the model, as the language prints it
    status: str = ""
    attained: float = np.nan  # the lowest value known to be attained by a feasible point
    oracle: str = ""  # the oracle's status; "none: ..." where it is of no help
    findings: dict[str, str] = field(default_factory=dict)

    @property
    def has_oracle(self) -> bool:
        return not self.oracle.startswith("none")


class _Hung(BaseException):
    """Not an Exception: no `except Exception` on the way may swallow it."""


def judge(seed: int, *, tol: float = 1e-6, max_seconds: float = 2.0) -> Case:
    model = draw(seed)
    case = Case(seed, model.tags)
    with _recorded_warnings() as heard:
        solution = _solve(model, case, tol, max_seconds)
    for line in sorted({f"{w.filename.split('/mtldsl/')[-1]}:{w.lineno} {w.message}" for w in heard}):
        case.findings["warning"] = "; ".join(filter(None, [case.findings.get("warning"), line]))
    with np.errstate(all="ignore"):
        oracle = consult(model)
        if solution is None:
            case.oracle = oracle.status
        else:
            _compare(model, case, solution, oracle, tol)
    return case


def _solve(model: Model, case: Case, tol: float, max_seconds: float, again: bool = False):
    """The solution, or None where an error took its place."""
    started, solution = time.process_time(), None
    limit = 1.1 * max_seconds + 1.0
    try:
        problem = problem_of(model)
        case.text = str(problem)
        with _alarm(2 * limit + 10):
            started = time.process_time()
            solution = problem.solve(tol=tol, max_seconds=max_seconds)
    except MTLError as error:
        case.status = f"{type(error).__name__}: {error}"[:300]
        if isinstance(error, InfeasibleError):
            if model.feasible:
                case.findings["false infeasible"] = case.status
        elif not any(words in str(error) for words in SAID):
            case.findings["refused"] = case.status
    except _Hung:
        pass  # the time says so
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        case.findings["exception"] = (
            f"{type(error).__name__}: {error} ({frame.filename.split('/mtldsl/')[-1]}:{frame.lineno})"
        )
    seconds = time.process_time() - started
    if seconds > limit and not again:  # once more, now that everything is compiled and imported
        return _solve(model, case, tol, max_seconds, again=True)
    if seconds > limit:
        case.findings.setdefault("overrun", f"{seconds:.1f} s of CPU time, max_seconds={max_seconds:g}")
    return solution


def _compare(model: Model, case: Case, solution, oracle: Oracle, tol: float) -> None:
    blocks = _extended(model, solution)
    case.status = solution.status
    if not model.feasible:
        case.oracle = "infeasible by construction"
        missed = violation(model, blocks)
        if solution.status == "optimal" and missed > tol:  # constraints are met to tol, in the units typed
            case.findings["optimal where infeasible"] = f"violation {missed:.3g}"
        return
    own = float(objective(model, blocks))
    rounding = rounding_of_objective(model, blocks) + ROUNDING_OF_SCALE * oracle.scale
    if np.isfinite(own) and not abs(own - solution.objective) <= 1e-12 * abs(own) + rounding:
        case.findings["wrong objective"] = f"claimed {solution.objective!r}, is {own!r}"
    missed = violation(model, blocks)
    if solution.status == "optimal" and missed > tol * (1 + 1e-9) + 1e-15 * _size(blocks):
        case.findings["violated"] = f"by {missed:.3g}"
    here = float(objective(model, repaired(model, blocks)))
    if oracle.attained < solution.dual_bound and _is_beyond(model, solution, blocks, oracle):
        oracle = replace(oracle, status="beyond the weights that the proof is about", attained=np.inf)
    case.attained = min(oracle.attained, here if np.isfinite(here) else np.inf)
    scale = max(abs(own), abs(case.attained), FLOOR * oracle.scale)
    if solution.status == "stationary":
        _descend(model, case, blocks, own, scale)
    # of a model that is not convex, nobody knows the optimum: only attained values count
    helps = not model.is_convex or (
        oracle.status == "optimal" and oracle.attained <= case.attained + 1e-5 * scale
    )
    case.oracle = oracle.status if helps else f"none: {oracle.status}, attains {oracle.attained:.9g}"
    above = solution.dual_bound - case.attained - _stated_rounding(model, blocks, solution)
    if (
        above
        > ROUNDING * max(abs(case.attained), abs(solution.dual_bound)) + ROUNDING_OF_SCALE * oracle.scale
    ):
        relative = above / max(scale, np.finfo(float).tiny)
        case.findings["false bound"] = (
            f"{solution.dual_bound!r} > {case.attained!r} (relative {relative:.1e})"
        )
    if solution.status == "optimal" and own > case.attained + 1.01 * tol * scale + rounding:
        relative = (own - case.attained) / max(scale, np.finfo(float).tiny)
        case.findings["false optimal"] = f"{own!r} > {case.attained!r} (relative {relative:.1e})"


def _is_beyond(model: Model, solution, blocks: dict, oracle: Oracle) -> bool:
    """Tell whether the solution's note leaves out weights as large as the oracle's: of columns that are collinear to the last digit."""
    stated = re.search(r"up to ([\d,]+) times the size of the solution's", solution.note)
    if stated is None or oracle.blocks is None:
        return False
    reach = float(stated[1].replace(",", ""))
    return any(
        np.abs(oracle.blocks[name]).max(initial=0) > reach * np.abs(blocks[name]).max(initial=0)
        for name in model.blocks
    )


def _stated_rounding(model: Model, blocks: dict, solution) -> float:
    """64 units in the last place of what a bound is the sum of: <|u|, |z| + |y|>, with |X| |w| for |z| (docs/mathematics.md)."""
    total = 0.0
    if model.losses[0].word in GRAPH_LOSSES:
        return total
    for loss, u in zip(model.losses, getattr(solution, "multipliers", {}).values(), strict=False):
        total += float(np.abs(np.ravel(u)) @ np.concatenate(sizes_of_predictions(model, loss, blocks)))
    return 64 * np.finfo(float).eps * total


def _descend(model: Model, case: Case, blocks: dict, here: float, scale: float) -> None:
    """What is called stationary is put to steps of 1 % along singular values and along random directions."""
    rng, (name, *_) = np.random.default_rng(0), model.blocks
    W = np.asarray(blocks[name], float)
    U, s, V = np.linalg.svd(W, full_matrices=False)
    directions = [s[k] * np.outer(U[:, k], V[k]) for k in range(len(s))]
    directions += [np.abs(W) * rng.normal(size=W.shape) for _ in range(20)]
    for direction in directions:
        for step in (-0.01, 0.01):
            value = float(objective(model, blocks | {name: np.asarray(W + step * direction, LONG)}))
            if value < here - 0.01 * scale:
                case.findings["false stationary"] = f"{here!r} falls to {value!r} by a step of 1 %"


def _extended(model: Model, solution) -> dict:
    shapes = model.shapes.items()
    blocks = {name: np.asarray(solution.blocks.get(name, np.zeros(shape)), LONG) for name, shape in shapes}
    m = model.shape[1]
    intercepts = {f"{name}.intercept" for name, has in model.blocks.items() if has}
    return blocks | {
        name: np.asarray(solution.blocks.get(name, np.zeros(m)), LONG).ravel() for name in intercepts
    }


def _size(blocks: dict) -> float:
    return float(max(np.abs(block).max(initial=0) for block in blocks.values()))


@contextmanager
def _recorded_warnings():
    """The RuntimeWarnings of a block, which go on as they would for a user."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RuntimeWarning)
        yield heard


@contextmanager
def _alarm(seconds: float):
    """_Hung after so many seconds of CPU time, where Python runs. Not SIGALRM: that alarm is mtldsl's own."""

    def ring(*_):
        raise _Hung

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
