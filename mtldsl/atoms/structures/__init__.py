"""Learned structures: penalties whose quadratic form is itself learned in closed form."""

from mtldsl.atoms.spectral_matrix import SpectralMatrix
from mtldsl.atoms.structures.covariance_norms import FeatureCovarianceNorm, TaskCovarianceNorm
from mtldsl.atoms.structures.matrix_normal import MatrixNormal
from mtldsl.atoms.structures.structure import Learned, Range, Structure

__all__ = [
    "FeatureCovarianceNorm",
    "Learned",
    "MatrixNormal",
    "Range",
    "SpectralMatrix",
    "Structure",
    "TaskCovarianceNorm",
]
