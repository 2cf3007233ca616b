"""Refit of a label-graph model on the edges that a solution has chosen: pruned, and without the penalty that chose them."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import cast

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.errors import ModelError
from mtldsl.language.expressions import Affine
from mtldsl.language.label_graph import EdgeWeights, label_loss
from mtldsl.language.objective import Objective
from mtldsl.language.vocabulary import ridge
from mtldsl.solution.learned_label_graph import LearnedGraph


def refit_objective(objective: Objective, constraints, graph: LearnedGraph | None, edges) -> Objective:
    """The objective with the edges of a learned graph, and a ridge of the same coefficient in place of the penalty on groups."""
    weights = {part.weights for term in objective.terms for part in term.argument.parts}
    found = [one for one in weights if isinstance(one, EdgeWeights)]
    if len(found) != 1 or graph is None:
        raise ModelError("the model has no EdgeWeights, or several; it refits one learned graph of labels")
    (old,) = found
    for constraint in constraints:
        if any(part.weights is old for part in getattr(getattr(constraint, "argument", None), "parts", ())):
            raise ModelError(f"{constraint.text} is about weights of edges that the new model may not have")
    new = EdgeWeights(old.tasks, _chosen(graph, edges), old.name)
    terms = []
    for term in objective.terms:
        if not any(part.weights is old for part in term.argument.parts):
            terms.append(term)
        elif isinstance(term.atom, Loss) and term.atom.labels == "indicators":
            U = next(part.weights for part in term.argument.parts if part.weights is not old)
            if len(term.argument.parts) > 2:
                raise ModelError(
                    f"{term.text} is of an expression; it refits models of U and {old.name} themselves"
                )
            assert term.source is not None  # `label_loss` made the term of them
            atom = cast(LabelGraphLoss, term.atom)  # which has the labels "indicators"
            terms += [_scaled(label_loss(atom, cast(Affine, U), new, term.source, term.atom_text), term)]
        elif (
            term.argument is old
            and isinstance(term.atom, MatrixFunction)
            and (term.atom.groups_columns or term.atom.entry_quadratic is not None)
        ):
            terms += [_scaled(ridge(new), term)]
        else:
            raise ModelError(
                f"{term.text} has no counterpart on other edges",
                write_instead=f"write the model of these edges yourself, with "
                f"{old.name} = EdgeWeights(tasks, edges=solution.graph)",
            )
    return Objective(terms)


def _scaled(one: Objective, term):
    """The one term of it, with the coefficient of another."""
    return replace(one.terms[0], coefficient=term.coefficient)


def _chosen(graph: LearnedGraph, edges):
    """None: cliques whose weights are not zero; a number: so many of the strongest; else what `EdgeWeights` takes."""
    if edges is not None and (not isinstance(edges, Integral) or isinstance(edges, bool)):
        return edges
    if edges is not None and edges < 0:
        raise ModelError(
            term=f"refit(solution, edges={edges!r})",
            write_instead="write how many of the strongest edges to keep, a list of edges, or a graph",
        )
    kept = graph.used if edges is None else graph.used[: int(edges)]
    return [graph.labels_of(c) for c in sorted(kept)]
