"""What runs keep beside the rows, on Dask's workers: from time to time it is written out, so that a worker's death costs a few runs and not all."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mtldsl.errors import DataError, MTLError
from mtldsl.tasks.distributed.dask_engine import call, computed, kept, on_every_worker
from mtldsl.tasks.distributed.states import read_state, state_path, write_state
from mtldsl.tasks.distributed.sums import tree_sum

__all__ = ["RUNS", "Scratch", "States", "read_states", "unseen_by", "write_states"]

#: Stateful runs after which states are written out: so many are computed again at most, of the parts that a worker had which dies.
RUNS = 5


class States(list):
    """A node for what is kept beside each part.

    since : stateful runs since they were on disk: what a state that is lost is computed again from
    files : those that they go back to, None where they go back to the beginning. Gone when the last states are that need them
    """

    def __init__(self, nodes: Sequence, since: int = 0, files: Files | None = None):
        super().__init__(nodes)
        self.since, self.files = since, files

    def after(self, nodes: Sequence) -> States:
        """Those of the next run."""
        return States(nodes, self.since + 1, self.files)


class Files:
    """Files of one writing, removed with this."""

    def __init__(self, folder: str, mark: str, n_parts: int):
        self._gone = weakref.finalize(self, _remove, [state_path(folder, mark, k) for k in range(n_parts)])


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


class Scratch:
    """A folder of this machine for states, where all workers see it."""

    def __init__(self):
        self.folder: str | None = None

    def written(self, states: States, names: Sequence[str]) -> States:
        """The same bits, read from files; as they are where some worker does not see the folder, or it is full."""
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="mtldsl-states-")
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        mark = secrets.token_hex(8)
        files = Files(self.folder, mark, len(states))
        try:
            if unseen_by(self.folder):
                return states
            new = write_states(states, self.folder, mark, names)
        except (DataError, TypeError):
            return states
        return States(new, 0, files)


def write_states(states: Sequence, folder: str, mark: str, names: Sequence[str]) -> States:
    """Every state in a file of its own, written where it is, and from now on read from there. DataError where that does not succeed."""
    done = [call(_written, one, folder, mark, k, partition=k) for k, one in enumerate(states)]
    unseen = set(range(len(done))) - set(computed(call(_listed, done), names))
    unseen |= {k for k in range(len(done)) if not state_path(folder, mark, k).is_file()}
    if unseen:
        raise DataError(
            f"{names[min(unseen)]}: what is beside its rows was written where it is not seen here"
        )
    return read_states(folder, mark, names)


def read_states(folder: str, mark: str, names: Sequence[str]) -> States:
    """What `write_states` wrote. DataError where a file is not there, or damaged."""
    nodes = [call(_read, folder, mark, k, partition=k) for k in range(len(names))]
    return States(kept(nodes, names))


def unseen_by(folder: str) -> str | None:
    """None where every worker writes into a folder what is found there from here, else a sentence that says what is wrong."""
    token = secrets.token_hex(8)
    told = on_every_worker(_with_token, folder, token)
    try:
        if not told:
            return "no worker answered."
        for worker, name in told.items():
            if isinstance(name, BaseException):
                why = name if isinstance(name, MTLError) else type(name).__name__
                return f"the worker {worker} cannot write into it ({why})."
            if not (Path(folder) / name).is_file():
                return f"what the worker {worker} writes into it is not seen here."
        return None
    finally:
        _remove(list(Path(folder).glob(f".token-{token}-*")))


def _with_token(folder: str, token: str) -> str:
    name = f".token-{token}-{secrets.token_hex(8)}"
    try:
        (Path(folder) / name).touch(exist_ok=False)
    except OSError as error:
        raise DataError(str(error.strerror or error)) from None
    return name


def _written(state, folder: str, mark: str, part: int) -> dict:
    write_state(state_path(folder, mark, part), state)
    return {part: True}


def _listed(done: list) -> dict:
    return tree_sum(done)


def _read(folder: str, mark: str, part: int):
    return read_state(state_path(folder, mark, part))
