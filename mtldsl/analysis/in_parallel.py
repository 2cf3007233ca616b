"""Many fits at a time, through joblib: in processes of this machine, or wherever `joblib.parallel_config` says, such as Dask's workers.

What all fits share - the data, the model - is sent apart from what each has of its own: the data once, and the model without them.
"""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mtldsl.errors import ModelError
from mtldsl.system import stops
from mtldsl.tasks import Tasks
from mtldsl.values.number import as_whole, quoted

__all__ = ["Unfinished", "in_parallel", "jobs_of"]

_DATA = "the data"


def jobs_of(n_jobs) -> int | None:
    """How many of them: a whole number, -1 for one a core; None is what joblib is told around, and else one."""
    number = as_whole(n_jobs)
    if n_jobs is not None and (number is None or number == 0):
        raise ModelError(
            term=f"n_jobs={quoted(n_jobs)}", write_instead="write a whole number, -1 for one a core"
        )
    return number


def in_parallel(
    function: Callable,
    common: tuple,
    tasks: Tasks,
    work: Sequence[tuple],
    n_jobs,
    tell: Callable | None = None,
) -> list:
    """[function(common, tasks, *one) for one in work], by joblib in other processes, or in what `joblib.parallel_config` says.

    common : what all share; Tasks in it that are `tasks` are not sent a second time
    tell   : called here with every result, in the order of the work
    Tasks whose rows are on Dask's workers stay there: their fits are one after another, each with all workers.
    A signal ends it, in every process: `Unfinished` has the results so far.
    """
    number = jobs_of(n_jobs)
    if number == 1 or tasks.is_distributed:
        return _told((function(common, tasks, *one) for one in work), tell)
    from joblib import Parallel, delayed

    sent = _Sent(common, tasks)
    found = Parallel(n_jobs=number, return_as="generator")(
        delayed(_received)(function, sent, tasks, *one) for one in work
    )
    return _told(found, tell)


class Unfinished(Exception):
    """A signal came; `found` has the results until then."""

    def __init__(self, found: list):
        self.found = found


def _told(results: Iterable, tell: Callable | None) -> list:
    found = []
    try:
        with stops.heard(raises=True):
            for one in results:
                found.append(one)
                if tell is not None:
                    tell(one)
    except KeyboardInterrupt:
        if stops.insisted():  # a second signal is for the program
            raise
        raise Unfinished(found) from None
    return found


class _Sent:
    """Values without the data in them, as bytes; Dask sends what is this large once, whoever asks for it."""

    def __init__(self, values: tuple, tasks: Tasks):
        class Pickler(_cloudpickle().CloudPickler):
            def persistent_id(self, obj):
                return _DATA if obj is tasks else None

        written = io.BytesIO()
        Pickler(written).dump(values)
        self.content = written.getvalue()

    def __sizeof__(self) -> int:
        return len(self.content)

    def values(self, tasks: Tasks) -> tuple:
        return _Unpickler(io.BytesIO(self.content), tasks).load()


def _cloudpickle() -> Any:
    """joblib's own: words of one's own may stand in a script or a notebook, which pickle alone cannot send."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:  # until joblib 1.5 it is a part of it
        return importlib.import_module("joblib.externals.cloudpickle")


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, tasks: Tasks):
        super().__init__(file)
        self.tasks = tasks

    def persistent_load(self, pid) -> Any:
        return self.tasks


def _received(function: Callable, sent: _Sent, tasks: Tasks, *one):
    return function(sent.values(tasks), tasks, *one)
