"""A problem in the terms of another package, and a fit brought back to weights and intercepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

__all__ = ["Peer", "PeerProblem", "all_at_once", "column_by_column", "installed_version", "ordered_copy"]


@dataclass
class Peer:
    """`prepare()` is not timed; `fit(rung, goal)` is, and returns (W (d, m), b (m,) or None).

    rungs : tolerances to try, loosest first; where `aims`, fit is told the objective to reach in place of them
    """

    package: str
    rungs: tuple[float, ...]
    fit: Callable
    prepare: Callable[[], None] = lambda: None
    aims: bool = False

    @property
    def version(self) -> str:
        return f"{self.package}-{installed_version(self.package)}"


class PeerProblem:
    """The problem in the terms of peers: inputs and targets of every task, coefficients beside a loss of coefficient 1."""

    def __init__(self, instance):
        stated = instance.stated
        self.instance, self.model, self.tasks = instance, stated.model, stated.tasks
        self.b, self.loss = stated.model.intercept, stated.model.loss
        self.lam = stated.relative
        self.C = stated.numbers.loss
        self.n, self.d, self.m = self.tasks.n_samples, self.tasks.n_features, self.tasks.n_tasks
        self.sparse = self.tasks.is_sparse
        self.shared = self.tasks.is_shared and self.tasks.mask is None
        if self.loss == "sum_of_squares":  # twice a squared loss
            self.lam = {word: value / 2 for word, value in self.lam.items()}

    @property
    def squares(self) -> bool:
        return self.loss in ("squared", "sum_of_squares")

    def penalized_by(self, *words: str) -> bool:
        return self.model.penalty(*words)

    def each(self):
        """(X_i, y_i) of every task."""
        ends = self.tasks.offsets
        for i, X in enumerate(self.tasks.inputs):
            yield X, np.ascontiguousarray(self.tasks.targets[ends[i] : ends[i + 1]])

    def together(self):
        """(X, Y) where all tasks have the same rows."""
        return self.tasks.X, np.ascontiguousarray(self.tasks.targets.reshape(self.m, -1).T)


def column_by_column(problem: PeerProblem, make, order="F"):
    """(prepare, fit) that fit one estimator a task: `make(n_rows, tolerance)`; coef_ and intercept_ are read."""
    held: list = []

    def prepare():
        seen: dict = {}
        held.clear()
        for X, y in problem.each():
            if id(X) not in seen:
                seen[id(X)] = ordered_copy(X, order)
            held.append((seen[id(X)], y))

    def fit(rung, goal):
        W, b = np.zeros((problem.d, problem.m)), np.zeros(problem.m)
        for i, (X, y) in enumerate(held):
            model = make(X.shape[0], rung).fit(X, y)
            W[:, i] = np.ravel(model.coef_)
            b[i] = np.ravel(model.intercept_)[0] if problem.b else 0.0
        return W, b

    return prepare, fit


def all_at_once(problem: PeerProblem, make, order="F"):
    """(prepare, fit) of one estimator for all tasks: `make(n_rows, tolerance)`."""
    held: list = []

    def prepare():
        X, Y = problem.together()
        held[:] = ordered_copy(X, order), np.asfortranarray(Y)

    def fit(rung, goal):
        model = make(held[0].shape[0], rung).fit(*held)
        return np.atleast_2d(model.coef_).T, (np.ravel(model.intercept_) if problem.b else None)

    return prepare, fit


def ordered_copy(X, order):
    if hasattr(X, "tocsc"):
        X = X.tocsc() if order == "F" else X.tocsr()
        X = X.__class__((X.data.copy(), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        return X
    return np.array(X, order=order)  # a copy that may be written to: some packages ask for it


def installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
