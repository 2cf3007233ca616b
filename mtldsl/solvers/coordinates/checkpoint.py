"""Long runs that can be broken off: the multipliers on disk every so often, and found again."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from mtldsl.errors import SolverError

__all__ = ["Checkpoint"]


class Checkpoint:
    """Writes the state of a run to one .npz file at most every `every` seconds, and at its end.

    The file belongs to a model and its data: SolverError where it is of another. A file that is not there yet is a fresh start.
    """

    def __init__(self, path, identity: dict, every: float = 30.0):
        self.path = Path(path)
        if self.path.suffix != ".npz":
            self.path = self.path.with_name(self.path.name + ".npz")
        if not self.path.parent.is_dir():
            raise SolverError(
                f"solve(checkpoint={str(path)!r}): there is no folder {str(self.path.parent)!r}; make it first"
            )
        self.identity, self.every, self.written = identity, every, time.perf_counter()

    def read(self) -> dict[str, np.ndarray] | None:
        """The arrays last written, None where there is no file."""
        if not self.path.exists():
            return None
        typed = f"solve(checkpoint={str(self.path)!r})"
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            found = dict(json.loads(str(arrays.pop("identity"))))
        except (AttributeError, KeyError, TypeError, ValueError, OSError, EOFError, BadZipFile) as error:
            raise SolverError(
                f"{typed}: not a checkpoint ({error}); delete it, or name another file"
            ) from error
        for what, value in self.identity.items():
            if found.get(what) != value:
                raise SolverError(
                    f"{typed}: it was written for another {what}: {_short(found.get(what))}, not {_short(value)}; name another file"
                )
        return arrays

    def write(self, arrays: dict[str, np.ndarray], *, now: bool = False) -> bool:
        """Write where `every` seconds have passed, or `now`; a run killed meanwhile leaves the file as it was before."""
        if not now and time.perf_counter() - self.written < self.every:
            return False
        partial = self.path.with_suffix(".partial.npz")
        np.savez(partial, identity=np.array(json.dumps(self.identity)), **arrays)
        os.replace(partial, self.path)
        self.written = time.perf_counter()
        return True


def _short(value) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= 60 else text[:57] + "...")
