"""Plain formulas of regularizers, constraint sets and learned structures, as functions of a matrix W (p, q)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mtldsl.certificates.plain.plain_formula import SETTINGS, defined


def _weighted(weights, values):
    """Add up values, each times its weight where there are any."""
    return np.sum(values if weights is None else np.asarray(weights) * values)


def _lengths(W, axis):
    return np.sqrt(np.sum(W * W, axis=axis))


def _symmetric(matrix) -> np.ndarray:
    """Return an array; the language may keep eigenvectors, their eigenvalues, and that of all other directions."""
    return spectrum_of(matrix).dense() if hasattr(matrix, "basis") else np.asarray(matrix, float)


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


@defined("exclusive_lasso", "matrix")
def exclusive_lasso(W, atom):
    """sum over groups of rows, or rows, of (sum |W_g|)^2"""
    sums = np.sum(np.abs(W), axis=1)
    return np.sum(np.square(sums if atom.groups is None else [np.sum(sums[list(g)]) for g in atom.groups]))


@defined("tree_norm", "matrix")
def tree_norm(W, atom):
    """sum over groups of rows of a ||W[g, :]||_F, or over rows and groups of columns of a ||W[j, g]||"""
    if atom.rows is not None:
        return _weighted(atom.weights, np.array([np.linalg.norm(W[list(g)]) for g in atom.rows]))
    return _weighted(atom.weights, np.array([np.sum(_lengths(W[:, list(g)], 1)) for g in atom.columns]))


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
    for _ in range(SETTINGS.bound_steps):
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
    for _ in range(SETTINGS.bound_steps):
        U, s, Vt = np.linalg.svd(np.sqrt(p)[:, None] * W * np.sqrt(q), full_matrices=False)
        rows, columns = (U * U) @ s / p, (Vt.T * Vt.T) @ s / q
        low, high = max(low, s.sum()), min(high, np.sqrt(rows.max() * columns.max()))
        if high - low <= 1e-7 * high:
            break
        # longer rows count for more; none of them for nothing
        p, q = (0.999999 * x / x.sum() + 1e-6 / x.size for x in (p * rows**2, q * columns**2))
    return size * low, size * high


def _sizes(W, atom):
    return _lengths(W, 1) if atom.rows else np.abs(W)


@defined("mcp", "matrix")
def mcp(W, atom):
    """sum of t - t^2 / (2 gamma) up to gamma, then gamma / 2"""
    t = np.minimum(_sizes(W, atom), atom.gamma)
    return np.sum(t * (1.0 - t / (2.0 * atom.gamma)))


@defined("scad", "matrix")
def scad(W, atom):
    """sum of t up to 1, t - (t - 1)^2 / (2 (a - 1)) up to a, then (a + 1) / 2"""
    t, a = _sizes(W, atom), atom.a
    bent = np.minimum(t, a) - np.square(np.clip(t, 1.0, a) - 1.0) / (2.0 * (a - 1.0))
    return np.sum(bent)


@defined("capped_l1", "matrix")
def capped_l1(W, atom):
    """sum of min(t, tau)"""
    return np.sum(np.minimum(_sizes(W, atom), atom.tau))


# --------------------------------------------------------------------------------------------------------------
# Functions of singular values. s: those of W (p, q), largest first, and zeros up to p of them; W: the matrix itself.

#: Below this share of the largest a singular value is zero but for rounding; a steep penalty would see it.
_ROUNDING_SHARE = 1e-14

#: Below this share of the largest it does not count in the rank, as the word says of itself.
_RANK_SHARE = 1e-10


def singular_values(W) -> np.ndarray:
    """Return those of W (p, q), largest first."""
    return np.linalg.svd(W, compute_uv=False) if np.any(W) else np.zeros(min(W.shape))


def _seen(s, share: float, eps: float = 0.0):
    return s if eps else np.where(s > share * s.max(initial=0.0), s, 0.0)


@defined("trace_norm", "spectrum")
def trace_norm(s, atom):
    """s"""
    return s


@defined("spectral_norm", "matrix")
def spectral_norm(W, atom):
    """the largest singular value"""
    return singular_values(W)[0]


@defined("squared_trace_norm", "matrix")
def squared_trace_norm(W, atom):
    """(sum of the singular values)^2"""
    return np.sum(singular_values(W)) ** 2


@defined("rank", "spectrum")
def rank(s, atom):
    """1 where s > 0"""
    return (_seen(s, _RANK_SHARE) > 0.0).astype(float)


@defined("log_rank", "spectrum")
def log_rank(s, atom):
    """log(1 + sqrt(s^2 + eps))"""
    return np.log1p(np.sqrt(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps))


@defined("capped_trace_norm", "spectrum")
def capped_trace_norm(s, atom):
    """min(sqrt(s^2 + eps), tau)"""
    return np.minimum(np.sqrt(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps), atom.tau)


@defined("schatten_norm", "spectrum")
def schatten_norm(s, atom):
    """sqrt(s^2 + eps)^p"""
    return np.sqrt(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps) ** atom.p


@defined("spectral_penalty", "spectrum")
def spectral_penalty(s, atom):
    """r(s^2 + eps), r the user's"""
    return np.asarray(atom.function(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps), float)


@defined("squared_cluster_norm", "matrix")
def squared_cluster_norm(W, atom):
    """min of sum s^2 / v over lower <= v <= upper with sum at most trace: v = clip(x s), x by bisection of its logarithm"""
    s = singular_values(W)
    s, trace = s[s > 0.0], atom.trace - atom.lower * (W.shape[1] - np.count_nonzero(s))
    if not s.size:
        return 0.0
    shares, low, high = s / s[0], -400.0, 400.0
    if atom.upper * s.size > trace:
        for _ in range(200):
            middle = 0.5 * (low + high)
            v = np.clip(shares * np.exp(middle), atom.lower, atom.upper)
            low, high = (low, middle) if v.sum() > trace else (middle, high)
        v = np.clip(shares * np.exp(low), atom.lower, atom.upper)
    else:
        v = np.full(s.size, float(atom.upper))
    return np.sum(s * (s / v))


# --------------------------------------------------------------------------------------------------------------
# Sets: how far W (p, q) is outside, in the units typed.


def largest_excess(W, bound):
    """Return the largest W - bound, or 0."""
    with np.errstate(invalid="ignore"):
        return np.max(W - bound, initial=0.0)


def largest_difference(W, value):
    """Return the largest |W - value|."""
    return np.max(np.abs(W - value), initial=0.0)


@defined("at_least", "set")
def at_least(W, atom):
    """bound - W"""
    return largest_excess(-W, -np.asarray(atom.bound))


@defined("at_most", "set")
def at_most(W, atom):
    """W - bound"""
    return largest_excess(W, atom.bound)


@defined("equal_to", "set")
def equal_to(W, atom):
    """|W - bound|"""
    return largest_difference(W, atom.bound)


@defined("columns_on_simplex", "set")
def columns_on_simplex(W, atom):
    """-W, and |sum of a column - total|"""
    return max(largest_excess(-W, 0.0), largest_difference(W.sum(axis=0), atom.total))


@defined("rank_at_most", "set")
def rank_at_most(W, atom):
    """the norm of the singular values beyond the rank"""
    return np.sqrt(np.sum(np.square(singular_values(W)[int(atom.radius) :])))


# --------------------------------------------------------------------------------------------------------------
# Penalties with what they learn beside the weights. W (p, q); a matrix S is (basis, values, rest), as solutions hold it, or an array.

#: Up to this share of the squared length of W, what a singular covariance leaves no room for is rounding.
_OUTSIDE_SHARE = 1e-13

#: Likewise of its length, where kernels leave none.
_BEYOND_SHARE = 1e-7


class PlainSpectrum(NamedTuple):
    """U diag(values) U^T + rest (I - U U^T)."""

    basis: np.ndarray
    values: np.ndarray
    rest: float

    @property
    def n_rest(self) -> int:
        return len(self.basis) - len(self.values)

    def form(self, W, power: int) -> float:
        """Return tr(W^T S^power W), power 1 or -1; +inf where S has no inverse on a part of W."""
        along = self.basis.T @ W
        parts = np.append(np.sum(along**2, axis=1), np.sum(np.square(W - self.basis @ along)))
        values = np.append(self.values, self.rest if self.n_rest else 1.0)
        parts = parts if self.n_rest else np.append(parts[:-1], 0.0)
        if power > 0:
            return float(parts @ values)
        held = values > 0.0
        if np.sum(parts[~held]) > _OUTSIDE_SHARE * np.sum(parts):
            return np.inf
        return float(np.sum(parts[held] / values[held]))

    def log_determinant(self) -> float:
        rest = self.n_rest * np.log(self.rest) if self.n_rest else 0.0
        return float(np.sum(np.log(self.values)) + rest)

    def dense(self) -> np.ndarray:
        return (self.basis * (self.values - self.rest)) @ self.basis.T + self.rest * np.eye(len(self.basis))

    def root(self, W) -> np.ndarray:
        """Return S^1/2 W."""
        along = self.basis.T @ W
        found = self.basis @ (np.sqrt(self.values)[:, None] * along)
        return found + (np.sqrt(self.rest) * (W - self.basis @ along) if self.n_rest else 0.0)


def spectrum_of(matrix: Any) -> PlainSpectrum:
    """Return that of an array, or of what holds `basis`, `values` and `rest`."""
    if hasattr(matrix, "basis"):
        rest = float(matrix.rest) if matrix.basis.shape[1] < len(matrix.basis) else 0.0
        return PlainSpectrum(np.asarray(matrix.basis, float), np.asarray(matrix.values, float), rest)
    values, basis = np.linalg.eigh(np.asarray(matrix, float))
    return PlainSpectrum(basis, values, 0.0)


def _size_of_prior(W, matrices, atom):
    logs = [
        count * (np.sum(np.abs(np.log(S.values))) + S.n_rest * abs(np.log(S.rest or 1.0)))
        for count, S in zip(W.shape[::-1], matrices, strict=True)
    ]
    return atom.eta * matrices[1].form(matrices[0].root(W).T, 1) + atom.rho * sum(logs)


@defined("matrix_normal", "kept", size=_size_of_prior)
def matrix_normal(W, matrices, atom):
    """eta tr(Sigma1 W Sigma2 W^T) - rho (m log|Sigma1| + d log|Sigma2|)"""
    first, second = matrices
    logs = W.shape[1] * first.log_determinant() + W.shape[0] * second.log_determinant()
    return atom.eta * second.form(first.root(W).T, 1) - atom.rho * logs


@defined("feature_covariance_norm", "kept")
def feature_covariance_norm(W, matrices, atom):
    """tr(W^T D^-1 W)"""
    return matrices[0].form(W, -1)


@defined("task_covariance_norm", "kept")
def task_covariance_norm(W, matrices, atom):
    """tr(W Omega^-1 W^T)"""
    return matrices[0].form(W.T, -1)


@defined("mkl_norm", "kept")
def mkl_norm(W, matrices, atom):
    """1/2 tr(W K^+ W^T), K the sum of theta_k B_k B_k^T over the kernels that act on a row"""
    theta, T, total, beyond = np.asarray(matrices[0], float), W.shape[1], 0.0, 0.0
    if SETTINGS.kernel_tasks < T:
        return None
    acts = np.ones((len(W), len(theta)), bool)
    for k, kernel in enumerate(atom.kernels):
        if kernel.columns is not None:
            acts[:, k] = False
            acts[kernel.columns, k] = True
    for pattern in np.unique(acts, axis=0):
        rows, used = W[np.all(acts == pattern, axis=1)], np.flatnonzero(pattern & (theta > 0.0))
        if not used.size:
            beyond += float(np.sum(rows * rows))
            continue
        B = sparse.hstack([np.sqrt(theta[k]) * atom.kernels[k].factor for k in used], format="csr")
        value, outside = _inverse_form(rows, (B @ B.T).toarray())
        total, beyond = total + 0.5 * value, beyond + outside
    return total if beyond <= _BEYOND_SHARE**2 * np.sum(W * W) else np.inf


def _inverse_form(W, K) -> tuple[float, float]:
    """Return (tr(W K^+ W^T), the squared length of what of W lies outside the range of K)."""
    from scipy.linalg import solve_triangular  # slow to import: where it is first used

    try:
        L = np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        L = np.zeros_like(K)
    pivots = np.diag(L)
    if pivots.min() > SETTINGS.pivot_share * pivots.max():
        return float(np.sum(np.square(solve_triangular(L, W.T, lower=True)))), 0.0
    values, basis = np.linalg.eigh(K)
    held, along = values > 1e-14 * len(K) * values[-1], W @ basis
    return float(np.sum(along[:, held] ** 2 / values[held])), float(np.sum(along[:, ~held] ** 2))
