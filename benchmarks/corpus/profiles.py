"""Performance profiles after Dolan and More: for every route the share of problems that it solves within a factor of the best route."""

from __future__ import annotations

import numpy as np

__all__ = ["profile", "ratios"]


def ratios(seconds: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """(problems, routes) seconds, inf where not solved, over the least of each row; rows that nobody solves are inf throughout.

    floor : seconds that count as no difference: they are added to numerator and denominator. For routes that were not tried write inf

    Source: Dolan and More, "Benchmarking optimization software with performance profiles", Mathematical Programming 91, 2002.
    """
    seconds = np.asarray(seconds, float) + floor
    best = seconds.min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(seconds), seconds / best, np.inf)


def profile(seconds: np.ndarray, factors: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """(factors, routes): the share of the problems that each route solves within each factor of the best one."""
    found = ratios(seconds, floor)
    return (found[None, :, :] <= np.asarray(factors, float)[:, None, None]).mean(axis=1)
