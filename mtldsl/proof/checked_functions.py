"""The checker's own formulas of regularizers and sets: what they cost at a point, and what a multiplier costs.

A word's class is made of its parameters and the shape of its argument. It says, with W and Z Intervals that hold real matrices:

value(W)     an enclosure, or an upper bound, of g(W); of a set 0
violation(W) an upper bound of how far W is outside, of a set
inside(Z)    a matrix near Z in the cone spanned by dom g*, as a real operation; `takes` the entries in which any change stays there
gauge(Z)     an upper bound of the t >= 0 with Z in t dom g* (a norm's dual norm); 0 where dom g* is a cone
conjugate(Z) an upper bound of g*(Z), for a Z that `inside` made and gauge allows
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mtldsl.proof.enclosures import Interval, maximum, product
from mtldsl.proof.spectral_bounds import least_eigenvalue, spectral_norm, trace_norm

__all__ = ["FUNCTIONS", "NotChecked"]


class NotChecked(Exception):
    """What this checker has no formula for; said in the verdict."""


class _Function:
    is_set = False
    cone = False  # a set that holds every nonnegative multiple of its points
    finite_dual = False  # the conjugate is finite everywhere
    shrinks = False  # a set that holds t W for 0 <= t <= 1, W in it
    short = None  # of a quadratic form: see `_Quadratic`
    degree = 1  # g*(t Z) <= t^degree g*(Z) for 0 <= t <= 1

    def __init__(self, parameters, shape, exact: bool):
        self.shape, self.exact = shape, exact
        self.read(parameters)

    def read(self, parameters):
        pass

    def number(self, x) -> Interval:
        return Interval.of(x, self.exact)

    @property
    def takes(self) -> np.ndarray:
        return np.ones(self.shape, dtype=bool)

    def value(self, W) -> Interval:
        return self.number(0.0)

    def inside(self, Z) -> Interval:
        return Z

    def gauge(self, Z) -> Interval:
        return self.number(0.0)

    def conjugate(self, Z) -> Interval:
        return self.number(0.0)


# ----------------------------------------------------------------------------------------------- norms by cells


class _CellNorm(_Function):
    """sum over cells of a_c N(W_c); a subclass has `norms`, `dual_norms` and `cells_of`, the weights laid out over the entries."""

    def read(self, parameters):
        weights = parameters.get("weights")
        self.weights = None if weights is None else np.asarray(weights, float)
        if self.weights is not None and not (self.weights >= 0).all():
            raise NotChecked("a norm or ridge with a weight that is not >= 0: not convex")

    def norms(self, W) -> Interval:
        raise NotImplementedError

    def dual_norms(self, Z) -> Interval:
        return self.norms(Z)

    def over_entries(self, per_cell) -> np.ndarray:
        raise NotImplementedError

    @property
    def takes(self):
        if self.weights is None:
            return super().takes
        return np.broadcast_to(self.over_entries(self.weights), self.shape) > 0

    def value(self, W):
        norms = self.norms(W)
        return (
            norms if self.weights is None else norms * self.number(np.broadcast_to(self.weights, norms.shape))
        ).sum()

    def inside(self, Z):
        return Z if self.takes.all() else Z * self.takes.astype(float)

    def gauge(self, Z):
        norms = self.dual_norms(Z)
        if self.weights is None:
            return norms.max()
        weights = np.broadcast_to(self.weights, norms.shape)
        return (norms[weights > 0] / self.number(weights[weights > 0])).max()


class _L1(_CellNorm):
    def norms(self, W):
        return abs(W)

    def over_entries(self, per_cell):
        return per_cell


class _L21(_CellNorm):
    def norms(self, W):
        return W.square().sum(axis=1).sqrt()

    def over_entries(self, per_cell):
        return np.broadcast_to(per_cell, self.shape[0])[:, None]


class _L1Inf(_L21):
    def norms(self, W):
        return abs(W).max(axis=1)

    def dual_norms(self, Z):
        return abs(Z).sum(axis=1)


class _L12(_CellNorm):
    def norms(self, W):
        return W.square().sum(axis=0).sqrt()

    def over_entries(self, per_cell):
        return per_cell


class _Groups(_CellNorm):
    """Of rows or columns; those in no group are free."""

    key, axis = "groups", 0

    def read(self, parameters):
        super().read(parameters)
        groups = parameters.get(self.key)
        self.groups = [[j] for j in range(self.shape[self.axis])] if groups is None else groups
        members = [int(j) for group in self.groups for j in group]
        if len(set(members)) < len(members) or not all(0 <= j < self.shape[self.axis] for j in members):
            raise NotChecked("a norm of groups that overlap")

    def norms(self, W):
        sums = W.square().sum(axis=1 - self.axis)
        parts = [sums[np.asarray(group)].sum().reshape(1) for group in self.groups]
        return _joined(parts).sqrt()

    def over_entries(self, per_cell):
        line = np.zeros(self.shape[self.axis])
        for group, weight in zip(self.groups, np.broadcast_to(per_cell, len(self.groups)), strict=True):
            line[np.asarray(group)] = weight
        return line[:, None] if self.axis == 0 else line[None, :]

    @property
    def takes(self):
        return (
            np.broadcast_to(self.over_entries(1.0 if self.weights is None else self.weights), self.shape) > 0
        )


class _ColumnGroups(_Groups):
    key, axis = "columns", 1


class _HalfSquaredGroups(_ColumnGroups):
    finite_dual = True
    degree = 2

    def value(self, W):
        return self.norms(W).sum().square() * 0.5

    def gauge(self, Z):
        return self.number(0.0)

    def conjugate(self, Z):
        return self.norms(Z).max().square() * 0.5


class _HalfSquaredKSupport(_HalfSquaredGroups):
    def read(self, parameters):
        super().read(parameters)
        self.r = int(_positive(parameters["r"], "a k-support norm with an r"))

    def value(self, W):
        """The least over p of (sum of the p largest squares + (sum of the others)^2 / (r - p)) / 2 is above it at every p."""
        a = self.norms(W)
        order = np.argsort(-a.middle)
        a = a[order]
        if a.shape[0] <= self.r:
            return a.square().sum() * 0.5
        tops = [a[:p].square().sum() + a[p:].sum().square() / float(self.r - p) for p in range(self.r)]
        # p leading norms with eta = 1 and the others sharing r - p in proportion: allowed where none of these shares is above 1
        allowed = [
            top
            for p, top in enumerate(tops)
            if (a[p:].max() * float(self.r - p) - a[p:].sum()).high <= 0
            or p == self.r - 1
            or not a[p:].high.any()
        ]
        best = min(allowed, key=lambda top: float(top.high))
        return best * 0.5

    def conjugate(self, Z):
        a = self.norms(Z)
        squares = Interval(*(np.sort(x)[::-1][: self.r] for x in (a.low, a.high))).square()
        return squares.sum() * 0.5


class _Frobenius(_Function):
    def value(self, W):
        return W.square().sum().sqrt()

    def gauge(self, Z):
        return self.value(Z)


class _Trace(_Function):
    def value(self, W):
        return trace_norm(W)

    def gauge(self, Z):
        return spectral_norm(Z)


class _SquaredTrace(_Function):
    finite_dual = True
    degree = 2

    def read(self, parameters):
        self.trace = self.number(_positive(parameters.get("trace", 1.0), "a covariance with a trace"))

    def value(self, W):
        return trace_norm(W).square() / self.trace

    def conjugate(self, Z):
        return spectral_norm(Z).square() * 0.25 * self.trace


class _TotalVariation(_Function):
    takes = property(lambda self: np.zeros(self.shape, dtype=bool))

    def value(self, W):
        return abs(W[:, 1:] - W[:, :-1]).sum() if self.shape[1] > 1 else self.number(0.0)

    def inside(self, Z):
        """The last column makes every row sum to 0."""
        return Z.with_entries((slice(None), -1), -Z[:, :-1].sum(axis=1)) if self.shape[1] > 1 else Z * 0.0

    def gauge(self, Z):
        return abs(Z[:, :-1].cumsum(axis=1)).max() if self.shape[1] > 1 else self.number(0.0)


# ----------------------------------------------------------------------------------------------- quadratics


class _Ridge(_CellNorm):
    degree = 2

    def over_entries(self, per_cell):
        return per_cell

    @property
    def finite_dual(self):
        return bool(self.takes.all())

    def value(self, W):
        squares = W.square()
        return (
            squares if self.weights is None else squares * np.broadcast_to(self.weights, self.shape)
        ).sum() * 0.5

    def gauge(self, Z):
        return self.number(0.0)

    def conjugate(self, Z):
        if self.weights is None:
            return Z.square().sum() * 0.5
        held = self.takes
        weights = np.broadcast_to(self.weights, self.shape)[held]
        return (Z[held].square() / self.number(weights)).sum() * 0.5


class _Mean(_Function):
    degree = 2
    takes = property(lambda self: np.zeros(self.shape, dtype=bool))

    def _centred(self, W):
        return W - (W.sum(axis=1) / float(self.shape[1])).reshape(-1, 1)

    def value(self, W):
        return self._centred(W).square().sum() * 0.5

    def inside(self, Z):
        return self._centred(Z)

    def conjugate(self, Z):
        return Z.square().sum() * 0.5


class _Quadratic(_Function):
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
            raise NotChecked("a quadratic form of a matrix that is not symmetric")
        least = [least_eigenvalue(M, self.exact) for M in given]
        positive = all(one.low > 0 for one in least)
        self.least = (least[0] if len(least) == 1 else least[0] * least[1]) if positive else None
        self.short = (
            self.number(0.0) if positive or all(map(_is_dominant, given)) else self._missing(given, least)
        )

    def _missing(self, given, least) -> Interval:
        """An upper bound of minus the least eigenvalue of the form: a matrix that is semidefinite in theory is so but for rounding."""
        sizes = [spectral_norm(self.number(M)).high for M in given]
        short = [np.maximum(-one.low, 0) for one in least]
        if any(not one <= 1e-10 * float(size) for one, size in zip(short, sizes, strict=True)):
            raise NotChecked("a quadratic form of a matrix with a negative eigenvalue: not convex")
        worst = short[0] if len(given) == 1 else np.maximum(short[0] * sizes[1], short[1] * sizes[0])
        return self.number(float(worst) * 1.001)

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

    def conjugate(self, Z):
        if not self.finite_dual:  # what `inside` made is there still: no entry of it takes anything
            return (self.Y * Z).sum() * 0.5
        Y = self.number(self._inverse(Z.middle))
        image = self._apply(Y)
        rest = Z - image
        return (Y * image).sum() * 0.5 + (Y * rest).sum() + rest.square().sum() / self.least * 0.5


def _is_dominant(M: np.ndarray) -> bool:
    """Whether no diagonal entry is below the sum of the absolute values beside it, exactly: then no eigenvalue is negative."""
    rows = [[Fraction(x) for x in row] for row in M.tolist()]
    return all(row[i] >= sum(abs(x) for j, x in enumerate(row) if j != i) for i, row in enumerate(rows))


# ----------------------------------------------------------------------------------------------- sets


class _Ball(_Function):
    is_set, finite_dual, shrinks = True, True, True

    def read(self, parameters):
        self.radius = self.number(_positive(parameters["radius"], "a ball with a radius", 0.0))
        self.of = {
            "l1_ball": (_L1, {}), "l21_ball": (_L21, {}), "trace_norm_ball": (_Trace, {}), "frobenius_ball": (_Frobenius, {}),
        }[parameters["word"]][0]({}, self.shape, self.exact)  # fmt: skip

    def violation(self, W):
        return maximum(self.of.value(W) - self.radius, 0.0)

    def repaired(self, W):
        size = self.of.value(W)
        return W if size.high <= self.radius.low else W * (self.radius / maximum(size, self.radius))

    def conjugate(self, Z):
        return self.of.gauge(Z) * self.radius


class _Comparison(_Function):
    is_set = True
    side = 0.0

    def read(self, parameters):
        bound = np.broadcast_to(np.asarray(parameters["bound"], float), self.shape)
        self.there = np.isfinite(bound)
        self.bound = self.number(np.where(self.there, bound, 0.0))
        self.cone = not bound[self.there].any()

    @property
    def shrinks(self):
        return self.cone or bool(np.all(np.asarray(self.bound.low * self.side <= 0)))

    @property
    def takes(self):
        return np.zeros(self.shape, dtype=bool)

    def inside(self, Z):
        """Multipliers of W >= bound are <= 0, of W <= bound >= 0, and 0 where there is no bound."""
        Z = -maximum(-Z, 0.0) if self.side > 0 else maximum(Z, 0.0)
        return Z * self.there.astype(float)

    def conjugate(self, Z):
        return (Z * self.bound).sum()

    def violation(self, W):
        missing = (self.bound - W) * self.side
        inside = (W.high <= self.bound.low) if self.side < 0 else (W.low >= self.bound.high)
        outside = self.there & ~np.asarray(inside, bool)
        return maximum(missing[outside], 0.0).max()

    def repaired(self, W):
        over = maximum((self.bound - W) * self.side, 0.0) * self.there.astype(float)
        return W + over * self.side if over.high.any() else W


class _AtLeast(_Comparison):
    side = 1.0


class _AtMost(_Comparison):
    side = -1.0


class _EqualTo(_Comparison):
    finite_dual = True
    shrinks = property(lambda self: self.cone)
    takes = _Function.takes

    def inside(self, Z):
        return Z

    def violation(self, W):
        return abs(W - self.bound).max()


class _Simplex(_Function):
    is_set, finite_dual = True, True

    def read(self, parameters):
        self.total = self.number(_positive(parameters.get("total", 1.0), "a simplex with a total"))

    def violation(self, W):
        return maximum(maximum(-W, 0.0).max(), abs(W.sum(axis=0) - self.total).max())

    def repaired(self, W):
        W = maximum(W, 0.0)
        sums = W.sum(axis=0)
        return W * (self.total / sums).reshape(1, -1) if (sums.low > 0).all() else W

    def conjugate(self, Z):
        return Z.max(axis=0).sum() * self.total


def _positive(x, what: str, least: float = 5e-324) -> float:
    x = float(x)
    if not (x >= least and np.isfinite(x)):
        raise NotChecked(f"{what} of {x:g}")
    return x


def _joined(parts) -> Interval:
    return Interval(np.concatenate([p.low for p in parts]), np.concatenate([p.high for p in parts]))


#: word -> its class
FUNCTIONS = {
    "l1_norm": _L1, "l21_norm": _L21, "l12_norm": _L12, "l1_inf_norm": _L1Inf, "group_norm": _Groups,
    "column_group_norm": _ColumnGroups, "half_squared_group_norm": _HalfSquaredGroups,
    "half_squared_k_support_norm": _HalfSquaredKSupport, "frobenius_norm": _Frobenius, "trace_norm": _Trace,
    "squared_trace_norm": _SquaredTrace, "feature_covariance_norm": _SquaredTrace, "task_covariance_norm": _SquaredTrace,
    "total_variation": _TotalVariation, "ridge": _Ridge, "mean_regularizer": _Mean, "graph_laplacian": _Quadratic,
    "kronecker_ridge": _Quadratic, "l1_ball": _Ball, "l21_ball": _Ball, "trace_norm_ball": _Ball, "frobenius_ball": _Ball,
    "at_least": _AtLeast, "at_most": _AtMost, "equal_to": _EqualTo, "columns_on_simplex": _Simplex,
}  # fmt: skip
