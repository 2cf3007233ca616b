"""Solutions of lesson 3, and mistakes that its checks have to notice."""

import numpy as np


def prox_of_trace_norm(A, step):
    """A diagonal A is enough: its entries are shrunk one by one, as |x| asks."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U * np.maximum(s - step, 0)) @ Vt


def _keep_large(A, step):
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U * np.where(s > step, s, 0)) @ Vt


prox_of_trace_norm.mistakes = [
    lambda A, step: np.sign(A) * np.maximum(np.abs(A) - step, 0),
    _keep_large,
]


def dual_norm(G):
    """The largest singular value: <G, W> = sum sigma_k u_k'G v_k <= sigma_1(G) sum sigma_k."""
    return np.linalg.norm(G, 2)


dual_norm.mistakes = [
    lambda G: np.linalg.norm(G),
    lambda G: np.linalg.norm(G, "nuc"),
    lambda G: np.abs(G).max(),
]


def rank_from(spectrum, lam):
    """The patterns in use have exactly lam; what is unused stays below, but for rounding."""
    return int(np.sum(spectrum > (1 - 1e-4) * lam))


rank_from.mistakes = [
    lambda spectrum, lam: int(np.sum(spectrum > 1e-9)),
    lambda spectrum, lam: int(np.sum(spectrum > 0.5 * lam)),
]
