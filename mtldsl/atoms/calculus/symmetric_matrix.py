"""A symmetric matrix by its eigenvectors that also keeps its entries, so that zeros stay zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix

__all__ = ["SymmetricMatrix"]


@dataclass(frozen=True, eq=False)
class SymmetricMatrix(SpectralMatrix):
    """S = U diag(values) U^T with its entries (n, n) as they were given.

    >>> import numpy as np
    >>> S = SymmetricMatrix.of(np.array([[2.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 3.0]]))
    >>> int((S.dense() == 0).sum()), round(S.trace(), 12)
    (4, 6.0)
    """

    entries: np.ndarray

    @classmethod
    def of(cls, dense) -> SymmetricMatrix:
        """From a dense symmetric matrix."""
        entries = np.array(dense, float)
        spectral = SpectralMatrix.of(entries)
        return cls(spectral.basis, spectral.values, 0.0, entries)

    def dense(self) -> np.ndarray:
        return self.entries.copy()

    def power(self, p: float) -> SpectralMatrix:
        return SpectralMatrix(self.basis, self.values, 0.0).power(p)

    def scaled(self, c: float) -> SpectralMatrix:
        return SymmetricMatrix(self.basis, c * self.values, 0.0, c * self.entries)

    def __repr__(self) -> str:
        return f"array({self.side}, {self.side})"
