"""Solutions of lesson 1, and mistakes that its checks have to notice."""

import numpy as np


def best_multiple(u, X, y, lam):
    """D(s u) = -s <u, y> - s^2 (||u||^2 + ||X'u||^2 / lam) / 2: where its derivative in s is 0."""
    return -(u @ y) / (u @ u + np.sum((X.T @ u) ** 2) / lam)


best_multiple.mistakes = [
    lambda u, X, y, lam: 1.0,
    lambda u, X, y, lam: (u @ y) / (u @ u + np.sum((X.T @ u) ** 2) / lam),
    lambda u, X, y, lam: -(u @ y) / (u @ u),
]


def longest_step(X, lam):
    """The error along an eigenvector of eigenvalue e is multiplied by 1 - step (e + lam).

    That is above -1 for all of them where it is for the largest: step < 2 / (e_max + lam).
    """
    return 2 / (np.linalg.norm(X, 2) ** 2 + lam)


longest_step.mistakes = [
    lambda X, lam: 1 / (np.linalg.norm(X, 2) ** 2 + lam),
    lambda X, lam: 2 / (np.linalg.norm(X) ** 2 + lam),
]


def multipliers(weights, b, X, y):
    """The residuals, with the intercept in them: without it they do not sum to zero."""
    return X @ weights + b - y


multipliers.mistakes = [
    lambda weights, b, X, y: X @ weights - y,
    lambda weights, b, X, y: y - X @ weights - b,
]
