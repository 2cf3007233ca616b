"""About how large the duality gap of a point is, at the price of one product: where a look at the certificate would pay."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.compile.single_block import single_block

__all__ = ["GapEstimate"]


class GapEstimate:
    """One loss of one matrix under one norm: the slopes u as dual point, scaled by t into the norm's dual ball.

    f(z) + f*(u) = <u, z>, so that the gap is g(W) + t <u, X W> and what is of second order in 1 - t and in what intercepts still bring.
    """

    def __init__(self, loss: LossTerm, function: FunctionTerm, block: str):
        self.loss, self.function, self.block = loss, function, block

    @classmethod
    def of(cls, form: NormalForm) -> GapEstimate | None:
        facts = single_block(form)
        if isinstance(facts, str) or len(form.functions) != 1:
            return None
        (function,) = form.functions
        fits = function.atom.norm and not function.is_constraint and facts.loss.map.offset is None
        return cls(facts.loss, function, facts.name) if fits and facts.loss.atom.separable else None

    def __call__(self, blocks: Blocks, z, u, pull) -> float:
        """Relative to the objective; z: predictions, u: slopes there, pull: minus the gradient in the matrix."""
        loss, W = self.loss, blocks[self.block]
        t = 1.0 / max(1.0, self.function.dual_gauge(pull))
        value, penalised = loss.value(z), self.function.value(blocks)
        gap = penalised - t * float(np.vdot(pull, W)) + (1.0 - t) ** 2 * abs(value)
        if loss.intercepts:
            starts = loss.tasks.offsets[:-1]
            sums, squares = np.add.reduceat(u, starts), np.add.reduceat(u * u, starts)
            gap += float(np.sum(np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)))
        return gap / max(abs(value + penalised), np.finfo(float).tiny)
