"""Everything that a model learns beside its weights, at a point, as the solution shows it."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.compile.checks import learned_of, names_in
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.structure import Structures, StructureTerm, learned_matrices, structure_terms
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint, ranges_of
from mtldsl.solution.kernel_weights import LearnedWeights
from mtldsl.solution.learned_matrix import LearnedMatrix

__all__ = ["learned_in"]

#: A multiplier this small, relative to the largest, is zero.
_ZERO = 1e-9


def learned_in(
    form: NormalForm,
    objective: Objective,
    constraints,
    blocks: Blocks,
    structures: Structures | None,
    loss_duals=None,
) -> dict[str, LearnedMatrix | LearnedWeights]:
    """By name: matrices, and the weights of task similarities - also those that the model gives or has eliminated."""
    found = learned_matrices(form, blocks) if structures is None else dict(structures)
    learned: dict[str, LearnedMatrix | LearnedWeights] = {}
    for term in structure_terms(form):
        if term.atom.weighs_kernels and term.names[0] in found:
            learned[term.names[0]] = _weights(objective, term, found[term.names[0]], _support(loss_duals))
    for unknown, about in ranges_of(c for c in constraints if isinstance(c, RangeConstraint)).items():
        if unknown.kind != "weights" and about.lower == about.upper:  # nothing is left to learn
            found[unknown.name] = SpectralMatrix.multiple_of_identity(about.lower, unknown.side)
    for unknown in learned_of(objective):
        if unknown.name in found and unknown.name not in learned:  # its term may have the coefficient 0
            names = names_in(objective, unknown)
            learned[unknown.name] = LearnedMatrix(
                unknown.name, unknown.axis, unknown.kind, names, found[unknown.name]
            )
    return learned


def _support(loss_duals) -> int | None:
    """How many multipliers of the losses are not zero; those of a splitting method are so to its accuracy only."""
    if loss_duals is None or any(
        isinstance(u, list) for u in loss_duals
    ):  # of a structured loss they are labellings
        return None
    return sum(
        int(np.sum(np.abs(u) > _ZERO * np.max(np.abs(u), initial=0.0))) for u in map(np.asarray, loss_duals)
    )


def _weights(objective: Objective, term: StructureTerm, theta, support: int | None) -> LearnedWeights:
    typed = next(t for t in objective.terms if t.atom_text == term.typed or t.text == term.typed)
    name = next((m.name for m in typed.learned if isinstance(m, LearnedUnknown)), "theta")
    part, n_columns = typed.argument.parts[0], typed.argument.shape[1]
    tasks = part.weights.tasks
    columns = tasks.task_names if part.right is None else [f"column{t}" for t in range(n_columns)]
    kernels = term.atom.kernels
    return LearnedWeights(
        name,
        theta,
        term.atom.names,
        tuple(columns),
        tuple(kernel.factor for kernel in kernels),
        term.atom.views,
        support,
    )
