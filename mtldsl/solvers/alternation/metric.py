r"""The metric in which L-BFGS walks on the profile: the losses' curvature, and what the penalty asks of a step.

With the matrices kept, a step along u_i v_j^T meets the curvature a_i b_j of their quadratic: far too much for a step that turns
one singular pair towards another, since the matrices turn with it. On the profile it meets (w_i s_i - w_j s_j) / (s_i - s_j)
and (w_i s_i + w_j s_j) / (s_i + s_j); min(w_i, w_j) is of their order, for singular values of zero too. So

    H = losses' Hessian + sum_ij min(w_i, w_j) (u_i v_j^T) (u_i v_j^T)^T,

inverted column by column in the basis V where tasks share one Gram matrix (for d < m, what is orthogonal to V counts as zero in
every row: measured, no loss). Where they do not, exactly on the span of the columns that are alive (w_j below that of a zero), all tasks together, and task by task on what that leaves: a balanced
two-level preconditioner (Mandel, "Balancing domain decomposition", Comm. Numer. Methods Engrg. 9 (1993)).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.terms.structure import StructureTerm
from mtldsl.solvers.alternation.quadratic_data import QuadraticData

__all__ = ["invert_separate", "metric_at"]

#: Entries of all factors together, and the side of the one for all tasks together.
_LARGEST_ENTRIES, _LARGEST_SIDE = 40_000_000, 1500

#: Features up to which the Gram matrix is diagonalized.
_LARGEST_SPECTRUM = 1200

#: Relative to the largest curvature, so that factorizations exist.
_FLOOR = 1e-14


def metric_at(form: NormalForm, data: QuadraticData, W: np.ndarray):
    """G -> H^{-1} G at the weights W; `data` holds the losses' curvature. None where no closed form is known, or a dear one."""
    (d, m), shared = data.shape, data.is_shared
    entries = min(d, m) ** 3 if shared else m * d * d
    if entries > _LARGEST_ENTRIES or (shared and d > _LARGEST_SPECTRUM):
        return None
    turning, extra = _turning(form, data.block, W)
    if turning is None:
        return None
    return (_invert_shared if shared else invert_separate)(data, *turning, extra)


def _turning(form: NormalForm, block: str, W):
    """((U, V, M), extra): M (r + 1, r + 1) are the weights min(w_i, w_j), the last those of zeros; extra = curvature besides.

    They are of one structure of the block itself whose matrices are both learned; any other function counts by its largest curvature on
    the diagonal.
    """
    found, extra = None, 0.0
    for f in form.functions:
        c = f.coefficient * f.map.multiple_of(block) ** 2
        if c == 0.0:
            return None, 0.0
        if isinstance(f, StructureTerm) and None not in f.names and found is None:
            structure: Any = f.structure  # whose matrices are both learned: such a one turns
            U, V, w, rest = structure.turning_weights(f.map.forward({block: W}))
            w = c * np.append(w, rest)
            found = U, V, np.minimum(w[:, None], w)
        elif isinstance(f, StructureTerm):
            return None, 0.0
        else:
            extra += c * f.atom.curvature
    return found, extra


def _between(U, weights, gram) -> np.ndarray:
    """gram + U diag(weights) U^T, the last weight for every direction orthogonal to U."""
    system = gram + (U * (weights[:-1] - weights[-1])) @ U.T
    diagonal = np.diag_indices(len(system))
    system[diagonal] += weights[-1]
    system[diagonal] += _FLOOR * system[diagonal].max() or 1.0  # nothing weighs anything: any metric does
    return system


def _invert_shared(data: QuadraticData, U, V, M, extra):
    """Column j in the basis V has the system K + (w_j + extra) I - U diag((w_j - w_i)_+) U^T, by Woodbury's formula."""
    values, Q = data.spectrum
    P = Q.T @ U  # (d, r)
    levels = (
        np.maximum(values, 0.0)[:, None] + M[-1] + extra
    )  # (d, r + 1), the last for what is orthogonal to V
    levels += _FLOOR * levels.max()
    roots = np.sqrt(np.maximum(M[-1, :-1, None] - M[:-1, :-1].T, 0.0))  # (column j, row i)
    inner = np.stack([(P / column[:, None]).T @ P for column in levels[:, :-1].T])
    inner = np.eye(P.shape[1]) - roots[:, :, None] * inner * roots[:, None, :]
    inverses = np.linalg.inv(inner + _FLOOR * np.eye(P.shape[1]))

    def invert(G):
        G = Q.T @ G
        turned = G @ V
        rest = (G - turned @ V.T) / levels[:, -1:] if G.shape[1] > V.shape[1] else 0.0
        solved = turned / levels[:, :-1]
        small = np.matmul(inverses, (roots * (P.T @ solved).T)[:, :, None])[:, :, 0]
        solved = solved + (P @ (roots * small).T) / levels[:, :-1]
        return Q @ (solved @ V.T + rest)

    return invert


def invert_separate(data: QuadraticData, U, V, M, extra):
    """G -> H^{-1} G, nearly. Balanced: z = C g on the span of the columns that are alive, and task by task what H leaves of g - H z."""
    d, m = data.shape
    task_by_task = _task_by_task(data, U, V, M, extra)
    alive = M[:-1, -1] < 0.5 * M[-1, -1]
    A = V[:, alive]  # (m, r)
    side = d * A.shape[1]
    if not 0 < side <= _LARGEST_SIDE:
        return task_by_task
    # sum over tasks of V_tj V_tk K_t, and the weights of u_i v_j^T
    coarse = np.einsum("tj,tk,tab->jakb", A, A, np.broadcast_to(data.gram, (m, d, d)), optimize=True)
    for j, column in enumerate(np.flatnonzero(alive)):
        coarse[j, :, j, :] = _between(U, M[:, column] + extra, coarse[j, :, j, :])
    inverse = np.linalg.inv(coarse.reshape(side, side))

    def together(G):
        return (inverse @ (G @ A).T.ravel()).reshape(-1, d).T @ A.T

    def hessian(W):
        turned, rest, edge = U.T @ W, M[-1, -1], M[:-1, -1]
        inner = (M[:-1, :-1] - edge[:, None] - edge + rest) * (turned @ V)
        turned = (rest + extra) * W + U @ ((edge - rest)[:, None] * turned)
        return data.product(W) + turned + ((W @ V) * (edge - rest) + U @ inner) @ V.T

    def invert(G):
        z = together(G)
        by_task = task_by_task(G - hessian(z))
        return z + by_task - together(hessian(by_task))

    return invert


def _task_by_task(data: QuadraticData, U, V, M, extra):
    """The diagonal blocks of H alone: in task t, direction i of U has the weight sum_j M_ij V_tj^2."""
    d, m = data.shape
    shares = np.column_stack([V**2, np.maximum(1.0 - np.sum(V**2, axis=1), 0.0)])
    grams = np.broadcast_to(data.gram, (m, d, d))
    inverses = np.linalg.inv(
        np.stack([_between(U, weights + extra, K) for weights, K in zip(shares @ M, grams, strict=True)])
    )
    return lambda G: np.matmul(inverses, np.ascontiguousarray(G.T)[:, :, None])[:, :, 0].T
