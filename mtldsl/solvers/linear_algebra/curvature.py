"""The curvature M (I - D) that a copied term adds to the augmented Lagrangian, D the derivative of its prox, in parts that linear
algebra can use: a diagonal, blocks within columns, a few rank-one terms, or products only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.solvers.linear_algebra.split import Copy, Split

__all__ = ["Curvatures", "Part", "curvature_kind", "find_curvatures"]

_DIFFERENCE = 1e-7  # relative step of differences of the prox
_ZERO = 1e-5  # what differences leave of a zero
_LARGEST_ROW = 160  # entries of a row (or column) whose derivative is found entry by entry


@dataclass
class Part:
    """diag(weights) + sum_r scales[r] vectors[r] vectors[r]^T on one copy, or blocks (q, p, p), one a column."""

    weights: np.ndarray | None = None  # flat
    blocks: np.ndarray | None = None
    vectors: np.ndarray | None = None  # (r, size of the copy)
    scales: np.ndarray | None = None

    def product(self, change: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The part times one vector of the copy."""
        total = np.zeros_like(change) if self.weights is None else self.weights * change
        if self.vectors is not None:
            total = total + self.vectors.T @ (self.scales * (self.vectors @ change))
        if self.blocks is not None:
            total = total + np.einsum("cij,jc->ic", self.blocks, change.reshape(shape)).ravel()
        return total


@dataclass
class Curvatures:
    """One part a copy; None where only `product` knows the copy's curvature."""

    split: Split
    parts: list[Part | None]
    xi: np.ndarray
    w: np.ndarray
    metric: np.ndarray

    def product(self, copy: Copy, change: np.ndarray) -> np.ndarray:
        """M (I - D) change of one copy, by a difference of the prox; `change` is flat over all copies."""
        part = change[copy.rows]
        size = np.linalg.norm(part)
        if size == 0.0:
            return np.zeros_like(part)
        step = _DIFFERENCE * max(np.linalg.norm(self.xi[copy.rows]), 1e-12) / size
        moved = self.split.prox(self.xi + step * change, self.metric, [copy])[copy.rows]
        return self.metric[copy.rows] * (part - (moved - self.w[copy.rows]) / step)


def find_curvatures(split: Split, xi: np.ndarray, w: np.ndarray, metric: np.ndarray) -> Curvatures:
    """The curvatures at xi, where prox(xi) = w."""
    finders = {"entries": _by_entries, "columns": _by_columns, "rows": _by_rows, None: lambda *_: None}
    parts = [finders[curvature_kind(copy)](split, copy, xi, w, metric) for copy in split.copies]
    return Curvatures(split, parts, xi, w, metric)


def curvature_kind(copy: Copy) -> str | None:
    """The parts in which the copy's curvature comes: along "entries", "columns" or "rows"; None: as products only."""
    if copy.is_loss:
        return "entries" if copy.term.atom.separable else None
    kind: str | None = copy.term.atom.separable
    if kind == "entries":
        return kind
    if kind == "columns" and copy.shape[0] <= _LARGEST_ROW:
        return kind
    return "rows" if kind == "rows" and copy.shape[1] <= _LARGEST_ROW else None


def _by_entries(split, copy, xi, w, metric) -> Part:
    here = np.abs(xi[copy.rows])
    change = _DIFFERENCE * (here + here.mean() + np.finfo(float).tiny)
    moved = xi.copy()
    moved[copy.rows] += change
    slopes = (split.prox(moved, metric, [copy])[copy.rows] - w[copy.rows]) / change
    slopes = np.clip(slopes, 0.0, 1.0)
    return Part(weights=metric[copy.rows] * np.where(slopes > 1.0 - _ZERO, 0.0, 1.0 - slopes))


def _derivatives(split, copy, xi, metric, axis: int) -> np.ndarray:
    """I - D along one axis of the copy: (lines, length, length), the lines being rows (axis 1) or columns (axis 0)."""
    lines, length = copy.shape[1 - axis], copy.shape[axis]
    size = np.abs(xi[copy.rows]).reshape(copy.shape).max(axis=axis, initial=0.0)
    size = size + size.mean() + np.finfo(float).tiny  # one a line
    # At a kink, differences in several entries would belong to different sides of it: move off it first.
    side = _DIFFERENCE * np.random.default_rng(0).uniform(-1.0, 1.0, copy.shape)
    here = xi.copy()
    here[copy.rows] += (side * np.expand_dims(size, axis)).ravel()
    w = split.prox(here, metric, [copy])[copy.rows]
    change = 1e-3 * _DIFFERENCE * size
    D = np.empty((lines, length, length))
    for k in range(length):
        at = (slice(None), k) if axis == 1 else k
        moved = here.copy()
        moved[copy.rows].reshape(copy.shape)[at] += change
        difference = (split.prox(moved, metric, [copy])[copy.rows] - w).reshape(copy.shape)
        D[:, :, k] = (difference if axis == 1 else difference.T) / change[:, None]
    return np.eye(length) - 0.5 * (D + D.transpose(0, 2, 1))


def _by_columns(split, copy, xi, w, metric) -> Part:
    M = metric[copy.rows.start]
    if hasattr(copy.term.atom, "curvature_blocks"):  # known without differences
        return Part(blocks=M * copy.term.atom.curvature_blocks(xi[copy.rows].reshape(copy.shape), 1.0 / M))
    return Part(blocks=M * _derivatives(split, copy, xi, metric, axis=0))


def _by_rows(split, copy, xi, w, metric) -> Part:
    """A multiple of the identity on the entries of each row that are not free, and the rank that is missing to it."""
    p, q = copy.shape
    weights = np.zeros((p, q))
    vectors, scales = [], []
    for r, B in enumerate(_derivatives(split, copy, xi, metric, axis=1)):
        bound = np.diag(B) > _ZERO
        count = int(bound.sum())
        if count == 0:
            continue
        B = B[np.ix_(bound, bound)]
        if np.abs(B - np.diag(np.diag(B))).max() <= _ZERO:
            weights[r, bound] = np.diag(B)
            continue
        values, basis = np.linalg.eigh(B)
        usual = values[count // 2]
        weights[r, bound] = usual
        for value, vector in zip(values - usual, basis.T, strict=True):
            if abs(value) > _ZERO:
                whole = np.zeros((p, q))
                whole[r, bound] = vector
                vectors.append(whole.ravel())
                scales.append(value)
    M = metric[copy.rows.start]
    if not vectors:
        return Part(weights=M * weights.ravel())
    return Part(M * weights.ravel(), None, np.array(vectors), M * np.array(scales))
