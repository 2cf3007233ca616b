"""The file of a proof: JSON that refers to arrays beside it, in one npz without pickles. What is in it: docs/proofs.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.proof.checker.data_arrays import DataArrays
from mtldsl.proof.checker.schema import checked_form, checked_proof
from mtldsl.system.archives import checked_csr, npz_path, read_archive
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.reading import reading
from mtldsl.values.path import as_path

__all__ = ["FORMAT", "as_read", "read_proof", "write_proof"]

FORMAT = "mtldsl-proof-1"

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
            proof = json.loads(str(arrays.pop("json")), object_pairs_hook=_once)
    except DataError as error:
        raise DataError(f"not a saved proof ({error})", term=typed) from error
    if not isinstance(proof, dict) or proof.pop("format", None) != FORMAT:
        raise DataError(
            f"not a saved proof of the format {FORMAT}",
            term=typed,
            write_instead="write one with solution.certificate.save(path)",
        )
    try:
        used: set[str] = set()
        proof = checked_proof(_with_arrays(proof, arrays, used))
        proof["functions"] = [_as_written_now(one) for one in proof["functions"]]
        return proof, _held_data(proof, {name: one for name, one in arrays.items() if name not in used})
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise DataError(f"parts of the proof are missing or do not fit ({error})", term=typed) from error


def as_read(form: dict) -> dict:
    """The description of a normal form, as it is where it was written and read."""
    arrays: dict[str, Any] = {}
    return checked_form(_with_arrays(_without_arrays(form, arrays), arrays, set()))


def _as_written_now(one: dict) -> dict:
    """A function of a proof, as this version writes it."""
    if one["word"] not in _BALLS:
        return one
    word, parameters = _BALLS[one["word"]]
    of = {"word": word, "parameters": parameters}
    return one | {"word": "norm_ball", "parameters": {"of": of, "radius": one["parameters"]["radius"]}}


def _held_data(proof, arrays) -> list[DataArrays]:
    """The data that a file holds itself; ValueError where an array is neither of these nor of the proof."""
    found = []
    for k, described in enumerate(proof["data"]):
        own = {name: arrays.pop(f"data:{k}:{name}", None) for name in described["hashes"]}
        held = [name for name, array in own.items() if array is not None]
        if held and len(held) < len(own):
            raise ValueError(f"the file holds {held[0]} of data set {k + 1}, and not all of it")
        if held:
            found.append(DataArrays.of_arrays(own, described["shared"]))
    if arrays:
        raise ValueError(f"the file holds {sorted(arrays)[0]!r}, which nothing refers to")
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


def _with_arrays(value, arrays, used: set[str]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            used.add(value["array"])
            return arrays[value["array"]]
        if value.keys() == {"csr", "shape"}:
            data, indices, starts = (_with_arrays(part, arrays, used) for part in value["csr"])
            return checked_csr(data, indices, starts, value["shape"])
        return {key: _with_arrays(item, arrays, used) for key, item in value.items()}
    return [_with_arrays(item, arrays, used) for item in value] if isinstance(value, list) else value


def _once(pairs) -> dict:
    """An object of JSON; ValueError where a name is there twice, of which only one would be seen."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a name is there twice, among {', '.join(found)}")
    return found
