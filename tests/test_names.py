"""Columns are matched by name wherever both sides have names: nothing is computed from a column taken for another."""

import numpy as np
import pytest
from sklearn.model_selection import permutation_test_score

import mtldsl as mtl
from mtldsl.data.input_checks import UnlikeIndexWarning, elsewhere, is_numbered, unlike
from mtldsl.estimators import MultiTaskClassifier, MultiTaskRegressor
from tests.models import with_weights

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(30, 3)), columns=["age", "dose", "weight"])
Y = pd.DataFrame(X.to_numpy() @ rng.normal(size=(3, 2)), columns=["pain", "sleep"])


@pytest.fixture(scope="module")
def solution():
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()


def test_rules_of_names():
    assert is_numbered(["x0", "x1"]) and is_numbered(["0", "1"]) and not is_numbered(["x1", "x0"])
    assert elsewhere(["b", "c"], ["a", "b"]) == "b"
    assert elsewhere(["a", "c"], ["a", "b"]) is None and elsewhere(["x0", "x1"], ["x1", "x0"]) is None
    assert elsewhere(["x1", "x0"], ["x0", "x1"]) == "x1" and elsewhere(["a", "b"], ["0", "1"]) is None
    assert "X[['0', '1']]" in unlike(["0", "1"], ["1", "0"]) and unlike(["0", "1"], ["a", "b"]) is None
    assert unlike(["a", "b"], ["a", "b"]) is None and unlike(["a", "b"], None) is None
    assert unlike(["a", "b"], ["a", "z"]) == "'b' is missing, and 'z' was not learned on"
    assert "X[['a', 'b']]" in unlike(["a", "b"], ["b", "a"])


def test_predict_knows_its_columns(solution):
    expected = X.to_numpy() @ solution.W
    np.testing.assert_allclose(solution.predict(X), expected, rtol=1e-12)
    np.testing.assert_allclose(solution.predict(X.to_numpy()), expected, rtol=1e-12)
    np.testing.assert_allclose(solution.predict(pd.DataFrame(X.to_numpy())), expected, rtol=1e-12)
    for table, message in [
        (X[["dose", "age", "weight"]], r"write X\[\['age', 'dose', 'weight'\]\]"),
        (X.rename(columns={"dose": "mass"}), "'dose' is missing, and 'mass' was not learned on"),
        (X[["age", "dose"]], "'weight' is missing"),
        (X.assign(age="old"), "'age' is String, not numeric"),
        (np.ma.masked_array(X.to_numpy(), mask=X.to_numpy() > 1), "nan in row"),
        (X.to_numpy().astype(complex), "complex"),
        (X.to_numpy()[0], r"a single row .reshape\(1, -1\)"),
        (mtl.Tasks.shared(X, Y), "give the inputs"),
    ]:
        with pytest.raises(mtl.DataError, match=message):
            solution.predict(table)


def test_scores_are_of_the_same_tasks_and_features(solution):
    tasks = mtl.Tasks.shared(X, Y)
    assert solution.score(mtl.Tasks.shared(X.to_numpy(), Y.to_numpy())) == solution.score(tasks)
    with pytest.raises(mtl.DataError, match="task 'sleep' is number 0 here, but was 1 in training"):
        solution.scores(tasks.select(["sleep", "pain"]))
    with pytest.raises(mtl.DataError, match="feature 'weight' is number 0 here, but was 2 in training"):
        solution.scores(mtl.Tasks.shared(X[["weight", "dose", "age"]], Y))


def test_scores_need_the_statistics_of_training(solution):
    train, test = mtl.Tasks.shared(X, Y).split(0.3, random_state=0)
    with pytest.raises(mtl.DataError, match=r"scaled_by\(train.scaling\)"):
        solution.score(test.standardize())
    scaled, W = with_weights(train.standardize())
    learned = mtl.minimize(mtl.squared_loss(W, scaled) + mtl.ridge(W)).solve()
    assert learned.score(test) == pytest.approx(learned.score(test.scaled_by(train.standardize().scaling)))
    with pytest.raises(mtl.DataError, match="statistics other than"):
        learned.score(test.standardize())


def test_standardised_tasks_transform_only_their_own_columns():
    tasks = mtl.Tasks.shared(X, Y).standardize()
    np.testing.assert_allclose(tasks.transform(X), tasks.X)
    with pytest.raises(mtl.DataError, match="in that order"):
        tasks.transform(X[["dose", "age", "weight"]])


def test_weights_and_loss_agree_on_the_order():
    W = mtl.Weights(mtl.Tasks.shared(X, Y))
    with pytest.raises(mtl.ModelError, match=r"squared_loss\(W, tasks\): feature 'weight' is number 0"):
        mtl.squared_loss(W, mtl.Tasks.shared(X[["weight", "dose", "age"]], Y))
    with pytest.raises(mtl.ModelError, match=r"squared_loss\(W, tasks\): task 'sleep' is number 0"):
        mtl.squared_loss(W, mtl.Tasks.shared(X, Y[["sleep", "pain"]]))
    other = mtl.Tasks.shared(X.rename(columns=str.upper), Y.to_numpy())
    assert mtl.squared_loss(W, other).text == "squared_loss(W, tasks)"


def test_rows_of_two_tables_are_not_silently_mismatched():
    with pytest.raises(mtl.DataError, match=r"Y.loc\[X.index\]"):
        mtl.Tasks.shared(X, Y.iloc[::-1])
    with pytest.raises(mtl.DataError, match=r"y.loc\[X.index\]"):
        mtl.Tasks.grouped(X, Y["pain"].iloc[::-1], np.arange(30) % 2)
    shuffled = X.index.to_series().sample(frac=1, random_state=0)
    np.testing.assert_array_equal(
        mtl.Tasks.shared(X.loc[shuffled], Y.loc[shuffled]).targets[:30], Y["pain"].loc[shuffled]
    )
    far = X.set_index(X.index + 100)
    assert mtl.Tasks.shared(far, Y).n_tasks == 2
    for make in (mtl.Tasks.shared, mtl.Tasks.from_classes, MultiTaskClassifier().fit):
        with pytest.warns(UnlikeIndexWarning, match="no row of their index in common, such as 100 and 200"):
            make(far, (Y["pain"] > 0).set_axis(Y.index + 200))
    # labels that are permuted on purpose are given without an index
    with pytest.raises(mtl.DataError, match=r"permutation_test_score, give it y.to_numpy\(\)"):
        permutation_test_score(MultiTaskRegressor(), X, Y, cv=2, n_permutations=2)
    assert permutation_test_score(MultiTaskRegressor(), X, Y.to_numpy(), cv=2, n_permutations=2)[2] <= 1
