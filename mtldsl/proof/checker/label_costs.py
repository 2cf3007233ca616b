"""The checker's own formulas of what labellings of a row cost beside the true one."""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.interval import Interval
from mtldsl.proof.checker.metrics import METRICS
from mtldsl.proof.checker.not_checked import NotChecked
from mtldsl.proof.checker.products import product

__all__ = ["LabelCosts"]


class LabelCosts:
    """Delta of K labels: "hamming", a cost a label, "zero_one", a metric (its plain form), or [[clique, table], ...] of costs[true, given]."""

    def __init__(self, loss, n_labels: int, exact: bool):
        self.loss, self.K, self.exact = loss, n_labels, exact
        if isinstance(loss, dict):
            if loss.get("metric") not in METRICS or not METRICS[loss["metric"]].every_labelling:
                raise NotChecked(f"clique_hinge with loss={loss.get('metric')}")
            self.of = self._of_metric
        elif isinstance(loss, str):
            if loss not in ("hamming", "zero_one"):
                raise NotChecked(f"clique_hinge with loss={loss!r}")
            self.of = self._hamming if loss == "hamming" else self._zero_one
        elif not isinstance(loss[0], (list, tuple)):
            self.costs = np.asarray(loss, float)
            if self.costs.shape != (self.K,):
                raise ValueError(f"clique_hinge of {self.K} labels with {len(self.costs)} costs")
            self.of = self._hamming
        else:
            self.tables = [(list(clique), np.asarray(table, float)) for clique, table in loss]
            for clique, table in self.tables:
                if np.any(np.diag(table) != 0) or max(clique) >= self.K:
                    raise NotChecked("clique_hinge with a table of costs that does not fit")
            self.of = self._of_tables
        self._known: dict[bytes, Interval] = {}

    def number(self, x) -> Interval:
        return Interval.of(x, self.exact)

    def beside(self, every, truth) -> Interval:
        """(n, L): of labellings (L, K), the same at every call, beside the true ones (n, K)."""
        parts = []
        for own in np.asarray(truth):
            key = own.tobytes()
            if key not in self._known:
                self._known[key] = self.of(every, own)
            parts.append(self._known[key])
        return Interval(np.stack([p.low for p in parts]), np.stack([p.high for p in parts]))

    # a label that is missing is neither 0 nor 1, the same in the true labelling and in those beside it

    def _hamming(self, labels, own) -> Interval:
        costs = np.ones(self.K) if isinstance(self.loss, str) else self.costs
        return product((labels != own).astype(float), self.number(costs))

    def _zero_one(self, labels, own) -> Interval:
        return self.number((labels != own).any(axis=1).astype(float))

    def _of_metric(self, labels, own) -> Interval:
        positives, negatives = int((own == 1).sum()), int((own == 0).sum())
        metric = METRICS[self.loss["metric"]](self.loss, positives, negatives, self.exact)
        b = ((labels == 1) & (own == 0)).sum(axis=1)
        c = ((labels == 0) & (own == 1)).sum(axis=1)
        wrong = np.flatnonzero(b + c > 0)
        costs = self.number(np.zeros(len(labels)))
        if not len(wrong):
            return costs
        found = metric.delta(b[wrong], c[wrong])
        if not (np.asarray(found.low) >= 0).all():
            raise NotChecked(
                f"clique_hinge with loss={self.loss['metric']}, which is below 0 or not defined for a row"
            )
        return costs.with_entries(wrong, found)

    def _of_tables(self, labels, own) -> Interval:
        total = self.number(np.zeros(len(labels)))
        for clique, table in self.tables:
            if not np.isin(own[clique], (0, 1)).all():
                continue
            bits = 2 ** np.arange(len(clique))[::-1]
            total = total + self.number(table[own[clique] @ bits, labels[:, clique] @ bits])
        return total
