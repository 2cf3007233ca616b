"""Several starts of a model that is not convex: which stationary points there are, and the best of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.errors import SolverError
from mtldsl.solvers.drive import Outcome
from mtldsl.solvers.solver import Point
from mtldsl.system.told import counted
from mtldsl.values.number import as_whole, quoted
from mtldsl.values.seed import check_seed, generator

__all__ = ["checked_starts", "from_several_starts"]

#: Random starts are this many times as large as the first solution, at least and at most.
_SMALLEST, _LARGEST = 0.1, 10.0


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
    run: Callable[[Point | None], Outcome],
    first: Point | None,
    shown: bool = False,
) -> Outcome:
    """The best outcome, with what came of each start: from `first`, or where the solver begins by itself, and from random weights.

    A random start is standard normal, times the root mean square of the first solution's weights, times a factor that is drawn
    log-uniformly from [0.1, 10]; intercepts start at zero. Outcomes that are proven stationary come first, then the
    lowest objective counts. `shown`: every start is told of on standard error.
    """
    rng = generator(random_state, "solve", SolverError)
    with counted("start", starts, shown) as tell:
        outcomes = [run(first)]
        tell(_said(outcomes[0]))
        scales = _scales(form, outcomes[0].blocks)
        for _ in range(1, starts):
            if outcomes[-1].interrupted or outcomes[-1].status == "stopped":
                break
            outcomes.append(run(Point(_random(form, scales, rng))))
            tell(_said(outcomes[-1]))
    order = sorted(range(len(outcomes)), key=lambda k: _rank(outcomes[k]))
    best = outcomes[order[0]]
    rows = [
        {
            "start": k, "objective": o.certificate.objective, "status": o.status,
            "residual": o.certificate.distance, "iterations": o.iterations, "seconds": o.seconds,
            "best": k == order[0],
        }
        for k, o in enumerate(outcomes)
    ]  # fmt: skip
    interrupted = any(o.interrupted for o in outcomes)
    return replace(best, seconds=sum(o.seconds for o in outcomes), interrupted=interrupted, starts=rows)


def _said(outcome: Outcome) -> str:
    objective, residual = outcome.certificate.objective, outcome.certificate.distance
    return f"{outcome.status}, objective {objective:.6g}, residual {residual:.1e}, {outcome.seconds:.2f} s"


def _rank(outcome: Outcome) -> tuple:
    objective = outcome.certificate.objective
    return outcome.status not in ("stationary", "optimal"), objective if np.isfinite(objective) else np.inf


def _scales(form: NormalForm, blocks: Blocks) -> dict[str, float]:
    """The size of every weight block at the first solution; of one that is zero, that of the others."""
    sizes = {
        block.name: float(np.sqrt(np.mean(np.square(blocks[block.name])))) for block in form.weight_blocks
    }
    typical = max(sizes.values()) or 1.0
    return {name: size or typical for name, size in sizes.items()}


def _random(form: NormalForm, scales: dict[str, float], rng: np.random.Generator) -> Blocks:
    x = form.zeros()
    factor = float(np.exp(rng.uniform(np.log(_SMALLEST), np.log(_LARGEST))))
    for block in form.weight_blocks:
        x[block.name] = factor * scales[block.name] * rng.normal(size=block.shape)
    return x
