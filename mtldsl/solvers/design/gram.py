"""Gram matrices of a loss's inputs, with an intercept beside them or eliminated."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.data import products
from mtldsl.normal_form.form import LossTerm
from mtldsl.solvers.design.design import SETTINGS


def quadratic_weights(loss: LossTerm) -> Any:
    """The weights of the samples in 1/2 sum of weight * (z - y)^2: a number, or one for each (N,)."""
    uniform: Any = loss.scale if loss.uniform_scale is None else loss.uniform_scale  # one of the two is there
    return uniform * loss.atom.quadratic


def gram_outgrows_inputs(loss: LossTerm, size: int, copies: int) -> bool:
    """Tell whether some matrices (size, size) take more memory than one large sparse X leaves beside itself."""
    if not (loss.is_shared_complete and loss.tasks.is_sparse):
        return False
    tasks = loss.tasks
    return not tasks.by_features.is_stored and copies * size * size > SETTINGS.max_gram_share * tasks.X.nnz


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


def rows_gram(X, centred: bool) -> np.ndarray:
    """X X^T (n, n), of centred columns where asked."""
    K = products.gram(X.T)
    if centred:
        means = K.mean(axis=0)
        K -= means
        K -= (means - means.mean())[:, None]
    return K


def gram_product(gram, W) -> np.ndarray:
    """Column i of the result is gram_i w_i, for gram (d, d) of all tasks or (m, d, d)."""
    if gram.ndim == 2:
        return gram @ W
    return np.matmul(gram, np.ascontiguousarray(W.T)[:, :, None])[:, :, 0].T
