"""Predictions, scores and storage; task weights and noise levels."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn import metrics as sk

import mtldsl as mtl
from mtldsl.atoms.losses import StructuredHinge
from mtldsl.solution.measures import measure
from mtldsl.solution.score import score_of
from tests.loops import for_each
from tests.models import separate, shared, with_weights
from tests.pairs import pairwise_cases
from tests.scoring.test_measures import BY_TASK


@pytest.fixture(scope="module")
def classified():
    tasks, W = with_weights(shared(3, n=40, labels="sign"), intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.5 * mtl.trace_norm(W))
    return tasks, problem.solve(tol=1e-8)


def fitted(tasks, loss=mtl.logistic_loss, intercept=True):
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(loss(W, tasks) + mtl.ridge(W)).solve()


def test_predictions_by_hand(classified):
    tasks, solution = classified
    z = tasks.X @ solution.W + solution.intercept
    np.testing.assert_allclose(solution.decision_function(tasks.X), z, rtol=1e-12)
    np.testing.assert_array_equal(solution.predict(tasks.X), np.where(z >= 0, 1.0, -1.0))
    np.testing.assert_allclose(solution.predict_proba(tasks.X), 1 / (1 + np.exp(-z)), rtol=1e-12)
    accuracy = np.mean(np.where(z >= 0, 1.0, -1.0) == tasks.targets.reshape(tasks.n_tasks, -1).T, axis=0)
    np.testing.assert_allclose(solution.scores(tasks), accuracy)
    assert solution.score(tasks) == pytest.approx(accuracy.mean())


def test_decomposition_predicts_with_the_sum():
    tasks = separate(2)
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    solution = mtl.minimize(mtl.squared_loss(L + 2 * S, tasks) + mtl.trace_norm(L) + mtl.l12_norm(S)).solve()
    np.testing.assert_allclose(solution.W, solution.L + 2 * solution["S"])
    scores = zip(solution.decision_function(tasks.inputs), tasks.per_task(tasks.targets), strict=True)
    for i, (z, y) in enumerate(scores):
        np.testing.assert_allclose(z, tasks.inputs[i] @ solution.W[:, i])
        r2 = 1 - np.sum((y - z) ** 2) / np.sum((y - y.mean()) ** 2)
        np.testing.assert_allclose(solution.scores(tasks)[i], r2)


def test_standardised_training_data_scale_new_inputs():
    rng = np.random.default_rng(0)
    X, Y = 50 + 7 * rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    raw = mtl.Tasks.shared(X, Y)
    scaled = raw.standardize()
    solution = fitted(scaled, mtl.squared_loss)
    expected = (X - X.mean(axis=0)) / X.std(axis=0) @ solution.W + solution.intercept
    np.testing.assert_allclose(solution.predict(X), expected, rtol=1e-10)
    # scores on the scaled tasks and on raw ones are of the same predictions
    np.testing.assert_allclose(solution.scores(scaled), solution.scores(raw), rtol=1e-10)
    np.testing.assert_allclose(solution.scores(raw, "r2"), solution.scores(raw), rtol=1e-10)
    np.testing.assert_allclose(solution.scores(raw, "nmse"), 1 - solution.scores(raw), rtol=1e-10)


KEPT = "objective dual_bound relative_gap violation status solver model parameters task_names"


@for_each("kind, extra", [("squared_loss", {}), ("poisson_loss", {}), ("huber_loss", {"delta": 0.7})])
def test_saved_and_loaded_it_predicts_the_same(tmp_path, kind, extra):
    tasks = shared(3, labels="count" if kind == "poisson_loss" else "real")
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(0.3)
    solution = mtl.minimize(getattr(mtl, kind)(W, tasks, **extra) + lam * mtl.l21_norm(W)).solve()
    assert solution.gap == solution.gap.relative == solution.relative_gap
    assert solution.gap.absolute == pytest.approx(solution.objective - solution.dual_bound)
    path = solution.save(tmp_path / "answer")
    assert path.suffix == ".npz" and b"pickle" not in path.read_bytes()
    for name in (path, tmp_path / "answer"):  # the name given to save works too
        loaded = mtl.Solution.load(name)
        np.testing.assert_array_equal(loaded.predict(tasks.X), solution.predict(tasks.X))
        assert all(getattr(loaded, one) == getattr(solution, one) for one in KEPT.split())
        assert loaded.history[-1]["objective"] == solution.history[-1]["objective"]


def test_mistakes_are_named(classified):
    tasks, solution = classified
    with pytest.raises(mtl.DataError, match="learned on 6 features"):
        solution.predict(np.ones((3, 2)))
    with pytest.raises(mtl.DataError, match="nan in row 0, column 0"):
        solution.predict(np.full((3, 6), np.nan))
    with pytest.raises(mtl.ModelError, match="no such block"):
        solution["Q"]
    with pytest.raises(AttributeError, match="'Q'"):
        _ = solution.Q
    with pytest.raises(mtl.ModelError, match="squared_loss models no probabilities"):
        fitted(shared(3), mtl.squared_loss).predict_proba(shared(3).X)
    for loss in (mtl.hinge_loss, mtl.squared_loss):
        with pytest.raises(mtl.ModelError, match="models no probabilities"):
            fitted(tasks, loss).score(tasks, "brier")


FACES = {"labels": "predict", "scores": "decision_function", "probabilities": "predict_proba"}


@pytest.mark.slow
@for_each("layout", ["shared", "separate"])
def test_scores_are_those_of_what_the_solution_predicts(layout):
    tasks = shared(0, n=60, labels="sign", missing=0.2)
    inputs, labels = tasks.inputs, tasks.per_task(tasks.targets)
    tasks = mtl.Tasks.separate(inputs, labels) if layout == "separate" else tasks
    solution = fitted(tasks)
    for name, function in BY_TASK.items():
        predicted = getattr(solution, FACES[measure(name).needs])(inputs)
        wanted = [function(y, p) for y, p in zip(labels, predicted, strict=True)]
        assert np.allclose(solution.scores(tasks, name), wanted, rtol=1e-10), name
        assert np.isclose(solution.score(tasks, name), np.mean(wanted), rtol=1e-10), name


def test_scores_of_counts_and_of_whole_rows(classified):
    counts = shared(2, n=60, labels="count", missing=0.2)
    poisson = fitted(counts, mtl.poisson_loss)
    wanted = [
        sk.mean_absolute_error(y, p)
        for y, p in zip(counts.per_task(counts.targets), poisson.predict(counts.inputs), strict=True)
    ]
    np.testing.assert_allclose(poisson.scores(counts, "mae"), wanted, rtol=1e-10)
    tasks, solution = classified
    positive = np.reshape(tasks.targets > 0, (tasks.n_tasks, -1)).T
    wanted = sk.label_ranking_loss(positive, solution.decision_function(tasks.X))
    assert np.isclose(solution.score(tasks, "ranking_loss"), wanted, rtol=1e-12)
    said = r"no task has a number of its own; write score\(tasks, metric='ranking_loss'\)"
    with pytest.raises(mtl.ModelError, match=said):
        solution.scores(tasks, "ranking_loss")


class Missed(mtl.Metric):
    """A metric of one's own."""

    def delta(self, b, c, positives, negatives):
        return c / positives


METRICS = {
    "FScore": (mtl.metrics.FScore(), lambda y, z: sk.f1_score(y > 0, z >= 0)),
    "FScore(beta=2)": (mtl.metrics.FScore(beta=2), lambda y, z: sk.fbeta_score(y > 0, z >= 0, beta=2)),
    "ErrorRate": (mtl.metrics.ErrorRate(), lambda y, z: sk.accuracy_score(y > 0, z >= 0)),
    "PartialAUC": (mtl.metrics.PartialAUC(1.0), lambda y, z: sk.roc_auc_score(y > 0, z)),
    "AveragePrecision": (mtl.metrics.AveragePrecision(), lambda y, z: sk.average_precision_score(y > 0, z)),
    "NDCG": (mtl.metrics.NDCG(), lambda y, z: sk.ndcg_score((y > 0)[None, :].astype(float), z[None, :])),
    "ROCArea": (mtl.metrics.ROCArea(), lambda y, z: sk.roc_auc_score(y > 0, z)),
    "AUC": (mtl.metrics.AUC(), lambda y, z: 1 - (1 - sk.recall_score(y > 0, z >= 0)) * (1 - sk.recall_score(y < 0, z < 0))),
    "PrecisionAt(19)": (mtl.metrics.PrecisionAt(19), lambda y, z: sk.precision_score(y > 0, z >= np.sort(z)[-19])),
    "RecallAt(0.55)": (mtl.metrics.RecallAt(0.55), lambda y, z: sk.recall_score(y > 0, z >= np.sort(z)[-round(0.55 * len(z))])),
    "own": (Missed(), lambda y, z: sk.recall_score(y > 0, z >= 0)),
}  # fmt: skip


@for_each("name", METRICS)
def test_scores_under_a_metric_are_scikit_learns(classified, name):
    tasks, solution = classified
    metric, expected = METRICS[name]
    scores = solution.decision_function(tasks.X).T
    by_hand = [expected(y, z) for y, z in zip(tasks.per_task(tasks.targets), scores, strict=True)]
    np.testing.assert_allclose(solution.scores(tasks, metric=metric), by_hand, rtol=1e-12)
    assert solution.score(tasks, metric) == pytest.approx(np.mean(by_hand))
    assert len(set(by_hand)) > 1  # the tasks differ, so that their order is checked
    in_one_task = solution.scores(
        tasks, metric=[mtl.metrics.ErrorRate(), metric, mtl.metrics.ErrorRate(), mtl.metrics.AUC()]
    )
    assert in_one_task[1] == pytest.approx(by_hand[1])
    assert in_one_task[2] == pytest.approx(solution.scores(tasks)[2])


def test_equal_scores_under_metrics_of_rankings():
    """The second place is shared by one positive and two negatives."""
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    z = np.array([2.0, 1.0, 1.0, 1.0, 0.0, -1.0])
    assert score_of(mtl.metrics.ROCArea(), z, y) == pytest.approx(sk.roc_auc_score(y > 0, z))
    assert score_of(mtl.metrics.PrecisionAt(2), z, y) == pytest.approx((1 + 1 / 3) / 2)
    assert score_of(mtl.metrics.RecallAt(3), z, y) == pytest.approx((1 + 2 / 3) / 3)
    assert score_of(mtl.metrics.PrecisionAt(6), z, y) == pytest.approx(0.5)
    assert score_of(mtl.metrics.PrecisionAt(1), z, y, threshold=5.0) == 1.0  # no threshold counts


def test_metrics_of_ones_own_score_themselves(monkeypatch):
    """A metric that says how it scores an order is asked, and a subclass of one that is a table is scored by its own."""
    monkeypatch.setattr(mtl.Metric, "known", dict(mtl.Metric.known))

    class FirstIsPositive(mtl.Metric):
        labellings, scored_by_order = False, True

        def score(self, z, positive, threshold):
            return float(positive[np.argmax(z)])

    class MissedAlone(mtl.metrics.ErrorRate):
        def delta(self, b, c, positives, negatives):
            return c / positives + 0.0 * b

    z, y = np.array([0.1, 0.9, -0.5]), np.array([1.0, -1.0, 1.0])
    assert score_of(MissedAlone(), z, y) == 0.5 and score_of(mtl.metrics.ErrorRate(), z, y) == pytest.approx(
        1 / 3
    )
    assert score_of(FirstIsPositive(), z, y) == 0.0 and score_of(FirstIsPositive(), -z, y) == 1.0
    FirstIsPositive.scored_by_order = False
    with pytest.raises(mtl.ModelError, match="measures rankings, and has no score"):
        score_of(FirstIsPositive(), z, y)


def test_wrong_metrics_of_scores_are_named(classified):
    tasks, solution = classified
    labels = np.where([False, True, False, False], 1.0, tasks.targets.reshape(4, -1).T)
    one_class = mtl.Tasks.shared(tasks.X, labels)
    for given, metric, kind, message in (
        (tasks, "roc_au", mtl.ModelError, r"^scores\(tasks, metric='roc_au'\): there is no such measure; write 'roc_auc'"),
        (tasks, mtl.metrics.AUC, mtl.ModelError, r"write metric=AUC\(\)"),
        (tasks, [mtl.metrics.AUC()], mtl.ModelError, "1 metrics for 4 tasks"),
        (tasks, mtl.metrics.PrecisionAt(1000), mtl.ModelError, r"metric=PrecisionAt\(k=1000\)\): task .*the task has 40"),
        (one_class, mtl.metrics.FScore(), mtl.DataError, r"^scores\(tasks\): task 'task1' has one class only"),
    ):  # fmt: skip
        with pytest.raises(kind, match=message):
            solution.scores(given, metric)
    with pytest.raises(mtl.ModelError, match=r"^score\(tasks, metric='g1'\): there is no such measure"):
        solution.score(tasks, "g1")
    assert solution.scores(one_class)[1] <= 1.0  # accuracy needs no second class
    with pytest.raises(mtl.DataError, match="labels must be -1 or"):
        fitted(shared(3), mtl.squared_loss).scores(shared(3), mtl.metrics.FScore())


def hinged(metric):
    tasks, W = with_weights(shared(3, n=40, labels="sign"))
    hinge = mtl.structured_hinge(W, tasks, metric=metric)
    return tasks, mtl.minimize(hinge + 1e-3 * mtl.l21_norm(W)).solve(tol=1e-4)


EACH = [mtl.metrics.FScore(beta=2), mtl.metrics.ErrorRate(), Missed(), mtl.metrics.AUC()]


@pytest.mark.slow
@for_each("metric", [mtl.metrics.FScore(), mtl.metrics.FScore(beta=2), mtl.metrics.PrecisionAt(0.25), EACH])
def test_structured_losses_are_saved(tmp_path, metric):
    tasks, solution = hinged(metric)
    loaded = mtl.Solution.load(solution.save(tmp_path / "hinge"))
    expected = np.where(solution.decision_function(tasks.X) >= 0, 1, -1)
    np.testing.assert_array_equal(loaded.predict(tasks.X), expected)
    np.testing.assert_array_equal(loaded.scores(tasks), solution.scores(tasks))
    again = mtl.Solution.load(loaded.save(tmp_path / "again"))
    assert again.loss == loaded.loss and again.model == solution.model
    if not isinstance(metric, list):  # Missed is best where all are labelled +1, which tuning refuses
        first, *others = (s.tune_threshold(tasks).thresholds for s in (solution, loaded, again))
        np.testing.assert_array_equal(others, [first, first])
    plain = loaded.loss["parameters"].get("metric", mtl.metrics.FScore())
    rebuilt = StructuredHinge(metric=plain)
    assert repr(rebuilt.metric) == repr(tuple(metric) if isinstance(metric, list) else metric)


def test_a_metric_of_ones_own_is_needed_only_to_tune_with_it(tmp_path, monkeypatch):
    class Balanced(mtl.Metric):
        def delta(self, b, c, positives, negatives):
            return 0.5 * (b / negatives + c / positives)

    tasks, solution = hinged(Balanced())
    path = solution.save(tmp_path / "own")
    tuned = mtl.Solution.load(path).tune_threshold(tasks)
    np.testing.assert_array_equal(tuned.thresholds, solution.tune_threshold(tasks, Balanced()).thresholds)

    monkeypatch.delitem(mtl.Metric.known, "Balanced")  # as in a session that has not imported the class
    loaded = mtl.Solution.load(path)
    np.testing.assert_array_equal(loaded.predict(tasks.X), solution.predict(tasks.X))
    np.testing.assert_array_equal(loaded.scores(tasks), solution.scores(tasks))
    np.testing.assert_allclose(
        loaded.scores(tasks, mtl.metrics.FScore()), solution.scores(tasks, mtl.metrics.FScore())
    )
    np.testing.assert_array_equal(mtl.Solution.load(loaded.save(tmp_path / "b")).W, solution.W)
    with pytest.raises(mtl.ModelError, match="'Balanced' is not known here: import the module"):
        loaded.tune_threshold(tasks)


def test_a_metric_with_parameters_that_cannot_be_saved_is_named(tmp_path):
    @dataclass(frozen=True, eq=False, repr=False)
    class Priced(mtl.Metric):
        price: object = None

        def delta(self, b, c, positives, negatives):
            return b / negatives + c / positives

    _, solution = hinged(Priced(price=len))
    with pytest.raises(mtl.ModelError, match=r"save: <built-in function len> .*numbers, text"):
        solution.save(tmp_path / "priced")
    assert not (tmp_path / "priced.npz").exists()


def test_weights_cannot_be_changed_under_their_proof():
    tasks, W = with_weights(shared(), intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    for kept in (solution, pickle.loads(pickle.dumps(solution)), copy.deepcopy(solution)):
        for array in (kept.W, kept.coef, kept.intercept, kept["W"], kept.blocks["W.intercept"]):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 5.0
    own = np.array(solution.W)
    own[0, 0] = 5.0
    assert solution.W[0, 0] != 5.0


def tasks_of(kind, weighted=False, seed=0, noise=(0.1, 1.0, 5.0)):
    rng = np.random.default_rng(seed)
    d, n, m = 4, 30, len(noise)
    truth = np.outer(rng.normal(size=d), np.ones(m))
    if kind == "separate":
        X = [rng.normal(size=(n + 7 * i, d)) for i in range(m)]
        y = [A @ w + s * rng.normal(size=len(A)) for A, w, s in zip(X, truth.T, noise, strict=True)]
        weights = [rng.uniform(0.5, 2.0, size=len(A)) for A in X] if weighted else None
        return mtl.Tasks.separate(X, y, sample_weights=weights)
    X = rng.normal(size=(n, d))
    Y = X @ truth + np.array(noise) * rng.normal(size=(n, m))
    if kind == "masked":
        Y[rng.random(Y.shape) < 0.3] = np.nan
    return mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.5, 2.0, size=n) if weighted else None)


def residual_norms(solution, tasks):
    """(||r_i|| with weighted samples, total weight) in plain numpy."""
    shift = np.zeros(tasks.n_tasks) if solution.intercept is None else solution.intercept
    ones = [np.ones(n) for n in tasks.counts]
    weights = ones if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)
    rows = zip(tasks.inputs, tasks.per_task(tasks.targets), weights, solution.W.T, shift, strict=True)
    found = [(np.sqrt(s @ (X @ w + b - y) ** 2), s.sum()) for X, y, s, w, b in rows]
    return np.array(found).T


@for_each(
    "kind, weighted, intercept, mean",
    pairwise_cases(["separate", "shared", "masked"], [False, True], [False, True], [False, True]),
)
def test_weights_and_levels_are_those_of_the_residuals(kind, weighted, intercept, mean):
    tasks, W = with_weights(tasks_of(kind, weighted), intercept=intercept)
    loss = 3.0 * mtl.square_root_loss(W, tasks, eps=0.02, mean=mean)
    solution = mtl.minimize(loss + 1e-3 * mtl.trace_norm(W)).solve()
    norms, totals = residual_norms(solution, tasks)
    coefficients = 3.0 / totals if mean else 3.0  # divided by the total weight of the samples
    assert solution.task_weights == pytest.approx(coefficients / np.hypot(norms, 0.02), rel=1e-9)
    assert solution.noise_levels == pytest.approx(norms / np.sqrt(totals), rel=1e-9)
    assert solution.noise_levels == pytest.approx(np.array([0.1, 1.0, 5.0]), rel=0.5)


@for_each(("word", "weight"), [("squared_loss", 1.0), ("sum_of_squares", 2.0)])
def test_a_squared_loss_weighs_all_tasks_alike(word, weight):
    tasks, W = with_weights(tasks_of("shared"))
    solution = mtl.minimize(0.5 * getattr(mtl, word)(W, tasks) + mtl.log_rank(W)).solve()
    assert solution.task_weights == pytest.approx(np.full(3, 0.5 * weight))
    norms, totals = residual_norms(solution, tasks)
    assert solution.noise_levels == pytest.approx(norms / np.sqrt(totals))


@for_each("word", ["absolute_loss", "huber_loss", "hinge_loss", "logistic_loss"])
def test_other_losses_have_no_weights(word):
    tasks = tasks_of("shared")
    if word in ("hinge_loss", "logistic_loss"):
        tasks = mtl.Tasks.shared(tasks.X, np.where(tasks.targets.reshape(3, -1).T > 0, 1.0, -1.0))
    W = mtl.Weights(tasks)
    solution = mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.trace_norm(W)).solve(tol=1e-4)
    assert solution.task_weights is solution.noise_levels is None
