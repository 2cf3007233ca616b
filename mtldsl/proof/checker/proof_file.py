"""The file of a proof: JSON that refers to arrays beside it, in one npz without pickles. What is in it: docs/proofs.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.proof.checker.data_arrays import DataArrays
from mtldsl.system.archives import checked_csr, npz_path, read_archive
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.reading import reading
from mtldsl.values.path import as_path

__all__ = ["FORMAT", "read_proof", "write_proof"]

FORMAT = "mtldsl-proof-1"

#: What every proof has, and of what kind.
_FIELDS = {
    "model": str, "claimed": dict, "constant": (int, float), "blocks": list, "data": list, "losses": list, "functions": list, "point": dict,
}  # fmt: skip

#: The balls of some norms had words of their own in version 0.1: the word, and the parameters, of the norm.
_BALLS: dict[str, tuple[str, dict]] = {
    "l1_ball": ("l1_norm", {"weights": None}), "l21_ball": ("l21_norm", {"weights": None}), "trace_norm_ball": ("trace_norm", {}),
    "frobenius_ball": ("frobenius_norm", {}),
}  # fmt: skip


def write_proof(path, proof: dict, data: list[DataArrays] | None) -> Path:
    """One file, written whole or not at all. Returns the path written."""
    path = npz_path(as_path(path, "path of a proof"))
    arrays: dict[str, Any] = {}
    text = json.dumps({"format": FORMAT, **_without_arrays(proof, arrays)}, allow_nan=True)
    for k, one in enumerate(data or []):
        arrays |= {f"data:{k}:{name}": array for name, array in one.arrays().items()}
    with atomic_file(path) as file:
        np.savez_compressed(file, json=np.array(text), **arrays)
    return path


def read_proof(path) -> tuple[dict, list[DataArrays]]:
    """(the proof, the data that it holds itself). DataError for a file of another kind."""
    typed = f"verify({str(path)!r})"
    try:
        arrays = read_archive(path, "a saved proof")
        with reading(path, "a saved proof"):
            proof = json.loads(str(arrays.pop("json")))
    except DataError as error:
        raise DataError(f"{typed}: not a saved proof ({error})") from error
    if not isinstance(proof, dict) or proof.pop("format", None) != FORMAT:
        raise DataError(
            f"{typed}: not a saved proof of the format {FORMAT}; write one with solution.certificate.save(path)"
        )
    try:
        proof = _with_arrays(proof, arrays)
        wrong = [name for name, kind in _FIELDS.items() if not isinstance(proof.get(name), kind)]
        if wrong:
            raise DataError(f"{typed}: {wrong[0]!r} is missing or of another kind")
        _check(proof)
        proof["functions"] = [_as_written_now(one) for one in proof["functions"]]
        return proof, _held_data(proof, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DataError(f"{typed}: parts of the proof are missing or do not fit ({error})") from error


def _check(proof) -> None:
    """Shapes and numbers that the formulas rely on; ValueError says which do not fit."""
    shapes = {one["name"]: tuple(one["shape"]) for one in proof["blocks"]}
    for name, shape in shapes.items():
        if proof["point"][name].shape != shape:
            raise ValueError(f"the point has the shape {proof['point'][name].shape} for {name}, not {shape}")
    for key in ("objective", "dual_bound", "tol"):
        float(proof["claimed"][key])
    for one in [*proof["losses"], *proof["functions"]]:
        if any(e["block"] not in shapes for e in one["map"]["entries"]) or not one["map"]["entries"]:
            raise ValueError(f"{one['word']} is of a block that is not there")
    for one in proof["losses"]:
        if any(name not in shapes for name in one["intercepts"]):
            raise ValueError(f"{one['word']} has an intercept that is not there")
    for array in _arrays_in(proof["point"]):
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError("the point is not finite")
    for one in [*proof["losses"], *proof["functions"]]:
        for array in _arrays_in(
            [one["multipliers"], one.get("witness"), one["map"], one.get("coefficients")]
        ):
            values = array.data if sparse.issparse(array) else array
            if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
                raise ValueError(f"{one['word']} has numbers that are not finite")


def _as_written_now(one: dict) -> dict:
    """A function of a proof, as this version writes it."""
    if one["word"] not in _BALLS:
        return one
    word, parameters = _BALLS[one["word"]]
    of = {"word": word, "parameters": parameters}
    return one | {"word": "norm_ball", "parameters": {"of": of, "radius": one["parameters"]["radius"]}}


def _arrays_in(value) -> Iterator[Any]:
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _arrays_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _arrays_in(item)


def _held_data(proof, arrays) -> list[DataArrays]:
    found = []
    for k, described in enumerate(proof["data"]):
        prefix = f"data:{k}:"
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        if own:
            found.append(DataArrays.of_arrays(own, described["shared"]))
    return found


def _without_arrays(value, arrays: dict[str, Any]) -> Any:
    """The same with every array put into `arrays` and referred to by name."""
    if sparse.issparse(value):
        parts = [_without_arrays(part, arrays) for part in (value.data, value.indices, value.indptr)]
        return {"csr": parts, "shape": list(value.shape)}
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {str(key): _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _with_arrays(value, arrays) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            return arrays[value["array"]]
        if value.keys() == {"csr", "shape"}:
            data, indices, starts = (_with_arrays(part, arrays) for part in value["csr"])
            return checked_csr(data, indices, starts, value["shape"])
        return {key: _with_arrays(item, arrays) for key, item in value.items()}
    return [_with_arrays(item, arrays) for item in value] if isinstance(value, list) else value
