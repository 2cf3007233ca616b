"""Parts that are arrays already: NumPy archives, and chunks that the caller makes."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from scipy import sparse

from mtldsl.datasets.parts_chunk import of_arrays
from mtldsl.errors import DataError

__all__ = ["given_chunks", "npz_chunks"]


def npz_chunks(path: Path, task: str, label: str, name: str):
    """One chunk: the archive's arrays `label` and `task` ("file": all rows are of the task `name`), and its inputs.

    Inputs are the arrays data, indices, indptr, shape and format, as scipy.sparse.save_npz names them, or a dense X.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            known = archive.files
            roles = {"label": label} if task == "file" else {"label": label, "task": task}
            for role, array in roles.items():
                if array not in known:
                    hint = '; write task="file" for one task a file' if role == "task" else ""
                    raise DataError(
                        f"{path}: {role}={array!r}: there is no such array; the archive holds {', '.join(known)}{hint}"
                    )
            y = archive[label]
            ids = np.full(y.size, name, dtype=object) if task == "file" else archive[task]
            if "format" not in known and "X" not in known:
                raise DataError(
                    f"{path}: neither a dense X nor the arrays of scipy.sparse.save_npz are among {', '.join(known)}"
                )
            X = archive["X"] if "format" not in known else None
        X = sparse.load_npz(path) if X is None else X
    except DataError:
        raise
    except (ValueError, OSError, KeyError, TypeError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: cannot be read as an .npz archive of numbers: {error}") from None
    yield of_arrays(X, y.ravel(), ids, str(path))


def given_chunks(items):
    """What the caller's iterator gives, one chunk after the other."""
    row = 0
    for k, item in enumerate(items):
        try:
            X, y, ids = item
        except (TypeError, ValueError):
            raise DataError(
                f"chunk {k} is {type(item).__name__}, not (X, y, task_ids); see mtl.datasets.store"
            ) from None
        chunk = of_arrays(X, y, ids, f"chunk {k}", row)
        if chunk.n_rows:
            yield chunk
        row += chunk.n_rows
