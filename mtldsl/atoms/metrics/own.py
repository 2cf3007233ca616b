"""Metrics that a user wrote: what their `delta` says is checked once, and what their own oracle finds at every certificate."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.function import REGISTRY
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.violation import Classes, Violation
from mtldsl.errors import ModelError

__all__ = ["check_delta", "check_oracle", "is_own"]

#: Tables that are looked at one by one; of larger tasks a grid of GRID x GRID.
MOST_TABLES, GRID = 4_000_000, 500

_HOW = (
    "write delta(self, b, c, positives, negatives) for arrays of whole numbers b and c that broadcast, such as 0.5 * (b / negatives + "
    "c / positives): 0 where b = c = 0, elsewhere >= 0, or -inf to forbid"
)


def is_own(metric: Metric) -> bool:
    return REGISTRY.get(metric.name) is not type(metric)


def check_delta(metric: Metric, positives: int, negatives: int) -> None:
    """ModelError where delta fails on such a task, or is not a loss of labellings."""
    b, c = (_counts(largest, positives, negatives) for largest in (negatives, positives))
    try:
        table = metric.table(b[None, :], c[:, None], positives, negatives)
    except NotImplementedError:
        raise ModelError(f"{metric!r}: the class {metric.name} has no delta; {_HOW}") from None
    except Exception as error:  # whatever a user's function raises is a mistake in it
        raise ModelError(
            f"{metric!r}: its delta fails with {type(error).__name__}: {error}; {_HOW}"
        ) from error
    wrong = np.isnan(table) | ((table < 0) & ~np.isneginf(table)) | np.isposinf(table)
    wrong[0, 0] |= table[0, 0] != 0.0
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise ModelError(
            f"{metric!r}: its delta is {table[i, j]:g} at b={int(b[j])}, c={int(c[i])} of {positives} positives and {negatives} "
            f"negatives; {_HOW}"
        )


def check_oracle(metric: Metric, z, classes: Classes, found: Violation) -> None:
    """ModelError where the class's own best_counts or limits missed a table that is worth more."""
    kind = type(metric)
    if not metric.labellings or (kind.best_counts is Metric.best_counts and kind.limits is Metric.limits):
        return
    up, down = np.sort(z[classes.positive]), np.sort(-z[classes.negative])
    sizes = len(up), len(down)
    b, c = _counts(sizes[1], *sizes), _counts(sizes[0], *sizes)
    gains = (np.append(0.0, -2.0 * np.cumsum(margins)) for margins in (up, down))
    of_positives, of_negatives = gains
    worth = metric.table(b[None, :], c[:, None], *sizes) + of_negatives[b][None, :] + of_positives[c][:, None]
    best = float(worth.max())
    if best > found.value + 1e-9 * (1.0 + abs(best)):
        i, j = np.unravel_index(int(np.argmax(worth)), worth.shape)
        raise ModelError(
            f"{metric!r}: its best_counts or limits found a labelling worth {found.value:.10g} where b={int(b[j])}, c={int(c[i])} is "
            f"worth {best:.10g}; correct them, or leave them out of the class {metric.name}"
        )


def _counts(largest: int, positives: int, negatives: int) -> np.ndarray:
    """0 to `largest`, all of them where the tables are few."""
    if (positives + 1) * (negatives + 1) <= MOST_TABLES:
        return np.arange(largest + 1)
    return np.unique(np.linspace(0, largest, GRID).astype(int))
