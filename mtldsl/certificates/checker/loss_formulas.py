"""The checker's formulas of losses of samples, of rows, of residual norms and of the worst task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mtldsl.certificates.checker.function import UnsupportedFormula
from mtldsl.certificates.checker.interval import (
    Interval,
    clip_to_unit,
    join_intervals,
    maximum,
    minimum,
    round_to_float,
)
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.proof_schema import witness_of_shares

# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of losses that are sums over samples, and of the square-root loss: enclosures of value and conjugate.
#
# `SumLossFormula` puts samples, weights and coefficients around them.


@dataclass(frozen=True)
class ScalarFormula:
    """A loss of one sample with weight 1: l(z, y), and l*(u, y).

    ends   : y -> (low, high) of multipliers, None where there is no end
    inside : (u, y) -> u moved into the domain of the conjugate, as real numbers, where its end depends on the sign of y
    fits   : y -> whether the loss is defined for these labels
    """

    value: Callable
    conjugate: Callable
    ends: Callable = lambda y: (None, None)
    inside: Callable | None = None
    fits: Callable = lambda y: True


def _squares(q) -> ScalarFormula:
    """q/2 (z - y)^2"""
    return ScalarFormula(lambda z, y: (z - y).square() * q * 0.5, lambda u, y: u * y + u.square() * 0.5 / q)


def _quantile(above, below) -> ScalarFormula:
    """max(q (y - z), (q - 1) (y - z)), the slopes for y > z and for y < z; the absolute loss is twice that of q = 1/2."""
    return ScalarFormula(
        lambda z, y: maximum((y - z) * above, -(y - z) * below),
        lambda u, y: u * y,
        lambda y: (-above, below),
    )


def _epsilon_insensitive(epsilon) -> ScalarFormula:
    return ScalarFormula(
        lambda z, y: maximum(abs(z - y) - epsilon, 0.0),
        lambda u, y: u * y + abs(u) * epsilon,
        lambda y: (epsilon.like(-1.0), epsilon.like(1.0)),
    )


def _huber(delta) -> ScalarFormula:
    def value(z, y):
        r = abs(z - y)
        inner = minimum(r, delta)
        return inner * (r - inner * 0.5)

    return ScalarFormula(value, lambda u, y: u * y + u.square() * 0.5, lambda y: (-delta, delta))


def _of_margin(value, conjugate, inside=None) -> ScalarFormula:
    """A loss of labels -1 and +1, whose multipliers have the other sign; from 0 to -y where there is no `inside`."""
    return ScalarFormula(
        value, conjugate, lambda y: (minimum(-y, 0.0), maximum(-y, 0.0)), inside,
        lambda y: np.isin(y, (-1.0, 1.0)).all(),
    )  # fmt: skip


def _other_sign(u, y):
    return maximum(-u * y, 0.0) * -y  # y is -1 or +1


def _entropy_of_share(u, y):
    a = clip_to_unit(-u * y)
    return a.times_log() + clip_to_unit(1.0 - a).times_log()


def _entropy(a):
    return a.times_log() - a


def _conjugate_of_gamma(u, y):
    a, log_y = maximum(1.0 - u, 0.0), y.log()
    return a.times_log() - a * log_y - a + log_y + 1.0


#: word -> its scalar function, made of its parameters (Intervals)
SCALAR_LOSSES = {
    "squared_loss": lambda number: _squares(number(1.0)),
    "sum_of_squares": lambda number: _squares(number(2.0)),
    "absolute_loss": lambda number: _quantile(number(1.0), number(1.0)),
    "quantile_loss": lambda number: _quantile(number("q"), 1.0 - number("q")),
    "epsilon_insensitive_loss": lambda number: _epsilon_insensitive(number("epsilon")),
    "huber_loss": lambda number: _huber(number("delta")),
    "hinge_loss": lambda number: _of_margin(lambda z, y: maximum(1.0 - z * y, 0.0), lambda u, y: u * y),
    "squared_hinge_loss": lambda number: _of_margin(
        lambda z, y: maximum(1.0 - z * y, 0.0).square(), lambda u, y: u * y + u.square() * 0.25, _other_sign
    ),
    "logistic_loss": lambda number: _of_margin(
        lambda z, y: maximum(-(z * y), 0.0) + (-abs(z * y)).exp().log1p(), _entropy_of_share
    ),
    "exponential_loss": lambda number: _of_margin(
        lambda z, y: (-z * y).exp(), lambda u, y: _entropy(maximum(-u * y, 0.0)), _other_sign
    ),
    "poisson_loss": lambda number: ScalarFormula(
        lambda z, y: z.exp() - z * y, lambda u, y: _entropy(maximum(u + y, 0.0)),
        lambda y: (-y, None), fits=lambda y: (y >= 0).all(),
    ),
    "gamma_loss": lambda number: ScalarFormula(
        lambda z, y: y * (-z).exp() + z - y.log() - 1.0, _conjugate_of_gamma,
        lambda y: (None, number(1.0)), fits=lambda y: (y > 0).all(),
    ),
}  # fmt: skip


def scalar_loss(word: str, parameters, exact: bool):
    """The scalar function of a word; UnsupportedFormula for words that have none here. The schema has looked at the parameters."""
    if word not in SCALAR_LOSSES:
        raise UnsupportedFormula(word)

    def number(x):
        return Interval.of(float(parameters[x]) if isinstance(x, str) else x, exact)

    return SCALAR_LOSSES[word](number)


class LossFormula:
    """A loss of predictions with its data; what multipliers of a task sum to cannot be moved, unless a subclass knows how."""

    def shifted(self, u: Interval, i: int, total: Interval, alone: bool) -> Interval | None:
        """u with exactly `total` off the sum of task i, the whole sum where the loss stands `alone`; None where that is not known to be possible."""
        return None

    def room(self, u: Interval) -> np.ndarray:
        """Return how far every multiplier may be moved either way without leaving the domain, as floats and not too large."""
        return np.zeros(u.shape)


class SumLossFormula(LossFormula):
    """sum over samples of s_j l(z_j, y_j), s_j coefficient times sample weight."""

    def __init__(self, scalar, coefficients: Interval, data, exact: bool):
        self.scalar, self.y = scalar, Interval.of(data.targets, exact)
        self.s, self.rows, self.starts = coefficients.repeat(data.counts), data.rows, data.starts
        if data.sample_weights is not None:
            self.s = self.s * Interval.of(data.sample_weights, exact)

    def value(self, z: Interval) -> Interval:
        return (self.scalar.value(z, self.y) * self.s).sum()

    def ends(self) -> tuple[Interval | None, Interval | None]:
        """(low, high) of every multiplier, None where there is no end; not of a loss with `inside`, whose end depends on the sign of y."""
        low, high = self.scalar.ends(self.y)
        return None if low is None else self.s * low, None if high is None else self.s * high

    def room(self, u: Interval, rows: slice = slice(None)) -> np.ndarray:
        if self.scalar.inside:
            return round_to_float(abs(u).low, -1)
        room = np.full(u.shape, np.inf)
        low, high = self.ends()
        if low is not None:
            room = np.minimum(room, round_to_float((u - low[rows]).low, -1))
        if high is not None:
            room = np.minimum(room, round_to_float((high[rows] - u).low, -1))
        return room

    def shifted(self, u: Interval, i: int, total: Interval, alone: bool) -> Interval | None:
        """The entry with the most room takes it."""
        rows = self.rows[i]
        room = self.room(u[rows], rows)
        j = rows.start + int(np.argmax(room))
        if not room[j - rows.start] > 2 * float(round_to_float(abs(total).high, 1)):
            return None
        return u.with_entries(slice(j, j + 1), u[j : j + 1] - total)

    def inside(self, u: Interval) -> Interval:
        if self.scalar.inside:
            return self.scalar.inside(u, self.y)
        low, high = self.ends()
        u = u if high is None else minimum(u, high)
        return u if low is None else maximum(u, low)

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        return self._conjugates(u * t).sum()

    def gaps(self, z: Interval, u: Interval) -> Interval:
        """The Fenchel-Young gap of every sample, l(z) + l*(u) - u z, of multipliers in the domain."""
        return self.scalar.value(z, self.y) * self.s + self._conjugates(u) - u * z

    def _conjugates(self, u: Interval) -> Interval:
        """l*(u) of every sample, of multipliers in the domain."""
        u = u / self.s
        low, high = (None, None) if self.scalar.inside else self.scalar.ends(self.y)
        if low is not None:  # what rounding adds is not there
            u = Interval(np.maximum(u.low, low.low), np.maximum(u.high, low.low))
        if high is not None:
            u = Interval(np.minimum(u.low, high.high), np.minimum(u.high, high.high))
        return self.scalar.conjugate(u, self.y) * self.s


class SquareRootLossFormula(LossFormula):
    """sum over tasks i of c_i sqrt(sum_j s_j (z_j - y_j)^2 + eps^2)."""

    def __init__(self, eps: Interval, coefficients: Interval, data, exact: bool):
        self.eps, self.c, self.counts = eps, coefficients, data.counts
        self.starts, self.rows = data.starts, data.rows
        self.y = Interval.of(data.targets, exact)
        self.s = None if data.sample_weights is None else Interval.of(data.sample_weights, exact)

    def value(self, z: Interval) -> Interval:
        squares = (z - self.y).square()
        squares = squares if self.s is None else squares * self.s
        return ((squares.sums(self.starts) + self.eps.square()).sqrt() * self.c).sum()

    def _dual_norms(self, u: Interval) -> Interval:
        squares = u.square() if self.s is None else u.square() / self.s
        return squares.sums(self.starts).sqrt() / self.c

    def shifted(self, u: Interval, i: int, total: Interval, alone: bool) -> Interval | None:
        """Less its mean, and then in the ball, which keeps the sum 0."""
        if not alone:
            return None
        rows = self.rows[i]
        moved = u.with_entries(rows, u[rows] - total / float(self.counts[i]))
        return moved.with_entries(rows, self.inside(moved)[rows])

    def room(self, u: Interval) -> np.ndarray:
        """Return how far all multipliers may be moved at once, either way, without leaving the balls."""
        s = 1.0 if self.s is None else self.s.low.astype(float)
        left = ((1.0 - self._dual_norms(u)) * self.c / np.sqrt(self.counts + 1.0)).low
        room = np.repeat(round_to_float(left, -1), self.counts) * np.sqrt(s) * (1.0 - 1e-12)
        return np.nextafter(room, -np.inf)

    def inside(self, u: Interval) -> Interval:
        return u / maximum(self._dual_norms(u), 1.0).repeat(self.counts)

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        u = u * t
        n = self._dual_norms(u)
        root = maximum(1.0 - n.square(), 0.0).sqrt()  # n <= 1, whatever rounding adds
        return (u * self.y).sum() - (root * self.eps * self.c).sum()


# --------------------------------------------------------------------------------------------------------------
# The checker's own formulas of losses of classes: a function of all scores of a row, whose multipliers are p - e, p on a simplex.

ROW_LOSSES = ("softmax_loss", "crammer_singer_loss")


class RowLossFormula(LossFormula):
    """sum over rows j of w_j f(z_j), z_j the scores of all K classes: log sum exp z_j less that of the class, or the largest of [k is another
    class] + z_jk less that of the class. Flat arrays go class after class."""

    def __init__(self, word: str, coefficients: Interval, data, exact: bool):
        K, n = len(data.counts), int(data.counts[0])
        true = (np.asarray(data.targets) > 0).reshape(K, -1) if (np.asarray(data.counts) == n).all() else None
        whole = data.shared and (data.mask is None or data.mask.all())  # otherwise columns are not rows
        if true is None or not whole or not (true.sum(axis=0) == 1).all():
            raise UnsupportedFormula(f"{word} of rows that do not belong to one class each")
        if not (np.asarray(coefficients.low) == coefficients.low[0]).all():
            raise UnsupportedFormula(f"{word} with other coefficients for other classes")
        self.word, self.shape, self.true = word, (K, n), Interval.of(true.astype(float), exact)
        self.own = true.argmax(axis=0) * n + np.arange(n)  # places in a flat array
        weights = np.ones((K, n)) if data.sample_weights is None else data.sample_weights.reshape(K, n)
        if not (weights == weights[0]).all():
            raise UnsupportedFormula(f"{word} with other weights for other classes")
        self.w = Interval.of(weights[0], exact) * coefficients[0]

    def value(self, z: Interval) -> Interval:
        table = z.reshape(*self.shape)
        if self.word == "softmax_loss":
            shift = np.asarray(table.middle, float).max(axis=0)
            lost = (table - shift).exp().sum(axis=0).log() + shift
        else:
            lost = (table + 1.0 - self.true).max(axis=0)
        return ((lost - z.reshape(-1)[self.own]) * self.w).sum()

    def inside(self, u: Interval) -> Interval:
        """A point of the domain near u: p cut at zero, and divided by what it sums to."""
        p = maximum(u.reshape(*self.shape) / self.w + self.true, 0.0)
        p = p / p.sum(axis=0)
        return ((p - self.true) * self.w).reshape(-1)

    def balanced(self, u: Interval, totals: Interval) -> Interval | None:
        """u with exactly `totals`, its own sums, off the sums of all classes, by the row that is farthest from the ends of its simplex.

        The totals sum to zero, and so does the row still. None where they are too large for it.
        """
        K, n = self.shape
        p = u.reshape(K, n) / self.w + self.true
        j = int(np.argmax(np.asarray(p.low.min(axis=0), float)))
        room = float(np.asarray(p.low, float)[:, j].min()) * float(self.w.low[j])
        if not float(abs(totals).max().high) < 0.5 * room:
            return None
        row = np.arange(K) * n + j
        return u.with_entries(row, u[row] - totals)

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        u = u * t
        if self.word == "softmax_loss":
            p = clip_to_unit(u.reshape(*self.shape) / self.w + self.true)
            return (p.times_log().sum(axis=0) * self.w).sum()
        return u.reshape(-1)[self.own].sum()  # w (p_c - 1)


# --------------------------------------------------------------------------------------------------------------
# The checker's own formula of Cox's partial likelihood, whose multipliers are a - e, e the weights of events.


class _RowsAtRisk:
    """The rows of one task that are in any risk set, those of the longest times first, and where rows of other last risk sets begin.

    rows : places in flat arrays
    last : which of the risk sets, the latest of them first, is a row's last
    """

    def __init__(self, y: np.ndarray, rows: slice):
        times = np.unique(y[y > 0])[::-1]
        last = np.searchsorted(-times, -np.abs(y), side="left")
        order = np.argsort(last, kind="stable")[: int((last < len(times)).sum())]
        self.rows, self.last = order + rows.start, last[order]
        self.starts = np.searchsorted(self.last, np.arange(len(times)))

    def totals(self, values: Interval) -> Interval:
        """Sums of the rows' values over those of one last risk set."""
        return values.sums(self.starts)

    def tails(self, values: Interval) -> Interval:
        """Sums over risk sets."""
        return self.totals(values).cumsum(0)


class CoxLossFormula(LossFormula):
    """sum over tasks i of c_i times the sum over events j of w_j (log sum_{k: |y_k| >= y_j} w_k exp(z_k) - z_j).

    Conjugate, where a = u + e >= 0, no risk set holds a negative sum F of u, and the first, which holds all that is not zero, the sum
    zero: sum a log(a / w) + sum over times of F log F - (F + d) log(F + d), d the weights of the events of a time, c_i in e and d.
    """

    def __init__(self, coefficients: Interval, data, exact: bool):
        y = np.asarray(data.targets, float)
        if not (y != 0.0).all():
            raise UnsupportedFormula("cox_loss of a time of zero")
        weights = np.ones(len(y)) if data.sample_weights is None else data.sample_weights
        self.w = Interval.of(weights, exact)
        self.e = self.w * coefficients.repeat(data.counts) * (y > 0).astype(float)
        sets = [_RowsAtRisk(y[rows], rows) for rows in data.rows]
        self.sets = [own for own in sets if len(own.rows)]

    def value(self, z: Interval) -> Interval:
        total = z.like(0.0)
        for sets in self.sets:
            own = z[sets.rows]
            lost = self._log_sums(sets, own)[sets.last] - own
            total = total + (lost * self.e[sets.rows]).sum()
        return total

    def _log_sums(self, sets: _RowsAtRisk, own: Interval) -> Interval:
        """log sum w exp(z) over every risk set, each of which is measured from about its largest z: no sum leaves the range of floats."""
        most = np.maximum.accumulate(np.maximum.reduceat(own.middle, sets.starts))
        sums = sets.totals((own - most[sets.last]).exp() * self.w[sets.rows])
        firsts = np.flatnonzero(np.diff(most, prepend=-np.inf))
        carried, logs = own.like(0.0), []
        for first, end in zip(firsts, [*firsts[1:], len(most)], strict=True):
            level = own.like(most[first])
            part = sums[first:end].cumsum(0) + carried
            logs.append(part.log() + level)
            if end < len(most):
                carried = part[-1] * (level - own.like(most[end])).exp()
        return join_intervals(logs)

    def inside(self, u: Interval) -> Interval:
        """A point of the domain near u: a cut at zero and scaled to the sum of all events; where a risk set then holds less than its
        events ask for, rows of its own have more, and those of the next set before it less."""
        found = u.like(np.zeros(u.shape))
        for sets in self.sets:
            w, e = self.w[sets.rows], self.e[sets.rows]
            a = maximum(u[sets.rows] + e, w * SETTINGS.least_task_share**2)
            a = a * (e.sum() / a.sum())
            lack = maximum(-sets.tails(a - e), 0.0)
            lack = _with_last_zero(lack)  # of all rows, as real numbers
            before = lack.like(np.zeros(lack.shape)).with_entries(slice(1, None), lack[:-1])
            factor = maximum((lack - before) / sets.totals(a) + 1.0, 0.0)
            found = found.with_entries(sets.rows, a * factor[sets.last] - e)
        return found

    def conjugate(self, u: Interval, t: Interval) -> Interval:
        total = u.like(0.0)
        for sets in self.sets:
            own, e = u[sets.rows] * t, self.e[sets.rows]
            a, F = maximum(own + e, 0.0), _with_last_zero(maximum(sets.tails(own), 0.0))
            shared = F.times_log() - (F + sets.totals(e)).times_log()
            total = total + (a.times_log() - a * self.w[sets.rows].log()).sum() + shared.sum()
        return total


def _with_last_zero(x: Interval) -> Interval:
    return x.with_entries(slice(-1, None), x.like(np.zeros(1)))


# --------------------------------------------------------------------------------------------------------------
# The checker's own formula of the largest of the tasks' losses; the proof brings the tasks' shares of it as a witness.


class WorstTaskFormula(SumLossFormula):
    """max over tasks i of f_i(z_i), f_i a sum over samples.

    For any shares p >= 0 of sum 1 it is at least sum_i p_i f_i, and so its conjugate at most that sum's: what is inherited here is the sum with the
    coefficients p_i c_i. The shares of the witness are divided by their sum, as real numbers; without any all tasks have the same.
    """

    def __init__(self, scalar, coefficients: Interval, data, exact: bool, witness):
        m = len(data.counts)
        given = (
            np.ones(m)
            if witness is None
            else witness_of_shares(m)(witness, "the witness of worst_task")["shares"]
        )
        shares = Interval.of(np.maximum(given, SETTINGS.least_task_share), exact)
        super().__init__(scalar, coefficients * (shares / shares.sum()), data, exact)
        self.each = SumLossFormula(scalar, coefficients, data, exact)

    def value(self, z: Interval) -> Interval:
        return (self.scalar.value(z, self.y) * self.each.s).sums(self.starts).max()
