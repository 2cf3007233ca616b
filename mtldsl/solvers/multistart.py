"""Several starts of a model that is not convex: which stationary points there are, and the best of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

import numpy as np

from mtldsl.certificates.certificate import certify
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.reductions.coordinates import CenterLabels, shift_intercepts
from mtldsl.normal_form.terms.label_graph_term import RandomLabelings
from mtldsl.solvers.routes import accepting_routes, get_solver
from mtldsl.solvers.run import ReducedForm, SolveResult, in_original_units, run_routes
from mtldsl.solvers.solver import Point, StoppingWatch, Watch, breakdowns
from mtldsl.utils.arrays import read_dense
from mtldsl.utils.progress import progress_bar
from mtldsl.utils.validation import as_whole, check_seed, generator, quoted


@dataclass(frozen=True)
class StartSettings:
    """Constants of several starts.

    min_factor, max_factor : size of a random start over that of the first solution
    bare_tol_share         : of tol, to which the convex model without bounded penalties is solved
    bare_steps             : of its solver, at most
    """

    min_factor: float = 0.1
    max_factor: float = 10.0
    bare_tol_share: float = 1e-3
    bare_steps: int = 100


SETTINGS = StartSettings()


def checked_starts(form: NormalForm, starts, random_state) -> int:
    """The number as an int; SolverError where it is none, or where more than one start makes no sense."""
    if (as_whole(starts) or 0) < 1:
        raise SolverError(
            term=f"solve(starts={quoted(starts)})",
            write_instead="write a whole number >= 1, such as starts=10",
        )
    if starts > 1 and form.is_convex:
        raise SolverError(
            "the model is convex, so that every start leads to the same optimum",
            term=f"solve(starts={quoted(starts)})",
            write_instead="leave starts out",
        )
    check_seed(random_state, "solve", SolverError)
    return int(starts)


def from_several_starts(
    form: NormalForm,
    starts: int,
    random_state,
    run: Callable[[Point | None], SolveResult],
    first: Point | None,
    shown: bool = False,
) -> SolveResult:
    """The best outcome, with what came of each start: from `first`, or where the solver begins by itself, and from random weights.

    A random start is standard normal, times the root mean square of the first solution's weights, times a factor that is drawn
    log-uniformly from [0.1, 10]; intercepts start at zero. Outcomes that are proven stationary come first, then the
    lowest objective counts. `shown`: every start is told of on standard error.
    """
    rng, outcomes = generator(random_state, "solve", SolverError), list[SolveResult]()
    least, most = np.log(SETTINGS.min_factor), np.log(SETTINGS.max_factor)
    sizes: dict[str, float] = {}
    with progress_bar("start", starts, shown) as tell:
        for k in range(starts):
            if k == 0:
                outcome = run(first)
                blocks = {block.name: outcome.blocks[block.name] for block in form.weight_blocks}
                sizes = {name: float(np.sqrt(np.mean(np.square(W)))) for name, W in blocks.items()}
            else:
                x, factor = form.zeros(), float(np.exp(rng.uniform(least, most)))
                for block in form.weight_blocks:  # of one that is zero, the size of the others
                    size = sizes[block.name] or max(sizes.values()) or 1.0
                    x[block.name] = factor * size * rng.normal(size=block.shape)
                outcome = run(Point(x))
            outcomes.append(outcome)
            found = outcome.certificate
            tell(
                f"{outcome.status}, objective {found.objective:.6g}, residual {found.distance:.1e}, {outcome.seconds:.2f} s"
            )
            if outcome.interrupted or outcome.status == "stopped":
                break
    best = min(outcomes, key=_rank)
    rows = [
        {
            "start": k, "objective": o.certificate.objective, "status": o.status,
            "residual": o.certificate.distance, "iterations": o.iterations, "seconds": o.seconds,
            "best": o is best,
        }
        for k, o in enumerate(outcomes)
    ]  # fmt: skip
    interrupted = any(o.interrupted for o in outcomes)
    return replace(best, seconds=sum(o.seconds for o in outcomes), interrupted=interrupted, starts=rows)


def _rank(outcome: SolveResult) -> tuple:
    objective = outcome.certificate.objective
    return outcome.status not in ("stationary", "optimal"), objective if np.isfinite(objective) else np.inf


# --------------------------------------------------------------------------------------------------------------
# What a user hands to solve(warm_start=...), checked.


class SolvedProblem(Protocol):
    """Solution of another problem, as a warm start asks for it: its unknowns, and the point at which its solver stopped."""

    @property
    def blocks(self) -> Blocks: ...

    @property
    def state(self) -> object: ...  # a Point, or None where a file did not keep it


def starting_point(form: NormalForm, warm_start: SolvedProblem | dict | None) -> Point | None:
    """A Solution, or {block name: array}, as the point a solver starts from. SolverError where a block does not fit."""
    if warm_start is None:
        return None
    if isinstance(warm_start, dict) and all(isinstance(name, str) for name in warm_start):
        blocks, state = warm_start, None
    elif _is_solved(warm_start):
        blocks = warm_start.blocks
        state: Any = warm_start.state
    else:
        raise SolverError(
            term=f"solve(warm_start={quoted(warm_start)})",
            write_instead="write a Solution, or a dict such as {'W': array}; or leave it out",
        )
    unknown = [name for name in blocks if name not in form.shapes]
    if unknown and isinstance(warm_start, dict):
        raise SolverError(
            f"there is no block {unknown[0]!r}; the blocks are {', '.join(map(repr, form.shapes))}",
            term="solve(warm_start=...)",
        )
    point = Point({name: _start_block(name, shape, blocks.get(name)) for name, shape in form.shapes.items()})
    if state is not None:
        # multipliers and inner state of the same blocks; a solver checks whether they are its own
        point.loss_duals = _plain_multipliers(form, state.loss_duals)
        point.function_duals, point.state = state.function_duals, state.state
    return point


def _is_solved(value) -> TypeGuard[SolvedProblem]:
    """Tell whether it has what a Solution has; the points of the reference are of a class of its own, with the same members."""
    state = getattr(value, "state", value)
    is_point = all(hasattr(state, member) for member in ("loss_duals", "function_duals", "state"))
    return hasattr(value, "blocks") and (state is None or is_point)


def _plain_multipliers(form: NormalForm, loss_duals):
    """Random labellings as the multipliers that they stand for; None where they are of other data."""
    if loss_duals is None or not any(isinstance(u, RandomLabelings) for u in loss_duals):
        return loss_duals
    if len(loss_duals) != len(form.losses):
        return None
    found = [loss.plain_multipliers(u) for loss, u in zip(form.losses, loss_duals, strict=True)]
    return None if any(u is None or isinstance(u, RandomLabelings) for u in found) else found


def _start_block(name: str, shape: tuple[int, int], value) -> np.ndarray:
    if value is None:
        raise SolverError(f"needs {name!r} of shape {shape}, got ()", term="solve(warm_start=...)")
    plain = type(value) is np.ndarray and value.dtype == np.float64
    block = value if plain else read_dense(value, f"solve(warm_start=...): {name!r}", SolverError)
    if block.shape != shape:
        raise SolverError(f"needs {name!r} of shape {shape}, got {block.shape}", term="solve(warm_start=...)")
    if not np.isfinite(block).all():
        raise SolverError(
            f"{name!r} contains NaN or infinity",
            term="solve(warm_start=...)",
            write_instead="write finite numbers",
        )
    return block


# --------------------------------------------------------------------------------------------------------------
# From a normal form to its outcome: the warm start checked, far labels and columns moved to zero, one start or several, and back.


def solve_form(form: NormalForm, warm_start: SolvedProblem | dict | None, **how: Any) -> SolveResult:
    """The outcome of `Problem.solve`, whose other arguments are `how`; `options` among them are those of the solver."""
    if form.in_memory:
        return _solved(form, warm_start, how)
    tasks: Any = form.elsewhere[0].tasks
    return tasks.apply_solving(_solved, form, warm_start, how)


def seen_by_solvers(form: NormalForm) -> NormalForm:
    """The form that solvers are asked about: with rows that its tasks have in place of others, or without equations that are solved
    beforehand."""
    if not form.in_memory:
        tasks: Any = form.elsewhere[0].tasks
        known = tasks.presolved(form)
        if known is not None:
            return known
    return ReducedForm(form).form


def _solved(form: NormalForm, warm_start, how: dict[str, Any], resumed: Point | None = None) -> SolveResult:
    """Solve the form as it is. `resumed`: where an earlier run was, which goes before a warm start."""
    starts, first = checked_starts(form, how["starts"], how["random_state"]), starting_point(form, warm_start)
    solved, moves = CenterLabels().apply(form)
    if first is not None:
        first.blocks = shift_intercepts(first.blocks, moves, -1.0)
    first = resumed or first

    limits = {name: how[name] for name in ("solver", "tol", "max_iter", "max_seconds", "listener", "options")}

    def run(start: Point | None) -> SolveResult:
        return run_routes(solved, start=start, simple_guesses=start is first, **limits)

    if starts == 1:
        outcome = run(first)
    else:
        outcome = from_several_starts(solved, starts, how["random_state"], run, first, how["verbose"])
    return in_original_units(outcome, solved, form, moves, how["tol"]) if moves else outcome


# --------------------------------------------------------------------------------------------------------------
# Points above every cap: solutions of the convex model without penalties that cost no more there, however large weights are.


def bare_start(form: NormalForm, tol: float, watch: Watch) -> Point | None:
    """The point found, to be compared with other starts; None where no penalty is bounded, or nothing was found.

    A capped trace norm is a constant where every singular value lies above the cap: the solution without it is then stationary. Where
    inputs have more columns than rows, or the cap is low, that is the usual case, and the hardest for steps that mind the penalty.
    """
    kept = [k for k, f in enumerate(form.functions) if f.atom.convex or f.is_constraint]
    capped = [k for k in range(len(form.functions)) if k not in kept]
    if not capped or not all(form.functions[k].atom.is_bounded for k in capped):
        return None
    bare = replace(form, functions=tuple(form.functions[k] for k in kept))
    if not bare.is_convex:
        return None
    most = SETTINGS.bare_steps
    found = solve_roughly(bare, tol=SETTINGS.bare_tol_share * tol, max_iter=most, watch=watch, asks=most)
    if found is None:
        return None
    duals: list[Any] = [np.zeros(f.map.shape) for f in form.functions]
    for place, k in enumerate(kept):
        duals[k] = None if found.function_duals is None else found.function_duals[place]
    return Point(found.blocks, found.loss_duals, duals, found.iteration)


def solve_roughly(
    convex: NormalForm, *, tol: float, max_iter: int, watch: Watch, asks: float = math.inf
) -> Point | None:
    """The last point of the fastest solver that takes the form, about solved to a gap of tol; None where there is none."""
    name = next(accepting_routes(convex), None)
    if name is None:
        return None

    def is_solved(point: Point) -> bool:
        return certify(convex, point.blocks, point.loss_duals, point.function_duals).within(tol)

    rough = StoppingWatch(watch, is_solved, asks)
    with suppress(SolverError), breakdowns(name):
        get_solver(name).solve(convex, tol=tol, max_iter=max_iter, start=None, watch=rough)
    return rough.last
