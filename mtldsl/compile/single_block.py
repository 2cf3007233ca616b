"""What many solvers take and nothing else: a loss of one weight matrix itself, beside functions of that matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mtldsl.compile.normal_form import FunctionTerm, LossTerm, NormalForm

__all__ = ["SingleBlock", "single_block", "single_loss"]

#: How a function may read the matrix: as it is; as a multiple of it; as a multiple plus a constant; in any way.
Reads = Literal["itself", "multiple", "affine", "anything"]


@dataclass(frozen=True, eq=False)
class SingleBlock:
    """The facts: the losses, the name and shape of their matrix, and the name of its intercept's block, None without one."""

    losses: tuple[LossTerm, ...]
    name: str
    shape: tuple[int, int]
    intercept: str | None

    @property
    def loss(self) -> LossTerm:
        """The first loss; where there may be one only, this one."""
        return self.losses[0]


def single_loss(form: NormalForm) -> LossTerm | str:
    """The one loss, or a sentence that says what is wrong."""
    if not form.losses:
        return "no loss has a coefficient > 0."
    return form.losses[0] if len(form.losses) == 1 else f"{form.losses[1].typed} is a second loss."


def single_block(
    form: NormalForm, functions: Reads = "itself", *, several_losses: bool = False
) -> SingleBlock | str:
    """The facts, or a sentence that says what is wrong.

    functions      : how they may read the matrix
    several_losses : or none

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
    >>> W = mtl.Weights(tasks, intercept=True)
    >>> facts = single_block(mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).form())
    >>> facts.name, facts.shape, facts.intercept, facts.loss.typed
    ('W', (3, 2), 'W.intercept', 'squared_loss(W, tasks)')
    >>> single_block(mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W[1:])).form())
    'l1_norm(W[1:, :]) is not a function of W itself.'
    """
    loss = single_loss(form)
    if not several_losses and isinstance(loss, str):
        return loss
    if len(form.weight_blocks) != 1:
        names = ", ".join(block.name for block in form.weight_blocks)
        return f"there are {len(form.weight_blocks)} weight matrices: {names}."
    (block,) = form.weight_blocks
    for loss in form.losses:
        if loss.map.identity_of != block.name:
            return f"{loss.typed} is a loss of combinations of {block.name}, not of {block.name} itself."
    for f in form.functions:
        if not _reads(f, block.name, functions):
            return f"{f.typed} is not a function of {block.name} itself."
    intercept = next((name for loss in form.losses for name in loss.intercepts), None)
    return SingleBlock(form.losses, block.name, block.shape, intercept)


def _reads(f: FunctionTerm, block: str, how: Reads) -> bool:
    if how == "itself":
        return f.map.identity_of == block
    is_multiple = f.map.multiple_of(block) != 0.0
    return how == "anything" or (is_multiple and (how == "affine" or f.map.offset is None))
