"""Labels that depend on one another along the edges of a graph: the generator of section 5.2 of the CGM paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.datasets.generators.synthetic import _check_sizes
from mtldsl.errors import DataError, ModelError
from mtldsl.system.memory import require_memory
from mtldsl.tasks import Tasks
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_float, as_whole, quoted
from mtldsl.values.seed import generator

if TYPE_CHECKING:
    import networkx

__all__ = ["STAR", "LabelGraph", "make_label_graph"]

#: The paper's true edges {1,2}, {1,3}, {1,4}, {1,5}, counted from 0.
STAR = ((0, 1), (0, 2), (0, 3), (0, 4))


@dataclass(frozen=True, eq=False)
class LabelGraph:
    """What `make_label_graph` makes: K labels over d features, and the graph and weights that label the rows.

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
        _check_room(f"sample(n={n})", self.train.n_features, self.train.n_tasks, len(self.edges), n)
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
    _check_room(f"make_label_graph({sizes})", n_features, n_labels, len(edges), n_train + n_test)
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
    listed = [as_list(edge) for edge in as_list(edges) or ([] if as_list(edges) == [] else [None])]
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


def _check_room(typed, d, n_labels, n_edges, n) -> None:
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
    """What finds the best labelling, exactly; DataError where the graph is too dense for that."""
    from mtldsl.inference import Cliques, Decoder

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
