"""Everything about one problem, in one process: our routes, then the optimum, then the peers, each to every accuracy.

One formula for all: the objective by the model's own definitions, above the best objective that is proven, over its size. A route of ours
has reached tol where `solve(tol=...)` returns with status optimal; a peer where that formula says so at the loosest of its tolerances.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from .clock import seconds_of
from .instance import Instance, tiny
from .problems import Problem
from .routes import AUTO, own_routes
from .rows import package_version

__all__ = ["TOLERANCES", "Known", "Plan", "measure"]

TOLERANCES = (1e-3, 1e-4, 1e-6)
REFERENCE = 1e-9  # asked for, of the optimum that peers are measured against


@dataclass(frozen=True)
class Plan:
    """limit: CPU seconds of a route; patience: a route stops at so many times the best known; which routes; what is done already."""

    limit: float = 60.0
    patience: float = 30.0
    tolerances: tuple[float, ...] = TOLERANCES
    routes: tuple[str, ...] = ()  # () for all; "own", "peers", or names
    done: frozenset = frozenset()  # (route, tol as text, version)

    def wants(self, route: str, kind: str) -> bool:
        return not self.routes or route in self.routes or kind in self.routes


@dataclass
class Known:
    """What is known of a problem so far: least seconds to each accuracy, the best objective and the best bound."""

    seconds: dict[float, float] = field(default_factory=dict)
    objective: float = np.inf
    bound: float = -np.inf
    blocks: object = None

    def allowance(self, plan: Plan, tol: float) -> float:
        """No route is waited for much longer than the best one has needed to this accuracy."""
        return min(plan.limit, max(2.0, plan.patience * self.seconds.get(tol, np.inf)))

    def see(self, row: dict) -> None:
        if row["status"] in ("optimal", "stationary"):
            self.seconds[row["tol"]] = min(self.seconds.get(row["tol"], np.inf), row["seconds"])
        if row["kind"] in ("own", "optimum"):
            if row["violation"] <= 1e-7:
                self.objective = min(self.objective, row["objective"])
            if np.isfinite(row["bound"]):
                self.bound = max(self.bound, row["bound"])

    @property
    def optimum(self) -> float:
        """The best objective; where it is not proven within 1e-6, the bound if that is within 1e-3, so that no peer is measured too well."""
        near = (self.objective - self.bound) / max(abs(self.objective), 1e-300)
        return self.objective if near <= 1e-6 or not near <= 1e-3 else self.bound


def accuracy(objective: float, optimum: float) -> float:
    """The one formula: how far above the optimum, over its size."""
    return float(max(objective - optimum, 0.0) / max(abs(optimum), 1e-12))


def measure(problem: Problem, plan: Plan, before: Iterable[dict] = ()) -> Iterator[dict]:
    """Rows as they come. Before each measurement a dict with `begins` says which one, so that whoever watches can end it.

    before : rows of earlier runs on this problem; what they measured is not measured again, what they found is known
    """
    warnings.filterwarnings("ignore")
    known = Known()
    for row in before:
        known.see(row)
    yield _begins("loading", 0.0, 30.0, "own")
    instance = Instance.of(problem)
    small = tiny(problem)
    for row in _own(instance, small, plan, known):
        if "begins" not in row:
            known.see(row)
        yield row
    yield from _peers(instance, small, plan, known)


def _begins(route: str, tol: float, allowance: float, kind: str, version: str = "") -> dict:
    return {"begins": route, "tol": tol, "allowance": allowance, "kind": kind, "version": version}


# ------------------------------------------------------------------------------------------------ our own


def _own(instance: Instance, small: Instance, plan: Plan, known: Known) -> Iterator[dict]:
    version = package_version()
    for route, (solver, options) in own_routes(instance.stated.problem).items():
        if not plan.wants(route, "own"):
            continue
        late = False
        warm = False
        for tol in plan.tolerances:
            if (route, f"{tol:g}", version) in plan.done:
                continue
            row = {
                "problem": instance.problem.id,
                "route": route,
                "kind": "own",
                "tol": tol,
                "version": version,
            }
            if late:
                yield row | _nothing("skipped", "a looser one was not reached")
                continue
            allowance = known.allowance(plan, tol)
            yield _begins(route, tol, allowance, "own")
            if not warm:
                _quietly(partial(_once, small, solver, tol, options))
                warm = True
            row |= _solved(instance, known, solver, options, tol, allowance)
            late = row["status"] not in ("optimal", "stationary")
            yield row
    if not plan.routes or "peers" in plan.routes:
        yield from _optimum(instance, plan, known)


def _solved(
    instance: Instance, known: Known, solver: str, options: dict, tol: float, allowance: float
) -> dict:
    # CPU seconds end a solve; the clock on the wall only those that wait for another process, as for a backend of cvxpy
    patience = (2.0 if solver == "cvxpy" else 4.0) * allowance

    def call(stated):
        return stated.problem.solve(solver=solver, tol=tol, max_seconds=patience, **options)

    started = time.process_time()
    try:
        seconds, solution = seconds_of(call, allowance, instance.fresh)
    except KeyboardInterrupt:
        return _nothing("time_limit", "", time.process_time() - started, allowance)
    except Exception as error:
        return _nothing("error", f"{type(error).__name__}: {error}", time.process_time() - started, allowance)
    late = solution.status == "interrupted" or (
        solution.status not in ("optimal", "stationary") and seconds >= 0.95 * allowance
    )
    if solution.violation <= 1e-7 and solution.objective < known.objective:
        known.blocks = solution.blocks
    return {
        "status": "time_limit" if late else solution.status,
        "seconds": seconds,
        "objective": float(solution.objective),
        "bound": float(solution.dual_bound),
        "violation": float(solution.violation),
        "solver": solution.solver,
        "limit": allowance,
        "note": ""
        if solution.status in ("optimal", "stationary")
        else f"gap {float(solution.relative_gap):.1e}",
    }


def _nothing(status: str, note: str, seconds: float = np.nan, limit: float = np.nan) -> dict:
    nan = float("nan")
    return {
        "status": status, "seconds": seconds, "objective": nan, "bound": nan, "violation": nan, "note": note, "limit": limit,
    }  # fmt: skip


def _optimum(instance: Instance, plan: Plan, known: Known) -> Iterator[dict]:
    """The optimum, closer than any accuracy that is asked for; not timed."""
    if not instance.convex or known.objective - known.bound <= 1e-8 * abs(known.objective):
        return
    if ("optimum", f"{REFERENCE:g}", package_version()) in plan.done:
        return
    yield _begins("optimum", REFERENCE, plan.limit / 2, "optimum")
    options = {"warm_start": known.blocks} if known.blocks is not None else {}
    row = _solved(instance, known, AUTO, options, REFERENCE, plan.limit / 2)
    yield row | {
        "problem": instance.problem.id, "route": "optimum", "kind": "optimum", "tol": REFERENCE, "version": package_version(),
    }  # fmt: skip


# -------------------------------------------------------------------------------------------------- peers


def _peers(instance: Instance, small: Instance, plan: Plan, known: Known) -> Iterator[dict]:
    if not instance.convex or not np.isfinite(known.objective):
        return
    from .peers import peers_for

    own = peers_for(small)
    for name, peer in peers_for(instance).items():
        if not plan.wants(name, "peers"):
            continue
        missing = [t for t in plan.tolerances if (name, f"{t:g}", peer.version) not in plan.done]
        if not missing:
            continue
        if name in own:
            _quietly(partial(_try, own[name]))
        yield from _ladder(name, peer, instance, missing, plan, known)


def _try(peer) -> None:
    """The loosest of a peer's fits, with no goal to reach: so that what it compiles is compiled."""
    peer.prepare()
    peer.fit(peer.rungs[0], None)


def _ladder(
    name: str, peer, instance: Instance, missing: list[float], plan: Plan, known: Known
) -> Iterator[dict]:
    """Loosest tolerance first; the accuracy that a fit has is measured, not believed. A fit that reaches several counts for all of them."""
    rung, waiting = 0, sorted(missing, reverse=True)
    base = {
        "problem": instance.problem.id,
        "route": name,
        "kind": "peer",
        "version": peer.version,
        "solver": peer.package,
    }
    reached, error, ended = np.inf, "", False
    yield _begins(name, waiting[0], known.allowance(plan, waiting[0]), "peer", peer.version)
    try:
        peer.prepare()
    except Exception as problem:
        error, ended = f"{type(problem).__name__}: {problem}", True
    while waiting and not ended and rung < len(peer.rungs):
        tol = waiting[0]
        allowance = known.allowance(plan, tol)
        yield _begins(name, tol, allowance, "peer", peer.version)
        goal = known.optimum + tol * max(abs(known.optimum), 1e-12) * 0.999
        started = time.process_time()
        row = {}
        try:
            seconds, (W, b) = seconds_of(partial(peer.fit, peer.rungs[rung], goal), allowance)
            blocks = instance.blocks(W, b)
            objective, violation = instance.value(blocks), instance.violation(blocks)
            reached = accuracy(objective, known.optimum) if np.isfinite(objective) else np.inf
            row = {"seconds": seconds, "objective": objective, "violation": violation, "accuracy": reached}
            ended = seconds >= allowance
        except KeyboardInterrupt:
            ended, error = True, "time_limit"
            row = {"seconds": time.process_time() - started}
        except Exception as problem:
            ended, error = True, f"{type(problem).__name__}: {problem}"
        row |= {"limit": allowance, "note": f"tolerance {peer.rungs[rung]:g}"}
        met = [t for t in waiting if reached <= t and row.get("violation", 1.0) <= t]
        for t in met if not error else []:
            waiting.remove(t)
            known.seconds[t] = min(known.seconds.get(t, np.inf), row["seconds"])
            yield base | row | {"tol": t, "status": "optimal"}
        if not peer.aims or not met:
            rung += 1
    for t in waiting:
        status = (
            "time_limit" if ended and error in ("", "time_limit") else "error" if error else "not_reached"
        )
        yield base | _nothing(status, error or f"reached {reached:.1e}") | {"tol": t, "accuracy": reached}


def _once(instance: Instance, solver: str, tol: float, options: dict) -> None:
    instance.fresh().problem.solve(solver=solver, tol=tol, max_seconds=20, **options)


def _quietly(action) -> None:
    """A tiny problem that cannot be solved is the solver's own affair."""
    with contextlib.suppress(Exception, KeyboardInterrupt):
        action()
