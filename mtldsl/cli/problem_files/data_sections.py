"""Sections of a problem file on data: arrays, tasks and their readers, the split, groups, and the workers."""

from __future__ import annotations

import csv
import inspect
import os
import re
from numbers import Real
from pathlib import Path

import numpy as np

from mtldsl.cli.problem_files.section import (
    ANYTHING,
    SEED,
    SWITCH,
    TEXT,
    FileTable,
    ProblemFileReader,
    Rules,
    number,
    one_of,
    texts,
    whole,
    wrong,
)
from mtldsl.cli.problem_files.toml_parser import TomlFile
from mtldsl.data.derived import with_inputs
from mtldsl.data.readers.csv import rows_of
from mtldsl.data.readers.table import is_missing
from mtldsl.data.store import FORMATS
from mtldsl.data.tasks import Tasks
from mtldsl.datasets import LOADERS, READERS, scan
from mtldsl.distributed.cluster import ADDRESS, MEMORY, connect_scheduler, start_processes
from mtldsl.errors import DataError, MTLError
from mtldsl.language.source_text import kind_of
from mtldsl.language.suggestions import nearest
from mtldsl.utils import files
from mtldsl.utils.files import read_archive, read_array, regular_file
from mtldsl.utils.files import reading as reading_file

# --------------------------------------------------------------------------------------------------------------
# The [arrays] table of a problem file: matrices with a name, inline or from files of their own.


def _read(reading: ProblemFileReader) -> None:
    """name -> numpy array; lists of unequal length, such as groups of rows, stay lists."""
    for name, value in reading.table("arrays").items():
        reading.names[name] = _array(reading, name, value)


def _array(reading: ProblemFileReader, name: str, value):
    file, path = reading.file, ("arrays", name)
    if isinstance(value, list):
        return _inline(file, path, value)
    if isinstance(value, str):
        value = {"path": value}
    elif not isinstance(value, dict):
        raise file.error(f"an array is a list or the path of a file, not {kind_of(value)}", path, value=True)
    else:
        reading.require(path, {"path": TEXT, "name": TEXT})
    if "path" not in value:
        raise file.error('write {path = "file.npz", name = "A"}', path)
    with file.placing(path):
        array = stored_array(reading.folder / value["path"], value.get("name"))
    return _numbers(file, path, array)


def stored_array(path: Path, name: str | None) -> np.ndarray:
    """Return what a file .csv, .npy or .npz holds; DataError that begins with the path where it cannot be read."""
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


ARRAYS = FileTable("arrays", names=True, read=_read)


# --------------------------------------------------------------------------------------------------------------
# `engine = "dask"` in [data]: files that stay where they are, and the workers that read them.


#: Processes, and threads of each, that a file may start.
MAX_WORKERS = 256


#: addresses that a file may name: those of stores of files. Others of fsspec's, and chains of them, can run code or write.
_STORES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs", "webhdfs", "http", "https")

RULES: Rules = {
    "engine": one_of(["dask"]),
    "scheduler": (
        lambda v: isinstance(v, str) and (v == "local" or ADDRESS.fullmatch(v) is not None),
        '"local", or an address such as "tcp://10.0.0.1:8786"',
    ),
    "workers": whole(1, f"a whole number of processes >= 1 and <= {MAX_WORKERS}", MAX_WORKERS),
    "threads": whole(
        1,
        f"a whole number of threads of each process >= 1 and <= {MAX_WORKERS}",
        MAX_WORKERS,
    ),
    "memory": (
        lambda v: isinstance(v, str) and MEMORY.fullmatch(v) is not None,
        'the memory of each process, such as "1.5GB"',
    ),
}
_LOCAL = ("workers", "threads", "memory")
_RULES_TASKS: Rules = {
    "one_class": (lambda v: v in ("skip", "error"), '"skip" or "error"'),
    "leave_out": texts("a list of tasks' names"),
}


def check_engine(reading: ProblemFileReader, table: dict) -> None:
    """DataError with its place for what can be known of these keys of [data] before anything is started or read."""
    file = reading.file
    reading.require(("data",), dict.fromkeys(table, ANYTHING) | RULES | _RULES_TASKS)
    said = {key: table[key] for key in RULES if key in table}
    if said and "engine" not in said and "dataset" not in table:
        key = next(iter(said))
        raise file.error(f'{key} is for rows on workers: write engine = "dask" beside it', ("data", key))
    if said and "dataset" in table:
        key = next(iter(said))
        raise file.error(f"{key} is for path = ..., not for dataset = ...", ("data", key))
    if reading.scheduler is not None and "engine" not in said:
        raise file.error(
            f'--scheduler {reading.scheduler} (Python: scheduler="{reading.scheduler}") is for rows on workers: leave it out, or write '
            'engine = "dask" in [data]',
            ("data",),
        )
    for key in _LOCAL:
        if key in said and said.get("scheduler") != "local":
            raise file.error(f'{key} is of processes that are started here: write scheduler = "local"', ("data", key))  # fmt: skip
    if ADDRESS.fullmatch(said.get("scheduler", "")) and reading.scheduler is None:
        address = said["scheduler"]
        raise file.error(
            f"whoever answers there can run code in this process: if you trust it, write --scheduler {address} "
            f'(Python: load_problem(..., scheduler="{address}"))',
            ("data", "scheduler"),
            value=True,
        )


def check_scheduler(scheduler: str | None, typed: str) -> None:
    """DataError for what cannot stand for the file's scheduler."""
    message = "" if scheduler is None else wrong("[data]", "scheduler", scheduler, RULES, str)
    if message:
        raise DataError(message, term=typed)


def start(reading: ProblemFileReader, table: dict) -> None:
    """Takes the engine's keys out of the table, and makes the workers that they name the active ones."""
    options = {key: table.pop(key) for key in RULES if key in table}
    wanted = reading.scheduler or options.get("scheduler")
    if wanted is None:
        return
    with reading.file.placing(("data", "scheduler")):
        if wanted == "local":
            reading.cluster = start_processes(
                options.get("workers"), options.get("threads", 1), options.get("memory")
            )
        else:
            reading.cluster = connect_scheduler(wanted)


def read_folder(reading: ProblemFileReader, paths, table: dict, call):
    """The tasks that `datasets.scan` makes of a folder, a file or a list of them. `call` runs a reader with the rest of the table."""
    file = reading.file
    several = isinstance(paths, list)
    resolved = [_resolved(reading, one) for one in (paths if several else [paths])]
    format = table.get("format")
    if format is not None and format not in FORMATS:
        hint = nearest(str(format), FORMATS) or f"; write one of {', '.join(FORMATS)}"
        raise file.error(f"Dask's workers read no format {format!r}{hint}", ("data", "format"), value=True)
    start(reading, table)
    return call(
        reading, scan, (resolved if several else resolved[0],), table, 'engine "dask"', ["path", *RULES]
    )


def _resolved(reading: ProblemFileReader, path: str) -> Path | str:
    """Relative to the problem file; the address of a store as it is. DataError for other addresses."""
    if "://" not in path and "::" not in path:
        return reading.folder / path
    protocol = re.match(r"(\w+)://", path)
    if "::" in path or protocol is None or protocol[1] not in _STORES:
        raise reading.file.error(
            f"a problem file may name a folder, a file, or an address of {', '.join(_STORES)}",
            ("data", "path"), value=True,
        )  # fmt: skip
    return path


# --------------------------------------------------------------------------------------------------------------
# Rows that belong together, such as those of a patient: a column of the data file by which rows are divided in one piece.


def numbers_of_rows(tasks: Tasks) -> np.ndarray:
    """The place in the data of every row: of the shared X, or of the labelled rows, task after task."""
    if tasks.is_shared:
        return np.arange(tasks.X.shape[0])
    return np.concatenate(tasks.source_rows or [np.arange(n) for n in tasks.counts])


def csv_rows(folder: Path, data: dict) -> tuple | None:
    """(names, cells, numbers of lines) of the CSV file that [data] names; None where it names no such file."""
    path = data.get("path")
    if not isinstance(path, str) or (Path(path).suffix.lower() != ".csv" and data.get("format") != "csv"):
        return None
    return rows_of(folder / path, data.get("delimiter", ","), data.get("header", True))


def groups_of(reading: ProblemFileReader, name: str, rows: np.ndarray, at: tuple) -> list[str]:
    """The cells of a column of the CSV file in these rows. DataError with the place `at` where there is no such file, or column, or value."""
    file, path, found = reading.file, reading.data.get("path"), csv_rows(reading.folder, reading.data)
    if found is None:
        raise file.error("groups by a column are of a CSV file", at, value=True)
    names, cells, lines = found
    if name not in names:
        raise file.error(f"{path} has no column {name!r}{nearest(name, names)}", at, value=True)
    found = [row[names.index(name)].strip() for row in cells]
    empty = next((line for line, cell in zip(lines, found, strict=True) if is_missing(cell)), None)
    if empty is not None:
        raise file.error(f"{path}:{empty}: column {name!r} is empty, so that it is not clear to whom the row belongs", at, value=True)  # fmt: skip
    return [found[row] for row in rows]


# --------------------------------------------------------------------------------------------------------------
# The [data] and [split] tables of a problem file: the tasks to learn from, and the rows held out.

_UNEXPECTED = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError)
_SUFFIXES = {
    ".csv": "csv",
    ".arff": "arff",
    ".mat": "mat",
    ".npz": "npz",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
}


def _check(reading: ProblemFileReader) -> None:
    table = reading.table("data")
    if isinstance(table, dict):
        check_engine(reading, table)


def _read_data(reading: ProblemFileReader) -> None:
    """The tasks to learn from, and the rows held out where there is a [split]."""
    file = reading.file
    if not isinstance(file.content.get("data"), dict):
        raise file.error('the file needs a table [data] with dataset = "..." or path = "..."', ("data",))
    reading.data = file.content["data"]
    table = dict(reading.data)
    standardize = _standardize(reading, table.pop("standardize", False))
    one_class, left_out = table.pop("one_class", "error"), table.pop("leave_out", [])
    tasks = (_dataset if "dataset" in table else _file)(reading, table)
    if left_out:
        tasks = _without(file, tasks, left_out)
    if one_class == "skip":
        with file.placing(("data", "one_class"), value=False):
            tasks = tasks.without_one_class()
    split, test = file.content.get("split"), None
    if split is not None:
        with file.placing(("split",), value=False):
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
        with file.placing(
            ("data", "standardize"), value=False
        ):  # statistics come from the training rows alone
            own = {"each_fold": True} if tasks.in_memory else {}  # folds of rows elsewhere share these
            tasks = tasks.standardize(**standardize, **own)
            assert tasks.scaling is not None
            test = None if test is None else test.scaled_by(tasks.scaling)
    reading.tasks_train, reading.tasks_test, reading.names["tasks"] = tasks, test, tasks


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
    return [part.matrix[:, 0].astype(int) for part in parts]


def _standardize(reading: ProblemFileReader, value) -> dict | None:
    path = ("data", "standardize")
    if isinstance(value, dict):
        reading.require(path, dict.fromkeys(("center", "scale"), SWITCH))
        return {"center": value.get("center", True), "scale": value.get("scale", True)}
    if not isinstance(value, bool):
        raise reading.file.error(
            "standardize must be true, false, or such as {center = false}", path, value=True
        )
    return {"center": True, "scale": True} if value else None


def _dataset(reading: ProblemFileReader, table: dict) -> Tasks:
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


def _file(reading: ProblemFileReader, table: dict) -> Tasks:
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
            f"format {format!r} reads one file; libsvm takes one per task", ("data", "path"), value=True
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


def _call(
    reading: ProblemFileReader, reader, arguments: tuple, options: dict, what: str, own: list[str]
) -> Tasks:
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
DATA = FileTable(
    "data",
    dict.fromkeys(["dataset", "path", "format", "standardize"], ANYTHING) | RULES | _RULES_TASKS,
    check=_check,
    read=_read_data,
)
SPLIT = FileTable(
    "split",
    {
        "test_size": number(0.0, 1.0, "a share between 0 and 1, such as 0.25"),
        "random_state": SEED,
        "groups": TEXT,
    },
)


# --------------------------------------------------------------------------------------------------------------
# The [groups] table of a problem file: which group a task is in, and which group that one is in.


def _read_groups(reading: ProblemFileReader) -> None:
    """name -> {task or group: the group it is in}, or a list with the group of every task.

    DataError with its place where a group is not a name, and where a CSV file of pairs cannot be read.
    """
    for name, value in reading.table("groups").items():
        reading.names[name] = _groups(reading.file, name, value, reading.folder)


def _groups(file: TomlFile, name: str, value, folder: Path) -> dict[str, str | None] | list:
    path = ("groups", name)
    if isinstance(value, str):
        with file.placing(path):
            return _stored(folder / value)
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        raise file.error(
            f'write {name} = {{Oslo = "north", ...}}, a list with the group of every task, or the path of a CSV file, '
            f"not {kind_of(value)}",
            path,
            value=True,
        )
    for key, group in items:
        whole = isinstance(group, int) and not isinstance(group, bool)
        if not isinstance(group, str) and not (whole and isinstance(value, list)):
            raise file.error(f"a group is a name in quotes, not {kind_of(group)}", (*path, key), value=True)
    return value


def _stored(path: Path) -> dict[str, str | None]:
    """The pairs of a CSV file; an empty second cell means: in no group."""
    found: dict[str, str | None] = {}
    with (
        reading_file(regular_file(path), "a CSV file"),
        path.open(newline="", encoding="utf-8-sig") as stored,
    ):
        for line in (lines := csv.reader(stored, strict=True)):
            if not line:
                continue
            if len(line) != 2 or not line[0].strip():
                raise DataError(
                    f"line {lines.line_num} has to hold a name and its group, such as Oslo,north", term=path
                )
            name, group = (cell.strip() for cell in line)
            if name in found:
                raise DataError(f"line {lines.line_num}: {name!r} is in a group already", term=path)
            found[name] = group or None
    if not found:
        raise DataError("the file is empty", term=path)
    return found


GROUPS = FileTable("groups", names=True, read=_read_groups)
