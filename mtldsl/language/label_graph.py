"""The unknowns of models over a graph of labels, and the losses that take them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.inference.cliques import GAP, SETTINGS, Cliques
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss, checked_tables
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError, Spelled, quote_in_errors
from mtldsl.language.expressions import Affine
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import ONE, Operation, constructor_text
from mtldsl.language.weights import Weights
from mtldsl.utils.memory import require_memory
from mtldsl.utils.validation import as_list, as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# What a user may give as the edges of a graph of labels, as sorted positions.


def checked_edges(edges, names: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """Cliques of label positions, each in increasing order; ModelError where one does not make sense."""
    if isinstance(edges, str):
        if edges != "all":
            raise ModelError(
                'write edges="all", a list of pairs such as [(0, 1), (1, 2)], a networkx graph, or [] for no edges'
            )
        n = len(names)
        require_memory(
            100.0 * n * (n - 1) / 2, f"so many as {n * (n - 1) // 2:,} pairs of {n:,} labels (the list alone)",
            "give a list of the pairs that may matter, or a networkx graph", ModelError,
        )  # fmt: skip
        return tuple(combinations(range(len(names)), 2))
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):
        strangers = [node for node in edges.nodes if _position(node, names) is None]
        if strangers:
            raise ModelError(f"the graph has a node {strangers[0]!r}, which is not a label; {_known(names)}")
        if edges.is_directed():
            raise ModelError(
                "the graph is directed, and labels depend on each other both ways",
                write_instead="give graph.to_undirected()",
            )
        edges = list(edges.edges())
    listed = as_list(edges)
    if listed is None:
        raise ModelError('edges must be a list of pairs, a networkx graph, or "all"')
    found: dict[tuple[int, ...], object] = {}
    for edge in listed:
        clique = _checked(edge, names)
        if clique in found:
            raise ModelError(
                f"the edge {edge!r} stands twice (also as {found[clique]!r})", write_instead="give it once"
            )
        found[clique] = edge
    return tuple(found)


def _checked(edge, names) -> tuple[int, ...]:
    listed = None if isinstance(edge, str) else as_list(edge)
    if listed is None:
        raise ModelError(
            f"{quoted(edge)} is not an edge", write_instead="write a pair of labels, such as (0, 1)"
        )
    labels = tuple(listed)
    if not 2 <= len(labels) <= SETTINGS.clique_labels:
        raise ModelError(
            f"{edge!r} has {len(labels)} labels; an edge has two, and a clique at most {SETTINGS.clique_labels}, with 2^size columns"
        )
    positions = []
    for label in labels:
        position = _position(label, names)
        if position is None:
            raise ModelError(f"{label!r} in {edge!r} is not a label; {_known(names)}")
        positions.append(position)
    if len(set(positions)) < len(positions):
        raise ModelError(f"{edge!r} holds a label twice; an edge joins different labels")
    return tuple(sorted(positions))


def _position(label, names) -> int | None:
    if isinstance(label, str):
        return names.index(label) if label in names else None
    whole = as_whole(label)
    return whole if whole is not None and 0 <= whole < len(names) else None


def _known(names) -> str:
    shown = ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
    return f"there are {shown}, or positions 0 to {len(names) - 1}"


class NodeWeights(Weights):
    """The unknown weights U (d, 2K) of K labels. Column 2k scores "label k is 0" (-1 in the tasks). Column 2k + 1 scores "it is 1".

    Every label of the tasks is one. `ridge(U)` is half the sum of squares over both columns of all labels.

    intercept : learn a number for each column as well, `solution["U.intercept"]` (1, 2K); no regularizer and no constraint ever touches
        it. The weights of edges have none; a column of ones among the inputs gives one, penalised, to labels and edges.

    >>> from mtldsl import NodeWeights
    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[1.0, -1], [-1, 1], [1, 1]]), task_names=["sea", "sky"])
    >>> U = NodeWeights(tasks)
    >>> U.shape, U.column_names
    ((3, 4), ('sea=0', 'sea=1', 'sky=0', 'sky=1'))
    """

    def __init__(self, tasks: Tasks, name: str = "U", *, intercept: bool = False):
        super().__init__(tasks, intercept=intercept, name=name)

    @property
    def n_columns(self) -> int:
        return 2 * self.tasks.n_tasks

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(f"{name}={value}" for name in self.tasks.task_names for value in (0, 1))

    def of_tasks(self, tasks: Tasks) -> NodeWeights:
        return NodeWeights(tasks, self.name, intercept=self.intercept)


class EdgeWeights(Weights):
    """The unknown weights V of the edges of a graph of labels. Each edge (i, j), i < j, has 4 columns, for its values 00, 01, 10, 11.

    edges : "all" pairs of labels; a list of pairs, by label names or positions; a networkx graph over these; [] for none. A list may
        hold cliques of 3 to 5 labels too, such as ("sea", "sky", "beach"), with 2^size columns each.

    `half_squared_group_norm(V)`, `half_squared_k_support_norm(V, r)` and `column_group_norm(V)` take the columns of an edge as one
    group. V.cliques tells the edges and their columns.

    Raises ModelError for an edge that is not a pair of two labels, that stands twice, or that names an unknown label.

    >>> from mtldsl import EdgeWeights
    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[1.0, -1, 1], [-1, 1, 1], [1, 1, -1]]))
    >>> EdgeWeights(tasks).shape, EdgeWeights(tasks, [(0, 2)]).cliques.members
    ((3, 12), ((0, 2),))
    """

    def __init__(self, tasks: Tasks, edges: Any = "all", name: str = "V"):
        names = tasks.task_names if isinstance(tasks, Tasks) else ()
        try:
            self.cliques = Cliques(len(names), checked_edges(edges, names))
        except ModelError as error:
            is_graph = hasattr(edges, "edges") and hasattr(edges, "nodes")
            typed = "<graph>" if is_graph else quoted(edges, 60)
            raise error.within(Spelled(f"EdgeWeights(tasks, edges={typed})", f"edges = {typed}")) from None
        super().__init__(tasks, name=name)

    @property
    def n_columns(self) -> int:
        return self.cliques.n_entries - 2 * self.cliques.n_labels

    @property
    def column_names(self) -> tuple[str, ...]:
        names = self.tasks.task_names
        return tuple(
            ",".join(f"{names[k]}={value >> (len(clique) - 1 - place) & 1}" for place, k in enumerate(clique))
            for clique in self.cliques.members
            for value in range(2 ** len(clique))
        )

    @property
    def column_groups(self) -> list[list[int]]:
        """The columns of every edge."""
        return [self.cliques.columns(c).tolist() for c in range(self.cliques.n_cliques)]

    def of_tasks(self, tasks: Tasks) -> EdgeWeights:
        return EdgeWeights(tasks, self.cliques.members, self.name)


def cliques_of(V: Affine) -> Cliques | None:
    """The cliques whose weights an expression of that full width holds; None where it is no such expression."""
    found = {part.weights.cliques if isinstance(part.weights, EdgeWeights) else None for part in V.parts}
    full = all(part.right is None for part in V.parts)
    return found.pop() if len(found) == 1 and full else None


def score_tasks(tasks: Tasks, cliques: Cliques, typed: str) -> Tasks:
    """The S entries of a graph as tasks with the same inputs, their labels the indicators of the true labellings: none of them is 1 for a
    label that is missing."""
    if not tasks.is_shared:
        raise DataError(
            "these tasks have separate inputs; a labelling is of all labels of a sample: Tasks.shared(X, Y)",
            term=typed,
        )
    tasks.require_labels("sign", typed)
    n, weights = tasks.X.shape[0], tasks.sample_weights
    if weights is not None:
        table = _by_sample(tasks, weights, 0.0)
        largest = table.max(axis=1)
        if np.any((table != largest[:, None]) & (table > 0.0)):
            raise DataError(
                "a sample has other weights for other labels",
                term=typed,
                write_instead="give one weight a sample, sample_weights (n,)",
            )
        # of a sample without a label none is known, and none counts
        weights = np.tile(np.where(largest > 0.0, largest, 1.0), cliques.n_entries)
    truth = _by_sample(tasks, tasks.targets > 0, GAP)
    targets = np.ascontiguousarray(cliques.indicators(truth).T).ravel()
    names = [f"{name}={value}" for name in tasks.task_names for value in (0, 1)]
    names += [f"clique {c}: {v}" for c, size in enumerate(cliques.sizes) for v in range(2**size)]
    return Tasks(
        targets=targets, counts=[n] * cliques.n_entries, task_names=tuple(names), feature_names=tasks.feature_names,
        shared=tasks.X, sample_weights=weights, scaling=tasks.scaling, kernel_map=tasks.kernel_map,
    )  # fmt: skip


def _by_sample(tasks: Tasks, flat: np.ndarray, missing: float) -> np.ndarray:
    """(n, K) of what labels have, task after task; `missing` where there is no label."""
    found = np.full((tasks.X.shape[0], tasks.n_tasks), missing, dtype=float)
    for k, own in enumerate(tasks.per_task(flat)):
        found[slice(None) if tasks.mask is None else tasks.mask[:, k], k] = own
    return found


def label_loss(atom: LabelGraphLoss, U: Affine, V: Affine, tasks: Tasks, typed: str) -> Objective:
    """The term of a loss of labellings; its argument holds the columns of U, then those of V."""
    with quote_in_errors(typed):
        cliques = _checked_edges(U, V, tasks)
    try:
        atom = replace(atom, cliques=cliques)  # pyrefly: ignore[unexpected-keyword]  # a field of every such loss
    except ModelError as error:
        raise error.about(typed) from None
    S, K = cliques.n_entries, cliques.n_labels
    place = sparse.eye_array(S, format="csr")
    both = Operation("beside", (U.tree, V.tree)) if cliques.n_cliques else U.tree
    argument = U._mapped(None, place[: 2 * K], both, U.text, U.latex)
    if cliques.n_cliques:
        argument = argument + V._mapped(None, place[2 * K :], both, V.text, V.latex)
    argument.tree = both
    argument.text, argument.latex = f"{U.text}, {V.text}", f"{U.latex}, {V.latex}"
    scores = rf"({U.latex}, {V.latex})^\top x_i"
    if any(part.weights.intercept for part in U.parts):
        scores += r" + (b, 0)"
    latex = rf"\tfrac1n \sum_i {atom.latex(scores)}"
    return Objective(
        [
            Term(
                ONE,
                atom,
                argument,
                typed,
                latex,
                score_tasks(tasks, cliques, typed),
                mean=True,
                source=tasks,
            )
        ]
    )


def grouped_by_edges(atom, W: Affine):
    """A function of groups of columns that were not told, with the cliques of the weights as groups."""
    cliques = cliques_of(W)
    if not atom.groups_columns or atom.columns is not None or cliques is None:
        return atom
    return replace(atom, columns=[cliques.columns(c) for c in range(cliques.n_cliques)])


def costs_in_order(costs: Any, tasks: Tasks, typed: str) -> Any:
    """{label: cost} in the order of the labels, {labels: table} by positions of labels, anything else as it is. ModelError for a label that
    there is not, or that is missing."""
    if not isinstance(costs, dict):
        return costs
    names = tasks.task_names
    places: dict[Any, int] = {name: k for k, name in enumerate(names)}
    tables = bool(costs) and all(isinstance(key, tuple) for key in costs)
    if tables:
        places |= {k: k for k in range(len(names))}
    for label in (label for key in costs for label in (key if tables else (key,))):
        if label not in places:
            raise ModelError(
                f"there is no label {label!r}; there are {', '.join(map(repr, names))}", term=typed
            )
    if tables:
        by_place = [([places[label] for label in clique], table) for clique, table in costs.items()]
        return checked_tables(by_place, typed)
    for label in names:
        if label not in costs:
            raise ModelError(
                f"label {label!r} has no cost", term=typed, write_instead="give one for every label"
            )
    return [costs[label] for label in names]


def costs_text(costs) -> str:
    """As they are typed, or how many they are."""
    if isinstance(costs, str | Metric):
        return repr(costs)
    if any(isinstance(cost, tuple) for cost in costs):
        return f"<costs of {' and '.join('-'.join(map(str, clique)) for clique, _ in costs)}>"
    text = f"[{', '.join(f'{cost:g}' for cost in costs)}]"
    return text if len(text) <= 60 else f"<{len(costs)} costs>"


def carried_intercepts(W: Affine) -> set[Weights]:
    """The weights of an expression that carry an intercept. ModelError where several do."""
    carrying = {part.weights for part in W.parts if part.weights.intercept}
    if len(carrying) > 1:
        raise ModelError(
            f"{' and '.join(sorted(w.name for w in carrying))} both carry an intercept, and only their sum would be determined",
            write_instead="write intercept=True on one of them only",
        )
    return carrying


def _checked_edges(U, V, tasks) -> Cliques:
    for one, place, name, kind in ((U, "first", "U", "NodeWeights"), (V, "second", "V", "EdgeWeights")):
        if not isinstance(one, Affine):
            raise ModelError(
                f"the {place} argument must be an expression of weights, not {type(one).__name__}",
                write_instead=f"write {name} = " + constructor_text(kind),
            )
    if not isinstance(tasks, Tasks):
        raise ModelError(f"the third argument must be a Tasks object, not {type(tasks).__name__}")
    expected = (tasks.n_features, 2 * tasks.n_tasks)
    if not any(isinstance(part.weights, NodeWeights) for part in U.parts) or U.shape != expected:
        raise ModelError(
            f"{U.text} has shape {U.shape}, and the first argument must be NodeWeights of these tasks, "
            f"{expected}: two columns a label",
            write_instead="write U = " + constructor_text("NodeWeights"),
        )
    carried_intercepts(U)
    cliques = cliques_of(V)
    if cliques is None or V.shape[0] != tasks.n_features or cliques.n_labels != tasks.n_tasks:
        raise ModelError(
            f"{V.text} has shape {V.shape}, and the second argument must be EdgeWeights of these tasks",
            write_instead="write V = " + constructor_text("EdgeWeights", 'tasks, edges="all"'),
        )
    for part in (*U.parts, *V.parts):
        own = part.weights.tasks
        if own.task_names != tasks.task_names or own.feature_names != tasks.feature_names:
            raise ModelError(
                f"{part.weights.name} was made for tasks with other names or features, in another order",
                write_instead="make it of these",
            )
    return cliques
