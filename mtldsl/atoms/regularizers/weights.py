"""Weights of a regularizer: checked once when the atom is made, then trusted."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.values.number import quoted
from mtldsl.values.sparse_matrix import read_dense

__all__ = ["check_broadcast", "check_length", "checked_weights"]

_KINDS = {
    1: "a number or a one-dimensional array",
    2: "a number or an array that broadcasts to the shape of the argument",
}


def checked_weights(weights, word: str, ndim: int) -> float | np.ndarray | None:
    """None, a float, or a read-only float64 copy with at most `ndim` axes; ModelError where an entry is
    negative or not finite.
    """
    if weights is None:
        return None
    typed = f"{word}(..., weights={quoted(weights)})"
    checked = read_dense(weights, f"{typed}: the weights are not numbers; write {_KINDS[ndim]}", ModelError)
    if checked.ndim > ndim:
        raise ModelError(
            f"the weights have {checked.ndim} axes", term=typed, write_instead=f"write {_KINDS[ndim]}"
        )
    bad = ~(np.isfinite(checked) & (checked >= 0))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at {place[0] if len(place) == 1 else place}" if place else ""
        raise ModelError(
            f"the weight{where} is {checked[place]}; weights must be finite and >= 0 "
            "(0 leaves its part unpenalised)",
            term=typed,
        )
    if checked.ndim == 0:
        return float(checked)
    checked.flags.writeable = False
    return checked


def check_length(weights, length: int, what: str) -> str | None:
    """The sentence for one weight per row, column or group where their number is wrong."""
    if isinstance(weights, np.ndarray) and weights.shape != (length,):
        return f"there are {weights.size} weights for {length} {what}"
    return None


def check_broadcast(weights, shape: tuple[int, int]) -> str | None:
    """The sentence for weights per entry that do not broadcast to the argument."""
    if isinstance(weights, np.ndarray):
        try:
            fits = np.broadcast_shapes(weights.shape, shape) == tuple(shape)
        except ValueError:
            fits = False
        if not fits:
            return f"weights of shape {weights.shape} do not broadcast to the argument's shape {tuple(shape)}"
    return None
