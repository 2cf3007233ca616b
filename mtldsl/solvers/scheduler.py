"""Scheduler of routes: progress judged by certificates, and turns with growing patience."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from mtldsl.certificates.certificate import Certificate
from mtldsl.solvers.solver import Point, work_of

__all__ = [
    "Progress",
    "Turn",
    "Turns",
]


# --------------------------------------------------------------------------------------------------------------
# Whether a run gets on: judged by its own certificates and its own count of iterations or of work, never by a clock nor by the accuracy asked for.


class Progress:
    """A run is over where its distance from a proof has not fallen to `share` of what it was within as many iterations as it had taken until
    then and `patience` more: what converges like 1 / iterations halves its gap as often as it doubles them. Where later iterations do more
    work than the first, they count for as many more. After `most` of them it is over in any case.

    The distance is the gap between this run's best point (the lowest of those that miss the constraints least) and its best bound: a
    run that starts beside another's better points is not judged by them. `by_effort`: False where nobody waits, and what counts is
    whether a run gets on at all: then it is asked in iterations, whatever they cost.
    """

    def __init__(self, patience: float, share: float, most: float = np.inf, by_effort: bool = True):
        self.patience, self.share, self.most, self.by_effort = patience, share, most, by_effort
        self.at, self.reached = 0.0, np.inf
        self.objective, self.violation, self.bound = np.inf, np.inf, -np.inf

    def is_over(self, iteration: float, seen: Certificate) -> bool:
        """After a look at the run's point of this iteration."""
        self.bound = max(self.bound, seen.dual_bound)
        if seen.violation < self.violation:
            self.violation, self.objective = seen.violation, seen.objective
        elif seen.violation == self.violation:
            self.objective = min(self.objective, seen.objective)
        own = seen
        if seen.stationarity is None:
            own = replace(seen, objective=self.objective, dual_bound=self.bound)
        distance = max(own.distance, self.violation)
        if distance < self.share * self.reached:
            self.at, self.reached = iteration, distance
        return iteration > min(2 * self.at + self.patience, self.most)


# --------------------------------------------------------------------------------------------------------------
# Whose turn it is, where several solvers take a form: in order, each while it gets on, and then again with more patience.

#: A gap that falls to this share whenever the iterations double is progress, where another solver waits: 1 / iterations does as well.
_HALF = 0.5

#: Where none waits, a run ends when not even one percent comes of as many iterations again and 3,000 more.
_HARDLY, _MOST_PATIENCE = 0.99, 3000

_MORE = 4  # times the patience, from one turn of a solver to its next


@dataclass
class Turn:
    """One solver's turn. `patience`: iterations without progress that it may take; `most`: iterations at all; `left_at`: where its last
    turn ended; `pace`: the share to which a gap must fall for that to be progress; `was_preempted`: whether its first turn ended while it got on."""

    name: str
    patience: float
    left_at: Point | None = None
    most: float = math.inf
    pace: float = _HALF
    was_preempted: bool = False

    def progress(self) -> Progress:
        is_last = self.patience >= _MOST_PATIENCE
        return (
            Progress(_MOST_PATIENCE, _HARDLY, by_effort=False)
            if is_last
            else Progress(self.patience, self.pace, self.most)
        )


class Turns:
    """The solvers to try, with the patience that each of them asks for.

    A solver that makes no progress waits until each of the others has had its turn; its own next one is four times as patient. So what is
    spent on solvers that do not converge stays within a small factor of what is spent on the one that does, whatever the order
    is; and since progress is counted in iterations, the same input takes the same turns. The last resort waits until those whose first turn
    was cut short have had another one.

    names    : the solvers in order; asked for one by one, when their turn comes
    patience : name -> iterations without progress in a first turn; None where solvers are only to follow one another
    shift    : name -> iterations of a first turn, whatever their progress; None: no limit
    pace     : name -> share to which the gap must fall in a first turn for that to be progress; None: a half
    last     : the name of the last resort

    >>> turns = Turns(["planes", "newton"], {"planes": 100, "newton": 50}.get)
    >>> first = turns.next(); turns.wait(first, Point({}))
    >>> second = turns.next(); turns.wait(second, Point({}))
    >>> first.name, second.name, turns.next().patience
    ('planes', 'newton', 400)
    """

    def __init__(
        self,
        names: Iterable[str],
        patience: Callable[[str], float] | None,
        shift: Callable[[str], float] | None = None,
        pace: Callable[[str], float] | None = None,
        last: str = "",
    ):
        self._fresh, self.patience, self.shift, self.pace, self.last = (
            iter(names),
            patience,
            shift,
            pace,
            last,
        )
        self._waiting: deque[Turn] = deque()
        self._next: Turn | None = None

    def __bool__(self) -> bool:
        self._next = self._next or self._find()
        return self._next is not None

    def next(self) -> Turn:
        """Whose turn it is; there is one where `turns` is true."""
        found = self._next or self._find()
        if found is None:
            raise IndexError("no solver is left")
        self._next = None
        return found

    def _find(self) -> Turn | None:
        name = next(self._fresh, None)
        if name is not None:
            owed = next((turn for turn in self._waiting if turn.was_preempted), None)
            if owed is not None and name == self.last:
                self._fresh = chain([name], self._fresh)
                self._waiting.remove(owed)
                return owed
            return Turn(
                name,
                _MOST_PATIENCE if self.patience is None else self.patience(name),
                most=math.inf if self.shift is None else self.shift(name),
                pace=_HALF if self.pace is None else self.pace(name),
            )
        if not self._waiting:
            return None
        turn = self._waiting.popleft()
        if not self._waiting:  # nobody waits for its end
            turn.patience = _MOST_PATIENCE
        return turn

    def again(self, turn: Turn) -> None:
        """The same solver goes on at once."""
        if self._next is not None:
            self._fresh = chain([self._next.name], self._fresh)
        self._next = turn

    def wait(self, turn: Turn, point: Point) -> None:
        """The solver gets another turn, from where it stands, unless its patience was at its end."""
        if turn.patience < _MOST_PATIENCE:
            was_preempted = turn.left_at is None and work_of(point) > turn.most
            self._waiting.append(
                Turn(turn.name, _MORE * turn.patience, point, _MORE * turn.most, was_preempted=was_preempted)
            )
