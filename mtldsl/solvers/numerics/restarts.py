"""Averages of a splitting method's iterates, and restarts from them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np


@dataclass(frozen=True)
class RestartSettings:
    """Constants of the restart rule, those of cuPDLP.jl.

    sufficient_share : of the gap at the last restart, to which it must fall for another one
    necessary_share  : of it, where the gap has begun to rise
    age_share        : of all iterations, after which a method starts anew whatever the gap is
    """

    sufficient_share: float = 0.2
    necessary_share: float = 0.8
    age_share: float = 0.36


SETTINGS = RestartSettings()


class RestartedAverage:
    """Mean of the iterates since the last restart, and the rule for the next one.

    Iterates of a splitting method circle around the solution of a piecewise linear model; their mean lies near the centre. Started anew
    from it, the method converges linearly where the objective grows sharply.

    Source: Applegate, Hinder, Lu and Lubin, "Faster first-order primal-dual methods for linear programming using restarts and
    sharpness", Math. Program. 201 (2023); the rule: Lu and Yang, "cuPDLP.jl: a GPU implementation of restarted primal-dual hybrid
    gradient for linear programming in Julia", arXiv 2311.12180 (2023).

    >>> average = RestartedAverage()
    >>> for angle in np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False):
    ...     average.add([np.array([np.cos(angle), np.sin(angle)])])
    >>> np.abs(average.mean()[0]).max() < 1e-15
    np.True_
    >>> average.is_due(gap=1.0, iterations=8)
    True
    """

    def __init__(self):
        self.age, self.sums = 0, list[np.ndarray]()
        self.gap_at_restart, self.last_gap = inf, inf

    def add(self, iterate: list[np.ndarray]) -> None:
        """Count an iterate, which consists of so many arrays."""
        if self.age == 0:
            self.sums = [np.array(part, float) for part in iterate]
        else:
            for total, part in zip(self.sums, iterate, strict=True):
                total += part
        self.age += 1

    def mean(self) -> list[np.ndarray]:
        """Return the mean of the iterates since the last restart."""
        return [total / self.age for total in self.sums]

    def is_due(self, gap: float, iterations: int) -> bool:
        """Tell whether the method is to start anew, after so many iterations in all; if so, forget the iterates.

        gap : that of the iterate or of the mean, whichever is smaller
        """
        is_due = (
            gap <= SETTINGS.sufficient_share * self.gap_at_restart
            or (gap <= SETTINGS.necessary_share * self.gap_at_restart and gap > self.last_gap)
            or self.age >= SETTINGS.age_share * iterations
        )
        self.last_gap = gap
        if is_due:
            self.age, self.gap_at_restart, self.last_gap = 0, gap, inf
        return is_due
