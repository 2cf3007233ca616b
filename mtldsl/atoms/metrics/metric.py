"""Base class of metrics: a loss Delta of labellings, and the labelling that a structured hinge finds most violated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.matrix_function import Atom
from mtldsl.atoms.metrics.expected_loss import best_law, flip_probabilities, largest_multiple
from mtldsl.atoms.structured_prox.score_steps import ScoreStep
from mtldsl.errors import ModelError

# --------------------------------------------------------------------------------------------------------------
# What a metric is asked with and answers: the classes of a task, the highest plane, and the subgradients at a constant score.


class ClassPositions(NamedTuple):
    """The positions of a task's positive and of its negative samples."""

    positive: np.ndarray
    negative: np.ndarray


def classes_of(y) -> ClassPositions:
    return ClassPositions(np.flatnonzero(y > 0), np.flatnonzero(y < 0))


class ConstantScore(NamedTuple):
    """The best constant score of a task, and the slopes there: those of its positives and negatives between two ends, sample by sample,
    all together `total` (None: whatever they are)."""

    constant: float
    positive: tuple[float, float]
    negative: tuple[float, float]
    total: float | None


class MostViolatedPlane(NamedTuple):
    """The plane of a structured hinge that is highest at z: value = delta + <slope, z>.

    Planes of labellings have `flipped`, the positions where y' differs from y (their slope is -2 y there, 0 elsewhere);
    others have `slope` itself.
    """

    value: float
    delta: float
    flipped: np.ndarray | None
    slope: np.ndarray | None = None

    def gradient(self, y) -> np.ndarray:
        """The plane's slope in the predictions, (n,)."""
        if self.slope is not None:
            return self.slope
        slope = np.zeros(len(y))
        slope[self.flipped] = -2.0 * y[self.flipped]
        return slope


# --------------------------------------------------------------------------------------------------------------
# Subgradients of structured hinges at a constant score, where one class is the smaller.


def smaller_class(positives: int, negatives: int, is_zero: bool, down: float, up: float) -> ConstantScore:
    """All of the smaller class are flipped, at -down, or at up, where a sample of the larger class is worth nothing."""
    if is_zero or positives == negatives:
        return ConstantScore(0.0, (-2.0, -2.0), (2.0, 2.0), 2.0 * (negatives - positives))
    if negatives > positives:
        return ConstantScore(-down, (-2.0, -2.0), (0.0, 2.0), 0.0)
    return ConstantScore(up, (-2.0, 0.0), (2.0, 2.0), 0.0)


# --------------------------------------------------------------------------------------------------------------
# Several tasks of one metric side by side: where their samples lie, as the oracles' compiled loops read them.


class HighestPlanes(NamedTuple):
    """The highest plane of every task: values and deltas (k,), and slopes in the flat predictions."""

    values: np.ndarray
    deltas: np.ndarray
    slopes: np.ndarray


class MetricBatch:
    """samples (N,): positions in the flat predictions, of every task its positives, then its negatives; starts (k, 3): where in `samples`
    a task's positives begin, and its negatives, and where it ends.

    classes : (positive, negative) of every task, positions within the task
    firsts  : where its predictions begin
    """

    def __init__(self, classes: Sequence[Any], firsts: Sequence[int]):
        self.classes = classes
        self.samples = np.concatenate([
            part + first for both, first in zip(classes, firsts, strict=True) for part in both
        ])  # fmt: skip
        sizes = np.array([[len(part) for part in both] for both in classes], np.int64)
        ends = np.cumsum(sizes).reshape(-1, 2)
        self.starts = np.column_stack([ends - sizes, ends[:, 1]])
        self.positives, self.negatives = sizes[:, 0].copy(), sizes[:, 1].copy()
        lengths = sizes.sum(axis=1).tolist()
        self.rows = [slice(first, first + n) for first, n in zip(firsts, lengths, strict=True)]
        self.limits: np.ndarray | None = None
        self.order = self.samples.copy()  # every class as it was sorted last

    def sorted(self, metric: Any, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(samples (N,), margins (N,), ends (k, 2)): of every task, from where its classes begin, what may be flipped at all, by rising margins.

        Insertions into the last order, which is nearly right where z is near the last one.
        """
        from mtldsl.atoms.metrics.metric_kernels import sort_margins

        if self.limits is None:
            sizes = zip(self.positives.tolist(), self.negatives.tolist(), strict=True)
            self.limits = np.array([metric.limits(*pair) for pair in sizes], float)
        z = z if z.flags.writeable else z.copy()  # the loops are compiled for what may be written
        N, ends = len(self.samples), np.empty((len(self.starts), 2), np.int64)
        chosen, margins, order = (
            np.empty(N, np.int64),
            np.empty(N),
            self.order.copy(),
        )  # other threads have their own
        if sort_margins(z, order, self.starts, self.limits, chosen, margins, ends):
            for first, last in zip(self.starts[:, :2].ravel().tolist(), ends.ravel().tolist(), strict=True):
                rising = margins[first:last].argsort()
                margins[first:last] = margins[first:last][rising]
                order[first:last] = chosen[first:last] = chosen[first:last][rising]
        self.order = order
        return chosen, margins, ends

    def tables(self, metric: Any, z: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, ...]:
        """(values (k,), how many negatives and positives are flipped (k, 2), which ones, where the task's samples begin) of the best labelling
        of every task at z, and their slopes into `slopes`, which is zero."""
        from mtldsl.atoms.metrics.metric_kernels import flip

        chosen, margins, ends = self.sorted(metric, z)
        values, counts = np.empty(len(ends)), np.empty((len(ends), 2), np.int64)
        metric._highest_tables(margins, self, ends, values, counts)
        flipped = np.empty(len(chosen), np.int64)
        flip(chosen, self.starts, counts, flipped, slopes)
        return values, counts, flipped


# --------------------------------------------------------------------------------------------------------------
# The plain scan of all tables (b, c) of a task: what a metric of which only `delta` is known does. It holds some rows of them at a time.


@dataclass(frozen=True)
class MetricSettings:
    """Sizes of the tables Delta + gains.

    slab_entries   : entries that are held at a time
    checked_tables : tables of a task that are checked one by one
    grid_rows      : rows and columns of the grid that is checked of a larger task
    """

    slab_entries: int = 4_000_000
    checked_tables: int = 4_000_000
    grid_rows: int = 500


SETTINGS = MetricSettings()


#: delta(b, c, positives, negatives) of arrays b and c that broadcast.
Table = Callable[..., np.ndarray]


def highest_of_all(
    delta: Table, of_negatives, of_positives, positives: int, negatives: int
) -> tuple[int, int]:
    """(b, c) that maximises delta(b, c) + of_negatives[b] + of_positives[c]."""
    best, at = -np.inf, (0, 0)
    b = np.arange(len(of_negatives))[None, :]
    rows = max(1, SETTINGS.slab_entries // len(of_negatives))
    for first in range(0, len(of_positives), rows):
        c = np.arange(first, min(first + rows, len(of_positives)))[:, None]
        table = delta(b, c, positives, negatives) + of_negatives[None, :] + of_positives[c[:, 0], None]
        k = int(np.argmax(table))
        if table.flat[k] > best:
            best, at = table.flat[k], (k % len(of_negatives), first + k // len(of_negatives))
    return int(at[0]), int(at[1])


@lru_cache(maxsize=512)
def limits_from_steps(delta: Table, positives: int, negatives: int) -> tuple[float, float]:
    """Half the largest steps of delta in c and, less, in b: see `Metric.limits`; (inf, -inf) where a table is forbidden."""
    in_c = in_b = -np.inf
    b = np.arange(negatives + 1)[None, :]
    rows = max(2, SETTINGS.slab_entries // (negatives + 1))
    for first in range(0, positives + 1, rows - 1):  # chunks share a row, so that no step in c is missed
        c = np.arange(first, min(first + rows, positives + 1))[:, None]
        table = delta(b, c, positives, negatives)
        if not np.isfinite(table).all():
            return np.inf, -np.inf
        in_c = max(in_c, np.diff(table, axis=0).max(initial=-np.inf))
        in_b = max(in_b, np.diff(table, axis=1).max(initial=-np.inf))
    return 0.5 * in_c, -0.5 * in_b


#: What belongs to one `delta`: a subclass with another `delta` does not inherit these from a built-in metric.
_OF_DELTA = (
    "best_counts", "limits", "_plane", "_highest_tables", "_promised", "conjugate", "dual_project", "score",
    "score_of_counts", "exact_conjugate", "exact_prox", "score_steps", "law", "at_constants",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Metric(Atom):
    r"""A loss Delta(y, y') = Delta(b, c) of a labelling y' of one task: b negatives are labelled +1, c positives -1.

    A metric of your own is a subclass with `delta`; use it as `structured_hinge(W, tasks, metric=Mine())`. It must be 0 at
    b = c = 0 and at least 0 elsewhere, where -inf forbids a table. Nothing else is asked of it: the oracle looks at all
    (Pos + 1)(Neg + 1) tables of a task with Pos positives and Neg negatives, exactly. Where you know better, give `best_counts`
    as well, and `limits` to leave out samples before the sort. If it has parameters, make it a dataclass with
    `@dataclass(frozen=True, eq=False, repr=False)`.

    Raises
    ------
    ModelError
        From `from_plain`, where a saved model has a metric whose class is not imported.

    Notes
    -----
    With predictions z, f(z) = max over y' of Delta(y, y') - <y - y', z>: flipping a sample costs 2 y_j z_j, so that for given
    b and c the b highest negatives and the c lowest positives are flipped.
    `conjugate` is, by default, exact where the flip probabilities of u = -2 y p that are not 0 or 1 have at most 3,000 tables (a linear
    program); above that an upper bound of f*, still valid in a duality gap (+inf, where tables are forbidden and no law of allowed
    ones is at hand).
    Source: Joachims, "A support vector method for multivariate performance measures", ICML 2005; SMTL, equation (2).

    Examples
    --------
    >>> from mtldsl import Metric
    >>> import numpy as np
    >>> class WeighedError(Metric):
    ...     def delta(self, b, c, positives, negatives):
    ...         return (b + 3 * c) / (negatives + 3 * positives)
    >>> plane = WeighedError().most_violated(np.array([0.1, -0.2, 3.0]), np.array([1.0, -1.0, -1.0]))
    >>> plane.delta, plane.flipped
    (0.8, array([2, 0]))
    """

    labellings: ClassVar[bool] = True  # its planes are labellings (not rankings)
    tells_orders: ClassVar[bool] = False  # its planes are orders that their slopes tell (`RankingMetric`)
    fixes_positives: ClassVar[bool] = (
        False  # all its labellings have as many positives: a constant score cannot matter
    )
    scored_by_order: ClassVar[bool] = (
        False  # `score` looks at the order of the predictions, not at labels made of them
    )
    exact_conjugate: ClassVar[bool] = (
        False  # `conjugate` is exact always, not an upper bound of f* for large tasks
    )
    #: `score_steps` is there: an exact proximal step in the predictions, with its derivative
    exact_prox: ClassVar[bool] = False
    known: ClassVar[dict[str, type[Metric]]] = {}  # every metric by name, a user's own too

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "name" not in vars(cls):
            cls.name = cls.__name__
        if "formula" not in vars(cls):
            cls.formula = rf"\Delta_{{\mathrm{{{cls.name}}}}}({{}})"
        for name in _OF_DELTA:
            owner = next(kind for kind in cls.__mro__ if name in vars(kind))
            if owner in (cls, Metric) or not issubclass(owner, Metric):
                continue
            faster = name in ("_plane", "_highest_tables")  # these replace best_counts and limits
            if owner.delta is not cls.delta or (
                faster and (owner.best_counts is not cls.best_counts or owner.limits is not cls.limits)
            ):
                setattr(cls, name, vars(Metric)[name])
        if cls.name not in REGISTRY:  # a built-in keeps its name
            Metric.known[cls.name] = cls

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments().items())})"

    def _is_no_term(self, *_):
        raise ModelError(
            f"{self!r} is a metric, no term of a model: write structured_hinge(W, tasks, metric={self!r}), and multiply or add that"
        )

    __array_ufunc__ = None  # a Parameter, or an array, on the left leaves the answer to the metric
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _is_no_term

    def check(self, positives: int, negatives: int) -> str | None:
        """None where the metric fits a task of this many positives and negatives, else one sentence."""
        return None

    # ------------------------------------------------------------------------------------ what a user writes

    def delta(self, b, c, positives: int, negatives: int):
        """Delta at b negatives labelled +1 and c positives labelled -1; b and c are arrays that broadcast."""
        raise NotImplementedError

    def table(self, b, c, positives: int, negatives: int) -> np.ndarray:
        """delta of arrays of whole numbers, broadcast, as floats: however it was written, the package reads it here."""
        b, c = np.asarray(b, int), np.asarray(c, int)
        values = np.asarray(self.delta(b, c, positives, negatives), float)
        return np.array(np.broadcast_to(values, np.broadcast_shapes(b.shape, c.shape)))

    def score(self, z, positive, threshold: float) -> float:
        """Return how good predictions z (n,) are, 1 where nothing is wrong: 1 - Delta of the labels +1 where z >= threshold.

        positive : (n,) which samples are
        """
        labelled = z >= threshold
        b, c = int(np.sum(labelled & ~positive)), int(np.sum(~labelled & positive))
        positives = int(positive.sum())
        return self.score_of_counts(b, c, positives, len(z) - positives)

    def score_of_counts(self, b: int, c: int, positives: int, negatives: int) -> float:
        """The same where b negatives are labelled +1 and c positives -1."""
        return 1.0 - float(self.table([b], [c], positives, negatives)[0])

    def best_counts(self, of_negatives, of_positives, positives: int, negatives: int) -> tuple[int, int]:
        """(b, c) that maximises delta(b, c) + of_negatives[b] + of_positives[c].

        The gains are sums of -2 y_j z_j over the first b negatives and the first c positives that `limits` leaves, in the order
        in which they are flipped; both start with 0 and are concave.
        """
        return highest_of_all(self.table, of_negatives, of_positives, positives, negatives)

    def limits(self, positives: int, negatives: int) -> tuple[float, float]:
        """(high, low): some maximiser flips no positive scored above `high` and no negative scored below `low`.

        By default from the largest step of Delta in c and in b, which is exact: if a maximiser (b, c) flips a positive with
        score z, leaving that one as it is changes the value by 2 z - (Delta(b, c) - Delta(b, c - 1)), which may not be
        positive. Hence 2 z is no larger than the largest step in c. Likewise -2 z for negatives and steps in b. Where tables
        are forbidden, flips may pay together only, and nothing is left out.
        """
        return limits_from_steps(self.table, positives, negatives)

    def at_constants(self, positives: int, negatives: int, is_zero: bool) -> ConstantScore | None:
        """The subgradients where all samples have the score that makes the maximum least (`is_zero`: the score 0), exactly. None: not known."""
        return None

    # --------------------------------------------------------------------------------------------- the oracle

    def most_violated(self, z, y, classes: ClassPositions | None = None) -> MostViolatedPlane:
        """The highest plane at predictions z (n,), exactly; its value is NaN where an entry of z is.

        classes: `classes_of(y)`, where it is at hand.
        """
        z = np.ascontiguousarray(z, dtype=float)
        height = 0.0
        if np.isnan(z @ z):
            height = np.nan
        else:
            plane = self._plane(z, y, *(classes_of(y) if classes is None else classes))
            if not plane.value <= 0.0:  # NaN too
                return plane
        none = (np.zeros(0, int), None) if self.labellings else (None, np.zeros(len(z)))
        return MostViolatedPlane(height, height, *none)

    def highest_planes(self, z, batch: MetricBatch, apart, slopes) -> tuple[np.ndarray, np.ndarray]:
        """(values, deltas) of the highest plane of every task of a batch at the flat predictions z, and its slope into `slopes`, which is zero.

        apart : (rows in z, targets, classes) of every task
        """
        if type(self)._plane is Metric._plane and not np.isnan(z @ z):
            values, counts, _ = batch.tables(self, z, slopes)
            return values, self._deltas_of(counts, batch)
        values, deltas = np.empty(len(apart)), np.empty(len(apart))
        for k, (rows, y, classes) in enumerate(apart):
            plane = self.most_violated(z[rows], y, classes)
            values[k], deltas[k], slopes[rows] = plane.value, plane.delta, plane.gradient(y)
        return values, deltas

    def _plane(self, z, y, positive, negative) -> MostViolatedPlane:
        batch = MetricBatch([(positive, negative)], [0])
        values, counts, flipped = batch.tables(self, z, np.zeros(len(z)))
        delta = float(self._deltas_of(counts, batch)[0])
        return MostViolatedPlane(float(values[0]), delta, flipped[: int(counts.sum())])

    def _deltas_of(self, counts, batch: MetricBatch) -> np.ndarray:
        b, c = counts.T
        sizes: Any = batch.positives, batch.negatives
        if REGISTRY.get(self.name) is type(self):  # takes arrays of sizes as well
            return np.asarray(self.delta(b, c, *sizes), float)
        tasks = zip(b.tolist(), c.tolist(), *(part.tolist() for part in sizes), strict=True)
        return np.array([self.table([i], [j], *sizes)[0] for i, j, *sizes in tasks])

    def _highest_tables(self, ordered, batch: MetricBatch, ends, values, counts) -> None:
        """The best b and c of every task, from the ascending margins of its positives and negatives, into counts (k, 2), their values into
        values (k,)."""
        for k, ((up, down, end), (up_end, down_end)) in enumerate(
            zip(batch.starts.tolist(), ends.tolist(), strict=True)
        ):
            margins, sizes = (ordered[up:up_end], ordered[down:down_end]), (down - up, end - down)
            of_positives, of_negatives = (np.append(0.0, -2.0 * np.cumsum(part)) for part in margins)
            b, c = self.best_counts(of_negatives, of_positives, *sizes)
            if not (0 <= b < len(of_negatives) and 0 <= c < len(of_positives)):
                raise ModelError(
                    f"{self!r}: best_counts gave b={b}, c={c}, but of_negatives and of_positives have {len(of_negatives)} and "
                    f"{len(of_positives)} entries; return their places, from 0 on"
                )
            values[k] = self.table([b], [c], *sizes)[0] + of_negatives[b] + of_positives[c]
            counts[k] = b, c

    # ------------------------------------------------------------------------------------------ the conjugate

    def conjugate(self, u, y) -> float:
        """f*(u) = - the largest E Delta over random labellings that flip sample j with probability p_j, u = -2 y p; +inf where
        there is none. An upper bound of it for large tasks, unless `exact_conjugate`.
        """
        p = flip_probabilities(u, y)
        if p is None:
            return np.inf
        positive, negative = classes_of(y)
        return 0.0 - self._promised(p[positive], p[negative])

    def _promised(self, of_positives, of_negatives) -> float:
        """The largest E Delta with these flip probabilities, or a lower bound; -inf where there is no such labelling."""
        return best_law(self.table, of_positives, of_negatives)[0]

    def law(self, of_positives, of_negatives):
        """(b, c, weights) of a random labelling with these flip probabilities that attains `_promised`; None where there is none."""
        return best_law(self.table, of_positives, of_negatives)[1]

    def score_step(self, z, classes: ClassPositions, step: float) -> ScoreStep | None:
        """argmin over x of step * f(x) + 1/2 ||x - z||^2, where `exact_prox`: its flip probabilities, and where they move with z. None: rounding
        kept the step from being exact."""
        z, flips = np.ascontiguousarray(z, dtype=float), np.zeros(len(z))
        steps, warm = np.array([float(step)]), np.zeros(1, np.int64)
        return self.score_steps(z, MetricBatch([classes], [0]), steps, flips, warm)[0]

    def score_steps(self, z, batch: MetricBatch, steps, flips, warm) -> Sequence[ScoreStep | None]:
        """The same of every task of a batch at the flat predictions z; the flip probabilities go into `flips`, where those of a step nearby
        are where `warm` is not zero."""
        raise NotImplementedError

    def dual_project(self, u, y) -> np.ndarray:
        """A point of dom f* near u, u itself inside. Without forbidden tables these are the p in [0, 1]^n, u = -2 y p; with
        them, a multiple of the nearest such u.
        """
        u = np.clip(np.asarray(u, float), np.minimum(-2.0 * y, 0.0), np.maximum(-2.0 * y, 0.0))
        positive, negative = classes_of(y)
        sizes = len(positive), len(negative)
        # limits need not say what a delta of one's own forbids
        known = next((base for base in type(self).__mro__ if base in REGISTRY.values()), Metric)
        has_own_delta = type(self).delta is not known.delta
        limits = limits_from_steps(self.table, *sizes) if has_own_delta else self.limits(*sizes)
        if np.isfinite(limits[0]) or self.conjugate(u, y) < np.inf:
            return u
        p = flip_probabilities(u, y)
        if p is None:  # u has been clipped
            raise ValueError("a multiplier is NaN")
        return u * (largest_multiple(self.table, p[positive], p[negative]) * (1.0 - 1e-9))

    # --------------------------------------------------------------------------------------------- plain data

    def plain(self) -> dict:
        """As JSON can hold it; `from_plain` reads it."""
        if Metric.known.get(self.name) is not type(self):
            raise ModelError(
                f"there is another metric called {self.name!r}: give your class a name of its own"
            )
        return {"metric": self.name, **self.arguments()}

    @staticmethod
    def from_plain(plain: dict) -> Metric:
        arguments = dict(plain)
        name = arguments.pop("metric")
        if name not in Metric.known:
            raise ModelError(
                f"metric {name!r} is not known here: import the module that defines its class first"
            )
        return Metric.known[name](**arguments)


# --------------------------------------------------------------------------------------------------------------
# Metrics that a user wrote: what their `delta` says is checked once, and what their own oracle finds at every certificate.


_HOW = (
    "write delta(self, b, c, positives, negatives) for arrays of whole numbers b and c that broadcast, such as 0.5 * (b / negatives + "
    "c / positives): 0 where b = c = 0, elsewhere >= 0, or -inf to forbid"
)


def is_own(metric: Metric) -> bool:
    return REGISTRY.get(metric.name) is not type(metric)


def check_delta(metric: Metric, positives: int, negatives: int) -> None:
    """ModelError where delta fails on such a task, or is not a loss of labellings."""
    b, c = (_counts(largest, positives, negatives) for largest in (negatives, positives))
    try:
        table = metric.table(b[None, :], c[:, None], positives, negatives)
    except NotImplementedError:
        raise ModelError(f"{metric!r}: the class {metric.name} has no delta; {_HOW}") from None
    except Exception as error:  # whatever a user's function raises is a mistake in it
        raise ModelError(
            f"{metric!r}: its delta fails with {type(error).__name__}: {error}; {_HOW}"
        ) from error
    wrong = np.isnan(table) | ((table < 0) & ~np.isneginf(table)) | np.isposinf(table)
    wrong[0, 0] |= table[0, 0] != 0.0
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise ModelError(
            f"{metric!r}: its delta is {table[i, j]:g} at b={int(b[j])}, c={int(c[i])} of {positives} positives and {negatives} "
            f"negatives; {_HOW}"
        )


def check_oracle(metric: Metric, z, classes: ClassPositions, found: MostViolatedPlane) -> None:
    """ModelError where the class's own best_counts or limits missed a table that is worth more."""
    kind = type(metric)
    if not metric.labellings or (kind.best_counts is Metric.best_counts and kind.limits is Metric.limits):
        return
    up, down = np.sort(z[classes.positive]), np.sort(-z[classes.negative])
    sizes = len(up), len(down)
    b, c = _counts(sizes[1], *sizes), _counts(sizes[0], *sizes)
    gains = (np.append(0.0, -2.0 * np.cumsum(margins)) for margins in (up, down))
    of_positives, of_negatives = gains
    worth = metric.table(b[None, :], c[:, None], *sizes) + of_negatives[b][None, :] + of_positives[c][:, None]
    best = float(worth.max())
    if best > found.value + 1e-9 * (1.0 + abs(best)):
        i, j = np.unravel_index(int(np.argmax(worth)), worth.shape)
        raise ModelError(
            f"{metric!r}: its best_counts or limits found a labelling worth {found.value:.10g} where b={int(b[j])}, c={int(c[i])} is "
            f"worth {best:.10g}; correct them, or leave them out of the class {metric.name}"
        )


def _counts(largest: int, positives: int, negatives: int) -> np.ndarray:
    """0 to `largest`, all of them where the tables are few."""
    if (positives + 1) * (negatives + 1) <= SETTINGS.checked_tables:
        return np.arange(largest + 1)
    return np.unique(np.linspace(0, largest, SETTINGS.grid_rows).astype(int))
