"""ADMM's splitting: which terms stay in the quadratic x-update, and which get a copy of their argument.

    minimize over x, w   q(x) + sum_j h_j(w_j)   subject to   w_j = K_j x + k_j

q holds the quadratic losses and the quadratic penalties that couple no tasks; every other loss t brings h_j = f_t with
K_j x + k_j its predictions, every other function k brings h_j = c_k g_k with K_j x + k_j the image of its map. All copies lie
one after another in one flat vector, so that the iteration is vector arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm

__all__ = ["Copy", "Curvature", "Split", "linear_predictions"]


def linear_predictions(loss: LossTerm, x: Blocks) -> np.ndarray:
    """The predictions without the map's constant part, flat (N,)."""
    z = loss.tasks.forward(loss.map.linear(x))
    for name in loss.intercepts:
        z = z + np.repeat(x[name][0], loss.tasks.counts)
    return z


@dataclass(frozen=True, eq=False)
class Copy:
    """One copied term and its place in the flat vector; `metric` weighs its part of the penalty, entry by entry."""

    term: Any  # a LossTerm where `is_loss`, else a FunctionTerm: a flag tells, no class
    index: int  # its place in form.losses or form.functions
    shape: tuple[int, ...]
    rows: slice
    profile: np.ndarray | None = None  # relative penalties of the entries (mean 1), None: all 1

    @property
    def is_loss(self) -> bool:
        return isinstance(self.term, LossTerm)


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Hessian of a quadratic function of V (p, q): V -> weights * V, or V -> V @ coupling."""

    weights: np.ndarray | None = None  # (q,) one a column, or (p, q)
    coupling: np.ndarray | None = None  # (q, q), not diagonal

    def product(self, V: np.ndarray) -> np.ndarray:
        return V @ self.coupling if self.weights is None else self.weights * V

    @staticmethod
    def of(f: FunctionTerm) -> Curvature | None:
        """None where the function is not 1/2 <V, H V>; the coefficient is included."""
        if f.is_constraint or not np.isfinite(f.atom.curvature):
            return None
        squares = f.atom.entry_quadratic
        if squares is not None and (
            np.ndim(squares) < 2 or np.shape(squares)[0] == 1
        ):  # no matrix of the tasks' size is made
            return Curvature(f.coefficient * np.broadcast_to(np.ravel(squares), f.map.shape[1:]))
        L = f.atom.task_quadratic(f.map.shape[1])
        if L is not None:
            L, diagonal = f.coefficient * np.asarray(L), f.coefficient * np.diag(L)
            return Curvature(diagonal) if np.array_equal(L, np.diag(diagonal)) else Curvature(coupling=L)
        if f.atom.separable == "entries":
            ones = np.ones(f.map.shape)
            weights = f.atom.gradient(ones)
            if np.array_equal(
                f.atom.gradient(-(2.0**30) * ones), -(2.0**30) * weights
            ):  # linear, so quadratic
                return Curvature(f.coefficient * weights)
        return None


class Split:
    """A normal form as q(x) + sum_j h_j(w_j), w = K x + k. With `coupled`, q takes quadratics that couple tasks too."""

    def __init__(self, form: NormalForm, coupled: bool = False):
        self.form = form
        self.exact_losses = [t for t, loss in enumerate(form.losses) if loss.atom.quadratic is not None]
        found = {k: Curvature.of(f) for k, f in enumerate(form.functions)}
        self.exact_functions = {
            k: c for k, c in found.items() if c is not None and (coupled or c.coupling is None)
        }
        self.copies: list[Copy] = []
        self.size = 0
        for t, loss in enumerate(form.losses):
            if t not in self.exact_losses:
                self._add(loss, t, (loss.tasks.n_samples,), _loss_profile(loss))
        for k, f in enumerate(form.functions):
            if k not in self.exact_functions:
                self._add(f, k, f.map.shape, None)

    def _add(self, term, index, shape, profile) -> None:
        rows = slice(self.size, self.size + int(np.prod(shape)))
        self.copies.append(Copy(term, index, shape, rows, profile))
        self.size = rows.stop

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        """One penalty a copy -> one penalty an entry, flat."""
        flat = np.empty(self.size)
        for copy, penalty in zip(self.copies, penalties, strict=True):
            flat[copy.rows] = penalty if copy.profile is None else penalty * copy.profile
        return flat

    def image(self, x: Blocks) -> np.ndarray:
        """K x + k."""
        flat = np.empty(self.size)
        for copy in self.copies:
            image = copy.term.predictions(x) if copy.is_loss else copy.term.map.forward(x)
            flat[copy.rows] = image.ravel()
        return flat

    def linear_image(self, x: Blocks) -> np.ndarray:
        """K x."""
        flat = np.empty(self.size)
        for copy in self.copies:
            image = linear_predictions(copy.term, x) if copy.is_loss else copy.term.map.linear(x)
            flat[copy.rows] = image.ravel()
        return flat

    def constant(self) -> np.ndarray | float:
        """k (0.0 where every map is linear)."""
        flat = self.image(self.form.zeros())
        return flat if flat.any() else 0.0

    def add_adjoint(self, flat: np.ndarray, into: Blocks, copies: list[Copy] | None = None) -> None:
        """into += K^T flat, of some copies alone where these are given."""
        for copy in self.copies if copies is None else copies:
            part = flat[copy.rows]
            if copy.is_loss:
                copy.term.add_adjoint(part, into)
            else:
                copy.term.map.add_adjoint(part.reshape(copy.shape), into)

    def prox(self, s: np.ndarray, metric: np.ndarray, copies: list[Copy] | None = None) -> np.ndarray:
        """argmin over w of sum_j h_j(w_j) + 1/2 ||w - s||^2 in the metric; of some copies alone, w = s elsewhere."""
        w = np.empty(self.size) if copies is None else s.copy()
        for copy in self.copies if copies is None else copies:
            part, first = s[copy.rows], metric[copy.rows.start]
            if copy.is_loss:
                step = 1.0 / first if copy.profile is None else 1.0 / metric[copy.rows]
                w[copy.rows] = copy.term.prox(part, step)
            else:
                w[copy.rows] = copy.term.prox(part.reshape(copy.shape), 1.0 / first).ravel()
        return w

    # ------------------------------------------------------------------------------------- the quadratic part

    def curvature_weights(self, t: int) -> np.ndarray | float:
        """The weight of every sample in quadratic loss t = 1/2 sum of weight * (z - y)^2."""
        loss = self.form.losses[t]
        uniform = loss.uniform_scale
        weights: Any = loss.scale if uniform is None else uniform  # one of the two is there
        return weights * loss.atom.quadratic

    def quadratic_product(self, x: Blocks) -> Blocks:
        """The Hessian of q at x."""
        product = self.form.zeros()
        for t in self.exact_losses:
            loss = self.form.losses[t]
            loss.add_adjoint(self.curvature_weights(t) * linear_predictions(loss, x), product)
        for k, curvature in self.exact_functions.items():
            f = self.form.functions[k]
            f.map.add_adjoint(curvature.product(f.map.linear(x)), product)
        return product

    def quadratic_target(self) -> Blocks:
        """Minus the gradient of q at zero."""
        target = self.form.zeros()
        for t in self.exact_losses:
            loss = self.form.losses[t]
            constant = loss.offset_predictions()
            y = loss.tasks.targets if constant is None else loss.tasks.targets - constant
            loss.add_adjoint(self.curvature_weights(t) * y, target)
        for k, curvature in self.exact_functions.items():
            f = self.form.functions[k]
            if f.map.offset is not None:
                f.map.add_adjoint(-curvature.product(f.map.offset), target)
        return target


def _loss_profile(loss: LossTerm) -> np.ndarray | None:
    """Penalties in proportion to the samples' weights: then every sample's copy moves at the same pace."""
    if not loss.atom.separable or loss.uniform_scale is not None:
        return None
    return None if loss.scale is None else loss.scale / loss.scale.mean()
