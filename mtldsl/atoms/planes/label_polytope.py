"""The nearest point of the polytope of expected Upsilon(y) - Upsilon(y_i), which is known through its highest vertex in a direction."""

from __future__ import annotations

import numpy as np

from mtldsl.inference import Cliques, Decoder
from mtldsl.inference.batch import rows_at_once

__all__ = ["project"]

#: The gap at which a projection is exact, relative to the terms that cancel in it.
_EXACT = 1e-14
#: Labellings that a sample can mix, to begin with.
_SLOTS = 64
#: Highest vertices that one projection looks for, as a rule.
_VERTICES = 100


def project(cliques: Cliques, points, truth) -> np.ndarray:
    """(n, S) for every sample the point nearest to points_i of the convex hull of Upsilon(y) - Upsilon(truth_i), y any labelling.

    The minimum-norm-point method: the labelling that is highest along what is left joins, and weights are solved for again. Exact
    where inference is; where it is not, a point of the hull all the same.

    Source: Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11 (1976).

    >>> project(Cliques(1), [[0.0, 0.25], [-3.0, 0.0]], [[0], [0]])
    array([[-0.125,  0.125],
           [-1.   ,  1.   ]])
    """
    from mtldsl.atoms.planes.label_polytope_kernel import project_each

    points = np.ascontiguousarray(points, dtype=float)
    truth = np.ascontiguousarray(truth, dtype=np.uint8)
    decoder, found, slots = Decoder(cliques), np.zeros_like(points), _SLOTS
    graph = cliques.table, cliques.sizes, cliques.starts
    most = rows_at_once(_VERTICES * decoder.operations)
    for begin in range(0, len(points), most):
        rows = slice(begin, begin + most)
        while not project_each(
            points[rows], truth[rows], *graph, *decoder.choice, decoder.plan, *decoder.scratch(), slots, _EXACT, found[rows],
        ):  # fmt: skip
            slots *= 2
    return found
