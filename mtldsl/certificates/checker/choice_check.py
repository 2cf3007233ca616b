r"""Check of a saved choice of a parameter: no value of an interval is better on the folds by more than the regret, in intervals that hold.

The model is L(W) + lam c/2 ||W||^2 or lam L(W) + c/2 ||W||^2; with s = 1 / (lam c), or lam / c, the optimum minimizes s L(W) + 1/2 ||W||^2. For any
weights and multipliers u of a task, with G = X^T u and the Fenchel-Young gap e, its optimum lies in the ball around (W - s G) / 2 with the
radius^2 ||W + s G||^2 / 4 + s e (docs/mathematics.md, section 15). Mixtures of two fits are such weights and multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import sparse

from mtldsl.certificates.checker.choice_file import METRICS, rows_of
from mtldsl.certificates.checker.interval import Interval, join_intervals, maximum, product
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.loss_formulas import SumLossFormula
from mtldsl.certificates.checker.proof_file import DataArrays
from mtldsl.certificates.checker.proof_schema import in_words
from mtldsl.certificates.checker.terms import CheckedLossTerm, scores_of
from mtldsl.errors import DataError


@dataclass
class ChoiceVerdict:
    """Result of a check: no value of the interval is better than the chosen one by more than `regret`.

    folds     : the folds of the file, and how many rows they score
    score     : (low, high), between which the measure of the chosen fit lies
    gap       : the relative gap of the fits at the chosen value, an upper bound
    regret    : the one that is proven, an upper bound
    confirmed : the claim holds: regret and score are as claimed, of fits with a gap of at most `tol`
    """

    model: str
    parameter: str
    metric: str
    score: tuple[float, float]
    gap: float
    regret: float
    claimed: dict
    fits: int
    folds: str
    tol: float
    confirmed: bool = False
    notes: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    model_is_named: bool = False
    model_is_compared: bool = False
    data_are_named: bool = False

    @property
    def holds(self) -> bool:
        """Tell whether the claim is confirmed; of a choice there is no restriction."""
        return self.confirmed

    def as_plain(self) -> dict:
        """As JSON can hold it: infinite ends are None."""
        ends = [end if np.isfinite(end) else None for end in (*self.score, self.gap, self.regret)]
        return {
            "model": self.model, "parameter": self.parameter, "metric": self.metric, "score": ends[:2], "relative_gap": ends[2], "regret": ends[3],
            "confirmed": self.confirmed, "holds": self.holds, "claimed": self.claimed, "fits": self.fits, "folds": self.folds, "tol": self.tol, "notes": self.notes,
            "unchecked": self.unchecked, "model_is_named": self.model_is_named, "data_are_named": self.data_are_named,
        }  # fmt: skip

    def __str__(self) -> str:
        claimed, name = self.claimed, self.parameter
        said = [
            f"for no {name} between {claimed['low']:.6g} and {claimed['high']:.6g} is {self.metric} on {self.folds} better than that of "
            f"{name} = {claimed['chosen']:.6g}, {self.score[0]:.6g}, by more than {self.regret:.6g} ({self.fits} fits)",
            *self.notes,
        ]
        if not self.model_is_compared:
            said.append("the model is the one that the file states; name your problem to have it compared")
        said.append("the claim is confirmed" if self.confirmed else "the claim is NOT confirmed")
        return "\n".join(said)


# --------------------------------------------------------------------------------------------------------------
# A fit, and the balls that mixtures of two prove.


@dataclass(frozen=True, eq=False)
class CheckedFit:
    """A fit of a fold: weights and G, the scores of both on the rows held out, the multipliers made feasible, and predictions.

    centred : scores of weights and of G of the centred rows learned on, with an intercept;  constant : (m,) intercepts beside them
    """

    weights: Interval
    slopes: Interval
    scores: tuple[Interval, Interval]
    multipliers: Interval
    predictions: Interval
    centred: tuple[Interval, Interval] | None
    constant: Interval
    intercept: Interval


@dataclass(frozen=True, eq=False)
class ScoreBox:
    """Scores of the rows held out at all values of an interval: between low and high, and in either of two balls.

    balls : (scores of the middle, (m,) radius) at both ends of the interval;  shifts : (m,) ends of intercepts
    """

    low: np.ndarray
    high: np.ndarray
    balls: list[tuple[Interval, np.ndarray]]
    shifts: tuple[np.ndarray, np.ndarray]


class CheckedFold:
    """A fold: the rows learned on with their loss, and the rows held out."""

    def __init__(self, choice: dict, k: int, data: DataArrays):
        fold, form = choice["folds"][k], choice["form"]
        self.held_out, train = (rows_of(data, fold[side].astype(bool)) for side in ("held_out", "train"))
        self.loss = CheckedLossTerm(form["losses"][0] | {"multipliers": None, "witness": None}, train, False)
        assert isinstance(self.loss.part, SumLossFormula)  # by the schema
        self.part = self.loss.part
        self.block = form["functions"][0]["map"]["entries"][0]["block"]
        self.modulus = Interval.of(form["functions"][0]["coefficient"])
        self.loss_grows, self.values = choice["grows"] == "loss", choice["values"]
        self.shape = choice["weights"][k].shape[1:]
        self.task = np.repeat(np.arange(self.shape[1]), self.held_out.counts)
        self._weights, self._multipliers = choice["weights"][k], choice["multipliers"][k]
        self._intercepts = None if choice["intercepts"] is None else choice["intercepts"][k]
        if self._multipliers.shape[1] != len(train.targets):
            raise ValueError(
                f"fold {k} has multipliers of {self._multipliers.shape[1]} labels, and learns on {len(train.targets)}"
            )
        self._fits: dict[int, CheckedFit] = {}
        self.centre = np.zeros(self.shape)
        if self._intercepts is not None:
            self.centre = self._slopes(Interval.of(np.ones(len(train.targets)))).middle / train.counts
            self.train_lengths = self._lengths(train)
        self.lengths = self._lengths(self.held_out)

    @property
    def train(self) -> DataArrays:
        """The rows learned on."""
        return self.loss.data

    def strength(self, value: float) -> Interval:
        """Return s, by which the loss counts beside 1/2 ||W||^2."""
        lam = Interval.of(value)
        return lam / self.modulus if self.loss_grows else 1.0 / (lam * self.modulus)

    def fit(self, k: int) -> CheckedFit:
        """Return the fit at a value of the file."""
        if k not in self._fits:
            self._fits[k] = self._checked(k)
        return self._fits[k]

    def gap_and_size(self, k: int) -> tuple[Interval, Interval]:
        """(the duality gap of the fit at its own value, what it is relative to: the objective)."""
        fit, s = self.fit(k), self.strength(self.values[k])
        gap = self.part.gaps(fit.predictions, fit.multipliers).sum() * s
        gap = gap + (fit.weights + fit.slopes * s).square().sum() * 0.5
        return gap, self.part.value(fit.predictions) * s + fit.weights.square().sum() * 0.5

    def point(self, k: int) -> ScoreBox:
        """Scores of the rows held out, of the very weights of the fit; no ball says more."""
        fit, m = self.fit(k), self.shape[1]
        z = scores_of(self.held_out, fit.weights) + fit.intercept.repeat(self.held_out.counts)
        return ScoreBox(z.low, z.high, [(z, np.full(m, np.inf))], (np.zeros(m), np.zeros(m)))

    def box(self, low: float, high: float, a: int, b: int) -> ScoreBox:
        """Bound the scores at all values in [low, high], by the mixture of two fits that belongs to its middle."""
        one, other = self.fit(a), self.fit(b)
        share = _share(float(np.sqrt(low * high)), self.values[a], self.values[b])
        rest = Interval.of(1.0) - share

        def mix(p: Interval, q: Interval) -> Interval:
            return p * rest + q * share

        weights, slopes = mix(one.weights, other.weights), mix(one.slopes, other.slopes)
        z, u = mix(one.predictions, other.predictions), mix(one.multipliers, other.multipliers)
        gaps = maximum(self.part.gaps(z, u).sums(self.train.starts), 0.0)
        ends = [self.strength(low), self.strength(high)]
        most = maximum(ends[0], ends[1])
        radii = [((weights + slopes * s).square().sum(axis=0) * 0.25 + gaps * most).sqrt().high for s in ends]

        def balls(p: tuple[Interval, Interval], q: tuple[Interval, Interval]) -> list:
            of_weights, of_slopes = mix(p[0], q[0]), mix(p[1], q[1])
            return [((of_weights - of_slopes * s) * 0.5, r) for s, r in zip(ends, radii, strict=True)]

        shifts = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        if one.centred is not None and other.centred is not None:
            task = np.repeat(np.arange(self.shape[1]), self.train.counts)
            inner = _ends(balls(one.centred, other.centred), self.train_lengths, task)
            shifts = self._shifts(mix(one.constant, other.constant).middle, *inner)
        own = balls(one.scores, other.scores)
        least, largest = _ends(own, self.lengths, self.task)
        low_ = (Interval.of(least) + shifts[0][self.task]).low
        high_ = (Interval.of(largest) + shifts[1][self.task]).high
        low_, high_ = np.where(np.isnan(low_), -np.inf, low_), np.where(np.isnan(high_), np.inf, high_)
        return ScoreBox(low_, high_, own, shifts)

    def linear_bound(self, box: ScoreBox, i: int, g: np.ndarray) -> float:
        """A number that the sum of g_j z_j over the rows of task i is never below."""
        own = self.held_out.rows[i]
        summed = product(self.held_out.inputs_of(i).T, Interval.of(g.reshape(-1, 1))).reshape(-1)
        total = Interval.of(g).sum()
        length = (summed - total * self.centre[:, i]).square().sum().sqrt()
        shift = [(total * end[i]).low for end in box.shifts]
        lows = [
            ((middle[own] * g).sum() - length * radius[i] + min(shift)).low for middle, radius in box.balls
        ]
        return float(min(lows)) if not np.isnan(lows).any() else -np.inf

    def _checked(self, k: int) -> CheckedFit:
        W = Interval.of(self._weights[k])
        m = self.shape[1]
        b = Interval.of(np.zeros(m) if self._intercepts is None else self._intercepts[k])
        u = self._feasible(Interval.of(self._multipliers[k]))
        slopes, centred, constant = self._slopes(u), None, b
        z = scores_of(self.train, W) + b.repeat(self.train.counts)
        if self._intercepts is not None:
            constant = b + (W * self.centre).sum(axis=0)
            centred = self._centred(self.train, W), self._centred(self.train, slopes)
        scores = self._centred(self.held_out, W), self._centred(self.held_out, slopes)
        return CheckedFit(W, slopes, scores, u, z, centred, constant, b)

    def _feasible(self, u: Interval) -> Interval:
        """Multipliers in the domain, which sum to zero in every task with an intercept, as real numbers."""
        part, starts = self.part, self.train.starts
        if self._intercepts is None:
            return part.inside(u)
        for share in SETTINGS.multiplier_shares:
            moved = part.inside(u * (1.0 - share))
            sums = moved.sums(starts)
            for i in range(self.shape[1]):
                moved = None if moved is None else part.shifted(moved, i, sums[i], True)
            if moved is not None:
                return moved
        raise DataError("the multipliers of a fit do not sum to zero, and none has room for the rest")

    def _slopes(self, u: Interval) -> Interval:
        into = {self.block: Interval.of(np.zeros(self.shape))}
        into |= {name: Interval.of(np.zeros((1, self.shape[1]))) for name in self.loss.intercepts}
        self.loss.add_adjoint(u, into)
        return into[self.block]

    def _centred(self, data: DataArrays, W: Interval) -> Interval:
        return scores_of(data, W) - (W * self.centre).sum(axis=0).repeat(data.counts)

    def _lengths(self, data: DataArrays) -> np.ndarray:
        """(N,) lengths of the centred rows, rounded up."""
        X = data.inputs
        if sparse.issparse(X):
            squares = X.copy()
            squares.data = np.nextafter(squares.data**2, np.inf)
            own = product(squares, Interval.of(np.ones((X.shape[1], 1)))).reshape(-1)
        else:
            own = Interval.of(X).square().sum(axis=1)
        m = self.shape[1]
        if data.shared:
            kept = slice(None) if data.mask is None else data.mask.T.ravel()
            own = Interval(np.tile(own.low, m)[kept], np.tile(own.high, m)[kept])
        centre = Interval.of(self.centre)
        far = centre.square().sum(axis=0).repeat(data.counts)
        return maximum(own + far - scores_of(data, centre) * 2.0, 0.0).sqrt().high

    def _shifts(self, start, low, high) -> tuple[np.ndarray, np.ndarray]:
        """(m,) where the intercepts beside centred rows lie: slopes of the loss add up to zero there, and rise with every score.

        A quotient of differences bounds the slopes of a convex function, on the one side or the other.
        """
        part, data = self.part, self.train

        def losses(scores: np.ndarray, moved: np.ndarray) -> Interval:
            z = Interval.of(scores) + np.repeat(moved, data.counts)
            return part.scalar.value(z, part.y) * part.s

        def is_beyond(end: np.ndarray, step: np.ndarray, scores: np.ndarray) -> np.ndarray:
            """Tell whether the losses fall towards the middle from an end, by more than rounding."""
            inner = end + step
            fall = (losses(scores, end) - losses(scores, inner)).sums(data.starts)
            return (fall.low > 0.0) & (inner != end)

        widths = np.add.reduceat(high - low, data.starts) / data.counts
        widths = np.maximum(0.5 * widths, 1e-12 * (1.0 + np.abs(start)))
        found = []
        for sign, scores in ((-1.0, high), (1.0, low)):
            near, far = np.zeros(len(start)), widths.copy()
            known = np.zeros(len(start), dtype=bool)
            for _ in range(SETTINGS.shift_doublings):
                known = is_beyond(start + sign * far, -sign * far * SETTINGS.step_share, scores)
                if known.all():
                    break
                near, far = np.where(known, near, far), np.where(known, far, 2.0 * far)
            for _ in range(SETTINGS.shift_halvings):
                half = 0.5 * (near + far)
                beyond = is_beyond(start + sign * half, -sign * half * SETTINGS.step_share, scores)
                near, far = np.where(beyond, near, half), np.where(beyond, half, far)
            found.append(np.where(known, start + sign * far, sign * np.inf))
        return found[0], found[1]


def _share(middle: float, a: float, b: float) -> float:
    return float(np.clip(np.log(middle / a) / np.log(b / a), 0.0, 1.0)) if a != b else 0.0


def _ends(balls: list, lengths: np.ndarray, task: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) the least and the largest scores over balls."""
    reach = [Interval.of(lengths) * radius[task] for _, radius in balls]
    lows = [(middle - own).low for (middle, _), own in zip(balls, reach, strict=True)]
    highs = [(middle + own).high for (middle, _), own in zip(balls, reach, strict=True)]
    return np.minimum(*lows), np.maximum(*highs)


# --------------------------------------------------------------------------------------------------------------
# Measures of scores that lie in a box.


def possible_score(fold: CheckedFold, metric: str, box: ScoreBox) -> Interval | None:
    """All that the measure of a fold may be, of scores in a box: the mean of its tasks that have a number; None where none has."""
    found, data = [], fold.held_out
    needs, defined = METRICS[metric]
    for i, own in enumerate(data.rows):
        y, low, high = data.targets[own], box.low[own], box.high[own]
        positives = int((y > 0).sum())
        if not y.size or (defined == "positive" and not positives):
            continue
        if defined == "two" and (y == y[0]).all():
            continue
        if needs == "values":
            found.append(_of_numbers(metric, fold, box, i, y, low, high))
        else:  # it rises with scores of positives, and falls with those of negatives
            of, positive = _area if metric == "roc_auc" else partial(_of_labels, metric), y > 0
            least, most = of(low[positive], high[~positive]), of(high[positive], low[~positive])
            found.append(Interval(least.low, most.high))
    return _mean(found)


def _mean(found: list[Interval]) -> Interval | None:
    if not found:
        return None
    return join_intervals(x.reshape(1) for x in found).sum() / float(len(found))


def _of_labels(metric: str, up, down) -> Interval:
    """By counts: a row is +1 where its score is 0 or more."""
    P, N = float(len(up)), float(len(down))
    tp, fp = float((up >= 0).sum()), float((down >= 0).sum())
    if metric == "accuracy":
        return Interval.of(tp + N - fp) / (P + N)
    if metric == "balanced_accuracy":
        return (Interval.of(tp) / P + Interval.of(N - fp) / N) * 0.5
    if metric == "f1":
        return Interval.of(2.0 * tp) / (P + tp + fp)
    if metric == "recall":
        return Interval.of(tp) / P
    return Interval.of(tp) / (tp + fp) if tp + fp else Interval.of(0.0)


def _area(up, down) -> Interval:
    """The share of pairs in the right order, equal scores one half."""
    twice = sum(int(np.searchsorted(np.sort(down), up, side).sum()) for side in ("left", "right"))
    return Interval.of(float(twice)) / (2.0 * len(up) * len(down))


def _of_numbers(metric: str, fold: CheckedFold, box: ScoreBox, i: int, y, low, high) -> Interval:
    """By the row, and by a tangent for all rows of a task together: 2 g (z - y) - g^2 <= (z - y)^2, and s (z - y) <= |z - y|."""
    n, squares = float(len(y)), metric != "mae"
    least, most = Interval.of(low) - y, Interval.of(high) - y
    nearest = Interval.of(np.maximum(np.maximum(least.low, -most.high), 0.0))
    farthest = Interval.of(np.maximum(-least.low, most.high))
    ends = [(x.square() if squares else x).sum() / n for x in (nearest, farthest)]
    error = Interval(ends[0].low, ends[1].high)
    middle = 0.5 * (low + high) - y
    if np.isfinite(middle).all():
        g = 2.0 * middle if squares else np.sign(middle)
        rest = Interval.of(g) * y
        rest = rest + Interval.of(middle).square() if squares else rest
        tangent = (Interval.of(fold.linear_bound(box, i, g)) - rest.sum()) / n
        error = Interval(np.fmax(error.low, tangent.low), error.high)
    if metric in ("mse", "mae"):
        return error
    labels = Interval.of(y)
    spread = (labels - labels.sum() / n).square().sum() / n
    return error / spread if metric == "nmse" else 1.0 - error / spread


# --------------------------------------------------------------------------------------------------------------
# The whole check.


def check_choice(choice: dict, data: DataArrays, tol: float, typed: str) -> ChoiceVerdict:
    """Check a choice that was read, of its data. DataError where it is not of such data."""
    n = data.inputs.shape[0]
    if any(len(fold["train"]) != n for fold in choice["folds"]):
        raise DataError("the folds are of another number of rows", term=typed)
    if data.sample_weights is not None:
        raise DataError("the data have sample weights, and measures of a choice count rows", term=typed)
    if METRICS[choice["metric"]][0] != "values" and not np.isin(data.targets, (-1.0, 1.0)).all():
        raise DataError(f"{choice['metric']} is of labels -1 and +1, and the data have others", term=typed)
    folds = [CheckedFold(choice, k, data) for k in range(len(choice["folds"]))]
    claimed, metric = choice["claimed"], choice["metric"]
    is_higher = metric not in ("mse", "mae", "nmse")
    chosen = int(np.flatnonzero(choice["values"] == claimed["chosen"])[0])
    own = _mean_of([possible_score(fold, metric, fold.point(chosen)) for fold in folds], typed)
    score = float(own.low), float(own.high)
    gaps = [(one / abs(size)).high for one, size in (fold.gap_and_size(chosen) for fold in folds)]
    # NaN is beyond float64, and no `max` sees it
    gap = np.inf if np.isnan(gaps).any() else float(np.max(gaps))

    def gain(low: float, high: float, a: int, b: int) -> float:
        """By how much a value in [low, high] may be better than the chosen one."""
        found = _mean_of([possible_score(fold, metric, fold.box(low, high, a, b)) for fold in folds], typed)
        most = (found - score[0]).high if is_higher else (score[1] - found).high
        return float(most) if not np.isnan(most) else np.inf

    def worst_gain(low: float, high: float, a: int, b: int, halvings: int) -> float:
        """The same, of halves where they prove more and more is claimed."""
        whole, middle = gain(low, high, a, b), float(np.sqrt(low * high))
        if whole <= claimed["regret"] or not halvings or not low < middle < high:
            return whole
        parts = (worst_gain(low, middle, a, b, halvings - 1), worst_gain(middle, high, a, b, halvings - 1))
        return max(parts)

    regret = 0.0
    for low, high, a, b in choice["intervals"]:
        halvings = SETTINGS.choice_halvings if regret <= claimed["regret"] else 0  # it is not confirmed then
        regret = max(regret, worst_gain(float(low), float(high), int(a), int(b), halvings))
    form = choice["form"]
    model = f"{in_words(form)}, with {choice['parameter']} = 1 before the {choice['grows']}"
    fits = len(choice["values"]) * len(folds)
    held_out = np.sum([fold["held_out"] for fold in choice["folds"]], axis=0)
    scored = "every row once" if (held_out == 1).all() else f"{int((held_out > 0).sum())} of {n} rows"
    said = f"the {len(folds)} folds of the file, which score {scored},"
    found = ChoiceVerdict(model, choice["parameter"], metric, score, gap, regret, claimed, fits, said, tol)
    slack = 1e-9 * (1.0 + abs(claimed["score"]))  # what a mean of float64 numbers may be off
    if not score[0] - slack <= claimed["score"] <= score[1] + slack:
        found.notes.append(f"the claimed {metric} of {claimed['score']:.10g} is not that of the chosen fit")
    if not gap <= tol:
        found.notes.append(
            f"the fits at {claimed['chosen']:g} have a relative gap of {gap:.1e}, above {tol:.1e}"
        )
    if not regret <= claimed["regret"]:
        found.notes.append(f"the claimed regret of {claimed['regret']:.10g} is below the one that is proven")
    found.confirmed = not found.notes
    return found


def _mean_of(found: list[Interval | None], typed: str) -> Interval:
    mean = _mean([one for one in found if one is not None])
    if mean is None:
        raise DataError("no fold has a number of this measure", term=typed)
    return mean
