"""What a run knows at any time: its best point, the best bound, the certificate of both, and its clocks."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.proof.bound import Bound
from mtldsl.proof.certificate import Certificate
from mtldsl.proof.gap import Scale
from mtldsl.solvers.best_point import BestPoint, Kept
from mtldsl.system import compiling

__all__ = ["Evidence"]


class Evidence:
    """The best primal point and the best bound, whichever solver found them."""

    def __init__(self, form: NormalForm, tol: float, max_seconds: float | None):
        self.form, self.tol, self.max_seconds = form, tol, max_seconds
        self.started, self.compiled = time.perf_counter(), compiling.spent()
        self.scale = Scale(form)
        self.best = BestPoint(form, tol)
        self.bound, self.note, self.bound_duals = -np.inf, "no bound was computed", (None, None)
        self.proof: Bound | None = None
        self._about: tuple = ()
        self._certificate: Any = None  # that of `_about`, once there is something to tell

    @property
    def elapsed(self) -> float:
        """Seconds by the clock on the wall, which time limits are about."""
        return time.perf_counter() - self.started

    @property
    def seconds(self) -> float:
        """The same without what went into compiling, which a second solve does not do again."""
        return self.elapsed - (compiling.spent() - self.compiled)

    @property
    def remaining(self) -> float | None:
        return None if self.max_seconds is None else max(self.max_seconds - self.elapsed, 0.0)

    @property
    def expired(self) -> bool:
        return self.max_seconds is not None and self.elapsed > self.max_seconds

    @property
    def kept(self) -> Kept:
        return self.best.kept

    @property
    def duals(self) -> tuple:
        """The multipliers that came with the best point; where none did, those of the best bound."""
        own = self.kept.duals
        return self.bound_duals if self.kept.is_guess and self.form.is_convex else own

    @property
    def certificate(self) -> Certificate:
        """That of the best point and the best bound so far."""
        kept, about = self.best.kept, self._about
        if not about or about[0] is not kept or about[1:] != (self.bound, self.note, self.proof):
            self._about = kept, self.bound, self.note, self.proof
            self._certificate = Certificate(
                kept.objective, self.bound, kept.violation, self.scale, self.note, kept.stationarity,
                self.form.constant, kept.rounding, self.proof,
            )  # fmt: skip
        return self._certificate
