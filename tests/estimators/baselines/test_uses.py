"""What users do with all baselines alike: search, save, repeat; other labels, constant labels, wrong options."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mtldsl.estimators.baselines as room
from mtldsl import DataError, ModelError
from mtldsl.estimators import OneClassWarning
from tests.estimators.baselines.cases import BASELINES, labels
from tests.estimators.standard_checks import checks_that_fail
from tests.loops import for_each

X, Y = labels(n=80)
NEW = np.random.default_rng(9).normal(size=(50, 5))


def answers(model):
    faces = ("predict", "predict_proba", "decision_function")
    return {face: getattr(model, face)(NEW) for face in faces if hasattr(model, face)}


def assert_same(one, other):
    for face, values in answers(one).items():
        np.testing.assert_array_equal(getattr(other, face)(NEW), values)


@pytest.mark.slow
@for_each("model", BASELINES)
def test_labels_come_back_as_they_were_given(model):
    numbers = clone(model).fit(X, Y)
    words = clone(model).fit(X, pd.DataFrame(np.where(Y > 0, "yes", "no"), columns=list("abcd")))
    np.testing.assert_array_equal(words.predict(NEW) == "yes", numbers.predict(NEW) == 1)
    signs = clone(model).fit(X, 2 * Y - 1).predict(NEW)
    np.testing.assert_array_equal(signs, 2 * numbers.predict(NEW) - 1)
    assert numbers.score(X, Y) == np.mean((numbers.predict(X) == Y).all(axis=1))
    assert numbers.score(X, Y) == words.score(X, np.where(Y > 0, "yes", "no"))


@pytest.mark.slow
@for_each("model", BASELINES)
def test_sparse_rows(model):
    thin = clone(model).fit(sparse.csr_array(X), Y)
    # solvers of sparse rows go another way to the same answer, to their own tolerances
    assert np.mean(thin.predict(sparse.csr_array(NEW)) != clone(model).fit(X, Y).predict(NEW)) < 0.05


@pytest.mark.slow
@for_each("model", BASELINES)
@pytest.mark.filterwarnings("ignore:.*least populated class")
def test_labels_that_are_always_the_same(model):
    constant = Y.copy()
    constant[:, 1], constant[:, 3] = 1, 0
    with pytest.warns(OneClassWarning, match="2 of 4 tasks"):
        found = clone(model).fit(X, constant)
    if isinstance(model, room.MLCSSP):  # they are read off the others
        assert not found.predict(NEW)[:, 3].any()
        return
    assert (found.predict(NEW)[:, [1, 3]] == [1, 0]).all()
    assert set(np.unique(found.predict(NEW)[:, 0])) == {0, 1}


@for_each("model", BASELINES)
@for_each(
    "wrong, message",
    [
        (np.where(np.eye(80, 4) > 0, np.nan, Y), "contains NaN in row 0, column 0"),
        (np.arange(80) % 3, "Only binary classification is supported"),
        (Y + np.arange(80)[:, None] % 2, "3 classes"),
        (Y + 0.5 * np.arange(80)[:, None], "Unknown label type|classes"),
    ],
)
def test_refuses_other_labels(model, wrong, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, wrong)


@for_each("model, error, pieces", [
    (room.BinaryRelevance(LogisticRegression), ModelError, ["not a classifier", "LogisticRegression(C=0.1)"]),
    (room.BinaryRelevance("svm"), ModelError, ["estimator='svm'"]),
    (room.LabelPowerset(prediction="best"), ModelError, ["prediction='best'", "'combination', 'marginals'"]),
    (room.LabelPowerset(LinearSVC(), prediction="marginals"), ModelError, ["LinearSVC", "predict_proba"]),
    (room.EnsembleOfClassifierChains(LinearSVC()), ModelError, ["voting='soft'", "write voting='hard'"]),
    (room.EnsembleOfClassifierChains(n_chains=0), DataError, ["n_chains=0", "at least 1"]),
    (room.RAkEL(labelset_size=0), DataError, ["labelset_size=0"]),
    (room.RAkEL(n_labelsets=2.5), DataError, ["n_labelsets=2.5", "None for twice"]),
    (room.RAkEL(overlapping="yes"), ModelError, ["overlapping='yes'", "True, False"]),
    (room.RAkEL(voting="mean"), ModelError, ["voting='mean'"]),
    (room.MLCSSP(n_selected=5), DataError, ["n_selected=5", "4 labels"]),
    (room.HOMER(n_children=1), DataError, ["n_children=1", "at least 2"]),
    (room.LEAD(max_parents=-1), DataError, ["max_parents=-1", "at least 0"]),
    (room.AdaBoostMH(n_rounds=True), DataError, ["n_rounds=True"]),
    (room.MMOC(C=0.0), DataError, ["C=0.0", "> 0"]),
    (room.MMOC(alpha=-1.0), DataError, ["alpha=-1.0", ">= 0"]),
    (room.MMOC(tol="small"), DataError, ["tol='small'"]),
    (room.PLST(n_components=0), DataError, ["n_components=0", "at least 1"]),
    (room.PLST(n_components=5), DataError, ["n_components=5", "4 labels"]),
    (room.PLST(alpha=-1.0), DataError, ["alpha=-1.0", ">= 0"]),
    (room.PLST(alpha=np.inf), DataError, ["alpha=inf"]),
])  # fmt: skip
def test_refuses_options_outside_their_range(model, error, pieces):
    with pytest.raises(error) as told:
        model.fit(X, Y)
    assert all(piece in str(told.value) for piece in [*pieces, type(model).__name__]), told.value


@pytest.mark.slow
def test_what_is_random_is_drawn_from_random_state():
    forest = RandomForestClassifier(n_estimators=3, max_depth=2)
    one, two = (room.BinaryRelevance(forest, random_state=seed).fit(X, Y) for seed in (0, 1))
    assert_same(one, room.BinaryRelevance(forest, random_state=0).fit(X, Y))
    assert (one.predict_proba(NEW) != two.predict_proba(NEW)).any()
    piped = make_pipeline(StandardScaler(), forest)
    assert_same(room.BinaryRelevance(piped).fit(X, Y), room.BinaryRelevance(piped).fit(X, Y))
    assert forest.random_state is None


@pytest.mark.slow
def test_a_search_reaches_the_classifier():
    grid = {"estimator__C": [1e-4, 1.0], "n_chains": [2]}
    model = room.EnsembleOfClassifierChains(LogisticRegression())
    search = GridSearchCV(model, grid, cv=3, scoring="f1_macro").fit(X, Y)
    assert search.best_params_ == {"estimator__C": 1.0, "n_chains": 2}


#: the last of every class; PLST is checked among the estimators
ONE_OF_EACH = {type(each).__name__: each for each in BASELINES if not isinstance(each, room.PLST)}


@pytest.mark.by_default("BinaryRelevance")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
def test_scikit_learns_checks(estimator):
    assert checks_that_fail(estimator) == {}


def test_every_baseline_is_among_those_that_are_checked():
    assert {type(each).__name__ for each in BASELINES} == set(room.__all__)


def test_a_combination_is_not_the_most_probable_labels():
    """Three combinations of probabilities .4, .3, .3: 10 is the most probable, and label 2 has probability .6."""
    X, Y = np.zeros((10, 1)), [[1, 0]] * 4 + [[0, 1]] * 3 + [[1, 1]] * 3
    model = room.LabelPowerset(LogisticRegression(C=1e6)).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X[:1]), [[0.7, 0.6]], atol=1e-3)
    np.testing.assert_array_equal(model.predict(X[:1]), [[1, 0]])
    marginals = room.LabelPowerset(LogisticRegression(C=1e6), prediction="marginals").fit(X, Y)
    np.testing.assert_array_equal(marginals.predict(X[:1]), [[1, 1]])
