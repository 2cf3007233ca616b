"""The method of multipliers: outer steps, whose penalties grow by what is missing and by what Newton's method makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.newton import Newton, Penalties, State

__all__ = ["Outer", "Residuals", "first_state"]

_FEW, _SOME, _MORE, _MANY = 2, 8, 20, 30  # Newton steps of an outer step that is easy, ..., hard
_EASY, _USUAL, _HARD = 2.0, 1.4, 0.7  # penalties after it
_GIVE, _MOST_GIVE = (
    2.0,
    10.0,
)  # how much faster the proximal term gives way where its pull is the worst of what is missing
_FIRMER = 2.0  # the proximal term after a hard one: it is what makes Newton's systems regular
_SMALL, _SMALLER = (
    (0.3, 0.1),
    0.03,
)  # disagreement of scores and of weights, of the worst, that needs no higher penalty; a lower one
_LOWER = 0.2
_PROXIMAL = 0.1  # its first share of the curvature
#: near the solution the first penalties are so many times as high, and the first proximal term this share: what outer steps would make of them
#: in turn. Measured on the digits, and judged on generated tables: three quarters of the time of a path, half of its outer steps
_NEAR_PENALTY, _NEAR_PROXIMAL = 16.0, 0.05
_PATIENCE = 15  # outer steps in which what is missing must fall by half


@dataclass
class Residuals:
    """What is missing, one number a task, relative: scores from their copies, weights from theirs, and the pull of the proximal term."""

    scores: np.ndarray
    weights: np.ndarray
    pull: np.ndarray

    @property
    def worst(self) -> np.ndarray:
        return np.maximum(np.maximum(self.scores, self.weights), self.pull)


def first_state(
    designs: Designs, W: np.ndarray, b: np.ndarray, u: np.ndarray | None, P: np.ndarray | None
) -> State:
    """At weights W and intercepts b (of centred columns), with multipliers where they are known."""
    z = designs.forward(W, b)
    u = np.zeros(len(z)) if u is None else np.array(u, float)
    return State(W.copy(), b.copy(), z, u, np.zeros_like(W) if P is None else P, W.copy())


class Outer:
    """A run for the tasks of `designs`; each by itself where the regularizer is separable.

    is_near : whether it begins near the solution
    """

    def __init__(
        self,
        designs: Designs,
        scores,
        part,
        at: State,
        penalties: Penalties | None = None,
        is_near: bool = False,
    ):
        self.designs, self.scores, self.part, self.at = designs, scores, part, at
        self.newton = Newton(designs, scores, part)
        self.spread = np.maximum(scores.spread_of_scores(designs), 1e-12)
        self.penalties = self._first_penalties(is_near) if penalties is None else penalties
        self.best, self.since = np.inf, 0

    def step(self, most: int) -> int:
        """One outer step of at most so many Newton steps; how many it took."""
        new, steps = self.newton.minimize(self.at, self.penalties, most)
        self.residuals = self._residuals(new)
        self.at = new
        self._raise(steps)
        worst = float(self.residuals.worst.max())
        self.best, self.since = (worst, 0) if worst < 0.5 * self.best else (self.best, self.since + 1)
        return int(steps.max(initial=0))

    @property
    def is_stalled(self) -> bool:
        return self.since >= _PATIENCE

    def on(self, keep: np.ndarray) -> Outer:
        """The run of some tasks alone, where they are not tied."""
        designs = self.designs.on(keep)
        flat = np.concatenate(
            [
                np.arange(a, b)
                for a, b in zip(self.designs.starts[keep], self.designs.offsets[1:][keep], strict=True)
            ]
        )
        at, p = self.at, self.penalties
        state = State(
            *(
                np.ascontiguousarray(A)
                for A in (at.W[:, keep], at.b[keep], at.z[flat], at.u[flat], at.P[:, keep], at.v[:, keep])
            )
        )
        penalties = Penalties(p.loss[keep], p.regularizer[keep], p.proximal[keep])
        run = Outer(designs, self.scores.on(keep, flat), self.part.on(keep), state, penalties)
        run.best, run.since = self.best, self.since
        return run

    def _first_penalties(self, is_near: bool) -> Penalties:
        """A loss: the size of its multipliers over that of its scores; the regularizer: the curvature that the losses' copies put on
        weights, or its own; the proximal term: a share of that."""
        loss = self.newton.pooled(self.scores.sizes(self.designs) / self.spread)
        curvature = loss * self.designs.counts
        if not self.part.is_separable:
            loss = loss / self.designs.n_tasks
            curvature = np.full(len(loss), (loss * self.designs.counts).mean())
        if not self.part.has_copy:
            curvature = self.part.metric(loss)[0]
        if is_near:
            return Penalties(_NEAR_PENALTY * loss, curvature, _NEAR_PROXIMAL * _PROXIMAL * curvature)
        return Penalties(loss, curvature, _PROXIMAL * curvature)

    def _residuals(self, new: State) -> Residuals:
        designs, at, p, unit = self.designs, self.at, self.penalties, self.part.unit[:, None]
        pooled = self.newton.pooled
        apart = pooled(designs.sums((new.u - at.u) ** 2) / p.loss**2)
        scores = np.sqrt(apart / pooled(designs.counts * self.spread**2))
        size = np.maximum(pooled(((unit * new.W) ** 2).sum(axis=0)), 1e-300)
        apart = pooled((((new.P - at.P) / unit) ** 2).sum(axis=0) / p.regularizer**2)
        weights = np.minimum(np.sqrt(apart / size), 1.0) * self.part.has_copy
        size = np.maximum(pooled(((new.P / unit) ** 2).sum(axis=0)), 1e-300)
        pull = np.sqrt(pooled(((unit * (new.W - at.W)) ** 2).sum(axis=0) * p.proximal**2) / size)
        return Residuals(scores, weights, np.minimum(pull, 10.0))

    def _raise(self, steps: np.ndarray) -> None:
        """Penalties grow while Newton's method is quick, but for those of what agrees well already; the proximal term gives way."""
        p, now = self.penalties, self.residuals
        factor = np.where(steps <= _FEW, _EASY, np.where(steps < _MANY, _USUAL, _HARD))
        if not self.part.is_separable:
            factor = np.full(len(factor), factor.min())
        others = np.maximum(np.maximum(now.scores, now.weights), 1e-300)
        most = np.where(steps <= _SOME, _MOST_GIVE, np.where(steps <= _MORE, _GIVE, 1.0))
        give = np.clip(np.sqrt(now.pull / others), np.minimum(most, _GIVE), most)
        give = np.where(now.pull >= now.worst, give, 1.0)
        give = np.where(steps >= _MANY, 1.0 / _FIRMER, give)
        if not self.part.is_separable:
            give = np.full(len(give), give.min())
        hard = steps > _FEW
        of_scores, of_weights = (
            np.where(hard & (missing < share * now.worst), np.minimum(factor, 1.0), factor)
            for missing, share in zip((now.scores, now.weights), _SMALL, strict=True)
        )
        of_weights = np.where(now.weights < _SMALLER * now.worst, _LOWER, of_weights)
        of_weights = of_weights if self.part.has_copy else 1.0
        self.penalties = Penalties(
            p.loss * of_scores, p.regularizer * of_weights, p.proximal / (factor * give)
        )
