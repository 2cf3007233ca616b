"""The [arrays] table of a problem file: matrices with a name, inline or from files of their own."""

from __future__ import annotations

from numbers import Real
from pathlib import Path

import numpy as np

from mtldsl.errors import DataError
from mtldsl.files.rules import TEXT
from mtldsl.files.section import Reading, Section
from mtldsl.files.toml_source import TomlFile
from mtldsl.language.text.kinds import kind_of
from mtldsl.system import reading as files
from mtldsl.system.archives import read_archive, read_array

__all__ = ["ARRAYS", "stored_array"]


def _read(reading: Reading) -> None:
    """name -> numpy array; lists of unequal length, such as groups of rows, stay lists."""
    for name, value in reading.table("arrays").items():
        reading.names[name] = _array(reading, name, value)


def _array(reading: Reading, name: str, value):
    file, path = reading.file, ("arrays", name)
    if isinstance(value, list):
        return _inline(file, path, value)
    if isinstance(value, str):
        value = {"path": value}
    elif not isinstance(value, dict):
        raise file.error(f"an array is a list or the path of a file, not {kind_of(value)}", path, value=True)
    else:
        reading.check(path, {"path": TEXT, "name": TEXT})
    if "path" not in value:
        raise file.error('write {path = "file.npz", name = "A"}', path)
    try:
        array = stored_array(reading.folder / value["path"], value.get("name"))
    except DataError as error:
        raise error.at(file.place(path, value=True)) from error
    return _numbers(file, path, array)


def stored_array(path: Path, name: str | None) -> np.ndarray:
    """What a file .csv, .npy or .npz holds; DataError that begins with the path where it cannot be read."""
    if path.suffix == ".csv":
        with files.reading(files.regular_file(path), "a table of numbers"):
            return np.loadtxt(path, delimiter=",", ndmin=1)
    if path.suffix == ".npy":
        return read_array(path)
    if path.suffix != ".npz":
        raise DataError("arrays are read from .npz, .npy and .csv files", term=path)
    arrays = read_archive(path, names=None if name is None else [name])
    if name is None and len(arrays) == 1:
        (name,) = arrays
    if name not in arrays:
        held = ", ".join(arrays) or "nothing"
        raise DataError(
            f"it holds {held}",
            term=path,
            write_instead=f'write {{path = "...", name = "{next(iter(arrays), "A")}"}}',
        )
    return arrays[name]


def _inline(file: TomlFile, path: tuple, value: list):
    for i, item in enumerate(value):
        if isinstance(item, list):
            _inline(file, (*path, i), item)
        elif isinstance(item, bool) or not isinstance(item, Real):
            raise file.error(f"an array holds numbers, not {kind_of(item)}", (*path, i), value=True)
    try:
        array = np.array(value)
    except ValueError:  # lists of unequal length
        return value
    return _numbers(file, path, array)


def _numbers(file: TomlFile, path: tuple, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iuf":
        raise file.error(f"an array holds numbers, not {array.dtype}", path, value=True)
    if np.isnan(array).any():  # infinity means "no bound" in a comparison
        raise file.error("the array contains NaN", path, value=True)
    return array


ARRAYS = Section("arrays", names=True, read=_read)
