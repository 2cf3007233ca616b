"""Base classes of losses: functions of one task's predictions, with the traits that solvers ask for."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.atom import Atom
from mtldsl.utils.parallel import slabs


class Loss(Atom):
    """A convex function f(z) of one task's predictions z (n,), given its targets y (n,).

    `s` holds one positive weight per sample (None: all one); the law "sample weights equal replication" defines what it means.
    A loss never sees the weights W or the inputs X. Coefficients in front of a loss are applied by the compiler.
    """

    #: LaTeX with the samples' weights s_ij, where it is more than a factor after the sum over j
    weighted_formula: ClassVar[str] = ""
    #: "real", "sign" for {-1, +1}, "count" for 0, 1, 2, ..., "positive" for > 0, "time" for signed times, never 0, "indicators" of labellings (`LabelGraphLoss`),
    #: "classes": -1 and +1, with one +1 in every row of all tasks together (`RowLoss`)
    labels: ClassVar[str] = "real"
    #: has a gradient everywhere
    smooth: ClassVar[bool] = False
    #: Lipschitz constant of the gradient in one prediction (inf: none, or not smooth)
    curvature: ClassVar[float] = np.inf
    #: q where f(z) = q/2 sum (z - y)^2, else None
    quadratic: ClassVar[float | None] = None
    #: smooth, and quadratic or affine in each prediction between a few values of it: the second derivative jumps there, and is constant between
    piecewise_quadratic: ClassVar[bool] = False
    #: a sum over samples: may be called on the stacked samples of all tasks at once
    separable: ClassVar[bool] = False
    #: every loss of the language is at least this
    bounded_below: ClassVar[float] = 0.0
    #: concave in the weighted sum of squared residuals, a function of nothing else
    radial: ClassVar[bool] = False
    #: a function of z - y alone
    of_residuals: ClassVar[bool] = False
    #: samples may carry weights
    weighs_samples: ClassVar[bool] = True
    #: False: a proximal step takes Newton's method on every sample
    exact_prox: ClassVar[bool] = True
    #: a maximum of affine functions, zero among them, the highest of which is found exactly
    max_affine: ClassVar[bool] = False
    #: a constant added to all predictions makes a difference, but no trivial solution
    takes_intercept: ClassVar[bool] = True
    #: why not, after "since"
    intercept_reason: ClassVar[str] = ""

    @property
    def has_prox(self) -> bool:
        """Tell whether `prox` is there."""
        return type(self).prox is not Loss.prox

    def falls(self, y) -> np.ndarray | None:
        """(n,) the side, +1 or -1, to which a prediction may go for ever with the loss falling all the way, 0 where there is none; None
        for losses whose least value is attained."""
        return None

    def comparisons(self, y):
        """(r, n) sparse: `falls` has r sides, of these differences of predictions; None where it is about the predictions themselves."""
        return None

    def of_task(self, i: int) -> Loss:
        """The loss of task i, where tasks have losses of their own."""
        return self

    def for_tasks(self, names, class_sizes) -> Loss:
        """The loss with its parameters fitted to the tasks' names and (positives, negatives); ModelError where they do not fit."""
        return self

    def weighted_latex(self, argument: str) -> str:
        """The formula where samples have weights s_ij."""
        if self.weighted_formula:
            return self.weighted_formula.replace("{}", argument)
        return self.latex(argument).replace(r"\sum_j ", r"\sum_j s_{ij} ", 1)

    def value(self, z, y, s=None) -> float:
        """f(z)."""
        raise NotImplementedError

    def gradient(self, z, y, s=None) -> np.ndarray:
        """The gradient where smooth; elsewhere a subgradient (then it is also `dual_point`)."""
        raise NotImplementedError

    def prox(self, z, y, step, s=None) -> np.ndarray:
        """argmin over x of step * f(x) + 1/2 ||x - z||^2."""
        raise NotImplementedError

    def conjugate(self, u, y, s=None) -> float:
        """f*(u) = sup over z of <u, z> - f(z), in closed form; +inf outside its domain."""
        raise NotImplementedError

    def dual_project(self, u, y, s=None) -> np.ndarray:
        """A point of dom f* near u (u itself where it lies inside)."""
        raise NotImplementedError

    def dual_point(self, z, y, s=None) -> np.ndarray:
        """A feasible dual vector made from predictions: a (sub)gradient at z."""
        return self.dual_project(self.gradient(z, y, s), y, s)

    def majorizer_weight(self, z, y, s=None) -> float | None:
        """v where v/2 sum_j s_j (x_j - y_j)^2 + constant is above f everywhere and touches it at x = z; None where no such is known."""
        if not self.radial:
            return None
        r = z - y
        return float(self.weight_of_norm(np.linalg.norm(r if s is None else np.sqrt(s) * r)))

    def value_of_norm(self, t):
        """f as a function of t = sqrt(sum_j s_j (z_j - y_j)^2), where `radial`; elementwise."""
        raise NotImplementedError

    def weight_of_norm(self, t):
        """The derivative of `value_of_norm` over t, which is `majorizer_weight`; inf where t = 0 is a kink."""
        raise NotImplementedError

    def conjugate_of_norm(self, n):
        """f*(u) - <u, y> as a function of n = ||u / sqrt(s)||, where `radial` and no sum over samples; dom f* is n <= 1."""
        raise NotImplementedError

    def label_sizes(self, y) -> np.ndarray:
        """The sizes of labels in the unit of predictions: what <u, y> rounds like in a conjugate."""
        return np.abs(y)

    def refuse_weights(self, s) -> None:
        """ValueError where a loss that counts samples is given weights of them."""
        if s is not None:
            raise ValueError(f"{self.name} takes no sample weights")

    def decide(self, z) -> np.ndarray:
        """Return what `predict` returns from predictions z: the sign for labels in {-1, +1}, else z."""
        return np.where(z >= 0, 1.0, -1.0) if self.labels == "sign" else z


#: Samples of one part of a sum: its temporaries stay in the cache, and are small beside large data.
SLAB_ROWS = 1 << 16


_NONE = np.zeros((), bool)


class SeparableLoss(Loss):
    """f(z) = sum_j s_j l(z_j, y_j): a subclass gives the scalar function l and everything else follows.

    Where `max_affine`, l(z, y) = max(0, one affine function of z): its slope is 0 or the other end of `dual_interval`.
    """

    separable: ClassVar[bool] = True
    #: l*(u, y) is the binary entropy of -y u, negated: a log a + (1 - a) log(1 - a)
    entropic: ClassVar[bool] = False

    @property
    def has_prox(self) -> bool:
        own = type(self).pointwise_prox is not SeparableLoss.pointwise_prox
        return own if type(self).prox is SeparableLoss.prox else super().has_prox

    def pointwise(self, z, y):
        """l(z, y), elementwise."""
        raise NotImplementedError

    def summands(self, z, y):
        """(n,) the sizes of what l(z, y) and l*(u, y), u a slope at z, are sums of, where these cancel: more than |l| and |u| (|z| + |y|) say.
        None where nothing cancels."""
        return None

    def slope(self, z, y):
        """A subgradient of l in z (its derivative where smooth), elementwise."""
        raise NotImplementedError

    def second_slope(self, z, y):
        """The second derivative of l in z where smooth, elementwise; by a difference of slopes, which serves piecewise smooth losses too."""
        h = 1e-4 * np.maximum(1.0, np.abs(z))
        return np.maximum((self.slope(z + h, y) - self.slope(z - h, y)) / (2.0 * h), 0.0)

    def pointwise_prox(self, z, y, step):
        """argmin over x of step * l(x, y) + (x - z)^2 / 2, elementwise; `step` is a scalar or an array."""
        raise NotImplementedError

    def pointwise_conjugate(self, u, y):
        """l*(u, y) for u inside `dual_interval`, elementwise (outside, the value is never used)."""
        quadratic = self.dual_quadratic(y)
        if quadratic is None:
            raise NotImplementedError
        b, c = quadratic
        return u * (0.5 * c * u + b)

    def dual_interval(self, y):
        """(low, high): the closed interval dom l*(., y), broadcastable against y."""
        return -np.inf, np.inf

    def dual_quadratic(self, y) -> tuple[Any, float] | None:
        """(b, c) where l*(u, y) = b u + c u^2 / 2 on `dual_interval`, c a number >= 0; None where it is no such function."""
        return None

    def zero_interval(self, y) -> tuple[Any, Any] | None:
        """(a, b) where l(z, y) is low (z - a) below a, 0 from a to b and high (z - b) above b, with the finite ends (low, high) of
        `dual_interval`; None where it is no such function."""
        quadratic, ends = self.dual_quadratic(y), self.dual_interval(y)
        if quadratic is None or quadratic[1] != 0.0 or not all(np.all(np.isfinite(end)) for end in ends):
            return None
        return quadratic[0], quadratic[0]

    def value(self, z, y, s=None) -> float:
        if _are_many(z, y):
            return sum(self.value(*part) for part in _parts(z, y, s))
        l = self.pointwise(z, y)
        with np.errstate(over="ignore"):  # a sum beyond the largest float is inf, as one summand would be
            return float(np.asarray(l).sum() if s is None else np.dot(s, l))

    def gradient(self, z, y, s=None):
        if _are_many(z, y):
            return _filled(self.gradient, z, y, s)
        g = self.slope(z, y)
        return g if s is None else s * g

    def hessian(self, z, y, s=None):
        """(n,) the diagonal of f's second derivative where smooth: s_j l''(z_j, y_j)."""
        if _are_many(z, y):
            return _filled(self.hessian, z, y, s)
        h = self.second_slope(z, y)
        return h if s is None else s * h

    def prox(self, z, y, step, s=None):
        return self.pointwise_prox(z, y, step if s is None else step * s)

    def conjugate(self, u, y, s=None) -> float:
        if _are_many(u, y):
            return sum(self.conjugate(*part) for part in _parts(u, y, s))
        inside, outside = self.within(u if s is None else u / s, y)
        if np.any(outside):
            return np.inf
        l = self.pointwise_conjugate(inside, y)
        return float(np.asarray(l).sum() if s is None else np.dot(s, l))

    def within(self, u, y) -> tuple[Any, Any]:
        """(u moved into `dual_interval`, which of them were outside it by more than rounding)."""
        if self._is_bounded_nowhere(y):
            return u, _NONE
        inside = np.clip(u, *self.dual_interval(y))
        # s * c / s may differ from c by a unit in the last place: for that, no projected point is outside
        return inside, np.abs(u - inside) > 4 * np.finfo(float).eps * np.abs(inside)

    def _is_bounded_nowhere(self, y) -> bool:
        low, high = self.dual_interval(y)
        return isinstance(low, float) and isinstance(high, float) and low == -np.inf and high == np.inf

    def dual_project(self, u, y, s=None):
        if _are_many(u, y):
            return u if self._is_bounded_nowhere(y[:1]) else _filled(self.dual_project, u, y, s)
        if self._is_bounded_nowhere(y):
            return u
        low, high = self.dual_interval(y)
        return np.clip(u, low, high) if s is None else s * np.clip(u / s, low, high)


def _are_many(z, y) -> bool:
    # of an array without `np.size`, which takes longer than small sums
    size = z.size if isinstance(z, np.ndarray) else np.size(z)
    return size > SLAB_ROWS and np.shape(z) == np.shape(y)


def _parts(z, y, s):
    """(z, y, s) of some samples at a time."""
    for some in slabs(z.size, SLAB_ROWS):
        yield z[some], y[some], None if s is None else s[some]


def _filled(function, z, y, s) -> np.ndarray:
    """function(z, y, s), elementwise, computed some samples at a time."""
    return np.concatenate([function(*part) for part in _parts(z, y, s)], dtype=float)
