"""The norm of the residuals, one value a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import Loss, register

__all__ = ["SquareRootLoss"]

#: What double precision may leave of a norm that is 1 in exact arithmetic.
ROUNDING = 1e-12


@register
@dataclass(frozen=True, eq=False)
class SquareRootLoss(Loss):
    r"""The norm of a task's residuals: sqrt(sum_j s_j (z_j - y_j)^2), with z = X_i w_i its predictions.

    Shapes: z, y and the sample weights s are (n,); one norm per task, summed over tasks. Tasks with more
    noise weigh less than under a squared loss, so that one regularization parameter suits them all.
    `mean=True` divides each norm by n (not by sqrt(n)).

    Raises
    ------
    DataError
        Where a target is not finite (NaN in a shared Y means: not in this task).

    Notes
    -----
    Not smooth where all residuals are zero. gradient: s r / ||sqrt(s) r||, r = z - y (0 where r = 0).
    Conjugate: <u, y> where ||u / sqrt(s)|| <= 1, else +inf. prox: a block soft threshold on r where all s are
    equal; otherwise r_j / (1 + mu s_j), mu > 0 the root of a scalar equation, or r = 0.
    Source: Belloni, Chernozhukov and Wang, "Square-root lasso", Biometrika 98 (2011); for several tasks, Liu,
    Wang and Zhao, "Multivariate regression with calibration", NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([4.0, 3.0]), np.array([1.0, -1.0])
    >>> SquareRootLoss().value(z, y)
    5.0
    >>> SquareRootLoss().prox(z, y, step=2.5)
    array([2.5, 1. ])
    >>> SquareRootLoss().gradient(y, y)
    array([0., 0.])
    """

    name: ClassVar[str] = "square_root_loss"
    formula: ClassVar[str] = r"\|{}-y_i\|_2"

    def value(self, z, y, s=None):
        r = z - y
        return float(np.linalg.norm(r if s is None else np.sqrt(s) * r))

    def gradient(self, z, y, s=None):
        r = z - y
        norm = np.linalg.norm(r if s is None else np.sqrt(s) * r)
        pull = r if s is None else s * r
        return pull / norm if norm > 0 else np.zeros_like(r)

    def prox(self, z, y, step, s=None):
        r = z - y
        if s is None:
            return y + _block_soft_threshold(r, step)
        if np.all(s == s[0]):
            return y + _block_soft_threshold(r, step * np.sqrt(s[0]))
        if np.linalg.norm(r / np.sqrt(s)) <= step:
            return y + np.zeros_like(r)
        t = _secular_root(s, np.sqrt(s) * r, step)
        return y + r * (t / (t + s))

    def conjugate(self, u, y, s=None):
        return float(np.dot(u, y)) if _dual_norm(u, s) <= 1.0 + ROUNDING else np.inf

    def dual_project(self, u, y, s=None):
        return u / max(_dual_norm(u, s), 1.0)


def _dual_norm(u, s) -> float:
    return float(np.linalg.norm(u if s is None else u / np.sqrt(s)))


def _block_soft_threshold(r, threshold):
    norm = np.linalg.norm(r)
    return r * (1.0 - threshold / norm) if norm > threshold else np.zeros_like(r)


def _secular_root(s, a, step) -> float:
    """The t > 0 with ||a / (t + s)|| = step, given that the left side exceeds step at t = 0.

    The prox has residuals r_j / (1 + mu s_j) with mu = step / ||sqrt(s) r_new||; t = 1 / mu turns that into
    this equation, the one of a trust region step. 1 / ||a / (t + s)|| is increasing and concave in t, so that
    Newton's method on it, started at or left of the root, rises to the root and never passes it.
    """
    t = max(0.0, np.linalg.norm(a) / step - s.max())
    while True:
        p = a / (t + s)
        norm = np.linalg.norm(p)
        after = t + (norm / step - 1.0) * norm**2 / np.dot(p, p / (t + s))
        # rounding ends the rise; before that a rise by less than 1e-15 of t is one, too
        if not after > t * (1.0 + 1e-15):
            return max(t, after)
        t = after
