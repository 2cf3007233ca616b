"""All weights of all samples at once: a step on the face of the simplices where the random labellings are."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.labellings.ascent import Ascent

__all__ = ["FaceSteps"]

#: Products of conjugate gradients in one step at most, and the reduction of the residual that ends them.
_PRODUCTS, _REDUCTION = 20, 0.1
#: Directions along which the dual is flat but for rounding.
_FLAT = 1e-14
#: Epochs between two steps, at least and at most; and before the first one.
_FEWEST, _MOST, _FIRST = 1, 32, 8
#: A step pays where it raises the dual value by so many times what the last epoch did.
_PAYS = 2.0


class FaceSteps:
    """Newton's method by conjugate gradients on the weights that are positive, their sum in every sample kept.

    One sample at a time converges slowly where samples pull the same weights; most have settled on one labelling by then, and the
    quadratic of the others is small. A step that leaves a simplex is projected back, and shortened until the dual value rises.
    """

    def __init__(self, ascent: Ascent):
        self.ascent, self.pause, self.next = ascent, _FEWEST, _FIRST

    def after_epoch(self, gain: float) -> None:
        """A step where it is time for one; `gain` is what the epoch has added to the dual value."""
        if self.ascent.epochs < self.next:
            return
        own = self.step()
        pays = own > _PAYS * max(gain, 0.0)
        self.pause = max(_FEWEST, self.pause // 2) if pays else min(_MOST, 2 * self.pause)
        self.next = self.ascent.epochs + self.pause

    def step(self) -> float:
        """What it adds to the dual value."""
        a = self.ascent
        used = a.alpha > 0.0
        rows = np.flatnonzero(used.sum(axis=1) > 1)
        if not rows.size:
            return 0.0
        face = _Face(a, rows, used[rows])
        way = face.direction()
        before, start = a.raised(), a.multipliers
        length = 1.0
        for _ in range(8):
            alpha = face.projected(face.alpha + length * way)
            moved = start - face.image(alpha - face.alpha)
            rise = a.raised(moved, face.promised(alpha)) - before
            if rise > 0.0:
                a.alpha[face.places] = alpha
                a.multipliers = moved
                a.recompute()
                return rise
            length *= 0.25
        return 0.0


class _Face:
    def __init__(self, ascent: Ascent, rows, used):
        self.a, self.X, self.truth = ascent, ascent.X[rows], ascent.truth[rows]
        self.row, slot = np.nonzero(used)
        self.starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        self.places = rows[self.row], slot
        self.labels = ascent.labels[self.places]
        self.entries = ascent.cliques.chosen(self.labels)
        self.weight = ascent.weights[self.places[0]]
        self.delta = ascent.atom.delta(self.labels, ascent.truth[self.places[0]])
        self.alpha = ascent.alpha[self.places]
        self.factors = ascent.entry_factors()

    def direction(self) -> np.ndarray:
        """Conjugate gradients for the quadratic that the dual is while the shares of cliques stay."""
        slope = self._centred(self.weight * (self.delta + self._scores(self.a.weight_rows())))
        way, residual = np.zeros_like(slope), slope
        search, size = residual, float(residual @ residual)
        first, steepest = size, self._steepest()
        for _ in range(_PRODUCTS):
            if size <= _REDUCTION**2 * first:
                break
            bent = self._bent(search)
            curvature = float(search @ bent)
            if not curvature > _FLAT * float(search @ search) * steepest:
                break
            length = size / curvature
            way = way + length * search
            residual = residual - length * bent
            size, last = float(residual @ residual), size
            search = residual + (size / last) * search
        return way

    def _steepest(self) -> float:
        """The largest curvature along one weight, of which rounding leaves a share in flat directions."""
        lengths = np.einsum("ij,ij->i", self.X, self.X)[self.row]
        return float(np.max(self.weight**2 * lengths)) * float(self.factors.max(initial=0.0))

    def _bent(self, direction) -> np.ndarray:
        rows = self.image(direction) * self.factors[:, None]
        return self._centred(self.weight * self._scores(rows))

    def _centred(self, values) -> np.ndarray:
        """With the mean of every sample taken off: weights keep their sum."""
        counts = np.diff(self.starts)
        return values - np.repeat(np.add.reduceat(values, self.starts[:-1]) / counts, counts)

    def _scores(self, rows) -> np.ndarray:
        """The score of every labelling with the weights (S, d)."""
        from mtldsl.solvers.kernels.labelling_face import gather

        sums = np.empty(self.row.size)
        scores = self.a.cliques.within(self.X @ rows.T, self.truth)
        gather(scores, self.row, self.entries, sums)
        return sums

    def image(self, change) -> np.ndarray:
        """(S, d) what a change of the weights of labellings takes off the multipliers."""
        from mtldsl.solvers.kernels.labelling_face import scatter

        table = np.zeros((len(self.X), self.a.cliques.n_entries))
        scatter(change * self.weight, self.row, self.entries, table)
        table = self.a.cliques.within(table, self.truth)
        return self.a.seen_by_edges(table.T @ self.X)

    def projected(self, alpha) -> np.ndarray:
        from mtldsl.solvers.kernels.labelling_face import project_groups

        project_groups(alpha, self.starts, np.empty(np.diff(self.starts).max(initial=0)))
        return alpha

    def promised(self, alpha) -> float:
        """By how much the expected losses differ from those now."""
        return float((self.weight * self.delta) @ (alpha - self.alpha))
