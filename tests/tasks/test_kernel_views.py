"""Kernels as features: their inner products, predictions for rows to come, files, and what cannot be a kernel."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels

import mtldsl as mtl
from mtldsl import DataError, ModelError, Tasks
from mtldsl.data import kernel_features
from tests.loops import for_each

rng = np.random.default_rng(5)
N = 40
X = np.abs(rng.normal(size=(N, 4)))  # chi2 is of numbers >= 0
X[7] = X[3]  # equal rows are one row of a Gram matrix
SPARSE = X * (rng.random(X.shape) < 0.6)
SPARSE[7] = SPARSE[3]
NEW = np.abs(rng.normal(size=(11, 4)))
IDS = rng.permutation(np.repeat(["b", "a", "c"], [15, 13, 12]))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
SIGN = np.where(y > np.median(y), 1.0, -1.0)
RBF = ("rbf", {"gamma": 0.5})


def quadratic(A, B):
    return np.asarray((A @ B.T + 1.0) ** 2)


def rbf(A, B, gamma=0.5):
    """exp(-gamma ||a - b||^2), from its definition."""
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def rows_of(tasks):
    """For every task of `Tasks.grouped(X, y, IDS)`, its rows of X."""
    return [np.flatnonzero(name == IDS) for name in tasks.task_names]


@for_each("word", ["rbf", "polynomial", "laplacian", "chi2", "linear", "cosine"])
@for_each("layout", ["shared", "grouped", "sparse"])
def test_inner_products_are_the_kernel(word, layout):
    inputs = X
    if layout == "shared":
        tasks = Tasks.shared(X, np.column_stack([y, y**2]), kernels=[word])
        F, order = tasks.X, np.arange(N)
    else:
        if layout == "sparse":
            if word == "chi2":
                pytest.skip("scikit-learn's chi2 takes no sparse rows")
            inputs = SPARSE
        given = sparse.csr_array(inputs) if layout == "sparse" else inputs
        tasks = Tasks.grouped(given, y, IDS, kernels=[word])
        F, order = np.vstack(tasks.inputs), np.concatenate(rows_of(tasks))
    K = pairwise_kernels(inputs[order], metric=word)
    # the Cholesky decomposition stops at 1e-12 of the largest diagonal entry
    np.testing.assert_allclose(F @ F.T, K, atol=1e-11 * K.max(), rtol=0)
    assert not tasks.is_sparse and tasks.n_features == F.shape[1] <= N - 1  # two rows are equal
    if word == "linear":
        assert tasks.n_features == 4  # the rank


def test_a_kernel_of_each_kind_and_their_columns():
    given = rbf(X, X, 2.0)
    tasks = Tasks.grouped(X, y, IDS).with_kernels(
        {"near": RBF, "straight": "linear", "mine": quadratic, "given": given}
    )
    assert list(tasks.views) == ["near", "straight", "mine", "given"]
    assert tasks.n_features == tasks.views["given"].stop
    order = np.concatenate(rows_of(tasks))
    kernels = {"near": rbf(X, X), "straight": X @ X.T, "mine": quadratic(X, X), "given": given}
    for name, columns in tasks.views.items():
        F = np.vstack(tasks.inputs)[:, columns]
        K = kernels[name][np.ix_(order, order)]
        np.testing.assert_allclose(F @ F.T, K, atol=1e-11 * K.max(), rtol=0)
        assert tasks.feature_names[columns.start] == f"{name}[0]"
    assert "features of 4 kernels" in repr(tasks)
    assert Tasks.grouped(X, y, IDS).views == {}


def test_names_of_kernels_in_a_list():
    tasks = Tasks.grouped(X, y, IDS, kernels=["linear", RBF, ("rbf", {"gamma": 2}), quadratic, rbf(X, X)])
    assert list(tasks.views) == ["linear", "rbf(gamma=0.5)", "rbf(gamma=2)", "quadratic", "kernel4"]
    assert list(Tasks.grouped(X, y, IDS, kernels="rbf").views) == ["rbf"]
    assert list(Tasks.grouped(X, y, IDS, kernels=rbf(X, X)).views) == ["kernel0"]


@for_each("layout", ["grouped", "separate", "shared"])
def test_a_gram_matrix_is_over_the_rows_as_given(layout):
    """Rows without a label are not in grouped and separate tasks, but are in a shared X."""
    missing = y.copy()
    missing[[0, 9, N - 1]] = np.nan
    labelled = np.flatnonzero(~np.isnan(missing))
    K = rbf(X, X)
    parts = [np.arange(0, 22), np.arange(22, N)]
    made = {
        "shared": lambda k: Tasks.shared(X, np.column_stack([missing, y]), kernels={"k": k}),
        "grouped": lambda k: Tasks.grouped(X, missing, IDS, kernels={"k": k}),
        "separate": lambda k: Tasks.separate([X[p] for p in parts], [missing[p] for p in parts], kernels={"k": k}),
    }[layout]  # fmt: skip
    by_name, given = made(RBF), made(K if layout == "shared" else K[np.ix_(labelled, labelled)])
    for F, G in zip(by_name.inputs, given.inputs, strict=True):
        np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-11)
    if layout != "shared":
        with pytest.raises(DataError, match="40 rows, and these tasks hold 37; give it over the rows"):
            made(K)


def test_a_gram_matrix_of_some_rows_of_a_table():
    rows = [[2, 0, 5], [1, 3], [4, 6, 2]]
    tasks = Tasks.grouped(X, y, IDS).take_rows(rows)
    chosen = np.concatenate([r[np.array(k)] for r, k in zip(rows_of(tasks), rows, strict=True)])
    table = np.sort(chosen)  # the order of the table, not of the tasks
    F = np.vstack(tasks.with_kernels(rbf(X[table], X[table])).inputs)
    np.testing.assert_allclose(F @ F.T, rbf(X[chosen], X[chosen]), atol=1e-11)


def ridge_solution(tasks, alpha=0.3):
    W = mtl.Weights(tasks, intercept=False)
    return mtl.minimize(mtl.squared_loss(W, tasks) + alpha * mtl.ridge(W)).solve(tol=1e-10)


@for_each("layout", ["grouped", "shared", "sparse", "standardized"])
def test_ridge_is_kernel_ridge_regression(layout):
    """squared_loss + alpha ridge, in the features of two kernels, is kernel ridge regression on the sum of the kernels."""
    if layout == "shared":
        tasks = Tasks.shared(X, np.column_stack([y, y**2]))
        parts = [(X, y), (X, y**2)]
    else:
        tasks = Tasks.grouped(sparse.csr_array(X) if layout == "sparse" else X, y, IDS)
        parts = [(X[r], y[r]) for r in rows_of(tasks)]
    scaled = (lambda A: A) if layout != "standardized" else (lambda A: (A - X.mean(axis=0)) / X.std(axis=0))
    tasks = tasks.standardize() if layout == "standardized" else tasks
    solution = ridge_solution(tasks.with_kernels({"near": RBF, "straight": "linear"}))
    found = solution.predict(sparse.csr_array(NEW) if layout == "sparse" else NEW)
    for i, (A, b) in enumerate(parts):
        A, B = scaled(A), scaled(NEW)
        expected = KernelRidge(alpha=0.3, kernel="precomputed").fit(rbf(A, A) + A @ A.T, b)
        # features of new rows lose half the digits where the Cholesky factor is nearly singular
        np.testing.assert_allclose(found[:, i], expected.predict(rbf(B, A) + B @ A.T), atol=1e-7)


def test_precomputed_kernels_predict_from_their_values():
    named = ridge_solution(Tasks.grouped(X, y, IDS, kernels={"near": RBF, "straight": "linear"}))
    both = ridge_solution(Tasks.grouped(X, y, IDS, kernels={"near": rbf(X, X), "straight": "linear"}))
    alone = ridge_solution(Tasks.grouped(X, y, IDS, kernels={"near": rbf(X, X)}))
    K_new = rbf(NEW, X)
    np.testing.assert_allclose(both.predict({"near": K_new, "X": NEW}), named.predict(NEW), atol=1e-7)
    np.testing.assert_array_equal(alone.predict(K_new), alone.predict({"near": K_new}))
    listed = alone.predict([{"near": K_new[:4]}, K_new, K_new[:2]])
    assert [len(z) for z in listed] == [4, 11, 2]
    np.testing.assert_allclose(listed[0], alone.predict(K_new)[:4, 0], rtol=1e-12)


@for_each(
    ("new", "message"),
    [
        (NEW, r"the kernel 'near' is precomputed.*write \{\"near\": K_new, \"X\": X_new\}"),
        ({"near": rbf(NEW, X)}, "'X' is missing"),
        ({"X": NEW}, "'near' is missing"),
        ({"near": rbf(NEW, X), "X": NEW, "far": NEW}, "there is no precomputed kernel 'far'"),
        ({"near": rbf(NEW, NEW), "X": NEW}, r"shape \(11, 11\), but the Gram matrix of training had 40 rows"),
        ({"near": rbf(NEW[:3], X), "X": NEW}, r"other numbers of rows, \{'near': 3, 'X': 11\}"),
        ({"near": rbf(NEW, X), "X": NEW[:, :3]}, r"shape \(11, 3\), but the kernels are of rows with 4"),
    ],
)
def test_new_inputs_that_do_not_fit(new, message):
    tasks = Tasks.grouped(X, y, IDS, kernels={"near": rbf(X, X), "straight": "linear"})
    with pytest.raises(DataError, match=message):
        tasks.transform(new)
    with pytest.raises(DataError, match=message):
        ridge_solution(tasks).predict(new)


def test_columns_of_new_inputs_are_those_learned_on():
    table = pd.DataFrame(X, columns=["age", "height", "weight", "pulse"])
    solution = ridge_solution(Tasks.grouped(table, y, IDS, kernels=["rbf"]))
    with pytest.raises(DataError, match="in that order"):
        solution.predict(table[["height", "age", "weight", "pulse"]])
    np.testing.assert_array_equal(solution.predict(table), solution.predict(X))


def test_scores_of_raw_standardised_and_kernelised_tasks_agree():
    raw = Tasks.grouped(X, y, IDS)
    train, test = raw.split(random_state=0)
    train = train.standardize().with_kernels([RBF, "linear"])
    solution = ridge_solution(train)
    expected = solution.scores(test)
    assert np.all(expected > 0)
    forms = (test.scaled_by(train.scaling), test.with_kernels(train.kernel_map))
    forms += (test.scaled_by(train.scaling).with_kernels(train.kernel_map),)
    for form in forms:
        np.testing.assert_array_equal(solution.scores(form), expected)
    with pytest.raises(DataError, match="of other kernels, or of the rows of other tasks"):
        solution.scores(test.scaled_by(train.scaling).with_kernels([("rbf", {"gamma": 0.4}), "linear"]))
    with pytest.raises(DataError, match="features x 3 tasks, the weights 4 x 3"):
        solution.scores(Tasks.grouped(X[:, :3], y, IDS))
    with pytest.raises(DataError, match="statistics other than the training tasks'"):
        test.standardize().with_kernels(train.kernel_map)
    assert np.isfinite(
        solution.tune_threshold(Tasks.grouped(X, SIGN, IDS), mtl.metrics.ErrorRate()).thresholds
    ).all()


def test_parts_of_kernelised_tasks_keep_the_optimum():
    """Features are fixed by all rows; a problem on some of them has its weights in the span of those: nothing leaks."""
    raw = Tasks.grouped(X, y, IDS)
    train, test = raw.with_kernels([RBF]).split(random_state=1)
    first, second = raw.split(random_state=1)
    before, after = ridge_solution(train), ridge_solution(first.with_kernels([RBF]))
    assert before.objective == pytest.approx(after.objective, rel=1e-9)
    np.testing.assert_allclose(before.predict(NEW), after.predict(NEW), atol=1e-7)
    np.testing.assert_allclose(before.scores(test), after.scores(second), atol=1e-7)
    one = train.select(["a"])
    assert one.views == train.views
    # tasks are apart under a ridge, and both are in closed form: they differ by rounding
    np.testing.assert_allclose(
        ridge_solution(one).predict(NEW)[:, 0], before.predict(NEW)[:, train.task_names.index("a")], atol=1e-9
    )
    shared = Tasks.shared(X, np.column_stack([y, y**2]), kernels=[RBF])
    np.testing.assert_array_equal(shared.take_rows([3, 1]).X, shared.X[[3, 1]])
    np.testing.assert_allclose(shared.take_rows([3, 1]).transform(NEW), shared.transform(NEW), rtol=1e-14)


def test_splits_of_precomputed_kernels_are_scored_as_they_are():
    train, test = Tasks.grouped(X, y, IDS, kernels={"k": rbf(X, X)}).split(random_state=2)
    first, second = Tasks.grouped(X, y, IDS).split(random_state=2)
    solution = ridge_solution(train)
    expected = ridge_solution(first.with_kernels(RBF)).scores(second)
    np.testing.assert_allclose(solution.scores(test), expected, atol=1e-7)
    with pytest.raises(DataError, match=r"the kernel 'k' is precomputed.*split\(\) those tasks"):
        solution.scores(second)


def test_what_must_come_before_kernels():
    tasks = Tasks.grouped(X, y, IDS, kernels=[RBF])
    with pytest.raises(DataError, match=r"standardize\(\) first, then with_kernels\(\)"):
        tasks.standardize()
    with pytest.raises(DataError, match=r"scaled_by\(\) first, then with_kernels\(\)"):
        tasks.scaled_by(Tasks.grouped(X, y, IDS).standardize().scaling)
    with pytest.raises(DataError, match=r"have kernels already \('rbf\(gamma=0.5\)'\)"):
        tasks.with_kernels("linear")


@for_each("layout", ["dense", "sparse", "standardized"])
def test_a_saved_solution_predicts_the_same(tmp_path, layout):
    tasks = Tasks.grouped(sparse.csr_array(SPARSE) if layout == "sparse" else X, y, IDS)
    tasks = tasks.standardize() if layout == "standardized" else tasks
    tasks = tasks.with_kernels({"near": RBF, "straight": "linear", "given": rbf(X, X, 2.0)})
    solution = ridge_solution(tasks)
    loaded = mtl.Solution.load(solution.save(tmp_path / "kernels"))
    new = {"X": NEW, "given": rbf(NEW, X, 2.0)}
    np.testing.assert_array_equal(loaded.predict(new), solution.predict(new))
    np.testing.assert_array_equal(loaded.scores(tasks), solution.scores(tasks))
    assert loaded.kernel_map.views == tasks.views
    with pytest.raises(DataError, match="of other kernels, or of the rows of other tasks"):
        loaded.scores(Tasks.grouped(X, y, IDS, kernels=[RBF]))


def test_functions_cannot_be_saved(tmp_path):
    solution = ridge_solution(Tasks.grouped(X, y, IDS, kernels=[quadratic]))
    with pytest.raises(ModelError, match="'quadratic' is a function of yours"):
        solution.save(tmp_path / "kernels")


LOPSIDED = np.eye(N) + np.triu(np.full((N, N), 1e-3), 1)


@for_each(
    ("kernels", "message"),
    [
        (["rfb"], "there is no kernel 'rfb'; did you mean 'rbf'"),
        (["precomputed"], "give the Gram matrix itself"),
        ([("rbf", 3)], "write the parameters as a dict"),
        ([("rbf", {"gama": 1})], r"scikit-learn's rbf kernel says: .*gama"),
        ([("rbf", {"gamma": [1]})], r"gamma=\[1\]; parameters of a kernel are numbers"),
        (["rbf", "rbf"], "two kernels are named 'rbf'"),
        ({"X": "rbf"}, "no kernel can be named 'X'"),
        ({1: "rbf"}, "1 is not a name of a kernel"),
        ([], "no kernel is given"),
        ([3], "3 is not a kernel"),
        ([lambda A, B: A], r"gave float64 numbers of shape \(39, 4\) for 39 and 39 rows"),
        ([lambda A, B: A @ B.T + np.inf], "must be finite"),
        ([lambda A, B: 0 * A @ B.T], "is zero between all rows"),
        (np.ones((3, 4)), r"has shape \(3, 4\); a Gram matrix is square"),
        (np.eye(5), "of 5 rows, and these tasks hold 40; give it over the rows of the table"),
        (np.full((N, N), np.nan), "nan in row 0"),
        (LOPSIDED, "is not symmetric: 0.001 between the rows 0 and 1, but 0 between 1 and 0"),
    ],
)
def test_what_is_no_kernel(kernels, message):
    with pytest.raises(DataError, match=message):
        Tasks.grouped(X, y, IDS, kernels=kernels)


def test_an_indefinite_matrix_is_refused_by_its_eigenvalue():
    K = rbf(X, X)
    K[0, 1] = K[1, 0] = 1.5  # a correlation above 1
    lowest = np.linalg.eigvalsh(K)[0]
    with pytest.raises(
        DataError, match=f"not positive semidefinite: its most negative eigenvalue is {lowest:.3g}"
    ):
        Tasks.grouped(X, y, IDS, kernels=K)
    with pytest.raises(DataError, match=r"kernel 'sigmoid\(coef0=-3.0\)' is not positive semidefinite"):
        Tasks.grouped(X, y, IDS, kernels=("sigmoid", {"coef0": -3.0}))


def test_rounding_errors_of_a_gram_matrix_are_not_refused():
    exact = rbf(X, X, 0.01)  # nearly singular
    single = exact.astype(np.float32)
    assert np.linalg.eigvalsh(single.astype(float))[0] < -1e-9
    F = np.vstack(Tasks.grouped(X, y, IDS, kernels=single).inputs)
    order = np.concatenate(rows_of(Tasks.grouped(X, y, IDS)))
    np.testing.assert_allclose(F @ F.T, exact[np.ix_(order, order)], atol=1e-5)
    flat = rbf(X, X, 0.001)
    for size in (
        1e-11,
        1e-10,
        1e-9,
    ):  # finer than the noise, the factor of so flat a kernel would be of the noise
        noise = size * rng.normal(size=flat.shape)
        F = np.vstack(Tasks.grouped(X, y, IDS, kernels=flat + noise + noise.T).inputs)
        # ten times the coarsest cut in double precision, beside the noise itself
        np.testing.assert_allclose(F @ F.T, flat[np.ix_(order, order)], atol=1e-7 + 10 * size)


def test_too_many_rows_are_refused_before_any_kernel(monkeypatch):
    monkeypatch.setattr(kernel_features, "available_memory", lambda: 1e4)
    calls = []
    with pytest.raises(DataError, match=r"over 39 distinct rows needs .* GiB of memory"):
        Tasks.grouped(X, y, IDS, kernels=[lambda A, B: calls.append(A)])
    assert not calls
