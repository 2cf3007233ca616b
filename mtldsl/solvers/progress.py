"""Whether a run gets on: judged by its own certificates and its own count of iterations, never by a clock nor by the accuracy asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtldsl.proof.certificate import Certificate

__all__ = ["Progress"]


class Progress:
    """A run is over where its distance from a proof has not fallen to `share` of what it was within as many iterations as it had taken until
    then and `patience` more: what converges like 1 / iterations halves its gap as often as it doubles them.

    The distance is the gap between this run's points and this run's best bound: a run that starts beside another's better
    points is not judged by them.
    """

    def __init__(self, patience: float, share: float):
        self.patience, self.share = patience, share
        self.at, self.reached, self.bound = 0, np.inf, -np.inf

    def is_over(self, iteration: int, seen: Certificate) -> bool:
        """After a look at the run's point of this iteration."""
        self.bound = max(self.bound, seen.dual_bound)
        own = seen if seen.stationarity is not None else replace(seen, dual_bound=self.bound)
        distance = max(own.distance, seen.violation)
        if distance < self.share * self.reached:
            self.at, self.reached = iteration, distance
        return iteration > 2 * self.at + self.patience
