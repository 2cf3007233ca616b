"""MTFL and MTRL: a covariance of trace one between features or between tasks, learned; the squared trace norm is what is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import SET_BY_MODEL, register
from mtldsl.atoms.learned_structures.structure import Learned, Matrices, Quadratic, Range, Structure
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix, thin_svd
from mtldsl.atoms.regularizers.spectral_norms import SquaredTraceNorm

#: A part of W this small, relatively, is rounding where a singular covariance allows none.
_ROUNDING_SHARE = 1e-14


class _CovarianceNorm(Structure, SquaredTraceNorm):
    """The quadratic form of W in the inverse of a covariance C of trace <= c; eliminated, ||W||_*^2 / c."""

    axis: ClassVar[int] = 0  # of W, along which C acts
    needs: ClassVar[dict[str, str]] = {
        "trace": "the penalty has no minimum: {name} = t I with t -> infinity makes it as small as one likes"
    }

    covariance: Range  # what the model says of C

    @classmethod
    def examples(cls):
        return [cls().bound([Range(trace=1.0)]), cls().bound([Range(trace=2.5)])]

    # ------------------------------------------------------------------------------------------- eliminated

    def value(self, W):
        return super().value(W) / self.covariance.trace

    def prox(self, W, step):
        return super().prox(W, step / self.covariance.trace)

    def conjugate(self, Z):
        return self.covariance.trace * super().conjugate(Z)

    # ------------------------------------------------------------------------------------------------- kept

    def start(self, shape) -> Matrices:
        side = shape[self.axis]
        return (SpectralMatrix.multiple_of_identity(self.covariance.trace / side, side),)

    def update(self, W) -> Matrices:
        U, s, Vt = thin_svd(W)
        if not s.any():
            return self.start(W.shape)
        s = np.where(
            s > np.finfo(float).eps * s.max(), s, 0.0
        )  # rounding is not a variance, and its inverse would count
        return (SpectralMatrix(U if self.axis == 0 else Vt.T, self.covariance.trace * s / s.sum(), 0.0),)

    def smoothed(self, W, eps: float) -> Matrices:
        """(W W^T + eps^2 I)^{1/2} up to its trace (W^T W for tasks): never singular."""
        U, s, Vt = thin_svd(W)
        basis, values = U if self.axis == 0 else Vt.T, np.sqrt(s**2 + eps**2)
        scale = self.covariance.trace / (values.sum() + (len(basis) - len(s)) * eps)
        return (SpectralMatrix(basis, scale * values, scale * eps),)

    def value_at(self, W, matrices: Matrices) -> float:
        """+inf where W has a part that a singular covariance gives no variance."""
        (C,) = matrices
        along = W if self.axis == 0 else W.T
        total = float(np.vdot(along, along))
        parts = np.sum((C.basis.T @ along) ** 2, axis=1)
        outside = total - float(parts.sum()) if C.n_rest else 0.0
        parts, variances = np.append(parts, outside), np.append(C.values, C.rest)
        held = (variances > 0) | (parts > _ROUNDING_SHARE * total)
        with np.errstate(divide="ignore"):
            return float(np.sum(parts[held] / variances[held]))

    def quadratic(self, shape, matrices: Matrices) -> Quadratic:
        inverse = matrices[0].power(-1.0).scaled(2.0)
        identity = SpectralMatrix.multiple_of_identity(1.0, shape[1 - self.axis])
        return Quadratic(inverse, identity) if self.axis == 0 else Quadratic(identity, inverse)


@register
@dataclass(frozen=True, eq=False)
class FeatureCovarianceNorm(_CovarianceNorm):
    r"""Multi-task feature learning (MTFL): tr(W^T D^{-1} W) with a covariance D of the features that is learned, tr D <= c.

    D (d, d) is a `FeatureCovariance`; the model states its bound, `D.trace() <= 1`. The tasks share the features that D has
    variance for. Convex in W and D together; with D at its best, (W W^T)^{1/2} c / ||W||_*, what is left is the squared trace
    norm ||W||_*^2 / c of W (d, m), so that solvers, the certificate and the cross-check treat it as that.

    Raises
    ------
    ModelError
        Where the model has no bound on the trace of D: then the penalty can be made as small as one likes.

    Notes
    -----
    D is singular where W has not full row rank, as it never has for d > m: alternating between W and D then cannot leave the
    directions of its first D. `solve(solver="alternating")` keeps the equivalent covariance on the smaller side, and shows D.
    Source: Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008), Theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> structure = FeatureCovarianceNorm().bound([Range(trace=1.0)])
    >>> W = np.diag([3.0, 1.0])
    >>> structure.value(W), structure.update(W)[0].dense().diagonal()
    (16.0, array([0.75, 0.25]))
    """

    covariance: Range = field(default=SET_BY_MODEL, metadata={"matrix": 0})

    name: ClassVar[str] = "feature_covariance_norm"
    instead_of_transpose: ClassVar[str] = (
        "task_covariance_norm({0}, Omega) with Omega = TaskCovariance(tasks)"
    )
    meaning: ClassVar[str] = "multi-task feature learning (MTFL)"
    formula: ClassVar[str] = r"\operatorname{tr}({}^\top D^{-1} {})"
    learns: ClassVar[tuple[Learned, ...]] = (Learned("D", "features", "covariance"),)
    symbols: ClassVar[dict[str, str]] = {"D": "D"}
    axis: ClassVar[int] = 0

    def on_smaller_side(self, shape):
        return TaskCovarianceNorm(self.covariance) if shape[0] > shape[1] else self


@register
@dataclass(frozen=True, eq=False)
class TaskCovarianceNorm(_CovarianceNorm):
    r"""Multi-task relationship learning (MTRL): tr(W Omega^{-1} W^T) with a covariance Omega of the tasks, learned, tr Omega <= c.

    Omega (m, m) is a `TaskCovariance`; the model states its bound, `Omega.trace() <= 1`. Convex in W and Omega together; with
    Omega at its best, (W^T W)^{1/2} c / ||W||_*, what is left is the squared trace norm ||W||_*^2 / c of W (d, m), so that
    solvers, the certificate and the cross-check treat it as that.

    Raises
    ------
    ModelError
        Where the model has no bound on the trace of Omega: then the penalty can be made as small as one likes.

    Notes
    -----
    The same problem in W as `feature_covariance_norm`; only what is learned beside W differs.
    Source: Zhang and Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010, eq. (6).

    Examples
    --------
    >>> import numpy as np
    >>> structure = TaskCovarianceNorm().bound([Range(trace=1.0)])
    >>> W = np.array([[1.0, 1.0], [1.0, 1.0]])
    >>> structure.update(W)[0].dense().round(12)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    covariance: Range = field(default=SET_BY_MODEL, metadata={"matrix": 0})

    name: ClassVar[str] = "task_covariance_norm"
    instead_of_transpose: ClassVar[str] = "feature_covariance_norm({0}, D) with D = FeatureCovariance(tasks)"
    meaning: ClassVar[str] = "multi-task relationship learning (MTRL)"
    formula: ClassVar[str] = r"\operatorname{tr}({} \Omega^{-1} {}^\top)"
    learns: ClassVar[tuple[Learned, ...]] = (Learned("Omega", "tasks", "covariance"),)
    symbols: ClassVar[dict[str, str]] = {"Omega": r"\Omega"}
    axis: ClassVar[int] = 1

    def on_smaller_side(self, shape):
        return FeatureCovarianceNorm(self.covariance) if shape[1] > shape[0] else self
