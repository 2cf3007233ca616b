"""Every task scored by itself, in the order of all of them: a fold may have lost some, or met them in another order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["ByTask"]


@dataclass(frozen=True)
class ByTask:
    """A scorer with one number a task: the estimator's own score.

    names : the tasks of one long table; None where they are columns, which no fold loses
    """

    names: tuple | None = None

    def __call__(self, estimator, X, y, **options) -> np.ndarray:
        """(m,), NaN for a task that the estimator did not learn or that has nothing here to score."""
        found = estimator._scores_by_task(X, y, **options)
        if self.names is None:
            return found
        return np.array([found.get(name, np.nan) for name in self.names])
