"""The variables of a MATLAB file, read by a process of its own: see `mat_child`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.system.memory import available_memory
from mtldsl.system.reading import reading, regular_file

__all__ = ["Other", "mat_variables"]

_CHILD = Path(__file__).with_name("mat_child.py")
#: What the child may take: seconds, and seconds more for every megabyte of the file; bytes that its libraries alone may take.
_SECONDS, _SECONDS_A_MEGABYTE, _BYTES = 60, 2, 2 << 30


@dataclass(frozen=True)
class Other:
    """A variable that is neither numbers, text nor cells, such as a structure."""

    dtype: str
    shape: tuple = ()


def mat_variables(path) -> dict[str, np.ndarray | sparse.csc_array | Other]:
    """name -> variable: an array, sparse, an array of objects for cells; what is none of these is an `Other`.

    DataError for what is not a MATLAB file, and for one on which scipy's reader crashes, wants more memory than there is, or does not
    come to an end.
    """
    path = regular_file(path, "data")
    seconds = _SECONDS + _SECONDS_A_MEGABYTE * path.stat().st_size // 1_000_000
    memory = int(min(max(available_memory(), _BYTES), 2.0**62))
    command = [sys.executable, "-P", str(_CHILD), str(path.resolve()), str(memory), str(seconds)]
    # one thread: the others' stacks count as memory taken
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=2 * seconds
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"cannot be read as a MATLAB file: scipy's reader did not end within {2 * seconds} s", term=path
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"MATLAB files are read in a process of its own, and that could not be started ({error})",
            term=path,
        ) from None
    if done.returncode != 0:
        raise DataError(
            f"cannot be read as a MATLAB file: {_ended(done)}; the file is damaged, or made to do that",
            term=path,
        )
    with reading(path, "a MATLAB file"):
        length = int.from_bytes(done.stdout[:8], "little")
        answer = json.loads(done.stdout[8 : 8 + length])
        if "error" in answer:
            raise DataError(f"{answer['error']}", term=path)
        arrays = memoryview(done.stdout)[8 + length :]
        return {name: _restored(about, arrays) for name, about in answer["variables"].items()}


def _ended(done: subprocess.CompletedProcess) -> str:
    if done.returncode < 0:
        return f"scipy's reader crashed on it (signal {-done.returncode})"
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"scipy's reader failed ({last[0] if last else done.returncode})"


def _restored(about: dict, arrays: memoryview):
    if about["kind"] == "other":
        return Other(about["dtype"])
    shape = tuple(about["shape"])
    if about["kind"] == "sparse":
        parts = (_restored(about[key], arrays) for key in ("data", "indices", "indptr"))
        return sparse.csc_array(tuple(parts), shape)
    if about["kind"] == "cells":
        cells = np.empty(len(about["items"]), dtype=object)
        for k, item in enumerate(about["items"]):
            cells[k] = _restored(item, arrays)
        return cells.reshape(shape)
    dtype, length = np.dtype(about["dtype"]), math.prod(shape)
    if not length * dtype.itemsize:
        return np.zeros(shape, dtype)
    return np.frombuffer(arrays, dtype, length, about["at"]).reshape(shape)
