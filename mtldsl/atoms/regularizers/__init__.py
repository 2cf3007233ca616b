"""Regularizers, one file a family. Importing this package registers them."""

from mtldsl.atoms.regularizers.column_groups import ColumnGroupNorm, ColumnGroups
from mtldsl.atoms.regularizers.columns import L12Norm
from mtldsl.atoms.regularizers.differences import GraphLaplacian, MeanRegularizer
from mtldsl.atoms.regularizers.entries import L1Norm
from mtldsl.atoms.regularizers.groups import FrobeniusNorm, GroupNorm
from mtldsl.atoms.regularizers.half_squared_groups import HalfSquaredGroupNorm, HalfSquaredKSupportNorm
from mtldsl.atoms.regularizers.kronecker import KroneckerRidge
from mtldsl.atoms.regularizers.rank import Rank
from mtldsl.atoms.regularizers.rows import L1InfNorm, L21Norm
from mtldsl.atoms.regularizers.spectrum import SquaredTraceNorm, TraceNorm
from mtldsl.atoms.regularizers.squares import Ridge
from mtldsl.atoms.regularizers.variation import TotalVariation

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
