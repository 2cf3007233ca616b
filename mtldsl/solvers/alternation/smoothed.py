"""Alternation with covariances of bounded trace: smoothed, since a covariance that has become singular never recovers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.structure import Structures, structure_terms
from mtldsl.solvers.alternation.blocks import assert_descent
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Rhythm

__all__ = ["alternate_smoothed"]

#: The smoothing at first, relative to the largest singular value, and what is left of it after an iteration. Measured on three
#: tasks of rank two: 0.9 ends 1e-5 above the optimum, 0.97 1e-6 (300 iterations), 0.99 2e-7 (1,000).
_FIRST, _KEPT = 0.1, 0.98


def alternate_smoothed(
    step, form: NormalForm, x: Blocks, structures: Structures, *, max_iter: int, watch: Watch
) -> Point:
    """Weights, then covariances C = (W W^T + eps^2 I)^{1/2} up to their trace, with eps -> 0, until `watch` is content.

    Without eps, alternation locks: a direction that C has lost costs infinitely much, and weights that should turn towards it
    cannot. Each step minimises loss + tr((W W^T + eps^2 I) C^{-1}) over one block, and eps only falls, so that this falls too.
    Source: Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008), sec. 4.
    """
    eps, before, size, point, looks = None, np.inf, 0.0, Point(x), Rhythm(watch, max_iter)
    terms = structure_terms(form)
    for iteration in range(1, max_iter + 1):
        point = step.solve(structures, x)
        x, point.iteration = point.blocks, iteration
        images = [term.map.forward(x) for term in terms]
        if eps is None:
            eps = _FIRST * max(np.linalg.norm(W, 2) for W in images)
        eps = max(_KEPT * eps, np.finfo(float).tiny)
        structures, added = {}, 0.0
        for term, W in zip(terms, images, strict=True):
            structure: Any = term.structure  # `smoothed` is of those that are solved so
            (C,) = structure.smoothed(W, eps)
            structures |= term.named((C,))
            added += term.coefficient * eps**2 * C.power(-1.0).trace()
        value = step.value(x, structures) + added
        size = size or step.size(x)
        assert_descent(before, value, iteration, step.rise * size)
        before = value
        if looks(point):
            break
    return point
