"""standardize(each_fold=True): every fold learns its own statistics, beside those of missing inputs, as a scikit-learn pipeline does."""

from itertools import product

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mtldsl as mtl
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.data.splits import fold_numbers
from mtldsl.datasets import read_csv
from tests.loops import for_each

RNG = np.random.default_rng(5)
N = 60
X = RNG.normal(size=(N, 4)) * [1.0, 30.0, 0.2, 1.0] + [0.0, 100.0, -3.0, 0.0]
X[:, 3] = 0.0
X[3, 3] = 1.0  # constant in the training rows of one fold
Y = np.column_stack([X[:, 0] + X[:, 1] / 30, X[:, 2] * 5]) + 0.5 * RNG.normal(size=(N, 2))
SCHOOL = np.array(["a", "b", "c"])[RNG.integers(3, size=N)]
LAMS = [10.0, 1.0]


def cross_validated(tasks):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W))
    found = problem.cross_validate(lam, values=LAMS, folds=4, metric="mse", refit=False, tol=1e-10)
    return scores_of(found, tasks)


def scores_of(found, tasks):
    return np.sort(
        [[row["score"] for row in found.table if row["task"] == name] for name in tasks.task_names]
    )


def of_pipeline(tasks, raw, impute=()):
    numbers, scores = fold_numbers(tasks, 4), [[], []]
    for i, k, lam in product(range(2), range(4), LAMS):
        train, test = numbers != k, numbers == k
        model = make_pipeline(*impute, StandardScaler(), Ridge(alpha=lam)).fit(raw[train], Y[train, i])
        scores[i].append(np.mean((model.predict(raw[test]) - Y[test, i]) ** 2))
    return np.sort(scores)


def write(path, X):
    rows = [["" if np.isnan(x) else repr(float(x)) for x in row] for row in np.column_stack([X, Y])]
    path.write_text("\n".join(["a,b,c,d,y,z", *map(",".join, rows), ""]))


def test_folds_are_scaled_as_a_pipeline_scales_them():
    tasks = mtl.Tasks.shared(X, Y)
    expected = of_pipeline(tasks, X)
    np.testing.assert_allclose(cross_validated(tasks.standardize(each_fold=True)), expected, rtol=1e-6)
    of_all = cross_validated(tasks.standardize())
    assert np.abs(of_all / expected - 1).max() > 1e-4


def test_filled_and_scaled_by_the_same_rows(tmp_path):
    holes = np.where(RNG.random(X.shape) < [0.2, 0.2, 0.0, 0.0], np.nan, X)
    write(tmp_path / "t.csv", holes)
    tasks = read_csv(tmp_path / "t.csv", ["y", "z"], impute="median").standardize(each_fold=True)
    expected = of_pipeline(tasks, holes, [SimpleImputer(strategy="median")])
    np.testing.assert_allclose(cross_validated(tasks), expected, rtol=1e-6)


@for_each("kind", ["shared", "grouped", "sparse"])
def test_split_and_folds_know_nothing_of_what_is_held_out(kind):
    """The training side is that of standardising it by itself; the other side is scaled alike; predictions take raw inputs."""
    center = kind != "sparse"
    tasks = {
        "shared": lambda: mtl.Tasks.shared(X, Y),
        "grouped": lambda: mtl.Tasks.grouped(X, Y[:, 0], SCHOOL),
        "sparse": lambda: mtl.Tasks.shared(sparse.csr_array(X), Y),
    }[kind]()
    pairs = zip(
        [tasks.split(0.3, random_state=1), *tasks.folds(3)],
        [(s := tasks.standardize(center, each_fold=True)).split(0.3, random_state=1), *s.folds(3)],
        strict=True,
    )
    for (raw_train, raw_test), (train, test) in pairs:
        alone = raw_train.standardize(center)
        np.testing.assert_allclose(train.scaling.mean, alone.scaling.mean, rtol=1e-12, atol=1e-12)
        for one, other in ((train, alone), (test, raw_test.scaled_by(alone.scaling))):
            for A, B in zip(one.inputs, other.inputs, strict=True):
                kept = [0, 1, 2]  # the last column may be constant: its scale is then arbitrary
                A, B = (np.asarray(M.todense() if sparse.issparse(M) else M) for M in (A, B))
                np.testing.assert_allclose(A[:, kept], B[:, kept], rtol=1e-9, atol=1e-9)
        assert test.scaling == train.scaling
    of_all, own = (tasks.standardize(center, each_fold=each) for each in (False, True))
    assert of_all.folds(3)[0][0].scaling != own.folds(3)[0][0].scaling


def test_a_problem_file_chooses_by_folds_with_own_statistics(tmp_path):
    write(tmp_path / "t.csv", X)
    (tmp_path / "p.toml").write_text(
        'minimize = "squared_loss(W, tasks) + lam * ridge(W)"\n[data]\npath = "t.csv"\nlabels = ["y", "z"]\nstandardize = true\n[weights]\nW = {intercept = true}\n'
        f'[parameters]\nlam = 1.0\n[solve]\ntol = 1e-10\n[validation]\nparameter = "lam"\nvalues = {LAMS}\nfolds = 4\nmetric = "mse"\n'
    )
    with load_problem(tmp_path / "p.toml") as file:
        found = scores_of(file.choose(), file.tasks_train)
        np.testing.assert_allclose(found, of_pipeline(file.tasks_train, X), rtol=1e-6)
