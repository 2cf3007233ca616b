"""The log-likelihood of labellings over a graph of labels, with its exact normaliser: a conditional random field."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import SET_BY_MODEL, register
from mtldsl.atoms.inference.cliques import GAP, Cliques
from mtldsl.atoms.inference.decoder import LogPartition
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.errors import ModelError
from mtldsl.utils.parallel import slabs


@dataclass(frozen=True)
class PairwiseLogSettings:
    """Limits of Newton's method over all 2^K labellings.

    enumeration_labels : most labels K
    newton_steps       : steps of a prox or of a conjugate
    damping            : added to a Hessian that is singular
    longest_step       : most that a score moves in a step of a conjugate
    slab_entries       : entries of all labellings of samples that take a step together
    """

    enumeration_labels: int = 12
    newton_steps: int = 200
    damping: float = 1e-14
    longest_step: float = 10.0
    slab_entries: int = 2_000_000


SETTINGS = PairwiseLogSettings()


@register
@dataclass(frozen=True, eq=False)
class PairwiseLogLoss(LabelGraphLoss):
    r"""The negative log-likelihood of labellings over a graph of labels: the mean over samples of
    log sum over all labellings y of exp s_i(y), minus s_i(y_i).

    s_i(y) is the sum of the scores that y chooses: x_i^T u of two columns of U (d, 2K) a label, one for 0 and one for 1, and x_i^T v of
    2^|c| columns of V a clique c, 4 an edge. Typed `pairwise_log_loss(U, V, tasks)`; labels are -1 and +1 in `tasks`, and -1 counts as
    0. A mean over samples, weighted by sample weights where there are some. Without edges it is the mean of sums of logistic losses.
    A sample with missing labels (NaN) has the negative log-likelihood of its observed labels alone, over the graph that they induce:
    that of a model without the other labels, and not their marginal likelihood in the whole model, which is not convex. A sample
    without a label counts for nothing, in the mean too.

    Raises
    ------
    ModelError
        Where U or V does not have the shape that labels and cliques ask for, or the graph is too dense for an exact normaliser.
    DataError
        Where inputs are not shared, a label is neither -1 nor +1, or a sample has other weights for other labels.

    Notes
    -----
    Smooth: the gradient in the scores is the marginal probabilities minus Upsilon(y_i), and their covariance, the second derivative, is
    at most (K + q) / 2. Conjugate: minus the largest entropy of a random labelling with the marginals Upsilon(y_i) + u.
    Source: CGM, section 5 (HLLM-L1, its pairwise form); Lafferty, McCallum and Pereira, "Conditional random fields", ICML 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mtldsl.atoms.inference.cliques import Cliques
    >>> loss = PairwiseLogLoss(cliques=Cliques(2, ((0, 1),)))
    >>> y = loss.cliques.indicators([[0, 1]]).ravel()
    >>> round(loss.value(np.zeros(8), y), 6), round(float(np.log(4)), 6)
    (1.386294, 1.386294)
    """

    cliques: Cliques = field(default=SET_BY_MODEL, metadata={"told": True})

    name: ClassVar[str] = "pairwise_log_loss"
    meaning: ClassVar[str] = (
        r"the negative log-likelihood over a graph of labels, whose scores $\Upsilon(y)$ picks for a "
        "labelling $y$"
    )
    formula: ClassVar[str] = r"\log\sum_{y}\exp\langle {},\,\Upsilon(y)-\Upsilon(y_i)\rangle"
    smooth: ClassVar[bool] = True
    exact_prox: ClassVar[bool] = False

    @classmethod
    def examples(cls):
        return [cls(Cliques(4, ((1, 2),))), cls(Cliques(2))]

    @property
    def curvature(self) -> float:
        return 0.5 * (self.cliques.n_labels + self.cliques.n_cliques)

    def with_cliques(self, cliques):
        return PairwiseLogLoss(cliques)

    @cached_property
    def normaliser(self) -> LogPartition:
        return LogPartition(self.cliques)

    def value_of_samples(self, scores, truth):
        scores = self.cliques.within(scores, truth)
        log_z, _ = self._normalised(scores, truth)
        return np.maximum(log_z - self._own(scores, truth), 0.0)

    def _normalised(self, scores, truth) -> tuple[np.ndarray, np.ndarray]:
        """(log-partition (n,), marginals (n, S)) over the observed labels, of scores of their graphs: a gap is counted with both values."""
        log_z, marginals = self.normaliser(scores)
        gaps = (truth == GAP).sum(axis=1)
        if not gaps.any():
            return log_z, marginals
        found = np.where(gaps == truth.shape[1], 0.0, log_z - gaps * np.log(2.0))
        return found, self.cliques.within(marginals, truth)

    def _own(self, scores, truth):
        return np.take_along_axis(scores, self.cliques.chosen(truth), axis=1).sum(axis=1)

    def gradient_of_samples(self, scores, truth):
        scores = self.cliques.within(scores, truth)
        return self._normalised(scores, truth)[1] - self.cliques.indicators(truth)

    def proof_of_samples(self, scores, truth):
        """(gradient (n, S), entropy (n,), probability of the truth (n,)) of the random labellings that scores stand for."""
        scores = self.cliques.within(scores, truth)
        log_z, marginals = self._normalised(scores, truth)
        return (
            marginals - self.cliques.indicators(truth),
            np.maximum(log_z - np.einsum("ij,ij->i", marginals, scores), 0.0),
            np.exp(np.minimum(self._own(scores, truth) - log_z, 0.0)),
        )

    def probability(self, z):
        """(n, K) probabilities that labels are 1, from scores (n, S)."""
        return self.normaliser(np.ascontiguousarray(z))[1][:, 1 : 2 * self.cliques.n_labels : 2]

    # ------------------------------------------------------------------------------- by all labellings, of few labels

    def _labellings(self) -> np.ndarray:
        """(2^K, S) indicators of all labellings."""
        K = self.cliques.n_labels
        if SETTINGS.enumeration_labels < K:
            raise ModelError(
                f"pairwise_log_loss: {K} labels have too many labellings for this solver, which enumerates up to {SETTINGS.enumeration_labels} "
                "labels",
                write_instead='write solve(solver="proximal_gradient")',
            )
        return self.cliques.indicators((np.arange(2**K)[:, None] >> np.arange(K)[::-1]) & 1)

    def prox_of_samples(self, scores, truth, steps):
        found = np.empty_like(scores)
        # in terms of x: step (log-partition(x) - <own, x>) + 1/2 ||x - z||^2
        moved = scores + steps[:, None] * self.cliques.indicators(truth)
        for rows, seen in _by_gaps(self._labellings(), self.cliques, truth):
            found[rows] = _newton(seen, steps[rows], moved[rows], np.zeros_like(moved[rows]), 1.0)[0]
        return found

    def promised(self, points, truth) -> np.ndarray:
        """(n,) the largest entropy of random labellings whose expected Upsilon(y) - Upsilon(y_i) are `points` (n, S): the least
        log-partition(x) - <marginals, x>. On the boundary x goes to infinity, the value does not.
        """
        marginals, found = points + self.cliques.indicators(truth), np.empty(len(points))
        for rows, seen in _by_gaps(self._labellings(), self.cliques, truth):
            found[rows] = _newton(
                seen, np.ones(len(rows)), np.zeros_like(marginals[rows]), marginals[rows], 0.0
            )[1]
        return np.maximum(found, 0.0)


def _by_gaps(vertices, cliques: Cliques, truth):
    """(some samples with the same gaps, the indicators of all labellings of their observed labels), for all samples."""
    truth = np.asarray(truth)
    gaps, of = np.unique(truth == GAP, axis=0, return_inverse=True)
    at_once = max(1, SETTINGS.slab_entries // vertices.size)
    for number, missing in enumerate(gaps):
        seen = vertices
        if missing.any():
            distinct = vertices[:, 1 : 2 * cliques.n_labels : 2][:, missing].sum(axis=1) == 0.0
            seen = cliques.within(vertices[distinct], np.where(missing, GAP, 0)[None])
        rows = np.flatnonzero(of.ravel() == number)
        for part in slabs(len(rows), at_once):
            yield rows[part], seen


def _newton(vertices, steps, Z, M, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """(argmin over x of step * log-partition(x) - <m, x> + ridge / 2 ||x - z||^2, the value there) for every row z of Z (n, S) and m of M, each
    with its own step, by Newton's method with a line search, all rows at once.
    """
    n, S = Z.shape
    # without a ridge what does not change the probabilities of labellings is free
    damping, X = max(ridge, SETTINGS.damping) * np.eye(S), Z - steps[:, None] * vertices.mean(axis=0)

    def values(rows, at):
        scores = at @ vertices.T
        top = scores.max(axis=1)
        weights = np.exp(scores - top[:, None])
        totals = weights.sum(axis=1)
        away = 0.5 * ridge * np.sum((at - Z[rows]) ** 2, axis=1) - np.einsum("ij,ij->i", M[rows], at)
        return steps[rows] * (top + np.log(totals)) + away, weights / totals[:, None]

    left = np.arange(n)
    value, p = values(left, X)
    found = value.copy()
    for _ in range(SETTINGS.newton_steps):
        step, x, z, m = steps[left, None], X[left], Z[left], M[left]
        mean = p @ vertices
        slope = step * mean + ridge * x - ridge * z - m
        size = step * mean + m + ridge * (np.abs(x) + np.abs(z))
        going = np.any(np.abs(slope) > 4e-16 * size, axis=1)
        left, value, p = left[going], value[going], p[going]
        if not left.size:
            break
        step, x, mean, slope = step[going], x[going], mean[going], slope[going]
        centred = vertices - mean[:, None, :]
        covariance = np.swapaxes(centred * p[:, :, None], 1, 2) @ centred
        way = -np.linalg.solve(step[:, :, None] * covariance + damping, slope[:, :, None])[:, :, 0]
        if ridge == 0.0:  # where the minimum is at infinity, no step there at once
            way *= np.minimum(1.0, SETTINGS.longest_step / np.abs(way).max(axis=1, keepdims=True))
        decrease, length = np.einsum("ij,ij->i", way, slope), np.ones(len(left))
        trial = x + way
        new, p_new = values(left, trial)
        while True:
            long = (new > value + 1e-4 * length * decrease) & (length >= 1e-3)
            if not long.any():
                break
            length[long] *= 0.5
            trial[long] = x[long] + length[long, None] * way[long]
            new[long], p_new[long] = values(left[long], trial[long])
        X[left], found[left] = trial, new
        going = np.abs(decrease) > 1e-15 * (np.abs(value) + steps[left])
        left, value, p = left[going], new[going], p_new[going]
        if not left.size:
            break
    return X, found
