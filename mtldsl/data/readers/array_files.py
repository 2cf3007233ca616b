"""Readers of files that hold arrays: MATLAB, NumPy archives and LIBSVM text."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.derived import with_fields
from mtldsl.data.labels import as_signs
from mtldsl.data.readers.table import check_impute, fill_table_gaps
from mtldsl.data.row_storage import MAX_INT32
from mtldsl.data.store_chunks import libsvm_rows
from mtldsl.data.table_description import DataDescription, TableColumn
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.utils.arrays import as_array
from mtldsl.utils.files import read_archive, reading, regular_file
from mtldsl.utils.memory import as_dense, available_memory
from mtldsl.utils.validation import INSTEAD, as_count, as_flag, as_list, as_path

# --------------------------------------------------------------------------------------------------------------
# The variables of a MATLAB file, read by a process of its own: see `mat_process`.

_CHILD = Path(__file__).with_name("mat_process.py")


@dataclass(frozen=True)
class MatProcessSettings:
    """Limits of the process that reads a .mat file.

    base_seconds     : its time, whatever the file
    megabyte_seconds : more of it for every megabyte of the file
    library_bytes    : memory that its libraries alone may take
    """

    base_seconds: float = 60
    megabyte_seconds: int = 2
    library_bytes: int = 2 << 30


SETTINGS = MatProcessSettings()


@dataclass(frozen=True)
class OtherVariable:
    """A variable that is neither numbers, text nor cells, such as a structure."""

    dtype: str
    shape: tuple = ()


def mat_variables(path) -> dict[str, np.ndarray | sparse.csc_array | OtherVariable]:
    """name -> variable: an array, sparse, an array of objects for cells; what is none of these is an `OtherVariable`.

    DataError for what is not a MATLAB file, and for one on which scipy's reader crashes, wants more memory than there is, or does not
    come to an end.
    """
    path = regular_file(path, "data")
    seconds = SETTINGS.base_seconds + SETTINGS.megabyte_seconds * path.stat().st_size // 1_000_000
    memory = int(min(max(available_memory(), SETTINGS.library_bytes), 2.0**62))
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
    with reading(path, "a MATLAB file"), np.load(io.BytesIO(done.stdout), allow_pickle=False) as archive:
        answer = json.loads(str(archive["about"]))
        if "error" in answer:
            raise DataError(f"{answer['error']}", term=path)
        return {name: _restored(about, archive) for name, about in answer["variables"].items()}


def _ended(done: subprocess.CompletedProcess) -> str:
    if done.returncode < 0:
        return f"scipy's reader crashed on it (signal {-done.returncode})"
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"scipy's reader failed ({last[0] if last else done.returncode})"


def _restored(about: Any, archive):
    if isinstance(about, int):
        return archive[f"arr_{about}"]
    if "other" in about:
        return OtherVariable(about["other"])
    shape = tuple(about["shape"])
    if "sparse" in about:
        return sparse.csc_array(tuple(_restored(one, archive) for one in about["sparse"]), shape)
    cells = np.empty(len(about["cells"]), dtype=object)
    for k, one in enumerate(about["cells"]):
        cells[k] = _restored(one, archive)
    return cells.reshape(shape)


def read_mat(
    path,
    X: str = "X",
    Y: str | int = "Y",
    *,
    task_ids: str | None = None,
    binary: bool = False,
    impute: str = "error",
) -> Tasks:
    """Tasks from the variables X and Y of a MATLAB file (not of version 7.3).

    cells    : X{i} (n_i, d), Y{i} (n_i,): separate tasks
    matrices : X (n, d), Y (n, m): tasks that share their inputs; with `task_ids`, the variable that tells the rows of different
               tasks apart, Y is (n,). A number Y = k means the last k columns of X.
    binary   : labels are 0/1 and are read as -1/+1
    impute   : as in `read_csv`, of matrices

    Integers, such as School's bytes, become float64 before anything is computed. The file is read in a process of its own, which costs
    half a second: scipy's reader ends its process on some damaged files. DataError for another kind of file, an unknown variable, what
    is not numbers.

    >>> import tempfile, pathlib, scipy.io
    >>> from mtldsl import datasets
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.mat"
    >>> scipy.io.savemat(path, {"A": [[1, 2, 200], [3, 4, 100]]})
    >>> datasets.read_mat(path, X="A", Y=1).targets
    array([200., 100.])
    """
    binary = as_flag(binary, "read_mat(path, binary")
    path = as_path(path, "read_mat(path)")
    check_impute(impute, path)
    content = mat_variables(path)
    inputs = _member(path, content, X, "X")
    if isinstance(Y, int) and not isinstance(Y, bool):
        inputs, targets = _last_columns(path, _numbers(path, X, inputs), Y)
    else:
        targets = _member(path, content, Y, "Y")
    if inputs.dtype == object:
        if targets.dtype != object or task_ids is not None:
            raise DataError(
                f"{X} holds cells, one per task; then {Y} must hold cells too, and task_ids has no use",
                term=path,
            )
        if impute != "error":
            raise DataError(
                f"impute is for matrices, and {X} holds cells, one a task", term=path,
                write_instead="write one matrix of all rows, with task_ids", argument="impute",
            )  # fmt: skip
        cells = [_numbers(path, f"{X}{{{i}}}", cell) for i, cell in enumerate(inputs.ravel(), start=1)]
        labels = [_numbers(path, f"{Y}{{{i}}}", cell) for i, cell in enumerate(targets.ravel(), start=1)]
        labels = [(y.toarray() if sparse.issparse(y) else y).ravel() for y in labels]
        made = Tasks.separate(cells, [as_signs(y, path) for y in labels] if binary else labels)
        return _described(made, labels) if binary else made
    ids = _ids(path, content, task_ids)
    return _of_arrays(path, _numbers(path, X, inputs), _numbers(path, Y, targets), ids, binary, impute)


def read_npz(
    path,
    X: str = "X",
    Y: str = "Y",
    *,
    task_ids: str | None = None,
    binary: bool = False,
    impute: str = "error",
) -> Tasks:
    """Tasks from the arrays X (n, d) and Y (n, m) of a NumPy archive; NaN in Y: not labelled.

    task_ids : the array (n,) that tells the rows of different tasks apart; then Y is (n,)
    binary   : labels are 0/1 and are read as -1/+1
    impute   : as in `read_csv`

    Arrays `task_names` and `feature_names` are the names, where the archive has them. Pickled objects are refused, as everything
    that is not numbers, with a DataError.

    >>> import tempfile, pathlib
    >>> from mtldsl import datasets
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.npz"
    >>> np.savez(path, X=[[1.0], [2.0]], Y=[[0, 1], [1, 0]], task_names=["a", "b"])
    >>> tasks = datasets.read_npz(path, binary=True)
    >>> tasks.task_names, tasks.targets
    (('a', 'b'), array([-1.,  1.,  1., -1.]))
    """
    binary = as_flag(binary, "read_npz(path, binary")
    check_impute(impute, path)
    arrays = read_archive(path, "an .npz file of numbers", role="data")
    inputs, targets = (
        _numbers(path, name, _member(path, arrays, name, role)) for name, role in ((X, "X"), (Y, "Y"))
    )
    ids = _ids(path, arrays, task_ids)
    with reading(path, "an .npz file of numbers"):
        names = {key: list(map(str, arrays[key])) for key in ("task_names", "feature_names") if key in arrays}
    return _of_arrays(path, inputs, targets, ids, binary, impute, **names)


def read_libsvm(
    path,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    one_vs_rest: bool = False,
    multilabel: bool = False,
    binary: bool = False,
) -> Tasks:
    """Tasks with sparse inputs from LIBSVM files: of one file, or of a list of files, one task each, named by the files.

    n_features  : columns of X (None: the largest index that occurs)
    zero_based  : whether indices count from 0, in all files. None: from 1, as LIBSVM has it, unless an index 0 occurs in one of them; a
                  UserWarning says so, since a part of the same data without an index 0 would be read from 1
    one_vs_rest : labels are classes: a task per class, +1 against -1 (two classes: one task, the larger against the other)
    multilabel  : a row carries a list of labels, "1,3 2:0.5": a task per label
    binary      : labels are 0/1 and are read as -1/+1

    The last three take one file. DataError, with file and line, for what does not parse, for an index 0 where zero_based=False, and for
    "qid:", which `scan` and `store` read as the tasks of rows.

    >>> import tempfile, pathlib
    >>> from mtldsl import datasets
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "spam.svm"
    >>> _ = path.write_text("1 1:0.5 3:2\\n-1 2:1\\n")
    >>> datasets.read_libsvm(path)
    <Tasks: 1 task, 3 features, sparse shared inputs, 2 labelled rows>
    """
    one_vs_rest = as_flag(one_vs_rest, "read_libsvm(path, one_vs_rest")
    multilabel = as_flag(multilabel, "read_libsvm(path, multilabel")
    binary = as_flag(binary, "read_libsvm(path, binary")
    listed = as_list(path)
    paths = [regular_file(one, "data") for one in ([path] if listed is None else listed)]
    if not paths:
        raise DataError("at least one file is needed", term="read_libsvm([])")
    if len(paths) > 1 and (one_vs_rest or multilabel):
        raise DataError(
            "read_libsvm: one_vs_rest and multilabel make tasks of one file, but there are several"
        )
    if n_features is not None:
        n_features = as_count(n_features, "read_libsvm(path, n_features", most=MAX_INT32)
    if zero_based is not None:
        zero_based = as_flag(zero_based, "read_libsvm(path, zero_based")
    given: list[list[float]] | None = [] if multilabel else None
    read = [libsvm_rows(one, None, one.stem, True, None, given)[:2] for one in paths]
    inputs = _counted_from(zero_based, [X for X, _ in read], paths, n_features)
    labels = [y for _, y in read]
    if not (one_vs_rest or multilabel):
        signs = [as_signs(y, p) for y, p in zip(labels, paths, strict=True)] if binary else labels
        names = [p.stem for p in paths]
        names = names if len(set(names)) == len(names) else [str(p) for p in paths]
        if len(paths) > 1:
            made = Tasks.separate(inputs, signs, task_names=names)
        else:
            made = Tasks.shared(inputs[0], signs[0], task_names=names)
        return _described(made, labels) if binary else made
    rows = [{label} for label in labels[0].tolist()] if given is None else [set(row) for row in given]
    known = sorted(set().union(*rows))
    classes = known[1:] if one_vs_rest and len(known) == 2 else known
    Y = np.array([[1.0 if c in row else -1.0 for c in classes] for row in rows])
    made = Tasks.shared(inputs[0], Y, task_names=[f"{c:g}" for c in classes])
    if not one_vs_rest:
        return made
    texts = [f"{c:g}" for c in known]
    return with_fields(
        made, description=DataDescription(labels=(TableColumn.of(paths[0].stem, texts, texts),))
    )


def _described(tasks: Tasks, given: Sequence[np.ndarray]) -> Tasks:
    """The tasks of labels that were read as -1 and +1, which know of 0 and 1. given: the labels of each task, or of all, as they were."""
    each = given if len(given) == tasks.n_tasks else [given[0]] * tasks.n_tasks
    units = [("0", "1") if bool((y == 0.0).any()) else ("-1", "1") for y in each]
    columns = [
        TableColumn.of(name, own, [name] * 2) for name, own in zip(tasks.task_names, units, strict=True)
    ]
    return with_fields(tasks, description=DataDescription(labels=tuple(columns)))


def _counted_from(zero_based: bool | None, inputs: list, paths: list[Path], n_features: int | None) -> list:
    """The inputs, read with columns from 0 on, as their indices are meant: by one rule for all files."""
    first = next((p for X, p in zip(inputs, paths, strict=True) if (X.indices == 0).any()), None)
    if first is not None and zero_based is False:
        raise DataError("it has an index 0, and zero_based=False says that indices count from 1", term=first, argument="zero_based")  # fmt: skip
    if first is not None and zero_based is None:
        warnings.warn(
            f"{first}: indices are read as counting from 0, since an index 0 occurs. A part of these data without one would be read as counting "
            "from 1: write zero_based=True for all of them",
            stacklevel=3,
        )  # fmt: skip
    shift = int(first is None and not zero_based)
    d = max(X.shape[1] - shift for X in inputs)
    if n_features is not None:
        wide = next((p for X, p in zip(inputs, paths, strict=True) if X.shape[1] - shift > n_features), None)
        if wide is not None:
            raise DataError(f"n_features was set to {n_features}, and it has {d} features", term=wide, argument="n_features")  # fmt: skip
        d = n_features
    return [sparse.csr_matrix((X.data, X.indices - shift, X.indptr), shape=(X.shape[0], d)) for X in inputs]


def _of_arrays(path, X, Y, ids, binary, impute, **names) -> Tasks:
    size = " x ".join(f"{n:,}" for n in Y.shape)
    Y = as_dense(Y, f"{path}: {size} labels", "give the labels of fewer tasks", DataError)
    given, Y = Y, as_signs(Y, path) if binary else Y
    if ids is not None and names.pop("task_names", None) is not None:
        raise DataError(
            "with task_ids the tasks are named by their ids",
            term=path,
            write_instead="take task_names out of the file",
        )

    def make(X) -> Tasks:
        return Tasks.shared(X, Y, **names) if ids is None else Tasks.grouped(X, Y, ids, **names)

    made = fill_table_gaps(X, impute, path, make)
    return _described(made, [given]) if binary else made


def _member(path, content, name, role):
    if name not in content:
        raise DataError(
            f"{role}={name!r}: there is no such array; the file holds {', '.join(content) or 'none'}",
            term=path,
            argument=role,
        )
    return content[name]


def _ids(path, content, name: str | None) -> np.ndarray | None:
    """An array (n,), (n, 1) or (1, n), as MATLAB has them, as (n,); None for none."""
    if name is None:
        return None
    value = _member(path, content, name, "task_ids")
    if isinstance(value, OtherVariable):
        raise DataError(f"{name} holds {value.dtype}", term=path, write_instead="give one task id a row")
    if max(value.shape, default=0) != value.size:
        raise DataError(f"{name} has shape {value.shape}", term=path, write_instead="give one task id a row")
    return value.ravel()


#: kind of dtype -> what such entries are, what to write instead
_OTHER_KINDS = {
    **dict.fromkeys("US", ("text, ", "write classes as numbers, such as 0 and 1 with binary=True, and other text as columns of 0 and 1")),
    **dict.fromkeys("Mm", ("times, ", INSTEAD["times"])),
    "c": ("complex numbers, ", INSTEAD["complex"]),
}  # fmt: skip


def _numbers(path, name, value) -> Any:
    """float64; DataError for text, structures, cells, complex numbers, and whole numbers that float64 does not have."""
    if isinstance(value, OtherVariable) or value.dtype.kind not in "biuf":
        what, instead = _OTHER_KINDS.get(getattr(value.dtype, "kind", ""), ("", ""))
        raise DataError(
            f"{name} does not hold real numbers but {what}{value.dtype}", term=path, write_instead=instead
        )
    return value.astype(float) if sparse.issparse(value) else as_array(value, f"{path}: {name}").astype(float)


def _last_columns(path, table, k):
    if not 0 < k < table.shape[1]:
        raise DataError(
            f"Y={k}: a number means the last so many of {table.shape[1]} columns of X",
            term=path,
            argument="Y",
        )
    return table[:, :-k], table[:, -k:]
