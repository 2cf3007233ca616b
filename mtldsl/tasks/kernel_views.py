"""Nonlinear kernels in linear models: the rows of tasks as features whose inner products are the kernels.

By the representer theorem the weights of a problem with kernels k_1, ..., k_V lie in the span of the training rows, so that it is
the linear problem over features with K_v = F_v F_v^T. [F_1, ..., F_V] are views: ranges of columns with a name.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.tasks.data import T, TaskData
from mtldsl.tasks.derived import scaled_by, with_inputs
from mtldsl.tasks.gram_factor import factor_gram, require_room
from mtldsl.tasks.kernel_map import KernelMap, View
from mtldsl.tasks.kernels import FunctionKernel, GivenKernel, Kernel, NamedKernel, kernels_of
from mtldsl.tasks.names import unlike

__all__ = ["with_kernels"]


def with_kernels(tasks: T, kernels) -> T:
    """See `Tasks.with_kernels`."""
    if tasks.kernel_map is not None:
        names = ", ".join(map(repr, tasks.views))
        raise DataError(
            f"with_kernels: these tasks have kernels already ({names})",
            write_instead="write all kernels in one call",
        )
    if tasks.imputation is not None:
        raise DataError(
            "with_kernels: these tasks had inputs that were missing, and kernels are of inputs that are there",
            write_instead="fill them in before, for example with scikit-learn's SimpleImputer",
        )
    if isinstance(kernels, KernelMap):
        return _as_in_training(tasks, kernels)
    kernels = kernels_of(kernels)
    rows = _Rows(tasks)
    parts, blocks = zip(*[rows.view(kernel) for kernel in kernels], strict=True)
    kernel_map = KernelMap(parts, tasks.feature_names, tasks.scaling)
    return _of_features(tasks, np.hstack(blocks), kernel_map)


def _as_in_training(tasks: T, kernel_map: KernelMap) -> T:
    """Other tasks with the features of training's kernels."""
    if kernel_map.given:
        raise DataError(
            f"the kernel {kernel_map.given[0]!r} is precomputed, so that the inputs of these tasks do not tell its values",
            write_instead="put kernels on all rows, tasks.with_kernels(...), and split() those tasks",
        )
    wrong = unlike(kernel_map.feature_names, tasks.feature_names)
    if wrong is None and len(kernel_map.feature_names) != tasks.n_features:
        wrong = f"there are {tasks.n_features}, and training had {len(kernel_map.feature_names)}"
    if wrong is not None:
        raise DataError(f"with_kernels: these tasks have other features than those of training: {wrong}")
    if tasks.scaling is None and kernel_map.scaling is not None:
        tasks = scaled_by(tasks, kernel_map.scaling)
    if tasks.scaling != kernel_map.scaling:
        raise DataError(
            "with_kernels: these tasks were standardised with statistics other than the training tasks'",
            write_instead="give raw tasks, or test.scaled_by(train.scaling)",
        )
    return _of_features(tasks, kernel_map.features(_pooled(tasks)), kernel_map)


def _of_features(tasks: T, features: np.ndarray, kernel_map: KernelMap) -> T:
    """The tasks with these features of their pooled rows in place of their inputs."""
    inputs = [features] if tasks.is_shared else np.split(features, tasks.offsets[1:-1])
    return with_inputs(tasks, inputs, feature_names=kernel_map.names, kernel_map=kernel_map)


def _pooled(tasks: TaskData):
    """The shared inputs, or those of task 0, then of task 1, ..."""
    if tasks.is_shared:
        return tasks.X
    return sparse.vstack(tasks.inputs, format="csr") if tasks.is_sparse else np.vstack(tasks.inputs)


class _Rows:
    """The pooled rows of tasks, and what a kernel makes of them."""

    def __init__(self, tasks: TaskData):
        self.tasks = tasks
        self.X = _pooled(tasks)
        self.distinct, self.which = _distinct(self.X)

    def view(self, kernel: Kernel) -> tuple[View, np.ndarray]:
        """(how the kernel maps a row, the features of all pooled rows)."""
        if isinstance(kernel, GivenKernel):
            return self._given(kernel)
        return self._computed(kernel)

    def _computed(self, kernel: NamedKernel | FunctionKernel) -> tuple[View, np.ndarray]:
        what = f"kernel {kernel.name!r}"
        require_room(len(self.distinct), what)
        X = self.X[self.distinct]
        features, pivots = factor_gram(kernel(X, X), what)
        return View(kernel, X[pivots], features[pivots]), features[self.which]

    def _given(self, kernel: GivenKernel) -> tuple[View, np.ndarray]:
        positions = self._positions()
        what = f"kernel {kernel.name!r}"
        if kernel.size != len(positions):
            raise DataError(
                f"a Gram matrix of {kernel.size} rows, and these tasks hold {len(positions)}",
                term=what,
                write_instead=f"give it over {self._meant()}, in that order",
            )
        assert kernel.gram is not None  # it was typed: one that was read back comes with its views
        features, pivots = factor_gram(kernel.gram, what)
        kernel = GivenKernel(kernel.name, None, kernel.size)  # what it was factored into is enough
        return View(kernel, pivots, features[pivots]), features[positions]

    def _positions(self) -> np.ndarray:
        """The place of every pooled row among the rows as the user gave them."""
        if self.tasks.one_table:
            return np.argsort(np.argsort(np.concatenate(self.tasks.source_rows)))
        return np.arange(self.X.shape[0])

    def _meant(self) -> str:
        if self.tasks.is_shared:
            return "the rows of X"
        if self.tasks.one_table:
            return "the rows of the table that have a label"
        return "the rows that have a label, task after task"


def _distinct(X) -> tuple[np.ndarray, np.ndarray]:
    """(positions of the first of each set of equal rows, the set that every row belongs to)."""
    found: dict[bytes, int] = {}
    first, which = [], np.empty(X.shape[0], dtype=int)
    for row, key in enumerate(_keys(X)):
        which[row] = found.setdefault(key, len(found))
        if len(found) > len(first):
            first.append(row)
    return np.array(first), which


def _keys(X):
    """Equal bytes for equal rows."""
    if sparse.issparse(X):
        X = X.copy()
        X.eliminate_zeros()
        X.sort_indices()
        bounds = zip(X.indptr, X.indptr[1:], strict=False)
        return (X.indices[a:b].tobytes() + b"|" + X.data[a:b].tobytes() for a, b in bounds)
    return (row.tobytes() for row in X + 0.0)  # -0.0 becomes 0.0
