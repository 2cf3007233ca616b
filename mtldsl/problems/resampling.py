"""Resampling of a problem: stability selection on halves, and bootstrap intervals of weights."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.data.splits import (
    checked_level,
    draw_counts,
    labels_by_row,
    stratified_folds,
    units_of_rows,
)
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, Interrupted, ModelError
from mtldsl.language.scalars import Parameter
from mtldsl.problems.cross_validation import model_on_tasks
from mtldsl.problems.folds import data_of, learnable, needs_two_classes, take_rows
from mtldsl.problems.parallel_fits import in_parallel, in_parts, jobs_of
from mtldsl.problems.path import grid_of
from mtldsl.solution.score_intervals import percentiles
from mtldsl.solution.solution import Solution
from mtldsl.utils.memory import require_memory
from mtldsl.utils.progress import defaults, progress_bar
from mtldsl.utils.validation import as_count, as_flag, as_float, generator, quoted

# --------------------------------------------------------------------------------------------------------------
# Stability selection: which features a sparse model chooses again and again, on halves of the data.


@dataclass(eq=False, repr=False)
class StabilitySelection:
    r"""Selection probabilities over halves of the rows.

    values         the values of the parameter, the most regularised first; `used`, how many of them count
    frequencies    (values, d, m) the share of halves in which a weight is not zero; feature_frequencies (values, d), in which any of a
                   feature's is not
    probabilities  (d,) the largest of feature_frequencies over the values that count
    selected       names of the features whose probability is at least the threshold, the most probable first
    chosen         q, how many features a half chooses anywhere among the values that count, on average
    expected_false q^2 / ((2 threshold - 1) d): no more of the features that have no influence are expected among those selected, where
                   these are exchangeable and the model chooses no worse than at random (Meinshausen and Buehlmann, theorem 1)
    """

    name: str
    values: list[float]
    frequencies: np.ndarray
    feature_frequencies: np.ndarray
    features: tuple[str, ...]
    threshold: float
    n: int
    used: int
    chosen: float
    expected_false: float

    @classmethod
    def of(
        cls,
        pairs: list,
        name: str,
        values: list[float],
        features: tuple[str, ...],
        threshold: float,
        limit: float | None,
    ) -> StabilitySelection:
        """Return what halves have chosen: a list of pairs of (values, d, m) and which tasks (m,) could be learned."""
        found = [half for halves in pairs for half in halves]
        is_chosen = np.stack([half for half, _ in found])  # (n, values, d, m)
        times = np.maximum(np.stack([there for _, there in found]).sum(axis=0), 1)
        of_features = is_chosen.any(axis=3)
        ever = np.logical_or.accumulate(of_features, axis=1).sum(axis=2).mean(axis=0)
        bounds = ever**2 / ((2.0 * threshold - 1.0) * len(features))
        beyond = np.zeros(len(values), bool) if limit is None else bounds > limit
        used = int(np.argmax(beyond)) if beyond.any() else len(values)
        last = (float(ever[used - 1]), float(bounds[used - 1])) if used else (0.0, 0.0)
        return cls(
            name,
            values,
            is_chosen.sum(axis=0) / times,
            of_features.mean(axis=0),
            features,
            threshold,
            len(found),
            used,
            *last,
        )

    @property
    def probabilities(self) -> np.ndarray:
        return self.feature_frequencies[: self.used].max(axis=0, initial=0.0)

    @property
    def selected(self) -> list[str]:
        found = self.probabilities
        order = np.argsort(-found, kind="stable")
        return [self.features[j] for j in order if found[j] >= self.threshold]

    def __repr__(self) -> str:
        found = self.selected
        lines = [
            f"{len(found)} of {len(self.features)} features in at least {100 * self.threshold:g} % of {self.n} halves of the rows, "
            f"{self.used} of {len(self.values)} values of {self.name}",
            f"a half chooses {self.chosen:.1f} features; at most {self.expected_false:.2g} false ones expected among the selected",
        ]
        probability = dict(zip(self.features, self.probabilities, strict=True))
        lines += [f"  {name:<24}{probability[name]:>6.2f}" for name in found[:20]]
        return "\n".join(lines + [f"  and {len(found) - 20} more"] * (len(found) > 20))


def stability_selection(
    problem: Any,
    lam: Parameter,
    values=None,
    *,
    n: int = 100,
    threshold: float = 0.75,
    expected_false: float | None = 1.0,
    groups=None,
    n_jobs: int | None = None,
    random_state=0,
    progress: bool = False,
    **solve_options,
) -> StabilitySelection:
    """Which features a sparse model chooses again and again: on n halves of the rows, over values of lam.

    values         : as in `cross_validate`
    threshold      : the share of halves, above 0.5, in which a feature has to be chosen at one of the values
    expected_false : values count from the most regularised on, as long as the bound q^2 / ((2 threshold - 1) d) on the expected number
                     of wrongly selected features is at most this; None: all count
    n_jobs, progress : as in `cross_validate`
    Halves are drawn in complementary pairs (Shah and Samworth 2013), the labels of every task spread over both; groups stay together.

    Source: Meinshausen and Buehlmann, "Stability selection", Journal of the Royal Statistical Society B 72, 2010.

    >>> import numpy as np, mtldsl as mtl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 30))
    >>> tasks = mtl.Tasks.shared(X, X[:, :2] @ rng.normal(size=(2, 4)) + rng.normal(size=(100, 4)))
    >>> W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
    >>> sorted(problem.stability_selection(lam, n=20).selected)
    ['x0', 'x1']
    """
    typed = "stability_selection"
    with in_parts(typed, "pair of halves", "pairs of halves") as made, defaults(cross_check="never"):
        n = as_count(n, f"{typed}(lam, n", 2)
        cut = as_float(threshold)
        if cut is None or not 0.5 < cut <= 1.0:
            raise ModelError(
                term=f"{typed}(lam, threshold={quoted(threshold)})",
                write_instead="write a share above 0.5, up to 1",
            )
        limit = None if expected_false is None else as_float(expected_false)
        if expected_false is not None and (limit is None or limit <= 0):
            raise ModelError(
                term=f"{typed}(lam, expected_false={quoted(expected_false)})",
                write_instead="write a number > 0, or None",
            )
        jobs_of(n_jobs)
        progress = as_flag(progress, f"{typed}(lam, progress", ModelError)
        if not isinstance(lam, Parameter):
            raise ModelError(
                f"{quoted(lam)} is not a parameter",
                term=typed,
                write_instead="write the Parameter of the model",
            )
        rng = generator(random_state, typed)
        tasks = data_of(problem, typed)
        units = units_of_rows(tasks, groups, f"{typed}(lam, groups)")
        grid = grid_of(problem, lam, values, typed)
        numbers = sorted(grid.values[lam], reverse=not grid.weaker_is_larger)
        two = needs_two_classes(problem)
        model = problem.with_tasks(tasks)
        work = []
        for k, own in enumerate(rng.spawn((n + 1) // 2)):
            sides = (0, 1) if 2 * k + 1 < n else (0,)
            work.append((_halves(tasks, units, own), sides))
        common = (model, lam, numbers, two, solve_options)

        def selection(pairs: list) -> StabilitySelection:
            return StabilitySelection.of(pairs, lam.name, numbers, tuple(tasks.feature_names), cut, limit)

        made.expect(len(work), selection)
        with progress_bar("pair of halves", len(work), progress) as tell:

            def say(halves: list) -> None:
                counts = [str(int(chosen.any(axis=(0, 2)).sum())) for chosen, _ in halves]
                tell(f"{' and '.join(counts)} features chosen")

            pairs = in_parallel(_chosen, common, tasks, work, n_jobs, made, tell=say)
        return selection(pairs)


def _halves(tasks: Tasks, units, rng) -> np.ndarray:
    """(n,) 0 or 1: complementary halves, with every task's labels on both as evenly as can be."""
    if tasks.is_shared or units is not None:
        return stratified_folds(labels_by_row(tasks), 2, True, units, rng)
    parts = [
        stratified_folds(y[:, None], 2, True, None, rng) if len(y) > 1 else np.zeros(1, int)
        for y in tasks.per_task(tasks.targets)
    ]
    return np.concatenate(parts)


def _chosen(common: tuple, tasks: Tasks, half, sides) -> list:
    """(Which weights are not zero (values, d, m), which tasks could be learned (m,)) on each of these sides."""
    model, lam, values, two, solve_options = common
    model, parameter = copy.deepcopy((model, lam), {id(tasks): tasks})
    found = []
    for side in sides:
        kept = (half == side).astype(int)
        can, _ = learnable(tasks, kept, two)
        chosen = np.zeros((len(values), tasks.n_features, len(can)), dtype=bool)
        if can.any():
            own = model_on_tasks(model, take_rows(tasks, kept, can), can)
            for k, solution in enumerate(own.path(parameter, values, **solve_options)):
                if solution.interrupted:
                    raise KeyboardInterrupt
                chosen[k][:, can] = solution.coef != 0
        found.append((chosen, can))
    return found


# --------------------------------------------------------------------------------------------------------------
# How sure weights are: the model learned again on rows drawn again.


@dataclass(eq=False, repr=False)
class WeightIntervals:
    """Weights on resampled rows.

    solution      on the rows as they are
    low, high     (d, m) percentile intervals of its weights W; low_intercept, high_intercept (m,), or None
    nonzero       (d, m) the share of samples in which a weight is not zero
    samples       (n, d, m), NaN for a task that could not be learned in a sample (`not_learned` (m,) counts these, and they are left out)
    statuses      (n,) of the solves
    table         a dict a weight: feature, task, weight, low, high, nonzero
    """

    solution: Solution
    samples: np.ndarray
    intercepts: np.ndarray | None
    statuses: list[str]
    level: float

    def __post_init__(self):
        samples, level = self.samples, self.level
        self.low, self.high = percentiles(samples, level)
        has = ~np.isnan(samples)
        times = has.sum(axis=0)
        counts = np.sum(has & (samples != 0), axis=0)
        self.nonzero = np.divide(counts, times, out=np.full(counts.shape, np.nan), where=times > 0)
        self.not_learned = np.isnan(samples[:, 0, :]).sum(axis=0)
        b = self.intercepts
        self.low_intercept, self.high_intercept = (None, None) if b is None else percentiles(b, level)

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


def bootstrap(
    problem: Any,
    n: int = 100,
    *,
    level: float = 0.95,
    groups=None,
    n_jobs: int | None = None,
    random_state=0,
    progress: bool = False,
    **solve_options,
) -> WeightIntervals:
    """Percentile intervals of the weights: the model learned on n samples of its rows, drawn with replacement, as many as there are.

    Shared inputs are drawn by rows, separate ones within every task; groups, (n,) as in `Tasks.folds`, whole. They say how much the
    weights of this (regularised) model depend on which rows came; they are not intervals of the weights without a penalty.
    A task of one class in a sample is not learned there, where the loss needs two; it is counted. n_jobs and progress as in
    `cross_validate`.

    Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.

    >>> import numpy as np, mtldsl as mtl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> tasks = mtl.Tasks.shared(X, 3.0 * X[:, :1] + rng.normal(size=(60, 1)))
    >>> W = mtl.Weights(tasks)
    >>> mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).bootstrap(50)
    95 % percentile intervals of 2 x 1 weights from 50 samples of the rows: 1 of 2 without 0
    """
    with in_parts("bootstrap", "sample", "samples") as made, defaults(cross_check="never"):
        n, level = as_count(n, "bootstrap(n", 2), checked_level(level, "bootstrap(n, level")
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
        with progress_bar("sample", n, progress) as tell:
            work = [(own,) for own in rng.spawn(n)]
            found = in_parallel(_learned, common, tasks, work, n_jobs, made, tell=lambda one: tell(one[2]))
        return intervals(found)


def _learned(common: tuple, tasks: Tasks, rng):
    """(weights (d, m), intercepts (m,), status) on one sample, NaN for tasks that cannot be learned on it."""
    model, units, two, blocks, solve_options = common
    times = draw_counts(tasks, units, rng)
    can, _ = learnable(tasks, times, two)
    m = len(can)
    if not can.any():
        return np.full((tasks.n_features, m), np.nan), np.full(m, np.nan), "stationary"
    own = model_on_tasks(copy.deepcopy(model, {id(tasks): tasks}), take_rows(tasks, times, can), can)
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
