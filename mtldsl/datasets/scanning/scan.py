"""Tasks whose rows stay in files, or come from functions, and are read by Dask's workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from mtldsl.datasets.out_of_core.libsvm import has_qid
from mtldsl.datasets.scanning.parquet_pieces import parquet_pieces
from mtldsl.datasets.scanning.pieces import Piece, files_of, format_of, libsvm_rows, npz_rows
from mtldsl.errors import DataError
from mtldsl.tasks import Tasks
from mtldsl.tasks.distributed.dask_engine import call, require_dask
from mtldsl.tasks.distributed.given import of_loaders
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_whole, quoted

__all__ = ["from_parts", "scan"]


def scan(
    path,
    features=None,
    labels=None,
    task: str | None = None,
    sample_weights: str | None = None,
    *,
    format: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    keep: bool | None = None,
) -> Tasks:
    """Files as tasks that stay where they are: every file, or every few row groups of a large Parquet file, is a partition. Extra `dask`.

    path           : a folder (with those below it), a file, a list of files; Parquet also an address of fsspec's, such as "s3://bucket/folder".
                     Below it, folders called "shop=3" are a column of Parquet files, as pyarrow.dataset reads them
    features       : Parquet: names of numeric columns; None: all that are nothing else, without the index that pandas or Dask wrote
    labels         : Parquet: the column of labels, or one column per task (None: "label"); NPZ: the array (None: "Y" or "y"), (n,) or (n, m)
    task           : the column or array of task ids of one long table; "file": a task a file, named by it; LIBSVM: "qid" (None: where the
                     first line has one). None: a table with a column of labels per task
    sample_weights : Parquet, NPZ: the column or array of weights, > 0
    format         : "parquet", "npz" or "libsvm" (also .gz, .bz2); None: what the endings of the files say
    n_features     : LIBSVM: columns of X; None: the largest index in any file
    zero_based     : LIBSVM: indices count from 0
    keep           : whether rows stay in the workers' memory (None: where they take half of it at most), else they are read at each pass

    One pass over the rows, on the workers, checks them as `Tasks.shared` and `Tasks.grouped` do; later passes compare checksums, so a file
    that changes meanwhile is an error. DataError names the file and the row. The work is done by the active `distributed.Client`, whose
    workers must find the files at the same paths, or else by threads of this process.

    >>> import tempfile, pathlib, numpy as np, pytest
    >>> _ = pytest.importorskip("dask")
    >>> from mtldsl import datasets
    >>> there = pathlib.Path(tempfile.mkdtemp())
    >>> for k in range(3):
    ...     np.savez(there / f"part{k}.npz", X=np.arange(8.0).reshape(4, 2) + k, y=[0.0, 1.0, float("nan"), 3.0], task=["a", "a", "b", "c"])
    >>> datasets.scan(there, task="task")
    <Tasks: 2 tasks, 2 features, rows in 3 parts (dask), 6 + 3 labelled rows>
    """
    typed = f"scan({quoted(str(path) if isinstance(path, Path) else path)})"
    require_dask(typed)
    for word, value in (("task", task), ("sample_weights", sample_weights)):
        if value is not None and not isinstance(value, str):
            raise DataError(
                f"{word}={quoted(value)}", term=typed, write_instead="write a name as text, or leave it out"
            )
    system, files, root = files_of(path, typed)
    known = format_of(files, format, typed)
    if known != "parquet" and (system is not None or features is not None):
        raise DataError(
            f"{known} files are read from this machine's folders, with all their columns", term=typed,
            write_instead="leave out features, copy the files, or give functions that read them: datasets.from_parts(loaders)",
        )  # fmt: skip
    if known != "libsvm" and (n_features is not None or zero_based):
        raise DataError(
            "n_features and zero_based are for LIBSVM files", term=typed, write_instead="leave them out"
        )
    names: dict = {}
    if known == "parquet":
        pieces, columns = parquet_pieces(
            system, files, root, features, "label" if labels is None else labels, task, sample_weights, typed
        )
        names = {
            "feature_names": columns["features"],
            "task_names": columns["labels"] if task is None else None,
        }
    elif known == "npz":
        if labels is not None and not isinstance(labels, str):
            raise DataError(f"labels={quoted(labels)}: write the name of one array", term=typed)
        pieces = [
            Piece(PurePosixPath(one).name, npz_rows, (one, labels, task, sample_weights)) for one in files
        ]
    else:
        if labels is not None or sample_weights is not None:
            raise DataError(
                "LIBSVM files have no names of labels or weights", term=typed, write_instead="leave them out"
            )
        if n_features is not None and not 1 <= (as_whole(n_features) or 0) < 1 << 62:
            raise DataError(f"n_features={quoted(n_features)}: write a whole number of columns", term=typed)
        task = task or ("qid" if has_qid(Path(files[0])) else None)
        if task not in (None, "qid", "file"):
            raise DataError(
                f'task={quoted(task)}: in LIBSVM files a task is "qid", or "file" for one task a file',
                term=typed,
            )
        pieces = [
            Piece(PurePosixPath(one).name, libsvm_rows, (one, task, zero_based, n_features)) for one in files
        ]
    sizes = [piece.size for piece in pieces]
    size = None if None in sizes else sum(one for one in sizes if one is not None)
    nodes = [call(piece.read, *piece.arguments, partition=k) for k, piece in enumerate(pieces)]
    return of_loaders(nodes, names=_distinct(pieces, files), keep=keep, size=size, typed=typed, **names)


def _distinct(pieces: list[Piece], files: list[str]) -> list[str]:
    """What messages call the partitions: names of files, or their paths where names are not distinct."""
    names = [piece.name for piece in pieces]
    if len(set(names)) == len(names):
        return names
    paths = [
        next(one for one in piece.arguments if isinstance(one, str) and one in set(files)) for piece in pieces
    ]
    return [f"{path} ({name})" for path, name in zip(paths, names, strict=True)]


def from_parts(
    loaders: Sequence, *, names=None, task_names=None, feature_names=None, keep: bool | None = None
) -> Tasks:  # fmt: skip
    """What loaders return, each a partition, as tasks whose rows are read by Dask's workers. Extra `dask`.

    loaders       : a list of `dask.delayed` values, or of functions without arguments that the workers can import. Each is (X, Y), a table
                    with a column of labels per task; or (X, y, task_ids), rows of one long table; sample weights are a fourth (with None
                    for the ids of a table). X dense, sparse or a data frame
    names         : what messages call the partitions
    task_names, feature_names : those of the columns of Y and X, as in `Tasks.shared`
    keep          : as in `scan`; a loader that is called again must return the same

    >>> import numpy as np, pytest
    >>> _ = pytest.importorskip("dask")
    >>> from mtldsl import datasets
    >>> def half():
    ...     return np.eye(3), [[1.0, 2.0], [3.0, 4.0], [5.0, float("nan")]]
    >>> datasets.from_parts([half, half])
    <Tasks: 2 tasks, 3 features, rows in 2 parts (dask), 6 + 4 labelled rows (2 missing)>
    """
    typed = "from_parts(loaders)"
    listed = as_list(loaders)
    if listed is None:
        raise DataError(
            f"loaders is a {type(loaders).__name__}",
            term=typed,
            write_instead="give a list of loaders, one a partition",
        )
    given = None if names is None else as_list(names)
    if names is not None and (given is None or len(given) != len(listed)):
        raise DataError(
            f"names={quoted(names)}", term=typed, write_instead=f"give {len(listed)} names, one a partition"
        )
    return of_loaders(
        listed, names=None if given is None else [str(one) for one in given], task_names=task_names, feature_names=feature_names,
        keep=keep, typed=typed,
    )  # fmt: skip
