"""Checks of inputs, labels, weights and names that a user gives."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.row_storage import as_csr, never_written, stack
from mtldsl.errors import DataError
from mtldsl.utils.arrays import (
    MAX_EXACT_WHOLE,
    as_array,
    as_frame,
    numbers_of,
    refuse_duplicate_columns,
    require_sound,
)
from mtldsl.utils.memory import as_dense, require_memory
from mtldsl.utils.validation import (
    MAX_MAGNITUDE,
    MIN_MAGNITUDE,
    MISSING_TEXTS,
    as_composed,
    as_list,
    distinct_names,
    is_missing,
    listed,
    plain,
    quoted,
)

# --------------------------------------------------------------------------------------------------------------
# Entries of inputs are finite, and of a size that float64 can square. No copy of them is made.


def require_finite(X, names, what: str) -> None:
    """DataError, with row and column, unless every entry of X (n, d), dense or CSR, is a number of at most `MAX_MAGNITUDE`."""
    numbers = X.data if sparse.issparse(X) else X
    if numbers.dtype.kind in "iub" or not numbers.size:
        return
    if numbers.min() >= -MAX_MAGNITUDE and numbers.max() <= MAX_MAGNITUDE:  # NaN is not
        return
    wrong = ~((numbers >= -MAX_MAGNITUDE) & (numbers <= MAX_MAGNITUDE))
    bad, first = int(np.count_nonzero(wrong)), int(wrong.argmax())
    row, column = divmod(first, X.shape[1])
    value = X.data[first] if sparse.issparse(X) else X[row, column]
    if sparse.issparse(X):
        row, column = int(np.searchsorted(X.indptr, first, side="right")) - 1, int(X.indices[first])
    where = f"{what}: {value} in row {row}, column {repr(names[column]) if names else column}"
    if np.isfinite(value):
        raise DataError(
            f"{where}; products of such numbers are not in float64, so inputs are at most {MAX_MAGNITUDE:g} - rescale or standardise the "
            f"column ({bad} such entries)"
        )
    raise DataError(
        f"{where}; inputs must be finite, neither NaN nor inf - impute or drop it ({bad} such entries)"
    )


def require_visible(X, names, what: str) -> None:
    """DataError where a column is not zero, but so small that its squares are: solvers would take it for zero."""
    if X.dtype.kind in "iub" or not X.shape[0]:
        return
    if sparse.issparse(X):
        # asked first: there may be more columns than there is memory for
        if not ((X.data < MIN_MAGNITUDE) & (X.data > -MIN_MAGNITUDE) & (X.data != 0)).any():
            return
        columns, places = np.unique(X.indices, return_inverse=True)
        largest = np.zeros(columns.size)
        np.maximum.at(largest, places, np.abs(X.data))
    else:
        columns, largest = np.arange(X.shape[1]), np.maximum(X.max(axis=0), -X.min(axis=0))
    refuse_invisible(largest, lambda k: names[columns[k]] if names else f"column {columns[k]}", what)


def refuse_invisible(largest: np.ndarray, name_of: Callable[[int], str], what: str) -> None:
    """DataError where the largest absolute value of a column is not zero, and its square is."""
    lost = np.flatnonzero((largest > 0) & (largest < MIN_MAGNITUDE))
    if lost.size:
        raise DataError(
            f"the largest entry of {name_of(int(lost[0]))} is {largest[lost[0]]:g}, whose square is 0 in float64; rescale or standardise the "
            f"column, or write zeros ({lost.size} such columns)",
            term=what,
        )


# --------------------------------------------------------------------------------------------------------------
# Which task every row of a long table belongs to, from a column of ids of any kind.


def labels_of(task_ids, n: int, what: str = "task_ids") -> tuple[list, np.ndarray]:
    """(distinct ids in order of first appearance, index of every row's task). 1 and "1" are two ids, 1 and 1.0 are one."""
    ids = _as_vector(task_ids, what)
    if ids.ndim != 1 or ids.shape[0] != n:
        raise DataError(
            f"{what} has shape {ids.shape}, but X has {n} rows", write_instead="give one task id a row"
        )
    # of runs of equal ids, which long tables often have, only the first is looked at
    starts = np.flatnonzero(np.concatenate([[True], _differ(ids)])) if n else np.empty(0, dtype=int)
    heads = ids[starts]
    if ids.dtype.kind in "biuf":
        if ids.dtype.kind == "f" and not (np.abs(heads) < MAX_EXACT_WHOLE).all():
            k = int(np.flatnonzero(~(np.abs(heads) < MAX_EXACT_WHOLE))[0])
            if np.isnan(heads[k]):
                _refuse_missing(np.nan, starts[k], what)
            _refuse_rounded(heads[k], starts[k], what)
        names, of_head = by_appearance(heads)
        names = names.tolist()
    else:  # text: sorting it takes three times as long as this loop
        order: dict = {}
        of_head = np.empty(heads.size, dtype=int)
        # numpy's times become numbers in a list
        for k, task in enumerate(heads if heads.dtype.kind in "mM" else heads.tolist()):
            if is_missing(task):
                _refuse_missing(task, starts[k], what)
            if isinstance(task, float) and abs(task) >= MAX_EXACT_WHOLE:
                _refuse_rounded(task, starts[k], what)
            try:
                of_head[k] = order.setdefault(task, len(order))
            except (TypeError, ArithmeticError):
                raise DataError(
                    f"{what}: {quoted(task)} in row {starts[k]} is a {type(task).__name__}",
                    write_instead="write ids that are numbers or text",
                ) from None
        names = list(order)
    index = np.repeat(of_head, np.diff(np.append(starts, n)))
    if ids.dtype.kind not in "biuf":
        counts = np.bincount(index, minlength=len(names)).tolist()
        refuse_missing_texts(names, counts, what, "leave these rows out, or give the task another name")
    return names, index


def by_appearance(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the distinct numbers in order of first appearance, where each of the values is among them).

    >>> by_appearance(np.array([7, 5, 7]))
    (array([7, 5]), array([0, 1, 0]))
    """
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return values[first[order]], np.argsort(order)[inverse]


def _as_vector(task_ids, what) -> np.ndarray:
    """The ids. Python objects stay what they are: numpy would make text of [1, "1"]."""
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
        return column.to_numpy() if plain else _objects(column.to_list())
    if isinstance(task_ids, list | tuple) and len(set(map(type, task_ids))) > 1:
        return _objects(task_ids)
    try:
        if not np.ma.isMaskedArray(task_ids):  # np.ma.getdata would read through the mask of pandas' arrays
            return np.asarray(task_ids)
        hidden = np.flatnonzero(np.ma.getmask(task_ids))
        if hidden.size:
            _refuse_missing("a masked entry", hidden[0], what)
        return np.ma.getdata(task_ids)
    except DataError:
        raise
    except Exception as problem:  # lists of different lengths, or whatever a stranger's __array__ raises
        raise DataError(
            f"{what}: not a vector of ids ({problem})", write_instead="give one task id a row"
        ) from None


def _objects(values) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def _differ(ids) -> np.ndarray:
    """Return where an id is not the one before; of objects that cannot be compared, everywhere."""
    try:
        return np.asarray(ids[1:] != ids[:-1], dtype=bool)
    except (TypeError, ValueError, ArithmeticError):
        return np.ones(max(len(ids) - 1, 0), dtype=bool)


def refuse_missing_texts(values: Sequence, counts: Sequence[int], what: str, instead: str = "") -> None:
    """DataError where one of the distinct values is a text of what is missing: it would be a class, or a task, of its own."""
    for each, count in zip(values, counts, strict=True):
        if isinstance(each, str) and each.strip() in MISSING_TEXTS:
            raise DataError(
                f"{what} holds the text {str(each)!r} in {count:,} row{'s' * (count != 1)}, as files, numpy and astype(str) write a missing value",
                write_instead=instead
                or f"write None or NaN in its place, such as y.mask(y == {str(each)!r}) in pandas, or give the class another name",
            )


class SpellingWarning(UserWarning):
    """Two classes, or two tasks, have names that differ by blanks or capitals alone."""


#: how two spellings of one name may differ: in words, what mends it, and the text without that
_SPELLING_RULES: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("how accents are stored", '.str.normalize("NFC")', as_composed),
    ("blanks", ".str.strip()", lambda text: "".join(text.split())),
    ("capitals", ".str.lower()", str.casefold),
    ("zeros behind a point", ".astype(float)", lambda text: re.sub(r"^([+-]?\d+)\.0*$", r"\1", text)),
)


def _difference(one: str, other: str) -> tuple[str, str]:
    """The difference between two spellings of one name, and what mends it."""
    for how, mend, form in _SPELLING_RULES:
        one, other = form(one), form(other)
        if one == other:
            return how, mend
    return "spelling", ""


def warn_of_spellings(values: Iterable, what: str) -> None:
    """A SpellingWarning that names two of the distinct values that may be meant as one."""
    known: dict[str, str] = {}
    for each in values:
        if not isinstance(each, str):
            continue
        folded = each
        for _, _, form in _SPELLING_RULES:
            folded = form(folded)
        other = known.setdefault(folded, each)
        if other != each:
            how, mend = _difference(other, each)
            warnings.warn(
                f"{what}: {str(other)!r} and {str(each)!r} are two names, and differ by {how} alone; "
                f"where one is meant, spell it alike, such as by column{mend}",
                SpellingWarning,
                stacklevel=2,
            )
            return


def _refuse_rounded(task, row, what):
    raise DataError(
        f"{what}: {task} in row {row}; float64 has not all whole numbers from 2^53 on, so several ids may have become one",
        write_instead="keep ids as whole numbers or text",
    )


def _refuse_missing(task, row, what):
    raise DataError(
        f"{what}: {task} in row {row}; every row needs a task",
        write_instead="leave such rows out, or give the unknown task a name",
    )


# --------------------------------------------------------------------------------------------------------------
# What a user hands over - numpy, scipy sparse, pandas, polars, lists - as checked float64 arrays with names.


def as_numbers(table, what: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(float64 array of our own, of any shape, column names or None). What is missing is NaN; DataError for all that is not a real number."""
    array, names = _real(table, what)
    return array.astype(float), names


def _real(table, what: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(array of real numbers, not copied where it was one; column names or None)."""
    refuse_duplicate_columns(table, what)
    frame = as_frame(table)
    return (as_array(table, what), None) if frame is None else numbers_of(frame, what)


def as_design(table, what: str = "X", fill: np.ndarray | None = None) -> tuple[Any, tuple[str, ...] | None]:
    """(n, d) inputs: a float64 array, or CSR for any scipy sparse matrix; and the column names where the table has them.

    A copy, for the caller may go on writing to theirs; but what nobody can write to is taken as it is: see `as_rows`.
    fill : (d,) what stands in the place of NaN, column by column; None: it is refused
    """
    X, fixed, names = as_rows(table, what, fill)
    return X if fixed else stack([(X, None)]), names


def as_learned(given, names: Sequence[str], what: str, whose: str, fill: np.ndarray | None = None) -> Any:
    """Return `as_design` of inputs that are to have these columns; whose : such as "the weights were learned on"."""
    X, columns = as_design(given, what, fill)
    wrong = unlike(names, columns, given)
    if wrong is not None:
        raise DataError(f"{what} has the columns {listed(columns or ())}; {wrong}")
    if X.shape[1] != len(names):
        raise DataError(
            f"{what} has shape {X.shape}, but {whose} {len(names)} features",
            write_instead=f"give a matrix of n rows and {len(names)} columns",
        )
    return X


def as_rows(
    table, what: str = "X", fill: np.ndarray | None = None
) -> tuple[Any, bool, tuple[str, ...] | None]:
    """The inputs checked, in bounded memory: (X, whether X can be kept as it is, column names or None).

    What cannot be kept - the caller may write to it, it is not float64, its rows are not contiguous - is for `stack` to copy.
    Kept are float64 arrays and canonical CSR that are read-only all the way down, such as memory-mapped files (mode "r"), and
    CSR with float32 values where these are memory-mapped: products with float64 vectors are float64.
    """
    if sparse.issparse(table):
        X, fixed = as_csr(table, what)
        require_finite(X, None, what)
        return X, fixed, None
    X, names = _real(table, what)
    if X.ndim != 2:
        raise DataError(
            f"{what} has shape {X.shape}: inputs must be a matrix of n rows and d feature columns",
            write_instead="Reshape your data: a single feature is .reshape(-1, 1), a single row .reshape(1, -1)"
            if X.ndim == 1
            else "",
        )
    if X.shape[1] == 0:
        raise DataError(
            f"{what} has no columns: 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if fill is not None and X.shape[1] == len(fill):
        X = np.where(np.isnan(X), fill, X)
    require_finite(X, names, what)
    ours = names is not None or isinstance(table, list | tuple)
    return X, X.dtype == float and X.flags.c_contiguous and (ours or never_written(X)), names


def as_targets(table, what: str, *, columns: bool):
    """Labels: (n, m) where `columns`, else (n,); NaN is kept (a missing label), infinity refused."""
    if sparse.issparse(table):
        advice = (
            "give the labels of fewer tasks, or tasks with inputs of their own: Tasks.separate, Tasks.grouped"
        )
        table = as_dense(
            require_sound(table, what).astype(float),
            f"{what}, {table.shape[0]:,} x {table.shape[-1]:,} labels,",
            advice,
            DataError,
        )
    Y, names = as_numbers(table, what)
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
    large = ~(np.abs(Y) <= MAX_MAGNITUDE) & ~np.isnan(Y)
    if large.any():
        place = np.argwhere(large)[0]
        where = f"row {place[0]}" + (f", task {names[place[1]] if names else place[1]}" if columns else "")
        if np.isinf(Y[tuple(place)]):
            raise DataError(
                f"infinite label in {where}; labels must be finite (NaN: not labelled)", term=what
            )
        raise DataError(
            f"the label {Y[tuple(place)]} in {where}; labels are at most {MAX_MAGNITUDE:g}, or their squares are not in float64 - "
            "rescale them",
            term=what,
        )
    return Y, names


def require_same_rows(X, labels: np.ndarray, what: str, term: str = "") -> None:
    """DataError unless there is a row of labels for each row of inputs."""
    if X.shape[0] != labels.shape[0]:
        raise DataError(
            f"X has {X.shape[0]} rows but {what} has {labels.shape[0]}{' labels' * (labels.ndim == 1)}",
            term=term,
            write_instead="give one row of labels per row of inputs",
        )


def weights_of(values, what: str) -> np.ndarray:
    """Numbers, one a row (n,) - a column of a table is such a vector - or one a label (n, m); or one for all, ()."""
    weights, _ = as_numbers(values, what)
    return weights[:, 0] if weights.ndim == 2 and weights.shape[1] == 1 else weights


def as_weights(values, shape, what: str) -> np.ndarray:
    """Sample weights of that shape, finite and > 0, between `MIN_MAGNITUDE` and `MAX_MAGNITUDE`."""
    weights = weights_of(values, what)
    if weights.ndim == 1 and len(shape) == 2 and weights.shape[0] == shape[0]:
        weights = np.repeat(weights[:, None], shape[1], axis=1)
    if weights.shape != tuple(shape):
        raise DataError(
            f"{what} has shape {weights.shape}, but the labels have shape {tuple(shape)}",
            write_instead="give one weight a sample",
        )
    bad = ~((weights >= MIN_MAGNITUDE) & (weights <= MAX_MAGNITUDE))
    if bad.any():
        place = np.argwhere(bad)[0]
        raise DataError(
            f"{weights[tuple(place)]} in row {place[0]}; weights must be finite and > 0, from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g} "
            "(leave out rows that should not count)",
            term=what,
        )
    return weights


class UnlikeIndexWarning(UserWarning):
    """The indexes of two pandas tables have no row in common, and their rows are matched by position."""


def refuse_shuffled(tables: Mapping[str, Any], owner: str = "") -> None:
    """DataError where pandas tables hold the same rows in another order, or some rows that both have: rows are matched by position.

    tables : by what they are called in errors; each is held to the first that has an index
    owner  : stands before them, such as "task 'a': "

    An UnlikeIndexWarning where they have none in common: in folds, one may be what is left of an index 0, 1, ... that nobody gave. A whole
    one says something only of all of its rows together.
    """
    indexes = {
        what: table.index
        for what, table in tables.items()
        if type(table).__module__.startswith("pandas") and hasattr(table, "iloc")
    }
    first, *others = [*indexes] or [""]
    for what in others:
        _refuse_shuffled_pair(first, what, indexes, owner)


def _refuse_shuffled_pair(first: str, what: str, indexes: Mapping[str, Any], owner: str) -> None:
    a, b = indexes[first], indexes[what]
    if len(a) != len(b) or a.equals(b):
        return
    rows = np.sort(np.reshape(a.append(b).factorize()[0], (2, -1)))
    same, some = np.array_equal(rows[0], rows[1]), np.isin(rows[0], rows[1]).any()
    if not same and (_is_default(a) or _is_default(b)):
        return
    if same or some:
        held = "the same index in another order" if same else "some rows of their index in common, not all"
        raise DataError(
            f"{owner}{first} and {what} have {held}, and rows are matched by position: "
            f"write {what}.loc[{first}.index], or reset_index(drop=True) where the positions are right; where the rows were permuted on "
            f"purpose, as by permutation_test_score, give it {what}.to_numpy()"
        )
    warnings.warn(
        f"{owner}{first} and {what} have no row of their index in common, such as {quoted(plain(a[0]))} and {quoted(plain(b[0]))}, and rows are "
        "matched by position: write reset_index(drop=True) where the positions are right",
        UnlikeIndexWarning,
        stacklevel=5,
    )


def refuse_turned(Y, weights, what: str) -> None:
    """DataError where tables of labels and of their weights name the same columns in another order: they are matched by position."""
    for table, name in ((Y, "Y"), (weights, what)):
        refuse_duplicate_columns(table, name)
    tables = [None if table is None else as_frame(table) for table in (Y, weights)]
    if any(table is None or len(table.columns) < 2 for table in tables):
        return
    labels, given = (list(map(str, table.columns)) for table in tables if table is not None)
    name = elsewhere(given, labels)
    if name is not None:
        raise DataError(
            f"{what}: column {name!r} is number {given.index(name)}, and number {labels.index(name)} of the labels; columns are matched by "
            f"position",
            write_instead=f"write {what}[list(y.columns)]",
        )


def _is_default(index) -> bool:
    """Tell whether it is 0, 1, ..., as of a table that was given none."""
    return np.array_equal(np.asarray(index), np.arange(len(index)))


# --------------------------------------------------------------------------------------------------------------
# Names of tasks and columns. Do two lists mean the same columns? Names that nobody gave (x0, x1, ...; 0, 1, ...) match anything.


def as_names(names, found, count: int, what: str, prefix: str | None = None) -> tuple[str, ...]:
    """`count` distinct names, as text: those given, else those found with the data, else the prefix with numbers."""
    names = found if names is None else names
    if names is None and prefix is not None:
        return tuple(number_columns(prefix, count))
    listed = as_list(names)
    if listed is None or getattr(names, "ndim", 1) != 1:
        raise DataError(f"{what}={quoted(names)}: write a list of names")
    names = listed
    for k, name in enumerate(names):
        if is_missing(name):
            raise DataError(
                f"name {k} is {name}", term=what, write_instead=f"give every one of the {count} a name"
            )
    names = tuple(distinct_names(names))
    if len(names) != count:
        raise DataError(f"{len(names)} names for {count}", term=what, write_instead=f"give exactly {count}")
    seen = set()
    for name in names:
        if name in seen:
            raise DataError(f"the name {name!r} occurs twice; names must be distinct", term=what)
        seen.add(name)
    return names


def is_numbered(names: Sequence[str]) -> bool:
    """Tell whether these are the names given to columns without any: their positions, after one prefix or none."""
    return any(all(name == f"{prefix}{k}" for k, name in enumerate(names)) for prefix in ("", "x", "task"))


def number_columns(prefix: str, count: int) -> list[str]:
    """x0, x1, ...: what columns are called that have no names. DataError where there are too many even for that."""
    require_memory(
        150.0 * count, f"so many as {count:,} columns (their names alone)",
        "hash them to fewer: datasets.hash_columns(X, n), or store(..., hashed=n)", DataError,
    )  # fmt: skip
    return [f"{prefix}{k}" for k in range(count)]


def elsewhere(names: Sequence[str], others: Sequence[str]) -> str | None:
    """The first name that `others` hold at another position, which can only be a mistake; None where there is none.

    Names that are positions are those of columns without any, and say nothing of others.

    >>> elsewhere(("0", "2", "1"), ("0", "1", "2")), elsewhere(("0", "1"), ("1", "0"))
    ('2', None)
    """
    if is_numbered(names):
        return None
    position = {name: k for k, name in enumerate(others)}
    return next((name for k, name in enumerate(names) if position.get(name, k) != k), None)


def unlike(learned: Sequence[str], given: Sequence[str] | None, X=None) -> str | None:
    """Return what is wrong with the columns given, in one clause; None where they are those learned on.

    X : the table they are of, whose own names are quoted: numbers are text here, and not there

    Columns without names are called by their positions, and fit any names; so do any names where these were learned, in their order.

    >>> unlike(("0", "1"), ("1", "0")), unlike(("0", "1"), ("age", "iron"))
    ("they must be those learned on, in that order: write X[['0', '1']]", None)
    """
    if given is None or tuple(given) == tuple(learned):
        return None
    if (is_numbered(learned) or is_numbered(given)) and elsewhere(given, learned) is None:
        return None
    missing = [name for name in learned if name not in given]
    unknown = [name for name in given if name not in learned]
    if not missing:  # another order, or columns too many
        own = [plain(name) for name in getattr(X, "columns", given)]
        typed = (
            [own[list(given).index(name)] for name in learned] if len(own) == len(given) else list(learned)
        )
        return (
            f"they must be those learned on, in that order: write X[{typed!r}]"
            if len(learned) <= 8
            else ("they must be those learned on, in the order of feature_names")
        )
    return f"{missing[0]!r} is missing" + (f", and {unknown[0]!r} was not learned on" if unknown else "")
