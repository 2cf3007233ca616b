"""Workers with too little memory: rows go to their disk, or an error names the partition; nobody waits for ever."""

import warnings
from contextlib import contextmanager
from dataclasses import replace

import dask
import distributed
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import SolverError
from mtldsl.distributed import dask_backend
from mtldsl.distributed.dask_inputs import of_loaders
from mtldsl.errors import LostClusterError
from tests.conftest import local_cluster
from tests.models import with_weights

pytestmark = pytest.mark.cluster


def part(k, n, d=50):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(n, d))
    return X, X @ np.ones((d, 1)) + rng.normal(size=(n, 1))


@contextmanager
def one_worker(limit, processes, **settings):
    options = {"processes": processes, "n_workers": 1, "memory_limit": limit}
    with (
        dask.config.set({"distributed.worker.memory." + key: value for key, value in settings.items()}),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        with local_cluster(**options) as cluster, distributed.Client(cluster) as client:
            yield cluster, client


def spilled(dask_worker):
    return len(dask_worker.data.slow)


def solved(number):
    tasks, W = with_weights(of_loaders([dask.delayed(part)(k, 4_000) for k in range(number)], keep=True))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W)).solve()


@pytest.mark.slow
def test_rows_that_do_not_fit_go_to_the_disk():
    with one_worker("1GB", False, target=0.005, spill=False, pause=False) as (_, client):
        found = solved(8)  # 13 MB, where 5 are held
        assert sum(client.run(spilled).values()) > 0
    assert found.status == "optimal" and found.W.tobytes() == solved(8).W.tobytes()


@pytest.mark.slow
def test_a_partition_that_fits_nowhere_is_named():
    with one_worker("400MB", True) as (cluster, _):
        cluster.scheduler.allowed_failures = 0
        loaders = [dask.delayed(part)(0, 1000), dask.delayed(part)(1, 1_500_000)]  # 600 MB
        with pytest.raises(
            SolverError,
            match=r"^.*large.npz: a worker died .*for want of memory, .*; cut the data into smaller",
        ):
            of_loaders(loaders, names=["small.npz", "large.npz"])


@pytest.mark.slow
def test_workers_that_are_paused_for_ever_are_an_error(monkeypatch):
    monkeypatch.setattr(dask_backend, "SETTINGS", replace(dask_backend.SETTINGS, patience_seconds=1.0))
    with one_worker("1GB", False, spill=False, pause=False) as (_, client):
        tasks = of_loaders([dask.delayed(part)(k, 100) for k in range(2)])
        client.run(_pause)
        with pytest.raises(
            LostClusterError, match=r"all workers have been paused for want of memory .*smaller partitions"
        ):
            tasks.gram()


def _pause(dask_worker):
    dask_worker.status = distributed.Status.paused
