"""Cross-validation against folds walked by hand, its rules, tasks of one class, processes, and mistakes."""

import warnings

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.tasks.one_class import OneClassWarning
from tests.loops import for_each


def labelled(seed=0, n=90, d=8, m=3, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X[:, :3] @ rng.normal(size=(3, m)) + rng.normal(size=(n, m))
    Y = np.where(Z > 0.5, 1.0, -1.0)
    Y[rng.random(Y.shape) < missing] = np.nan
    return mtl.Tasks.shared(X, Y, task_names=[f"t{i}" for i in range(m)])


def model(tasks, regularizer=mtl.l21_norm):
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.logistic_loss(W, tasks) + lam * regularizer(W)), lam


def with_a_rare_task(seed=1):
    """Three tasks, of which "rare" has one positive: no training fold without row 7 can learn it."""
    tasks = labelled(seed)
    Y = np.concatenate([np.stack(tasks_columns(tasks), axis=1), -np.ones((90, 1))], axis=1)
    Y[7, 3] = 1.0
    return mtl.Tasks.shared(tasks.X, Y, task_names=["t0", "t1", "t2", "rare"])


def tasks_columns(tasks):
    columns = np.full((tasks.n_tasks, len(tasks.X)), np.nan)
    mask = np.ones_like(columns, dtype=bool) if tasks.mask is None else tasks.mask.T
    columns[mask] = tasks.targets
    return list(columns)


@for_each("metric", ["log_loss", "ranking_loss"])
def test_scores_are_those_of_every_fold_solved_by_itself(metric):
    tasks = labelled()
    problem, lam = model(tasks)
    values = [8.0, 2.0, 0.5]
    found = problem.cross_validate(lam, values, folds=4, metric=metric, refit=False, tol=1e-9)
    for fold, (train, test) in enumerate(tasks.folds(4)):
        for k, value in enumerate(values):
            own, own_lam = model(train)
            own_lam.value = value
            wanted = own.solve(tol=1e-9).score(test, metric)
            assert np.isclose(found.scores[fold, k], wanted, rtol=1e-5, atol=1e-5)
    assert np.allclose(found.mean, found.scores.mean(axis=0))
    assert np.allclose(found.se, found.scores.std(axis=0, ddof=1) / 2.0)
    signed = found.mean if found.higher_is_better else -found.mean
    assert found.best_value == values[int(np.argmax(signed))]
    assert lam.value == 1.0 and found.solution is None


@for_each("kind", ["separate", "standardised", "weighted"])
def test_layouts_scales_and_weights(kind):
    rng = np.random.default_rng(2)
    inputs = [rng.normal(size=(n, 5)) + 3.0 for n in (30, 21, 12)]
    labels = [X @ rng.normal(size=5) + rng.normal(size=len(X)) for X in inputs]
    tasks = {
        "separate": lambda: mtl.Tasks.separate(inputs, labels),
        "standardised": lambda: mtl.Tasks.separate(inputs, labels).standardize(),
        "weighted": lambda: mtl.Tasks.separate(
            inputs, labels, sample_weights=[rng.integers(1, 4, len(y)).astype(float) for y in labels]
        ),
    }[kind]()
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.trace_norm(W))
    found = problem.cross_validate(lam, [5.0], folds=3, metric="mse", tol=1e-9)
    for fold, (train, test) in enumerate(tasks.folds(3)):
        V = mtl.Weights(train, intercept=True)
        solution = mtl.minimize(mtl.squared_loss(V, train) + 5.0 * mtl.trace_norm(V)).solve(tol=1e-9)
        assert np.isclose(found.scores[fold, 0], solution.score(test, "mse"), rtol=1e-4)


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
    """Without values the grid goes from where the weights vanish."""
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


def test_two_parameters():
    tasks = labelled(4)
    W, lam, mu = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam"), mtl.Parameter(2.0, name="mu")
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l1_norm(W) + mu * mtl.ridge(W))
    found = problem.cross_validate({mu: [10.0, 0.1], lam: [4.0, 1.0]}, folds=3, metric="brier")
    assert found.points == [(10.0, 4.0), (10.0, 1.0), (0.1, 4.0), (0.1, 1.0)] and found.names == ("mu", "lam")
    same = problem.cross_validate([mu, lam], [[10.0, 0.1], [4.0, 1.0]], folds=3, metric="brier", refit=False)
    assert np.array_equal(same.scores, found.scores)
    mu.value = 0.1  # one row of the map is the path over the other parameter
    row = problem.cross_validate(lam, [4.0, 1.0], folds=3, metric="brier", refit=False)
    assert np.allclose(row.scores, found.scores[:, 2:], atol=1e-4)
    assert (
        found.solution.parameters == dict(zip(found.names, found.best, strict=True)) and found.one_se is None
    )
    with pytest.raises(ValueError, match="of one parameter, and there are 2"):
        _ = found.best_value


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_jobs(each_backend):
    problem, lam = model(labelled(5))
    alone = problem.cross_validate(lam, [4.0, 1.0, 0.2], folds=3, metric="log_loss")
    together = problem.cross_validate(lam, [4.0, 1.0, 0.2], folds=3, metric="log_loss", n_jobs=2)
    assert np.array_equal(alone.scores, together.scores)
    assert np.array_equal(alone.solution.W, together.solution.W)
    assert lam.value == 1.0


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
    assert not np.array_equal(
        own.scores, problem.cross_validate(lam, [1.0], folds=3, metric="log_loss", refit=False).scores
    )


# ------------------------------------------------------------------------------------------------ one class


def test_a_task_of_one_class_in_a_fold_is_skipped_there_and_told():
    tasks = with_a_rare_task()
    problem, lam = model(tasks)
    with pytest.warns(OneClassWarning, match=r"cross_validate\(lam\): .*fold \d: 'rare'; one_class='skip'"):
        found = problem.cross_validate(lam, [1.0], folds=3, metric="accuracy", tol=1e-8)
    (fold,) = [k for k, names in enumerate(found.left_out) if names]
    assert found.left_out[fold] == ["rare"]
    rare = [row for row in found.table if row["task"] == "rare"]
    assert [np.isnan(row["score"]) for row in rare] == [k == fold for k in range(3)]
    assert [row["learned"] for row in rare] == [k != fold for k in range(3)]
    # the others are learned as if it were not there
    rest = tasks.select(["t0", "t1", "t2"])
    from mtldsl.tasks.folding import fold_numbers

    numbers = fold_numbers(tasks, 3)
    own, own_lam = model(rest.take_rows(np.flatnonzero(numbers != fold)))
    own_lam.value = 1.0
    wanted = own.solve(tol=1e-8).score(rest.take_rows(np.flatnonzero(numbers == fold)), "accuracy")
    assert np.isclose(found.scores[fold, 0], wanted)
    text = repr(found)
    assert f"not learned: fold {fold}: 'rare'" in text and "without a number: 'rare' in 1 of 3 folds" in text


def test_the_other_choices_for_a_task_of_one_class():
    problem, lam = model(with_a_rare_task())
    with pytest.warns(OneClassWarning, match="one_class='constant'"):
        constant = problem.cross_validate(
            lam, [1.0], folds=3, metric="accuracy", one_class="constant", refit=False
        )
    (fold,) = [k for k, names in enumerate(constant.left_out) if names]
    row = next(row for row in constant.table if row["fold"] == fold and row["task"] == "rare")
    assert np.isclose(row["score"], 29 / 30, atol=0.01) and not row["learned"]
    with pytest.raises(
        mtl.DataError, match=r"training fold \d has labels of one class alone, or none, of the tasks 'rare'"
    ):
        problem.cross_validate(lam, [1.0], folds=3, one_class="error")


def test_a_test_fold_of_one_class_has_no_number_there():
    problem, lam = model(with_a_rare_task())
    with pytest.warns(OneClassWarning):
        found = problem.cross_validate(lam, [1.0], folds=3, metric="roc_auc", refit=False)
    rare = [row["score"] for row in found.table if row["task"] == "rare"]
    assert np.isnan(rare).all() and np.isfinite(found.scores).all()
    assert found.unscored == {"rare": 3} and "'rare' in 3 of 3 folds" in repr(found)


def test_numbers_of_one_value_are_learned():
    """Only losses of labels need two classes."""
    tasks = mtl.Tasks.shared(np.random.default_rng(0).normal(size=(30, 3)), np.ones((30, 2)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W)).cross_validate(
            lam, [1.0], folds=3, metric="mse"
        )
    assert np.isfinite(found.scores).all()


def test_a_task_with_rows_in_few_folds_is_left_out_of_the_others():
    rng = np.random.default_rng(1)
    tasks = mtl.Tasks.separate(
        [rng.normal(size=(n, 2)) for n in (30, 1)], [rng.normal(size=30), [1.0]], task_names=["a", "b"]
    )
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.trace_norm(W))
    with pytest.warns(OneClassWarning, match="'b'"):
        found = problem.cross_validate(lam, [1.0], folds=4, metric="mse")
    assert np.isfinite(found.scores).all() and sum(map(len, found.left_out)) == 1


def test_a_model_of_single_tasks_cannot_lose_a_task():
    """A model that says something of each task cannot lose one."""
    tasks = with_a_rare_task()
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    L = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.graph_laplacian(W, L) + mtl.ridge(W))
    with (
        pytest.warns(OneClassWarning),
        pytest.raises(mtl.ModelError, match=r"cannot be without a task.*L is 4 x 4"),
    ):
        problem.cross_validate(lam, [1.0], folds=3)


# ------------------------------------------------------------------------------------------------ what it shows


def test_the_text_is_read_by_people():
    problem, lam = model(labelled())
    text = repr(problem.cross_validate(lam, [4.0, 1.0, 100.0], folds=3, metric="log_loss", refit=False))
    lines = text.splitlines()
    assert lines[0] == "log_loss (lower is better), mean of 3 folds and its standard error, 3 tasks"
    assert lines[1].split() == ["lam", "mean", "se"] and len(lines) == 5
    assert (
        sum("best" in line for line in lines[2:]) == 1
        and sum("one standard error" in line for line in lines[2:]) == 1
    )


def test_what_is_not_solved_is_told():
    problem, lam = model(labelled(), mtl.trace_norm)
    found = problem.cross_validate(lam, [0.01], folds=2, refit=False, max_iter=1, solver="proximal_gradient")
    assert "not solved to the tolerance: 6 of 6 rows" in repr(found)


@pytest.mark.slow
def test_pictures():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = labelled()
    problem, lam = model(tasks)
    found = problem.cross_validate(lam, 6, folds=3, metric="log_loss", refit=False)
    ax = found.plot()
    assert ax.get_xscale() == "log" and ax.get_xlabel() == "lam"
    assert ax.get_ylabel() == "log_loss (lower is better)"
    mean = next(line for line in ax.lines if line.get_marker() == "o")
    assert np.allclose(mean.get_ydata(), found.mean[::-1])
    assert np.allclose(mean.get_xdata(), sorted(v for (v,) in found.points))
    _, given = plt.subplots()
    W, mu = mtl.Weights(tasks), mtl.Parameter(1.0, name="mu")
    two = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l1_norm(W) + mu * mtl.ridge(W))
    both = two.cross_validate({mu: [10.0, 1.0, 0.1], lam: [4.0, 1.0]}, folds=2, metric="brier", refit=False)
    assert both.plot(given) is given and given.get_ylabel() == "mu" and given.get_xlabel() == "lam"
    assert np.allclose(given.images[0].get_array(), both.mean.reshape(3, 2))
    plt.close("all")


# ------------------------------------------------------------------------------------------------ mistakes


@for_each(
    "arguments, options, says",
    [
        ((1.0,), {}, "1.0 is not a parameter"),
        (("lam",), {}, "'lam' is not a parameter"),
        ((mtl.Parameter(1.0, name="other"),), {"values": [1.0]}, "this problem has no such parameter; it has lam"),
        ((mtl.Parameter(1.0, name="other"),), {}, "this problem has no such parameter; it has lam"),
        (("LAM", [-1.0]), {}, "finite and >= 0"),
        (("LAM", []), {}, "there are no values"),
        (("LAM", 1), {}, "at least 2"),
        (("LAM", [1.0]), {"metric": "auc"}, "write 'roc_auc'"),
        (("LAM", [1.0]), {"metric": "mse"}, "predicts labels, and this measure is of numbers"),
        (("LAM", [1.0]), {"folds": 1}, "write a whole number of at least 2"),
        (("LAM", [1.0]), {"folds": [3, 4]}, "a list of pairs"),
        (("LAM", [1.0]), {"folds": [([0, 1], [1, 2])]}, "tests rows that it trains on"),
        (("LAM", [1.0]), {"folds": [([0, 1], [])]}, "has a side without rows"),
        (("LAM", [1.0]), {"one_class": "drop"}, "one_class='drop'"),
        (("LAM", [1.0]), {"refit": "best"}, "refit=True, refit=False or refit='one_se'"),
        (("LAM", [1.0]), {"n_jobs": 0}, "n_jobs=0"),
        (("LAM", [1.0]), {"solver": "nonsense"}, "nonsense"),
    ],
)  # fmt: skip
def test_mistakes_are_named(arguments, options, says):
    problem, lam = model(labelled())
    arguments = [lam if one == "LAM" and isinstance(one, str) else one for one in arguments]
    with pytest.raises(mtl.errors.MTLError) as caught:
        problem.cross_validate(*arguments, **options)
    assert says in str(caught.value)


def test_values_of_several_parameters_are_given():
    tasks = labelled()
    W, lam, mu = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam"), mtl.Parameter(1.0, name="mu")
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l1_norm(W) + mu * mtl.ridge(W))
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


@pytest.mark.slow
def test_a_graph_of_labels_and_kernels():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 4))
    tasks = mtl.Tasks.shared(X, np.where(X[:, :3] + rng.normal(size=(40, 3)) > 0, 1.0, -1.0))
    U, V, lam = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.pairwise_log_loss(U, V, tasks) + lam * mtl.ridge(U) + lam * mtl.ridge(V))
    found = problem.cross_validate(lam, [0.1], folds=2, metric="subset_accuracy", refit=False, tol=1e-4)
    lam.value = 0.1
    for fold, (train, test) in enumerate(tasks.folds(2)):
        own = problem.with_tasks(train).solve(tol=1e-4)
        assert np.isclose(found.scores[fold, 0], own.score(test, "subset_accuracy"), atol=0.06)
    raw = tasks.with_kernels(["rbf", "linear"])
    W = mtl.Weights(raw)
    kernels = mtl.minimize(mtl.logistic_loss(W, raw) + lam * mtl.ridge(W)).cross_validate(
        lam, [1.0], folds=3, metric="roc_auc", refit=False
    )
    for fold, (train, test) in enumerate(raw.folds(3)):
        V = mtl.Weights(train)
        solution = mtl.minimize(mtl.logistic_loss(V, train) + mtl.ridge(V)).solve()
        assert np.isclose(kernels.scores[fold, 0], solution.score(test, "roc_auc"), atol=1e-6)


def test_a_path_starts_itself():
    problem, lam = model(labelled())
    with pytest.raises(mtl.ModelError, match="a path starts every solve at the solution before it"):
        problem.cross_validate(lam, [1.0], warm_start=problem.solve())


@for_each("metric", [mtl.FScore(beta=2.0), mtl.ROCArea(), mtl.PrecisionAt(3)])
def test_metrics_of_the_language_score_as_they_do_elsewhere(metric):
    tasks = labelled(8)
    problem, lam = model(tasks)
    found = problem.cross_validate(lam, [2.0], folds=3, metric=metric, tol=1e-8)
    for fold, (train, test) in enumerate(tasks.folds(3)):
        own, own_lam = model(train)
        own_lam.value = 2.0
        assert np.isclose(found.scores[fold, 0], own.solve(tol=1e-8).score(test, metric), atol=1e-9)
    assert found.metric == repr(metric) and found.higher_is_better
    intervals = found.solution.bootstrap(tasks, metric, n=20)
    assert (
        np.allclose(intervals.estimate.by_task, found.solution.scores(tasks, metric))
        and intervals.low <= intervals.high
    )
    weighted = mtl.Tasks.shared(
        tasks.X, np.where(tasks.X[:, :1] > 0, 1.0, -1.0), sample_weights=np.full(90, 2.0)
    )
    other, mu = model(weighted)
    with pytest.raises(mtl.DataError, match="a metric counts samples"):
        other.cross_validate(mu, [1.0], folds=3, metric=metric)


def test_where_no_fold_has_a_number_it_is_said():
    tasks = mtl.Tasks.shared(np.random.default_rng(0).normal(size=(12, 2)), np.arange(12.0))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W))
    with pytest.raises(mtl.DataError, match=r"no fold has a number of r2: .*write fewer folds, or a metric"):
        problem.cross_validate(lam, [1.0], folds=12)
    found = problem.cross_validate(lam, [1.0], folds=12, refit=False)
    assert np.isnan(found.mean).all() and len(found.table) == 12 and "best" not in repr(found)
    assert problem.cross_validate(lam, [1.0], folds=12, metric="mse").best_value == 1.0
