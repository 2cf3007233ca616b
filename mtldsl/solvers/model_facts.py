"""Facts of a model: terms that the patterns of a choice of route are stated in, computed once from the normal form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtldsl.normal_form.form import FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task


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
