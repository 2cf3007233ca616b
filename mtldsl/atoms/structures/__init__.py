"""Learned structures: penalties whose quadratic form is itself learned in closed form."""

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.structures.concave_spectrum import ConcaveSpectrum
from mtldsl.atoms.structures.covariance_norms import FeatureCovarianceNorm, TaskCovarianceNorm
from mtldsl.atoms.structures.matrix_normal import MatrixNormal
from mtldsl.atoms.structures.mkl_norm import MKLNorm
from mtldsl.atoms.structures.own_spectral_penalty import SpectralPenalty
from mtldsl.atoms.structures.spectral_penalties import (
    CappedTraceNorm,
    LogRank,
    SchattenNorm,
)
from mtldsl.atoms.structures.structure import Learned, Range, Structure
from mtldsl.atoms.structures.task_kernel import TaskKernel
from mtldsl.atoms.structures.weights_ball import Ball

__all__ = [
    "Ball",
    "CappedTraceNorm",
    "ConcaveSpectrum",
    "FeatureCovarianceNorm",
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
