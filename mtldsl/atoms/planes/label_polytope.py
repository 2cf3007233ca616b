"""The nearest point of the polytope of expected Upsilon(y) - Upsilon(y_i), which is known through its highest vertex in a direction."""

from __future__ import annotations

import numpy as np

from mtldsl.inference import Cliques, Decoder

__all__ = ["project"]

#: the gap at which a projection is exact, relative to the terms that cancel in it
_EXACT = 1e-14
_MOST_ROUNDS = 1000


def project(cliques: Cliques, points, truth) -> np.ndarray:
    """(n, S) for every sample the point nearest to points_i of the convex hull of Upsilon(y) - Upsilon(truth_i), y any labelling.

    The minimum-norm-point method: the labelling that is highest along what is left joins, and weights are solved for again.
    Samples go in step, so that a round is one call of inference.

    Source: Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11 (1976).

    >>> project(Cliques(1), [[0.0, 0.25], [-3.0, 0.0]], [[0], [0]])
    array([[-0.125,  0.125],
           [-1.   ,  1.   ]])
    """
    points, truth = np.asarray(points, float), np.asarray(truth)
    decoder, own = Decoder(cliques), cliques.indicators(truth)
    found = np.zeros_like(points)
    hulls = [_Hull(point) for point in points]
    unfinished = np.arange(len(points))
    for _ in range(_MOST_ROUNDS):
        left = np.ascontiguousarray(points[unfinished] - found[unfinished])
        vertices = cliques.indicators(decoder(left).labels) - own[unfinished]
        moved = []
        for i, direction, vertex in zip(unfinished, left, vertices, strict=True):
            if hulls[i].add(vertex, direction, found[i]):
                found[i] = hulls[i].nearest
                moved.append(i)
        unfinished = np.array(moved, dtype=int)
        if not unfinished.size:
            break
    return found


class _Hull:
    """The vertices met so far, the true labelling's (zero) first, and their weights."""

    def __init__(self, point):
        self.point = point
        self.vertices = np.zeros((1, len(point)))
        self.weights = np.ones(1)

    def add(self, vertex, direction, nearest) -> bool:
        """Whether the vertex is new and lies further along the direction than the nearest point, which is then found again."""
        from mtldsl.atoms.planes.simplex_kernel import solve_on_simplex  # numba is imported where it is used

        size = np.abs(direction) @ (np.abs(vertex) + np.abs(nearest))
        if (vertex - nearest) @ direction <= _EXACT * size or np.any(np.all(self.vertices == vertex, axis=1)):
            return False
        self.vertices = np.vstack([self.vertices, vertex])
        self.weights = np.append(self.weights, 0.0)
        gram = np.ascontiguousarray(self.vertices @ self.vertices.T)
        solve_on_simplex(gram, self.vertices @ self.point, self.weights, 1e-15)
        return True

    @property
    def nearest(self) -> np.ndarray:
        return self.weights @ self.vertices
