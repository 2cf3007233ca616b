"""Ridge regression: conjugate gradients on large sparse inputs, and factors of one system or one a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.products import gram, require_gram_memory
from mtldsl.normal_form.form import LossTerm
from mtldsl.solvers.design.sufficient_statistics import centred_gram, rows_gram
from mtldsl.solvers.linear_systems.factorizations import ShiftedFactors
from mtldsl.utils.interrupts import eigh
from mtldsl.utils.memory import require_memory
from mtldsl.utils.parallel import in_jobs


@dataclass(frozen=True)
class RidgeSettings:
    """Limits of conjugate gradients, refinement and sparse inputs.

    cg_iterations       : of all tasks at once
    rounding_share      : of the objective, a gap that no step makes smaller
    target_factor       : from one gap asked for to the next, after a solution that was not exact enough
    exact_share         : of the objective, a gap below which no step of refinement is taken
    level_share         : of the largest l_j: so near to one another they are one, so near to zero they are zero
    refinement_steps    : of refinement, at most
    formed_rows         : smaller side of sparse inputs up to which a matrix of that size is formed whatever it costs
    factored_rows       : the same where a factor of it costs less than `factored_iterations` of conjugate gradients
    blocked_factor      : by which multiplications of a factor are faster
    factored_iterations : of conjugate gradients for all tasks
    """

    cg_iterations: int = 20_000
    rounding_share: float = 1e-16
    target_factor: float = 1e-2
    exact_share: float = 1e-14
    level_share: float = 1e-13
    refinement_steps: int = 4
    formed_rows: int = 500
    factored_rows: int = 2000
    blocked_factor: float = 8.0
    factored_iterations: int = 30


SETTINGS = RidgeSettings()


# --------------------------------------------------------------------------------------------------------------
# Ridge on large sparse inputs: conjugate gradients for all tasks at once, without any matrix but X.


Product = Callable[[np.ndarray], np.ndarray]


def conjugate_solutions(
    Y, levels, weight: float, image: Product, onto_features: Product, tol: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(V (m, d), A (m, n)) of (Xc Xc^T + l_j / c I) a_j = yc_j, v_j = Xc^T a_j, each more exact than the one before; the first has a
    relative gap of tol / 10 at most, unless steps run out.

    With the residual r the gap between v_j and the multipliers -l_j a_j is c / 2 ||r||^2: in the space of rows, for the gradients of
    the weights would count c s^2 / l times as much in the direction of a singular value s.

    Y (m, n): Yc;  levels (m,): l > 0;  weight: c;  image: V -> V Xc^T;  onto_features: R -> R Xc
    """
    shifts = (levels / weight)[:, None]
    R, A, V = Y.copy(), np.zeros_like(Y), 0.0
    direction, energy, target = R.copy(), np.einsum("ij,ij->i", R, R), 0.1 * tol
    for iteration in range(1, SETTINGS.cg_iterations + 1):
        pulled = onto_features(direction)
        moved = image(pulled) + shifts * direction
        curved = np.einsum("ij,ij->i", direction, moved)
        step = np.divide(energy, curved, out=np.zeros_like(energy), where=curved > 0)[:, None]
        A += step * direction
        V = V + step * pulled
        R -= step * moved
        before, energy = energy, np.einsum("ij,ij->i", R, R)
        left = R + shifts * A
        size = 0.5 * weight * float(np.vdot(left, left))
        size += 0.5 * float(levels @ np.einsum("ij,ij->i", V, V))
        gap = 0.5 * weight * float(energy.sum())
        if gap <= target * size or iteration == SETTINGS.cg_iterations or not step.any():
            yield V, A
            if gap <= SETTINGS.rounding_share * size or not step.any():
                return
            target *= SETTINGS.target_factor
        turn = np.divide(energy, before, out=np.zeros_like(energy), where=before > 0)[:, None]
        direction = R + turn * direction


# --------------------------------------------------------------------------------------------------------------
# Quadratic losses on one X under a quadratic penalty of the tasks: Cholesky factors of the Gram or the kernel matrix.
#
#     minimize over W, b    c/2 sum_k s_k ||W^T x_k + b - y_k||^2 + 1/2 tr(W L W^T)
#
# With L = U diag(l) U^T and V = W U the tasks come apart: (c Xc^T S Xc + l_j I) v_j = c Xc^T S Yc u_j, Xc and Yc being centred where
# there is an intercept. What rounding leaves of a solution is removed by steps of refinement, with residuals through X itself.


#: weights (d, m), intercepts (m,) or None, and the loss's multipliers, flat, where they are not the gradient at these
Solution = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]


class SharedRidge:
    """`solutions` yields (W, b, u), each more exact than the one before; it ends where no step brings more, at once where the systems
    are singular to rounding.

    X : (n, d);  Y : (m, n);  weight : c;  weights : s, None where all are 1
    L : (m, m) symmetric, positive semidefinite, or its diagonal (m,)
    products : (V (m, d) -> V X^T,  R (m, n) -> R X)
    """

    def __init__(
        self,
        X: Any,
        Y: np.ndarray,
        L: np.ndarray,
        centred: bool,
        weight: float,
        weights: np.ndarray | None,
        products: tuple[Product, Product],
    ):
        self.X, self.weight, self.weights, self.products = X, weight, weights, products
        (self.n, self.d), self.m = X.shape, len(Y)
        self.levels, self.rotation = _levels(L)
        # (m, n), centred where there is an intercept
        self.Y = Y if self.rotation is None else self.rotation.T @ Y
        self.centred = centred
        self.x_means, self.y_means = np.zeros(self.d), np.zeros(self.m)
        self.total = float(self.n) if weights is None else float(weights.sum())
        if centred:
            shares = np.full(self.n, 1.0 / self.n) if weights is None else weights / self.total
            self.x_means, self.y_means = np.asarray(shares @ self.X).ravel(), self.Y @ shares
            self.Y = self.Y - self.y_means[:, None]

    def solutions(self, tol: float) -> Iterator[Solution]:
        """To a relative gap of tol at first, where they are found step by step; 0: by factors alone, up to one that is exact enough."""
        if tol and self._prefers_products and self.weights is None and self.levels.min() > 0:
            steps = conjugate_solutions(self.Y, self.levels, self.weight, self.image, self.onto_features, tol)
            for V, A in steps:
                yield self._as_typed(V, A)
            return
        rows_are_fewer = self.n < self.d
        if rows_are_fewer and self.levels.min() <= 0:
            return
        system = _RowSystem(self) if rows_are_fewer else _ColumnSystem(self)
        if not system.shifted.is_regular:
            return
        state = system.shifted.solve(system.target)
        if system.error(state) <= SETTINGS.exact_share * system.objective(state):
            yield self._as_typed(*system.weights(state))
            if not tol:
                return
        smallest = np.inf
        for _ in range(SETTINGS.refinement_steps):
            gap, step = system.refinement(state)
            if not gap < 0.25 * smallest:
                return
            smallest, state = gap, state + step
            yield self._as_typed(*system.weights(state))

    @property
    def _prefers_products(self) -> bool:
        """Tell whether sparse inputs make products with them cheaper than a matrix of their smaller side."""
        side = min(self.X.shape)
        if not sparse.issparse(self.X) or side <= SETTINGS.formed_rows:
            return False
        return (
            side > SETTINGS.factored_rows
            or side**3 / (3.0 * SETTINGS.blocked_factor)
            > SETTINGS.factored_iterations * 4.0 * self.X.nnz * self.m
        )

    def image(self, V) -> np.ndarray:
        """V Xc^T (m, n), of the rotated tasks' weights V (m, d)."""
        Z = self.products[0](V)
        return Z - (V @ self.x_means)[:, None] if self.centred else Z

    def residual(self, V) -> np.ndarray:
        """Yc - V Xc^T (m, n)."""
        return self.Y - self.image(V)

    def weighted(self, R) -> np.ndarray:
        """c S R, of rows R."""
        if self.weights is None:
            return R if self.weight == 1.0 else self.weight * R
        return self.weight * (self.weights * R)

    def onto_features(self, R) -> np.ndarray:
        """R Xc (m, d)."""
        G = self.products[1](R)
        return G - np.outer(R.sum(axis=1), self.x_means) if self.centred else G

    def _as_typed(self, V, A=None) -> Solution:
        b = self.y_means - V @ self.x_means if self.centred else None
        u = None if A is None else -self.levels[:, None] * A
        if self.rotation is not None:
            V, b, u = (None if part is None else self.rotation @ part for part in (V, b, u))
        return np.ascontiguousarray(V.T), b, None if u is None else u.ravel()


class _ColumnSystem:
    """(c G + l_j I) v_j = c Xc^T S yc_j: of the features' size."""

    def __init__(self, problem: SharedRidge):
        p = self.problem = problem
        weighted = p.weighted(p.Y)
        self.target, self.square = p.onto_features(weighted), float(np.vdot(weighted, p.Y))
        require_gram_memory(p.d, 1, "select features, or name another solver")
        G = gram(p.X, p.weights)
        if p.centred:
            G = centred_gram(G, p.total * p.x_means, p.x_means)
        G *= p.weight
        self.shifted = ShiftedFactors(G, p.levels, p.n * p.d)

    def weights(self, V) -> tuple[np.ndarray]:
        return (V,)

    def objective(self, V) -> float:
        """At the solution, where it is half of <c S Yc, Yc - Xc V>."""
        return 0.5 * (self.square - float(np.vdot(self.target, V)))

    def error(self, V) -> float:
        return float(self.shifted.error(V).sum())

    def refinement(self, V) -> tuple[float, np.ndarray]:
        """(how far the objective lies above the optimum, the step there)."""
        p = self.problem
        g = p.onto_features(p.weighted(p.residual(V))) - p.levels[:, None] * V
        step = self.shifted.solve(g)
        return 0.5 * float(np.vdot(g, step)), step


class _RowSystem:
    """(K + l_j / c I) t_j = r yc_j with r = s^1/2, K = r Xc Xc^T r, a_j = r t_j, v_j = Xc^T a_j: of the rows' size; all l_j > 0."""

    def __init__(self, problem: SharedRidge):
        p = self.problem = problem
        require_memory(
            16.0 * p.n * p.n,
            f"the products of {p.n:,} rows with one another",
            "name another solver, or subsample(rows) first",
        )
        self.root = np.ones(p.n) if p.weights is None else np.sqrt(p.weights)
        K = rows_gram(p.X, p.centred, None if p.weights is None else p.weights / p.total)
        if p.weights is not None:
            K *= self.root
            K *= self.root[:, None]
        self.target = self.root * p.Y
        self.shifted = ShiftedFactors(K, p.levels / p.weight, p.n * p.d)

    def weights(self, T) -> tuple[np.ndarray, np.ndarray]:
        A = self.root * T
        return self.problem.onto_features(A), A

    def objective(self, T) -> float:
        """At the solution, where it is half of <Y, l_j a_j>."""
        return 0.5 * float(self.problem.levels @ np.einsum("ij,ij->i", T, self.target))

    def error(self, T) -> float:
        return float(self.problem.levels @ self.shifted.error(T))

    def refinement(self, T) -> tuple[float, np.ndarray]:
        """(how far the objective lies above the optimum, the step there)."""
        p = self.problem
        r = self.root * p.residual(self.weights(T)[0]) - self.shifted.shifts[:, None] * T
        return 0.5 * p.weight * float(np.vdot(r, r)), self.shifted.solve(r)


def _levels(L: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(eigenvalues of L, eigenvectors as columns; None where L is diagonal): equal ones exactly equal, tiny ones 0."""
    if L.ndim == 1:
        return L.astype(float), None
    levels, rotation = eigh(L)
    close = SETTINGS.level_share * np.abs(levels).max(initial=0.0)
    levels[np.abs(levels) <= close] = 0.0
    for j in range(1, len(levels)):  # they are sorted
        if levels[j] - levels[j - 1] <= close:
            levels[j] = levels[j - 1]
    return levels, rotation


# --------------------------------------------------------------------------------------------------------------
# The same where tasks have inputs, weights or missing labels of their own: task by task, each with a factor of its own, which is not held
# beside those of others.


def separate_ridge(
    loss: LossTerm, levels: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """(W (d, m), b (m,)); None where a task's system is singular to rounding.

    levels : (m,) l of every task;  weights : (N,) s, flat
    """
    tasks, d = loss.tasks, loss.tasks.n_features
    W, b = np.empty((d, tasks.n_tasks)), np.zeros(tasks.n_tasks)

    def one(i: int, _) -> bool:
        own = slice(tasks.offsets[i], tasks.offsets[i + 1])
        X, s = _inputs(tasks, i).astype(float, copy=False), weights[own]
        weight, s = (float(s[0]), None) if np.all(s == s[:1]) else (1.0, s)
        products = lambda V: (X @ V.T).T, lambda R: np.asarray(R @ X)
        y, level = tasks.targets[None, own], levels[i : i + 1]
        found = False
        for w, intercept, _ in SharedRidge(X, y, level, bool(loss.intercepts), weight, s, products).solutions(
            0.0
        ):
            W[:, i], found = w[:, 0], True
            b[i] = 0.0 if intercept is None else intercept[0]
        return found

    regular = in_jobs(one, range(tasks.n_tasks), work=float(tasks.n_samples) * d * d)
    return (W, b) if all(regular) else None


def _inputs(tasks, i: int):
    """X_i, made for this task alone where labels are missing."""
    return (
        tasks.X[np.flatnonzero(tasks.mask[:, i])]
        if tasks.is_shared and tasks.mask is not None
        else tasks.inputs[i]
    )
