"""Data to start with: scikit-learn's digits, synthetic problems, readers for common formats, and the papers' data sets.

Every function returns `Tasks`; the generators return (Tasks, W_true), and `make_calibrated` the noise levels as a third. A problem
file names one of `LOADERS`, or a path with one of `READERS`.
"""

from functools import wraps

from mtldsl.datasets.arff import read_arff
from mtldsl.datasets.array_files import read_libsvm, read_mat, read_npz
from mtldsl.datasets.csv_files import read_csv
from mtldsl.datasets.digits import load_digits
from mtldsl.datasets.papers import (
    load_emotions,
    load_flags,
    load_multi_target,
    load_sarcos,
    load_scene,
    load_school,
    load_segmentation,
)
from mtldsl.datasets.synthetic import make_calibrated, make_group_sparse, make_low_rank

__all__ = [
    "LOADERS",
    "READERS",
    "load_digits",
    "load_emotions",
    "load_flags",
    "load_multi_target",
    "load_sarcos",
    "load_scene",
    "load_school",
    "load_segmentation",
    "make_calibrated",
    "make_group_sparse",
    "make_low_rank",
    "read_arff",
    "read_csv",
    "read_libsvm",
    "read_mat",
    "read_npz",
]


def _tasks_of(generator):
    """A generator without its true weights."""

    @wraps(generator)  # a problem file reads its options from the signature
    def tasks_only(**options):
        return generator(**options)[0]

    return tasks_only


#: name in a problem file -> function that returns Tasks; keyword arguments come from the file's [data] table
LOADERS = {
    "digits": load_digits,
    "low_rank": _tasks_of(make_low_rank),
    "calibrated": _tasks_of(make_calibrated),
    "group_sparse": _tasks_of(make_group_sparse),
    "school": load_school,
    "sarcos": load_sarcos,
    "emotions": load_emotions,
    "flags": load_flags,
    "scene": load_scene,
    "segmentation": load_segmentation,
    "multi_target": load_multi_target,
}

#: format -> reader of a path
READERS = {"csv": read_csv, "arff": read_arff, "mat": read_mat, "npz": read_npz, "libsvm": read_libsvm}
