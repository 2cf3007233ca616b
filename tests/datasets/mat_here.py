"""What is in files of arrays; and MATLAB files without a process for each: what `mat_process` prints, printed here.

test_files_of_strangers.py starts the process.
"""

import io
import subprocess
from types import SimpleNamespace

import numpy as np

from mtldsl.data.readers import array_files, mat_process


def cells(arrays, column: bool = False):
    """A cell array of MATLAB."""
    row = np.empty((1, len(arrays)), dtype=object)
    row[0, :] = arrays
    return row.T if column else row


def sparse_arrays(S) -> dict:
    """Arrays by which an archive holds a sparse matrix."""
    return {name: getattr(S, name) for name in ("data", "indices", "indptr", "shape", "format")}


def read_here(monkeypatch) -> None:
    """Let `array_files` call the reader that it starts a process for."""

    def run(command, **_):
        printed = io.BytesIO()
        monkeypatch.setattr(mat_process, "sys", SimpleNamespace(stdout=SimpleNamespace(buffer=printed)))
        mat_process.main(*command[3:])
        return subprocess.CompletedProcess(command, 0, printed.getvalue(), b"")

    monkeypatch.setattr(mat_process, "limit", lambda memory, seconds: None)
    monkeypatch.setattr(array_files.subprocess, "run", run)
