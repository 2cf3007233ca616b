"""Quadratic losses of one weight matrix, reduced to what does not grow with the samples; intercepts eliminated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.compile.single_block import single_block
from mtldsl.solvers.linear_algebra.gram import bordered_gram, gram_product, without_intercept
from mtldsl.system.long_calls import eigh
from mtldsl.tasks.gram import require_gram_memory

__all__ = ["QuadraticData", "curvature_data", "quadratic_data", "why_not_quadratic"]

#: Samples on a flat part of their loss keep this share of the largest second derivative.
_LEAST_CURVATURE = 1e-3


def why_not_quadratic(form: NormalForm) -> str | None:
    """None where the losses are quadratics of one weight matrix itself, else one sentence."""
    for loss in form.losses:
        if loss.atom.quadratic is None:
            return f"{loss.typed} is not quadratic."
    facts = single_block(form, "anything", several_losses=True)
    return facts if isinstance(facts, str) else None


@dataclass(frozen=True, eq=False)
class QuadraticData:
    """losses(W) = 1/2 <W, K W> - <C, W> + constant with the best intercepts b; K W is K @ W, or K_i @ w_i task by task.

    gram (d, d) where all tasks share it, (m, d, d) where each has its own
    """

    block: str
    gram: np.ndarray
    cross: np.ndarray  # C (d, m)
    constant: float
    intercept: str | None = None
    means: tuple[np.ndarray, np.ndarray] | None = None  # of the inputs (d, m) and of the labels (m,)

    @property
    def is_shared(self) -> bool:
        return self.gram.ndim == 2

    @property
    def shape(self) -> tuple[int, int]:
        return self.cross.shape

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the one K."""
        return eigh(self.gram)

    def product(self, W) -> np.ndarray:
        """K W."""
        return gram_product(self.gram, W)

    def value(self, W) -> float:
        return 0.5 * float(np.vdot(W, self.product(W))) - float(np.vdot(self.cross, W)) + self.constant

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        product = self.product(W)
        value = 0.5 * float(np.vdot(W, product)) - float(np.vdot(self.cross, W)) + self.constant
        return value, product - self.cross

    def blocks(self, W) -> Blocks:
        """W with its best intercepts."""
        if self.intercept is None:
            return {self.block: W}
        assert self.means is not None  # they come with the intercept
        x_mean, y_mean = self.means
        return {self.block: W, self.intercept: (y_mean - np.einsum("ij,ij->j", x_mean, W))[None, :]}


def quadratic_data(form: NormalForm) -> QuadraticData:
    """One pass over the data. SolverError where the Gram matrices do not fit into memory."""
    (block,) = form.weight_blocks
    weights = [_weights(loss) for loss in form.losses]
    cross, totals, constant = np.zeros(block.shape), np.zeros(block.shape[1]), 0.0
    for loss, of_samples in zip(form.losses, weights, strict=True):
        weighted = of_samples * loss.tasks.targets
        cross += loss.tasks.adjoint(weighted)
        totals += np.add.reduceat(weighted, loss.tasks.offsets[:-1])
        constant += 0.5 * float(weighted @ loss.tasks.targets)
    gram, x_mean, counts = _grams(form, weights)
    intercept = next((name for loss in form.losses for name in loss.intercepts), None)
    if intercept is None:
        return QuadraticData(block.name, gram, cross, constant)
    y_mean = totals / counts
    constant -= 0.5 * float(np.sum(totals * y_mean))
    return QuadraticData(block.name, gram, cross - x_mean * totals, constant, intercept, (x_mean, y_mean))


def curvature_data(form: NormalForm, x: Blocks) -> tuple[QuadraticData, np.ndarray, np.ndarray]:
    """(the losses' second-order model at x, input means (d, m), total weights (m,)) of smooth sums over samples.

    Second derivatives are differences of slopes; an intercept is eliminated as in `quadratic_data`, and its means and weights are
    what it takes to put it back.
    """
    (block,) = form.weight_blocks
    weights = []
    for loss in form.losses:
        z = loss.predictions(x)
        h = 1e-4 * (1.0 + np.abs(z))
        second = (loss.gradient(z + h) - loss.gradient(z - h)) / (2.0 * h)
        weights.append(np.maximum(second, _LEAST_CURVATURE * second.max(initial=0.0)))
    gram, x_mean, counts = _grams(form, weights)
    return QuadraticData(block.name, gram, np.zeros(block.shape), 0.0), x_mean, counts


def _grams(form: NormalForm, weights: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(K, means of the inputs (d, m), total weights (m,)) for one weight a sample in each loss: a number, or an array."""
    (block,) = form.weight_blocks
    d, m = block.shape
    alike = zip(form.losses, weights, strict=True)
    shared = all(loss.is_shared_complete and np.ndim(of_samples) == 0 for loss, of_samples in alike)
    require_gram_memory(d, 1 if shared else m, "select features, or project them, first")
    gram: Any = sum(bordered_gram(loss, w) for loss, w in zip(form.losses, weights, strict=True))
    if not shared and gram.ndim == 2:
        gram = np.broadcast_to(gram, (m, *gram.shape))
    if not any(loss.intercepts for loss in form.losses):
        return gram, np.zeros((d, m)), np.ones(m)
    inner, means, counts = without_intercept(gram)
    return inner, np.broadcast_to(means.T.reshape(d, -1), (d, m)), np.broadcast_to(counts, m)


def _weights(loss: LossTerm):
    """The weights of the samples in 1/2 sum of weight * (z - y)^2: a number, or one for each."""
    uniform = loss.uniform_scale
    weights: Any = loss.scale if uniform is None else uniform  # one of the two is there
    return weights * loss.atom.quadratic
