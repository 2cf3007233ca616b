"""Where inputs were missing, and what was put there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["STRATEGIES", "Imputation"]

STRATEGIES = ("mean", "median")


@dataclass(frozen=True, eq=False)
class Imputation:
    """What was put in the place of missing inputs.

    strategy : "mean" or "median", of the values of a column that are there
    values   : (d,) what stands in every column's gaps, in the units of the data as they were given
    gaps     : (rows, d) CSR of booleans, the cells that were missing: of the shared X, or of the labelled rows, task after task
    """

    strategy: str
    values: np.ndarray
    gaps: Any

    def of_rows(self, rows) -> Imputation:
        return replace(self, gaps=self.gaps[rows])

    def of_columns(self, index) -> Imputation:
        return replace(self, values=self.values[index], gaps=self.gaps[:, index])
