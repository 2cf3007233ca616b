"""What must hold of the fields of a solution that a file claims to be one: kinds, shapes, and a status that its own numbers bear out."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from mtldsl.atoms.function import REGISTRY
from mtldsl.solution.predictors import predictor_class
from mtldsl.solution.readout import require_per_task
from mtldsl.solution.readouts import READOUTS
from mtldsl.tasks.gaps import STRATEGIES
from mtldsl.tasks.labels import LABEL_KINDS

__all__ = ["STATUSES", "UnknownWordError", "check_fields"]

STATUSES = (
    *("optimal", "stationary", "time_limit", "iteration_limit", "stalled", "selected", "interrupted", "stopped", "uncertified", "unattained"),
)  # fmt: skip
_TEXTS = ("solver", "reason", "note", "model")
_NUMBERS = ("objective", "dual_bound", "relative_gap", "violation", "seconds", "iterations", "tol")
_LABELS = (*LABEL_KINDS, "indicators", "mixed")


class UnknownWordError(ValueError):
    """A loss that this program does not know, and another may."""


def check_fields(fields: dict[str, Any]) -> None:
    """ValueError that says which field cannot be what `Solution.save` wrote. Fields that older files lack are not asked for."""
    for name in _TEXTS:
        _require(isinstance(fields[name], str), name, fields.get(name))
    for name in _NUMBERS:
        _require(_is_number(fields[name]), name, fields[name])
    for name in ("task_names", "feature_names"):
        _require(all(isinstance(one, str) for one in fields[name]), name, fields[name])
    for name in ("parameters", "loss"):
        _require(isinstance(fields[name], dict), name, fields[name])
    for name in ("history", "starts"):
        found = fields.get(name, [])
        _require(isinstance(found, list) and all(isinstance(row, dict) for row in found), name, found)
    _check_arrays(fields)
    _check_loss(fields["loss"])
    for readout in READOUTS:
        readout.check(fields)
    predictor_class(fields["loss"]).check(fields)
    _check_scaling(fields)
    _check_imputation(fields)
    _check_status(fields)


def _check_arrays(fields) -> None:
    """Weights are finite matrices; what there is of a task has as many entries as there are tasks."""
    coef = fields["coef"]
    _require(_is_finite(coef, 2), "coef", coef)
    for name, block in fields["blocks"].items():
        _require(_is_finite(block, block.ndim) and block.ndim in (1, 2), f"block {name!r}", block)
    for name in ("intercept", "thresholds"):
        require_per_task(fields, name)
    intercept = fields["intercept"]
    _require(intercept is None or np.isfinite(intercept).all(), "intercept", intercept)


def _check_loss(loss: dict) -> None:
    """Known: predictions are made by it."""
    _require(isinstance(loss["parameters"], dict), "the parameters of the loss", loss["parameters"])
    _require(loss["labels"] in _LABELS, "the labels of the loss", loss["labels"])
    if loss["word"] not in REGISTRY:
        raise UnknownWordError(f"its loss is {loss['word']!r}, which is not a word here")
    if loss["labels"] == "mixed":
        _require(bool(loss["kinds"]), "the kinds of the loss", loss["kinds"])
    for kind in loss.get("kinds", ()):
        _check_loss({name: kind[name] for name in ("word", "parameters", "labels")})


def _check_scaling(fields) -> None:
    scaling = fields.get("scaling")
    if scaling is None:
        return
    _require(isinstance(scaling, dict) and scaling.keys() == {"mean", "scale"}, "scaling", scaling)
    for part in scaling.values():
        array = np.asarray(part, dtype=float)
        _require(array.ndim == 1 and bool(np.isfinite(array).all()), "scaling", part)


def _check_imputation(fields) -> None:
    found = fields.get("imputation")
    if found is None:
        return
    _require(isinstance(found, dict) and found.keys() == {"strategy", "values"}, "imputation", found)
    _require(found["strategy"] in STRATEGIES, "imputation", found["strategy"])
    values = np.asarray(found["values"], dtype=float)
    _require(
        values.shape == (fields["coef"].shape[0],) and bool(np.isfinite(values).all()),
        "imputation",
        found["values"],
    )


def _check_status(fields) -> None:
    status, tol, violation = fields["status"], fields["tol"], fields["violation"]
    _require(isinstance(status, str) and status in STATUSES, "status", status)
    _require(0 < tol < math.inf and violation >= 0, "tol", tol)
    if status == "optimal":
        proven = (
            abs(fields["relative_gap"]) <= tol and violation <= tol and math.isfinite(fields["dual_bound"])
        )
        if not (proven and math.isfinite(fields["objective"])):
            raise ValueError(
                f"its status is 'optimal', with a relative gap of {fields['relative_gap']:.2g} and a violation of {violation:.2g}"
            )
    if status == "stationary":
        found = fields.get("stationarity")
        if found is None or not (found.residual <= tol and violation <= tol):
            raise ValueError("its status is 'stationary', which its residual and violation do not bear out")


def _is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def _is_finite(array: np.ndarray, ndim: int) -> bool:
    return array.dtype.kind == "f" and array.ndim == ndim and bool(np.isfinite(array).all())


def _require(fits: bool, name: str, value) -> None:
    if not fits:
        shown = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:60]
        raise ValueError(f"{name} is {shown}, which no solution has")
