"""Baselines of boosted stumps and label trees: AdaBoost.MH and HOMER."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.errors import DataError
from mtldsl.estimators.baselines.base_baseline import (
    Baseline,
    ClassifierBaseline,
    fit_classifier,
    margin,
    whole,
)
from mtldsl.utils.memory import as_dense

# --------------------------------------------------------------------------------------------------------------
# Decision stumps for several labels at once: one feature, one threshold, an answer a label on each side.


@dataclass(frozen=True)
class Stump:
    """h(x) = below (K,) where x[feature] <= threshold, else above (K,)."""

    feature: int
    threshold: float
    below: np.ndarray
    above: np.ndarray

    def __call__(self, X) -> np.ndarray:
        """(n, K)."""
        return np.where((X[:, self.feature] <= self.threshold)[:, None], self.below, self.above)


class Stumps:
    """The best stump for weights of rows and labels, on rows that are sorted once.

    X (n, d) dense; signs (n, K) of -1 and +1. Thresholds lie midway between neighbouring values of a feature; equally good ones: the first
    feature, the lowest threshold.
    """

    def __init__(self, X, signs):
        self.X, self.positive = X, signs > 0
        self.order = np.argsort(X, axis=0, kind="stable").T
        self.ends = [np.flatnonzero(np.diff(X[order, j]) > 0) for j, order in enumerate(self.order)]

    def best(self, weights: np.ndarray) -> Stump:
        """The least Z = 2 sum over sides and labels of sqrt(W+ W-), answers 1/2 ln(W+ / W-).

        W+ and W- are the weights (n, K) of the rows of a side where the label is there, and where it is not.
        """
        W_plus, W_minus = np.where(self.positive, weights, 0.0), np.where(self.positive, 0.0, weights)
        total = W_plus.sum(axis=0), W_minus.sum(axis=0)

        def judge(plus, minus) -> np.ndarray:
            """Z of a side."""
            return 2.0 * np.sqrt(np.maximum(plus * minus, 0.0)).sum(axis=1)

        least, at = np.inf, None
        for j, (order, ends) in enumerate(zip(self.order, self.ends, strict=True)):
            if not ends.size:
                continue
            plus, minus = (np.cumsum(W[order], axis=0)[ends] for W in (W_plus, W_minus))
            found = judge(plus, minus) + judge(total[0] - plus, total[1] - minus)
            i = int(np.argmin(found))
            if found[i] < least:
                least, at = found[i], (j, ends[i])
        if at is None:  # no feature varies
            answers = self._answers(*total)
            return Stump(0, np.inf, answers, answers)
        j, end = at
        low, high = self.X[self.order[j][end], j], self.X[self.order[j][end + 1], j]
        middle = low + (high - low) / 2.0
        threshold = float(middle if middle < high else low)
        side = self.X[:, j] <= threshold
        below, above = (
            self._answers(W_plus[each].sum(axis=0), W_minus[each].sum(axis=0)) for each in (side, ~side)
        )
        return Stump(j, threshold, below, above)

    def _answers(self, plus, minus) -> np.ndarray:
        smoothing = 1.0 / self.positive.size  # one weight's share, so that answers are finite
        return 0.5 * np.log((plus + smoothing) / (minus + smoothing))


# --------------------------------------------------------------------------------------------------------------
# AdaBoost.MH: boosted stumps that answer all labels of a row.


class AdaBoostMH(Baseline):
    """Boosted decision stumps that answer all labels at once (AdaBoost.MH).

        D_1 = 1 / (n K);  h_t the stump with the least Z_t = sum D_t(i, k) exp(-Y_ik h_t(x_i, k)),  Y in {-1, +1}
        D_(t+1)(i, k) = D_t(i, k) exp(-Y_ik h_t(x_i, k)) / Z_t;  scores f = sum over t of h_t;  a label is predicted where f > 0
        the share of labels of the training rows that are wrong is at most Z_1 ... Z_T

    n_rounds : T >= 1

    A stump looks at one feature and has one threshold for all labels. It answers 1/2 ln(W+ / W-) on each side for each label, W the weights
    there, smoothed by 1 / (n K) (real AdaBoost.MH). There is nothing random in it, and no other weak learner. Rounds end before T where a
    stump lowers the bound no more: Z_t = 1. X and Y are as in `BinaryRelevance`; sparse X is made dense. DataError for other labels and a
    number outside its range. Attributes after `fit`: stumps_; normalizers_, Z_t, whose product is the bound; classes_, label_classes_.

    Source: Schapire and Singer, Improved boosting algorithms using confidence-rated predictions (1999), and BoosTexter (2000); the SMTL
    paper's AdaBoostMH.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import AdaBoostMH
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = AdaBoostMH(n_rounds=3).fit(X, [[0, 1], [0, 1], [0, 0], [1, 0]])
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 0]])
    >>> model.normalizers_.round(3)
    array([0.683, 0.69 , 0.706])
    """

    def __init__(self, *, n_rounds=50):
        self.n_rounds = n_rounds

    def _check(self) -> None:
        whole(self, "n_rounds")

    def _learn(self, X, Y) -> None:
        X = _dense(X)
        signs = 2.0 * Y - 1.0
        pool = Stumps(X, signs)
        D = np.full(Y.shape, 1.0 / Y.size)
        self.stumps_: list[Stump] = []
        normalizers = []
        for _ in range(self.n_rounds):
            stump = pool.best(D)
            D = D * np.exp(-signs * stump(X))
            Z = float(D.sum())
            if self.stumps_ and Z >= 1.0 - 1e-12:  # nothing is gained any more
                break
            D /= Z
            self.stumps_.append(stump)
            normalizers.append(Z)
        self.normalizers_ = np.array(normalizers)

    def _margins(self, X) -> np.ndarray:
        X = _dense(X)
        return np.sum([stump(X) for stump in self.stumps_], axis=0)


def _dense(X) -> np.ndarray:
    return as_dense(X, "AdaBoostMH: the inputs as a dense table", "select features first", DataError)


# --------------------------------------------------------------------------------------------------------------
# Balanced k-means: clusters of as equal a size as there can be.


#: Rounds of the balanced k-means, unless the parts stay as they are before.
CLUSTERING_ROUNDS = 10


def balanced_clusters(points, k: int, random_state) -> list[np.ndarray]:
    """k parts of the rows of `points` (m, p), each of at most ceil(m / k), none empty; all rows apart where there are k or fewer.

    A row goes to its nearest centre; a cluster that is over-full sends away its farthest row, which goes to its nearest centre that it has
    not been sent from. Then centres are the clusters' means, ten rounds. The first
    centres are a row that random_state draws, and then each time the row that is farthest from those before.

    Source: Tsoumakas, Katakis and Vlahavas (2008), the algorithm "balanced k means".

    >>> points = np.array([[0.0], [0.1], [0.2], [5.0]])
    >>> balanced_clusters(points, 2, np.random.RandomState(0))
    [array([0, 1]), array([2, 3])]
    """
    points = np.asarray(points, dtype=float)
    m = len(points)
    if m <= k:
        return [np.array([i]) for i in range(m)]
    first = [int(random_state.randint(m))]
    while len(first) < k:
        away = np.linalg.norm(points[:, None, :] - points[first][None, :, :], axis=2).min(axis=1)
        away[first] = -1.0
        first.append(int(np.argmax(away)))
    centres = points[first]
    room, parts = -(-m // k), []
    for _ in range(CLUSTERING_ROUNDS):
        before = parts
        parts = _assigned(points, centres, room)
        if len(before) == len(parts) and all(
            np.array_equal(a, b) for a, b in zip(before, parts, strict=True)
        ):
            break
        centres = np.stack(
            [
                points[each].mean(axis=0) if each.size else old
                for each, old in zip(parts, centres, strict=True)
            ]
        )
    return sorted((each for each in parts if each.size), key=lambda part: int(part[0]))


def _assigned(points, centres, room: int) -> list[np.ndarray]:
    """Which rows go to which centre, at most `room` to each."""
    distances = np.linalg.norm(points[:, None, :] - centres[None, :, :], axis=2)
    clusters: list[list[int]] = [[] for _ in centres]
    for i in range(len(points)):
        moving = i
        while True:
            nearest = int(np.argmin(distances[moving]))
            clusters[nearest].append(moving)
            if len(clusters[nearest]) <= room:
                break
            # the farthest, of equally far ones the last, is sent away for good
            moving = max(clusters[nearest], key=lambda row: (distances[row, nearest], row))
            clusters[nearest].remove(moving)
            distances[moving, nearest] = np.inf
    return [np.array(sorted(each), dtype=int) for each in clusters]


# --------------------------------------------------------------------------------------------------------------
# HOMER: a tree of small multi-label problems, over labels that were clustered into parts of equal size.


@dataclass
class LabelTreeNode:
    """Some labels (two or more), their parts, a classifier a part ("a label of this part is there"), and the part's own node, None of one label."""

    labels: np.ndarray
    parts: list[np.ndarray]
    models: list
    children: list[LabelTreeNode | None]


class HOMER(ClassifierBaseline):
    """A hierarchy of multi-label classifiers over clusters of labels (HOMER).

        the root has all labels; a node's labels are clustered into k parts of equal size, its children, until a part is one label
        a part is "there" in a row where one of its labels is; a node's classifiers, one a part, are learned from the rows in which the
        node's own labels are there (the root's from all rows)
        score of a label = the least of the scores of the parts on its way from the root;  predicted where it is above 0

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    n_children   : k >= 2, the number of parts; with as many as labels it is `BinaryRelevance`
    random_state : of the row that is the first centre; the default gives the same model every time

    A label is predicted where all parts on its way are, as in the paper, whose nodes may hold any multi-label learner: here each is
    binary relevance; and whose first centres are drawn, where here they are far from each other. X, Y and what else is raised are as in `BinaryRelevance`; DataError for numbers outside their range. Attributes
    after `fit`: hierarchy_, nested lists of positions of labels; classes_, label_classes_.

    Source: Tsoumakas, Katakis and Vlahavas, Effective and efficient multilabel classification in domains with large number of labels (2008);
    the SMTL paper's HOMER.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import HOMER
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])
    >>> Y = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> model = HOMER(n_children=2).fit(X, Y)
    >>> model.hierarchy_
    [[0, 1], [2, 3]]
    >>> model.predict([[1.0, 0.0], [3.0, 0.0]])
    array([[1, 1, 0, 0],
           [0, 0, 1, 1]])
    """

    def __init__(self, estimator=None, *, n_children=3, random_state=0):
        self.estimator = estimator
        self.n_children = n_children
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        whole(self, "n_children", least=2)

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        self._root = self._node(X, Y, np.arange(Y.shape[1]), rng)
        self.hierarchy_ = _nested(self._root)

    def _node(self, X, Y, labels, rng) -> LabelTreeNode:
        parts = [labels[each] for each in balanced_clusters(Y[:, labels].T, self.n_children, rng)]
        there = np.stack([Y[:, part].any(axis=1) for part in parts], axis=1).astype(int)
        models = [fit_classifier(self._base(), X, one, rng) for one in there.T]
        children: list[LabelTreeNode | None] = []
        for part, one in zip(parts, there.T, strict=True):
            rows = np.flatnonzero(one)
            if not rows.size:  # none of these labels occurs: the part is never predicted, whatever is below
                rows = np.arange(len(one))
            children.append(self._node(X[rows], Y[rows], part, rng) if len(part) > 1 else None)
        return LabelTreeNode(labels, parts, models, children)

    def _margins(self, X) -> np.ndarray:
        scores = np.empty((X.shape[0], len(self._root.labels)))
        _fill(self._root, X, np.full(X.shape[0], np.inf), scores)
        return scores


def _fill(node: LabelTreeNode, X, above: np.ndarray, scores: np.ndarray) -> None:
    """The scores of a node's labels: the least on their way, `above` (n,) being that down to the node."""
    for part, model, child in zip(node.parts, node.models, node.children, strict=True):
        here = np.minimum(above, margin(model, X))
        if child is None:
            scores[:, part[0]] = here
        else:
            _fill(child, X, here, scores)


def _nested(node: LabelTreeNode) -> list:
    """The labels below a node as nested lists."""
    return [
        int(part[0])
        if child is None
        else part.tolist()
        if all(c is None for c in child.children)
        else _nested(child)
        for part, child in zip(node.parts, node.children, strict=True)
    ]
