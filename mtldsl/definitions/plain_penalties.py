"""Penalties of a matrix W (p, q), and norms, whose balls are constraints."""

from __future__ import annotations

import numpy as np

from mtldsl.definitions.formula import defined

__all__: list[str] = []


def _weighted(weights, values):
    """Add up values, each times its weight where there are any."""
    return np.sum(values if weights is None else np.asarray(weights) * values)


def _lengths(W, axis):
    return np.sqrt(np.sum(W * W, axis=axis))


def _symmetric(matrix) -> np.ndarray:
    """Return an array; the language may keep eigenvectors, their eigenvalues, and that of all other directions."""
    if not hasattr(matrix, "basis"):
        return np.asarray(matrix, float)
    U, rest = matrix.basis, matrix.rest if matrix.basis.shape[1] < len(matrix.basis) else 0.0
    return (U * (matrix.values - rest)) @ U.T + rest * np.eye(len(U))


@defined("ridge", "matrix")
def ridge(W, atom):
    """1/2 sum a W^2"""
    return 0.5 * _weighted(atom.weights, W * W)


@defined("frobenius_norm", "matrix")
def frobenius_norm(W, atom):
    """sqrt(sum W^2)"""
    size = np.max(np.abs(W), initial=0.0)
    return size * np.sqrt(np.sum(np.square(W / size))) if size > 0.0 else size


@defined("l1_norm", "matrix")
def l1_norm(W, atom):
    """sum a |W|"""
    return _weighted(atom.weights, np.abs(W))


@defined("sorted_l1_norm", "matrix")
def sorted_l1_norm(W, atom):
    """sum_k a_k times the k-th largest |W_ij|; of a level q the a_k are normal quantiles of 1 - q k / 2n"""
    n, level = W.size, 0.1 if atom.q is None else atom.q
    a = atom.weights
    if a is None:
        from scipy.special import erfinv  # slow to import: where it is first used

        a = np.sqrt(2.0) * erfinv(1.0 - level * np.arange(1, n + 1) / n)
    return np.sum(a * np.sort(np.abs(W).ravel())[::-1])


@defined("l21_norm", "matrix")
def l21_norm(W, atom):
    """sum over rows of a ||row||"""
    return _weighted(atom.weights, _lengths(W, 1))


@defined("l12_norm", "matrix")
def l12_norm(W, atom):
    """sum over columns of a ||column||"""
    return _weighted(atom.weights, _lengths(W, 0))


@defined("l1_inf_norm", "matrix")
def l1_inf_norm(W, atom):
    """sum over rows of a max |row|"""
    return _weighted(atom.weights, np.abs(W).max(axis=1, initial=0.0))


@defined("group_norm", "matrix")
def group_norm(W, atom):
    """sum over groups of rows of a ||W[g, :]||_F"""
    squares = np.sum(W * W, axis=1)
    return _weighted(atom.weights, np.sqrt([np.sum(squares[list(g)]) for g in atom.groups]))


@defined("tree_norm", "matrix")
def tree_norm(W, atom):
    """sum over groups of rows of a ||W[g, :]||_F, or over rows and groups of columns of a ||W[j, g]||"""
    if atom.rows is not None:
        return _weighted(atom.weights, np.array([np.linalg.norm(W[list(g)]) for g in atom.rows]))
    return _weighted(atom.weights, np.array([np.sum(_lengths(W[:, list(g)], 1)) for g in atom.columns]))


#: Steps after which a minimum is known to lie between two bounds, however far these are from each other.
_BOUND_STEPS = 200


@defined("latent_group_norm", "between", within=1e-9)
def latent_group_norm(W, atom):
    """(max <Z, W> over ||Z[g, :]||_F <= a_g, min sum a_g ||V_g||_F over parts that add up to W): rows are shared out to groups by sizes"""
    rows = _lengths(W, 1)
    size = rows.max(initial=0.0)
    if size == 0.0:
        return 0.0, 0.0
    rows = rows / size
    a = np.broadcast_to(1.0 if atom.weights is None else atom.weights, len(atom.groups)).astype(float)
    held = np.zeros((len(rows), len(a)))
    for g, group in enumerate(atom.groups):
        held[list(group), g] = 1.0
    lengths, low, high = np.sqrt(rows**2 @ held), 0.0, np.inf
    for _ in range(_BOUND_STEPS):
        sizes = held * np.maximum(lengths / a, 1e-300)
        total = sizes.sum(axis=1)
        z = rows / total
        lengths = np.sqrt(z**2 @ sizes**2)
        high = min(high, a @ lengths)
        low = max(low, (rows @ z) / np.max(np.sqrt(z**2 @ held) / a))
        if high - low <= 1e-10 * high:
            break
    return size * low, size * high


@defined("column_group_norm", "matrix")
def column_group_norm(W, atom):
    """sum over groups of columns of a ||W_c||_F"""
    return _weighted(atom.weights, _of_column_groups(W, atom))


@defined("half_squared_group_norm", "matrix")
def half_squared_group_norm(W, atom):
    """1/2 (sum over groups of columns of ||W_c||_F)^2"""
    return 0.5 * np.sum(_of_column_groups(W, atom)) ** 2


@defined("half_squared_k_support_norm", "matrix")
def half_squared_k_support_norm(W, atom):
    """min over 0 <= eta <= 1, sum eta <= r, of 1/2 sum ||W_c||^2 / eta_c: the largest groups have eta = 1, the others share what is left"""
    a, r = np.sort(_of_column_groups(W, atom))[::-1], int(atom.r)
    if len(a) <= r:
        return 0.5 * np.sum(a * a)
    tails = np.cumsum(a[::-1])[::-1][:r]
    full = np.append(0.0, np.cumsum(a * a))[:r]
    room = r - np.arange(r)
    fits = a[:r] * room <= tails * (1.0 + 1e-12)
    return 0.5 * np.min((full + tails**2 / room)[fits])


def _of_column_groups(W, atom):
    squares = np.sum(W * W, axis=0)
    return np.sqrt(squares if atom.columns is None else [np.sum(squares[list(c)]) for c in atom.columns])


@defined("mean_regularizer", "matrix")
def mean_regularizer(W, atom):
    """1/2 sum over columns of ||column - mean of the columns||^2"""
    return 0.5 * np.sum(np.square(W - W.mean(axis=1, keepdims=True)))


@defined("total_variation", "matrix")
def total_variation(W, atom):
    """sum of |W[:, i + 1] - W[:, i]|"""
    return np.sum(np.abs(W[:, 1:] - W[:, :-1]))


def _form(rows, W, columns):
    """1/2 sum of (rows W columns) * W, None standing for the identity."""
    left = W if rows is None else rows @ W
    return 0.5 * np.sum((left @ columns) * W)


@defined("graph_laplacian", "matrix", size=lambda W, atom: _form(None, np.abs(W), np.abs(_symmetric(atom.L))))
def graph_laplacian(W, atom):
    """1/2 tr(W L W^T)"""
    return _form(None, W, _symmetric(atom.L))


def _size_of_kronecker(W, atom):
    return _form(np.abs(_symmetric(atom.rows)), np.abs(W), np.abs(_symmetric(atom.columns)))


@defined("kronecker_ridge", "matrix", size=_size_of_kronecker)
def kronecker_ridge(W, atom):
    """1/2 tr(A W B W^T)"""
    return _form(_symmetric(atom.rows), W, _symmetric(atom.columns))


@defined("max_norm", "between", within=1e-6)
def max_norm(W, atom):
    """(the trace norm of diag(sqrt p) W diag(sqrt q) for p, q of sum 1, how long rows of factors of W are that these make)"""
    size = np.max(np.abs(W), initial=0.0)
    if size == 0.0:
        return 0.0, 0.0
    W = W[np.any(W, axis=1)][:, np.any(W, axis=0)] / size
    p, q = (np.full(n, 1.0 / n) for n in W.shape)
    low, high = 0.0, np.inf
    for _ in range(_BOUND_STEPS):
        U, s, Vt = np.linalg.svd(np.sqrt(p)[:, None] * W * np.sqrt(q), full_matrices=False)
        rows, columns = (U * U) @ s / p, (Vt.T * Vt.T) @ s / q
        low, high = max(low, s.sum()), min(high, np.sqrt(rows.max() * columns.max()))
        if high - low <= 1e-7 * high:
            break
        # longer rows count for more; none of them for nothing
        p, q = (0.999999 * x / x.sum() + 1e-6 / x.size for x in (p * rows**2, q * columns**2))
    return size * low, size * high
