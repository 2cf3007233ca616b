"""Where parts are computed: threads of this process, or two processes on the loopback, which are started once."""

import warnings

import pytest

pytest.importorskip("dask.array", reason="pip install -e .[dask]")
distributed = pytest.importorskip("distributed", reason="pip install -e .[dask]")


@pytest.fixture(scope="package")
def two_workers():
    """A cluster that listens on the loopback alone."""
    options = {
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "processes": True,
        "memory_limit": "1GB",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options)
    yield cluster
    cluster.close()


@pytest.fixture
def client(two_workers):
    with distributed.Client(two_workers) as client:
        yield client


@pytest.fixture(params=["threads", "two processes"])
def engine(request):
    return None if request.param == "threads" else request.getfixturevalue("client")
