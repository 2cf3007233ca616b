"""Cross-validation against folds walked by hand, its rules, tasks of one class, processes, and mistakes."""

import re
import warnings

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.data.labels import OneClassWarning
from mtldsl.data.splits import fold_numbers
from tests.loops import for_each


def tables(seed=0, n=90, d=8, m=3, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X[:, :3] @ rng.normal(size=(3, m)) + rng.normal(size=(n, m))
    Y = np.where(Z > 0.5, 1.0, -1.0)
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


def labelled(seed=0):
    return mtl.Tasks.shared(*tables(seed), task_names=["t0", "t1", "t2"])


def model(tasks, regularizer=mtl.l21_norm, loss=mtl.logistic_loss, value=1.0):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(value, name="lam")
    return mtl.minimize(loss(W, tasks) + lam * regularizer(W)), lam


def of_two_parameters(tasks):
    W, lam, mu = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam"), mtl.Parameter(2.0, name="mu")
    return mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l1_norm(W) + mu * mtl.ridge(W)), lam, mu


@pytest.fixture
def rare():
    """Three tasks, and "rare" with one positive: no training fold without row 7 can learn it."""
    X, Y = tables(seed=1)
    Y = np.column_stack([Y, np.where(np.arange(90) == 7, 1.0, -1.0)])
    return mtl.Tasks.shared(X, Y, task_names=["t0", "t1", "t2", "rare"])


def of_each_fold(tasks, metric, folds=3, tol=1e-8, **options):
    """Scores of the model, stated and solved on every fold by itself."""
    return np.array(
        [model(train, **options)[0].solve(tol=tol).score(test, metric) for train, test in tasks.folds(folds)]
    )


@pytest.mark.slow
@for_each("metric", ["log_loss", "ranking_loss"])
def test_scores_are_those_of_every_fold_solved_by_itself(metric):
    tasks, values = labelled(), [8.0, 2.0, 0.5]
    problem, lam = model(tasks)
    found = problem.cross_validate(lam, values, folds=4, metric=metric, refit=False, tol=1e-9)
    expected = [of_each_fold(tasks, metric, folds=4, tol=1e-9, value=value) for value in values]
    assert np.allclose(found.scores.T, expected, rtol=1e-5, atol=1e-5)
    assert np.allclose(found.mean, found.scores.mean(axis=0))
    assert np.allclose(found.se, found.scores.std(axis=0, ddof=1) / 2.0)
    signed = found.mean if found.higher_is_better else -found.mean
    assert found.best_value == values[int(np.argmax(signed))]
    assert lam.value == 1.0 and found.solution is None
    assert found.plot().get_ylabel().startswith(metric)


@pytest.mark.slow
@for_each("kind", ["separate", "standardised", "weighted", "kernels"])
def test_layouts_scales_weights_and_kernels(kind):
    rng = np.random.default_rng(2)
    inputs = [rng.normal(size=(n, 5)) + 3.0 for n in (30, 21, 12)]
    labels = [X @ rng.normal(size=5) + rng.normal(size=len(X)) for X in inputs]
    tasks = mtl.Tasks.separate(inputs, labels)
    if kind == "standardised":
        tasks = tasks.standardize()
    if kind == "weighted":
        weights = [rng.integers(1, 4, len(y)).astype(float) for y in labels]
        tasks = mtl.Tasks.separate(inputs, labels, sample_weights=weights)
    if kind == "kernels":
        Y = np.column_stack([labels[0], labels[0] ** 2])
        tasks = mtl.Tasks.shared(inputs[0], Y).with_kernels(["rbf", "linear"])
    stated = {"regularizer": mtl.ridge if kind == "kernels" else mtl.trace_norm, "loss": mtl.squared_loss}
    problem, lam = model(tasks, **stated)
    found = problem.cross_validate(lam, [5.0], folds=3, metric="mse", tol=1e-9)
    expected = of_each_fold(tasks, "mse", tol=1e-9, value=5.0, **stated)
    assert np.allclose(found.scores[:, 0], expected, rtol=1e-4)


@for_each("metric", [mtl.metrics.FScore(beta=2.0), mtl.metrics.ROCArea(), mtl.metrics.PrecisionAt(3)])
def test_metrics_of_the_language_score_as_they_do_elsewhere(metric):
    tasks = labelled(8)
    problem, lam = model(tasks)
    found = problem.cross_validate(lam, [2.0], folds=3, metric=metric, tol=1e-8)
    assert np.allclose(found.scores[:, 0], of_each_fold(tasks, metric, value=2.0), rtol=0, atol=1e-9)
    assert found.metric == repr(metric) and found.higher_is_better
    intervals = found.solution.bootstrap(tasks, metric, n=20)
    assert np.allclose(intervals.estimate.by_task, found.solution.scores(tasks, metric))
    assert intervals.low <= intervals.high
    signs = np.where(tasks.X[:, :1] > 0, 1.0, -1.0)
    other, mu = model(mtl.Tasks.shared(tasks.X, signs, sample_weights=np.full(90, 2.0)))
    with pytest.raises(mtl.DataError, match="a metric counts samples"):
        other.cross_validate(mu, [1.0], folds=3, metric=metric)


@pytest.mark.slow
def test_a_graph_of_labels():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 4))
    tasks = mtl.Tasks.shared(X, np.where(X[:, :3] + rng.normal(size=(40, 3)) > 0, 1.0, -1.0))
    U, V, lam = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks), mtl.Parameter(0.1, name="lam")
    problem = mtl.minimize(mtl.pairwise_log_loss(U, V, tasks) + lam * mtl.ridge(U) + lam * mtl.ridge(V))
    found = problem.cross_validate(lam, [0.1], folds=2, metric="subset_accuracy", refit=False, tol=1e-7)
    for fold, (train, test) in enumerate(tasks.folds(2)):
        own = problem.with_tasks(train).solve(tol=1e-7)
        assert np.isclose(found.scores[fold, 0], own.score(test, "subset_accuracy"), rtol=0, atol=1e-12)


def test_the_table_has_every_fold_task_and_value():
    problem, lam = model(labelled())
    found = problem.cross_validate(lam, [4.0, 1.0], folds=3, metric="roc_auc", refit=False)
    frame = found.frame()
    assert len(frame) == len(found.table) == 3 * 3 * 2
    assert sorted(frame.task.unique()) == ["t0", "t1", "t2"] and set(frame.lam) == {4.0, 1.0}
    means = frame.groupby(["lam", "fold"]).score.mean().groupby("lam").mean()
    assert np.allclose(means[[4.0, 1.0]], found.mean)
    tested = frame[frame.lam == 4.0].groupby("task").tested.sum()
    assert tested.tolist() == problem.first_loss.tasks.counts.tolist()
    assert set(frame.status) == {"optimal"} and frame.learned.all()
    whole = problem.cross_validate(lam, [4.0], folds=3, metric="hamming_loss", refit=False)
    assert [row["task"] for row in whole.table] == [None] * 3


@pytest.mark.slow
def test_a_grid_without_values_starts_where_weights_vanish():

    tasks = labelled()
    problem, lam = model(tasks)
    found = problem.cross_validate(lam, folds=2, refit=False)
    values, top = np.array(found.points)[:, 0], problem.lambda_max(lam)
    assert len(values) == 20 and np.allclose(values[[0, -1]], [top, top / 1000])
    assert (np.diff(values) < 0).all() and found.metric == "accuracy"
    W, C = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="C")
    other = mtl.minimize(mtl.l21_norm(W) + C * mtl.logistic_loss(W, tasks))
    upwards = other.cross_validate(C, 5, folds=2, refit=False)
    values, top = np.array(upwards.points)[:, 0], other.lambda_max(C)
    assert len(values) == 5 and np.allclose(values[[0, -1]], [top, 1000 * top])


@pytest.mark.slow
@for_each("on_losses", [False, True])
def test_one_standard_error_takes_the_most_regularised_near(on_losses):
    """The one standard error rule takes the most regularised value that is near: the smallest of a factor of the losses."""
    tasks = labelled(3)
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="lam")
    loss, norm = mtl.logistic_loss(W, tasks), mtl.l21_norm(W)
    problem = mtl.minimize(lam * loss + norm if on_losses else loss + lam * norm)
    values = [0.05, 0.1, 1 / 6, 1 / 3, 1.0, 3.0] if on_losses else [20.0, 10.0, 6.0, 3.0, 1.0, 0.3]
    found = problem.cross_validate(lam, values, metric="log_loss", refit="one_se")
    best = int(np.argmin(found.mean))
    near = [
        v for v, mean in zip(values, found.mean, strict=True) if mean <= found.mean[best] + found.se[best]
    ]
    assert found.one_se_value == (min if on_losses else max)(near) != found.best_value == values[best]
    assert found.solution.parameters == {"lam": found.one_se_value} and found.solution.is_optimal
    assert problem.cross_validate(lam, values, metric="log_loss").solution.parameters == {"lam": values[best]}


@pytest.mark.slow
def test_two_parameters():
    problem, lam, mu = of_two_parameters(labelled(4))
    found = problem.cross_validate({mu: [10.0, 0.1], lam: [4.0, 1.0]}, folds=3, metric="brier")
    assert found.points == [(10.0, 4.0), (10.0, 1.0), (0.1, 4.0), (0.1, 1.0)] and found.names == ("mu", "lam")
    same = problem.cross_validate([mu, lam], [[10.0, 0.1], [4.0, 1.0]], folds=3, metric="brier", refit=False)
    assert np.array_equal(same.scores, found.scores)
    mu.value = 0.1  # one row of the map is the path over the other parameter
    row = problem.cross_validate(lam, [4.0, 1.0], folds=3, metric="brier", refit=False)
    assert np.allclose(row.scores, found.scores[:, 2:], atol=1e-4)
    assert found.solution.parameters == dict(zip(found.names, found.best, strict=True))
    assert found.one_se is None
    with pytest.raises(ValueError, match="of one parameter, and there are 2"):
        _ = found.best_value
    for arguments, says in (
        (([lam, mu],), "are not chosen by themselves"),
        (([lam, mu], [[1.0]]), "2 parameters need a list of values each"),
        (({lam: [1.0]}, [1.0]), "values stand in the dict already"),
        (([lam, lam], [[1.0], [2.0]]), "a parameter stands twice"),
    ):
        with pytest.raises(mtl.ModelError, match=says):
            problem.cross_validate(*arguments)
    with pytest.raises(mtl.ModelError, match="the one-standard-error rule is of one parameter"):
        problem.cross_validate({lam: [1.0], mu: [1.0]}, refit="one_se")


def test_groups_and_folds_of_one_s_own():
    tasks = labelled(6)
    problem, lam = model(tasks)
    groups = np.arange(90) // 6
    by_group = problem.cross_validate(lam, [1.0], folds=3, metric="log_loss", groups=groups, refit=False)
    numbers = np.empty(90, dtype=int)
    for k, (_, test) in enumerate(tasks.folds(3, groups=groups)):
        numbers[np.isin(tasks.X[:, 0], test.X[:, 0])] = k
    pairs = [(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in range(3)]
    own = problem.cross_validate(lam, [1.0], folds=pairs, metric="log_loss", refit=False)
    assert np.array_equal(own.scores, by_group.scores)
    plain = problem.cross_validate(lam, [1.0], folds=3, metric="log_loss", refit=False)
    assert not np.array_equal(own.scores, plain.scores)


def test_a_task_of_one_class_in_a_fold_is_skipped_there_and_told(rare):
    problem, lam = model(rare)
    with pytest.warns(OneClassWarning, match=r"cross_validate\(lam\): .*fold \d: 'rare'; one_class='skip'"):
        found = problem.cross_validate(lam, [1.0], folds=3, metric="accuracy", tol=1e-8)
    (fold,) = [k for k, names in enumerate(found.left_out) if names]
    assert found.left_out[fold] == ["rare"]
    rows = [row for row in found.table if row["task"] == "rare"]
    assert [np.isnan(row["score"]) for row in rows] == [k == fold for k in range(3)]
    assert [row["learned"] for row in rows] == [k != fold for k in range(3)]
    # the others are learned as if it were not there
    rest, numbers = rare.select(["t0", "t1", "t2"]), fold_numbers(rare, 3)
    own, own_lam = model(rest.take_rows(np.flatnonzero(numbers != fold)))
    own_lam.value = 1.0
    wanted = own.solve(tol=1e-8).score(rest.take_rows(np.flatnonzero(numbers == fold)), "accuracy")
    assert np.isclose(found.scores[fold, 0], wanted)
    text = repr(found)
    assert f"not learned: fold {fold}: 'rare'" in text and "without a number: 'rare' in 1 of 3 folds" in text


def test_the_other_choices_for_a_task_of_one_class(rare):
    problem, lam = model(rare)
    how = {"folds": 3, "refit": False}
    with pytest.warns(OneClassWarning, match="one_class='constant'"):
        constant = problem.cross_validate(lam, [1.0], metric="accuracy", one_class="constant", **how)
    (fold,) = [k for k, names in enumerate(constant.left_out) if names]
    row = next(row for row in constant.table if row["fold"] == fold and row["task"] == "rare")
    assert np.isclose(row["score"], 29 / 30, atol=0.01) and not row["learned"]
    says = r"training fold \d has labels of one class alone, or none, of the tasks 'rare'"
    with pytest.raises(mtl.DataError, match=says):
        problem.cross_validate(lam, [1.0], folds=3, one_class="error")
    # a test fold of one class has no number
    with pytest.warns(OneClassWarning):
        found = problem.cross_validate(lam, [1.0], metric="roc_auc", **how)
    assert np.isnan([row["score"] for row in found.table if row["task"] == "rare"]).all()
    assert np.isfinite(found.scores).all()
    assert found.unscored == {"rare": 3} and "'rare' in 3 of 3 folds" in repr(found)


def test_numbers_of_one_value_are_learned():
    """Only losses of labels need two classes."""
    tasks = mtl.Tasks.shared(np.random.default_rng(0).normal(size=(30, 3)), np.ones((30, 2)))
    problem, lam = model(tasks, mtl.ridge, mtl.squared_loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = problem.cross_validate(lam, [1.0], folds=3, metric="mse")
    assert np.isfinite(found.scores).all()


def test_a_task_with_rows_in_few_folds_is_left_out_of_the_others():
    rng = np.random.default_rng(1)
    inputs, labels = [rng.normal(size=(n, 2)) for n in (30, 1)], [rng.normal(size=30), [1.0]]
    tasks = mtl.Tasks.separate(inputs, labels, task_names=["a", "b"])
    problem, lam = model(tasks, mtl.trace_norm, mtl.squared_loss)
    with pytest.warns(OneClassWarning, match="'b'"):
        found = problem.cross_validate(lam, [1.0], folds=4, metric="mse")
    assert np.isfinite(found.scores).all() and sum(map(len, found.left_out)) == 1


def test_a_model_of_single_tasks_cannot_lose_a_task(rare):
    L = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
    problem, lam = model(rare, lambda W: mtl.graph_laplacian(W, L) + mtl.ridge(W))
    with (
        pytest.warns(OneClassWarning),
        pytest.raises(mtl.ModelError, match=r"cannot be without a task.*L is 4 x 4"),
    ):
        problem.cross_validate(lam, [1.0], folds=3)


def test_the_text_is_read_by_people():
    problem, lam = model(labelled())
    text = repr(problem.cross_validate(lam, [4.0, 1.0, 100.0], folds=3, metric="log_loss", refit=False))
    lines = text.splitlines()
    assert lines[0] == "log_loss (lower is better), mean of 3 folds and its standard error, 3 tasks"
    assert lines[1].split() == ["lam", "mean", "se"] and len(lines) == 5
    for words in ("best", "one standard error"):
        assert sum(words in line for line in lines[2:]) == 1


def test_what_is_not_solved_is_told():
    problem, lam = model(labelled(), mtl.trace_norm)
    found = problem.cross_validate(lam, [0.01], folds=2, refit=False, max_iter=1, solver="proximal_gradient")
    assert "not solved to the tolerance: 6 of 6 rows" in repr(found)


@for_each("arguments, options, says", [
    (("lam",), {}, "'lam' is not a parameter"),
    ((mtl.Parameter(1.0, name="other"),), {"values": [1.0]}, "this problem has no such parameter; it has lam"),
    (("LAM", [-1.0]), {}, "finite and >= 0"),
    (("LAM", []), {}, "there are no values"),
    (("LAM", 1), {}, "at least 2"),
    (("LAM", [1.0]), {"metric": "mse"}, "predicts labels, and this measure is of numbers"),
    (("LAM", [1.0]), {"folds": 1}, "write a whole number of at least 2"),
    (("LAM", [1.0]), {"folds": [3, 4]}, "a list of pairs"),
    (("LAM", [1.0]), {"folds": [([0, 1], [1, 2])]}, "tests rows that it trains on"),
    (("LAM", [1.0]), {"folds": [([0, 1], [])]}, "has a side without rows"),
    (("LAM", [1.0]), {"one_class": "drop"}, "one_class='drop'"),
    (("LAM", [1.0]), {"refit": "best"}, "refit=True, refit=False or refit='one_se'"),
    (("LAM", [1.0]), {"n_jobs": 0}, "n_jobs=0"),
    (("LAM", [1.0]), {"solver": "nonsense"}, "nonsense"),
])  # fmt: skip
def test_mistakes_are_named(arguments, options, says):
    problem, lam = model(labelled())
    arguments = [lam if one == "LAM" and isinstance(one, str) else one for one in arguments]
    with pytest.raises(mtl.errors.MTLError, match=re.escape(says)):
        problem.cross_validate(*arguments, **options)


def test_a_path_starts_itself():
    problem, lam = model(labelled())
    with pytest.raises(mtl.ModelError, match="a path starts every solve at the solution before it"):
        problem.cross_validate(lam, [1.0], warm_start=problem.solve())


def test_where_no_fold_has_a_number_it_is_said():
    tasks = mtl.Tasks.shared(np.random.default_rng(0).normal(size=(12, 2)), np.arange(12.0))
    problem, lam = model(tasks, mtl.ridge, mtl.squared_loss)
    with pytest.raises(mtl.DataError, match=r"no fold has a number of r2: .*write fewer folds, or a metric"):
        problem.cross_validate(lam, [1.0], folds=12)
    found = problem.cross_validate(lam, [1.0], folds=12, refit=False)
    assert np.isnan(found.mean).all() and len(found.table) == 12 and "best" not in repr(found)
    assert problem.cross_validate(lam, [1.0], folds=12, metric="mse").best_value == 1.0


@for_each("measure", ["f1", "accuracy", "roc_auc", "subset_accuracy", mtl.metrics.FScore()])
def test_measures_of_labels_refuse_numbers_on_folds_too(measure):
    X, _ = tables()
    problem, lam = model(mtl.Tasks.shared(X, X[:, :3] + 0.1), mtl.ridge, mtl.squared_loss)
    with pytest.raises(mtl.DataError, match=r"label .* in task 'task0', row .*labels must be -1 or \+1"):
        problem.cross_validate(lam, [1.0], folds=2, metric=measure)
