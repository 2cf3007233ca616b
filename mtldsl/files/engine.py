"""`engine = "dask"` in [data]: files that stay where they are, and the workers that read them."""

from __future__ import annotations

import re
from pathlib import Path

from mtldsl.datasets import scan
from mtldsl.datasets.scanning.pieces import FORMATS
from mtldsl.errors import DataError, MTLError
from mtldsl.files.rules import Rules, one_of, whole, wrong
from mtldsl.files.section import Reading
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.tasks.distributed.cluster import ADDRESS, MEMORY, connected, started

__all__ = ["RULES", "check_engine", "check_scheduler", "read_folder", "start"]

#: processes and threads that a file may start
_MOST = 256

#: addresses that a file may name: those of stores of files. Others of fsspec's, and chains of them, can run code or write.
_STORES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs", "webhdfs", "http", "https")

RULES: Rules = {
    "engine": one_of(["dask"]),
    "scheduler": (
        lambda v: isinstance(v, str) and (v == "local" or ADDRESS.fullmatch(v) is not None),
        '"local", or an address such as "tcp://10.0.0.1:8786"',
    ),
    "workers": whole(1, f"a whole number of processes >= 1 and <= {_MOST}", _MOST),
    "threads": whole(1, f"a whole number of threads of each process >= 1 and <= {_MOST}", _MOST),
    "memory": (
        lambda v: isinstance(v, str) and MEMORY.fullmatch(v) is not None,
        'the memory of each process, such as "1.5GB"',
    ),
}
_LOCAL = ("workers", "threads", "memory")


def check_engine(reading: Reading, table: dict) -> None:
    """DataError with its place for what can be known of these keys of [data] before anything is started or read."""
    file = reading.file
    said = {key: table[key] for key in RULES if key in table}
    for key, value in said.items():
        message = wrong("[data]", key, value, RULES, str)
        if message:
            raise file.error(message, ("data", key), value=True)
    if said and "engine" not in said and "dataset" not in table:
        key = next(iter(said))
        raise file.error(f'{key} is for rows on workers: write engine = "dask" beside it', ("data", key))
    if said and "dataset" in table:
        key = next(iter(said))
        raise file.error(f"{key} is for path = ..., not for dataset = ...", ("data", key))
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


def start(reading: Reading, table: dict) -> None:
    """Takes the engine's keys out of the table, and makes the workers that they name the active ones."""
    options = {key: table.pop(key) for key in RULES if key in table}
    wanted = reading.scheduler or options.get("scheduler")
    if wanted is None:
        return
    try:
        if wanted == "local":
            reading.cluster = started(
                options.get("workers"), options.get("threads", 1), options.get("memory")
            )
        else:
            reading.cluster = connected(wanted)
    except MTLError as error:
        raise error.at(reading.file.place(("data", "scheduler"), value=True)) from error


def read_folder(reading: Reading, paths, table: dict, call):
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


def _resolved(reading: Reading, path: str) -> Path | str:
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
