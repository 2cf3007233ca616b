"""Generators of problems whose answer is known: tasks of low rank, few relevant features, unequal noise, or a graph of labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError
from mtldsl.utils.memory import require_memory
from mtldsl.utils.validation import (
    MAX_MAGNITUDE,
    as_count,
    as_flag,
    as_float,
    as_list,
    as_whole,
    generator,
    one_of,
    quoted,
)

if TYPE_CHECKING:
    import networkx

#: setting -> how many times the noise is halved from the first task to the last, in equal steps: the exponents of (51)
_HALVINGS = {"d1": 3.0, "d2": 0.0, "d3": 12.0, "d4": 25.0}


def make_low_rank(
    n_tasks: int = 20,
    n_samples: int = 100,
    n_features: int = 30,
    rank: int = 3,
    noise: float = 1.0,
    *,
    shared: bool = False,
    labels: str = "real",
    density: float | None = None,
    random_state=None,
) -> tuple[Tasks, np.ndarray]:
    """y_i = X_i w_i + noise * e_i,  W = A B / sqrt(rank):  (tasks, W) with W (n_features, n_tasks) of the given rank.

    n_samples : rows per task (of the one X where shared=True)
    A, B      : standard normal, (n_features, rank) and (rank, n_tasks), so that entries of W have variance 1
    X, e      : standard normal; with `density` X is CSR with that share of its entries not zero
    labels    : "real", or "sign" for the signs of y (every task has both)

    The same random_state gives the same numbers. DataError for sizes that make no sense.

    >>> from mtldsl import datasets
    >>> tasks, W = datasets.make_low_rank(n_tasks=5, n_samples=8, n_features=6, rank=2, random_state=0)
    >>> W.shape, int(np.linalg.matrix_rank(W)), tasks.n_samples
    ((6, 5), 2, 40)
    """
    _check_sizes(n_tasks=n_tasks, n_samples=n_samples, n_features=n_features, rank=rank)
    _check_rank(rank, n_features, n_tasks)
    shared = as_flag(shared, "make_low_rank(shared")
    _check_room("make_low_rank", n_tasks, n_samples, n_features, shared, density)
    rng = generator(random_state, "make_low_rank")
    W = rng.normal(size=(n_features, rank)) @ rng.normal(size=(rank, n_tasks)) / np.sqrt(rank)
    return _draw("make_low_rank", W, n_samples, noise, shared, labels, density, rng), W


def make_group_sparse(
    n_tasks: int = 20,
    n_samples: int = 100,
    n_features: int = 50,
    n_relevant: int = 5,
    noise: float = 1.0,
    *,
    shared: bool = False,
    labels: str = "real",
    density: float | None = None,
    random_state=None,
) -> tuple[Tasks, np.ndarray]:
    """y_i = X_i w_i + noise * e_i with W zero outside `n_relevant` rows, which are the same for all tasks: (tasks, W).

    The relevant rows are drawn at random, their entries are standard normal; all else as in `make_low_rank`.

    >>> from mtldsl import datasets
    >>> tasks, W = datasets.make_group_sparse(n_tasks=4, n_samples=8, n_features=9, n_relevant=3, random_state=0)
    >>> int(np.count_nonzero(np.linalg.norm(W, axis=1)))
    3
    """
    _check_sizes(n_tasks=n_tasks, n_samples=n_samples, n_features=n_features, n_relevant=n_relevant)
    if n_relevant > n_features:
        raise DataError(
            f"n_relevant={n_relevant}: there are only n_features={n_features}", argument="n_relevant"
        )
    shared = as_flag(shared, "make_group_sparse(shared")
    _check_room("make_group_sparse", n_tasks, n_samples, n_features, shared, density)
    rng = generator(random_state, "make_group_sparse")
    W = np.zeros((n_features, n_tasks))
    W[rng.choice(n_features, n_relevant, replace=False)] = rng.normal(size=(n_relevant, n_tasks))
    return _draw("make_group_sparse", W, n_samples, noise, shared, labels, density, rng), W


def make_calibrated(
    setting: str = "d3",
    n_tasks: int = 101,
    n_samples: int = 400,
    n_features: int = 200,
    rank: int = 3,
    max_noise: float = 2.0,
    *,
    random_state=None,
) -> tuple[Tasks, np.ndarray, np.ndarray]:
    """y_i = X_i w_i + noise_i * e_i,  noise_i = max_noise * 2^(-h (i - 1) / (m - 1)),  i = 1..m:  (tasks, W, noise).

    m = n_tasks tasks with n_samples rows each; W (n_features, m) is U V^T of the given rank, noise (m,) standard deviations.

    setting : h, the halvings from the first task to the last: "d1": 3 (all tasks noisy), "d2": 0 (all alike), "d3": 12 (few
              noisy, the others a little), "d4": 25 (few noisy, most almost none). With 101 tasks the exponents are those printed:
              3/100, 0, 3/25 and 1/4 a task. One task has max_noise.
    X_i     : rows N(0, S), S_jj = 1 and S_jk = 1/2;  e_i: standard normal
    U, V    : entries N(0, 0.05) with **variance** 0.05: then E ||w_i||^2 = n_features * rank * 0.05^2 (1.5 at the sizes above). With
              a standard deviation of 0.05 it would be 0.004, and W = 0 better than every estimate of the paper's Table 3 (their
              ||W - W*||_F^2 / m is 0.08 to 0.37).

    All settings of one random_state have the same X, W and e. DataError for sizes, settings and noise that make no sense.
    Source: Nie, Hu, Li, Calibrated Multi-Task Learning (KDD 2018), section 5.1, (51).

    >>> from mtldsl import datasets
    >>> tasks, W, noise = datasets.make_calibrated("d3", n_tasks=5, n_samples=8, n_features=6, random_state=0)
    >>> noise
    array([2.0000000e+00, 2.5000000e-01, 3.1250000e-02, 3.9062500e-03,
           4.8828125e-04])
    >>> W.shape, int(np.linalg.matrix_rank(W)), tasks.n_samples
    ((6, 5), 3, 40)
    """
    one_of(setting, _HALVINGS, "make_calibrated(setting")
    _check_sizes(n_tasks=n_tasks, n_samples=n_samples, n_features=n_features, rank=rank)
    _check_rank(rank, n_features, n_tasks)
    max_noise = _checked_noise(max_noise, "max_noise")
    _check_room("make_calibrated", n_tasks, n_samples, n_features)
    rng = generator(random_state, "make_calibrated")
    U, V = (np.sqrt(0.05) * rng.normal(size=(rows, rank)) for rows in (n_features, n_tasks))
    W = U @ V.T
    noise = max_noise * 2.0 ** -np.linspace(0.0, _HALVINGS[setting], n_tasks)
    # of a variance of one half is common to the row
    inputs = [
        np.sqrt(0.5) * (rng.normal(size=(n_samples, n_features)) + rng.normal(size=(n_samples, 1)))
        for _ in range(n_tasks)
    ]
    targets = [
        X @ w + level * rng.normal(size=n_samples) for X, w, level in zip(inputs, W.T, noise, strict=True)
    ]
    return Tasks.separate(inputs, targets), W, noise


def _check_rank(rank, d, m) -> None:
    if rank > min(d, m):
        raise DataError(
            f"rank={rank}: weights of {d} features x {m} tasks have at most rank {min(d, m)}", argument="rank"
        )


def _check_sizes(**sizes) -> None:
    for name, value in sizes.items():
        as_count(value, name, argument=name)


def _checked_noise(value, name: str) -> float:
    noise = as_float(value)
    if noise is None or not 0 <= noise <= MAX_MAGNITUDE:
        raise DataError(
            f"{name}={quoted(value)}: write a standard deviation, a finite number >= 0", argument=name
        )
    return noise


def _check_room(word: str, n_tasks, n_samples, n_features, shared=False, density=None) -> None:
    """DataError where weights, inputs (sparse ones with their places) and targets do not fit into memory."""
    m, n, d = float(n_tasks), float(n_samples), float(n_features)
    inputs = (1.0 if shared else m) * n * d * 4.0 * (as_float(density) or 0.25)
    sizes = f"{word}(n_tasks={n_tasks}, n_samples={n_samples}, n_features={n_features})"
    arguments = ("n_tasks", "n_samples", "n_features")
    require_memory(
        8.0 * (2.0 * d * m + inputs + 3.0 * n * m), sizes, "write smaller numbers", DataError, arguments
    )


def _draw(word, W, n_samples, noise, shared, labels, density, rng) -> Tasks:
    noise = _checked_noise(noise, "noise")
    one_of(labels, ("real", "sign"), f"{word}(labels")
    if density is not None and not 0 < (as_float(density) or 0) <= 1:
        raise DataError(
            f"density={quoted(density)}: write a share in (0, 1], or None for dense inputs",
            argument="density",
        )
    if labels == "sign" and n_samples < 2:
        raise DataError(
            'labels="sign" needs n_samples >= 2, or no task could have both classes', argument="labels"
        )
    d, m = W.shape
    if shared:
        X = _inputs(n_samples, d, density, rng)
        Y = X @ W + noise * rng.normal(size=(n_samples, m))
        return Tasks.shared(X, np.column_stack([_signs(y) for y in Y.T]) if labels == "sign" else Y)
    inputs = [_inputs(n_samples, d, density, rng) for _ in range(m)]
    targets = [X @ w + noise * rng.normal(size=n_samples) for X, w in zip(inputs, W.T, strict=True)]
    return Tasks.separate(inputs, [_signs(y) for y in targets] if labels == "sign" else targets)


def _inputs(n, d, density, rng):
    if density is None:
        return rng.normal(size=(n, d))
    return sparse.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.normal)


def _signs(y) -> np.ndarray:
    """Signs of y; where they are all the same, the entry nearest to zero changes side, as a little more noise would have done."""
    signs = np.where(y > 0, 1.0, -1.0)
    if np.abs(signs.sum()) == signs.size:
        signs[np.argmin(np.abs(y))] *= -1
    return signs


# --------------------------------------------------------------------------------------------------------------
# Labels that depend on one another along the edges of a graph: the generator of section 5.2 of the CGM paper.

#: The paper's true edges {1,2}, {1,3}, {1,4}, {1,5}, counted from 0.
STAR = ((0, 1), (0, 2), (0, 3), (0, 4))


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """Labels that `make_label_graph` makes: K of them over d features, and the graph and weights that label the rows.

    train, test  : Tasks with a shared X and labels -1/+1; labels are called y0, y1, ...
    edges        : the true edges, pairs (i, j) of positions, i < j
    node_weights : (d, 2K) columns 2k and 2k + 1: of "label k is -1" and "it is +1"
    edge_weights : (d, 4E) columns 4e to 4e + 3: of edge e in the states (-1, -1), (-1, +1), (+1, -1), (+1, +1)
    label_noise  : the probability that a training label is turned
    """

    train: Tasks
    test: Tasks
    edges: tuple[tuple[int, int], ...]
    node_weights: np.ndarray
    edge_weights: np.ndarray
    label_noise: float

    @cached_property
    def graph(self) -> networkx.Graph:
        """The true edges over the labels' names.

        >>> from mtldsl import datasets
        >>> made = datasets.make_label_graph(n_labels=3, edges=[(0, 2)], n_train=9, n_test=9, random_state=0)
        >>> list(made.graph.nodes), list(made.graph.edges)
        (['y0', 'y1', 'y2'], [('y0', 'y2')])
        """
        import networkx

        names = self.train.task_names
        graph = networkx.Graph()
        graph.add_nodes_from(names)
        graph.add_edges_from((names[i], names[j]) for i, j in self.edges)
        return graph

    def labels(self, X) -> np.ndarray:
        """(n, K) of -1 and +1: the labelling of each row of X (n, d) with the highest score, without noise.

        >>> from mtldsl import datasets
        >>> made = datasets.make_label_graph(n_train=50, n_test=20, random_state=0)
        >>> bool((made.labels(made.test.X).T.ravel() == made.test.targets).all())
        True
        """
        return _best(np.asarray(X, float), self.node_weights, self.edge_weights, self.edges)

    def sample(self, n: int, random_state=None) -> Tasks:
        """n new rows with their labels without noise, such as a validation set.

        >>> from mtldsl import datasets
        >>> made = datasets.make_label_graph(n_train=50, n_test=20, random_state=0)
        >>> made.sample(30, random_state=1).X.shape
        (30, 10)
        """
        _check_sizes(n=n)
        _check_graph_room(f"sample(n={n})", self.train.n_features, self.train.n_tasks, len(self.edges), n)
        X = generator(random_state, "sample").normal(size=(n, self.train.n_features))
        return Tasks.shared(X, self.labels(X), task_names=self.train.task_names)


def make_label_graph(
    n_labels: int = 10,
    n_features: int = 10,
    edges=STAR,
    n_train: int = 2000,
    n_test: int = 1000,
    label_noise: float = 0.0,
    *,
    random_state=None,
) -> LabelGraph:
    """y = argmax over all 2^K labellings of  sum_k u_{k, y_k} . x + sum over edges (i, j) of v_{ij, y_i y_j} . x.

    x, u, v     : standard normal, in R^d; a vector u for either state of a label, a vector v for each of the four states of an edge
    edges       : pairs (i, j) of labels, counted from 0. By default the paper's star: label 0 with 1, 2, 3 and 4, so that the
                  others of its ten labels are linear in x. The best labelling is found exactly, by variable elimination, so that the
                  graph must have a treewidth of at most 16
    label_noise : each training label is turned with this probability; test labels never are

    The same random_state gives the same numbers; with another label_noise too, but for the turned labels. A linear classifier a label
    errs on about 7 % of the labels. DataError for sizes, edges and a probability that make no sense.

    Source: Tan et al., CGM, section 5.2. It writes x in R^10 beside u, v in R^5, which cannot be multiplied: here all have n_features.

    >>> from mtldsl import datasets
    >>> made = datasets.make_label_graph(n_train=60, n_test=40, random_state=0)
    >>> made.train
    <Tasks: 10 tasks, 10 features, shared inputs, 10 x 60 labelled rows>
    >>> made.edges, made.node_weights.shape, made.edge_weights.shape
    (((0, 1), (0, 2), (0, 3), (0, 4)), (10, 20), (10, 16))
    """
    _check_sizes(n_labels=n_labels, n_features=n_features, n_train=n_train, n_test=n_test)
    edges = _as_edges(edges, n_labels)
    sizes = f"n_labels={n_labels}, n_features={n_features}, n_train={n_train}, n_test={n_test}"
    _check_graph_room(f"make_label_graph({sizes})", n_features, n_labels, len(edges), n_train + n_test)
    _decoder(n_labels, edges)
    noise = as_float(label_noise)
    if noise is None or not 0 <= noise <= 1:
        raise DataError(
            f"label_noise={quoted(label_noise)}: write a probability, a number in [0, 1]",
            argument="label_noise",
        )
    rng = generator(random_state, "make_label_graph")
    U = rng.normal(size=(n_features, 2 * n_labels))
    V = rng.normal(size=(n_features, 4 * len(edges)))
    X_train, X_test = (rng.normal(size=(n, n_features)) for n in (n_train, n_test))
    Y_train, Y_test = (_best(X, U, V, edges) for X in (X_train, X_test))
    Y_train = np.where(rng.random(Y_train.shape) < noise, -Y_train, Y_train)
    names = [f"y{k}" for k in range(n_labels)]
    train, test = (Tasks.shared(X, Y, task_names=names) for X, Y in ((X_train, Y_train), (X_test, Y_test)))
    return LabelGraph(train, test, edges, U, V, noise)


def _as_edges(edges, n_labels) -> tuple[tuple[int, int], ...]:
    """Pairs i < j in the order given; DataError for anything else."""
    given = as_list(edges)
    listed = [None] if given is None else [as_list(edge) for edge in given]
    typed = [tuple(edge) for edge in listed if edge is not None]
    if len(typed) < len(listed):
        raise DataError(
            f"edges={quoted(edges)}: write pairs of labels, such as [(0, 1), (0, 2)]", argument="edges"
        )
    for edge in typed:
        is_pair = len(edge) == 2 and all(as_whole(k) is not None and 0 <= k < n_labels for k in edge)
        if not is_pair or edge[0] == edge[1]:
            raise DataError(
                f"edges: {edge!r} is not a pair of labels",
                write_instead=f"write two different numbers of 0 to {n_labels - 1}",
                argument="edges",
            )
    pairs = [(int(min(edge)), int(max(edge))) for edge in typed]
    for pair in pairs:
        if pairs.count(pair) > 1:
            raise DataError(
                f"edges: {pair!r} is there twice",
                write_instead="write each pair of labels once",
                argument="edges",
            )
    return tuple(pairs)


def _check_graph_room(typed, d, n_labels, n_edges, n) -> None:
    """Weights (copied), inputs, the scores of all states, and the labels."""
    states = 2.0 * n_labels + 4.0 * n_edges
    require_memory(
        8.0 * (3.0 * d * states + float(n) * (d + 1.5 * states)),
        typed,
        "write smaller numbers",
        DataError,
        ("n_labels", "n_features", "n_train", "n_test"),
    )


def _decoder(n_labels, edges):
    """Return what finds the best labelling, exactly; DataError where the graph is too dense for that."""
    from mtldsl.atoms.inference.cliques import Cliques
    from mtldsl.atoms.inference.decoder import Decoder

    try:
        return Decoder(Cliques(n_labels, edges), "elimination")
    except ModelError as error:
        raise error.as_kind(DataError).within(
            f"edges: with these {len(edges)} the best labelling cannot be found exactly"
        ) from None


def _best(X, U, V, edges) -> np.ndarray:
    """(n, K) of -1 and +1: the labelling with the highest score."""
    decoder = _decoder(U.shape[1] // 2, edges)
    return 2.0 * decoder(X @ np.hstack([U, V])).labels - 1.0
