"""The unit in which strengths are stated: lambda_max of `loss + lam * norm` (1 / lambda_max of `norm + C * loss`), computed here.

The package's own `lambda_max` is not asked, so that a problem stays the same problem when that function learns something. For losses with
a kink at zero, and for structured hinges, one subgradient stands for all: the unit is then an upper bound of lambda_max, near it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

__all__ = ["BALLS", "QUADRATIC", "QUANTILE", "chain", "huber_delta", "near_solution", "radius", "unit"]

QUADRATIC = ("ridge", "mean", "laplacian", "squared_trace", "half_squared_group")
QUANTILE = 0.3
BALLS = ("l1_ball", "l21_ball", "trace_ball", "frobenius_ball")


def unit(model, tasks, groups) -> float:
    """One unit of strength for this model on these tasks."""
    word = model.penalties[0][0]
    if word in QUADRATIC:
        size = _squares(tasks)
        per_row, per_column = size / tasks.n_samples, size / tasks.n_features / tasks.n_tasks
        return 1.0 / per_row if model.by_loss else per_column * (0.25 if model.loss == "logistic" else 1.0)
    largest = dual_norm(word, tasks.adjoint(slopes(model.loss, model.intercept, tasks)), groups)
    largest = largest if largest > 0 else 1.0
    return 1.0 / largest if model.by_loss else largest


def _squares(tasks) -> float:
    """Sum of the squares of all inputs, once for every task that uses them."""
    from scipy import sparse

    def of(X):
        return float(X.multiply(X).sum()) if sparse.issparse(X) else float(np.vdot(X, X))

    if tasks.is_shared:
        return of(tasks.X) * tasks.n_samples / tasks.X.shape[0]
    return sum(of(X) for X in tasks.inputs)


def slopes(loss: str, intercept: bool, tasks) -> np.ndarray:
    """(N,) minus a subgradient of the loss at W = 0, the intercepts at about their best."""
    ends = tasks.offsets
    return np.concatenate([_slope(loss, tasks.targets[a:b], intercept, tasks) for a, b in pairwise(ends)])


def _slope(loss: str, y: np.ndarray, intercept: bool, tasks) -> np.ndarray:
    share = np.mean(y > 0)
    # flips of the larger class that balance those of the smaller one
    balance = np.minimum(1.0, np.where(y > 0, (1 - share) / max(share, 1e-9), share / max(1 - share, 1e-9)))
    flips = balance if intercept else 1.0
    centre = (
        np.mean(y) if loss in ("squared", "sum_of_squares", "square_root") else np.median(y)
    ) * intercept
    if loss == "squared":
        return y - centre
    if loss == "sum_of_squares":
        return 2 * (y - centre)
    if loss == "square_root":
        return (y - centre) / max(np.linalg.norm(y - centre), 1e-300)
    if loss == "absolute":
        return np.sign(y - centre)
    if loss == "quantile":
        place = np.quantile(y, QUANTILE) if intercept else 0.0
        return np.where(y > place, QUANTILE, np.where(y < place, QUANTILE - 1, 0.0))
    if loss == "huber":
        delta = huber_delta(tasks)
        return np.clip(y - centre, -delta, delta)
    if loss == "hinge":
        return y * flips
    if loss in ("structured_f", "structured_auc"):
        return 2 * y * flips
    if loss == "squared_hinge":
        return 2 * y * np.maximum(0.0, 1 - y * np.mean(y) * intercept)
    if loss == "logistic":
        return (y > 0) - share if intercept else y / 2
    if loss == "exponential":
        odds = np.clip(share, 1e-9, 1 - 1e-9)
        return y * np.exp(-y * 0.5 * np.log(odds / (1 - odds)) * intercept)
    if loss == "poisson":
        return y - (np.mean(y) if intercept else 1.0)
    if loss == "gamma":
        return y / (np.mean(y) if intercept else 1.0) - 1
    raise ValueError(loss)


def huber_delta(tasks) -> float:
    """Half the targets' spread: some residuals on either side."""
    return float(0.5 * np.std(tasks.targets)) or 1.0


def dual_norm(word: str, G: np.ndarray, groups) -> float:
    """The dual of a norm of W (d, m); of the few that are not norms with a simple dual, that of l1."""
    if word == "l21":
        return float(np.linalg.norm(G, axis=1).max())
    if word == "l12":
        return float(np.linalg.norm(G, axis=0).max())
    if word == "trace":
        return float(np.linalg.norm(G, 2))
    if word == "l1_inf":
        return float(np.abs(G).sum(axis=1).max())
    if word == "group":
        return float(max(np.linalg.norm(G[group]) for group in groups))
    if word == "column_group":
        return float(max(np.linalg.norm(G[:, i : i + 2]) for i in range(0, G.shape[1], 2)))
    return float(np.abs(G).max())


def chain(m: int) -> np.ndarray:
    """The Laplacian of tasks in a row, one after the other."""
    L = 2.0 * np.eye(m) - np.eye(m, k=1) - np.eye(m, k=-1)
    L[0, 0] = L[-1, -1] = 1.0
    return L if m > 1 else np.zeros((1, 1))


def near_solution(model, tasks) -> np.ndarray:
    """Weights of about the size that the loss asks for: one ridge regression a task on its targets (or their logarithms)."""
    y = tasks.targets if model.targets in ("real", "labels") else np.log(tasks.targets + 0.5)
    columns = []
    for i in range(tasks.n_tasks):
        rows = slice(tasks.offsets[i], tasks.offsets[i + 1])
        X, own = np.asarray(tasks.inputs[i]), y[rows]
        if model.intercept:
            X, own = X - X.mean(axis=0), own - own.mean()
        gram = X.T @ X
        gram[np.diag_indices_from(gram)] += 1e-3 * np.trace(gram) / len(gram)
        columns.append(np.linalg.solve(gram, X.T @ own))
    return np.column_stack(columns)


def radius(model, tasks) -> float:
    """The norm, as the model's ball measures it, of those weights."""
    W = near_solution(model, tasks)
    return float(
        {
            "l1_ball": lambda: np.abs(W).sum(),
            "l21_ball": lambda: np.linalg.norm(W, axis=1).sum(),
            "trace_ball": lambda: np.linalg.norm(W, "nuc"),
            "frobenius_ball": lambda: np.linalg.norm(W),
        }[model.constraint]()
    )
