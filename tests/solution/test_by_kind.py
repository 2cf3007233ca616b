"""A loss for each kind of tasks: every loss takes columns of one W, and the solution answers for all of them."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

LABELS, NUMBERS = ["ill", "cured"], ["weight", "height", "age"]
ORDER = ["weight", "ill", "height", "cured", "age"]  # kinds do not stand together


def data(n=50, separate=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    Y = X @ rng.normal(size=(6, 5)) + 0.3 * rng.normal(size=(n, 5))
    signs = [ORDER.index(name) for name in LABELS]
    Y[:, signs] = np.where(Y[:, signs] > 0, 1, -1)
    if separate:
        return mtl.Tasks.separate([X[k:] for k in range(5)], [Y[k:, k] for k in range(5)], task_names=ORDER)
    return mtl.Tasks.shared(X, Y, task_names=ORDER)


def mixed(tasks, regularizer=mtl.l21_norm):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(2.0)
    labels = mtl.logistic_loss(W[:, LABELS], tasks)
    numbers = mtl.squared_loss(W[:, NUMBERS], tasks)
    return mtl.minimize(labels + 0.5 * numbers + lam * regularizer(W)), lam


@pytest.fixture(scope="module")
def solved():
    tasks = data()
    problem, lam = mixed(tasks)
    return tasks, problem, lam, problem.solve(tol=1e-9)


@for_each("regularizer, separate", [(mtl.l21_norm, False), (mtl.trace_norm, True)])
def test_the_whole_is_certified_and_agrees_with_the_reference(regularizer, separate):
    problem, _ = mixed(data(separate=separate), regularizer)
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees


def test_without_a_term_that_ties_kinds_it_is_two_models():
    tasks = data()
    solution = mixed(tasks, mtl.ridge)[0].solve(tol=1e-10)
    alone = []
    for names, loss, c in ((LABELS, mtl.logistic_loss, 1.0), (NUMBERS, mtl.squared_loss, 0.5)):
        part = tasks.select(names)
        V = mtl.Weights(part, intercept=True)
        alone.append(mtl.minimize(c * loss(V, part) + 2.0 * mtl.ridge(V)).solve(tol=1e-10))
    assert solution.intercept is not None
    for names, one in zip((LABELS, NUMBERS), alone, strict=True):
        columns = [ORDER.index(name) for name in names]
        np.testing.assert_allclose(solution.W[:, columns], one.W, atol=1e-5)
        np.testing.assert_allclose(solution.intercept[columns], one.intercept, atol=1e-5)


def test_every_task_is_answered_in_its_kind(solved):
    tasks, _, _, solution = solved
    z = tasks.X @ solution.W + solution.intercept
    signs = np.array([name in LABELS for name in ORDER])
    np.testing.assert_allclose(solution.decision_function(tasks.X), z)
    expected = np.where(signs, np.where(z >= 0, 1.0, -1.0), z)
    np.testing.assert_allclose(solution.predict(tasks.X), expected)
    listed = solution.predict([tasks.X] * 5)
    np.testing.assert_allclose(np.column_stack(listed), expected)
    np.testing.assert_allclose(solution.predict_proba(tasks.X), np.where(signs, 1 / (1 + np.exp(-z)), np.nan))


def test_scores_are_of_each_kind(solved):
    tasks, _, _, solution = solved
    scores, ill, age = solution.scores(tasks), ORDER.index("ill"), ORDER.index("age")
    z = tasks.X @ solution.W + solution.intercept
    truth = np.column_stack(tasks.per_task(tasks.targets))
    assert scores[ill] == np.mean(np.where(z[:, ill] >= 0, 1, -1) == truth[:, ill])
    y = truth[:, age]
    assert scores[age] == pytest.approx(1 - np.sum((y - z[:, age]) ** 2) / np.sum((y - y.mean()) ** 2))
    assert solution.score(tasks, "f1").left_out == ("weight", "height", "age")
    assert solution.score(tasks, "mse").left_out == ("ill", "cured")
    of_labels = solution.scores(tasks, mtl.metrics.FScore())
    np.testing.assert_array_equal(np.isnan(of_labels), [n in NUMBERS for n in ORDER])
    assert solution.bootstrap(tasks, n=10).estimate == pytest.approx(float(np.mean(scores)))


def test_only_labels_are_cut_at_thresholds(solved):
    tasks, _, _, solution = solved
    tuned, numbers = solution.tune_threshold(tasks), [ORDER.index(name) for name in NUMBERS]
    assert np.all(tuned.thresholds[numbers] == 0.0)
    np.testing.assert_array_equal(tuned.predict(tasks.X)[:, numbers], solution.predict(tasks.X)[:, numbers])
    assert (
        np.nanmin(tuned.scores(tasks, mtl.metrics.FScore()) - solution.scores(tasks, mtl.metrics.FScore()))
        >= 0
    )


def test_a_file_keeps_the_kinds(solved, tmp_path):
    tasks, _, _, solution = solved
    loaded = mtl.Solution.load(solution.save(tmp_path / "kinds"))
    np.testing.assert_array_equal(loaded.predict(tasks.X), solution.predict(tasks.X))
    np.testing.assert_array_equal(loaded.noise_levels, solution.noise_levels)
    assert np.isnan(solution.noise_levels[ORDER.index("ill")]) and solution.noise_levels[0] > 0


@pytest.mark.slow
def test_folds_and_paths_are_of_all_tasks(solved):
    tasks, problem, lam, _ = solved
    found = problem.cross_validate(lam, [5.0, 1.0], folds=3)
    assert found.metric == "accuracy or r2" and not np.isnan(found.scores).any()
    other = problem.with_tasks(tasks.take_rows(np.arange(30)))
    assert [one.status for one in other.path(lam, [5.0, 1.0])] == ["optimal", "optimal"]
    assert problem.lambda_max(lam) > 0


def test_intercepts_that_two_losses_share_in_part_are_refused():
    W = mtl.Weights(data(), intercept=True)
    first, second = (mtl.squared_loss(W[:, columns], W.tasks) for columns in ([0, 2], [2, 4]))
    with pytest.raises(mtl.ModelError, match="share some of the intercepts of W, and not others"):
        mtl.minimize(first + second + mtl.ridge(W))
