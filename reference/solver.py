"""cvxpy as a selectable solver: `problem.solve(solver="cvxpy", backend="clarabel")`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from mtldsl.normal_form.form import NormalForm
from mtldsl.reference.metrics import metrics_of
from mtldsl.utils import interrupts

from .backends import SETTINGS as PROCESSES
from .compile import to_cvxpy
from .label_graph import refusal
from .metrics import missing_formula
from .registry import FORMULAS
from .solve import ACCURACY, ReferencePoint, backends_to_try, solve_reference


@dataclass(frozen=True)
class AccuracySettings:
    """Limit of what a backend is asked for."""

    least_accuracy: float = 1e-12  # accuracy at which nothing is gained by asking double precision for more


SETTINGS = AccuracySettings()


class CvxpySolver:
    """The reference behind the same face as the fast solvers; its multipliers make its points certifiable.

    Option `backend`: one of "auto", "clarabel", "scs" (both take every model) and "osqp" (quadratic
    programs).
    """

    name = "cvxpy"
    summary = (
        "the reference formulation through cvxpy (Clarabel, SCS or OSQP): any model of the language, slowly"
    )
    options: ClassVar[dict[str, object]] = {"backend": "auto"}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    writes: ClassVar[tuple[str, ...]] = ()
    max_iter: ClassVar[int] = 1_000_000_000  # more than any backend's own limit, which then holds
    takes_nonconvex: ClassVar[bool] = False
    needs_rows: ClassVar[bool] = True
    takes_spans: ClassVar[bool] = False
    below_guesses: ClassVar[bool] = False

    def refuses(self, form: NormalForm) -> str | None:
        for term in (*form.losses, *form.functions):
            # of the largest of the tasks' losses, that of one task's is asked for
            atom = getattr(term.atom, "of", term.atom) if term in form.losses else term.atom
            if atom.name not in FORMULAS:
                return f"the reference has no formula for {term.typed}"
        for term in form.losses:
            reason = refusal(term)
            if reason is not None:
                return f"{term.typed}: {reason}"
            for metric in metrics_of(term):
                reason = missing_formula(metric)
                if reason is not None:
                    return f"{term.typed}: {reason}"
        return None

    def solves_only(self, form: NormalForm) -> str | None:
        return None

    def is_nearest(self, form: NormalForm) -> bool:
        return False

    def flops(self, form: NormalForm) -> float:
        return 0.0  # it shows one point

    def expected_flops(self, form: NormalForm) -> float:
        return math.inf

    def work(self, form: NormalForm, point) -> float:
        return 0.0

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start, watch, backend="auto"
    ) -> ReferencePoint:
        """Solve at the backend's usual accuracy; while `watch` is not content, again a hundred times tighter.

        A backend cannot start from a point, so `start` is not used; `max_iter` bounds the iterations of each
        run, below the backend's own limit.
        """
        model = to_cvxpy(form, split=True)
        accuracy = max(min(ACCURACY[backends_to_try(model, backend)[0]], 0.01 * tol), SETTINGS.least_accuracy)
        limit = max_iter if max_iter < self.max_iter else None
        while True:
            left = interrupts.remaining_seconds()
            point = solve_reference(form, backend, accuracy=accuracy, max_iter=limit, model=model)
            cut_short = left < inf and interrupts.remaining_seconds() <= 1.01 * PROCESSES.proof_share * left
            point.stopped = "time_limit" if cut_short else ""
            if watch(point) or accuracy <= SETTINGS.least_accuracy or cut_short:
                return point
            accuracy = max(0.01 * accuracy, SETTINGS.least_accuracy)


SOLVER = CvxpySolver()
