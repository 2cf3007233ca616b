r"""Losses with kinks beside penalties of the spectrum that are not convex: convex models, one after another, by the method of multipliers.

A concave penalty of the singular values is the difference of two convex functions,

    sum_j phi(s_j) = L ||W||_* - h(W),     h(W) = sum_j (L s_j - phi(s_j)),     L = phi'(0),

and so is, where mu is large enough, what `rank(W) <= r` forbids: mu (||W||_* - the sum of the r largest singular values) is zero there and
nowhere else. With h replaced by its tangent at the last weights, <T, W> with T = U diag(L - phi'(s)) V^T, the model is convex: a trace norm
that is tilted. It lies above the objective and touches it, so that no solution of it lies higher; where T does not move any more, the
first-order conditions of the model itself hold.

Source: Pham Dinh and Le Thi, "A D.C. optimization algorithm for solving the trust-region subproblem", SIAM J. Optim. 8 (1998); for the
rank, Gotoh, Takeda and Tono, "DC formulations and algorithms for sparse optimization problems", Math. Program. 169 (2018).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtldsl.atoms.calculus.prox_of_sum import why_not
from mtldsl.atoms.calculus.singular_values import largest_singular_value
from mtldsl.atoms.calculus.spectral_matrix import singular_values, thin_svd
from mtldsl.atoms.regularizers import TraceNorm
from mtldsl.compile.normal_form import FunctionTerm, NormalForm
from mtldsl.solvers.multipliers.matrix_part import MatrixPart

__all__ = ["Concave", "ConcavePart", "TiltedPart", "concave_of", "relaxed", "reweighted_of"]

#: A singular value this small, relative to the largest, is zero.
_ZERO = 1e-10

#: Where slopes at zero are read, relative to one; they are finite where a tenth of it has the same to this share.
_NEAR_ZERO, _SAME = 1e-9, 1e-6

#: The penalty of a descent, as a multiple of what makes the augmented Lagrangian differentiable.
_MARGIN = 2.0


@dataclass
class Concave:
    """c sum_j phi(s_j), or the constraint that at most `rank` singular values are not zero.

    weight : L, the coefficient of the trace norm; of a constraint it may be raised
    """

    term: FunctionTerm
    rank: int | None
    weight: float

    def slopes(self, s: np.ndarray) -> np.ndarray:
        """c phi'(s), which of a constraint is the slope of what it forbids."""
        if self.rank is not None:
            return np.where(np.arange(s.size) < self.rank, 0.0, self.weight)
        atom: Any = self.term.atom
        alive = s > _ZERO * s.max(initial=0.0)
        safe = np.where(alive, s, 1.0)
        return np.where(alive, self.term.coefficient * 2.0 * safe * atom.slope(safe**2), self.weight)

    def rank_of(self, W: np.ndarray) -> int:
        """How many singular values of W are not zero."""
        s = singular_values(W)
        return int(np.count_nonzero(s > _ZERO * s.max(initial=0.0)))

    def least_penalty(self, W: np.ndarray, P: np.ndarray) -> float:
        """The penalty above which the function's prox is smooth around W, whose multipliers are P; inf where there is none."""
        f = self.term
        if not f.is_constraint and np.isfinite(f.atom.weak_convexity):
            return _MARGIN * f.coefficient * f.atom.weak_convexity
        s = singular_values(W)[: self.rank_of(W)]
        jumps = [*getattr(f.atom, "kinks", ()), *([] if f.atom.is_reweighted else [0.0])]
        apart = float(np.abs(s[:, None] - jumps).min(initial=np.inf))
        pull = largest_singular_value(P)
        return _MARGIN * pull / apart if apart > _ZERO * s.max(initial=0.0) else np.inf

    def tilt(self, W: np.ndarray) -> np.ndarray:
        """T, the gradient of h at W."""
        U, s, Vt = thin_svd(W)
        bent = np.where(s > _ZERO * s.max(initial=0.0), self.weight - self.slopes(s), 0.0)
        return (U * bent) @ Vt


def concave_of(form: NormalForm) -> Concave | str:
    """The one function that is not convex, or a sentence that says what is wrong."""
    rough = [f for f in form.functions if not f.atom.convex]
    if len(rough) != 1:
        return f"{rough[1].typed} is not convex either." if rough else "every function is convex."
    (f,) = rough
    found = _concave(f)
    if found is None:
        return f"{f.typed} is neither a concave function of the spectrum with a finite slope at zero nor a bound on the rank."
    return why_not([(g.coefficient, g.atom) for g in relaxed(form, found).functions]) or found


def reweighted_of(form: NormalForm) -> Concave | None:
    """The one function that is not convex, where it is smooth and an exact prox is known of its sum with all others."""
    rough = [f for f in form.functions if not f.atom.convex]
    if len(rough) != 1 or not (rough[0].atom.is_reweighted and rough[0].atom.exact_prox):
        return None
    found = Concave(rough[0], None, rough[0].coefficient)
    both = form.functions, relaxed(form, found).functions
    return None if any(why_not([(f.coefficient, f.atom) for f in fs]) for fs in both) else found


def _concave(f: FunctionTerm) -> Concave | None:
    atom: Any = f.atom
    if f.is_constraint:
        rank = getattr(atom, "rank", None)
        return None if rank is None else Concave(f, rank, 0.0)
    if not hasattr(atom, "slope") or getattr(atom, "eps", 1.0) != 0.0 or not atom.exact_prox:
        return None
    at, nearer = (2.0 * s * float(atom.slope(np.float64(s) ** 2)) for s in (_NEAR_ZERO, 0.1 * _NEAR_ZERO))
    if not (np.isfinite(at) and abs(at - nearer) <= _SAME * at):
        return None
    return Concave(f, None, f.coefficient * at)


def relaxed(form: NormalForm, concave: Concave) -> NormalForm:
    """With L ||W||_* in its place: convex."""
    weight = concave.weight or 1.0
    own = FunctionTerm(TraceNorm(), weight, concave.term.map, concave.term.typed)
    return replace(form, functions=tuple(own if f is concave.term else f for f in form.functions))


class ConcavePart(MatrixPart):
    """The joint prox of functions one of which is not convex, near a point where it is smooth among the matrices of one rank."""

    least_slope = -np.inf


class TiltedPart(MatrixPart):
    """The joint prox of functions of one matrix and of -<tilt, W>."""

    def __init__(self, functions: tuple[FunctionTerm, ...], unit: np.ndarray, place: int):
        super().__init__(functions, unit)
        self.tilt: Any = 0.0
        self.place = place  # of the trace norm that is tilted

    def multipliers(self, W: np.ndarray, P: np.ndarray, M: np.ndarray) -> np.ndarray:
        middle = W + P / M
        self.at = middle + self.tilt / M
        self.found = self.prox(self.at, M)
        return M * (middle - self.found)

    def shares(self, V: np.ndarray, M: np.ndarray) -> list[np.ndarray]:
        found = super().shares(V + self.tilt / M, M)
        found[self.place] = found[self.place] - self.tilt
        return found
