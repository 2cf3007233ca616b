r"""Squares on one X under penalties that no rotation of the features changes: splitting in the coordinates of X's singular vectors.

    minimize over W    c/2 ||Yc - Xc W||^2 + h(W),    h(Q W) = h(W) for orthogonal Q: functions of singular values, of W^T W

With c Xc^T Xc = Q diag(e) Q^T and V = Q^T W the quadratic is diagonal and h is what it was. Douglas-Rachford steps then cost one prox,
and so does another penalty M:

    w = prox_h(s),  y = M (s - w),  x = (C + M (2 w - s)) / (e + M),  s <- s + relaxation (x - w),  Anderson-accelerated.

y is a subgradient of h at w, so that with the multipliers u of v = diag(1/e) (C - y), the best ones beside y, the duality gap is

    f(w) + h(w) + f*(-y) + h*(y) = 1/2 sum_ij r_ij^2 / e_i,    r = e w - C + y:

of second order in the error, where multipliers made of w alone are off by the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.prox.composition import ProxOfSum, prox_of_sum
from mtldsl.data.products import gram, require_gram_memory
from mtldsl.normal_form.form import LossTerm, NormalForm, single_block
from mtldsl.solvers.design.sufficient_statistics import centred_gram, rows_gram
from mtldsl.solvers.numerics import operator_splitting
from mtldsl.solvers.numerics.anderson import AndersonExtrapolation
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.caching import cached_on_path
from mtldsl.utils.interrupts import eigh


@dataclass(frozen=True)
class RotatedSettings:
    """Limits of the splitting in the coordinates of singular vectors.

    spectrum_rows  : smaller side of X, up to which eigenvectors pay
    null_share     : of the largest eigenvalue, up to which one is zero: X says nothing there, and h keeps W away
    memory_steps   : that an extrapolation draws on
    penalty_factor : in units of sqrt(||y|| / ||w|| times the curvature along w)
    balance_ratio  : of the balanced penalty to the present one, from which on it changes
    run_iterations : of a run; those that go well take a dozen
    """

    spectrum_rows: int = 1000
    null_share: float = 1e-11
    memory_steps: int = 10
    penalty_factor: float = 1.3
    balance_ratio: float = 2.0
    run_iterations: int = 300


SETTINGS = RotatedSettings()


def unsupported_reason(form: NormalForm) -> str | None:
    """None where the form is of this kind and not too large, else the reason."""
    facts = single_block(form)
    if isinstance(facts, str):
        return facts
    loss, columns = facts.loss, facts.shape[1]
    if loss.atom.quadratic is None or not loss.is_shared_complete or loss.uniform_scale is None:
        return f"{loss.typed} is not a sum of squares over one X, equally weighted."
    if min(loss.tasks.X.shape) > SETTINGS.spectrum_rows:
        return f"X has more than {SETTINGS.spectrum_rows} rows and columns."
    for f in form.functions:
        if f.atom.separable != "spectrum" and (f.is_constraint or f.atom.task_quadratic(columns) is None):
            return f"{f.typed} is not a function of the singular values of {facts.name}."
    if all(f.atom.separable != "spectrum" for f in form.functions):
        return "no term is a function of singular values."
    if prox_of_sum([(f.coefficient, f.atom) for f in form.functions]) is None:
        return "the terms have no common closed-form prox."
    return None


@dataclass(frozen=True, eq=False)
class _RotatedStatistics:
    """c Xc^T Xc = Q diag(e) Q^T, C = c Q^T Xc^T Yc, square = c ||Yc||^2, and the means that were taken off: the same all along a path."""

    e: np.ndarray
    Q: np.ndarray
    C: np.ndarray
    square: float
    x_means: np.ndarray
    y_means: np.ndarray

    @classmethod
    def of(cls, loss: LossTerm, centred: bool) -> _RotatedStatistics:
        tasks, quadratic, scale = loss.tasks, loss.atom.quadratic, loss.uniform_scale
        assert quadratic is not None and scale is not None  # `unsupported_reason` was asked
        X, weight = tasks.X, quadratic * scale
        Y = tasks.targets.reshape(tasks.n_tasks, -1)
        n, d = X.shape
        x_means, y_means = np.zeros(d), np.zeros(tasks.n_tasks)
        if centred:
            shares = np.full(n, 1.0 / n)
            x_means, y_means = np.asarray(shares @ X).ravel(), Y @ shares
            Y = Y - y_means[:, None]
        cross = weight * tasks.adjoint(Y.ravel())
        if n >= d:
            require_gram_memory(d, 1, "select features, or name another solver")
            G = gram(X)
            G = centred_gram(G, n * x_means, x_means) if centred else G
            G *= weight
            values, Q = eigh(G)
            kept = values > SETTINGS.null_share * max(values[-1], 0.0)
            e, Q = values[kept], Q[:, kept]
        else:
            values, P = eigh(rows_gram(X, centred))
            kept = values > SETTINGS.null_share * max(values[-1], 0.0)
            P = P[:, kept] / np.sqrt(values[kept])
            e, Q = weight * values[kept], np.asarray(X.T @ P)
            if centred:
                Q -= np.outer(x_means, P.sum(axis=0))
        return cls(e, Q, Q.T @ cross, weight * float(np.vdot(Y, Y)), x_means, y_means)


class SharedSquares:
    """The problem in the coordinates of the singular vectors, and its solution there. `unsupported_reason` said that it fits."""

    def __init__(self, form: NormalForm):
        facts = single_block(form)
        assert not isinstance(facts, str)  # `unsupported_reason` was asked
        self.form, self.loss, self.name, self.intercept = form, facts.loss, facts.name, facts.intercept
        prox = prox_of_sum([(f.coefficient, f.atom) for f in form.functions])
        assert prox is not None
        self.prox: ProxOfSum = prox
        found = cached_on_path(
            self.loss, "singular vectors", lambda: _RotatedStatistics.of(self.loss, bool(self.intercept))
        )
        self.e, self.Q, self.C, self.square = found.e, found.Q, found.C, found.square
        self.x_means, self.y_means = found.x_means, found.y_means

    def run(self, tol: float, max_iter: int, start: Point | None, watch: Watch) -> tuple[Point, bool]:
        """(the last point, whether that is all: `watch` is satisfied, or the iterations asked for are used up)."""
        e, C = self.e[:, None], self.C
        if not e.size:  # X is zero
            point = Point(self.form.zeros(), iteration=1)
            return point, watch(point)
        self.target = 0.8 * tol
        w, y = self._first() if start is None else self._from(start)
        M = self._penalty(w, y) or float(self.e.mean() if self.e.size else 1.0)
        s, anderson, balance_at = w + y / M, AndersonExtrapolation(SETTINGS.memory_steps), 3
        last = min(max_iter, SETTINGS.run_iterations)
        for iteration in range(1, last + 1):
            w = self.prox.prox(s, 1.0 / M)
            y = M * (s - w)
            done = iteration == last or watch.expired
            if done or self._gap(w, y) <= self.target:
                point = self._point(s, M, iteration)
                if watch(point):
                    return point, True
                if done:
                    return point, iteration == max_iter or watch.expired
                self.target *= 0.3
            if iteration == balance_at:
                balance_at *= 2
                better = self._penalty(w, y)
                if (
                    better is not None
                    and not 1.0 / SETTINGS.balance_ratio < better / M < SETTINGS.balance_ratio
                ):
                    M, s = better, w + y / better
                    anderson.reset()
            x = (C + M * (2.0 * w - s)) / (e + M)
            image = s + operator_splitting.SETTINGS.relaxation_factor * (x - w)
            s = anderson.step(s.ravel(), image.ravel(), 1.0).reshape(s.shape)
        raise AssertionError("the last iteration returns")

    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """(w, y): the best point along the prox of minus the gradient at zero, and what that prox takes."""
        D = self.prox.prox(self.C, 1.0)
        curved = float(np.vdot(D, self.e[:, None] * D))
        if not curved > 0.0:
            return np.zeros_like(self.C), self.C
        y = self.C - D
        slope = float(np.vdot(D, D))  # <C, D> less <y, D>, which h takes where it is a norm
        return slope / curved * D, y

    def _from(self, start: Point) -> tuple[np.ndarray, np.ndarray]:
        w = self.Q.T @ start.blocks[self.name]
        return w, self.C - self.e[:, None] * w

    def _penalty(self, w, y) -> float | None:
        """None where w says nothing."""
        squares = float(np.vdot(w, w))
        curved = float(np.vdot(w, self.e[:, None] * w))
        if not (squares > 0.0 and curved > 0.0):
            return None
        size = np.linalg.norm(y, 2) / np.linalg.norm(w, 2)
        found = SETTINGS.penalty_factor * math.sqrt(size * curved / squares)
        return found if 0.0 < found < math.inf else None

    def _gap(self, w, y) -> float:
        """The gap beside the objective, where h is a norm: h(w) = <w, y>."""
        image = self.e[:, None] * w
        r = image - self.C + y
        gap = 0.5 * float(np.sum(np.square(r).sum(axis=1) / self.e))
        objective = 0.5 * self.square + float(np.vdot(w, 0.5 * image - self.C + y))
        return gap / max(objective, np.finfo(float).tiny)

    def _point(self, s, M: float, iteration: int) -> Point:
        w, shares = self.prox(s, 1.0 / M)
        y = M * (s - w)
        best = self.Q @ ((self.C - y) / self.e[:, None])
        blocks = self._blocks(self.Q @ w)
        u = self.loss.gradient(self.loss.predictions(self._blocks(best)))
        return Point(blocks, [u], [self.Q @ share for share in shares], iteration)

    def _blocks(self, W):
        blocks = {self.name: W}
        if self.intercept:
            blocks[self.intercept] = (self.y_means - self.x_means @ W)[None, :]
        return blocks
