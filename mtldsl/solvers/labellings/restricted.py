"""The problem with the active cliques alone, solved to a gap: passes over samples, steps on faces, and the proximal centre behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mtldsl.solvers.labellings.ascent import Ascent
from mtldsl.solvers.labellings.face import FaceSteps
from mtldsl.solvers.solver import Watch

__all__ = ["Restricted"]

#: The objective is computed where the gap seen during an epoch is this near to the one asked for, or after so many epochs.
_NEAR, _AT_LEAST_EVERY = 2.0, 8
#: Epochs from one centre to the next, at first and at most. Where the gap does not fall for so many centres, a centre stays twice as
#: long: weights of a rough solution make a bad centre.
_STAYS, _STAYS_AT_MOST, _IN_VAIN = 2, 16, 40
#: The problem with its proximal term is solved well where its gap is this share of that without.
_SOLVED = 0.1
#: Epochs after which the caller is shown a point, that of this problem, whether it is solved or not.
_LOOK = 200


class Restricted:
    """What the last `solve` left: gap, the relative one; blocks, the weights with the lowest objective; told_to_stop, by the caller's look."""

    def __init__(self, ascent: Ascent):
        self.ascent, self.faces = ascent, FaceSteps(ascent)
        self.gap, self.told_to_stop = np.inf, False
        self.blocks: Any = None  # of the first solve on, Blocks

    def solve(self, inner: float, scale: float, max_iter: int, watch: Watch, look: Callable) -> float:
        """Epochs until the relative gap is below `inner`; returns the lowest objective seen. scale: an objective known before, or inf."""
        ascent, lowest, highest = self.ascent, np.inf, -np.inf
        began = improved = last_look = ascent.epochs
        stays, smallest, next_look = _STAYS, np.inf, began + _LOOK
        while True:
            before = ascent.raised()
            seen = ascent.epoch()
            self.faces.after_epoch(ascent.raised() - before)
            size = min(scale, lowest)
            near = seen <= _NEAR * inner * (abs(size) if np.isfinite(size) else 1.0)
            done = watch.expired or ascent.epochs >= max_iter
            if near or done or ascent.epochs - last_look >= _AT_LEAST_EVERY:
                last_look, value = ascent.epochs, ascent.primal()
                if value < lowest:
                    lowest, self.blocks = value, ascent.blocks()
                highest = max(highest, ascent.dual()[0])
                self.gap = (lowest - highest) / max(abs(lowest), 1e-300)
                if self.gap <= inner or done:
                    return lowest
                if ascent.epochs >= next_look:
                    next_look = ascent.epochs + max(_LOOK, (ascent.epochs - began) // 2)
                    self.told_to_stop = look()
                    if self.told_to_stop:
                        return lowest
                if seen < _SOLVED * (lowest - highest):  # the centre is what is left to move
                    ascent.loosen()
                if self.gap < 0.7 * smallest:
                    improved, smallest = ascent.epochs, self.gap
                elif ascent.epochs - improved > _IN_VAIN * stays:
                    improved, stays = ascent.epochs, min(2 * stays, _STAYS_AT_MOST)
            if ascent.epochs % stays == 0:
                ascent.recentre()
