"""A plain numpy accelerated gradient with restart, which stops on the known optimum: what one could write in an afternoon.

It proves nothing, and it is told when to stop: its time is a lower bound on what such a method takes.
"""

from __future__ import annotations

import numpy as np

from .critical import huber_delta
from .models import groups_of
from .peer import Peer, PeerProblem

__all__ = ["peers"]


def peers(problem: PeerProblem) -> dict[str, Peer]:
    losses = {
        "squared": _squares, "sum_of_squares": _squares, "logistic": _logistic, "squared_hinge": _squared_hinge, "huber": _huber,
    }  # fmt: skip
    penalties = [word for word, _ in problem.model.penalties]
    if (
        problem.loss not in losses
        or not set(penalties) <= set(_PROXES) | {"ridge"}
        or len(set(penalties) - {"ridge"}) > 1
    ):
        return {}
    loss = losses[problem.loss]
    held: dict = {}

    def prepare():
        held["parts"] = list(problem.each())
        if problem.shared:
            held["whole"] = problem.together()
        held["scale"] = problem.C * (2 if problem.loss == "sum_of_squares" else 1)

    def fit(rung, goal):
        return _accelerated(problem, held, loss, goal)

    return {"fista": Peer("numpy", (0.0,), fit, prepare, aims=True)}


def _accelerated(problem: PeerProblem, held: dict, loss, goal):
    """The point whose objective is at most `goal` (in the units of the model as typed)."""
    product, adjoint, y, largest = _operators(problem, held)
    delta = huber_delta(problem.tasks)
    word = next((w for w in problem.lam if w != "ridge"), None)
    lam, ridge = problem.lam.get(word, 0.0), problem.lam.get("ridge", 0.0)
    penalty, prox = _PROXES[word] if word else (lambda W, groups: 0.0, lambda W, t, groups: W)
    groups = groups_of(problem.d)
    step = 1.0 / (largest * loss(np.zeros(1), np.ones(1), delta)[2] + ridge)
    x = np.zeros((problem.d + problem.b, problem.m))
    z, t, before = x, 1.0, np.inf
    target = np.inf if goal is None else goal / held["scale"]
    while True:
        value, slope, _ = loss(product(z), y, delta)
        gradient = adjoint(slope)
        gradient[: problem.d] += ridge * z[: problem.d]
        new = z - step * gradient
        new[: problem.d] = prox(new[: problem.d], step * lam, groups)
        W = new[: problem.d]
        objective = loss(product(new), y, delta)[0] + lam * penalty(W, groups) + 0.5 * ridge * np.vdot(W, W)
        if objective <= target or goal is None:
            return W, new[problem.d :].ravel() if problem.b else None
        if objective > before:
            z, t = x, 1.0
            before = np.inf
            continue
        t_new = 0.5 + np.sqrt(0.25 + t * t)
        z = new + ((t - 1) / t_new) * (new - x)
        x, t, before = new, t_new, objective


def _operators(problem: PeerProblem, held: dict):
    """(product, adjoint, targets, largest eigenvalue of X'X), a last row of the unknowns being the intercepts."""
    if problem.shared:
        X, Y = held["whole"]

        def product(Z):
            return X @ Z[: problem.d] + (Z[problem.d :] if problem.b else 0.0)

        def adjoint(U):
            top = X.T @ U
            return np.vstack([top, U.sum(axis=0)]) if problem.b else np.asarray(top)
    else:
        Y = np.concatenate([y for _, y in held["parts"]])
        ends = problem.tasks.offsets

        def product(Z):
            return np.concatenate(
                [
                    X @ Z[: problem.d, i] + (Z[problem.d, i] if problem.b else 0.0)
                    for i, (X, _) in enumerate(held["parts"])
                ]
            )

        def adjoint(u):
            columns = [X.T @ u[ends[i] : ends[i + 1]] for i, (X, _) in enumerate(held["parts"])]
            G = np.column_stack(columns)
            return np.vstack([G, np.add.reduceat(u, ends[:-1])]) if problem.b else G

    v = np.random.default_rng(0).normal(size=(problem.d + problem.b, problem.m))
    v /= np.linalg.norm(v, axis=0)
    for _ in range(40):
        w = adjoint(product(v))
        sizes = np.linalg.norm(w, axis=0)
        v = w / np.maximum(sizes, 1e-300)
    return product, adjoint, Y, 1.05 * sizes.max()


def _squares(Z, Y, delta):
    R = Z - Y
    return 0.5 * np.vdot(R, R), R, 1.0


def _logistic(Z, Y, delta):
    M = -Y * Z
    return np.logaddexp(0, M).sum(), -Y / (1 + np.exp(-M)), 0.25


def _squared_hinge(Z, Y, delta):
    R = np.maximum(0, 1 - Y * Z)
    return np.vdot(R, R), -2 * Y * R, 2.0


def _huber(Z, Y, delta):
    R = Z - Y
    clipped = np.clip(R, -delta, delta)
    return np.vdot(clipped, R) - 0.5 * np.vdot(clipped, clipped), clipped, 1.0


def _rows(W, t):
    sizes = np.linalg.norm(W, axis=1, keepdims=True)
    return W * np.maximum(0, 1 - t / np.maximum(sizes, 1e-300))


def _trace(W, t, groups):
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return (U * np.maximum(s - t, 0)) @ Vt


def _groups(W, t, groups):
    return np.vstack([W[g] * max(0.0, 1 - t / max(np.linalg.norm(W[g]), 1e-300)) for g in groups])


_PROXES = {
    "l1": (lambda W, groups: np.abs(W).sum(), lambda W, t, groups: np.sign(W) * np.maximum(np.abs(W) - t, 0)),
    "l21": (lambda W, groups: np.linalg.norm(W, axis=1).sum(), lambda W, t, groups: _rows(W, t)),
    "trace": (lambda W, groups: np.linalg.norm(W, "nuc"), _trace),
    "group": (lambda W, groups: sum(np.linalg.norm(W[g]) for g in groups), _groups),
}
