"""Proven choices of a parameter: no value of a fine grid leaves the band or beats the bound; what is refused, and why."""

import logging
import signal
import warnings

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.data.labels import OneClassWarning
from mtldsl.problems.cross_validation_result import _rounded_up
from mtldsl.problems.error_bounds import Bracket, FoldBounds, ParameterForm
from tests.loops import for_each
from tests.models import D, M, separate, shared

LAPLACIAN = np.diag([1.0, 2.0, 2.0, 1.0]) - np.eye(M, k=1) - np.eye(M, k=-1)
#: cases of the laws: how the parameter stands in the model
PENALTIES = {
    "lam ridge": lambda W, loss, lam: loss + lam * mtl.ridge(W),
    "C loss": lambda W, loss, lam: lam * loss + mtl.ridge(W),
    "lam l1 + ridge": lambda W, loss, lam: loss + lam * mtl.l1_norm(W) + 0.5 * mtl.ridge(W),
    "lam ridge + trace norm": lambda W, loss, lam: loss + lam * mtl.ridge(W) + 0.3 * mtl.trace_norm(W),
    "lam (graph + ridge)": lambda W, loss, lam: (
        loss + lam * mtl.graph_laplacian(W, LAPLACIAN) + lam * mtl.ridge(W)
    ),
    "lam weighted ridge + l21": lambda W, loss, lam: (
        loss + lam * mtl.ridge(W, weights=np.arange(1.0, D + 1)[:, None]) + 0.2 * mtl.l21_norm(W)
    ),
    "lam ridge + differences": lambda W, loss, lam: (
        loss + lam * mtl.ridge(W) + 50.0 * mtl.ridge(W @ np.diff(np.eye(M), axis=1))
    ),
    "mean and ridge": lambda W, loss, lam: loss + 0.5 * mtl.mean_regularizer(W) + lam * mtl.ridge(W),
}
#: loss, kind of labels, intercept, metric, data, penalty
CASES = [
    (mtl.logistic_loss, "sign", True, "accuracy", shared, "lam ridge"),
    (mtl.logistic_loss, "sign", False, "f1", separate, "C loss"),
    (mtl.squared_loss, "real", True, "mse", shared, "lam l1 + ridge"),
    (mtl.hinge_loss, "sign", True, "roc_auc", shared, "lam ridge + trace norm"),
    (mtl.absolute_loss, "real", True, "mae", shared, "lam (graph + ridge)"),
    (mtl.logistic_loss, "sign", True, "log_loss", shared, "lam weighted ridge + l21"),
    (mtl.poisson_loss, "count", True, "mae", shared, "mean and ridge"),
    (mtl.squared_hinge_loss, "sign", False, "subset_accuracy", shared, "lam ridge"),
    (mtl.quantile_loss, "real", True, "mae", shared, "C loss"),
    (mtl.huber_loss, "real", True, "mse", shared, "lam ridge + differences"),
]


def model(loss, labels, intercept, data, penalty, seed=0, **options):
    tasks = data(seed=seed, labels=labels, **options)
    W, lam = mtl.Weights(tasks, intercept=intercept), mtl.Parameter(1.0)
    term = mtl.quantile_loss(W, tasks, 0.3) if loss is mtl.quantile_loss else loss(W, tasks)
    return mtl.minimize(PENALTIES[penalty](W, term, lam)), lam, tasks


def values_between(low, high, n):
    return np.exp(np.random.default_rng(0).uniform(np.log(low), np.log(high), n))


@pytest.mark.slow
@for_each("loss,labels,intercept,metric,data,penalty", CASES)
def test_scores_of_minimizers_lie_between_the_bounds(loss, labels, intercept, metric, data, penalty):
    """Two fits that are far apart, and near to each other: at 3 values between them every score of a row is where it was bounded."""
    problem, lam, tasks = model(loss, labels, intercept, data, penalty)
    test = data(seed=9, labels=labels)
    inputs = test.X if test.is_shared else list(test.inputs)
    for low, high in ((0.05, 20.0), (0.9, 1.1), (1.0, 1.0001)):
        form = ParameterForm(problem, lam, (low, high), "test")
        bounds, ends = FoldBounds(form, inputs), []
        for value in (low, high):
            lam.value = value
            found = problem.solve(tol=1e-8)
            ends.append(bounds.fit(problem.form(), value, found.blocks, found.proof.certificate.proof))
        bracket = Bracket(bounds, *ends)
        for value in values_between(low, high, 3):
            lam.value = value
            exact = problem.solve(tol=1e-10)
            z = (
                inputs @ exact.W
                if test.is_shared
                else [X @ w for X, w in zip(inputs, exact.W.T, strict=True)]
            )
            z = list(z.T) if test.is_shared else z
            shift = np.zeros(M) if exact.intercept is None else exact.intercept
            width = (high / low) ** 0.05
            found = bracket.bounds(max(low, value / width), min(high, value * width))
            for k in range(M):
                slack = 1e-4 * (1.0 + np.abs(z[k]))  # what a fit to 1e-10 may be off
                assert (found.low[k] - slack <= z[k] + shift[k]).all() and (
                    z[k] + shift[k] <= found.high[k] + slack
                ).all()
            if high < 1.001 and metric != "mae":
                assert max(np.max(h - l) for l, h in zip(found.low, found.high, strict=True)) < 0.3


def bounds_at(loss, X, y, value, ends, rows):
    """(least, largest) scores of the rows at a value, from fits at two others."""
    tasks = mtl.Tasks.shared(X, y)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(loss(W, tasks) + lam * mtl.ridge(W))
    fold, fits = FoldBounds(ParameterForm(problem, lam, ends, "test"), rows), []
    for end in ends:
        lam.value = end
        found = problem.solve(tol=1e-12)
        fits.append(fold.fit(problem.form(), end, found.blocks, found.proof.certificate.proof))
    lam.value = value
    exact, found = problem.solve(tol=1e-12), Bracket(fold, *fits).bounds(value, value)
    return found.low[0], found.high[0], exact.decision_function(rows)[:, 0]


@for_each("x,y", [(1e-3, 1.0), (1e3, 1.0), (1e-3, -2.0)])
def test_a_weight_at_the_end_of_the_diameter_is_just_inside(x, y):
    """Where lam outweighs the loss, or the loss lam, the optimum is V or W_0: an end of the diameter."""
    low, high, exact = bounds_at(mtl.squared_loss, [[x]], [[y]], 1.0, (0.5, 2.0), np.array([[1.0]]))
    assert low <= exact <= high
    assert min(exact - low, high - exact) < 1e-4 * abs(exact)


def test_the_gap_of_a_mixture_is_needed_in_full():
    """|w - 1| + lam/2 w^2 has w = min(1, 1/lam): at lam = 1, from lam = 1/2 and 2, the ball around 3/4 has the radius 1/4, all of it by the gap."""
    low, high, exact = bounds_at(mtl.absolute_loss, [[1.0]], [[1.0]], 1.0, (0.5, 2.0), np.array([[1.0]]))
    assert exact == pytest.approx(1.0, abs=1e-5)
    assert 1.0 <= high < 1.0 + 1e-5 and 0.49999 < low <= 0.5


def check_a_band(problem, lam, between, values, slack, regret, max_fits=None, **options):
    """No value of a plain cross-validation on the same folds beats the best one by more than is proven, and each lies in the band of its interval."""
    options |= {"refit": False}
    found = problem.cross_validate(lam, between=between, regret=regret, max_fits=max_fits, **options)
    plain = problem.cross_validate(lam, values, tol=1e-10, **options)
    sign = 1.0 if found.higher_is_better else -1.0
    assert (sign * (plain.mean - found.mean[found._best]) <= found.proof.value + slack).all()
    low, high, top, bottom = found.proof.intervals.T
    assert (low[0], high[-1]) == between and (low[1:] == high[:-1]).all() and lam.value == 1.0
    k = np.searchsorted(high, [value for (value,) in plain.points])
    assert (sign * plain.mean <= sign * top[k] + slack).all()
    assert (sign * bottom[k] <= sign * plain.mean + slack).all()
    return found.proof


@for_each("metric,regret", [("mse", 0.1), ("r2", 0.05)])
def test_no_value_of_a_grid_beats_the_bound(metric, regret):
    """Ridge regression by hand, at 200 values on three folds."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 5))
    tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(5, 2)) + rng.normal(size=(60, 2)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W))
    found = problem.cross_validate(
        lam, between=(0.01, 1e3), regret=regret, folds=3, metric=metric, refit=False
    )
    proof, best = found.proof, found.mean[found._best]
    assert proof.is_reached and proof.fits == 3 * len(found.points)
    sign = 1.0 if found.higher_is_better else -1.0
    for value in values_between(0.01, 1e3, 200):
        scores = []
        for train, test in tasks.folds(3):
            (A, B), (A_test, B_test) = ((one.X, one.targets.reshape(2, -1).T) for one in (train, test))
            errors = np.mean(
                (A_test @ np.linalg.solve(A.T @ A + value * np.eye(5), A.T @ B) - B_test) ** 2, axis=0
            )
            scores.append(np.mean(errors if metric == "mse" else 1.0 - errors / B_test.var(axis=0)))
        assert sign * (np.mean(scores) - best) <= proof.value + 1e-12


@pytest.mark.slow
@for_each("case", CASES[1::3])
def test_no_value_of_a_grid_beats_the_bound_in_more_models(case):
    """Losses and penalties in turn: bounds on scores of all are held above, and those of all measures below."""
    loss, labels, intercept, metric, data, penalty = case
    problem, lam, _ = model(loss, labels, intercept, data, penalty, seed=1)
    regret, values = 0.1 if metric == "mae" else 0.05, values_between(0.05, 20.0, 5)
    proof = check_a_band(problem, lam, (0.05, 20.0), values, 1e-6, regret, folds=2, metric=metric)
    assert proof.is_reached and proof.value <= regret


def refused(problem, lam, match, **options):
    with pytest.raises(mtl.errors.MTLError, match=match):
        problem.cross_validate(lam, **({"between": (0.1, 10.0), "regret": 0.01, "folds": 2} | options))


def test_models_of_which_nothing_is_proven_are_refused():
    tasks = shared(labels="sign")
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    loss = mtl.logistic_loss(W, tasks)
    for objective, match in [
        (loss + lam * mtl.l21_norm(W), r"write.* \+ 1e-3 \* ridge\(W\)|add \+ 1e-3 \* ridge\(W\)"),
        (loss + lam * mtl.mean_regularizer(W), r"strongly convex in W"),
        (loss + (1.0 + lam) * mtl.ridge(W), "neither a constant nor a multiple of lam"),
        (loss + (lam * lam + 2.0) * mtl.ridge(W), "neither a constant nor a multiple of lam"),
        (loss + (lam + 2.0 / lam) * mtl.l1_norm(W) + lam * mtl.ridge(W), "neither a constant nor a multiple"),
        (loss + mtl.ridge(lam * W), "stands inside an argument or a radius"),
        (mtl.structured_hinge(W, tasks) + lam * mtl.ridge(W), "not a sum over samples"),
        (mtl.square_root_loss(W, shared()) + lam * mtl.ridge(W), "not a sum over samples"),
    ]:
        refused(mtl.minimize(objective), lam, match, metric=None)
    S = mtl.Weights(tasks, name="S")
    refused(
        mtl.minimize(mtl.logistic_loss(W + S, tasks) + lam * mtl.ridge(W) + lam * mtl.ridge(S)),
        lam,
        "one matrix of weights",
    )
    refused(mtl.minimize(loss + lam * mtl.ridge(W), [W >= 0]), lam, "is a constraint")
    refused(mtl.minimize(loss + mtl.log_rank(W) + lam * mtl.ridge(W)), lam, "not convex")


class Own(mtl.metrics.FScore):
    """A metric of which nothing is known here."""


def test_what_is_asked_for_is_checked():
    problem, lam, _ = model(*CASES[0][:3], CASES[0][4], CASES[0][5])
    refused(problem, lam, r"write between=\(1e-3, 1e3\) in place of values", values=[1.0, 2.0])
    refused(problem, lam, r"the interval is two numbers", between=None)
    refused(problem, lam, r"the interval is two numbers", between=(2.0, 1.0))
    refused(problem, lam, r"the regret is a number above 0", regret=0.0)
    refused(problem, lam, r"between is of a proven choice", regret=None)
    refused(problem, lam, r"two values at least", max_fits=1)
    refused(problem, [lam, mtl.Parameter(1.0)], "one parameter")
    refused(problem, mtl.Parameter(1.0), "no such parameter")
    refused(problem, lam, "write max_fits", max_seconds=1.0)
    refused(problem, lam, "write another metric, such as metric='f1'", metric=Own())
    refused(
        *model(mtl.squared_loss, "real", True, shared, "lam ridge")[:2],
        "not bounded row by row",
        metric="explained_variance",
    )


MEASURES = ["hamming_loss", "roc_auc", "balanced_accuracy", "log_loss", "ranking_loss", "average_precision", "f1_micro", "brier", "precision", mtl.metrics.FScore(beta=2)]  # fmt: skip


@pytest.mark.slow
@for_each("metric", MEASURES)
def test_every_measure_lies_in_the_band(metric):
    check_beside_a_ridge(labelled_tasks(), metric)


@pytest.mark.slow
@for_each("kind", ["rare", "constant", "weights", "sparse", "each fold"])
def test_every_kind_of_fold_lies_in_the_band(kind):
    """A task of one class in a fold, weights of rows, sparse inputs, and columns standardized on each fold's rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6)) + np.array([0, 0, 3, 0, 0, 0])
    Y = np.where(rng.normal(size=(80, 2)) + X[:, :2] > 0.5, 1.0, -1.0)
    tasks = {
        "weights": lambda: mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.5, 2.0, 80)),
        "sparse": lambda: mtl.Tasks.shared(sparse.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0.0)), Y),
        "each fold": lambda: mtl.Tasks.shared(X, Y).standardize(each_fold=True),
    }.get(kind, lambda: mtl.Tasks.shared(X, np.column_stack([Y, np.where(np.arange(80) == 7, 1.0, -1.0)])))()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneClassWarning)
        check_beside_a_ridge(tasks, "accuracy", one_class="constant" if kind == "constant" else "skip")


@for_each("metric", ["mse", "r2", "mae"])
def test_averages_where_a_task_has_no_labels_in_a_fold(metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    Y = X @ rng.normal(size=(4, 3)) + rng.normal(size=(30, 3))
    Y[:6, 2] = Y[10:, 2] = np.nan
    tasks = mtl.Tasks.shared(X, Y)
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W))
    folds = [(np.arange(20), np.arange(20, 30)), (np.arange(5, 30), np.arange(5))]
    check_a_band(
        problem, lam, (0.1, 10.0), np.geomspace(9.9, 0.11, 20), 1e-7, 0.1, metric=metric, folds=folds
    )


def labelled_tasks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    Y = np.where(X[:, :3] @ rng.normal(size=(3, 3)) + rng.normal(size=(80, 3)) > 0.5, 1.0, -1.0)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    return mtl.Tasks.shared(X, Y)


def check_beside_a_ridge(tasks, metric, **options):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.ridge(W))
    options |= {"folds": 2, "metric": metric, "max_fits": 4}
    check_a_band(problem, lam, (0.3, 10.0), np.geomspace(9.9, 0.31, 5), 1e-7, 0.05, **options)


def test_few_fits_prove_less_and_say_so():
    problem, lam, _ = model(*CASES[0][:3], CASES[0][4], CASES[0][5])
    few = problem.cross_validate(lam, between=(0.05, 20.0), regret=0.02, folds=2, max_fits=3)
    assert not few.proof.is_reached and few.proof.value > 0.02 and few.proof.fits == 6
    assert "0.02 was asked for" in str(few) and few.solution.parameters == {"lam": few.best_value}
    more = problem.cross_validate(lam, between=(0.05, 20.0), regret=0.02, folds=2, refit=False)
    assert more.proof.is_reached and more.proof.value <= 0.02 and "asked for" not in str(more)
    assert sorted(few.points)[0] == sorted(more.points)[0] == (0.05,)


def test_ctrl_c_keeps_what_is_proven():
    """A signal after the fourth value: the intervals still cover all values, and the proof is of a larger regret."""
    problem, lam, _ = model(*CASES[0][:3], CASES[0][4], CASES[0][5])
    asked = {"between": (0.05, 20.0), "regret": 1e-3, "folds": 2}

    class Stopping(logging.Handler):
        left = 4

        def emit(self, record):
            self.left -= " at " in record.getMessage()
            if not self.left:
                signal.raise_signal(signal.SIGINT)

    logger, handler = logging.getLogger("mtldsl"), Stopping(logging.DEBUG)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with pytest.raises(mtl.Interrupted, match="when 4 values were complete") as stop:
            problem.cross_validate(lam, **asked)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    found = stop.value.completed
    assert not found.proof.is_reached and found.proof.fits == 8 and len(found.points) == 4
    low, high = found.proof.intervals[:, :2].T
    assert low[0] == 0.05 and high[-1] == 20.0 and (low[1:] == high[:-1]).all()
    same = problem.cross_validate(lam, max_fits=4, refit=False, **asked)
    assert found.best_value == same.best_value and found.proof.value >= same.proof.value


def test_the_picture_has_the_band_that_no_value_leaves():
    pytest.importorskip("matplotlib")
    problem, lam, _ = model(*CASES[0][:3], CASES[0][4], CASES[0][5])
    found = problem.cross_validate(lam, between=(0.05, 20.0), regret=0.05, folds=2, refit=False)
    ax = found.plot()
    drawn = {text.get_text() for text in ax.get_legend().get_texts()}
    limit = found.mean[found._best] + found.proof.value
    assert f"no value is better than {limit:.3g}" in drawn and "possible at any value" in drawn
    (band,) = ax.collections
    (path,) = band.get_paths()
    assert path.vertices[:, 0].min() == 0.05 and path.vertices[:, 0].max() == 20.0
    assert path.vertices[:, 1].max() == pytest.approx(limit)


@for_each("value", [0.00499905, 0.12345678, 0.0099999999, 1e-12 / 3])
def test_regrets_are_never_rounded_down(value):
    shown = float(_rounded_up(value))
    assert value <= shown <= value * 1.002
