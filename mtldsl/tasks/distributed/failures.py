"""What goes wrong on Dask's workers, as errors of ours that say which partition, and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mtldsl.errors import LostClusterError, SolverError

__all__ = ["AGAIN", "MORE_MEMORY", "killed", "lacking_memory", "lost", "suspects", "typed_errors"]

#: Names of the errors that Dask raises where the cluster, the client or the work is gone
_LOST_KINDS = (
    *("CancelledError", "FutureCancelledError", "FuturesCancelledError"),
    *("ClosedClientError", "CommClosedError", "NoWorkerError"),
)

AGAIN = "start the cluster and the client again; a solve with checkpoint=folder goes on from there when it is called again"
MORE_MEMORY = "cut the data into smaller partitions, keep=False, or give the workers more memory"


def lost(kind: str) -> LostClusterError:
    return LostClusterError(
        f"the connection to Dask's scheduler was lost, or its work was cancelled ({kind})",
        write_instead=AGAIN,
    )


@contextmanager
def typed_errors(names: Sequence[str]) -> Iterator[None]:
    """What Dask says of workers that are gone or have too little memory, as errors of ours that name the partition."""
    try:
        yield
    except MemoryError as error:
        raise SolverError(f"a worker has too little memory ({error})", write_instead=MORE_MEMORY) from error
    except Exception as error:
        kind = type(error).__name__
        if kind == "KilledWorker":
            raise killed(error, names) from error
        if kind in _LOST_KINDS:
            raise lost(kind) from error
        raise


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
        write_instead=MORE_MEMORY
        + "; where workers die for other reasons, raise Dask's distributed.scheduler.allowed-failures",
    )


def lacking_memory(name: str, error: MemoryError) -> SolverError:
    """What a part's function raises in place of MemoryError."""
    return SolverError(
        f"{name}: too little memory on its worker ({error or 'the system refused more'})",
        write_instead=MORE_MEMORY,
    )
