"""The data as a linear map, from weights to predictions and back: what solvers take of the inputs."""

from __future__ import annotations

import numpy as np

from mtldsl.system.kept import cached_property
from mtldsl.tasks.data import TaskData
from mtldsl.tasks.gram import require_gram_memory
from mtldsl.tasks.products import Products, make_products

__all__ = ["LinearMap"]


class LinearMap(TaskData):
    """W (d, m) -> all X_i w_i, task after task; its transpose, and the products of both."""

    @cached_property
    def _products(self) -> Products:
        return make_products(self)

    def forward(self, W) -> np.ndarray:
        """(N,) flat predictions X_i w_i."""
        if not np.asarray(W).any():  # the first point of most runs
            return np.zeros(self.n_samples)
        return self._products.forward(W)

    def adjoint(self, u) -> np.ndarray:
        """(d, m): column i is X_i^T u_i."""
        return self._products.adjoint(u)

    def gram(self, scale=None) -> np.ndarray:
        """X_i^T diag(scale_i) X_i: (d, d) for one complete shared X and no scale, else (m, d, d). Always dense."""
        d, together = self.n_features, self.is_shared and not self.n_missing and scale is None
        require_gram_memory(
            d, 1 if together else self.n_tasks, "select features, or hash or project them, first", copies=1
        )
        return self._products.gram(scale)

    def cross(self, scale=None) -> np.ndarray:
        """(d, m): column i is X_i^T (scale_i * y_i)."""
        return self.adjoint(self.targets if scale is None else scale * self.targets)

    def largest_curvature(self, scale=None) -> float:
        """max_i ||diag(sqrt(scale_i)) X_i||_2^2."""
        return self._products.largest_curvature(scale)
