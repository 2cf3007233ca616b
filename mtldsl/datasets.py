"""Data to start with: scikit-learn's digits, synthetic problems, readers for common formats, and the papers' data sets.

Data larger than memory are converted once by `store` and read by `stored`; `scan` leaves them in their files, for Dask's workers to read.

Every function returns `Tasks`; the generators return (Tasks, W_true), `make_calibrated` the noise levels as a third,
`make_task_tree` a `TaskTree` and `make_label_graph` a `LabelGraph`. How labels depend on one another: `co_occurrence`,
`mutual_information`, `chow_liu_tree`. Sequences of letters: `encode_sequences` and the string kernels of its rows. A problem file names one of `LOADERS`, or a path with one of `READERS`.
"""

from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING

from mtldsl.data.kernel_functions import encode_sequences, spectrum_kernel, weighted_degree_kernel
from mtldsl.data.label_table import chow_liu_tree, co_occurrence, mutual_information
from mtldsl.data.published import (
    load_digits,
    load_emotions,
    load_flags,
    load_landmine,
    load_multi_target,
    load_sarcos,
    load_scene,
    load_school,
    load_segmentation,
)
from mtldsl.data.readers.arff import read_arff
from mtldsl.data.readers.array_files import read_libsvm, read_mat, read_npz
from mtldsl.data.readers.csv import read_csv
from mtldsl.data.store import store, stored
from mtldsl.data.store_chunks import hash_columns
from mtldsl.data.synthetic import (
    LabelGraph,
    make_calibrated,
    make_group_sparse,
    make_label_graph,
    make_low_rank,
)
from mtldsl.data.task_tree import TaskTree, estimate_similarity, hierarchy, make_task_tree

if TYPE_CHECKING:
    from mtldsl.distributed.scan import from_parts, scan

__all__ = [
    "LOADERS",
    "READERS",
    "LabelGraph",
    "TaskTree",
    "chow_liu_tree",
    "co_occurrence",
    "encode_sequences",
    "estimate_similarity",
    "from_parts",
    "hash_columns",
    "hierarchy",
    "load_digits",
    "load_emotions",
    "load_flags",
    "load_landmine",
    "load_multi_target",
    "load_sarcos",
    "load_scene",
    "load_school",
    "load_segmentation",
    "make_calibrated",
    "make_group_sparse",
    "make_label_graph",
    "make_low_rank",
    "make_task_tree",
    "mutual_information",
    "read_arff",
    "read_csv",
    "read_libsvm",
    "read_mat",
    "read_npz",
    "scan",
    "spectrum_kernel",
    "store",
    "stored",
    "weighted_degree_kernel",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str):
    """Return a function of Dask's workers, imported where it is first asked for."""
    if name not in ("from_parts", "scan"):
        raise AttributeError(f"module 'mtldsl.datasets' has no attribute {name!r}", name=name)
    globals()[name] = getattr(import_module("mtldsl.distributed.scan"), name)
    return globals()[name]


def _tasks_of(generator):
    """A generator without its true weights, or its training tasks alone."""

    @wraps(generator)  # a problem file reads its options from the signature
    def tasks_only(**options):
        made = generator(**options)
        return made.train if isinstance(made, TaskTree | LabelGraph) else made[0]

    return tasks_only


#: name in a problem file -> function that returns Tasks; keyword arguments come from the file's [data] table
LOADERS = {
    "digits": load_digits,
    "low_rank": _tasks_of(make_low_rank),
    "calibrated": _tasks_of(make_calibrated),
    "group_sparse": _tasks_of(make_group_sparse),
    "task_tree": _tasks_of(make_task_tree),
    "label_graph": _tasks_of(make_label_graph),
    "school": load_school,
    "sarcos": load_sarcos,
    "emotions": load_emotions,
    "flags": load_flags,
    "scene": load_scene,
    "segmentation": load_segmentation,
    "multi_target": load_multi_target,
}

#: format -> reader of a path
READERS = {
    "csv": read_csv,
    "arff": read_arff,
    "mat": read_mat,
    "npz": read_npz,
    "libsvm": read_libsvm,
    "landmine": load_landmine,
    "stored": stored,
}
