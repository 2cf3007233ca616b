"""Accelerated proximal gradient, for smooth losses and penalties whose proxes combine exactly on every block."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.prox_of_sum import prox_of_sum, why_not
from mtldsl.compile.normal_form import Blocks, FunctionTerm, NormalForm
from mtldsl.solvers.smooth_part import smooth_part
from mtldsl.solvers.solver import Point, Watch

__all__ = ["SOLVER", "ProximalGradient"]


class ProximalGradient:
    """x+ = prox_{g/L}(y - grad f(y)/L), y = x + beta (x - x_before), with an adaptive step and restarts.

    The step 1/L is found by backtracking on the descent inequality and grows again by a tenth a step; momentum starts anew where
    it points uphill (the gradient scheme). A quadratic loss with more rows than features is iterated on its Gram matrices.
    Source: Beck and Teboulle, "A fast iterative shrinkage-thresholding algorithm", SIAM J. Imaging Sci. 2 (2009); O'Donoghue and
    Candes, "Adaptive restart for accelerated gradient schemes", Found. Comput. Math. 15 (2015).
    """

    name = "proximal_gradient"
    summary = "accelerated proximal gradient: smooth losses, and regularizers whose proxes combine exactly"
    options: dict = {}  # noqa: RUF012
    max_iter = 50_000

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if not (loss.atom.convex and loss.atom.smooth):
                return f"{loss.typed} is not smooth."
        plan = _plan(form)
        return plan if isinstance(plan, str) else None

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        run = _Run(form, *_plan(form), start)
        for iteration in range(1, max_iter + 1):
            run.step()
            if run.is_worth_a_look(iteration, tol) or iteration == max_iter or watch.expired:
                point = run.point(iteration)
                if watch(point):
                    return point
        return run.point(max_iter)


def _plan(form: NormalForm) -> tuple[dict[str, list[int]], list[int]] | str:
    """(functions to take by prox, block by block; functions to take by gradient), or the reason why there is no such plan.

    A smooth penalty joins the prox of its block where that is exact, since then it costs nothing in the step size.
    """
    by_prox: dict[str, list[int]] = {block.name: [] for block in form.blocks}
    by_gradient: list[int] = []
    for k, f in enumerate(form.functions):
        block = f.map.identity_of
        if block is not None:
            by_prox[block].append(k)
        elif _is_smooth(f):
            by_gradient.append(k)
        else:
            return (
                f"{f.typed} is not smooth and acts on a linear image of the weights, where no prox is known."
            )
    for block, indices in by_prox.items():
        if prox_of_sum(_terms(form, indices)) is None:
            smooth = [
                k for k in indices if _is_smooth(form.functions[k]) and form.functions[k].atom.name != "ridge"
            ]
            rest = [k for k in indices if k not in smooth]
            if prox_of_sum(_terms(form, rest)) is None:
                return f"{why_not(_terms(form, rest))[:-1]}, in {_typed(form, rest)}."
            by_prox[block], by_gradient = rest, by_gradient + smooth
    return by_prox, by_gradient


def _terms(form: NormalForm, indices) -> list:
    return [(form.functions[k].coefficient, form.functions[k].atom) for k in indices]


def _typed(form: NormalForm, indices) -> str:
    return ", ".join(form.functions[k].typed for k in indices)


def _is_smooth(f: FunctionTerm) -> bool:
    return not f.is_constraint and bool(np.isfinite(f.atom.curvature))


class _Run:
    """The state of one solve. Every point comes with its images, so that extrapolation costs no pass over the data."""

    def __init__(self, form: NormalForm, by_prox, by_gradient, start: Point | None):
        self.form = form
        self.by_prox, self.by_gradient = by_prox, by_gradient
        self.proxes = {block: prox_of_sum(_terms(form, indices)) for block, indices in by_prox.items()}
        self.smooth = smooth_part(form, [form.functions[k] for k in by_gradient])
        x = start.blocks if start is not None else form.zeros()
        self.x = {
            name: self.proxes[name].prox(np.array(W), 0.0) if start is not None else W
            for name, W in x.items()
        }
        self.images = self.smooth.images(self.x)
        self.y, self.y_images = self.x, self.images
        self.lipschitz = self.smooth.lipschitz()
        self.momentum = 1.0
        self.residual = np.inf
        self.looked_at, self.looked_residual = 0, np.inf

    def step(self) -> None:
        gradient = self.smooth.gradient(self.y_images, self.y)
        while True:
            new = self._prox_step(gradient)
            images = self.smooth.images(new)
            difference = {name: new[name] - self.y[name] for name in new}
            length = sum(float(np.vdot(D, D)) for D in difference.values())
            excess, rounding = self.smooth.excess(images, new, self.y_images, self.y, gradient)
            allowed = 0.5 * self.lipschitz * length * (1 + 1e-12)
            if excess - rounding <= allowed or length == 0.0:
                break
            # a non-finite excess (exp overflow) says only that the step is far too long
            needed = 2 * excess / length if np.isfinite(excess) else np.inf
            self.lipschitz = max(1.2 * self.lipschitz, min(1.05 * needed, 4 * self.lipschitz))
        self.residual = self.lipschitz * np.sqrt(length)
        uphill = sum(float(np.vdot(-difference[name], new[name] - self.x[name])) for name in new) > 0
        before = 1.0 if uphill else self.momentum
        self.momentum = 0.5 * (1 + np.sqrt(1 + 4 * before**2))
        beta = 0.0 if uphill else (before - 1) / self.momentum
        self.last_y, self.last_gradient, self.last_lipschitz = self.y, gradient, self.lipschitz
        self.y = {name: new[name] + beta * (new[name] - self.x[name]) for name in new} if beta else new
        self.y_images = (
            [a + beta * (a - b) for a, b in zip(images, self.images, strict=True)] if beta else images
        )
        self.x, self.images = new, images
        if (
            rounding < 0.01 * allowed
        ):  # near the optimum the test drowns in rounding and would let any step pass
            self.lipschitz *= 0.9

    def _prox_step(self, gradient: Blocks) -> Blocks:
        step = 1.0 / self.lipschitz
        return {name: self.proxes[name].prox(W - step * gradient[name], step) for name, W in self.y.items()}

    def is_worth_a_look(self, iteration: int, tol: float) -> bool:
        """At first, then whenever the step's residual has fallen to a third, or a quarter more iterations have gone by."""
        due = self.residual <= self.looked_residual / 3 or iteration >= max(
            1.25 * self.looked_at, self.looked_at + 10
        )
        if iteration > 1 and (not due or iteration < self.looked_at + 5):
            return False
        self.looked_at, self.looked_residual = iteration, self.residual
        return True

    def point(self, iteration: int) -> Point:
        """The last prox point, with the multipliers that its step proves; the losses' are left to the certificate."""
        step = 1.0 / self.last_lipschitz
        duals: list = [None] * len(self.form.functions)
        for name, indices in self.by_prox.items():
            _, multipliers = self.proxes[name](self.last_y[name] - step * self.last_gradient[name], step)
            for k, multiplier in zip(indices, multipliers, strict=True):
                duals[k] = multiplier
        for k in self.by_gradient:
            f = self.form.functions[k]
            duals[k] = f.coefficient * f.atom.gradient(f.map.forward(self.x))
        return Point(self.x, None, duals, iteration)


SOLVER = ProximalGradient()
