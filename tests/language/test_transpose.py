"""Transposes typed inside words: the model in words that there are, solved, proven, cross-checked, printed and read."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers import L21Norm
from mtldsl.errors import CrossCheckError
from mtldsl.language.parser import parse_constraint, parse_objective
from tests.language.typed import assert_refused, mistakes
from tests.loops import for_each

rng = np.random.default_rng(3)
X = rng.normal(size=(30, 5))
Y = X @ rng.normal(size=(5, 3)) + 0.5 * rng.normal(size=(30, 3))
TASKS = mtl.Tasks.shared(X, Y, task_names=["red", "green", "blue"])
W, V, lam = mtl.Weights(TASKS), mtl.Weights(TASKS, name="V"), mtl.Parameter(2.0)
PATH = np.diag([1.0, 2, 2, 2, 1]) - np.eye(5, k=1) - np.eye(5, k=-1)
BETWEEN = np.array([[2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 3]])
NAMES = {
    "W": W, "V": V, "tasks": TASKS, "lam": lam, "P": PATH, "B": BETWEEN, "A": np.ones((5, 3)), "J": np.full((5, 5), 0.2),
}  # fmt: skip

#: What is typed of a transpose, and the same in words of W itself.
SAME = """
l21_norm(W.T) | l12_norm(W)
l21_norm(W.T, weights=[1, 2, 3]) | l12_norm(W, weights=[1, 2, 3])
l1_norm(W.T) | l1_norm(W)
l1_norm(W.T, weights=[1, 2, 3, 4, 0.5]) | l1_norm(W, weights=[[1], [2], [3], [4], [0.5]])
l1_norm(W.T, weights=A.T) | l1_norm(W)
ridge(W.T, weights=[[1], [2], [0.5]]) | ridge(W, weights=[1, 2, 0.5])
trace_norm(W.T) | trace_norm(W)
group_norm(W.T, [['red', 'blue'], ['green']]) | column_group_norm(W, [[0, 2], [1]])
group_norm(W.T, [['red', 'blue']], weights=1.5) | 1.5 * frobenius_norm(W[:, [0, 2]])
group_norm(W.T, [[0, 1], [1, 2]]) | frobenius_norm(W[:, [0, 1]]) + frobenius_norm(W[:, [1, 2]])
column_group_norm(W.T, [['x0', 'x1'], [2, 3, 4]]) | group_norm(W, [[0, 1], [2, 3, 4]])
graph_laplacian(W.T, P) | kronecker_ridge(W, P, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
mean_regularizer(W.T) | ridge(W - J @ W)
l21_norm((2 * W[:, ['blue', 'red']]).T) | 2 * l12_norm(W[:, [0, 2]])
l21_norm(W.T.T) | l21_norm(W)
"""


def objective(penalty, loss="squared_loss(W, tasks) + 0.01 * ridge(W)"):
    return parse_objective(f"{loss} + lam * ({penalty})", NAMES)


@for_each("turned, plain", [line.split(" | ") for line in SAME.strip().splitlines()])
def test_a_transpose_is_its_word_of_the_weights(turned, plain):
    """The same objective, proven and agreeing with the reference; each solve is compared with the statement as typed."""
    problem, other = mtl.minimize(objective(turned)), mtl.minimize(objective(plain))
    solution, expected = problem.solve(tol=1e-7), other.solve(tol=1e-7)
    assert turned in str(problem)
    assert solution.status == expected.status == "optimal"
    assert solution.objective == pytest.approx(expected.objective, rel=3e-7)
    assert problem.cross_check(solution).agrees


def test_whole_tasks_leave_under_l21_norm_of_a_transpose():
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + lam * mtl.l21_norm(np.transpose(W)))
    largest = problem.lambda_max(lam)
    solutions = problem.path(lam, [0.3 * largest, 0.8 * largest])
    left = [set(np.flatnonzero(np.all(one.W == 0, axis=0)).tolist()) for one in solutions]
    assert left[0] < left[1] and 0 < len(left[1]) < 3
    assert all(one.status == "optimal" for one in solutions)


def test_a_ball_of_a_transpose():
    ball = mtl.l21_norm(W.T) <= 1.5
    problem = mtl.minimize(mtl.squared_loss(W, TASKS), subject_to=[ball])
    solution = problem.solve()
    assert ball.text == "l21_norm(W.T) <= 1.5" == parse_constraint("l21_norm(W.T) <= 1.5", NAMES).text
    assert solution.status == "optimal" and problem.cross_check(solution).agrees
    assert np.linalg.norm(solution.W, axis=0).sum() == pytest.approx(1.5, rel=1e-6)
    assert r"\|W^\top\|_{2,1} \leq 1.5" in problem.latex()
    assert "sum of the rows' Euclidean norms" in problem.latex(where=True)


def test_penalties_that_are_not_convex():
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + 0.3 * mtl.mcp(W.T), subject_to=[mtl.rank(W.T) <= 2])
    solution = problem.solve()
    assert solution.status == "stationary" and np.linalg.matrix_rank(solution.W, tol=1e-8) == 2


def test_a_wrong_word_for_a_transpose_is_found(monkeypatch):
    """The second evaluation reads the transpose as typed, not the word that it became."""
    monkeypatch.setattr(L21Norm, "of_transpose", lambda self, shape: self)
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + mtl.l21_norm(W.T))
    with pytest.raises(CrossCheckError, match=r"l21_norm\(W\.T\)"):
        problem.solve()


def test_latex_and_source_of_a_transpose():
    problem = mtl.minimize(mtl.squared_loss(W + V, TASKS) + lam * mtl.l21_norm((W + V).T) + mtl.ridge(V.T))
    assert str(problem).endswith("lam * l21_norm((W + V).T) + ridge(V.T)")
    assert r"\lambda \, \|(W + V)^\top\|_{2,1} + \tfrac12\|V^\top\|_F^2" in problem.latex()
    assert parse_objective(problem.objective.text, NAMES).text == problem.objective.text


@for_each("turned", [
    "l21_norm(W.T, weights=[1, 2, 3])", "group_norm(W.T, [[0, 1]])", "graph_laplacian(W.T, P)", "mean_regularizer(W.T)",
])  # fmt: skip
def test_a_proof_of_a_transpose_is_confirmed(turned, tmp_path):
    problem = mtl.minimize(objective(turned))
    verdict = mtl.verify_proof(problem.solve().certificate.save(tmp_path / "proof.npz"), problem)
    assert verdict.confirmed and verdict.model_is_named


def test_other_tasks_and_folds_of_a_transpose():
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + lam * mtl.l21_norm(W.T))
    solution = problem.solve()
    other = problem.with_tasks(mtl.Tasks.shared(-X, -Y, task_names=["red", "green", "blue"]))
    assert str(other) == str(problem)
    assert other.solve().objective == pytest.approx(solution.objective, rel=2e-6)
    found = problem.cross_validate(lam, [0.5, 500.0], folds=3)
    assert found.best_value == 0.5 and found.solution.status == "optimal"


WRONG = """
mtl.squared_loss(W.T, TASKS) | squared_loss(W.T) | one for every feature | write squared_loss(W, tasks)
mtl.l1_inf_norm(W.T) | l1_inf_norm(W.T) | no word for l1_inf_norm of a transpose | write l12_norm(W)
mtl.total_variation((W + V).T) | write l1_norm((W + V)[1:, :] - (W + V)[:-1, :])
mtl.tree_norm(W.T, columns=[[0], [0, 1]]) | tree_norm(W.T, columns=[[0], [0, 1]]) | write tree_norm(W, columns=groups)
mtl.mcp(W.T, rows=True) | mcp(W.T, rows=True) | write a word of W itself
mtl.log_rank(W.T) | log_rank(W.T) | write log_rank(W), of the same singular values
mtl.columns_on_simplex(W.T) | W >= 0 and W.sum(axis=1) == 1
mtl.feature_covariance_norm(W.T, None) | write task_covariance_norm(W, Omega)
mtl.mkl_norm(W.T, [mtl.similarities.union()], p=2) | write mkl_norm(W, similarities)
mtl.l21_norm(W, axis=0) | no parameter 'axis' | write l21_norm(W.T)
mtl.l21_norm(W.T, weights=[1, 2]) | l21_norm(W.T, weights=array(2)) | 2 weights for 3 rows
mtl.group_norm(W.T, [['x0']]) | group_norm(W.T) | no name 'x0' among red, green, blue
mtl.squared_trace_norm(W.T) <= 1 | squared_trace_norm(W.T) <= 1 | is not a norm
mtl.graph_laplacian(W.T, PATH) <= 1 | graph_laplacian is not a norm
2 * W.T | W.T | without * | write (c * W).T
W.T + V.T | W.T | without + | write (W + V).T
W + V.T | V.T | without + | write (V + V).T
1 - W.T | without - | write (W - V).T
W.T @ np.ones((5, 2)) | write (A.T @ W).T for W.T @ A
np.ones((2, 3)) @ W.T | write (W @ A.T).T for A @ W.T
W.T @ W | W.T | without @
W @ W.T | product of two unknowns
W.T[0, :] | write W[rows, tasks].T for W.T[tasks, rows]
W.T.sum(axis=0) | write W.sum(axis=1) for W.T.sum(axis=0)
W.T >= 0 | write W >= C.T for W.T >= C
np.ones((3, 5)) >= W.T | write W <= C.T
W.T == 0 | write W == C.T
W.T ** 2 | write ridge(W)
list(W.T) | cannot be iterated over | W[:, [0, 1]]
"""


@for_each("typed, said", mistakes(WRONG))
def test_a_wrong_transpose_says_what_to_write(typed, said):
    assert_refused(typed, said, globals(), mtl.MTLError)


@for_each(
    "text, said",
    [
        ("squared_loss(W.T, tasks)", "text:1:1: squared_loss(W.T): a loss takes one column"),
        ("squared_loss(W, tasks) + l1_norm(2 * W.T)", "text:1:34: W.T: a transpose stands alone"),
        (
            "squared_loss(W, tasks) + l1_norm(W).T",
            "text:1:26: .T belongs to an expression of weights, not to a sum",
        ),
        ("squared_loss(W, tasks) + l1_norm(W.H)", "only attributes in the language are .T, .sum(axis=...)"),
        ("W.T", "this is a transpose of weights"),
    ],
)
def test_a_wrong_transpose_in_text_is_placed(text, said):
    with pytest.raises(mtl.ModelError) as refusal:
        parse_objective(text, NAMES)
    assert said in str(refusal.value)
