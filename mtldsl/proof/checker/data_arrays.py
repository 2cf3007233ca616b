"""The arrays of a data set in one canonical form, and their SHA-256 hashes: how a proof names the data that it is about.

Numbers are float64 in C order, little-endian; CSR matrices are their three arrays, with int64 indices sorted in every row and without
stored zeros or repetitions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.proof.checker.kinds import array, matrix, wholes
from mtldsl.system.archives import checked_csr

__all__ = ["DataArrays"]

#: rows, and entries of a matrix, at most
_MOST = 2**53


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
    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.counts)])

    def arrays(self) -> dict[str, np.ndarray]:
        """By name; what is absent is not in it."""
        found = {}
        if sparse.issparse(self.inputs):
            X = self.inputs
            found |= {
                "X.data": X.data.astype("<f8"),
                "X.indices": X.indices.astype("<i8"),
                "X.indptr": X.indptr.astype("<i8"),
            }
            found["X.shape"] = np.array(X.shape, dtype="<i8")
        else:
            found["X"] = self.inputs.astype("<f8", copy=False)
        found |= {
            "y": self.targets.astype("<f8", copy=False),
            "rows_of_tasks": self.counts.astype("<i8", copy=False),
        }
        if self.mask is not None:
            found["labelled"] = self.mask.astype("u1")
        if self.sample_weights is not None:
            found["sample_weights"] = self.sample_weights.astype("<f8", copy=False)
        return found

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray | None], shared: bool) -> DataArrays:
        """Back from `arrays` of a file, of which everything is held to its kind; ValueError that names what is not."""
        numbers, line = array((None,)), wholes((None,), 0, _MOST)
        y, counts = numbers(arrays["y"], "y"), line(arrays["rows_of_tasks"], "rows_of_tasks")
        if "X" in arrays:
            X = matrix(arrays["X"], "X")
        else:
            shape = wholes((2,), 1, _MOST)(arrays["X.shape"], "X.shape")
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
            name: hashlib.sha256(
                repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()
            ).hexdigest()
            for name, array in self.arrays().items()
        }
