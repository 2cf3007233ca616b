"""What a run learned beside the weights, and what is proven where a model is not convex, as plain values."""

from __future__ import annotations

import numpy as np

from mtldsl.language.unknowns.kernel_weights import KernelWeights
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint, ranges_of
from mtldsl.problem import Problem
from mtldsl.solution.learned_matrix import LearnedMatrix
from mtldsl.solution.solution import Solution

__all__ = ["describe_learned", "describe_unknown", "strongest_correlations"]

#: Matrices of a larger side are described by their eigenvalues alone.
MAX_SIDE = 200

#: Pairs of features or tasks that a report names.
PAIRS = 5

#: An eigenvalue this near to a bound, relatively, is at it.
_AT_BOUND = 1e-9

#: Eigenvalues of a covariance below this share of the largest count as zero.
_RANK_TOLERANCE = 1e-6

#: A correlation below this is rounding.
_ROUNDING = 1e-9

#: Entries of a correlation matrix that are computed at once.
_ENTRIES = 4_000_000


def describe_unknown(unknown: LearnedUnknown) -> dict:
    """What a model says of a matrix that it learns."""
    return {"kind": unknown.kind, "axis": unknown.axis, "shape": list(unknown.shape)}


def describe_learned(problem: Problem, solution: Solution) -> dict[str, dict]:
    """Every learned matrix: spectrum, bounds that were hit, strongest correlations, and, up to a side of 200, itself."""
    ranges = ranges_of(c for c in problem.constraints if isinstance(c, RangeConstraint))
    return {
        unknown.name: describe_unknown(unknown)
        | _spectrum(matrix, ranges.get(unknown, unknown.unconstrained))
        | {"strongest": strongest_correlations(matrix, PAIRS)}
        | _arrays(matrix)
        for unknown in problem.learned
        if not isinstance(unknown, KernelWeights)
        and isinstance(
            matrix := solution.learned.get(unknown.name), LearnedMatrix
        )  # its term may have the coefficient 0
    }


def _spectrum(matrix: LearnedMatrix, bounds) -> dict:
    values = matrix.eigenvalues()
    smallest, largest = float(values[0]), float(values[-1])
    rank = int(np.sum(values > _RANK_TOLERANCE * largest)) if matrix.kind == "covariance" else len(values)
    found = {
        "lower": bounds.lower if bounds.lower > 0 else None,
        "upper": bounds.upper if np.isfinite(bounds.upper) else None,
        "trace_bound": bounds.trace if np.isfinite(bounds.trace) else None,
        "trace": float(values.sum()),
        "rank": rank,
        "condition": largest / smallest if rank == len(values) else None,
        "eigenvalues": values,
    }
    found["at_lower"] = int(np.sum(values <= bounds.lower * (1 + _AT_BOUND))) if found["lower"] else None
    found["at_upper"] = int(np.sum(values >= bounds.upper * (1 - _AT_BOUND))) if found["upper"] else None
    return found


def _arrays(matrix: LearnedMatrix) -> dict:
    if matrix.shape[0] > MAX_SIDE:
        return {"names": None, "matrix": None, "correlation": None}
    return {
        "names": list(matrix.names),
        "matrix": np.asarray(matrix),
        "correlation": matrix.correlation,
    }


def strongest_correlations(matrix: LearnedMatrix, count: int) -> list[dict]:
    """The `count` pairs of largest absolute correlation, strongest first; in memory linear in the side of the matrix.

    >>> from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
    >>> S = SpectralMatrix.of(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> (found,) = strongest_correlations(LearnedMatrix("Sigma2", "tasks", "precision", ("a", "b", "c"), S), 5)
    >>> found["pair"], round(found["correlation"], 12)
    (['a', 'b'], -0.5)
    """
    covariance = matrix.spectral if matrix.kind == "covariance" else matrix.spectral.power(-1.0)
    rest = covariance.rest if covariance.n_rest else 0.0
    # off the diagonal, the covariance is basis diag(core) basis^T
    basis, core = covariance.basis, covariance.values - rest
    variances = basis**2 @ core + rest
    scales = np.zeros(len(variances))
    held = variances > _ROUNDING * variances.max()  # a feature without variance has no correlation
    scales[held] = 1.0 / np.sqrt(variances[held])
    scaled, found, side = basis * scales[:, None], [], covariance.side
    step = max(1, _ENTRIES // side)
    for first in range(0, side, step):
        block = (scaled[first : first + step] * core) @ scaled[first:].T
        block[np.tri(*block.shape, dtype=bool)] = 0.0  # each pair once
        sizes = np.abs(block).ravel()
        for k in np.argpartition(sizes, -min(count, sizes.size))[-min(count, sizes.size) :]:
            i, j = divmod(int(k), block.shape[1])
            found.append((float(block[i, j]), first + i, first + j))
    found = sorted(found, key=lambda entry: (-abs(entry[0]), entry[1:]))[:count]
    return [
        {"pair": [matrix.names[i], matrix.names[j]], "correlation": float(np.clip(c, -1.0, 1.0))}
        for c, i, j in found
        if abs(c) > _ROUNDING
    ]
