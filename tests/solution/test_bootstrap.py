"""Intervals of scores: against the theory where it is known, groups, samples of one class, whole rows, mistakes."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each


def data(seed=0, n=400, d=4, m=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.where(X @ rng.normal(size=(d, m)) + 2 * rng.normal(size=(n, m)) > 0, 1.0, -1.0)
    return X, Y


def solved(tasks):
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W)).solve()


def test_of_the_accuracy_they_are_those_of_a_share():
    X, Y = data()
    solution, tasks = solved(mtl.Tasks.shared(*data(1, n=100))), mtl.Tasks.shared(X, Y)
    found = solution.bootstrap(tasks, n=800)
    share = solution.scores(tasks)
    deviation = 1.96 * np.sqrt(share * (1 - share) / len(X))
    assert found.metric == "accuracy" and np.allclose(found.estimate.by_task, share)
    assert np.allclose(found.low_by_task, share - deviation, atol=0.2 * deviation.max())
    assert np.allclose(found.high_by_task, share + deviation, atol=0.2 * deviation.max())
    assert found.low < found.estimate < found.high
    narrow = solution.bootstrap(tasks, n=800, level=0.5)
    assert 0.25 < (narrow.high - narrow.low) / (found.high - found.low) < 0.45  # 0.674 / 1.96 = 0.34


def test_rows_of_a_table_are_drawn_with_all_their_labels():
    X, Y = data(2)
    twice = mtl.Tasks.shared(X, np.repeat(Y[:, :1], 2, axis=1))
    found = solved(twice).bootstrap(twice, "roc_auc", n=30)
    assert np.array_equal(*found.samples_by_task.T) and np.ptp(found.samples) > 0


@pytest.mark.slow
def test_groups_of_equal_rows_count_once():
    X, Y = data(3, n=60)
    solution = solved(mtl.Tasks.shared(X, Y))
    width = lambda found: found.high - found.low  # noqa: E731
    once = width(solution.bootstrap(mtl.Tasks.shared(X, Y), "accuracy", n=500))
    ten = mtl.Tasks.shared(np.repeat(X, 10, axis=0), np.repeat(Y, 10, axis=0))
    grouped = solution.bootstrap(ten, "accuracy", n=500, groups=np.arange(600) // 10)
    assert np.isclose(width(grouped), once, rtol=0.15)
    assert width(solution.bootstrap(ten, "accuracy", n=500)) < 0.5 * once


def test_samples_without_a_positive_are_left_out_and_counted():
    X, Y = data(4, n=40)
    Y[:, 1] = -1.0
    Y[:2, 1] = 1.0
    tasks = mtl.Tasks.shared(X, Y, task_names=["a", "rare"])
    found = solved(tasks).bootstrap(tasks, "roc_auc", n=400)
    expected = 400 * (38 / 40) ** 40  # neither of the two positives
    assert abs(found.undefined[1] - expected) < 4 * np.sqrt(expected) and found.undefined[0] == 0
    assert np.isfinite([found.low, found.high, found.low_by_task[1]]).all()
    assert f"no number in {found.undefined[1]} samples" in repr(found)


@pytest.mark.slow
def test_separate_inputs_are_drawn_within_every_task():
    X, Y = data(5)
    tasks = mtl.Tasks.separate([X[:100], X[100:130]], [Y[:100, 0], Y[100:130, 1]])
    found = solved(tasks).bootstrap(tasks, "log_loss", n=120)
    widths = found.high_by_task - found.low_by_task
    assert widths[1] > 1.2 * widths[0] and found.table[-1]["task"] is None and len(found.table) == 3


def test_whole_rows_numbers_and_the_seed():
    X, Y = data(6)
    tasks = mtl.Tasks.shared(X, Y)
    solution = solved(tasks)
    rows, again, other = (
        solution.bootstrap(tasks, "subset_accuracy", n=50, random_state=k) for k in (0, 0, 1)
    )
    assert rows.low_by_task is None and [row["task"] for row in rows.table] == [None]
    assert rows.low < rows.estimate < rows.high
    assert np.array_equal(rows.samples, again.samples) and not np.array_equal(rows.samples, other.samples)
    W = mtl.Weights(tasks)
    real = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    assert real.bootstrap(tasks, n=10).metric == "r2"


@for_each(
    "options, says",
    [
        ({"n": 1}, "bootstrap(tasks, n=1)"),
        ({"level": 95}, "level=95"),
        ({"metric": "auc"}, "write 'roc_auc'"),
        ({"groups": [1, 2]}, "there are 2 groups, and there are 400 rows"),
        ({"groups": [1] * 400}, "all rows are of one group"),
        ({"random_state": "x"}, "random_state='x'"),
    ],
)
def test_mistakes_are_named(options, says):
    tasks = mtl.Tasks.shared(*data())
    with pytest.raises(mtl.errors.MTLError) as caught:
        solved(tasks).bootstrap(tasks, **options)
    assert says in str(caught.value)


@pytest.mark.slow
def test_two_models_are_compared_on_the_same_rows():
    """Paired: the difference of a model to itself is 0, and that of two is known better than by two intervals."""
    X, Y = data(5)
    train, test = mtl.Tasks.shared(X, Y).split(0.5, random_state=0)
    W = mtl.Weights(train)
    loss = mtl.logistic_loss(W, train)
    few, many = (mtl.minimize(loss + c * mtl.ridge(W)).solve() for c in (1.0, 30.0))
    one, two = (solution.bootstrap(test, "log_loss", n=100) for solution in (few, many))
    difference = one.minus(two)
    assert np.allclose(difference.samples, one.samples - two.samples)
    assert float(difference.estimate) == float(one.estimate) - float(two.estimate)
    assert np.allclose(difference.estimate.by_task, one.estimate.by_task - two.estimate.by_task)
    assert difference.high - difference.low < 0.8 * ((one.high - one.low) + (two.high - two.low))
    assert not np.any(one.minus(few.bootstrap(test, "log_loss", n=100)).samples)
    assert str(difference).startswith("difference in log_loss, 95 %")
    frame = one.frame()
    assert frame["task"].tolist() == [*test.task_names, "all"] and frame["low"].iloc[-1] == one.low


def test_what_cannot_be_compared_is_refused():
    X, Y = data(5)
    tasks = mtl.Tasks.shared(X, Y)
    solution = solved(tasks)
    one = solution.bootstrap(tasks, n=20)
    for other in (
        solution.bootstrap(tasks, n=20, random_state=1),
        solution.bootstrap(tasks, n=30),
        solution.bootstrap(tasks, "roc_auc", n=20),
        solution.bootstrap(mtl.Tasks.shared(X, -Y), n=20),
        solution.bootstrap(tasks, n=20, groups=np.arange(len(X)) // 2),
    ):
        with pytest.raises(mtl.ModelError, match="same tasks, metric, n and random_state"):
            one.minus(other)
    with pytest.raises(mtl.ModelError, match=r"one.bootstrap\(tasks\).minus"):
        one.minus(3.0)
