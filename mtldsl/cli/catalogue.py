"""Catalogue of the atoms: word, formula, parameters, traits and solvers of each, read from the registry."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, dataclass, fields

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.atoms.losses.multiclass import RowLoss
from mtldsl.atoms.matrix_function import Atom, MatrixFunction, Regularizer
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.display.math import to_unicode
from mtldsl.extending.check_word import smallest_form
from mtldsl.extending.registration import kind_of_class
from mtldsl.language.vocabulary import WORDS, usage
from mtldsl.solvers.routes import candidates

# --------------------------------------------------------------------------------------------------------------
# The catalogue of the language: everything in it is read from the registry, the words' signatures, and the solvers' answers.


#: In their order.
KINDS = ("loss", "regularizer", "structure", "constraint", "metric")


@dataclass(frozen=True)
class CatalogueEntry:
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


def catalogue() -> list[CatalogueEntry]:
    """Every atom of the registry, kind by kind in the order of the vocabulary."""
    words = [*WORDS, *REGISTRY]
    classes = sorted(
        REGISTRY.values(), key=lambda cls: (KINDS.index(kind_of_class(cls).what), words.index(cls.name))
    )
    return [entry(cls.name) for cls in classes]


def entry(name: str) -> CatalogueEntry:
    """The entry of one atom. KeyError where there is none of that name."""
    from mtldsl.reference.registry import (
        FORMULAS,
        SPECTRA,
        STRUCTURES,
    )  # filled by the import of the reference's families in `candidates`

    cls = REGISTRY[name]
    example = cls.examples()[0]
    solvers = tuple(candidates(smallest_form(example)))
    latex = cls.formula.replace("{}", _argument(cls))
    documentation = inspect.getdoc(cls) or ""
    return CatalogueEntry(
        name=name,
        kind=kind_of_class(cls).what,
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


def _argument(cls: type[Atom]) -> str:
    """Return what an atom is a function of: the weights, a task's predictions, labels y' of a task, or the scores of a sample or row."""
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
    hidden = {
        "name",
        "formula",
        "meaning",
        "unchecked",
        "weighted_formula",
        *(field.name for field in fields(cls)),
    }
    found: dict[str, object] = {}
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
