"""celer and skglm: working sets and coordinate descent for sparse models."""

from __future__ import annotations

import numpy as np

from .models import groups_of
from .peer import Peer, PeerProblem, all_at_once, column_by_column, installed_version

__all__ = ["peers"]

_RUNGS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10)


def peers(problem: PeerProblem) -> dict[str, Peer]:
    found = {}
    for package, part in (("celer", _celer), ("skglm", _skglm)):
        if installed_version(package):
            for name, (prepare, fit) in part(problem).items():
                found[name] = Peer(package, _RUNGS, fit, prepare)
    return found


def _celer(problem: PeerProblem) -> dict:
    import celer

    b, lam = problem.b, problem.lam
    options = {"fit_intercept": b, "max_iter": 1000, "max_epochs": 100_000}

    def each(kind, **numbers):
        def make(n, tol):
            return kind(tol=tol, **options, **{k: v(n) if callable(v) else v for k, v in numbers.items()})

        return column_by_column(problem, make)

    if problem.squares and problem.penalized_by("l1"):
        return {"celer": each(celer.Lasso, alpha=lambda n: lam["l1"] / n)}
    if problem.squares and problem.penalized_by("l1", "ridge"):
        both = lam["l1"] + lam["ridge"]
        return {"celer": each(celer.ElasticNet, alpha=lambda n: both / n, l1_ratio=lam["l1"] / both)}
    if problem.squares and problem.penalized_by("group") and problem.m == 1:
        sizes = [len(group) for group in groups_of(problem.d)]
        return {
            "celer": each(
                celer.GroupLasso, alpha=lambda n: lam["group"] / n, groups=sizes, weights=np.ones(len(sizes))
            )
        }
    if problem.squares and problem.penalized_by("l21") and problem.shared and not problem.sparse:
        return {"celer": all_at_once(problem, lambda n, tol: _MultiTask(lam["l21"] / n, tol, b))}
    if problem.loss == "logistic" and problem.penalized_by("l1") and not b:
        return {"celer": each(celer.LogisticRegression, C=1 / lam["l1"])}
    return {}


class _MultiTask:
    """celer's multi-task lasso by its path: its estimator does not know scikit-learn's newer releases."""

    def __init__(self, alpha: float, tol: float, intercept: bool):
        self.alpha, self.tol, self.intercept = alpha, tol, intercept

    def fit(self, X, Y):
        from celer.homotopy import mtl_path

        means = (X.mean(axis=0), Y.mean(axis=0)) if self.intercept else (0.0, 0.0)
        if self.intercept:
            X, Y = np.asfortranarray(X - means[0]), np.asfortranarray(Y - means[1])
        self.coef_ = mtl_path(X, Y, alphas=[self.alpha], tol=self.tol, max_iter=1000, max_epochs=100_000)[1][
            ..., 0
        ]
        self.intercept_ = means[1] - self.coef_ @ means[0] if self.intercept else 0.0
        return self


def _skglm(problem: PeerProblem) -> dict:
    import skglm

    b, lam = problem.b, problem.lam

    def each(kind, **numbers):
        def make(n, tol):
            filled = {k: v(n) if callable(v) else v for k, v in numbers.items()}
            return kind(tol=tol, fit_intercept=b, max_iter=1000, max_epochs=100_000, **filled)

        return column_by_column(problem, make)

    if problem.squares and problem.penalized_by("l1"):
        return {"skglm": each(skglm.Lasso, alpha=lambda n: lam["l1"] / n)}
    if problem.squares and problem.penalized_by("l1", "ridge"):
        both = lam["l1"] + lam["ridge"]
        return {"skglm": each(skglm.ElasticNet, alpha=lambda n: both / n, l1_ratio=lam["l1"] / both)}
    if problem.squares and problem.penalized_by("group") and problem.m == 1:
        groups = groups_of(problem.d)
        return {
            "skglm": each(
                skglm.GroupLasso,
                alpha=lambda n: lam["group"] / n,
                groups=groups,
                weights=np.ones(len(groups)),
            )
        }
    if problem.squares and problem.penalized_by("l21") and problem.shared and not problem.sparse:

        def make(n, tol):
            return skglm.MultiTaskLasso(
                alpha=lam["l21"] / n, tol=tol, fit_intercept=b, max_iter=1000, max_epochs=100_000
            )

        return {"skglm": all_at_once(problem, make)}
    if problem.loss == "logistic" and problem.penalized_by("l1"):
        return {"skglm": each(skglm.SparseLogisticRegression, alpha=lambda n: lam["l1"] / n)}
    if problem.loss == "hinge" and problem.penalized_by("ridge") and not b:
        return {"skglm": each(skglm.LinearSVC, C=1 / lam["ridge"])}
    return {}
