"""The file of a proof: JSON that refers to arrays beside it, in one npz without pickles.

What is in it: docs/proofs.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.certificates.checker.function import UnsupportedFormula
from mtldsl.certificates.checker.proof_kinds import MAX_WHOLE, Kind, array, matrix, wholes
from mtldsl.certificates.checker.proof_schema import checked_form, checked_proof
from mtldsl.errors import DataError
from mtldsl.utils.files import atomic_file, checked_csr, npz_path, read_archive, reading
from mtldsl.utils.validation import as_path

# --------------------------------------------------------------------------------------------------------------
# The arrays of a data set in one canonical form, and their SHA-256 hashes: how a proof names the data that it is about.
#
# Numbers are float64 in C order, little-endian; CSR matrices are their three arrays, with int64 indices sorted in every row and without
# stored zeros or repetitions.


@dataclass(eq=False)
class DataArrays:
    """The data of m tasks, as `Tasks` has them.

    inputs  : (n, d) where they are shared, else (N, d), task after task; dense or CSR
    targets : (N,), task after task
    counts  : (m,) rows of every task
    mask    : (n, m) where the tasks share inputs and some labels are missing: True where there is one; else None
    sample_weights : (N,) or None
    """

    inputs: Any
    targets: np.ndarray
    counts: np.ndarray
    shared: bool
    mask: np.ndarray | None = None
    sample_weights: np.ndarray | None = None

    def __post_init__(self):
        X = self.inputs
        if sparse.issparse(X):
            X = sparse.csr_array(X, dtype=np.float64, copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
            X.sort_indices()
        else:
            X = np.ascontiguousarray(X, dtype=np.float64)
        self.inputs = X
        self.targets = np.ascontiguousarray(self.targets, dtype=np.float64)
        self.counts = np.ascontiguousarray(self.counts, dtype=np.int64)
        if self.mask is not None:
            self.mask = np.ascontiguousarray(self.mask, dtype=bool)
        if self.sample_weights is not None:
            self.sample_weights = np.ascontiguousarray(self.sample_weights, dtype=np.float64)

    @classmethod
    def of_tasks(cls, tasks) -> DataArrays:
        """From anything with the attributes of `Tasks`."""
        shared = bool(tasks.is_shared)
        return cls(
            tasks.X if shared else tasks.stacked, tasks.targets, tasks.counts, shared,
            tasks.mask if shared else None, tasks.sample_weights,
        )  # fmt: skip

    @cached_property
    def starts(self) -> np.ndarray:
        """(m,) where the labels of every task begin."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def rows(self) -> list[slice]:
        """Places of the labels of every task."""
        return [slice(a, a + n) for a, n in zip(self.starts.tolist(), self.counts.tolist(), strict=True)]

    def inputs_of(self, i: int) -> Any:
        """The inputs of task i, a row a label."""
        if not self.shared:
            return self.inputs[self.rows[i]]
        return self.inputs if self.mask is None else self.inputs[self.mask[:, i]]

    def arrays(self) -> dict[str, np.ndarray]:
        """By name; what is absent is not in it."""
        X: Any = self.inputs
        found: dict[str, Any] = {"X": X}
        if sparse.issparse(X):
            parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
            found = {f"X.{name}": part for name, part in parts.items()}
        found |= {"y": self.targets, "rows_of_tasks": self.counts}
        found |= {"labelled": self.mask, "sample_weights": self.sample_weights}
        kinds = {"f": "<f8", "i": "<i8", "b": "u1"}
        return {
            name: one.astype(kinds[one.dtype.kind], copy=False)
            for name, one in found.items()
            if one is not None
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray | None], shared: bool) -> DataArrays:
        """Back from `arrays` of a file, of which everything is held to its kind; ValueError that names what is not."""
        numbers, line = array((None,)), wholes((None,), 0, MAX_WHOLE)
        y, counts = numbers(arrays["y"], "y"), line(arrays["rows_of_tasks"], "rows_of_tasks")
        if "X" in arrays:
            X = matrix(arrays["X"], "X")
        else:
            shape = wholes((2,), 1, MAX_WHOLE)(arrays["X.shape"], "X.shape")
            columns, starts = (line(arrays[name], name) for name in ("X.indices", "X.indptr"))
            stored = checked_csr(numbers(arrays["X.data"], "X.data"), columns, starts, tuple(shape.tolist()))
            X = matrix(stored, "X")
        mask, weights = arrays.get("labelled"), arrays.get("sample_weights")
        mask = (
            None if mask is None else wholes((X.shape[0], len(counts)), 0, 1)(mask, "labelled").astype(bool)
        )
        weights = None if weights is None else array((len(y),), 0.0)(weights, "sample_weights")
        found = cls(X, y, counts, shared, mask, weights)
        found.require_layout()
        return found

    def require_layout(self) -> None:
        """ValueError where rows of tasks, labels and weights do not divide the labels as they must."""
        n, N, m = self.inputs.shape[0], len(self.targets), len(self.counts)
        fits = (
            self.targets.shape == (N,)
            and m > 0
            and int(self.counts.sum()) == N
            and bool(np.all(self.counts >= 0))
        )
        if self.shared:
            rows = np.full(m, n) if self.mask is None else self.mask.sum(axis=0)
            fits = (
                fits
                and np.array_equal(self.counts, rows)
                and (self.mask is None or self.mask.shape == (n, m))
            )
        else:
            fits = fits and n == N and self.mask is None
        if not fits or (self.sample_weights is not None and self.sample_weights.shape != (N,)):
            raise ValueError(
                "rows_of_tasks, labelled and sample_weights do not divide the labels and the rows"
            )

    def hashes(self) -> dict[str, str]:
        """SHA-256 of every array with its shape, by name."""
        return {
            name: hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()
            for name, array in self.arrays().items()
        }


FORMAT = "mtldsl-proof-1"

#: The balls of some norms had words of their own in version 0.1: the word, and the parameters, of the norm.
_BALLS: dict[str, tuple[str, dict]] = {
    "l1_ball": ("l1_norm", {"weights": None}), "l21_ball": ("l21_norm", {"weights": None}), "trace_norm_ball": ("trace_norm", {}),
    "frobenius_ball": ("frobenius_norm", {}),
}  # fmt: skip


def write_proof(path, proof: dict, data: list[DataArrays] | None) -> Path:
    """One file, written whole or not at all. Returns the path written."""
    held: dict[str, Any] = {}
    for k, one in enumerate(data or []):
        held |= {f"data:{k}:{name}": array for name, array in one.arrays().items()}
    return write_parts(path, FORMAT, proof, held)


def write_parts(path, format_: str, parts: dict, held: dict[str, Any]) -> Path:
    """Parts with arrays in them and arrays beside them, as one file of a format. Returns the path written."""
    path = npz_path(as_path(path, "path of a proof"))
    arrays: dict[str, Any] = {}
    text = json.dumps({"format": format_, **_without_arrays(parts, arrays)}, allow_nan=True)
    arrays |= held
    with atomic_file(path) as file:
        np.savez_compressed(file, json=np.array(text), **arrays)
    return path


def read_proof(path) -> tuple[dict, list[DataArrays]]:
    """(the proof, the data that it holds itself). DataError for a file of another kind."""
    typed = f"verify({str(path)!r})"
    format_, proof, arrays = _read_archive(path)
    if format_ != FORMAT:
        raise DataError(
            f"not a saved proof of the format {FORMAT}",
            term=typed,
            write_instead='write one with solution.certificate.save(path), or with proof = "PATH.npz" in [output] of a problem file',
        )
    with fitting(typed, "are missing or do not fit"):
        used: set[str] = set()
        proof = checked_proof(_with_arrays(proof, arrays, used))
        proof["functions"] = [_as_written_now(one) for one in proof["functions"]]
        data = _held_data(proof, {name: one for name, one in arrays.items() if name not in used})
    return proof, data


def format_of(path) -> Any:
    """The format that a file names. DataError for a file of another kind."""
    return _read_archive(path)[0]


def read_parts(path, kind: Kind) -> dict:
    """The parts of a file, all of whose arrays they refer to, held to their kind. DataError for others."""
    _, parts, arrays = _read_archive(path)
    with fitting(f"verify({str(path)!r})", "are missing or do not fit"):
        used: set[str] = set()
        found = kind(_with_arrays(parts, arrays, used), "the proof")
        _require_none(arrays.keys() - used)
    return found


def _read_archive(path) -> tuple[Any, dict, dict[str, np.ndarray]]:
    """(the format, what the JSON holds, the arrays beside it)."""
    typed = f"verify({str(path)!r})"
    try:
        arrays = read_archive(path, "a saved proof")
        with reading(path, "a saved proof"):
            parts = json.loads(str(arrays.pop("json")), object_pairs_hook=_once)
    except DataError as error:
        raise DataError(f"not a saved proof ({error})", term=typed) from error
    return (parts.pop("format", None), parts, arrays) if isinstance(parts, dict) else (None, {}, arrays)


#: Errors of parts that are missing, or are not what others take them for.
MISFITS = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError, UnsupportedFormula,
)  # fmt: skip


@contextmanager
def fitting(typed: str, said: str) -> Iterator[None]:
    """Report parts that are missing or do not fit as a DataError."""
    try:
        yield
    except MISFITS as error:
        raise DataError(f"parts of the proof {said} ({error})", term=typed) from error


def _require_none(unused) -> None:
    if unused:
        raise ValueError(f"the file holds {min(unused)!r}, which nothing refers to")


def as_read(form: dict) -> dict:
    """The description of a normal form, as it is where it was written and read."""
    return parts_as_read(form, lambda found, _: checked_form(found))


def parts_as_read(parts: dict, kind: Kind) -> dict:
    """The parts of a file as they are where they were written and read."""
    arrays: dict[str, Any] = {}
    return kind(_with_arrays(_without_arrays(parts, arrays), arrays, set()), "the proof")


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
    _require_none(arrays)
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
