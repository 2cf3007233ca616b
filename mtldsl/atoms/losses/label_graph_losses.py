"""Structured hinge over a graph of labels, and the costs of whole labellings that it may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.atom import SET_BY_MODEL, register
from mtldsl.atoms.inference.cliques import GAP, Cliques
from mtldsl.atoms.inference.decoder import Decoder
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics.contingency import FScore
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.structured_prox.polytope import dearest_mean, project, project_tilted
from mtldsl.errors import DataError, ModelError
from mtldsl.utils.memory import gib
from mtldsl.utils.validation import as_float, as_list, quoted

# --------------------------------------------------------------------------------------------------------------
# What a labelling of a row costs beside the true one, where that is not a sum over its labels: `loss=` of `clique_hinge`.


@dataclass(frozen=True)
class LabelGraphLossSettings:
    """Limits of losses that look at all 2^K labellings.

    enumeration_labels : most labels K
    cost_entries       : most costs of all labellings beside all true ones
    """

    enumeration_labels: int = 16
    cost_entries: int = 2**26


SETTINGS = LabelGraphLossSettings()


class LabelingCostTable:
    """Delta(y, y_i) of whole labellings, looked up in a table of all of them: a row for each true labelling that occurs.

    Labelling number r has label k in bit k. Where a true label is a gap, every value of it costs the same: what is counted is the
    observed labels alone, by `delta` and so by the table.
    """

    def __init__(self) -> None:
        self._last: tuple[bytes, np.ndarray, np.ndarray] | None = None

    def delta(self, labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """(L,) of labellings (L, K) of 0 and 1, each beside its true one, which may have gaps."""
        raise NotImplementedError

    def check(self, n_labels: int) -> None:
        """ModelError where it is not of so many labels."""

    def beside(self, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(for every row of truth (n, K) its row of the table, the table (T, 2^K)). The last answer is kept."""
        truth = np.ascontiguousarray(truth, dtype=np.uint8)
        key = truth.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, *self._looked_up(truth)
        return self._last[1:]

    def _looked_up(self, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        patterns, rows = np.unique(truth, axis=0, return_inverse=True)
        K = truth.shape[1]
        if len(patterns) * 2.0**K > SETTINGS.cost_entries:
            raise DataError(
                f"{len(patterns):,} different true labellings of {K} labels have {gib(8.0 * len(patterns) * 2**K)} of costs; a loss of whole "
                "labellings keeps them in a table: give fewer labels or rows"
            )
        every = every_labelling(K)
        table = np.stack([self.delta(every, np.broadcast_to(own, every.shape)) for own in patterns])
        return rows.ravel().astype(np.int64), np.ascontiguousarray(table)


def every_labelling(n_labels: int) -> np.ndarray:
    """(2^K, K): number r has label k in bit k."""
    return ((np.arange(2**n_labels)[:, None] >> np.arange(n_labels)) & 1).astype(np.uint8)


class ZeroOneCost(LabelingCostTable):
    """1 for every labelling but the true one."""

    def delta(self, labels, truth):
        return np.any((labels != truth) & (truth != GAP), axis=1).astype(float)


class MetricCost(LabelingCostTable):
    """Delta of a metric, the labels of a row as its samples: b false positives, c false negatives. A row without positives that are asked
    for, b = c = 0, costs nothing."""

    def __init__(self, metric: Metric):
        super().__init__()
        self.metric = metric

    def check(self, n_labels):
        if not self.metric.labellings or self.metric.fixes_positives:
            raise ModelError(f"loss={self.metric!r} is not of labellings of any number of positives")

    def delta(self, labels, truth):
        ones, zeros = truth == 1, truth == 0
        positives, negatives = ones.sum(axis=1), zeros.sum(axis=1)
        b, c = np.sum((labels > 0) & zeros, axis=1), np.sum((labels == 0) & ones, axis=1)
        found = np.zeros(len(labels))
        wrong = b + c > 0
        with np.errstate(all="ignore"):
            found[wrong] = self.metric.delta(b[wrong], c[wrong], positives[wrong], negatives[wrong])
        if not np.all(np.isfinite(found) & (found >= 0.0)):
            k = int(np.argmin(np.isfinite(found) & (found >= 0.0)))
            raise ModelError(
                f"loss={self.metric!r} is {found[k]:g} where {b[k]} labels too many and {c[k]} too few are 1, in a row with {positives[k]} "
                f"of {positives[k] + negatives[k]} true ones: it has to be a finite number >= 0 for all rows, as FScore() and Jaccard() are"
            )
        return found


class CostTables(LabelingCostTable):
    """Sums over cliques of a table entry: cost[true values, values], 2^|c| by 2^|c|, values numbered as the columns of a clique are. A clique
    with a gap costs nothing."""

    def __init__(self, tables):
        super().__init__()
        self.tables = [(tuple(clique), np.asarray(table, float)) for clique, table in tables]

    def check(self, n_labels):
        for clique, _ in self.tables:
            if max(clique) >= n_labels:
                raise ModelError(f"there are costs of label {max(clique)}, and {n_labels} labels")

    def delta(self, labels, truth):
        total = np.zeros(len(labels))
        for clique, table in self.tables:
            bits = 2 ** np.arange(len(clique))[::-1]
            own, given = truth[:, list(clique)].astype(int), labels[:, list(clique)].astype(int)
            rows = np.flatnonzero((own != GAP).all(axis=1))
            total[rows] += table[own[rows] @ bits, given[rows] @ bits]
        return total


def whole_costs(loss: Any) -> LabelingCostTable | None:
    """Return what stands behind `loss=`, where it is not a cost a label; None where it is, or is nothing that is known."""
    if isinstance(loss, str):
        return ZeroOneCost() if loss == "zero_one" else None
    if isinstance(loss, Metric):
        return MetricCost(loss)
    if isinstance(loss, tuple) and loss and all(isinstance(one, tuple) and len(one) == 2 for one in loss):
        return CostTables(loss)
    return None


def checked_tables(tables, typed: str) -> tuple:
    """((clique, table as tuples of numbers), ...) of {clique of positions: table}; ModelError where one is not a table of costs."""
    found = []
    for clique, table in tables:
        side = 2 ** len(clique)
        rows = [list(row) for row in table] if np.ndim(table) == 2 else []
        numbers = [as_float(cost) for cost in chain.from_iterable(rows)]
        fits = len(rows) == side and all(len(row) == side for row in rows)
        if not fits or not all(cost is not None and 0.0 <= cost < np.inf for cost in numbers):
            raise ModelError(
                f"the costs of {len(clique)} labels together are a table of {side} by {side} finite numbers >= 0: a row for the true values, "
                "a column for those predicted, each numbered 00, 01, 10, 11",
                term=typed,
            )
        values = np.asarray(rows, float)
        if np.any(np.diag(values) != 0.0):
            raise ModelError("right values cost nothing: the diagonal of a table of costs is 0", term=typed)
        if len(set(clique)) < len(clique):
            raise ModelError("a table of costs is of different labels", term=typed)
        found.append((tuple(clique), tuple(map(tuple, values.tolist()))))
    return tuple(found)


# --------------------------------------------------------------------------------------------------------------
# Losses of whole labellings over a graph of labels: their predictions are the scores of labels and cliques.


class LabelGraphLoss(Loss):
    """A function of the scores of n samples, each a function of its own S scores; a subclass has a field `cliques`.

    z and y are flat (S n,), entry after entry, each for all samples: z the scores x_j^T w_s, y the indicators of the true labellings
    (`Cliques.indicators`). A sum over samples; `value_of_samples` are its terms, and where samples have weights they multiply those.
    A label of which neither indicator is 1 is not observed, `GAP` in the truth: the term of such a sample is that of the graph which its
    observed labels induce, and does not see the other scores.
    """

    cliques: Cliques
    labels: ClassVar[str] = "indicators"
    weighs_samples: ClassVar[bool] = False

    @cached_property
    def decoder(self) -> Decoder:
        """Planned once for the graph."""
        return Decoder(self.cliques)

    def scores(self, z) -> np.ndarray:
        """(n, S) from flat."""
        return np.ascontiguousarray(np.asarray(z, float).reshape(self.cliques.n_entries, -1).T)

    def truth(self, y) -> np.ndarray:
        """(n, K) true labels, 0, 1 or `GAP`, from the indicators."""
        nodes = np.asarray(y).reshape(self.cliques.n_entries, -1)[: 2 * self.cliques.n_labels]
        found = np.ascontiguousarray(
            (nodes[1::2] > 0.5).T, dtype=np.uint8
        )  # loops are compiled for one layout
        found[(nodes[::2] + nodes[1::2] < 0.5).T] = GAP
        return found

    @staticmethod
    def flat(table) -> np.ndarray:
        """Flat from (n, S)."""
        return np.ascontiguousarray(np.asarray(table).T).ravel()

    def with_cliques(self, cliques: Cliques) -> LabelGraphLoss:
        """The same loss over other cliques of the same labels."""
        raise NotImplementedError

    def value_of_samples(self, scores, truth) -> np.ndarray:
        """(n,) the loss of every sample at its scores (n, S)."""
        raise NotImplementedError

    def gradient_of_samples(self, scores, truth) -> np.ndarray:
        """(n, S) its (sub)gradient."""
        raise NotImplementedError

    def prox_of_samples(self, scores, truth, steps) -> np.ndarray:
        """(n, S) argmin of steps_i * loss_i + 1/2 ||. - scores_i||^2, for every sample i."""
        raise NotImplementedError

    def value(self, z, y, s=None) -> float:
        self.refuse_weights(s)
        return float(np.sum(self.value_of_samples(self.scores(z), self.truth(y))))

    def gradient(self, z, y, s=None):
        self.refuse_weights(s)
        return self.flat(self.gradient_of_samples(self.scores(z), self.truth(y)))

    def prox(self, z, y, step, s=None):
        self.refuse_weights(s)
        scores = self.scores(z)
        return self.flat(self.prox_of_samples(scores, self.truth(y), np.full(len(scores), float(step))))

    def promised(self, points, truth) -> np.ndarray:
        """(n,) minus the conjugate of every sample at a point (n, S) of the polytope of expected Upsilon(y) - Upsilon(y_i)."""
        raise NotImplementedError

    def proven(self, points, truth) -> tuple[np.ndarray, np.ndarray]:
        """(points of the polytope, the nearest to those given or nearly so; minus their conjugates (n,), or less)."""
        points = project(self.cliques, points, truth)
        return points, self.promised(points, truth)

    def conjugate(self, u, y, s=None) -> float:
        self.refuse_weights(s)
        points, truth = self.scores(u), self.truth(y)
        outside = np.abs(points - project(self.cliques, points, truth)).max(axis=1, initial=0.0)
        # what a projection leaves where weights of labellings are found from their Gram matrix
        if np.any(outside > 1e-9):
            return np.inf
        return -float(self.promised(points, truth).sum())

    def dual_project(self, u, y, s=None):
        self.refuse_weights(s)
        return self.flat(project(self.cliques, self.scores(u), self.truth(y)))

    def decide(self, z):
        """-1 or +1 from scores (n, S): the highest labelling of every row."""
        return 2.0 * self.decoder(np.ascontiguousarray(z)).labels - 1.0


@register
@dataclass(frozen=True, eq=False)
class CliqueHinge(LabelGraphLoss):
    r"""The structured hinge over a graph of labels: the mean over samples of
    max over labellings y of Delta(y, y_i) + s_i(y) - s_i(y_i), the true labelling y_i among them.

    s_i(y) is the sum of the scores that y chooses: x_i^T u of two columns of U (d, 2K) a label, one for 0 and one for 1, and x_i^T v of
    2^|c| columns of V a clique c, 4 an edge. Typed `clique_hinge(U, V, tasks)`; labels are -1 and +1 in `tasks`, and -1 counts as 0.
    A mean over samples, weighted by sample weights where there are some; the Hamming loss Delta counts wrong labels.
    A sample with missing labels (NaN) has the hinge over its observed labels alone: the maximum is over their labellings, scores are
    of the graph that they induce, costs are of them. A sample without a label counts for nothing, in the mean too.

    Parameters
    ----------
    loss : "hamming", or an array (K,) or {label: cost}, >= 0
        What a wrong label costs, all 1 by default.
    loss : "zero_one"; FScore(), Jaccard() or another metric; {("a", "b"): table}
        Delta of whole labellings, of up to 16 labels: 1 where any label is wrong; the metric of a row, its labels as samples; sums of costs
        of labels together, table[true values][values] with rows and columns for 00, 01, 10, 11.

    Raises
    ------
    ModelError
        Where U or V does not have the shape that the labels and cliques ask for; where a cost is negative or not finite; where costs of
        whole labellings are of more than 16 labels.
    DataError
        Where inputs are not shared, a label is neither -1 nor +1, or a sample has other weights for other labels.

    Notes
    -----
    The maximum is found by exact inference (elimination, enumeration) or bounded by message passing (`mtldsl.atoms.inference`).
    It is the support function of the polytope P_i of expected Upsilon(y) - Upsilon(y_i), at the scores with costs added: the conjugate is
    - E[Delta], linear on P_i, and the prox z - step * (the point of P_i nearest to (z + costs) / step). Costs of whole labellings are not
    linear on P_i: all 2^K are looked at, and the conjugate is the largest - E[Delta] of random labellings that a point stands for.
    Source: CGM, equation (1) with the margin of its equation (12), every labelling included (spec, erratum 2).

    Examples
    --------
    >>> import numpy as np
    >>> from mtldsl.atoms.inference.cliques import Cliques
    >>> loss = CliqueHinge(cliques=Cliques(2, ((0, 1),)))
    >>> y = loss.cliques.indicators([[0, 1]]).ravel()
    >>> loss.value(np.zeros(8), y), loss.value(3 * y, y)
    (2.0, 0.0)
    """

    loss: str | tuple | Metric = "hamming"
    cliques: Cliques = field(default=SET_BY_MODEL, metadata={"told": True})

    name: ClassVar[str] = "clique_hinge"
    meaning: ClassVar[str] = (
        r"the structured hinge over a graph of labels, whose scores $\Upsilon(y)$ picks for a labelling "
        r"$y$; $\Delta(y, y_i)$ is what its wrong labels cost"
    )
    max_affine: ClassVar[bool] = True
    formula: ClassVar[str] = r"\max_{y}\big[\Delta(y,y_i)+\langle {},\,\Upsilon(y)-\Upsilon(y_i)\rangle\big]"

    def __post_init__(self):
        object.__setattr__(self, "loss", _checked_costs(self.loss, self.cliques))
        if self.whole is not None and self.cliques is not None:
            if self.cliques.n_labels > SETTINGS.enumeration_labels:
                raise ModelError(
                    f"costs of whole labellings are looked up for all of them, and {self.cliques.n_labels} labels have too many: at most "
                    f"{SETTINGS.enumeration_labels} labels, or costs of single labels",
                    term="clique_hinge(..., loss=...)",
                )
            self.whole.check(self.cliques.n_labels)

    @classmethod
    def examples(cls):
        return [
            cls(cliques=Cliques(4, ((1, 2),))),
            cls((0.5, 1.0, 2.0, 0.0), Cliques(4, ((0, 3),))),
            cls("zero_one", Cliques(3, ((0, 2),))),
            cls(FScore(), Cliques(3, ((0, 1),))),
            cls(cliques=Cliques(2)),
        ]

    @cached_property
    def whole(self) -> LabelingCostTable | None:
        """Return where labellings cost as a whole, how much; else None."""
        return whole_costs(self.loss)

    @property
    def costs(self) -> np.ndarray:
        """(K,) what a wrong label costs by itself: nothing where labellings cost as a whole."""
        K = self.cliques.n_labels
        if self.whole is not None:
            return np.zeros(K)
        return np.ones(K) if isinstance(self.loss, str) else np.array(self.loss)

    def delta(self, labels, truth) -> np.ndarray:
        """(L,) what labellings (L, K) of 0 and 1 cost, each beside its true one."""
        if self.whole is not None:
            return self.whole.delta(labels, truth)
        return ((labels != truth) & (truth != GAP)) @ self.costs

    def with_cliques(self, cliques):
        found = CliqueHinge(self.loss, cliques)
        found.__dict__["whole"] = self.whole  # with the table that it keeps
        return found

    @cached_property
    def decoder(self) -> Decoder:
        return self.decoder_of(self.cliques)

    def decoder_of(self, cliques: Cliques) -> Decoder:
        """One that costs can be added for."""
        return Decoder(cliques, "auto" if self.whole is None else "enumeration")

    def margins(self, truth) -> np.ndarray:
        """(n, 2K) what entries of nodes cost: that of the wrong value, 0 of the true one."""
        margins = np.zeros((len(truth), 2 * self.cliques.n_labels))
        margins[:, ::2] = np.where(truth == 1, self.costs, 0.0)
        margins[:, 1::2] = np.where(truth == 0, self.costs, 0.0)
        return margins

    def augmented(self, scores, truth) -> np.ndarray:
        """(n, S) the scores with the costs of wrong labels added."""
        scores = np.array(scores, dtype=float, order="C")
        scores[:, : 2 * self.cliques.n_labels] += self.margins(truth)
        return scores

    def most_violated(self, scores, truth, decoder: Decoder | None = None):
        """The highest labelling of every sample (`mtldsl.atoms.inference.decoder.DecodedLabelings`), costs included, with the gaps of the truth."""
        decoder, scores = decoder or self.decoder, self.cliques.within(scores, truth)
        if self.whole is None:
            found = decoder(self.augmented(scores, truth))
        else:
            found = decoder(scores, *self.whole.beside(truth))
        found.labels[truth == GAP] = GAP
        return found

    def value_of_samples(self, scores, truth, decoder: Decoder | None = None):
        # an upper bound where inference is not exact: what is proven stays true
        scores = self.cliques.within(scores, truth)
        own = np.take_along_axis(scores, self.cliques.chosen(truth), axis=1).sum(axis=1)
        return np.maximum(self.most_violated(scores, truth, decoder).upper - own, 0.0)

    def gradient_of_samples(self, scores, truth):
        labels = self.most_violated(scores, truth).labels
        return self.cliques.indicators(labels) - self.cliques.indicators(truth)

    def prox_of_samples(self, scores, truth, steps):
        tilts, steps = 1.0 / steps, steps[:, None]
        if self.whole is not None:
            rows, costs = self.whole.beside(truth)
            return scores - steps * project_tilted(self.cliques, scores / steps, truth, rows, costs, tilts)[0]
        return scores - steps * project(self.cliques, self.augmented(scores, truth) / steps, truth)

    def proven(self, points, truth):
        if self.whole is None:
            return super().proven(points, truth)
        # the two of one random labelling, so that they are of the hull, and prove, even where the rounds end early
        return dearest_mean(
            self.cliques, project(self.cliques, points, truth), truth, *self.whole.beside(truth)
        )

    def promised(self, points, truth) -> np.ndarray:
        """(n,) the expected Delta of random labellings whose expected Upsilon(y) - Upsilon(y_i) are `points` (n, S)."""
        if self.whole is not None:
            return dearest_mean(self.cliques, points, truth, *self.whole.beside(truth))[1]
        return np.einsum("ij,ij->i", points[:, : 2 * self.cliques.n_labels], self.margins(truth))


def _checked_costs(loss, cliques: Cliques | None):
    if isinstance(loss, str) and loss == "hamming":
        return loss
    if whole_costs(loss) is not None:
        return loss
    costs = tuple(map(as_float, as_list(loss) or ()))
    if not costs or not all(cost is not None and 0.0 <= cost < np.inf for cost in costs):
        raise ModelError(
            term=f"clique_hinge(..., loss={quoted(loss)})",
            write_instead='write loss="hamming" or "zero_one", a metric such as FScore(), or the costs of wrong labels, finite numbers >= 0, one a '
            "label",
        )
    if cliques is not None and len(costs) != cliques.n_labels:
        raise ModelError(
            f"{len(costs)} costs for {cliques.n_labels} labels", term="clique_hinge(..., loss=...)"
        )
    return costs
