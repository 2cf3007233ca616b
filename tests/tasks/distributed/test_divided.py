"""Folds and splits of rows in parts: every row on one side, spread within parts, the same rows whatever the workers."""

from itertools import chain

import dask.array as da
import numpy as np
import pytest

from mtldsl import DataError, Tasks
from mtldsl.distributed.distributed_tasks import DistributedTasks
from tests.loops import for_each

RNG = np.random.default_rng(8)
N, D, M = 600, 4, 3
X = np.column_stack([np.arange(N), RNG.normal(size=(N, D - 1))])  # the first column says which row it is
Y = np.where(RNG.random((N, M)) < [0.5, 0.1, 0.3], 1.0, -1.0)
Y[RNG.random((N, M)) < 0.25] = np.nan
IDS = np.array(["a", "b", "c"])[RNG.integers(3, size=N)]


def table():
    return Tasks.shared(X, Y)


def long():
    return Tasks.grouped(X, np.where(RNG.random(N) < 0.3, 1.0, -1.0), IDS)


def rows_of(part):
    """Which rows a part has of each of its tasks, and how often."""
    return {
        int(i): dict.fromkeys(Z[:, 0].astype(int).tolist(), 1)
        for i, Z in zip(part.which, part.tasks.inputs, strict=True)
    }


def rows(tasks):
    found = tasks.parts.run(rows_of)
    assert all(times == 1 for one in found.values() for times in one.values())
    return [sorted(found[i]) for i in range(tasks.n_tasks)]


@pytest.mark.parametrize("whole", [table, long])
def test_every_row_is_held_out_once_and_learned_on_elsewhere(whole):
    tasks = DistributedTasks.cut(whole(), 5)
    before, everything = tasks.parts.passes, rows(tasks)
    pairs = tasks.folds(4, random_state=3)
    assert tasks.parts.passes == before + 2  # one for what `rows` asked
    for train, test in pairs:
        assert [sorted(a + b) for a, b in zip(rows(train), rows(test), strict=True)] == everything
        assert not any(set(a) & set(b) for a, b in zip(rows(train), rows(test), strict=True))
        facts = DistributedTasks.cut(whole(), 5).label_facts
        assert (train.counts + test.counts == facts.counts).all()
    held_out = [
        sorted(chain.from_iterable(one)) for one in zip(*[rows(test) for _, test in pairs], strict=True)
    ]
    assert held_out == everything


@pytest.mark.parametrize("whole", [table, long])
def test_what_is_known_of_a_side_is_what_its_rows_are(whole):
    tasks = DistributedTasks.cut(whole(), 5)
    for one in (*tasks.folds(3)[1], *tasks.split(0.3, random_state=1)):
        again = DistributedTasks(one.parts, task_names=one.task_names, feature_names=one.feature_names)
        for name in ("counts", "total", "squares", "minimum", "maximum"):
            np.testing.assert_array_equal(getattr(one.label_facts, name), getattr(again.label_facts, name))


def test_labels_and_tasks_are_spread_within_parts():
    one = Tasks.shared(X, Y[:, 1])
    tasks = DistributedTasks.cut(one, 4)
    positives = [int(test.positives[0]) for _, test in tasks.folds(5)]
    assert max(positives) - min(positives) <= 4 and sum(positives) == int(tasks.positives[0])
    loose = [int(test.positives[0]) for _, test in tasks.folds(5, stratify=False, random_state=2)]
    assert sum(loose) == sum(positives) and max(loose) - min(loose) > 4
    grouped = DistributedTasks.cut(long(), 4)
    for _, test in grouped.folds(5):
        assert np.abs(test.counts - grouped.counts / 5).max() <= 8
    train, test = grouped.split(0.25)
    assert np.abs(test.counts - 0.25 * grouped.counts).max() <= 8
    assert np.abs(test.positives - 0.25 * grouped.positives).max() <= 8


@pytest.mark.slow
def test_the_same_seed_deals_the_same_rows_whatever_the_workers(engine):
    here = DistributedTasks.cut(table(), 6)
    there = Tasks.from_dask(da.from_array(X, chunks=(100, D)), Y)
    assert rows(there.split(0.3, random_state=4)[1]) == rows(here.split(0.3, random_state=4)[1])
    assert rows(here.split(0.3, random_state=5)[1]) != rows(here.split(0.3, random_state=4)[1])
    assert [rows(test) for _, test in there.folds(3)] == [rows(test) for _, test in here.folds(3)]
    train, _ = there.folds(3)[0]
    assert not train.parts.keep and there.parts.keep and there.split()[0].parts.keep


@for_each(
    "ask, message",
    [
        (lambda tasks: tasks.folds(1), r"folds\(k=1\)"),
        (lambda tasks: tasks.folds(3, groups=[1] * N), "groups are a list as long as the rows"),
        (lambda tasks: tasks.split(1.5), r"split\(test_size=1.5\): write a share"),
        (lambda tasks: tasks.split(0.5, groups=[1] * N), "groups are a list as long as the rows"),
        (
            lambda tasks: tasks.split(1e-9),  # of 1e-4 one draw of the rows in fifteen had one
            "no labelled row among the rows held out|among the rows held out",
        ),
    ],
)
def test_what_cannot_be_dealt_is_said(ask, message):
    with pytest.raises(DataError, match=message):
        ask(DistributedTasks.cut(table(), 5))


def test_a_task_with_one_row_of_a_class_cannot_be_on_both_sides():
    y = np.full(40, -1.0)
    y[7] = 1.0
    tasks = DistributedTasks.cut(Tasks.shared(X[:40], y), 2)
    with pytest.raises(DataError, match=r"no label \+1 among the rows"):
        tasks.split(0.5)
    assert len(tasks.folds(2)) == 2  # where a fold need not have both
