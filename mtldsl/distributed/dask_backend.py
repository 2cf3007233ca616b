"""Calls to Dask: functions run on workers, values kept there, and its errors made ours."""

from __future__ import annotations

import re
import signal
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from mtldsl.errors import DataError, LostClusterError, MissingExtraError, MTLError, SolverError
from mtldsl.utils.memory import available_memory

# --------------------------------------------------------------------------------------------------------------
# What goes wrong on Dask's workers, as errors of ours that say which partition, and what to write.

#: Names of the errors that Dask raises where the cluster, the client or the work is gone
_LOST_KINDS = (
    *("CancelledError", "FutureCancelledError", "FuturesCancelledError"),
    *("ClosedClientError", "CommClosedError", "NoWorkerError"),
)

AGAIN = "start the cluster and the client again; a solve with checkpoint=folder goes on from there when it is called again"
MEMORY_ADVICE = "cut the data into smaller partitions, keep=False, or give the workers more memory"


def lost(kind: str) -> LostClusterError:
    return LostClusterError(
        f"the connection to Dask's scheduler was lost, or its work was cancelled ({kind})",
        write_instead=AGAIN,
    )


@contextmanager
def typed_errors(names: Sequence[str]) -> Iterator[None]:
    """Errors of ours for workers that are gone or have too little memory, which name the partition, and for whatever a partition raises."""
    try:
        yield
    except MTLError:
        raise
    except MemoryError as error:
        raise SolverError(f"a worker has too little memory ({error})", write_instead=MEMORY_ADVICE) from error
    except Exception as error:
        kind = type(error).__name__
        if kind == "KilledWorker":
            raise killed(error, names) from error
        if kind in _LOST_KINDS:
            raise lost(kind) from error
        raise raised("the work on a partition", error) from error


def raised(term: str, error: Exception) -> DataError:
    """Return what a reader's own error becomes: it says where it came from, and the error itself is its cause."""
    return DataError(
        f"{type(error).__name__} was raised: {error}",
        term=term,
        write_instead="mend what makes the partitions, or read one alone to see it",
    )


def suspects(dask_scheduler) -> list[str]:
    """The keys of what was there each time that a worker died, as often as what Dask gave up."""
    tasks = [task for task in dask_scheduler.tasks.values() if task.suspicious]
    most = max((task.suspicious for task in tasks), default=0)
    found = [task for task in tasks if task.suspicious == most]
    return [str(one.key) for task in found for one in (task, *task.dependents)]


def killed(error: Exception, names: Sequence[str]) -> SolverError:
    """Dask names one task that was there when workers died; the cause may be another that was there too."""
    task = str(getattr(error, "task", ""))
    found = [re.fullmatch(r"mtldsl_.*-(\d+)", key) for key in (task, *getattr(error, "suspects", ()))]
    at = sorted({int(one[1]) for one in found if one and int(one[1]) < len(names)})
    what = (
        " or ".join(names[k] for k in at[:5]) + " or others" * (len(at) > 5)
        if at
        else f"Dask's task {task!r}"
    )
    times = getattr(error, "allowed_failures", 3) + 1
    died = "a worker" if times == 1 else f"{times} workers, one after another,"
    return SolverError(
        f"{what}: {died} died while it was there; most often for want of memory, of that partition or "
        "of what was computed beside it",
        write_instead=MEMORY_ADVICE
        + "; where workers die for other reasons, raise Dask's distributed.scheduler.allowed-failures",
    )


def lacking_memory(name: str, error: MemoryError) -> SolverError:
    """Return what a part's function raises in place of MemoryError."""
    return SolverError(
        f"{name}: too little memory on its worker ({error or 'the system refused more'})",
        write_instead=MEMORY_ADVICE,
    )


# --------------------------------------------------------------------------------------------------------------
# Dask, imported where it is first needed: the active `distributed.Client`, or else the threads of this process.


@dataclass(frozen=True)
class DaskSettings:
    """Limits of memory, time and graphs.

    data_share       : of the workers' memory, for data that are kept there: the other half is for copies and sums
    answer_seconds   : in which a scheduler must have answered
    patience_seconds : between two looks at a cluster that may have lost all its workers
    unwritten_runs   : stateful runs after which states are written out: so many are computed again at most, of the parts that a worker had which dies
    node_summands    : of one node of the tree of sums, a power of two: then the sum has the bits of `tree_sum`
    """

    data_share: float = 0.5
    answer_seconds: float = 10.0
    patience_seconds: float = 30.0
    unwritten_runs: int = 5
    node_summands: int = 8


SETTINGS = DaskSettings()


def require_dask(typed: str) -> Any:
    """The module; MissingExtraError with the line to type where it is not installed."""
    try:
        import dask
        import dask.delayed
    except ImportError as error:
        raise MissingExtraError(
            f"rows in parts elsewhere are Dask's, which cannot be imported ({error})",
            term=typed,
            write_instead="write: pip install '.[dask]' in the checkout",
        ) from None
    with suppress(
        ImportError
    ):  # its settings are read when it is first imported, which must not be where others hold for a while
        import distributed  # noqa: F401
    return dask


def call(function, *arguments, partition: int | None = None) -> Any:
    """function(*arguments), to be computed: arguments that are to be computed themselves come first. Its key names the partition."""
    from dask.delayed import delayed

    label = "" if partition is None else f"-{partition}"
    name = f"mtldsl_{function.__name__.strip('_')}-{uuid.uuid4().hex}{label}"
    return delayed(function, pure=False, traverse=False)(*arguments, dask_key_name=name)


def constant(value) -> Any:
    """A value as a node of the graph: sent once, and sent again to whoever comes in the place of a worker that is lost."""
    from dask.delayed import delayed

    return delayed(_OpaqueValue(value), traverse=False, pure=False)


class _OpaqueValue:
    """A value that Dask does not look into."""

    def __init__(self, value):
        self.value = value


def _client() -> Any:
    """The active client, or None."""
    try:
        from distributed import get_client
    except ImportError:  # dask alone
        return None
    try:
        client = get_client()
    except ValueError:
        return None
    if client.status in (
        "connecting",
        "closed",
    ):  # what it was given before is gone, even if a scheduler comes back
        raise lost(client.status)
    return client


def n_workers() -> int:
    """Return how many there are: one, where this process is all there is."""
    client = _client()
    return 1 if client is None else max(len(_workers(client)), 1)


def _workers(client) -> dict:
    """Return what the scheduler knows of all workers, by address."""
    try:
        try:
            found = client.scheduler_info(n_workers=-1)
        except TypeError:  # older ones always tell of all
            found = client.scheduler_info()
    except OSError as error:
        raise lost(type(error).__name__) from error
    if "workers" not in found:  # nothing was ever heard, or nothing is heard any more
        raise lost(str(client.status))
    return found["workers"]


def fits_in_memory(size: float) -> bool:
    """Tell whether data of so many bytes can be kept on the workers."""
    client = _client()
    if client is None:
        return size <= SETTINGS.data_share * available_memory()
    workers = _workers(client).values()
    return size <= SETTINGS.data_share * sum(one["memory_limit"] or available_memory() for one in workers)


def keep_nodes(nodes: Sequence, names: Sequence[str]) -> list:
    """The same nodes, computed and kept where they were; returns when all are there."""
    if not nodes:
        return []
    dask = require_dask("a pass over the rows")
    with typed_errors(names), _quiet():
        done = dask.persist(*nodes)
        client = _client()
        if client is not None:
            _wait(client, done)
        return list(done)


def compute_node(node, names: Sequence[str]) -> Any:
    """The value of one node, here."""
    dask = require_dask("a pass over the rows")
    with typed_errors(names), _quiet():
        client = _client()
        if client is None:
            return dask.compute(node)[0]
        from distributed.client import futures_of

        (done,) = dask.persist(node)
        _wait(client, [done])
        return futures_of(done)[0].result()


def _wait(client, nodes) -> None:
    """Until all are there; whoever leaves earlier, by Ctrl-C or an error, leaves no work behind."""
    from distributed import as_completed
    from distributed.client import futures_of

    futures = futures_of(nodes)
    try:
        _leave_signals_here(client)
        alone, state, coming = 0, "", as_completed(futures, timeout=SETTINGS.patience_seconds)
        while alone < 2:
            try:
                one = next(coming, None)
            except TimeoutError:  # not all are there yet
                state = _idleness(client)
                alone = alone + 1 if state else 0
                coming = as_completed(futures, timeout=SETTINGS.patience_seconds)
                continue
            if one is None:
                return
            if one.status != "finished":
                one.result()  # raises
        raise LostClusterError(
            f"{state} for {SETTINGS.patience_seconds:g} seconds or more",
            write_instead=AGAIN if "no worker" in state else MEMORY_ADVICE,
        )
    except BaseException as error:
        if type(error).__name__ == "KilledWorker":
            with suppress(Exception):  # before they are forgotten
                error.__dict__["suspects"] = client.run_on_scheduler(suspects)
        with suppress(Exception):  # a closed client has nothing to cancel, and the error says more
            client.cancel(futures, force=True)
        raise


def _leave_signals_here(client) -> None:
    """Once a cluster whose workers are processes that belong to this one: Ctrl-C in a terminal goes to all of them, and Dask would not start
    another, so that what was interrupted could not go on. They end with this one, as ever."""
    from distributed import LocalCluster, WorkerPlugin

    class SignalShield(WorkerPlugin):
        name = "mtldsl-signals"
        idempotent = True

        def setup(self, worker) -> None:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    cluster, mark = client.cluster, "_mtldsl_signals"
    if isinstance(cluster, LocalCluster) and cluster.processes and not hasattr(cluster, mark):
        setattr(cluster, mark, True)
        client.register_plugin(SignalShield())


def _idleness(client) -> str:
    """Why nothing will ever be done as things stand; "" where there is hope."""
    workers = _workers(client).values()
    if not workers:
        return "the cluster has had no worker"
    if all(one.get("status") == "paused" for one in workers):
        return "all workers have been paused for want of memory"
    return ""


@contextmanager
def _quiet() -> Iterator[None]:
    """Weights of some megabytes in a graph are what a pass is about: Dask's advice against large graphs is for data."""
    dask = require_dask("a pass over the rows")
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        yield


def as_nodes(loaders: Sequence, names: Sequence[str], typed: str) -> list:
    """Dask's delayed values, or functions without arguments, as nodes. The names are the partitions', for messages."""
    require_dask(typed)
    from dask.delayed import Delayed

    nodes = []
    for k, (one, name) in enumerate(zip(loaders, names, strict=True)):
        if not isinstance(one, Delayed) and not callable(one):
            raise DataError(
                f"loader {k} is a {type(one).__name__}", term=typed,
                write_instead="give dask.delayed(function)(...), or functions without arguments",
            )  # fmt: skip
        nodes.append(one if isinstance(one, Delayed) else call(_called, one, name, partition=k))
    return nodes


def _called(loader, name: str):
    try:
        return loader()
    except (MTLError, MemoryError):
        raise
    except Exception as error:
        raise raised(name, error) from error
