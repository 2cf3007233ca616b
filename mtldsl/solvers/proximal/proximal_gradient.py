"""Proximal gradient methods, for smooth losses and functions whose sum has an exact proximal step."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.proximal import newton as proximal_newton
from mtldsl.solvers.proximal import shared_squares
from mtldsl.solvers.proximal.accelerated_gradient import AcceleratedGradient
from mtldsl.solvers.proximal.extrapolated_gradient import ExtrapolatedGradient
from mtldsl.solvers.proximal.newton import ProximalNewton
from mtldsl.solvers.proximal.part import ProximalPart, partition
from mtldsl.solvers.proximal.smooth_part import DataPiece, SmoothPart
from mtldsl.solvers.rows import selection as row_selection
from mtldsl.solvers.smooth import group_newton, ridge, row_sparse
from mtldsl.solvers.solver import Point, Solver, Watch

__all__ = ["SOLVER", "ProximalGradient"]


_SHIFT = 60  # iterations in which gradient steps solve what is easy for them
_MANY = 150  # of them, after which Newton's come too late to be waited for


class ProximalGradient(Solver):
    """minimize f(x) + h(x): f smooth (the losses, and smooth functions of linear maps), h with an exact prox on every block.

    First order (`AcceleratedGradient`) where a step is cheap against a Hessian, second order (`ProximalNewton`) where the tasks'
    Hessians are small: a few of them replace thousands of steps on collinear features. Squares on one X under functions of singular
    values are split in the coordinates of X's own (`shared_squares`). One loss under l1 and l21 norms has
    Newton steps on working sets (`smooth.row_sparse`, `smooth.group_newton`); several losses under penalties that leave out rows of a large matrix are
    worked on at the rows that matter (`RowSelection`).
    """

    name = "proximal_gradient"
    summary = "accelerated proximal gradient: smooth losses, functions whose sum has an exact proximal step"
    takes_spans = True
    below_guesses = True  # with a proof no point lies above another by more than the accuracy; without one they are looked at

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if not loss.atom.smooth:
                return f"{loss.typed} is not smooth."
        parts = partition(form)
        return parts if isinstance(parts, str) else None

    def solves_only(self, form: NormalForm) -> str | None:
        return None if all(loss.atom.smooth for loss in form.losses) else "models with smooth losses"

    def shift(self, form: NormalForm) -> float:
        """Measured: slopes that are constant but for jumps leave gradient steps with hundreds of iterations at weak penalties, .5 and .7 s where
        ADMM takes .03 and .08; Newton's models of more rows than samples take 1 to 3 s where it takes .2. Other slopes on dense inputs
        where Newton steps come late: what takes 150 iterations and more takes ADMM, from the start, a half to a fifth of the time."""
        special = _special(form)
        if special is row_sparse:
            return row_sparse.SHIFT
        if special in (shared_squares, group_newton, ridge):
            return super().shift(form)
        curved = [loss for loss in form.losses if loss.atom.quadratic is None]
        jumps = any(loss.atom.piecewise_quadratic for loss in curved)
        # ADMM's prox of a loss that is a sum over samples is a root a sample
        is_plain = len(curved) == 1 and curved[0].atom.separable and not curved[0].tasks.is_sparse
        waits = jumps or (is_plain and _gradient_steps(form) > _MANY)
        return _SHIFT if waits else super().shift(form)

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        special = _special(form)
        if special is shared_squares:
            point, done = shared_squares.SharedSquares(form).run(tol, max_iter, start, watch)
            return point if done else solve_whole(form, max_iter, point, watch)
        if special is row_sparse or special is group_newton:
            by_rows = row_sparse.solve if special is row_sparse else group_newton.solve
            point, done = by_rows(form, tol, max_iter, start, watch)
            return point if done or watch.expired else solve_whole(form, max_iter, point, watch, tol)
        if special is ridge:
            return ridge.solve(form, tol, max_iter, start, watch)
        if row_selection.pays(form):
            return row_selection.RowSelection(form, solve_whole).run(max_iter, start, watch)
        return solve_whole(form, max_iter, start, watch, tol)


def _gradient_steps(form: NormalForm) -> float:
    """How many there are before Newton's: no end of them where these are not for the model."""
    parts = partition(form)
    if isinstance(parts, str) or proximal_newton.why_not(form, parts.moved) is not None:
        return np.inf
    return proximal_newton.gradient_steps_first(form)


def _special(form: NormalForm) -> ModuleType | None:
    """The first that takes the form; a path asks but once."""
    if "special" not in form.remembered:
        every = (shared_squares, row_sparse, group_newton, ridge)
        form.remembered["special"] = next((one for one in every if one.why_not(form) is None), None)
    return form.remembered["special"]


def solve_whole(
    form: NormalForm, max_iter: int, start: Point | None, watch: Watch, tol: float = 0.0
) -> Point:
    """First order, second order, or the first until the second is known to be worth its price."""
    parts = partition(form)
    assert not isinstance(parts, str)  # `refuses` was asked
    proximal = ProximalPart(form, parts)
    layout = proximal.layout
    x = np.zeros(layout.size) if start is None else layout.flat(start.blocks)
    x = proximal.prox(x, dict.fromkeys(layout.shapes, 0.0))  # where there are constraints, onto them
    second_order = proximal_newton.why_not(form, parts.moved) is None
    steps = proximal_newton.gradient_steps_first(form) if second_order else max_iter
    done, duals = 0, None if start is None else start.function_duals
    if steps > 0:
        smooth = SmoothPart(form, [form.functions[k] for k in parts.moved])
        by_data = all(isinstance(piece, DataPiece) for piece in smooth.pieces[: len(form.losses)])
        curved = by_data and any(loss.atom.quadratic is None for loss in form.losses)
        method = (
            ExtrapolatedGradient(smooth, proximal, x, tol)
            if curved
            else AcceleratedGradient(smooth, proximal, x)
        )
        point, stopped = method.run(min(steps, max_iter), watch)
        if stopped or point.iteration >= max_iter or watch.expired:
            return point
        x, done, duals = layout.flat(point.blocks), point.iteration, point.function_duals
    y = None if duals is None else proximal.flat_multipliers(duals)
    return ProximalNewton(form, proximal, x, y, done).run(max_iter, watch)


SOLVER = ProximalGradient()
