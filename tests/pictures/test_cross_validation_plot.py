"""Cross-validation as a picture: what is drawn is what was found."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import DataError
from mtldsl.report import plot_cross_validation


@pytest.fixture(scope="module")
def stated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    tasks = mtl.Tasks.shared(X, X[:, :2] @ rng.normal(size=(2, 3)) + rng.normal(size=(60, 3)))
    W, lam, mu = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam"), mtl.Parameter(0.1, name="mu")
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W) + mu * mtl.ridge(W)), lam, mu


def test_the_curve_is_the_mean_and_its_rules_stand_there(stated):
    problem, lam, _ = stated
    found = problem.cross_validate(lam, [1.0, 100.0, 10.0], folds=3, metric="mse", refit=False)
    ax = plot_cross_validation(found, title="A title")
    order = np.argsort([value for (value,) in found.points])
    mean = [line for line in ax.lines if line.get_label() == "mean ± standard error"]
    np.testing.assert_allclose(mean[0].get_ydata(), found.mean[order])
    grey = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 3 and line not in mean]
    np.testing.assert_allclose(np.sort(grey, axis=0), np.sort(found.scores[:, order], axis=0))
    upright = {float(line.get_xdata()[0]) for line in ax.lines if len(set(line.get_xdata())) == 1}
    assert upright == {found.best_value, found.one_se_value}
    assert ax.get_xscale() == "log" and ax.get_ylabel() == "mse (lower is better)"
    assert ax.get_title(loc="left") == "A title"


def test_two_parameters_are_a_map_with_the_best_ringed(stated, plt):
    problem, lam, mu = stated
    grid = {lam: [30.0, 10.0, 1.0], mu: [10.0, 0.1]}
    found = problem.cross_validate(grid, folds=3, metric="mse", refit=False)
    given = plt.subplots()[1]
    assert plot_cross_validation(found, ax=given) is given
    np.testing.assert_allclose(given.images[0].get_array(), found.mean.reshape(3, 2))
    assert (given.get_xlabel(), given.get_ylabel()) == ("mu", "lam")
    (ring,) = given.lines
    column, row = int(ring.get_xdata()[0]), int(ring.get_ydata()[0])
    assert (float([30.0, 10.0, 1.0][row]), [10.0, 0.1][column]) == found.best
    assert given.get_title(loc="left").startswith("best: lam = ")
    assert {text.get_text() for text in given.texts} == {f"{mean:.3g}" for mean in found.mean}


def test_other_things_are_refused(stated):
    with pytest.raises(DataError, match="give what problem"):
        plot_cross_validation(3)
    problem, lam, _ = stated
    found = problem.cross_validate(lam, [1.0], folds=2, refit=False)
    with pytest.raises(DataError, match="ax=int"):
        plot_cross_validation(found, ax=3)
