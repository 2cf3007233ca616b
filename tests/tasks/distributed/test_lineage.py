"""What is kept beside the rows: on disk from time to time, as plain numbers; a worker's death costs a few runs and changes no bit."""

import os
import time
from pathlib import Path

import dask.array as da
import distributed
import numpy as np
import pytest

from mtldsl import DataError, Tasks
from mtldsl.distributed import dask_parts
from mtldsl.distributed.dask_parts import SETTINGS
from mtldsl.distributed.partitions import TaskSum, read_state, state_path
from tests.conftest import local_cluster

RUNS = SETTINGS.unwritten_runs
X = da.random.default_rng(0).normal(size=(80, 3), chunks=(20, 3))
Y = X @ np.ones((3, 2)) + 1.0


def decayed(part, state, W, folder):
    """A step whose state depends on all steps before; every evaluation leaves a file."""
    (Path(folder) / f"{part.index}-{os.urandom(8).hex()}").touch()
    z = part.tasks.forward(W) - part.tasks.targets
    state = z if state is None else 0.5 * state + np.sin(z)
    return state, TaskSum(part.which, part.tasks.adjoint(state).T)


def descend(parts, folder, first, steps, state=None):
    W = np.full((3, 2), 0.1)
    for k in range(first, first + steps):
        state, slope = parts.run(decayed, W * k, str(folder), state=state, stateful=True)
    return state, slope.values


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "seen").mkdir()
    return tmp_path / "seen"


def _settled(count, most: float) -> int:
    """The count once it is `most` or less, or after a minute: messages that let go of results may still be on their way."""
    for _ in range(1200):
        if count() <= most:
            break
        time.sleep(0.05)
    return count()


@pytest.mark.slow
def test_lineage_is_bounded(two_workers, client, folder):
    parts = Tasks.from_dask(X, Y).parts
    most, state = np.inf, None
    for first in range(0, 2 * RUNS, RUNS):
        state, _ = descend(parts, folder, first, RUNS, state)
        known = _settled(lambda: len(two_workers.scheduler.tasks), most)
        assert known <= most
        most = min(most, known + parts.n_parts)
    gone = state.folder.name
    assert len(list(Path(gone).iterdir())) == parts.n_parts
    del parts, state
    assert not os.path.exists(gone)


@pytest.mark.slow
def test_a_lost_worker_costs_a_few_runs_and_no_bit(folder):
    with local_cluster() as cluster, distributed.Client(cluster):
        parts, steps = Tasks.from_dask(X, Y).parts, 2 * RUNS - 1
        _, wanted = descend(parts, folder, 0, steps + 1)
        state, _ = descend(parts, folder, 0, steps)
        before = len(list(folder.iterdir()))
        cluster.sync(cluster.workers[0].close)  # and what it holds is gone
        _, found = descend(parts, folder, steps, 1, state)
    assert found.tobytes() == wanted.tobytes()
    assert parts.n_parts < len(list(folder.iterdir())) - before <= RUNS * parts.n_parts


@pytest.mark.slow
def test_states_stay_if_nobody_else_sees_the_folder(client, folder, monkeypatch):
    parts = Tasks.from_dask(X, Y).parts
    _, wanted = descend(parts, folder, 0, RUNS + 1)

    def fails(*_):
        raise DataError("no room")

    monkeypatch.setattr(dask_parts, "write_states", fails)
    state, found = descend(parts, folder, 0, RUNS + 1)
    assert found.tobytes() == wanted.tobytes() and state.folder is None and state.since == 1


def test_a_folder_that_workers_do_not_see_is_named(engine, tmp_path):
    parts = Tasks.from_dask(X, Y).parts
    states, _ = parts.run(decayed, np.full((3, 2), 0.1), str(tmp_path), stateful=True)
    with pytest.raises(DataError, match="partition 0: what is beside its rows cannot be written there"):
        parts.write_states(states, str(tmp_path / "nowhere"), "one")


@pytest.mark.slow
def test_what_was_written_is_read_again(engine, tmp_path, folder):
    parts = Tasks.from_dask(X, Y).parts
    state, _ = descend(parts, folder, 0, 2)
    _, wanted = descend(parts, folder, 2, 1, state)
    written = parts.write_states(state, str(tmp_path), "one")
    for states in (written, parts.read_states(str(tmp_path), "one")):
        assert descend(parts, folder, 2, 1, states)[1].tobytes() == wanted.tobytes()
    state_path(str(tmp_path), "one", 3).write_bytes(b"not this")
    with pytest.raises(DataError, match=r"rows-one-3.npz: cannot be read as a state of the rows"):
        parts.read_states(str(tmp_path), "one")


def test_a_pickled_file_is_not_read(tmp_path):
    np.savez(tmp_path / "a.npz", shape=np.array({"plain": 1}, dtype=object))
    with pytest.raises(DataError, match="holds Python objects"):
        read_state(tmp_path / "a.npz")
