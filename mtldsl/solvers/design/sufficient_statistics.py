"""Data reduced to Gram matrices and moments, for quadratic losses and losses of residual norms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.data import products
from mtldsl.data.products import require_gram_memory
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm, single_block
from mtldsl.solvers.design.design import SETTINGS, SmoothLoss
from mtldsl.utils.interrupts import eigh, factor_of
from mtldsl.utils.memory import require_memory

# --------------------------------------------------------------------------------------------------------------
# Quadratic losses of one weight matrix, reduced to what does not grow with the samples; intercepts eliminated.


def why_not_quadratic(form: NormalForm) -> str | None:
    """None where the losses are quadratics of one weight matrix itself, else one sentence."""
    for loss in form.losses:
        if loss.atom.quadratic is None:
            return f"{loss.typed} is not quadratic."
    facts = single_block(form, "anything", several_losses=True)
    return facts if isinstance(facts, str) else None


class _BestIntercepts:
    """The intercepts that are best for weights, of means of the inputs (d, m) and of the labels (m,)."""

    block: str
    intercept: str | None
    means: tuple[np.ndarray, np.ndarray] | None

    def blocks(self, W) -> Blocks:
        """W with its best intercepts."""
        if self.intercept is None:
            return {self.block: W}
        assert self.means is not None  # they come with the intercept
        x_mean, y_mean = self.means
        return {self.block: W, self.intercept: (y_mean - np.einsum("ij,ij->j", x_mean, W))[None, :]}


@dataclass(frozen=True, eq=False)
class QuadraticData(_BestIntercepts):
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
        return self.value_and_gradient(W)[0]

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        product = self.product(W)
        value = 0.5 * float(np.vdot(W, product)) - float(np.vdot(self.cross, W)) + self.constant
        return value, product - self.cross


def quadratic_data(form: NormalForm) -> QuadraticData:
    """One pass over the data. SolverError where the Gram matrices do not fit into memory."""
    (block,) = form.weight_blocks
    weights = [quadratic_weights(loss) for loss in form.losses]
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

    An intercept is eliminated as in `quadratic_data`, and its means and weights are
    what it takes to put it back.
    """
    (block,) = form.weight_blocks
    weights = []
    for loss in form.losses:
        second = SmoothLoss.of(loss).curvature(loss.predictions(x))
        weights.append(np.maximum(second, SETTINGS.min_curvature_share * second.max(initial=0.0)))
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


# --------------------------------------------------------------------------------------------------------------
# Losses that depend on a task's residuals by their norm alone, reduced to what does not grow with the samples.


@dataclass(frozen=True, eq=False)
class TaskChunk:
    """Some tasks: ||X_i w - y_i||^2 = ||R_i w - q_i||^2 + rest_i^2, by a QR decomposition of [X_i, y_i] where it has fewer rows.

    tasks (c,) places among all; R (c, k, d), rows of zeros where a task has fewer; q (c, k); rest (c,)
    """

    tasks: np.ndarray
    R: np.ndarray
    q: np.ndarray
    rest: np.ndarray

    def products(self, W) -> np.ndarray:
        """R_i w_i, (c, k)."""
        return np.matmul(self.R, W.T[self.tasks][:, :, None])[:, :, 0]

    def residuals(self, W) -> np.ndarray:
        """R_i w_i - q_i, (c, k)."""
        return self.products(W) - self.q

    def norms(self, residuals) -> np.ndarray:
        return np.hypot(np.linalg.norm(residuals, axis=1), self.rest)

    def adjoint(self, residuals) -> np.ndarray:
        """R_i^T e_i, (c, d)."""
        return np.matmul(residuals[:, None, :], self.R)[:, 0, :]


class SharedChunk(TaskChunk):
    """All tasks on one X: R (k, d) is one matrix."""

    def products(self, W) -> np.ndarray:
        return (self.R @ W).T

    def adjoint(self, residuals) -> np.ndarray:
        return residuals @ self.R


@dataclass(frozen=True, eq=False)
class RadialData(_BestIntercepts):
    """One loss of one weight matrix; an intercept is eliminated: it is the residuals' weighted mean, whatever the loss."""

    loss: LossTerm
    block: str
    shape: tuple[int, int]
    chunks: tuple[TaskChunk, ...]
    intercept: str | None = None
    means: tuple[np.ndarray, np.ndarray] | None = None  # of the inputs (d, m) and of the labels (m,)

    def residuals(self, W) -> list[np.ndarray]:
        return [chunk.residuals(W) for chunk in self.chunks]

    def norms(self, residuals) -> np.ndarray:
        """||X_i w_i - y_i|| of every task, weighted as its samples are: (m,)."""
        norms = np.empty(self.shape[1])
        for chunk, e in zip(self.chunks, residuals, strict=True):
            norms[chunk.tasks] = chunk.norms(e)
        return norms

    @cached_property
    def typical_norm(self) -> float:
        """A typical norm of a task's labels, which smoothings of a kink are relative to; 1 where half of them vanish."""
        return float(np.median(self.norms(self.residuals(np.zeros(self.shape))))) or 1.0

    def value(self, norms) -> float:
        return float(self.loss.coefficients @ self.loss.atom.value_of_norm(norms))

    def gradient(self, residuals, weights) -> np.ndarray:
        """sum over tasks of weights_i / 2 ||r_i||^2, its gradient in W: (d, m)."""
        gradient = np.empty(self.shape)
        for chunk, e in zip(self.chunks, residuals, strict=True):
            gradient[:, chunk.tasks] = chunk.adjoint(weights[chunk.tasks, None] * e).T
        return gradient


def radial_data(form: NormalForm) -> RadialData:
    """One pass over the data."""
    (loss,), (block,) = form.losses, form.weight_blocks
    intercept = loss.intercepts[0] if loss.intercepts else None
    if loss.is_shared_complete:
        chunks, means = _shared(loss, intercept is not None)
    else:
        chunks, means = _separate(loss, intercept is not None)
    return RadialData(loss, block.name, block.shape, chunks, intercept, means)


def _shared(loss: LossTerm, centred: bool):
    tasks = loss.tasks
    d, m = tasks.n_features, tasks.n_tasks
    Y = tasks.targets.reshape(m, -1).T
    s = None if tasks.sample_weights is None else tasks.sample_weights[: len(Y)]
    reduced, means = _reduced(tasks.X, Y, s, centred)
    if means is not None:
        means = np.broadcast_to(means[:d, None], (d, m)), means[d:]
    R, q = reduced[:, :d], reduced[:, d:]
    k = min(d, len(R))  # beyond: what no weights reach
    return (SharedChunk(np.arange(m), R[:k], q[:k].T.copy(), np.linalg.norm(q[k:], axis=0)),), means


def _separate(loss: LossTerm, centred: bool):
    tasks = loss.tasks
    d, m = tasks.n_features, tasks.n_tasks
    rows = np.minimum(tasks.counts, d)
    require_memory(
        8.0 * float(np.sum(rows)) * d, f"{m:,} tasks of {d:,} features, reduced", "select features, or project them, first"
    )  # fmt: skip
    x_means, y_means = np.zeros((d, m)), np.zeros(m)
    inputs, targets = tasks.inputs, tasks.per_task(tasks.targets)
    weights = [None] * m if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)
    chunks, order = [], np.argsort(rows, kind="stable")
    start = 0
    while start < m:
        end = start + 1
        while end < m and (end + 1 - start) * int(rows[order[end]]) * d <= SETTINGS.chunk_entries:
            end += 1
        members = order[start:end]
        k = int(rows[members].max())
        R, q, rest = np.zeros((len(members), k, d)), np.zeros((len(members), k)), np.zeros(len(members))
        for place, i in enumerate(members):
            reduced, means = _reduced(inputs[i], targets[i][:, None], weights[i], centred)
            held = min(len(reduced), d)
            R[place, :held], q[place, :held] = reduced[:held, :d], reduced[:held, d]
            rest[place] = np.linalg.norm(reduced[held:, d])
            if means is not None:
                x_means[:, i], y_means[i] = means[:d], means[d]
        chunks.append(TaskChunk(members, R, q, rest))
        start = end
    return tuple(chunks), (x_means, y_means) if centred else None


def _reduced(X, Y, s, centred: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """([X, Y], weighted and centred, or its triangular factor where that has fewer rows; weighted means or None)."""
    both = np.column_stack([X.toarray() if hasattr(X, "toarray") else X, Y]).astype(float, copy=False)
    means = None
    if centred:
        means = np.average(both, axis=0, weights=s)
        both -= means
    if s is not None:
        both *= np.sqrt(s)[:, None]
    reduced: Any = both
    if len(both) > both.shape[1] - np.atleast_2d(Y).shape[1]:
        reduced = factor_of(both)
    return reduced, means


# --------------------------------------------------------------------------------------------------------------
# Gram matrices of a loss's inputs, with an intercept beside them or eliminated.


def quadratic_weights(loss: LossTerm) -> Any:
    """The weights of the samples in 1/2 sum of weight * (z - y)^2: a number, or one for each (N,)."""
    uniform: Any = loss.scale if loss.uniform_scale is None else loss.uniform_scale  # one of the two is there
    return uniform * loss.atom.quadratic


def gram_outgrows_inputs(loss: LossTerm) -> bool:
    """Tell whether two Gram matrices of the features take more memory than one large sparse X leaves beside itself."""
    if not (loss.is_shared_complete and loss.tasks.is_sparse):
        return False
    X, d = loss.tasks.X, loss.tasks.n_features
    return not loss.tasks.by_features.is_stored and 2 * d * d > SETTINGS.max_gram_share * X.nnz


def bordered_gram(loss: LossTerm, weights) -> np.ndarray:
    """[X_i, 1]^T diag(weights) [X_i, 1], without the 1 where there is no intercept: (p, p) where all tasks share it, else
    (m, p, p). weights: a number, or one for every sample."""
    gram, border, totals = gram_and_border(loss, weights)
    if border is None or totals is None:
        return gram
    if gram.ndim == 2:
        return np.block([[gram, border[:, :1]], [border[:, :1].T, totals[:1, None]]])
    column = border.T[:, :, None]
    top = np.concatenate([gram, column], axis=2)
    bottom = np.concatenate([column.transpose(0, 2, 1), totals[:, None, None]], axis=2)
    return np.concatenate([top, bottom], axis=1)


def gram_and_border(loss: LossTerm, weights) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """(X_i^T diag(weights) X_i, the columns X_i^T weights_i (d, m), the totals (m,)); no border where there is no intercept."""
    tasks = loss.tasks
    uniform = np.ndim(weights) == 0
    gram = tasks.gram() if uniform else tasks.gram(weights)
    if uniform:
        gram *= weights
    if not loss.intercepts:
        return gram, None, None
    per_sample = np.full(tasks.n_samples, float(weights)) if uniform else weights
    return gram, tasks.adjoint(per_sample), np.add.reduceat(per_sample, tasks.offsets[:-1])


def without_intercept(bordered: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the matrices of centred inputs, the inputs' means (d,) or (m, d), the total weights, a number or (m,)) of `bordered_gram`."""
    border = bordered[..., :-1, -1]
    totals = np.maximum(bordered[..., -1, -1], np.finfo(float).tiny)
    means = border / totals[..., None]
    return centred_gram(bordered[..., :-1, :-1], border, means), means, totals


def centred_gram(gram, border, means) -> np.ndarray:
    """The Gram matrix of inputs less their means; border = total weight * means."""
    return gram - border[..., :, None] * means[..., None, :]


def rows_gram(X, centred: bool, shares: np.ndarray | None = None) -> np.ndarray:
    """X X^T (n, n), of centred columns where asked; `shares` (n,) of the rows in their means, None: equal ones."""
    K = products.gram(X.T)
    if centred:
        shares = np.full(len(K), 1.0 / len(K)) if shares is None else shares
        means = K @ shares
        K -= means
        K -= (means - shares @ means)[:, None]
    return K


def gram_product(gram, W) -> np.ndarray:
    """Column i of the result is gram_i w_i, for gram (d, d) of all tasks or (m, d, d)."""
    if gram.ndim == 2:
        return gram @ W
    return np.matmul(gram, np.ascontiguousarray(W.T)[:, :, None])[:, :, 0].T
