"""Newton steps of rows that are elsewhere, a pass over the data each; losses with kinks by the method of multipliers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.lifted import has_one_maximum_a_task
from mtldsl.compile.terms.distributed import DistributedTerm, RowDual
from mtldsl.compile.terms.moments import moments_of
from mtldsl.errors import SolverError
from mtldsl.proof.bound import dual_bound
from mtldsl.solvers.passes.by_passes import SolverByPasses, sum_over_samples
from mtldsl.solvers.passes.checkpoint import Folder
from mtldsl.solvers.passes.consensus import hessians_are_too_many
from mtldsl.solvers.passes.inner import Inner
from mtldsl.solvers.passes.looks import hessian_shares, look, look_from, step
from mtldsl.solvers.passes.model import Model
from mtldsl.solvers.solver import Point, Watch
from mtldsl.tasks.gram import require_gram_memory

__all__ = ["SOLVER", "NewtonByPasses"]

#: The share of what the step before was to gain that the next may be off by.
_SHARE = 1e-3

#: The damping of the first step, as a share of the penalty; by how much it grows after a step that failed, and falls after one that kept its
#: promise; the least of it; the share of a promise that is kept.
_DAMPED, _MORE, _LESS, _LEAST, _KEPT, _WELL = 0.1, 4.0, 0.4, 1e-6, 0.1, 0.7

#: Multipliers step where the next Newton step promises less than this share of what they have moved by; the penalty grows by this factor then.
_ENOUGH, _STEEPER, _FELL = 0.1, 2.0, 0.5


class NewtonByPasses(SolverByPasses):
    """minimize f(A x) + h(x): f a sum over samples, smooth or with a proximal step, h any functions and constraints.

    A smooth f is taken as it is, its Hessian estimated by some of many rows. With multipliers u of the rows and a penalty rho, f becomes its Moreau envelope e(A x + u / rho), smooth, with the gradient
    A^T u+, u+ = rho (v - prox(v)) in the domain of f*, and the generalised Hessian rho A^T (1 - prox'(v)) A. One pass tells both; h beside the
    quadratic model, damped in the metric of A^T A, is solved here; a step that does not lower the envelope + h as promised is taken
    again, more damped. Where a step promises little, u+ replaces u. Rows keep u and nothing else.

    checkpoint : folder that weights, penalties and the multipliers of the rows are written to, and from which the same model goes on

    Sources: Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming", 1976; Li, Sun and
    Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM J. Optim. 28 (2018).
    """

    name = "newton_by_passes"
    summary = "Newton steps, each one pass over rows that are elsewhere: smooth losses, and kinks by multipliers that stay beside the rows"
    max_iter = 1000
    options: ClassVar[Mapping[str, object]] = {"checkpoint": None}
    writes = ("checkpoint",)

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        loss = sum_over_samples(form)
        if isinstance(loss, str):
            return loss
        try:
            require_gram_memory(
                loss.tasks.n_features + 1, loss.tasks.n_tasks, "name consensus, which forms none"
            )
        except SolverError as error:
            return f"{error}."
        return None

    def yields(self, form: NormalForm) -> str | None:
        if hessians_are_too_many(form):
            return "a Hessian of every task is more than should be kept here."
        return None

    def is_nearest(self, form: NormalForm) -> bool:
        return not any(map(has_one_maximum_a_task, form.losses))

    def usual_passes(self, form: NormalForm) -> tuple[int, int]:
        """Measured: three losses of either kind beside four penalties, 400 to 3,000 rows of 6 to 60 features, and the runs of half a GB to 8 GB."""
        return (7, 15) if form.losses[0].atom.smooth else (40, 120)

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, checkpoint: Folder | None = None
    ) -> Point:  # fmt: skip
        return _Run(form, start, checkpoint).run(max_iter, watch)


class _Run:
    def __init__(self, form: NormalForm, start: Point | None, file: Folder | None = None):
        (loss,) = form.losses
        assert isinstance(loss, DistributedTerm)
        self.form, self.loss = form, loss
        self.x: Blocks = form.zeros() if start is None else dict(start.blocks)
        self.moments = moments_of(loss.tasks)
        self.inner = Inner(form, None if start is None else start.function_duals)
        self.state, self.penalty, self.damping, self.passes = None, _first_penalty(loss), _DAMPED, 0
        self.apart = math.inf
        self.values: list[tuple[Blocks, float]] = []
        self.file = file
        if start is not None and start.state.get("solver") == NewtonByPasses.name:
            self._go_on(start.state)

    def _go_on(self, left: dict) -> None:
        """As a checkpoint left it. A penalty without the multipliers that it was for would be too steep."""
        if self.loss.atom.smooth or left["rows"] is not None:
            self.state, numbers = left["rows"], left["numbers"]
            self.penalty, self.damping, self.apart = (numbers[n] for n in ("penalty", "damping", "apart"))

    def _keep(self, now: bool = False) -> None:
        if self.file is not None:
            numbers = {"penalty": self.penalty, "damping": self.damping, "apart": self.apart}
            self.state = self.file.keep(
                NewtonByPasses.name, self.x, self.inner.duals, numbers, rows=self.state, now=now
            )

    def run(self, max_iter: int, watch: Watch) -> Point:
        told = self._pass(self.x, None)
        while True:
            point = Point(
                self.x, [self._dual(told)], self.inner.duals, self.passes, {}, {"penalty": self.penalty}
            )
            done = watch(point) or self.passes >= max_iter
            self._keep(done)
            if done:
                return point
            model = Model(self.loss, told["hessian"], self.moments, self.damping * self.penalty)
            new = self._minimizer(model, told)
            promised = self._here(self.x, told) - self._promised(model, told, new)
            if not self.loss.atom.smooth and promised <= _ENOUGH * told["moved"] / self.penalty:
                old, apart = self.penalty, told["moved"] / self.penalty**2
                if apart > _FELL * self.apart:
                    self.penalty *= _STEEPER
                self.apart = apart
                told = self._pass(self.x, old)
                continue
            seen = self._pass(new, None)
            gained = self._here(self.x, told) - self._here(new, seen)
            if gained >= _KEPT * promised:
                self.x, told = new, seen
                if gained >= _WELL * promised:
                    self.damping = max(_LESS * self.damping, _LEAST)
            else:
                self.damping = min(_MORE * self.damping, 1.0)
                if (
                    self.damping == 1.0
                    and gained <= 0.0
                    and promised <= 1e-12 * abs(self._here(self.x, told))
                ):
                    return point

    def _pass(self, x: Blocks, stepped_from: float | None) -> dict:
        """At x, with the multipliers as they are; or, where these are to step, after that, made with the penalty of the steps before."""
        loss, z = self.loss, self.loss.predictions(x)
        sent = loss.tasks.n_tasks, loss.atom, loss.coefficients, z.V, z.b, bool(loss.intercepts)
        run = loss.tasks.parts.run
        if loss.atom.smooth:
            told = run(look, *sent, hessian_shares(loss.tasks.counts, loss.tasks.n_features))
        elif self.state is None or stepped_from is not None:
            self.state, told = run(step, *sent, self.penalty, stepped_from, state=self.state, stateful=True)
        else:  # multipliers stay as they are: what is lost of them with a worker takes no such pass to have again
            told = run(look_from, *sent, self.penalty, state=self.state)
        loss.known(x, told["seen"])
        self.passes += 1
        return told

    @staticmethod
    def _dual(told: dict) -> RowDual:
        return RowDual(told["seen"], np.ones_like(told["seen"]["sums"]))

    def _here(self, x: Blocks, told: dict) -> float:
        return told["envelope"] + self._functions(x)

    def _functions(self, x: Blocks) -> float:
        """The value of regularizers, which may cost as much as a pass: that of the last two points is kept."""
        for known, value in self.values:
            if known is x:
                return value
        value = float(sum(f.value(x) for f in self.form.functions))
        self.values = [(x, value), *self.values[:1]]
        return value

    def _minimizer(self, model: Model, told: dict) -> Blocks:
        u = self._dual(told)
        term = model.term(self.x, u.adjoint, self.loss.sums(u))
        new = self.inner.solve([term], self.x, self._missing(told), self._functions(self.x))
        return new | model.intercepts(new, self.x, self.loss.sums(u))

    def _missing(self, told: dict) -> float:
        """What a step may be off by."""
        if not self.loss.atom.smooth:
            return _SHARE * told["moved"] / self.penalty or math.inf
        here = self._here(self.x, told)
        bound = dual_bound(self.form, self.x, [self._dual(told)], self.inner.duals)[0]
        gap = min((here - bound) / max(abs(here), np.finfo(float).tiny), 1.0) if math.isfinite(bound) else 1.0
        return _SHARE * gap * gap * abs(here)

    def _promised(self, model: Model, told: dict, new: Blocks) -> float:
        """What the model says of the value there."""
        u = self._dual(told)
        rise = model.rise(new, self.x, u.adjoint, self.loss.sums(u))
        return told["envelope"] + rise + self._functions(new)


def _first_penalty(loss) -> float:
    """A smooth loss's curvature; else a multiplier's size over that of a prediction."""
    if loss.atom.smooth and np.isfinite(loss.atom.curvature):
        return float(np.median(loss.atom.curvature * loss.coefficients))
    facts = loss.tasks.label_facts
    spread = np.sqrt(np.maximum(facts.squares / facts.counts, np.finfo(float).tiny))
    return float(np.median(loss.coefficients / spread))


SOLVER = NewtonByPasses()
