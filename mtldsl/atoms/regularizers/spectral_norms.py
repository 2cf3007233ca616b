"""Functions of singular values: trace, spectral, max and squared cluster norm, squared trace norm, rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import register
from mtldsl.atoms.matrix_function import Regularizer, Set, WithoutConjugate
from mtldsl.atoms.prox.shrinkage import shares_of_norms, squared_sum_threshold, water_level
from mtldsl.atoms.prox.spectral_matrix import (
    largest_singular_value,
    map_singular_values,
    shrink_singular_values,
    singular_values,
)
from mtldsl.atoms.regularizers.norm_base import Norm
from mtldsl.atoms.sets import RankAtMost

# --------------------------------------------------------------------------------------------------------------
# The squared cluster norm: what a covariance with bounded eigenvalues and a bounded trace leaves when it is at its best.


@register
@dataclass(frozen=True, eq=False)
class SquaredClusterNorm(Regularizer):
    r"""The squared cluster norm (spectral box norm): min tr(W S^-1 W^T) over covariances S of the tasks, lower I <= S <= upper I, tr S <= trace.

    Relaxes clustered multi-task learning: with lower = e, upper = 1 + e and trace = k + m e for m tasks in k clusters, S - e I is a
    projection onto k dimensions, relaxed. Between a ridge and the squared trace norm, which it is at lower = 0, upper = inf.

    Parameters
    ----------
    lower : number >= 0
    upper : number > lower, may be inf
    trace : number, at least lower times the number of tasks

    Raises
    ------
    ModelError
        Where no S obeys the bounds, or a number is not as above.

    Notes
    -----
    With singular values s it is the least sum_i s_i^2 / v_i over lower <= v_i <= upper with a sum of at most trace, at
    v_i = clip(x s_i, lower, upper); prox of step t: s_i -> s_i v_i / (v_i + 2 t) at v_i = clip(x s_i - 2 t, lower, upper); x makes the sum
    right. Conjugate: 1/4 sum_i v_i z_i^2 at the v that gives the largest z_i all they may have.
    Source: Jacob, Bach and Vert, "Clustered multi-task learning: a convex formulation", NIPS 2008; Zhou, Chen and Ye, "Clustered multi-task
    learning via alternating structure optimization", NIPS 2011, eq. (8); McDonald, Pontil and Stamos, "New perspectives on k-support and
    cluster norms", JMLR 17 (2016), Theorems 14 and 17.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> SquaredClusterNorm(lower=0.0, upper=np.inf, trace=1.0).value(W)  # the squared trace norm
    16.0
    >>> SquaredClusterNorm(lower=0.5, upper=1.0, trace=1.5).value(W)  # v = (1, 1/2)
    11.0
    """

    lower: float
    upper: float
    trace: float

    name: ClassVar[str] = "squared_cluster_norm"
    meaning: ClassVar[str] = "the squared cluster norm"
    formula: ClassVar[str] = (
        r"\min_{\lambda I \preceq S \preceq \mu I, \; \operatorname{tr} S \leq c} \operatorname{tr}({} S^{-1} {}^\top)"
    )
    separable: ClassVar[str] = "spectrum"
    finite_dual: ClassVar[bool] = True

    def __post_init__(self):
        self.keep_number("lower", lambda x: x >= 0, "a number >= 0")
        self.keep_number("trace", lambda x: x > 0, "a number > 0")
        if self.upper != np.inf:
            self.keep_number("upper", lambda x: x > self.lower, "a number > lower, or inf")

    @classmethod
    def examples(cls):
        return [
            cls(0.1, 1.1, 2.4),
            cls(0.0, 1.0, 1.5),
            cls(0.0, np.inf, 2.0),
            cls(0.5, 2.0, 100.0),
            cls(0.25, 3.0, 1.0),
        ]

    def check(self, shape):
        least = self.lower * shape[1]
        if least > self.trace * (1 + 1e-12):
            return f"the eigenvalues of {shape[1]} tasks, each >= {self.lower:g}, have a sum >= {least:g}, above trace={self.trace:g}"
        return None

    def value(self, W):
        s = singular_values(W)
        s = s[s > 0]
        return float(np.sum(s**2 / self._variances(s, W.shape[1], 0.0)))

    def prox(self, W, step):
        def moved(s):
            v = self._variances(s, W.shape[1], 2.0 * step)
            return s * np.divide(v, v + 2.0 * step, out=np.ones_like(v), where=v + 2.0 * step > 0)

        return map_singular_values(W, moved)

    def conjugate(self, Z):
        squares = singular_values(Z) ** 2  # descending
        room, width = self._room(Z.shape[1])
        taken = np.diff(np.minimum(np.arange(len(squares) + 1) * width, room))
        return 0.25 * float((self.lower + taken) @ squares)

    def _room(self, n_tasks: int) -> tuple[float, float]:
        """(what `lower` leaves of the trace, the most that one eigenvalue has of it)."""
        room = max(self.trace - self.lower * n_tasks, 0.0)
        return room, min(self.upper - self.lower, room)

    def _variances(self, s, n_tasks: int, less: float) -> np.ndarray:
        """clip(x s - less, lower, upper) of every singular value, those that are not there being `lower`; x > 0 makes the sum `trace`."""
        room, width = self._room(n_tasks)
        if width == 0.0:
            return np.full(len(s), self.lower)
        return self.lower + width * shares_of_norms(s, room / width, (self.lower + less) / width)


# --------------------------------------------------------------------------------------------------------------
# The max norm of a matrix: how short the rows of two factors can be.


@dataclass(frozen=True)
class BarrierSettings:
    """Barrier weights of semidefinite programs, for matrices whose largest entry is one.

    last_weight   : weight at which the barrier ends: both sides of a program are then (p + q) times this apart
    weight_factor : factor from one weight to the next
    newton_steps  : Newton steps at each: 100 x 5 takes 40 of them, and ended 1 % too high with 12
    decrement_tol : Newton's decrement at which the next weight follows
    """

    last_weight: float = 1e-13
    weight_factor: float = 0.15
    newton_steps: int = 60
    decrement_tol: float = 0.1


SETTINGS = BarrierSettings()


@register
@dataclass(frozen=True, eq=False)
class MaxNorm(Norm):
    r"""The max norm (gamma_2 norm): min over W = A B^T, factors of any rank, of (largest row norm of A) times (largest row norm of B).

    Every feature and every task gets a vector in a shared space, none longer than the others: like the trace norm it makes W
    (p features, q tasks) simple, but it bounds every entry, those of rare features too. It is not the largest absolute entry: max |W_ij| <= max_norm(W) <= sqrt(min(p, q)) max |W_ij|.

    Notes
    -----
    Value: the semidefinite program min t, [[P, W], [W^T, Q]] positive semidefinite with no diagonal entry above t. Dual norm: 1/2
    min sum(a) + sum(b), [[diag a, Z], [Z^T, diag b]] positive semidefinite. Both are solved by Newton's method on a barrier of
    p + q unknowns, O((p + q)^4) a step, from points that are feasible: rounding aside neither number is too small (the value is too
    large by 1e-8 of it at most, the dual norm by 1e-11), and a certificate made of them holds. The prox is a semidefinite program with p q unknowns more, and no closed form or cheap
    iteration of it is known: models with this word are solved by the reference (cvxpy).
    Source: Srebro, Rennie and Jaakkola, "Maximum-margin matrix factorization", NIPS 2004; Srebro and Shraibman, "Rank, trace-norm
    and max-norm", COLT 2005; the dual norm: Linial, Mendelson, Schechtman and Shraibman, "Complexity measures of sign matrices",
    Combinatorica 27 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> round(MaxNorm().value(np.array([[3.0, -6.0], [1.0, -2.0]])), 6)  # of rank one: the largest entry
    6.0
    >>> round(MaxNorm().value(np.eye(3)), 6), round(MaxNorm().dual_norm(np.eye(3)), 6)
    (1.0, 3.0)
    >>> round(MaxNorm().value(np.array([[1.0, 1.0], [1.0, -1.0]])), 6)
    1.414214
    """

    name: ClassVar[str] = "max_norm"
    transpose_invariant: ClassVar[bool] = True
    unchecked: ClassVar[str] = (
        "its value is the optimum of a semidefinite program, found by an iteration to 1e-8"
    )
    meaning: ClassVar[str] = (
        r"the max norm: over all factors $A B^\top$ of the matrix, the least product of the largest row "
        "norms of $A$ and $B$"
    )
    formula: ClassVar[str] = r"\|{}\|_{\max}"
    exact_prox: ClassVar[bool] = False
    accuracy: ClassVar[float] = 1e-7

    def value(self, W):
        return _at_scale(_factor_length, W)

    def dual_gauge(self, Z):
        return _at_scale(_least_diagonal, Z)


def _at_scale(function, W) -> float:
    """function of the matrix, its largest entry made one and its rows and columns of zeros left out, in the units of W again."""
    W = np.asarray(W, float)
    size = float(np.max(np.abs(W), initial=0.0))
    if size == 0.0:
        return 0.0
    W = W[np.any(W, axis=1)][:, np.any(W, axis=0)] / size
    return size * function(W)


def _factor_length(W) -> float:
    """The max norm: an upper bound, relatively about 1e-8 above it at most.

    The dual maximises 2 <W, X> over weights x = (p, q) of rows and columns, sum x = 1, and X with [[diag p, X], [X^T, diag q]]
    positive semidefinite. With the barrier mu logdet of that matrix, X has a closed form at any x: from the SVD of D_p^1/2 W
    D_q^1/2. What is left is concave in x; its gradient is the diagonal of [[P, W], [W^T, Q]], a matrix which is feasible for the
    program of the value at any x and mu.
    """
    rows, n = len(W), sum(W.shape)
    x, mu, best, before = np.full(n, 1.0 / n), 0.1, np.inf, None
    while (
        mu > SETTINGS.last_weight and best != before
    ):  # from some mu on, near 1e-9, rounding in the smallest weights leaves nothing to win
        before = best
        for _ in range(SETTINGS.newton_steps):
            diagonal, hessian = _diagonal(W, x, mu)
            best = min(best, float(np.sqrt(diagonal[:rows].max() * diagonal[rows:].max())))
            # Newton's method on sum x = 1, in units of x
            K = hessian * np.outer(x, x)
            both = np.linalg.solve(K, np.column_stack([x * diagonal, x]))
            step = both[:, 0] - both[:, 1] * (x @ both[:, 0]) / (x @ both[:, 1])
            decrement = np.sqrt(max(float(step @ K @ step) / mu, 0.0))
            x = x * (1.0 + step / (1.0 + decrement))  # inside, as the barrier is self-concordant
            x /= x.sum()
            if decrement < SETTINGS.decrement_tol:
                break
        mu *= SETTINGS.weight_factor
    return best


def _diagonal(W, x, mu) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of the feasible matrix at weights x of rows and columns, and minus its derivative.

    P D_p P - mu P = W D_q W^T, and likewise for Q; derivatives of the two equations, in the eigenbases of D_p^1/2 P D_p^1/2 and
    D_q^1/2 Q D_q^1/2, whose eigenvalues f belong to the singular values s.
    """
    rows, roots = len(W), np.sqrt(x)
    U, s, Vt = np.linalg.svd(roots[:rows, None] * W * roots[rows:])
    s = np.concatenate([s, np.zeros(abs(rows - W.shape[1]))])
    f = 0.5 * (mu + np.sqrt(mu**2 + 4.0 * s**2))
    E, F = U / roots[:rows, None], Vt.T / roots[rows:, None]
    diagonal = np.concatenate([E**2 @ f[: len(E)], F**2 @ f[: len(F)]])
    share = 1.0 / (f[:, None] + f - mu)
    p, q = len(E), len(F)
    hessian = np.empty((p + q, p + q))
    hessian[:p, :p] = _form(E, E, share * np.outer(f, f))
    hessian[p:, p:] = _form(F, F, share * np.outer(f, f))
    hessian[:p, p:] = -_form(E, F, share * np.outer(s, s))
    hessian[p:, :p] = hessian[:p, p:].T
    return diagonal, hessian


def _form(G, H, weights) -> np.ndarray:
    """sum over k, l of weights_kl G_ik G_il H_jk H_jl, for the pairs of columns that both have."""
    r = min(G.shape[1], H.shape[1])
    first, second = ((A[:, :r, None] * A[:, None, :r]).reshape(len(A), -1) for A in (G, H))
    return (first * weights[:r, :r].ravel()) @ second.T


def _least_diagonal(Z) -> float:
    """1/2 min sum(a), diag(a) - [[0, Z], [Z^T, 0]] positive semidefinite: an upper bound, as near as `SETTINGS.last_weight` and rounding allow."""
    n = sum(Z.shape)
    C = np.zeros((n, n))
    C[: len(Z), len(Z) :] = Z
    C += C.T
    a, mu = np.abs(C).sum(axis=1) + 1.0, 1.0
    while mu > SETTINGS.last_weight:
        for _ in range(SETTINGS.newton_steps):
            inverse = np.linalg.inv(np.diag(a) - C)
            inverse = 0.5 * (inverse + inverse.T)
            gradient = 1.0 - mu * np.diag(inverse)
            step = np.linalg.solve(mu * inverse**2, gradient)
            decrement = np.sqrt(max(float(gradient @ step) / mu, 0.0))
            a = a - step / (1.0 + decrement)  # inside, as the barrier is self-concordant
            if decrement < SETTINGS.decrement_tol:
                break
        mu *= SETTINGS.weight_factor
    return 0.5 * float(a.sum())


# --------------------------------------------------------------------------------------------------------------
# The number of singular values that are not zero.

#: A singular value this small, relative to the largest, is rounding.
RANK_ROUNDING_SHARE = 1e-10


def numerical_rank(W) -> int:
    """Return how many singular values of W are above 1e-10 of the largest."""
    s = singular_values(W)
    return int(np.count_nonzero(s > RANK_ROUNDING_SHARE * s[0])) if s.size and s[0] > 0 else 0


@register
@dataclass(frozen=True, eq=False)
class Rank(WithoutConjugate, Regularizer):
    r"""The rank of W, not convex: how many of its singular values are not zero (above 1e-10 of the largest).

    Mostly as a constraint, `rank(W) <= r`; as a term, `mu * rank(W)`, it costs mu for every direction that tasks share.
    W is (p features, q tasks). Its convex relaxation is trace_norm; nearer to it are log_rank and capped_trace_norm.

    Notes
    -----
    prox for a step t: singular values s with s^2 > 2 t are kept, all others are zero (a hard threshold).
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, eq. (3).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> Rank().value(W), Rank().prox(W, 2.0).diagonal()
    (2.0, array([3., 0.]))
    """

    name: ClassVar[str] = "rank"
    transpose_invariant: ClassVar[bool] = True
    meaning: ClassVar[str] = "the rank, which is not convex"
    formula: ClassVar[str] = r"\operatorname{rank}({})"
    separable: ClassVar[str] = "spectrum"
    convex: ClassVar[bool] = False
    weak_convexity: ClassVar[float] = np.inf
    is_bounded: ClassVar[bool] = True

    def value(self, W):
        return float(numerical_rank(W))

    def prox(self, W, step):
        return map_singular_values(W, lambda s: np.where(s**2 > 2.0 * step, s, 0.0))

    def ball(self, radius) -> Set:
        return RankAtMost(radius)


# --------------------------------------------------------------------------------------------------------------
# Functions of the singular values of W: low rank, tasks that share a few directions.


@register
@dataclass(frozen=True, eq=False)
class TraceNorm(Norm):
    r"""The trace norm (nuclear norm): sum of the singular values of W.

    Makes W (p features, q tasks) low-rank: the tasks share a few directions.

    Notes
    -----
    prox: every singular value s -> (s - step)_+. Dual norm: the largest singular value.
    Source: Fazel, Hindi and Boyd, "A rank minimization heuristic with application to minimum order system
    approximation", ACC 2001; Pong, Tseng, Ji and Ye, "Trace norm regularization: reformulations, algorithms,
    and multi-task learning", SIAM J. Optim. 20 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> TraceNorm().value(W)
    4.0
    >>> TraceNorm().prox(W, 1.5).round(12)
    array([[1.5, 0. ], [0. , 0. ]])
    """

    name: ClassVar[str] = "trace_norm"
    transpose_invariant: ClassVar[bool] = True
    meaning: ClassVar[str] = "the trace norm, the sum of the singular values"
    formula: ClassVar[str] = r"\|{}\|_*"
    separable: ClassVar[str] = "spectrum"

    def value(self, W):
        return float(singular_values(W).sum())

    def prox(self, W, step):
        return shrink_singular_values(W, lambda singular: step)

    def dual_gauge(self, Z):
        return largest_singular_value(Z)

    def nearest_in_ball(self, W, radius):
        return shrink_singular_values(W, lambda singular: water_level(singular[:, None], radius)[0])


@register
@dataclass(frozen=True, eq=False)
class SpectralNorm(Norm):
    r"""The spectral norm (operator norm): the largest singular value of W.

    Mostly as a constraint, `spectral_norm(W) <= r`: no direction of W (p features, q tasks) is stretched by
    more than r. As a penalty it makes the largest singular values equal, and none of them zero.

    Notes
    -----
    prox: singular values s -> min(s, t), t >= 0 such that step is cut off in all; 0 where they sum to no more.
    Projection onto the ball: s -> min(s, r). Dual norm: the trace norm.
    Source: Horn and Johnson, "Matrix analysis", Cambridge 1985, section 5.6; the prox by Moreau's identity, Parikh
    and Boyd, "Proximal algorithms", Foundations and Trends in Optimization 1 (2014), section 6.7.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> SpectralNorm().value(W)
    3.0
    >>> SpectralNorm().prox(W, 1.5)
    array([[1.5, 0. ], [0. , 1. ]])
    """

    name: ClassVar[str] = "spectral_norm"
    transpose_invariant: ClassVar[bool] = True
    meaning: ClassVar[str] = "the spectral norm, the largest singular value"
    formula: ClassVar[str] = r"\|{}\|_2"
    separable: ClassVar[str] = "spectrum"

    def value(self, W):
        return largest_singular_value(W)

    def prox(self, W, step):
        return map_singular_values(
            W, lambda s: np.minimum(s, max(float(water_level(s[:, None], step)[0]), 0.0))
        )

    def dual_gauge(self, Z):
        return float(singular_values(Z).sum())

    def nearest_in_ball(self, W, radius):
        return map_singular_values(W, lambda s: np.minimum(s, radius))


@register
@dataclass(frozen=True, eq=False)
class SquaredTraceNorm(Regularizer):
    r"""The squared trace norm: (sum of the singular values of W)^2, no 1/2.

    Makes W (p features, q tasks) low-rank; it is what a learned covariance of trace 1 between tasks or
    features eliminates to.

    Notes
    -----
    prox: s -> (s - 2 step S)_+ with S = sum of the new singular values, found exactly: over k, S is the
    largest of (s_1 + ... + s_k) / (1 + 2 step k). Conjugate: ||Z||_2^2 / 4.
    Source: Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008);
    Zhang and Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> SquaredTraceNorm().value(W)
    16.0
    >>> SquaredTraceNorm().prox(W, 0.25).round(12)
    array([[2., 0.], [0., 0.]])
    """

    name: ClassVar[str] = "squared_trace_norm"
    transpose_invariant: ClassVar[bool] = True
    meaning: ClassVar[str] = "the squared trace norm, the sum of the singular values squared as a whole"
    formula: ClassVar[str] = r"\|{}\|_*^2"
    separable: ClassVar[str] = "spectrum"
    finite_dual: ClassVar[bool] = True

    def value(self, W):
        return float(singular_values(W).sum() ** 2)

    def prox(self, W, step):
        return shrink_singular_values(W, lambda singular: float(squared_sum_threshold(singular, 2.0 * step)))

    def conjugate(self, Z):
        return largest_singular_value(Z) ** 2 / 4.0
