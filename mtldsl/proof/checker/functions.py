"""The regularizers and sets that the checker has formulas for."""

from __future__ import annotations

from mtldsl.proof.checker.cluster_norm import SquaredCluster
from mtldsl.proof.checker.norms import NORMS, HalfSquaredGroups, HalfSquaredKSupport, SquaredTrace
from mtldsl.proof.checker.quadratics import Mean, Quadratic, Ridge
from mtldsl.proof.checker.sets import AtLeast, AtMost, Ball, EqualTo, Simplex

__all__ = ["FUNCTIONS"]

#: word -> its class
FUNCTIONS = {
    **NORMS, "half_squared_group_norm": HalfSquaredGroups, "half_squared_k_support_norm": HalfSquaredKSupport,
    "squared_trace_norm": SquaredTrace, "squared_cluster_norm": SquaredCluster, "feature_covariance_norm": SquaredTrace, "task_covariance_norm": SquaredTrace,
    "ridge": Ridge, "mean_regularizer": Mean, "graph_laplacian": Quadratic, "kronecker_ridge": Quadratic, "norm_ball": Ball,
    "at_least": AtLeast, "at_most": AtMost, "equal_to": EqualTo, "columns_on_simplex": Simplex,
}  # fmt: skip
