"""Block minimisation: weights and learned matrices in turn, by flip-flop, accelerated or smoothed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.terms.structure_term import (
    MajorizationLog,
    Structures,
    learned_matrices,
    structure_terms,
)
from mtldsl.solvers.linear_systems.task_matrices import BlockLayout
from mtldsl.solvers.nonconvex.fixed_rank import settle_at_rank, why_not_at_rank
from mtldsl.solvers.numerics.anderson import AndersonExtrapolation
from mtldsl.solvers.solver import GeometricSchedule, Point, Watch


@dataclass(frozen=True)
class AlternationSettings:
    """Limits of steps in turn and of joint steps.

    memory_steps          : joint steps that an extrapolation draws on
    model_start_tol       : accuracy of a step's convex model at first
    model_share           : accuracy of a step's convex model, as a share of the residual asked for
    model_min_tol         : accuracy below which no step moves any more
    descent_start_steps   : steps before the first descent; doubled from one descent to the next
    fudge_factor          : of the flip-flop algorithm where none is given, as in the paper
    smoothing_start_ratio : of the first eps to the largest singular value
    smoothing_factor      : eps from one iteration to the next; on three tasks of rank two 0.9 ends 1e-5 above the optimum, 0.97 1e-6 (300 iterations), 0.99 2e-7 (1,000)
    """

    memory_steps: int = 10
    model_start_tol: float = 1e-4
    model_share: float = 0.1
    model_min_tol: float = 1e-14
    descent_start_steps: int = 1
    fudge_factor: float = 1e-3
    smoothing_start_ratio: float = 0.1
    smoothing_factor: float = 0.98


SETTINGS = AlternationSettings()


# --------------------------------------------------------------------------------------------------------------
# Block-coordinate minimisation: the weights with the matrices kept, then the matrices in closed form, and again.

#: A rise of the objective by less than this, relative to the terms that it is the sum of, is rounding.
RISE_ROUNDING_SHARE = 1e-10


def starting_matrices(form: NormalForm) -> Structures:
    """The identity, or the nearest matrix within its bounds."""
    return {
        name: S
        for term in structure_terms(form)
        for name, S in term.named(term.structure.start(term.map.shape)).items()
    }


def update_in_turn(form: NormalForm, x: Blocks, structures: Structures) -> tuple[Structures, float]:
    """One matrix after another, the others kept: the paper's order; nothing is added to the objective."""
    return _one_by_one(form, x, structures, lambda structure, *at: structure.update_one(*at)), 0.0


def _one_by_one(form: NormalForm, x: Blocks, structures: Structures, update_one) -> Structures:
    updated = dict(structures)
    for term in structure_terms(form):
        matrices, W = term.matrices(structures), term.map.forward(x)
        for k, name in enumerate(term.names):
            if name is not None:
                matrices = update_one(term.structure, k, W, matrices)
        updated |= term.named(matrices)
    return updated


def alternate(
    step,
    form: NormalForm,
    update,
    x: Blocks,
    structures: Structures,
    *,
    max_iter,
    watch: Watch,
    descends=True,
) -> Point:
    """Weights, then matrices by `update`, until `watch` is content. `descends`: assert that the objective never rises.

    update : (form, x, structures) -> (new structures, what it adds to the objective)
    """
    before, size, looks = np.inf, 0.0, GeometricSchedule(watch, max_iter)
    point = Point(x, structures=structures)
    for iteration in range(1, max_iter + 1):
        point = step.solve(structures, x)
        x = point.blocks
        structures, added = update(form, x, structures)
        value = step.value(x, structures) + added
        if descends:
            size = size or step.size(x)
            assert_descent(before, value, iteration, step.rise * size)
        before = value
        point.iteration, point.structures = iteration, None if form.is_convex else structures
        if looks(point):
            break
    return point


def assert_descent(before: float, value: float, iteration: int, allowed: float) -> None:
    """SolverError where the objective rose by more than `allowed`: every step minimises over a block, so that its linear systems
    broke down, or an error is ours.
    """
    if value > before + allowed:
        raise SolverError(
            f"alternating: the objective rose from {before:.12g} to {value:.12g} in iteration {iteration}; each step minimises over "
            "one block, so its linear systems broke down numerically: bring columns and parameters to similar sizes "
            "(tasks.standardize()); where they are, this is a fault in mtldsl: please report the model and its data"
        )


def flip_flop(fudge: float | None):
    """Return the update of the flip-flop algorithm, one matrix after another."""
    share = SETTINGS.fudge_factor if fudge is None else fudge

    def update(form: NormalForm, x: Blocks, structures: Structures) -> tuple[Structures, float]:
        return _one_by_one(form, x, structures, lambda structure, *at: structure.flip_flop(*at, share)), 0.0

    return update


# --------------------------------------------------------------------------------------------------------------
# Joint steps with Anderson acceleration: each step minimises a convex majoriser of the profile, which touches it where it is.


def accelerate(
    step, form: NormalForm, x: Blocks, structures: Structures, *, tol: float, max_iter: int, watch: Watch
) -> Point:
    """Weights, then all matrices together. An extrapolation from earlier steps is kept where it leads lower than the plain step."""
    layout, anderson = BlockLayout(form), AndersonExtrapolation(SETTINGS.memory_steps, growth=np.inf)
    accuracy = SETTINGS.model_start_tol
    plain = step.solve(structures, x, accuracy)
    here, value = layout.flat(plain.blocks), step.value(plain.blocks)
    size, looks = step.size(plain.blocks), GeometricSchedule(watch, max_iter)
    remembered = MajorizationLog(any(f.atom.is_reweighted for f in form.functions), reweights_losses=False)
    next_descent = SETTINGS.descent_start_steps if why_not_at_rank(form) is None else np.inf
    for iteration in range(1, max_iter + 1):
        image = step.solve(learned_matrices(form, layout.blocks(here)), layout.blocks(here), accuracy)
        flat, best = layout.flat(image.blocks), step.value(image.blocks)
        assert_descent(value, best, iteration, step.rise * size)
        remembered.add(iteration, layout.blocks(here), image.blocks, accuracy)
        moved = np.linalg.norm(flat - here) / max(np.linalg.norm(flat), np.finfo(float).tiny)
        leap = anderson.step(here, flat, 1.0)
        if not np.array_equal(leap, flat):
            further = step.solve(learned_matrices(form, layout.blocks(leap)), image.blocks, accuracy)
            at = step.value(further.blocks)
            if at < best:
                image, flat, best = further, layout.flat(further.blocks), at
            else:
                anderson.reset()
        here, value = flat, best
        image.iteration, image.majorizations = iteration, remembered.steps
        if looks(image):
            return image
        if iteration >= next_descent:  # among the matrices of the rank that the steps have reached
            next_descent *= 2
            start = Point(image.blocks, image.loss_duals, iteration=iteration)
            found = settle_at_rank(form, start, tol=tol, watch=watch)
            if found is not None:
                return found
        if moved == 0.0 and accuracy <= SETTINGS.model_min_tol:  # rounding: no step moves any more
            watch(image)
            return image
        if moved**2 <= 10.0 * accuracy:  # steps are no longer than their errors
            accuracy = max(
                0.01 * accuracy, SETTINGS.model_min_tol, min(SETTINGS.model_share * tol, 1e-6) ** 2
            )
    return image


# --------------------------------------------------------------------------------------------------------------
# Alternation with covariances of bounded trace: smoothed, since a covariance that has become singular never recovers.


def smoothed_update():
    """Return the update C = (W W^T + eps^2 I)^{1/2} up to its trace, with eps -> 0.

    Without eps, alternation locks: a direction that C has lost costs infinitely much, and weights that should turn towards it
    cannot. Each step minimises loss + tr((W W^T + eps^2 I) C^{-1}) over one block, and eps only falls, so that this falls too.
    Source: Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008), sec. 4.
    """
    eps: Any = None

    def update(form: NormalForm, x: Blocks, structures: Structures) -> tuple[Structures, float]:
        nonlocal eps
        images = [(term, term.map.forward(x)) for term in structure_terms(form)]
        if eps is None:
            eps = SETTINGS.smoothing_start_ratio * max(np.linalg.norm(W, 2) for _, W in images)
        eps = max(SETTINGS.smoothing_factor * eps, np.finfo(float).tiny)
        found, added = {}, 0.0
        for term, W in images:
            structure: Any = term.structure  # `smoothed` is of those that are solved so
            (C,) = structure.smoothed(W, eps)
            found |= term.named((C,))
            added += term.coefficient * eps**2 * C.power(-1.0).trace()
        return found, added

    return update
