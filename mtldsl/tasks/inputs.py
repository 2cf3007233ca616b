"""What a user hands over - numpy, scipy sparse, pandas, polars, lists - as checked float64 arrays with names."""

from __future__ import annotations

import sys

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.memory import as_dense, require_memory
from mtldsl.tasks.stacked import is_mapped, never_written, stack

__all__ = [
    "as_design",
    "as_names",
    "as_rows",
    "as_targets",
    "as_weights",
    "labels_of",
    "numbered",
    "refuse_shuffled",
]

#: entries looked at in one go, so that a check of much data needs little memory
_ENTRIES = 1 << 20


def _as_frame(table):
    """The table as a narwhals frame where it is a pandas or polars object, else None. Nothing is imported for plain arrays."""
    if (
        isinstance(table, np.ndarray)
        or sparse.issparse(table)
        or not ({"pandas", "polars", "pyarrow"} & set(sys.modules))
    ):
        return None
    import narwhals as nw

    native = nw.from_native(table, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return native.to_frame()
    if isinstance(native, nw.LazyFrame):
        raise DataError("a lazy frame has no rows yet; write frame.collect()")
    return native if isinstance(native, nw.DataFrame) else None


def _numeric(table, what: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(float64 array of our own, column names or None)."""
    array, names = _real(table, what)
    return array.astype(float), names


def _real(table, what: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(array of real numbers, not copied where it was one; column names or None)."""
    _refuse_duplicate_columns(table, what)
    frame = _as_frame(table)
    names = None
    if frame is not None:
        names = tuple(str(name) for name in frame.columns)
        series = list(frame.iter_columns())
        for name, column in zip(names, series, strict=True):
            if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
                raise DataError(
                    f"{what}: column {name!r} is {column.dtype}, not numeric; encode it first (for example one column per category)"
                )
        # nulls of polars and pandas become NaN, which the checks below then name
        columns = [column.cast(_float64()).to_numpy() for column in series]
        return np.column_stack(columns).astype(float) if columns else np.empty((len(frame), 0)), names
    try:
        # what numpy's mask hides is missing: it becomes NaN, and is not read through the mask
        array = np.ma.filled(table.astype(float), np.nan) if np.ma.isMaskedArray(table) else np.asarray(table)
        if array.dtype.kind in "fiub":
            return array, names
        if array.dtype.kind != "c":
            return array.astype(float), names
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{what}: not an array of numbers ({error}); encode text and categories as numbers first"
        ) from None
    raise DataError(_COMPLEX.format(what))


_COMPLEX = "{}: complex numbers; give real ones, for example real and imaginary parts as two columns"


def _refuse_duplicate_columns(table, what: str) -> None:
    """Before narwhals meets them, whose error names neither the argument nor what to do."""
    columns = list(table.columns) if type(table).__module__.startswith("pandas") and table.ndim == 2 else []
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise DataError(f"{what}: two columns are named {twice!r}; rename one")


def _float64():
    import narwhals as nw

    return nw.Float64


def as_design(table, what: str = "X"):
    """(n, d) inputs: a float64 array, or CSR for any scipy sparse matrix; and the column names where the table has them.

    A copy, for the caller may go on writing to theirs; but what nobody can write to is taken as it is: see `as_rows`.
    """
    X, fixed, names = as_rows(table, what)
    return X if fixed else stack([(X, None)]), names


def as_rows(table, what: str = "X"):
    """The inputs checked, in bounded memory: (X, whether X can be kept as it is, column names or None).

    What cannot be kept - the caller may write to it, it is not float64, its rows are not contiguous - is for `stack` to copy.
    Kept are float64 arrays and canonical CSR that are read-only all the way down, such as memory-mapped files (mode "r"), and
    CSR with float32 values where these are memory-mapped: products with float64 vectors are float64.
    """
    if sparse.issparse(table):
        X, fixed = _sparse_rows(table, what)
        return X, fixed, None
    X, names = _real(table, what)
    if X.ndim != 2:
        hint = "; a single feature is .reshape(-1, 1), a single row .reshape(1, -1)" if X.ndim == 1 else ""
        raise DataError(
            f"{what} has shape {X.shape}: inputs must be a matrix of n rows and d feature columns{hint}"
        )
    if X.shape[1] == 0:
        raise DataError(f"{what} has no columns: at least one feature is needed")
    _check_finite_dense(X, names, what)
    ours = names is not None or isinstance(table, list | tuple)
    return X, X.dtype == float and X.flags.c_contiguous and (ours or never_written(X)), names


def _sparse_rows(table, what):
    if table.dtype.kind == "c":
        raise DataError(_COMPLEX.format(what))
    if table.ndim != 2:
        raise DataError(f"{what} has shape {table.shape}: inputs must be a matrix of n rows and d columns")
    if table.shape[1] == 0:
        raise DataError(f"{what} has no columns: at least one feature is needed")
    ours = table.format != "csr"
    X = sparse.csr_array(
        table
    )  # of CSR another object on the same arrays; what it finds out is not told to the caller's
    _check_columns(X, what)
    canonical = X.has_canonical_format
    if not canonical:
        X, ours = X.copy(), True
        X.sum_duplicates()
    if X.dtype.kind not in "fiub":
        X, ours = X.astype(float), True
    _check_finite_sparse(X, what)
    arrays = (X.data, X.indices, X.indptr)
    for array in arrays if ours else ():
        array.flags.writeable = False
    kept = X.dtype == float or (X.dtype == np.float32 and is_mapped(X.data))
    return X, kept and all(map(never_written, arrays))


def _check_columns(X, what):
    """scipy reads past the end of its arrays where an index says so."""
    if X.nnz and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        worst = X.indices.min() if X.indices.min() < 0 else X.indices.max()
        raise DataError(f"{what}: column index {worst} in a matrix of {X.shape[1]} columns; it is damaged")


def _check_finite_dense(X, names, what):
    step = max(_ENTRIES // X.shape[1], 1)
    bad = 0
    for a in range(0, X.shape[0], step):
        wrong = ~np.isfinite(X[a : a + step])
        if not bad and wrong.any():
            row, column = np.argwhere(wrong)[0] + (a, 0)
        bad += int(wrong.sum())
    if bad:
        name = names[column] if names else f"column {column}"
        raise DataError(
            f"{what}: {X[row, column]} in row {row}, {name}; inputs must be finite - impute or drop it "
            f"({bad} such entries)"
        )


def _check_finite_sparse(X, what):
    for a in range(0, X.data.size, _ENTRIES):
        bad = np.flatnonzero(~np.isfinite(X.data[a : a + _ENTRIES]))
        if bad.size:
            entry = a + int(bad[0])
            row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
            raise DataError(
                f"{what}: {X.data[entry]} in row {row}, column {X.indices[entry]}; inputs must be finite"
            )


def as_targets(table, what: str, *, columns: bool):
    """Labels: (n, m) where `columns`, else (n,); NaN is kept (a missing label), infinity refused."""
    if sparse.issparse(table):
        advice = (
            "give the labels of fewer tasks, or tasks with inputs of their own: Tasks.separate, Tasks.grouped"
        )
        table = as_dense(
            table, f"{what}, {table.shape[0]:,} x {table.shape[-1]:,} labels,", advice, DataError
        )
    Y, names = _numeric(table, what)
    if columns:
        Y = Y[:, None] if Y.ndim == 1 else Y
    elif Y.ndim == 2 and Y.shape[1] == 1:
        Y = Y[:, 0]
    if Y.ndim != (2 if columns else 1):
        raise DataError(
            f"{what} has shape {Y.shape}: "
            + ("labels must be n x m" if columns else "labels must be a vector")
        )
    if columns and Y.shape[1] == 0:
        raise DataError(f"{what} has no columns: at least one task is needed")
    if np.isinf(Y).any():
        place = np.argwhere(np.isinf(Y))[0]
        where = f"row {place[0]}" + (f", task {names[place[1]] if names else place[1]}" if columns else "")
        raise DataError(f"{what}: infinite label in {where}; labels must be finite (NaN: not labelled)")
    return Y, names


def as_weights(values, shape, what: str) -> np.ndarray:
    """Sample weights of that shape, finite and > 0."""
    weights, _ = _numeric(values, what)
    if weights.ndim == 1 and len(shape) == 2 and weights.shape[0] == shape[0]:
        weights = np.repeat(weights[:, None], shape[1], axis=1)
    if weights.shape != tuple(shape):
        raise DataError(
            f"{what} has shape {weights.shape}, but the labels have shape {tuple(shape)}; give one weight a sample"
        )
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        place = np.argwhere(bad)[0]
        raise DataError(
            f"{what}: {weights[tuple(place)]} in row {place[0]}; weights must be finite and > 0 (leave out rows that should not count)"
        )
    return weights


def as_names(names, default, count: int, what: str) -> tuple[str, ...]:
    """`count` distinct names: those given, else `default`."""
    if isinstance(names, str):
        raise DataError(f"{what}={names!r}: write a list of names")
    names = tuple(str(name) for name in (default if names is None else names))
    if len(names) != count:
        raise DataError(f"{what}: {len(names)} names for {count}; give exactly {count}")
    seen = set()
    for name in names:
        if name in seen:
            raise DataError(f"{what}: the name {name!r} occurs twice; names must be distinct")
        seen.add(name)
    return names


def numbered(letter: str, count: int) -> list[str]:
    """x0, x1, ...: what columns are called that have no names. DataError where there are too many even for that."""
    require_memory(
        150.0 * count, f"so many as {count:,} columns (their names alone)",
        "hash them to fewer: datasets.hash_columns(X, n), or store(..., hashed=n)", DataError,
    )  # fmt: skip
    return [f"{letter}{k}" for k in range(count)]


def labels_of(task_ids, n: int) -> tuple[list, np.ndarray]:
    """(distinct ids in order of first appearance, index of every row's task)."""
    frame = _as_frame(task_ids)
    if frame is not None and len(frame.columns) > 1:
        raise DataError(f"task_ids has {len(frame.columns)} columns; give the one that tells the tasks apart")
    ids = next(frame.iter_columns()).to_numpy() if frame is not None else np.asarray(task_ids)
    if ids.ndim != 1 or ids.shape[0] != n:
        raise DataError(f"task_ids has shape {ids.shape}, but X has {n} rows; give one task id a row")
    # of runs of equal ids, which long tables often have, only the first is looked at
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])) if n else np.empty(0, dtype=int)
    heads = ids[starts]
    if ids.dtype.kind in "biuf":
        if ids.dtype.kind == "f" and np.isnan(heads).any():
            _refuse_no_id(np.nan, starts[np.flatnonzero(np.isnan(heads))[0]])
        _, first, inverse = np.unique(heads, return_index=True, return_inverse=True)
        by_appearance = np.argsort(first)
        place = np.empty(first.size, dtype=int)
        place[by_appearance] = np.arange(first.size)
        names, of_head = heads[first[by_appearance]].tolist(), place[inverse]
    else:  # text: sorting it takes three times as long as this loop
        order: dict = {}
        of_head = np.empty(heads.size, dtype=int)
        for a in range(0, heads.size, _ENTRIES):
            for k, task in enumerate(heads[a : a + _ENTRIES].tolist(), start=a):
                if task is None or task != task:  # NaN is the value that differs from itself
                    _refuse_no_id(task, starts[k])
                of_head[k] = order.setdefault(task, len(order))
        names = list(order)
    return names, np.repeat(of_head, np.diff(np.append(starts, n)))


def _refuse_no_id(task, row):
    raise DataError(f"task_ids: {task} in row {row}; every row needs a task")


def refuse_shuffled(X, Y, what: str) -> None:
    """DataError where two pandas tables hold the same rows in another order: rows are matched by position."""
    indexes = [
        getattr(table, "index", None) for table in (X, Y) if type(table).__module__.startswith("pandas")
    ]
    if len(indexes) < 2 or len(indexes[0]) != len(indexes[1]) or indexes[0].equals(indexes[1]):
        return
    if indexes[0].is_unique and not indexes[0].symmetric_difference(indexes[1]).size:
        raise DataError(
            f"X and {what} have the same index in another order, and rows are matched by position: "
            f"write {what}.loc[X.index], or reset_index(drop=True) where the positions are right"
        )
