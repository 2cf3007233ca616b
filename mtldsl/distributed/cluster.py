"""Connection to Dask's workers: those of a scheduler that runs somewhere, or processes that are started here and end with it."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any

from mtldsl.distributed.dask_backend import SETTINGS
from mtldsl.errors import DataError, MissingExtraError, SolverError

#: what an address of a scheduler looks like, and an amount of memory
ADDRESS = re.compile(r"(tcp|tls|ws|wss)://[^\s/]+:\d{1,5}")
MEMORY = re.compile(r"\d+(\.\d+)?\s*[kMGT]i?B")


@dataclass(frozen=True, eq=False)
class Cluster:
    """A client that is the active one until it is closed, and the processes that were started for it, which end then.

    where : "a local cluster", or the scheduler's address
    """

    client: Any
    where: str
    processes: Any = None

    @property
    def address(self) -> str:
        return self.client.scheduler.address

    def close(self) -> None:
        """Leaves the scheduler; what was started here ends."""
        self.client.close()
        if self.processes is not None:
            self.processes.close()


def start_processes(workers: int | None = None, threads: int = 1, memory: str | None = None) -> Cluster:
    """Processes on this machine that listen on the loopback alone: `workers` of them (None: one a core), each with so many threads and
    so much memory (None: an equal share of this machine's)."""
    distributed = _distributed('scheduler = "local"')
    options: dict[str, Any] = {} if memory is None else {"memory_limit": memory}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting: list = []
    try:
        with _ctrl_c_waits(waiting), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ports that are taken: any other will do
            processes = distributed.LocalCluster(
                n_workers=workers or cores, threads_per_worker=threads, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0", silence_logs=logging.ERROR, **options,
            )  # fmt: skip
    except Exception as error:
        if waiting:
            signal.raise_signal(signal.SIGINT)
        raise SolverError(
            f"a local cluster could not be started ({type(error).__name__}: {error})",
            write_instead='give it fewer workers; in a script, call this below `if __name__ == "__main__":`',
        ) from error
    try:
        if waiting:
            signal.raise_signal(signal.SIGINT)
        return Cluster(distributed.Client(processes), "a local cluster", processes)
    except BaseException:
        processes.close()
        raise


def connect_scheduler(address: str) -> Cluster:
    """The scheduler at this address. DataError where none answers, or one that speaks otherwise."""
    distributed = _distributed(f"scheduler = {address!r}")
    try:
        return Cluster(distributed.Client(address, timeout=SETTINGS.answer_seconds), address)
    except Exception as error:  # of sockets, of names, of versions that do not go together
        raise DataError(
            f"no scheduler of Dask answers at {address} ({type(error).__name__})",
            argument="scheduler", write_instead="start one, such as by `dask scheduler`, and workers that know it",
        ) from error  # fmt: skip


@contextmanager
def _ctrl_c_waits(heard: list) -> Iterator[None]:
    """Ctrl-C in the block is kept in the list, for after it: processes that are half started cannot be ended in order. Those that are started
    in it inherit that the signal is blocked: it is for the process that solves, which tells the others what to leave."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *signaled: heard.append(signaled))
    blocks = hasattr(signal, "pthread_sigmask")  # not on Windows
    if blocks:
        resource_tracker.ensure_running()  # it unblocks the signal where it starts, which would be in the block
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    try:
        yield
    finally:
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # what is pending goes to the list now
        signal.signal(signal.SIGINT, before)


def _distributed(typed: str) -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            f"workers are Dask's, which cannot be imported ({error})",
            term=typed,
            write_instead="write: pip install '.[dask]' in the checkout",
        ) from None
    return distributed
