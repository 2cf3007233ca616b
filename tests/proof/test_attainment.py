"""Models without a minimiser are named, with a direction that is checked here in rational numbers; others are not."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import mtldsl as mtl
from mtldsl.certificates.attainment import prove_unattained
from mtldsl.estimators import MultiTaskClassifier
from tests.loops import for_each
from tests.models import with_weights
from tests.pairs import pairwise_cases
from tests.proof.test_rank_deficient import BETWEEN


def data(seed=0, n=30, d=5, m=3):
    """Tasks 0 and 1 are separable, the last one is not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.where(X @ rng.normal(size=(d, m)) > 0, 1.0, -1.0)
    Y[:6, -1] *= -1
    return X, Y


def exactly(X, D, b=0.0):
    """X D + b in rational numbers."""
    X = X.toarray() if sparse.issparse(X) else X
    return [
        sum(
            (Fraction(float(x)) * Fraction(float(v)) for x, v in zip(row, D, strict=True)), Fraction(float(b))
        )
        for row in X
    ]


def is_direction(X, y, D, b=0.0):
    margins = [Fraction(float(s)) * z for s, z in zip(y, exactly(X, D, b), strict=True)]
    return min(margins) >= 0 and max(margins) > 0


@pytest.mark.slow
@for_each(
    "word, intercept, layout",
    pairwise_cases(
        ["logistic_loss", "exponential_loss"], [False, True], ["shared", "sparse", "weights", "separate"]
    ),
)
def test_separable_tasks_are_named_and_others_are_not(word, intercept, layout):
    X, Y = data()
    if layout == "separate":
        tasks = mtl.Tasks.separate([X[: 20 + i] for i in range(3)], [Y[: 20 + i, i] for i in range(3)])
    else:
        weights = np.random.default_rng(1).uniform(0.1, 3.0, size=len(X)) if layout == "weights" else None
        tasks = mtl.Tasks.shared(sparse.csr_matrix(X) if layout == "sparse" else X, Y, sample_weights=weights)
    W = mtl.Weights(tasks, intercept=intercept)
    found = mtl.minimize(getattr(mtl, word)(W, tasks)).solve()
    assert found.unattained is not None and found.status in ("unattained", "optimal")
    assert found.unattained.tasks == tuple(tasks.task_names[:2])
    assert found.unattained.completely == (True, True) and found.unattained.everywhere
    D = found.unattained.direction["W"]
    b = found.unattained.direction["W.intercept"][0] if intercept else np.zeros(3)
    for i in range(2):
        assert is_direction(tasks.inputs[i], tasks.per_task(tasks.targets)[i], D[:, i], b[i])
    assert not D[:, 2].any() and b[2] == 0.0
    assert "task0" in found.note and "ridge" in found.note
    assert np.abs(found.W).max() < 1e4


@pytest.mark.slow
@for_each("seed", range(3))
def test_quasi_separation_is_proven_in_rational_numbers(seed):
    """A feature that only positives have: the others are not separated, and nothing moves them."""
    X, Y = data(seed)
    y = Y[:, 2]
    X = np.column_stack([X, np.where((y > 0) & (np.arange(len(y)) % 3 == 0), 1.0, 0.0)])
    tasks, W = with_weights(mtl.Tasks.shared(X, y[:, None]))
    found = mtl.minimize(mtl.logistic_loss(W, tasks)).solve().unattained
    form = mtl.minimize(mtl.logistic_loss(W, tasks)).form()
    found = found or prove_unattained(form, {"W": np.vstack([np.zeros((5, 1)), [[20.0]]])})
    assert found is not None and found.completely == (False,)
    assert is_direction(X, y, found.direction["W"][:, 0])
    assert "falls for ever as weights grow" in str(found)


def test_what_charges_for_weights_makes_a_minimum():
    X, Y = data()
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    loss = mtl.logistic_loss(W, tasks)
    far = {"W": 1e3 * mtl.minimize(loss + 1e-3 * mtl.ridge(W)).solve().W}
    for problem in (
        mtl.minimize(loss + 1e-6 * mtl.ridge(W)),
        mtl.minimize(loss + 1e-6 * mtl.l1_norm(W)),
        mtl.minimize(loss + 1e-3 * mtl.log_rank(W, eps=0)),
        mtl.minimize(loss, subject_to=[mtl.frobenius_norm(W) <= 10]),
        mtl.minimize(mtl.hinge_loss(W, tasks)),
        mtl.minimize(mtl.squared_hinge_loss(W, tasks)),
        mtl.minimize(loss + mtl.squared_loss(W, tasks)),
    ):
        assert prove_unattained(problem.form(), far) is None
    assert prove_unattained(mtl.minimize(loss).form(), far) is not None
    assert (
        prove_unattained(mtl.minimize(loss).form(), {"W": np.zeros_like(far["W"])}) is None
    )  # nothing runs away


def test_bounds_on_the_side_where_the_loss_falls_do_not_hold_it():
    """With W >= 0 a direction has to be >= 0 too; a penalty of some features leaves the others free."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(30, 4)))
    X[:, 3] = rng.normal(size=30)
    y = np.where(X[:, 3] > 0, 1.0, -1.0)[:, None]
    tasks, W = with_weights(mtl.Tasks.shared(X, y))
    loss, far = mtl.logistic_loss(W, tasks), {"W": np.array([[0.0], [0.0], [0.0], [1e4]])}
    above = prove_unattained(mtl.minimize(loss, subject_to=[W >= 0]).form(), far)
    assert above is not None and np.all(above.direction["W"] >= 0)
    assert prove_unattained(mtl.minimize(loss, subject_to=[W <= 0]).form(), far) is None
    kept = prove_unattained(mtl.minimize(loss + mtl.l1_norm(W[:3])).form(), far)
    assert kept is not None and not kept.direction["W"][:3].any()
    assert prove_unattained(mtl.minimize(loss + mtl.l1_norm(W[2:])).form(), far) is None


def test_a_part_of_a_sum_that_nothing_charges_for():
    X, Y = data()
    tasks = mtl.Tasks.shared(X, Y)
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    loss = mtl.logistic_loss(L + S, tasks)
    far = {
        "L": 1e3 * mtl.minimize(loss + mtl.l1_norm(S) + 1e-3 * mtl.ridge(L)).solve().L,
        "S": np.zeros((5, 3)),
    }
    found = prove_unattained(mtl.minimize(loss + mtl.l1_norm(S)).form(), far)
    assert found is not None and found.tasks == ("task0", "task1") and not found.direction["S"].any()
    assert prove_unattained(mtl.minimize(loss + mtl.l1_norm(S) + 1e-6 * mtl.ridge(L)).form(), far) is None


@pytest.mark.slow
@pytest.mark.parametrize("which", ["capped", "rank"])
def test_bounded_penalties_that_are_not_convex(which):
    """Along the weights themselves, from where they are, the objective falls for ever."""
    X, Y = data(d=8, m=4)
    tasks, W = with_weights(mtl.Tasks.shared(X, Y[:, :3]))
    loss = mtl.logistic_loss(W, tasks)
    problem = (
        mtl.minimize(loss + mtl.capped_trace_norm(W, tau=0.5))
        if which == "capped"
        else mtl.minimize(loss, subject_to=[mtl.rank(W) <= 2])
    )
    found = problem.solve(max_iter=3000)
    assert found.status == "unattained" and not found.unattained.everywhere
    assert "along the ray" in found.note
    form, D = problem.form(), found.unattained.direction["W"]
    values = [form.value({"W": found.W + t * D}) for t in (0.0, 0.1, 1.0, 10.0)]
    assert np.all(np.diff(values[:3]) < 0) and values[3] <= values[2]
    assert form.violation({"W": found.W + 10.0 * D}) <= 1e-8


@for_each("strength, runs_away", [(1.0, True), (61.0, False)])
def test_no_ray_above_weights_of_zero_is_the_infimum(strength, runs_away):
    X, Y = data()
    tasks, W = with_weights(mtl.Tasks.shared(X, Y[:, :2]))
    form = mtl.minimize(mtl.logistic_loss(W, tasks) + strength * mtl.capped_trace_norm(W, tau=1.0)).form()
    far = mtl.minimize(mtl.logistic_loss(W, tasks)).solve().W
    assert (prove_unattained(form, {"W": far}) is not None) == runs_away


@pytest.mark.slow
@for_each("which", ["all", "some", "capped", "poisson"])
def test_the_limit_is_the_objective_along_the_direction(which):
    X, Y = data()
    Y = Y[:, :2] if which in ("all", "capped") else Y
    tasks = mtl.Tasks.shared(X, Y)
    if which == "poisson":
        counts = np.zeros((30, 2))
        counts[:, 1] = np.arange(30) % 4
        tasks = mtl.Tasks.shared(np.abs(X), counts)
    W = mtl.Weights(tasks)
    terms = mtl.poisson_loss(W, tasks) if which == "poisson" else mtl.logistic_loss(W, tasks)
    if which == "capped":
        terms = terms + mtl.capped_trace_norm(W, tau=1.0)
    problem = mtl.minimize(terms)
    found = problem.solve()
    away, form = found.unattained, problem.form()
    values = [form.value({"W": found.W + t * away.direction["W"]}) for t in (0.0, 1.0, 1e2, 1e4, 1e6)]
    assert np.all(np.diff(values) <= 1e-9) and away.limit <= values[0]
    assert values[-1] == pytest.approx(away.limit, rel=1e-9, abs=1e-9)
    assert f"at most {away.limit:.6g}" in found.note
    assert found.dual_bound <= away.limit
    if which == "all":
        assert away.limit == found.dual_bound == 0.0


def in_common(intercept, d=9, n=8, apart=False):
    """Three tasks that one direction separates; `apart`: the last one with the labels that it has not."""
    rng = np.random.default_rng(4)
    X, w = [rng.normal(size=(n, d)) for _ in range(3)], rng.normal(size=d) * (np.arange(d) > 1)
    labels = [np.where(part @ w > 0, 1.0, -1.0) for part in X]
    if apart:
        X[2], labels[2] = X[0], -labels[0]
    tasks = mtl.Tasks.separate(X, labels)
    return tasks, mtl.Weights(tasks, intercept=intercept)


@pytest.mark.slow
@for_each(
    "between, intercept, word",
    pairwise_cases(
        ["mean", "pair", "variation", "differences", "some rows", "both"],
        [False, True],
        ["logistic_loss", "exponential_loss"],
    ),
)
def test_tasks_that_are_separated_together_are_named(between, intercept, word):
    """Penalties between tasks leave them a direction in common: such runs went on to their time limit."""
    tasks, W = in_common(intercept)
    found = mtl.minimize(getattr(mtl, word)(W, tasks) + 0.5 * BETWEEN[between](W)).solve()
    assert found.status == "unattained" and found.unattained.tasks == tasks.task_names
    D = found.unattained.direction["W"]
    b = found.unattained.direction["W.intercept"][0] if intercept else np.zeros(3)
    form = mtl.minimize(getattr(mtl, word)(W, tasks) + BETWEEN[between](W)).form()
    assert sum(f.value({"W": D}) for f in form.functions) <= 1e-14
    for i in range(3):
        assert is_direction(tasks.inputs[i], tasks.per_task(tasks.targets)[i], D[:, i], b[i])


@for_each("between", ["mean", "variation", "both"])
def test_tasks_separated_one_by_one_alone_have_a_minimiser(between):
    """Labels of the last task contradict those of the first in every direction that the two have in common."""
    tasks, W = in_common(False, apart=True)
    found = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.5 * BETWEEN[between](W)).solve()
    assert found.unattained is None and found.status == "optimal"


@for_each("shares", [(1.0 + 1e-10, -1.0), (1.0 + 1e-14, -1.0), (3.0, -1.0)])
def test_tasks_that_a_penalty_nearly_leaves_have_a_minimiser(shares):
    """The penalty sees a little of the direction in common, or thrice an input is rounded to where two inputs look alike."""
    unit = 2.0**-52
    near = np.array([[1.5 + 2 * unit, 1.5 + 3 * unit], [-1.0, 0.0]])
    X = [np.array([[1.0, 1.0], [1.0, 0.0]]), near] if shares[0] == 3.0 else [np.array([[1.0], [-1.0]])] * 2
    labels = [np.array([-1.0, 1.0]), np.array([1.0, -1.0])]
    labels = labels if shares[0] == 3.0 else labels[1:] * 2
    tasks, W = with_weights(mtl.Tasks.separate(X, labels))
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W @ np.array(shares)[:, None]))
    away = {"W": np.outer(np.array([40.0, -40.0])[: X[0].shape[1]], [1.0, shares[0]])}
    assert prove_unattained(problem.form(), away) is None


def is_separable(X, side, charged):
    """Some D, zero where charged, lets no loss rise and one fall: side 0 asks for <x, D> = 0, else side <x, D> >= 0."""
    X = X[:, ~charged]
    n, d = X.shape
    moves = side != 0
    if d == 0 or not moves.any():
        return False
    signed, k = side[moves, None] * X[moves], int(moves.sum())
    still = np.hstack([X[~moves], np.zeros((n - k, k))]) if k < n else None
    found = linprog(
        np.r_[np.zeros(d), -np.ones(k)], A_ub=np.hstack([-signed, np.eye(k)]), b_ub=np.zeros(k), A_eq=still,
        b_eq=None if still is None else np.zeros(n - k), bounds=[(-1e3, 1e3)] * d + [(0, 1)] * k,
    )  # fmt: skip
    return -found.fun > 0.5


HELD = ["free", "l1 on two rows", "ridge", "box"]
LOSSES = ["logistic_loss", "exponential_loss", "poisson_loss", "squared_hinge_loss"]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@for_each("turn", [0, 1])
def test_the_verdict_is_that_of_a_separation_program(loss, turn):
    """Whole numbers as inputs, so that what stays where it is does so exactly; with intercepts, sample weights, several tasks."""
    rng, k = np.random.default_rng(0), LOSSES.index(loss)
    held, verdicts = HELD[(k + turn * (2 - k % 2)) % 4], set()
    for k in range(14):
        n, d, m, intercept = int(rng.integers(5, 16)), int(rng.integers(2, 5)), int(rng.integers(1, 3)), k % 2
        X = rng.integers(-3, 4, size=(n, d)).astype(float)
        Z = X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m))
        Y = rng.poisson(np.exp(np.clip(Z - 1, -3, 2))).astype(float)
        if loss != "poisson_loss":
            Y = np.where(np.median(Z, axis=0) < Z, 1.0, -1.0)
        tasks = mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.2, 5.0, n) if k % 3 == 0 else None)
        W = mtl.Weights(tasks, intercept=bool(intercept))
        objective, limits, charged = getattr(mtl, loss)(W, tasks), [], np.zeros(d + intercept, bool)
        if held == "l1 on two rows":
            objective, charged[:2] = objective + 1e-2 * mtl.l1_norm(W[:2]), True
        elif held == "ridge":
            objective, charged[:d] = objective + 1e-2 * mtl.ridge(W), True
        elif held == "box":
            limits, charged[:d] = [W <= 3, W >= -3], True
        inputs = np.hstack([X, np.ones((n, intercept))])
        truth = loss != "squared_hinge_loss" and any(
            is_separable(inputs, np.where(y == 0, -1.0, 0.0) if loss == "poisson_loss" else y, charged)
            for y in Y.T
        )
        found = mtl.minimize(objective, subject_to=limits).solve()
        assert found.status == ("unattained" if truth else "optimal"), (k, found)
        assert truth == (found.unattained is not None)
        verdicts.add(truth)
    if held != "l1 on two rows":
        assert verdicts == ({True, False} if held == "free" and loss != "squared_hinge_loss" else {False})


def test_who_says_that_weights_grow_for_ever(tmp_path):
    X = np.arange(10.0)[:, None]
    tasks = mtl.Tasks.shared(X, np.where(X > 4.5, 1.0, -1.0))
    problem = mtl.minimize(mtl.logistic_loss(mtl.Weights(tasks, intercept=True), tasks))
    solution = problem.solve()
    assert solution.status == "unattained" and not solution.is_certified
    assert "no weights attain the infimum" in str(solution) and "ridge(W)" in str(solution)
    check = problem.cross_check(solution)
    assert check.agrees and "no weights are best, so that each side stops" in check.notes[0]
    page = solution.report(tmp_path / "page.html", bootstrap=0).read_text("utf-8")
    assert "No weights attain the infimum: task" in page and "ended before the proof" not in page
    with pytest.warns(ConvergenceWarning, match="unattained"):
        MultiTaskClassifier("logistic_loss(W, tasks)").fit(X, (X[:, 0] > 4.5).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultiTaskClassifier("logistic_loss(W, tasks) + 0.1 * ridge(W)").fit(X, (X[:, 0] > 4.5).astype(int))


def test_a_perfect_order_of_times_has_no_best_weights():
    """Events at one time are at risk together, and a row that is censored before the first event tells nothing."""
    for times, away in (
        ([6, 5, -4, 3, 2, -1], True),
        ([6, 5, -4, 2, 3, -1], False),
        ([6, 5, 4, 3, 3, 1], False),
    ):
        tasks = mtl.Tasks.shared(np.arange(6.0)[:, None], np.array(times, float))
        found = mtl.minimize(mtl.cox_loss(mtl.Weights(tasks), tasks)).solve()
        assert found.status == ("unattained" if away else "optimal"), times
        assert not away or (found.unattained.completely == (True,) and found.unattained.limit == 0.0)


def test_separated_tied_tasks_are_proven_where_routes_stall():
    """Total variation leaves a direction of all tasks free. No route gets on there, and none may run until its last iteration."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((50, 40)), axis=1) / np.sqrt(np.arange(1, 41))
    Z = X @ (rng.standard_normal((40, 1)) + 0.3 * rng.standard_normal((40, 6)))
    tasks = mtl.Tasks.shared(X, np.where(np.median(Z) < Z, 1, -1))
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.5 * mtl.total_variation(W)).solve()
    assert solution.status == "unattained" and solution.iterations < 2000
