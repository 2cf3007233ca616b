"""Conversion of a user's Dask collections - arrays, data frames, delayed loaders - into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

from mtldsl.data.store_parquet import named_columns
from mtldsl.distributed.constructors import (
    PartitionFindings,
    PartitionRows,
    load,
    place_part,
    places_of,
)
from mtldsl.distributed.dask_backend import (
    as_nodes,
    call,
    compute_node,
    constant,
    fits_in_memory,
    keep_nodes,
    require_dask,
)
from mtldsl.distributed.dask_parts import DaskParts, tree
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.errors import DataError
from mtldsl.utils.arrays import digest
from mtldsl.utils.validation import quoted


def of_loaders(
    loaders: Sequence, *, names=None, task_names=None, feature_names=None, keep=None, size=None, typed="from_parts(loaders)"
) -> DistributedTasks:  # fmt: skip
    """Delayed values, or functions without arguments, that are `PartitionRows` or (X, Y), (X, y, task_ids), (X, y, task_ids, weights).

    names : of the partitions; size: bytes in memory, where they are known before
    """
    require_dask(typed)
    if not (keep is None or isinstance(keep, bool)):
        raise DataError(
            term=f"keep={quoted(keep)}", write_instead="write True, False, or None for whatever fits"
        )
    if not len(loaders):
        raise DataError("at least one partition is needed", term=typed)
    names = tuple(names or (f"partition {k}" for k in range(len(loaders))))
    sources = as_nodes(loaders, names, typed)
    first_kept = keep is True or (keep is None and size is not None and fits_in_memory(size))

    def load_all(check: bool) -> list:
        pairs = enumerate(zip(sources, names, strict=True))
        return [call(load, one, k, name, check, partition=k) for k, (one, name) in pairs]

    loaded = keep_nodes(load_all(True), names) if first_kept else load_all(True)
    found: PartitionFindings = compute_node(
        tree([call(getattr, one, "found", partition=k) for k, one in enumerate(loaded)]), names
    )
    places = places_of(found, names, task_names, feature_names)
    if keep is None and not first_kept:
        keep = fits_in_memory(sum(part.size for part in found.parts.values()))
    if not first_kept:
        # from now on without the checks: the checksum says that it is what was checked
        loaded = load_all(False)
    sent = constant(places)
    nodes = [
        call(place_part, one, k, name, sent, partition=k)
        for k, (one, name) in enumerate(zip(loaded, names, strict=True))
    ]
    mark = digest(sorted(places.checksums.items()), places.task_names, places.feature_names)
    parts = DaskParts(nodes, names, first_kept or bool(keep), mark)
    if first_kept:
        parts.nodes()  # then what was loaded can go
    parts.passes = 1
    first = found.parts[0]
    return DistributedTasks(
        parts, task_names=places.task_names, feature_names=places.feature_names, facts=found.facts, keys=tuple(places.places),
        is_weighted=first.is_weighted, is_sparse=any(part.is_sparse for part in found.parts.values()),
        is_table=first.n_columns is not None,
    )  # fmt: skip


def of_arrays(X, Y, sample_weights, task_names, feature_names, keep) -> DistributedTasks:
    """`Tasks.from_dask`."""
    require_dask("Tasks.from_dask(X, Y)")
    given = X, Y, sample_weights
    X = _as_dask(X, None, "X")
    if X.ndim != 2:
        raise DataError(
            f"X has shape {X.shape}: inputs must be a matrix of n rows and d feature columns",
            term="Tasks.from_dask(X, Y)",
        )
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    Y = _cut_like(_as_dask(Y, X, "Y"), X, "Y")
    weights = (
        None
        if sample_weights is None
        else _cut_like(_as_dask(sample_weights, X, "sample_weights"), X, "sample_weights")
    )
    inputs, labels, own = (
        [None] * X.numblocks[0] if cut is None else _blocks(one, cut)
        for one, cut in zip(given, (X, Y, weights), strict=True)
    )
    rows = [
        call(PartitionRows, X_k, Y_k, None, s_k, partition=k)
        for k, (X_k, Y_k, s_k) in enumerate(zip(inputs, labels, own, strict=True))
    ]
    n, d = X.shape
    size = None if isnan(n) or isnan(d) else 8.0 * n * (d + 2 * (Y.shape[1] if Y.ndim == 2 else 1))
    return of_loaders(
        rows, task_names=task_names, feature_names=feature_names, keep=keep, size=size, typed="Tasks.from_dask(X, Y)"
    )  # fmt: skip


def _blocks(given, cut) -> list:
    """The chunks of rows; of a data frame its own partitions, whose index and column names are looked at."""
    return list(given.to_delayed() if hasattr(given, "to_dask_array") else cut.to_delayed().ravel())


def _as_dask(table, like, what: str) -> Any:
    """A Dask array: a data frame's values, or a numpy array cut like X."""
    import dask.array as da

    if isinstance(table, da.Array):
        return table
    if hasattr(table, "to_dask_array"):
        return table.to_dask_array()
    if like is None or not isinstance(table, np.ndarray | list | tuple):
        raise DataError(
            f"{what} is a {type(table).__name__}, not an array of Dask", term="Tasks.from_dask(X, Y)",
            write_instead="write dask.array.from_array(X, chunks=(rows, -1)); for a data frame Tasks.from_dask_dataframe; for numpy Tasks.shared",
        )  # fmt: skip
    array = np.asarray(table)
    known = not isnan(like.shape[0])
    if not known or array.ndim not in (1, 2) or len(array) != like.shape[0]:
        raise DataError(
            f"{what} has shape {array.shape}, and X has shape {like.shape}", term="Tasks.from_dask(X, Y)",
            write_instead="give one row of labels per row of inputs",
        )  # fmt: skip
    chunks: Any = (like.chunks[0], *(-1 for _ in array.shape[1:]))
    return da.from_array(array, chunks=chunks)


def _cut_like(array, X, what: str) -> Any:
    """Cut by rows as X is."""
    if array.ndim not in (1, 2):
        raise DataError(
            f"{what} has shape {array.shape}: it must be (n,) or (n, m)", term="Tasks.from_dask(X, Y)"
        )
    if array.ndim == 2 and array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    if isnan(X.shape[0]) or isnan(array.shape[0]):
        if array.numblocks[0] != X.numblocks[0]:
            raise DataError(
                f"{what} has {array.numblocks[0]} chunks of rows and X has {X.numblocks[0]}, and how long they are is not known",
                term="Tasks.from_dask(X, Y)", write_instead="write compute_chunk_sizes() on both, or cut them alike",
            )  # fmt: skip
        return array
    if array.shape[0] != X.shape[0]:
        raise DataError(
            f"X has {X.shape[0]} rows but {what} has {array.shape[0]}", term="Tasks.from_dask(X, Y)",
            write_instead="give one row of labels per row of inputs",
        )  # fmt: skip
    return array if array.chunks[0] == X.chunks[0] else array.rechunk({0: X.chunks[0]})


def of_frame(frame, features, labels, task, sample_weights, keep) -> DistributedTasks:
    """`Tasks.from_dask_dataframe`."""
    typed = "Tasks.from_dask_dataframe(df, features, labels)"
    require_dask(typed)
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise DataError(
            f"df is a {type(frame).__name__}, not a data frame of Dask",
            term=typed,
            write_instead="write dask.dataframe.from_pandas(df, npartitions)",
        )
    columns = named_columns(list(frame.columns), features, labels, task, sample_weights, typed)
    wanted = list(dict.fromkeys([*columns["features"], *columns["labels"], *columns["others"]]))
    parts = frame[wanted].to_delayed()
    rows = [call(rows_of_frame, one, columns, partition=k) for k, one in enumerate(parts)]
    return of_loaders(
        rows, task_names=columns["labels"] if task is None else None, feature_names=columns["features"], keep=keep, typed=typed
    )  # fmt: skip


def rows_of_frame(frame, columns: dict) -> PartitionRows:
    """The columns of a data frame in memory, by what they are for."""
    task, weights = columns["task"], columns["weights"]
    return PartitionRows(
        frame[columns["features"]],
        frame[columns["labels"]] if task is None else frame[columns["labels"][0]].to_numpy(),
        None if task is None else frame[task],
        None if weights is None else frame[weights].to_numpy(),
    )
