"""The proof itself: a bound is never above the optimum, whatever multipliers it is made of, and it closes where they are right."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.metrics.ranking import RankingMetric
from mtldsl.certificates.certificate import Certificate, certify, dual_bound, relative_gap
from mtldsl.certificates.multipliers import make_stationary, shift_to_zero_sum
from mtldsl.certificates.stationarity import Stationarity
from mtldsl.normal_form.terms.structured_term import Mixture
from tests.loops import for_each
from tests.models import separate, shared, with_weights


def assert_nothing_above(form, optimum, draws=50, tol=1e-13, sizes=(0.0, 0.0)):
    """No multipliers, drawn at random with a power of ten between the sizes, prove more than the optimum."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        size = 10.0 ** rng.uniform(*sizes)
        u = [size * rng.normal(size=loss.tasks.n_samples) for loss in form.losses]
        v = [size * rng.normal(size=f.map.shape) for f in form.functions]
        assert dual_bound(form, form.zeros(), u, v)[0] <= optimum + tol * abs(optimum)


def _free(answer):
    stuck, left = answer
    return stuck, list(left)


KNOWN = np.array([[-1.0, 2.0], [0.5, 0.3], [2.0, 0.0]])


@for_each("known, moved", [(0.0, 0.0), (KNOWN, 0.0), (0.0, KNOWN)])
def test_lasso_on_an_orthonormal_design_by_hand(known, moved):
    """Entry by entry, soft thresholds: y^2 / 2 inside, |y| - 1/2 outside. A constant in the loss, or in the norm, belongs to the bound."""
    Y = np.array([[3.0, 0.5], [-2.0, 0.0], [0.2, -1.0]])
    tasks = mtl.Tasks.shared(np.eye(3), Y)
    W, Z = mtl.Weights(tasks), Y + known - moved
    form = mtl.minimize(mtl.squared_loss(W - known, tasks) + mtl.l1_norm(W - moved)).form()
    optimum = np.where(np.abs(Z) <= 1, Z**2 / 2, np.abs(Z) - 0.5).sum()
    solution = np.sign(Z) * np.maximum(np.abs(Z) - 1, 0) + moved
    proof = certify(form, {"W": solution})
    assert proof.objective == pytest.approx(optimum, rel=1e-15)
    assert proof.dual_bound == pytest.approx(optimum, rel=1e-14)
    # anywhere else the gap is positive and at least the suboptimality
    for seed in range(20):
        other = {"W": solution + 0.1 * np.random.default_rng(seed).normal(size=(3, 2))}
        proof = certify(form, other)
        assert proof.dual_bound <= optimum + 1e-14
        assert proof.gap >= proof.objective - optimum - 1e-14
    assert_nothing_above(form, optimum)


@for_each("bounded", [False, True])
def test_no_finite_bound_is_said_not_hidden(bounded):
    """Laws of labellings cannot be moved entry by entry, and no term takes multipliers of the last rows: -inf, with the reason."""
    tasks, W = with_weights(shared(1, labels="sign"))
    rows = mtl.l1_norm(W) if bounded else mtl.l1_norm(W[:3, :])
    form = mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore()) + rows).form()
    bound, note = dual_bound(form, form.zeros())
    assert np.isfinite(bound) == bounded
    assert bounded == (note == "")
    if not bounded:
        assert "no term bounds W in every direction" in note and "1e-6 * ridge(W)" in note


def test_a_norm_of_residuals_is_bounded_where_a_row_is_free():
    """Multipliers of one norm are moved together: the row that nothing charges for asks only that X^T u vanishes there."""
    tasks, W = with_weights(shared(1))
    solution = mtl.minimize(mtl.square_root_loss(W, tasks) + 0.1 * mtl.l1_norm(W[:3, :])).solve()
    assert solution.status == "optimal" and abs(solution.gap) < 1e-6


@for_each("scale", [1e-3, 1.0, 1e6])
def test_optimal_means_within_tol_and_nothing_more(scale):
    """One and a half tol is not within tol: of the gap, either side of zero, of the violation, of what float64 can tell."""
    tol = 1e-6

    def proof(gap=0.0, violation=0.0, rounding=0.0):
        return Certificate(scale, scale * (1 - gap), violation, 1e-8, rounding=scale * rounding)

    for share in (0.0, 0.5, 0.99):
        assert proof(gap=share * tol).within(tol) and proof(gap=-share * tol).within(tol)
        assert proof(violation=share * tol).within(tol) and proof(rounding=share * tol).within(tol)
    for share in (1.01, 1.5, 10.0):
        assert not proof(gap=share * tol).within(tol) and not proof(gap=-share * tol).within(tol)
        assert not proof(violation=share * tol).within(tol) and not proof(rounding=share * tol).within(tol)
    assert not proof(gap=np.inf).within(tol) and not proof(gap=np.nan).within(tol)

    def stationary(residual, violation):
        known = Stationarity({}, None, residual)
        return Certificate(scale, -np.inf, violation, 1e-8, stationarity=known).is_stationary(tol)

    assert stationary(0.99 * tol, 0.99 * tol)
    assert not stationary(1.01 * tol, 0.0) and not stationary(0.0, 1.01 * tol)
    assert not Certificate(scale, scale, 0.0, 1e-8).is_stationary(tol)


def test_what_rounding_may_hide_is_taken_off_the_bound():
    """Beside labels of 1e9 a sum of squares of size 10 is known to some 1e-4: the bound is lower by that, never higher."""
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(10, 2)), 1e9 + rng.normal(size=(10, 1)))
    W = mtl.Weights(tasks, intercept=True)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).form()
    found = certify(form, {"W": np.zeros((2, 1)), "W.intercept": tasks.targets.mean().reshape(1, 1)})
    assert found.rounding > 1e-6 * found.objective
    assert found.dual_bound == found.proof.value - found.rounding


def test_a_point_is_called_optimal_at_its_own_gap_and_not_below():
    """The same iterations, asked for a little more and a little less than what they reach."""
    tasks, W = with_weights(shared(3))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 2.0 * mtl.trace_norm(W))

    def solve(tol):
        return problem.solve(solver="proximal_gradient", tol=tol, max_iter=15)

    reached = solve(1e-14)
    assert reached.status == "iteration_limit" and reached.relative_gap > 1e-13
    stricter, laxer = solve(reached.relative_gap / 1.5), solve(reached.relative_gap * 1.5)
    assert stricter.status == "iteration_limit" and stricter.relative_gap == reached.relative_gap
    assert laxer.status == "optimal" and laxer.relative_gap <= reached.relative_gap * 1.5


@for_each("multiple", [2.0, -0.5, 1.0])
def test_a_term_of_a_multiple_of_the_weights_takes_what_is_left(multiple):
    """c V + X^T U = 0 for the multiplier V of l1_norm(c W - A), which so is -X^T U / c, whatever V was given."""
    tasks, W = with_weights(shared(3))
    A = np.random.default_rng(1).normal(size=(6, 4))
    form = mtl.minimize(mtl.huber_loss(W, tasks) + 0.7 * mtl.l1_norm(multiple * W - A)).form()
    rng = np.random.default_rng(0)
    u, v = [form.losses[0].dual_project(rng.normal(size=tasks.n_samples))], [rng.normal(size=(6, 4))]
    assert _free(make_stationary(form, u, v)) == (None, [])
    U = np.reshape(u[0], (4, -1)).T
    np.testing.assert_allclose(multiple * v[0], -tasks.X.T @ U, rtol=1e-12)


@pytest.mark.slow
@for_each("metrics", [("ROCArea", "FScore"), ("FScore", "AUC"), ("AUC", "ROCArea", "FScore")])
def test_losses_that_share_an_intercept_balance_each_other(metrics):
    """The multipliers of a task sum to zero over all of them together, whichever of them was moved first."""
    tasks, W = with_weights(shared(27, labels="sign"), intercept=True)
    losses = [mtl.structured_hinge(W, tasks, metric=getattr(mtl, name)()) for name in metrics]
    form = mtl.minimize(sum(losses[1:], losses[0]) + mtl.ridge(W)).form()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        u = [loss.dual_project(rng.normal(size=tasks.n_samples)) for loss in form.losses]
        v = [rng.normal(size=f.map.shape) for f in form.functions]
        assert make_stationary(form, u, v)[0] is None
        sums = sum(np.asarray(dual).reshape(4, -1).sum(axis=1) for dual in u)
        np.testing.assert_allclose(sums, 0.0, atol=1e-9)


def test_a_constant_of_the_objective_belongs_to_the_bound():
    """Kept matrices leave log-determinants behind: both sides of the gap have them."""
    tasks, W = with_weights(shared(3))
    form = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).form()
    without, moved = (certify(replace(form, constant=c), {"W": np.zeros((6, 4))}) for c in (0.0, 250.0))
    assert moved.objective == pytest.approx(without.objective + 250.0, rel=1e-14)
    assert moved.dual_bound == pytest.approx(without.dual_bound + 250.0, rel=1e-12)
    assert moved.relative_gap == pytest.approx(without.relative_gap, rel=1e-9)


def test_parts_of_weights_take_the_residual_of_their_rows():
    """l21_norm(2 W[:3]) and l1_norm(3 W[3:]) bound W only together, and the loss cannot help: a multiplier v of 2 W[:3] counts 2 v
    in the equation, so it is given a half of the residual, whatever its coefficient."""
    tasks, W = with_weights(shared(1))
    problem = mtl.minimize(
        mtl.square_root_loss(W, tasks) + 2.0 * mtl.l21_norm(2 * W[:3, :]) + mtl.l1_norm(3 * W[3:, :])
    )
    form, optimum = problem.form(), problem.solve(solver="cvxpy", tol=1e-6).objective
    rng = np.random.default_rng(0)
    for size in (0.01, 0.3, 1.0, 3.0):
        u = [size * rng.normal(size=tasks.n_samples)]
        v = [size * rng.normal(size=f.map.shape) for f in form.functions]
        u = [loss.dual_project(dual) for loss, dual in zip(form.losses, u, strict=True)]
        assert _free(make_stationary(form, u, v)) == (None, ["W"])
        total = tasks.adjoint(u[0]) + np.vstack([2 * v[0], 3 * v[1]])
        np.testing.assert_allclose(total, 0.0, atol=1e-12 * (1 + size))
        bound, note = dual_bound(form, form.zeros(), u, v)
        assert np.isfinite(bound) and note == "" and bound <= optimum * (1 + 1e-6)


@for_each("low, high", [(-np.inf, np.inf), (-1.0, np.inf), (-np.inf, 1.0)])
def test_shift_to_zero_sum_without_limits(low, high):
    u = np.array([3.0, -0.5, 0.7, 2.0])
    shifted = shift_to_zero_sum(u, np.full(4, low), np.full(4, high))
    assert abs(shifted.sum()) <= 1e-12 and (shifted >= low).all() and (shifted <= high).all()
    if np.isinf(low) and np.isinf(high):
        np.testing.assert_allclose(shifted, u - 1.3)


def test_groups_that_leave_rows_out_do_not_bound_them():
    """group_norm takes any multiplier of the rows in its groups, and none of others: those are made stationary through the loss."""
    tasks, W = with_weights(shared(3))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 2.0 * mtl.group_norm(W, [[0, 1], [2, 3]]))
    solution = problem.solve(solver="admm", tol=1e-7)
    assert solution.status == "optimal"
    assert _free(make_stationary(problem.form(), [np.ones(tasks.n_samples)], [np.ones((6, 4))])) == (
        None,
        ["W"],
    )


def test_relative_gap_of_nothing_is_infinite():
    assert relative_gap(1.0, -np.inf) == np.inf
    assert relative_gap(np.inf, 0.0) == np.inf
    assert relative_gap(2.0, 1.0) == 0.5


def test_a_bound_needs_every_block_stationary_the_intercepts_too():
    """No term takes multipliers of W here; repairing them must not spoil the sums that the intercept asks for."""
    tasks = separate(1007, labels="sign", sizes=(25, 39, 21, 25), density=0.6)
    W = mtl.Weights(tasks, intercept=True)
    rng = np.random.default_rng(0)
    problem = mtl.minimize(
        1.4 * mtl.squared_hinge_loss(W, tasks)
        + 0.08 * mtl.trace_norm(W @ rng.normal(size=(4, 4)))
        + 0.02 * mtl.l21_norm(W[:3, :])
    )
    form = problem.form()
    optimum = problem.solve(solver="cvxpy").objective
    assert_nothing_above(form, optimum, 30, 1e-7, sizes=(-2, 1))


def test_the_losses_infimum_is_a_bound_where_they_reach_it():
    """No term takes multipliers of the last row of W, but nothing can be lower than no loss and no penalty."""
    tasks, W = with_weights(mtl.Tasks.shared(np.eye(3), np.array([[1.0], [-1.0], [1.0]])))
    hinge = mtl.hinge_loss(W[[0, 1, 2], :], tasks)
    form = mtl.minimize(hinge + mtl.mean_regularizer(W)).form()
    wrong = [np.array([-0.5, 0.5, -0.5])]
    assert dual_bound(form, {"W": np.array([[1.0], [-1.0], [2.0]])}, wrong)[0] == 0.0
    assert dual_bound(form, {"W": np.zeros((3, 1))}, wrong)[0] <= 0.0
    counts = np.array([[3.0], [5.0]])
    poisson, V = with_weights(mtl.Tasks.shared(np.eye(2), counts), name="V")
    loss, infimum = mtl.poisson_loss(V[[0, 1], :], poisson), np.sum(counts - counts * np.log(counts))
    best = {"V": np.log(counts), "W": np.array([[1.0], [-1.0], [2.0]])}
    assert dual_bound(mtl.minimize(loss).form(), best)[0] == pytest.approx(infimum, rel=1e-12)
    # laws of labellings cannot be moved entry by entry: what is left is that no loss is below its infimum
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    told_apart = mtl.Tasks.shared(np.column_stack([np.zeros((4, 2)), signs]), signs[:, None])
    U = mtl.Weights(told_apart, name="U")
    labelling = mtl.structured_hinge(U, told_apart, metric=mtl.metrics.FScore()) + mtl.l1_norm(U[:2, :])
    best["U"] = np.array([[0.0], [0.0], [10.0]])
    wrong = [np.array([0.3, -0.1, 0.5, 1.3]), np.zeros(2)]
    bound, _ = dual_bound(mtl.minimize(labelling + loss).form(), best, wrong)
    assert bound == pytest.approx(infimum, rel=1e-12)


STRUCTURED = {
    "f1": mtl.metrics.FScore(), "f2": mtl.metrics.FScore(beta=2.0), "auc": mtl.metrics.AUC(), "rocarea": mtl.metrics.ROCArea(), "errors": mtl.metrics.ErrorRate(), "balanced": mtl.metrics.BalancedError(), "jaccard": mtl.metrics.Jaccard(), "gmean": mtl.metrics.GMean(),
    "area": mtl.metrics.PartialAUC(0.5), "part": mtl.metrics.PartialAUC(0.9, 0.3), "ap": mtl.metrics.AveragePrecision(), "ndcg": mtl.metrics.NDCG(),
    "precision": mtl.metrics.PrecisionAt(0.4), "recall": mtl.metrics.RecallAt(3), "several": [mtl.metrics.AUC(), mtl.metrics.FScore(), mtl.metrics.ROCArea(), mtl.metrics.ErrorRate()],
}  # fmt: skip


def attacks(form, rng, sizes):
    """Multipliers of structured hinges that nobody would hand over in good faith."""
    for size in sizes:
        duals = []
        for loss in form.losses:
            parts = []
            for _, c, metric, y, _ in loss.tasks_apart:
                K = int(rng.integers(1, 6))
                flips = rng.random((K, len(y))) < rng.random() ** 2
                weights = size * rng.choice([rng.random(K), rng.normal(size=K), np.full(K, 3.0)])
                honest = Mixture(flips, weights)
                if isinstance(metric, RankingMetric):
                    slopes = [metric.most_violated(rng.normal(size=len(y)), y).slope for _ in range(K)]
                    honest = Mixture(
                        np.array(slopes) if rng.random() < 0.8 else rng.normal(size=flips.shape), weights
                    )
                takes = metric.labellings or isinstance(metric, RankingMetric)
                parts.append(honest if takes and rng.random() < 0.8 else c * size * rng.normal(size=len(y)))
            duals.append(parts)
        yield duals
        yield [size * rng.normal(size=loss.tasks.n_samples) for loss in form.losses]
        yield [loss.dual_project(size * rng.normal(size=loss.tasks.n_samples)) for loss in form.losses]
        yield [loss.gradient(size * rng.normal(size=loss.tasks.n_samples)) for loss in form.losses]


KINDS = ["l1", "l21", "trace", "box", "intercept", "two losses"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", range(len(KINDS)), ids=lambda k: ", ".join(list(STRUCTURED)[k :: len(KINDS)])
)
def test_no_mixture_of_labellings_proves_more_than_the_optimum(first):
    for metric in list(STRUCTURED)[first :: len(KINDS)]:
        _hold_below_the_optimum(STRUCTURED[metric], KINDS[first])


def _hold_below_the_optimum(metric, kind):
    tasks = shared(30, n=6 if isinstance(metric, RankingMetric) else 12, labels="sign", missing=0.1)
    takes = not isinstance(
        metric, (mtl.metrics.PrecisionAt, mtl.metrics.RecallAt)
    )  # the others are refused an intercept
    W = mtl.Weights(tasks, intercept=takes and kind in ("intercept", "two losses"))
    loss = 4.0 * mtl.structured_hinge(W, tasks, metric=metric)
    objective, constraints = {
        "l1": (loss + mtl.l1_norm(W), []),
        "l21": (loss + mtl.l21_norm(W), []),
        "trace": (loss + mtl.trace_norm(W), []),
        "box": (loss, [W >= -0.1, W <= 0.2]),
        "intercept": (loss + mtl.l21_norm(W) + 0.1 * mtl.ridge(W), []),
        "two losses": (
            loss
            + 3.0 * mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore() if takes else metric)
            + mtl.l1_norm(W),
            [],
        ),
    }[kind]
    problem = mtl.minimize(objective, subject_to=constraints)
    form = problem.form()
    best = problem.solve(solver="cvxpy", tol=1e-7).objective
    rng = np.random.default_rng(0)
    bounds = []
    # conjugates of orders are linear programs by the dozen
    for duals in attacks(
        form, rng, (0.1, 30.0) if isinstance(metric, RankingMetric) else (1e-3, 0.1, 1.0, 30.0)
    ):
        v = [rng.normal(size=f.map.shape) for f in form.functions]
        for functions in (v,) if isinstance(metric, RankingMetric) else (None, v):
            bound, note = dual_bound(form, form.zeros(), duals, functions)
            assert bound <= best + 1e-7 * abs(best), (metric, note)
            bounds.append(bound)
    assert np.mean(np.isfinite(bounds)) > 0.5  # most of them do prove something


@pytest.mark.slow
@for_each("metric", ["f1", "auc", "rocarea", "part", "ap", "ndcg", "errors", "precision", "several"])
def test_the_certificate_of_a_mixture_is_its_expected_measure(metric):
    """By hand under an l1 norm, and one of nothing: mean Delta times the coefficient, shrunk until |X^T u| <= 1 in every entry."""
    tasks, W = with_weights(
        shared(31, n=10 if isinstance(STRUCTURED[metric], RankingMetric) else 20, labels="sign")
    )
    hinge = mtl.structured_hinge(W, tasks, metric=STRUCTURED[metric])
    form = mtl.minimize(4.0 * hinge + mtl.l1_norm(W) + mtl.l1_norm(mtl.Weights(tasks, name="V"))).form()
    (loss,) = form.losses
    rng = np.random.default_rng(1)
    planes = loss.most_violated(0.05 * rng.normal(size=tasks.n_samples))
    duals, promised, slopes = [], 0.0, []
    for plane, (_, c, _, y, _) in zip(planes, loss.tasks_apart, strict=True):
        if plane.flipped is None:
            duals.append(0.5 * c * plane.slope)
        else:
            flips = np.zeros((1, len(y)), bool)
            flips[0, plane.flipped] = True
            duals.append(Mixture(flips, np.array([0.5])))
        slopes.append(0.5 * c * plane.gradient(y))
        promised += 0.5 * c * plane.delta
    gauge = max(np.abs(tasks.inputs[i].T @ u).max() for i, u in enumerate(slopes))
    bound, _ = dual_bound(form, form.zeros(), [duals])
    # a closed form of the conjugate may know a better law
    assert bound >= promised / max(1.0, gauge) * (1 - 1e-9)
    if metric == "f1":
        assert bound == pytest.approx(promised / max(1.0, gauge), rel=1e-9)


def test_a_sum_of_rounding_moves_only_what_is_free():
    """Multipliers at the ends of their intervals stay there; the others take up the rounding."""
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.uniform(0.1, 0.9, size=50), np.ones(100), np.zeros(100)])
    u = np.concatenate([u, -u])
    low, high = np.minimum(np.sign(u), 0.0), np.maximum(np.sign(u), 0.0)
    low[u == 0.0], high[u == 0.0] = -1.0, 0.0
    u[7] += 3e-13
    shifted = shift_to_zero_sum(u, low, high)
    assert abs(shifted.sum()) <= 1e-14 * len(u) and (shifted >= low).all() and (shifted <= high).all()
    ends = (u == low) | (u == high)
    np.testing.assert_array_equal(shifted[ends], u[ends])
    np.testing.assert_allclose(shifted, u, atol=1e-12)


def test_a_structured_hinge_has_its_value_from_many_threads():
    """What is kept of the last look belongs to one thread at a time: a claim of the others would lack samples."""
    rng = np.random.default_rng(0)
    signs = [rng.choice([-1.0, 1.0], size=200) for _ in range(3)]
    tasks, W = with_weights(mtl.Tasks.separate([rng.normal(size=(200, 2)) for _ in range(3)], signs))
    (loss,) = mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore())).form().losses
    looks = list(rng.normal(size=(100, 600)))
    alone = [float(loss.coefficients @ [p.value for p in loss.most_violated(z)]) for z in looks]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(loss.value, looks * 3))
    finally:
        sys.setswitchinterval(before)
    np.testing.assert_allclose(found, alone * 3, rtol=1e-12)
