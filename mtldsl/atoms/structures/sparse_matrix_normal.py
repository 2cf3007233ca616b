"""A matrix-normal prior one precision of which is learned sparse: `matrix_normal(W, Sigma1, Sigma2) + lam * l1_norm(Sigma2)`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from mtldsl.atoms.calculus.graphical_lasso import SparseInverse, graphical_lasso
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix, between
from mtldsl.atoms.calculus.symmetric_matrix import SymmetricMatrix
from mtldsl.atoms.structures.matrix_normal import MatrixNormal
from mtldsl.atoms.structures.structure import Matrices, Range

__all__ = ["SparseMatrixNormal"]


@dataclass(frozen=True, eq=False)
class SparseMatrixNormal(MatrixNormal):
    r"""Matrix-normal prior with a sparse precision: eta tr(Sigma1 W Sigma2 W^T) - rho (m log|Sigma1| + d log|Sigma2|) + l1 ||S||_1.

    S is Sigma1 or Sigma2, learned with W (d, m); the other one is given. The norm is over all entries of S, the diagonal too: it keeps S
    from growing without end, as the log-determinant keeps it from becoming singular, so that S needs no bounds.
    What a user types is `matrix_normal(W, Sigma1, Sigma2) + lam * l1_norm(Sigma2)`; the model makes this of it.

    Parameters
    ----------
    l1 : two numbers >= 0, one of which is > 0
        The coefficients of ||Sigma1||_1 and ||Sigma2||_1.

    Notes
    -----
    Not convex, but for W and S each by itself. S for W kept is a graphical lasso, found to rounding, with a duality gap; it is unique,
    so that the profile (S at its best) is smooth in W, with the gradient 2 eta Sigma1 W Sigma2. The profile grows like a logarithm: its
    conjugate is finite at 0 alone.
    Source: Goncalves, Von Zuben and Banerjee, "Multi-task sparse structure learning with Gaussian copula models", JMLR 17 (2016);
    Zhang and Schneider, "Learning multiple tasks with a sparse matrix-normal penalty", NIPS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> structure = SparseMatrixNormal(l1=(0.0, 1.0)).bound([SpectralMatrix.of(np.eye(3)), Range()])
    >>> W = np.array([[2.0, 2.0, 0.0], [1.0, 1.5, 0.2], [0.0, 0.3, 1.0]])
    >>> _, Sigma2 = structure.update(W)
    >>> Sigma2.dense().round(3)
    array([[ 0.926, -0.567,  0.   ],
           [-0.567,  0.757,  0.   ],
           [ 0.   ,  0.   ,  1.471]])
    >>> bool(np.isclose(structure.value(W), structure.value_at(W, structure.update(W))))
    True
    """

    l1: tuple[float, float] = field(default=(0.0, 0.0), metadata={"told": True})

    convex: ClassVar[bool] = False
    needs: ClassVar[dict[str, str]] = {}
    flip_flops: ClassVar[bool] = False
    finite_dual: ClassVar[bool] = False
    absorbs: ClassVar[bool] = False

    @classmethod
    def of(cls, structure: MatrixNormal, l1: tuple[float, float]) -> SparseMatrixNormal:
        """The same prior with these coefficients of the norms."""
        return cls(**{f.name: getattr(structure, f.name) for f in fields(structure)}, l1=l1)

    @classmethod
    def examples(cls):
        given = np.array([[2.0, 0.5, 0, 0], [0.5, 1.0, 0.2, 0], [0, 0.2, 1.5, -0.3], [0, 0, -0.3, 0.8]])
        spread = np.diag([1.0, 2.0, 0.5, 1.5, 3.0])
        return [
            cls(l1=(0.0, 0.8)).bound([SpectralMatrix.of(np.eye(5)), Range()]),
            cls(eta=0.7, rho=1.3, l1=(0.0, 3.0)).bound([SpectralMatrix.of(spread), Range()]),
            cls(eta=2.0, rho=0.4, l1=(0.5, 0.0)).bound([Range(), SpectralMatrix.of(given)]),
        ]

    @property
    def _learned(self) -> int:
        """Which matrix is learned: 0 or 1."""
        return 0 if self.l1[0] > 0 else 1

    @cached_property
    def _last(self) -> dict[tuple, SparseInverse]:
        """What was found for the last weights: value, gradient and proof ask for the same."""
        return {}

    def _solved(self, W) -> SparseInverse:
        """The learned matrix for W, and its gap in the units of the problem divided by rho times the side of the other matrix."""
        W = np.ascontiguousarray(W, float)
        key = (W.shape, W.tobytes())
        found = self._last.get(key)
        if found is None:
            found = self._found(W)
            self._last.clear()
            self._last[key] = found
        return found

    def _found(self, W) -> SparseInverse:
        k, given = self._learned, cast(SpectralMatrix, (self.features, self.tasks)[1 - self._learned])
        root = given.power(0.5)
        half = between(root, W, None) if k == 1 else between(None, W, root).T
        count = self.rho * half.shape[0]
        return graphical_lasso(self.eta / count * (half.T @ half), self.l1[k] / count)

    # ------------------------------------------------------------------------------------------- the profile

    def value(self, W) -> float:
        return self.value_at(W, self.update(W))

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        matrices = self.update(W)
        return self.value_at(W, matrices), self.quadratic(W.shape, matrices).product(W)

    def conjugate(self, Z) -> float:
        return -self.value(np.zeros_like(Z)) if not np.any(Z) else np.inf

    def dual_gauge(self, Z) -> float:
        return np.inf if np.any(Z) else 0.0

    def dual_project(self, Z) -> np.ndarray:
        return np.zeros_like(Z)

    # ------------------------------------------------------------------------------------------ the matrices

    def update(self, W) -> Matrices:
        return self._with(self._solved(W).matrix)

    def update_one(self, k: int, W, matrices: Matrices) -> Matrices:
        return self.update(W) if k == self._learned else matrices

    def least_over(self, k: int, W, matrices: Matrices) -> float:
        """A lower bound of the minimum over matrix k, by duality."""
        found = self._solved(W)
        count = self.rho * W.shape[1 - self._learned]
        return self.value_at(W, self._with(found.matrix)) - count * found.gap

    def _with(self, S: np.ndarray) -> Matrices:
        learned = SymmetricMatrix.of(S)
        given = cast(SpectralMatrix, (self.features, self.tasks)[1 - self._learned])
        return (learned, given) if self._learned == 0 else (given, learned)

    def _norms(self, matrices: Matrices) -> float:
        return self.l1[self._learned] * float(np.abs(matrices[self._learned].dense()).sum())

    def value_at(self, W, matrices: Matrices) -> float:
        return super().value_at(W, matrices) + self._norms(matrices)

    def quadratic(self, shape, matrices: Matrices):
        quadratic = super().quadratic(shape, matrices)
        return type(quadratic)(quadratic.rows, quadratic.columns, quadratic.constant + self._norms(matrices))
