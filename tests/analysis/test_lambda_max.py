"""The critical value: zero is certified optimal just above it, and is not just below; where a kink leaves a gap, from both sides."""

from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import Loss
from mtldsl.normal_form.best_constants import best_constants
from tests.loops import for_each
from tests.models import labels_of
from tests.pairs import pairwise_cases

N, D, M = 31, 6, 3
NORMS = ["l1_norm", "l21_norm", "trace_norm"]
LOSSES = sorted(
    name
    for name, atom in REGISTRY.items()
    if issubclass(atom, Loss)
    and atom.labels not in ("indicators", "classes")
    and atom.takes_intercept is not False
)
METRICS = [
    mtl.metrics.FScore(), mtl.metrics.FScore(beta=2.0), mtl.metrics.AUC(), mtl.metrics.ROCArea(),
    mtl.metrics.ErrorRate(),
]  # fmt: skip
#: those that fix the number of positives too, to which a constant does not matter
WITHOUT_INTERCEPT = [
    mtl.metrics.BalancedError(), mtl.metrics.Jaccard(), mtl.metrics.GMean(), mtl.metrics.PartialAUC(0.8, 0.2),
    mtl.metrics.AveragePrecision(), mtl.metrics.NDCG(), mtl.metrics.PrecisionAt(7), mtl.metrics.RecallAt(3),
]  # fmt: skip


def tasks_for(loss, seed=0, share=0.5, n=N):
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(n, D)) + rng.normal(size=D)
    Z = X @ rng.normal(size=(D, M)) + 2.0 * rng.normal(size=(n, M))
    return mtl.Tasks.shared(X, labels_of(REGISTRY[loss].labels, Z, rng, share))


def require_law(problem, lam, on_loss=False):
    """Solves on either side; returns the value."""
    critical = problem.lambda_max(lam)
    low, high = critical.bounds
    assert low <= critical <= high and critical == (low if on_loss else high)
    assert critical.exact == (low == high) == (not critical.note)
    lam.value = critical * (1 - 1e-6 if on_loss else 1 + 1e-6)
    form = problem.form()
    at_zero = form.value(best_constants(form) or form.zeros())
    above = problem.solve(tol=1e-7)
    assert above.status == "optimal"
    assert above.objective == pytest.approx(at_zero, rel=1e-6)
    beyond = high if on_loss else low
    if 0.0 < beyond < np.inf:
        lam.value = beyond * (1.1 if on_loss else 0.9)
        form = problem.form()
        at_zero = form.value(best_constants(form) or form.zeros())
        below = problem.solve(tol=1e-8)
        assert below.status == "optimal" and below.objective < at_zero * (1 - 1e-7)
    return critical


@for_each(
    "loss", ["squared_loss", "logistic_loss", "hinge_loss", "absolute_loss", "epsilon_insensitive_loss"]
)
def test_a_parameter_on_the_losses(loss):
    tasks, lam = tasks_for(loss, seed=1, share=0.3), mtl.Parameter(1.0)
    W = mtl.Weights(tasks, intercept=True)
    on_loss = require_law(
        mtl.minimize(lam * getattr(mtl, loss)(W, tasks) + mtl.l21_norm(W)), lam, on_loss=True
    )
    on_norm = mtl.minimize(getattr(mtl, loss)(W, tasks) + lam * mtl.l21_norm(W)).lambda_max(lam)
    assert on_loss == pytest.approx(1 / on_norm, rel=1e-12)
    np.testing.assert_allclose(on_loss.bounds, [1 / end for end in on_norm.bounds[::-1]], rtol=1e-12)


SOME = np.where(np.arange(D * M).reshape(D, M) % 4, -np.inf, 0.0)
BOUNDS = {
    "W >= 0": lambda W: [W >= 0],
    "W <= 0": lambda W: [W <= 0],
    "-0.1 <= W": lambda W: [W >= -0.1],
    "some entries": lambda W: [SOME <= W, -SOME >= W],
}


@pytest.mark.slow
@for_each(
    "bound, norm, loss",
    pairwise_cases(
        BOUNDS,
        ["l1_norm", "l21_norm", "l1_inf_norm", "trace_norm"],
        ["squared_loss", "logistic_loss", "hinge_loss"],
    ),
)
def test_zero_with_bounds(bound, norm, loss):
    tasks, lam = tasks_for(loss, seed=2), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    objective = getattr(mtl, loss)(W, tasks) + lam * getattr(mtl, norm)(W)
    problem = mtl.minimize(objective, subject_to=BOUNDS[bound](W))
    critical = require_law(problem, lam)
    assert critical.exact == (norm != "trace_norm" or bound == "-0.1 <= W")
    free = mtl.minimize(objective).lambda_max(lam)
    assert critical <= free * (1 + 1e-12)
    if bound == "-0.1 <= W":
        assert critical == pytest.approx(free, rel=1e-12)


FURTHER = {
    "l12_norm": mtl.l12_norm,
    "l12_norm, weights": lambda W: mtl.l12_norm(W, weights=[1.0, 2.0, 0.5]),
    "group_norm": lambda W: mtl.group_norm(W, [[0, 1], [2], [5, 4, 3]], weights=[1.0, 0.5, 2.0]),
    "l1_inf_norm": mtl.l1_inf_norm,
    "sorted_l1_norm": mtl.sorted_l1_norm,
    "column_group_norm": lambda W: mtl.column_group_norm(W, [[0, 2], [1]]),
    "latent_group_norm": lambda W: mtl.latent_group_norm(
        W, [[0, 1, 2], [2, 3], [3, 4, 5]], weights=[1.0, 0.5, 2.0]
    ),
    "tree_norm, rows": lambda W: mtl.tree_norm(W, rows=[[0, 1], [1], [2, 3, 4, 5]], weights=[1.0, 0.5, 2.0]),
    "tree_norm, columns": lambda W: mtl.tree_norm(W, columns=[[0], [0, 2], [1]]),
}


@pytest.mark.slow
@for_each(
    "loss, norm",
    [
        *zip(LOSSES, cycle(NORMS), strict=False),
        *zip(cycle(["squared_loss", "logistic_loss"]), FURTHER, strict=False),
    ],
)
def test_zero_with_intercepts(loss, norm):
    tasks, lam = tasks_for(loss, share=0.4), mtl.Parameter(1.0)
    W = mtl.Weights(tasks, intercept=True)
    word = FURTHER.get(norm) or getattr(mtl, norm)
    critical = require_law(mtl.minimize(getattr(mtl, loss)(W, tasks) + lam * word(W)), lam)
    assert critical.exact or loss in ("hinge_loss", "structured_hinge")


def test_balls_around_zero_have_no_say():
    tasks, lam = tasks_for("squared_loss", seed=3), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    objective = mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W)
    problem = mtl.minimize(objective, subject_to=[mtl.trace_norm(W) <= 0.3, mtl.total_variation(W) <= 0.2])
    assert require_law(problem, lam) == mtl.minimize(objective).lambda_max(lam)
    for ball in (mtl.l1_norm(W) <= 0, mtl.l1_norm(W - np.ones(W.shape)) <= 2):
        with pytest.raises(mtl.ModelError, match="balls around zero"):
            mtl.minimize(objective, subject_to=[ball]).lambda_max(lam)


@pytest.mark.slow
@for_each(
    "metric, norm, intercept",
    [
        *zip(METRICS, cycle(NORMS), cycle([True]), strict=False),
        *zip(WITHOUT_INTERCEPT, cycle(NORMS[::-1]), cycle([False]), strict=False),
    ],
    ids=str,
)
def test_zero_of_structured_hinges(metric, norm, intercept):
    tasks, lam = tasks_for("structured_hinge", seed=3, share=0.4, n=14), mtl.Parameter(1.0)
    W = mtl.Weights(tasks, intercept=intercept)
    loss = mtl.structured_hinge(W, tasks, metric=metric)
    critical = require_law(mtl.minimize(lam * loss + getattr(mtl, norm)(W)), lam, on_loss=True)
    assert 0 < critical < np.inf


@for_each("p, on_loss", [(1.0, True), (2.0, False)])
def test_a_path_of_kernel_weights_has_a_scale(p, on_loss):
    """No value makes the weights zero, and it says so: what they explain is at most lambda_max / lam of the losses."""
    tasks, lam = tasks_for("logistic_loss", seed=7), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    norm = mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.individual()], p=p)
    loss = mtl.logistic_loss(W, tasks)
    problem = mtl.minimize(lam * loss + norm if on_loss else loss + lam * norm)
    critical = problem.lambda_max(lam)
    assert not critical.exact and "scale" in critical.note
    at_zero = N * M * np.log(2.0)
    for k in (2.0, 30.0):
        lam.value = critical / k if on_loss else critical * k
        optimum = problem.solve(tol=1e-8).objective / (lam.value if on_loss else 1.0)
        assert at_zero * (1 - 1 / k) <= optimum < at_zero


def test_sparse_data_and_its_dense_copy_have_one_value():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 30)) * (rng.random((60, 30)) < 0.1)
    Y = np.where(rng.random((60, 4)) < [0.1, 0.3, 0.5, 0.8], 1.0, -1.0)
    Y[0], Y[1] = 1.0, -1.0
    values = []
    for data in (X, sparse.csr_array(X)):
        tasks, lam = mtl.Tasks.shared(data, Y), mtl.Parameter(1.0)
        W = mtl.Weights(tasks, intercept=True)
        values.append(mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W)).lambda_max(lam))
    shares = (Y > 0).mean(axis=0)
    by_hand = np.linalg.norm(X.T @ (shares - (Y > 0)), axis=1).max()
    np.testing.assert_allclose(values, by_hand, rtol=1e-12)


@for_each(
    "penalty",
    [
        lambda W: mtl.total_variation(W),
        lambda W: mtl.group_norm(W, [[0, 1]]),
        lambda W: mtl.l1_norm(W, weights=np.arange(4.0)[:, None]),
    ],
)
@for_each("on_losses", [False, True])
def test_where_no_value_makes_the_weights_zero_that_is_said(penalty, on_losses):
    """Not that bounds hold them back: the model has none."""
    rng = np.random.default_rng(3)
    tasks = mtl.Tasks.shared(rng.normal(size=(20, 4)), rng.normal(size=(20, 3)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    loss = mtl.squared_loss(W, tasks)
    problem = mtl.minimize(lam * loss + penalty(W) if on_losses else loss + lam * penalty(W))
    critical = problem.lambda_max(lam)
    assert critical == (0.0 if on_losses else np.inf) and not critical.exact
    assert critical.note.startswith("no value makes the weights zero: ")
    assert "bounds hold" not in critical.note
    several = mtl.minimize(loss + lam * penalty(W) + 1e-3 * mtl.l1_norm(W)).lambda_max(lam)
    assert several == np.inf and several.note.startswith("no value makes the weights zero: ")
    with pytest.raises(mtl.ModelError, match=r"no value makes the weights zero.*give values"):
        problem.cross_validate(lam, values=3, folds=2)


def test_overlapping_groups_without_a_feature_have_no_value():
    """The sum of two norms, of which neither is about the last feature, was given an upper bound below its lower one."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 5))
    tasks, lam = mtl.Tasks.shared(X, X[:, :3] @ rng.normal(size=(3, 2))), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    groups = [[0, 1], [1, 2, 3]]
    critical = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.group_norm(W, groups)).lambda_max(lam)
    assert critical == np.inf and critical.note.startswith("no value makes the weights zero: ")


@pytest.mark.slow
@for_each("loss, bounded", [("squared_loss", True), ("hinge_loss", False), ("absolute_loss", True)])
def test_lambda_max_of_a_norm_without_a_prox_is_bounded(loss, bounded):
    """max_norm, where bounds or kinks ask for a direction."""
    tasks, lam = tasks_for(loss), mtl.Parameter(1.0)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(
        getattr(mtl, loss)(W, tasks) + lam * mtl.max_norm(W), subject_to=[W >= 0] * bounded
    )
    found = problem.lambda_max(lam)
    low, high = found.bounds
    assert 0.0 < low <= high == float(found)
    for value, zero in ((1.01 * high, True), (0.97 * low, False)):
        lam.value = value
        at_zero = problem.value(np.zeros(W.shape))
        assert (at_zero - problem.solve().dual_bound <= 1e-4 * at_zero) == zero


SEVERAL = {
    "sparse groups": lambda W, lam: lam * (mtl.l1_norm(W) + 0.5 * mtl.l21_norm(W)),
    "entries beside fixed rows": lambda W, lam: lam * mtl.l1_norm(W) + 3 * mtl.l21_norm(W),
    "rows beside fixed entries": lambda W, lam: 3 * mtl.l1_norm(W) + lam * mtl.l21_norm(W),
    "three": lambda W, lam: lam * mtl.l1_norm(W) + 2 * mtl.l21_norm(W) + lam / 3 * mtl.frobenius_norm(W),
    "order": lambda W, lam: lam * mtl.total_variation(W) + 30 * mtl.l1_norm(W),
    "ridge too": lambda W, lam: lam * mtl.l1_norm(W) + mtl.l21_norm(W) + 2 * mtl.ridge(W),
    "entries and spectrum": lambda W, lam: lam * mtl.l1_norm(W) + 2 * mtl.trace_norm(W),
    "one without a prox": lambda W, lam: lam * mtl.l1_norm(W) + 0.1 * mtl.max_norm(W),
}
INEXACT = ("entries and spectrum", "one without a prox")


@pytest.mark.slow
@for_each(
    "name, loss, bounds",
    pairwise_cases(SEVERAL, ["squared_loss", "logistic_loss", "huber_loss"], [False, True]),
)
def test_several_norms_of_one_matrix(name, loss, bounds):
    tasks = tasks_for(loss, seed=4)
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    term = getattr(mtl, loss)(W, tasks)
    problem = mtl.minimize(term + SEVERAL[name](W, lam), subject_to=[W >= 0] if bounds else [])
    if bounds and name in ("order", *INEXACT):  # not of absolute values
        with pytest.raises(mtl.ModelError, match="depend on absolute values alone"):
            problem.lambda_max(lam)
        return
    require_law(problem, lam)
    assert problem.lambda_max(lam).exact == (name not in INEXACT)


def test_lambda_max_of_norms_beside_multiplied_losses():
    tasks = tasks_for("squared_loss", seed=5)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    loss = mtl.squared_loss(W, tasks)
    problem = mtl.minimize(lam * loss + mtl.l1_norm(W) + 2 * mtl.l21_norm(W))
    require_law(problem, lam, on_loss=True)
    one = mtl.minimize(loss + lam * (mtl.l1_norm(W) + 2 * mtl.l21_norm(W))).lambda_max(lam)
    assert problem.lambda_max(lam) == pytest.approx(1.0 / one, rel=1e-9)
    assert mtl.minimize(loss + lam * mtl.l1_norm(W) + 1e5 * mtl.l21_norm(W)).lambda_max(lam) == 0.0


def test_at_a_kink_one_norm_has_a_bound_and_several_are_refused():
    """The best constant meets the margin exactly: the slope there is no one number."""
    tasks = tasks_for("hinge_loss")
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    of_one = mtl.hinge_loss(W, tasks) + lam * mtl.l1_norm(W)
    critical = mtl.minimize(of_one).lambda_max(lam)
    assert not critical.exact and "hinge_loss(W, tasks) has a kink" in critical.note
    assert critical.bounds[0] < critical == critical.bounds[1]
    with pytest.raises(mtl.ModelError, match=r"known beside one norm, since .* has a kink at zero"):
        mtl.minimize(of_one + mtl.l21_norm(W)).lambda_max(lam)
    with pytest.raises(mtl.ModelError, match=r"rank\(W\) <= 1 is not convex"):
        mtl.minimize(of_one, subject_to=[mtl.rank(W) <= 1]).lambda_max(lam)
    w = mtl.Weights(tasks, name="w", shared=True)
    with pytest.raises(
        mtl.ModelError,
        match=r"W, w with l1_norm\(W \+ w\); give the values of a path yourself: problem.path\(",
    ):
        mtl.minimize(mtl.hinge_loss(W + w, tasks) + lam * mtl.l1_norm(W + w)).lambda_max(lam)
