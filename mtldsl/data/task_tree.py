"""Tasks that descend from one another: the generator of section 4 of the MT-MKL paper, and trees inferred from a similarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtldsl.data.input_checks import as_names
from mtldsl.data.schema import require_tasks
from mtldsl.data.synthetic import _check_sizes
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.utils.arrays import CORRELATION_ROUNDING, as_array
from mtldsl.utils.memory import require_memory
from mtldsl.utils.validation import (
    MAX_MAGNITUDE,
    as_float,
    as_whole,
    generator,
    one_of,
    quoted,
)

#: Those of scipy's linkages that make sense for any distance; ward, centroid and median need a Euclidean one.
_LINKAGES = ("average", "single", "complete", "weighted")


@dataclass(frozen=True, eq=False)
class TaskTree:
    """Tasks that `make_task_tree` makes: T = 2^depth of them over d features, and the tree they come from.

    train, test : Tasks, named after the leaves: "00101" is reached from the root by left, left, right, left, right
    parents     : {node: its parent, ..., "root": None}, what `mtl.similarities.tree` takes; 2^(depth + 1) - 1 nodes
    similarity  : (T, T) mu_s . mu_t, the true task similarity; n_features on the diagonal
    mus         : (d, T) column t is mu_t, the difference between the means of the classes +1 and -1 of task t
    variance    : of every feature within a class
    """

    train: Tasks
    test: Tasks
    parents: dict[str, str | None]
    similarity: np.ndarray
    mus: np.ndarray
    variance: float

    @property
    def bayes_auc(self) -> np.ndarray:
        """AUC of the score mu_t . x of every task, Phi(||mu_t|| / sqrt(2 variance)), which none exceeds; of shape (2^depth,).

        The scores of the classes are N(+-||mu_t||^2 / 2, variance ||mu_t||^2), and the AUC is the probability that one is above
        the other.

        >>> from mtldsl import datasets
        >>> corrected = datasets.make_task_tree(n_test=1, random_state=0)
        >>> printed = datasets.make_task_tree(depth=4, variance=20.0**2, n_test=1, random_state=0)
        >>> corrected.bayes_auc.mean().round(3), printed.bayes_auc.mean().round(3)
        (np.float64(0.943), np.float64(0.638))
        """
        from scipy.special import ndtr

        return ndtr(np.linalg.norm(self.mus, axis=0) / np.sqrt(2.0 * self.variance))

    def sample(self, n_per_class: int, random_state=None) -> Tasks:
        """New rows of the same tasks, n_per_class of either class, such as a validation set.

        >>> from mtldsl import datasets
        >>> tree = datasets.make_task_tree(depth=1, n_features=6, n_flips=2, n_test=1, random_state=0)
        >>> tree.sample(7, random_state=1)
        <Tasks: 2 tasks, 6 features, separate inputs, 14 + 14 labelled rows>
        """
        _check_sizes(n_per_class=n_per_class)
        rng = generator(random_state, "sample")
        return _draw(self.mus, self.variance, n_per_class, self.train.task_names, rng)


def make_task_tree(
    depth: int = 5,
    n_features: int = 100,
    n_flips: int = 5,
    variance: float = 20.0,
    n_train: int = 10,
    n_test: int = 1000,
    *,
    random_state=None,
) -> TaskTree:
    """x = y mu_t / 2 + sqrt(variance) * e,  y = -1, +1,  e standard normal; mu_t is inherited down a binary tree.

    The root has mu = (1, ..., 1). Every child has its parent's mu with the signs of n_flips features, drawn at random, turned.
    The 2^depth leaves are the tasks: the expectation of mu_s . mu_t is n_features (1 - 2 n_flips / n_features)^(2 k), where k is how
    many steps s and t are below their nearest common ancestor.

    n_train, n_test : rows of either class and task, to train and to test on

    The same random_state gives the same numbers. DataError for sizes and a variance that make no sense.

    Source: Widmer, Kloft et al., MT-MKL, section 4. As printed, depth=4 and a standard deviation of 20
    (variance=400), it cannot be what was run: 32 tasks need depth 5, and with that deviation no classifier has an AUC above .638
    (`TaskTree.bayes_auc`), where .829 is reported; with a variance of 20 it is .943.

    >>> from mtldsl import datasets
    >>> tree = datasets.make_task_tree(depth=2, n_features=8, n_flips=1, n_test=50, random_state=1)
    >>> tree.train.task_names, tree.parents["00"], tree.parents["0"], tree.parents["root"]
    (('00', '01', '10', '11'), '0', 'root', None)
    >>> tree.similarity
    array([[8., 4., 0., 0.],
           [4., 8., 0., 0.],
           [0., 0., 8., 4.],
           [0., 0., 4., 8.]])
    """
    _check_sizes(depth=depth, n_features=n_features, n_train=n_train, n_test=n_test)
    if as_whole(n_flips) is None or not 0 <= n_flips <= n_features:
        raise DataError(
            f"n_flips={quoted(n_flips)}: write how many of the {n_features} features turn their sign",
            argument="n_flips",
        )
    leaves = 2.0 ** min(depth, 200)
    # names, two levels of mu, the similarity, the rows of both classes
    bytes_ = 500.0 * leaves + 8.0 * leaves * (
        4.0 * n_features + leaves + 2.0 * (n_train + n_test) * (n_features + 2.0)
    )
    sizes = f"depth={depth}, n_features={n_features}, n_train={n_train}, n_test={n_test}"
    require_memory(
        bytes_,
        f"make_task_tree({sizes}), of 2^{depth} tasks,",
        "write smaller numbers",
        DataError,
        ("depth", "n_features", "n_train", "n_test"),
    )
    given, variance = variance, as_float(variance) or 0.0
    if not 0 < variance <= MAX_MAGNITUDE:
        raise DataError(
            f"variance={quoted(given)}: write a finite number > 0, the square of a standard deviation",
            argument="variance",
        )
    rng = generator(random_state, "make_task_tree")
    parents: dict[str, str | None] = {"root": None}
    level = {"": np.ones(n_features)}
    for _ in range(depth):
        below = {}
        for path, mu in level.items():
            for step in "01":
                child = below[path + step] = mu.copy()
                child[rng.choice(n_features, n_flips, replace=False)] *= -1.0
                parents[path + step] = path or "root"
        level = below
    names, mus = list(level), np.column_stack(list(level.values()))
    train, test = (_draw(mus, variance, n, names, rng) for n in (n_train, n_test))
    return TaskTree(train, test, parents, mus.T @ mus, mus, variance)


def _draw(mus, variance, n, names, rng) -> Tasks:
    y = np.repeat([1.0, -1.0], n)
    deviation = np.sqrt(variance)
    inputs = [0.5 * np.outer(y, mu) + deviation * rng.normal(size=(2 * n, mu.size)) for mu in mus.T]
    return Tasks.separate(inputs, [y] * len(inputs), task_names=names)


def estimate_similarity(tasks: Tasks, method: str = "means", ridge: float = 1.0) -> np.ndarray:
    """S[s, t] = a_s . a_t / (||a_s|| ||a_t||): the cosines of one direction a_t learned from each task alone, (T, T).

    method : "means": a_t = mean of the rows labelled +1 minus mean of those labelled -1, Fisher's direction where features are
             uncorrelated and of equal variance; labels must be -1/+1
             "ridge": a_t = argmin_w min_b sum_i s_i (y_i - x_i . w - b)^2 + ridge ||w||^2; for labels of any kind
    ridge  : > 0, of "ridge" alone

    Sample weights s_i count. The cosines are too small: noise in a_t adds to its norm and not to its products with others. Where all
    tasks have about as many rows, it is the same factor for all pairs, and `hierarchy` merges as it would without. Use training rows.

    DataError for labels that the method cannot use, and where a direction is 0. Source: the MT-MKL paper leaves open how a hierarchy
    is inferred; this is the plainest way.

    >>> from mtldsl import datasets
    >>> tree = datasets.make_task_tree(depth=2, n_features=40, n_flips=4, n_train=500, n_test=1, random_state=1)
    >>> datasets.estimate_similarity(tree.train).round(1) + 0.0
    array([[1. , 0.6, 0.3, 0.4],
           [0.6, 1. , 0.3, 0.3],
           [0.3, 0.3, 1. , 0.5],
           [0.4, 0.3, 0.5, 1. ]])
    """
    typed = f"estimate_similarity(tasks, method={quoted(method)})"
    require_tasks(tasks, "estimate_similarity(tasks)")
    one_of(method, ("means", "ridge"), "estimate_similarity(tasks, method")
    if not 0 < (as_float(ridge) or 0) < np.inf:
        raise DataError(
            term=f"estimate_similarity(ridge={quoted(ridge)})", write_instead="write a finite number > 0"
        )
    if method == "means":
        tasks.require_labels("sign", typed)
    weights = np.ones(tasks.n_samples) if tasks.sample_weights is None else tasks.sample_weights
    rows = zip(tasks.inputs, tasks.per_task(tasks.targets), tasks.per_task(weights), strict=True)
    directions = np.array([_means(*row) if method == "means" else _ridge(*row, ridge) for row in rows])
    norms = np.linalg.norm(directions, axis=1)
    if not norms.all():
        name = tasks.task_names[int(np.argmin(norms))]
        raise DataError(
            f"the direction of task {name!r} is 0, as nothing tells its rows apart",
            term=typed,
            write_instead="leave the task out",
        )
    directions /= norms[:, None]
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, 1.0)
    return (cosines + cosines.T) / 2.0


def _means(X, y, s) -> np.ndarray:
    positive, negative = s * (y > 0), s * (y < 0)
    difference = X.T @ (positive / positive.sum() - negative / negative.sum())
    # of inputs that are all alike only rounding is left
    return difference * (np.abs(difference).max() > 1e-12 * abs(X).max())


def _ridge(X, y, s, ridge) -> np.ndarray:
    from sklearn.linear_model import Ridge

    return Ridge(alpha=ridge).fit(X, y, sample_weight=s).coef_


def hierarchy(similarity, names: Sequence[str], method: str = "average") -> dict[str, str | None]:
    """A binary tree of tasks from their similarity: {node: its parent, ..., "root": None}, what `mtl.similarities.tree` takes.

    similarity : (T, T) symmetric, the diagonal > 0; only its cosines S[s, t] / sqrt(S[s, s] S[t, t]) count
    names      : T task names, the leaves. Inner nodes are "group 1", "group 2", ... in the order of merging; the last is "root"
    method     : "average", "single", "complete" or "weighted": how far apart two groups of tasks are, given the distances
                 1 - cosine between tasks (scipy.cluster.hierarchy.linkage)

    T tasks give 2 T - 1 nodes. DataError for another shape, NaN or infinity, a matrix that is not symmetric, a diagonal entry <= 0, a
    cosine outside [-1, 1], and names that are not T different ones.

    >>> from mtldsl import datasets
    >>> S = [[4.0, 3.0, 0.0], [3.0, 4.0, 1.0], [0.0, 1.0, 4.0]]
    >>> datasets.hierarchy(S, ["mouse", "rat", "fly"])
    {'mouse': 'group 1', 'rat': 'group 1', 'fly': 'root', 'group 1': 'root', 'root': None}
    """
    one_of(method, _LINKAGES, "hierarchy(method")
    S = as_array(similarity, "hierarchy: a similarity is a (T, T) array of numbers").astype(float)
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not S.size:
        raise DataError(f"hierarchy: a similarity is square, (T, T); this one has the shape {S.shape}")
    names = list(as_names([names] if isinstance(names, str) else names, None, len(S), "hierarchy: names"))
    cosines = _cosines(S, names)
    T = len(names)
    inner = [f"group {k}" for k in range(1, T - 1)] + ["root"]
    nodes = names + inner[-max(T - 1, 0) :] if T > 1 else names
    taken = next((name for name in names if nodes.count(name) > 1), None)
    if taken is not None:
        raise DataError(
            f"hierarchy: a task is called {taken!r}, as an inner node of the tree would be",
            write_instead="rename the task",
        )
    parents: dict[str, str | None] = dict.fromkeys(nodes)
    if T > 1:
        from scipy.cluster.hierarchy import linkage

        merges = linkage(1.0 - cosines[np.triu_indices(T, 1)], method)
        for k, (left, right) in enumerate(merges[:, :2].astype(int)):
            parents[nodes[left]] = parents[nodes[right]] = nodes[T + k]
    return parents


def _cosines(S: np.ndarray, names: list[str]) -> np.ndarray:
    """(T, T) entries in [-1, 1], exactly symmetric; DataError where S has none."""

    def at(bad) -> str:
        s, t = np.argwhere(bad)[0]
        return f"the similarity of {names[s]!r} and {names[t]!r} is {S[s, t]:g}"

    if not np.isfinite(S).all():
        raise DataError(f"hierarchy: {at(~np.isfinite(S))}; all must be finite")
    if (np.diag(S) <= 0).any():
        raise DataError(f"hierarchy: {at((S <= 0) & np.eye(len(S), dtype=bool))}; the diagonal must be > 0")
    scale = np.sqrt(np.diag(S))
    cosines = S / np.outer(scale, scale)
    if (apart := np.abs(cosines - cosines.T) > CORRELATION_ROUNDING).any():
        s, t = np.argwhere(apart)[0]
        raise DataError(
            f"hierarchy: the similarity is not symmetric: {S[s, t]:g} from {names[s]!r} to {names[t]!r}, {S[t, s]:g} back",
            write_instead="write (S + S.T) / 2 if that is meant",
        )
    if (beyond := np.abs(cosines) > 1 + CORRELATION_ROUNDING).any():
        raise DataError(
            f"hierarchy: {at(beyond)}, more than the root of the product of their diagonal entries; similarities are "
            "such as dot products or correlations (not distances)"
        )
    return np.clip((cosines + cosines.T) / 2.0, -1.0, 1.0)
