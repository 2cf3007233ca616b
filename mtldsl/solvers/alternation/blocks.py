"""Block-coordinate minimisation: the weights with the matrices kept, then the matrices in closed form, and again."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.structure import Structures, structure_terms
from mtldsl.errors import SolverError
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Rhythm

__all__ = ["alternate", "assert_descent", "flip_flop", "in_turn", "starting_matrices"]

#: A rise of the objective by less than this, relative to the terms that it is the sum of, is rounding.
ROUNDING = 1e-10


def starting_matrices(form: NormalForm) -> Structures:
    """The identity, or the nearest matrix within its bounds."""
    return {
        name: S
        for term in structure_terms(form)
        for name, S in term.named(term.structure.start(term.map.shape)).items()
    }


def in_turn(form: NormalForm, x: Blocks, structures: Structures) -> Structures:
    """One matrix after another, the others kept: the paper's order."""
    return _one_by_one(form, x, structures, lambda structure, *at: structure.update_one(*at))


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
    """Weights, then matrices by `update`, until `watch` is content. `descends`: assert that the objective never rises."""
    before, size, looks = np.inf, 0.0, Rhythm(watch, max_iter)
    point = Point(x, structures=structures)
    for iteration in range(1, max_iter + 1):
        point = step.solve(structures, x)
        x = point.blocks
        structures = update(form, x, structures)
        value = step.value(x, structures)
        if descends:
            size = size or step.size(x)
            assert_descent(before, value, iteration, step.rise * size)
        before = value
        point.iteration, point.structures = iteration, structures
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


def flip_flop(fudge: float):
    """The update of the flip-flop algorithm, one matrix after another."""

    def update(form: NormalForm, x: Blocks, structures: Structures) -> Structures:
        return _one_by_one(form, x, structures, lambda structure, *at: structure.flip_flop(*at, fudge))

    return update
