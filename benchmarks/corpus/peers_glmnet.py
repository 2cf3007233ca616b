"""adelie and python-glmnet: coordinate descent on groups and on features, as in R's glmnet."""

from __future__ import annotations

import numpy as np

from .models import groups_of
from .peer import Peer, PeerProblem, installed_version, ordered_copy

__all__ = ["peers"]

_RUNGS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)


def peers(problem: PeerProblem) -> dict[str, Peer]:
    found = {}
    for package, name, part in (("adelie", "adelie", _adelie), ("python-glmnet", "glmnet", _glmnet)):
        pair = part(problem) if installed_version(package) else None
        if pair is not None:
            found[name] = Peer(package, _RUNGS, pair[1], pair[0])
    return found


def _each(problem: PeerProblem, solve):
    """(prepare, fit) of `solve(X, y, tolerance) -> (w, intercept)`, task after task."""
    held: list = []

    def prepare():
        held[:] = [(ordered_copy(X, "F"), np.ascontiguousarray(y)) for X, y in problem.each()]

    def fit(rung, goal):
        W, b = np.zeros((problem.d, problem.m)), np.zeros(problem.m)
        for i, (X, y) in enumerate(held):
            W[:, i], b[i] = solve(X, y, rung)
        return W, b

    return prepare, fit


def _l1_and_ridge(problem: PeerProblem) -> tuple[float, float] | None:
    """The coefficients of sum |w| and of half the squares, where there is nothing else."""
    words = next((one for one in (("l1",), ("ridge",), ("l1", "ridge")) if problem.penalized_by(*one)), None)
    return None if words is None else (problem.lam.get("l1", 0.0), problem.lam.get("ridge", 0.0))


def _adelie(problem: PeerProblem):
    import adelie
    from adelie import glm

    both = _l1_and_ridge(problem)
    options = {"intercept": problem.b, "progress_bar": False, "early_exit": False, "adev_tol": 1.0}

    def solved(X, response, lam, alpha, tol, **grouped):
        state = adelie.grpnet(
            X=X, glm=response, lmda_path=[lam], alpha=alpha, tol=tol, irls_tol=tol, **options, **grouped
        )
        return state.betas.toarray()[-1], state.intercepts[-1]

    if problem.sparse:
        return None
    if both is not None and (problem.squares or problem.loss == "logistic"):
        total = sum(both)
        make = glm.gaussian if problem.squares else glm.binomial

        def one(X, y, tol):
            response = make(y if problem.squares else (y > 0).astype(float))
            return solved(X, response, total / len(y), both[0] / total, tol)

        return _each(problem, one)
    if problem.squares and problem.penalized_by("group") and problem.m == 1:
        sizes = np.array([len(group) for group in groups_of(problem.d)])
        grouped = {"groups": np.cumsum(sizes) - sizes, "penalty": np.ones(len(sizes))}
        return _each(
            problem,
            lambda X, y, tol: solved(X, glm.gaussian(y), problem.lam["group"] / len(y), 1.0, tol, **grouped),
        )
    if problem.squares and problem.penalized_by("l21") and problem.shared:
        held: list = []

        def prepare():
            X, Y = problem.together()
            held[:] = ordered_copy(X, "F"), np.ascontiguousarray(Y)

        def fit(rung, goal):
            X, Y = held
            lam = problem.lam["l21"] / (
                Y.shape[0] * problem.m**1.5
            )  # its mean is over samples and tasks, its penalty sqrt(m)
            W, b = solved(X, glm.multigaussian(Y), lam, 1.0, rung)
            return W.reshape(problem.d, problem.m), b

        return prepare, fit
    return None


def _glmnet(problem: PeerProblem):
    import glmnet

    both = _l1_and_ridge(problem)
    if both is None or not (problem.squares or problem.loss == "logistic"):
        return None
    options = {"fit_intercept": problem.b, "standardize": False, "n_splits": 0, "max_iter": 10**7}

    def one(X, y, tol):
        n, size = len(y), float(y.std()) if problem.squares else 1.0
        # it scales labels, and the share of the ridge with them: labels of deviation 1 stay as they are
        lam, alpha = (both[0] / size + both[1]) / n, both[0] / size / (both[0] / size + both[1])
        kind = glmnet.ElasticNet if problem.squares else glmnet.LogitNet
        model = kind(alpha=alpha, lambda_path=[lam], tol=tol, **options)
        model.fit(X, y / size if problem.squares else (y > 0).astype(float))
        return size * np.ravel(model.coef_path_), size * float(np.ravel(model.intercept_path_)[0])

    return _each(problem, one)
