"""Storage of a solution in one npz file, with every field checked when it is read."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.certificates.stationarity import Stationarity
from mtldsl.data.kernel_map import KernelMap
from mtldsl.data.labels import LABEL_KINDS
from mtldsl.data.scaling import STRATEGIES
from mtldsl.data.table_description import NOTHING_KNOWN, DataDescription
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.fields import Arrays, ObjectField, require_per_task
from mtldsl.solution.learned import LearnedMatrix, LearnedWeights
from mtldsl.solution.learned_label_graph import LearnedGraph, check_label_graph
from mtldsl.solution.predictors import predictor_class
from mtldsl.utils.arrays import MAX_EXACT_WHOLE
from mtldsl.utils.files import atomic_file, npz_path, read_archive, reading
from mtldsl.utils.validation import as_path

# --------------------------------------------------------------------------------------------------------------
# Matrices and weights learned beside those of the features, in a file.


def _store_learned(learned: dict) -> tuple[dict, Arrays]:
    parts = {name: one.stored() for name, one in learned.items()}
    arrays = {f"{name}:{key}": array for name, (_, own) in parts.items() for key, array in own.items()}
    return {name: facts for name, (facts, _) in parts.items()}, arrays


def _restore_learned(parts: dict[str, dict], arrays: Arrays) -> dict:
    kinds = {"weights": LearnedWeights, "precision": LearnedMatrix, "covariance": LearnedMatrix}
    found = {}
    for name, facts in parts.items():
        if facts["kind"] not in kinds:
            raise ValueError(f"{name} is of the kind {facts['kind']!r}")
        own = {key.removeprefix(f"{name}:"): one for key, one in arrays.items() if key.startswith(f"{name}:")}
        try:
            found[name] = kinds[facts["kind"]].restored(name, facts, own)
        except KeyError as lacking:
            raise KeyError(f"{name}:{lacking.args[0]}") from None
    return found


# --------------------------------------------------------------------------------------------------------------
# What must hold of the fields of a solution that a file claims to be one: kinds, shapes, and a status that its own numbers bear out.

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
    _require(all(map(_is_number, fields["parameters"].values())), "parameters", fields["parameters"])
    for name in ("history", "starts"):
        found = fields.get(name, [])
        _require(isinstance(found, list) and all(isinstance(row, dict) for row in found), name, found)
    _check_arrays(fields)
    _check_loss(fields["loss"])
    check_label_graph(fields)
    for name in ("task_weights", "noise_levels"):
        require_per_task(fields, name, some="kinds" in fields["loss"])
    predictor_class(fields["loss"]).check(fields)
    _check_inputs(fields)
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


def _check_inputs(fields) -> None:
    """ValueError unless what is done to inputs before the weights see them is made of vectors of finite numbers, and a known strategy."""
    for name, keys in (("scaling", {"mean", "scale"}), ("imputation", {"strategy", "values"})):
        found = fields.get(name)
        if found is None:
            continue
        _require(isinstance(found, dict) and found.keys() == keys, name, found)
        strategy = found.get("strategy", "mean")
        _require(strategy in STRATEGIES, name, strategy)
        for key in sorted(keys - {"strategy"}):
            array = np.asarray(found[key], dtype=float)
            _require(_is_finite(array, 1), name, found[key])
            _require(key != "values" or len(array) == len(fields["coef"]), name, found[key])


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
    if isinstance(
        value, int
    ):  # one that float64 does not have is none of a solution, and numpy takes it for an object
        return not isinstance(value, bool) and abs(value) <= MAX_EXACT_WHOLE
    return isinstance(value, Real) and not math.isnan(value)


def _is_finite(array: np.ndarray, ndim: int) -> bool:
    return array.dtype.kind == "f" and array.ndim == ndim and bool(np.isfinite(array).all())


def _require(fits: bool, name: str, value) -> None:
    if not fits:
        shown = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:60]
        raise ValueError(f"{name} is {shown}, which no solution has")


# --------------------------------------------------------------------------------------------------------------
# A solution as one .npz file: arrays as such, everything else as JSON; no pickle.

_FORMAT = "mtldsl-solution-1"


def _stationarity(facts: dict, arrays) -> Stationarity:
    found = Stationarity(**facts)
    parts = {**found.decreases, **(found.conditions or {})}
    numbers = [found.residual, found.size, *parts.values(), 0.0 if found.gradient is None else found.gradient]
    if not all(isinstance(one, Real) and not math.isnan(one) for one in numbers):
        raise ValueError("the measures of its stationarity are not numbers")
    return found


#: Fields that are one array each, or None.
_ARRAY_FIELDS = ("coef", "intercept", "thresholds", "certified", "task_weights", "noise_levels")
#: Other fields that JSON alone cannot hold; the rest is plain.
_OBJECT_FIELDS: tuple[ObjectField, ...] = (
    ObjectField("stationarity", "", lambda one: (asdict(one), {}), _stationarity),
    ObjectField.of("kernel_map", "kernels:", KernelMap),
    ObjectField.of("description", "", DataDescription),
    ObjectField("learned", "learned:", _store_learned, _restore_learned),
    ObjectField.of("label_graph", "graph:", LearnedGraph),
)


def write_fields(path, fields: dict[str, Any]) -> Path:
    """The fields of a solution, by name, to one .npz file. Returns the path written.

    A learned matrix is kept by its eigenvectors, so that the file needs memory linear in its side. DataError where the file cannot be
    written; one of that name is then left as it was.
    """
    path = npz_path(as_path(path, "path of a solution"))
    plain = dict(fields)
    arrays = {f"block:{name}": array for name, array in plain.pop("blocks").items()}
    arrays |= {name: array for name in _ARRAY_FIELDS if (array := plain.pop(name)) is not None}
    for kept in _OBJECT_FIELDS:
        kept.put(plain.pop(kept.name), plain, arrays)
    arrays["json"] = np.array(json.dumps({"format": _FORMAT, **plain}, default=_to_plain))
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)
    return path


def read_fields(path, known: set[str]) -> dict[str, Any]:
    """Return what `write_fields` wrote. DataError for a file of another kind, and for fields that are not known."""
    path = as_path(path, "path of a solution")
    path = path if path.exists() else npz_path(path)
    typed = f"Solution.load({str(path)!r})"
    try:
        arrays = read_archive(path, "a saved solution")
        with reading(path, "a saved solution"):
            plain = json.loads(str(arrays.pop("json")))
    except DataError as error:
        raise DataError(
            f"not a saved solution ({error})",
            term=typed,
            write_instead="give the .npz that solution.save(path) or [output] solution wrote",
        ) from error
    kind = plain.pop("format", None) if isinstance(plain, dict) else None
    if kind != _FORMAT:
        if str(kind).startswith("mtldsl-proof"):
            raise DataError(
                "it is a proof, which holds no solution", term=typed,
                write_instead="give the .npz that solution.save(path) or [output] solution wrote; `mtldsl verify` checks a proof",
            )  # fmt: skip
        raise DataError("unknown format: not a solution that mtldsl saved", term=typed)
    try:
        _require_numbers(arrays)
        _restore(plain, arrays)
        check_fields(plain)
    except UnknownWordError as error:
        raise DataError(
            f"{error}", term=typed, write_instead="import what defines it first, if it is yours"
        ) from None
    except ValueError as error:
        raise DataError(f"{error}; the file is damaged, or was not written by mtldsl", term=typed) from error
    except Exception as error:  # a stranger's JSON may hold anything in the place of anything
        raise DataError(f"parts of the solution are missing ({error})", term=typed) from error
    unknown = sorted(plain.keys() - known)
    if unknown:
        raise DataError(
            f"it holds {unknown[0]!r}, which this version of mtldsl does not know; it was saved by a newer one",
            term=typed,
        )
    return plain


def _require_numbers(arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        # tasks of another kind have none of these; whether they may is looked at later
        whole = name not in ("task_weights", "noise_levels")
        if array.dtype.kind not in "biuf" or (whole and np.isnan(array).any()):
            raise ValueError(f"{name!r} holds {array.dtype}, not numbers, or NaN")


def _restore(plain: dict, arrays: dict[str, np.ndarray]) -> None:
    """Puts what the arrays hold into the fields."""
    plain["blocks"] = {
        name.removeprefix("block:"): a for name, a in arrays.items() if name.startswith("block:")
    }
    plain |= {name: arrays.get(name) for name in _ARRAY_FIELDS} | {"coef": arrays["coef"]}
    for kept in _OBJECT_FIELDS:
        plain[kept.name] = kept.take(plain, arrays)
    plain["description"] = plain["description"] or NOTHING_KNOWN  # of older versions
    plain["learned"] = plain["learned"] or {}
    for name in ("task_names", "feature_names"):
        plain[name] = tuple(plain[name])


def _to_plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Metric):
        return value.plain()
    raise ModelError(
        f"save: {' '.join(repr(value).split())[:40]} ({type(value).__name__}) cannot be saved; parameters of a metric of your own "
        "must be numbers, text, or lists of these"
    )
