r"""Descent at a fixed rank: the method of multipliers on the matrices of rank r, by Newton steps on their tangent spaces.

Where a method is near the end, the rank does not change any more, and what is left is smooth in the weights, for any loss of samples.

With the scores z split off, an outer step minimises, over the matrices W of rank r and the intercepts b,

    sum_i env_s L_i(X_i (W R)_i + b_i + u_i / s) + sum_{j<=r} phi(sigma_j(W)),

in which kinks are smooth, and the multipliers u step. At W = U diag(s) V^T a Newton step is T = U A + Q C V^T, Q an orthonormal basis of what
is orthogonal to U; the matrices bend, so that to second order the objective has <Q^T G (I - V V^T), C diag(1 / s) A> besides, G its gradient
in W. W + T is brought back to rank r by its largest singular values, which agrees with that order. Where the matrix of a step is not
positive definite, a multiple of the identity makes it so; and the objective of the outer step falls with every one.

Without convexity multipliers settle only above a penalty that nobody knows: it grows until they do. Then the multipliers and the weights obey
the first-order conditions on the matrices of rank r: u in the subdifferential of L, X^T u + ... orthogonal to the tangent space.

Source: Absil, Mahony and Sepulchre, "Optimization algorithms on matrix manifolds" (2008), chapter 6; Vandereycken, "Low-rank matrix completion
by Riemannian optimization", SIAM J. Optim. 23 (2013), for the second order; Bertsekas, "Constrained optimization and Lagrange multiplier
methods" (1982), chapter 2; Zhou, Bao, Ding and Zhu, "A semismooth Newton based augmented Lagrangian method for nonsmooth optimization on
matrix manifolds", Math. Program. 201 (2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from mtldsl.certificates.stationarity import GRADIENT_FLOOR_SHARE, finite_steps
from mtldsl.normal_form.form import LossTerm, NormalForm, single_loss
from mtldsl.normal_form.term import MapEntry
from mtldsl.solvers.augmented_lagrangian.active_rows import gram_of, held_rows
from mtldsl.solvers.augmented_lagrangian.prox_parts import (
    KinkedScores,
    RadialScores,
    SmoothScores,
    StructuredScores,
)
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.numerics.spectral_function import SpectrumFunction
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.interrupts import svd


@dataclass(frozen=True)
class FixedRankSettings:
    """Constants of descents at one rank, and of their Newton steps; shifts are added to Newton's matrix, relative to its diagonal.

    start_zero_tol   : singular value of a start, relative to the largest, that is zero
    patience_steps   : steps of the multipliers in which what is missing must fall by half
    settled_ratio    : what is missing over tol, at which the multipliers have settled
    max_runs         : runs, each from a point lower than the one before
    max_directions   : of a tangent space, of which Newton's matrix is made
    zero_tol         : singular value, relative to the largest, that is zero
    max_newton_steps : of an outer step
    decrement_share  : of the change of the multipliers, at which Newton's decrement ends an outer step
    descent_share    : of the decrement, that the line search asks for
    rounding_share   : of the objective, that rounding may hide
    shorter_factor   : times the length of a step, for the next look of the line search
    max_search_steps : looks of a line search
    easy_steps       : Newton steps of an outer step that raises the penalty
    slow_share       : of their distance before, at which scores are still so far from their copies that the penalty is raised
    settled_share    : of what is missing of the gradient, at which scores are so near to their copies that it is not
    penalty_factor   : times a penalty that is raised
    min_shift_share  : of every matrix
    cut_shift_share  : after a step that was cut short, at least
    lost_shift_share : after no step at all, at least
    growth_factor    : times a shift, until the matrix is positive definite
    decay_factor     : times a shift after a whole step
    """

    start_zero_tol: float = 1e-7
    patience_steps: int = 15
    settled_ratio: float = 0.3
    max_runs: int = 20
    max_directions: int = 2000
    zero_tol: float = 1e-10
    max_newton_steps: int = 60
    decrement_share: float = 0.1
    descent_share: float = 1e-4
    rounding_share: float = 3e-15
    shorter_factor: float = 0.4
    max_search_steps: int = 10
    easy_steps: int = 3
    slow_share: float = 0.3
    settled_share: float = 0.1
    penalty_factor: float = 2.0
    min_shift_share: float = 1e-12
    cut_shift_share: float = 1e-6
    lost_shift_share: float = 1e-3
    growth_factor: float = 10.0
    decay_factor: float = 0.2


SETTINGS = FixedRankSettings()


def is_small(shape: tuple[int, int], rank: int) -> bool:
    """Tell whether Newton's matrix of a tangent space is worth making."""
    d, m = shape
    return rank <= min(d, m) and rank * (d + m) + m <= SETTINGS.max_directions


def _hessian_of_spectrum(spectrum: SpectrumFunction, s: np.ndarray) -> np.ndarray:
    """(r^2, r^2) of sum phi(s_j) in the entries of U^T T V, row after row."""
    r, (symmetric, skew) = s.size, spectrum.quotients(s)
    H = np.diag(0.5 * (symmetric + skew).ravel())
    first = np.arange(r * r)
    H[first, first.reshape(r, r).T.ravel()] += 0.5 * (symmetric - skew).ravel()
    return H


class TangentSpaceNewton:
    """One run.

    rank     : r
    spectrum : phi
    penalty  : of the scores, at first
    start    : W (d, q) of any rank, b (m,) of centred columns, u
    right    : R (q, m); None is the identity
    floor    : gradients below it count as that large
    """

    def __init__(
        self,
        designs: Designs,
        scores: Any,
        rank: int,
        spectrum: SpectrumFunction,
        penalty: float,
        start: tuple,
        right: np.ndarray | None = None,
        floor: float = 1e-300,
    ):
        self.designs, self.scores, self.rank, self.spectrum = designs, scores, rank, spectrum
        self.right, self.floor = right, floor
        self.penalty, self.shift = penalty, 0.0
        spread = np.maximum(scores.spread_of_scores(designs), 1e-12)
        self.size = float(np.sqrt(np.sum(designs.counts * spread**2)))
        W, self.b, self.u = start
        self.W = self._rounded(W)
        self.z = self._scores(self.W, self.b)
        self.missing = self.apart = np.inf

    def step(self) -> int:
        """One step of the multipliers; how many Newton steps it took. `missing` is what the conditions are off by, relative."""
        y, steps, pull = self._minimise()
        before, self.apart = self.apart, float(np.linalg.norm(y - self.u)) / self.penalty / self.size
        self.u, self.missing = y, max(self.apart, pull)
        is_slow = self.apart > SETTINGS.slow_share * before or steps <= SETTINGS.easy_steps
        if is_slow and self.apart > SETTINGS.settled_share * pull:
            self.penalty *= SETTINGS.penalty_factor
        return max(steps, 1)

    def _rounded(self, W: np.ndarray) -> np.ndarray:
        U, s, Vt = svd(W)
        return (U[:, : self.rank] * s[: self.rank]) @ Vt[: self.rank]

    def _scores(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.designs.forward(W if self.right is None else W @ self.right, b)

    def pull(self, y: np.ndarray) -> np.ndarray:
        """The gradient of the losses in W, where y are their multipliers."""
        pull = self.designs.adjoint(y)
        return pull if self.right is None else pull @ self.right.T

    def _value(self, W, z, y) -> float:
        """The augmented Lagrangian, where `multipliers` gave y."""
        nearest = z + (self.u - y) / self.penalty
        s = svd(W, compute_uv=False)[: self.rank]
        own = 0.5 * float(y @ y) / self.penalty + self.spectrum.value(s)
        return float(self.scores.values(nearest, self.designs).sum()) + own

    def _minimise(self) -> tuple[np.ndarray, int, float]:
        """(new multipliers, Newton steps, the gradient relative to what it is the sum of)."""
        designs, u = self.designs, self.u
        m, has_b = designs.n_tasks, designs.has_intercepts
        W, b, z = self.W, self.b, self.z
        y = self.scores.multipliers(z, u, np.full(len(u), self.penalty))
        value, steps = self._value(W, z, y), 0
        while True:
            of_loss = self.pull(y)
            space = self._space(W, of_loss)
            g = space.entries(of_loss) + space.of_spectrum(self.spectrum)
            pull = float(np.linalg.norm(g)) / max(float(np.linalg.norm(of_loss)), self.floor)
            if has_b:
                of_b = designs.sums(y)
                g = np.append(g, of_b)
                pull = max(pull, float(np.linalg.norm(of_b) / max(np.linalg.norm(y, 1), 1e-300)))
            H = self._matrix(space, y)
            scale = float(np.trace(H)) / len(H)
            x, self.shift = _solved(H, -g, max(self.shift, SETTINGS.min_shift_share * scale))
            decrement = -float(g @ x)
            moved = float(np.vdot(y - u, y - u)) / self.penalty
            is_over = decrement <= SETTINGS.decrement_share**2 * moved or decrement <= 0.0
            if is_over or steps >= SETTINGS.max_newton_steps:
                break
            dW, db = space.matrix(x[: space.size]), x[space.size :] if has_b else np.zeros(m)
            length, found = 1.0, None
            for _ in range(SETTINGS.max_search_steps):
                found = self._looked(W + length * dW, b + length * db)
                wanted = value - SETTINGS.descent_share * length * decrement
                if found[-1] <= wanted + SETTINGS.rounding_share * abs(value):
                    break
                length, found = SETTINGS.shorter_factor * length, None
            steps += 1
            if found is None:
                self.shift = max(SETTINGS.growth_factor * self.shift, SETTINGS.lost_shift_share * scale)
                y = self.scores.multipliers(
                    z, u, np.full(len(u), self.penalty)
                )  # whose derivative is asked for
                continue
            cut = max(4.0 * self.shift, SETTINGS.cut_shift_share * scale)
            self.shift = SETTINGS.decay_factor * self.shift if length == 1.0 else cut
            W, b, z, y, value = found
        self.W, self.b, self.z = W, b, z
        return y, steps, pull

    def _looked(self, W: np.ndarray, b: np.ndarray) -> tuple:
        """(W brought back, b, its scores, multipliers and value)."""
        W = self._rounded(W)
        z = self._scores(W, b)
        y = self.scores.multipliers(z, self.u, np.full(len(z), self.penalty))
        return W, b, z, y, self._value(W, z, y)

    def _space(self, W: np.ndarray, pull: np.ndarray) -> _TangentSpace:
        """Return the tangent space at W; directions of singular values that are zero are those in which the loss pulls most."""
        r = self.rank
        U, s, Vt = np.linalg.svd(W, full_matrices=True)
        alive = int(np.count_nonzero(s[:r] > SETTINGS.zero_tol * s[0])) if s[0] > 0 else 0
        if alive < r:
            P, _, Rt = np.linalg.svd(U[:, alive:].T @ pull @ Vt[alive:].T, full_matrices=True)
            U[:, alive:] = U[:, alive:] @ P
            Vt[alive:] = Rt @ Vt[alive:]
        inverse = np.zeros(r)
        inverse[:alive] = 1.0 / s[:alive]
        V = Vt[:r].T
        across = U[:, r:].T @ pull
        return _TangentSpace(U[:, :r], U[:, r:], V, s[:r], inverse, across - across @ V @ V.T)

    def _matrix(self, space: _TangentSpace, y: np.ndarray) -> np.ndarray:
        """sum_k J_k^T H_k J_k, H_k of every task's scores, plus the quadratics; below the diagonal."""
        designs, r, V = self.designs, self.rank, space.V
        m, q, d = len(V), space.Q.shape[1], len(space.U)
        n_A, n_C, has_b = r * m, q * r, designs.has_intercepts
        H = np.zeros((n_A + n_C + has_b * designs.n_tasks,) * 2)
        C = slice(n_A, n_A + n_C)
        both = np.hstack([space.U, space.Q])
        of_C = np.zeros((q, r, q, r))
        for k, part in enumerate(self.scores.parts(y, designs)):
            full = self.penalty * gram_of(held_rows(designs, k, part))
            turned = both.T @ full[:d, :d] @ both
            n = np.eye(m)[k] if self.right is None else self.right[:, k]
            own = np.flatnonzero(n)
            n, v = n[own], V.T @ n
            A = (np.arange(r)[:, None] * m + own).ravel()
            H[np.ix_(A, A)] += np.kron(turned[:r, :r], np.outer(n, n))
            H[C, A] += np.einsum("ia,b,j->ibaj", turned[r:, :r], v, n).reshape(n_C, A.size)
            of_C += np.multiply.outer(turned[r:, r:], np.outer(v, v)).transpose(0, 2, 1, 3)
            if has_b:
                B, line = n_A + n_C + k, both.T @ full[d, :d]
                H[B, A] = np.outer(line[:r], n).ravel()
                H[B, C] = np.outer(line[r:], v).ravel()
                H[B, B] = full[d, d]
        H[C, C] = of_C.reshape(n_C, n_C)
        for a in range(r):
            H[n_A + a : n_A + n_C : r, a * m : (a + 1) * m] += space.across * space.inverse[a]
        ratios = self.spectrum.ratios(space.s)
        H[np.arange(n_A), np.arange(n_A)] += np.repeat(ratios, m)
        H[np.arange(n_A, n_A + n_C), np.arange(n_A, n_A + n_C)] += np.tile(ratios, q)
        inside = np.kron(np.eye(r), V.T)
        H[:n_A, :n_A] += (
            inside.T @ (_hessian_of_spectrum(self.spectrum, space.s) - np.diag(np.repeat(ratios, r))) @ inside
        )
        return H


@dataclass
class _TangentSpace:
    """The tangent space at W = U diag(s) V^T; its matrices as t = (A, C).

    s       : (r,) the singular values
    inverse : (r,) 1 / s, zero where s is
    across  : Q^T G (I - V V^T), G the gradient of the loss: the matrices of rank r bend, and so does the objective, by
              <across, C diag(1 / s) A>
    """

    U: np.ndarray
    Q: np.ndarray
    V: np.ndarray
    s: np.ndarray
    inverse: np.ndarray
    across: np.ndarray

    @property
    def size(self) -> int:
        return self.V.size + self.Q.shape[1] * self.U.shape[1]

    def parts(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = self.U.shape[1]
        return t[: self.V.size].reshape(r, -1), t[self.V.size :].reshape(-1, r)

    def matrix(self, t: np.ndarray) -> np.ndarray:
        """T (d, m)."""
        A, C = self.parts(t)
        return self.U @ A + self.Q @ (C @ self.V.T)

    def entries(self, G: np.ndarray) -> np.ndarray:
        """t of the projection of G onto the space."""
        return np.concatenate([(self.U.T @ G).ravel(), (self.Q.T @ (G @ self.V)).ravel()])

    def of_spectrum(self, spectrum: SpectrumFunction) -> np.ndarray:
        """t of the gradient of sum phi(s_j)."""
        of_A = (spectrum.ratios(self.s) * self.s)[:, None] * self.V.T
        return np.concatenate([of_A.ravel(), np.zeros(self.Q.shape[1] * len(self.s))])


def _solved(H: np.ndarray, rhs: np.ndarray, least: float) -> tuple[np.ndarray, float]:
    """((H + c)^-1 rhs, c), c >= least large enough for the matrix to be positive definite."""
    added, shift = 0.0, max(least, 1e-300)
    while True:
        H.flat[:: len(H) + 1] += shift - added
        added = shift
        try:
            factor = cho_factor(H, lower=True, check_finite=False)
            return cho_solve(factor, rhs, check_finite=False), shift
        except np.linalg.LinAlgError:
            shift *= SETTINGS.growth_factor


# --------------------------------------------------------------------------------------------------------------
# The descent of a model, from a point of low rank.


def why_not_at_rank(form: NormalForm) -> str | None:
    """None for one loss of samples, with a prox, of W or W R, beside ridges and functions of the spectrum that are not convex; else one
    sentence."""
    loss = single_loss(form)
    if isinstance(loss, str):
        return loss
    if len(form.weight_blocks) != 1:
        return f"there are {len(form.weight_blocks)} weight matrices."
    (block,) = form.weight_blocks
    if _scores_of(loss) is None:
        return f"{loss.typed} has no exact proximal step with a derivative."
    own = loss.map.entries
    if len(own) != 1 or own[0].left is not None or loss.map.offset is not None or len(loss.intercepts) > 1:
        return f"{loss.typed} is not a loss of {block.name} itself."
    for f in form.functions:
        if not f.map.multiple_of(block.name) or f.map.offset is not None:
            return f"{f.typed} is not a function of {block.name} itself."
        square = f.atom.entry_quadratic
        if square is not None and np.ndim(square) == 0:
            continue
        if f.atom.convex or f.atom.separable != "spectrum":
            return f"{f.typed} is neither a ridge nor a function of the spectrum that is not convex."
    if form.is_convex:
        return "every function is convex."
    return None if is_small(block.shape, 1) else f"the tangent spaces of {block.name} are large."


def _scores_of(loss: LossTerm) -> type | None:
    """The proximal steps of the loss with their derivatives; None where there are none."""
    if loss.has_score_steps:
        return StructuredScores
    if loss.is_piecewise_linear:
        return KinkedScores
    if not loss.atom.exact_prox:
        return None
    if loss.atom.separable:
        return SmoothScores if loss.atom.smooth else None
    return RadialScores if loss.atom.radial else None


def settle_at_rank(form: NormalForm, start: Point, *, tol: float, watch: Watch) -> Point | None:
    """The last point, from `start`, where the run ends with it; None where it goes on elsewhere.

    Where a step of a size leads lower from where a run has settled, the next one begins there, at the rank there.
    """
    at = start
    for _ in range(SETTINGS.max_runs):
        try:
            settled = _settled(form, at, tol, watch)
        except (ArithmeticError, np.linalg.LinAlgError):  # far out, where nothing holds the weights
            return None
        if settled is None:
            return None
        if watch.expired:
            watch(settled)
            return settled
        now = form.value(settled.blocks)
        value, blocks = finite_steps(form, settled.blocks, tol)
        if not value < now - 0.5 * tol * abs(now):
            return settled if watch(settled) else None
        at = Point(blocks, settled.loss_duals, iteration=start.iteration)
    return None


def _settled(form: NormalForm, start: Point, tol: float, watch: Watch) -> Point | None:
    """The point at which the multipliers settle at the rank of the start, or where the time is up."""
    (loss,), (block,) = form.losses, form.weight_blocks
    designs = Designs(loss)
    kind = _scores_of(loss)
    assert kind is not None  # the caller asked why not
    scores: Any = kind(loss)
    right = _right(loss.map.entries[0], block.shape[1])
    rank = _rank(form, start.blocks[block.name])
    if rank == 0 or not is_small(block.shape, rank):
        return None
    W = np.array(start.blocks[block.name], float)
    b = sum((start.blocks[name][0] for name in loss.intercepts), np.zeros(designs.n_tasks))
    given = None if start.loss_duals is None else start.loss_duals[0]
    u = loss.gradient(loss.predictions(start.blocks)) if given is None else given
    u = np.array(loss.dual_project(u), float)
    spread = np.maximum(scores.spread_of_scores(designs), 1e-12)
    penalty = float(np.mean(scores.sizes(designs) / spread))
    first = W, designs.centred(W if right is None else W @ right, b), u
    floor = max(GRADIENT_FLOOR_SHARE * form.slope_at_zero, np.finfo(float).tiny)
    spectrum = SpectrumFunction.of(form, block.name)
    steps = TangentSpaceNewton(designs, scores, rank, spectrum, penalty, first, right, floor)
    best, since = np.inf, 0
    while steps.missing > SETTINGS.settled_ratio * tol and not watch.expired:
        steps.step()
        since += 1
        if steps.missing < 0.5 * best:
            best, since = steps.missing, 0
        if since == SETTINGS.patience_steps:
            return None
    blocks = {block.name: steps.W}
    for name in loss.intercepts:
        whole = steps.W if right is None else steps.W @ right
        blocks[name] = designs.intercepts(whole, steps.b)[None, :]
    duals = _function_duals(form, block.name, steps.W, -steps.pull(steps.u))
    return Point(blocks, [steps.u], duals, start.iteration)


def _function_duals(form: NormalForm, block: str, W: np.ndarray, left: np.ndarray) -> list | None:
    """Every function's multiplier: the ridges', and what these leave of `left` for one other; None where there are several others."""
    if sum(f.atom.entry_quadratic is None for f in form.functions) != 1:
        return None
    ridges = {
        k: f.coefficient * float(f.atom.entry_quadratic) * f.map.multiple_of(block) * W
        for k, f in enumerate(form.functions)
        if f.atom.entry_quadratic is not None
    }
    left = left - sum(form.functions[k].map.multiple_of(block) * v for k, v in ridges.items())
    return [
        ridges[k] if k in ridges else left / f.map.multiple_of(block) for k, f in enumerate(form.functions)
    ]


def _right(entry: MapEntry, q: int) -> np.ndarray | None:
    """R where the loss is one of W R."""
    if entry.right is None:
        return None if entry.coefficient == 1.0 else entry.coefficient * np.eye(q)
    dense = entry.right.toarray() if sparse.issparse(entry.right) else np.asarray(entry.right)
    return entry.coefficient * dense


def _rank(form: NormalForm, W: np.ndarray) -> int:
    """Return how many singular values are not zero; all may be where every function is smooth, no more than a bound on the rank allows."""
    s = svd(W, compute_uv=False)
    rough = [f for f in form.functions if f.is_constraint or not f.atom.is_smooth]
    if not rough:
        return s.size
    bounds = [getattr(f.atom, "rank", s.size) for f in rough]
    return min([int(np.count_nonzero(s > SETTINGS.start_zero_tol * s[0])), *bounds])
