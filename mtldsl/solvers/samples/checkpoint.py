"""Long runs that can be broken off: the multipliers on disk every so often, and found again."""

from __future__ import annotations

import json
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.errors import DataError, SolverError
from mtldsl.system.archives import npz_path, read_archive
from mtldsl.system.atomic_files import atomic_file, remove_leftovers
from mtldsl.system.file_lock import sole_use
from mtldsl.system.inputs import require_no_input
from mtldsl.system.reading import reading
from mtldsl.values.number import quoted

__all__ = ["Checkpoint"]


class Checkpoint:
    """Writes the state of a run to one .npz file at most every `every` seconds, and at its end.

    The file belongs to a model and its data: SolverError where it is of another. A file that is not there yet is a fresh start.
    As a context manager it is the only one on its file: SolverError where another run is. A file that cannot be written is said in
    one warning, and tried again later: a run does not end for that.
    """

    def __init__(self, path, identity: dict, every: float = 30.0):
        self.path = npz_path(Path(path))
        try:
            there = self.path.parent.is_dir()
            self.path.exists()
        except OSError as error:  # a name that no file can have
            raise SolverError(
                f"solve(checkpoint={quoted(str(path))}): {error.strerror}", write_instead="name another file"
            ) from None
        if not there:
            raise SolverError(
                f"there is no folder {str(self.path.parent)!r}",
                term=f"solve(checkpoint={str(path)!r})",
                write_instead="make it first",
            )
        try:
            require_no_input(self.path)
        except DataError as error:
            raise error.as_kind(SolverError).about(f"solve(checkpoint={str(path)!r})") from error
        self.identity, self.every, self.written = identity, every, time.perf_counter()
        self.typed = f"solve(checkpoint={str(self.path)!r})"
        self.warned = False
        self.held = ExitStack()

    def __enter__(self) -> Checkpoint:
        taken = SolverError(
            "another run is using that file; wait for its end, or name another file", term=self.typed
        )
        self.held.enter_context(sole_use(self.path, taken))
        remove_leftovers(self.path)
        return self

    def __exit__(self, *error) -> None:
        self.held.close()

    def read(self, like: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray] | None:
        """The arrays last written, None where there is no file. SolverError where they have not the shapes of `like`, or are not finite."""
        if not self.path.exists():
            return None
        typed = self.typed
        try:
            arrays = read_archive(self.path, "a checkpoint", role="own")
            with reading(self.path, "a checkpoint"):
                found = dict(json.loads(str(arrays.pop("identity"))))
        except DataError as error:
            raise SolverError(
                f"not a checkpoint ({error})", term=typed, write_instead="delete it, or name another file"
            ) from error
        for what, value in self.identity.items():
            if found.get(what) != value:
                raise SolverError(
                    f"it was written for another {what}: {_short(found.get(what))}, not {_short(value)}",
                    term=typed,
                    write_instead="name another file",
                )
        for name, array in (like or {}).items():
            if name not in arrays or arrays[name].shape != array.shape or not _is_finite(arrays[name]):
                raise SolverError(
                    f"{name} in it is damaged", term=typed, write_instead="delete it, or name another file"
                )
        return arrays

    def write(self, arrays: dict[str, np.ndarray], *, now: bool = False) -> bool:
        """Write where `every` seconds have passed, or `now`; a run killed meanwhile leaves the file as it was before.

        False where nothing was written.
        """
        if not now and time.perf_counter() - self.written < self.every:
            return False
        self.written = time.perf_counter()
        try:
            with atomic_file(self.path) as file:
                named: dict[str, Any] = arrays
                np.savez(file, identity=np.array(json.dumps(self.identity)), **named)
        except DataError as error:
            if not self.warned:
                self.warned = True
                warnings.warn(f"{self.typed}: {error}; the solve goes on without it", stacklevel=2)
            return False
        self.written = time.perf_counter()
        return True


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())


def _short(value) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= 60 else text[:57] + "...")
