"""About how large the duality gap of a point is, at the price of one product: where a look at the certificate would pay."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.compile.single_block import single_block
from mtldsl.solvers.smooth.samples import SmoothLoss

__all__ = ["GapEstimate"]


class GapEstimate:
    """One loss of one matrix under one norm: the slopes u as dual point, scaled by t into the norm's dual ball.

    f(z) + f*(u) = <u, z>, so that the gap is g(W) + t <u, X W>, what is of second order in 1 - t, and what balancing the slopes costs beside intercepts.
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

    def is_within(self, target: float, blocks: Blocks, z, u, pull) -> bool:
        """Relative to the objective; z: predictions, u: slopes there, pull: minus the gradient in the matrix.

        Beside intercepts the dual point is the slopes balanced, which takes another product: only where these alone would do.
        """
        value, penalised = self.loss.value(z), self.function.value(blocks)
        allowed = target * max(abs(value + penalised), np.finfo(float).tiny)
        if not self._gap(blocks, pull, value, penalised) <= allowed:
            return False
        if not self.loss.intercepts:
            return True
        samples = SmoothLoss.of(self.loss)
        curvature = samples.curvature(z)
        balanced, sums, totals = samples.balanced(u, curvature), samples.sums(u), samples.sums(curvature)
        paid = 0.5 * float(np.sum(np.divide(sums**2, totals, out=np.zeros_like(sums), where=totals > 0)))
        moved = {name: np.zeros_like(block) for name, block in blocks.items()}
        self.loss.add_adjoint(balanced, moved)
        return self._gap(blocks, -moved[self.block], value, penalised) + paid <= allowed

    def _gap(self, blocks: Blocks, pull, value: float, penalised: float) -> float:
        t = 1.0 / max(1.0, self.function.dual_gauge(pull))
        return penalised - t * float(np.vdot(pull, blocks[self.block])) + (1.0 - t) ** 2 * abs(value)

    def dual(self, z, u) -> np.ndarray:
        """The slopes u at predictions z as a dual point."""
        samples = SmoothLoss.of(self.loss)
        return samples.balanced(u, samples.curvature(z)) if self.loss.intercepts else u
