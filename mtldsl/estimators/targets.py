"""Targets: scikit-learn's y as columns of labels, one a task, NaN where a label is missing; and the way back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from mtldsl.data.input_checks import as_targets, refuse_missing_texts, warn_of_spellings
from mtldsl.errors import DataError
from mtldsl.utils.arrays import as_array, as_frame, refuse_duplicate_columns, require_sound
from mtldsl.utils.validation import INSTEAD, is_missing, listed, plain, quoted

#: Classes of a vector that are never too many for its rows, as scikit-learn has it.
MAX_PLAIN_CLASSES = 20


# --------------------------------------------------------------------------------------------------------------
# y in whatever it comes, numpy, pandas, polars, sparse or lists, as the columns of one array, and where they are missing.


def require_y(y) -> None:
    """DataError, in scikit-learn's words, where there is no y."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None", argument="y")


def columns_of(y) -> tuple[np.ndarray, tuple[str, ...] | None, bool]:
    """(y as (n, m), names of its columns or None, whether it was a vector). Numbers, text and flags; DataError for times and other things."""
    require_y(y)
    refuse_duplicate_columns(y, "y")
    if sparse.issparse(y):
        require_sound(y, "y")
        y = (y.astype(np.int64) if y.dtype.kind in "iu" else y).toarray()  # 100 + 100 is -56 in int8
    frame = None if isinstance(y, np.ndarray) else as_frame(y)
    if frame is not None:
        flat = is_vector(y)
        if not frame.columns:
            raise DataError("y has no columns", argument="y", write_instead="give at least one task")
        for name, dtype in frame.schema.items():
            if dtype.is_temporal():
                raise DataError(f"y: column {name!r} is {dtype}; {INSTEAD['times']}", argument="y")
        numbers = all(dtype.is_numeric() for dtype in frame.schema.values())
        columns = [_plain(column, numbers) for column in frame.iter_columns()]
        mixed = len({column.dtype for column in columns}) > 1 and not numbers
        table = np.stack([column.astype(object) if mixed else column for column in columns], axis=1)
        return _without_na(table), None if flat else tuple(map(str, frame.columns)), flat
    table = _without_na(_entries_of(y))
    if table.ndim == 1:
        return table[:, None], None, True
    if table.ndim != 2:
        raise DataError(f"y has the shape {table.shape}", argument="y", write_instead="give (n,) or (n, m)")
    if table.shape[1] == 0:
        raise DataError("y has no columns", argument="y", write_instead="give at least one task")
    return table, None, False


def is_vector(y) -> bool:
    """Tell whether y is one label a row, (n,), and no table of columns."""
    shape = getattr(y, "shape", None)
    if shape is not None:
        return len(shape) == 1
    if as_frame(y) is not None:  # vectors of arrow have no shape
        return True
    if not hasattr(y, "__len__"):  # a stranger's array
        return np.asarray(y).ndim == 1
    return len(y) == 0 or np.ndim(y[0]) == 0


def _entries_of(y) -> np.ndarray:
    """An array or lists as numpy holds them, None or NaN where a mask hides an entry."""
    if isinstance(y, Mapping | AbstractSet | Iterator | str | bytes):
        raise DataError(
            f"{quoted(y)} is a {type(y).__name__}, not an array of labels",
            term="y",
            write_instead="write a list, a numpy array or a table",
        )
    hidden = np.ma.getmaskarray(y) if np.ma.isMaskedArray(y) else None
    try:
        table = np.asarray(np.ma.getdata(y) if hidden is not None else y)
        if table.dtype.kind in "US" and not isinstance(y, np.ndarray):
            given = np.asarray(y, dtype=object)
            if not all(isinstance(each, str | bytes) for each in given.ravel()):
                table = given  # numpy makes text of None, NaN and numbers beside text
    except Exception as problem:  # lists of different lengths, or whatever a stranger's __array__ raises
        raise DataError(
            f"not an array of labels ({problem})",
            term="y",
            write_instead="all rows need the same number of labels; where each lists those that it has, "
            + _LISTED,
        ) from None
    if table.dtype.kind == "c":
        raise DataError("Complex data not supported: y holds complex numbers", argument="y")
    times = table.dtype.kind in "mM" or (
        table.dtype == object and any(hasattr(each, "isoformat") for each in table.ravel())
    )
    if times:
        raise DataError("y holds dates or times, not classes", argument="y", write_instead=INSTEAD["times"])
    if table.dtype.kind not in "biufUSTO":
        raise DataError(f"y holds {table.dtype} entries, not classes", argument="y")
    if hidden is None or not hidden.any():
        return table
    table = table.copy() if table.dtype.kind == "f" else table.astype(object)
    table[hidden] = np.nan if table.dtype.kind == "f" else None
    return table


def _plain(column, numbers: bool = True) -> np.ndarray:
    """A column of a frame as numpy holds it: floats where numbers are missing, among numbers alone; objects where other things are."""
    import narwhals as nw

    if column.dtype.is_numeric() and (numbers or not column.null_count()):
        return (column.cast(nw.Float64()) if column.null_count() else column).to_numpy()
    plain = column.dtype == nw.Boolean and not column.null_count()
    return np.array(column.to_list(), dtype=bool if plain else object)


def _without_na(table: np.ndarray) -> np.ndarray:
    """None in place of pandas' NA, which nothing may be compared with."""
    if table.dtype != object:
        return table
    kept = table.copy()
    kept[missing_mask(table)] = None
    return kept


def missing_mask(table: np.ndarray) -> np.ndarray:
    """(n, m) where labels are None, NaN or pandas' NA."""
    if table.dtype.kind == "f":
        return np.isnan(table)
    if table.dtype != object:
        return np.zeros(table.shape, dtype=bool)
    return np.array([is_missing(each) for each in table.ravel()], dtype=bool).reshape(table.shape)


@dataclass(frozen=True)
class RegressionTargets:
    """Targets of a regression: Y (n, m), NaN where one is missing; `flat` where y was a vector."""

    Y: np.ndarray
    names: tuple[str, ...] | None
    flat: bool


def numbers_of_targets(y, *, learning: bool = True) -> RegressionTargets:
    """y (n,) or (n, m) of real numbers, as `Tasks.shared` reads them. DataError, also to learn from where no label is there."""
    require_y(y)
    try:
        Y, names = as_targets(y, "y", columns=True)
    except DataError as error:
        word = _text_in(y)
        categories = "category" in map(str, np.ravel(getattr(y, "dtypes", [])))
        if word is None and not categories:
            raise
        if word is None or word.strip("+-")[:1].isdigit():
            said = "categories" if word is None else f"numbers as text, such as {quoted(word)}"
            raise DataError(
                f"y holds {said}, and this estimator learns numbers",
                argument="y",
                write_instead="write y.astype(float) where they are numbers, or use MultiTaskClassifier, which learns classes",
            ) from error
        raise DataError(
            f"y holds text, such as {quoted(word)}, and this estimator learns numbers",
            argument="y",
            write_instead="use MultiTaskClassifier, or GroupedMultiTaskClassifier, which learn classes",
        ) from error
    flat = is_vector(y)
    if learning:
        _refuse_empty(np.isnan(Y))
    return RegressionTargets(Y, None if flat else names, flat)


def _text_in(y) -> str | None:
    """The first entry of a column that holds nothing but text; None where there is none."""
    try:
        table, _, _ = columns_of(y)
    except DataError:
        return None
    for column, gone in zip(table.T, missing_mask(table).T, strict=True):
        kept = column[~gone].tolist()
        if kept and all(isinstance(each, str) for each in kept):
            return kept[0]
    return None


def name_of_vector(y) -> tuple[str] | None:
    """The name of a pandas or polars Series, which is that of its one task; None of others, and of one without a name."""
    name = getattr(y, "name", None)
    return (name,) if isinstance(name, str) and name and as_frame(y) is not None and is_vector(y) else None


def vector_of(y):
    """y (n,); a table of one column is taken for it, with scikit-learn's warning. ValueError for more columns."""
    table, _, flat = columns_of(y)
    if flat:
        return y
    if table.shape[1] != 1:
        raise DataError(
            f"y has the shape {table.shape}", argument="y", write_instead="give one label a row, (n,)"
        )
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=3
    )
    return table[:, 0]


@dataclass(frozen=True)
class ClassTargets:
    """Classes as tasks.

    signs   : (n, m) of -1 and +1, NaN where a label is missing
    classes : (k,) of a vector y; of a table one array a column, the second class of each its positive one; empty where a column has no
              label and the others do not say what its classes are
    kind    : "binary", "multiclass" (one task a class, against the rest) or "multilabel" (one task a column)
    """

    signs: np.ndarray
    classes: Any
    kind: str
    names: tuple[str, ...] | None
    dtype: Any = None

    def without_rows(self) -> ClassTargets:
        """The classes alone."""
        return replace(self, signs=np.empty((0, self.signs.shape[1])))

    @property
    def known(self) -> np.ndarray:
        """scikit-learn's `classes_`: the classes of a vector, and of the column of a table that has one; of other tables the positions of their
        columns, as one against the rest has them."""
        if self.kind == "multiclass":
            return self.classes
        return np.arange(len(self.classes)) if self._pair is None else self._pair

    @property
    def _pair(self) -> Any:
        """The classes of one label, in a vector or in a table of one column; None of several labels or classes."""
        if self.kind == "binary":
            return self.classes
        return self.classes[0] if self.kind == "multilabel" and len(self.classes) == 1 else None

    def scores_of_rows(self, z: np.ndarray) -> np.ndarray:
        """Scores (n, m) as scikit-learn wants them: of one label (n,), above zero where the second class is predicted."""
        if self._pair is not None:
            return z[:, 0]
        return z[:, 1] - z[:, 0] if self.kind == "multiclass" and len(self.classes) == 2 else z

    def probabilities_of_rows(self, P: np.ndarray) -> np.ndarray:
        """Probabilities (n, m) of the tasks' second classes as scikit-learn wants them: of one label (n, k) of all its classes, summing to one."""
        if self._pair is not None:
            return np.hstack([1.0 - P, P]) if len(self._pair) == 2 else np.ones((len(P), 1))
        if self.kind == "multilabel":
            return P
        total = P.sum(axis=1, keepdims=True)
        return np.where(total > 0, P / np.where(total > 0, total, 1.0), 1.0 / P.shape[1])

    def decoded(self, positive: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Classes (n,) or (n, m), in the type of y, from who is positive (n, m) and the scores behind it."""
        if self.kind == "binary":
            return np.where(positive[:, 0], self.classes[-1], self.classes[0])
        if self.kind == "multiclass":
            return self.classes[np.argmax(scores, axis=1)]
        if self._sides is not None:
            return np.where(positive, self._sides[1], self._sides[0])
        kinds = {known.dtype.kind for known in self.classes if known.size}
        numbers = kinds <= set("iuf")
        lost = np.full(len(positive), np.nan if numbers else None)  # of a column whose classes nobody knows
        columns = [
            np.where(each, known[-1], known[0]) if known.size else lost
            for known, each in zip(self.classes, positive.T, strict=True)
        ]
        if len({column.dtype.kind for column in columns}) > 1 and not numbers:
            columns = [
                each.astype(object) for each in columns
            ]  # text beside numbers stays what each of them is
        return np.stack(columns, axis=1)

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The first and the second class of every column of a table of one type; a row is then decoded at once."""
        if self.dtype is None:
            return None
        first, second = zip(*((known[0], known[-1]) for known in self.classes), strict=True)
        return np.array(first, dtype=self.dtype), np.array(second, dtype=self.dtype)


def labels_of(y, *, task_a_class: bool = False) -> ClassTargets:
    """y (n,) of two or more classes, or (n, m) of two classes a column: bool, numbers or text; None and NaN are missing labels.

    Columns of nothing but 0/1, -1/+1 or False/True have both as classes, also where one of them does not occur.
    So have text columns where every column that has two classes has the same two. A column without a label whose classes are not known in
    this way has none: it is predicted to be missing.

    task_a_class : a vector of two classes makes two tasks as well, for a loss of all classes of a row
    ValueError for real numbers ("Unknown label type"), and columns of three classes and more.
    """
    table, names, flat = columns_of(y)
    missing = missing_mask(table)
    if table.dtype.kind == "f" and np.isinf(table).any():
        raise DataError("Input y contains infinity or a value too large for dtype('float64')", argument="y")
    _refuse_empty(missing)
    first = table[:, 0], missing[:, 0], f"column {_named(names, 0)} of y"
    if flat or (table.shape[1] == 1 and len(sorted_classes(*first)) > 2):
        return _of_vector(table[:, 0], missing[:, 0], 2 if task_a_class else 3)
    classes = _of_columns(table, missing, names)
    columns = zip(table.T, missing.T, classes, strict=True)
    signs = np.stack([_signs(column, gone, known[-1:]) for column, gone, known in columns], axis=1)
    kinds = {known.dtype if known.size else None for known in classes}
    dtype = None if len(kinds) > 1 or table.dtype == object else table.dtype
    if dtype is not None and missing.any() and all(map(_is_whole, classes)):
        dtype = np.dtype(int)  # labels are floats only because NaN is one
    return ClassTargets(signs, classes, "multilabel", names, dtype)


def _is_whole(classes: np.ndarray) -> bool:
    """Tell whether they are floats of whole numbers."""
    return classes.dtype.kind == "f" and bool((classes == classes.astype(int)).all())


def _of_vector(y, missing, fewest: int) -> ClassTargets:
    """A task a class from `fewest` classes on."""
    seen = sorted_classes(y, missing)
    warn_of_spellings(seen.tolist(), "y")
    if missing.any() and _is_whole(seen):
        seen = seen.astype(int)
    known = len(y) - int(missing.sum())
    if len(seen) > MAX_PLAIN_CLASSES and 2 * len(seen) > known:
        warnings.warn(
            f"y has {len(seen):,} classes in {known:,} rows, and every class is a task of its own; where these are amounts, "
            "use MultiTaskRegressor, and where they are names of rows, leave them out",
            stacklevel=2,
        )
    if len(seen) >= fewest:
        signs = np.where(y[:, None] == seen[None, :], 1.0, -1.0)
        signs[missing] = np.nan
        return ClassTargets(signs, seen, "multiclass", tuple(map(str, seen)))
    known = seen if len(seen) == 2 else _complete_pair(seen)
    return ClassTargets(_signs(y, missing, known[-1:])[:, None], known, "binary", None)


def _of_columns(table, missing, names) -> list[np.ndarray]:
    """The negative and the positive class of every column; a column that lacks one has it from the others, where these have all the same
    two: the labels of some rows, of a fold, are then read as those of all."""
    columns = enumerate(zip(table.T, missing.T, strict=True))
    found = [sorted_classes(*column, f"column {_named(names, i)} of y") for i, column in columns]
    for i, seen in enumerate(found):
        warn_of_spellings(seen.tolist(), f"column {_named(names, i)} of y")
        if len(seen) > 2:
            raise DataError(
                f"Unknown label type: column {_named(names, i)} of y has {len(seen)} classes, {listed(seen.tolist(), 4)}, and columns of a table are "
                "labels of two classes each",
                argument="y",
                write_instead="fit one estimator on this column alone, or make a column of each class",
            )
    pairs = [seen for seen in found if len(seen) == 2]
    both = pairs[0] if pairs and all(each.tolist() == pairs[0].tolist() for each in pairs) else None
    for i, seen in enumerate(found):
        if len(seen) == 2:
            continue
        if both is not None and set(seen.tolist()) <= set(both.tolist()):
            found[i] = both
        elif len(seen):
            found[i] = _complete_pair(seen)
    return found


def _complete_pair(seen) -> np.ndarray:
    """Both classes where only one is there: of 0/1, -1/+1 and False/True the other is known."""
    only = seen[0]
    if isinstance(only, bool | np.bool_):
        return np.array([False, True])
    if seen.dtype.kind in "iuf" and only in (0, 1):
        return np.array([0, 1], dtype=seen.dtype)
    if seen.dtype.kind in "if" and only == -1:
        return np.array([-1, 1], dtype=seen.dtype)
    return seen


def _signs(column, missing, positive) -> np.ndarray:
    """positive : (1,) the positive class; empty where it is not known, as no label is there."""
    signs = np.full(len(column), np.nan)
    if positive.size:
        signs[~missing] = np.where(column[~missing] == positive[0], 1.0, -1.0)
    return signs


def sorted_classes(column, missing, what: str = "y") -> np.ndarray:
    """The classes of a column, sorted; ValueError for real numbers, and texts of what is missing."""
    kept = column[~missing]
    if kept.dtype == object:
        _refuse_mixed(kept, what)
        kept = np.array([plain(each) for each in kept], dtype=object)
        kinds = {type(each) for each in kept}
        text = bool(kinds) and all(issubclass(kind, str) for kind in kinds)
        kept = kept.astype(str if text else kinds.pop()) if text or kinds in _PLAIN else as_array(kept, "y")
    if kept.dtype.kind not in "biuUT":
        try:
            check_classification_targets(kept)
        except (TypeError, ValueError) as error:  # real numbers, bytes
            instead = "use MultiTaskRegressor, which learns numbers" if kept.dtype.kind == "f" else ""
            raise DataError(str(error).rstrip("."), argument="y", write_instead=instead) from None
    found, counts = np.unique(kept, return_counts=True)
    if found.dtype.kind in "UT":
        refuse_missing_texts(found.tolist(), counts.tolist(), what)
    return found


_LISTED = "write MultiLabelBinarizer().fit_transform(y), of sklearn.preprocessing"


def _refuse_mixed(kept: np.ndarray, what: str) -> None:
    """DataError for lists in place of a class, and for text beside other things."""
    listed_labels = next((each for each in kept if isinstance(each, list | tuple | AbstractSet)), None)
    if listed_labels is not None:
        raise DataError(
            f"{what} holds {quoted(listed_labels)}, a {type(listed_labels).__name__} and not one label",
            argument="y",
            write_instead="where each row lists the labels that it has, " + _LISTED,
        )
    odd = next((each for each in kept if not isinstance(each, str | Number | np.generic)), None)
    if odd is not None:
        raise DataError(
            f"{what} holds {quoted(odd)} of the type {type(odd).__name__}, and classes are numbers, flags or text",
            argument="y",
            write_instead="write one of these in its place, such as its name",
        )
    text = next((each for each in kept if isinstance(each, str)), None)
    other = next((each for each in kept if not isinstance(each, str)), None)
    if text is not None and other is not None:
        raise DataError(
            f"{what} holds text beside other things, such as {quoted(text)} and {quoted(other)}",
            argument="y",
            write_instead="spell classes alike; write None where one of these is a missing label, or astype(str) where both are classes",
        )


#: the types of labels that stay what they are, where all of a column are of one
_PLAIN = ({bool}, {int}, {float})


def _refuse_empty(missing: np.ndarray) -> None:
    if missing.size and missing.all():
        raise DataError("Input y contains NaN alone: there is no label", argument="y")


def _named(names, column) -> str:
    return repr(names[column]) if names else str(column)


# --------------------------------------------------------------------------------------------------------------
# A table of labels as estimators need it that learn all labels of a row: two classes a column, none missing.


def refuse_several_classes(
    labels: ClassTargets, write_instead: str, term: str = "", argument: str = ""
) -> None:
    """DataError, in scikit-learn's words, for a vector of three classes and more."""
    if labels.kind == "multiclass":
        said = "Only binary classification is supported. The type of the target is multiclass"
        raise DataError(said, term=term, write_instead=write_instead, argument=argument)


def binary_columns(y, term: str) -> ClassTargets:
    """y (n, K), or (n,) as one label. DataError for a vector of more classes and for missing labels; see `labels_of`."""
    labels = labels_of(y)
    refuse_several_classes(labels, "give a table with one column a label", term=term)
    if np.isnan(labels.signs).any():
        row, column = np.argwhere(np.isnan(labels.signs))[0]
        raise DataError(
            f"{term}: Input y contains NaN in row {row}, column {column}", write_instead="leave the row out"
        )
    return labels
