"""What `store` is given - files of a format, or chunks - as parts: a signature, and how to read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mtldsl.datasets.out_of_core.arrays import npz_chunks
from mtldsl.datasets.out_of_core.libsvm import has_qid, libsvm_chunks
from mtldsl.datasets.out_of_core.parquet import parquet_chunks, partitions_of
from mtldsl.errors import DataError
from mtldsl.system.reading import regular_file
from mtldsl.values.listing import as_list
from mtldsl.values.number import quoted

__all__ = ["common_folder", "file_parts", "listed_files"]

#: format -> endings of its files; text may be compressed
_SUFFIXES = {
    "libsvm": (".svm", ".libsvm", ".svmlight"),
    "parquet": (".parquet", ".pq"),
    "npz": (".npz",),
}
_COMPRESSED = (".gz", ".bz2")


def listed_files(parts) -> list[Path] | None:
    """The files meant - of a folder, and of those in it that are called "column=value", in the order of their names, hidden ones left out -,
    or None where parts are chunks."""
    if isinstance(parts, str | Path):
        path = Path(parts)
        if not path.is_dir():
            return [regular_file(path, "data")]
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))
        files = [p for p in files if all("=" in folder for folder in p.relative_to(path).parts[:-1])]
        if not files:
            raise DataError("there is no file in that folder", term=f"store({str(parts)!r})")
        return [regular_file(path, "data") for path in files]
    if isinstance(parts, list | tuple) and (not parts or isinstance(parts[0], str | Path)):
        if not parts:
            raise DataError("at least one part is needed", term="store([])")
        return [regular_file(path, "data") for path in parts]
    if not isinstance(parts, Iterator | list | tuple):
        raise DataError(
            term=f"store({quoted(parts)})",
            write_instead="give a folder, a list of files, or an iterator of (X, y, task_ids)",
        )
    return None


def common_folder(path, files: list[Path]) -> str | None:
    """The folder given, or that in which all of several files lie: below it, the names of folders may be columns."""
    if not isinstance(path, str | Path):
        return os.path.commonpath([one.parent for one in files]) if len(files) > 1 else None
    return str(path) if Path(path).is_dir() else None


def file_parts(
    files: list[Path], root: str | None, format, task, label, features, n_features, zero_based
) -> list[tuple]:
    """(signature, function that gives the chunks) of every file. root: the folder below which folders are columns of Parquet files."""
    format = _format(files, format)
    if format == "libsvm":
        for word, value in (("label", label), ("features", features)):
            if value is not None:
                raise DataError(
                    f"store: {word}={quoted(value)}: a LIBSVM file has no names for that",
                    write_instead="leave it out",
                )
        task = task or ("qid" if has_qid(files[0]) else "file")
        if task not in ("qid", "file"):
            raise DataError(
                f'store: task={quoted(task)}: in LIBSVM files a task is "qid", or "file" for one task a file'
            )
    else:
        if zero_based:
            raise DataError(
                f"store: zero_based=True is for LIBSVM files; indices of {format} count from 0 anyway"
            )
        task = task or "task"
        label = label or ("label" if format == "parquet" else "y")
        listed = as_list(features)
        if features is not None and (format == "npz" or listed is None):
            raise DataError(f"store: features={quoted(features)}: write a list of columns of Parquet files")
        features = None if listed is None else [str(name) for name in listed]
    names = _names(files)
    settings = {
        "format": format,
        "task": task,
        "label": label,
        "features": features,
        "n_features": n_features,
        "zero_based": zero_based,
    }
    below = partitions_of([str(path) for path in files], root if format == "parquet" else None)
    parts = []
    for path, name, partition in zip(files, names, below, strict=True):
        about = path.stat()
        signature = {
            "path": str(path.resolve()),
            "size": about.st_size,
            "changed": about.st_mtime_ns,
            "name": name,
            **settings,
            **({"partition": partition} if partition else {}),
        }
        reader = _reader(format, path, name, task, label, features, n_features, zero_based, partition)
        parts.append((signature, reader))
    return parts


def _reader(format, path, name, task, label, features, n_features, zero_based, partition):
    if format == "libsvm":
        return lambda: libsvm_chunks(path, task, name, zero_based, n_features)
    if format == "parquet":
        return lambda: parquet_chunks(path, task, label, name, features, partition)
    return lambda: npz_chunks(path, task, label, name)


def _format(files, format) -> str:
    if format is None:
        found = {_format_of(path): path for path in reversed(files)}
        only = next(iter(found))
        if len(found) > 1 or only is None:
            known = ", ".join(ending for endings in _SUFFIXES.values() for ending in endings)
            raise DataError(
                f"store: the endings of {', '.join(str(p) for p in list(found.values())[:3])} do not tell one format (known: "
                f"{known})",
                write_instead=f"write format=..., one of {', '.join(_SUFFIXES)}, and give the files meant",
            )
        return only
    if format not in _SUFFIXES:
        raise DataError(f"store: format={format!r}: write one of {', '.join(map(repr, _SUFFIXES))}")
    return format


def _format_of(path: Path) -> str | None:
    name = _plain(path).name.lower()
    return next((format for format, endings in _SUFFIXES.items() if name.endswith(endings)), None)


def _plain(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in _COMPRESSED else path


def _names(files: list[Path]) -> list[str]:
    """Names of tasks that are a file each: those of the files, or the paths where these are not distinct."""
    names = [_plain(path).stem for path in files]
    return names if len(set(names)) == len(names) else [str(path) for path in files]
