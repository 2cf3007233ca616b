"""The catalogue of the language: everything in it is read from the registry, the words' signatures, and the solvers' answers."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, dataclass, fields

import numpy as np

from mtldsl.atoms.function import REGISTRY, Atom, Loss, MatrixFunction, Regularizer, Set
from mtldsl.atoms.losses import LabelGraphLoss, StructuredHinge
from mtldsl.atoms.losses.rows import RowLoss
from mtldsl.atoms.metrics import Metric
from mtldsl.atoms.structures import Structure
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.operation import Operation
from mtldsl.language.expressions.scalar import Number
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.unknowns.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.words.vocabulary import SIMILARITIES, WORDS, squared_loss, unknown_of, usage
from mtldsl.problem import minimize
from mtldsl.report.unicode_math import to_unicode
from mtldsl.solvers.registry import candidates
from mtldsl.tasks import Tasks
from mtldsl.tasks.labels import LABEL_KINDS

__all__ = ["KINDS", "Entry", "catalogue", "entry"]

#: In the order of the catalogue.
KINDS = {
    Loss: "loss",
    Regularizer: "regularizer",
    Structure: "structure",
    Set: "constraint",
    Metric: "metric",
}

#: The shapes on which every atom's examples are defined.
_FEATURES, _TASKS, _ROWS = 5, 4, 12


@dataclass(frozen=True)
class Entry:
    """One atom of the language."""

    name: str
    kind: str  # "loss", "regularizer", "structure", "constraint", "metric"
    typed: str  # how a user writes it
    summary: str  # the first line of its documentation
    latex: str
    formula: str  # the same in Unicode
    parameters: dict[str, str]  # name -> default as text, "required" where there is none
    traits: dict[str, object]
    solvers: tuple[str, ...]  # those that take the smallest model with it, fastest first
    reference: bool  # whether the cvxpy reference has a formula
    documentation: str


def catalogue() -> list[Entry]:
    """Every atom of the registry, kind by kind in the order of the vocabulary."""
    kinds, words = list(KINDS.values()), [*WORDS, *REGISTRY]
    classes = sorted(REGISTRY.values(), key=lambda cls: (kinds.index(_kind(cls)), words.index(cls.name)))
    return [entry(cls.name) for cls in classes]


def entry(name: str) -> Entry:
    """The entry of one atom. KeyError where there is none of that name."""
    from mtldsl.reference.registry import (
        FORMULAS,
        SPECTRA,
        STRUCTURES,
    )  # filled by the import of the reference's families in `candidates`

    cls = REGISTRY[name]
    example = cls.examples()[0]
    solvers = tuple(candidates(_smallest_model(example).form()))
    latex = cls.formula.replace("{}", _argument(cls))
    documentation = inspect.getdoc(cls) or ""
    return Entry(
        name=name,
        kind=_kind(cls),
        typed=_typed(cls),
        summary=cls.summary(),
        latex=latex,
        formula=to_unicode(latex),
        parameters={
            field.name: "required" if field.default is MISSING else str(field.default)
            for field in cls.typed_fields()
        },
        traits=_traits(cls),
        solvers=solvers,
        reference=name in FORMULAS or name in STRUCTURES or name in SPECTRA,
        documentation=documentation,
    )


def _kind(cls: type[Atom]) -> str:
    if issubclass(cls, Structure):  # some are regularizers too, once their matrices are eliminated
        return KINDS[Structure]
    return next(kind for base, kind in KINDS.items() if issubclass(cls, base))


def _argument(cls: type[Atom]) -> str:
    """What an atom is a function of: the weights, a task's predictions, labels y' of a task, or the scores of a sample or row."""
    if issubclass(cls, Metric):
        return "y'" if cls.labellings else "z_i"
    if issubclass(cls, LabelGraphLoss):
        return "s_i"
    if issubclass(cls, Loss) and cls.labels == "classes":
        return "(z_j)"
    return "z_i" if issubclass(cls, Loss) else "W"


def _typed(cls: type[Atom]) -> str:
    if cls.name in WORDS:
        return usage(cls.name)
    # a set without a word of its own says in its documentation how it is typed
    told = re.search(r"typed\s+`([^`]+)`", inspect.getdoc(cls) or "")
    assert told, f"{cls.__name__} does not say how it is typed"
    return told[1]


def _traits(cls: type[Atom]) -> dict[str, object]:
    """Class attributes that the protocol declares and that differ from the protocol's own defaults, and `convex`.

    A metric is a loss of labels; that its structured hinge is convex says nothing about it.
    """
    bases = (Loss, Structure, Regularizer, MatrixFunction, Metric)
    protocol = next(base for base in bases if issubclass(cls, base))
    declared = {name: value for base in reversed(protocol.__mro__) for name, value in vars(base).items()}
    hidden = {"name", "formula", "meaning", "weighted_formula", *(field.name for field in fields(cls))}
    found = {}
    for name, default in declared.items():
        if name.startswith("_") or name in hidden or not isinstance(default, bool | int | float | str | None):
            continue
        if name == "weighs_samples" and issubclass(
            cls, LabelGraphLoss | RowLoss
        ):  # no single scores, but their model does
            continue
        value = cls.examples()[0].convex if name == "convex" and protocol is Structure else getattr(cls, name)
        if not isinstance(value, bool | int | float | str | None):  # a property of the instance
            value = "by its parameters"
        if (name == "convex" and protocol is not Metric) or value != default:
            found[name] = value
    return found


def _smallest_model(atom: Atom):
    """A loss with a ridge beside it on all its weights, a metric in such a structured hinge; anything else beside the squared loss."""
    if isinstance(atom, Metric):
        atom = StructuredHinge(metric=atom)
    rng = np.random.default_rng(0)
    kind = atom.labels if isinstance(atom, Loss) else "real"
    labels = LABEL_KINDS["sign" if kind in ("indicators", "classes") else kind].suiting
    Y = np.resize(labels, (_ROWS * _TASKS)).reshape(_TASKS, _ROWS).T
    tasks = Tasks.shared(rng.normal(size=(_ROWS, _FEATURES)), Y)
    W = Weights(tasks)
    if isinstance(atom, RowLoss):
        classes = Tasks.from_classes(tasks.X, np.arange(_ROWS) % atom.n_classes)
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
