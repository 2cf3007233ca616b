"""Functions whose conjugate says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

__all__ = ["NoDual"]


class NoDual:
    """The dual of a function that grows more slowly than every norm: its conjugate is -g(0) at zero and +inf elsewhere,
    so that no multiplier but zero bounds anything.
    """

    absorbs: ClassVar[bool] = False

    if TYPE_CHECKING:  # what the function itself gives

        def value(self, W) -> float: ...

    def conjugate(self, Z) -> float:
        """sup over W of <Z, W> - g(W)."""
        return np.inf if np.any(Z) else -self.value(np.zeros(np.shape(Z)))

    def dual_gauge(self, Z) -> float:
        return np.inf if np.any(Z) else 0.0

    def dual_project(self, Z) -> np.ndarray:
        return np.zeros(np.shape(Z))
