"""The products a solver asks of its data - X_i w_i, X_i^T u_i, X_i^T S_i X_i - for each layout as fast as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from mtldsl.tasks.tasks import Tasks

__all__ = ["Products", "make_products"]

#: up to this many features the exact largest eigenvalue of the Gram matrix is cheap
_SMALL = 600


class Products(Protocol):
    def forward(self, W) -> np.ndarray: ...
    def adjoint(self, u) -> np.ndarray: ...
    def gram(self, scale) -> np.ndarray: ...
    def largest_curvature(self, scale) -> float: ...


def make_products(tasks: Tasks) -> Products:
    if tasks.is_shared:
        return _Shared(tasks) if tasks.mask is None else _SharedMasked(tasks)
    return _SeparateSparse(tasks) if tasks.is_sparse else _SeparateDense(tasks)


class _Common:
    def __init__(self, tasks: Tasks):
        self.tasks = tasks
        self.shape = (tasks.n_features, tasks.n_tasks)

    def gram(self, scale):
        return np.stack([_scaled_gram(X, s) for X, s in self._tasks(scale)])

    def largest_curvature(self, scale) -> float:
        return max(_squared_norm(X, s) for X, s in self._tasks(scale))

    def _tasks(self, scale):
        parts = [None] * self.tasks.n_tasks if scale is None else self.tasks.per_task(scale)
        return zip(self.tasks.inputs, parts, strict=True)


class _Shared(_Common):
    """One complete X: every product is one matrix product. Flat vectors are task after task, so a table is its transpose."""

    def __init__(self, tasks: Tasks):
        super().__init__(tasks)
        self.X = tasks.X
        self.Xt = self.X.T.tocsr() if tasks.is_sparse else self.X.T

    def forward(self, W):
        if sparse.issparse(self.X):
            return np.asarray(self.X @ W).T.ravel()
        return (W.T @ self.Xt).ravel()  # (m, n), contiguous: no copy to flatten

    def adjoint(self, u):
        table = u.reshape(self.tasks.n_tasks, -1)
        if sparse.issparse(self.X):
            return np.asarray(self.Xt @ table.T)
        return (table @ self.X).T

    def gram(self, scale):
        return _scaled_gram(self.X, None) if scale is None else super().gram(scale)

    def largest_curvature(self, scale):
        return _squared_norm(self.X, None) if scale is None else super().largest_curvature(scale)


class _SharedMasked(_Shared):
    """One X, some labels missing: the same products on the full table, of which the labelled entries are kept."""

    def __init__(self, tasks: Tasks):
        super().__init__(tasks)
        self.kept = np.flatnonzero(tasks.mask.T.ravel())
        self.size = tasks.mask.size

    def forward(self, W):
        return super().forward(W)[self.kept]

    def adjoint(self, u):
        full = np.zeros(self.size)
        full[self.kept] = u
        return super().adjoint(full)

    def gram(self, scale):
        return _Common.gram(self, scale)

    def largest_curvature(self, scale):
        return _Common.largest_curvature(self, scale)


class _SeparateDense(_Common):
    def __init__(self, tasks: Tasks):
        super().__init__(tasks)
        self.slices = [slice(a, b) for a, b in zip(tasks.offsets[:-1], tasks.offsets[1:], strict=True)]

    def forward(self, W):
        flat = np.empty(self.tasks.n_samples)
        for X, w, rows in zip(self.tasks.inputs, np.ascontiguousarray(W.T), self.slices, strict=True):
            np.dot(X, w, out=flat[rows])
        return flat

    def adjoint(self, u):
        columns = np.empty(self.shape[::-1])
        for X, column, rows in zip(self.tasks.inputs, columns, self.slices, strict=True):
            np.dot(u[rows], X, out=column)
        return columns.T


class _SeparateSparse(_Common):
    """All tasks' rows on the diagonal of one CSR matrix: every product is one sparse product."""

    def __init__(self, tasks: Tasks):
        super().__init__(tasks)
        self.diagonal = sparse.block_diag(tasks.inputs, format="csr")
        self.transposed = self.diagonal.T.tocsr()

    def forward(self, W):
        return self.diagonal @ W.T.ravel()

    def adjoint(self, u):
        return (self.transposed @ u).reshape(self.shape[::-1]).T


def _scaled_gram(X, scale) -> np.ndarray:
    if sparse.issparse(X):
        scaled = X if scale is None else sparse.diags_array(scale) @ X
        return (X.T @ scaled).toarray()
    return X.T @ (X if scale is None else X * scale[:, None])


def _squared_norm(X, scale) -> float:
    """Largest eigenvalue of X^T diag(scale) X: exact where either side is small, else by Lanczos, rounded up."""
    if scale is not None:
        root = np.sqrt(scale)
        X = sparse.diags_array(root) @ X if sparse.issparse(X) else X * root[:, None]
    if min(X.shape) <= _SMALL:
        gram = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
        gram = gram.toarray() if sparse.issparse(gram) else gram
        return float(np.linalg.eigvalsh(gram)[-1])
    if not (X.data if sparse.issparse(X) else X).any():  # Lanczos has no vector to start from
        return 0.0
    from scipy.sparse.linalg import svds

    largest = svds(X, k=1, tol=1e-6, return_singular_vectors=False, random_state=0)
    return float(largest[0] ** 2 * (1 + 1e-5))
