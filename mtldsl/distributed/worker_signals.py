"""Signals that workers ignore: Ctrl-C in a terminal goes to all processes; those of a `LocalCluster` leave it to the one that asked."""

from __future__ import annotations

import signal
import threading

from distributed import LocalCluster, WorkerPlugin

_MARK = "_mtldsl_signals"


class SignalShield(WorkerPlugin):
    """A worker that Ctrl-C does not end: Dask would not start another, and what was interrupted could not go on."""

    name = "mtldsl-signals"
    idempotent = True

    def setup(self, worker) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave_signals_here(client) -> None:
    """Once a cluster, where its workers are processes that belong to this one. They end with it, as ever."""
    cluster = client.cluster
    if isinstance(cluster, LocalCluster) and cluster.processes and not getattr(cluster, _MARK, False):
        setattr(cluster, _MARK, True)
        client.register_plugin(SignalShield())
