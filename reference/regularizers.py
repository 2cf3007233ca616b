"""The regularizers, from their definitions in cvxpy.

W: an expression (p, q); rows are features, columns are tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.special import erfinv

from mtldsl.reference import backends
from mtldsl.reference.registry import FORMULAS, formula
from mtldsl.utils.memory import require_memory

# --------------------------------------------------------------------------------------------------------------
# Penalties on groups of columns, from their definitions. W: an expression (p, q); the atom tells which columns are a group.
#
#     1/2 sum over groups c of ||W_c||_F^2 / eta_c,   0 <= eta <= 1,   sum eta <= r          (least over eta)
#
# eta are variables beside W. What is least at a given W is found from its condition alone: eta_c = min(1, ||W_c|| / t) for one t.


def _groups(W, atom) -> list[list[int]]:
    if atom.columns is None:
        return [[column] for column in range(W.shape[1])]
    return [list(group) for group in atom.columns]


def _norms(W, atom) -> cp.Expression:
    return cp.hstack([cp.norm(W[:, group], "fro") for group in _groups(W, atom)])


@formula("column_group_norm")
def column_group_norm(W, atom):
    """sum over groups c of a_c ||W_c||_F"""
    return _weighted_sum(atom.weights, _norms(W, atom))


class PenaltyStatement:
    """A penalty of an expression W in variables of its own: `value`, an expression in W and them, with the constraints `ties`."""

    parts = ()  # it splits no weights

    @property
    def expression(self) -> cp.Expression:
        """A convex function of W alone."""
        return self.value + cp.transforms.indicator(self.ties)

    def settle(self) -> None:
        """Give the variables their best values for the value of W."""
        raise NotImplementedError


def stated(word: str, **marks):
    """Class decorator: a `PenaltyStatement` is the definition of the atom that is called `word`."""

    def enter(statement):
        def value(W, atom) -> cp.Expression:
            """The penalty of W alone: its value where W is constant."""
            own = statement(W, atom)
            if not (isinstance(W, cp.Expression) and W.is_constant()):
                return own.expression
            own.settle()
            return cp.Constant(own.value.value)

        formula(word, own_variables=statement, **marks)(value)
        return statement

    return enter


@stated("half_squared_group_norm")
class SquaredSum(PenaltyStatement):
    """The squared group norm: 1/2 s^2, s no less than the sum of the norms. With s a variable the backends reach more digits (measured: a
    prox to 2e-9, without it to 9e-7).
    """

    def __init__(self, W: cp.Expression, atom):
        self.sum, self.of_norms = cp.Variable(name="sum of norms"), cp.sum(_norms(W, atom))
        self.value, self.ties = 0.5 * cp.square(self.sum), [self.of_norms <= self.sum]

    def settle(self) -> None:
        self.sum.value = self.of_norms.value


@stated("half_squared_k_support_norm")
class KSupportShares(PenaltyStatement):
    """The k-support penalty: 1/2 sum ||W_c||_F^2 / eta_c. What is left of r is of no use, so that the shares sum to r (measured: with "no
    more than r" Clarabel fails twice as often).
    """

    def __init__(self, W: cp.Expression, atom):
        self.W, self.groups, self.r = W, _groups(W, atom), atom.r
        self.eta = cp.Variable(len(self.groups), nonneg=True, name="shares of groups")
        self.value = 0.5 * sum(
            cp.quad_over_lin(W[:, group], self.eta[c]) for c, group in enumerate(self.groups)
        )
        self.ties = [self.eta <= 1.0, cp.sum(self.eta) == min(self.r, len(self.groups))]

    def settle(self) -> None:
        W = np.asarray(self.W.value, float)
        norms = np.array([np.linalg.norm(W[:, group]) for group in self.groups])
        # of a group that is zero any share is best, and 0 / 0 is none
        self.eta.value = np.maximum(best_shares(norms, self.r), np.finfo(float).tiny)


def best_shares(norms, r: float) -> np.ndarray:
    """argmin over eta in [0, 1]^q, sum eta <= r, of 1/2 sum norms^2 / eta: min(1, norms / t), by bisection for the t where the sum is r.

    >>> best_shares(np.array([3.0, 1.0, 1.0, 0.0]), 2)
    array([1. , 0.5, 0.5, 0. ])
    """
    norms = np.asarray(norms, float)
    if np.count_nonzero(norms) <= r:
        return (norms > 0).astype(float)
    a = norms / norms.max()
    low, high = 0.0, a.sum() / r  # of the second the sum is at most r
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if np.minimum(1.0, a / middle).sum() > r else (low, middle)
    return np.minimum(1.0, a / high)


def _entry_weights(atom, shape):
    return np.ones(shape) if atom.weights is None else np.broadcast_to(np.asarray(atom.weights, float), shape)


def _weighted_sum(weights, values):
    """The sum of a vector of group norms, each times its weight."""
    if weights is None:
        return cp.sum(values)
    return np.broadcast_to(np.asarray(weights, float).ravel(), values.shape) @ values


def factor(matrix) -> np.ndarray:
    """F with F F^T = matrix, symmetric positive semidefinite: an array, or what an atom keeps of one, eigenvectors (`basis`),
    their eigenvalues (`values`) and that of all other directions (`rest`).
    """
    if hasattr(matrix, "basis"):
        U = np.asarray(matrix.basis, float)
        others = matrix.rest * (np.eye(len(U)) - U @ U.T) if U.shape[1] < len(U) else 0.0
        matrix = U @ np.diag(matrix.values) @ U.T + others
    values, vectors = np.linalg.eigh(np.asarray(matrix, float))
    return vectors * np.sqrt(np.maximum(values, 0.0))


@formula("ridge")
def ridge(W, atom):
    """1/2 sum over entries of w W^2"""
    return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(_entry_weights(atom, W.shape)), W))


@formula("frobenius_norm")
def frobenius_norm(W, atom):
    """sqrt(sum over entries of W^2)"""
    return cp.norm(W, "fro")


@formula("l1_norm")
def l1_norm(W, atom):
    """sum over entries of w |W|"""
    return cp.sum(cp.multiply(_entry_weights(atom, W.shape), cp.abs(W)))


@formula("l21_norm")
def l21_norm(W, atom):
    """sum over rows of w ||row||_2"""
    return _weighted_sum(atom.weights, cp.norm(W, 2, axis=1))


@formula("l12_norm")
def l12_norm(W, atom):
    """sum over columns of w ||column||_2"""
    return _weighted_sum(atom.weights, cp.norm(W, 2, axis=0))


@formula("l1_inf_norm")
def l1_inf_norm(W, atom):
    """sum over rows of w max |row|"""
    return _weighted_sum(atom.weights, cp.max(cp.abs(W), axis=1))


@formula("group_norm")
def group_norm(W, atom):
    """sum over groups g of w_g ||W[g, :]||_F"""
    norms = [cp.norm(W[np.asarray(group), :], "fro") for group in atom.groups]
    return _weighted_sum(atom.weights, cp.hstack(norms))


@formula("exclusive_lasso")
def exclusive_lasso(W, atom):
    """sum over groups g of rows, or rows, of (sum over entries of |W[g, :]|)^2"""
    groups = [[j] for j in range(W.shape[0])] if atom.groups is None else atom.groups
    return cp.sum_squares(cp.hstack([cp.sum(cp.abs(W[np.asarray(group), :])) for group in groups]))


@formula("tree_norm")
def tree_norm(W, atom):
    """sum over groups g of w_g ||W[g, :]||_F, or of w_g ||W[j, g]||_2 over all rows j too"""
    if atom.rows is not None:
        norms = [cp.norm(W[np.asarray(group), :], "fro") for group in atom.rows]
    else:
        norms = [cp.sum(cp.norm(W[:, np.asarray(group)], 2, axis=1)) for group in atom.columns]
    return _weighted_sum(atom.weights, cp.hstack(norms))


@dataclass(frozen=True)
class RefinementSettings:
    """Limit of steps after Clarabel's, which leaves 1e-11 of a norm."""

    refinement_steps: int = 300  # steps at most


SETTINGS = RefinementSettings()


@stated("latent_group_norm")
class LatentGroupParts(PenaltyStatement):
    """min sum over g of a_g ||V_g||_F: the V_g, each on the rows of its group, add up to W."""

    def __init__(self, W, atom):
        self.W, self.atom = W, atom
        self.parts = [
            cp.Variable((len(group), W.shape[1]), name=f"part {g}") for g, group in enumerate(atom.groups)
        ]
        total = sum(_picks(group, W.shape[0]) @ V for group, V in zip(atom.groups, self.parts, strict=True))
        norms = cp.hstack([cp.norm(V, "fro") for V in self.parts])
        self.value, self.ties = _weighted_sum(atom.weights, norms), [total == W]

    def settle(self) -> None:
        """By cvxpy, for a largest entry of one."""
        W = np.asarray(self.W.value, float)
        size = float(np.max(np.abs(W), initial=0.0))
        at = LatentGroupParts(cp.Constant(W / size if size else W), self.atom)
        backends.solve_accurately(cp.Problem(cp.Minimize(at.value), at.ties), cp.Problem.solve)
        # the last digits: every row shared out anew in proportion to a_g / ||V_g||, at which the value never rises
        a = np.broadcast_to(1.0 if self.atom.weights is None else self.atom.weights, len(self.parts))
        held = np.array([_picks(group, len(W)).sum(axis=1) for group in self.atom.groups]).T
        lengths = np.array([np.linalg.norm(V.value) for V in at.parts])
        rows = np.linalg.norm(W, axis=1)
        for _ in range(SETTINGS.refinement_steps):
            shares = held * np.maximum(lengths / a, 1e-300)
            shares /= shares.sum(axis=1, keepdims=True)
            lengths = np.linalg.norm(shares * rows[:, None], axis=0) / (size or 1.0)
        for g, (group, mine) in enumerate(zip(self.atom.groups, self.parts, strict=True)):
            mine.value = (shares[:, g, None] * W)[list(group)]


def _picks(group, n_rows: int) -> np.ndarray:
    """(n_rows, rows of the group): V -> the matrix with its rows in their places."""
    return np.eye(n_rows)[:, list(group)]


@stated("squared_cluster_norm", semidefinite=True)
class BoundedCovariance(PenaltyStatement):
    """min tr T: [[T, W], [W^T, S]] positive semidefinite, lower I <= S <= upper I, tr S <= trace."""

    def __init__(self, W, atom):
        self.W, self.atom, (d, m) = W, atom, W.shape
        self.both = cp.Variable((d + m, d + m), PSD=True, name="quadratic form and covariance")
        S = self.both[d:, d:]
        self.value = cp.trace(self.both[:d, :d])
        self.ties = [self.both[:d, d:] == W, cp.trace(S) <= atom.trace]
        self.ties += [S >> atom.lower * np.eye(m)] if atom.lower else []
        self.ties += [S << atom.upper * np.eye(m)] if np.isfinite(atom.upper) else []

    def settle(self) -> None:
        """In the singular vectors of W: the multiplier of the trace by bisection of its logarithm, from the conditions of Karush, Kuhn and
        Tucker."""
        W, d = np.asarray(self.W.value, float), self.W.shape[0]
        U, sizes, Vt = np.linalg.svd(W)
        U, all_sizes = U[:, : len(sizes)], np.append(sizes, np.zeros(len(Vt) - len(sizes)))
        low, high = -600.0, 600.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            total = np.clip(all_sizes * np.exp(-middle), self.atom.lower, self.atom.upper).sum()
            low, high = (middle, high) if total > self.atom.trace else (low, middle)
        v = np.clip(all_sizes * np.exp(-high), self.atom.lower, self.atom.upper)
        parts = np.divide(sizes**2, v[: len(sizes)], out=np.zeros(len(sizes)), where=sizes > 0)
        both = np.zeros(self.both.shape)
        both[:d, :d], both[:d, d:], both[d:, :d] = (U * parts) @ U.T, W, W.T
        both[d:, d:] = (Vt.T * v) @ Vt
        values, vectors = np.linalg.eigh(0.5 * (both + both.T))  # positive semidefinite but for rounding
        if sizes.any():
            both = (vectors * np.maximum(values, 1e-15 * values[-1])) @ vectors.T
        self.both.value = 0.5 * (both + both.T)


@formula("sorted_l1_norm")
def sorted_l1_norm(W, atom):
    """sum over k of a_k times the k-th largest |entry|: sum over k of (a_k - a_(k+1)) times the sum of the k largest"""
    n, level = W.shape[0] * W.shape[1], 0.1 if atom.q is None else atom.q
    quantiles = np.sqrt(2.0) * erfinv(
        1.0 - level * np.arange(1, n + 1) / n
    )  # of the normal distribution, 1 - level k / 2n
    a = quantiles if atom.weights is None else np.broadcast_to(np.asarray(atom.weights, float), n)
    drops = a - np.append(a[1:], 0.0)
    return sum(drops[k - 1] * cp.sum_largest(cp.abs(W), k) for k in range(1, n + 1) if drops[k - 1])


@stated("max_norm", semidefinite=True)
class BoundedFactors(PenaltyStatement):
    """min t: [[P, W], [W^T, Q]] positive semidefinite, no diagonal entry above t."""

    def __init__(self, W, atom):
        self.W, (p, q) = W, W.shape
        self.t = cp.Variable(name="longest row")
        self.gram = cp.Variable((p + q, p + q), PSD=True, name="products of rows")
        self.value, self.ties = self.t, [self.gram[:p, p:] == W, cp.diag(self.gram) <= self.t]

    def settle(self) -> None:
        """By cvxpy, for a largest entry of one."""
        W = np.asarray(self.W.value, float)
        size = float(np.max(np.abs(W), initial=0.0))
        if size == 0.0:
            self.t.value, self.gram.value = 0.0, np.zeros(self.gram.shape)
            return
        at = BoundedFactors(cp.Constant(W / size), None)
        backends.solve_accurately(cp.Problem(cp.Minimize(at.value), at.ties), cp.Problem.solve)
        values, vectors = np.linalg.eigh(at.gram.value)  # positive semidefinite but for rounding
        self.t.value = size * at.t.value
        self.gram.value = size * (vectors * np.maximum(values, 0.0)) @ vectors.T


@formula("trace_norm", semidefinite=True)
def trace_norm(W, atom):
    """sum of the singular values"""
    return cp.normNuc(W)


@formula("spectral_norm", semidefinite=True)
def spectral_norm(W, atom):
    """the largest singular value"""
    return cp.sigma_max(W)


@formula("squared_trace_norm", semidefinite=True)
def squared_trace_norm(W, atom):
    """(sum of the singular values)^2"""
    return cp.square(cp.normNuc(W))


@formula("feature_covariance_norm", semidefinite=True)
@formula("task_covariance_norm", semidefinite=True)
def covariance_norm(W, atom):
    """min over D, tr D <= c, of tr(W^T D^-1 W), or of tr(W D^-1 W^T): (sum of the singular values)^2 / c; D kept: see structures.py"""
    return squared_trace_norm(W, atom) / atom.covariance.trace


@formula("graph_laplacian")
def graph_laplacian(W, atom):
    """1/2 tr(W L W^T), through any factor L = F F^T"""
    return 0.5 * cp.sum_squares(W @ factor(atom.L))


@formula("kronecker_ridge")
def kronecker_ridge(W, atom):
    """1/2 tr(A W B W^T), through any factors A = F F^T and B = G G^T: 1/2 ||F^T W G||_F^2"""
    return 0.5 * cp.sum_squares(factor(atom.rows).T @ W @ factor(atom.columns))


@formula("mean_regularizer")
def mean_regularizer(W, atom):
    """1/2 sum over columns of ||column - mean of the columns||^2"""
    d, n = W.shape
    require_memory(32.0 * d * n * n, f"the reference's quadratic between {n:,} tasks", "take fewer tasks")
    return 0.5 * cp.sum_squares(W - W @ np.full((n, n), 1.0 / n))


@formula("total_variation")
def total_variation(W, atom):
    """sum over neighbouring columns of ||difference||_1"""
    n = W.shape[1]
    differences = sp.diags_array([-np.ones(n), np.ones(n)], offsets=[0, -1], shape=(n, n - 1)).tocsr()
    return cp.sum(cp.abs(W @ differences)) if n > 1 else cp.Constant(0.0)


# --------------------------------------------------------------------------------------------------------------
# The sets, from their definitions, as lists of cvxpy constraints on W, an expression (p, q).


def _bounded(W, bound):
    """The entries of W and of the bound where there is one: an infinite bound is not a bound."""
    bound = np.broadcast_to(np.asarray(bound, float), W.shape)
    if np.all(np.isfinite(bound)):
        return W, bound
    where = np.flatnonzero(np.isfinite(bound).ravel(order="F"))
    return cp.vec(W, order="F")[where], bound.ravel(order="F")[where]


@formula("at_least")
def at_least(W, atom):
    """W >= bound, entry by entry"""
    W, bound = _bounded(W, atom.bound)
    return [bound <= W] if bound.size else []


@formula("at_most")
def at_most(W, atom):
    """W <= bound, entry by entry"""
    W, bound = _bounded(W, atom.bound)
    return [bound >= W] if bound.size else []


@formula("equal_to")
def equal_to(W, atom):
    """W = value, entry by entry"""
    return [np.broadcast_to(np.asarray(atom.bound, float), W.shape) == W]


@formula("norm_ball")
def norm_ball(W, atom):
    """the norm, by its own definition, <= radius"""
    return [FORMULAS.of(atom.of.name, atom.of.name)(W, atom.of) <= atom.radius]


@formula("columns_on_simplex")
def columns_on_simplex(W, atom):
    """every column >= 0 and with sum total"""
    return [W >= 0, cp.sum(W, axis=0) == atom.total]
