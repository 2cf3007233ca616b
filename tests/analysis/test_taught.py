"""Values, bounds and conditions that somebody computed by hand."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5))
NUMBERS = mtl.Tasks.shared(X, X @ RNG.normal(size=(5, 3)) + RNG.normal(size=(30, 3)))
SIGNS = mtl.Tasks.shared(X, np.sign(X @ RNG.normal(size=(5, 2)) + RNG.normal(size=(30, 2))))
GAPS = mtl.Tasks.shared(X, np.where(RNG.uniform(size=(30, 3)) < 0.2, np.nan, RNG.normal(size=(30, 3))))


def lasso(tasks, loss=mtl.squared_loss, norm=mtl.l1_norm, **weights):
    W = mtl.Weights(tasks, **weights)
    return mtl.minimize(loss(W, tasks) + 2.0 * norm(W))


def test_multipliers_of_the_wrong_sign_are_recognised():
    problem = lasso(NUMBERS)
    solution = problem.solve(
        tol=1e-10
    )  # of multipliers that leave the dual ball only their zero multiple is tried
    right = solution.multipliers
    assert not problem.check_bound(right).hint
    check = problem.check_bound({name: -one for name, one in right.items()}, repair=True)
    assert check.holds and check.value < 0
    assert "u = 0 proves more, 0. -u proves" in check.hint and check.hint in str(check)
    assert "All were multiplied by 0, the multiple that proves most." in check.repairs
    margins = lasso(mtl.Tasks.shared(X, np.sign(NUMBERS.targets.reshape(3, -1).T)), mtl.logistic_loss)
    wrong = {name: -one for name, one in margins.solve(tol=1e-8).multipliers.items()}
    check = margins.check_bound(wrong)  # outside the domain of the conjugate
    assert not check.holds and "-u lies in the domain" in check.hint


def test_a_value_is_the_objective_and_infinite_outside():
    problem = lasso(NUMBERS)
    W = RNG.normal(size=(5, 3))
    by_hand = 0.5 * np.sum((X @ W - NUMBERS.targets.reshape(3, -1).T) ** 2) + 2.0 * np.abs(W).sum()
    assert problem.value(W) == pytest.approx(by_hand)
    solution = problem.solve()
    assert problem.value(solution) == pytest.approx(solution.objective)
    V = mtl.Weights(NUMBERS)
    bounded = mtl.minimize(mtl.squared_loss(V, NUMBERS), subject_to=[V >= 0])
    assert bounded.value(-np.ones((5, 3))) == np.inf and np.isfinite(bounded.value(np.ones((5, 3))))
    nearly = np.where(np.arange(5)[:, None] == 2, -1e-8, np.ones((5, 3)))
    assert np.isfinite(bounded.value(nearly)) and bounded.value(nearly, tol=0.0) == np.inf
    moved = lasso(NUMBERS, intercept=True)
    assert moved.value({"W": W, "W.intercept": np.zeros(3)}) == moved.value(W)  # which are zero unless given
    assert moved.value({"W": W, "W.intercept": np.ones(3)}) != moved.value(W)
    assert problem.value(np.full((5, 3), 1e200)) == np.inf


@for_each("shape", ["flat", "list", "table"])
def test_multipliers_come_in_three_shapes(shape):
    problem = lasso(GAPS)
    solution = problem.solve(tol=1e-10)
    (u,) = [solution.multipliers[name] for name in solution.multipliers if name.startswith("squared")]
    if shape == "list":
        u = GAPS.per_task(u)
    if shape == "table":
        flat, u = u, np.zeros((30, 3))
        u.T[GAPS.mask.T] = flat
    check = problem.check_bound(u, repair=True)
    assert check.repaired == pytest.approx(solution.objective, rel=1e-6)
    # just inside the dual ball, where rounding does not decide
    inside = [0.999 * one for one in u] if shape == "list" else 0.999 * u
    assert 0.99 * solution.objective < problem.dual_value(inside) <= solution.objective


def of_dual_norm(size):
    u = np.random.default_rng(1).normal(size=NUMBERS.n_samples) - NUMBERS.targets
    return u * (size / np.abs(X.T @ u.reshape(3, -1).T).max())


def test_a_feasible_point_is_a_bound_by_the_formula():
    """Half of what is feasible is feasible, and the dual value is what the textbook says."""
    problem, y, u = lasso(NUMBERS), NUMBERS.targets, of_dual_norm(0.5 * 2.0)
    check = problem.check_bound(u)
    assert check.holds and check.value == pytest.approx(-0.5 * u @ u - u @ y)
    assert check.value <= problem.solve().objective
    assert problem.dual_value(u) == check.value


def test_a_dual_norm_that_is_too_large_is_named():
    problem = lasso(NUMBERS)
    check = problem.check_bound(of_dual_norm(3.0 * 2.0), repair=True)
    failed = [one for one in check.conditions if not one.holds]
    assert [one.what for one in failed] == ["multipliers of 2 * l1_norm(W): their dual norm is at most 2"]
    assert "a dual norm of 6" in failed[0].where and check.value == -np.inf
    assert "All were multiplied by 0.33" in str(check) and check.repaired <= problem.solve().objective


def test_a_multiplier_outside_its_domain_is_named_with_its_row():
    problem = lasso(SIGNS, mtl.hinge_loss)
    u = np.zeros(SIGNS.n_samples)
    u[SIGNS.offsets[1] + 7] = 5.0 * SIGNS.targets[SIGNS.offsets[1] + 7]  # of the wrong sign
    check = problem.check_bound(u)
    failed = next(one for one in check.conditions if "domain" in one.what and "hinge" in one.what)
    assert not failed.holds
    assert failed.where == "task 'task1', row 7" and not check.holds


def test_with_an_intercept_multipliers_add_up_to_zero():
    problem = lasso(NUMBERS, intercept=True)
    u = 1e-3 * RNG.normal(size=NUMBERS.n_samples)
    check = problem.check_bound(u, repair=True)
    failed = [one.what for one in check.conditions if not one.holds]
    assert failed == ["stationary in W.intercept: multipliers of every task add up to 0"]
    assert any("shifted" in one for one in check.repairs) and np.isfinite(check.repaired)
    centred = u - np.repeat(np.add.reduceat(u, NUMBERS.offsets[:-1]) / NUMBERS.counts, NUMBERS.counts)
    assert problem.check_bound(centred).holds


@for_each("size", [1e8, 1e10, 1e12, 1e15])
def test_multipliers_that_cancel_prove_what_rounding_leaves(size):
    """Two constraints that say the same have opposite multipliers, however large: 1 is left of them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=(10, 1))
    tasks, W = with_weights(mtl.Tasks.shared(X, y))
    problem = mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[W == 1, W[:1] == 1])
    whole, row = (f.typed for f in problem.form().functions)
    u = X.sum(axis=1, keepdims=True) - y
    own = -(X.T @ u) + [[size], [0.0]]
    check = problem.check_bound(u[:, 0], {whole: own, row: np.array([[-size - 1.0]])}, repair=True)
    assert max(check.value, check.repaired) <= 0.5 * np.square(u).sum() * (1 + 1e-9), check


@for_each("loss", [mtl.hinge_loss, mtl.logistic_loss, mtl.squared_hinge_loss])
@for_each("norm", [mtl.ridge, mtl.l1_norm, mtl.trace_norm])
def test_multipliers_far_outside_prove_nothing_false(loss, norm):
    """However large they are, what they prove once they are mended is below the optimum, and of one size for bounded domains."""
    problem, u = lasso(SIGNS, loss, norm), np.random.default_rng(0).normal(size=SIGNS.n_samples)
    optimum = problem.solve(tol=1e-8).objective
    for size in (1e12, 1e18, 1e30, 1e90):
        assert problem.check_bound(size * u, repair=True).repaired <= optimum * (1.0 + 1e-9)


def test_conditions_say_where_the_gap_is():
    problem = lasso(SIGNS, mtl.logistic_loss, mtl.l21_norm, intercept=True)
    for tol in (1e-2, 1e-9):
        solution = problem.solve(tol=tol)
        found = problem.conditions(solution)
        assert sum(row[4] for row in found.terms) == pytest.approx(solution.gap.absolute, rel=1e-6, abs=1e-9)
        assert found.hold and all(left < 1e-8 for _, left in found.equations)
    assert "logistic_loss(W, tasks)" in str(found) and "stationary in W.intercept" in str(found)
    assert "Optimality conditions" in found._repr_html_() and "nothing proven" not in found._repr_html_()


NAN = np.where(np.arange(90).reshape(30, 3) == 13, np.nan, 0.0)


@for_each("ask, words", [
    (lambda p: p.check_bound(NAN), "task 'task1', row 4 is nan"),
    (lambda p: p.check_bound(np.ones(7)),
     r"u has shape \(7,\); multipliers of squared_loss\(W, tasks\) are \(90,\), a list of one vector a task, or \(30, 3\)"),
    (lambda p: p.check_bound([np.ones(30), np.ones(30), np.ones(29)]),
     "task 'task2' has 30 rows, and 29 multipliers are given"),
    (lambda p: p.check_bound([np.ones(30)] * 2), "3 tasks, and the list has 2 vectors"),
    (lambda p: p.check_bound({f"task{i}": np.ones(30) for i in range(3)}),
     "'task0' is a task; write a list"),
    (lambda p: p.check_bound({"hinge": np.ones(90)}), "there is no loss 'hinge'"),
    (lambda p: p.check_bound("u"), "check_bound: u"),
    (lambda p: p.check_bound(np.full(90, 1e300)),
     r"task 'task0', row 0 is 1e\+300; write finite numbers up to 1e\+100"),
    (lambda p: p.check_bound(np.zeros(90), {"2 * l1_norm(W)": np.full((5, 3), np.nan)}),
     r"l1_norm\(W\): the entry at \(0, 0\) is nan"),
    (lambda p: p.value(np.full((5, 3), np.inf)), r"value: W: the entry at \(0, 0\) is inf; write finite"),
    (lambda p: p.value(np.ones((3, 4))), r"W has shape \(3, 4\); it must be \(5, 3\)"),
    (lambda p: p.value(np.ones((3, 5))), r"a row a feature, a column a task; write the transpose, \.T"),
    (lambda p: p.value({"V": np.ones((5, 3))}), "there is no block 'V'; this model has 'W'"),
    (lambda p: p.value({}), "the block 'W' is not given"),
    (lambda p: p.value(np.ones((5, 3)), tol="x"), r"value\(W, tol='x'\)"),
    (lambda p: p.conditions(np.ones((5, 3))), r"not a solution with a certificate.*check_bound"),
    (lambda p: lasso(NUMBERS, intercept=True).value((np.ones((5, 3)), np.ones(3))),
     r"write \{'W': \.\.\., 'W\.intercept': \.\.\.\}"),
    (lambda p: lasso(NUMBERS, norm=mtl.log_rank).check_bound(np.zeros(90)), "not convex"),
])  # fmt: skip
def test_what_students_try_first_is_answered(ask, words):
    with pytest.raises(mtl.ModelError, match=words):
        ask(lasso(NUMBERS))
