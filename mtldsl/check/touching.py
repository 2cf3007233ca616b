"""The convex form that touches a model at a solution, and which of its tasks are compared where it is too large."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.kept import Kept
from mtldsl.compile.terms.structure import Structures, StructureTerm, structure_terms
from mtldsl.errors import ModelError
from mtldsl.solution.learned_matrix import LearnedMatrix
from mtldsl.solution.solution import Solution

__all__ = ["kept_at", "learning_terms", "matrices_at", "some_tasks", "stated"]


def stated(form: NormalForm, at: Solution | None) -> NormalForm:
    """The form that cvxpy can state: itself where it is convex, else the one that touches it at a solution. ModelError without one."""
    if form.is_convex:
        return form
    if at is None:
        culprit = next(f for f in form.functions if not f.atom.convex)
        raise ModelError(
            f"{culprit.typed} is not convex, so cvxpy cannot state this model; at a solution it can, with learned matrices kept and "
            "the spectrum majorised: write to_cvxpy(at=solution)"
        )
    return kept_at(form, at)[0]


def kept_at(form: NormalForm, solution: Solution) -> tuple[NormalForm, Structures]:
    """(a convex form that touches the model at a solution, the learned matrices kept in it).

    Convex in the weights, because learned matrices are kept and penalties of the spectrum that are not convex are majorised; where
    they cannot be and where the rank is bounded, the column space of the solution's weights is kept. ModelError where the
    solution is not the model's.
    """
    from mtldsl.reference.majorization import convex_forms

    structures = matrices_at(form, solution)
    return Kept(structures).apply(convex_forms(form, solution.blocks)[0][1])[0], structures


def matrices_at(form: NormalForm, solution: Solution) -> Structures:
    """The learned matrices of a solution. ModelError where it is not one of this form."""
    # kernel weights are not a block of their own: their penalty is convex, and stays eliminated
    structures = {
        name: one.spectral for name, one in solution.learned.items() if isinstance(one, LearnedMatrix)
    }
    for term in learning_terms(form):
        for name, given in zip(term.names, term.structure.start(term.map.shape), strict=True):
            if name is not None and (name not in structures or structures[name].side != given.side):
                held = ", ".join(f"{key} {S.side} x {S.side}" for key, S in structures.items()) or "none"
                raise ModelError(
                    f"the solution is not one of this problem: {term.typed} learns {name} {given.side} x {given.side}, and its "
                    f"learned matrices are: {held}",
                    write_instead="give a solution of this problem",
                )
    shapes = {name: block.shape for name, block in solution.blocks.items()}
    if shapes != form.shapes:
        raise ModelError(
            f"the solution is not one of this problem: it has the unknowns {shapes}, but the problem has {form.shapes}",
            write_instead="give a solution of this problem",
        )
    return {**structures}


def learning_terms(form: NormalForm) -> list[StructureTerm]:
    """Those whose matrices are unknowns of the model."""
    return [
        term for term in structure_terms(form) if not term.atom.weighs_kernels and not term.atom.is_reweighted
    ]


def some_tasks(form: NormalForm, kept: NormalForm, share: float, random_state: int) -> np.ndarray | None:
    """A random share of the tasks on which the blocks of a large model are compared; None where that is not possible."""
    from mtldsl.reference.majorization import spectral_terms
    from mtldsl.reference.task_subset import why_not_by_tasks

    m = form.losses[0].tasks.n_tasks
    if not spectral_terms(form) or learning_terms(form) or why_not_by_tasks(kept) or m * share < 1:
        return None
    return np.sort(np.random.default_rng(random_state).permutation(m)[: int(m * share)])
