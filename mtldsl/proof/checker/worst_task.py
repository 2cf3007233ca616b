"""The checker's own formula of the largest of the tasks' losses; the proof brings the tasks' shares of it as a witness."""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.interval import Interval
from mtldsl.proof.checker.losses import SumPart
from mtldsl.proof.checker.schema import witness_of_shares

__all__ = ["WorstTaskPart"]

#: the least share of a task, so that one without multipliers has a share to divide them by
_LEAST = 2.0**-60


class WorstTaskPart(SumPart):
    """max over tasks i of f_i(z_i), f_i a sum over samples.

    For any shares p >= 0 of sum 1 it is at least sum_i p_i f_i, and so its conjugate at most that sum's: what is inherited here is the sum with the
    coefficients p_i c_i. The shares of the witness are divided by their sum, as real numbers; without any all tasks have the same.
    """

    def __init__(self, scalar, coefficients: Interval, data, exact: bool, witness):
        m = len(data.counts)
        given = (
            np.ones(m)
            if witness is None
            else witness_of_shares(m)(witness, "the witness of worst_task")["shares"]
        )
        shares = Interval.of(np.maximum(given, _LEAST), exact)
        super().__init__(scalar, coefficients * (shares / shares.sum()), data, exact)
        self.each = SumPart(scalar, coefficients, data, exact)

    def value(self, z: Interval) -> Interval:
        return (self.scalar.value(z, self.y) * self.each.s).sums(self.offsets[:-1]).max()
