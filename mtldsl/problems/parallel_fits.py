"""Many fits at a time, through joblib: in processes of this machine, or wherever `joblib.parallel_config` says, such as Dask's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mtldsl.data.tasks import Tasks
from mtldsl.errors import Interrupted, ModelError
from mtldsl.utils import interrupts
from mtldsl.utils.validation import as_whole, quoted


def jobs_of(n_jobs) -> int | None:
    """Return how many of them: a whole number, -1 for one a core; None is what joblib is told around, and else one."""
    number = as_whole(n_jobs)
    if n_jobs is not None and (number is None or number == 0):
        raise ModelError(
            term=f"n_jobs={quoted(n_jobs)}", write_instead="write a whole number, -1 for one a core"
        )
    return number


class PartsProgress:
    """Progress of work of many parts.

    total    : how many there are to be; None before that is known, or where it never is
    called   : (one, many), what a part is called
    found    : the results of those that are complete
    complete : what is made of them where a signal ends the work
    """

    def __init__(self, called: tuple[str, str]):
        self.total: int | None = None
        self.called = called
        self.found: list = []
        self.complete: Callable[[list], Any] = lambda found: None

    def expect(
        self,
        total: int | None,
        complete: Callable[[list], Any],
        called: tuple[str, str] | None = None,
    ) -> None:
        """Now it is known how many there are, what to make of those that were complete, and what they are called."""
        self.total, self.complete, self.called = total, complete, called or self.called


@contextmanager
def in_parts(typed: str, one: str, many: str, after: str = "") -> Iterator[PartsProgress]:
    """A signal anywhere in the block raises `Interrupted`, which says how many parts were complete and has what was made of these.

    Open it before anything else: what is slow at first - imports, a grid of values, processes that start - is interrupted alike.

    typed     : what was called, such as "cross_validate"
    one, many : what a part is called, such as "fold" and "folds"
    after     : the end of the sentence
    """
    parts = PartsProgress((one, many))
    try:
        with interrupts.handle_signals(raises=True, of_parts=True):
            yield parts
            if interrupts.is_signal_pending():  # it came while something was imported
                raise KeyboardInterrupt
    except Interrupted:
        raise
    except KeyboardInterrupt:
        if interrupts.was_insisted():  # a second signal is for the program
            raise
        one, many = parts.called
        of_all = "" if parts.total is None else f" of {parts.total}"
        so_far = f"when {len(parts.found)}{of_all} {many} were complete"
        if parts.total is None and not parts.found:
            so_far = f"before the first {one}"
        raise Interrupted(
            f"{typed} was interrupted {so_far}{after}", parts.complete(parts.found) if parts.found else None
        ) from None


def in_parallel(
    function: Callable,
    common: tuple,
    tasks: Tasks,
    work: Sequence[tuple],
    n_jobs,
    parts: PartsProgress,
    tell: Callable | None = None,
) -> list:
    """[function(common, tasks, *one) for one in work], by joblib in other processes, or in what `joblib.parallel_config` says.

    common : what all share
    parts  : gets every result as it is there
    tell   : called here with every result, in the order of the work
    Tasks whose rows are on Dask's workers stay there: their fits are one after another, each with all workers.
    """
    number = jobs_of(n_jobs)
    if number == 1 or not tasks.in_memory:
        found: Iterable = (function(common, tasks, *one) for one in work)
    else:
        from joblib import Parallel, delayed

        shared = SharedArguments(function, common, tasks)
        found = Parallel(n_jobs=number, return_as="generator")(delayed(_call)(shared, *one) for one in work)
    for one in found:
        parts.found.append(one)
        if tell is not None:
            tell(one)
    return parts.found


class SharedArguments:
    """Arguments that all fits share, in one object, which is sent with the data in it once: joblib's processes map large arrays, and Dask sends what
    is this large once, whoever asks for it."""

    def __init__(self, function: Callable, common: tuple, tasks: Tasks):
        self.function, self.common, self.tasks = function, common, tasks

    def __sizeof__(self) -> int:
        return self.tasks.__sizeof__()


def _call(shared: SharedArguments, *one):
    return shared.function(shared.common, shared.tasks, *one)
