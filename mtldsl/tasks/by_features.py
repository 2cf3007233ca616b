"""Sparse inputs by features: products with X^T, and the columns of some features, without a second copy of a large X."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.system.kept import cached_property
from mtldsl.tasks.stacked import csr_of, row_views

__all__ = ["ByFeatures", "row_parts", "squared_products"]

_STORED = 1 << 22  # entries up to which X^T is stored as well as X
_SLAB = 1 << 18  # numbers that are made beside the result at once
_BESIDE = 6  # by how many powers of 2 columns that are picked at once, which are made by rows first, are fewer entries than X
_FEW = 10  # times the entries of some columns that all have, where picking them pays
_SIDE_BY_SIDE = 4  # vectors from which on rows of a wide X^T beat columns of X


class ByFeatures:
    """X^T (d, n) of CSR X (n, d), float64 or float32: `by_features @ V`, `by_features[rows]`, `by_features.T` is X.

    A small X is stored twice. Products of a large one run over its rows, some at a time, which is also quicker where n > d: entries go to few
    places of memory. Its columns are picked in a pass over all entries, which is what one product costs.

    >>> columns = ByFeatures(sparse.csr_array([[1.0, 0.0], [2.0, 3.0]]))
    >>> columns @ np.array([1.0, 1.0]), columns.squares, columns[[1]].toarray()
    (array([3., 3.]), array([5., 9.]), array([[0., 3.]]))
    """

    def __init__(self, X, stored: int = _STORED):
        self.T = X
        self.shape = X.shape[::-1]
        self.is_stored = X.nnz <= stored

    @cached_property
    def whole(self) -> sparse.csr_array:
        """X^T in CSR: as large as X."""
        columns = self.T.tocsc()
        return csr_of(columns.data, columns.indices, columns.indptr, self.shape[1])

    @cached_property
    def _columns(self):
        """X^T on the arrays of X: a small product takes less time than to make it."""
        return self.T.T

    def __getitem__(self, rows) -> sparse.csr_array:
        """(p, n) CSR: the columns of those features; rows : a list or an array of them."""
        if self.is_stored:
            return self.whole[rows]
        rows = np.asarray(rows)
        ends = np.concatenate([[0], np.cumsum(self.counts[rows])])
        if ends[-1] <= max(self.T.nnz >> _BESIDE, _SLAB):
            return sparse.csr_array(self.T[:, rows].T)
        data, indices = np.empty(ends[-1], self.T.dtype), np.empty(ends[-1], self.T.indices.dtype)
        at = ends[:-1].copy()  # where the next entry of every column belongs
        for X, some in row_parts(self.T, max(_SLAB, self.shape[0])):
            part = X[:, rows].tocsc()
            sizes = np.diff(part.indptr)
            places = np.repeat(at - part.indptr[:-1], sizes)
            places += np.arange(places.size)
            data[places] = part.data
            part.indices += some.start
            indices[places] = part.indices
            at += sizes
        return csr_of(data, indices, ends.astype(self.T.indices.dtype, copy=False), self.shape[1])

    def places(self, rows) -> tuple[sparse.csr_array, np.ndarray]:
        """(CSR, in which of its rows the columns of those features are): X^T itself where it is stored."""
        return (self.whole, rows) if self.is_stored else (self[rows], np.arange(len(rows)))

    def __matmul__(self, V) -> np.ndarray:
        """X^T V for V (n,) or (n, k)."""
        d, n = self.shape
        if self.is_stored and n < d:
            return np.asarray(self.whole @ V)
        parts = self._slabs(_width(V))
        if len(parts) == 1:
            return np.asarray(self._columns @ V)
        total = np.zeros((d, *V.shape[1:]))
        for X, rows in parts:
            total += X.T @ V[rows]
        return total

    def image(self, W) -> np.ndarray:
        """(k, n) contiguous: the transpose of X W, for W (d, k)."""
        d, n = self.shape
        if self.is_stored:  # a sparse solution's predictions are made of few columns
            used = np.flatnonzero(W.any(axis=1))
            if _FEW * self.counts[used].sum() <= self.T.nnz:
                return np.ascontiguousarray(np.asarray(self.whole[used].T @ W[used]).T)
        if self.is_stored and n < d and W.shape[1] >= _SIDE_BY_SIDE:
            return np.ascontiguousarray(np.asarray(self.whole.T @ W).T)
        out = np.empty((W.shape[1], n))
        W = np.ascontiguousarray(W)
        for X, rows in self._slabs(_width(W)):
            out[:, rows] = (X @ W).T
        return out

    @cached_property
    def counts(self) -> np.ndarray:
        """(d,) stored entries of every feature."""
        return np.diff(self.whole.indptr) if self.is_stored else self._sums(None)

    @cached_property
    def squares(self) -> np.ndarray:
        """(d,) squared lengths of the columns."""
        if self.is_stored:
            sums, some = (
                np.zeros(self.shape[0]),
                np.flatnonzero(self.counts),
            )  # `reduceat` knows no empty sums
            if some.size:
                values = np.square(self.whole.data, dtype=float)
                sums[some] = np.add.reduceat(values, self.whole.indptr[some])
            return sums
        return self._sums(lambda values: np.square(values, dtype=float))

    def squared_products(self, V) -> np.ndarray:
        """(d, k) or (d,): the product of X^T, its entries squared, with V."""
        total = np.zeros((self.shape[0], *V.shape[1:]))
        for X, rows in self._slabs(max(_width(V), self.T.nnz // max(self.shape[1], 1))):
            total += _squared(X).T @ V[rows]
        return total

    def _sums(self, of) -> Any:
        total = 0
        for first in range(0, max(self.T.nnz, 1), _SLAB):
            some = slice(first, first + _SLAB)
            weights = None if of is None else of(self.T.data[some])
            total = total + np.bincount(self.T.indices[some], weights, minlength=self.shape[0])
        return total

    def _slabs(self, numbers: int) -> list[tuple[Any, slice]]:
        """[(some rows of X, without a copy, which)]: of `numbers` a row together no more than is made at once, but for d of them."""
        return _in_parts(self.T, max(_SLAB // max(numbers, 1), self.shape[0], 1))


def row_parts(X, entries: int) -> list[tuple[Any, slice]]:
    """[(some rows of CSR X, without a copy, which)]: parts of about so many entries."""
    return _in_parts(X, max(entries * X.shape[0] // max(X.nnz, 1), 1))


def _in_parts(X, step: int) -> list[tuple[Any, slice]]:
    n = X.shape[0]
    if n <= step:
        return [(X, slice(0, n))]
    ends = np.append(np.arange(0, n, step), n)
    rows = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    return list(zip(row_views(X, ends), rows, strict=True))


def _width(V) -> int:
    return V.shape[1] if V.ndim == 2 else 1


def _squared(X) -> sparse.csr_array:
    return csr_of(np.square(X.data, dtype=float), X.indices, X.indptr, X.shape[1])


def squared_products(Xt: sparse.csr_array, V) -> np.ndarray:
    """The product of V, sparse or not, (n,) or (n, k), with columns (p, n) of some features, their entries squared.

    >>> squared_products(sparse.csr_array([[1.0, 2.0]]), np.array([1.0, 1.0]))
    array([5.])
    """
    ends, first, parts = Xt.indptr, 0, []
    while first < Xt.shape[0]:
        last = max(int(np.searchsorted(ends, ends[first] + _SLAB, side="right")) - 1, first + 1)
        product = _squared(row_views(Xt, np.array([first, last]))[0]) @ V
        parts.append(product.toarray() if sparse.issparse(product) else product)
        first = last
    return np.concatenate(parts) if parts else np.zeros((0, *V.shape[1:]))
