"""Where a run of planes is, as numbers and arrays of a checkpoint; and planes, and the model of them, that go on from there."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.solvers.passes.plane_model import PlaneModel
from mtldsl.solvers.planes.bundle import Bundle

__all__ = ["kept", "recalled_model", "recalled_planes"]

_OF_BUNDLE = ("planes", "deltas", "beta", "idle", "counts")
_OF_MODEL = ("W", "S", "Z")
_NUMBERS = ("mu", "bound", "programs", "looks")


def kept(bundle: Bundle, model: PlaneModel) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """(numbers, arrays). Room without planes is left out: its size is a number, since sums over it have the same bits only where it has."""
    most = int(bundle.counts.max())
    arrays = {name: getattr(bundle, name) for name in _OF_BUNDLE}
    arrays = {name: array[:, :most] if array.ndim > 1 else array for name, array in arrays.items()}
    arrays["gram"] = bundle.gram[:, :most, :most]
    arrays["stored"] = np.concatenate([np.array(planes) for planes in bundle.stored])
    arrays |= {name: getattr(model, name) for name in _OF_MODEL}
    numbers = {name: float(getattr(model, name)) for name in _NUMBERS}
    return numbers | {"room": float(bundle.beta.shape[1])}, arrays


def recalled_planes(oracle: Any, numbers: dict[str, float], arrays: dict[str, np.ndarray]) -> Bundle:
    """The planes that `kept` has written."""
    bundle = Bundle(oracle, int(numbers["room"]))
    most = arrays["planes"].shape[1]
    for name in _OF_BUNDLE:
        array = getattr(bundle, name)
        (array[:, :most] if array.ndim > 1 else array)[...] = arrays[name]
    bundle.gram[:, :most, :most] = arrays["gram"]
    ends = np.cumsum(bundle.counts)[:-1]
    bundle.stored = [list(planes) for planes in np.split(arrays["stored"], ends)]
    return bundle


def recalled_model(model: PlaneModel, numbers: dict[str, float], arrays: dict[str, np.ndarray]) -> None:
    """The model of planes as it was."""
    for name in _OF_MODEL:
        setattr(model, name, arrays[name].copy())
    model.mu, model.bound = numbers["mu"], numbers["bound"]
    model.programs, model.looks = int(numbers["programs"]), int(numbers["looks"])
