"""Parts that are arrays already: NumPy archives, and chunks that the caller makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.datasets.out_of_core.chunk import of_arrays
from mtldsl.errors import DataError
from mtldsl.system.archives import read_archive
from mtldsl.system.reading import reading

__all__ = ["given_chunks", "npz_arrays", "npz_chunks"]

#: What scipy.sparse.save_npz writes of the formats that it knows.
_SPARSE = ("data", "indices", "indptr", "shape", "format", "row", "col", "offsets")


def npz_chunks(path: Path, task: str, label: str, name: str):
    """One chunk: the archive's arrays `label` and `task` ("file": all rows are of the task `name`), and its inputs.

    Inputs are the arrays data, indices, indptr, shape and format, as scipy.sparse.save_npz names them, or a dense X.
    """
    roles = {"label": label} if task == "file" else {"label": label, "task": task}
    X, archive = npz_arrays(path, list(roles.values()))
    for role, array in roles.items():
        if array not in archive:
            hint = '; write task="file" for one task a file' if role == "task" else ""
            raise DataError(
                f"{role}={array!r}: there is no such array; the archive holds {', '.join(archive)}{hint}",
                term=path,
            )
    y = archive[label]
    ids = np.full(y.size, name, dtype=object) if task == "file" else archive[task]
    yield of_arrays(X, y.ravel(), ids, str(path))


def npz_arrays(path: Path, names: list[str]) -> tuple[Any, dict]:
    """(the inputs, the arrays of the archive): those of these names, and those of the inputs, are numbers."""
    what = "an .npz archive of numbers"
    archive = read_archive(path, what, [*names, *_SPARSE, "X"])
    if "format" not in archive and "X" not in archive:
        raise DataError(
            f"neither a dense X nor the arrays of scipy.sparse.save_npz are among {', '.join(archive)}",
            term=path,
        )
    with reading(path, what):
        return _sparse(archive) if "format" in archive else archive["X"], archive


def _sparse(arrays):
    """The matrix that scipy.sparse.save_npz wrote. Its indices are looked at: compiled loops follow them without a look."""
    kind, shape = arrays["format"].item(), tuple(arrays["shape"].tolist())
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    if kind == "coo":
        return sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape)
    if kind == "dia":
        return sparse.dia_array((arrays["data"], arrays["offsets"]), shape)
    if kind not in ("csr", "csc", "bsr"):
        raise ValueError(f"its sparse format is {kind!r}")
    made = getattr(sparse, f"{kind}_array")((arrays["data"], arrays["indices"], arrays["indptr"]), shape)
    made.check_format(full_check=True)
    return made


def given_chunks(items):
    """What the caller's iterator gives, one chunk after the other."""
    row = 0
    for k, item in enumerate(items):
        if not isinstance(item, list | tuple) or len(item) != 3:
            raise DataError(
                f"chunk {k} is {type(item).__name__}, not (X, y, task_ids); see mtl.datasets.store"
            )
        X, y, ids = item
        chunk = of_arrays(X, y, ids, f"chunk {k}", row)
        if chunk.n_rows:
            yield chunk
        row += chunk.n_rows
