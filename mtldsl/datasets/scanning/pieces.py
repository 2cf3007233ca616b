"""Files as partitions: which there are, and how a worker reads one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.datasets.out_of_core.arrays import npz_arrays
from mtldsl.datasets.out_of_core.libsvm import libsvm_chunks
from mtldsl.datasets.out_of_core.source import common_folder
from mtldsl.errors import DataError
from mtldsl.system.inputs import note_folder, note_input
from mtldsl.tasks.distributed.loading import Rows
from mtldsl.values.listing import as_list
from mtldsl.values.number import quoted

__all__ = ["FORMATS", "Piece", "files_of", "format_of", "libsvm_rows", "npz_rows", "stem"]

#: format -> endings of its files
FORMATS = {
    "parquet": (".parquet", ".pq"),
    "npz": (".npz",),
    "libsvm": (".svm", ".libsvm", ".svmlight", ".svm.gz", ".libsvm.gz", ".svm.bz2", ".libsvm.bz2"),
}


@dataclass(frozen=True)
class Piece:
    """A partition: what messages call it, how it is read, and how many bytes it takes in memory, where that is known."""

    name: str
    read: Callable[..., Rows]
    arguments: tuple
    size: float | None = None


def files_of(path, typed: str) -> tuple[Any, list[str], str | None]:
    """(None or the file system of fsspec, the files in the order of their names, the folder that all are below). Hidden ones are left out."""
    if isinstance(path, str) and "://" in path:
        return _remote(path, typed)
    listed = None if isinstance(path, str | Path) else as_list(path)
    if listed is not None:
        files = [Path(one) for one in listed]
    elif isinstance(path, str | Path):
        files = (
            sorted(p for p in Path(path).rglob("*") if p.is_file()) if Path(path).is_dir() else [Path(path)]
        )
        files = [
            p for p in files if not any(part.startswith((".", "_")) for part in p.relative_to(path).parts)
        ]
    else:
        raise DataError(
            f"{quoted(path)} is a {type(path).__name__}",
            term=typed,
            write_instead="write a folder, a file or a list of files",
        )
    for one in files:
        if not one.is_file():
            raise DataError(f"there is no file or folder {str(one)!r} (looked from {Path.cwd()})", term=typed)
    if not files:
        raise DataError(f"there is no file in {str(path)!r}", term=typed)
    if listed is None and Path(path).is_dir():
        note_folder(path)
    for one in files:
        note_input(one, "data")
    return None, [str(one) for one in files], common_folder(path, files)


def _remote(path: str, typed: str) -> tuple[Any, list[str], str | None]:
    try:
        import fsspec

        system, root = fsspec.core.url_to_fs(path)
        found = sorted(system.find(root)) if system.isdir(root) else [root]
    except ImportError as error:
        raise DataError(
            f"{path}: {error}", term=typed, write_instead="install the package that fsspec names"
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be listed: {error}", term=typed) from None
    below = [one for one in found if not PurePosixPath(one).name.startswith((".", "_"))]
    if not below:
        raise DataError(f"there is no file in {path}", term=typed)
    return system, below, str(root) if system.isdir(root) else None


def format_of(files: list[str], format, typed: str) -> str:
    """The one format of these files, by their endings where it is not given."""
    if format is None:
        for known, endings in FORMATS.items():
            if all(one.lower().endswith(endings) for one in files):
                return known
        shown = ", ".join(files[:3])
        raise DataError(
            f"the endings of {shown} do not tell one format (known: {', '.join(e for all_of in FORMATS.values() for e in all_of)})",
            term=typed, write_instead=f"write format=..., one of {', '.join(FORMATS)}",
        )  # fmt: skip
    if format not in FORMATS:
        raise DataError(f"format={quoted(format)}: write one of {', '.join(map(repr, FORMATS))}", term=typed)
    return format


def npz_rows(path: str, label: str | None, task: str | None, weights: str | None) -> Rows:
    """One archive: inputs as scipy.sparse.save_npz writes them, or a dense X; labels, and the arrays that are named."""
    names = [label] if label else ["Y", "y"]
    ids = None if task in (None, "file") else task
    X, archive = npz_arrays(Path(path), [one for one in (*names, ids, weights) if one])
    found = next((one for one in names if one in archive), None)
    for what, name, there in (
        ("labels", names[0], found),
        ("task", ids, ids in archive),
        ("sample_weights", weights, weights in archive),
    ):
        if name is not None and not there:
            raise DataError(
                f"{what}={name!r}: there is no such array; the archive holds {', '.join(archive)}", term=path
            )
    Y = archive[found]
    own = None if weights is None else archive[weights]
    return Rows(
        X, Y if task is not None or Y.ndim == 2 else Y[:, None], _ids(task, path, len(Y), archive), own
    )


def _ids(task: str | None, path: str, n: int, archive) -> Any:
    if task is None:
        return None
    return np.full(n, stem(path), dtype=object) if task == "file" else archive[task]


def stem(path: str) -> str:
    """What a task is called that is a file."""
    return PurePosixPath(path).name.split(".")[0]


def libsvm_rows(path: str, task: str | None, zero_based: bool, n_features: int | None) -> Rows:
    """One text file. task "qid" or "file"; None: all rows are of one task."""
    chunks = list(libsvm_chunks(Path(path), task or "file", stem(path), zero_based, n_features))
    if not chunks:
        raise DataError("there is no row in it", term=path)
    d = n_features or max(chunk.X.shape[1] for chunk in chunks)
    parts = []
    for chunk in chunks:
        X = chunk.X
        parts.append(sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d)))
    X = parts[0] if len(parts) == 1 else sparse.csr_array(sparse.vstack(parts))
    y = np.concatenate([chunk.y for chunk in chunks])
    if task is None:
        return Rows(X, y[:, None], exact=n_features is not None)
    ids = np.concatenate([np.array(chunk.ids, dtype=object)[chunk.codes] for chunk in chunks])
    return Rows(X, y, ids, exact=n_features is not None)
