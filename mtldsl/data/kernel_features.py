"""Features from kernels: pivoted Cholesky factors of Gram matrices as the inputs of tasks."""

from __future__ import annotations

import numpy as np

from mtldsl.data.derived import scaled_by, with_fields
from mtldsl.data.input_checks import unlike
from mtldsl.data.kernel_functions import FunctionKernel, GivenKernel, NamedKernel, kernels_of
from mtldsl.data.kernel_map import KernelMap, KernelView
from mtldsl.data.row_storage import row_keys
from mtldsl.data.task_data import T, TaskData
from mtldsl.errors import DataError
from mtldsl.utils.memory import available_memory, gib

# --------------------------------------------------------------------------------------------------------------
# A Gram matrix as the inner products of a few features: pivoted Cholesky, K = F F^T up to rounding.

#: Relative cuts tried one after another, so that a matrix with rounding errors of its own is factored no finer than those. The
#: last is what counts as rounding, in double and in single precision: about the square root of the one, ten times the other.
_CUTS: dict[np.dtype, tuple[float, ...]] = {
    np.dtype(np.float64): (1e-12, 1e-10, 1e-8),
    np.dtype(np.float32): (1e-12, 1e-10, 1e-8, 1e-6),
}


def factor_gram(K: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """(features F (n, r), pivots (r,)) with K = F F^T, and F[pivots] lower triangular.

    r is the numerical rank: pivoting ends where every remaining diagonal entry of K - F F^T is at most `cut` times the largest
    of K, and no entry of K - F F^T may be larger than ten times that. cut = 1e-12; where rounding errors in K itself forbid that,
    1e-10 or 1e-8 (also 1e-6 for numbers in single precision).

    K : (n, n). Raises DataError, in terms of `what`, where K is not symmetric, not positive semidefinite up to rounding (the
    message says the most negative eigenvalue), or too large for the memory there is: 5 n^2 numbers.

    >>> import numpy as np
    >>> F, pivots = factor_gram(np.array([[4.0, 2.0, 4.0], [2.0, 2.0, 2.0], [4.0, 2.0, 4.0]]), "K")
    >>> F.shape, pivots, bool(np.allclose(F @ F.T, [[4, 2, 4], [2, 2, 2], [4, 2, 4]]))
    ((3, 2), array([0, 1]), True)
    """
    from scipy.linalg.lapack import dpstrf

    cuts = _CUTS[np.dtype(np.float32 if K.dtype == np.float32 else np.float64)]
    n = K.shape[0]
    require_memory_for(n, what)
    K = _symmetric(K, what, cuts[-1])
    largest = float(K.diagonal().max())
    for cut in cuts:
        if largest <= 0:
            break  # no feature at all, or not positive semidefinite
        triangle, order, rank, _ = dpstrf(K, tol=cut * largest, lower=1)
        features = np.empty((n, rank))
        features[order - 1] = np.tril(triangle[:, :rank])
        del triangle
        if _remainder(K, features) <= 10 * cut * largest:
            return features, order[:rank].astype(int) - 1
    if not K.any():
        raise DataError(f"{what} is zero between all rows", write_instead="leave it out")
    smallest = float(np.linalg.eigvalsh(K)[0])
    raise DataError(
        f"{what} is not positive semidefinite: its most negative eigenvalue is {smallest:.3g}, its largest diagonal entry "
        f"{largest:.3g}",
        write_instead="give a kernel whose Gram matrices are (where only rounding makes it negative, because rows lie far from "
        "zero: standardize() first)",
    )


def require_memory_for(n: int, what: str) -> None:
    """DataError where a Gram matrix of n rows, and what its factors need, is more than the memory there is."""
    needed, available = 5 * 8.0 * n * n, available_memory()
    if needed > available:
        raise DataError(
            f"{what} over {n} distinct rows needs {gib(needed)} of memory, and {gib(available)} are there; "
            "subsample(rows) first, or write approximate features of the kernel (random Fourier features) as columns of X"
        )


def _symmetric(K: np.ndarray, what: str, rounding: float) -> np.ndarray:
    K = K.astype(float)
    scale = float(np.abs(K).max())
    apart = np.abs(K - K.T)
    if apart.max() > rounding * scale:
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        raise DataError(
            f"{what} is not symmetric: {K[i, j]:.6g} between the rows {i} and {j}, but {K[j, i]:.6g} between {j} and {i}"
        )
    return (K + K.T) / 2


def _remainder(K: np.ndarray, features: np.ndarray) -> float:
    """max_ij |K - F F^T|."""
    missed = features @ features.T
    missed -= K
    return float(np.abs(missed, out=missed).max())


# --------------------------------------------------------------------------------------------------------------
# Nonlinear kernels in linear models: the rows of tasks as features whose inner products are the kernels.
#
# By the representer theorem the weights of a problem with kernels k_1, ..., k_V lie in the span of the training rows, so that it is
# the linear problem over features with K_v = F_v F_v^T. [F_1, ..., F_V] are views: ranges of columns with a name.


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
    kernels, X = kernels_of(kernels), tasks.matrix
    distinct, which = _distinct(X)
    parts, blocks = zip(
        *[
            _view_of_given(kernel, tasks)
            if isinstance(kernel, GivenKernel)
            else _view(kernel, X[distinct], which)
            for kernel in kernels
        ],
        strict=True,
    )
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
    return _of_features(tasks, kernel_map.features(tasks.matrix), kernel_map)


def _of_features(tasks: T, features: np.ndarray, kernel_map: KernelMap) -> T:
    """The tasks with these features of their pooled rows in place of their inputs."""
    return with_fields(
        tasks, features, feature_names=kernel_map.names, kernel_map=kernel_map, imputation=None
    )


def _view(kernel: NamedKernel | FunctionKernel, X, which: np.ndarray) -> tuple[KernelView, np.ndarray]:
    """(how the kernel maps a row, the features of all pooled rows). X : the distinct rows, and which of them each pooled row is."""
    what = f"kernel {kernel.name!r}"
    require_memory_for(X.shape[0], what)
    features, pivots = factor_gram(kernel(X, X), what)
    return KernelView(kernel, X[pivots], features[pivots]), features[which]


def _view_of_given(kernel: GivenKernel, tasks: TaskData) -> tuple[KernelView, np.ndarray]:
    """The same of a Gram matrix over the rows as the user gave them."""
    what = f"kernel {kernel.name!r}"
    if tasks.is_shared:
        positions, meant = np.arange(tasks.X.shape[0]), "the rows of X"
    elif tasks.one_table:
        positions = np.argsort(np.argsort(np.concatenate(tasks.source_rows)))
        meant = "the rows of the table that have a label"
    else:
        positions, meant = np.arange(tasks.n_samples), "the rows that have a label, task after task"
    if kernel.size != len(positions):
        raise DataError(
            f"a Gram matrix of {kernel.size} rows, and these tasks hold {len(positions)}",
            term=what,
            write_instead=f"give it over {meant}, in that order",
        )
    assert kernel.gram is not None  # it was typed: one that was read back comes with its views
    features, pivots = factor_gram(kernel.gram, what)
    kernel = GivenKernel(kernel.name, None, kernel.size)  # what it was factored into is enough
    return KernelView(kernel, pivots, features[pivots]), features[positions]


def _distinct(X) -> tuple[np.ndarray, np.ndarray]:
    """(positions of the first of each set of equal rows, the set that every row belongs to)."""
    found: dict[bytes, int] = {}
    which = np.array([found.setdefault(key, len(found)) for key in row_keys(X)])
    return np.unique(which, return_index=True)[1], which
