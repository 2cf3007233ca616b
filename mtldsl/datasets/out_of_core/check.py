"""Whether the arrays of stored tasks can be followed: compiled loops go where indices point, without a look."""

from __future__ import annotations

import numpy as np

__all__ = ["check_rows"]

#: entries looked at in one go
_ENTRIES = 1 << 22


def check_rows(arrays: dict[str, np.ndarray], n_tasks: int, n_features: int) -> None:
    """ValueError where sizes do not belong together, a pointer goes back or outside, or a value or label is not finite.

    One pass over the files, in bounded memory: some 0.2 s a gigabyte where the system holds them already.
    """
    offsets, indptr, nnz = arrays["offsets"], arrays["indptr"], arrays["data"].size
    rows = indptr.size - 1
    together = arrays["indices"].size == nnz and arrays["y"].size == arrays["rows"].size == rows
    if not together or offsets.size != n_tasks + 1:
        raise ValueError("its arrays do not belong together")
    _require_ascending(offsets, rows, "offsets", 1)
    _require_ascending(indptr, nnz, "indptr", 0)
    for name, highest in (("indices", n_features - 1), ("rows", np.iinfo(np.int64).max)):
        for part in _parts(arrays[name]):
            if part.min() < 0 or part.max() > highest:
                raise ValueError(f"{name}.npy points outside")
    for name in ("data", "y"):
        for part in _parts(arrays[name]):
            if not np.isfinite(part).all():
                raise ValueError(f"{name}.npy holds NaN or infinity")


def _require_ascending(ends: np.ndarray, last: int, name: str, least: int) -> None:
    """0 = ends[0], ..., last, each at least `least` above the one before."""
    before = 0
    fits = ends.size and ends[0] == 0 and ends[-1] == last
    for part in _parts(ends[1:]):
        fits = fits and part[0] - before >= least and bool((np.diff(part) >= least).all())
        before = part[-1]
    if not fits:
        raise ValueError(f"{name}.npy does not ascend from 0 to {last:,}")


def _parts(array: np.ndarray):
    return (array[at : at + _ENTRIES] for at in range(0, array.size, _ENTRIES))
