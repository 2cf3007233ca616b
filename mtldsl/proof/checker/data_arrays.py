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

from mtldsl.system.archives import checked_csr

__all__ = ["DataArrays"]


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
    def of_arrays(cls, arrays: dict[str, np.ndarray], shared: bool) -> DataArrays:
        """Back from `arrays`."""
        if "X" in arrays:
            X = arrays["X"]
        else:
            shape = tuple(int(k) for k in arrays["X.shape"])
            X = checked_csr(arrays["X.data"], arrays["X.indices"], arrays["X.indptr"], shape)
        mask = arrays.get("labelled")
        return cls(
            X,
            arrays["y"],
            arrays["rows_of_tasks"],
            shared,
            None if mask is None else mask.astype(bool),
            arrays.get("sample_weights"),
        )

    def hashes(self) -> dict[str, str]:
        """SHA-256 of every array with its shape, by name."""
        return {
            name: hashlib.sha256(
                repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()
            ).hexdigest()
            for name, array in self.arrays().items()
        }
