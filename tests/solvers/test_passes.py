"""Rows that are elsewhere: the same optimum as with the rows here, with a proof, in a few passes."""

from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.errors import ModelError
from tests.loops import for_each

PARTS = 4


def tables(kind: str, labels: str):
    """In-memory tasks of some layout."""
    rng = np.random.default_rng(3)
    n, d, m = 240, 6, 3
    X = rng.normal(size=(n, d)) * np.linspace(0.3, 2.0, d) + 0.5
    Y = X @ rng.normal(size=(d, m)) + 0.3 + rng.normal(size=(n, m))
    Y = np.where(Y > 0.0, 1.0, -1.0) if labels == "sign" else Y
    if kind == "missing":
        Y[rng.random(Y.shape) < 0.2] = np.nan
    if kind == "weights":
        return mtl.Tasks.shared(X, Y, sample_weights=0.5 + rng.random(n))
    if kind == "grouped":
        return mtl.Tasks.grouped(X, Y[:, 0], rng.permutation(np.repeat(np.arange(8), n // 8)))
    if kind == "sparse":
        return mtl.Tasks.shared(sparse.csr_array(X * (rng.random(X.shape) < 0.4)), Y)
    return mtl.Tasks.shared(X, Y)


def chain(m: int) -> np.ndarray:
    A = np.eye(m, k=1) + np.eye(m, k=-1)
    return np.diag(A.sum(axis=1)) - A


def stated(tasks, words: str, intercept: bool = False, constraint: str = ""):
    W = mtl.Weights(tasks, intercept=intercept)
    names = vars(mtl) | vars(mtl.metrics) | vars(mtl.similarities) | {"W": W, "tasks": tasks, "chain": chain}
    subject_to = [eval(one, names) for one in constraint.split(";") if one]
    return mtl.minimize(eval(words, names), subject_to=subject_to)


def solved(tasks, words: str, intercept: bool, constraint: str = "", **options):
    return stated(tasks, words, intercept, constraint).solve(**options)


SQUARES = [
    "squared_loss(W, tasks) + 5 * l21_norm(W)",
    "squared_loss(W, tasks, mean=True) + .1 * trace_norm(W)",
    "square_root_loss(W, tasks) + .5 * l1_norm(W)",
    "sum_of_squares(W, tasks) + 2 * ridge(W)",
]
SMOOTH = [
    "logistic_loss(W, tasks) + 3 * l21_norm(W)",
    "logistic_loss(W, tasks, mean=True) + .01 * ridge(W)",
    "squared_hinge_loss(W, tasks) + 2 * trace_norm(W)",
]
KINKS = ["hinge_loss(W, tasks) + 3 * l21_norm(W)", "hinge_loss(W, tasks) + ridge(W)"]
AREA = "structured_hinge(W, tasks, metric=AUC()) + .1 * l21_norm(W)"
LAYOUTS = ["table", "missing", "weights", "grouped", "sparse"]


@pytest.mark.slow
@for_each("intercept", [False, True])
@for_each("words", SQUARES)
@for_each("kind", LAYOUTS)
def test_squares_take_one_pass(kind, words, intercept):
    tasks = tables(kind, "real")
    away = DistributedTasks.cut(tasks, PARTS)
    before = away.parts.passes
    there, here = (solved(one, words, intercept, tol=1e-9) for one in (away, tasks))
    assert there.status == "optimal" and there.gap <= 1e-9
    assert away.parts.passes == before + 1
    np.testing.assert_allclose(there.objective, here.objective, rtol=2e-9)
    np.testing.assert_allclose(there.W, here.W, atol=1e-4)
    if intercept:
        np.testing.assert_allclose(there.intercept, here.intercept, atol=1e-4)


@pytest.mark.slow
@for_each(
    "kind, words, intercept", zip(cycle(LAYOUTS), SMOOTH + KINKS + SMOOTH, cycle([True, False]), strict=False)
)
def test_a_pass_an_iteration(kind, words, intercept):
    tasks = tables(kind, "sign")
    away = DistributedTasks.cut(tasks, PARTS)
    there = solved(away, words, intercept, tol=1e-5, max_iter=120)
    here = solved(tasks, words, intercept, tol=1e-9)
    assert there.status == "optimal" and abs(there.gap) <= 1e-5
    assert abs(there.objective - here.objective) <= 1e-5 * abs(here.objective)
    assert len(there.history) > 5 and away.parts.passes <= (60 if words in SMOOTH else 120)
    for look in there.history:
        assert look["dual_bound"] <= here.objective * (1 + 1e-9) <= look["objective"] * (1 + 2e-9)


@pytest.mark.slow
@for_each(
    "words", [SQUARES[0], "absolute_loss(W, tasks) + 4 * l1_norm(W)", "huber_loss(W, tasks) + l1_norm(W)"]
)
def test_constraints(words):
    tasks = tables("table", "real")
    there, here = (
        solved(one, words, True, "W >= 0", tol=1e-5) for one in (DistributedTasks.cut(tasks, PARTS), tasks)
    )
    assert there.status == "optimal" and there.violation <= 1e-5
    np.testing.assert_allclose(there.objective, here.objective, rtol=2e-5)


@for_each(
    "kind, loss",
    [("table", mtl.squared_loss), ("weights", mtl.logistic_loss), ("table", mtl.structured_hinge)],
)
def test_paths_and_critical_values(kind, loss):
    tasks = tables(kind, "real" if loss is mtl.squared_loss else "sign")
    away, tops, paths = DistributedTasks.cut(tasks, PARTS), [], []
    metric = {"metric": mtl.metrics.AUC()} if loss is mtl.structured_hinge else {}
    for one in (away, tasks):
        lam = mtl.Parameter(1.0, name="lam")
        W = mtl.Weights(one, intercept=not metric)
        problem = mtl.minimize(loss(W, one, **metric) + lam * mtl.l21_norm(W))
        tops.append(float(problem.lambda_max(lam)))
        if loss is mtl.squared_loss:
            path = problem.path(lam, [tops[0], 0.3 * tops[0], 0.1 * tops[0]], tol=1e-9)
            paths.append([s.objective for s in path])
            assert away.parts.passes <= 4  # labels, the slope at zero, second moments: those of one value
    np.testing.assert_allclose(*tops, rtol=1e-9)
    assert not paths or paths[0] == pytest.approx(paths[1], rel=1e-8)


@for_each(
    "loss, told, untold",
    [
        (mtl.squared_loss, ["second moments"], "multipliers stay there"),
        (mtl.absolute_loss, ["multipliers stay there"], "second moments"),
        (mtl.logistic_loss, ["majorization", "elsewhere"], "second moments"),
    ],
)
def test_who_takes_it_and_what_moves(loss, told, untold):
    here, said = tables("missing", "sign" if loss is mtl.logistic_loss else "real"), []
    for one in (DistributedTasks.cut(here, PARTS), here):
        W = mtl.Weights(one)
        said.append(" ".join(str(mtl.minimize(loss(W, one) + mtl.ridge(W)).explain()).split()))
    assert "are in 4 parts (this process, workers: 1)" in said[0] and untold not in said[0]
    assert all(words in said[0] for words in told)
    assert "elsewhere" not in said[1] and "Rows:" not in said[1]


def test_refusals_say_why():
    away = DistributedTasks.cut(tables("table", "sign"), PARTS)
    with pytest.raises(ModelError, match=r"structured_hinge.* would need all rows of a task at once"):
        stated(away, AREA).solve(solver="newton_by_passes")
    with pytest.raises(ModelError, match="the rows of logistic_loss"):
        stated(away, SMOOTH[1]).solve(solver="admm")


def test_nothing_as_long_as_the_data_is_in_a_solution(tmp_path):
    tasks = tables("table", "real")
    solution = solved(DistributedTasks.cut(tasks, PARTS), SQUARES[2], True, tol=1e-8)
    assert "square_root_loss(W, tasks)" not in solution.multipliers
    here = solved(tasks, SQUARES[2], True, tol=1e-8)
    np.testing.assert_allclose(solution.noise_levels, here.noise_levels, rtol=1e-5)
    solution.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(mtl.Solution.load(tmp_path / "model.npz").W, solution.W)


@pytest.mark.by_default("squared_loss(W, tasks) + 5 * l21_norm(W)")
@pytest.mark.parametrize("words", [SQUARES[0], SMOOTH[0], KINKS[0], AREA])
def test_the_reference_agrees_on_rows_that_are_drawn(words):
    tasks = tables("missing", "real" if words in SQUARES else "sign")
    problem = stated(DistributedTasks.cut(tasks, PARTS), words, True)
    solution = problem.solve(tol=1e-6)
    check = problem.cross_check(solution, max_size=600)
    assert check.agrees, str(check)
    assert "drawn where the rows are" in str(check) and check.solver == solution.solver


@for_each("name, given", [("NC-CMTL", {"mu": 1.0}), ("FETR", {})])
def test_models_that_are_not_convex(name, given):
    tasks = tables("grouped", "real")
    away = DistributedTasks.cut(tasks, PARTS)
    there, here = (mtl.model(name, one, **given).solve() for one in (away, tasks))
    assert there.status == here.status == "stationary"
    np.testing.assert_allclose(there.objective, here.objective, rtol=1e-7)


@pytest.mark.slow
@for_each("kind", ["table", "missing", "grouped"])
def test_hessians_of_many_rows_are_estimated_by_some_of_them(kind):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12_000, 4))
    Y = np.where(X @ rng.normal(size=(4, 3)) + rng.normal(size=(12_000, 3)) > 0.0, 1.0, -1.0)
    if kind == "missing":
        Y[rng.random(Y.shape) < 0.3] = np.nan
    ids = np.arange(12_000) % 3
    tasks = mtl.Tasks.grouped(X, Y[:, 0], ids) if kind == "grouped" else mtl.Tasks.shared(X, Y)
    away = DistributedTasks.cut(tasks, PARTS)
    found = solved(away, "logistic_loss(W, tasks) + 40 * l21_norm(W)", True, tol=1e-8)
    here = solved(tasks, "logistic_loss(W, tasks) + 40 * l21_norm(W)", True, tol=1e-8)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(here.objective, rel=2e-8)
    assert away.parts.passes <= 60  # what is promised to 1e-6; 16 to 30 were seen, by the make of processor
