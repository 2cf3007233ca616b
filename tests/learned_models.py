"""FETR in many variants: sum of squares, a matrix-normal penalty, and both precisions within bounds."""

import numpy as np

import mtldsl as mtl

ETA, RHO, LOW, HIGH = 0.7, 1.3, 0.05, 20.0


def fetr(
    tasks, loss=mtl.sum_of_squares, more=None, constraints=lambda W: [], first="Sigma1", second="Sigma2",
    argument=lambda W: W, low=LOW, high=HIGH, eta=ETA, rho=RHO, times=1.0, **weights,
):  # fmt: skip
    """Return the model; `first` is the name of the features' precision or a matrix that is given, `times` the coefficient of the penalty."""
    W = mtl.Weights(tasks, **weights)
    A = mtl.FeaturePrecision(tasks, first) if isinstance(first, str) else first
    B = mtl.TaskPrecision(tasks, second)
    objective = loss(W, tasks) + times * mtl.matrix_normal(argument(W), A, B, eta=eta, rho=rho)
    bounds = [bound for S in ([A, B] if isinstance(first, str) else [B]) for bound in (S >> low, S << high)]
    return mtl.minimize(objective if more is None else objective + more(W), bounds + constraints(W))


def least(M, n):
    """The minimum of ETA tr(S M) - RHO n log det S over matrices with eigenvalues in [LOW, HIGH]: eigenvectors of M, a clipped inverse."""
    values = np.maximum(np.linalg.eigvalsh(M), 1e-12)
    best = np.clip(RHO * n / (ETA * values), LOW, HIGH)
    return ETA * best @ values - RHO * n * np.log(best).sum()
