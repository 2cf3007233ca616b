"""Regularizers, one file a family, registered when this package is imported."""

from mtldsl.atoms.regularizers.column_groups import (
    ColumnGroupNorm,
    ColumnGroups,
    HalfSquaredGroupNorm,
    HalfSquaredKSupportNorm,
)
from mtldsl.atoms.regularizers.differences import GraphLaplacian, MeanRegularizer
from mtldsl.atoms.regularizers.group_norms import FrobeniusNorm, GroupNorm
from mtldsl.atoms.regularizers.l1_and_l21_norms import L1InfNorm, L1Norm, L12Norm, L21Norm, TotalVariation
from mtldsl.atoms.regularizers.quadratic import KroneckerRidge, Ridge
from mtldsl.atoms.regularizers.spectral_norms import Rank, SquaredTraceNorm, TraceNorm

__all__ = [
    "ColumnGroupNorm",
    "ColumnGroups",
    "FrobeniusNorm",
    "GraphLaplacian",
    "GroupNorm",
    "HalfSquaredGroupNorm",
    "HalfSquaredKSupportNorm",
    "KroneckerRidge",
    "L1InfNorm",
    "L1Norm",
    "L12Norm",
    "L21Norm",
    "MeanRegularizer",
    "Rank",
    "Ridge",
    "SquaredTraceNorm",
    "TotalVariation",
    "TraceNorm",
]
