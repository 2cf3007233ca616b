"""Losses of whole labellings over a graph of labels: their predictions are the scores of labels and cliques."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import TOLD
from mtldsl.atoms.function import Loss, register
from mtldsl.atoms.losses.labelling_costs import MOST_LABELS, WholeCosts, whole_costs
from mtldsl.atoms.metrics import FScore, Metric
from mtldsl.atoms.planes.label_polytope import dearest_mean, project, project_tilted
from mtldsl.errors import ModelError
from mtldsl.inference import GAP, Cliques, Decoder
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_float, quoted

__all__ = ["CliqueHinge", "LabelGraphLoss"]


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
        found = (nodes[1::2] > 0.5).T.astype(np.uint8)
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
        _refuse(s)
        return float(np.sum(self.value_of_samples(self.scores(z), self.truth(y))))

    def gradient(self, z, y, s=None):
        _refuse(s)
        return self.flat(self.gradient_of_samples(self.scores(z), self.truth(y)))

    def prox(self, z, y, step, s=None):
        _refuse(s)
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
        _refuse(s)
        points, truth = self.scores(u), self.truth(y)
        outside = np.abs(points - project(self.cliques, points, truth)).max(axis=1, initial=0.0)
        # what a projection leaves where weights of labellings are found from their Gram matrix
        if np.any(outside > 1e-9):
            return np.inf
        return -float(self.promised(points, truth).sum())

    def dual_project(self, u, y, s=None):
        _refuse(s)
        return self.flat(project(self.cliques, self.scores(u), self.truth(y)))

    def decide(self, z):
        """-1 or +1 from scores (n, S): the highest labelling of every row."""
        return 2.0 * self.decoder(np.ascontiguousarray(z)).labels - 1.0


def _refuse(s) -> None:
    if s is not None:
        raise ValueError("a loss of labellings takes no weights of single scores")


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
    The maximum is found by exact inference (elimination, enumeration) or bounded by message passing (`mtldsl.inference`).
    It is the support function of the polytope P_i of expected Upsilon(y) - Upsilon(y_i), at the scores with costs added: the conjugate is
    - E[Delta], linear on P_i, and the prox z - step * (the point of P_i nearest to (z + costs) / step). Costs of whole labellings are not
    linear on P_i: all 2^K are looked at, and the conjugate is the largest - E[Delta] of random labellings that a point stands for.
    Source: CGM, equation (1) with the margin of its equation (12), every labelling included (spec, erratum 2).

    Examples
    --------
    >>> import numpy as np
    >>> from mtldsl.inference import Cliques
    >>> loss = CliqueHinge(cliques=Cliques(2, ((0, 1),)))
    >>> y = loss.cliques.indicators([[0, 1]]).ravel()
    >>> loss.value(np.zeros(8), y), loss.value(3 * y, y)
    (2.0, 0.0)
    """

    loss: str | tuple | Metric = "hamming"
    cliques: Cliques = field(default=TOLD, metadata={"told": True})

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
            if self.cliques.n_labels > MOST_LABELS:
                raise ModelError(
                    f"costs of whole labellings are looked up for all of them, and {self.cliques.n_labels} labels have too many: at most "
                    f"{MOST_LABELS} labels, or costs of single labels",
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
    def whole(self) -> WholeCosts | None:
        """Where labellings cost as a whole, how much; else None."""
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
        """The highest labelling of every sample (`mtldsl.inference.Decoded`), costs included, with the gaps of the truth."""
        decoder, scores = decoder or self.decoder, self.cliques.within(scores, truth)
        if self.whole is None:
            found = decoder(self.augmented(scores, truth))
        else:
            found = decoder.with_costs(scores, *self.whole.beside(truth))
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
