"""Weights and features on data drawn again: against least squares' own errors, the bound on false features, seeds, processes, mistakes."""

import re

import joblib
import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights


def regression(seed=0, n=150, d=4, m=2, noise=1.0, influential=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = rng.normal(size=(d, m)) * (np.arange(d) < (d if influential is None else influential))[:, None]
    return mtl.Tasks.shared(X, X @ truth + noise * rng.normal(size=(n, m)))


def least_squares(tasks):
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(mtl.squared_loss(W, tasks) + 1e-6 * mtl.ridge(W))


def sparse(tasks, norm=mtl.l21_norm):
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * norm(W)), lam


@pytest.mark.slow
def test_intervals_of_least_squares_are_its_standard_errors():

    tasks = regression()
    found = least_squares(tasks).bootstrap(400)
    X = np.column_stack([tasks.X, np.ones(150)])
    inverse = np.linalg.inv(X.T @ X)
    Y = tasks.targets.reshape(2, -1).T
    errors = Y - X @ inverse @ X.T @ Y
    se = np.sqrt(np.diag(inverse)[:, None] * (errors**2).sum(axis=0) / (150 - 5))
    # 400 draws know a percentile to a tenth, and rows drawn again are not errors of one variance
    assert np.allclose(found.high - found.low, 2 * 1.96 * se[:-1], rtol=0.3)
    assert np.allclose(found.high_intercept - found.low_intercept, 2 * 1.96 * se[-1], rtol=0.3)
    assert ((found.low < found.solution.W) & (found.high > found.solution.W)).all()
    assert (found.nonzero == 1.0).all() and found.samples.shape == (400, 4, 2)


@pytest.mark.slow
def test_weights_that_are_sometimes_zero_say_how_often():
    tasks = regression(1, n=60, d=6, influential=2)
    problem, lam = sparse(tasks, mtl.l1_norm)
    lam.value = 12.0
    found = problem.bootstrap(20)
    assert found.nonzero[:2].mean() > 0.9 > 0.6 > found.nonzero[2:].mean()
    by_hand = (found.samples != 0).mean(axis=0)
    assert np.allclose(found.nonzero, by_hand) and len(found.table) == 12
    frame = found.frame().set_index(["feature", "task"])
    assert np.isclose(frame.loc[("x0", "task1"), "high"], found.high[0, 1])


@pytest.mark.slow
def test_a_sample_is_the_model_on_its_rows():
    """Drawing every row of a group as often as the group: with two groups a sample has one of three data sets."""
    tasks = regression(2, n=40)
    found, rows = least_squares(tasks).bootstrap(12, groups=np.arange(40) % 2, tol=1e-9), np.arange(40)
    halves = [least_squares(tasks.take_rows(one)).solve(tol=1e-9).W for one in (rows[::2], rows[1::2])]
    known = np.stack([*halves, found.solution.W])
    nearest = np.abs(found.samples[:, None] - known[None]).max(axis=(2, 3)).min(axis=1)
    assert (nearest < 1e-3).all() and len(np.unique(found.samples.round(2), axis=0)) == 3


@pytest.mark.slow
def test_tasks_of_one_class_in_a_sample_are_left_out_and_counted():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    Y = np.where(X[:, :2] + rng.normal(size=(30, 2)) > 0, 1.0, -1.0)
    Y[:, 1] = -1.0
    Y[:2, 1] = 1.0
    tasks, W = with_weights(mtl.Tasks.shared(X, Y, task_names=["a", "rare"]), intercept=True)
    found = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.trace_norm(W)).bootstrap(60)
    expected = 60 * (28 / 30) ** 30
    assert 0 < found.not_learned[1] < 4 * expected and found.not_learned[0] == 0
    assert np.isfinite(found.low).all() and "'rare' was not learned in" in repr(found)


@for_each("ask", ["bootstrap", "stability_selection"])
def test_the_seed_decides_and_the_number_of_jobs_does_not(ask):
    tasks = regression(4, n=60, d=8, influential=2)
    problem, lam = sparse(tasks)

    def run(**options):
        if ask == "bootstrap":
            return problem.bootstrap(6, **options).samples
        return problem.stability_selection(lam, [60.0, 15.0], n=6, expected_false=None, **options).frequencies

    alone = run()
    with joblib.parallel_config(backend="threading"):
        assert np.array_equal(alone, run(n_jobs=2))
    assert not np.array_equal(alone, run(random_state=1)) and lam.value == 1.0


@pytest.mark.slow
def test_features_with_influence_are_selected_and_few_others():
    """Over four data sets with 3 of 60 features of influence: those whose influence is above the noise, and on average no more false ones
    than the bound says."""
    false = []
    for seed in range(4):
        tasks = regression(seed, n=80, d=60, m=3, noise=1.0, influential=3)
        fit = np.linalg.lstsq(tasks.X[:, :3], tasks.targets.reshape(3, -1).T, rcond=None)[0]
        least = np.linalg.norm(fit, axis=1)
        problem, lam = sparse(tasks)
        found = problem.stability_selection(lam, 12, n=20, tol=1e-4, random_state=seed)
        assert found.expected_false <= 1.0 and found.used < 12
        assert np.isclose(found.expected_false, found.chosen**2 / (0.5 * 60))
        selected = set(found.selected)
        assert {f"x{j}" for j in range(3) if least[j] > 1.0} <= selected
        false.append(len(selected - {"x0", "x1", "x2"}))
    assert np.mean(false) <= 1.0


def test_probabilities_are_the_shares_of_halves():
    tasks = regression(5, n=60, d=10, influential=2)
    problem, lam = sparse(tasks)
    top = float(problem.lambda_max(lam))
    found = problem.stability_selection(lam, [1e-3 * top, 0.2 * top, 2 * top], n=11, expected_false=None)
    assert found.values == [2 * top, 0.2 * top, 1e-3 * top] and found.used == 3 and found.n == 11
    assert not found.frequencies[0].any() and (found.feature_frequencies[2] == 1.0).all()
    shares = found.feature_frequencies * 11
    assert np.allclose(shares, shares.round())
    assert (found.feature_frequencies >= found.frequencies.max(axis=2)).all()
    assert (found.probabilities == 1.0).all()
    strict = problem.stability_selection(lam, [2 * top, 1e-3 * top], n=4)
    assert strict.used == 1 and strict.selected == [] and strict.expected_false == 0.0


@for_each(
    "call, says",
    [
        (lambda p, lam: p.bootstrap(1), "bootstrap(n=1)"),
        (lambda p, lam: p.bootstrap(5, level=0), "level=0"),
        (lambda p, lam: p.bootstrap(5, n_jobs="all"), "n_jobs='all'"),
        (lambda p, lam: p.bootstrap(5, groups=[1]), "there are 1 groups"),
        (lambda p, lam: p.stability_selection("lam"), "'lam' is not a parameter"),
        (lambda p, lam: p.stability_selection(lam, threshold=0.5), "threshold=0.5"),
        (lambda p, lam: p.stability_selection(lam, expected_false=0), "expected_false=0"),
        (lambda p, lam: p.stability_selection(lam, n=0), "n=0"),
        (lambda p, lam: p.stability_selection(lam, [-1.0]), "finite and >= 0"),
    ],
)
def test_mistakes_are_named(call, says):
    with pytest.raises(mtl.errors.MTLError, match=re.escape(says)):
        call(*sparse(regression(n=20)))
