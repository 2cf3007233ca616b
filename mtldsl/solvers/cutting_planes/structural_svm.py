"""Dual ascent on planes, for structured losses beside a ridge: the structured support vector machine, one task at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.errors import SolverError
from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task
from mtldsl.solvers.cutting_planes.oracle import Bundle, Oracle
from mtldsl.solvers.solver import FLOPS_PER_CALL, Point, Watch

#: Rounds without weight after which a plane is dropped.
IDLE_ROUNDS = 50


def unsupported_reason(form: NormalForm) -> str | None:
    """None for structured hinges of one weight matrix beside plain ridges; else one sentence."""
    for term in form.losses:
        if not has_one_maximum_a_task(term):
            return f"{term.typed} is not a structured_hinge."
    facts = single_block(form)
    if isinstance(facts, str):
        return facts
    if facts.intercept:
        return f"{facts.loss.typed} has an intercept, on which there is no ridge."
    for f in form.functions:
        if f.atom.entry_quadratic is None:
            return f"{f.typed} is not a ridge of the loss's weights."
        if np.ptp(f.atom.entry_quadratic) > 0:
            return f"{f.typed} has unequal weights."
    return None if form.functions and _modulus(form) > 0 else "there is no ridge."


class StructuralSVM:
    """minimize sum_i c_i G_i(w_i) + r / 2 ||W||_F^2, G_i a maximum of planes.

    The dual of task i is a quadratic program over a simplex of planes, w_i = -(c_i / r) sum_k beta_k planes_k. The plane that is
    highest at a point between w_i and the best one so far joins, and the program is solved again: every round raises the dual
    value, which is the certificate.

    pull : where between the best point (0) and the model's (1) the oracle is asked, in (0, 1]

    Source: Joachims, Finley and Yu, "Cutting-plane training of structural SVMs", Machine Learning 77 (2009).
    """

    def __init__(self, form: NormalForm, tol: float, start: Point | None, pull: float):
        if not 0.0 < pull <= 1.0:
            raise SolverError(f"pull={pull!r}: write a number in (0, 1], such as 0.25")
        self.loss, self.tol, self.pull, self.modulus = form.losses[0], tol, pull, _modulus(form)
        self.oracle, self.rounds_worth = Oracle(self.loss), 0.0
        self.coefficients = self.oracle.coefficients
        state = start.state if start is not None and start.state.get("solver") == "dual_ascent" else {}
        self.bundle = Bundle.of(self.oracle, state.get("bundle"))

    def run(self, max_iter: int, watch: Watch) -> Point:
        m = self.loss.tasks.n_tasks
        steps = self.coefficients / self.modulus
        best, best_value = np.zeros((m, self.oracle.size)), np.full(m, np.inf)
        next_look = 1
        for iteration in range(1, max_iter + 1):
            W, promised = self.bundle.proximal_steps(np.zeros_like(best), steps)
            bound = self.coefficients * promised + 0.5 * self.modulus * np.einsum("ij,ij->i", W, W)
            asked = W if iteration == 1 else best + self.pull * (W - best)
            for at in (
                (asked, W) if iteration % 3 == 0 else (asked,)
            ):  # the model's own point cannot be left out for ever
                found = self.oracle(at)
                value = self.coefficients * found.values + 0.5 * self.modulus * np.einsum("ij,ij->i", at, at)
                better = value < best_value
                best[better], best_value[better] = at[better], value[better]
                height = found.deltas + np.einsum("ij,ij->i", found.slopes, W)
                new = np.flatnonzero(height > promised + 1e-15 * np.abs(promised))
                self.bundle.add(found, new)
            gap = best_value.sum() - bound.sum()
            close = gap <= self.tol * max(abs(best_value.sum()), 1e-300)
            last = iteration == max_iter or watch.expired
            self.rounds_worth = iteration + self.bundle.work / self.oracle.work
            if last or close or self.rounds_worth >= next_look:
                next_look = 2.0 * self.rounds_worth
                point = self._point(best, iteration)
                if watch(point) or last:
                    return point
            if iteration % IDLE_ROUNDS == 0:
                self.bundle.drop_idle(IDLE_ROUNDS)
        return point

    def _point(self, W: np.ndarray, iteration: int) -> Point:
        state = {"solver": "dual_ascent", "bundle": self.bundle}
        notes = {"oracle_calls": self.oracle.calls, "planes": int(self.bundle.counts.sum())}
        # planes found since have no weight yet, and the multipliers are those of the last program
        work = 2.0 * self.oracle.work * self.rounds_worth + FLOPS_PER_CALL * iteration
        return Point(self.oracle.blocks(W), [self.bundle.duals()], None, iteration, state, notes, work=work)


def _modulus(form: NormalForm) -> float:
    ridges: Any = form.functions  # `unsupported_reason` was asked: each has the quadratic
    return float(sum(f.coefficient * np.ravel(f.atom.entry_quadratic)[0] for f in ridges))
