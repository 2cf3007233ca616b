"""Proximal steps of losses and regularizers and their derivatives, as semismooth Newton steps need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.metrics.metric import MetricBatch
from mtldsl.atoms.prox.composition import prox_of_sum
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import FunctionTerm, LossTerm
from mtldsl.solvers.design.row_penalty import RowPenalty
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.numerics.spectral_function import divided_differences
from mtldsl.utils.interrupts import svd

# --------------------------------------------------------------------------------------------------------------
# The regularizer's copy where it is anything with an exact prox: its derivative comes as products, for conjugate gradients.


@dataclass(frozen=True)
class ProxSettings:
    """Constants of proximal steps.

    difference_share : of a size, as step of differences
    curvature_difference_share : of the norm of residuals, as step of the differences that the second derivative is made of
    """

    difference_share: float = 1e-7
    curvature_difference_share: float = 1e-5


SETTINGS = ProxSettings()


class MatrixPart:
    """The joint prox of functions of one matrix, in a metric that is one number.

    unit : one scale for all rows, so that penalties mean the same as in `RowPart`
    """

    is_separable = False

    def __init__(self, functions: tuple[FunctionTerm, ...], unit: np.ndarray):
        self.functions = functions
        self.sum_prox: Any = prox_of_sum([(f.coefficient, f.atom) for f in functions])
        self.unit = np.full(len(unit), float(np.sqrt(np.mean(unit**2))))
        atoms = [f.atom for f in functions]
        # one number for all entries is a function of singular values too; numbers of their own are not
        self.is_of_rows = all(atom.separable in ("rows", "entries") for atom in atoms)
        self.is_spectral = all(
            atom.separable == "spectrum"
            or (atom.entry_quadratic is not None and np.ndim(atom.entry_quadratic) == 0)
            for atom in atoms
        )

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        return np.full((len(self.unit), len(penalties)), self.unit[0] ** 2 * penalties[0])

    def multipliers(self, W: np.ndarray, P: np.ndarray, M: np.ndarray) -> np.ndarray:
        """M (t - prox(t)), t = W + P / M; the derivative is the one there."""
        self.at = W + P / M
        self.found = self.prox(self.at, M)
        return M * (self.at - self.found)

    def copy(self, W: np.ndarray, P: np.ndarray, Q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """prox(t), as the prox gave it."""
        return self.found

    def prox(self, V: np.ndarray, M: np.ndarray) -> np.ndarray:
        return self.sum_prox.prox(V, 1.0 / M[0, 0])

    def derivative(self, M: np.ndarray):
        """(H -> (I - D) H, its mean eigenvalue, guessed)."""
        V, v = self.at, self.found
        if self.is_spectral:
            return _spectral(lambda A: self.prox(A, M), V, v)
        if self.is_of_rows:
            blocks = self.blocks(M)
            mean = float(np.einsum("jii->", blocks)) / V.size
            return lambda H: np.einsum("jik,jk->ji", blocks, H), mean
        size = np.linalg.norm(V)

        def product(H):
            norm = np.linalg.norm(H)
            if norm == 0.0:
                return H
            step = SETTINGS.difference_share * max(size, 1e-12) / norm
            return H - (self.prox(V + step * H, M) - v) / step

        return product, 0.5

    def blocks(self, M: np.ndarray) -> np.ndarray:
        """(d, m, m): I - D of every row, where the functions are sums over rows: a step of one entry in all rows at once shows a column."""
        V, v = self.at, self.found
        step = SETTINGS.difference_share * max(float(np.sqrt(np.mean(V**2))), 1e-12)
        steps = step * np.eye(V.shape[1])
        moved = np.stack([self.prox(V + one, M) - v for one in steps], axis=2) / step
        blocks = np.eye(V.shape[1]) - moved
        return 0.5 * (blocks + blocks.transpose(0, 2, 1))

    def shares(self, V: np.ndarray, M: np.ndarray) -> list[np.ndarray]:
        """The multiplier of every function where the prox is taken of V."""
        return self.sum_prox(V, 1.0 / M[0, 0])[1]


def _spectral(prox, V: np.ndarray, v: np.ndarray):
    """I - D of a prox that moves singular values one by one, s -> f(s), by divided differences.

    Source: Lewis and Sendov, "Nonsmooth analysis of singular values", Set-Valued Analysis 13 (2005).
    """
    U, s, Vt = svd(V)
    kept = s - np.einsum("ij,ij->j", U, v @ Vt.T)  # s - f(s)
    moved = s * (1.0 + SETTINGS.difference_share) + 1e-300
    f = np.einsum("ij,ij->j", U, prox((U * moved) @ Vt) @ Vt.T)
    slopes = np.clip(((moved - f) - kept) / np.maximum(moved - s, 1e-300), 0.0, 1.0)
    slopes = np.where(s > 0, slopes, 1.0)
    top = max(s.max(initial=0.0), 1e-300)
    symmetric, skew = divided_differences(s, kept, slopes, 1.0)
    outside = np.where(s > 1e-12 * top, kept / np.maximum(s, 1e-300), 1.0)
    tall, wide = V.shape[0] > len(s), V.shape[1] > len(s)
    both, half = 0.5 * (symmetric + skew), 0.5 * (symmetric - skew)

    def product(H):
        UH = U.T @ H
        A = UH @ Vt.T
        result = U @ ((both * A + half * A.T) @ Vt)
        if tall:
            result += ((H - U @ UH) @ Vt.T * outside) @ Vt
        if wide:
            result += U @ (outside[:, None] * (UH - A @ Vt))
        return result

    p, q = V.shape
    total = both.sum() + (p - len(s) + q - len(s)) * outside.sum()
    return product, float(total / (len(s) * (p + q - len(s))))


# --------------------------------------------------------------------------------------------------------------
# The regularizer's copy where it is a sum over rows: absolute values, lengths of rows, squares, W >= 0.


class RowPart:
    """A `RowPenalty` R in the metric M = penalties * unit^2.

    With t = W + P / M the new multipliers are Q = M (t - prox(t)), and M (I - D), D the derivative of the prox there, is diagonal, but for
    -scales_r vectors_r vectors_r^T on every row that the l21 norm leaves alive. Derivatives are those at the last `multipliers`.
    """

    def __init__(self, penalty: RowPenalty, unit: np.ndarray):
        if len(penalty.l1) == 1:  # of one task, the length of a row is an absolute value
            penalty = RowPenalty(
                penalty.l1 + penalty.l21, np.zeros_like(penalty.l21), penalty.ridge, penalty.nonneg
            )
        self.penalty, self.unit = penalty, unit
        self.l1, self.ridge = np.ascontiguousarray(penalty.l1.T), penalty.ridge[:, None]
        self.is_separable = not penalty.l21.any()
        self.has_ridge = bool(penalty.ridge.any())

    def on(self, ids: np.ndarray) -> RowPart:
        """The part of some tasks alone, where they are not tied."""
        p = self.penalty
        return RowPart(RowPenalty(p.l1[ids], p.l21, p.ridge, p.nonneg), self.unit)

    def values(self, v: np.ndarray) -> np.ndarray:
        """(m,) the penalty of every task, where they are not tied."""
        return (self.l1 * np.abs(v) + 0.5 * self.ridge * v**2).sum(axis=0)

    def dual(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(t, g) where tasks are not tied: t_i the largest scale <= 1 that brings task i's column of Z into the conjugate's domain, and
        the conjugate at t_i Z_i."""
        size = Z if self.penalty.nonneg else np.abs(Z)
        ratio = np.where(
            (size > self.l1) & (self.ridge == 0), self.l1 / np.where(size > self.l1, size, 1.0), 1.0
        )
        t = ratio.min(axis=0, initial=1.0)
        if not self.has_ridge:
            return t, np.zeros_like(t)
        over = np.maximum(t * size - self.l1, 0.0)
        return t, (0.5 * over**2 / np.where(self.ridge > 0, self.ridge, 1.0) * (self.ridge > 0)).sum(axis=0)

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        """(d, m) M."""
        return self.unit[:, None] ** 2 * penalties

    def multipliers(self, W: np.ndarray, P: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Q."""
        at = M * W
        at += P
        low = -np.inf if self.penalty.nonneg else -self.l1
        Q = np.minimum(np.maximum(at, low), self.l1)
        self.left = left = at - Q
        if not self.is_separable:
            norms = np.sqrt(np.einsum("ij,ij->i", left, left))
            dead = norms <= self.penalty.l21
            self.norms = np.where(dead, 1.0, norms)
            self.grip = np.where(dead, 1.0, self.penalty.l21 / self.norms)
            self.rows = np.flatnonzero(~dead & (self.grip > 0))
            Q += self.grip[:, None] * left
        if self.has_ridge:  # what is left is M / (M + ridge) of it
            Q = at - (at - Q) * (M / (M + self.ridge))
        return Q

    def copy(self, W: np.ndarray, P: np.ndarray, Q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """prox(t), with exact zeros."""
        v = W + (P - Q) / M
        v[self.left == 0.0] = 0.0
        if not self.is_separable:
            v[self.grip == 1.0] = 0.0
        return np.maximum(v, 0.0) if self.penalty.nonneg else v

    def diagonal(self, M: np.ndarray) -> np.ndarray:
        """(d, m) of M (I - D), what ties tasks left out."""
        free = np.asarray(self.left != 0.0, float)
        if self.has_ridge:
            free *= M / (M + self.ridge)
        if not self.is_separable:
            free *= (1.0 - self.grip)[:, None]
        return M * (1.0 - free)

    def coupling(self, M: np.ndarray):
        """(rows, vectors (k, m), scales (k,)) of what is taken off the diagonal, where tasks are tied."""
        rows = self.rows
        scales = M[rows, 0] * self.grip[rows]
        if self.has_ridge:
            scales = scales * M[rows, 0] / (M[rows, 0] + self.penalty.ridge[rows])
        return rows, self.left[rows] / self.norms[rows, None], scales


# --------------------------------------------------------------------------------------------------------------
# Losses in score space: the prox of a loss with kinks, and its derivative as rows of the inputs.


@dataclass
class KinkJacobian:
    """I - D of one task, D the derivative of the prox at its scores: the identity on the samples `rows`, which stand at a kink.

    A loss that is not a sum over samples gives an object with `half(X)` instead: F with F^T F = X^T (I - D) X.
    """

    rows: np.ndarray


class KinkedScores:
    """sum_j max(low_j (z_j - kink_j), 0, high_j (z_j - kink_j - gap_j)) with low <= 0 <= high; no gap (None) is one of zero.

    At scores z with multipliers u and penalties s the new multipliers s (t - prox(t)), t = z + u / s, are
    clip(u + s (z - kink), low, high), or beside a gap clip(u + s (z - kink), low, 0) + clip(u + s (z - kink - gap), 0, high).
    """

    def __init__(self, loss: LossTerm):
        atom: Any = loss.atom
        kink, end = atom.zero_interval(loss.tasks.targets)
        low, high = loss.dual_interval()
        self.kink = np.broadcast_to(kink, low.shape) - 0.0
        self.gap = end - self.kink if np.any(end > kink) else None
        self.low, self.high = np.array(low), np.array(high)

    def on(self, ids: np.ndarray, flat: np.ndarray) -> KinkedScores:
        """The same of some tasks, whose samples are `flat`."""
        part = object.__new__(KinkedScores)
        part.kink, part.low, part.high = self.kink[flat], self.low[flat], self.high[flat]
        part.gap = None if self.gap is None else self.gap[flat]
        return part

    def multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """New multipliers; penalties are one a sample."""
        new = z - self.kink
        new *= penalties
        new += u
        if self.gap is not None:
            return np.clip(new, self.low, 0.0) + np.clip(new - penalties * self.gap, 0.0, self.high)
        return np.clip(new, self.low, self.high, out=new)

    def parts(self, y: np.ndarray, designs: Designs) -> list[KinkJacobian]:
        """Every task's I - D where `multipliers` gave y."""
        free = (y > self.low) & (y < self.high)
        if self.gap is not None:
            free &= y != 0.0
        return [
            KinkJacobian(np.flatnonzero(free[a:b]))
            for a, b in zip(designs.starts, designs.offsets[1:], strict=True)
        ]

    def values(self, z: np.ndarray, designs: Designs) -> np.ndarray:
        """(m,) the loss of every task."""
        r = z - self.kink
        if self.gap is not None:
            return designs.sums(np.maximum(np.maximum(self.low * r, self.high * (r - self.gap)), 0.0))
        return designs.sums(np.maximum(self.low * r, self.high * r))

    def conjugates(self, u: np.ndarray, designs: Designs) -> np.ndarray:
        """(m,) l*(u) of every task, u inside the interval."""
        total = u * self.kink
        return designs.sums(total if self.gap is None else total + np.maximum(u, 0.0) * self.gap)

    def balanced(self, u: np.ndarray, designs: Designs) -> np.ndarray:
        """u with sum zero in every task: the larger of its two sides is scaled, which leaves no interval around zero."""
        above = np.maximum(u, 0.0)
        up, down = designs.sums(above), designs.sums(above - u)
        least = np.minimum(up, down)
        grow = least / np.maximum(up, 1e-300), least / np.maximum(down, 1e-300)
        return np.where(
            u > 0, u * designs.spread(np.minimum(grow[0], 1.0)), u * designs.spread(np.minimum(grow[1], 1.0))
        )

    def spread_of_scores(self, designs: Designs) -> np.ndarray:
        """(m,) how far apart scores lie, guessed from the kinks alone: their deviation."""
        means = designs.sums(self.kink) / designs.counts
        return np.sqrt(designs.sums((self.kink - designs.spread(means)) ** 2) / designs.counts)

    def sizes(self, designs: Designs) -> np.ndarray:
        """(m,) the mean size of the multipliers."""
        return designs.sums(self.high - self.low) / designs.counts


@dataclass
class SmoothJacobian:
    """I - D of one task as diag(root^2) - pull pull^T; `pull` is None where samples do not tie one another."""

    root: np.ndarray
    pull: np.ndarray | None = None

    def half(self, X) -> np.ndarray:
        """F with F^T F = X^T (I - D) X."""
        F = self.root[:, None] * (X.toarray() if sparse.issparse(X) else X)
        if self.pull is None:
            return F
        along = self.pull / self.root
        length = along @ along  # I - along along^T is the square of I - share along along^T
        return F - np.outer(along, (1.0 - np.sqrt(max(1.0 - length, 0.0))) / length * (along @ F))


class SmoothScores:
    """A loss of samples that has a gradient and an exact prox."""

    def __init__(self, loss: LossTerm):
        self.loss = loss

    def multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """New multipliers; penalties are one a sample."""
        middle = z + u / penalties
        self.nearest = self.loss.prox(middle, 1.0 / penalties)
        self.penalties = penalties
        return penalties * (middle - self.nearest)

    def parts(self, y: np.ndarray, designs: Designs) -> list[SmoothJacobian]:
        """Every task's I - D where `multipliers` gave y, the last time."""
        atom: Any = self.loss.atom
        bend = atom.hessian(self.nearest, self.loss.tasks.targets, self.loss.scale) / self.penalties
        root = np.sqrt(bend / (1.0 + bend))
        return [SmoothJacobian(root[a:b]) for a, b in zip(designs.starts, designs.offsets[1:], strict=True)]

    def values(self, z: np.ndarray, designs: Designs) -> np.ndarray:
        """The loss of all tasks together."""
        return np.array([self.loss.value(z)])

    def spread_of_scores(self, designs: Designs) -> np.ndarray:
        """(m,) how far apart scores lie, guessed from the labels alone."""
        return np.sqrt(designs.sums(self.loss.tasks.targets**2) / designs.counts)

    def sizes(self, designs: Designs) -> np.ndarray:
        """(m,) the mean size of the multipliers."""
        return designs.sums(np.abs(self.loss.gradient(np.zeros(designs.offsets[-1])))) / designs.counts


class RadialScores(SmoothScores):
    """A loss of the norm t of each task's residuals r; its Hessian is v S - w (S r)(S r)^T, v = h'(t) / t, w = -v'(t) / t."""

    def parts(self, y: np.ndarray, designs: Designs) -> list[SmoothJacobian]:
        """Every task's I - D where `multipliers` gave y, the last time."""
        tasks, atom, found = self.loss.tasks, self.loss.atom, []
        weights = np.ones(len(y)) if tasks.sample_weights is None else tasks.sample_weights
        residuals = self.nearest - tasks.targets
        for c, a, b in zip(self.loss.coefficients, designs.starts, designs.offsets[1:], strict=True):
            s, r, penalty = weights[a:b], residuals[a:b], self.penalties[a]
            t = np.sqrt(s @ r**2)
            h = SETTINGS.curvature_difference_share * t
            v, nearer, farther = atom.weight_of_norm(np.array([t, t - h, t + h]))
            if not np.isfinite(v):  # at a kink, D is zero
                found.append(SmoothJacobian(np.ones(b - a)))
                continue
            bend, bent = c * v * s / penalty, max(nearer - farther, 0.0) / (2.0 * h * t) if t > 0.0 else 0.0
            change = np.sqrt(c * bent / penalty) * s * r
            pull = change / (1.0 + bend)  # by Sherman and Morrison
            pull /= np.sqrt(1.0 - change @ pull)
            found.append(SmoothJacobian(np.sqrt(bend / (1.0 + bend)), pull if pull.any() else None))
        return found


# --------------------------------------------------------------------------------------------------------------
# Structured hinges in score space: one exact proximal step a task, and its derivative as sums of rows of the inputs.


class StructuredScores:
    """sum_i c_i G_i(z_i): at scores z with multipliers u and penalties s the new multipliers are s (t - prox(t)) = -2 c y p, t = z + u / s,
    with p the flip probabilities of the step c / s at t.
    """

    def __init__(self, loss: Any, ids: np.ndarray | None = None):
        self.loss = loss
        self.ids = np.arange(loss.tasks.n_tasks) if ids is None else ids
        self.apart = [loss.tasks_apart[i] for i in self.ids]
        sizes = np.array([len(y) for _, _, _, y, _ in self.apart])
        ends = np.cumsum(sizes)
        self.starts = ends - sizes
        self.rows = [slice(a, b) for a, b in zip(self.starts.tolist(), ends.tolist(), strict=True)]
        self.coefficients = np.array([c for _, c, *_ in self.apart])
        self.slopes = np.concatenate([(-2.0 * c) * y for _, c, _, y, _ in self.apart])
        self.at: list[Any] = [None] * len(
            self.apart
        )  # what was found at the last scores, of every task: (steps, its place there)
        self.last: Any = None  # (those scores, steps)
        self.flips, self.warm = np.zeros(len(self.slopes)), np.zeros(len(self.apart), np.int64)
        self._all: Any = None

    def on(self, keep: np.ndarray, flat: np.ndarray) -> StructuredScores:
        """The same of some of its tasks."""
        part = StructuredScores(self.loss, self.ids[keep])
        part.flips, part.warm = self.flips[flat], self.warm[keep]
        return part

    def multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """New multipliers; penalties are one a sample, equal within a task."""
        t, steps = z + u / penalties, self.coefficients / penalties[self.starts]
        moved = np.arange(len(self.apart))
        if self.last is not None:
            same = np.logical_and.reduceat(t == self.last[0], self.starts) & (steps == self.last[1])
            moved = np.flatnonzero(~same)
        if moved.size:
            self.flips = self.flips.copy()  # what was found before keeps its own
            for found, chosen in self._steps(t, steps, moved):
                for i, k in enumerate(chosen):
                    self.at[k] = found, i
        self.last = t, steps
        return self.slopes * self.flips

    def _steps(self, t, steps, moved):
        """(what was found, the tasks that it is of), metric by metric; their flip probabilities are in `flips` then."""
        for metric, chosen, batch in self._batches_of(moved):
            found = metric.score_steps(t, batch, steps[chosen], self.flips, self.warm[chosen])
            if isinstance(found, list) and None in found:
                raise SolverError(f"a proximal step of {self.loss.typed} is not exact in float64")
            yield found, chosen
        self.warm[moved] = 1

    def _batches_of(self, chosen: np.ndarray) -> list[tuple[Any, list[int], MetricBatch]]:
        """These tasks by metric, as compiled loops read them."""
        if len(chosen) == len(self.apart) and self._all is not None:
            return self._all
        by_metric: dict[int, list[int]] = {}
        for k in chosen.tolist():
            by_metric.setdefault(id(self.apart[k][2]), []).append(k)
        batches = [
            (
                self.apart[of[0]][2],
                of,
                MetricBatch([self.apart[k][4] for k in of], [self.rows[k].start for k in of]),
            )
            for of in by_metric.values()
        ]
        if len(chosen) == len(self.apart):
            self._all = batches
        return batches

    def parts(self, y: np.ndarray, designs: Any) -> list[Any]:
        """Every task's I - D where `multipliers` gave y."""
        return [found[i].tangent for found, i in self.at]

    def values(self, z: np.ndarray, designs: Any = None) -> np.ndarray:
        """(m,) the loss of every task."""
        values = np.empty(len(self.apart))
        for metric, chosen, batch in self._batches_of(np.arange(len(self.apart))):
            apart = [(self.rows[k], *self.apart[k][3:]) for k in chosen]
            values[chosen], _ = metric.highest_planes(z, batch, apart, np.zeros(len(z)))
        return self.coefficients * values

    def conjugates(self, u: np.ndarray, designs: Any = None) -> np.ndarray:
        """(m,) c G*(u / c) of every task, u inside the domain."""
        flips = np.clip(u / self.slopes, 0.0, 1.0)
        return np.array(
            [
                -c * metric._promised(flips[rows][classes.positive], flips[rows][classes.negative])
                for rows, (_, c, metric, _, classes) in zip(self.rows, self.apart, strict=True)
            ]
        )

    def balanced(self, u: np.ndarray, designs: Any = None) -> np.ndarray:
        """u with a zero sum in every task: the class whose flips are more probable gets fewer."""
        new = u.copy()
        for rows, (_, _, _, _, classes) in zip(self.rows, self.apart, strict=True):
            own = new[rows]
            down, up = own[classes.positive], own[classes.negative]
            a, b = -float(down.sum()), float(up.sum())
            if a > b:
                own[classes.positive] *= b / a
            elif b > 0.0:
                own[classes.negative] *= a / b
        return new

    def spread_of_scores(self, designs: Any = None) -> np.ndarray:
        """(m,) how far apart scores lie: positives within so much of zero may be flipped."""
        return np.array([1.0 / len(classes.positive) for *_, classes in self.apart])

    def sizes(self, designs: Any = None) -> np.ndarray:
        """(m,) the size of the multipliers of samples that are flipped."""
        return np.array([2.0 * c for _, c, *_ in self.apart])
