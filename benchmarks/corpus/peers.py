"""What other packages can solve of a problem: the same statement in their terms, and their fits brought back to weights and intercepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

__all__ = ["PACKAGES", "Peer", "Told", "missing_packages", "peers_for"]

#: package that pip knows -> what of the peers needs it
PACKAGES = (
    "scikit-learn",
    "celer",
    "skglm",
    "adelie",
    "python-glmnet",
    "highspy",
    "cvxpy",
    "clarabel",
    "scs",
)


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
        return f"{self.package}-{_version(self.package)}"


class Told:
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


def column_by_column(told: Told, make, order="F"):
    """(prepare, fit) that fit one estimator a task: `make(n_rows, tolerance)`; coef_ and intercept_ are read."""
    held: list = []

    def prepare():
        seen: dict = {}
        held.clear()
        for X, y in told.each():
            if id(X) not in seen:
                seen[id(X)] = _ordered(X, order)
            held.append((seen[id(X)], y))

    def fit(rung, goal):
        W, b = np.zeros((told.d, told.m)), np.zeros(told.m)
        for i, (X, y) in enumerate(held):
            model = make(X.shape[0], rung).fit(X, y)
            W[:, i] = np.ravel(model.coef_)
            b[i] = np.ravel(model.intercept_)[0] if told.b else 0.0
        return W, b

    return prepare, fit


def all_at_once(told: Told, make, order="F"):
    """(prepare, fit) of one estimator for all tasks: `make(n_rows, tolerance)`."""
    held: list = []

    def prepare():
        X, Y = told.together()
        held[:] = _ordered(X, order), np.asfortranarray(Y)

    def fit(rung, goal):
        model = make(held[0].shape[0], rung).fit(*held)
        return np.atleast_2d(model.coef_).T, (np.ravel(model.intercept_) if told.b else None)

    return prepare, fit


def _ordered(X, order):
    if hasattr(X, "tocsc"):
        X = X.tocsc() if order == "F" else X.tocsr()
        X = X.__class__((X.data.copy(), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        return X
    return np.array(X, order=order)  # a copy that may be written to: some packages ask for it


def peers_for(instance) -> dict[str, Peer]:
    """Name -> peer, of the packages that are installed, for a convex problem; {} for one that no other package states."""
    from . import peers_conic, peers_glmnet, peers_gradient, peers_homotopy, peers_sklearn

    found: dict[str, Peer] = {}
    if instance.stated.plain:
        told = Told(instance)
        for part in (peers_sklearn, peers_homotopy, peers_glmnet, peers_gradient, peers_conic):
            found.update(part.peers(told))
    found.update(peers_conic.conic(instance))
    return {name: peer for name, peer in found.items() if _version(peer.package)}


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if not _version(name)]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
