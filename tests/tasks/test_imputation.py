"""Missing inputs: filled in from the training rows alone, in every split, fold and sample, and likewise in new rows."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.errors import DataError
from tests.loops import for_each

RNG = np.random.default_rng(0)
N = 80
FULL = RNG.normal(size=(N, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 1.0, 0.0]
GAPS = RNG.random((N, 4)) < [0.2, 0.3, 0.0, 0.05]
X = np.where(GAPS, np.nan, FULL)
Y = np.column_stack([FULL[:, 0] + 0.1 * FULL[:, 1], FULL[:, 3] - FULL[:, 0]]) + 0.3 * RNG.normal(size=(N, 2))
GROUP = np.array(["a", "b", "c"])[RNG.integers(3, size=N)]


def written(tmp_path, Y=Y, X=X):
    lines = ["p,q,r,s,group,y,z"]
    for row, g, labels in zip(X, GROUP, Y, strict=True):
        cells = ["" if np.isnan(x) else repr(float(x)) for x in row]
        lines.append(",".join([*cells, g, *(repr(float(y)) for y in labels)]))
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def shared(tmp_path, impute="mean", **options):
    return datasets.read_csv(
        written(tmp_path, **options), ["y", "z"], drop=["group"], impute=impute, one_hot=False
    )


def grouped(tmp_path, impute="mean"):
    return datasets.read_csv(written(tmp_path), "y", task="group", drop=["z"], impute=impute)


@pytest.mark.parametrize("impute", ["mean", "median"])
def test_a_split_learns_it_on_the_training_rows(impute, tmp_path):
    labelled = np.column_stack([Y[:, 0], np.arange(N)])  # the second label says which row it is
    train, test = shared(tmp_path, impute, Y=labelled).split(0.3, random_state=1)
    rows, held = (side.per_task(side.targets)[1].astype(int) for side in (train, test))
    imputer = SimpleImputer(strategy=impute).fit(X[rows])
    np.testing.assert_allclose(train.X, imputer.transform(X[rows]), rtol=1e-12)
    np.testing.assert_allclose(test.X, imputer.transform(X[held]), rtol=1e-12)
    np.testing.assert_allclose(train.imputation.values, imputer.statistics_, rtol=1e-12)


def stated(tasks):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W)), lam


@pytest.mark.slow
@for_each("standardize", [False, True])
def test_cross_validation_learns_it_inside_the_folds(standardize, tmp_path):
    """By hand, of tasks told apart by rows: numpy and scikit-learn for every fold."""
    tasks = grouped(tmp_path, "median")
    tasks = tasks.standardize() if standardize else tasks
    problem, lam = stated(tasks)
    order = np.concatenate([np.flatnonzero(name == GROUP) for name in tasks.task_names])
    place = RNG.permutation(N) % 3
    folds = [(np.flatnonzero(place != k), np.flatnonzero(place == k)) for k in range(3)]
    found = problem.cross_validate(lam, [2.0], folds, "mse", refit=False, tol=1e-10)
    raw = X[order]
    if standardize:
        raw = (raw - tasks.scaling.mean) / tasks.scaling.scale
    expected = []
    for train, test in folds:
        imputer = SimpleImputer(strategy="median").fit(raw[train])
        y, errors = Y[order][:, 0], []
        for mine in tasks.per_task(np.arange(N)):
            A, B = np.intersect1d(train, mine), np.intersect1d(test, mine)
            Z = np.column_stack([imputer.transform(raw[A]), np.ones(len(A))])
            penalty = np.diag([2.0, 2.0, 2.0, 2.0, 0.0])  # ridge is 1/2 lam |w|^2, squared_loss 1/2 |r|^2
            w = np.linalg.solve(Z.T @ Z + penalty, Z.T @ y[A])
            errors.append(np.mean((np.column_stack([imputer.transform(raw[B]), np.ones(len(B))]) @ w - y[B]) ** 2))  # fmt: skip
        expected.append(np.mean(errors))
    np.testing.assert_allclose(found.scores[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_new_rows_are_filled_alike_and_a_file_keeps_how(standardize, tmp_path):
    tasks = shared(tmp_path, "median")
    train, test = tasks.split(0.3, random_state=0)
    train = train.standardize() if standardize else train
    solution = stated(train)[0].solve(tol=1e-10)
    new = np.array([[np.nan, 1.0, 2.0, np.nan], [1.0, np.nan, 1.0, 0.0]])
    filled = np.where(np.isnan(new), train.imputation.values, new)
    expected = stated(train)[0].solve(tol=1e-10).predict(filled)
    np.testing.assert_allclose(solution.predict(new), expected)
    loaded = mtl.Solution.load(solution.save(tmp_path / "w.npz"))
    assert loaded.imputation["strategy"] == "median"
    np.testing.assert_array_equal(loaded.predict(new), solution.predict(new))
    import pandas as pd

    np.testing.assert_array_equal(loaded.predict(pd.DataFrame(new, columns=list("pqrs"))), solution.predict(new))  # fmt: skip
    # rows that were read with gaps of their own are filled by what was learned
    again = shared(tmp_path, "mean")
    by_hand = mtl.Tasks.shared(np.where(GAPS, train.imputation.values, X), Y, feature_names=list("pqrs"), task_names=["y", "z"])  # fmt: skip
    np.testing.assert_allclose(solution.scores(again), solution.scores(by_hand))
    with pytest.raises(DataError, match=r"(?i)nan"):
        stated(mtl.Tasks.shared(FULL, Y))[0].solve().predict(new)


def test_it_follows_rows_tasks_and_features(tmp_path):
    tasks = grouped(tmp_path)
    some = tasks.select(["c", "a"]).select_features(["q", "p"])
    np.testing.assert_array_equal(some.imputation.values, tasks.imputation.values[[1, 0]])
    order = np.concatenate([np.flatnonzero(name == GROUP) for name in ("c", "a")])
    np.testing.assert_array_equal(some.imputation.gaps.toarray(), GAPS[order][:, [1, 0]])
    assert stated(some)[0].bootstrap(4).samples.shape == (4, 2, 2)
    with pytest.raises(DataError, match="with_kernels: these tasks had inputs that were missing"):
        tasks.with_kernels("rbf")


def test_columns_with_gaps_alone_or_unasked(tmp_path):
    gaps = r"column '\w' has no value \(\d+ such cells: \d+ in 'q', \d+ in 'p'.*impute=\"mean\""
    with pytest.raises(DataError, match=gaps):
        shared(tmp_path, "error")
    empty = X.copy()
    empty[:, 1] = np.nan
    with pytest.raises(DataError, match="column 'q' has no value, so that"):
        shared(tmp_path, X=empty)
    nearly = X.copy()
    nearly[1:, 1] = np.nan
    tasks = shared(tmp_path, X=nearly)
    with pytest.raises(DataError, match="column 'q' has no value in the training rows"):
        for seed in range(40):  # sooner or later the one row is held out
            tasks.split(0.5, random_state=seed)
