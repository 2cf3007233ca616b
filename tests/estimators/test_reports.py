"""What a fitted estimator shows of itself, alone and as the last step of a pipeline."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.metrics import make_scorer, median_absolute_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mtldsl import DataError, ModelError
from mtldsl.estimators import (
    PLST,
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    KernelMultiTaskClassifier,
    LabelGraphClassifier,
    MultiTaskClassifier,
    MultiTaskClassifierCV,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
    OneClassWarning,
    frame,
    importances,
    report,
    reports,
    scorer,
    summary,
)
from mtldsl.metrics import FScore
from mtldsl.problems.separate_models import separate_models
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 3)), columns=["age", "iron", "salt"]).assign(
    city=RNG.choice(["Oslo", "Rome"], 120)
)
SICK = pd.DataFrame(
    {"ill": np.where(X.age > 0.5, "yes", "no"), "tired": np.where(X.iron > X.age, "yes", "no")}
)
LEARN, TEST = slice(0, 80), slice(80, 120)


@pytest.fixture
def piped():
    columns = make_column_transformer(
        (StandardScaler(), ["age", "iron", "salt"]), (OneHotEncoder(), ["city"])
    )
    return make_pipeline(columns, MultiTaskClassifierCV(n_values=4, cv=2)).fit(X[LEARN], SICK[LEARN])


@pytest.mark.slow
def test_a_pipeline_is_given_raw_rows_and_shows_its_names(piped, tmp_path):
    labels = SICK[TEST].astype(object)
    labels.iloc[:3, 0] = None
    page = report(piped, tmp_path / "fit", X[TEST], labels, bootstrap=0).read_text(encoding="utf-8")
    assert "standardscaler__age" in page and "onehotencoder__city_Oslo" in page
    assert "ill" in page and "tired" in page and "x0, x1" not in page


@pytest.mark.parametrize(("make", "y", "name"), [
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2, scoring="average_precision"), SICK, "average precision"),
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2, scoring=scorer("balanced_accuracy")), SICK, "balanced accuracy"),
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2, scoring="recall"), SICK, "recall"),
    (lambda: MultiTaskRegressorCV(values=[1.0], cv=2, scoring="neg_mean_squared_error"), X[["salt", "iron"]], "mean squared error"),
    (lambda: MultiTaskRegressorCV(values=[1.0], cv=2, scoring="neg_root_mean_squared_error"), X[["salt", "iron"]], "root mean squared error"),
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2, scoring="jaccard_macro"), SICK.eq("yes").astype(int), "jaccard macro"),
    (lambda: GridSearchCV(MultiTaskClassifier(), {"lam": [1.0]}, cv=2, scoring="roc_auc"), SICK.eq("yes").astype(int), "ROC area"),
    (lambda: GridSearchCV(MultiTaskClassifier(), {"lam": [1.0]}, cv=2, scoring=["f1_macro", "roc_auc"], refit="roc_auc"), SICK.eq("yes").astype(int), "ROC area"),
], ids=["name", "scorer", "recall", "error", "theirs of numbers", "theirs", "search", "search by several"])  # fmt: skip
def test_the_page_begins_with_what_was_chosen_by(make, y, name, tmp_path):
    rows = X[["age", "iron"]]
    fitted = make().fit(rows[LEARN], y[LEARN])
    page = report(fitted, tmp_path / "fit.html", rows[TEST], y[TEST], bootstrap=20).read_text(
        encoding="utf-8"
    )
    said = re.search(rf"its {name}, in the mean of 2 tasks, is ([\d.]+)", page)
    printed = 6e-4  # three digits are printed
    assert float(said[1]) == pytest.approx(abs(fitted.score(rows[TEST], y[TEST])), abs=printed)
    assert ("a guess has" in page) == (name != "recall")  # which is perfect where all is called positive


def median_error(estimator, X, y):
    return -float(np.median(np.abs(estimator.predict(X) - y)))


@pytest.mark.parametrize("make", [
    lambda: MultiTaskRegressorCV(values=[1.0], cv=2, scoring=median_error),
    lambda: make_pipeline(StandardScaler(), MultiTaskRegressorCV(values=[1.0], cv=2, scoring=median_error)),
    lambda: GridSearchCV(make_pipeline(StandardScaler(), MultiTaskRegressor()), {"multitaskregressor__lam": [1.0]}, cv=2, scoring=median_error),
], ids=["alone", "in a pipeline", "search"])  # fmt: skip
def test_the_page_begins_with_a_function_that_chose(make, tmp_path):
    rows, y = X[["age", "iron"]], X[["salt", "iron"]]
    fitted = make().fit(rows[LEARN], y[LEARN])
    page = report(fitted, tmp_path / "fit.html", rows[TEST], y[TEST], bootstrap=20).read_text("utf-8")
    said = re.search(r"its median_error is (-\d\.\d+)", page)
    printed = 6e-4  # three digits are printed
    assert float(said[1]) == pytest.approx(median_error(fitted, rows[TEST], y[TEST]), abs=printed)
    assert page.index("median_error") < page.index("mean absolute error")


def test_a_function_that_fails_here_is_left_out_with_a_word(tmp_path):
    rows, y = X[["age", "iron"]], X[["salt", "iron"]].copy()
    one = make_scorer(median_absolute_error, greater_is_better=False)
    fitted = MultiTaskRegressorCV(values=[1.0], cv=2, scoring=one).fit(rows[LEARN], y[LEARN])
    y.iloc[100, 0] = np.nan
    with pytest.warns(UserWarning, match="median_absolute_error.* is left out, it fails on these rows"):
        page = report(fitted, tmp_path / "fit.html", rows[TEST], y[TEST], bootstrap=0).read_text("utf-8")
    assert "its R²" in page and "median_absolute_error" not in page


@pytest.mark.parametrize(
    ("loss", "n_classes"), [("logistic_loss", 3), ("softmax_loss", 3), ("softmax_loss", 2)]
)
def test_a_page_of_classes_begins_with_what_is_predicted(loss, n_classes, tmp_path):
    rows = X[["age", "iron"]]
    y = pd.Series(np.array(["fir", "oak", "elm"])[np.digitize(rows["age"], [-0.4, 0.4][: n_classes - 1])])
    fitted = MultiTaskClassifier(f"{loss}(W, tasks) + ridge(W)").fit(rows[LEARN], y[LEARN])
    page = fitted.report(tmp_path / "fit.html", rows[TEST], y[TEST], bootstrap=20).read_text("utf-8")
    said = re.search(
        r"its share of rows whose class is right is ([\d.]+) .*?, a guess has ([\d.]+): better than a guess",
        page,
    )
    guess = (y[TEST] == y[LEARN].mode()[0]).mean()
    scores = fitted.score(rows[TEST], y[TEST]), guess
    # the page shows three digits
    assert [float(each) for each in said.groups()] == pytest.approx(scores, abs=6e-4)


def test_tasks_that_were_not_learned_are_named(tmp_path):
    rows, y = X[["age", "iron"]], SICK.assign(never="no")
    y.iloc[:9] = None  # rows that are not scored
    with pytest.warns(OneClassWarning):
        fitted = MultiTaskClassifier().fit(rows, y)
    without = "of one class or no label"
    assert f"not learned, {without}: 'never'" in fitted.summary()
    page = html.unescape(fitted.report(tmp_path / "fit.html", rows, y, bootstrap=0).read_text("utf-8"))
    assert (
        f"2 tasks; without 'never', {without}" in page and "WARNING: on 111 rows that it was learned" in page
    )


def test_tasks_without_rows_here_are_not_scored(tmp_path):
    numbered, rows = X.assign(city=X.city.eq("Rome").astype(int)), X[["age", "iron"]].to_numpy()
    by_column = GroupedMultiTaskClassifier(task="city").fit(numbered[LEARN], SICK["ill"][LEARN])
    kept, gap = numbered["city"].eq(0), np.where([True, False], rows, np.nan)
    for fitted, *given in ((by_column, numbered[kept], SICK["ill"][kept]), (MultiTaskRegressor().fit(rows, rows), rows, gap)):  # fmt: skip
        text = fitted.report(tmp_path / "fit.html", *given, bootstrap=0).read_text(encoding="utf-8")
        assert "1 task of 2 has no rows here" in text and "could not be scored" not in text


def test_importances_are_in_the_order_of_the_summary(piped):
    shares = importances(piped)
    assert shares.sum() == pytest.approx(1.0) and shares.is_monotonic_decreasing
    assert shares.index[0] in ("standardscaler__age", "standardscaler__iron")
    said = summary(piped)
    assert "MultiTaskClassifierCV: logistic_loss(W, tasks) + lam * l21_norm(W)" in said
    assert "chosen by cross-validation: lam = " in said and said.index(shares.index[0]) < said.index(
        shares.index[1]
    )


def test_rows_of_unknown_tasks_are_left_out_with_a_warning(tmp_path):
    rows, known = X[["age", "iron"]][LEARN], np.repeat(["a", "b"], 40)
    fitted = GroupedMultiTaskRegressor(unseen="mean").fit(rows, X["salt"][LEARN], groups=known)
    known[:3] = "c"
    with pytest.warns(
        UserWarning, match="3 rows are left out, of tasks that training did not have, such as 'c'"
    ):
        fitted.report(tmp_path / "fit.html", rows, X["salt"][LEARN], groups=known, bootstrap=0)


@pytest.mark.parametrize("spelled", [lambda y: 2 * y - 1, lambda y: y.astype(str), lambda y: y + 0.3])
def test_a_page_of_labels_in_other_classes_is_refused(spelled, tmp_path):
    rows, sick = X[["age", "iron"]], SICK.eq("yes").astype(int)
    fitted = MultiTaskClassifier().fit(rows, sick)
    with pytest.raises(DataError, match=r"training had|label type: continuous"):
        fitted.report(tmp_path / "fit.html", rows, spelled(sick))


def test_a_column_of_ones_is_no_feature():
    fitted = LabelGraphClassifier().fit(X[["age", "iron"]], SICK)
    assert sorted(importances(fitted).index) == ["age", "iron"] and "2 of 2 features" in summary(fitted)


def test_a_summary_is_text_that_shows_itself(capsys):
    text = MultiTaskClassifier().fit(X[["age", "iron"]], SICK).summary()
    assert isinstance(text, str) and repr(text) == text and capsys.readouterr().out == ""


@for_each(("make", "y", "says"), [
    (lambda: MultiTaskRegressorCV(values=[1.0], cv=2), X[["salt"]], "; R² -"),
    (lambda: MultiTaskRegressorCV(values=[1.0], cv=2, scoring="neg_mean_squared_error"), X[["salt"]], "; mean squared error 0."),
    (lambda: MultiTaskRegressorCV(values=[1.0], cv=2, scoring="neg_median_absolute_error"), X["salt"], "; neg_median_absolute_error -"),
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2), SICK, "; share of rows whose labels are all right 0."),
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2), SICK["ill"], "; accuracy "),
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2, scoring=scorer("f1")), SICK, "; F1 0."),
    (lambda: MultiTaskClassifierCV(values=[1.0], cv=2, scoring="f1", tune_thresholds=True), SICK, "folds, at the threshold 0"),
])  # fmt: skip
def test_a_summary_names_the_measure_of_its_score(make, y, says):
    assert says in make().fit(X[["age", "iron"]], y).summary()


def test_the_frame_of_a_pipeline_has_its_names(piped):
    names = list(piped[:-1].get_feature_names_out())
    assert list(frame(piped).index) == [*names, "(intercept)"] and "onehotencoder__city_Oslo" in names
    assert set(frame(piped, long=True)["feature"]) >= set(names) and list(frame(piped)) == ["ill", "tired"]
    np.testing.assert_array_equal(frame(piped).to_numpy(), piped[-1].frame().to_numpy())


def test_a_fit_without_a_task_has_no_page(tmp_path):
    with pytest.warns(UserWarning):
        fitted = MultiTaskClassifier().fit(X[["age"]], np.zeros(120))
    with pytest.raises(DataError, match="no task was learned"):
        fitted.report(tmp_path / "fit.html", X[["age"]], np.zeros(120))


@pytest.mark.slow
def test_tuned_labels_stand_beside_tuned_ones(tmp_path):
    fitted = MultiTaskClassifier(lam=0.1, tune_thresholds=True, inner_folds=2)
    fitted.fit(X[["age", "iron"]][LEARN], SICK[LEARN])
    page = fitted.report(tmp_path / "fit.html", X[["age", "iron"]][TEST], SICK[TEST], bootstrap=0)
    alone = separate_models(fitted.solution_.trained_on, FScore())
    rows = reports._tasks_of(fitted, fitted.solution_, X[["age", "iron"]][TEST], SICK[TEST], None)
    text = page.read_text(encoding="utf-8")
    assert alone.is_optimal and alone.thresholds is not None
    assert ">alone<" in text and "and thresholds tuned on folds" in text
    assert f"One model per task has {float(alone.score(rows, 'f1')):.3f}" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [LabelGraphClassifier, KernelMultiTaskClassifier, lambda: KernelMultiTaskClassifier(kernels="linear")],
)
def test_features_that_the_estimator_makes_have_a_page(make, tmp_path):
    rows = X[["age", "iron"]]
    for learned, held_out in ((rows[LEARN], rows[TEST]), (rows[LEARN].to_numpy(), rows[TEST].to_numpy())):
        fitted = make().fit(learned, SICK[LEARN])
        page = fitted.report(tmp_path / "fit.html", held_out, SICK[TEST], bootstrap=0)
        by = fitted.solution_.score(
            reports._tasks_of(fitted, fitted.solution_, held_out, SICK[TEST], None), "accuracy"
        )
        right = fitted.predict(held_out) == SICK[TEST].to_numpy()
        assert float(by) == pytest.approx(right.mean()) and f"{float(by):.3f}" in page.read_text("utf-8")


def test_a_search_shows_its_best(tmp_path):
    rows = X[["age", "iron"]]
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), MultiTaskRegressor()), {"multitaskregressor__lam": [0.1, 50.0]}, cv=2
    )
    inside = make_pipeline(StandardScaler(), GridSearchCV(MultiTaskRegressor(), {"lam": [0.1, 50.0]}, cv=2))
    for search in (grid, inside):
        best = getattr(search.fit(rows, X["salt"]), "best_estimator_", search)
        for show in (frame, importances):
            assert show(search).equals(show(best)) and "iron" in show(search).index
        assert summary(search) == summary(best)
        page = report(search, tmp_path / "s.html", rows, X["salt"], bootstrap=0).read_text("utf-8")
        assert "<title>MultiTaskRegressor: 1 task</title>" in page


@for_each(
    "estimator",
    [
        GridSearchCV(MultiTaskRegressor(), {"lam": [0.1, 50.0]}, cv=2, refit=False),
        TransformedTargetRegressor(MultiTaskRegressor(), transformer=StandardScaler()),
        make_pipeline(StandardScaler(), TransformedTargetRegressor(MultiTaskRegressor())),
        PLST(),
    ],
)
def test_what_has_no_solution_to_show_is_told(estimator):
    y = SICK == "yes" if isinstance(estimator, PLST) else X["salt"]
    estimator.fit(X[["age", "iron"]], y)
    for show in (frame, importances, summary):
        with pytest.raises(
            ModelError, match=r"neither an estimator with a solution.*give the fitted estimator inside"
        ):
            show(estimator)


def test_one_task_has_nothing_to_stand_beside_it():
    fitted = MultiTaskClassifier().fit(X[["age", "iron"]], SICK["ill"])
    assert separate_models(fitted.solution_.trained_on) is None and separate_models(None) is None


@pytest.mark.slow
def test_groups_may_come_in_another_order_or_lack_some(tmp_path):
    shops = np.array(["b", "a", "c", "d"] * 20)
    rows, y = X[["age", "iron"]][LEARN], X["salt"][LEARN]
    fitted = GroupedMultiTaskRegressor(lam=0.1).fit(rows, y, groups=shops)
    for kept, said in ((slice(1, None), ""), (shops == "c", "3 tasks of 4 have no rows here")):
        page = fitted.report(tmp_path / "f.html", rows[kept], y[kept], groups=shops[kept], bootstrap=0)
        text = page.read_text(encoding="utf-8")
        assert said in text and "could not be scored" not in text and "not known" not in text
