"""The reference on some tasks alone, where data are too large for cvxpy: by its own formulas and its own evaluation of maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.task_subset import TaskSubset, losses_of_tasks, why_not_losses

from .compile import to_cvxpy
from .maps import image_at
from .registry import formula_of_loss
from .workload import nonzeros

__all__ = ["of_tasks", "value_and_violation", "why_not_by_tasks"]

#: Nonzero scalars of data that cvxpy evaluates at once (measured on 10,000,000 in 1,000 tasks: so, 4 s and 20 MB; all at once,
#: 8 s and 300 MB).
AT_ONCE = 2_000_000


def why_not_by_tasks(form: NormalForm) -> str | None:
    """None where the model can be restricted to tasks, else one sentence."""
    return TaskSubset([0], {}).accepts(form) or _why_not_formulas(form)


def of_tasks(form: NormalForm, at: Blocks, which) -> tuple[NormalForm, Blocks]:
    """(the model over columns `which` of every block, all other columns kept at the blocks `at`; `at` in these columns)."""
    subset = TaskSubset(which, at, image_at)
    return subset.apply(form)[0], subset.restricted(at)


def value_and_violation(form: NormalForm, blocks: Blocks) -> tuple[float, float]:
    """(objective, violation) of a convex model at arrays, by the reference's formulas: of large data, some tasks at a time."""
    size = sum(nonzeros(loss) for loss in form.losses)
    if size <= AT_ONCE or why_not_losses(form) or _why_not_formulas(form):
        model = to_cvxpy(form)
        return model.objective_value(blocks), model.violation(blocks)
    model = to_cvxpy(replace(form, losses=()))
    total, violation = model.objective_value(blocks), model.violation(blocks)
    m = form.losses[0].tasks.n_tasks
    for which in np.array_split(np.arange(m), min(m, -(-size // AT_ONCE))):
        part = losses_of_tasks(form, which)
        total += to_cvxpy(part).objective_value({name: block[:, which] for name, block in blocks.items()})
    return total, violation


def _why_not_formulas(form: NormalForm) -> str | None:
    by_planes = (loss for loss in form.losses if formula_of_loss(loss).by_planes)
    return next((f"{loss.typed} is given by planes" for loss in by_planes), None)
