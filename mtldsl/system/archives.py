"""NumPy's files, .npy and .npz, from anybody: every size that a file claims is compared with what is there before memory is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from scipy import sparse

from mtldsl.system.inputs import Role
from mtldsl.system.memory import available_memory
from mtldsl.system.reading import reading, regular_file

__all__ = ["checked_csr", "npz_path", "read_archive", "read_array", "require_shapes"]

_HEADERS: dict[tuple, Callable] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def npz_path(path: Path) -> Path:
    """The path with the ending that an archive has.

    >>> npz_path(Path("run.1")).name, npz_path(Path("run.npz")).name
    ('run.1.npz', 'run.npz')
    """
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")


def read_archive(path, what: str = "an .npz file", names=None, role: Role = "input") -> dict[str, np.ndarray]:
    """name -> array of an .npz file: all of them, or those in `names` that it holds, with None for the others.

    DataError for a file of another kind or with damaged bytes; for Python objects, which are never unpickled; for an array whose
    header claims another size than the archive has for it, and for more than fits into memory.
    """
    path = regular_file(path, role)
    with reading(path, what), ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        arrays: dict[str, Any] = {name: None for name in members if names is not None and name not in names}
        wanted = {name: info for name, info in members.items() if name not in arrays}
        _require_memory(sum(info.file_size for info in wanted.values()))
        for name, info in wanted.items():
            with archive.open(info) as stream:
                arrays[name] = _array(stream, info.file_size, name)
    return {name: arrays[name] for name in members}


def read_array(path: Path, what: str = "an .npy file") -> np.ndarray:
    """The array of an .npy file; as `read_archive`."""
    path = regular_file(path)
    with reading(path, what), path.open("rb") as stream:
        size = path.stat().st_size
        _require_memory(size)
        return _array(stream, size, path.name)


def checked_csr(data, indices, indptr, shape) -> sparse.csr_array:
    """The CSR matrix of a file's arrays; ValueError where indices do not fit: compiled loops follow them without a look."""
    X = sparse.csr_array((data, indices, indptr), shape=tuple(shape))
    X.check_format(full_check=True)
    return X


def require_shapes(**arrays) -> None:
    """ValueError for the first array, given as name=(array, shape), of another shape; None stands for any length.

    >>> require_shapes(values=(np.ones(3), (None,)), basis=(np.ones((4, 3)), (4, 2)))
    Traceback (most recent call last):
    ValueError: basis has the shape (4, 3), not (4, 2)
    """
    for name, (array, shape) in arrays.items():
        fits = len(shape) == array.ndim and all(
            want in (None, side) for want, side in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{name} has the shape {array.shape}, not {shape}")


def _require_memory(size: int) -> None:
    if size > available_memory():
        raise ValueError(
            f"its arrays have {size / 1e9:.3g} GB, and {available_memory() / 1e9:.3g} GB of memory are there"
        )


def _array(stream: Any, size: int, name: str) -> np.ndarray:
    """One array of `size` bytes with its header."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:  # the third is for names of fields
        raise ValueError(f"{name!r} is of version {version} of the format")
    shape, in_columns, dtype = _HEADERS[version](stream)
    if dtype.hasobject or dtype.names is not None:
        raise ValueError(f"{name!r} holds Python objects or records, which are not read")
    if any(isinstance(side, bool) or not 0 <= side < 2**63 for side in shape):
        raise ValueError(f"{name!r} claims the shape {shape}")
    length = math.prod(shape) * dtype.itemsize
    if length != size - stream.tell():
        raise ValueError(f"{name!r} claims {length:,} bytes, and has {size - stream.tell():,}")
    data = bytearray(length)
    if _filled(stream, memoryview(data)) < length:
        raise ValueError(f"{name!r} ends before its {length:,} bytes")
    array = np.frombuffer(data, dtype) if length else np.empty(math.prod(shape), dtype)
    return array.reshape(shape[::-1]).T if in_columns else array.reshape(shape)


def _filled(stream: Any, data: memoryview) -> int:
    """Bytes read into `data`, as many as there are."""
    at = 0
    while at < len(data) and (count := stream.readinto(data[at : at + (1 << 24)])):
        at += count
    return at
