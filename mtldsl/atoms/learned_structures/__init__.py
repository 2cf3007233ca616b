"""Learned structures: penalties whose quadratic form is itself learned in closed form."""

from mtldsl.atoms.learned_structures.covariance_norms import FeatureCovarianceNorm, TaskCovarianceNorm
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.atoms.learned_structures.spectral_penalties import (
    CappedTraceNorm,
    ConcaveSpectrum,
    LogRank,
    SchattenNorm,
    SpectralPenalty,
)
from mtldsl.atoms.learned_structures.structure import Learned, Range, Structure
from mtldsl.atoms.learned_structures.task_kernels import KernelWeightBall, TaskKernel
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix

__all__ = [
    "CappedTraceNorm",
    "ConcaveSpectrum",
    "FeatureCovarianceNorm",
    "KernelWeightBall",
    "Learned",
    "LogRank",
    "MKLNorm",
    "MatrixNormal",
    "Range",
    "SchattenNorm",
    "SpectralMatrix",
    "SpectralPenalty",
    "Structure",
    "TaskCovarianceNorm",
    "TaskKernel",
]
