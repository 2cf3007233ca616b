"""What a solver shows its points to, and what may stand between: a solver that runs inside another one has a watch of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from mtldsl.solvers.point import Point

__all__ = ["Rhythm", "Translated", "Until", "Watch"]


class Watch(Protocol):
    """What the caller hands to a solver. The outermost one, which certifies every point, is `mtldsl.solvers.watcher.Watcher`."""

    @property
    def expired(self) -> bool:
        """The time is up: cheap enough to ask at every iteration; then show the last point and return."""
        ...

    def __call__(self, point: Point) -> bool:
        """Look at a point, where that is worth its price (about two matrix products). True: stop - certified, or out of time."""
        ...


class _Inside:
    """A watch in another one: it is out of time where that is, and remembers what it saw last and whether that was enough."""

    def __init__(self, outer: Watch):
        self.outer = outer
        self.last: Point | None = None
        self.satisfied = False

    @property
    def expired(self) -> bool:
        return self.outer.expired


class Translated(_Inside):
    """Shows another watch what a point means there."""

    def __init__(self, outer: Watch, translate: Callable[[Point], Point]):
        super().__init__(outer)
        self.translate = translate

    def __call__(self, point: Point) -> bool:
        self.last = self.translate(point)
        self.satisfied = self.outer(self.last)
        return self.satisfied


class Until(_Inside):
    """For points that another watch is not shown: stops where they are `enough`, or once it was asked `asks` times for its time.

    Without either it stops at nothing but the other's time. Steps are counted, not seconds: the same input goes the same way.
    """

    def __init__(
        self,
        outer: Watch,
        enough: Callable[[Point], bool] | None = None,
        asks: float = math.inf,
    ):
        super().__init__(outer)
        self.enough, self.asks = enough, asks

    @property
    def expired(self) -> bool:
        self.asks -= 1
        return self.outer.expired or self.asks < 0

    def __call__(self, point: Point) -> bool:
        self.last = point
        self.satisfied = self.enough is not None and self.enough(point)
        return self.satisfied or self.expired


class Rhythm(_Inside):
    """Shows another watch the first ten points, the last, and in between one after every tenth of the way: a look costs a pass over
    the data."""

    def __init__(self, outer: Watch, max_iter: int):
        super().__init__(outer)
        self.max_iter, self.shown = max_iter, 0

    def __call__(self, point: Point) -> bool:
        now, expired = point.iteration, self.expired
        if not (now <= 10 or now >= 1.1 * self.shown or now == self.max_iter or expired):
            return False
        self.last, self.shown = point, now
        self.satisfied = self.outer(point)
        return self.satisfied or self.expired
