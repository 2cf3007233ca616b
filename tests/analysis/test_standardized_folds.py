"""standardize(each_fold=True): every fold learns its own statistics, beside those of missing inputs, as a scikit-learn pipeline does."""

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mtldsl as mtl
from mtldsl.datasets import read_csv
from mtldsl.files.problem_file import load_problem
from mtldsl.tasks.folding import fold_numbers
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
    return [[row["score"] for row in found.table if row["task"] == name] for name in tasks.task_names]


def of_pipeline(tasks, raw, impute=()):
    numbers = fold_numbers(tasks, 4)
    scores = []
    for i in range(2):
        own = []
        for k in range(4):
            train, test = numbers != k, numbers == k
            for lam in LAMS:
                model = make_pipeline(*impute, StandardScaler(), Ridge(alpha=lam)).fit(
                    raw[train], Y[train, i]
                )
                own.append(np.mean((model.predict(raw[test]) - Y[test, i]) ** 2))
        scores.append(own)
    return scores


def test_folds_are_scaled_as_a_pipeline_scales_them():
    tasks = mtl.Tasks.shared(X, Y)
    expected = np.sort(of_pipeline(tasks, X))
    np.testing.assert_allclose(
        np.sort(cross_validated(tasks.standardize(each_fold=True))), expected, rtol=1e-6
    )
    assert (
        np.abs(np.sort(cross_validated(tasks.standardize())) / expected - 1).max() > 1e-4
    )  # statistics of all


def test_filled_and_scaled_by_the_same_rows(tmp_path):
    holes = np.where(RNG.random(X.shape) < [0.2, 0.2, 0.0, 0.0], np.nan, X)
    rows = "\n".join(
        ",".join("" if np.isnan(x) else repr(float(x)) for x in [*row, *y])
        for row, y in zip(holes, Y, strict=True)
    )
    (tmp_path / "t.csv").write_text(f"a,b,c,d,y,z\n{rows}\n")
    tasks = read_csv(tmp_path / "t.csv", ["y", "z"], impute="median").standardize(each_fold=True)
    expected = of_pipeline(tasks, holes, [SimpleImputer(strategy="median")])
    np.testing.assert_allclose(np.sort(cross_validated(tasks)), np.sort(expected), rtol=1e-6)


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
    assert tasks.standardize(center).folds(3)[0][0].scaling != tasks.standardize(center, each_fold=True).folds(3)[0][0].scaling  # fmt: skip


def test_a_problem_file_chooses_by_folds_with_own_statistics(tmp_path):
    """A problem file chooses by folds with statistics of their own."""
    rows = "\n".join(",".join(repr(float(x)) for x in [*row, *y]) for row, y in zip(X, Y, strict=True))
    (tmp_path / "t.csv").write_text(f"a,b,c,d,y,z\n{rows}\n")
    (tmp_path / "p.toml").write_text(
        'minimize = "squared_loss(W, tasks) + lam * ridge(W)"\n[data]\npath = "t.csv"\nlabels = ["y", "z"]\nstandardize = true\n[weights]\nW = {intercept = true}\n'
        f'[parameters]\nlam = 1.0\n[solve]\ntol = 1e-10\n[validation]\nparameter = "lam"\nvalues = {LAMS}\nfolds = 4\nmetric = "mse"\n'
    )
    with load_problem(tmp_path / "p.toml") as file:
        found = file.choose()
        own = [
            [row["score"] for row in found.table if row["task"] == name]
            for name in file.tasks_train.task_names
        ]
        np.testing.assert_allclose(np.sort(own), np.sort(of_pipeline(file.tasks_train, X)), rtol=1e-6)
