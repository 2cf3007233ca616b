"""The graph over the labels in a solved model: made of its blocks, as the solution shows it."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.regularizers.half_squared_groups import (
    HalfSquaredGroupNorm,
    HalfSquaredKSupportNorm,
    shares_of_norms,
)
from mtldsl.compile.from_tree import linear_map
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.label_graph import LabelGraphTerm
from mtldsl.inference import Cliques
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.unknowns.label_graph import cliques_of
from mtldsl.solution.label_graph import LearnedGraph
from mtldsl.solution.label_predictions import LabelPredictions
from mtldsl.solvers.solver import Point

__all__ = ["certified_rows", "learned_graph_in"]


def learned_graph_in(
    first: Term, objective: Objective, blocks: Blocks, coef: np.ndarray, point: Point | None
) -> LearnedGraph | None:
    """The graph of the loss whose predictions the solution makes; None where that is not a loss of labellings. coef (d, S): its weights."""
    if first.source is None:
        return None
    cliques = first.atom.cliques
    squares = np.einsum("ds,ds->s", coef, coef)
    nodes = squares[: 2 * cliques.n_labels].reshape(-1, 2).sum(axis=1)
    edges = np.zeros(cliques.n_cliques)
    if cliques.n_cliques:
        edges = np.add.reduceat(squares, cliques.starts[:-1])
    pairs, coupling, attraction = LabelPredictions(cliques, coef).pulls(first.source.X)
    return LearnedGraph(
        names=tuple(first.source.task_names),
        cliques=cliques,
        weights=np.sqrt(edges),
        node_weights=np.sqrt(nodes),
        pairs=pairs,
        coupling=coupling,
        attraction=attraction,
        shares=_shares(objective, cliques, blocks),
        added=_rounds(point, cliques.n_cliques),
    )


def certified_rows(first: Term, form: NormalForm, blocks: Blocks) -> np.ndarray | None:
    """(n,) whether the maximum of every training row, as it stands in the certificate, is exact; None of other losses."""
    found = [loss for loss in form.losses if isinstance(loss, LabelGraphTerm) and loss.typed == first.text]
    return found[0].certified_samples(blocks) if found else None


def _shares(objective: Objective, cliques: Cliques, blocks: Blocks) -> np.ndarray | None:
    """eta of the penalty's minimum over eta: in proportion to the norms of the cliques, but 1 at most, r together."""
    kinds = (HalfSquaredGroupNorm, HalfSquaredKSupportNorm)
    found = [t for t in objective.terms if isinstance(t.atom, kinds) and t.coefficient.value > 0]
    if len(found) != 1 or cliques_of(found[0].argument) != cliques:
        return None
    columns = tuple(tuple(cliques.columns(c).tolist()) for c in range(cliques.n_cliques))
    if found[0].atom.columns != columns:  # the user's own groups
        return None
    norms = found[0].atom.norms(linear_map(found[0].argument).forward(blocks))
    return shares_of_norms(norms, found[0].atom.r, 0.0)


def _rounds(point: Point | None, n_cliques: int) -> np.ndarray | None:
    """(q,) from the state of clique generation: -1 of cliques that never joined."""
    added = None if point is None else point.state.get("added")
    return None if added is None or len(added) != n_cliques else np.array(added)
