"""One vector of weights that all tasks share, beside weights of each: solved, proven, cross-checked, printed and read."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.estimators import MultiTaskRegressor
from tests.language.typed import assert_refused, mistakes
from tests.loops import for_each

rng = np.random.default_rng(5)
X = [rng.normal(size=(n, 5)) for n in (12, 20, 15)]
WEIGHTS = rng.normal(size=(5, 1)) + 0.3 * rng.normal(size=(5, 3))
Y = [A @ v + 0.3 * rng.normal(size=len(A)) for A, v in zip(X, WEIGHTS.T, strict=True)]
TASKS = mtl.Tasks.separate(X, Y, task_names=["red", "green", "blue"])
SIGNS = mtl.Tasks.separate(X, [np.sign(y) for y in Y])
TABLE = mtl.Tasks.shared(X[1], X[1] @ WEIGHTS + 0.3 * rng.normal(size=(20, 3)))
W, w = mtl.Weights(TASKS), mtl.Weights(TASKS, name="w", shared=True)
lam = mtl.Parameter(2.0)

PENALTIES = {
    "l21": lambda W, w: lam * mtl.l21_norm(W) + 0.1 * mtl.ridge(w),
    "ridge": lambda W, w: lam * mtl.ridge(W) + 0.1 * mtl.ridge(w),
    "l1": lambda W, w: lam * mtl.l1_norm(W) + 0.5 * mtl.l1_norm(w),
    "trace": lambda W, w: lam * mtl.trace_norm(W),
    "transpose": lambda W, w: lam * mtl.l21_norm(W.T) + mtl.frobenius_norm(w),
}
LOSSES = {
    "squares": (mtl.squared_loss, TASKS),
    "shared inputs": (mtl.squared_loss, TABLE),
    "absolute": (mtl.absolute_loss, TASKS),
    "logistic": (mtl.logistic_loss, SIGNS),
    "hinge": (mtl.hinge_loss, SIGNS),
}


@pytest.mark.by_default("squares", "shared inputs", "logistic")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_shared_vector_is_a_matrix_of_equal_columns(loss):
    """The same objective as with a matrix whose columns a constraint holds equal; both proven, and the reference agrees."""
    word, tasks = LOSSES[loss]
    W, w, A = mtl.Weights(tasks), mtl.Weights(tasks, name="w", shared=True), mtl.Weights(tasks, name="A")
    for penalty in {"absolute": ["l21", "l1"], "hinge": ["ridge", "trace", "transpose"]}.get(loss, PENALTIES):
        problem = mtl.minimize(word(W + w, tasks) + PENALTIES[penalty](W, w))
        other = word(W + A, tasks) + PENALTIES[penalty](W, A[:, 0])
        solution, expected = problem.solve(), mtl.minimize(other, [A[:, 1:] == A[:, :-1]]).solve()
        assert solution.status == expected.status == "optimal" and solution.w.shape == (5, 1), penalty
        # each lies at most 1e-6 above the optimum, the gap that was asked for
        assert solution.objective == pytest.approx(expected.objective, rel=3e-6), penalty
        assert problem.cross_check(solution).agrees, penalty
        np.testing.assert_allclose(solution.coef, solution["W"] + solution["w"])


def test_names_latex_and_predictions_of_a_shared_vector():
    V = mtl.Weights(TASKS, name="V", intercept=True)
    problem = mtl.minimize(mtl.squared_loss(V + w, TASKS) + lam * mtl.l21_norm(V) + 0.1 * mtl.ridge(w))
    solution = problem.solve()
    assert str(problem).endswith("squared_loss(V + w, tasks) + lam * l21_norm(V) + 0.1 * ridge(w)")
    assert r"X_i (V + w \mathbf 1^\top)_i + b_i" in problem.latex()
    assert "the weights that all tasks share, 5 features" in problem.latex(where=True)
    both = solution["V"] + solution["w"]
    for i, found in enumerate(solution.decision_function(X)):
        np.testing.assert_allclose(found, X[i] @ both[:, i] + solution.intercept[i])


def test_paths_folds_proofs_and_files_of_a_shared_vector(tmp_path):
    problem = mtl.minimize(mtl.squared_loss(W + w, TASKS) + lam * mtl.l21_norm(W) + 0.1 * mtl.ridge(w))
    alone, less = list(problem.path(lam, [1e4, 2.0]))
    assert np.all(alone["W"] == 0) and np.any(alone["w"] != 0) and np.any(less["W"] != 0)
    verdict = mtl.verify_proof(less.certificate.save(tmp_path / "proof.npz"), problem)
    assert verdict.confirmed
    loaded = mtl.Solution.load(less.save(tmp_path / "solution.npz"))
    np.testing.assert_array_equal(loaded["w"], less["w"])
    lam.value = 2.0
    found = problem.cross_validate(lam, [0.5, 1e4], folds=3)
    assert found.best_value == 0.5 and found.solution.status == "optimal"


def test_some_tasks_keep_the_shared_vector():
    problem = mtl.minimize(mtl.squared_loss(W + w, TASKS) + lam * mtl.l21_norm(W) + 0.1 * mtl.ridge(w))
    two = TASKS.select(["red", "blue"])
    solution = problem.with_tasks(two, some=True).solve()
    V, v = mtl.Weights(two, name="V"), mtl.Weights(two, name="v", shared=True)
    expected = mtl.minimize(mtl.squared_loss(V + v, two) + lam * mtl.l21_norm(V) + 0.1 * mtl.ridge(v)).solve()
    assert solution.objective == pytest.approx(expected.objective, rel=2e-6)


def test_tasks_of_several_kinds_beside_a_shared_vector():
    table = TABLE.per_task(TABLE.targets)
    kinds = mtl.Tasks.shared(X[1], np.column_stack([np.sign(table[0]), table[1], table[2]]))
    V, v = mtl.Weights(kinds, name="V"), mtl.Weights(kinds, name="v", shared=True)
    losses = mtl.logistic_loss((V + v)[:, [0]], kinds) + mtl.squared_loss(V[:, [1, 2]] + v, kinds)
    problem = mtl.minimize(losses + mtl.ridge(V) + mtl.ridge(v))
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees
    np.testing.assert_allclose(solution.coef, solution["V"] + solution["v"])


def test_a_problem_file_with_a_shared_vector(tmp_path):
    np.savez(tmp_path / "data.npz", X=X[1], Y=X[1] @ WEIGHTS)
    path = tmp_path / "problem.toml"
    path.write_text(
        'minimize = "squared_loss(W + w, tasks) + 2 * l21_norm(W) + 0.1 * ridge(w)"\n[data]\npath = "data.npz"\n'
        "[weights]\nW = {}\nw = {shared = true}\n"
    )
    with load_problem(path) as file:
        solution = file.problem.solve()
        assert solution.status == "optimal" and solution["w"].shape == (5, 1)
        assert file.problem.cross_check(solution).agrees
    path.write_text(path.read_text().replace("shared = true", "shared = 1"))
    with pytest.raises(mtl.DataError, match=r"problem\.toml:6"):
        load_problem(path)


def test_an_estimator_with_a_shared_vector():
    def model(W, tasks, lam=1.0):
        w = mtl.Weights(tasks, name="w", shared=True)
        return mtl.squared_loss(W + w, tasks) + lam * mtl.l21_norm(W) + 0.1 * mtl.ridge(w)

    targets = X[1] @ WEIGHTS
    fitted = MultiTaskRegressor(model=model, lam=1e4).fit(X[1], targets)
    text = "squared_loss(W + w[:, 0], tasks) + lam * l21_norm(W) + 0.1 * ridge(w[:, 0])"
    same = MultiTaskRegressor(model=text, lam=1e4).fit(X[1], targets)
    np.testing.assert_allclose(fitted.predict(X[1]), same.predict(X[1]), atol=1e-3)
    assert np.linalg.matrix_rank(fitted.coef_, tol=1e-8) == 1  # one vector for all


#: What is typed, and by how much numpy says that it is met: each holds some entry at its bound.
ADDED = {
    "columns": (lambda W: W - W[:, 0] >= -0.1, lambda W: W - W[:, :1] + 0.1),
    "rows": (lambda W: W[0, :] - W <= 0.1, lambda W: W - W[:1] + 0.1),
    "sums": (lambda W: W.sum(axis=0) >= W + 3, lambda W: W.sum(axis=0) - W - 3),
    "both": (lambda W: W[:, 0] + W[0, :] >= 1, lambda W: W[:, :1] + W[:1] - 1),
    "one number": (lambda W: W[0, 0] - 0.1 <= W, lambda W: W - W[0, 0] + 0.1),
}


@for_each("name", ADDED)
def test_one_row_or_one_column_is_repeated(name):
    typed, margin = ADDED[name]
    problem = mtl.minimize(mtl.squared_loss(W, TASKS), subject_to=[typed(W)])
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees
    assert margin(solution.W).min() == pytest.approx(0.0, abs=1e-5)


WRONG = """
mtl.Weights(TASKS, shared='yes') | shared='yes' | write shared=True or shared=False
mtl.Weights(TASKS, intercept=True, shared=True) | intercepts are of tasks | weights beside them
mtl.Weights('w', shared=True) | Weights(str) | must be a Tasks object
mtl.squared_loss(w, TASKS) | squared_loss(w, tasks) | (5, 1) | W + w, or repeat the column, w[:, [0, 0, ...]]
W + w[:2] | W + w[:2, :] | (5, 3) and (2, 1) differ | one row or one column
w[:, 'red'] | no name 'red' among all tasks
"""


@for_each("typed, said", mistakes(WRONG))
def test_a_wrong_shared_vector_says_what_to_write(typed, said):
    assert_refused(typed, said, globals(), mtl.MTLError)
