"""Units of an experiment side by side, through joblib: in processes of this machine, or on Dask's workers. What they return does not depend on it,
but for seconds, which are comparable only where workers have a core each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["add_workers", "several", "workers"]


def add_workers(parser) -> None:
    """The options of a command line."""
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="units go to this scheduler's workers, such as tcp://10.0.0.1:8786; they must find this folder"
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, help="units at a time, in processes of this machine (1)")


@contextmanager
def workers(options) -> Iterator[None]:
    """Where `several` works in the block, as the options say."""
    if options.dask is None:
        yield
        return
    import joblib
    from distributed import Client

    with Client(options.dask), joblib.parallel_config(backend="dask"):
        yield


def several(function: Callable, work: Sequence[tuple], n_jobs: int | None = None) -> Iterator:
    """function(*one) for one in work, in their order, each as soon as it and those before it are there."""
    from joblib import Parallel, delayed

    return Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(*one) for one in work)
