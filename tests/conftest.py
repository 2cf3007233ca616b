"""What all tests share: one BLAS thread, two processes, the cases that run by default, and fixtures."""

import gc
import os
import signal

import pytest
from _pytest.doctest import DoctestModule
from threadpoolctl import threadpool_limits

from mtldsl.utils.interrupts import TimeIsUp
from tests import optima
from tests.warm_up import warm_up

#: all tests that were collected, those too that this run leaves out
COLLECTED = pytest.StashKey()


@pytest.fixture
def reference_optimum():
    """name of a mixed model -> (objective, certified bound) found by the cvxpy reference."""
    return optima.reference_optimum


@pytest.fixture
def every_case(request):
    """Tell whether a loop runs over all of its cases, as in the slow run, or over each value of each argument once."""
    return request.config.option.markexpr == ""


def local_cluster(**options):
    """A cluster on this machine, of two threads that are reached by sockets, but for what the options say."""
    distributed = pytest.importorskip("distributed", reason="pip install -e .[dask]")
    given = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "memory_limit": 0}
    given |= {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(**given | options)


@pytest.fixture(scope="module")
def two_workers():
    """A cluster of two threads that are reached by sockets: rows and steps are pickled as on any cluster, and it starts in a moment.

    It lives as long as one file of tests, since a process with a thread of its own is not what tests that fork expect.
    """
    with local_cluster() as cluster:
        yield cluster


@pytest.fixture
def client(two_workers):
    """A client of `two_workers`."""
    from distributed import Client

    with Client(two_workers) as client:
        yield client


@pytest.fixture(scope="module")
def two_processes():
    """A cluster of two processes for one file of tests with the mark `cluster`: while they wait these take a tenth of a core."""
    with local_cluster(processes=True, memory_limit="1GB") as cluster:
        yield cluster


@pytest.fixture
def client_of_processes(two_processes):
    """A client of `two_processes`."""
    from distributed import Client

    with Client(two_processes) as client:
        yield client


@pytest.fixture(params=["two_workers", pytest.param("two_processes", marks=pytest.mark.cluster)])
def each_cluster(request):
    """Both clusters one after the other, for what must have the same bits on each."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["threading", pytest.param("loky", marks=pytest.mark.process)])
def each_backend(request):
    """joblib's threads, and its processes, for `n_jobs=2` in the test."""
    import joblib

    with joblib.parallel_config(backend=request.param):
        yield


@pytest.fixture
def command_line(capsys):
    """arguments -> (exit code, stdout, stderr) of `mtldsl ARGUMENTS` in the current directory, in this process."""
    from mtldsl.cli import main

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def load(tmp_path):
    """text -> what is read of a problem file p.toml with it."""
    from mtldsl.cli.problem_files.problem_file import load_problem

    def from_text(text):
        path = tmp_path / "p.toml"
        path.write_text(text, encoding="utf-8")
        return load_problem(path)

    return from_text


@pytest.fixture
def a_hundred_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def pytest_configure(config):
    threadpool_limits(1, user_api="blas")  # where a plugin has imported numpy already
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # a shell's background jobs: tests that send it would wait for ever
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    """An alarm that leaves a test fails this test; as the KeyboardInterrupt that it is, it would end the whole run."""
    try:
        return (yield)
    except TimeIsUp as error:
        raise AssertionError("the alarm of a time limit left the test") from error


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Processes of `-n auto`: two, which is what the time in the README is measured with; none where somebody names the tests to run, who
    wants to see them at once, and may want a debugger.
    """
    named = config.args_source is config.ArgsSource.ARGS
    return 0 if named or config.option.usepdb else min(2, os.cpu_count() or 1)


def is_named(case: str, name: str) -> bool:
    """Tell whether `by_default(name)` names a case: by its id, or by some of the values that its id is made of."""
    return case == name or set(name.split("-")) <= set(case.split("-"))


@pytest.hookimpl(tryfirst=True)  # before the cases that are marked are left out
def pytest_collection_modifyitems(config, items):
    """Mark as slow the cases that `@pytest.mark.by_default("case", ...)` above their test does not name."""
    for item in items:
        quick = item.get_closest_marker("by_default")
        if quick is None:
            continue
        if not hasattr(item, "callspec"):
            raise pytest.UsageError(f"{item.nodeid}: by_default names cases, and this test has none")
        if not any(is_named(item.callspec.id, name) for name in quick.args):
            item.add_marker(pytest.mark.slow)
    config.stash[COLLECTED] = list(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Compile the largest kernels before the first test, where several processes run the whole suite."""
    process = getattr(session.config, "workerinput", {}).get("workerid")
    if process is not None:
        warm_up(process)


def pytest_collection_finish():
    """What was imported to collect lives as long as the process: a collection of garbage need not look through it each time,
    nor come after every 700 objects."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Modules of tests have no doctests, and are looked through once."""
    return [one for one in (yield) if not isinstance(one, DoctestModule)]


def pytest_addoption(parser):
    for name, default, counted in (
        ("--fuzz", 30, "random models to solve in tests/fuzz (.ci/run: 100, nightly: 2000)"),
        ("--fuzz-files", 60, "files of strangers to read in tests/fuzz (.ci/run: 300, nightly: 5000)"),
        ("--fuzz-bytes", 40, "damaged files to read in tests/fuzz (.ci/run: 200, nightly: 2000)"),
        ("--kills", 2, "kills of each kind in tests/faults (.ci/run: 10, nightly: 500)"),
    ):
        parser.addoption(name, type=int, default=default, help=counted)
