"""What calibrated losses and penalties of the spectrum say of a run, and what came of several starts, as plain values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mtldsl.atoms.structures import ConcaveSpectrum
from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.problem import Problem
from mtldsl.solution.solution import Solution

__all__ = ["describe_calibration", "describe_smoothing", "describe_starts"]

#: A task whose residuals are this small beside its labels is fitted exactly: its weight is not a number to compare.
EXACT = 1e-6

#: Objectives that differ by less, relatively, are of one stationary point, or of points that are as good.
_SAME = 1e-6


def describe_calibration(problem: Problem, solution: Solution) -> dict | None:
    """Weight and noise level of every task, where a loss gives tasks with more noise less weight; None elsewhere.

    A squared loss weighs all residuals alike, and one task has none to be compared with.
    """
    levels, weights = solution.noise_levels, solution.task_weights
    if levels is None or weights is None or len(weights) < 2:
        return None
    loss = next(loss for loss in problem.form().losses if loss.atom.radial)
    if not _calibrates(loss):
        return None
    sizes = np.array([np.sqrt(np.mean(y**2)) for y in loss.tasks.per_task(loss.tasks.targets)])
    exact = levels <= EXACT * np.where(sizes > 0, sizes, 1.0)
    rows = zip(loss.tasks.task_names, levels, weights, exact, strict=True)
    return {
        "loss": loss.typed,
        "tasks": [
            {"task": name, "noise_level": float(level), "weight": float(weight), "exact": bool(zero)}
            for name, level, weight, zero in rows
        ],
    }


def _calibrates(loss: LossTerm) -> bool:
    """Whether the weight of a task depends on its residuals."""
    weights = loss.atom.weight_of_norm(np.array([1.0, 2.0]))
    return bool(weights[0] != weights[1])


def describe_smoothing(form: NormalForm, block: str, singular: np.ndarray) -> dict | None:
    """Where a penalty of this block's spectrum is smoothed: sqrt(eps), and how many singular values are larger.

    Below it such a penalty is a multiple of sigma^2, and makes nothing exactly zero.
    """
    levels = [
        np.sqrt(f.atom.eps) / abs(f.map.multiple_of(block))
        for f in form.functions
        if isinstance(f.atom, ConcaveSpectrum) and f.atom.is_reweighted and f.map.multiple_of(block)
    ]
    if not levels:
        return None
    level = float(max(levels))
    return {"level": level, "count": int(np.sum(singular > level))}


def describe_starts(solution: Solution) -> dict | None:
    """One row a start, and how far the stationary points found lie apart; None where there was one start."""
    if not solution.starts:
        return None
    certified = sorted(
        row["objective"] for row in solution.starts if row["status"] in ("stationary", "optimal")
    )
    apart = [b - a > _SAME * max(abs(a), abs(b)) for a, b in pairwise(certified)]
    return {
        "rows": solution.starts,
        "certified": len(certified),
        "different": sum(apart) + bool(certified),
        "spread": solution.spread,
    }
