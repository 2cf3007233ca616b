"""Table of patterns: models on which a route goes before the order of `routes.SOLVERS`, with the reason and the rows it was read off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.facts import ModelFacts

__all__ = ["PATTERNS", "Between", "Pattern"]


@dataclass(frozen=True)
class Between:
    """Numbers from `least` to `most`, both included."""

    least: float = 0.0
    most: float = float("inf")

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most


@dataclass(frozen=True)
class Pattern:
    """Models of a kind, and the routes that go first there.

    reason : what `explain()` says: the mechanism that makes the route the faster one
    where  : fields of `ModelFacts` -> values that they may have, or a range
    when   : a function of the form, in place of facts
    later  : routes that go behind all others
    rows   : the problems of the corpus that it was read off
    """

    name: str
    reason: str
    first: tuple[str, ...] = ()
    where: Mapping[str, tuple | Between] = field(default_factory=dict)
    when: Callable[[NormalForm], bool] | None = None
    later: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    def holds(self, form: NormalForm) -> bool:
        if self.when is not None:
            return self.when(form)
        facts = ModelFacts.of(form)
        return all(getattr(facts, name) in values for name, values in self.where.items())


#: Earlier patterns go before later ones.
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "multiple kernels",
        "one multiplier per sample, and kernels between tasks cost nothing more",
        first=("dual_ascent",),
        where={"loss": ("piecewise_linear",), "penalty": ("structure",)},
    ),
    Pattern(
        "linear svm",
        "box constraints and no equation between samples: one multiplier at a time",
        first=("dual_ascent",),
        where={"loss": ("piecewise_linear",), "labels": ("sign",), "penalty": ("ridge",)},
    ),
    Pattern(
        "sparse margins",
        "a pass over samples costs their entries, a Newton system the squares of the features",
        first=("dual_ascent",),
        where={
            "loss": ("smooth", "piecewise_quadratic"),
            "labels": ("sign",),
            "penalty": ("ridge",),
            "is_sparse": (True,),
        },
    ),
    Pattern(
        "tied tasks, few samples per feature",
        "Newton's system has features x tasks unknowns, those of ADMM are factorized once",
        first=("admm",),
        where={
            "loss": ("piecewise_linear",),
            "penalty": ("rows", "spectrum", "matrix", "mixed"),
            "has_constraints": (False,),
            "samples_per_feature": Between(most=2),
            "tasks": Between(least=2),
        },
    ),
    Pattern(
        "many tied tasks",
        "Newton's system has features x tasks unknowns, those of ADMM are factorized once",
        first=("admm",),
        where={
            "loss": ("piecewise_linear",),
            "penalty": ("none", "rows", "spectrum", "matrix", "mixed"),
            "samples_per_feature": Between(most=10),
            "tasks": Between(least=40),
        },
    ),
    Pattern(
        "structured hinge, few features",
        "few cutting planes settle it",
        first=("admm",),
        where={
            "loss": ("structured",),
            "penalty": ("none", "entries", "rows", "spectrum", "matrix", "mixed"),
            "features": Between(most=64),
        },
    ),
)
