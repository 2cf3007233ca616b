"""Block-coordinate minimisation: the weights with the matrices kept, then the matrices in closed form, and again."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.spectral_matrix import SpectralMatrix, thin_svd
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.structure_term import Structures, learned_matrices, structure_terms
from mtldsl.errors import SolverError
from mtldsl.solvers.solver import Point, Watch

__all__ = ["alternate", "assert_descent", "in_turn", "jointly", "starting_matrices"]

#: A rise of the objective by less than this, relative to the terms that it is the sum of, is rounding.
ROUNDING = 1e-10


def starting_matrices(form: NormalForm) -> Structures:
    """The identity, or the nearest matrix within its bounds."""
    return {
        name: S
        for term in structure_terms(form)
        for name, S in term.named(term.structure.start(term.map.shape)).items()
    }


def jointly(form: NormalForm, x: Blocks, structures: Structures) -> Structures:
    """All matrices at their best together."""
    return learned_matrices(form, x)


def in_turn(form: NormalForm, x: Blocks, structures: Structures) -> Structures:
    """One matrix after another, the others kept: the paper's order."""
    updated = dict(structures)
    for term in structure_terms(form):
        matrices, W = term.matrices(structures), term.map.forward(x)
        for k, name in enumerate(term.names):
            if name is not None:
                matrices = term.structure.update_one(k, W, matrices)
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
    before, looked, size = np.inf, 0, 0.0
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
        # a look costs a pass over the data: every tenth of the way is often enough
        if iteration <= 10 or iteration >= 1.1 * looked or iteration == max_iter or watch.expired:
            looked = iteration
            if watch(point) or watch.expired:
                break
    return point


def assert_descent(before: float, value: float, iteration: int, allowed: float) -> None:
    """SolverError where the objective rose by more than `allowed`: every step minimises over a block, so that would be an error
    of ours.
    """
    if value > before + allowed:
        raise SolverError(
            f"alternating: the objective rose from {before:.12g} to {value:.12g} in iteration {iteration}; each step minimises over "
            "one block, so this is a fault in mtldsl: please report the model and its data"
        )


def flip_flop(fudge: float):
    """The update of the flip-flop algorithm with its fudge factor, then the nearest matrix within the bounds.

    Sigma1^{-1} = eta W Sigma2 W^T / (rho m) + fudge I, Sigma2^{-1} = eta W^T Sigma1 W / (rho d) + fudge I. Minimises nothing.
    Source: Dutilleul, "The MLE algorithm for the matrix normal distribution", J. Stat. Comput. Simul. 64 (1999); the factor is
    that of Zhang and Schneider, "Learning multiple tasks with a sparse matrix-normal penalty", NIPS 2010.
    """

    def update(form: NormalForm, x: Blocks, structures: Structures) -> Structures:
        updated = dict(structures)
        for term in structure_terms(form):
            W, matrices, structure = term.map.forward(x), list(term.matrices(structures)), term.structure
            for k, name in enumerate(term.names):
                if name is not None:
                    other = matrices[1 - k].power(0.5)
                    factor = (other.apply(W.T) if k == 0 else other.apply(W)).T
                    U, s, _ = thin_svd(factor)
                    share = structure.eta / (structure.rho * W.shape[1 - k])
                    box = (structure.features, structure.tasks)[k]
                    with np.errstate(divide="ignore"):  # without the factor a covariance may be singular
                        eigenvalues = np.clip(
                            1.0 / (share * np.append(s**2, 0.0) + fudge), box.lower, box.upper
                        )
                    matrices[k] = SpectralMatrix(U, eigenvalues[:-1], float(eigenvalues[-1]))
            updated |= term.named(matrices)
        return updated

    return update
