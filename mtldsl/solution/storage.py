"""A solution as one .npz file: arrays as such, everything else as JSON; no pickle."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from numbers import Real
from pathlib import Path

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import DataError, ModelError
from mtldsl.proof.stationarity import Stationarity
from mtldsl.solution.kernel_weights import LearnedWeights
from mtldsl.solution.label_graph import LearnedGraph
from mtldsl.solution.learned_matrix import LearnedMatrix
from mtldsl.solution.storage_checks import check_fields
from mtldsl.system.archives import npz_path, read_archive
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.reading import reading
from mtldsl.values.path import as_path

__all__ = ["read_fields", "write_fields"]

_FORMAT = "mtldsl-solution-1"

#: Arrays that a solution may lack.
_OPTIONAL = ("intercept", "thresholds", "task_weights", "noise_levels", "certified")


def write_fields(path, fields: dict[str, object]) -> Path:
    """The fields of a solution, by name, to one .npz file. Returns the path written.

    A learned matrix is kept by its eigenvectors, so that the file needs memory linear in its side. DataError where the file cannot be
    written; one of that name is then left as it was.
    """
    path = npz_path(as_path(path, "path of a solution"))
    plain = dict(fields)
    arrays = {f"block:{name}": array for name, array in plain.pop("blocks").items()}
    arrays["coef"] = plain.pop("coef")
    for name in _OPTIONAL:
        array = plain.pop(name)
        if array is not None:
            arrays[name] = array
    plain["learned"] = {name: _stored(name, one, arrays) for name, one in plain["learned"].items()}
    if plain["stationarity"] is not None:
        plain["stationarity"] = asdict(plain["stationarity"])
    if plain["kernel_map"] is not None:
        plain["kernel_map"], of_kernels = plain["kernel_map"].stored()
        arrays |= {f"kernels:{name}": array for name, array in of_kernels.items()}
    if plain["label_graph"] is not None:
        plain["label_graph"], of_graph = plain["label_graph"].stored()
        arrays |= {f"graph:{name}": array for name, array in of_graph.items()}
    arrays["json"] = np.array(json.dumps({"format": _FORMAT, **plain}, default=_to_plain))
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)
    return path


def read_fields(path) -> dict[str, object]:
    """What `write_fields` wrote. DataError for a file of another kind."""
    path = as_path(path, "path of a solution")
    path = path if path.exists() else npz_path(path)
    typed = f"Solution.load({str(path)!r})"
    try:
        arrays = read_archive(path, "a saved solution")
        with reading(path, "a saved solution"):
            plain = json.loads(str(arrays.pop("json")))
    except DataError as error:
        raise DataError(f"{typed}: not a saved solution ({error})") from error
    if not isinstance(plain, dict) or plain.pop("format", None) != _FORMAT:
        raise DataError(f"{typed}: unknown format")
    try:
        _require_numbers(arrays)
        _restore(plain, arrays)
        check_fields(plain)
    except ValueError as error:
        raise DataError(f"{typed}: {error}; the file is damaged, or was not written by mtldsl") from error
    except Exception as error:  # a stranger's JSON may hold anything in the place of anything
        raise DataError(f"{typed}: parts of the solution are missing ({error})") from error
    return plain


def _require_numbers(arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf" or np.isnan(array).any():
            raise ValueError(f"{name!r} holds {array.dtype}, not numbers, or NaN")


def _restore(plain: dict, arrays: dict[str, np.ndarray]) -> None:
    """Puts what the arrays hold into the fields."""

    def of(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}

    plain["blocks"], plain["coef"] = of("block:"), arrays["coef"]
    plain |= {name: arrays.get(name) for name in _OPTIONAL}
    for name in ("task_names", "feature_names"):
        plain[name] = tuple(plain[name])
    # absent from files that were saved before matrices could be learned
    learned, stationarity = plain.get("learned", {}), plain.get("stationarity")
    plain["learned"] = {name: _restored(name, facts, arrays) for name, facts in learned.items()}
    plain["stationarity"] = None if stationarity is None else _stationarity(stationarity)
    if plain.get("kernel_map") is not None:
        from mtldsl.tasks.kernel_map import KernelMap

        plain["kernel_map"] = KernelMap.restored(plain["kernel_map"], of("kernels:"))
    graph = plain.get("label_graph")
    plain["label_graph"] = None if graph is None else LearnedGraph.restored(graph, of("graph:"))


def _stationarity(facts: dict) -> Stationarity:
    found = Stationarity(**facts)
    parts = {**found.decreases, **(found.conditions or {})}
    numbers = [found.residual, found.size, *parts.values(), 0.0 if found.gradient is None else found.gradient]
    if not all(isinstance(one, Real) and not math.isnan(one) for one in numbers):
        raise ValueError("the measures of its stationarity are not numbers")
    return found


def _stored(
    key: str, learned: LearnedMatrix | LearnedWeights, arrays: dict[str, np.ndarray]
) -> dict[str, object]:
    """What is not an array of something learned; its arrays go into `arrays`."""
    facts, parts = learned.stored()
    arrays |= {f"learned:{key}:{part}": array for part, array in parts.items()}
    return facts


def _restored(key: str, facts: dict, arrays: dict[str, np.ndarray]) -> LearnedMatrix | LearnedWeights:
    prefix = f"learned:{key}:"
    parts = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    try:
        if facts["kind"] == "weights":
            return LearnedWeights.restored(facts, parts)
        return LearnedMatrix.restored(key, facts, parts)
    except KeyError as missing:
        raise KeyError(prefix + missing.args[0]) from None


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
