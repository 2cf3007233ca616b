"""What a run learned of the similarities between tasks: the weight of each, and how alike the tasks are in the end."""

from __future__ import annotations

from typing import cast

import numpy as np

from mtldsl.atoms.structures import MKLNorm
from mtldsl.compile.terms.structure import structure_terms
from mtldsl.problem import Problem
from mtldsl.report.unicode_math import to_unicode
from mtldsl.shown.math import matrix_latex
from mtldsl.solution.kernel_weights import LearnedWeights
from mtldsl.solution.learned_matrix import correlation_of
from mtldsl.solution.solution import Solution

__all__ = ["NO_WEIGHT", "describe_similarities", "describe_theta"]

#: A weight below this share of the largest counts as zero: with p = 1 the best ones only tend to it.
NO_WEIGHT = 1e-6

#: Tasks up to which their correlations are part of a record, and up to which the pairs most alike are sought.
MAX_TABLE, MAX_PAIRS = 200, 2000

#: Pairs of tasks that are named, of those most alike and of those least alike.
PAIRS = 3


def describe_theta(problem: Problem, unknown) -> dict:
    """What a model says of kernel weights that it learns: how many there are."""
    atoms = [term.atom for term in problem.objective.terms if unknown in term.learned]
    return {
        "kind": unknown.kind,
        "axis": "task similarities",
        "shape": [len(cast(MKLNorm, atoms[0]).kernels)],
    }


def describe_similarities(problem: Problem, solution: Solution) -> list[dict]:
    """Every `mkl_norm`: its weights by name, the bound that they are in, the samples that count, and the tasks most alike."""
    found = []
    for term in structure_terms(problem.form()):
        name = term.names[0]
        weights = None if name is None else solution.learned.get(name)
        if name is None or not isinstance(weights, LearnedWeights):  # its coefficient may be 0
            continue
        ball = cast(MKLNorm, term.atom).weights_ball
        kept = name in {unknown.name for unknown in problem.learned}
        found.append(
            {
                "term": term.typed,
                "name": name if kept else None,
                "symbol": to_unicode(matrix_latex(name)) if kept else "θ",
                "how": "given" if ball is None else "learned" if kept else "eliminated",
                "p": None if ball is None else ball.p,
                "radius": None if ball is None else ball.radius,
                "names": list(weights.names),
                "weights": weights.values,
                "zeros": int(np.sum(_is_zero(weights.values))),
                "support": _support(problem, weights),
                "tasks": [_alike(weights, view) for view in _views(weights)],
            }
        )
    return found


def _is_zero(values: np.ndarray) -> np.ndarray:
    return values <= NO_WEIGHT * values.max(initial=0.0)


def _support(problem: Problem, weights: LearnedWeights) -> dict | None:
    """How many samples have a multiplier that is not zero, where the solver has multipliers."""
    if weights.support is None:
        return None
    return {"count": weights.support, "samples": sum(loss.tasks.n_samples for loss in problem.form().losses)}


def _views(weights: LearnedWeights) -> list[str]:
    """ "" alone where all similarities are about all features."""
    return list(dict.fromkeys(filter(None, weights.views))) or [""]


def _alike(weights: LearnedWeights, view: str) -> dict:
    """The correlations of the tasks under sum_m theta_m R_m, on the features of one view."""
    n = len(weights.task_names)
    found = {"view": view, "names": None, "correlation": None, "similarity": None, "most": [], "least": []}
    if n > MAX_PAIRS:  # n x n numbers for five lines
        return found
    similarity = weights.similarity_of(view) if view else weights.similarity
    correlation = correlation_of(similarity)
    if n <= MAX_TABLE:
        found |= {"names": list(weights.task_names), "similarity": similarity, "correlation": correlation}
    pairs = np.triu_indices(n, 1)
    values = correlation[pairs]
    known = np.flatnonzero(~np.isnan(values))  # a task that no similarity is about has no correlation
    order = known[np.argsort(-values[known], kind="stable")]
    count = min(PAIRS, len(order) // 2) if len(order) > 1 else len(order)
    for key, at in (("most", order[:count]), ("least", order[::-1][:count] if len(order) > 1 else [])):
        found[key] = [
            {
                "pair": [weights.task_names[pairs[0][k]], weights.task_names[pairs[1][k]]],
                "correlation": float(values[k]),
            }
            for k in at
        ]
    return found
