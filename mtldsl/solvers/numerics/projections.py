"""Projections on the intersection of several sets."""

from __future__ import annotations

import numpy as np

from mtldsl.normal_form.form import Blocks, NormalForm

__all__ = [
    "dykstra",
    "projected",
]


def dykstra(sets, array: np.ndarray, rounds: int = 100) -> np.ndarray:
    """The projection on an intersection, by Dykstra's alternating projections (stopped where it is inside to rounding)."""
    corrections = [np.zeros_like(array) for _ in sets]
    size = 1.0 + np.abs(array).max(initial=0.0)
    for _ in range(rounds):
        for i, one in enumerate(sets):
            moved = array + corrections[i]
            array = one.project(moved)
            corrections[i] = moved - array
        if max(one.violation(array) for one in sets) <= 1e-13 * size:
            break
    return array


def projected(form: NormalForm, x: Blocks) -> Blocks:
    """Each block in the sets that bind it by itself."""
    moved = dict(x)
    for name in x:
        sets = [f.atom for f in form.constraints if f.map.identity_of == name]
        if sets:
            moved[name] = dykstra(sets, np.array(x[name]))
    return moved
