"""The class taken as positive is told where labels do not say it and it is the frequent one."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskClassifierCV,
    MultiTaskClassifier,
    MultiTaskClassifierCV,
    PositiveClassWarning,
    scorer,
)
from tests.loops import for_each

X = np.random.default_rng(0).normal(size=(60, 3))
ILL = pd.DataFrame({"flu": X[:, 0] > 0.8, "cold": X[:, 1] > 0.8})
TEXT = ILL.replace({True: "ill", False: "well"})
CV = {"values": [1.0], "cv": 2}
SAYS = {
    "f1": lambda y: MultiTaskClassifierCV(scoring="f1", **CV).fit(X, y),
    "a scorer": lambda y: MultiTaskClassifierCV(scoring=scorer("precision"), **CV).fit(X, y),
    "thresholds": lambda y: MultiTaskClassifier(tune_thresholds=True, inner_folds=2).fit(X, y),
    "a vector": lambda y: MultiTaskClassifierCV(scoring="recall", **CV).fit(X, y["flu"]),
    "groups": lambda y: GroupedMultiTaskClassifierCV(scoring="average_precision", **CV).fit(
        X, y["flu"], groups=np.arange(60) % 2
    ),
}
EVEN = {
    "roc_auc": lambda y: MultiTaskClassifierCV(scoring="roc_auc", **CV).fit(X, y),
    "errors": lambda y: MultiTaskClassifier(tune_thresholds=mtl.metrics.ErrorRate(), inner_folds=2).fit(X, y),
}


@for_each("name", ["f1", "recall", "average_precision"])
def test_a_scorer_that_is_called_tells_it_too(name):
    fitted, flu = MultiTaskClassifier().fit(X, TEXT), MultiTaskClassifier().fit(X, TEXT["flu"])
    with pytest.warns(
        PositiveClassWarning, match="scorer.* counts positives, .* 'well' of flu, 'well' of cold; where 'ill'"
    ):
        scorer(name)(fitted, X, TEXT)
    with pytest.warns(PositiveClassWarning, match="'well' of y;"):
        scorer(name)(flu, X, TEXT["flu"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PositiveClassWarning)
        scorer(name)(MultiTaskClassifier().fit(X, ILL), X, ILL)
        scorer("roc_auc")(fitted, X, TEXT)


@pytest.mark.slow
@for_each("ask", SAYS)
def test_a_frequent_positive_class_is_told(ask):
    for words in ({}, {"ill": 1, "well": 2}):
        with pytest.warns(PositiveClassWarning, match="fit and score on y == ") as told:
            SAYS[ask](TEXT.replace(words) if words else TEXT)
        assert len(told) == 1 and (words or "'well' of " in str(told[0].message))


@pytest.mark.slow
@for_each("ask", [*SAYS, *EVEN])
def test_a_positive_class_that_was_said_is_not(ask):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PositiveClassWarning)
        if ask in EVEN:
            EVEN[ask](TEXT)
            return
        for labels in (ILL, ILL.astype(int), ~ILL, TEXT.replace({"ill": "yes", "well": "no"})):
            SAYS[ask](labels)


def test_labels_1_and_2_have_one_positive_class():
    y = TEXT["flu"].map({"ill": 1, "well": 2})
    with pytest.warns(PositiveClassWarning):
        scored = MultiTaskClassifierCV(scoring="f1", **CV).fit(X, y)
    assert scored.best_score_ == MultiTaskClassifierCV(scoring="f1", **CV).fit(X, ~ILL["flu"]).best_score_


def test_a_summary_names_positive_classes():
    said = MultiTaskClassifier().fit(X, TEXT).summary()
    assert "positive, the last class in sorted order: 'well' of flu, 'well' of cold" in said


@pytest.mark.slow
def test_a_page_names_every_positive_class(tmp_path):
    def page(fitted, y, **groups):
        return fitted.report(tmp_path / "p.html", X, y, bootstrap=0, **groups).read_text(encoding="utf-8")

    mixed = TEXT.assign(cold=ILL["cold"].astype(int))
    said = page(MultiTaskClassifier().fit(X, mixed), mixed)
    assert f"{100 * (TEXT['flu'] == 'well').mean():.1f} % are well<" in said
    assert f"{100 * ILL['cold'].mean():.1f} % are 1<" in said
    ids = np.arange(60) % 2
    rows = page(GroupedMultiTaskClassifier().fit(X, TEXT["flu"], groups=ids), TEXT["flu"], groups=ids)
    assert ">positive (well)<" in rows and rows.count(" %</td><td") >= 2
    assert ">positive (1)<" in page(MultiTaskClassifier().fit(X, ILL["flu"] * 1.0), ILL["flu"] * 1.0)
