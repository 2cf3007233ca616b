"""L-BFGS on the profile over the weights, from which learned matrices are eliminated."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.terms.structure_term import Structures, StructureTerm, learned_matrices
from mtldsl.solvers.design.sufficient_statistics import QuadraticData, curvature_data
from mtldsl.solvers.linear_systems.task_matrices import BlockLayout
from mtldsl.solvers.nonconvex.block_updates import assert_descent
from mtldsl.solvers.nonconvex.weights_step import LinearStep
from mtldsl.solvers.numerics.line_search import VALUE_ROUNDING_SHARE
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class ProfileSettings:
    """Limits of the line search, the metric and the L-BFGS steps on the profile.

    decrease_share           : sufficient decrease of the line search
    curvature_share          : sufficient curvature of the line search
    search_steps             : trials of the line search, beyond which there is no step
    factor_entries           : of all factors of the metric together
    factor_rows              : of the one for all tasks together
    spectrum_features        : up to which the Gram matrix is diagonalized
    diagonal_share           : of the largest curvature, added so that factorizations exist
    memory_steps             : pairs that L-BFGS remembers
    metric_iterations        : after which the metric is chosen anew
    joint_steps              : before L-BFGS, which they bring near
    joint_tol                : accuracy of these steps
    gram_flops               : that Gram matrices of non-quadratic losses may take
    look_interval_iterations : after which a look is worth its price, whatever that is
    cheap_look_entries       : scalars of data up to which a look at the certificate costs a few milliseconds
    """

    decrease_share: float = 1e-4
    curvature_share: float = 0.9
    search_steps: int = 30
    factor_entries: int = 40_000_000
    factor_rows: int = 1500
    spectrum_features: int = 1200
    diagonal_share: float = 1e-14
    memory_steps: int = 10
    metric_iterations: int = 40
    joint_steps: int = 4
    joint_tol: float = 1e-5
    gram_flops: int = 2_000_000_000
    look_interval_iterations: int = 200
    cheap_look_entries: int = 2_000_000


SETTINGS = ProfileSettings()


# --------------------------------------------------------------------------------------------------------------
# L-BFGS whose first guess of the inverse Hessian is given: a good metric is worth more than a long memory.

Evaluation = tuple[float, np.ndarray]  # value, gradient


class LBFGS:
    """Minimises a smooth function from x: x <- x - t H g, H from the last `memory` steps and `metric` (g -> H0 g).

    size: of the terms that the values are sums of, which may cancel: what rounding errors are proportional to.
    Without a metric, H0 is the multiple of the identity that the last step suggests.

    The line search asks for weak Wolfe conditions, by interpolation and bisection; where values agree to rounding, for the
    slopes alone.
    Sources: Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", Math. Program. 45 (1989); Hager
    and Zhang, "A new conjugate gradient method with guaranteed descent and an efficient line search", SIAM J. Optim. 16 (2005).
    """

    def __init__(
        self,
        function: Callable[[np.ndarray], Evaluation],
        x: np.ndarray,
        metric: Callable | None,
        memory: int,
        size: float = 0.0,
    ):
        self.function, self.metric, self.scale, self.size = function, metric, 1.0, size
        self.x = x
        self.value, self.gradient = function(x)
        self.pairs: deque = deque(maxlen=memory)

    def step(self) -> bool:
        """One step; False where none goes down any more."""
        direction = -self._inverse_hessian(self.gradient)
        slope = float(self.gradient @ direction)
        if not slope < 0.0:
            if not self.pairs:
                return False
            self.pairs.clear()
            return self.step()
        found = self._search(direction, slope)
        if found is None:
            if not self.pairs:
                return False
            self.pairs.clear()
            return self.step()
        x, value, gradient = found
        s, y = x - self.x, gradient - self.gradient
        if not np.any(s):  # a step below the resolution of x
            return False
        curvature = float(s @ y)
        if curvature > 1e-14 * np.linalg.norm(s) * np.linalg.norm(y):
            self.pairs.append((s, y, curvature))
        self.x, self.value, self.gradient = x, value, gradient
        return True

    def _inverse_hessian(self, g: np.ndarray) -> np.ndarray:
        """The two-loop recursion."""
        q, shares = g.copy(), []
        for s, y, curvature in reversed(self.pairs):
            share = float(s @ q) / curvature
            q -= share * y
            shares.append(share)
        if self.metric is not None:
            r = self.scale * self.metric(q)
        elif self.pairs:
            _, y, curvature = self.pairs[-1]
            r = q * (curvature / float(y @ y))
        else:  # a first step of the size of x
            r = q * (max(float(np.linalg.norm(self.x)), 1.0) * 1e-2 / max(float(np.linalg.norm(q)), 1e-300))
        for (s, y, curvature), share in zip(self.pairs, reversed(shares), strict=True):
            r += s * (share - float(y @ r) / curvature)
        return r

    def _search(self, direction: np.ndarray, slope: float) -> tuple[np.ndarray, float, np.ndarray] | None:
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(SETTINGS.search_steps):
            x = self.x + t * direction
            value, gradient = self.function(x)
            now = float(gradient @ direction)
            lower = value <= self.value + SETTINGS.decrease_share * t * slope
            same = abs(value - self.value) <= VALUE_ROUNDING_SHARE * max(abs(self.value), self.size)
            if not lower and not (same and now <= -(1.0 - 2.0 * SETTINGS.decrease_share) * slope):
                high = t
                if low == 0.0:  # the minimum of the parabola through both values and the first slope
                    parabola = -0.5 * slope * t * t / (value - self.value - slope * t)
                    t = min(max(parabola, 0.1 * t), 0.6 * t) if np.isfinite(parabola) else 0.5 * t
                    continue
            elif now < SETTINGS.curvature_share * slope:
                low = t
            else:
                self.scale *= np.sqrt(min(max(t, 0.5), 2.0))
                return x, value, gradient
            t = 2.0 * low if high == np.inf else 0.5 * (low + high)
        return None


# --------------------------------------------------------------------------------------------------------------
# The metric in which L-BFGS walks on the profile: the losses' curvature, and what the penalty asks of a step.
#
# With the matrices kept, a step along u_i v_j^T meets the curvature a_i b_j of their quadratic: far too much for a step that turns
# one singular pair towards another, since the matrices turn with it. On the profile it meets (w_i s_i - w_j s_j) / (s_i - s_j)
# and (w_i s_i + w_j s_j) / (s_i + s_j); min(w_i, w_j) is of their order, for singular values of zero too. So
#
#     H = losses' Hessian + sum_ij min(w_i, w_j) (u_i v_j^T) (u_i v_j^T)^T,
#
# inverted column by column in the basis V where tasks share one Gram matrix (for d < m, what is orthogonal to V counts as zero in
# every row: measured, no loss). Where they do not, exactly on the span of the columns that are alive (w_j below that of a zero), all tasks together, and task by task on what that leaves: a balanced
# two-level preconditioner (Mandel, "Balancing domain decomposition", Comm. Numer. Methods Engrg. 9 (1993)).


def make_preconditioner(form: NormalForm, data: QuadraticData, W: np.ndarray):
    """G -> H^{-1} G at the weights W; `data` holds the losses' curvature. None where no closed form is known, or a dear one."""
    (d, m), shared = data.shape, data.is_shared
    entries = min(d, m) ** 3 if shared else m * d * d
    if entries > SETTINGS.factor_entries or (shared and d > SETTINGS.spectrum_features):
        return None
    turning, extra = _turning(form, data.block, W)
    if turning is None:
        return None
    return (_invert_shared if shared else _invert_separate)(data, *turning, extra)


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


def _add_outside_span(U, weights, gram) -> np.ndarray:
    """gram + U diag(weights) U^T, the last weight for every direction orthogonal to U."""
    system = gram + (U * (weights[:-1] - weights[-1])) @ U.T
    diagonal = np.diag_indices(len(system))
    system[diagonal] += weights[-1]
    # nothing weighs anything: any metric does
    system[diagonal] += SETTINGS.diagonal_share * system[diagonal].max() or 1.0
    return system


def _invert_shared(data: QuadraticData, U, V, M, extra):
    """Column j in the basis V has the system K + (w_j + extra) I - U diag((w_j - w_i)_+) U^T, by Woodbury's formula."""
    values, Q = data.spectrum
    P = Q.T @ U  # (d, r)
    levels = (
        np.maximum(values, 0.0)[:, None] + M[-1] + extra
    )  # (d, r + 1), the last for what is orthogonal to V
    levels += SETTINGS.diagonal_share * levels.max()
    roots = np.sqrt(np.maximum(M[-1, :-1, None] - M[:-1, :-1].T, 0.0))  # (column j, row i)
    inner = np.stack([(P / column[:, None]).T @ P for column in levels[:, :-1].T])
    inner = np.eye(P.shape[1]) - roots[:, :, None] * inner * roots[:, None, :]
    inverses = np.linalg.inv(inner + SETTINGS.diagonal_share * np.eye(P.shape[1]))

    def invert(G):
        G = Q.T @ G
        turned = G @ V
        rest = (G - turned @ V.T) / levels[:, -1:] if G.shape[1] > V.shape[1] else 0.0
        solved = turned / levels[:, :-1]
        small = np.matmul(inverses, (roots * (P.T @ solved).T)[:, :, None])[:, :, 0]
        solved = solved + (P @ (roots * small).T) / levels[:, :-1]
        return Q @ (solved @ V.T + rest)

    return invert


def _invert_separate(data: QuadraticData, U, V, M, extra):
    """G -> H^{-1} G, nearly. Balanced: z = C g on the span of the columns that are alive, and task by task what H leaves of g - H z."""
    d, m = data.shape
    task_by_task = _task_by_task(data, U, V, M, extra)
    alive = M[:-1, -1] < 0.5 * M[-1, -1]
    A = V[:, alive]  # (m, r)
    side = d * A.shape[1]
    if not 0 < side <= SETTINGS.factor_rows:
        return task_by_task
    # sum over tasks of V_tj V_tk K_t, and the weights of u_i v_j^T
    coarse = np.einsum("tj,tk,tab->jakb", A, A, np.broadcast_to(data.gram, (m, d, d)), optimize=True)
    for j, column in enumerate(np.flatnonzero(alive)):
        coarse[j, :, j, :] = _add_outside_span(U, M[:, column] + extra, coarse[j, :, j, :])
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
        np.stack(
            [_add_outside_span(U, weights + extra, K) for weights, K in zip(shares @ M, grams, strict=True)]
        )
    )
    return lambda G: np.matmul(inverses, np.ascontiguousarray(G.T)[:, :, None])[:, :, 0].T


# --------------------------------------------------------------------------------------------------------------
# Quasi-Newton steps on the profile: the objective with every learned matrix at its best, a smooth function of the weights.


def why_not_smooth(form: NormalForm) -> str | None:
    """One sentence about the first term that has no gradient, None where there is none."""
    for loss in form.losses:
        if not loss.atom.smooth:
            return f"{loss.typed} is not smooth."
    for f in form.functions:
        if f.is_constraint or not f.atom.is_smooth:
            return f"{f.typed} is {'a constraint' if f.is_constraint else 'not smooth'}."
    return None


class _GramProfile:
    """The profile of quadratic losses, by their Gram matrices: intercepts eliminated, W alone."""

    def __init__(self, form: NormalForm, step: LinearStep):
        self.form, self.step = form, step
        self.shape = step.data.shape

    def flat(self, x: Blocks) -> np.ndarray:
        return x[self.step.name].ravel()

    def metric(self, flat):
        """g -> H^{-1} g, None where there is none."""
        invert = make_preconditioner(self.form, self.step.data, flat.reshape(self.shape))
        return None if invert is None else lambda g: invert(g.reshape(self.shape)).ravel()

    def blocks(self, flat) -> Blocks:
        return self.step.data.blocks(flat.reshape(self.shape))

    def parts(self, flat) -> tuple[float, np.ndarray, np.ndarray]:
        """(value, gradient of the losses, gradient of the penalties)"""
        W = flat.reshape(self.shape)
        value, of_losses = self.step.data.value_and_gradient(W)
        more, of_penalties = _penalties(
            self.form, {self.step.name: W}, {self.step.name: np.zeros(self.shape)}
        )
        return value + more + self.form.constant, of_losses.ravel(), of_penalties[self.step.name].ravel()


class _DataProfile:
    """The profile of any smooth losses, by passes over the data."""

    def __init__(self, form: NormalForm):
        self.form, self.layout = form, BlockLayout(form)

    def flat(self, x: Blocks) -> np.ndarray:
        return self.layout.flat(x)

    def metric(self, flat):
        """As above, from the losses' second derivatives at this point; the intercept is eliminated and put back."""
        (name, *others), intercepts = (
            [b.name for b in self.form.weight_blocks],
            self.form.losses[0].intercepts,
        )
        if others or not all(
            loss.map.identity_of == name and loss.atom.separable and _pays(loss) for loss in self.form.losses
        ):
            return None
        x = self.layout.blocks(flat)
        data, means, counts = curvature_data(self.form, x)
        invert = make_preconditioner(self.form, data, x[name])
        if invert is None:
            return None

        def apply(g):
            parts = dict(self.layout.blocks(g))
            if intercepts:
                of_intercept = parts[intercepts[0]][0]
                parts[name] = invert(parts[name] - means * of_intercept)
                parts[intercepts[0]] = of_intercept / counts - np.sum(means * parts[name], axis=0)
            else:
                parts[name] = invert(parts[name])
            return self.layout.flat(parts)

        return apply

    def blocks(self, flat) -> Blocks:
        return {name: block.copy() for name, block in self.layout.blocks(flat).items()}

    def parts(self, flat) -> tuple[float, np.ndarray, np.ndarray]:
        x, of_losses, value = self.layout.blocks(flat), self.form.zeros(), self.form.constant
        for loss in self.form.losses:
            z = loss.predictions(x)
            value += loss.value(z)
            loss.add_adjoint(loss.gradient(z), of_losses)
        more, of_penalties = _penalties(self.form, x, self.form.zeros())
        return value + more, self.layout.flat(of_losses), self.layout.flat(of_penalties)


def _pays(loss) -> bool:
    """Tell whether Gram matrices of the samples are cheap enough to be formed anew in every round."""
    return loss.tasks.n_samples * loss.tasks.n_features**2 <= SETTINGS.gram_flops


def _penalties(form: NormalForm, x: Blocks, into: Blocks) -> tuple[float, Blocks]:
    """Value of all functions; their gradients are added to `into`."""
    total = 0.0
    for f in form.functions:
        W = f.map.forward(x)
        if isinstance(f, StructureTerm):
            value, gradient = f.structure.value_and_gradient(W)
        else:
            value, gradient = f.atom.value(W), f.atom.gradient(W)
        total += f.coefficient * value
        f.map.add_adjoint(f.coefficient * gradient, into)
    return total, into


def minimize_profile(
    step, form: NormalForm, x: Blocks, structures: Structures, *, tol: float, max_iter: int, watch: Watch
) -> Point:
    """A few joint steps, then L-BFGS in a metric that is chosen anew now and then, until `watch` is content."""
    cheap = form.data_size <= SETTINGS.cheap_look_entries
    first, value = min(SETTINGS.joint_steps, max_iter), np.inf
    for iteration in range(1, first + 1):
        x = step.solve(structures, x, SETTINGS.joint_tol).blocks
        structures = learned_matrices(form, x)
        before, value = value, step.value(x)
        assert_descent(before, value, iteration, step.rise * step.size(x))
        if (cheap and iteration == 1) or iteration == max_iter:
            point = Point(x, iteration=iteration)
            if watch(point) or watch.expired or iteration == max_iter:
                return point
    profile = _GramProfile(form, step) if isinstance(step, LinearStep) else _DataProfile(form)
    flat, iteration, target = profile.flat(x), first, 0.5 * tol
    residual, looked, size = np.inf, iteration, step.size(x)

    def function(flat):
        nonlocal residual
        value, of_losses, of_penalties = profile.parts(flat)
        gradient = of_losses + of_penalties
        size = max(np.linalg.norm(of_losses), np.linalg.norm(of_penalties), np.finfo(float).tiny)
        residual = float(np.linalg.norm(gradient) / size)
        return value, gradient

    while True:
        started = iteration
        search = LBFGS(function, flat, profile.metric(flat), SETTINGS.memory_steps, size)
        while iteration - started < SETTINGS.metric_iterations:
            before = search.value
            moved = search.step()
            iteration += moved
            assert_descent(before, search.value, iteration, step.rise * size)
            end = residual <= target or not moved or iteration >= max_iter or watch.expired
            # a few looks on the way for the history, and for those who interrupt a long run
            due = cheap and (iteration - first).bit_count() == 1
            if end or due or iteration - looked >= SETTINGS.look_interval_iterations:
                point = Point(profile.blocks(search.x), iteration=iteration)
                if watch(point) or watch.expired or iteration >= max_iter:
                    return point
                looked = iteration
                target = 0.3 * residual if residual <= target else target
                if not moved:
                    break
        flat = search.x
        if iteration - started < 2:  # not even the first steps in a new metric go down: rounding
            return point
