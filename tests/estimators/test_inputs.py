"""What X and y may be: arrays, tables, sparse matrices, missing labels of every kind; names of columns; and answers in the type of y."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from mtldsl import Tasks, Weights, minimize, ridge, squared_loss
from mtldsl.errors import DataError
from mtldsl.estimators import (
    PLST,
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    LabelGraphClassifier,
    MultiTaskClassifier,
    MultiTaskRegressor,
)
from mtldsl.estimators.baselines import BinaryRelevance
from mtldsl.estimators.estimator_inputs import InputError
from tests.estimators.cases import labels, regression, rows_of_tasks
from tests.loops import for_each

X, Y = labels()
XR, YR = regression()
NAMES = list("abcdef")
GONE = np.arange(Y.size).reshape(Y.shape) % 7 == 0
FLOATS = np.where(GONE, np.nan, Y.astype(float))
WORDS = np.where(Y > 0, "yes", "no")
COLUMNS = ["u", "v", "w"]


def table(values, dtype=None):
    made = pd.DataFrame(values, columns=COLUMNS)
    return made if dtype is None else made.astype(dtype)


COMPLETE = {
    "int": (Y, [0, 1]),
    "float": (Y.astype(float), [0.0, 1.0]),
    "signs": (2 * Y - 1, [-1, 1]),
    "bool": (Y.astype(bool), [False, True]),
    "text": (WORDS, ["no", "yes"]),
    "objects": (WORDS.astype(object), ["no", "yes"]),
    "one and two": (Y + 1, [1, 2]),
    "sparse": (sparse.csr_array(Y), [0, 1]),
    "pandas bool": (table(Y > 0), [False, True]),
    "pandas text": (table(WORDS), ["no", "yes"]),
    "pandas category": (table(WORDS, "category"), ["no", "yes"]),
    "pandas Int64": (table(Y, "Int64"), [0, 1]),
    "pandas sparse": (table(Y > 0, pd.SparseDtype(bool, False)), [False, True]),
    "objects of numpy": (np.array([[*map(np.int64, row)] for row in Y], dtype=object), [0, 1]),
    "polars text": (pl.DataFrame(WORDS.tolist(), schema=COLUMNS, orient="row"), ["no", "yes"]),
}


@pytest.mark.slow
@for_each("kind", COMPLETE)
def test_labels_of_every_type(kind):
    y, classes = COMPLETE[kind]
    expected = MultiTaskClassifier(lam=0.5).fit(X, Y)
    fitted = MultiTaskClassifier(lam=0.5).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    assert [each.tolist() for each in fitted.label_classes_] == [classes] * 3
    predicted = fitted.predict(X)
    np.testing.assert_array_equal(predicted, np.array(classes)[expected.predict(X)])
    assert type(predicted.tolist()[0][0]) is type(classes[0])
    assert fitted.score(X, y) == expected.score(X, Y)


VECTORS = {
    "polars": lambda each: pl.Series(each.tolist()),
    "pandas": lambda each: pd.Series(each, name="y"),
    "pandas category": lambda each: pd.Series(each.astype(str), dtype="category").cat.rename_categories({str(one): one for one in each}),
    "pandas Categorical": pd.Categorical,
    "list": np.ndarray.tolist,
    "objects": lambda each: each.astype(object),
}  # fmt: skip


@pytest.mark.slow
@for_each("kind", VECTORS)
def test_vectors_of_every_type(kind):
    """One label a row is answered as a vector, whatever it came in; a polars series has no `ndim` to tell it by."""
    for each in (Y[:, 0], WORDS[:, 0], Y[:, 0] > 0):
        y, expected = VECTORS[kind](each), MultiTaskClassifier(lam=0.5).fit(X, each)
        fitted = MultiTaskClassifier(lam=0.5).fit(X, y)
        assert fitted.predict(X).tolist() == expected.predict(X).tolist()
        assert fitted.decision_function(X).shape == (len(X),)
        assert fitted.score(X, y) == expected.score(X, each)
    numbers = MultiTaskRegressor().fit(XR, pl.Series(YR[:, 0].tolist()))
    assert numbers.predict(XR).shape == (len(XR),) and isinstance(numbers.intercept_, float)


INCOMPLETE = {
    "None": np.where(GONE, None, Y),
    "None and text": np.where(GONE, None, WORDS),
    "NaN and text": np.where(GONE, np.nan, WORDS.astype(object)),
    "NA": np.where(GONE, pd.NA, Y.astype(object)),
    "pandas": table(FLOATS),
    "pandas Int64": table(Y, "Int64").mask(GONE),
    "pandas boolean": table(Y > 0, "boolean").mask(GONE),
    "pandas string": table(WORDS, "string").mask(GONE),
    "pandas category": table(WORDS, "category").mask(GONE),
    "polars": pl.DataFrame(np.where(GONE, None, Y).tolist(), schema=COLUMNS, orient="row"),
    "polars text": pl.DataFrame(np.where(GONE, None, WORDS).tolist(), schema=COLUMNS, orient="row"),
    "polars bool": pl.DataFrame(np.where(GONE, None, Y > 0).tolist(), schema=COLUMNS, orient="row"),
}


@pytest.mark.slow
@for_each("kind", INCOMPLETE)
def test_missing_labels_are_not_in_their_task(kind):
    expected, fitted = (MultiTaskClassifier(lam=0.5).fit(X, y) for y in (FLOATS, INCOMPLETE[kind]))
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    assert fitted.score(X, INCOMPLETE[kind]) == expected.score(X, FLOATS)
    if kind in ("pandas Int64", "polars"):  # a gap makes no floats of whole numbers
        of_vector = MultiTaskClassifier(lam=0.5).fit(X, INCOMPLETE[kind]["u"])
        assert fitted.predict(X).dtype.kind == of_vector.predict(X).dtype.kind == "i"


HOLES = np.arange(YR.size).reshape(YR.shape) % 7 == 0
GAPS = np.where(HOLES, np.nan, YR)


def test_missing_numbers_are_not_in_their_task():
    """R^2 is over the labels that are there."""
    fitted = MultiTaskRegressor(lam=0.5).fit(XR, GAPS)
    errors = np.nansum((GAPS - fitted.predict(XR)) ** 2, axis=0)
    each = 1 - errors / np.nansum((GAPS - np.nanmean(GAPS, axis=0)) ** 2, axis=0)
    assert fitted.score(XR, GAPS) == pytest.approx(np.mean(each), rel=1e-12)
    none_there = np.where(np.arange(3) == 1, np.nan, GAPS)
    assert fitted.score(XR, none_there) == pytest.approx(np.mean(each[[0, 2]]), rel=1e-12)


@for_each("make", [lambda: pd.DataFrame(X, columns=NAMES), lambda: pl.DataFrame(X, schema=NAMES)])
def test_names_of_columns_are_those_of_features(make):
    fitted = MultiTaskClassifier(lam=0.5).fit(make(), Y)
    assert fitted.feature_names_in_.tolist() == NAMES == list(fitted.solution_.feature_names)
    unnamed = MultiTaskClassifier(lam=0.5).fit(X, Y)
    assert not hasattr(unnamed, "feature_names_in_") and unnamed.n_features_in_ == 6


@for_each("estimator", [MultiTaskClassifier(), MultiTaskRegressor(), LabelGraphClassifier(lam=0.1), PLST()])
def test_names_of_features_are_held_to(estimator):
    X_named = pd.DataFrame(X, columns=NAMES)
    fitted = estimator.fit(X_named, Y)
    with pytest.raises(ValueError, match="must be in the same order"):
        fitted.predict(X_named[list("bacdef")])
    with pytest.raises(ValueError, match="unseen at fit time"):
        fitted.predict(X_named.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="X has 5 features"):
        fitted.predict(X[:, :5])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=r"write X\.to_frame\(\)\.T"):
        fitted.predict(X_named.iloc[0])


def test_columns_of_different_classes():
    mixed = pd.DataFrame({"u": Y[:, 0], "v": WORDS[:, 1], "w": Y[:, 2] > 0})
    fitted = MultiTaskClassifier(lam=0.5).fit(X, mixed)
    assert [each.tolist() for each in fitted.label_classes_] == [[0, 1], ["no", "yes"], [False, True]]
    row = fitted.predict(X)[0].tolist()
    assert [type(each) for each in row] == [int, str, bool]
    gaps = mixed.astype({"u": "Int64", "v": "string", "w": "boolean"}).mask(GONE)
    row = MultiTaskClassifier(lam=0.5).fit(X, gaps).predict(X)[0].tolist()
    assert [type(each) for each in row] == [int, str, bool]
    flags = MultiTaskClassifier(lam=0.5).fit(X, pd.DataFrame(Y > 0, dtype="boolean").mask(GONE))
    assert flags.predict(X).dtype == bool
    assert fitted.score(X, mixed) == MultiTaskClassifier(lam=0.5).fit(X, Y).score(X, Y)


TASKS_X, TASKS_y, IDS, TASKS_LABELS = rows_of_tasks()


@for_each("kind", ["groups", "pandas", "category", "numbered", "polars", "numpy", "sparse", "Series"])
def test_tasks_of_rows_in_every_form(kind):
    expected = GroupedMultiTaskRegressor(lam=0.5).fit(TASKS_X, TASKS_y, groups=IDS)
    numbers = np.column_stack([TASKS_X, [float(each[-1]) for each in IDS]])
    frame = pd.DataFrame(TASKS_X, columns=list("abcd"))
    frame.insert(1, "school", IDS)
    task, given = {
        "groups": (None, TASKS_X),
        "Series": (None, TASKS_X),
        "pandas": ("school", frame),
        "category": ("school", frame.astype({"school": "category"})),
        "numbered": (1, frame.set_axis(range(5), axis=1)),
        "polars": ("school", pl.from_pandas(frame)),
        "numpy": (-1, numbers),
        "sparse": (4, sparse.csr_array(numbers)),
    }[kind]
    ids = {"groups": IDS, "Series": pd.Series(IDS, dtype="string")}.get(kind)
    fitted = GroupedMultiTaskRegressor(task=task, lam=0.5).fit(given, TASKS_y, groups=ids)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-4)
    digit = 0 if kind in ("numpy", "sparse") else -1
    assert [str(each)[digit] for each in fitted.tasks_] == [each[-1] for each in expected.tasks_]
    predicted = fitted.predict(given, groups=ids)
    np.testing.assert_allclose(predicted, expected.predict(TASKS_X, groups=IDS), atol=1e-3)
    score = expected.score(TASKS_X, TASKS_y, groups=IDS)
    assert fitted.score(given, TASKS_y, groups=ids) == pytest.approx(score, abs=1e-5)
    if kind == "pandas":
        assert fitted.feature_names_in_.tolist() == ["a", "school", "b", "c", "d"]
        assert list(fitted.solution_.feature_names) == ["a", "b", "c", "d"]


def test_a_task_that_training_did_not_have():
    kept = IDS != "task 0"
    given = {"X": TASKS_X[kept], "y": TASKS_y[kept], "groups": IDS[kept]}
    mean = GroupedMultiTaskRegressor(lam=0.5, unseen="mean").fit(**given)
    by_hand = TASKS_X[~kept] @ mean.coef_.mean(axis=0) + mean.intercept_.mean()
    np.testing.assert_allclose(mean.predict(TASKS_X[~kept], groups=IDS[~kept]), by_hand, rtol=1e-12)
    with pytest.raises(ValueError, match="'task 0', which training did not have"):
        GroupedMultiTaskRegressor(lam=0.5).fit(**given).predict(TASKS_X, groups=IDS)


def test_missing_labels_of_rows_of_tasks():
    gone = np.arange(len(TASKS_y)) % 5 == 0
    for estimator, y, gap in (
        (GroupedMultiTaskRegressor(lam=0.5), TASKS_y, np.nan),
        (GroupedMultiTaskClassifier(lam=0.5), TASKS_LABELS.astype(object), None),
    ):
        fitted = estimator.fit(TASKS_X, np.where(gone, gap, y), groups=IDS)
        scored = fitted.score(TASKS_X, np.where(gone, gap, y), groups=IDS)
        some = estimator.fit(TASKS_X[~gone], y[~gone], groups=IDS[~gone])
        assert scored == pytest.approx(some.score(TASKS_X[~gone], y[~gone], groups=IDS[~gone]), rel=1e-9)


@for_each(
    ("column", "message"),
    [
        (pd.date_range("2020-01-01", periods=6), r"column 'odd' is Datetime.*give the time since a start"),
        (["f", "m"] * 3, r"column 'odd' is String, not numeric; encode it first .* astype\(float\)"),
    ],
)
def test_a_column_that_is_not_numeric_is_named(column, message):
    X = pd.DataFrame({"even": np.arange(6.0), "odd": column})
    with pytest.raises(DataError, match=message):
        MultiTaskRegressor().fit(X, np.arange(6.0))
    fitted = MultiTaskRegressor().fit(X.assign(odd=1.0), np.arange(6.0))
    with pytest.raises(DataError, match=message):
        fitted.predict(X)


OTHER_NAMES = {
    "positions": list(range(6)),
    "years": list(range(2000, 2006)),
    "dates": list(pd.date_range("2020-01-01", periods=6)),
    "pairs": pd.MultiIndex.from_product([["p", "q"], ["r", "s", "t"]]),
}


@for_each("kind", OTHER_NAMES)
def test_columns_whose_names_are_no_text_keep_their_order(kind):
    rows = pd.DataFrame(XR[:, :6], columns=OTHER_NAMES[kind])
    turned, unnamed = rows[rows.columns[::-1]], rows.to_numpy()
    groups = np.arange(len(rows)) % 2
    for estimator, y, beside in (
        (MultiTaskRegressor(), YR, {}),
        (GroupedMultiTaskRegressor(), YR[:, 0], {"groups": groups}),
        (BinaryRelevance(), (YR > 0).astype(int), {}),
    ):
        fitted = estimator.fit(rows, y, **beside)
        with pytest.raises(InputError, match=r"and training had .*, in this order; write X\[\["):
            fitted.predict(turned, **beside)
        np.testing.assert_array_equal(fitted.predict(rows, **beside), fitted.predict(unnamed, **beside))
    if kind != "positions":
        assert list(MultiTaskRegressor().fit(rows, YR).frame().index[:-1]) == list(map(str, rows.columns))
    tasks = Tasks.shared(rows, YR)
    W = Weights(tasks)
    solution = minimize(squared_loss(W, tasks) + ridge(W)).solve()
    with pytest.raises(DataError, match="must be those learned on, in that order"):
        solution.predict(turned)
    with pytest.raises(DataError, match="is number 0 here, but was 5 in training"):
        solution.score(Tasks.shared(turned, YR))


def test_columns_in_another_order_are_told_how_to_be_taken():
    rows = pd.DataFrame(XR, columns=[f"c{j}" for j in range(XR.shape[1])])
    fitted = MultiTaskRegressor().fit(rows[["c0", "c1"]], YR)
    for wrong in (rows[["c1", "c0"]], rows[["c0", "c1", "c2"]]):
        with pytest.raises(InputError, match=r"Write X\[\['c0', 'c1'\]\]\."):
            fitted.predict(wrong)
    with pytest.raises(InputError, match=r"missing:\n- c1\n$"):
        fitted.predict(rows[["c0"]])


@for_each(
    "series",
    [pd.Series(YR[:, 0], name="pain"), pl.Series("pain", YR[:, 0]), pd.Series(Y[:, 0] > 0, name="pain")],
)
def test_the_name_of_a_series_is_that_of_its_task(series):
    rows, classes = (X, True) if len(series) == len(X) and series.dtype == bool else (XR, False)
    fitted = (MultiTaskClassifier() if classes else MultiTaskRegressor()).fit(rows, series)
    assert fitted.frame().columns.tolist() == ["pain"] and fitted.predict(rows).shape == (len(rows),)
    assert not hasattr(fitted, "target_names_")  # a vector of another name is one all the same
    unnamed = MultiTaskRegressor().fit(XR, YR[:, 0])
    assert unnamed.frame().columns.tolist() == ["task0"]
