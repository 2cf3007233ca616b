"""Rows as few by orthogonal reflections, part by part: what sums of squares would lose to cancellation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack

from mtldsl.compile.terms.few_rows import Factor, Factors
from mtldsl.compile.terms.moments import is_one_table, mean_of, moments_of, row_slabs, summed

if TYPE_CHECKING:
    from mtldsl.tasks import Tasks
    from mtldsl.tasks.distributed.parts import Part

__all__ = ["Triangle", "factors_of"]

#: The key of the rows that tasks have in common.
_TOGETHER = -1


@dataclass(frozen=True, eq=False)
class Triangle:
    """Rows Q^T [1, X - c] = [R; 0] and Q^T (Y - e) = [Z; .], Q orthogonal, of rows times the roots of their weights.

    R (r, d+1), Z (r, l);  rest (l,): squares of the labels that have no row of R;  centre c (d,), label_centre e (l,)
    `+` is that of both parts' rows, around one centre.
    Source: Demmel, Grigori, Hoemmen and Langou, "Communication-optimal parallel and sequential QR and LU factorizations", 2012 (TSQR).
    """

    n: int
    centre: np.ndarray
    label_centre: np.ndarray
    R: np.ndarray
    Z: np.ndarray
    rest: np.ndarray

    def __add__(self, other: Triangle) -> Triangle:
        n = self.n + other.n
        centre = self.centre + (other.centre - self.centre) * (other.n / n)
        labels = self.label_centre + (other.label_centre - self.label_centre) * (other.n / n)
        one, two = self._around(centre, labels), other._around(centre, labels)
        R, Z = (np.vstack(pair) for pair in zip(one, two, strict=True))
        return Triangle(n, centre, labels, R, Z, self.rest + other.rest).reduced()

    def _around(self, centre, labels) -> tuple[np.ndarray, np.ndarray]:
        R, ones = self.R.copy(), self.R[:, :1]
        R[:, 1:] += ones * (self.centre - centre)
        return R, self.Z + ones * (self.label_centre - labels)

    def reduced(self, at_once: bool = False) -> Triangle:
        """R made triangular, where it has more rows than columns, or `at_once`."""
        rows, columns = self.R.shape
        if rows <= columns and not at_once:
            return self
        QR, tau, _, info = lapack.dgeqrf(self.R, lwork=64 * columns)
        most = min(rows, columns)
        Z, _, failed = lapack.dormqr("L", "T", QR[:, :most], tau, self.Z, 64 * max(self.Z.shape[1], 1))
        assert info == failed == 0
        rest = self.rest + np.einsum("ij,ij->j", Z[most:], Z[most:])
        return Triangle(self.n, self.centre, self.label_centre, np.triu(QR[:most]), Z[:most], rest)

    @property
    def nbytes(self) -> int:
        return self.R.nbytes + self.Z.nbytes + self.centre.nbytes + 2 * self.rest.nbytes

    def column(self, k: int) -> Triangle:
        """The rows with one of their labels."""
        return Triangle(self.n, self.centre, self.label_centre[[k]], self.R, self.Z[:, [k]], self.rest[[k]])

    def factor(self) -> Factor:
        """The rows as few; the first is the mean's."""
        t = self.reduced(at_once=True)
        ones = t.R[0, 0] or 1.0
        nothing = np.zeros_like(t.centre), np.zeros_like(t.rest)
        return Factor(
            t.R[0, 0] ** 2, t.centre, t.R[0, 1:] / ones, t.label_centre, t.Z[0] / ones, t.R[1:, 1:], t.Z[1:], t.rest, nothing
        )  # fmt: skip


def factors_of(tasks: Any, reflected: bool = False) -> Factors:
    """The rows of tasks that are elsewhere as few; those by reflections, once they are there. A pass, the first time that it is asked for."""
    known = tasks.__dict__.setdefault("_factors", {})
    if reflected and True not in known:
        known[True] = _triangles_of(tasks)
    if True not in known and False not in known:
        known[False] = moments_of(tasks).factors()
    return known.get(True) or known[False]


def _triangles_of(tasks: Any) -> Factors:
    """The rows as few, in a pass."""
    found = tasks.parts.run(_of_part, tasks.n_tasks)
    common = found.get(_TOGETHER)
    if set(found) == {_TOGETHER}:
        return Factors([common.factor()])
    each = []
    for i in range(tasks.n_tasks):
        pieces = ([] if common is None else [common.column(i)]) + ([found[i]] if i in found else [])
        each.append(summed(pieces).factor())
    return Factors(each)


def _of_part(part: Part, n_tasks: int) -> dict[int, Triangle]:
    tasks: Tasks = part.tasks
    together = is_one_table(tasks, part.which, n_tasks)
    keys = [_TOGETHER] if together else part.which.tolist()
    every = zip(keys, row_slabs(tasks, together, dense=True), strict=True)
    return {key: summed(map(_triangle, slabs)) for key, slabs in every}


def _triangle(slab) -> Triangle:
    X, Y, s = slab
    X = np.asarray(X, float)
    c, e = mean_of(X, s), mean_of(Y, s)
    R, Z = np.empty((len(X), X.shape[1] + 1), order="F"), Y - e
    R[:, 0] = 1.0
    np.subtract(X, c, out=R[:, 1:])
    if s is not None:
        roots = np.sqrt(s)[:, None]
        R *= roots
        Z *= roots
    return Triangle(len(X), c, e, R, Z, np.zeros(Y.shape[1])).reduced()
