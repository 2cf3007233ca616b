"""The largest of the tasks' losses in the place of their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mtldsl.atoms.loss import Loss, SeparableLoss


@dataclass(frozen=True, eq=False)
class WorstTaskLoss(Loss):
    r"""max_i f_i(z_i), f_i one sum over samples a task: what `worst_task(...)` makes of a loss. A function of all tasks' predictions, which
    `mtldsl.normal_form.terms.joint_losses` computes.

    of : the loss of one task
    """

    of: SeparableLoss

    name: ClassVar[str] = "worst_task"

    @property
    def labels(self) -> str:
        return self.of.labels

    @property
    def bounded_below(self) -> float:
        return self.of.bounded_below

    @property
    def of_residuals(self) -> bool:
        return self.of.of_residuals

    @property
    def has_prox(self) -> bool:
        return self.of.has_prox
