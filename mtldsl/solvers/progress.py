"""Whether a run gets on: judged by its own certificates and its own count of iterations or of work, never by a clock nor by the accuracy asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtldsl.proof.certificate import Certificate

__all__ = ["Progress"]


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
