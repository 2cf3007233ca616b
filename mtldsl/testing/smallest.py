"""The smallest model with a word, as solvers see it, and the kind of a word."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.function import Atom, Loss, Regularizer, Set
from mtldsl.atoms.losses import LabelGraphLoss, StructuredHinge
from mtldsl.atoms.losses.rows import RowLoss
from mtldsl.atoms.metrics import Metric
from mtldsl.atoms.structures import Structure
from mtldsl.compile.normal_form import NormalForm
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.operation import Operation
from mtldsl.language.expressions.scalar import Number
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.unknowns.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.words.vocabulary import SIMILARITIES, WORDS, squared_loss, unknown_of
from mtldsl.problem import minimize
from mtldsl.tasks import Tasks
from mtldsl.tasks.labels import LABEL_KINDS

__all__ = ["KINDS", "kind_of", "smallest_form"]

#: In the order of the catalogue.
KINDS = {
    Loss: "loss",
    Regularizer: "regularizer",
    Structure: "structure",
    Set: "constraint",
    Metric: "metric",
}

#: The shape (features, tasks) of the matrices on which every atom's examples are defined.
_WEIGHTS_SHAPE = (5, 4)


def kind_of(cls: type[Atom]) -> str:
    """Return which kind of word a class is: one of the values of `KINDS`."""
    if issubclass(cls, Structure):  # some are regularizers too, once their matrices are eliminated
        return KINDS[Structure]
    return next(kind for base, kind in KINDS.items() if issubclass(cls, base))


def smallest_form(atom: Atom) -> NormalForm:
    """Return the smallest model with an atom as solvers see it."""
    return _smallest_model(atom).form()


def _smallest_model(atom: Atom):
    """A loss with a ridge beside it on all its weights, a metric in such a structured hinge; anything else beside the squared loss."""
    if isinstance(atom, Metric):
        atom = StructuredHinge(metric=atom)
    rng = np.random.default_rng(0)
    kind = atom.labels if isinstance(atom, Loss) else "real"
    labels = LABEL_KINDS["sign" if kind in ("indicators", "classes") else kind].suiting
    (n_features, n_tasks), n_rows = _WEIGHTS_SHAPE, 12
    Y = np.resize(labels, n_rows * n_tasks).reshape(n_tasks, n_rows).T
    tasks = Tasks.shared(rng.normal(size=(n_rows, n_features)), Y)
    W = Weights(tasks)
    if isinstance(atom, RowLoss):
        classes = Tasks.from_classes(tasks.X, np.arange(n_rows) % atom.n_classes)
        W = Weights(classes)
        return minimize(WORDS[atom.name](W, classes) + WORDS["ridge"](W))
    if isinstance(atom, Set):
        typed = Operation("in", (atom, W.tree))
        return minimize(squared_loss(W, tasks), [Constraint(atom, W, atom.name, atom.latex("W"), typed)])
    if isinstance(atom, Structure):
        return _smallest_structured(atom, W, tasks)
    if isinstance(atom, LabelGraphLoss):
        U, V = NodeWeights(tasks), EdgeWeights(tasks, atom.cliques.members)
        return minimize(WORDS[atom.name](U, V, tasks) + WORDS["ridge"](U) + WORDS["ridge"](V))
    if isinstance(atom, Loss):
        return minimize(Objective([Term(Number(1.0), atom, W, atom.name, "", tasks)]) + WORDS["ridge"](W))
    return minimize(squared_loss(W, tasks) + Objective([Term(Number(1.0), atom, W, atom.name, "")]))


def _smallest_structured(atom: Structure, W: Weights, tasks: Tasks):
    """The word with fresh unknowns, within bounds that all its examples would have; of kernels, with the two simplest."""
    if atom.weighs_kernels:
        similarities = [SIMILARITIES["union"](), SIMILARITIES["individual"]()]
        return minimize(squared_loss(W, tasks) + WORDS[atom.name](W, similarities, p=2.0))
    unknowns = [unknown_of(matrix).declared(tasks, matrix.name) for matrix in atom.learns]
    bounds = []
    for unknown in unknowns:
        if unknown.kind == "precision":
            bounds += [unknown >> 0.01, unknown << 100.0]
        else:
            bounds.append(unknown.trace() <= 1.0)
    return minimize(squared_loss(W, tasks) + WORDS[atom.name](W, *unknowns, **atom.arguments()), bounds)
