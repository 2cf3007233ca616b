"""Cox's partial likelihood: its definition, its conjugate in closed form, extremes, models at their ends, and scores."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import mtldsl as mtl
from mtldsl.atoms.losses import CoxLoss
from mtldsl.certificates.checker.interval import Interval
from mtldsl.certificates.checker.loss_formulas import CoxLossFormula
from mtldsl.certificates.checker.proof_file import DataArrays
from mtldsl.errors import DataError, ModelError
from mtldsl.estimators import GroupedMultiTaskRegressor, MultiTaskClassifier, MultiTaskRegressor
from mtldsl.solution import measures
from mtldsl.solution.measures import concordance_index
from tests import models
from tests.loops import for_each
from tests.models import with_weights


def signed_times(rng, n, events=0.7):
    """Few distinct times, so that events are tied with each other and with rows that are censored."""
    return np.where(rng.random(n) < events, 1.0, -1.0) * rng.integers(1, max(2, n // 2), size=n)


def cases():
    """(z, y, s) of many sizes: a single row, no event, every row an event."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        y = signed_times(rng, n, events=(0.0, 0.3, 0.7, 1.0)[seed % 4])
        yield rng.normal(size=n), y, None if seed % 3 else rng.uniform(0.2, 3.0, size=n)


@for_each("z, y, s", cases())
def test_value_is_the_sum_over_events(z, y, s):
    """The definition, event by event."""
    w = np.ones(len(y)) if s is None else s
    lost = [
        w[j] * (np.log(np.sum(w[np.abs(y) >= y[j]] * np.exp(z[np.abs(y) >= y[j]]))) - z[j])
        for j in np.flatnonzero(y > 0)
    ]
    assert np.isclose(CoxLoss().value(z, y, s), sum(lost), rtol=1e-13, atol=1e-14)
    shifted = CoxLoss().value(z + 3.0, y, s)
    assert np.isclose(shifted, sum(lost), rtol=1e-12, atol=1e-13)  # what makes an intercept void


def can_be_shared(a, y, s) -> bool:
    """Tell whether the events of every time can be shared among the rows at risk, each row its a: a flow, by a linear program."""
    times, w = np.unique(y[y > 0]), np.ones(len(y)) if s is None else s
    at_risk = np.abs(y) >= times[:, None]
    per_time = np.kron(np.eye(len(times)), np.ones(len(y)))
    per_row = np.tile(np.eye(len(y)), len(times))
    deaths = [w[y == t].sum() for t in times]
    upper = np.where(at_risk, np.inf, 0.0).ravel()
    found = linprog(
        np.zeros(at_risk.size), A_eq=np.vstack([per_time, per_row]), b_eq=[*deaths, *a],
        bounds=list(zip(np.zeros(at_risk.size), upper, strict=True)),
    )  # fmt: skip
    return found.status == 0


@for_each("z, y, s", [case for case in cases() if (case[1] > 0).any()])
def test_domain_is_that_of_flows(z, y, s):
    """The conjugate is finite just where events can be shared among the rows at risk, and a projected point lies there."""
    loss, rng = CoxLoss(), np.random.default_rng(1)
    e = np.where(y > 0, 1.0 if s is None else s, 0.0)
    for size in (0.1, 1.0, 5.0):
        u = size * rng.normal(size=len(y))
        inside = loss.dual_project(u, y, s)
        assert can_be_shared(inside + e, y, s) and np.isfinite(loss.conjugate(inside, y, s))
        balanced = u - u.mean()
        feasible = bool((balanced + e >= 0).all()) and can_be_shared(balanced + e, y, s)
        assert np.isfinite(loss.conjugate(balanced, y, s)) == feasible
    # a domain is not all that sums to zero: what the last row has is what the first one lacks
    if len(np.unique(np.abs(y))) > 1:
        u = np.zeros(len(y))
        u[np.argmax(np.abs(y))], u[np.argmin(np.abs(y))] = -1e-3, 1e-3
        assert loss.conjugate(u, y, s) == np.inf


@for_each("z, y, s", cases())
def test_conjugate_is_tight_at_gradients_and_convex_between(z, y, s):
    """<z, u> - f(z) at u = grad f(z); between two such points at most what lies on the line, with zero at one end too."""
    loss, rng = CoxLoss(), np.random.default_rng(2)
    v = 3.0 * rng.normal(size=len(y))
    ends = [loss.gradient(z, y, s), loss.gradient(v, y, s), np.zeros(len(y))]
    values = [loss.conjugate(u, y, s) for u in ends]
    for x, u, value in zip((z, v), ends, values, strict=False):
        assert np.isclose(value, u @ x - loss.value(x, y, s), rtol=1e-11, atol=1e-12)
    for (u, f), (w, g) in zip(
        zip(ends, values, strict=True), zip(ends[1:], values[1:], strict=True), strict=False
    ):
        assert loss.conjugate(0.5 * (u + w), y, s) <= 0.5 * (f + g) + 1e-12 * (1 + abs(f) + abs(g))


@for_each("z, y, s", cases())
def test_prox_is_where_its_gradient_says(z, y, s):
    """Also of one row, of no event and of long steps."""
    for step in (1e-4, 1.0, 1e4):
        x = CoxLoss().prox(z, y, step, s)
        rest = step * CoxLoss().gradient(x, y, s) + x - z
        assert np.abs(rest).max() <= 1e-11 * (step + np.abs(z).max())


@for_each("size", [1e-8, 1.0, 1e3, 1e6])
def test_it_does_not_overflow(size):
    """Predictions as far apart as they like: the value is finite, multipliers stay in their domain, and a prox is where its gradient says."""
    rng, loss = np.random.default_rng(3), CoxLoss()
    y, z = signed_times(rng, 30), size * rng.normal(size=30)
    value, u = loss.value(z, y), loss.gradient(z, y)
    assert np.isfinite(value) and value >= 0.0
    assert np.array_equal(loss.dual_project(u, y), u) and abs(u.sum()) <= 1e-13 * 30
    assert np.isclose(
        value + loss.conjugate(u, y), z @ u, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(z) @ np.abs(u))
    )
    for step in (1e-3, 1.0, 1e3):
        x = loss.prox(z, y, step)
        rest = step * loss.gradient(x, y) + x - z
        assert np.abs(rest).max() <= 1e-11 * (step + np.abs(z).max())


@for_each("exact", [False, True])
def test_checker_moves_any_point_into_the_domain(exact):
    """What the checker makes of any multipliers has no value above the conjugate of what the loss makes of them, and encloses it inside."""
    for z, y, s in cases():
        data = DataArrays(np.zeros((len(y), 1)), y, np.array([len(y)]), True, None, s)
        part, loss = CoxLossFormula(Interval.of(np.ones(1), exact), data, exact), CoxLoss()
        one, rng = Interval.of(1.0, exact), np.random.default_rng(4)
        for u in (loss.gradient(z, y, s), 2.0 * rng.normal(size=len(y))):
            inside = part.inside(Interval.of(u, exact))
            assert np.allclose(inside.middle, loss.dual_project(u, y, s), rtol=1e-9, atol=1e-11)
            truth, found = loss.conjugate(inside.middle, y, s), part.conjugate(inside, one)
            size = 1e-11 * (1.0 + abs(truth))
            assert float(found.low) - size <= truth <= float(found.high) + size
            assert float(found.high) - float(found.low) <= 1e-9 * (1.0 + abs(truth))
        value = part.value(Interval.of(z, exact))
        assert float(value.low) - 1e-12 <= loss.value(z, y, s) <= float(value.high) + 1e-12


def test_checker_encloses_values_of_predictions_far_apart():
    """Also where one risk set has e^2000 times the sum of another."""
    for seed, size in ((0, 1e3), (1, 1e5)):
        rng = np.random.default_rng(seed)
        y, z = signed_times(rng, 25), size * rng.normal(size=25)
        data = DataArrays(np.zeros((25, 1)), y, np.array([25]), True)
        value, found = (
            CoxLoss().value(z, y),
            CoxLossFormula(Interval.of(np.ones(1)), data, False).value(Interval.of(z)),
        )
        assert float(found.low) <= value * (1 + 1e-13) and value * (1 - 1e-13) <= float(found.high)
        assert float(found.high) - float(found.low) <= 1e-12 * value


def test_checker_refuses_a_time_of_zero():
    from mtldsl.certificates.checker.function import UnsupportedFormula

    data = DataArrays(np.zeros((2, 1)), np.array([1.0, 0.0]), np.array([2]), True)
    with pytest.raises(UnsupportedFormula, match="time of zero"):
        CoxLossFormula(Interval.of(np.ones(1)), data, False)


# ------------------------------------------------------------------------------------------------ models
def test_nearly_perfect_order_is_proven_too():
    """The loss is far below its logarithms: value, conjugate and the second evaluation differ by their rounding alone."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(10, 12)), rng.choice([-1.0, 1.0], (10, 2)) * rng.exponential(size=(10, 2))
    t, W = with_weights(mtl.Tasks.shared(X, Y))
    for objective in (mtl.cox_loss(W, t), mtl.cox_loss(W, t) + 1e-6 * mtl.ridge(W)):
        solution = mtl.minimize(objective).solve(tol=1e-9, max_iter=200)
        assert solution.objective <= 1e-2 and solution.dual_bound <= solution.objective


def test_tasks_of_rows_of_their_own_and_no_event():
    """Rows without an event say nothing of a task: its weights are zero, and those of others what they are without it."""
    rng = np.random.default_rng(7)
    X = [rng.normal(size=(n, 4)) for n in (15, 20, 10)]
    y = [signed_times(rng, 15), signed_times(rng, 20), -np.ones(10)]
    t, W = with_weights(mtl.Tasks.separate(X, y))
    solution = mtl.minimize(mtl.cox_loss(W, t) + 0.5 * mtl.ridge(W)).solve(tol=1e-9)
    two, V = with_weights(mtl.Tasks.separate(X[:2], y[:2]))
    other = mtl.minimize(mtl.cox_loss(V, two) + 0.5 * mtl.ridge(V)).solve(tol=1e-9)
    assert not solution.coef[:, 2].any()
    # the ridge makes 1/4 ||W - W*||^2 the most that a gap may hide, and gaps are far below what tol allows
    assert np.allclose(solution.coef[:, :2], other.coef, atol=1e-4)


def test_messages_say_what_to_write():
    t, W = with_weights(models.shared(8, labels="time"), intercept=True)
    with pytest.raises(
        ModelError,
        match=r"cox_loss\(W, tasks\): the intercept of W .* cancels; write Weights\(tasks\) without",
    ):
        mtl.cox_loss(W, t)
    X, Y = np.eye(4), np.array([[1.0], [0.0], [2.0], [-1.0]])
    with pytest.raises(
        DataError, match=r"label 0 in task 'task0', row 1; labels must be signed times: \+t .* -t"
    ):
        mtl.cox_loss(mtl.Weights(mtl.Tasks.shared(X, Y)), mtl.Tasks.shared(X, Y))
    with pytest.raises(ModelError, match=r"cox_loss has no intercept, .*; write fit_intercept=False"):
        MultiTaskRegressor(loss="cox_loss").fit(X, Y + 0.5)
    with pytest.raises(
        ModelError, match="cox_loss is not a loss for MultiTaskClassifier; use MultiTaskRegressor"
    ):
        MultiTaskClassifier(loss="cox_loss", fit_intercept=False).fit(X, [0, 1, 0, 1])


# ------------------------------------------------------------------------------------------------ scores
def test_concordance_counts_pairs_in_a_known_order():
    """The definition, pair by pair: an event, and a row that is known to be without it then."""
    for z, y, s in cases():
        w, pairs, right = np.ones(len(y)) if s is None else s, 0.0, 0.0
        for i in np.flatnonzero(y > 0):
            for j in range(len(y)):
                if abs(y[j]) > y[i] or y[j] == -y[i]:
                    pairs += w[i] * w[j]
                    right += w[i] * w[j] * (1.0 if z[i] > z[j] else 0.5 if z[i] == z[j] else 0.0)
        found, constant = concordance_index(y, z, s), concordance_index(y, np.zeros(len(y)), s)
        expected = (right / pairs, 0.5) if pairs else (np.nan, np.nan)
        np.testing.assert_allclose((found, constant), expected, rtol=1e-13)


def test_concordance_of_many_rows_is_that_of_slabs(monkeypatch):
    rng = np.random.default_rng(5)
    y, z = signed_times(rng, 200), rng.normal(size=200)
    whole = concordance_index(y, z)
    monkeypatch.setattr(measures, "SETTINGS", replace(measures.SETTINGS, slab_pairs=1000))
    assert np.isclose(concordance_index(y, z), whole, rtol=1e-13)


def test_times_are_scored_by_concordance_everywhere():
    """Solutions, folds, bootstraps, estimators and groups of rows; other measures are refused, and so is concordance of other labels."""
    t, W = with_weights(models.shared(9, labels="time"))
    lam = mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.cox_loss(W, t) + lam * mtl.l21_norm(W))
    solution = problem.solve()
    wanted = [
        concordance_index(y, z) for y, z in zip(t.per_task(t.targets), solution.predict(t.X).T, strict=True)
    ]
    assert np.allclose(solution.scores(t), wanted) and np.isclose(
        solution.score(t, "concordance"), np.mean(wanted)
    )
    assert np.isclose(solution.bootstrap(t, n=20).estimate, np.mean(wanted))
    found = problem.cross_validate(lam, [3.0, 0.3], folds=3)
    assert found.metric == "concordance" and np.all((found.scores > 0.0) & (found.scores < 1.0))
    Y = t.targets.reshape(t.n_tasks, -1).T
    fitted = MultiTaskRegressor(loss="cox_loss", lam=1.0, fit_intercept=False).fit(t.X, Y)
    assert np.isclose(fitted.score(t.X, Y), np.mean(wanted), atol=1e-3)
    groups = np.repeat(["a", "b"], len(Y))
    rows = np.vstack([t.X, t.X])
    grouped = GroupedMultiTaskRegressor(loss="cox_loss", lam=1.0, fit_intercept=False)
    labels = np.concatenate([Y[:, 0], Y[:, 1]])
    grouped.fit(rows, labels, groups=groups)
    own = [
        concordance_index(labels[groups == g], grouped.predict(rows, groups=groups)[groups == g])
        for g in "ab"
    ]
    assert np.isclose(grouped.score(rows, labels, groups=groups), np.mean(own))
    for refused in (
        lambda: solution.score(t, "mse"),
        lambda: solution.score(t, "accuracy"),
        lambda: problem.cross_validate(lam, [1.0], folds=3, metric="r2"),
    ):
        with pytest.raises(
            ModelError, match="signed times, and this measure is not of these; write metric='concordance'"
        ):
            refused()
    real, V = with_weights(models.shared(9))
    other = mtl.minimize(mtl.squared_loss(V, real) + mtl.ridge(V)).solve()
    with pytest.raises(ModelError, match="concordance is of signed times, which squared_loss does not learn"):
        other.score(real, "concordance")
