"""Patterns of the choice between solvers whose passes read rows on other machines; earlier patterns go further behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.distributed import distributed_newton
from mtldsl.distributed.consensus import hessians_are_too_many
from mtldsl.distributed.distributed_ascent import curvatures
from mtldsl.distributed.distributed_newton import hessian_shares
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.route_table import Pattern
from mtldsl.solvers.sdca.dual_ascent import kernel_form

__all__ = ["PATTERNS", "SETTINGS", "PatternSettings"]


class PatternSettings:
    """Numbers of the patterns, measured on rows in 4 to 64 parts.

    parts_of_ascent    : parts that a task's rows lie in, in the mean, up to which steps on samples take fewer passes
    parts_of_consensus : the same for the agreement of parts
    steepest_step      : of a sample's step, in units of the regularizer, up to which steps on samples are long enough
    hessian_entries    : of all tasks' Hessians, from which on Newton's passes are too dear
    passes             : of Newton's method, and by how many more majorization takes
    prices             : of a pass, in products: per task, and per reading
    """

    parts_of_ascent = 1.5
    parts_of_consensus = 2.0
    steepest_step = 4.0
    hessian_entries = 2_000_000
    passes = 13.0, 27.0
    prices = 28.0, 20.0


SETTINGS = PatternSettings()


def prefers_fewer_passes_to_ascent(form: NormalForm) -> bool:
    """Tell where steps on samples take more passes: many parts in the same direction, or through what all tasks share, have to be short."""
    found = kernel_form(form)
    if isinstance(found, str):
        return False
    tasks: Any = found.loss.tasks
    if found.loss.atom.smooth or found.name is not None:
        return True
    if tasks.label_facts.parts.mean() > SETTINGS.parts_of_ascent:
        return True
    factor = found.norm.kernels[0].factor
    own = np.asarray(factor.multiply(factor).sum(axis=1)).ravel() / found.coefficient
    return bool(np.median(curvatures(found.loss) * own) > SETTINGS.steepest_step)


def prefers_newton_to_consensus(form: NormalForm) -> bool:
    """Tell where Newton's method takes fewer passes than the agreement of parts: smooth losses, learned kernels, tasks in many parts."""
    if hessians_are_too_many(form) or len(form.losses) != 1:
        return False
    (loss,) = form.losses
    tasks: Any = loss.tasks
    if loss.atom.smooth or any(f.atom.weighs_kernels for f in form.functions):
        return True
    return bool(tasks.label_facts.parts.mean() > SETTINGS.parts_of_consensus)


def prefers_newton_to_majorization(form: NormalForm) -> bool:
    """Tell where Newton's passes, which estimate Hessians, cost little more than those of gradients, of which there are three times as many."""
    (d, m), *_ = (block.shape for block in form.weight_blocks)
    if distributed_newton.SOLVER.refuses(form) is not None or m * (d + 1) ** 2 > SETTINGS.hessian_entries:
        return False
    share = max(float(hessian_shares(loss.tasks.counts, d).mean()) for loss in form.losses)
    (newton, more), (a_task, a_reading) = SETTINGS.passes, SETTINGS.prices
    return newton * share * d * m <= more * (a_task * m + a_reading)


PATTERNS = (
    Pattern("large Hessians", "", later=("newton_by_passes",), when=hessians_are_too_many),
    Pattern("cheap Hessians", "", later=("majorization",), when=prefers_newton_to_majorization),
    Pattern("parts that rarely agree", "", later=("consensus",), when=prefers_newton_to_consensus),
    Pattern("short steps on samples", "", later=("ascent_by_passes",), when=prefers_fewer_passes_to_ascent),
)
