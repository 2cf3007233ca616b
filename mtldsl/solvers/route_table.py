"""Table of patterns: models on which a route goes before the order of `routes.SOLVERS`, each with its reason.

They were read off `benchmarks/results/corpus_own_routes.csv` by `python benchmarks/corpus --fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.model_facts import ModelFacts


@dataclass(frozen=True)
class SizeRange:
    """Numbers from `least` to `most`, both included."""

    least: float = 0.0
    most: float = float("inf")

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most


@dataclass(frozen=True)
class RoutePattern:
    """Models of a kind, and the routes that go first there.

    reason : what `explain()` says: the mechanism that makes the route the faster one
    where  : fields of `ModelFacts` -> values that they may have, or a range
    when   : a function of the form, asked where the facts are so
    later  : routes that go behind all others
    """

    name: str
    reason: str
    first: tuple[str, ...] = ()
    where: Mapping[str, tuple | SizeRange] = field(default_factory=dict)
    when: Callable[[NormalForm], bool] | None = None
    later: tuple[str, ...] = ()

    def holds(self, form: NormalForm) -> bool:
        facts = ModelFacts.of(form) if self.where else None
        if not all(getattr(facts, name) in values for name, values in self.where.items()):
            return False
        return self.when is None or self.when(form)


@dataclass(frozen=True)
class RouteSettings:
    """Constants of the choice beside the table.

    max_crossing_steps    : of coordinate ascent in which a multiplier crosses its interval, up to which passes over samples are few. At .5
                            and less they take .2 to 1.2 times the time of Newton steps (scene, skewed, atp1d, sarcos, enb, linnerud), at 15
                            and more 2 to 7 times (holes, flags)
    max_reference_entries : of data and unknowns, up to which the reference is tried after fast solvers have stalled
    """

    max_crossing_steps: float = 5.0
    max_reference_entries: int = 200_000


SETTINGS = RouteSettings()


def takes_few_passes(form: NormalForm) -> bool:
    """Tell whether coordinate ascent takes few passes: samples of wide or sparse data are nearly orthogonal; on others a step, of length
    ridge / ||x||^2, takes a multiplier across its interval in a few."""
    (loss,) = form.losses
    facts = ModelFacts.of(form)
    if facts.is_sparse or facts.features >= facts.samples:
        return True
    low, high = loss.dual_interval()
    tasks = loss.tasks
    rows = tasks.X.shape[0] * tasks.n_tasks if tasks.is_shared else tasks.n_samples
    squared_length = float(np.sum(np.square(loss.column_lengths))) / rows
    ridge = sum(f.coefficient * float(np.mean(np.asarray(f.atom.entry_quadratic))) for f in form.regularizers)
    return float(np.mean(high - low)) * squared_length <= SETTINGS.max_crossing_steps * ridge


#: Earlier patterns go before later ones.
PATTERNS: tuple[RoutePattern, ...] = (
    RoutePattern(
        "multiple kernels",
        "one multiplier per sample, and kernels between tasks cost nothing more",
        first=("dual_ascent",),
        where={"penalty": ("structure",)},
    ),
    RoutePattern(
        "linear svm",
        "box constraints and no equation between samples: one multiplier at a time",
        first=("dual_ascent",),
        where={"loss": ("piecewise_linear",), "labels": ("sign",), "penalty": ("ridge",), "losses": (1,)},
        when=takes_few_passes,
    ),
    RoutePattern(
        "tied tasks, few samples per feature",
        "Newton's system has features x tasks unknowns, those of ADMM are factorized once",
        first=("admm",),
        where={
            "loss": ("piecewise_linear",),
            "penalty": ("rows", "spectrum", "matrix", "mixed"),
            "has_constraints": (False,),
            "samples_per_feature": SizeRange(most=4),
            "tasks": SizeRange(least=2),
        },
    ),
    RoutePattern(
        "many tied tasks",
        "Newton's system has features x tasks unknowns, those of ADMM are factorized once",
        first=("admm",),
        where={
            "loss": ("piecewise_linear",),
            "penalty": ("none", "rows", "spectrum", "matrix", "mixed"),
            "samples_per_feature": SizeRange(most=10),
            "tasks": SizeRange(least=40),
        },
    ),
    RoutePattern(
        "structured hinge, few features",
        "few cutting planes settle it",
        first=("admm",),
        where={
            "loss": ("structured",),
            "penalty": ("none", "entries", "rows", "spectrum", "matrix", "mixed"),
            "features": SizeRange(most=64),
        },
    ),
)
