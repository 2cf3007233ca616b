"""What a metric is: a loss Delta of labellings, and the labelling that a structured hinge finds most violated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.function import REGISTRY, Atom
from mtldsl.atoms.metrics.batch import Batch
from mtldsl.atoms.metrics.expectation import (
    flip_probabilities,
    largest_expectation,
    largest_multiple,
    law_of_tables,
)
from mtldsl.atoms.metrics.tables import highest_of_all, limits_from_steps
from mtldsl.atoms.metrics.violation import AtConstant, Classes, Violation, classes_of
from mtldsl.atoms.planes.score_steps import ScoreStep
from mtldsl.errors import ModelError

__all__ = ["Metric"]

#: What belongs to one `delta`: a subclass with another `delta` does not inherit these from a built-in metric.
_OF_DELTA = (
    "best_counts", "limits", "forbids", "_plane", "_highest_tables", "_promised", "conjugate", "dual_project", "score",
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
    tells_orders: ClassVar[bool] = False  # its planes are orders that their slopes tell (`Orders`)
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
    has_dear_steps: ClassVar[bool] = False  # `score_steps` takes many times what a look at the oracle does
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
        """How good predictions z (n,) are, 1 where nothing is wrong: 1 - Delta of the labels +1 where z >= threshold.

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

    def forbids(self, positives: int, negatives: int) -> bool:
        """Whether Delta is -inf anywhere."""
        return np.isinf(limits_from_steps(self.table, positives, negatives)[0])

    def at_constants(self, positives: int, negatives: int, is_zero: bool) -> AtConstant | None:
        """The subgradients where all samples have the score that makes the maximum least (`is_zero`: the score 0), exactly. None: not known."""
        return None

    # --------------------------------------------------------------------------------------------- the oracle

    def most_violated(self, z, y, classes: Classes | None = None) -> Violation:
        """The highest plane at predictions z (n,), exactly; its value is NaN where an entry of z is.

        classes: `classes_of(y)`, where it is at hand.
        """
        z = np.ascontiguousarray(z, dtype=float)
        if np.isnan(z @ z):
            return Violation(np.nan, np.nan, np.zeros(0, int), None if self.labellings else np.zeros(len(z)))
        positive, negative = classes_of(y) if classes is None else classes
        return self._plane(z, y, positive, negative)

    def highest_planes(self, z, batch: Batch, apart, slopes) -> tuple[np.ndarray, np.ndarray]:
        """(values, deltas) of the highest plane of every task of a batch at the flat predictions z, and its slope into `slopes`, which is zero.

        apart : (rows in z, targets, classes) of every task
        """
        if type(self)._plane is Metric._plane and not np.isnan(z @ z):
            found = batch.tables(self, z, slopes)
            return found.values, self._deltas_of(found.counts, batch)
        values, deltas = np.empty(len(apart)), np.empty(len(apart))
        for k, (rows, y, classes) in enumerate(apart):
            plane = self.most_violated(z[rows], y, classes)
            values[k], deltas[k], slopes[rows] = plane.value, plane.delta, plane.gradient(y)
        return values, deltas

    def _plane(self, z, y, positive, negative) -> Violation:
        batch = Batch([(positive, negative)], [0])
        found = batch.tables(self, z, np.zeros(len(z)))
        delta = float(self._deltas_of(found.counts, batch)[0])
        return Violation(float(found.values[0]), delta, found.flipped[: int(found.counts.sum())])

    def _deltas_of(self, counts, batch: Batch) -> np.ndarray:
        b, c = counts.T
        sizes: Any = batch.positives, batch.negatives
        if REGISTRY.get(self.name) is type(self):  # takes arrays of sizes as well
            return np.asarray(self.delta(b, c, *sizes), float)
        tasks = zip(b.tolist(), c.tolist(), *(part.tolist() for part in sizes), strict=True)
        return np.array([self.table([i], [j], *sizes)[0] for i, j, *sizes in tasks])

    def _highest_tables(self, ordered, batch: Batch, ends) -> tuple[np.ndarray, np.ndarray]:
        """(values (k,), counts (k, 2)): the best b and c of every task, from the ascending margins of its positives and negatives."""
        values, counts = np.empty(len(ends)), np.empty((len(ends), 2), np.int64)
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
        return values, counts

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
        return largest_expectation(self.table, of_positives, of_negatives)

    def law(self, of_positives, of_negatives):
        """(b, c, weights) of a random labelling with these flip probabilities that attains `_promised`; None where there is none."""
        return law_of_tables(self.table, of_positives, of_negatives)

    def score_step(self, z, classes: Classes, step: float, near=None) -> ScoreStep | None:
        """argmin over x of step * f(x) + 1/2 ||x - z||^2, where `exact_prox`: its flip probabilities, and where they move with z.

        near : flip probabilities of a step nearby, to start from. None: rounding kept the step from being exact.
        """
        flips = np.zeros(len(z)) if near is None else np.array(near, float)
        warm = np.array([near is not None], np.int64)
        z = np.ascontiguousarray(z, dtype=float)
        return self.score_steps(z, Batch([classes], [0]), np.array([float(step)]), flips, warm)[0]

    def score_steps(
        self, z, batch: Batch, steps, flips, warm, rough: float = 0.0
    ) -> Sequence[ScoreStep | None]:
        """The same of every task of a batch at the flat predictions z; the flip probabilities go into `flips`, where those of a step nearby
        are where `warm` is not zero.

        rough : relative gap up to which a step nearby may be followed to first order; the flip probabilities are all that is known then
        """
        raise NotImplementedError

    def dual_project(self, u, y) -> np.ndarray:
        """A point of dom f* near u, u itself inside. Without forbidden tables these are the p in [0, 1]^n, u = -2 y p; with
        them, a multiple of the nearest such u.
        """
        u = np.clip(np.asarray(u, float), np.minimum(-2.0 * y, 0.0), np.maximum(-2.0 * y, 0.0))
        positive, negative = classes_of(y)
        if not self.forbids(len(positive), len(negative)) or self.conjugate(u, y) < np.inf:
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
