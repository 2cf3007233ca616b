"""The [data] and [split] tables of a problem file: the tasks to learn from, and the rows held out."""

from __future__ import annotations

import inspect
import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mtldsl.datasets import LOADERS, READERS
from mtldsl.errors import DataError, MTLError
from mtldsl.files.engine import RULES, check_engine, read_folder
from mtldsl.files.row_groups import groups_of, numbers_of_rows
from mtldsl.files.rules import ANYTHING, SEED, SWITCH, TEXT, number
from mtldsl.files.section import Reading, Section
from mtldsl.files.toml_source import TomlFile
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.tasks import Tasks
from mtldsl.tasks.derived import with_inputs

__all__ = ["DATA", "SPLIT"]

_UNEXPECTED = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError)
_SUFFIXES = {
    ".csv": "csv",
    ".arff": "arff",
    ".mat": "mat",
    ".npz": "npz",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
}


def _check(reading: Reading) -> None:
    table = reading.table("data")
    if isinstance(table, dict):
        check_engine(reading, table)


def _read(reading: Reading) -> None:
    """The tasks to learn from, and the rows held out where there is a [split]."""
    file = reading.file
    if not isinstance(file.content.get("data"), dict):
        raise file.error('the file needs a table [data] with dataset = "..." or path = "..."', ("data",))
    reading.data = file.content["data"]
    table = dict(reading.data)
    standardize = _standardize(reading, table.pop("standardize", False))
    one_class = table.pop("one_class", "error")
    if one_class not in ("skip", "error"):
        raise file.error('one_class must be "skip" or "error"', ("data", "one_class"), value=True)
    left_out = table.pop("leave_out", [])
    if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
        raise file.error("leave_out must be a list of tasks' names", ("data", "leave_out"), value=True)
    tasks = (_dataset if "dataset" in table else _file)(reading, table)
    if left_out:
        tasks = _without(file, tasks, left_out)
    if one_class == "skip":
        with _at(file, ("data", "one_class")):
            tasks = tasks.without_one_class()
    split, test = file.content.get("split"), None
    if split is not None:
        with _at(file, ("split",)):
            how = {
                key: split.get(key, default) for key, default in (("test_size", 0.25), ("random_state", 0))
            }
            if "groups" in split:
                how["groups"] = groups_of(
                    reading, split["groups"], numbers_of_rows(tasks), ("split", "groups")
                )
            if tasks.in_memory:
                reading.train_rows, reading.test_rows = _divided(tasks, how)
            elif reading.predictions is not None and "new" not in reading.predictions:
                raise file.error("rows that stay where they are have no predictions here", ("output", "predictions"))  # fmt: skip
            tasks, test = tasks.split(**how)
    if standardize:
        with _at(file, ("data", "standardize")):  # statistics come from the training rows alone
            own = {"each_fold": True} if tasks.in_memory else {}  # folds of rows elsewhere share these
            tasks = tasks.standardize(**standardize, **own)
            assert tasks.scaling is not None
            test = None if test is None else test.scaled_by(tasks.scaling)
    reading.train, reading.test, reading.names["tasks"] = tasks, test, tasks


def _without(file: TomlFile, tasks: Tasks, left_out: list[str]) -> Tasks:
    known = set(tasks.task_names)
    for i, name in enumerate(left_out):
        if name not in known:
            raise file.error(f"there is no task {name!r}{nearest(name, known)}", ("data", "leave_out", i), value=True)  # fmt: skip
    if known <= set(left_out):
        raise file.error("no task is left", ("data", "leave_out"), value=True)
    return tasks.select([name for name in tasks.task_names if name not in left_out])


def _divided(tasks: Tasks, how: dict) -> list[np.ndarray]:
    """The rows of the data that `split` keeps, and holds out: those of the same tasks, whose only input is the number of the row."""
    numbers = numbers_of_rows(tasks).astype(float)[:, None]
    inputs = [numbers] if tasks.is_shared else tasks.per_task(numbers)
    parts = with_inputs(tasks, inputs, feature_names=("row",), scaling=None).split(**how)
    return [(part.X if part.is_shared else part.stacked)[:, 0].astype(int) for part in parts]


@contextmanager
def _at(file: TomlFile, path: tuple):
    """Errors of the data get the place of a key."""
    try:
        yield
    except DataError as error:
        raise error.at(file.place(path)) from error


def _standardize(reading: Reading, value) -> dict | None:
    path = ("data", "standardize")
    if isinstance(value, dict):
        reading.check(path, dict.fromkeys(("center", "scale"), SWITCH))
        return {"center": value.get("center", True), "scale": value.get("scale", True)}
    if not isinstance(value, bool):
        raise reading.file.error(
            "standardize must be true, false, or such as {center = false}", path, value=True
        )
    return {"center": True, "scale": True} if value else None


def _dataset(reading: Reading, table: dict) -> Tasks:
    file, folder = reading.file, reading.folder
    name = table.pop("dataset")
    if "path" in table:
        raise file.error("write either dataset = ... or path = ..., not both", ("data", "path"))
    if not isinstance(name, str) or name not in LOADERS:
        hint = nearest(str(name), LOADERS)
        raise file.error(f"there is no dataset {name!r}{hint}", ("data", "dataset"), value=True)
    if isinstance(table.get("folder"), str):
        table["folder"] = folder / table["folder"]
    return _call(reading, LOADERS[name], (), table, f"dataset {name!r}", ["dataset"])


def _file(reading: Reading, table: dict) -> Tasks:
    file, folder = reading.file, reading.folder
    if "path" not in table:
        raise file.error('[data] needs dataset = "..." or path = "..."', ("data",))
    paths = table.pop("path")
    several = isinstance(paths, list)
    if not all(isinstance(path, str) for path in (paths if several else [paths])) or paths == []:
        raise file.error("path must be text in quotes, or a list of such", ("data", "path"), value=True)
    if "engine" in table:
        return read_folder(reading, paths, table, _call)
    names = paths if several else [paths]
    suffix = Path(names[0]).suffix.lower()
    format = table.pop("format", _SUFFIXES.get(suffix))
    if format == "parquet" or (suffix in (".parquet", ".pq") and "format" not in table):
        raise file.error('Parquet is read by Dask\'s workers: write engine = "dask"', ("data", "path"), value=True)  # fmt: skip
    if format is None:
        hint = f"write format = ..., one of {', '.join(READERS)}"
        if os.path.isdir(folder / names[0]):  # False for a name that no file can have
            hint = 'a folder of Parquet, NPZ or LIBSVM files is read with engine = "dask"'
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
        reading,
        READERS[format],
        (resolved if several else resolved[0],),
        table,
        f"format {format!r}",
        ["path", "format"],
    )


def _call(reading: Reading, reader, arguments: tuple, options: dict, what: str, own: list[str]) -> Tasks:
    """reader(*arguments, **options), where every option is a parameter of it."""
    file = reading.file
    parameters = list(inspect.signature(reader).parameters.values())[len(arguments) :]
    known = [parameter.name for parameter in parameters]
    for key in options:
        if key not in known:
            if key == "impute":
                raise file.error(
                    f"{what} cannot fill in missing inputs; impute is for csv, arff, npz and mat: fill them in before, or write such a file",
                    ("data", key),
                )
            hint = reading.advice(("data",), key, [*own, "standardize", "one_class", "leave_out", *known])
            raise file.error(f"{what} has no option {key!r}{hint}", ("data", key))
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in options:
            raise file.error(f"{what} needs {parameter.name} = ...", ("data",))
    try:
        return reader(*arguments, **options)
    except MTLError as error:
        meant = (error.argument,) if isinstance(error.argument, str) else error.argument
        key = next((key for key in options if key in meant), own[0])
        raise error.at(file.place(("data", key), value=True)) from error
    except _UNEXPECTED as error:  # an option of a kind or a size that the reader did not expect
        raise file.error(f"{what}: {error}", ("data", own[0])) from error


#: its keys are the options of a reader, which tells them
DATA = Section(
    "data",
    dict.fromkeys(["dataset", "path", "format", "standardize", "one_class", "leave_out"], ANYTHING) | RULES,
    check=_check,
    read=_read,
)
SPLIT = Section(
    "split",
    {
        "test_size": number(0.0, 1.0, "a share between 0 and 1, such as 0.25"),
        "random_state": SEED,
        "groups": TEXT,
    },
)
