r"""The dual norm of a sum of norms that have no common proximal step, from both sides.

With N = sum_k N_k, the dual norm of P is t = max <P, W> over N(W) <= 1, and 1 / t the least N(W) with <P, W> = 1. ADMM finds it with a copy
of W a norm; any W tells a lower bound, <P, W> / N(W), and any P = sum_k Z_k an upper one, the largest dual norm N_k of its Z_k.
Source: Boyd, Parikh, Chu, Peleato and Eckstein, "Distributed optimization and statistical learning via the alternating direction method of
multipliers", Foundations and Trends in Machine Learning 3 (2010), sections 3.4 and 7.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.compile.function_term import FunctionTerm

__all__ = ["dual_norm_of_sum"]

#: The two bounds are this near, relatively, at the end, or so many steps were taken.
_NEAR, _STEPS = 1e-9, 3000

#: The bounds are looked at, and the penalty is set anew, after so many steps; the penalty in the first part alone.
_EVERY, _SETTLED = 20, 1000


def dual_norm_of_sum(P: np.ndarray, norms: Sequence[FunctionTerm]) -> tuple[float, float]:
    """(a lower bound, an upper bound). Every norm has an exact prox.

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 1))))
    >>> from mtldsl.compile.from_tree import to_normal_form
    >>> form = to_normal_form(mtl.group_norm(W, [[0, 1], [1, 2]]), [], "", {}, {})
    >>> low, high = dual_norm_of_sum(np.array([[0.0], [1.0], [0.0]]), form.functions)  # half of it in either group
    >>> bool(low <= 0.5 <= high), round(high, 6)
    (True, 0.5)
    """
    size = float(np.linalg.norm(P))
    if size == 0.0:
        return 0.0, 0.0
    P, K, low, high = P / size, len(norms), 0.0, np.inf
    W, scaled, rho = (
        P.copy(),
        np.zeros((K, *P.shape)),
        sum(norm.coefficient * norm.atom.value(P) for norm in norms),
    )
    for step in range(1, _STEPS + 1):
        copies = np.stack([norm.prox(W - u, 1.0 / rho) for norm, u in zip(norms, scaled, strict=True)])
        before, mean = W, (copies + scaled).mean(axis=0)
        W = mean + (1.0 - np.vdot(P, mean)) * P
        scaled += copies - W
        if step % _EVERY:
            continue
        low = max(low, 1.0 / sum(norm.coefficient * norm.atom.value(W) for norm in norms))
        high = min(high, _upper(P, norms, -rho * scaled))
        if high - low <= _NEAR * high:
            break
        apart, moved = np.linalg.norm(copies - W), np.sqrt(K) * np.linalg.norm(W - before)
        if step <= _SETTLED and not 0.2 * moved <= apart <= 5.0 * moved:
            factor = 2.0 if apart > moved else 0.5
            rho, scaled = rho * factor, scaled / factor
    return size * low, size * high


def _upper(P, norms, slopes) -> float:
    """The largest dual norm of parts that add up to P: slopes of the norms, and what is missing shared out."""
    slopes = np.stack([norm.atom.dual_project(part) for norm, part in zip(norms, slopes, strict=True)])
    share = float(np.vdot(P, slopes.sum(axis=0)))
    if share <= 0.0:
        return np.inf
    parts = slopes / share
    takes = np.stack([norm.atom.dual_project(np.ones(P.shape)) != 0 for norm in norms])
    parts += takes * ((P - parts.sum(axis=0)) / np.maximum(takes.sum(axis=0), 1))
    return max(norm.dual_gauge(part) for norm, part in zip(norms, parts, strict=True))
