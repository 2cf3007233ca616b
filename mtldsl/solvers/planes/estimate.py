"""A running guess of the gap from what the iteration has anyway; the certificate has the last word."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm

__all__ = ["Estimate"]


class Estimate:
    """Best dual value so far, for a single norm beside the loss.

    Multipliers become feasible by mixing with the true labelling: a factor s = min(1, 1 / dual norm), one a task where the norm is a
    sum over tasks.
    """

    def __init__(self, form: NormalForm, d: int):
        self.form, self.d = form, d
        only = form.functions[0] if len(form.functions) == 1 else None
        self.norm = only if only is not None and only.atom.norm else None
        self.forget()
        self.bound = -np.inf

    def forget(self) -> None:
        """The kept multipliers; the bound that they proved stays."""
        self.beta, self.shrink = None, None

    def penalty(self, S: np.ndarray) -> float:
        block = self.form.losses[0].map.identity_of
        assert block is not None  # refuses() lets through only a loss of one block itself
        x = {block: S[:, : self.d].T}
        return sum(f.value(x) for f in self.form.functions)

    def see_dual(self, Z: np.ndarray, expected: np.ndarray, bundle) -> None:
        if self.norm is None:
            return
        shrink = self._shrink(Z[:, : self.d].T)
        value = float(shrink @ expected)
        if value > self.bound or self.beta is None:
            self.bound, self.beta, self.shrink = max(value, self.bound), bundle.beta.copy(), shrink

    def _shrink(self, Z: np.ndarray) -> np.ndarray:
        norm: Any = self.norm  # there, and a norm: these have gauges
        gauges = norm.atom.column_gauges(Z / norm.coefficient)
        gauges = np.full(Z.shape[1], norm.dual_gauge(Z)) if gauges is None else gauges
        return 1.0 / np.maximum(1.0, gauges)

    def gap(self, objective: float) -> float:
        if not (np.isfinite(objective) and np.isfinite(self.bound)):
            return 0.0 if self.norm is None else np.inf  # nothing known: have a look
        return (objective - self.bound) / max(abs(objective), abs(self.bound), 1e-300)

    def best(self, bundle) -> tuple[np.ndarray, np.ndarray | None]:
        """(beta, shrink) of the best dual value since planes were last dropped; otherwise the present ones."""
        if self.beta is None:
            return bundle.beta, self.shrink
        beta = np.zeros_like(bundle.beta)
        beta[:, : self.beta.shape[1]] = self.beta
        return beta, self.shrink
