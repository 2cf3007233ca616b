"""Projections on hulls of labellings, and the prox of a maximum of planes, through an oracle that names one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.inference.cliques import Cliques
from mtldsl.atoms.inference.decoder import Decoder, rows_at_once

# --------------------------------------------------------------------------------------------------------------
# The prox of a maximum of affine functions that is known through an oracle: planes are added until none is violated.


@dataclass(frozen=True)
class PolytopeSettings:
    """Limits of searches in polytopes that are known by their highest vertices.

    gap_tol             : gap at which a prox is exact, relative to the terms that cancel in it
    plane_rounds        : rounds of cutting planes
    mixed_labellings    : labellings that a sample can mix, to begin with
    projection_vertices : highest vertices that one projection looks for, as a rule
    largest_tilt        : weight of costs beside the distance from a mean: little enough for a few rounds
    tilt_share          : and at most so much of the mean's own size
    tilt_rounds         : tilted projections of one search
    mean_tol            : what the last one may miss the mean by, relatively
    """

    gap_tol: float = 1e-14
    plane_rounds: int = 10_000
    mixed_labellings: int = 64
    projection_vertices: int = 100
    largest_tilt: float = 1e-5
    tilt_share: float = 0.1
    tilt_rounds: int = 20
    mean_tol: float = 1e-15


SETTINGS = PolytopeSettings()


def prox_of_planes(oracle: Callable, z: np.ndarray, step: float) -> np.ndarray:
    """argmin over x of step * f(x) + 1/2 ||x - z||^2, f(x) = max_k delta_k + <a_k, x>; oracle(x) -> (a, delta) of a highest plane.

    In the dual, over the simplex of the planes met so far: x = z - step * A^T beta. The plane that is highest at x is added;
    where it is no higher than what beta promises (the Frank-Wolfe gap), x is the minimiser. Finite, since the planes are.
    """
    from mtldsl.atoms.structured_prox.polytope_kernels import (
        solve_on_simplex,  # numba is imported where it is used
    )

    a, delta = oracle(z)
    planes, deltas, beta = a[None, :], np.array([delta]), np.ones(1)
    gram = planes @ planes.T
    x = z - step * a
    for _ in range(SETTINGS.plane_rounds):
        a, delta = oracle(x)
        promised = float(beta @ (deltas + planes @ x))
        gap = delta + a @ x - promised
        size = abs(delta) + np.abs(a) @ np.abs(x) + abs(promised) + np.abs(beta @ planes) @ np.abs(x)
        if gap <= SETTINGS.gap_tol * size or np.any(np.all(planes == a, axis=1) & (deltas == delta)):
            return x  # a plane that is known already has no more to say: what is left of the gap is rounding
        cross = planes @ a
        gram = np.block([[gram, cross[:, None]], [cross[None, :], a @ a]])
        planes, deltas, beta = np.vstack([planes, a]), np.append(deltas, delta), np.append(beta, 0.0)
        solve_on_simplex(step * gram, deltas + planes @ z, beta, 1e-15)
        x = z - step * (beta @ planes)
    return x


# --------------------------------------------------------------------------------------------------------------
# The nearest point of the polytope of expected Upsilon(y) - Upsilon(y_i), which is known through its highest vertex in a direction.


def project(cliques: Cliques, points, truth) -> np.ndarray:
    """(n, S) for every sample the point nearest to points_i of the convex hull of Upsilon(y) - Upsilon(truth_i), y any labelling with the gaps
    of truth_i; entries outside of the graph of its observed labels are 0 there.

    The minimum-norm-point method: the labelling that is highest along what is left joins, and weights are solved for again. Exact
    where inference is; where it is not, a point of the hull all the same.

    Source: Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11 (1976).

    >>> project(Cliques(1), [[0.0, 0.25], [-3.0, 0.0]], [[0], [0]])
    array([[-0.125,  0.125],
           [-1.   ,  1.   ]])
    """
    return _projected(Decoder(cliques), cliques, points, truth, None, None, np.zeros(len(points)))[0]


def project_tilted(cliques: Cliques, points, truth, rows, costs, tilts) -> tuple[np.ndarray, np.ndarray]:
    """(points found_i (n, S) of those hulls, E[cost] (n,) of the random labellings that they are the means of), the ones that maximise
    tilts_i E[cost] - 1/2 ||found_i - points_i||^2. rows (n,), costs (T, 2^K): labelling number r of sample i costs costs[rows[i], r].

    >>> project_tilted(Cliques(1), [[0.0, 0.0]], [[0]], [0], np.array([[0.0, 1.0]]), [0.5])
    (array([[-0.25,  0.25]]), array([0.25]))
    """
    rows, tilts = np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(tilts, dtype=float)
    return _projected(Decoder(cliques, "enumeration"), cliques, points, truth, rows, costs, tilts)


def dearest_mean(cliques: Cliques, points, truth, rows, costs) -> tuple[np.ndarray, np.ndarray]:
    """(means found_i (n, S) of random labellings, their E[cost] (n,)), the largest E[cost] for means points_i that lie in those hulls, which
    found_i are but for rounding; patterns and costs as in `project_tilted`.

    A linear program, by the method of multipliers: what a tilted projection misses is added to what is asked for, and the next one
    misses less; after a few rounds it misses nothing, and the tilt has cost nothing.

    Source: Bertsekas, "Constrained Optimization and Lagrange Multiplier Methods" (1982), section 5.4: on linear programs it ends.

    >>> dearest_mean(Cliques(1), [[-0.25, 0.25]], [[0]], [0], np.array([[0.0, 1.0]]))
    (array([[-0.25,  0.25]]), array([0.25]))
    """
    points = np.array(cliques.within(points, truth), dtype=float)
    sizes = np.abs(points).max(axis=1, initial=0.0)
    tilts, asked = np.minimum(SETTINGS.largest_tilt, SETTINGS.tilt_share * sizes), points.copy()
    for _ in range(SETTINGS.tilt_rounds):
        found, expected = project_tilted(cliques, asked, truth, rows, costs, tilts)
        missed = points - found
        if np.all(np.abs(missed).max(axis=1, initial=0.0) <= SETTINGS.mean_tol * sizes):
            break
        asked += missed
    return found, expected


def _projected(decoder: Decoder, cliques: Cliques, points, truth, patterns, costs, tilts):
    from mtldsl.atoms.structured_prox.polytope_kernels import project_each

    points = np.ascontiguousarray(cliques.within(points, truth), dtype=float)
    truth = np.ascontiguousarray(truth, dtype=np.uint8)
    found, slots, expected = np.zeros_like(points), SETTINGS.mixed_labellings, np.zeros(len(points))
    graph = cliques.table, cliques.sizes, cliques.starts
    most = rows_at_once(SETTINGS.projection_vertices * decoder.operations)
    for begin in range(0, len(points), most):
        rows = slice(begin, begin + most)
        while not project_each(
            points[rows], truth[rows], *graph, *decoder.choice, decoder.plan, *decoder.scratch(), slots, SETTINGS.gap_tol, found[rows],
            None if patterns is None else patterns[rows], costs, tilts[rows], expected[rows],
        ):  # fmt: skip
            slots *= 2
    return found, expected
