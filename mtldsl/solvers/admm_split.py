"""ADMM's splitting: which terms stay in the quadratic x-update, and which get a copy of their argument.

    minimize over x, w   q(x) + sum_j h_j(w_j)   subject to   w_j = K_j x + k_j

q holds the quadratic losses and the quadratic penalties that couple no tasks; every other loss t brings h_j = f_t with
K_j x + k_j its predictions, every other function k brings h_j = c_k g_k with K_j x + k_j the image of its map. All copies lie
one after another in one flat vector, so that the iteration is vector arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm

__all__ = ["Copy", "Split", "linear_predictions"]


def linear_predictions(loss: LossTerm, x: Blocks) -> np.ndarray:
    """The predictions without the map's constant part, flat (N,)."""
    z = loss.tasks.forward(loss.map.linear(x))
    for name in loss.intercepts:
        z = z + np.repeat(x[name][0], loss.tasks.counts)
    return z


@dataclass(frozen=True, eq=False)
class Copy:
    """One copied term and its place in the flat vector; `metric` weighs its part of the penalty, entry by entry."""

    term: LossTerm | FunctionTerm
    index: int  # its place in form.losses or form.functions
    shape: tuple[int, ...]
    rows: slice
    profile: np.ndarray | None = None  # relative penalties of the entries (mean 1), None: all 1

    @property
    def is_loss(self) -> bool:
        return isinstance(self.term, LossTerm)


class Split:
    """A normal form as q(x) + sum_j h_j(w_j), w = K x + k."""

    def __init__(self, form: NormalForm):
        self.form = form
        self.exact_losses = [t for t, loss in enumerate(form.losses) if loss.atom.quadratic is not None]
        self.exact_functions = [k for k, f in enumerate(form.functions) if _column_weights(f) is not None]
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

    def add_adjoint(self, flat: np.ndarray, into: Blocks) -> None:
        """into += K^T flat."""
        for copy in self.copies:
            part = flat[copy.rows]
            if copy.is_loss:
                copy.term.add_adjoint(part, into)
            else:
                copy.term.map.add_adjoint(part.reshape(copy.shape), into)

    def prox(self, s: np.ndarray, metric: np.ndarray) -> np.ndarray:
        """argmin over w of sum_j h_j(w_j) + 1/2 ||w - s||^2 in the metric."""
        w = np.empty(self.size)
        for copy in self.copies:
            part, first = s[copy.rows], metric[copy.rows.start]
            if copy.is_loss:
                step = 1.0 / first if copy.profile is None else 1.0 / metric[copy.rows]
                w[copy.rows] = copy.term.prox(part, step)
            else:
                w[copy.rows] = copy.term.prox(part.reshape(copy.shape), 1.0 / first).ravel()
        return w

    # ------------------------------------------------------------------------------------- the quadratic part

    def column_weights(self, k: int) -> np.ndarray:
        """The weights a_j of function k = 1/2 sum_j a_j ||column j||^2, coefficient included."""
        return _column_weights(self.form.functions[k])

    def curvature_weights(self, t: int) -> np.ndarray | float:
        """The weight of every sample in quadratic loss t = 1/2 sum of weight * (z - y)^2."""
        loss = self.form.losses[t]
        uniform = loss.uniform_scale
        return loss.atom.quadratic * (loss.scale if uniform is None else uniform)

    def quadratic_product(self, x: Blocks) -> Blocks:
        """The Hessian of q at x."""
        product = self.form.zeros()
        for t in self.exact_losses:
            loss = self.form.losses[t]
            loss.add_adjoint(self.curvature_weights(t) * linear_predictions(loss, x), product)
        for k in self.exact_functions:
            f = self.form.functions[k]
            f.map.add_adjoint(self.column_weights(k) * f.map.linear(x), product)
        return product

    def quadratic_target(self) -> Blocks:
        """Minus the gradient of q at zero."""
        target = self.form.zeros()
        for t in self.exact_losses:
            loss = self.form.losses[t]
            constant = loss.offset_predictions()
            y = loss.tasks.targets if constant is None else loss.tasks.targets - constant
            loss.add_adjoint(self.curvature_weights(t) * y, target)
        for k in self.exact_functions:
            f = self.form.functions[k]
            if f.map.offset is not None:
                f.map.add_adjoint(-self.column_weights(k) * f.map.offset, target)
        return target


def _column_weights(f: FunctionTerm) -> np.ndarray | None:
    """a where the function is 1/2 sum_j a_j ||column j||^2 of the image of its map, else None."""
    if f.is_constraint:
        return None
    L = f.atom.task_quadratic(f.map.shape[1])
    if L is None:
        return None
    L = np.asarray(L)
    diagonal = np.diag(L)
    return f.coefficient * diagonal if np.array_equal(L, np.diag(diagonal)) else None


def _loss_profile(loss: LossTerm) -> np.ndarray | None:
    """Penalties in proportion to the samples' weights: then every sample's copy moves at the same pace."""
    if not loss.atom.separable or loss.uniform_scale is not None:
        return None
    return loss.scale / loss.scale.mean()
