"""Penalties on differences between neighbouring tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import in_parentheses
from mtldsl.atoms.function import register
from mtldsl.atoms.regularizers.norm import ROUNDING, Norm

__all__ = ["TotalVariation"]


@register
@dataclass(frozen=True, eq=False)
class TotalVariation(Norm):
    r"""Total variation over tasks in their order: sum over i < q of ||W_{i+1} - W_i||_1.

    For tasks (columns of W (p, q)) that are ordered, such as time steps: each feature's weight is piecewise
    constant along them. It is a seminorm: 0 where all columns are equal.

    Notes
    -----
    prox: exact, row by row, in O(q) by dynamic programming on the derivative (a piecewise linear function).
    Conjugate: the indicator of {Z : every row sums to 0 and its running sums are at most 1 in absolute
    value}.
    Source: Tibshirani et al., "Sparsity and smoothness via the fused lasso", JRSS B 67 (2005); Johnson, "A
    dynamic programming algorithm for the fused lasso and L0-segmentation", J. Comput. Graph. Stat. 22 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[0.0, 0.0, 3.0, 3.0]])
    >>> TotalVariation().value(W)
    3.0
    >>> TotalVariation().prox(W, 1.0)
    array([[0.5, 0.5, 2.5, 2.5]])
    """

    name: ClassVar[str] = "total_variation"
    meaning: ClassVar[str] = "the total variation over tasks in their order"
    formula: ClassVar[str] = r"\sum_{i<q}\|{}_{\cdot\,i+1}-{}_{\cdot\,i}\|_1"
    separable: ClassVar[str] = "rows"
    absorbs: ClassVar[bool] = False
    ordinal: ClassVar[bool] = True

    def latex(self, argument):
        return super().latex(in_parentheses(argument))

    def lineality(self, n_columns):
        return np.full((n_columns, 1), n_columns**-0.5)

    def value(self, W):
        return float(np.abs(np.diff(W, axis=1)).sum())

    def prox(self, W, step):
        from mtldsl.atoms.regularizers.variation_kernel import denoise_rows

        return denoise_rows(np.ascontiguousarray(W, dtype=np.float64), float(step))

    def dual_gauge(self, Z):
        running = np.abs(np.cumsum(Z, axis=1))
        if running[:, -1].max() > ROUNDING * np.abs(Z).max():
            return np.inf
        return float(running[:, :-1].max(initial=0.0))

    def dual_project(self, Z):
        # Twice, so that the row sums are zero against the result even where the result is small against Z.
        Z = Z - Z.mean(axis=1, keepdims=True)
        return Z - Z.mean(axis=1, keepdims=True)
