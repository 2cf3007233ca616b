"""Terms of losses over a graph of labels, and the random labellings behind their multipliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from mtldsl.atoms.inference.cliques import GAP
from mtldsl.atoms.inference.decoder import changes_times, expected_changes
from mtldsl.atoms.loss import Loss
from mtldsl.data.tasks import Tasks
from mtldsl.normal_form.term import Blocks, LinearMap, LossTerm, register_term

if TYPE_CHECKING:
    from mtldsl.atoms.inference.cliques import Cliques

# --------------------------------------------------------------------------------------------------------------
# A random labelling for every sample: what multipliers of a hinge over labellings stand for.


@dataclass(frozen=True, eq=False)
class RandomLabelings:
    """For every sample a random labelling: `labels[j]` with probability `weights[j]`, j from starts[i] on; the true one with the rest.

    labels (L, K) of 0 and 1; weights (L,) >= 0 with a sum of at most 1 for every sample; starts (n + 1,).
    """

    labels: np.ndarray
    weights: np.ndarray
    starts: np.ndarray


# --------------------------------------------------------------------------------------------------------------
# Intercepts of labels over a graph: a column of ones of which the weights of edges see nothing, and multipliers that balance there.

#: Rounding of sums of multipliers, beside the weights of all samples.
_ROUNDING_SHARE = 1e-16


#: (share of the flips, (K,) probability of flipping each label where it is true, where it is false).
Flips = tuple[float, np.ndarray, np.ndarray]


def with_constant(tasks: Tasks, map: LinearMap, name: str, n_labels: int) -> tuple[Tasks, LinearMap]:
    """The entries of a graph with a last feature that is 1, and the map whose last row is the intercepts, block `name` (1, 2K)."""
    X = tasks.X
    ones = np.ones((X.shape[0], 1))
    wider = sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
    own = Tasks(
        targets=tasks.targets, counts=tasks.counts, task_names=tasks.task_names,
        feature_names=(*tasks.feature_names, "(intercept)") if tasks.feature_names else tasks.feature_names,
        shared=wider, sample_weights=tasks.sample_weights,
    )  # fmt: skip
    nodes = sparse.eye_array(2 * n_labels, tasks.n_tasks, format="csr")
    return own, map.with_row_below((name,), right=nodes)


def balancing_flips(
    sums: np.ndarray, truths: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> Flips | None:
    """The random labellings that balance others, where those expect `sums` (K,) more ones than are true, weighted, over these samples.

    Mixed into every sample with the share s: one label k is flipped with the probability p_k where it is what there is too much of, so
    that  (1 - s) sums_k = s p_k (weight of those samples),  and the p_k sum to 1. None where nothing is left to balance, or a label has
    one class alone.

    >>> balancing_flips(np.array([0.5, 0.0]), [np.array([[1, 0], [0, 1]])], [np.array([1.0, 1.0])])
    (0.3333333333333333, array([1., 0.]), array([0., 0.]))
    """
    positive = sum(w @ (truth == 1) for truth, w in zip(truths, weights, strict=True))
    missing = sum(w @ (truth == GAP) for truth, w in zip(truths, weights, strict=True))
    total = sum(float(np.sum(w)) for w in weights)
    room = np.where(sums > 0, positive, total - missing - positive)
    needed = np.abs(sums) > _ROUNDING_SHARE * total
    if not needed.any() or not np.all(room[needed] > 0.0):
        return None
    shares = np.divide(np.abs(sums), room, out=np.zeros(len(sums)), where=needed)
    q = float(shares.sum())
    p = shares / q
    return q / (1.0 + q), np.where(sums > 0, p, 0.0), np.where(sums > 0, 0.0, p)


def label_flip_probabilities(flips: Flips, truth: np.ndarray) -> np.ndarray:
    """(n, K) with what probability every label of every sample is flipped; a gap never."""
    _, where_true, where_false = flips
    return np.where(truth == GAP, 0.0, np.where(truth == 1, where_true, where_false))


def each_flipped(truth: np.ndarray) -> np.ndarray:
    """(n, K, K) for every label of every sample the true labelling with it flipped; itself where there is a gap.

    >>> each_flipped(np.array([[1, GAP]], dtype=np.uint8)).tolist()
    [[[0, 2], [1, 2]]]
    """
    return truth[:, None, :] ^ (np.eye(truth.shape[1], dtype=truth.dtype)[None] * (truth != GAP)[:, :, None])


def mixed_with_flips(random: RandomLabelings, flips: Flips, truth: np.ndarray, share: float = 1.0):
    """A random labelling, itself with the probability `share`, else the true one, mixed with flips of single labels of the truth."""
    s, n = flips[0], len(truth)
    probabilities = label_flip_probabilities(flips, truth)
    flipped_of, flipped = np.nonzero(probabilities > 0.0)
    own = np.repeat(np.arange(n), np.diff(random.starts))
    owners = np.concatenate([own, flipped_of])
    order = np.argsort(owners, kind="stable")  # of every sample its labellings, then its flips
    kept = (1.0 - s) * share * np.maximum(random.weights, 0.0) / np.maximum(_totals(random), 1.0)[own]
    labels = np.concatenate([random.labels, each_flipped(truth)[flipped_of, flipped]])
    weights = np.concatenate([kept, s * probabilities[flipped_of, flipped]])
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n))]).astype(np.int64)
    return replace(random, labels=labels[order], weights=weights[order], starts=starts)


def _totals(random: RandomLabelings) -> np.ndarray:
    counts = np.diff(random.starts)
    weights = np.append(np.maximum(random.weights, 0.0), 0.0)
    return np.add.reduceat(weights, np.asarray(random.starts[:-1])) * (counts > 0)


# --------------------------------------------------------------------------------------------------------------
# A loss of labellings in a model: one maximum, or one likelihood, a sample over scores that all entries of a graph share.


@dataclass(frozen=True, eq=False)
class LabelDual:
    """Multipliers u (n, S) of the scores, sample weights included, with what they prove about the conjugate.

    image   : (d, S) X^T u, all that a proof asks of u itself
    whole   : () -> u, dense or CSR, for who wants to see it
    margins : (n,) w_i E[Delta], which shrinks with u; or, of a likelihood, None
    entropy, truth, weights : (n,) of a likelihood: entropy and probability of the true labelling of the random labelling behind u, and
        the sample weights
    labellings, scores : the `RandomLabelings` behind u, or the scores (n, S) of a likelihood that it is the gradient at, where known
    flips   : flips of single labels that are mixed in, where they are known beside `scores`
    share   : t in [0, 1] where u is multiplied by it: the random labelling is then mixed with the true one
    """

    image: np.ndarray
    whole: Callable
    margins: np.ndarray | None = None
    entropy: np.ndarray | None = None
    truth: np.ndarray | None = None
    weights: np.ndarray | None = None
    labellings: RandomLabelings | None = None
    scores: np.ndarray | None = None
    flips: Flips | None = None
    share: float = 1.0

    __array_ufunc__ = None  # numpy numbers on the left defer to __rmul__

    @property
    def table(self):
        """(n, S) u times the share."""
        return self.whole() if self.share == 1.0 else self.share * self.whole()

    def __array__(self, dtype=None, copy=None):
        table = self.table.toarray() if sparse.issparse(self.table) else self.table
        return np.ascontiguousarray(table.T, dtype=dtype).ravel()

    def __rmul__(self, t: float) -> LabelDual:
        if not 0.0 <= t <= 1.0:
            raise ValueError(f"proven multipliers can be scaled by a number in [0, 1], not by {t}")
        return replace(self, share=t * self.share)

    def proven(self) -> float:
        """A lower bound of minus the conjugate; exact for these random labellings."""
        if self.margins is not None:
            return self.share * float(self.margins.sum())
        return float(self.weights @ self.entropies())

    def entropies(self) -> np.ndarray:
        """(n,) of a likelihood: those of the share t times the random labelling and 1 - t times the true one."""
        assert self.truth is not None  # as of every likelihood
        t, p = self.share, self.truth
        others = t * (self.entropy + _x_log_x(p)) - (1.0 - p) * _x_log_x(t)
        return np.maximum(others - _x_log_x(t * p + (1.0 - t)), 0.0)


def _x_log_x(x):
    x = np.asarray(x, float)
    return np.where(x > 0, x * np.log(np.maximum(x, np.finfo(float).tiny)), 0.0)


@register_term
class LabelGraphTerm(LossTerm):
    """sum over samples i of weights_i * f_i(scores of sample i), f_i the atom's function of one sample.

    The tasks are the S entries of the graph, all with the same inputs; predictions are flat, entry after entry, those too that a sample
    with gaps does not see. Multipliers are flat,
    or `RandomLabelings`, or what these hold as a tuple; `dual_project` makes a `LabelDual` of either.
    """

    atom: Any  # a LabelGraphLoss, of which `max_affine` says what it can

    has_cheap_lines: ClassVar[bool] = False  # scores need an inference of their own at every point

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return loss.labels == "indicators"

    @cached_property
    def cliques(self) -> Cliques:
        return self.atom.cliques

    @cached_property
    def weights(self) -> np.ndarray:
        """(n,) coefficient times sample weight."""
        n = len(self.truth)
        own = self.tasks.sample_weights
        return self.coefficients[0] * (np.ones(n) if own is None else own[:n])

    @cached_property
    def truth(self) -> np.ndarray:
        """(n, K) the true labels, 0, 1 or `GAP`."""
        return self.atom.truth(self.tasks.targets)

    @cached_property
    def scale(self) -> np.ndarray:
        return np.tile(self.weights, self.cliques.n_entries)

    # ------------------------------------------------------------------------------------------------- values

    def value_at(self, x: Blocks) -> float:
        """The objective at a point: cliques without weights are left out, so that inference is on the graph that there is."""
        atom, scores = self._used_at(x)
        return float(self.weights @ atom.value_of_samples(scores, self.truth))

    def _used_at(self, x: Blocks) -> tuple:
        """(the loss over the cliques that have weights at a point, its scores there)."""
        W = self.map.forward(x)
        kept, columns = self.cliques.used_by(W)
        scores = np.ascontiguousarray(np.asarray(self.tasks.X @ W[:, columns]))
        return self.atom.with_cliques(self.cliques.subset(kept)), scores

    def value(self, z) -> float:
        return float(self.weights @ self.atom.value_of_samples(self.atom.scores(z), self.truth))

    def gradient(self, z) -> np.ndarray:
        return self.atom.flat(
            self.weights[:, None] * self.atom.gradient_of_samples(self.atom.scores(z), self.truth)
        )

    def prox(self, z, step) -> np.ndarray:
        steps = np.broadcast_to(step, self.weights.shape) * self.weights
        return self.atom.flat(self.atom.prox_of_samples(self.atom.scores(z), self.truth, steps))

    def certified_samples(self, x: Blocks) -> np.ndarray:
        """(n,) whether the maximum of every sample is exact at a point; of a likelihood, whose normaliser is exact, all."""
        if not self.atom.max_affine:
            return np.ones(len(self.truth), dtype=bool)
        atom, scores = self._used_at(x)
        return atom.most_violated(scores, self.truth).certified

    # -------------------------------------------------------------------------------------------- multipliers

    def magnitude(self, u, x: Blocks) -> float:
        """An upper bound over all multipliers between -w_i and w_i, which so need not be written out."""
        lengths = self.column_lengths * np.linalg.norm(self.weights)
        return float(np.sum(lengths * np.abs(self.map.forward(x))) + self.weights.sum())

    def add_adjoint(self, u, into: Blocks) -> None:
        if isinstance(u, LabelDual):
            image = u.image if u.share == 1.0 else u.share * u.image
        else:
            image = self._image(np.asarray(u).reshape(self.cliques.n_entries, -1).T)
        self.map.add_adjoint(image, into)

    def _image(self, table) -> np.ndarray:
        """(d, S) X^T table."""
        return np.asarray(self.tasks.X.T @ table)

    def _dual(self, table, **proof) -> LabelDual:
        return LabelDual(self._image(table), partial(_given, table), **proof)

    def dual_of(self, z) -> LabelDual:
        """With their proof, which is that of the scores themselves."""
        scores = self.atom.scores(z)
        if self.atom.max_affine:
            labels = self.atom.most_violated(scores, self.truth).labels
            n = len(labels)
            return self.dual_project(RandomLabelings(labels, np.ones(n), np.arange(n + 1)))
        u, entropy, truth = self.atom.proof_of_samples(scores, self.truth)
        return self._dual(
            self.weights[:, None] * u, entropy=entropy, truth=truth, weights=self.weights, scores=scores
        )

    def shown(self, u):
        """(n, S), CSR where the solver has labellings."""
        return u.table if isinstance(u, LabelDual) else np.asarray(u)

    def plain_multipliers(self, u):
        if not isinstance(u, RandomLabelings):
            return u
        n, labels = self.truth.shape
        fits = len(u.starts) == n + 1 and u.labels.shape[1] == labels
        return np.asarray(self.dual_project(u)) if fits else None

    def dual_project(self, u) -> LabelDual:
        if isinstance(u, LabelDual):
            return u
        if isinstance(u, tuple):  # labels, weights, starts
            u = RandomLabelings(*u)
        if isinstance(u, RandomLabelings):
            return self._of_labellings(u)
        weights = self.weights[:, None]
        points, promised = self.atom.proven(self.atom.scores(u) / weights, self.truth)
        if self.atom.max_affine:
            return self._dual(weights * points, margins=self.weights * promised)
        # how probable the true labelling is, is not known; 1 leaves what concavity proves, t times the entropy
        proof = {"entropy": promised, "truth": np.ones(len(points)), "weights": self.weights}
        return self._dual(weights * points, **proof)

    def _of_labellings(self, random: RandomLabelings) -> LabelDual:
        starts, labels = np.asarray(random.starts, dtype=np.int64), np.asarray(random.labels, dtype=np.uint8)
        counts, shares = np.diff(starts), np.maximum(random.weights, 0.0)
        shares = shares * np.repeat(self.weights / np.maximum(_totals(random), 1.0), counts)
        samples = np.repeat(np.arange(len(counts)), counts)
        own = self.truth[samples]
        if np.any(labels[own == GAP] != GAP):
            labels = np.where(own == GAP, own, labels)
            random = replace(random, labels=labels)
        mixture = self.cliques, self.truth, labels, shares, starts
        delta = self.atom.delta(labels, own)
        margins = np.bincount(samples, weights=shares * delta, minlength=len(counts))
        image = changes_times(*mixture, self.tasks.X).T
        return LabelDual(image, partial(expected_changes, *mixture), margins, labellings=random)

    def with_flips(self, dual: LabelDual, flips: Flips) -> LabelDual:
        """Multipliers with flips of single labels of the truth mixed in (`balancing_flips`)."""
        if dual.labellings is not None:
            return self._of_labellings(mixed_with_flips(dual.labellings, flips, self.truth, dual.share))
        s, p, t = flips[0], label_flip_probabilities(flips, self.truth), dual.share
        starts = self.truth.shape[1] * np.arange(len(p) + 1)
        flipped = each_flipped(self.truth).reshape(-1, p.shape[1])
        mixture = self.cliques, self.truth, flipped, (p * self.weights[:, None]).ravel(), starts
        image = (1.0 - s) * t * dual.image + s * changes_times(*mixture, self.tasks.X).T
        both = partial(_mixed_table, dual.whole, s, t, mixture)
        if dual.margins is not None:
            truth = np.repeat(self.truth, p.shape[1], axis=0)
            wrong = np.einsum("nk,nk->n", p, self.atom.delta(flipped, truth).reshape(p.shape))
            return LabelDual(image, both, margins=(1.0 - s) * t * dual.margins + s * self.weights * wrong)
        # an entropy is at least the mean of those of what is mixed; how probable the truth is, is not said
        rest = np.maximum(1.0 - p.sum(axis=1), 0.0)
        of_flips = -_x_log_x(p).sum(axis=1) - _x_log_x(rest)
        own = dual.entropies()
        known = dual.scores if t == 1.0 and dual.flips is None else None
        return LabelDual(
            image, both, entropy=(1.0 - s) * own + s * of_flips, truth=np.ones(len(p)), weights=dual.weights,
            scores=known, flips=flips if known is not None else None,
        )  # fmt: skip

    def conjugate(self, u) -> float:
        return -self.dual_project(u).proven()

    @property
    def conjugate_at_zero(self) -> float:
        """At most 0, for these losses are at least 0: known without the labellings behind it."""
        return 0.0


def labelled_totals(atom: Any, tasks: Any) -> np.ndarray:
    """(S,) `totals` of the entries of a graph, without the samples that have no label: a mean is over the others."""
    has_label = (atom.truth(tasks.targets) != GAP).any(axis=1)
    if has_label.all():
        return tasks.totals
    weights = tasks.sample_weights
    total = has_label.sum() if weights is None else weights[: len(has_label)][has_label].sum()
    return np.full(tasks.n_tasks, total)


def balance_labels(losses: Sequence[LabelGraphTerm], duals: Sequence) -> list:
    """Multipliers of losses that share the intercepts of labels, such that those of every label sum to zero over all of them."""
    K = losses[0].cliques.n_labels
    sums = np.sum([dual.share * dual.image[-1, 1 : 2 * K : 2] for dual in duals], axis=0)
    flips = balancing_flips(sums, [loss.truth for loss in losses], [loss.weights for loss in losses])
    if flips is None:
        return list(duals)
    return [loss.with_flips(dual, flips) for loss, dual in zip(losses, duals, strict=True)]


# Tables of multipliers are made by functions of this module, never by local ones: a solution that has them can be pickled.


def _given(table):
    return table


def _mixed_table(whole: Callable, s: float, t: float, mixture: tuple):
    own = whole()
    own = own.toarray() if sparse.issparse(own) else own
    return (1.0 - s) * t * own + s * expected_changes(*mixture).toarray()
