"""Quadratic losses of one weight matrix, reduced to what does not grow with the samples; intercepts eliminated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.memory import require_memory
from mtldsl.solvers.smooth_part import bordered_gram

__all__ = ["QuadraticData", "quadratic_data", "why_not_quadratic"]


def why_not_quadratic(form: NormalForm) -> str | None:
    """None where the losses are quadratics of one weight matrix itself, else one sentence."""
    if len(form.weight_blocks) != 1:
        return "there are several weight matrices."
    name = form.weight_blocks[0].name
    for loss in form.losses:
        if loss.atom.quadratic is None:
            return f"{loss.typed} is not quadratic."
        if loss.map.identity_of != name:
            return f"{loss.typed} is a loss of {loss.map.shape[0]} x {loss.map.shape[1]} combinations of {name}, not of {name} itself."
    return None


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
        return linalg.eigh(self.gram)

    def product(self, W) -> np.ndarray:
        """K W."""
        if self.is_shared:
            return self.gram @ W
        return np.matmul(self.gram, np.ascontiguousarray(W.T)[:, :, None])[:, :, 0].T

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
        x_mean, y_mean = self.means
        return {self.block: W, self.intercept: (y_mean - np.einsum("ij,ij->j", x_mean, W))[None, :]}


def quadratic_data(form: NormalForm) -> QuadraticData:
    """One pass over the data. SolverError where the Gram matrices do not fit into memory."""
    (block,) = form.weight_blocks
    d, m = block.shape
    shared = all(loss.is_shared_complete and loss.uniform_scale is not None for loss in form.losses)
    require_memory(
        2 * 8 * d * d * (1 if shared else m),
        f"the Gram matri{'x' if shared else 'ces'} of {'' if shared else f'{m:,} tasks with '}{d:,} features",
        'write method="joint", w_step="conjugate_gradient" on fewer features, or select features first',
    )
    gram = sum(bordered_gram(loss, _weights(loss)) for loss in form.losses)
    if not shared and gram.ndim == 2:
        gram = np.broadcast_to(gram, (m, *gram.shape))
    cross, totals, constant = np.zeros((d, m)), np.zeros(m), 0.0
    for loss in form.losses:
        weighted = _weights(loss) * loss.tasks.targets
        cross += loss.tasks.adjoint(weighted)
        totals += np.add.reduceat(weighted, loss.tasks.offsets[:-1])
        constant += 0.5 * float(weighted @ loss.tasks.targets)
    intercept = next((name for loss in form.losses for name in loss.intercepts), None)
    if intercept is None:
        return QuadraticData(block.name, gram, cross, constant)
    if not all(loss.intercepts for loss in form.losses):
        raise AssertionError("losses of one weight matrix share its intercept")
    border, counts = gram[..., :-1, -1], gram[..., -1, -1]  # (d,) or (m, d); a number or (m,)
    inner = (
        gram[..., :-1, :-1]
        - border[..., :, None] * border[..., None, :] / np.asarray(counts)[..., None, None]
    )
    x_mean = np.broadcast_to((border / np.asarray(counts)[..., None]).T.reshape(d, -1), (d, m))
    y_mean = totals / counts
    constant -= 0.5 * float(np.sum(totals * y_mean))
    return QuadraticData(block.name, inner, cross - x_mean * totals, constant, intercept, (x_mean, y_mean))


def _weights(loss: LossTerm):
    """Of every sample in 1/2 sum of weight * (z - y)^2: a number, or one for each."""
    uniform = loss.uniform_scale
    return loss.atom.quadratic * (loss.scale if uniform is None else uniform)
