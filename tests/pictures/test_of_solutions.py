"""What solutions and cross-validations draw: axes in, axes out; what is drawn is what the numbers say, at half width too."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import DataError
from mtldsl.report import plot_cross_validation
from tests.loops import for_each
from tests.models import with_weights


@pytest.fixture(scope="module")
def tasks():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 9))
    Y = np.sign(X[:, :3] @ rng.normal(size=(3, 4)) + 0.2 * rng.normal(size=(60, 4)))
    Y[:5, 1] = np.nan
    return mtl.Tasks.shared(X, Y, task_names=list("abcd"), feature_names=[f"gene {j}" for j in range(9)])


@pytest.fixture(scope="module")
def model(tasks):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(2.0, "lam")
    return lam, mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W))


@pytest.fixture(scope="module")
def solution(model):
    return model[1].solve()


def test_frames_have_names_wide_and_long(solution):
    wide, long = solution.frame(), solution.frame(long=True)
    np.testing.assert_array_equal(wide.to_numpy()[:-1], solution.W)
    np.testing.assert_array_equal(wide.loc["(intercept)"], solution.intercept)
    assert list(wide.columns) == list("abcd") and list(long.columns) == ["feature", "task", "weight"]
    one = long[(long.feature == "gene 1") & (long.task == "c")].weight.item()
    assert one == wide.loc["gene 1", "c"] and len(long) == 40
    with pytest.raises(mtl.DataError, match=r"frame\(long='yes'"):
        solution.frame(long="yes")


@for_each("draw", ["plot_convergence", "plot_weights"])
def test_axes_go_in_and_come_out(plt, solution, draw):
    figure, (left, right) = plt.subplots(1, 2)
    assert getattr(solution, draw)(ax=left) is left and left.has_data() and not right.has_data()
    with pytest.raises((mtl.DataError, AttributeError)):
        getattr(solution, draw)(ax="left")


def test_convergence_falls_to_the_proven_bound(solution):
    ax = solution.plot_convergence()
    heights, gaps = (line.get_ydata() for line in ax.lines)
    assert gaps[-1] >= heights[-1] > 0
    assert {line.get_label() for line in ax.lines} == {"objective", "proven gap"}
    assert ax.get_yscale() == "log" and heights[-1] == pytest.approx(solution.objective - solution.dual_bound)
    one = replace(solution, history=solution.history[:1]).plot_convergence()
    assert [text.get_text() for text in one.texts] == ["only one point was recorded"]


@pytest.mark.slow
def test_objectives_outside_constraints_may_be_below_the_bound(tmp_path):
    """ADMM comes to its constraints from outside."""
    X = np.array([[1.0, 0.2], [0.3, 1.0], [1.0, 1.0], [0.5, -1.0]])
    tasks, W = with_weights(mtl.Tasks.shared(X, X @ np.array([[1.0, 2.0], [-3.0, 1.0]])))
    problem = mtl.minimize(mtl.huber_loss(W, tasks) + 0.3 * mtl.l1_inf_norm(W), subject_to=[W[1, :] >= 0])
    outside = [{"iteration": 0, "seconds": 0.1, "objective": -1e3, "dual_bound": -np.inf, "violation": 0.1}]
    solved = problem.solve()
    solution = replace(solved, history=[*outside, *solved.history])
    ax = solution.plot_convergence()
    assert 0 not in ax.lines[0].get_xdata() or ax.lines[0].get_ydata().min() > 0
    solution.report(tmp_path / "fit.html")
    with pytest.raises(mtl.DataError, match="a run reached"):
        replace(solved, history=[outside[0] | {"violation": 0.0}]).plot_convergence()


def test_the_map_shows_every_weight_under_its_names(solution):
    frame, kept = solution.frame(), np.flatnonzero(np.any(solution.W != 0, axis=1))
    for order in (None, "clustered"):
        ax = solution.plot_weights(order=order)
        features, tasks = (
            [t.get_text() for t in labels] for labels in (ax.get_yticklabels(), ax.get_xticklabels())
        )
        assert sorted(features) == [f"gene {j}" for j in kept]
        np.testing.assert_array_equal(ax.images[0].get_array(), frame.loc[features, tasks])
    left_out = f"{9 - len(kept)} more features" if len(kept) < 9 else ""
    assert left_out in ax.get_xlabel()


def test_bars_of_one_task_are_in_the_order_of_their_size(solution):
    widths = [bar.get_width() for bar in solution.plot_weights(task="b", top=3).patches]
    best = np.sort(np.abs(solution.W[:, 1]))[::-1][: len(widths)]
    np.testing.assert_allclose(np.abs(widths), best)


def test_what_cannot_be_drawn_is_named(solution, tasks):
    hinge = mtl.minimize(mtl.hinge_loss(W := mtl.Weights(tasks), tasks) + mtl.ridge(W)).solve()
    report = mtl.report
    for draw, words in (
        (lambda: solution.plot_weights(task="z"), "task='z': there is no such task; write one of 'a'"),
        (lambda: report.plot_weights(np.ones((2, 2)), top=0), "top=0"),
        (lambda: report.plot_weights(np.ones((2, 2)), order="size"), "order='size'"),
        (lambda: report.plot_weights(np.ones((2, 2)), features=["a"]), "features: there are 1 names for 2"),
        (lambda: report.plot_weights([1.0, 2.0]), "a matrix"),
        (lambda: report.plot_path([solution]), r"there are 1; write the solutions of problem\.path"),
        (lambda: report.plot_path([solution, solution]), "no parameter changes"),
        (lambda: report.plot_path([solution, solution], "mu"), "parameter='mu': these solutions have 'lam'"),
        (lambda: report.plot_scores([0.1, 0.2], ["a"]), "there must be 2 names"),
        (lambda: hinge.plot_calibration(tasks), "probabilit"),
    ):
        with pytest.raises((mtl.DataError, mtl.ModelError), match=words):
            draw()
    with pytest.raises(AttributeError, match="pie"):
        report.pie  # noqa: B018


def test_a_path_is_drawn_against_its_parameter(model):
    lam, problem = model
    solutions = list(problem.path(lam, [8.0, 2.0, 0.5]))
    ax = mtl.report.plot_path(solutions)
    assert ax.get_xlabel() == "lam" and ax.get_xscale() == "log" and len(ax.lines) == 9
    named = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert len(named) == 6
    j = int(np.argmax(np.linalg.norm(solutions[-1].W, axis=1)))
    heights = [np.linalg.norm(s.W[j]) for s in sorted(solutions, key=lambda s: s.parameters["lam"])]
    np.testing.assert_allclose(named[f"gene {j}"].get_ydata(), heights)
    of_task = mtl.report.plot_path(solutions, task="c")
    assert of_task.get_ylabel() == "weight in c"


def test_scores_are_drawn_a_point_a_task(solution, tasks):
    ax = solution.plot_scores(tasks, "f1")
    scores = solution.scores(tasks, "f1")
    order = [t.get_text() for t in ax.get_yticklabels()]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [scores["abcd".index(n)] for n in order])
    assert ax.get_xlabel() == "f1"


def test_equal_scores_hide_none_of_each_other():
    """The first series is filled and above; the others are open and wider, so that they stand around it."""
    scores = {"learned": [0.0, 0.5], "guess": [0.0, 0.5], "other": [0.0, 0.1]}
    first, *others = mtl.report.plot_scores(scores).lines
    assert first.get_fillstyle() == "full"
    for other in others:
        assert other.get_fillstyle() == "none"
        assert other.get_zorder() < first.get_zorder() and other.get_markersize() > first.get_markersize()


def test_calibration_counts_labelled_rows_only(solution, tasks):
    """Standardised tasks are scaled once."""
    ax = solution.plot_calibration(tasks, bins=4)
    p = np.concatenate([solution.predict_proba(X)[:, i] for i, X in enumerate(tasks.inputs)])
    assert len(p) == tasks.n_samples
    groups = np.array_split(np.argsort(p, kind="stable"), 4)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [(tasks.targets[g] > 0).mean() for g in groups])
    scaled, W = with_weights(tasks.standardize(), intercept=True)
    fitted = mtl.minimize(mtl.logistic_loss(W, scaled) + mtl.ridge(W)).solve()
    one, other = (fitted.plot_calibration(t).lines[1].get_xydata() for t in (tasks, scaled))
    np.testing.assert_allclose(one, other)


def test_learned_matrices_and_weights_draw_themselves(plt):
    rng = np.random.default_rng(1)
    tasks = mtl.Tasks.shared(rng.normal(size=(20, 4)), np.sign(rng.normal(size=(20, 3))))
    W, S, theta = mtl.Weights(tasks), mtl.TaskPrecision(tasks, name="S"), mtl.KernelWeights(4)
    objective = mtl.squared_loss(W, tasks) + mtl.matrix_normal(W, np.eye(4), S)
    solution = mtl.minimize(objective, subject_to=[S >> 0.1, S << 10]).solve()
    ax = plt.subplots()[1]
    assert solution.S.plot(ax=ax) is ax
    objective = mtl.hinge_loss(W, tasks) + mtl.mkl_norm(
        W, [mtl.similarities.union(), mtl.similarities.individual()], theta
    )
    found = mtl.minimize(objective, subject_to=[mtl.p_norm(theta, 2) <= 1]).solve().kernel_weights
    ax = plt.subplots()[1]
    assert found.plot(ax=ax) is ax and any("0." in text.get_text() for text in ax.texts)


def test_one_long_interval_does_not_squeeze_all_scores():
    ax = mtl.report.plot_scores([0.2, 0.8], intervals=[[0.1, 0.3], [-90.0, 0.9]])
    low, high = ax.get_xlim()
    assert low > -1.0 and high > 0.8 and "longer than the picture" in ax.get_xlabel()
    short = mtl.report.plot_scores([0.2, 0.8], intervals=[[0.1, 0.3], [0.5, 0.9]])
    assert short.get_xlabel() == "score" and short.get_xlim()[0] < 0.1


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


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 12))
TASKS = mtl.Tasks.shared(X, X @ RNG.normal(size=(12, 8)) + RNG.normal(size=(60, 8)))


def drawn(plt, draw):
    figure, (left, _) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    draw(left)
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in left.get_xticklabels(which="both") if label.get_text()]
    return sorted((box.x0, box.x1) for box in boxes)


@pytest.mark.slow
def test_ticks_stand_apart(plt):
    W, lam = mtl.Weights(TASKS), mtl.Parameter(20.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + lam * mtl.l21_norm(W))
    solution = problem.solve()
    path = list(problem.path(lam, problem.lambda_max(lam) * np.geomspace(1, 0.02, 6)))
    for draw in (
        lambda ax: mtl.report.plot_path(path, ax=ax),
        lambda ax: solution.plot_weights(ax=ax),
        lambda ax: solution.plot_scores(TASKS, ax=ax),
    ):
        places = drawn(plt, draw)
        assert len(places) >= 3
        assert all(a[1] + 2.0 < b[0] for a, b in pairwise(places)), places
