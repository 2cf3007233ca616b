"""Cox's partial likelihood of right-censored times, one value a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from mtldsl.atoms.atom import ROUNDING_SHARE, register
from mtldsl.atoms.loss import Loss


@dataclass(frozen=True)
class CoxSettings:
    """Limits of Newton's method in a prox, and of a projection.

    newton_steps  : most steps of a prox; a line search makes every one a descent
    value_share   : rounding of a value, relative; a decrease below it is not seen
    falling_ratio : such a decrease ends the steps where it is not this much below the last one: only rounding is left
    mass_share    : least mass of a row in a projection, by which a group without any can be scaled
    """

    newton_steps: int = 2000
    value_share: float = 1e-15
    falling_ratio: float = 0.1
    mass_share: float = 1e-100


SETTINGS = CoxSettings()


@register
@dataclass(frozen=True, eq=False)
class CoxLoss(Loss):
    r"""Cox's negative log partial likelihood of times that may be censored: sum over events j of s_j (log sum_{k: |y_k| >= y_j} s_k exp(z_k) - z_j),
    with z = X_i w_i the predictions of a task, the logarithms of relative risks.

    Shapes: z, y and the sample weights s are (n,). A label is a signed time: y = t > 0 where the event came at t, y = -t where
    the row was last seen at t without it. Ties are Breslow's. A sum over events; `mean=True` divides by n, events or not.
    A constant added to all predictions of a task changes nothing: an intercept is refused.

    Raises
    ------
    DataError
        Where a label is 0.
    ModelError
        Where the weights have an intercept.

    Notes
    -----
    Smooth: the gradient is a - e, with e_j = s_j at events, else 0, and a_j = s_j exp(z_j) sum_{events l: y_l <= |y_j|} s_l / S_l,
    S_l = sum_{k: |y_k| >= y_l} s_k exp(z_k); its Lipschitz constant grows with the number of events.
    Conjugate, exact and in O(n log n), for d_t the weight of the events at time t and F_t = sum_{k: |y_k| >= t} u_k:
    sum_j a_j log(a_j / s_j) + sum_t (F_t log F_t - (F_t + d_t) log(F_t + d_t)), a = u + e, where a >= 0, F >= 0 and
    sum_j u_j = 0, else +inf; a row last seen before the first event has a_j = 0. It is the least entropy of all ways to share d_t
    among the rows at risk at t, which nested risk sets bring into closed form.
    prox: Newton's method, a tridiagonal system a step.
    Source: Cox, "Regression models and life-tables", JRSS B 34 (1972); Breslow, "Covariance analysis of censored survival data",
    Biometrics 30 (1974); for several tasks, Li, Wang, Wu, Ye and Reddy, "A multi-task learning formulation for survival
    analysis", KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([2.0, -3.0, 5.0])
    >>> round(CoxLoss().value(np.zeros(3), y), 6), round(float(np.log(3)), 6)
    (1.098612, 1.098612)
    >>> CoxLoss().gradient(np.zeros(3), y).round(6)
    array([-0.666667,  0.333333,  0.333333])
    >>> round(CoxLoss().conjugate(np.array([-2.0, 1.0, 1.0]) / 3, y), 6)
    -1.098612
    """

    name: ClassVar[str] = "cox_loss"
    meaning: ClassVar[str] = (
        "Cox's negative log partial likelihood of times $|y|$, an event where $y>0$, censored where $y<0$"
    )
    formula: ClassVar[str] = (
        r"\sum_{j:\,y_{ij}>0}\Big(\log\sum_{k:\,|y_{ik}|\geq y_{ij}}e^{({})_k}-({})_j\Big)"
    )
    weighted_formula: ClassVar[str] = (
        r"\sum_{j:\,y_{ij}>0}s_{ij}\Big(\log\sum_{k:\,|y_{ik}|\geq y_{ij}}s_{ik}e^{({})_k}-({})_j\Big)"
    )
    labels: ClassVar[str] = "time"
    smooth: ClassVar[bool] = True
    exact_prox: ClassVar[bool] = False
    takes_intercept: ClassVar[bool] = False
    intercept_reason: ClassVar[str] = "a number added to all predictions of a task cancels"

    def falls(self, y):
        return self._chain(y)[1]

    def comparisons(self, y):
        return self._chain(y)[0]

    def _chain(self, y):
        """((r, n) sparse differences, (r,) sides): of every event and the next one, of every censored row and the last event before it.

        All are at least 0 where every event has the highest prediction of its risk set; events at one time are alike, side 0.
        """
        events = np.flatnonzero(y > 0)
        events = events[np.argsort(y[events], kind="stable")]
        rest = np.flatnonzero(~(y > 0))
        last = np.searchsorted(y[events], -y[rest], side="right") - 1
        rest, last = rest[last >= 0], last[last >= 0]
        above = np.concatenate([events[:-1], events[last]])
        below = np.concatenate([events[1:], rest])
        at, ones = np.arange(above.size), np.ones(above.size)
        where = np.concatenate([at, at]), np.concatenate([above, below])
        differences = scipy.sparse.csr_array((np.concatenate([ones, -ones]), where), shape=(at.size, len(y)))
        return differences, np.where(np.abs(y[above]) == y[below], 0.0, 1.0)

    def value(self, z, y, s=None):
        return RiskSets(y, s).value(np.asarray(z, float))

    def gradient(self, z, y, s=None):
        return RiskSets(y, s).gradient(np.asarray(z, float))

    def conjugate(self, u, y, s=None):
        return RiskSets(y, s).conjugate(np.asarray(u, float))

    def dual_project(self, u, y, s=None):
        return RiskSets(y, s).dual_project(np.asarray(u, float))

    def prox(self, z, y, step, s=None):
        return RiskSets(y, s).prox(np.asarray(z, float), step)


class RiskSums(NamedTuple):
    """Sums of every risk set, S that of s exp(z), and what is expected.

    top      : the largest z
    total    : S exp(-top)
    expected : the weight of events that its rows are expected to have by then
    """

    top: np.ndarray
    total: np.ndarray
    expected: np.ndarray


class RiskSets:
    """The loss of one task: the rows at risk at every distinct time of an event, the times rising and the sets nested.

    weights : (n,) s
    events  : (n,) s at events, else 0
    deaths  : (K,) the weight of all events at a time
    seen    : (n,) the rows in any risk set
    last    : the last risk set of each of these
    """

    def __init__(self, y, s=None):
        y = np.asarray(y, float)
        self.weights = np.ones(y.size) if s is None else np.asarray(s, float)
        self.events = np.where(y > 0, self.weights, 0.0)
        times, place = np.unique(y[y > 0], return_inverse=True)
        self.deaths = np.bincount(place, weights=self.weights[y > 0], minlength=times.size)
        last = np.searchsorted(times, np.abs(y), side="right") - 1
        self.seen = last >= 0
        self.last = last[self.seen]

    def by_last(self, values) -> np.ndarray:
        """(K,) sums of the seen rows' values over those with the same last risk set."""
        return np.bincount(self.last, weights=values, minlength=self.deaths.size)

    def tails(self, values) -> np.ndarray:
        """(K,) sums over risk sets of the values (n,) of all rows."""
        return np.cumsum(self.by_last(values[self.seen])[::-1])[::-1]

    # ------------------------------------------------------------------------------------------------ predictions

    def value(self, z) -> float:
        """Loss of predictions z."""
        return self._value(z, self._sums(z))

    def gradient(self, z) -> np.ndarray:
        """Gradient of the loss, a - e."""
        return self._masses(z, self._sums(z)) - self.events

    def _sums(self, z) -> RiskSums:
        from mtldsl.atoms.losses.cox_kernel import scan_risk_sets

        z, weights = z[self.seen], self.weights[self.seen]
        top = np.full(self.deaths.size, -np.inf)
        np.maximum.at(top, self.last, z)
        return RiskSums(*scan_risk_sets(top, self.by_last(weights * np.exp(z - top[self.last])), self.deaths))

    def _value(self, z, sums: RiskSums) -> float:
        lost = np.log(sums.total)[self.last] + (sums.top[self.last] - z[self.seen])
        return float(self.events[self.seen] @ lost)

    def _shares(self, z, sums: RiskSums) -> np.ndarray:
        """The seen rows' s exp(z) / S, S of the last risk set."""
        return self.weights[self.seen] * np.exp(z[self.seen] - sums.top[self.last]) / sums.total[self.last]

    def _masses(self, z, sums: RiskSums) -> np.ndarray:
        """(n,) a, the weight of events that each row is expected to have."""
        a = np.zeros(z.size)
        a[self.seen] = self._shares(z, sums) * sums.expected[self.last]
        return a

    # ------------------------------------------------------------------------------------------------ proximal steps

    def prox(self, z, step) -> np.ndarray:
        """argmin over x of step * value(x) + 1/2 ||x - z||^2, by Newton's method with a line search."""
        if not self.deaths.size:
            return np.array(z)
        x, sums, last = z, self._sums(z), np.inf
        value = step * self._value(x, sums)
        for _ in range(SETTINGS.newton_steps):
            a = self._masses(x, sums)
            slope = step * (a - self.events) + x - z
            way = -self._solve_newton(slope, sums, a, step)
            decrease, length = -float(way @ slope), 1.0
            # on the way H grows by a factor of at most e^(length * reach), so that a step of this length descends
            reach = max(float(np.ptp(way)), np.finfo(float).tiny)
            safe = 0.5 * np.log1p(reach) / reach
            rounding = SETTINGS.value_share * (abs(value) + step)
            if decrease <= rounding and decrease >= SETTINGS.falling_ratio * last:
                break
            while True:
                trial = x + length * way
                sums = self._sums(trial)
                new = step * self._value(trial, sums) + 0.5 * float(np.sum((trial - z) ** 2))
                if new <= value - 1e-4 * length * decrease + rounding or length <= safe:
                    break
                length = max(0.5 * length, safe)
            x, value, last = trial, new, decrease
        return x

    def _solve_newton(self, right, sums: RiskSums, a, step) -> np.ndarray:
        """The v with v + step H v = right, H the Hessian: (H v)_j = a_j (v_j - h_k), k the last risk set of row j.

        h obeys a tridiagonal system, as the risk sets are nested: a Laplacian of the chain of risk sets, plus a positive diagonal.
        """
        a, total, expected, deaths = a[self.seen], sums.total, sums.expected, self.deaths
        left = 1.0 / (1.0 + step * a)
        links = (
            expected[:-1] * expected[1:] / deaths[1:] * (total[1:] / total[:-1]) * np.exp(np.diff(sums.top))
        )
        bands = np.zeros((2, deaths.size))
        bands[0, 1:] = -links
        bands[1] = np.maximum(self.by_last(a * left), np.finfo(float).tiny)
        bands[1, :-1] += links
        bands[1, 1:] += links
        v = np.array(right)
        h = scipy.linalg.solveh_banded(bands[-deaths.size :], self.by_last(a * left * v[self.seen]))
        v[self.seen] = left * (v[self.seen] + step * a * h[self.last])
        return v

    # ------------------------------------------------------------------------------------------------ multipliers

    def conjugate(self, u) -> float:
        """Conjugate of the loss, inf outside its domain."""
        if not self._holds(u, ROUNDING_SHARE):
            return np.inf
        F, d = np.maximum(self.tails(u), 0.0), self.deaths
        u, e, s = u[self.seen], self.events[self.seen], self.weights[self.seen]
        a = np.maximum(u + e, 0.0)
        # log(a / s) of events and log(F + d) by log1p: where an order is nearly perfect u and F are small
        own = np.where(
            e > 0, scipy.special.xlog1py(a, np.maximum(u / s, -1.0)), scipy.special.xlogy(a, a / s)
        )
        # (F + d) log(F + d) - F log F, without the difference of the two
        shared = scipy.special.xlog1py(F, np.minimum(F, d) / np.maximum(F, d))
        shared += d * (np.log(d) + np.log1p(F / d)) - scipy.special.xlogy(F, np.minimum(F / d, 1.0))
        return float(own.sum() - shared.sum())

    def _holds(self, u, share) -> bool:
        """Tell whether u lies in the domain, but for this share of the events' weights."""
        tol, F = share * self.deaths.sum(), self.tails(u)
        at_risk = np.all(u + self.events >= -share * self.events) and not np.any(u[~self.seen])
        return bool(at_risk and np.all(-tol <= F) and np.all(F[:1] <= tol))

    def dual_project(self, u) -> np.ndarray:
        """A point of the domain near u: no mass below zero, all of it scaled to that of the events, and no risk set short of its own.

        Where the risk set from t on holds less than its events ask for, F_t is moved to zero: rows whose last risk set it is have more,
        those of the risk set before it less, which d_t + F_t - F_{t+1} >= 0 are left of.
        """
        # rounding of the sums alone: what a sum is off moves the loss by as many times the predictions
        if self._holds(u, (8.0 + np.sqrt(u.size)) * np.finfo(float).eps):
            return u
        if not self.deaths.size:
            return np.zeros(u.size)
        floor = SETTINGS.mass_share * self.weights
        a = np.where(self.seen, np.maximum(u + self.events, floor), 0.0)
        a *= self.deaths.sum() / a.sum()
        lack = np.maximum(-self.tails(a - self.events), 0.0)
        lack[0] = 0.0  # of all rows, but for rounding
        more = (lack - np.append(lack[1:], 0.0)) / self.by_last(a[self.seen])
        a[self.seen] *= np.maximum(1.0 + more, 0.0)[self.last]
        return a - self.events
