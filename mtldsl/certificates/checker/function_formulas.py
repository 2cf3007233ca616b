"""The checker's formulas of quadratic regularizers, the squared cluster norm and constraints, and the table of all functions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mtldsl.certificates.checker.function import FunctionFormula, UnsupportedFormula, differences
from mtldsl.certificates.checker.interval import (
    Interval,
    enclose_svd,
    least_eigenvalue,
    maximum,
    minimum,
    product,
    spectral_norm,
)
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.norm_formulas import (
    NORMS,
    CellNormFormula,
    ExclusiveLassoFormula,
    HalfSquaredGroupsFormula,
    HalfSquaredKSupportFormula,
    SquaredTraceFormula,
)

# --------------------------------------------------------------------------------------------------------------
# The checker's own formula of the squared cluster norm, by a singular value decomposition that is a guess, and what it misses.


class SquaredClusterFormula(FunctionFormula):
    """min over v, lower <= v_i <= upper, sum v_i <= trace, of sum_i s_i^2 / v_i, s the singular values of W: N(W)^2 for a norm N that no rotation
    changes. Its conjugate is 1/4 max over the same v of sum_i v_i z_i^2, 1/4 N*(Z)^2.

    For W = U diag(s) V^T + E: N(W) <= ||U|| ||V|| N(diag(s)) + N(E), N(diag(s)) at most what any v gives, and N(E)^2 <= ||E||_F^2 / v for
    equal v; and so for N*, with N*(E)^2 <= ||E||_F^2 max v.
    """

    finite_dual = True
    degree = 2

    def read(self, parameters):
        self.lower, self.upper = float(parameters["lower"]), float(parameters["upper"])
        self.trace = float(parameters["trace"])
        self.rank = min(self.shape)
        m = self.shape[1]
        if not self.lower < self.upper or Fraction(self.lower) * m > Fraction(self.trace):
            raise UnsupportedFormula("a squared cluster norm with bounds that no covariance keeps")
        # what the tasks' covariance has to spend on variances above the lower one
        self.room = maximum(self.number(self.trace) - self.number(self.lower) * float(m), 0.0)
        self.each = None if self.upper == np.inf else self.number(self.upper) - self.number(self.lower)

    def value(self, W):
        U_V, s, rest = self._seen(W)
        even = self.room / float(self.rank)
        even = (even if self.each is None else minimum(even, self.each)) + self.lower
        if not even.low > 0:  # zero is the only matrix that has a value
            raise UnsupportedFormula("a squared cluster norm without room for any variance")
        kept = s[s > 0]
        return (self._of_values(kept) * U_V + rest / even.sqrt()).square()

    def _of_values(self, s: np.ndarray) -> Interval:
        """N of these singular values, at variances that obey the bounds as real numbers."""
        if not s.size:
            return self.number(0.0)
        above = self.number(self._guess(s))
        if self.each is not None:
            above = minimum(above, self.each)
        above = above * minimum(self.room / maximum(above.sum(), 5e-324), 1.0)
        return (self.number(s).square() / (above + self.lower)).sum().sqrt()

    def _guess(self, s: np.ndarray) -> np.ndarray:
        """Variances above the lower one: clip(x s - lower, 0, upper - lower), x such that they spend the room."""
        room = float(self.room.middle)

        def above(x: float) -> np.ndarray:
            return np.clip(x * s - self.lower, 0.0, self.upper - self.lower)

        low, high = 0.0, (room + self.lower) / float(s.min())
        for _ in range(SETTINGS.variance_halvings):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if above(middle).sum() < room else (low, middle)
        return np.maximum(above(high), np.finfo(float).tiny)

    def conjugate(self, Z):
        U_V, s, rest = self._seen(Z)
        squares, taken = self.number(s).square(), []
        left = self.room
        for _ in s:
            own = left if self.each is None else minimum(left, self.each)
            left = maximum(left - own, 0.0)
            taken.append(own)
        total = squares.sum() * self.lower
        for k, own in enumerate(taken):
            total = total + squares[k] * own
        most = self.room if self.each is None else minimum(self.room, self.each)
        return (total.sqrt() * U_V + rest * (most + self.lower).sqrt()).square() * 0.25

    def _seen(self, W) -> tuple[Interval, np.ndarray, Interval]:
        """(an upper bound of ||U|| ||V||, singular values, one of ||E||_F)."""
        _, s, _, sizes, rest = enclose_svd(W)
        return sizes, s, rest


# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of quadratic regularizers.


class RidgeFormula(CellNormFormula):
    degree = 2

    @property
    def finite_dual(self):
        return bool(self.takes.all())

    def value(self, W):
        weights = None if self.weights is None else np.broadcast_to(self.weights, self.shape)
        return (W.square() if weights is None else W.square() * weights).sum() * 0.5

    def conjugate(self, Z):
        if self.weights is None:
            return Z.square().sum() * 0.5
        held = self.takes
        weights = np.broadcast_to(self.weights, self.shape)[held]
        return (Z[held].square() / self.number(weights)).sum() * 0.5


class MeanFormula(FunctionFormula):
    degree = 2
    takes = property(lambda self: np.zeros(self.shape, dtype=bool))

    def _centred(self, W):
        return W - (W.sum(axis=1) / float(self.shape[1])).reshape(-1, 1)

    def value(self, W):
        return self._centred(W).square().sum() * 0.5

    def inside(self, Z):
        return self._centred(Z)

    def span(self, row):
        return differences(self.shape[1])

    def conjugate(self, Z):
        return Z.square().sum() * 0.5


class QuadraticFormula(FunctionFormula):
    """1/2 tr(A W B W^T). Its multipliers are A Y B: then the conjugate is 1/2 tr(A Y B Y^T), and no inverse is needed.

    Where A and B are positive definite any Z will do: with what A Y B misses of it, E = Z - A Y B, the conjugate is
    1/2 <Y, A Y B> + <Y, E> + 1/2 <E, (A . B)^-1 E>, the last at most ||E||^2 / (2 least eigenvalues).
    """

    degree = 2

    def read(self, parameters):
        self.A = parameters.get("rows")
        self.B = parameters.get("columns", parameters.get("L"))
        given = [np.asarray(M, float) for M in (self.A, self.B) if M is not None]
        if not all(np.array_equal(M, M.T) for M in given):
            raise UnsupportedFormula("a quadratic form of a matrix that is not symmetric")
        least = [least_eigenvalue(M, self.exact) for M in given]
        positive = all(one.low > 0 for one in least)
        self.least = (least[0] if len(least) == 1 else least[0] * least[1]) if positive else None
        self.short = (
            self.number(0.0) if positive or all(map(_is_dominant, given)) else self._missing(given, least)
        )

    def _missing(self, given, least) -> Interval:
        """An upper bound of minus the least eigenvalue of the form: a matrix that is semidefinite in theory is so but for rounding."""
        sizes, short = [], []
        for M, one in zip(given, least, strict=True):
            size, below = spectral_norm(self.number(M)).high, np.maximum(-one.low, 0)
            sizes.append(Interval(size, size))
            short.append(Interval(below, below))
        if not all(one.is_finite for one in [*sizes, *short]):
            raise UnsupportedFormula("a quadratic form of a matrix whose squares are beyond float64")
        if any((one - size * 1e-10).low > 0 for one, size in zip(short, sizes, strict=True)):
            raise UnsupportedFormula("a quadratic form of a matrix with a negative eigenvalue: not convex")
        return short[0] if len(given) == 1 else maximum(short[0] * sizes[1], short[1] * sizes[0])

    def lost(self, reach: np.ndarray) -> Interval:
        """By how much the form may lie below its tangent at Y for |W| <= reach: 1/2 <W - Y, A (W - Y) B> >= -1/2 short ||W - Y||^2."""
        return ((abs(self.Y) + self.number(reach)).square().sum() * self.short) * 0.5

    @property
    def finite_dual(self):
        return self.least is not None

    @property
    def takes(self):
        return np.full(self.shape, self.finite_dual)

    def _apply(self, W: Interval) -> Interval:
        W = W if self.A is None else product(np.asarray(self.A), W)
        return W if self.B is None else product(W, np.asarray(self.B))

    def _inverse(self, Z: np.ndarray) -> np.ndarray:
        Z = Z if self.A is None else np.linalg.pinv(self.A, hermitian=True) @ Z
        return Z if self.B is None else Z @ np.linalg.pinv(self.B, hermitian=True)

    def value(self, W):
        return (self._apply(W) * W).sum() * 0.5

    def inside(self, Z):
        if self.finite_dual:
            return Z
        self.Y = self.number(self._inverse(Z.middle))
        return self._apply(self.Y)

    @property
    def is_spanned(self):
        """Not where A mixes rows."""
        return self.finite_dual or self.A is None

    def span(self, row):
        return super().span(row) if self.finite_dual or self.A is not None else np.asarray(self.B, float)

    def taken(self, rows, columns, C):
        if not self.finite_dual:
            where = np.ix_(rows, columns)
            self.Y = self.Y.with_entries(where, self.Y[where] + C)

    def conjugate(self, Z):
        if not self.finite_dual:  # what `inside` made is there still: no entry of it takes anything
            return (self.Y * Z).sum() * 0.5
        Y = self.number(self._inverse(Z.middle))
        image = self._apply(Y)
        rest = Z - image
        return (Y * image).sum() * 0.5 + (Y * rest).sum() + rest.square().sum() / self.least * 0.5


def _is_dominant(M: np.ndarray) -> bool:
    """Tell whether no diagonal entry is below the sum of the absolute values beside it, exactly: then no eigenvalue is negative."""
    rows = [[Fraction(x) for x in row] for row in M.tolist()]
    return all(row[i] >= sum(abs(x) for j, x in enumerate(row) if j != i) for i, row in enumerate(rows))


# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of constraints.


class BallFormula(FunctionFormula):
    is_set = True

    def read(self, parameters):
        self.radius = self.number(float(parameters["radius"]))
        of = parameters["of"]
        if of["word"] not in NORMS:
            raise UnsupportedFormula(f"a ball of {of['word']}")
        self.of = NORMS[of["word"]](of["parameters"], self.shape, self.exact)

    @property
    def takes(self):
        return self.of.takes

    @property
    def finite_dual(self):
        return bool(np.all(self.takes))

    @property
    def is_spanned(self):
        return self.of.is_spanned

    def span(self, row):
        return self.of.span(row)

    def inside(self, Z):
        return self.of.inside(Z)

    def violation(self, W):
        return maximum(self.of.value(W) - self.radius, 0.0)

    def conjugate(self, Z):
        return self.of.gauge(Z) * self.radius


class ComparisonFormula(FunctionFormula):
    is_set, is_cone_free = True, False
    side = 0.0

    def read(self, parameters):
        bound = np.broadcast_to(np.asarray(parameters["bound"], float), self.shape)
        self.there = np.isfinite(bound)
        self.bound = self.number(np.where(self.there, bound, 0.0))

    @property
    def takes(self):
        """Return where multipliers are not 0, they may be changed a little."""
        return self.not_zero

    def inside(self, Z):
        """Multipliers of W >= bound are <= 0, of W <= bound >= 0, and 0 where there is no bound."""
        Z = -maximum(-Z, 0.0) if self.side > 0 else maximum(Z, 0.0)
        self.not_zero = (
            self.there & ~np.asarray(self.left_out, bool) & np.asarray((Z.low > 0) | (Z.high < 0), bool)
        )
        return Z.like(np.zeros(self.shape)).with_entries(self.not_zero, Z[self.not_zero])

    def out_of_cone(self, Z):
        return self.not_zero & ~np.asarray(Z.high <= 0 if self.side > 0 else Z.low >= 0, bool)

    def conjugate(self, Z):
        return (Z * self.bound).sum()

    def violation(self, W):
        missing = (self.bound - W) * self.side
        inside = (W.high <= self.bound.low) if self.side < 0 else (W.low >= self.bound.high)
        outside = self.there & ~np.asarray(inside, bool)
        return maximum(missing[outside], 0.0).max()


class AtLeastFormula(ComparisonFormula):
    side = 1.0


class AtMostFormula(ComparisonFormula):
    side = -1.0


class EqualToFormula(ComparisonFormula):
    finite_dual = is_cone_free = True
    takes, inside = FunctionFormula.takes, FunctionFormula.inside

    def out_of_cone(self, Z):
        return FunctionFormula.out_of_cone(self, Z)

    def violation(self, W):
        return abs(W - self.bound).max()


class SimplexFormula(FunctionFormula):
    is_set, finite_dual = True, True

    def read(self, parameters):
        self.total = self.number(float(parameters["total"]))

    def violation(self, W):
        return maximum(maximum(-W, 0.0).max(), abs(W.sum(axis=0) - self.total).max())

    def conjugate(self, Z):
        return Z.max(axis=0).sum() * self.total


# --------------------------------------------------------------------------------------------------------------
# The regularizers and sets that the checker has formulas for.

#: word -> its class
FUNCTIONS = {
    **NORMS, "exclusive_lasso": ExclusiveLassoFormula, "half_squared_group_norm": HalfSquaredGroupsFormula, "half_squared_k_support_norm": HalfSquaredKSupportFormula,
    "squared_trace_norm": SquaredTraceFormula, "squared_cluster_norm": SquaredClusterFormula, "feature_covariance_norm": SquaredTraceFormula, "task_covariance_norm": SquaredTraceFormula,
    "ridge": RidgeFormula, "mean_regularizer": MeanFormula, "graph_laplacian": QuadraticFormula, "kronecker_ridge": QuadraticFormula, "norm_ball": BallFormula,
    "at_least": AtLeastFormula, "at_most": AtMostFormula, "equal_to": EqualToFormula, "columns_on_simplex": SimplexFormula,
}  # fmt: skip
