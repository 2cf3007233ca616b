"""Which task every row of a long table belongs to, from a column of ids of any kind."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.values.number import is_missing, quoted
from mtldsl.values.table import as_frame

__all__ = ["labels_of"]

_ENTRIES = 1 << 20


def labels_of(task_ids, n: int, what: str = "task_ids") -> tuple[list, np.ndarray]:
    """(distinct ids in order of first appearance, index of every row's task). 1 and "1" are two ids, 1 and 1.0 are one."""
    ids, hidden = _as_vector(task_ids, what)
    if ids.ndim != 1 or ids.shape[0] != n:
        raise DataError(
            f"{what} has shape {ids.shape}, but X has {n} rows", write_instead="give one task id a row"
        )
    if hidden.any():
        _refuse_missing("a masked entry", np.flatnonzero(hidden)[0], what)
    # of runs of equal ids, which long tables often have, only the first is looked at
    starts = np.flatnonzero(np.concatenate([[True], _differ(ids)])) if n else np.empty(0, dtype=int)
    heads = ids[starts]
    if ids.dtype.kind in "biuf":
        if ids.dtype.kind == "f" and np.isnan(heads).any():
            _refuse_missing(np.nan, starts[np.flatnonzero(np.isnan(heads))[0]], what)
        _, first, inverse = np.unique(heads, return_index=True, return_inverse=True)
        by_appearance = np.argsort(first)
        place = np.empty(first.size, dtype=int)
        place[by_appearance] = np.arange(first.size)
        names, of_head = heads[first[by_appearance]].tolist(), place[inverse]
    else:  # text: sorting it takes three times as long as this loop
        order: dict = {}
        of_head = np.empty(heads.size, dtype=int)
        for a in range(0, heads.size, _ENTRIES):
            part = heads[a : a + _ENTRIES]
            # numpy's times become numbers in a list
            for k, task in enumerate(part if part.dtype.kind in "mM" else part.tolist(), start=a):
                if is_missing(task):
                    _refuse_missing(task, starts[k], what)
                try:
                    of_head[k] = order.setdefault(task, len(order))
                except (TypeError, ArithmeticError):
                    raise DataError(
                        f"{what}: {quoted(task)} in row {starts[k]} is a {type(task).__name__}",
                        write_instead="write ids that are numbers or text",
                    ) from None
        names = list(order)
    return names, np.repeat(of_head, np.diff(np.append(starts, n)))


def _as_vector(task_ids, what) -> tuple[np.ndarray, np.ndarray]:
    """(ids, which of them numpy's mask hides). Python objects stay what they are: numpy would make text of [1, "1"]."""
    frame = as_frame(task_ids)
    if frame is not None:
        import narwhals as nw

        if len(frame.columns) != 1:
            raise DataError(
                f"{what} has {len(frame.columns)} columns",
                write_instead="give the one that tells the tasks apart",
            )
        column = next(frame.iter_columns())
        # numpy has no whole numbers of 128 bits, nor text that is missing
        plain = (
            column.dtype in (nw.Int64, nw.Int32, nw.Int16, nw.Int8, nw.Float64) and not column.is_null().any()
        )
        return column.to_numpy() if plain else _objects(column.to_list()), np.zeros(1, dtype=bool)
    if isinstance(task_ids, list | tuple) and len(set(map(type, task_ids))) > 1:
        return _objects(task_ids), np.zeros(1, dtype=bool)
    try:
        hidden = np.ma.getmaskarray(task_ids) if np.ma.isMaskedArray(task_ids) else np.zeros(1, dtype=bool)
        return np.asarray(np.ma.getdata(task_ids)), hidden if hidden.dtype == bool else np.zeros(
            1, dtype=bool
        )
    except Exception as problem:  # lists of different lengths, or whatever a stranger's __array__ raises
        raise DataError(
            f"{what}: not a vector of ids ({problem})", write_instead="give one task id a row"
        ) from None


def _objects(values) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def _differ(ids) -> np.ndarray:
    """Where an id is not the one before; of objects that cannot be compared, everywhere."""
    try:
        return np.asarray(ids[1:] != ids[:-1], dtype=bool)
    except (TypeError, ValueError, ArithmeticError):
        return np.ones(max(len(ids) - 1, 0), dtype=bool)


def _refuse_missing(task, row, what):
    raise DataError(f"{what}: {task} in row {row}; every row needs a task")
