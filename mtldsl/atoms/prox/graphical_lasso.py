"""The graphical lasso: a sparse precision matrix, to the accuracy of rounding, with a duality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mtldsl.utils.parallel import on_one_blas_thread

# --------------------------------------------------------------------------------------------------------------
# The graphical lasso by an interior point method on its dual: for matrices near to singular, where descent takes long.


@dataclass(frozen=True)
class GraphicalLassoSettings:
    """Limits of the central path and of Newton's descent.

    path_tasks          : side up to which the path is followed: the system has a row for each of 2,016 entries above the diagonal
    path_steps          : steps of the path
    edge_share          : part of the way to the edge that a step goes
    aim_share           : part of the complementarity that a step aims at
    complementarity_tol : complementarity that rounding leaves, relative to the gap's scale n
    slope_tol           : largest slope at which descent ends, in the units in which the diagonal of S is 1
    rounding_slope_tol  : largest slope that rounding may leave
    short_descent_steps : steps of a descent that the path may replace
    descent_steps       : steps of another one
    direct_entries      : free entries up to which Newton's system is solved directly, else by conjugate gradients
    cg_iterations       : iterations of these
    step_halvings       : halvings of a step before another kind is tried
    """

    path_tasks: int = 64
    path_steps: int = 80
    edge_share: float = 0.95
    aim_share: float = 0.1
    complementarity_tol: float = 1e-14
    slope_tol: float = 1e-13
    rounding_slope_tol: float = 1e-9
    short_descent_steps: int = 30
    descent_steps: int = 500
    direct_entries: int = 1200
    cg_iterations: int = 60
    step_halvings: int = 40


SETTINGS = GraphicalLassoSettings()


def central_path(A, r: float) -> np.ndarray:
    """Nearly the minimiser of `graphical_lasso`, with exact zeros: of a matrix near to singular too.

    Primal-dual steps on max log|A + U|, |U_ij| <= r, U_ii = r. With W = (A + U)^-1 the conditions are
    W_ij = z+ - z-, z+ (r - U_ij) = z- (r + U_ij) = mu, with mu -> 0. Entries whose multipliers z vanish faster than their
    distance to the bounds are zero.
    """
    n = len(A)
    rows, columns = np.triu_indices(n, 1)
    K = A + r * np.eye(n)
    W = np.linalg.inv(K)
    above, below, here = np.full(len(rows), r), np.full(len(rows), r), W[rows, columns]
    least = np.abs(here).max(initial=0.0) + 1e-3 / r
    over, under = np.maximum(here, 0.0) + least, np.maximum(-here, 0.0) + least
    for _ in range(SETTINGS.path_steps):
        complementarity = float(over @ above + under @ below) / max(2 * len(rows), 1)
        residual = np.abs(here - over + under) * np.sqrt(K[rows, rows] * K[columns, columns])
        if (
            complementarity * len(rows) <= SETTINGS.complementarity_tol * n
            and residual.max(initial=0.0) <= 1e-10
        ):
            break
        mu = SETTINGS.aim_share * complementarity
        system = W[np.ix_(rows, rows)] * W[np.ix_(columns, columns)]
        across = W[np.ix_(rows, columns)]
        system += across * across.T
        system[np.diag_indices(len(rows))] += over / above + under / below
        try:
            factor = cho_factor(system, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # rounding
            break
        du = cho_solve(factor, here - mu / above + mu / below, check_finite=False)
        d_over = mu / above - over + over * du / above
        d_under = mu / below - under - under * du / below
        moves = ((above, -du), (below, du), (over, d_over), (under, d_under))
        step = min(1.0, *(SETTINGS.edge_share * _longest(x, dx) for x, dx in moves))
        D = np.zeros((n, n))
        D[rows, columns] = D[columns, rows] = du
        # the smallest eigenvalue of K^-1/2 D K^-1/2 says how far K stays positive definite
        root = np.linalg.cholesky(W)
        lowest = float(np.linalg.eigvalsh(root.T @ D @ root)[0])
        step = min(step, SETTINGS.edge_share / -lowest) if lowest < 0.0 else step
        above, below = above - step * du, below + step * du
        over, under = over + step * d_over, under + step * d_under
        K = K + step * D
        W = np.linalg.inv(K)
        W = 0.5 * (W + W.T)
        here = W[rows, columns]
    zero = np.abs(here) * np.sqrt(K[rows, rows] * K[columns, columns]) < np.minimum(above, below) / r
    S = W.copy()
    S[rows[zero], columns[zero]] = S[columns[zero], rows[zero]] = 0.0
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return W
    return S


def _longest(x, dx) -> float:
    """The longest step for which x stays positive."""
    falls = dx < 0.0
    return float(np.min(-x[falls] / dx[falls], initial=np.inf))


class SparseInverse(NamedTuple):
    """Result of `graphical_lasso`."""

    matrix: np.ndarray  # S, symmetric positive definite, its zeros exact
    gap: float  # the objective at S is above its minimum by this at most


@on_one_blas_thread
def graphical_lasso(A, r: float) -> SparseInverse:
    r"""argmin over symmetric positive definite S of tr(A S) - log|S| + r sum_ij |S_ij|.

    The sum is over all entries, the diagonal too, so that there is a minimum for every positive semidefinite A (n, n) and r > 0.

    A : array (n, n), symmetric positive semidefinite
    r : number > 0

    Newton's method on the entries that are not zero, or whose slope says that they should not be, each kept on its side of zero;
    where such a step does not go down, a proximal gradient step. Where that takes long (S near to singular), the central path is
    followed to where these steps are few. The gap is from the dual point K = A + U, |U_ij| <= r, next to S^-1:
    log|K| + n is a lower bound of the minimum.
    Source: Friedman, Hastie and Tibshirani, "Sparse inverse covariance estimation with the graphical lasso", Biostatistics 9
    (2008), for the problem and its dual; Hsieh, Dhillon, Ravikumar and Sustik, "QUIC", JMLR 15 (2014), for Newton steps on free entries.

    >>> import numpy as np
    >>> A = np.array([[2.0, 0.9, 0.1], [0.9, 2.0, 0.1], [0.1, 0.1, 1.0]])
    >>> S, gap = graphical_lasso(A, 0.2)
    >>> S.round(4)
    array([[ 0.5057, -0.1609,  0.    ],
           [-0.1609,  0.5057,  0.    ],
           [ 0.    ,  0.    ,  0.8333]])
    >>> int((S == 0).sum()), gap < 1e-12
    (4, True)
    """
    A = 0.5 * (np.asarray(A, float) + np.transpose(A))
    B = A + r * np.eye(len(A))  # the diagonal of S is positive: there the norm is linear
    S = np.diag(1.0 / B.diagonal())  # the minimiser among diagonal matrices
    within = len(A) <= SETTINGS.path_tasks
    S, value, flat = _descent(B, r, S, SETTINGS.short_descent_steps if within else SETTINGS.descent_steps)
    if within and not flat:
        other, lower, _ = _descent(B, r, central_path(A, r), SETTINGS.descent_steps)
        S, value = (other, lower) if lower < value else (S, value)
    return SparseInverse(S, max(value - _bound(A, r, S), 0.0))


def _descent(B, r: float, S, most: int) -> tuple[np.ndarray, float, bool]:
    """(S, value, whether no entry has a slope any more) after so many steps at most."""
    value = _value(B, r, S)
    for _ in range(most):
        inverse = _inverse(S)
        slopes = _slopes(B - inverse, S, r)
        if _size(slopes, S) <= SETTINGS.slope_tol:
            return S, value, True
        found = _newton_step(B, r, S, inverse, slopes, value) or _proximal_step(B, r, S, inverse, value)
        if found is None:  # nothing goes down any more: rounding
            return S, value, _size(slopes, S) <= SETTINGS.rounding_slope_tol
        S, value = found
    return S, value, False


def _size(slopes, S) -> float:
    """The largest, in the units in which the diagonal of S is 1."""
    lengths = np.sqrt(S.diagonal())
    return float(np.abs(slopes * np.outer(lengths, lengths)).max())


def _value(B, r: float, S) -> float:
    """The objective, +inf where S is not positive definite."""
    try:
        root = np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return np.inf
    norm = np.abs(S).sum() - np.abs(S.diagonal()).sum()
    return float(np.vdot(B, S) - 2.0 * np.log(root.diagonal()).sum() + r * norm)


def _bound(A, r: float, S) -> float:
    """log|K| + n, -inf where K is not positive definite."""
    try:
        root = np.linalg.cholesky(A + np.clip(_inverse(S) - A, -r, r))
    except np.linalg.LinAlgError:
        return -np.inf
    return float(2.0 * np.log(root.diagonal()).sum() + len(A))


def _inverse(S) -> np.ndarray:
    inverse = np.linalg.inv(S)
    return 0.5 * (inverse + inverse.T)


def _slopes(G, S, r: float) -> np.ndarray:
    """The steepest slope of every entry: 0 where a zero may stay."""
    at_zero = np.sign(G) * np.maximum(np.abs(G) - r, 0.0)
    slopes = np.where(S == 0.0, at_zero, G + r * np.sign(S))
    np.fill_diagonal(slopes, G.diagonal())
    return slopes


def _rounding(value: float, S) -> float:
    """Differences of values that say nothing."""
    return 1e-12 * (abs(value) + len(S))


def _newton_step(B, r: float, S, inverse, slopes, before: float) -> tuple[np.ndarray, float] | None:
    """(S, value) after a step; None where none of its halves goes down."""
    rows, columns = np.nonzero(np.triu((S != 0.0) | (slopes != 0.0)))
    direction = np.zeros_like(S)
    direction[rows, columns] = direction[columns, rows] = _newton_direction(inverse, slopes, rows, columns)
    sides = np.where(S == 0.0, -np.sign(slopes), np.sign(S))
    expected = float(np.vdot(slopes, direction))
    if not expected < 0.0:
        return None
    if -expected <= 1e-11 * len(S):  # the differences of values are all but rounding, and the model is exact
        after = S + direction
        value = _value(B, r, after)
        kept = bool(np.all(after * sides >= 0.0)) and value <= before + _rounding(before, S)
        flatter = kept and _size(_slopes(B - _inverse(after), after, r), after) < 0.5 * _size(slopes, S)
        return (after, value) if flatter else None
    step = 1.0
    for _ in range(SETTINGS.step_halvings):
        after = S + step * direction
        after[after * sides < 0.0] = 0.0
        value = _value(B, r, after)
        if value <= before + 1e-4 * min(float(np.vdot(slopes, after - S)), 0.0) and value < before:
            return after, value
        step *= 0.5
    return None


def _newton_direction(inverse, slopes, rows, columns) -> np.ndarray:
    """D with W D W = -slopes on the free entries (rows <= columns), W = S^-1."""
    n_free = len(rows)
    doubled = np.where(rows == columns, 0.5, 1.0)  # an entry off the diagonal stands twice
    right = -2.0 * doubled * slopes[rows, columns]
    if n_free <= SETTINGS.direct_entries:
        across, along = inverse[np.ix_(rows, columns)], inverse[np.ix_(rows, rows)]
        system = along * inverse[np.ix_(columns, columns)] + across * across.T
        return np.linalg.solve(2.0 * np.outer(doubled, doubled) * system, right)
    return _conjugate_gradients(inverse, right, rows, columns, doubled)


def _conjugate_gradients(inverse, right, rows, columns, doubled) -> np.ndarray:
    """The same system by products W D W, scaled by its diagonal."""
    from scipy.sparse.linalg import LinearOperator, cg

    def product(x):
        D = np.zeros_like(inverse)
        D[rows, columns] = D[columns, rows] = x
        return 2.0 * doubled * (inverse @ D @ inverse)[rows, columns]

    sizes = inverse.diagonal()
    scale = 2.0 * doubled**2 * (sizes[rows] * sizes[columns] + inverse[rows, columns] ** 2)
    shape = (len(right), len(right))
    inverse_scale = LinearOperator(shape, matvec=lambda rest: rest / scale)
    system = LinearOperator(shape, matvec=product)
    return cg(system, right, rtol=1e-10, maxiter=SETTINGS.cg_iterations, M=inverse_scale)[0]


def _proximal_step(B, r: float, S, inverse, before: float) -> tuple[np.ndarray, float] | None:
    """(S, value) after the longest proximal gradient step, of those halved, that goes down."""
    G, step = B - inverse, float(S.diagonal().max()) ** 2
    for _ in range(2 * SETTINGS.step_halvings):
        moved = S - step * G
        after = np.sign(moved) * np.maximum(np.abs(moved) - step * r, 0.0) + 0.0  # no zero has a sign
        np.fill_diagonal(after, moved.diagonal())
        change = after - S
        value = _value(B, r, after)
        norm = np.abs(after).sum() - np.abs(after.diagonal()).sum() - np.abs(S).sum() + S.diagonal().sum()
        model = before + float(np.vdot(G, change)) + r * norm + float(np.vdot(change, change)) / (2.0 * step)
        if value <= model and value < before - _rounding(before, S):
            return after, value
        step *= 0.5
    return None
