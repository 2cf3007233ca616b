"""Quasi-Newton steps on the profile: the objective with every learned matrix at its best, a smooth function of the weights."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.structure import Structures, StructureTerm, learned_matrices
from mtldsl.solvers.alternation.blocks import assert_descent
from mtldsl.solvers.alternation.lbfgs import LBFGS
from mtldsl.solvers.alternation.metric import metric_at
from mtldsl.solvers.alternation.quadratic_data import curvature_data
from mtldsl.solvers.alternation.weights_step import LinearStep
from mtldsl.solvers.linear_algebra.layout import Layout
from mtldsl.solvers.solver import Point, Watch

__all__ = ["minimize_profile", "why_not_smooth"]

#: Pairs that L-BFGS remembers; iterations after which its metric is chosen anew.
_MEMORY, _ROUND = 10, 40

#: Joint steps before L-BFGS, and their accuracy: they bring it near.
_STEPS_FIRST, _ACCURACY_FIRST = 4, 1e-5

#: Multiplications that Gram matrices of non-quadratic losses may take.
_LARGEST_GRAM_WORK = 2_000_000_000

#: Iterations after which a look is worth its price, whatever that is.
_WITHOUT_LOOK = 200

#: Scalars of data up to which a look at the certificate costs a few milliseconds.
_CHEAP_LOOK = 2_000_000


def why_not_smooth(form: NormalForm) -> str | None:
    """One sentence about the first term that has no gradient, None where there is none."""
    for loss in form.losses:
        if not loss.atom.smooth:
            return f"{loss.typed} is not smooth."
    for f in form.functions:
        if f.is_constraint or not f.atom.is_smooth:
            return f"{f.typed} is {'a constraint' if f.is_constraint else 'not smooth'}."
    return None


class _GramProfile:
    """The profile of quadratic losses, by their Gram matrices: intercepts eliminated, W alone."""

    def __init__(self, form: NormalForm, step: LinearStep):
        self.form, self.step = form, step
        self.shape = step.data.shape

    def flat(self, x: Blocks) -> np.ndarray:
        return x[self.step.name].ravel()

    def metric(self, flat):
        """g -> H^{-1} g, None where there is none."""
        invert = metric_at(self.form, self.step.data, flat.reshape(self.shape))
        return None if invert is None else lambda g: invert(g.reshape(self.shape)).ravel()

    def blocks(self, flat) -> Blocks:
        return self.step.data.blocks(flat.reshape(self.shape))

    def parts(self, flat) -> tuple[float, np.ndarray, np.ndarray]:
        """(value, gradient of the losses, gradient of the penalties)"""
        W = flat.reshape(self.shape)
        value, of_losses = self.step.data.value_and_gradient(W)
        more, of_penalties = _penalties(
            self.form, {self.step.name: W}, {self.step.name: np.zeros(self.shape)}
        )
        return value + more + self.form.constant, of_losses.ravel(), of_penalties[self.step.name].ravel()


class _DataProfile:
    """The profile of any smooth losses, by passes over the data."""

    def __init__(self, form: NormalForm):
        self.form, self.layout = form, Layout(form)

    def flat(self, x: Blocks) -> np.ndarray:
        return self.layout.flat(x)

    def metric(self, flat):
        """As above, from the losses' second derivatives at this point; the intercept is eliminated and put back."""
        (name, *others), intercepts = (
            [b.name for b in self.form.weight_blocks],
            self.form.losses[0].intercepts,
        )
        if others or not all(
            loss.map.identity_of == name and loss.atom.separable and _pays(loss) for loss in self.form.losses
        ):
            return None
        x = self.layout.blocks(flat)
        data, means, counts = curvature_data(self.form, x)
        invert = metric_at(self.form, data, x[name])
        if invert is None:
            return None

        def apply(g):
            parts = dict(self.layout.blocks(g))
            if intercepts:
                of_intercept = parts[intercepts[0]][0]
                parts[name] = invert(parts[name] - means * of_intercept)
                parts[intercepts[0]] = of_intercept / counts - np.sum(means * parts[name], axis=0)
            else:
                parts[name] = invert(parts[name])
            return self.layout.flat(parts)

        return apply

    def blocks(self, flat) -> Blocks:
        return {name: block.copy() for name, block in self.layout.blocks(flat).items()}

    def parts(self, flat) -> tuple[float, np.ndarray, np.ndarray]:
        x, of_losses, value = self.layout.blocks(flat), self.form.zeros(), self.form.constant
        for loss in self.form.losses:
            z = loss.predictions(x)
            value += loss.value(z)
            loss.add_adjoint(loss.gradient(z), of_losses)
        more, of_penalties = _penalties(self.form, x, self.form.zeros())
        return value + more, self.layout.flat(of_losses), self.layout.flat(of_penalties)


def _pays(loss) -> bool:
    """Whether Gram matrices of the samples are cheap enough to be formed anew in every round."""
    return loss.tasks.n_samples * loss.tasks.n_features**2 <= _LARGEST_GRAM_WORK


def _penalties(form: NormalForm, x: Blocks, into: Blocks) -> tuple[float, Blocks]:
    """Value of all functions; their gradients are added to `into`."""
    total = 0.0
    for f in form.functions:
        W = f.map.forward(x)
        if isinstance(f, StructureTerm):
            value, gradient = f.structure.value_and_gradient(W)
        else:
            value, gradient = f.atom.value(W), f.atom.gradient(W)
        total += f.coefficient * value
        f.map.add_adjoint(f.coefficient * gradient, into)
    return total, into


def minimize_profile(
    step, form: NormalForm, x: Blocks, structures: Structures, *, tol: float, max_iter: int, watch: Watch
) -> Point:
    """A few joint steps, then L-BFGS in a metric that is chosen anew every `_ROUND` iterations, until `watch` is content."""
    cheap = form.data_size <= _CHEAP_LOOK
    first, value = min(_STEPS_FIRST, max_iter), np.inf
    for iteration in range(1, first + 1):
        x = step.solve(structures, x, _ACCURACY_FIRST).blocks
        structures = learned_matrices(form, x)
        before, value = value, step.value(x)
        assert_descent(before, value, iteration, step.rise * step.size(x))
        if (cheap and iteration == 1) or iteration == max_iter:
            point = Point(x, iteration=iteration)
            if watch(point) or watch.expired or iteration == max_iter:
                return point
    profile = _GramProfile(form, step) if isinstance(step, LinearStep) else _DataProfile(form)
    flat, iteration, target = profile.flat(x), first, 0.5 * tol
    residual, looked, size = np.inf, iteration, step.size(x)

    def function(flat):
        nonlocal residual
        value, of_losses, of_penalties = profile.parts(flat)
        gradient = of_losses + of_penalties
        size = max(np.linalg.norm(of_losses), np.linalg.norm(of_penalties), np.finfo(float).tiny)
        residual = float(np.linalg.norm(gradient) / size)
        return value, gradient

    while True:
        started = iteration
        search = LBFGS(function, flat, profile.metric(flat), _MEMORY, size)
        while iteration - started < _ROUND:
            before = search.value
            moved = search.step()
            iteration += moved
            assert_descent(before, search.value, iteration, step.rise * size)
            end = residual <= target or not moved or iteration >= max_iter or watch.expired
            # a few looks on the way for the history, and for those who interrupt a long run
            due = cheap and (iteration - first).bit_count() == 1
            if end or due or iteration - looked >= _WITHOUT_LOOK:
                point = Point(profile.blocks(search.x), iteration=iteration)
                if watch(point) or watch.expired or iteration >= max_iter:
                    return point
                looked = iteration
                target = 0.3 * residual if residual <= target else target
                if not moved:
                    break
        flat = search.x
        if iteration - started < 2:  # not even the first steps in a new metric go down: rounding
            return point
