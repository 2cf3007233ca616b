"""Units of an experiment side by side, through joblib: in processes of this machine, or on Dask's workers. What they return does not depend on it,
but for seconds, which are comparable only where workers have a core each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.papers.rows import append

__all__ = ["add_workers", "grow", "several", "workers"]


def add_workers(parser) -> None:
    """The options of a command line."""
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="units go to this scheduler's workers, such as tcp://10.0.0.1:8786; they must find this folder"
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, help="units at a time, in processes of this machine (1)")


@contextmanager
def workers(options) -> Iterator[None]:
    """Where `several` works in the block, as the options say."""
    import joblib

    if options.dask is None:
        with joblib.parallel_config(n_jobs=options.jobs):
            yield
        return
    from distributed import Client

    with Client(options.dask), joblib.parallel_config(backend="dask", n_jobs=options.jobs or -1):
        yield


def several(function: Callable, work: Iterable[tuple]) -> Iterator:
    """function(*one) for one in work, in their order, each as soon as it and those before it are there."""
    from joblib import Parallel, delayed

    return Parallel(return_as="generator")(delayed(_on_one_thread)(function, one) for one in work)


def grow(path: Path, columns, function: Callable, work: Iterable[tuple]) -> None:
    """Appends what function(*one) returns, (rows, a line to print), for one in work: a file of rows that grows by whole units."""
    for rows, line in several(function, work):
        if rows:
            append(path, columns, *rows)
        print(line, flush=True)


def _on_one_thread(function, one):
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # a limit of the process that asks does not reach its workers
        return function(*one)
