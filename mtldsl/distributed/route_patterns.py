"""Patterns of the choice between solvers whose passes read rows on other machines; earlier patterns go further behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtldsl.distributed import distributed_newton
from mtldsl.distributed.consensus import hessians_are_too_many
from mtldsl.distributed.distributed_newton import hessian_shares
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.route_table import RoutePattern


@dataclass(frozen=True)
class PatternSettings:
    """Numbers of the patterns, measured on rows in 4 to 64 parts.

    consensus_parts   : parts that a task's rows lie in, in the mean, up to which their agreement takes fewer passes
    hessian_entries   : of all tasks' Hessians, from which on Newton's passes are too dear
    newton_passes     : of Newton's method
    additional_passes : of majorization, beside these
    task_products     : price of a pass per task
    reading_products  : price of a pass per reading
    """

    consensus_parts: float = 2.0
    hessian_entries: int = 2_000_000
    newton_passes: float = 13.0
    additional_passes: float = 27.0
    task_products: float = 28.0
    reading_products: float = 20.0


SETTINGS = PatternSettings()


def prefers_newton_to_consensus(form: NormalForm) -> bool:
    """Tell where Newton's method takes fewer passes than the agreement of parts: smooth losses, learned kernels, tasks in many parts."""
    if hessians_are_too_many(form) or len(form.losses) != 1:
        return False
    (loss,) = form.losses
    tasks: Any = loss.tasks
    if loss.atom.smooth or any(f.atom.weighs_kernels for f in form.functions):
        return True
    return bool(tasks.label_facts.parts.mean() > SETTINGS.consensus_parts)


def prefers_newton_to_majorization(form: NormalForm) -> bool:
    """Tell where Newton's passes, which estimate Hessians, cost little more than those of gradients, of which there are three times as many."""
    (d, m), *_ = (block.shape for block in form.weight_blocks)
    if distributed_newton.SOLVER.refuses(form) is not None or m * (d + 1) ** 2 > SETTINGS.hessian_entries:
        return False
    share = max(float(hessian_shares(loss.tasks.counts, d).mean()) for loss in form.losses)
    price = SETTINGS.task_products * m + SETTINGS.reading_products
    return SETTINGS.newton_passes * share * d * m <= SETTINGS.additional_passes * price


PATTERNS = (
    RoutePattern("large Hessians", "", later=("newton_by_passes",), when=hessians_are_too_many),
    RoutePattern("cheap Hessians", "", later=("majorization",), when=prefers_newton_to_majorization),
    RoutePattern("parts that rarely agree", "", later=("consensus",), when=prefers_newton_to_consensus),
)
