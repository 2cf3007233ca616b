"""The simplex, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import in_parentheses
from mtldsl.atoms.calculus.shrinkage import water_level
from mtldsl.atoms.function import Set, register
from mtldsl.atoms.parameters import checked_number

__all__ = ["ColumnsOnSimplex"]


@register
@dataclass(frozen=True, eq=False)
class ColumnsOnSimplex(Set):
    r"""The matrices whose columns are >= 0 and each sum to `total`: every task's weights are shares.

    Typing `W >= 0` together with `W.sum(axis=0) == total` means the same.

    Parameters
    ----------
    total : number > 0, default 1.0

    Raises
    ------
    ModelError
        Where total is not a finite number > 0.

    Notes
    -----
    Projection: (w_i - t_i)_+ for each column, with the t_i that makes it sum to total, found by sorting.
    Support function: total times the sum over columns of their largest entry. Violation: the largest of
    (-W_ij)_+ and |sum of a column - total|.
    Source: Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for learning in
    high dimensions", ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[0.5, 3.0], [0.25, 0.0], [-1.0, 0.0]])
    >>> ColumnsOnSimplex().project(W)
    array([[0.625, 1. ], [0.375, 0. ], [0. , 0. ]])
    >>> ColumnsOnSimplex().violation(W)
    2.0
    """

    total: float = 1.0

    name: ClassVar[str] = "columns_on_simplex"
    meaning: ClassVar[str] = "every column is nonnegative and has the sum <total>"
    formula: ClassVar[str] = r"({})_i \geq 0,\; \mathbf{1}^\top ({})_i = \tau \;\; \forall i"
    separable: ClassVar[str] = "columns"
    finite_dual: ClassVar[bool] = True

    def __post_init__(self):
        total = checked_number(
            self.name, "total", self.total, lambda t: t > 0, "a finite number > 0, such as total=1.0"
        )
        object.__setattr__(self, "total", total)

    @classmethod
    def examples(cls):
        return [cls(), cls(0.3), cls(10.0)]

    def latex(self, argument):
        return self.formula.replace(r"\tau", f"{self.total:g}").replace("({})", in_parentheses(argument))

    def on_columns(self, columns, shape):
        return self

    def project(self, W):
        # The projection does not change with a constant added to a column; without it nothing cancels.
        lowered = W - W.max(axis=0)
        return np.maximum(lowered - water_level(lowered, self.total), 0.0)

    def violation(self, W):
        return float(max(np.max(-W, initial=0.0), np.abs(W.sum(axis=0) - self.total).max(initial=0.0)))

    def support(self, Z):
        return float(self.total * Z.max(axis=0).sum())

    def dual_gauge(self, Z):
        return 0.0
