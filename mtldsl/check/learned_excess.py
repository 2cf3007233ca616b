"""What a solution shows as learned, held against the best for its weights by the reference's formulas."""

from __future__ import annotations

from typing import cast

import numpy as np

from mtldsl.atoms.structures import Ball, MKLNorm, Range
from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.terms.structure import StructureTerm, structure_terms
from mtldsl.proof.certificate import objective_scale
from mtldsl.solution.kernel_weights import LearnedWeights
from mtldsl.solution.learned_matrix import LearnedMatrix
from mtldsl.solution.solution import Solution

__all__ = ["learned_excess"]


def learned_excess(form: NormalForm, solution: Solution) -> float:
    """By how much what is shown as learned misses the minimum that the weights' penalty stands for, by the reference's formula."""
    from mtldsl.reference.structures import objective

    worst = 0.0
    for term in structure_terms(form):
        if term.structure.weighs_kernels:
            worst = max(worst, _weights_excess(term, solution, objective_scale(form)))
            continue
        learned = [solution.learned[name] for name in term.names if name in solution.learned]
        shown = [one.spectral for one in learned if isinstance(one, LearnedMatrix)]
        if len(shown) < len(term.names):
            return np.inf
        W = term.map.forward(solution.blocks)
        best = term.structure.value(W)
        value = objective(term.structure, W, [S.dense() for S in shown])
        said = zip(shown, term.structure.said, strict=True)
        if any(S.trace() > (1.0 + 1e-9) * about.trace for S, about in said if isinstance(about, Range)):
            return np.inf
        worst = max(worst, abs(value - best) / max(best, objective_scale(form), np.finfo(float).tiny))
    return worst


def _weights_excess(term: StructureTerm, solution: Solution, scale: float) -> float:
    """The same for kernel weights, relative to the objective, whose gap they are a part of: inf where they are missing or leave their
    ball. Nothing where the model has none as an unknown and none are shown.
    """
    from mtldsl.reference.kernel_parts import violation
    from mtldsl.reference.kernels import least
    from mtldsl.reference.structures import objective

    (name,) = term.names
    if name not in solution.learned:
        return np.inf if isinstance(cast(MKLNorm, term.structure).about, Ball) else 0.0  # `weighs_kernels`
    shown = solution.learned[name]
    if not isinstance(shown, LearnedWeights):
        return np.inf
    W, theta = term.map.forward(solution.blocks), np.asarray(shown.values)
    if not violation(theta, term.structure) <= 1e-9:
        return np.inf
    best = least(W, term.structure).value
    excess = term.coefficient * abs(objective(term.structure, W, [theta]) - best)
    return excess / max(abs(solution.objective), scale, np.finfo(float).tiny)
