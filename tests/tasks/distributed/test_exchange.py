"""Numbers of whole tasks put together and brought back: the ranks of all rows of a task, wherever they are."""

import dask.array as da
import numpy as np
import pytest

from mtldsl import Tasks
from mtldsl.tasks.distributed import DistributedTasks, TaskSum
from mtldsl.tasks.distributed.exchange import Columns

N, D, M = 300, 4, 3
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, D))
Y = np.where(RNG.normal(size=(N, M)) > 0.0, 1.0, -1.0)
Y[RNG.random(Y.shape) < 0.3] = np.nan
V = RNG.normal(size=(D, M))


def scores(part, _, V):
    tasks = part.tasks
    z = np.round(tasks.forward(part.columns(V)), 1)  # ties
    return Columns(part.which, tasks.offsets, (z, tasks.targets > 0)), None


def ranks(columns, state, shift):
    """Places of scores in their order, ties in the order of the rows; the state counts calls."""
    found, (z, positive) = np.empty(len(columns.arrays[0])), columns.arrays
    for a, b in zip(columns.offsets[:-1], columns.offsets[1:], strict=True):
        found[a:b][np.argsort(z[a:b], kind="stable")] = np.arange(b - a) + shift
    state = (state or 0) + 1
    told = np.add.reduceat(positive.astype(float), columns.offsets[:-1])
    return state, (found, positive), TaskSum(columns.which, np.stack([told, np.full(len(told), state)], 1))


def weighed(part, columns):
    found, positive = columns.arrays
    assert np.array_equal(positive, part.tasks.targets > 0)  # in the order of the part's own rows
    return TaskSum(part.which, part.tasks.adjoint(found).T)


def ranked(parts, V):
    columns, none = parts.run(scores, V, stateful=True)
    assert none is None
    state, back, told = parts.exchanged(columns, M, ranks, 1.0)
    _, back, told = parts.exchanged(columns, M, ranks, 1.0, state=state)
    return parts.run(weighed, state=back).of_all(M), told.of_all(M)


def by_hand(V):
    sums = np.zeros((M, D))
    for i in range(M):
        own = ~np.isnan(Y[:, i])
        z = np.round(X[own] @ V[:, i], 1)
        place = np.empty(len(z))
        place[np.argsort(z, kind="stable")] = np.arange(len(z)) + 1.0
        sums[i] = X[own].T @ place
    return sums


@pytest.mark.parametrize("n_parts", [1, 4, 11])
def test_ranks_of_all_rows_are_found(n_parts):
    sums, told = ranked(DistributedTasks.cut(Tasks.shared(X, Y), n_parts).parts, V)
    np.testing.assert_allclose(sums, by_hand(V), rtol=1e-12)
    np.testing.assert_array_equal(told[:, 0], (Y > 0).sum(axis=0))
    np.testing.assert_array_equal(told[:, 1], 2.0)


def test_tasks_that_some_parts_lack():
    ids = np.repeat([2, 0, 1], N // 3)
    y = np.where(RNG.normal(size=N) > 0.0, 1.0, -1.0)
    tasks = Tasks.grouped(X, y, ids)
    one, other = (ranked(DistributedTasks.cut(tasks, k).parts, V) for k in (1, 7))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.by_default("threads-True")
@pytest.mark.parametrize("keep", [True, False])
def test_on_workers(engine, keep):
    chunks = (60, 2)
    tasks = Tasks.from_dask(
        da.from_array(X, chunks=(60, D)), da.from_array(Y, chunks=chunks).rechunk((60, M)), keep=keep
    )
    before = tasks.parts.bytes_moved
    sums, told = ranked(tasks.parts, V)
    here = ranked(DistributedTasks.cut(Tasks.shared(X, Y), 5).parts, V)
    assert sums.tobytes() == here[0].tobytes() and told.tobytes() == here[1].tobytes()
    assert tasks.parts.bytes_moved > before + 2 * 9 * np.sum(~np.isnan(Y))
