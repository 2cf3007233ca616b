"""Which kind of term a loss is: what it is a sum over."""

from __future__ import annotations

from mtldsl.atoms.function import Loss
from mtldsl.atoms.losses.worst_task import WorstTaskLoss
from mtldsl.compile.normal_form import LossTerm
from mtldsl.compile.terms.distributed import DistributedTerm
from mtldsl.compile.terms.label_graph import LabelGraphTerm
from mtldsl.compile.terms.radial import RadialTerm
from mtldsl.compile.terms.rows import RowTerm
from mtldsl.compile.terms.structured import StructuredTerm
from mtldsl.compile.terms.structured_elsewhere import StructuredElsewhere
from mtldsl.compile.terms.worst_task import WorstTaskTerm
from mtldsl.tasks import Tasks

__all__ = ["kind_of"]


def kind_of(loss: Loss, tasks: Tasks) -> type[LossTerm]:
    """What a loss is a sum over: samples, labellings of a graph, or tasks; or parts of the rows, where these are elsewhere."""
    if tasks.is_distributed:
        whole = loss.max_affine and not loss.separable and loss.labels != "indicators"
        return StructuredElsewhere if whole else DistributedTerm
    if loss.separable:
        return LossTerm
    if isinstance(loss, WorstTaskLoss):
        return WorstTaskTerm
    if loss.labels == "indicators":
        return LabelGraphTerm
    if loss.labels == "classes":
        return RowTerm
    if loss.max_affine:
        return StructuredTerm
    return RadialTerm if loss.radial else LossTerm
