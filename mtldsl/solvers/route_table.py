"""Table of patterns: models on which a route goes before the order of `routes.SOLVERS`, each with its reason.

They were read off `benchmarks/results/corpus_own_routes.csv` by `python benchmarks/corpus --fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtldsl.normal_form.form import FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task

# --------------------------------------------------------------------------------------------------------------
# Facts of a model: terms that the patterns are stated in, computed once from the normal form.


@dataclass(frozen=True)
class ModelFacts:
    """Kinds and sizes of a model in memory; no solve and no gradient is needed for them.

    loss       : "squares", "smooth", "piecewise_quadratic", "piecewise_linear", "structured", "labelings", "norm", "other", "none", or "mixed"
    labels     : of the first loss: "sign", "real", ... as its atom says
    penalty    : "none", "ridge", "entries", "rows", "groups", "columns", "spectrum", "matrix", "structure", or "mixed"; a ridge beside one counts as it
    samples    : of the largest task; `features` are those that any sample has
    product    : flops of a product of all inputs with the weights, about
    """

    loss: str
    labels: str
    penalty: str
    has_constraints: bool
    losses: int
    shares_inputs: bool  # one X, and a label of every row and task
    is_sparse: bool
    samples: int
    features: int
    tasks: int
    product: float

    @property
    def samples_per_feature(self) -> float:
        return self.samples / max(self.features, 1)

    @classmethod
    def of(cls, form: NormalForm) -> ModelFacts:
        """Those of a form; forms that differ in the sizes of coefficients alone share them."""
        if "facts" not in form.remembered:
            form.remembered["facts"] = cls._read(form)
        return form.remembered["facts"]

    @classmethod
    def _read(cls, form: NormalForm) -> ModelFacts:
        kinds = {loss_kind(loss) for loss in form.losses}
        penalties = {penalty_kind(f) for f in form.regularizers}
        core = penalties - {"ridge"}
        tasks: list[Any] = [loss.tasks for loss in form.losses]
        d, m = max((block.shape for block in form.weight_blocks), default=(0, 0))
        return cls(
            loss=_only(kinds, "none"),
            labels=form.losses[0].atom.labels if form.losses else "none",
            penalty=_only(core, "ridge" if penalties else "none"),
            has_constraints=bool(form.constraints),
            losses=len(form.losses),
            shares_inputs=all(loss.is_shared_complete for loss in form.losses),
            is_sparse=any(each.is_sparse for each in tasks),
            samples=max((int(each.counts.max()) for each in tasks), default=0),
            features=max((_features_in_use(each) for each in tasks), default=d),
            tasks=m,
            product=2.0 * sum(each.entries_a_row * each.n_samples for each in tasks),
        )


def loss_kind(loss: LossTerm) -> str:
    """The family of a loss: what its value and its proximal step are made of."""
    atom = loss.atom
    if atom.labels == "indicators":
        return "labelings"
    if has_one_maximum_a_task(loss):
        return "structured"
    if atom.quadratic is not None:
        return "squares"
    if atom.smooth:
        return "piecewise_quadratic" if atom.piecewise_quadratic else "smooth"
    if loss.is_piecewise_linear:
        return "piecewise_linear"
    return "norm" if atom.radial else "other"


def penalty_kind(f: FunctionTerm) -> str:
    """The parts of a matrix that a regularizer is a sum over."""
    atom = f.atom
    if atom.is_reweighted or atom.weighs_kernels:
        return "structure"
    if atom.entry_quadratic is not None:
        return "ridge"
    if atom.separable != "rows" and atom.row_groups(f.map.shape) is not None:
        return "groups"
    return atom.separable or "matrix"


def _only(kinds: set[str], none: str) -> str:
    return next(iter(kinds)) if len(kinds) == 1 else "mixed" if kinds else none


def _features_in_use(tasks: Any) -> int:
    """Features that any sample has: of words, many are in none of the rows that are left."""
    return int((tasks.column_lengths > 0.0).any(axis=1).sum()) if tasks.is_sparse else tasks.n_features


# --------------------------------------------------------------------------------------------------------------
# Patterns, and the routes that go first there.


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
        "separable sparse samples",
        "labels of some twice as many samples as features can be separated (Cover 1965); then the ridge alone makes Newton's system regular",
        first=("dual_ascent",),
        where={
            "loss": ("piecewise_quadratic",),
            "labels": ("sign",),
            "losses": (1,),
            "is_sparse": (True,),
            "samples_per_feature": SizeRange(most=2.5),
        },
    ),
    RoutePattern(
        "few sparse samples",
        "samples with few features in common: a step of one multiplier leaves the others as they are",
        first=("dual_ascent",),
        where={
            "loss": ("piecewise_quadratic",),
            "losses": (1,),
            "is_sparse": (True,),
            "samples_per_feature": SizeRange(most=1),
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
        "large sparse data",
        "products with sparse samples are cheaper than the dense factors of interior points and of ADMM",
        first=("multipliers.newton",),
        where={
            "loss": ("piecewise_linear",),
            "is_sparse": (True,),
            "samples": SizeRange(least=2000),
            "features": SizeRange(least=1000),
        },
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
