"""Scheduler of routes and its stall rule: each runs until it stalls, and then waits until the others have had their slot."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice

from mtldsl.certificates.certificate import Certificate
from mtldsl.solvers.solver import Point


@dataclass(frozen=True)
class SchedulerSettings:
    """Constants of the scheduler.

    patience        : flops without progress that end a first slot, some 50 ms; of 20 to 200 ms none is better on the corpus
    iterations      : and no fewer than so many of the route's own iterations, however dear they are
    growth          : times the patience, from one slot of a route to its next
    slots           : of a route, at most; in the last it has `lone_iterations`
    progress        : share to which the gap must fall for that to be progress: what converges like 1 / work halves it as work doubles
    lone_iterations : iterations without progress that end the last slot of a route, and one for which no other waits
    lone_progress   : the share there: not even one percent came of as many iterations again
    """

    patience: float = 5e7
    iterations: float = 100
    growth: float = 4.0
    slots: int = 4
    progress: float = 0.5
    lone_iterations: float = 3000
    lone_progress: float = 0.99


SETTINGS = SchedulerSettings()


@dataclass
class StallRule:
    """A route has stalled where its distance from a proof has not fallen to `share` in as much work again as it took until then, and
    `patience` more; or where it has done as much work as `limit()` tells, which is asked once that is more than `SETTINGS.patience`.

    The distance is the gap between this run's best point (the lowest of those that miss the constraints least) and its best bound: a
    route that starts beside another's better points is not judged by them. It falls where the relative gap does, or the gap itself: with an
    optimum near zero the relative one stays at 1 until the end. Work is counted, in flops or iterations, and never timed: the same input
    goes the same way.
    """

    patience: float
    share: float
    counts_flops: bool = True
    limit: Callable[[], float] | None = None
    at: float = 0.0
    reached: float = math.inf
    gap: float = math.inf
    objective: float = math.inf
    violation: float = math.inf
    bound: float = -math.inf

    def is_stalled(self, work: float, seen: Certificate) -> bool:
        """Judge the run after a look at its point, at which it has done so much work."""
        self.bound = max(self.bound, seen.dual_bound)
        if seen.violation < self.violation:
            self.violation, self.objective = seen.violation, seen.objective
        elif seen.violation == self.violation:
            self.objective = min(self.objective, seen.objective)
        own = seen
        if seen.stationarity is None:
            own = replace(seen, objective=self.objective, dual_bound=self.bound)
        distance = max(own.distance, self.violation)
        is_smaller_gap = seen.stationarity is None and own.gap < self.share * self.gap
        if distance < self.share * self.reached or (is_smaller_gap and distance > self.violation):
            self.at, self.reached, self.gap = work, distance, own.gap
        is_long = self.limit is not None and work > SETTINGS.patience and work > self.limit()
        return is_long or work > 2.0 * self.at + self.patience


@dataclass
class Slot:
    """A run of one route.

    number  : 0 for its first slot
    point   : where its last one ended
    is_lone : no other route waits for its end, or it is the last one of its route
    next    : the name of the route that waits, asked when it is needed; "" where none does
    """

    route: str
    number: int = 0
    point: Point | None = None
    is_lone: bool = False
    next: Callable[[], str] = str

    def stall_rule(self, flops: float, limit: Callable[[], float] | None = None) -> StallRule:
        """Return the rule that ends the slot of a route whose iterations take so many flops; `limit` is for first slots."""
        if self.is_lone:
            return StallRule(SETTINGS.lone_iterations, SETTINGS.lone_progress, counts_flops=False)
        patience = max(SETTINGS.patience, SETTINGS.iterations * flops) * SETTINGS.growth**self.number
        return StallRule(patience, SETTINGS.progress, limit=limit if self.number == 0 else None)


class RoundRobin:
    """Routes in order, each for a slot; those that stalled again, from where they stand, with four times the patience.

    What is spent on routes that do not converge stays within a small factor of what is spent on the one that does, whatever the order
    is. The last resort has its slot when all others have had two.

    routes      : their names, asked for one by one, when their slot comes
    are_resumed : False where routes only follow one another, each to its own end
    last        : name of the last resort

    >>> schedule = RoundRobin(["planes", "newton", "reference"], last="reference")
    >>> for _ in range(4):
    ...     slot = schedule.next()
    ...     print(slot.route, slot.number, slot.is_lone)
    ...     schedule.put_back(slot, Point({}))
    planes 0 False
    newton 0 False
    planes 1 False
    newton 1 False
    >>> schedule.next().route
    'reference'
    """

    def __init__(self, routes: Iterable[str], are_resumed: bool = True, last: str = ""):
        self._coming, self._are_resumed, self._last = iter(routes), are_resumed, last
        self._ahead: list[str] = []  # the route that comes next, once somebody has asked for it
        self._waiting: deque[Slot] = deque()
        self._again: Slot | None = None

    def next(self) -> Slot | None:
        """Return the slot that comes next; None where no route is left."""
        if self._again is not None:
            slot, self._again = self._again, None
            return slot
        name = self._peek()
        if name is not None and not (name == self._last and any(slot.number == 1 for slot in self._waiting)):
            self._ahead.clear()
            return Slot(name, is_lone=not self._are_resumed, next=lambda: self._peek() or "")
        if not self._waiting:
            return None
        slot = self._waiting.popleft()
        slot.is_lone |= not self._waiting and name is None
        return slot

    def is_empty(self) -> bool:
        """Tell whether no route is left."""
        return self._again is None and self._peek() is None and not self._waiting

    def _peek(self) -> str | None:
        self._ahead = self._ahead or list(islice(self._coming, 1))
        return self._ahead[0] if self._ahead else None

    def again(self, slot: Slot) -> None:
        """The same route goes on at once."""
        self._again = slot

    def put_back(self, slot: Slot, point: Point) -> None:
        """The route gets another slot, from its point, unless this one was its own to the end."""
        if not slot.is_lone:
            number = slot.number + 1
            self._waiting.append(Slot(slot.route, number, point, is_lone=number + 1 == SETTINGS.slots))
