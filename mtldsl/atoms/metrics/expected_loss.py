"""Conjugates of structured hinges: the largest expected metric over random labellings or mixtures of planes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# --------------------------------------------------------------------------------------------------------------
# The largest expected Delta of a random labelling with given flip probabilities: minus the conjugate of a structured hinge.
#
# A point of dom f* is u = -2 y p, and p in [0, 1]^n is the probability with which each sample is flipped. Many random labellings
# have these margins; -f*(u) is the largest E Delta(b, c) among them. A law of b negatives flipped has the margins p exactly where
# E min(b, k) >= the sum of the k largest p for every k, with equality for all of them: the vectors with b ones span the base
# polytope of the rank function min(k, b), and base polytopes add up as their rank functions do. Likewise for c, and the two need
# only share the law of (b, c): a linear program over tables.


@dataclass(frozen=True)
class ExpectedLossSettings:
    """Limits of linear programs over tables.

    program_tables  : tables up to which the linear program is solved, in some tenths of a second
    plane_gap_tol   : relative gap at which no plane is missing any more
    plane_rounds    : rounds of cutting planes
    equation_factor : factor of the equations, since their tolerance of 1e-10 is absolute
    touching_tol    : depth below the highest plane at which another touches, relatively
    """

    program_tables: int = 3000
    plane_gap_tol: float = 1e-12
    plane_rounds: int = 2000
    equation_factor: float = 1e4
    touching_tol: float = 1e-11


SETTINGS = ExpectedLossSettings()


#: Rounding of an equation between sums, relative to the sums.
SUM_ROUNDING_SHARE = 64 * np.finfo(float).eps

#: Distance from 0 or 1 at which a probability is 0 or 1.
_PROBABILITY_ROUNDING = 8 * np.finfo(float).eps


def flip_probabilities(u, y) -> np.ndarray | None:
    """p with u = -2 y p; None where it leaves [0, 1] by more than rounding."""
    p = -0.5 * np.asarray(u, float) * y
    inside = np.clip(p, 0.0, 1.0)
    return inside if np.all(np.abs(p - inside) <= _PROBABILITY_ROUNDING) else None  # NaN is outside


def best_law(delta: Callable, of_positives: np.ndarray, of_negatives: np.ndarray) -> tuple:
    """(largest E delta(b, c) over random labellings with these flip probabilities, the (b, c, weights) of one that attains it).

    (-inf, None) where tables are forbidden and no labelling is left.

    Exact where the samples with a probability in (0, 1) have at most `SETTINGS.program_tables` tables; otherwise the best of eight random
    labellings that can be written down, a lower bound.
    """
    sizes = len(of_positives), len(of_negatives)
    c, p = _open(of_positives)
    b, q = _open(of_negatives)
    if len(b) * len(c) > SETTINGS.program_tables:
        return _best_coupling(delta, of_positives, of_negatives)
    table = np.array(np.broadcast_to(delta(b[None, :], c[:, None], *sizes), (len(c), len(b))), float)
    first = float(table[0, 0])
    if table.size == 1:
        return first, (b[:1], c[:1], np.ones(1))
    if not np.isfinite(first):
        fun, status, weights = _solve(table, p, q, exactly=1.0)
        if status == 0:
            row, column = np.nonzero(np.isfinite(table))
            return float(-fun), (b[column], c[row], np.maximum(weights, 0.0))
    else:
        # the law says how often each other table is met; measured by the sum of p, however small, tolerances are relative
        scale = min(1.0, float(np.sum(p) + np.sum(q)))
        gain = np.where(np.isfinite(table), table - first, -np.inf)
        gain[0, 0] = -np.inf
        fun, status, weights = _solve(gain, p / scale, q / scale, most=1.0 / scale)
        if status == 0:
            row, column = np.nonzero(np.isfinite(gain))
            weights = scale * np.maximum(weights, 0.0)
            rest = max(0.0, 1.0 - float(np.sum(weights)))
            law = np.append(b[column], b[0]), np.append(c[row], c[0]), np.append(weights, rest)
            return float(first - scale * fun), law
    return (-np.inf, None) if status == 2 else _best_coupling(delta, of_positives, of_negatives)


def largest_multiple(delta: Callable, of_positives: np.ndarray, of_negatives: np.ndarray) -> float:
    """The largest t <= 1 for which the probabilities t p have a random labelling without forbidden tables (0 where unknown)."""
    sizes = len(of_positives), len(of_negatives)
    b, c = np.arange(sizes[1] + 1), np.arange(sizes[0] + 1)
    if len(b) * len(c) > SETTINGS.program_tables:
        return 0.0
    table = np.broadcast_to(delta(b[None, :], c[:, None], *sizes), (len(c), len(b)))
    others = np.where(np.isfinite(table), 0.0, -np.inf)
    others[0, 0] = -np.inf
    # the law of the tables with a flip, over t, has the total 1 / t at most: the smallest total gives the largest t
    p, q = (np.sort(p)[::-1] for p in (of_positives, of_negatives))
    fun, status, _ = _solve(others - 1.0, p, q)
    return min(1.0, 1.0 / fun) if status == 0 and fun > 0.0 else 0.0


def _open(p) -> tuple[np.ndarray, np.ndarray]:
    """(counts that are possible, probabilities strictly between 0 and 1 in descending order)."""
    certain = int(np.sum(p >= 1.0 - _PROBABILITY_ROUNDING))
    free = np.sort(p[(p > _PROBABILITY_ROUNDING) & (p < 1.0 - _PROBABILITY_ROUNDING)])[::-1]
    return certain + np.arange(len(free) + 1), free


def _solve(gain, p, q, most: float | None = None, exactly: float | None = None):
    """(minus the largest sum of weight * gain, status, weights) over weights >= 0 of the tables (c, b) with a finite gain, such
    that the weighted sums of min(c, k) are at least the sums of the k largest of p, likewise b and q. Total weight: given or free.
    """
    from scipy.optimize import linprog

    allowed = np.isfinite(gain)
    row, column = np.nonzero(allowed)
    if row.size == 0:
        return 0.0, 2, np.zeros(0)
    ones, sides = np.ones((1, row.size)), ((row, p), (column, q))
    # the k largest, k less than all
    at_most = [
        *([] if most is None else [ones]),
        *(-np.minimum(counts, np.arange(1, len(m))[:, None]) for counts, m in sides),
    ]
    of_at_most = [[] if most is None else [most], *(-np.cumsum(m)[:-1] for _, m in sides)]
    equal = [*(counts[None] for counts, _ in sides), *([] if exactly is None else [ones])]
    of_equal = [*(np.sum(m) for _, m in sides), *([] if exactly is None else [exactly])]
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(
        -gain[allowed],
        np.vstack(at_most),
        np.concatenate(of_at_most),
        np.vstack(equal),
        np.array(of_equal),
        method="highs-ds",
        options=tight,
    )
    return solved.fun, solved.status, solved.x


def _best_coupling(delta, of_positives, of_negatives) -> tuple:
    """(the best expectation of eight, its law (b, c, weights) or None): the count of either class spread or concentrated, both driven by
    the same theta or by theta and 1 - theta, with theta uniform on [0, 1].
    """
    sizes, best, law = (len(of_positives), len(of_negatives)), -np.inf, None
    for c_ends, c_counts in _laws(of_positives):
        for ends, counts in _laws(of_negatives):
            mirrored = np.append(1.0 - ends[:-1][::-1], 1.0), counts[::-1]
            for b_ends, b_counts in ((ends, counts), mirrored):
                cuts = np.union1d(c_ends, b_ends)
                b, c = b_counts[np.searchsorted(b_ends, cuts)], c_counts[np.searchsorted(c_ends, cuts)]
                values = np.broadcast_to(delta(b, c, *sizes), cuts.shape)
                weights = np.diff(cuts, prepend=0.0)
                if np.all(np.isfinite(values)) and float(values @ weights) > best:
                    best, law = float(values @ weights), (b, c, weights)
    return best, law


def _laws(p):
    """Two laws of the number of flips, as (ends, counts): counts[i] for theta in (ends[i - 1], ends[i]], the last end is 1.

    Spread: flip where p >= theta. Concentrated: one of the two whole numbers around the sum of p, which some law with the
    margins p has.
    """
    levels, first = np.unique(np.append(np.sort(p), 1.0), return_index=True)
    total = float(np.sum(p))
    whole = int(np.floor(total))
    if whole == total:
        concentrated = np.ones(1), np.array([whole])
    else:
        concentrated = np.array([total - whole, 1.0]), np.array([whole + 1, whole])
    return (levels, len(p) - first), concentrated


# --------------------------------------------------------------------------------------------------------------
# The largest expected Delta of a mixture of planes with a given mean slope: a linear program over the planes that it needs.


def largest_mixture(
    oracle: Callable, u: np.ndarray, far: float
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """(value, slopes (K, n), weights (K,)): max of <weights, deltas> over mixtures of planes with the mean slope u; None where the program
    cannot be solved.

    oracle : z -> (slope, delta) of a highest plane at z; u : a mixture of such slopes, but for rounding
    far    : the size of scores beyond which planes do not change order; a hundred times as much is what u may be missed at

    In the dual: min over z of f(z) - <u, z>, by cutting planes; the plane that is highest at z is added as long as it is higher
    than the model.
    """
    from scipy.optimize import linprog, nnls

    n = len(u)
    slope, delta = oracle(np.zeros(n))
    slopes, deltas = np.array([np.zeros(n), slope]), np.array([0.0, delta])
    factor = SETTINGS.equation_factor
    fine, box, miss = factor * far, np.eye(n), np.full(2 * n, -100.0 / factor)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    weights, z, height = np.array([1.0, 0.0]), np.zeros(n), 0.0
    for _ in range(SETTINGS.plane_rounds):
        # weights >= 0 with a sum of 1, and what is missed of u in both directions
        sums = np.append(np.full(len(deltas), factor), np.zeros(2 * n))
        A, b = np.vstack([np.hstack([fine * slopes.T, box, -box]), sums]), np.append(fine * u, factor)
        solved = linprog(-np.append(deltas, miss), A_eq=A, b_eq=b, method="highs-ds", options=tight)
        if solved.status != 0:
            return None
        z, height = fine * solved.eqlin.marginals[:n], -factor * solved.eqlin.marginals[n]
        weights = np.maximum(solved.x[: len(deltas)], 0.0)
        slope, delta = oracle(z)
        size = 1.0 + np.abs(slope) @ np.abs(z)
        known = np.all(slopes == slope, axis=1) & (deltas == delta)
        if delta + slope @ z - height <= SETTINGS.plane_gap_tol * size or known.any():
            break
        slopes, deltas = np.vstack([slopes, slope]), np.append(deltas, delta)
        weights = np.append(weights, 0.0)
    # the program is solved to its tolerance; the planes that touch at z have the mean u to the last place, where any have
    touching = np.flatnonzero(
        (deltas + slopes @ z >= height - SETTINGS.touching_tol * (1.0 + abs(height))) | (weights > 0.0)
    )
    sums = np.vstack([far * slopes[touching].T, np.ones(len(touching))])
    weights = nnls(sums, np.append(far * u, 1.0), maxiter=100 * len(sums))[0]
    used = touching[weights > 0.0]
    weights = weights[weights > 0.0]
    # the mean is missed by rounding, which scores of the size of z or `far` magnify: to the value's disadvantage
    missed = np.maximum(np.abs(z), far) @ np.abs(weights @ slopes[used] - u) + abs(
        height * (1.0 - weights.sum())
    )
    return float(weights @ deltas[used] - missed), slopes[used], weights
