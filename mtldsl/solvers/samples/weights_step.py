"""Kernel weights between passes: the closed form (E.1), with longer steps where it keeps going the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mtldsl.atoms.structures import Ball

__all__ = ["WeightsStep"]

#: A step in the direction of the one before is longer by the first, one that turns is shorter by the second.
_LONGER, _SHORTER = 1.3, 0.5

#: So many times (E.1) at most, for weights on their way to zero (below a part of the largest) and for the others, which could overshoot.
_LONGEST, _VANISHING, _BOLDEST = 40.0, 0.01, 4.0

#: The sum of weights at their least is this part of the relative gap, relative to the largest: the gap that is left is not theirs.
_LEAST = 0.1


class WeightsStep:
    """theta <- theta (E.1(theta) / theta)^longer, into the ball; (E.1) is the minimiser where the parts W_m are kept, `Ball.update`.

    A weight that tends to zero, as most do for p = 1, falls by the same small factor at every step of (E.1); so `longer`, one a
    weight, grows while its weight goes the same way.
    """

    def __init__(self, ball: Ball, n: int):
        self.ball = ball
        self.longer, self.before, self.boldness = np.ones(n), np.zeros(n), 1.0

    def __call__(self, theta: np.ndarray, b: np.ndarray, gap: float) -> np.ndarray:
        """The next weights; `gap` is the relative gap as far as it is known."""
        if not np.any(theta * b):
            return self.lifted(theta, gap)
        closed_form = self.ball.update(theta**2 * b)
        way = np.log(np.maximum(closed_form, np.finfo(float).tiny) / theta)
        same = way * self.before > 0
        most = np.where((theta < _VANISHING * theta.max()) & (way < 0), _LONGEST, self.boldness)
        self.longer = np.clip(self.longer * np.where(same, _LONGER, _SHORTER), 1.0, most)
        self.before = way
        # one step multiplies by no more than a factor of ten
        return self.lifted(theta * np.exp(np.clip(self.longer * way, -2.3, 2.3)), gap)

    def lifted(self, theta: np.ndarray, gap: float) -> np.ndarray:
        """The weights in the ball, none so small that it could not come back: steps multiply, and zero would stay zero."""
        theta = np.maximum(theta, _LEAST / theta.size * min(gap, 1.0) * theta.max())
        return theta * (self.ball.radius / np.linalg.norm(theta, self.ball.p))

    def answer(self, improved: bool) -> None:
        """Whether the gap fell since the last answer: longer steps are for as long as it does."""
        # for larger p, (E.1) is nearly the best step itself
        boldest = max(_BOLDEST / min(self.ball.p, _BOLDEST) ** 2, 1.0)
        self.boldness = min(1.5 * self.boldness, boldest) if improved else max(0.5 * self.boldness, 1.0)
