"""Stability selection: which features a sparse model chooses again and again, on halves of the data."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mtldsl.analysis.cross_validation import fit_to
from mtldsl.analysis.grid import grid_of
from mtldsl.analysis.in_parallel import Parts, in_parallel, jobs_of
from mtldsl.analysis.parts import data_of, learnable, needs_two_classes, taken
from mtldsl.errors import ModelError
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.system.told import counted
from mtldsl.tasks import Tasks
from mtldsl.tasks.dealing import deal_table
from mtldsl.tasks.folding import labels_by_row
from mtldsl.tasks.resampling import checked_times, units_of_rows
from mtldsl.values.number import as_float, quoted
from mtldsl.values.option import as_flag
from mtldsl.values.seed import generator

__all__ = ["StabilitySelection", "stability_selection"]


class StabilitySelection:
    r"""Selection probabilities over halves of the rows.

    values         the values of the parameter, the most regularised first; `used`, how many of them count
    frequencies    (values, d, m) the share of halves in which a weight is not zero; feature_frequencies (values, d), in which any of a
                   feature's is not
    probabilities  (d,) the largest of feature_frequencies over the values that count; weight_probabilities (d, m) of frequencies
    selected       names of the features whose probability is at least the threshold, the most probable first
    chosen         q, how many features a half chooses anywhere among the values that count, on average
    expected_false q^2 / ((2 threshold - 1) d): no more of the features that have no influence are expected among those selected, where
                   these are exchangeable and the model chooses no worse than at random (Meinshausen and Buehlmann, theorem 1)
    """

    def __init__(
        self,
        name: str,
        values,
        ever: np.ndarray,
        frequencies,
        feature_frequencies,
        features,
        threshold: float,
        limit,
        n: int,
    ):
        self.name, self.values, self.frequencies, self.feature_frequencies = (
            name,
            values,
            frequencies,
            feature_frequencies,
        )
        self.features, self.threshold, self.n = tuple(features), threshold, n
        d = len(features)
        bounds = ever**2 / ((2.0 * threshold - 1.0) * d)
        beyond = np.zeros(len(values), bool) if limit is None else bounds > limit
        self.used = int(np.argmax(beyond)) if beyond.any() else len(values)
        self.chosen = float(ever[self.used - 1]) if self.used else 0.0
        self.expected_false = float(bounds[self.used - 1]) if self.used else 0.0
        m = frequencies.shape[2]
        self.probabilities = feature_frequencies[: self.used].max(axis=0) if self.used else np.zeros(d)
        self.weight_probabilities = frequencies[: self.used].max(axis=0) if self.used else np.zeros((d, m))

    @property
    def selected(self) -> list[str]:
        order = np.argsort(-self.probabilities, kind="stable")
        return [self.features[j] for j in order if self.probabilities[j] >= self.threshold]

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
    lam,
    values,
    n,
    threshold,
    expected_false,
    groups,
    n_jobs,
    random_state,
    progress,
    solve_options: dict,
    made: Parts,
) -> StabilitySelection:
    """See `Problem.stability_selection`. made : gets every pair of halves as it is complete."""
    typed = "stability_selection"
    n = checked_times(n, f"{typed}(lam, n")
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
            f"{quoted(lam)} is not a parameter", term=typed, write_instead="write the Parameter of the model"
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
        found = [half for halves in pairs for half in halves]
        is_chosen = np.stack([half for half, _ in found])  # (n, values, d, m)
        can = np.stack([there for _, there in found])
        times = np.maximum(can.sum(axis=0), 1)
        of_features = is_chosen.any(axis=3)
        ever = np.logical_or.accumulate(of_features, axis=1).sum(axis=2).mean(axis=0)
        return StabilitySelection(
            lam.name, numbers, ever, is_chosen.sum(axis=0) / times, of_features.mean(axis=0), tasks.feature_names, cut, limit, len(found)
        )  # fmt: skip

    made.expect(len(work), selection)
    with counted("pair of halves", len(work), progress) as tell:
        pairs = in_parallel(
            _chosen, common, tasks, work, n_jobs, made, tell=lambda halves: tell(_said(halves))
        )
    return selection(pairs)


def _said(halves: list) -> str:
    counts = [int(chosen.any(axis=(0, 2)).sum()) for chosen, _ in halves]
    return f"{' and '.join(map(str, counts))} features chosen"


def _halves(tasks: Tasks, units, rng) -> np.ndarray:
    """(n,) 0 or 1: complementary halves, with every task's labels on both as evenly as can be."""
    if tasks.is_shared or units is not None:
        return deal_table(labels_by_row(tasks), 2, True, units, rng)
    parts = [
        deal_table(y[:, None], 2, True, None, rng) if len(y) > 1 else np.zeros(1, int)
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
            own = fit_to(model, taken(tasks, kept, can), can)
            for k, solution in enumerate(own.path(parameter, values, **solve_options)):
                if solution.interrupted:
                    raise KeyboardInterrupt
                chosen[k][:, can] = solution.coef != 0
        found.append((chosen, can))
    return found
