"""The [data], [split] and [arrays] tables of a problem file."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from numbers import Real
from pathlib import Path

import numpy as np

from mtldsl.datasets import LOADERS, READERS
from mtldsl.errors import DataError, MTLError
from mtldsl.files.rules import advice, check_table
from mtldsl.files.toml_source import TomlFile
from mtldsl.language.did_you_mean import nearest
from mtldsl.language.text.kinds import kind_of
from mtldsl.system.archives import read_archive, read_array
from mtldsl.system.reading import reading, regular_file
from mtldsl.tasks import Tasks

__all__ = ["read_arrays", "read_tasks"]

_UNEXPECTED = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError)
_SUFFIXES = {
    ".csv": "csv",
    ".arff": "arff",
    ".mat": "mat",
    ".npz": "npz",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
}


def read_tasks(file: TomlFile, folder: Path) -> tuple[Tasks, Tasks | None]:
    """(training tasks, held-out tasks or None where there is no [split])."""
    if not isinstance(file.content.get("data"), dict):
        raise file.error('the file needs a table [data] with dataset = "..." or path = "..."', ("data",))
    table = dict(file.content["data"])
    standardize = _standardize(file, table.pop("standardize", False))
    tasks = _dataset(file, table, folder) if "dataset" in table else _file(file, table, folder)
    split = file.content.get("split")
    test = None
    if split is not None:
        with _at(file, ("split",)):
            tasks, test = tasks.split(split.get("test_size", 0.25), split.get("random_state", 0))
    if standardize:
        with _at(file, ("data", "standardize")):  # statistics come from the training rows alone
            tasks = tasks.standardize(**standardize)
            test = None if test is None else test.scaled_by(tasks.scaling)
    return tasks, test


@contextmanager
def _at(file: TomlFile, path: tuple):
    """Errors of the data get the place of a key."""
    try:
        yield
    except DataError as error:
        raise error.at(file.place(path)) from error


def _standardize(file: TomlFile, value) -> dict | None:
    path = ("data", "standardize")
    if isinstance(value, dict):
        check_table(
            file, path, {key: (lambda v: isinstance(v, bool), "true or false") for key in ("center", "scale")}
        )
        return {"center": value.get("center", True), "scale": value.get("scale", True)}
    if not isinstance(value, bool):
        raise file.error("standardize must be true, false, or such as {center = false}", path, value=True)
    return {"center": True, "scale": True} if value else None


def _dataset(file: TomlFile, table: dict, folder: Path) -> Tasks:
    name = table.pop("dataset")
    if "path" in table:
        raise file.error("write either dataset = ... or path = ..., not both", ("data", "path"))
    if not isinstance(name, str) or name not in LOADERS:
        hint = nearest(str(name), LOADERS)
        raise file.error(f"there is no dataset {name!r}{hint}", ("data", "dataset"), value=True)
    if isinstance(table.get("folder"), str):
        table["folder"] = folder / table["folder"]
    return _call(file, LOADERS[name], (), table, f"dataset {name!r}", ["dataset"])


def _file(file: TomlFile, table: dict, folder: Path) -> Tasks:
    if "path" not in table:
        raise file.error('[data] needs dataset = "..." or path = "..."', ("data",))
    paths = table.pop("path")
    several = isinstance(paths, list)
    if not all(isinstance(path, str) for path in (paths if several else [paths])) or paths == []:
        raise file.error("path must be text in quotes, or a list of such", ("data", "path"), value=True)
    names = paths if several else [paths]
    suffix = Path(names[0]).suffix.lower()
    format = table.pop("format", _SUFFIXES.get(suffix))
    if format is None:
        hint = f"write format = ..., one of {', '.join(READERS)}"
        raise file.error(
            f"the ending {suffix!r} does not tell the format; {hint}", ("data", "path"), value=True
        )
    if not isinstance(format, str) or format not in READERS:
        hint = nearest(str(format), READERS)
        raise file.error(f"there is no format {format!r}{hint}", ("data", "format"), value=True)
    if several and format != "libsvm":
        raise file.error(
            f"format {format!r} reads one file; libsvm takes one a task", ("data", "path"), value=True
        )
    resolved = [folder / name for name in names]
    return _call(
        file,
        READERS[format],
        (resolved if several else resolved[0],),
        table,
        f"format {format!r}",
        ["path", "format"],
    )


def _call(file: TomlFile, reader, arguments: tuple, options: dict, what: str, own: list[str]) -> Tasks:
    """reader(*arguments, **options), where every option is a parameter of it."""
    parameters = list(inspect.signature(reader).parameters.values())[len(arguments) :]
    known = [parameter.name for parameter in parameters]
    for key in options:
        if key not in known:
            hint = advice(("data",), key, [*own, "standardize", *known])
            raise file.error(f"{what} has no option {key!r}{hint}", ("data", key))
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in options:
            raise file.error(f"{what} needs {parameter.name} = ...", ("data",))
    try:
        return reader(*arguments, **options)
    except MTLError as error:
        key = error.argument if error.argument in options else own[0]
        raise error.at(file.place(("data", key), value=True)) from error
    except _UNEXPECTED as error:  # an option of a kind or a size that the reader did not expect
        raise file.error(f"{what}: {error}", ("data", own[0])) from error


# ------------------------------------------------------------------------------------------------ arrays


def read_arrays(file: TomlFile, folder: Path) -> dict[str, object]:
    """name -> numpy array; lists of unequal length, such as groups of rows, stay lists."""
    return {name: _array(file, name, value, folder) for name, value in file.content.get("arrays", {}).items()}


def _array(file: TomlFile, name: str, value, folder: Path):
    path = ("arrays", name)
    if isinstance(value, list):
        return _inline(file, path, value)
    if isinstance(value, str):
        value = {"path": value}
    elif not isinstance(value, dict):
        raise file.error(f"an array is a list or the path of a file, not {kind_of(value)}", path, value=True)
    else:
        check_table(
            file, path, {key: (lambda v: isinstance(v, str), "text in quotes") for key in ("path", "name")}
        )
    if "path" not in value:
        raise file.error('write {path = "file.npz", name = "A"}', path)
    try:
        array = _stored(folder / value["path"], value.get("name"))
    except DataError as error:
        raise error.at(file.place(path, value=True)) from error
    return _numbers(file, path, array)


def _stored(path: Path, name: str | None) -> np.ndarray:
    if path.suffix == ".csv":
        with reading(regular_file(path), "a table of numbers"):
            return np.loadtxt(path, delimiter=",", ndmin=1)
    if path.suffix == ".npy":
        return read_array(path)
    if path.suffix != ".npz":
        raise DataError(f"{path}: arrays are read from .npz, .npy and .csv files")
    arrays = read_archive(path, names=None if name is None else [name])
    if name is None and len(arrays) == 1:
        (name,) = arrays
    if name not in arrays:
        held = ", ".join(arrays) or "nothing"
        raise DataError(
            f'{path}: it holds {held}; write {{path = "...", name = "{next(iter(arrays), "A")}"}}'
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
