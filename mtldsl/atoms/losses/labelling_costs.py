"""What a labelling of a row costs beside the true one, where that is not a sum over its labels: `loss=` of `clique_hinge`."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import DataError, ModelError
from mtldsl.inference import GAP
from mtldsl.system.memory import gib
from mtldsl.values.number import as_float

__all__ = ["MOST_LABELS", "CostTables", "OfMetric", "WholeCosts", "ZeroOne", "whole_costs"]

#: All 2^K labellings are looked at: so many labels at most, and so many costs of all labellings beside all true ones.
MOST_LABELS, _MOST_COSTS = 16, 2**26


class WholeCosts:
    """Delta(y, y_i) of whole labellings, looked up in a table of all of them: a row for each true labelling that occurs.

    Labelling number r has label k in bit k. Where a true label is a gap, every value of it costs the same: what is counted is the
    observed labels alone, by `delta` and so by the table.
    """

    def __init__(self) -> None:
        self._last: tuple[bytes, np.ndarray, np.ndarray] | None = None

    def delta(self, labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """(L,) of labellings (L, K) of 0 and 1, each beside its true one, which may have gaps."""
        raise NotImplementedError

    def check(self, n_labels: int) -> None:
        """ModelError where it is not of so many labels."""

    def beside(self, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(for every row of truth (n, K) its row of the table, the table (T, 2^K)). The last answer is kept."""
        truth = np.ascontiguousarray(truth, dtype=np.uint8)
        key = truth.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, *self._looked_up(truth)
        return self._last[1:]

    def _looked_up(self, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        patterns, rows = np.unique(truth, axis=0, return_inverse=True)
        K = truth.shape[1]
        if len(patterns) * 2.0**K > _MOST_COSTS:
            raise DataError(
                f"{len(patterns):,} different true labellings of {K} labels have {gib(8.0 * len(patterns) * 2**K)} of costs; a loss of whole "
                "labellings keeps them in a table: give fewer labels or rows"
            )
        every = every_labelling(K)
        table = np.stack([self.delta(every, np.broadcast_to(own, every.shape)) for own in patterns])
        return rows.ravel().astype(np.int64), np.ascontiguousarray(table)


def every_labelling(n_labels: int) -> np.ndarray:
    """(2^K, K): number r has label k in bit k."""
    return ((np.arange(2**n_labels)[:, None] >> np.arange(n_labels)) & 1).astype(np.uint8)


class ZeroOne(WholeCosts):
    """1 for every labelling but the true one."""

    def delta(self, labels, truth):
        return np.any((labels != truth) & (truth != GAP), axis=1).astype(float)


class OfMetric(WholeCosts):
    """Delta of a metric, the labels of a row as its samples: b false positives, c false negatives. A row without positives that are asked
    for, b = c = 0, costs nothing."""

    def __init__(self, metric: Metric):
        super().__init__()
        self.metric = metric

    def check(self, n_labels):
        if not self.metric.labellings or self.metric.fixes_positives:
            raise ModelError(f"loss={self.metric!r} is not of labellings of any number of positives")

    def delta(self, labels, truth):
        ones, zeros = truth == 1, truth == 0
        positives, negatives = ones.sum(axis=1), zeros.sum(axis=1)
        b, c = np.sum((labels > 0) & zeros, axis=1), np.sum((labels == 0) & ones, axis=1)
        found = np.zeros(len(labels))
        wrong = b + c > 0
        with np.errstate(all="ignore"):
            found[wrong] = self.metric.delta(b[wrong], c[wrong], positives[wrong], negatives[wrong])
        if not np.all(np.isfinite(found) & (found >= 0.0)):
            k = int(np.argmin(np.isfinite(found) & (found >= 0.0)))
            raise ModelError(
                f"loss={self.metric!r} is {found[k]:g} where {b[k]} labels too many and {c[k]} too few are 1, in a row with {positives[k]} "
                f"of {positives[k] + negatives[k]} true ones: it has to be a finite number >= 0 for all rows, as FScore() and Jaccard() are"
            )
        return found


class CostTables(WholeCosts):
    """Sums over cliques of a table entry: cost[true values, values], 2^|c| by 2^|c|, values numbered as the columns of a clique are. A clique
    with a gap costs nothing."""

    def __init__(self, tables):
        super().__init__()
        self.tables = [(tuple(clique), np.asarray(table, float)) for clique, table in tables]

    def check(self, n_labels):
        for clique, _ in self.tables:
            if max(clique) >= n_labels:
                raise ModelError(f"there are costs of label {max(clique)}, and {n_labels} labels")

    def delta(self, labels, truth):
        total = np.zeros(len(labels))
        for clique, table in self.tables:
            bits = 2 ** np.arange(len(clique))[::-1]
            own, given = truth[:, list(clique)].astype(int), labels[:, list(clique)].astype(int)
            rows = np.flatnonzero((own != GAP).all(axis=1))
            total[rows] += table[own[rows] @ bits, given[rows] @ bits]
        return total


def whole_costs(loss: Any) -> WholeCosts | None:
    """What stands behind `loss=`, where it is not a cost a label; None where it is, or is nothing that is known."""
    if isinstance(loss, str):
        return ZeroOne() if loss == "zero_one" else None
    if isinstance(loss, Metric):
        return OfMetric(loss)
    if isinstance(loss, tuple) and loss and all(isinstance(one, tuple) and len(one) == 2 for one in loss):
        return CostTables(loss)
    return None


def checked_tables(tables, typed: str) -> tuple:
    """((clique, table as tuples of numbers), ...) of {clique of positions: table}; ModelError where one is not a table of costs."""
    found = []
    for clique, table in tables:
        side = 2 ** len(clique)
        rows = [list(row) for row in table] if np.ndim(table) == 2 else []
        numbers = [as_float(cost) for cost in chain.from_iterable(rows)]
        fits = len(rows) == side and all(len(row) == side for row in rows)
        if not fits or not all(cost is not None and 0.0 <= cost < np.inf for cost in numbers):
            raise ModelError(
                f"the costs of {len(clique)} labels together are a table of {side} by {side} finite numbers >= 0: a row for the true values, "
                "a column for those predicted, each numbered 00, 01, 10, 11",
                term=typed,
            )
        values = np.asarray(rows, float)
        if np.any(np.diag(values) != 0.0):
            raise ModelError("right values cost nothing: the diagonal of a table of costs is 0", term=typed)
        if len(set(clique)) < len(clique):
            raise ModelError("a table of costs is of different labels", term=typed)
        found.append((tuple(clique), tuple(map(tuple, values.tolist()))))
    return tuple(found)
