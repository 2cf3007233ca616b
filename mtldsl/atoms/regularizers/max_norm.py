"""The max norm of a matrix: how short the rows of two factors can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.regularizers.norm import Norm

__all__ = ["MaxNorm"]

#: The barrier's weight ends here, for matrices whose largest entry is one: both sides of a program are then (p + q) times this apart.
_LAST = 1e-13

#: By what a barrier weight is multiplied, and Newton steps at each: 100 x 5 takes 40 of them, and ended 1 % too high with 12.
_SHRINK, _STEPS = 0.15, 60

#: Newton's decrement at which the next barrier weight follows.
_NEAR = 0.1


@register
@dataclass(frozen=True, eq=False)
class MaxNorm(Norm):
    r"""The max norm (gamma_2 norm): min over W = A B^T, factors of any rank, of (largest row norm of A) times (largest row norm of B).

    Every feature and every task gets a vector in a shared space, none longer than the others: like the trace norm it makes W
    (p features, q tasks) simple, but it bounds every entry, those of rare features too. It is not the largest absolute entry: max |W_ij| <= max_norm(W) <= sqrt(min(p, q)) max |W_ij|.

    Notes
    -----
    Value: the semidefinite program min t, [[P, W], [W^T, Q]] positive semidefinite with no diagonal entry above t. Dual norm: 1/2
    min sum(a) + sum(b), [[diag a, Z], [Z^T, diag b]] positive semidefinite. Both are solved by Newton's method on a barrier of
    p + q unknowns, O((p + q)^4) a step, from points that are feasible: rounding aside neither number is too small (the value is too
    large by 1e-8 of it at most, the dual norm by 1e-11), and a certificate made of them holds. The prox is a semidefinite program with p q unknowns more, and no closed form or cheap
    iteration of it is known: models with this word are solved by the reference (cvxpy).
    Source: Srebro, Rennie and Jaakkola, "Maximum-margin matrix factorization", NIPS 2004; Srebro and Shraibman, "Rank, trace-norm
    and max-norm", COLT 2005; the dual norm: Linial, Mendelson, Schechtman and Shraibman, "Complexity measures of sign matrices",
    Combinatorica 27 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> round(MaxNorm().value(np.array([[3.0, -6.0], [1.0, -2.0]])), 6)  # of rank one: the largest entry
    6.0
    >>> round(MaxNorm().value(np.eye(3)), 6), round(MaxNorm().dual_norm(np.eye(3)), 6)
    (1.0, 3.0)
    >>> round(MaxNorm().value(np.array([[1.0, 1.0], [1.0, -1.0]])), 6)
    1.414214
    """

    name: ClassVar[str] = "max_norm"
    unchecked: ClassVar[str] = (
        "its value is the optimum of a semidefinite program, found by an iteration to 1e-8"
    )
    meaning: ClassVar[str] = (
        r"the max norm: over all factors $A B^\top$ of the matrix, the least product of the largest row "
        "norms of $A$ and $B$"
    )
    formula: ClassVar[str] = r"\|{}\|_{\max}"
    exact_prox: ClassVar[bool] = False
    accuracy: ClassVar[float] = 1e-7

    def value(self, W):
        return _at_scale(_factor_length, W)

    def dual_gauge(self, Z):
        return _at_scale(_least_diagonal, Z)


def _at_scale(function, W) -> float:
    """function of the matrix, its largest entry made one and its rows and columns of zeros left out, in the units of W again."""
    W = np.asarray(W, float)
    size = float(np.max(np.abs(W), initial=0.0))
    if size == 0.0:
        return 0.0
    W = W[np.any(W, axis=1)][:, np.any(W, axis=0)] / size
    return size * function(W)


def _factor_length(W) -> float:
    """The max norm: an upper bound, relatively about 1e-8 above it at most.

    The dual maximises 2 <W, X> over weights x = (p, q) of rows and columns, sum x = 1, and X with [[diag p, X], [X^T, diag q]]
    positive semidefinite. With the barrier mu logdet of that matrix, X has a closed form at any x: from the SVD of D_p^1/2 W
    D_q^1/2. What is left is concave in x; its gradient is the diagonal of [[P, W], [W^T, Q]], a matrix which is feasible for the
    program of the value at any x and mu.
    """
    rows, n = len(W), sum(W.shape)
    x, mu, best, before = np.full(n, 1.0 / n), 0.1, np.inf, None
    while (
        mu > _LAST and best != before
    ):  # from some mu on, near 1e-9, rounding in the smallest weights leaves nothing to win
        before = best
        for _ in range(_STEPS):
            diagonal, hessian = _diagonal(W, x, mu)
            best = min(best, float(np.sqrt(diagonal[:rows].max() * diagonal[rows:].max())))
            # Newton's method on sum x = 1, in units of x
            K = hessian * np.outer(x, x)
            both = np.linalg.solve(K, np.column_stack([x * diagonal, x]))
            step = both[:, 0] - both[:, 1] * (x @ both[:, 0]) / (x @ both[:, 1])
            decrement = np.sqrt(max(float(step @ K @ step) / mu, 0.0))
            x = x * (1.0 + step / (1.0 + decrement))  # inside, as the barrier is self-concordant
            x /= x.sum()
            if decrement < _NEAR:
                break
        mu *= _SHRINK
    return best


def _diagonal(W, x, mu) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of the feasible matrix at weights x of rows and columns, and minus its derivative.

    P D_p P - mu P = W D_q W^T, and likewise for Q; derivatives of the two equations, in the eigenbases of D_p^1/2 P D_p^1/2 and
    D_q^1/2 Q D_q^1/2, whose eigenvalues f belong to the singular values s.
    """
    rows, roots = len(W), np.sqrt(x)
    U, s, Vt = np.linalg.svd(roots[:rows, None] * W * roots[rows:])
    s = np.concatenate([s, np.zeros(abs(rows - W.shape[1]))])
    f = 0.5 * (mu + np.sqrt(mu**2 + 4.0 * s**2))
    E, F = U / roots[:rows, None], Vt.T / roots[rows:, None]
    diagonal = np.concatenate([E**2 @ f[: len(E)], F**2 @ f[: len(F)]])
    share = 1.0 / (f[:, None] + f - mu)
    p, q = len(E), len(F)
    hessian = np.empty((p + q, p + q))
    hessian[:p, :p] = _form(E, E, share * np.outer(f, f))
    hessian[p:, p:] = _form(F, F, share * np.outer(f, f))
    hessian[:p, p:] = -_form(E, F, share * np.outer(s, s))
    hessian[p:, :p] = hessian[:p, p:].T
    return diagonal, hessian


def _form(G, H, weights) -> np.ndarray:
    """sum over k, l of weights_kl G_ik G_il H_jk H_jl, for the pairs of columns that both have."""
    r = min(G.shape[1], H.shape[1])
    first, second = ((A[:, :r, None] * A[:, None, :r]).reshape(len(A), -1) for A in (G, H))
    return (first * weights[:r, :r].ravel()) @ second.T


def _least_diagonal(Z) -> float:
    """1/2 min sum(a), diag(a) - [[0, Z], [Z^T, 0]] positive semidefinite: an upper bound, as near as `_LAST` and rounding allow."""
    n = sum(Z.shape)
    C = np.zeros((n, n))
    C[: len(Z), len(Z) :] = Z
    C += C.T
    a, mu = np.abs(C).sum(axis=1) + 1.0, 1.0
    while mu > _LAST:
        for _ in range(_STEPS):
            inverse = np.linalg.inv(np.diag(a) - C)
            inverse = 0.5 * (inverse + inverse.T)
            gradient = 1.0 - mu * np.diag(inverse)
            step = np.linalg.solve(mu * inverse**2, gradient)
            decrement = np.sqrt(max(float(gradient @ step) / mu, 0.0))
            a = a - step / (1.0 + decrement)  # inside, as the barrier is self-concordant
            if decrement < _NEAR:
                break
        mu *= _SHRINK
    return 0.5 * float(a.sum())
