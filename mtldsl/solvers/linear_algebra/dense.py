"""ADMM's x-update by one dense system over all unknowns: for losses that mix tasks, while the unknowns are few."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.solvers.linear_algebra.curvature import Part
from mtldsl.solvers.linear_algebra.inverses import inverses
from mtldsl.solvers.linear_algebra.split import Copy, Split

__all__ = ["DenseUpdate"]


class DenseUpdate:
    """The matrices of q and K are found by applying the operators to the unit vectors."""

    def __init__(self, split: Split):
        self.split, self.shapes = split, split.form.shapes
        self.size = sum(rows * columns for rows, columns in self.shapes.values())
        Q = np.empty((self.size, self.size))
        self.K = np.empty((self.size, split.size))  # transposed: row j is the image of unit vector j
        for j, unit in enumerate(np.eye(self.size)):
            x = self._blocks(unit)
            Q[j] = self._vector(split.quadratic_product(x))
            self.K[j] = split.linear_image(x)
        self.Q = 0.5 * (Q + Q.T)
        self.mean_quadratic = float(np.trace(Q)) / self.size
        self.diagonals = [float(np.square(self.K[:, copy.rows]).sum()) / self.size for copy in split.copies]

    def solver(self, penalties: np.ndarray):
        """The x-update under one penalty a copy."""
        return self._solver(self.Q + (self.K * self.split.metric(penalties)) @ self.K.T)

    def newton_solver(self, parts: list[Part], damping: np.ndarray):
        """Solves with Q + K^T (parts + diag of one damping a copy) K."""
        H = self.Q + (self.K * self.split.metric(damping)) @ self.K.T
        for copy, part in zip(self.split.copies, parts, strict=True):
            H = H + self._curvature(copy, part)
        return self._solver(H)

    def _curvature(self, copy: Copy, part: Part) -> np.ndarray:
        K = self.K[:, copy.rows]
        H = np.zeros((self.size, self.size))
        if part.weights is not None:
            active = np.flatnonzero(part.weights)
            H += (K[:, active] * part.weights[active]) @ K[:, active].T
        if part.vectors is not None:
            images = K @ part.vectors.T
            assert part.scales is not None  # they come with the vectors
            H += (images * part.scales) @ images.T
        if part.blocks is not None:
            columns = K.reshape(self.size, *copy.shape)
            for c, block in enumerate(part.blocks):
                H += columns[:, :, c] @ block @ columns[:, :, c].T
        return H

    def _solver(self, H: np.ndarray):
        inverse = inverses(H[None])[0]
        return lambda rhs: self._blocks(inverse @ self._vector(rhs))

    def _blocks(self, vector: np.ndarray) -> Blocks:
        blocks, at = {}, 0
        for name, shape in self.shapes.items():
            end = at + shape[0] * shape[1]
            blocks[name], at = vector[at:end].reshape(shape), end
        return blocks

    def _vector(self, x: Blocks) -> np.ndarray:
        return np.concatenate([x[name].ravel() for name in self.shapes])
