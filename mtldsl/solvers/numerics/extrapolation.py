"""Extrapolation of the iterates of coordinate descent.

Source: Bertrand and Massias, "Anderson acceleration of coordinate descent", AISTATS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "SETTINGS",
    "ExtrapolationSettings",
    "History",
    "extrapolate",
]


@dataclass(frozen=True)
class ExtrapolationSettings:
    """Limit of what is carried.

    remembered_entries : of what is carried beside the weights, up to which that of earlier iterates is kept
    """

    remembered_entries: int = 1 << 17


SETTINGS = ExtrapolationSettings()


class History:
    """The iterates of so many sweeps and the one before them, a row each.

    carried : None where they are large and the state knows what belongs to weights, `carried_at`
    """

    def __init__(self, state, sweeps: int):
        self.W = np.empty((sweeps + 1, state.W.size))
        self.carried = None
        if state.carried.size <= SETTINGS.remembered_entries or not hasattr(state, "carried_at"):
            self.carried = np.empty((sweeps + 1, state.carried.size))
        self.n = 0

    def add(self, state) -> None:
        self.W[self.n] = state.W.ravel()
        if self.carried is not None:
            self.carried[self.n] = state.carried.ravel()
        self.n += 1


def extrapolate(state, history: History) -> None:
    """Replace the iterate by the affine combination of the last ones whose steps cancel best, where that is better."""
    steps = history.W[1:] - history.W[:-1]
    gram = steps @ steps.T
    gram.flat[:: len(gram) + 1] += 1e-12 * gram.trace()
    try:
        weights = np.linalg.solve(gram, np.ones(len(gram)))
    except np.linalg.LinAlgError:  # no step at all
        return
    weights /= weights.sum()
    W = (weights @ history.W[1:]).reshape(state.W.shape)
    if history.carried is None:
        carried = state.carried_at(W)
    else:
        carried = (weights @ history.carried[1:]).reshape(state.carried.shape)
    if state.objective(W, carried) < state.objective(state.W, state.carried):
        state.W, state.carried = W, carried
