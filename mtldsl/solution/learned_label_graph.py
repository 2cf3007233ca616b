"""Label graph of a solution: its cliques and edges, and the labellings it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mtldsl.atoms.inference.cliques import Cliques
from mtldsl.atoms.inference.decoder import DecodedLabelings, Decoder, LogPartition
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.atoms.prox.shrinkage import shares_of_norms
from mtldsl.atoms.regularizers.column_groups import ColumnGroups
from mtldsl.language.label_graph import cliques_of
from mtldsl.language.objective import Objective
from mtldsl.normal_form.canonicalize import linear_map
from mtldsl.normal_form.form import Blocks
from mtldsl.normal_form.terms.label_graph_term import LabelGraphTerm
from mtldsl.solution.fields import SolvedModel
from mtldsl.solvers.solver import Point
from mtldsl.utils.files import require_shapes

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

# --------------------------------------------------------------------------------------------------------------
# What weights over a graph of labels say of inputs: the best labelling, how firm every label is, probabilities, what edges change.


@dataclass(frozen=True)
class LearnedGraphSettings:
    """Limits of what is enumerated and shown.

    enumerated_labels     : labels up to which what message passing leaves unproven is enumerated: 2^20 labellings take a millisecond
    enumerated_labellings : and labellings over all rows
    printed_cliques       : cliques that are printed
    """

    enumerated_labels: int = 20
    enumerated_labellings: int = 5_000_000_000
    printed_cliques: int = 12


SETTINGS = LearnedGraphSettings()


class LabelPredictions:
    """Labellings of inputs (n, d) under weights (d, S), and intercepts (S,) where there are some: the columns of the labels, then those of
    the cliques (`Cliques`).

    Cliques whose columns are all zero take no part, so that inference is on the graph that there is: sparse graphs are decoded
    exactly however many candidates there were.

    >>> weights = np.array([[0.0, 1.0, 0.0, 0.2, 0.0, 0.0, 0.0, -3.0]])  # each label likes to be 1, but not both
    >>> of = LabelPredictions(Cliques(2, ((0, 1),)), weights)
    >>> of.decode(np.ones((1, 1))).labels
    array([[1, 0]], dtype=uint8)
    >>> of.margins(np.ones((1, 1)))
    array([[ 1. , -2.8]])
    """

    def __init__(self, cliques: Cliques, weights: np.ndarray, intercept: np.ndarray | None = None):
        #: the positions of the cliques that take part
        self.kept, columns = cliques.used_by(weights)
        self.cliques, self.weights = cliques.subset(self.kept), weights[:, columns]
        self.intercept = None if intercept is None else intercept[columns]

    @cached_property
    def decoder(self) -> Decoder:
        return Decoder(self.cliques)

    def scores(self, inputs) -> np.ndarray:
        """(n, S') of the cliques that take part; inputs dense or sparse."""
        scores = np.ascontiguousarray(np.asarray(inputs @ self.weights))
        return scores if self.intercept is None else scores + self.intercept

    def decode(self, inputs) -> DecodedLabelings:
        """The best labelling of every row, and whether it is proven to be the best."""
        return self._best(self.scores(inputs))

    def _best(self, scores) -> DecodedLabelings:
        """Return what message passing cannot prove is enumerated, where that takes no more than seconds."""
        found = self.decoder(scores)
        left = np.flatnonzero(~found.certified)
        K = self.cliques.n_labels
        is_small = SETTINGS.enumerated_labels >= K and left.size * 2**K <= SETTINGS.enumerated_labellings
        if not left.size or not is_small:
            return found
        again = Decoder(self.cliques, "enumeration")(scores[left])
        for whole, part in zip(
            (found.labels, found.values, found.upper), (again.labels, again.values, again.upper), strict=True
        ):
            whole[left] = part
        return found

    def margins(self, inputs) -> np.ndarray:
        """(n, K): by how much the score falls where one label of the best labelling is turned, + where that label is 1, - where it is 0."""
        scores = self.scores(inputs)
        labels = self._best(scores).labels
        return np.where(labels == 1, 1.0, -1.0) * self.falls(scores, labels)

    def falls(self, scores, labels) -> np.ndarray:
        """(n, K): score(y) - score(y with label k turned) of labellings (n, K)."""
        labels = labels.astype(np.int64)
        entries, found = self.cliques.chosen(labels), np.empty(labels.shape)
        turn = 1 - 2 * labels  # what is added to a label where it is turned
        rows = np.arange(len(labels))
        for k in range(self.cliques.n_labels):
            found[:, k] = scores[rows, 2 * k + labels[:, k]] - scores[rows, 2 * k + 1 - labels[:, k]]
        for c, clique in enumerate(self.cliques.members):
            here = entries[:, self.cliques.n_labels + c]
            for place, k in enumerate(clique):
                there = here + (turn[:, k] << (len(clique) - 1 - place))
                found[:, k] += scores[rows, here] - scores[rows, there]
        return found

    def probabilities(self, inputs) -> np.ndarray:
        """(n, K): P(label k is 1) where a labelling has a probability in proportion to exp(its score)."""
        _, marginals = LogPartition(self.cliques)(self.scores(inputs))
        return marginals[:, 1 : 2 * self.cliques.n_labels : 2]

    def usage(self, inputs) -> np.ndarray:
        """(number of cliques that take part,): the share of rows whose best labelling is another one without that clique."""
        scores = self.scores(inputs)
        whole, n_cliques = self._best(scores).labels, self.cliques.n_cliques
        shares = np.empty(n_cliques)
        for c in range(n_cliques):
            others = self.cliques.subset(np.delete(np.arange(n_cliques), c))
            left = np.ones(scores.shape[1], dtype=bool)
            left[self.cliques.starts[c] : self.cliques.starts[c + 1]] = False
            without = Decoder(others)(scores[:, left]).labels
            shares[c] = np.mean(np.any(without != whole, axis=1))
        return shares

    def pulls(self, inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(pairs (P, 2), coupling (P,), attraction (P,)) of all pairs of labels within a clique that takes part.

        What a clique says of two labels in a row is the mean score of its entries where they agree, minus that where they differ;
        of a pair, summed over the cliques that hold it. Coupling is the mean over the rows, attraction the share of rows where it is
        positive.
        """
        differences: dict[tuple[int, int], np.ndarray] = {}
        scores = self.scores(inputs)
        for c, clique in enumerate(self.cliques.members):
            values = np.arange(2 ** len(clique))
            bits = (values[:, None] >> np.arange(len(clique))[::-1]) & 1
            own = scores[:, self.cliques.starts[c] : self.cliques.starts[c + 1]]
            for a, b in combinations(range(len(clique)), 2):
                sign = np.where(bits[:, a] == bits[:, b], 2.0, -2.0) / len(values)
                pair = clique[a], clique[b]
                differences[pair] = differences.get(pair, 0.0) + own @ sign
        pairs = np.array(sorted(differences), dtype=np.int64).reshape(-1, 2)
        ordered = [differences[i, j] for i, j in pairs.tolist()]
        coupling = np.array([np.mean(one) for one in ordered])
        return pairs, coupling, np.array([np.mean(one > 0.0) for one in ordered])


# --------------------------------------------------------------------------------------------------------------
# The graph over the labels that a model found: which cliques have weights, how strong they are, and which way they pull.


@dataclass(frozen=True, eq=False)
class LearnedGraph:
    """The cliques of a solution over its labels, as `solution.label_graph`; `solution.graph` is the same as a networkx.Graph.

    names         the labels
    cliques       all candidates (`mtldsl.atoms.inference.cliques.Cliques`), also those without weights; `solution.label_graph.labels_of(c)` names them
    weights       (q,) ||V_c||_F of every candidate, 0 where it is left out
    node_weights  (K,) the same of the two columns of every label
    shares        (q,) eta_c in [0, 1] with a sum of at most r, where a k-support norm (r = 1: the group norm) is on the edges, else None
    added         (q,) the round in which clique generation took a clique, 0 where it was there from the start, -1 where never; else None
    pairs         (P, 2) positions of labels that stand in a clique with weights
    coupling      (P,) mean over the training rows of: score where the two labels agree minus score where they differ
    attraction    (P,) the share of training rows where that difference is positive
    """

    names: tuple[str, ...]
    cliques: Cliques
    weights: np.ndarray
    node_weights: np.ndarray
    pairs: np.ndarray
    coupling: np.ndarray
    attraction: np.ndarray
    shares: np.ndarray | None = None
    added: np.ndarray | None = None

    @cached_property
    def used(self) -> np.ndarray:
        """The positions of the cliques with weights, the strongest first."""
        order = np.argsort(-self.weights, kind="stable")
        return order[: np.count_nonzero(self.weights)]

    def plot(self, ax: Axes | None = None, **options) -> Axes:
        """The graph, on these matplotlib Axes (None: in a new figure); options as in `mtl.report.graph_plot`."""
        from mtldsl.display.pictures.graph import graph_plot

        return graph_plot(self, ax=ax, **options)

    def labels_of(self, c: int) -> tuple[str, ...]:
        return tuple(self.names[k] for k in self.cliques.members[c])

    @cached_property
    def inference(self) -> tuple[str, int, bool]:
        """(method, treewidth of the min-fill order, whether it is exact) by which this graph is decoded."""
        decoder = Decoder(self.cliques.subset(np.sort(self.used)))
        return decoder.method, int(decoder.treewidth), bool(decoder.is_exact)

    def facts_of(self, c: int) -> dict[str, object]:
        """Return what is known of one clique: labels, weight, and where there are any, share and added."""
        facts: dict[str, object] = {"labels": self.labels_of(c), "weight": float(self.weights[c])}
        if self.shares is not None:
            facts["share"] = float(self.shares[c])
        if self.added is not None:
            facts["added"] = int(self.added[c])
        return facts

    def to_networkx(self) -> networkx.Graph:
        """See `Solution.graph`."""
        import networkx  # slow to import

        graph = networkx.Graph()
        graph.add_nodes_from(
            (name, {"weight": float(w)}) for name, w in zip(self.names, self.node_weights, strict=True)
        )
        holding: dict[tuple[int, int], list[int]] = {}  # the cliques with weights that hold a pair
        for c in self.used.tolist():
            for pair in combinations(self.cliques.members[c], 2):
                holding.setdefault(pair, []).append(c)
        each = zip(map(tuple, self.pairs.tolist()), self.coupling, self.attraction, strict=True)
        for pair, coupling, attraction in each:
            mine = holding[pair]
            facts: dict[str, object] = {
                "weight": sum(float(self.weights[c]) ** 2 for c in mine) ** 0.5,
                "coupling": float(coupling),
                "attraction": float(attraction),
            }
            for c in mine:
                if self.cliques.members[c] == pair:
                    own = self.facts_of(c)
                    facts |= {key: own[key] for key in ("share", "added") if key in own}
                else:
                    facts["cliques"] = [self.labels_of(k) for k in mine]
            graph.add_edge(*(self.names[k] for k in pair), **facts)
        graph.graph["cliques"] = [self.facts_of(c) for c in self.used.tolist()]
        return graph

    # -------------------------------------------------------------------------------------------- storage

    def stored(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(what is not an array, the arrays by name)."""
        arrays = {
            name: getattr(self, name)
            for name in ("weights", "node_weights", "pairs", "coupling", "attraction", "shares", "added")
        }
        arrays |= {"members": self.cliques.table}
        return {"names": self.names}, {name: one for name, one in arrays.items() if one is not None}

    @classmethod
    def restored(cls, facts: dict, arrays: dict[str, np.ndarray]) -> LearnedGraph:
        """Return what `stored` kept. ValueError where its parts do not belong together."""
        arrays, names, table = dict(arrays), tuple(facts["names"]), arrays["members"]
        require_shapes(members=(table, (None, None)))
        members = tuple(tuple(k for k in row if k >= 0) for row in arrays.pop("members").tolist())
        if table.dtype.kind != "i" or not all(
            len(one) >= 2 and one == tuple(sorted(set(one))) and one[-1] < len(names) for one in members
        ):
            raise ValueError("members are not sets of labels")
        q, pairs = len(members), arrays["pairs"]
        require_shapes(pairs=(pairs, (None, 2)), node_weights=(arrays["node_weights"], (len(names),)))
        require_shapes(
            **{name: (arrays[name], (q,)) for name in ("weights", "shares", "added") if name in arrays}
        )
        require_shapes(**{name: (arrays[name], (len(pairs),)) for name in ("coupling", "attraction")})
        if pairs.dtype.kind != "i" or (pairs.size and not 0 <= pairs.min() <= pairs.max() < len(names)):
            raise ValueError("pairs are not pairs of labels")
        return cls(names, Cliques(len(names), members), **arrays)

    def __repr__(self) -> str:
        q = self.cliques.n_cliques
        return f"<LearnedGraph: {len(self.used)} of {q} edges between {len(self.names)} labels>"

    def __str__(self) -> str:
        rows = [
            (" - ".join(self.labels_of(c)), self.weights[c])
            for c in self.used[: SETTINGS.printed_cliques].tolist()
        ]
        width = max((len(name) for name, _ in rows), default=0)
        rest = len(self.used) - len(rows)
        lines = [repr(self)[1:-1], *(f"{name:<{width}}  {weight:.4g}" for name, weight in rows)]
        return "\n".join([*lines, *([f"... and {rest} weaker ones"] if rest else [])])


# ------------------------------------------------------------------------------------------------ found in a solve


def label_graph_fields(run: SolvedModel) -> dict[str, Any]:
    """{field of Solution: value} of a solve: the graph of the loss whose predictions the solution makes; {} where that is not a loss of labellings."""
    first = run.statement.first_loss
    if first.source is None:
        return {}
    cliques = cast(LabelGraphLoss, first.atom).cliques  # the one kind of loss with tasks of its own
    squares = np.einsum("ds,ds->s", run.coef, run.coef)
    nodes = squares[: 2 * cliques.n_labels].reshape(-1, 2).sum(axis=1)
    edges = np.zeros(cliques.n_cliques)
    if cliques.n_cliques:
        edges = np.add.reduceat(squares, cliques.starts[:-1])
    pairs, coupling, attraction = LabelPredictions(cliques, run.coef).pulls(first.source.X)
    graph = LearnedGraph(
        names=tuple(first.source.task_names),
        cliques=cliques,
        weights=np.sqrt(edges),
        node_weights=np.sqrt(nodes),
        pairs=pairs,
        coupling=coupling,
        attraction=attraction,
        shares=_shares(run.statement.objective, cliques, run.blocks),
        added=_rounds(run.outcome.last_point, cliques.n_cliques),
    )
    return {"label_graph": graph, "certified": _certified_rows(run)}


def _certified_rows(run: SolvedModel) -> np.ndarray | None:
    """(n,) whether the maximum of every training row, as it stands in the certificate, is exact; None where its coefficient is 0."""
    loss = next((loss for loss in run.form.losses if loss.typed == run.statement.first_loss.text), None)
    return None if loss is None else cast(LabelGraphTerm, loss).certified_samples(run.blocks)


def _shares(objective: Objective, cliques: Cliques, blocks: Blocks) -> np.ndarray | None:
    """eta of the penalty's minimum over eta: in proportion to the norms of the cliques, but 1 at most, r together."""
    found = [
        t
        for t in objective.terms
        if isinstance(t.atom, MatrixFunction) and t.atom.k_support and t.coefficient.value > 0
    ]
    if len(found) != 1 or cliques_of(found[0].argument) != cliques:
        return None
    atom = cast(ColumnGroups, found[0].atom)  # k_support is of groups of columns
    columns = tuple(tuple(cliques.columns(c).tolist()) for c in range(cliques.n_cliques))
    if atom.columns != columns:  # the user's own groups
        return None
    norms = atom.norms(linear_map(found[0].argument).forward(blocks))
    return shares_of_norms(norms, cast(int, atom.k_support), 0.0)


def _rounds(point: Point | None, n_cliques: int) -> np.ndarray | None:
    """(q,) from the state of clique generation: -1 of cliques that never joined."""
    added = None if point is None else point.state.get("added")
    return None if added is None or len(added) != n_cliques else np.array(added)


def check_label_graph(fields: dict) -> None:
    """ValueError where the fields of a file cannot be those of a solve."""
    graph, certified, columns = fields["label_graph"], fields["certified"], fields["coef"].shape[1]
    if certified is not None and (certified.dtype.kind != "b" or certified.ndim != 1):
        raise ValueError(f"certified is {certified.dtype} {certified.shape}, which no solution has")
    if graph is not None and graph.cliques.n_entries != columns:
        raise ValueError(f"coef has {columns} columns, and its graph of labels {graph.cliques.n_entries}")
