"""How sure weights are: the model learned again on rows drawn again."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mtldsl.analysis.cross_validation import fit_to
from mtldsl.analysis.in_parallel import Parts, in_parallel, jobs_of
from mtldsl.analysis.parts import data_of, learnable, needs_two_classes, taken
from mtldsl.errors import DataError, Interrupted, ModelError
from mtldsl.scoring.intervals import percentiles
from mtldsl.solution.solution import Solution
from mtldsl.system.memory import require_memory
from mtldsl.system.told import counted
from mtldsl.tasks import Tasks
from mtldsl.tasks.resampling import checked_level, checked_times, drawn, units_of_rows
from mtldsl.values.option import as_flag
from mtldsl.values.seed import generator

__all__ = ["WeightIntervals", "bootstrap_weights"]


class WeightIntervals:
    """Weights on resampled rows.

    solution      on the rows as they are
    low, high     (d, m) percentile intervals of its weights W; low_intercept, high_intercept (m,), or None
    nonzero       (d, m) the share of samples in which a weight is not zero
    samples       (n, d, m), NaN for a task that could not be learned in a sample (`not_learned` (m,) counts these, and they are left out)
    statuses      (n,) of the solves
    table         a dict a weight: feature, task, weight, low, high, nonzero
    """

    def __init__(
        self,
        solution: Solution,
        samples: np.ndarray,
        intercepts: np.ndarray | None,
        statuses: list[str],
        level: float,
    ):
        self.solution, self.samples, self.intercepts, self.statuses, self.level = (
            solution,
            samples,
            intercepts,
            statuses,
            level,
        )
        self.low, self.high = percentiles(samples, level)
        has = ~np.isnan(samples)
        times = has.sum(axis=0)
        counts = np.sum(has & (samples != 0), axis=0)
        self.nonzero = np.divide(counts, times, out=np.full(counts.shape, np.nan), where=times > 0)
        self.not_learned = np.isnan(samples[:, 0, :]).sum(axis=0)
        self.low_intercept, self.high_intercept = (
            (None, None) if intercepts is None else percentiles(intercepts, level)
        )

    @property
    def table(self) -> list[dict[str, Any]]:
        W = self.solution.W
        return [
            {
                "feature": feature, "task": task, "weight": float(W[j, i]), "low": float(self.low[j, i]), "high": float(self.high[j, i]),
                "nonzero": float(self.nonzero[j, i]),
            }
            for j, feature in enumerate(self.solution.feature_names)
            for i, task in enumerate(self.solution.task_names)
        ]  # fmt: skip

    def frame(self):
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.table)

    def __repr__(self) -> str:
        n, (d, m) = len(self.samples), self.low.shape
        apart = int(np.sum((self.low > 0) | (self.high < 0)))
        lines = [
            f"{100 * self.level:g} % percentile intervals of {d} x {m} weights from {n} samples of the rows: {apart} of {d * m} without 0"
        ]
        open_ = sum(status not in ("optimal", "stationary") for status in self.statuses)
        if open_:
            lines.append(f"not solved to the tolerance: {open_} of {n} samples")
        for name, count in zip(self.solution.task_names, self.not_learned.tolist(), strict=True):
            if count:
                lines.append(
                    f"{name!r} was not learned in {count} samples, which had labels of one class alone, or none"
                )
        return "\n".join(lines)


def bootstrap_weights(
    problem: Any, n, level, groups, n_jobs, random_state, progress, solve_options: dict, made: Parts
) -> WeightIntervals:
    """See `Problem.bootstrap`. made : gets every sample as it is complete."""
    n, level = checked_times(n, "bootstrap(n"), checked_level(level, "bootstrap(n, level")
    rng = generator(random_state, "bootstrap")
    jobs_of(n_jobs)
    progress = as_flag(progress, "bootstrap(n, progress", ModelError)
    tasks = data_of(problem, "bootstrap")
    units = units_of_rows(tasks, groups, "bootstrap(n, groups)")
    d, m = tasks.n_features, problem.weights[0].shape[1]
    require_memory(8.0 * n * d * m, f"the weights of {n:,} samples", "draw fewer samples", DataError)
    two = needs_two_classes(problem)
    whole = problem.solve(**solve_options)
    if whole.interrupted:
        raise Interrupted("bootstrap was interrupted in the solve on all rows, before the first sample")
    model = problem.with_tasks(tasks)  # without what the problem remembers
    common = (model, units, two, whole.blocks, solve_options)

    def intervals(found: list) -> WeightIntervals:
        weights = np.stack([W for W, _, _ in found])
        shifts = None if whole.intercept is None else np.stack([b for _, b, _ in found])
        return WeightIntervals(whole, weights, shifts, [status for _, _, status in found], level)

    made.expect(n, lambda found: intervals(found) if len(found) > 1 else None)
    with counted("sample", n, progress) as tell:
        work = [(own,) for own in rng.spawn(n)]
        found = in_parallel(_learned, common, tasks, work, n_jobs, made, tell=lambda one: tell(one[2]))
    return intervals(found)


def _learned(common: tuple, tasks: Tasks, rng):
    """(weights (d, m), intercepts (m,), status) on one sample, NaN for tasks that cannot be learned on it."""
    model, units, two, blocks, solve_options = common
    times = drawn(tasks, units, rng)
    can, _ = learnable(tasks, times, two)
    m = len(can)
    if not can.any():
        return np.full((tasks.n_features, m), np.nan), np.full(m, np.nan), "stationary"
    own = fit_to(copy.deepcopy(model, {id(tasks): tasks}), taken(tasks, times, can), can)
    start = {"warm_start": blocks} if can.all() else {}
    solution = own.solve(**(start | solve_options))
    if solution.interrupted:
        raise KeyboardInterrupt
    if can.all():
        return solution.coef, solution.intercept, solution.status
    W, b = np.full((tasks.n_features, m), np.nan), np.full(m, np.nan)
    W[:, can] = solution.coef
    b[can] = np.nan if solution.intercept is None else solution.intercept
    return W, b, solution.status
