"""adelie and python-glmnet: coordinate descent on groups and on features, as in R's glmnet."""

from __future__ import annotations

import numpy as np

from .models import groups_of
from .peers import Peer, Told, _ordered, _version

__all__ = ["peers"]

_RUNGS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)


def peers(told: Told) -> dict[str, Peer]:
    found = {}
    for package, name, part in (("adelie", "adelie", _adelie), ("python-glmnet", "glmnet", _glmnet)):
        pair = part(told) if _version(package) else None
        if pair is not None:
            found[name] = Peer(package, _RUNGS, pair[1], pair[0])
    return found


def _each(told: Told, solve):
    """(prepare, fit) of `solve(X, y, tolerance) -> (w, intercept)`, task after task."""
    held: list = []

    def prepare():
        held[:] = [(_ordered(X, "F"), np.ascontiguousarray(y)) for X, y in told.each()]

    def fit(rung, goal):
        W, b = np.zeros((told.d, told.m)), np.zeros(told.m)
        for i, (X, y) in enumerate(held):
            W[:, i], b[i] = solve(X, y, rung)
        return W, b

    return prepare, fit


def _l1_and_ridge(told: Told) -> tuple[float, float] | None:
    """The coefficients of sum |w| and of half the squares, where there is nothing else."""
    words = next((one for one in (("l1",), ("ridge",), ("l1", "ridge")) if told.penalized_by(*one)), None)
    return None if words is None else (told.lam.get("l1", 0.0), told.lam.get("ridge", 0.0))


def _adelie(told: Told):
    import adelie
    from adelie import glm

    both = _l1_and_ridge(told)
    options = {"intercept": told.b, "progress_bar": False, "early_exit": False, "adev_tol": 1.0}

    def solved(X, response, lam, alpha, tol, **grouped):
        state = adelie.grpnet(
            X=X, glm=response, lmda_path=[lam], alpha=alpha, tol=tol, irls_tol=tol, **options, **grouped
        )
        return state.betas.toarray()[-1], state.intercepts[-1]

    if told.sparse:
        return None
    if both is not None and (told.squares or told.loss == "logistic"):
        total = sum(both)
        make = glm.gaussian if told.squares else glm.binomial

        def one(X, y, tol):
            response = make(y if told.squares else (y > 0).astype(float))
            return solved(X, response, total / len(y), both[0] / total, tol)

        return _each(told, one)
    if told.squares and told.penalized_by("group") and told.m == 1:
        sizes = np.array([len(group) for group in groups_of(told.d)])
        grouped = {"groups": np.cumsum(sizes) - sizes, "penalty": np.ones(len(sizes))}
        return _each(
            told,
            lambda X, y, tol: solved(X, glm.gaussian(y), told.lam["group"] / len(y), 1.0, tol, **grouped),
        )
    if told.squares and told.penalized_by("l21") and told.shared:
        held: list = []

        def prepare():
            X, Y = told.together()
            held[:] = _ordered(X, "F"), np.ascontiguousarray(Y)

        def fit(rung, goal):
            X, Y = held
            lam = told.lam["l21"] / (
                Y.shape[0] * told.m**1.5
            )  # its mean is over samples and tasks, its penalty sqrt(m)
            W, b = solved(X, glm.multigaussian(Y), lam, 1.0, rung)
            return W.reshape(told.d, told.m), b

        return prepare, fit
    return None


def _glmnet(told: Told):
    import glmnet

    both = _l1_and_ridge(told)
    if both is None or not (told.squares or told.loss == "logistic"):
        return None
    options = {"fit_intercept": told.b, "standardize": False, "n_splits": 0, "max_iter": 10**7}

    def one(X, y, tol):
        n, size = len(y), float(y.std()) if told.squares else 1.0
        # it scales labels, and the share of the ridge with them: labels of deviation 1 stay as they are
        lam, alpha = (both[0] / size + both[1]) / n, both[0] / size / (both[0] / size + both[1])
        kind = glmnet.ElasticNet if told.squares else glmnet.LogitNet
        model = kind(alpha=alpha, lambda_path=[lam], tol=tol, **options)
        model.fit(X, y / size if told.squares else (y > 0).astype(float))
        return size * np.ravel(model.coef_path_), size * float(np.ravel(model.intercept_path_)[0])

    return _each(told, one)
