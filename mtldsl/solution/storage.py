"""A solution as one .npz file: arrays as such, everything else as JSON; no pickle."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import DataError, ModelError
from mtldsl.proof.stationarity import Stationarity
from mtldsl.solution.readout import Array, Kept, Part
from mtldsl.solution.readouts import READOUTS
from mtldsl.solution.storage_checks import UnknownWordError, check_fields
from mtldsl.system.archives import npz_path, read_archive
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.reading import reading
from mtldsl.tasks.description import NOTHING_KNOWN, DataDescription
from mtldsl.tasks.kernel_map import KernelMap
from mtldsl.values.path import as_path

__all__ = ["read_fields", "write_fields"]

_FORMAT = "mtldsl-solution-1"


def _stationarity(facts: dict, arrays) -> Stationarity:
    found = Stationarity(**facts)
    parts = {**found.decreases, **(found.conditions or {})}
    numbers = [found.residual, found.size, *parts.values(), 0.0 if found.gradient is None else found.gradient]
    if not all(isinstance(one, Real) and not math.isnan(one) for one in numbers):
        raise ValueError("the measures of its stationarity are not numbers")
    return found


#: Fields that JSON alone cannot hold; every other is plain.
_KEPT: tuple[Kept, ...] = (
    Array("coef", required=True),
    Array("intercept"),
    Array("thresholds"),
    Part("stationarity", "", lambda one: (asdict(one), {}), _stationarity),
    Part.of("kernel_map", "kernels:", KernelMap),
    Part.of("description", "", DataDescription),
    *(kept for readout in READOUTS for kept in readout.kept),
)


def write_fields(path, fields: dict[str, Any]) -> Path:
    """The fields of a solution, by name, to one .npz file. Returns the path written.

    A learned matrix is kept by its eigenvectors, so that the file needs memory linear in its side. DataError where the file cannot be
    written; one of that name is then left as it was.
    """
    path = npz_path(as_path(path, "path of a solution"))
    plain = dict(fields)
    arrays = {f"block:{name}": array for name, array in plain.pop("blocks").items()}
    for kept in _KEPT:
        kept.put(plain.pop(kept.name), plain, arrays)
    arrays["json"] = np.array(json.dumps({"format": _FORMAT, **plain}, default=_to_plain))
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)
    return path


def read_fields(path, known: set[str]) -> dict[str, Any]:
    """What `write_fields` wrote. DataError for a file of another kind, and for fields that are not known."""
    path = as_path(path, "path of a solution")
    path = path if path.exists() else npz_path(path)
    typed = f"Solution.load({str(path)!r})"
    try:
        arrays = read_archive(path, "a saved solution")
        with reading(path, "a saved solution"):
            plain = json.loads(str(arrays.pop("json")))
    except DataError as error:
        raise DataError(f"not a saved solution ({error})", term=typed) from error
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
    for kept in _KEPT:
        plain[kept.name] = kept.take(plain, arrays)
    plain["description"] = plain["description"] or NOTHING_KNOWN  # of older versions
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
