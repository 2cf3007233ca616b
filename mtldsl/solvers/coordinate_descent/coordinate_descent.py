"""Coordinate descent on working sets, for quadratic losses under l1, l21 and group norms; and the same for other smooth losses."""

from __future__ import annotations

from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.solvers.coordinate_descent import group_newton
from mtldsl.solvers.coordinate_descent.smooth_newton import NewtonRun
from mtldsl.solvers.design.design import one_smooth_loss
from mtldsl.solvers.design.row_penalty import unsupported_reason as why_not_of_penalty
from mtldsl.solvers.solver import Method, MethodSolver, Point, Watch


def unsupported_reason(form: NormalForm, quadratic: bool = False) -> str | None:
    """None for one smooth loss that is a sum over samples, quadratic or not, of one matrix under row-sparse penalties; else a sentence."""
    facts = one_smooth_loss(form, quadratic)
    return facts if isinstance(facts, str) else why_not_of_penalty(form.functions, facts.shape)


def solve(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    """(the last point, whether that is all: else steps without a working set go on)."""
    run = NewtonRun(form, tol, max_iter, start, watch)
    return (run.apart(), True) if run.prefers_apart else run.together()


METHODS = (
    Method(
        "groups",
        "steps on groups of rows",
        lambda form: group_newton.unsupported_reason(form, quadratic=True),
        group_newton.solve,
    ),
    Method(
        "rows",
        "exact steps on rows of W, on a working set",
        lambda form: unsupported_reason(form, quadratic=True),
        solve,
    ),
)


class CoordinateDescent(MethodSolver):
    """minimize over W, b    q/2 sum_i c_i ||X_i w_i + b_i - y_i||^2 + l1 and l21 norms + ridge, perhaps with W >= 0.

    A step minimises exactly over one row of W (all tasks' weights of one feature); rows that stay zero are left out. Under a norm of
    groups of rows, with one X for all tasks, a step is one on a group (`groups`).
    """

    name = "coordinate_descent"
    summary = "coordinate descent on working sets: quadratic losses with l1, l21 or group norms"
    below_guesses = True  # it descends, from the start
    methods = METHODS

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if loss.atom.quadratic is None:
                return f"{loss.typed} is not quadratic."
        facts = single_block(form)
        if isinstance(facts, str):
            return facts
        reason = why_not_of_penalty(form.functions, facts.shape)
        return reason if reason and group_newton.unsupported_reason(form, quadratic=True) else None

    def solves_only(self, form: NormalForm) -> str | None:
        quadratic = all(loss.atom.quadratic is not None for loss in form.losses)
        return None if quadratic else "models with quadratic losses"


SOLVER = CoordinateDescent()
