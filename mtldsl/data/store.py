"""Store of a long table on the disk: files converted part by part, then opened as memory-mapped tasks."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mtldsl.data.input_checks import as_names, number_columns
from mtldsl.data.row_storage import MAX_INT32, csr_of
from mtldsl.data.store_chunks import (
    SETTINGS,
    given_chunks,
    has_qid,
    libsvm_chunks,
    npz_chunks,
)
from mtldsl.data.store_parquet import parquet_chunks, partitions_of
from mtldsl.data.store_passes import ARRAYS, PartSummary, digest, finished_part, place, write_json, write_part
from mtldsl.data.task_data import require_labelled
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.utils.files import note_input, reading, regular_file, remove_leftovers, sole_use, writing
from mtldsl.utils.validation import as_count, as_flag, as_list, as_path, distinct_texts, one_of, quoted

# --------------------------------------------------------------------------------------------------------------
# Whether the arrays of stored tasks can be followed: compiled loops go where indices point, without a look.


def check_rows(arrays: dict[str, np.ndarray], n_tasks: int, n_features: int) -> None:
    """ValueError where sizes do not belong together, a pointer goes back or outside, or a value or label is not finite.

    One pass over the files, in bounded memory: some 0.2 s a gigabyte where the system holds them already.
    """
    offsets, indptr, nnz = arrays["offsets"], arrays["indptr"], arrays["data"].size
    rows = indptr.size - 1
    together = arrays["indices"].size == nnz and arrays["y"].size == arrays["rows"].size == rows
    if not together or offsets.size != n_tasks + 1:
        raise ValueError("its arrays do not belong together")
    _require_ascending(offsets, rows, "offsets", 1)
    _require_ascending(indptr, nnz, "indptr", 0)
    for name, highest in (("indices", n_features - 1), ("rows", np.iinfo(np.int64).max)):
        for part in _parts(arrays[name]):
            if part.min() < 0 or part.max() > highest:
                raise ValueError(f"{name}.npy points outside")
    for name in ("data", "y"):
        for part in _parts(arrays[name]):
            if not np.isfinite(part).all():
                raise ValueError(f"{name}.npy holds NaN or infinity")


def _require_ascending(ends: np.ndarray, last: int, name: str, least: int) -> None:
    """0 = ends[0], ..., last, each at least `least` above the one before."""
    before = 0
    fits = ends.size and ends[0] == 0 and ends[-1] == last
    for part in _parts(ends[1:]):
        fits = fits and part[0] - before >= least and bool((np.diff(part) >= least).all())
        before = part[-1]
    if not fits:
        raise ValueError(f"{name}.npy does not ascend from 0 to {last:,}")


def _parts(array: np.ndarray):
    return (
        array[at : at + SETTINGS.checked_entries] for at in range(0, array.size, SETTINGS.checked_entries)
    )


# --------------------------------------------------------------------------------------------------------------
# What `store` is given - files of a format, or chunks - as parts: a signature, and how to read it.

#: format -> endings of its files
FORMATS = {
    "parquet": (".parquet", ".pq"),
    "npz": (".npz",),
    "libsvm": tuple(
        f"{one}{packed}" for one in (".svm", ".libsvm", ".svmlight") for packed in ("", ".gz", ".bz2")
    ),
}


def format_of(files: Sequence, format, typed: str) -> str:
    """The one format of these files, by their endings where it is not given."""
    if format is None:
        for known, endings in FORMATS.items():
            if all(str(one).lower().endswith(endings) for one in files):
                return known
        shown = ", ".join(map(str, files[:3]))
        raise DataError(
            f"the endings of {shown} do not tell one format (known: {', '.join(e for all_of in FORMATS.values() for e in all_of)})",
            term=typed, write_instead=f"write format=..., one of {', '.join(FORMATS)}, and give the files meant",
        )  # fmt: skip
    if format not in FORMATS:
        raise DataError(f"format={quoted(format)}: write one of {', '.join(map(repr, FORMATS))}", term=typed)
    return format


def stem(path) -> str:
    """Return what a task is called that is a file."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix in (".gz", ".bz2") else path).stem


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
    format = format_of(files, format, "store")
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
    names = [stem(path) for path in files]
    names = names if len(set(names)) == len(names) else [str(path) for path in files]
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
        if format == "libsvm":
            read = partial(libsvm_chunks, path, task, name, zero_based, n_features)
        elif format == "parquet":
            read = partial(parquet_chunks, path, task, label, name, features, partition)
        else:
            read = partial(npz_chunks, path, task, label, name)
        parts.append((signature, read))
    return parts


# --------------------------------------------------------------------------------------------------------------
# Data larger than memory: converted once, part by part, into a folder of arrays that `Tasks` then read from the disk.

_ABOUT = "stored.json"
#: Layout of a stored folder.
_FORMAT_VERSION = 1


def store(
    parts,
    folder,
    *,
    format: str | None = None,
    task: str | None = None,
    label: str | None = None,
    features=None,
    n_features: int | None = None,
    hashed: int | None = None,
    zero_based: bool = False,
    dtype: str = "float64",
) -> Tasks:
    """Converts parts of a long table, one after the other, into `folder`, and returns `stored(folder)`.

    parts      : a folder, a file, a list of files, or an iterator of chunks (X, y, task_ids) as `Tasks.grouped` takes them
    format     : "libsvm" (also .gz, .bz2), "parquet" or "npz"; None: what the endings of the files say
    task       : LIBSVM: "qid", the whole number in "label qid:task index:value ...", or "file"; None: "qid" where the first line has
                 one. Otherwise the column or array of ids (None: "task"). "file": a task a file, named by it
    label      : Parquet: the column of labels (None: "label"); NPZ: the array (None: "y")
    features   : Parquet: the columns of inputs. None: the list columns `indices` (from 0) and `values` where there are such, else
                 all other columns but the index that pandas or Dask wrote, which must be numeric. Folders called "shop=3" are a column
    n_features : columns of X; None: those the parts have, or the largest index that occurs
    hashed     : hash the columns to so many, with signs: see `hash_columns`, which new inputs then need, too
    zero_based : LIBSVM: indices count from 0
    dtype      : of the values on the disk, "float64" or "float32"; products are computed in float64 either way

    An NPZ part holds what scipy.sparse.save_npz writes (data, indices, indptr, shape, format), or a dense X, beside y and task;
    it is read whole, every other part in pieces. The memory needed is that of a piece, some 200 MB, and the disk space twice that of
    the result. The result is that of `Tasks.grouped` on all rows: tasks in order of first appearance, their rows in the order of the
    parts, rows without a label (NaN, null) left out.

    An interrupted call is continued by the same call: parts that are finished are not read again, unless their file has changed
    since; chunks of an iterator are. A call whose result is there already returns it. Raises DataError, with file and line or row,
    for what is wrong in a part (the parts before it stay finished), for a folder that holds something else, that cannot be written, or
    that another process is storing to; MissingExtraError where pyarrow is needed and not installed.

    >>> import tempfile, pathlib
    >>> from mtldsl import datasets
    >>> there = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (there / "a.svm").write_text("1 qid:7 1:0.5 3:2\\n-1 qid:5 2:1\\n1 qid:7 3:4\\n")
    >>> tasks = datasets.store(there / "a.svm", there / "converted")
    >>> tasks
    <Tasks: 2 tasks, 3 features, sparse separate inputs, 2 + 1 labelled rows>
    >>> tasks.task_names
    ('7', '5')
    """
    folder = as_path(folder, "store(folder)")
    one_of(dtype, ("float64", "float32"), "store(dtype")
    zero_based = as_flag(zero_based, "store(zero_based")
    for word, value in (("format", format), ("task", task), ("label", label)):
        if value is not None and not isinstance(value, str):
            raise DataError(
                term=f"store({word}={quoted(value)})", write_instead="write a name as text, or leave it out"
            )
    hashed = None if hashed is None else as_count(hashed, "store(hashed", 2, most=MAX_INT32)
    n_features = None if n_features is None else as_count(n_features, "store(n_features", most=1 << 62)
    files = listed_files(parts)
    if files is None:
        for word, value in (("format", format), ("task", task), ("label", label), ("features", features)):
            if value is not None:
                raise DataError(f"store: {word}={quoted(value)} is for files; chunks are (X, y, task_ids)")
        sources, signatures = [({"chunks": True}, partial(given_chunks, parts))], None
    else:
        sources = file_parts(
            files, common_folder(parts, files), format, task, label, features, n_features, zero_based
        )
        sources = [(signature | {"hashed": hashed, "dtype": dtype}, read) for signature, read in sources]
        signatures = [signature for signature, _ in sources]
    if hashed is not None:
        n_features = None  # the readers see to it
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    taken = DataError(
        f"store: another process is storing to {folder}; wait for its end, or give another folder"
    )
    with sole_use(folder, taken):
        spool = folder / "parts"
        if _is_there(folder, spool, signatures):
            shutil.rmtree(spool, ignore_errors=True)
            return stored(folder)
        remove_leftovers(folder / _ABOUT)
        with writing(folder):
            spool.mkdir(parents=True, exist_ok=True)
        done, options = [], {"n_features": n_features, "hashed": hashed, "dtype": dtype}
        for number, (signature, read) in enumerate(sources):
            part = finished_part(spool, number, signature) if files is not None else None
            done.append(part or write_part(spool, number, signature, read(), **options))
        ids, columns, found = _combined(done, n_features)
        if found is None:
            number_columns("x", columns)  # refused before the rows are placed
        arrays = place(done, folder, ids, columns, dtype)
        about = {
            "format": "mtldsl stored tasks",
            "version": _FORMAT_VERSION,
            "task_names": _stored_names(ids),
            "feature_names": found,
            "n_features": columns,
            "hashed": hashed,
            "arrays": arrays,
            "fingerprint": digest(folder),
            "source": signatures,
        }
        write_json(folder / _ABOUT, about)
        shutil.rmtree(spool, ignore_errors=True)
        return stored(folder)


def stored(folder, *, check: bool = False) -> Tasks:
    """The tasks that `store` wrote to that folder. Their arrays stay on the disk (memory-mapped, read-only), and are not copied.

    check : compare with the SHA-256 that `store` noted; otherwise the files are read once too, but only looked through for what no
        stored tasks can have: pointers outside, values that are not finite, sizes that do not belong together

    What goes through the rows task by task - `forward`, `adjoint`, `gram`, `fingerprint` - holds one task at a time. `select`, `split`,
    `take_rows`, `subsample` and `standardize(center=False)` copy the rows they keep into memory, as float64. Values stored as
    float32 stay so in `tasks.stacked` and `tasks.inputs`. DataError for a folder that is none, or is incomplete or damaged.
    """
    check = as_flag(check, "stored(folder, check")
    folder = as_path(folder, "stored(folder)")
    about = _about(folder)
    for name in (_ABOUT, *(f"{name}.npy" for name in ARRAYS)):
        note_input(folder / name, "data")
    with reading(folder, "a folder that store() wrote"):
        arrays = {name: _mapped(folder, name, *about["arrays"][name]) for name in ARRAYS}
        if check and digest(folder) != about["fingerprint"]:
            raise DataError(
                "its files are not those that store() wrote",
                term=folder,
                write_instead="remove it and store again",
            )
        return _checked(folder, about, arrays)


def _checked(folder: Path, about: dict, arrays: dict[str, np.ndarray]) -> Tasks:
    names, d = about["task_names"], about["n_features"]
    try:
        check_rows(arrays, len(names), d)
    except ValueError as error:
        raise DataError(f"{error}", term=folder, write_instead="remove it and store again") from None
    offsets = np.array(arrays["offsets"])
    ends = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    return Tasks(
        stacked=csr_of(arrays["data"], arrays["indices"], arrays["indptr"], d),
        counts=np.diff(offsets),
        targets=arrays["y"],
        task_names=as_names(names, None, len(names), f"{folder}: task_names"),
        feature_names=as_names(about["feature_names"] or None, None, d, f"{folder}: feature_names", "x"),
        source_rows=[arrays["rows"][a:b] for a, b in ends],
        one_table=True,
    )


def _about(folder: Path) -> dict:
    if not folder.is_dir():
        raise DataError(
            f"there is no such folder (looked from {Path.cwd()})", term=f"stored({str(folder)!r})"
        )
    if not (folder / _ABOUT).is_file():
        if (folder / "parts").is_dir():
            raise DataError(
                "store() was interrupted there", term=folder, write_instead="call it again, and it goes on"
            )
        raise DataError(f"no {_ABOUT} is in it, so it is not a folder that store() wrote", term=folder)
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        version = about["version"]
        if version == _FORMAT_VERSION and set(about["arrays"]) == set(ARRAYS):
            return about
    except (ValueError, KeyError, TypeError):
        version = None
    what = (
        "is damaged"
        if version in (None, _FORMAT_VERSION)
        else f"is of version {version}, not {_FORMAT_VERSION}"
    )
    raise DataError(f"{folder / _ABOUT} {what}", write_instead="remove the folder and store again")


def _mapped(folder: Path, name: str, dtype: str, length: int) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        # an empty file cannot be mapped
        array = np.load(path, mmap_mode="r" if length else None, allow_pickle=False)
    except Exception as error:  # numpy's reader of headers raises the errors of Python's own parser
        raise DataError(
            f"missing or damaged ({error})", term=path, write_instead="remove the folder and store again"
        ) from None
    array = np.asarray(array)
    if array.dtype != np.dtype(dtype) or array.shape != (length,):
        raise DataError(
            f"{path} holds {array.dtype} {array.shape}, not {dtype} ({length},)",
            write_instead="remove the folder and store again",
        )
    array.flags.writeable = False
    return array


def _is_there(folder: Path, spool: Path, signatures) -> bool:
    """Tell whether the folder holds this very result; DataError where it holds something else."""
    if (folder / _ABOUT).exists():
        if signatures is not None and _about(folder)["source"] == signatures:
            return True
        raise DataError(
            f"store: {folder} holds stored tasks already, of other parts or options; read them by stored(), or "
            "give another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise DataError(f"store: {folder} is a file", write_instead="give a folder")
    if folder.is_dir() and not spool.is_dir() and any(folder.iterdir()):
        raise DataError(f"store: {folder} is not empty", write_instead="give a new folder")
    return False


def _combined(parts: list[PartSummary], n_features) -> tuple[list, int, list[str] | None]:
    """Ids of tasks in order of first appearance, the number of columns and their names; DataError where parts do not go together."""
    read = [part.columns for part in parts if part.columns is not None]
    if not read:
        raise DataError("store: there is no row in these parts; at least one is needed")
    columns = read[0]
    for other in read:
        columns = columns.with_those_of(other, n_features)
    labelled: dict = {}
    for part in parts:
        for one, rows in zip(part.ids, part.rows, strict=True):
            labelled[one] = labelled.get(one, 0) + rows
    require_labelled(_stored_names(labelled), labelled.values())
    n = n_features or columns.n
    return list(labelled), n, columns.features if n == columns.n else None


def _stored_names(ids) -> list[str]:
    """Those that `Tasks.grouped` gives them."""
    return distinct_texts([one if isinstance(one, tuple) else (str(one), type(one).__name__) for one in ids])
