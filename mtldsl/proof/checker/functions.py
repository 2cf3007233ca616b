"""The regularizers and sets that the checker has formulas for."""

from __future__ import annotations

from mtldsl.proof.checker.norms import (
    L1,
    L12,
    L21,
    ColumnGroups,
    Frobenius,
    Groups,
    HalfSquaredGroups,
    HalfSquaredKSupport,
    L1Inf,
    SortedL1,
    SquaredTrace,
    TotalVariation,
    Trace,
)
from mtldsl.proof.checker.quadratics import Mean, Quadratic, Ridge
from mtldsl.proof.checker.sets import AtLeast, AtMost, Ball, EqualTo, Simplex

__all__ = ["FUNCTIONS"]

#: word -> its class
FUNCTIONS = {
    "l1_norm": L1, "sorted_l1_norm": SortedL1, "l21_norm": L21, "l12_norm": L12, "l1_inf_norm": L1Inf, "group_norm": Groups,
    "column_group_norm": ColumnGroups, "half_squared_group_norm": HalfSquaredGroups,
    "half_squared_k_support_norm": HalfSquaredKSupport, "frobenius_norm": Frobenius, "trace_norm": Trace,
    "squared_trace_norm": SquaredTrace, "feature_covariance_norm": SquaredTrace, "task_covariance_norm": SquaredTrace,
    "total_variation": TotalVariation, "ridge": Ridge, "mean_regularizer": Mean, "graph_laplacian": Quadratic,
    "kronecker_ridge": Quadratic, "l1_ball": Ball, "l21_ball": Ball, "trace_norm_ball": Ball, "frobenius_ball": Ball,
    "at_least": AtLeast, "at_most": AtMost, "equal_to": EqualTo, "columns_on_simplex": Simplex,
}  # fmt: skip
