"""Tasks derived from other tasks: gaps of inputs filled in, other inputs, labels or scales of the same rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.row_storage import csr_of, is_mapped, require_memory_for
from mtldsl.data.scaling import Imputation, Scaling
from mtldsl.data.task_data import T, TaskData, fields_of_table
from mtldsl.errors import DataError, Spelled
from mtldsl.utils.memory import available_memory, require_memory
from mtldsl.utils.validation import as_flag, as_list, as_positions, nearest, quoted

_FIELDS = (
    "mask", "counts", "targets", "sample_weights", "task_names", "feature_names", "scaling", "source_rows", "one_table",
    "kernel_map", "imputation", "description",
)  # fmt: skip


def with_fields(tasks: T, X=None, **fields) -> T:
    """The same tasks but for their matrix X and these fields, which are the constructor's; labels and weights are flat, lists with counts=None."""
    inputs = {"shared" if tasks.is_shared else "stacked": tasks.matrix if X is None else X}
    return type(tasks)(**({name: getattr(tasks, name) for name in _FIELDS} | inputs | fields))


def with_targets(tasks: T, flat) -> T:
    """The same tasks with other labels: flat (N,), task after task."""
    return with_fields(tasks, targets=flat)


def with_inputs(tasks: T, inputs: list, **fields) -> T:
    """Other numbers in place of the inputs: one matrix where they are shared, else one a task. Gaps of the old ones are forgotten."""
    where = {"shared": inputs[0]} if tasks.is_shared else {"stacked": None, "inputs": inputs}
    return with_fields(tasks, **where, **({"imputation": None} | fields))


def standardize(tasks: T, center: bool = True, scale: bool = True, each_fold: bool = False) -> T:
    """(X - mean) / scale, column by column, over all rows of all tasks; `scaling` remembers both for new inputs.

    scale is the standard deviation (dividing by the number of rows); a constant column keeps scale 1. Predictions and
    `transform` apply the same statistics to new inputs. DataError for sparse inputs unless center=False, and for tasks
    that are standardised already. With each_fold=True the statistics are learned anew from the training rows of every fold (`folds`,
    `cross_validate`) and of a `split`: what is held out is then not known to them.

    >>> from mtldsl.data.tasks import Tasks
    >>> tasks = Tasks.shared([[1.0, 7.0], [3.0, 7.0]], [0.0, 1.0]).standardize()
    >>> tasks.X, tasks.transform([[2.0, 8.0]])
    (array([[-1.,  0.],
           [ 1.,  0.]]), array([[0., 1.]]))
    """
    center, scale = as_flag(center, "standardize(center"), as_flag(scale, "standardize(scale")
    each_fold = as_flag(each_fold, "standardize(each_fold")
    refuse_standardizing(tasks, center)
    found = Scaling.of(tasks.matrices, center, scale)
    return scaled_by(tasks, replace(found, each_fold=(center, scale) if each_fold else None))


def refuse_standardizing(tasks: TaskData, center: bool) -> None:
    """DataError for tasks that cannot be standardised, or are already."""
    _refuse_kernels(tasks, "standardize")
    if tasks.is_sparse and center:
        raise DataError(
            "standardize(): centering would make sparse inputs dense",
            write_instead="write " + Spelled("standardize(center=False)", "standardize = {center = false}"),
        )
    if tasks.scaling is not None:
        raise DataError("these tasks are standardised already", term="standardize()")


def scaled_by(tasks: T, scaling: Scaling) -> T:
    """These tasks with the statistics of others: test.scaled_by(train.scaling). Copies the inputs, in float64."""
    require_scaling(tasks, scaling)
    if not tasks.is_shared:
        require_memory_for(tasks.stacked, tasks.n_samples)
    return with_fields(tasks, scaling.apply(tasks.matrix), scaling=scaling)


def require_scaling(tasks: TaskData, scaling) -> None:
    """DataError unless these statistics can be applied to the tasks."""
    if not isinstance(scaling, Scaling):
        raise DataError(
            term=f"scaled_by({quoted(scaling)})",
            write_instead="give the scaling of standardised tasks, train.scaling",
        )
    _refuse_kernels(tasks, "scaled_by")
    if tasks.scaling is not None:
        raise DataError("these tasks are standardised already", term="scaled_by()")
    if scaling.mean.size != tasks.n_features:
        raise DataError(
            f"statistics of {scaling.mean.size} features for tasks with {tasks.n_features}",
            term="scaled_by()",
        )


def label_table(tasks: TaskData, flat) -> np.ndarray:
    """(n, m) from a flat vector of shared tasks; NaN where there is no label."""
    if tasks.mask is None:
        return flat.reshape(tasks.n_tasks, -1).T
    table = np.full(tasks.mask.T.shape, np.nan)
    table[tasks.mask.T] = flat
    return table.T


def _refuse_kernels(tasks: TaskData, word: str) -> None:
    """DataError for what must come before kernels: afterwards it would change what their features are."""
    if tasks.kernel_map is not None:
        raise DataError(
            f"{word}(): the features of these tasks are those of kernels; {word}() first, then with_kernels()"
        )


# --------------------------------------------------------------------------------------------------------------
# Inputs that were standardised, in the statistics of fewer rows: those that a fold learns on.


def scaled_anew(tasks: T) -> T:
    """By the statistics of the rows that are here, where `standardize(each_fold=True)` asked for that; else as they are."""
    old = tasks.scaling
    if old is None or old.each_fold is None:
        return tasks
    here = Scaling.of(tasks.matrices, *old.each_fold)
    return scaled_like(
        tasks, replace(old, mean=old.mean + old.scale * here.mean, scale=old.scale * here.scale)
    )


def scaled_like(tasks: T, new: Scaling | None) -> T:
    """By these statistics, which others learned, in place of their own."""
    old = tasks.scaling
    if old is None or new is None or old == new:
        return tasks
    return with_fields(tasks, in_units_of(tasks.matrix, old, new), scaling=new)


def in_units_of(X, old: Scaling | None, new: Scaling | None) -> Any:
    """(n, d) inputs that were standardised by `old`, standardised by `new`."""
    if old is None or new is None or old == new:
        return X
    if sparse.issparse(X):  # never centred
        return sparse.csr_array(X.multiply(old.scale / new.scale))
    return (np.asarray(X) - (new.mean - old.mean) / old.scale) * (old.scale / new.scale)


# --------------------------------------------------------------------------------------------------------------
# Missing inputs are filled in, every part of the rows from its own training rows.


def imputed(tasks: T, gaps: np.ndarray, strategy: str) -> T:
    """The tasks with their gaps filled, and known as such.

    gaps : (n, d) booleans, of the rows that the tasks were made of: those of the shared X, or of the long table
    """
    if not tasks.is_shared:
        gaps = gaps[np.concatenate(tasks.source_rows)]
    empty = np.flatnonzero(gaps.all(axis=0))
    if empty.size:
        raise _no_value(tasks.feature_names[empty[0]])
    known = Imputation(strategy, np.zeros(tasks.n_features), sparse.csr_array(gaps))
    return filled_anew(with_fields(tasks, imputation=known))


def filled_anew(tasks: T, strict: bool = False) -> T:
    """The gaps filled from the rows that are here; a column without any value here keeps what it had, or is refused where `strict`."""
    found = tasks.imputation
    if found is None:
        return tasks
    from sklearn.impute import SimpleImputer

    X, gaps = tasks.matrix, found.gaps.toarray()
    holed = np.where(gaps, np.nan, X)
    values = SimpleImputer(strategy=found.strategy, keep_empty_features=True).fit(holed).statistics_
    empty = np.flatnonzero(gaps.all(axis=0))
    if strict and empty.size:
        raise _no_value(tasks.feature_names[empty[0]], " in the training rows")
    scaling = tasks.scaling
    raw = np.array(values if scaling is None else values * scaling.scale + scaling.mean)
    raw[empty] = found.values[empty]
    return _filled(tasks, replace(found, values=raw))


def filled_by(tasks: T, values: np.ndarray) -> T:
    """The gaps filled with what was learned on other rows, in the units of the data as they were given."""
    found = tasks.imputation
    return tasks if found is None else _filled(tasks, replace(found, values=np.asarray(values)))


def filled_pair(train: T, test: T) -> tuple[T, T]:
    """Rows to learn on, filled and scaled from themselves, and rows to score, filled and scaled from those."""
    train = filled_anew(train, strict=True)
    test = test if train.imputation is None else filled_by(test, train.imputation.values)
    train = scaled_anew(train)
    return train, scaled_like(test, train.scaling)


def rows_filled(tasks: TaskData, rows, values: np.ndarray | None):
    """The inputs of these rows (of each task, where inputs are separate), their gaps filled with these values."""
    rows = [rows] if tasks.is_shared else rows
    found = [X[own] for X, own in zip(tasks.matrices, rows, strict=True)]
    if tasks.imputation is not None and values is not None:
        offsets = [0] if tasks.is_shared else tasks.offsets[:-1].tolist()
        here = _scaled(tasks, values)
        found = [
            np.where(tasks.imputation.gaps[first + own].toarray(), here, X)
            for first, own, X in zip(offsets, rows, found, strict=True)
        ]
    return found[0] if tasks.is_shared else found


def _filled(tasks: T, imputation: Imputation) -> T:
    X = np.where(imputation.gaps.toarray(), _scaled(tasks, imputation.values), tasks.matrix)
    return with_fields(tasks, X, imputation=imputation)


def _scaled(tasks: TaskData, values: np.ndarray) -> np.ndarray:
    return values if tasks.scaling is None else (values - tasks.scaling.mean) / tasks.scaling.scale


def _no_value(name: str, where: str = "") -> DataError:
    return DataError(
        f"impute: column {name!r} has no value{where}, so that there is nothing to fill it with",
        write_instead="leave the column out",
        argument="impute",
    )


# --------------------------------------------------------------------------------------------------------------
# Some of the tasks, some of their rows, or some of their features.


def select(whole: T, tasks) -> T:
    """Some of the tasks, in that order: names, positions, a slice, or a mask of m booleans. Copies rows that are not shared.

    DataError for unknown ones.
    """
    index = chosen(tasks, whole.task_names, "select", "task")
    if not whole.is_shared:
        return _of_lists(whole, [slice(None)] * len(index), index)
    Y, S = _tables(whole)
    return _of_tables(whole, whole.X, Y[:, index], None if S is None else S[:, index], index)


def take_rows(tasks: T, rows) -> T:
    """Rows of the shared inputs; or, for separate inputs, one index array per task. They are copied into memory.

    DataError outside the rows there are.
    """
    if not tasks.is_shared:
        listed = as_list(rows)
        if listed is None or len(listed) != tasks.n_tasks:
            raise DataError(
                "these tasks have separate inputs",
                term=f"take_rows({quoted(rows)})",
                write_instead=f"give a list with the rows of each of the {tasks.n_tasks} tasks",
            )
        named = zip(tasks.task_names, listed, tasks.counts.tolist(), strict=True)
        each = [as_positions(one, n, f"take_rows: task {name!r}", DataError) for name, one, n in named]
        return _of_lists(tasks, each, range(tasks.n_tasks))
    Y, S = _tables(tasks)
    rows = as_positions(rows, len(Y), "take_rows", DataError)
    return _of_tables(
        tasks, tasks.X[rows], Y[rows], None if S is None else S[rows], range(tasks.n_tasks), rows
    )


def select_features(tasks: T, features) -> T:
    """Some of the features, in that order: names, positions, a slice, or a mask of d booleans. Copies their columns.

    All else stays: tasks, rows and where they came from, labels, weights; `scaling` and `kernel_map` become those of the features that are
    left, so that `transform` and `solution.predict` take new inputs with these columns. Features of kernels are selected like
    others; those of one kernel must stay together, in their order, and new inputs keep all the columns that the kernels take.

    DataError for unknown features, repeated ones, none at all, and for features of a kernel torn apart.

    >>> from mtldsl.data.tasks import Tasks
    >>> tasks = Tasks.shared([[1.0, 7.0, 5.0], [3.0, 9.0, 4.0]], [0.0, 1.0], feature_names=["age", "size", "rooms"]).standardize()
    >>> small = tasks.select_features(["rooms", "age"])
    >>> small.feature_names, small.X, small.scaling.mean
    (('rooms', 'age'), array([[ 1., -1.],
           [-1.,  1.]]), array([4.5, 2. ]))
    >>> tasks.select_features("ages")
    Traceback (most recent call last):
    mtldsl.errors.DataError: select_features('ages'): there is no such feature; did you mean 'age'?
    """
    index = chosen(features, tasks.feature_names, "select_features", "feature")
    return with_fields(
        tasks,
        _columns(tasks.matrix, index),
        feature_names=tuple(tasks.feature_names[j] for j in index),
        **_what_made_them(tasks, index),
    )


def _what_made_them(tasks: TaskData, index: np.ndarray) -> dict:
    """Return how these features are made of new inputs. The statistics beside kernels are those of what goes into the kernels, which stays."""
    if tasks.kernel_map is not None:
        return {"kernel_map": tasks.kernel_map.of_columns(index)}
    return {
        "scaling": None if tasks.scaling is None else tasks.scaling.of_columns(index),
        "imputation": None if tasks.imputation is None else tasks.imputation.of_columns(index),
    }


def _columns(X, index: np.ndarray):
    """Those columns of a matrix, copied, in float64, read-only where sparse (`Tasks` sees to dense ones)."""
    n, advice = X.shape[0], "select fewer features"
    if not sparse.issparse(X):
        require_memory(8.0 * n * len(index), f"a copy of {len(index):,} columns", advice, DataError)
        return np.take(X, index, axis=1)
    require_memory(X.nnz * (8.0 + X.indices.itemsize), f"a copy of {len(index):,} columns", advice, DataError)
    X = sparse.csr_array(X[:, index], dtype=float)
    X.sort_indices()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return csr_of(X.data, X.indices, X.indptr, X.shape[1])


def chosen(which, names: tuple[str, ...], word: str, what: str) -> np.ndarray:
    """The positions of what is named: names, positions, a slice, or a mask of booleans. DataError for none, unknown or repeated ones."""
    given = [which] if isinstance(which, str) else as_list(which)
    if given is not None and any(isinstance(one, str) for one in given):
        places = {name: k for k, name in enumerate(names)}
        unknown = next((one for one in given if isinstance(one, str) and one not in places), None)
        if unknown is not None:
            raise DataError(f"{word}({unknown!r}): there is no such {what}; {nearest(unknown, names, what)}")
        which = [places[one] if isinstance(one, str) else one for one in given]
    elif given is not None and not isinstance(which, np.ndarray):
        which = given
    try:
        index = as_positions(which, len(names), word, DataError)
    except DataError as error:
        advice = f"write a {what}'s name or its position, 0 to {len(names) - 1}"
        raise DataError(error.what, term=word, write_instead=advice) from None
    if not index.size:
        raise DataError(f"no {what} is selected; at least one is needed", term=word)
    times = np.bincount(index)
    if times.max() > 1:
        raise DataError(
            f"the {what} {names[times.argmax()]!r} is named twice; every {what} can be selected once",
            term=word,
        )
    return index


def _tables(tasks: TaskData):
    """Labels and sample weights as (n, m) tables."""
    weights = tasks.sample_weights
    return label_table(tasks, tasks.targets), None if weights is None else label_table(tasks, weights)


def _of_tables(tasks: T, X, Y, S, index, rows: Any = slice(None)) -> T:
    return with_fields(
        tasks,
        X,
        counts=None,
        **fields_of_table(Y, S),
        task_names=tuple(tasks.task_names[i] for i in index),
        imputation=None if tasks.imputation is None else tasks.imputation.of_rows(rows),
    )


def _of_lists(tasks: T, rows, index) -> T:
    y = tasks.per_task(tasks.targets)
    s = None if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)
    pairs = list(zip(index, rows, strict=True))
    require_memory_for(tasks.stacked, sum(y[i][r].size for i, r in pairs))
    flat = [np.arange(tasks.offsets[i], tasks.offsets[i + 1])[r] for i, r in pairs]
    return with_fields(
        tasks,
        stacked=None,
        inputs=[tasks.inputs[i][r] for i, r in pairs],
        counts=None,
        targets=[y[i][r] for i, r in pairs],
        sample_weights=None if s is None else [s[i][r] for i, r in pairs],
        task_names=tuple(tasks.task_names[i] for i in index),
        source_rows=None if tasks.source_rows is None else [tasks.source_rows[i][r] for i, r in pairs],
        imputation=None if tasks.imputation is None else tasks.imputation.of_rows(np.concatenate(flat)),
    )


# --------------------------------------------------------------------------------------------------------------
# Columns of dense inputs that lie far from zero against their width, moved there: beside an intercept the model is the same. The subtraction
# is exact, by Sterbenz' lemma: numbers of one sign within a factor of two of each other have an exact difference.


@dataclass(frozen=True)
class ColumnShiftSettings:
    """Limits of what counts as a column far from zero.

    centre_ratio : middle of a far column over half its width, at least; from three on subtractions are exact
    sampled_rows : rows, of all tasks or of each, in which most columns are seen not to be far
    """

    centre_ratio: float = 10.0
    sampled_rows: int = 8


SETTINGS = ColumnShiftSettings()


def columns_near_zero(tasks: T) -> tuple[T, np.ndarray, np.ndarray] | None:
    """(tasks whose far columns are near zero, the columns (k,), what they lack (k, m)); None where there are none.

    Tasks with inputs of their own have distances of their own. Sparse inputs and those of kernels stay, and so do inputs in a file and those
    that memory does not hold twice.
    """
    X = tasks.matrix
    if tasks.is_sparse or tasks.kernel_map is not None or is_mapped(X):
        return None
    counts = np.array([len(X)]) if tasks.is_shared else tasks.counts
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    low = high = X[starts]
    for k in range(1, SETTINGS.sampled_rows):
        row = X[starts + np.minimum(k, counts - 1)]
        low, high = np.minimum(low, row), np.maximum(high, row)
    columns = np.flatnonzero(_is_far_from_zero(low, high).any(axis=0))
    if not columns.size:
        return None
    own = X[:, columns]
    low, high = np.minimum.reduceat(own, starts), np.maximum.reduceat(own, starts)
    far = _is_far_from_zero(low, high)
    is_far = far.any(axis=0)
    if not is_far.any() or available_memory() < X.nbytes:
        return None
    with np.errstate(over="ignore"):
        means = np.clip(np.add.reduceat(own / counts.repeat(counts)[:, None], starts), low, high)
    centres, columns = np.where(far, means, 0.0)[:, is_far], columns[is_far]
    near = np.array(X, order="C")
    near[:, columns] = own[:, is_far] - centres.repeat(counts, axis=0)
    return (
        with_fields(tasks, near, scaling=None),
        columns,
        np.broadcast_to(centres.T, (columns.size, tasks.n_tasks)),
    )


def _is_far_from_zero(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell whether columns with these ends are far from zero; constant ones are, but for zeros."""
    middle = np.abs(0.5 * low + 0.5 * high)
    return (low * np.sign(high) > 0.0) & (middle > SETTINGS.centre_ratio * (0.5 * high - 0.5 * low))
