"""Classification with kernels: between the rows, and between the tasks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mtldsl.errors import DataError
from mtldsl.estimators.classifier import MultiTaskClassifier
from mtldsl.estimators.distinct_rows import distinct_rows
from mtldsl.estimators.multi_task import MultiTaskEstimator, tasks_of
from mtldsl.solution.solution import Solution
from mtldsl.tasks import Tasks

__all__ = ["KernelMultiTaskClassifier"]


class KernelMultiTaskClassifier(MultiTaskClassifier):
    """Multi-task kernel learning: labels by kernels of the rows, with how alike the tasks are learned beside (MT-MKL).

        min over w, theta   C sum of hinge losses + half the squared mkl_norm of w, ||theta||_p <= 1, on the features of the kernels

    model   : "MT-MKL", "Vanilla MTL", "Union", "Individual", ... or a statement; see `MultiTaskClassifier`
    kernels : a name of `sklearn.metrics.pairwise` ("rbf", "linear", "poly", ...), "spectrum" or "weighted_degree" of sequences that
              `mtldsl.datasets.encode_sequences` gave, a function k(A, B), a list of them or a dict {name:
              kernel or (kernel, parameters)}, as in `Tasks.with_kernels`; or "precomputed": X is the Gram matrix (n, n) in `fit`, and
              (rows, n) in `predict`

    The others are as in `MultiTaskClassifier`; there is no coef_. solution_.kernel_weights tells what was learned of the tasks.

    Source: Widmer, Kloft, Goernitz and Raetsch, "Multi-task multiple kernel learning", Problem 1.

    >>> import numpy as np
    >>> from mtldsl.estimators import KernelMultiTaskClassifier
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> xor = KernelMultiTaskClassifier(kernels=("rbf"), C=100.0).fit(X, [0, 0, 1, 1])
    >>> xor.predict(X)
    array([0, 0, 1, 1])
    """

    _defaults: ClassVar[dict[str, float]] = {"C": 1.0}

    def __init__(
        self,
        model="MT-MKL",
        *,
        kernels="rbf",
        subject_to=(),
        fit_intercept=True,
        class_weight=None,
        one_class="constant",
        tune_thresholds=None,
        calibration=None,
        inner_folds=5,
        warm_start=False,
        tol=1e-6,
        max_seconds=None,
        solver="auto",
        check=None,
        n_jobs=None,
        **parameters,
    ):
        self._set(locals())

    def _tasks(self, X, signs, weights, names) -> Tasks:
        if self.kernels != "precomputed":
            X, signs, weights = distinct_rows(X, signs, weights)
            return tasks_of(X, signs, weights, self._names(), names).with_kernels(self.kernels)
        if X.shape[0] != X.shape[1]:
            raise DataError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix.",
                argument="X",
            )
        there = ~np.isnan(signs) if weights is None else ~np.isnan(signs) & (weights > 0)
        kept = self._rows = np.flatnonzero(there.any(axis=1))
        gram = X[np.ix_(kept, kept)]
        tasks = tasks_of(gram, signs[kept], None if weights is None else weights[kept], None, names)
        return tasks.with_kernels({"precomputed": gram})

    def _finish(self, solution: Solution | None) -> None:
        MultiTaskEstimator._finish(
            self, solution
        )  # features of kernels are not columns of X: there is no coef_

    def _learned_scores(self, X) -> np.ndarray:
        assert self.solution_ is not None
        return self.solution_.decision_function(X[:, self._rows] if self.kernels == "precomputed" else X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernels, str) and self.kernels == "precomputed"
        return tags
