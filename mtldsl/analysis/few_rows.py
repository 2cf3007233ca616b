"""Squares of many rows as squares of few along a whole path: after one pass a value costs what the features and tasks do, however many rows there are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mtldsl.compile.kinds import kind_of
from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.compile.terms.moments import Moments, moments_here
from mtldsl.proof.bound import UNITS
from mtldsl.tasks import Tasks

__all__ = ["FewRows"]

_EPS = float(np.finfo(float).eps)
#: the rows given outnumber those made so many times at least; else nothing is won
_FEWER = 2.0
#: multiplications of a decomposition, in cubes of the features, and passes over the data for a value
_DECOMPOSED, _PASSES = 10.0, 3.0


@dataclass(frozen=True, eq=False)
class _Known:
    """What losses stand for, value after value: the rows made of theirs, and their moments.

    lengths : of every loss, (||X_i||, with a column of ones, and ||y_i||) of its tasks (m,) each
    """

    losses: tuple[LossTerm, ...]
    moments: tuple[Moments, ...]
    here: tuple[LossTerm, ...]
    lengths: tuple[tuple[np.ndarray, np.ndarray], ...]
    units: int


class FewRows:
    """X (n, d) and y become R (r+1, d) and y' with ||R w - y'|| = ||X w + b - y|| at every w, b the intercept that fits best there, as in
    `mtldsl.compile.reductions.gathered`, for rows that are here.

    R comes of the Gram matrix, whose entries are sums with rounding of their own: `whole` says how much an objective may owe to that, which no certificate of the smaller form can know.
    """

    def __init__(self, form: NormalForm):
        moments = tuple(moments_here(loss.tasks) for loss in form.losses)
        made = [
            m.rows(bool(loss.intercepts), loss.tasks) for m, loss in zip(moments, form.losses, strict=True)
        ]
        units = UNITS + max(loss.tasks.n_features for loss in form.losses)
        self._known = _Known(
            form.losses, moments, _on(form.losses, made), tuple(map(_lengths, moments)), units
        )

    @staticmethod
    def pays(form: NormalForm, values: int) -> bool:
        """Whether every loss is a sum of squares, and so many values are cheaper with their decompositions than without."""
        if form.entangled_intercepts is not None or not form.losses:
            return False
        return all(_pays(loss, values) for loss in form.losses)

    def of(self, form: NormalForm) -> NormalForm:
        """The form at the parameters' present values, without intercepts."""
        known = self._known
        if any(a is not b for a, b in zip(form.losses, known.losses, strict=True)):  # other coefficients
            known = replace(
                known, losses=form.losses, here=_on(form.losses, [one.tasks for one in known.here])
            )
            self._known = known
        blocks = tuple(block for block in form.blocks if block.intercept_of is None)
        small = replace(form, blocks=blocks, losses=known.here)
        small.share(form.remembered.setdefault(FewRows, {}))
        return small

    def whole(self, blocks: Blocks) -> tuple[Blocks, float]:
        """(these weights with the intercepts that fit best, by how much rounding in the moments may misplace objective and bound there).

        64 eps and one a feature of (||X_i|| ||(w_i, b_i)|| + ||y_i||)^2, the absolute values that a task's squares are sums of.
        """
        known, total, found = self._known, 0.0, dict(blocks)
        for loss, moments, (inputs, labels) in zip(known.losses, known.moments, known.lengths, strict=True):
            W = np.asarray(loss.map.forward(blocks))
            squares = np.einsum("ij,ij->j", W, W)
            if loss.intercepts:
                b = moments.intercepts(W)
                found |= {name: b[None, :] for name in loss.intercepts}
                squares += b * b
            curvature = loss.atom.quadratic
            assert curvature is not None  # `pays` lets through nothing else
            sizes = inputs * np.sqrt(squares) + labels
            total += 0.5 * curvature * float(loss.coefficients @ (sizes * sizes))
        return found, known.units * _EPS * total if math.isfinite(total) else math.inf


def _lengths(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    m = len(moments.square)
    traces = [float(np.trace(moments.gram(i))) for i in ([0] if moments.is_common else range(m))]
    return np.sqrt(np.broadcast_to(np.array(traces), m)), np.sqrt(moments.square)


def _on(losses: tuple[LossTerm, ...], made: list[Tasks]) -> tuple[LossTerm, ...]:
    return tuple(
        kind_of(loss.atom, tasks)(loss.atom, loss.coefficients, tasks, loss.map, (), loss.typed)
        for loss, tasks in zip(losses, made, strict=True)
    )


def _pays(loss: LossTerm, values: int) -> bool:
    tasks = loss.tasks
    if loss.atom.quadratic is None or tasks.is_distributed or tasks.is_sparse:
        return False
    n, d, m = float(tasks.n_samples), tasks.n_features, tasks.n_tasks
    common = loss.is_shared_complete and tasks.sample_weights is None
    grams = 1 if common else m
    rows = n / m if common else n
    made = rows * d * d + grams * _DECOMPOSED * d**3
    return rows >= _FEWER * grams * (d + 1) and made <= _PASSES * values * n * d
