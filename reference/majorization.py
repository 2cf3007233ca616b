"""Convex models in place of one that is not: every penalty of the spectrum, and on request every loss, by what touches it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.errors import ModelError
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.reductions.reduction import (
    TaskSubset,
    TermMajorization,
    losses_of_tasks,
    why_not_losses,
)
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.maps import constants, map_value, predictions
from mtldsl.reference.registry import SPECTRA, formula_of_loss
from mtldsl.reference.spectral import excess, penalty, ways
from mtldsl.reference.workload import nonzeros


def spectral_terms(form: NormalForm) -> list[FunctionTerm]:
    """The terms and constraints that are functions of the spectrum and not convex."""
    return [f for f in form.functions if f.atom.name in SPECTRA]


def spectral_value(form: NormalForm, blocks: Blocks) -> float:
    """Return what these terms add to the objective."""
    return sum(
        f.coefficient * penalty(f.atom, map_value(f.map, blocks))
        for f in spectral_terms(form)
        if not f.is_constraint
    )


def spectral_violation(form: NormalForm, blocks: Blocks) -> float:
    """By how much these constraints are violated at most."""
    return max(
        (excess(f.atom, map_value(f.map, blocks)) for f in spectral_terms(form) if f.is_constraint),
        default=0.0,
    )


def convex_forms(form: NormalForm, at: Blocks, random_state: int = 0) -> list[tuple[str, NormalForm]]:
    """[(what was done, the form without these terms)]: above the objective, equal to it at the blocks `at`, convex but for learned
    matrices. One form, or two where the slope of a penalty is infinite at zero or the rank is bounded: there the column space and
    the row space of W are kept in turn. A point where the model is at a local minimum minimises each of them.
    """
    applied = (reduction.apply(form) for reduction in majorizations(form, at, random_state))
    return [(text, above) for above, text in applied]


def majorizations(form: NormalForm, at: Blocks, random_state: int = 0) -> list[TermMajorization]:
    """The reductions that `convex_forms` applies."""
    rng = np.random.default_rng(random_state)
    of_terms = {f: ways(f.atom, map_value(f.map, at), rng) for f in spectral_terms(form)}
    turns = max(map(len, of_terms.values()), default=1)
    return [
        TermMajorization({f: own[min(k, len(own) - 1)] for f, own in of_terms.items()}) for k in range(turns)
    ]


@dataclass(frozen=True, eq=False)
class _HalfSquares(Loss):
    """1/2 ||r||^2, stated as the word is."""

    name: ClassVar[str] = "squared_loss"


def reweighted_losses(form: NormalForm, at: Blocks) -> NormalForm:
    """The form with sqrt(||r_i||^2 + eps^2) replaced by v_i / 2 ||r_i||^2 + constant, v_i = 1 / sqrt(||r_i||^2 + eps^2) at `at`.

    Losses that are quadratic stay what they are, and so do all others. ModelError where such a root is zero.
    """
    losses, constant = [], form.constant
    for term in form.losses:
        if term.atom.name == "square_root_loss":
            term, extra = _reweighted(term, at)
            constant += extra
        losses.append(term)
    return replace(form, losses=tuple(losses), constant=constant)


def _reweighted(term: LossTerm, at: Blocks) -> tuple[LossTerm, float]:
    r = np.asarray(predictions(term, constants(at)).value, float) - term.tasks.targets
    s = 1.0 if term.tasks.sample_weights is None else term.tasks.sample_weights
    starts = np.cumsum(term.tasks.counts) - term.tasks.counts
    squares = np.add.reduceat(s * r**2, starts)
    roots = np.sqrt(squares + term.atom.eps**2)
    if not np.all(roots > 0.0):
        task = term.tasks.task_names[int(np.argmin(roots))]
        raise ModelError(
            f"task {task!r} of {term.typed}: its residuals are all zero, where the loss has a kink that no quadratic touches from above",
            write_instead="write eps=... in the loss for a model that can be reweighted there",
        )
    c, v = np.asarray(term.coefficients, float), 1.0 / roots
    return replace(term, atom=_HalfSquares(), coefficients=c * v), float(c @ (roots - 0.5 * v * squares))


# --------------------------------------------------------------------------------------------------------------
# The reference on some tasks alone, where data are too large for cvxpy: by its own formulas and its own evaluation of maps.


@dataclass(frozen=True)
class ReferenceSlabSettings:
    """Size of what cvxpy evaluates at once."""

    # nonzero scalars of data (measured on 10,000,000 in 1,000 tasks: 4 s and 20 MB; all at once, 8 s and 300 MB)
    slab_entries: int = 2_000_000


SETTINGS = ReferenceSlabSettings()


def why_not_by_tasks(form: NormalForm) -> str | None:
    """None where the model can be restricted to tasks, else one sentence."""
    return TaskSubset([0], {}).accepts(form) or _why_not_formulas(form)


def of_tasks(form: NormalForm, at: Blocks, which) -> tuple[NormalForm, Blocks]:
    """(the model over columns `which` of every block, all other columns kept at the blocks `at`; `at` in these columns)."""
    subset = TaskSubset(which, at, map_value)
    return subset.apply(form)[0], subset.restricted(at)


def value_and_violation(form: NormalForm, blocks: Blocks) -> tuple[float, float]:
    """(objective, violation) of a convex model at arrays, by the reference's formulas: of large data, some tasks at a time."""
    size = sum(nonzeros(loss) for loss in form.losses)
    if size <= SETTINGS.slab_entries or why_not_losses(form) or _why_not_formulas(form):
        model = to_cvxpy(form)
        return model.objective_value(blocks), model.violation(blocks)
    model = to_cvxpy(replace(form, losses=()))
    total, violation = model.objective_value(blocks), model.violation(blocks)
    m = form.losses[0].tasks.n_tasks
    for which in np.array_split(np.arange(m), min(m, -(-size // SETTINGS.slab_entries))):
        part = losses_of_tasks(form, which)
        total += to_cvxpy(part).objective_value({name: block[:, which] for name, block in blocks.items()})
    return total, violation


def _why_not_formulas(form: NormalForm) -> str | None:
    by_planes = (loss for loss in form.losses if formula_of_loss(loss).by_planes)
    return next((f"{loss.typed} is given by planes" for loss in by_planes), None)
