"""Tasks whose rows stay in files, or come from functions, and are read by Dask's workers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from mtldsl.data.store import common_folder, format_of, stem
from mtldsl.data.store_chunks import has_qid, libsvm_rows, npz_arrays
from mtldsl.data.store_parquet import (
    known_columns,
    named_columns,
    opened_parquet,
    partitions_of,
    with_partition,
)
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.constructors import PartitionRows
from mtldsl.distributed.dask_backend import call, require_dask
from mtldsl.distributed.dask_inputs import of_loaders
from mtldsl.errors import DataError
from mtldsl.utils.files import note_folder, note_input
from mtldsl.utils.parallel import runs
from mtldsl.utils.validation import as_count, as_flag, as_list, quoted

# --------------------------------------------------------------------------------------------------------------
# Files as partitions: which there are, and how a worker reads one.


class PartitionSource(NamedTuple):
    """A partition: its file, which part of it, the node that reads it, and how many bytes it takes in memory, where that is known."""

    path: str
    part: str
    node: Any
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


def npz_rows(path: str, label: str | None, task: str | None, weights: str | None) -> PartitionRows:
    """One archive: inputs as scipy.sparse.save_npz writes them, or a dense X; labels, and the arrays that are named."""
    roles: dict = {"labels": (label,) if label else ("Y", "y")}
    roles |= {"task": (task,)} if task not in (None, "file") else {}
    roles |= {"sample_weights": (weights,)} if weights is not None else {}
    X, found = npz_arrays(Path(path), roles, ("feature_names", "task_names"))
    Y, names = found["labels"], (found["feature_names"], found["task_names"])
    ids = np.full(len(Y), stem(path), dtype=object) if task == "file" else found.get("task")
    table = Y if task is not None or Y.ndim == 2 else Y[:, None]
    return PartitionRows(X, table, ids, found.get("sample_weights"), True, *names)


def text_rows(path: str, task: str | None, zero_based: bool, n_features: int | None) -> PartitionRows:
    """One LIBSVM file. task "qid" or "file"; None: all rows are of one task."""
    X, y, ids = libsvm_rows(Path(path), task or "file", stem(path), zero_based, n_features)
    is_table = task is None
    return PartitionRows(
        X, y[:, None] if is_table else y, None if is_table else ids, exact=n_features is not None
    )


# --------------------------------------------------------------------------------------------------------------
# Parquet files as partitions: a file each, or several row groups of a large one. pyarrow is imported where a file is read.


@dataclass(frozen=True)
class ScanSettings:
    """Sizes of what is read and written.

    partition_bytes : inputs in memory that are one partition at most, where row groups allow it
    reading_threads : files whose ends are read at once
    """

    partition_bytes: int = 128 << 20
    reading_threads: int = 16


SETTINGS = ScanSettings()


def parquet_pieces(
    system, files: list[str], root: str | None, features, labels, task, weights, typed: str
) -> tuple[list[PartitionSource], dict]:
    """(the partitions, the columns by what they are for). DataError for columns that the first file does not have.

    root : the folder below which folders are columns
    """
    below = partitions_of(files, root)
    with ThreadPoolExecutor(min(SETTINGS.reading_threads, len(files))) as pool:
        found = list(pool.map(lambda one: _end(system, one), files))
    known, default = known_columns(found[0][0], files[0], below[0])
    columns = named_columns(
        known, features, labels, None if task == "file" else task, weights, typed, default
    )
    columns["file"] = task == "file"
    if features is None:
        for path, partition, (schema, _) in zip(files, below, found, strict=True):
            other = next(
                (name for name in known_columns(schema, path, partition)[1] if name not in known), None
            )
            if other is not None:
                raise DataError(
                    f"there is a column {other!r}, which {files[0]} has not", term=path,
                    write_instead="name the features",
                )  # fmt: skip
    d = len(columns["features"])
    pieces = []
    for path, partition, (_, groups) in zip(files, below, found, strict=True):
        ends = np.cumsum([0, *groups])
        for first, last in runs(ends, SETTINGS.partition_bytes // (8 * d)) or [(0, 0)]:
            is_whole = last - first == len(groups)
            part = "" if is_whole else f", row groups {first} to {last - 1} (rows from {ends[first]})"
            size = 8.0 * (ends[last] - ends[first]) * (d + 2 * len(columns["labels"]))
            own = columns | {"partition": partition}
            node = call(parquet_rows, system, path, list(range(first, last)), own, partition=len(pieces))
            pieces.append(PartitionSource(path, part, node, size))
    return pieces, columns


def _end(system, path: str) -> tuple[Any, list[int]]:
    """(the schema, rows of every row group): what stands at the end of the file."""
    with opened_parquet(path, system) as file:
        groups = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        return file.schema_arrow, groups


def parquet_rows(system, path: str, groups: list[int], columns: dict) -> PartitionRows:
    """These row groups of the file."""
    named = [*columns["features"], *columns["labels"], *columns["others"]]
    wanted = [name for name in dict.fromkeys(named) if name not in columns["partition"]]
    with opened_parquet(path, system) as file:
        missing = [name for name in wanted if name not in file.schema_arrow.names]
        if missing:
            raise DataError(f"there is no column {missing[0]!r}, which other files have", term=path)
        try:
            table = file.read_row_groups(groups, columns=wanted, use_threads=False)
        except Exception as error:
            raise DataError(f"cannot be read: {error}", term=path) from None
    table = with_partition(table, columns["partition"])
    ids: Any = np.full(len(table), stem(path), dtype=object) if columns["file"] else None
    if columns["task"] is not None:
        ids = table.column(columns["task"])
    weights = None if columns["weights"] is None else table.select([columns["weights"]])
    return PartitionRows(table.select(columns["features"]), table.select(columns["labels"]), ids, weights)


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
    zero_based = as_flag(zero_based, "scan(path, zero_based")
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
    names, read, given = {}, None, ()
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
        read, given = npz_rows, (labels, task, sample_weights)
    else:
        if labels is not None or sample_weights is not None:
            raise DataError(
                "LIBSVM files have no names of labels or weights", term=typed, write_instead="leave them out"
            )
        if n_features is not None:
            n_features = as_count(n_features, "scan(path, n_features", most=1 << 62)
        task = task or ("qid" if has_qid(Path(files[0])) else None)
        if task not in (None, "qid", "file"):
            raise DataError(
                f'task={quoted(task)}: in LIBSVM files a task is "qid", or "file" for one task a file',
                term=typed,
            )
        read, given = text_rows, (task, zero_based, n_features)
    if known != "parquet":
        pieces = [
            PartitionSource(one, "", call(read, one, *given, partition=k)) for k, one in enumerate(files)
        ]
    sizes = [piece.size for piece in pieces]
    size = None if None in sizes else sum(one for one in sizes if one is not None)
    called = [PurePosixPath(piece.path).name + piece.part for piece in pieces]
    if len(set(called)) < len(called):
        called = [f"{piece.path} ({name})" for piece, name in zip(pieces, called, strict=True)]
    nodes = [piece.node for piece in pieces]
    return of_loaders(nodes, names=called, keep=keep, size=size, typed=typed, **names)


def from_parts(
    loaders: Sequence, *, names=None, task_names=None, feature_names=None, keep: bool | None = None
) -> Tasks:  # fmt: skip
    """Return what loaders return, each a partition, as tasks whose rows are read by Dask's workers. Extra `dask`.

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
