"""Closed-form solver of ridge-type problems: quadratic losses and penalties only, so the optimum solves one linear system."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mtldsl.data.products import gram
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm, single_block
from mtldsl.normal_form.terms.structure_term import structure_terms
from mtldsl.solvers.design.sufficient_statistics import quadratic_data
from mtldsl.solvers.linear_systems.regularized_system import (
    ConjugateGradientUpdate,
    DenseUpdate,
    TaskwiseUpdate,
)
from mtldsl.solvers.linear_systems.ridge import SharedRidge, separate_ridge
from mtldsl.solvers.linear_systems.task_matrices import (
    BlockLayout,
    QuadraticHessian,
    SplitForm,
    couples_tasks,
)
from mtldsl.solvers.nonconvex.weights_step import LinearStep, why_not_linear
from mtldsl.solvers.solver import Point, Solver, Watch
from mtldsl.utils.interrupts import eigh, lstsq, svd
from mtldsl.utils.parallel import slabs

__all__ = [
    "SETTINGS",
    "SOLVER",
    "ClosedForm",
    "ClosedFormSettings",
]


@dataclass(frozen=True)
class ClosedFormSettings:
    """Sizes up to which systems are solved at once.

    dense_features   : unknowns in one dense system over all tasks
    task_features    : unknowns in one task's dense system
    factor_flops     : of a task, from which on it has a factor of its own: small ones go together, in stacks
    unevenness_ratio : of the longest column to the shortest, up to which singular values tell them all
    """

    dense_features: int = 1500
    task_features: int = 4000
    factor_flops: float = 1e6
    unevenness_ratio: float = 1e5


SETTINGS = ClosedFormSettings()


#: Relative rounding of a double.
MACHINE_EPS = float(np.finfo(float).eps)


class ClosedForm(Solver):
    """One linear system, by the cheapest exact way its structure allows.

    - `solve_shared`: one X for all tasks; the tasks' penalty L = U diag(l) U^T turns the system G W + W L = C into one system a task, of
      the features' or the rows' size, which tasks of one l_j share (`SharedRidge`);
    - `spectral`: where these are singular, or too near to it: X = P diag(s) Q^T leads to (s_i^2 + l_j) V_ij = (Q^T C U)_ij.
    - `kernel`: ridge on separate inputs with fewer rows than features, a system of the rows' size a task.
    - `least_squares`: no penalty at all: orthogonal factorizations, the solution of smallest norm.
    - a kronecker_ridge between features and tasks: both precisions and the Gram matrix diagonalized together, or conjugate
      gradients where tasks have inputs of their own;
    - `solve_per_task`: ridge on inputs, weights or missing labels of the tasks' own, a Cholesky factor a task.
    - otherwise the normal equations: one system a task, one over all tasks while that is small, or conjugate gradients.

    The normal equations' solutions are refined with residuals through X until they no longer improve.
    """

    name = "closed_form"
    summary = "closed form: quadratic losses and penalties lead to one linear system"
    max_iter = 1
    below_guesses = True  # at the optimum itself

    def refuses(self, form: NormalForm) -> str | None:
        if _between_features_and_tasks(form):
            return why_not_linear(form)
        for loss in form.losses:
            if loss.atom.quadratic is None:
                return f"{loss.typed} is not quadratic."
        for f in form.functions:
            if QuadraticHessian.of(f) is None:
                return f"{f.typed} is {'a constraint' if f.is_constraint else 'not quadratic'}."
        return None

    def solves_only(self, form: NormalForm) -> str | None:
        quadratic = all(loss.atom.quadratic is not None for loss in form.losses)
        smooth = all(f.is_constraint or f.atom.is_smooth for f in form.functions)
        return None if quadratic and smooth else "quadratic models"

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        if _between_features_and_tasks(form):
            x = LinearStep(form, quadratic_data(form)).solve({}, form.zeros()).blocks
            point = Point(x, [_dual(loss, x) for loss in form.losses], iteration=1)
            watch(point)
            return point
        split = SplitForm(form, coupled=True)
        point = None
        for x, u in solutions(split, tol):
            loss_duals = [_dual(loss, x) for loss in form.losses] if u is None else [u]
            function_duals = [
                split.exact_functions[k].product(f.map.forward(x)) for k, f in enumerate(form.functions)
            ]
            point = Point(x, loss_duals, function_duals, 1)
            if watch(point):
                break
        assert point is not None  # `normal_equations` always has an answer
        return point


def solutions(split: SplitForm, tol: float) -> Iterator[tuple[Blocks, np.ndarray | None]]:
    """By the cheapest way that the structure allows, then by more exact ones, for those who ask for more; each with the loss's multipliers
    where they are not its gradient.
    """
    if (found := solve_shared(split, tol)) is not None:
        shown = False
        for one in found:
            shown = True
            yield one
        if shown and split.form.losses[0].tasks.is_sparse:  # singular values ask for dense inputs
            return
    x = (
        spectral(split)
        or kernel(split)
        or least_squares(split)
        or solve_per_task(split)
        or normal_equations(split)
    )
    yield x, None


def _between_features_and_tasks(form: NormalForm) -> bool:
    return any(f.atom.two_sided_quadratic() is not None for f in form.functions) and not structure_terms(form)


def _dual(loss: LossTerm, x: Blocks) -> np.ndarray:
    """The gradient at the predictions; exactly 0 where these interpolate, for there it is made of rounding alone."""
    z, y = loss.seen_at(x), loss.tasks.targets
    return loss.gradient(y if _interpolates(z, y) else z)


def _interpolates(z, y) -> bool:
    few, rounding = slice(0, 256), 1e-12
    # mostly a few samples and the length of all labels, which is no less than the largest of them, tell that it does not
    if _largest(z[few] - y[few]) > rounding * math.sqrt(float(y @ y)):
        return False
    rounding *= _largest(y)
    return all(_largest(z[k] - y[k]) <= rounding for k in slabs(z.size))


def _largest(values: np.ndarray) -> float:
    """The largest absolute value, without an array of them all."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


# -------------------------------------------------------------------------------------------- structure


def _plain(split: SplitForm) -> tuple[LossTerm, str, str | None] | None:
    """(the loss, its block, its intercept's block) where the form is one loss of one block and functions of that block."""
    facts = single_block(split.form)
    return None if isinstance(facts, str) else (facts.loss, facts.name, facts.intercept)


def _task_penalty(split: SplitForm, n_tasks: int) -> np.ndarray | None:
    """L (m, m), or its diagonal (m,) where that is all of it, where the functions together are 1/2 tr(W L W^T), else None."""
    diagonal, couplings = np.zeros(n_tasks), []
    for curvature in split.exact_functions.values():
        if curvature.weights is None:
            couplings.append(curvature.coupling)
        elif curvature.weights.ndim != 1:
            return None
        else:
            diagonal += curvature.weights
    if not couplings:
        return diagonal
    L = sum(couplings, np.diag(diagonal))
    return np.array(np.diag(L)) if np.array_equal(L, np.diag(np.diag(L))) else L


def _blocks(W: np.ndarray, block: str, intercept: np.ndarray | None, intercept_name: str | None) -> Blocks:
    if intercept is None or intercept_name is None:
        return {block: W}
    return {block: W, intercept_name: intercept[None, :]}


# ------------------------------------------------------------------------------------------ exact solutions


def solve_shared(split: SplitForm, tol: float) -> Iterator[tuple[Blocks, np.ndarray | None]] | None:
    """One X with every label present, samples that weigh the same in all tasks."""
    plain = _plain(split)
    if plain is None or not plain[0].is_shared_complete or not split.exact_functions:
        return None
    loss, block, intercept = plain
    L, weights = _task_penalty(split, loss.tasks.n_tasks), np.asarray(split.curvature_weights(0))
    if L is None or (min(loss.tasks.X.shape) > SETTINGS.task_features and not loss.tasks.is_sparse):
        return None
    if weights.ndim == 0:
        system = SharedRidge(loss, L, float(weights))
    else:
        table = weights.reshape(loss.tasks.n_tasks, -1)
        if not np.array_equal(table, np.broadcast_to(table[0], table.shape)):
            return None
        system = SharedRidge(loss, L, 1.0, table[0])
    return ((_blocks(W, block, b, intercept), u) for W, b, u in system.solutions(tol))


def spectral(split: SplitForm) -> Blocks | None:
    """One dense X with every label present, and one weight for all samples."""
    plain = _plain(split)
    if plain is None or not plain[0].is_shared_complete or plain[0].uniform_scale is None:
        return None
    loss, block, intercept = plain
    L = _task_penalty(split, loss.tasks.n_tasks)
    if L is None or loss.tasks.is_sparse:
        return None
    X, Y = loss.tasks.X, loss.tasks.targets.reshape(loss.tasks.n_tasks, -1).T
    x_mean, y_mean = (X.mean(axis=0), Y.mean(axis=0)) if intercept else (0.0, 0.0)
    X = X - x_mean
    if _unevenness(X) > SETTINGS.unevenness_ratio:
        return (
            None  # singular values are exact to rounding of the largest: columns of small units drown in it
        )
    left, s, right = svd(X)
    weight = split.curvature_weights(0)
    levels, rotation = eigh(np.diag(L) if L.ndim == 1 else L)
    levels[np.abs(levels) <= 1e-13 * np.abs(levels).max(initial=0.0)] = 0.0
    kept = s > np.finfo(float).eps * max(X.shape) * s.max(initial=0.0)
    s, left, right = s[kept], left[:, kept], right[kept]
    V = weight * s[:, None] * (left.T @ (Y - y_mean) @ rotation) / (weight * np.square(s)[:, None] + levels)
    W = right.T @ V @ rotation.T
    return _blocks(W, block, y_mean - x_mean @ W if intercept else None, intercept)


def kernel(split: SplitForm) -> Blocks | None:
    """Ridge on rows fewer than features: w = X^T a / l with (X X^T / l + S^-1) a + b 1 = y and, for an intercept, 1^T a = 0."""
    plain = _plain(split)
    if plain is None:
        return None
    loss, block, intercept = plain
    tasks = loss.tasks
    L = _task_penalty(split, tasks.n_tasks)
    if L is None or L.ndim != 1 or L.min() <= 0 or tasks.counts.max() >= tasks.n_features:
        return None
    inverse = np.broadcast_to(1.0 / np.asarray(split.curvature_weights(0)), tasks.n_samples)
    a, b = np.empty(tasks.n_samples), np.zeros(tasks.n_tasks)
    pieces = zip(tasks.inputs, L, tasks.offsets[:-1], tasks.offsets[1:], strict=True)
    for i, (X, penalty, first, last) in enumerate(pieces):
        y = tasks.targets[first:last]
        factor = linalg.cho_factor(gram(X.T) / penalty + np.diag(inverse[first:last]))
        a[first:last] = linalg.cho_solve(factor, y)
        if intercept:
            ones = linalg.cho_solve(factor, np.ones(last - first))
            b[i] = a[first:last].sum() / ones.sum()
            a[first:last] -= b[i] * ones
    return _blocks(tasks.adjoint(a) / L, block, b if intercept else None, intercept)


def solve_per_task(split: SplitForm) -> Blocks | None:
    """A ridge a task, and nothing that ties them."""
    plain = _plain(split)
    if plain is None or plain[0].is_shared_complete or not split.exact_functions:
        return None
    loss, block, intercept = plain
    L = _task_penalty(split, loss.tasks.n_tasks)
    if L is None or L.ndim != 1 or loss.tasks.n_features > SETTINGS.task_features:
        return None
    d, rows = loss.tasks.n_features, loss.tasks.n_samples / loss.tasks.n_tasks
    if (rows + d) * d * d < SETTINGS.factor_flops:
        return None
    weights = np.broadcast_to(np.asarray(split.curvature_weights(0), dtype=float), loss.tasks.n_samples)
    found = separate_ridge(loss, L, weights)
    return None if found is None else _blocks(found[0], block, found[1] if intercept else None, intercept)


def least_squares(split: SplitForm) -> Blocks | None:
    """No penalty: every task by itself, the solution of smallest norm."""
    plain = _plain(split)
    if plain is None or split.exact_functions:
        return None
    loss, block, intercept = plain
    tasks = loss.tasks
    root = np.sqrt(np.broadcast_to(split.curvature_weights(0), tasks.n_samples))
    W, b = np.empty((tasks.n_features, tasks.n_tasks)), np.zeros(tasks.n_tasks)
    for i, (X, first, last) in enumerate(
        zip(tasks.inputs, tasks.offsets[:-1], tasks.offsets[1:], strict=True)
    ):
        X, weight, y = X.toarray() if tasks.is_sparse else X, root[first:last], tasks.targets[first:last]
        shares = np.square(weight) / np.square(weight).sum()
        x_mean, y_mean = (shares @ X, shares @ y) if intercept else (0.0, 0.0)
        W[:, i] = _least_squares((X - x_mean) * weight[:, None], (y - y_mean) * weight)
        b[i] = y_mean - x_mean @ W[:, i] if intercept else 0.0
    return _blocks(W, block, b if intercept else None, intercept)


def _least_squares(X, y) -> Any:
    """argmin ||X w - y||, of smallest norm; where columns are uneven, once they have length one: no unit drowns a feature in rounding."""
    if _unevenness(X) <= SETTINGS.unevenness_ratio:
        return lstsq(X, y, MACHINE_EPS)
    length = np.linalg.norm(X, axis=0)
    length[length == 0.0] = 1.0
    w = lstsq(X / length, y, MACHINE_EPS)
    w += lstsq(X / length, y - X @ (w / length), MACHINE_EPS)  # what rounding left of the residual
    return w / length


def _unevenness(X) -> float:
    """The longest column beside the shortest that is not zero."""
    length = np.linalg.norm(X, axis=0)
    return float(length.max(initial=1.0) / length.min(initial=np.inf, where=length > 0))


# --------------------------------------------------------------------------------------- normal equations


def normal_equations(split: SplitForm) -> Blocks:
    """Any maps, any blocks."""
    layout = BlockLayout(split.form)
    fits = layout.has_columns and layout.depth <= SETTINGS.task_features
    size = sum(rows * columns for rows, columns in split.form.shapes.values())
    if fits and not couples_tasks(split):
        update = TaskwiseUpdate(split, layout)
    elif size <= SETTINGS.dense_features:
        update = DenseUpdate(split)
    else:
        update = ConjugateGradientUpdate(split, TaskwiseUpdate(split, layout) if fits else None, 1e-15, 5000)
    solve = update.solver(np.ones(0))
    x = solve(split.quadratic_target())
    best, smallest = x, np.inf
    for _ in range(5):
        gradient = _negative_gradient(split, x)
        norm = np.sqrt(sum(np.vdot(g, g) for g in gradient.values()))
        if norm >= 0.5 * smallest:
            return x if norm < smallest else best
        best, smallest = x, norm
        if isinstance(update, ConjugateGradientUpdate):
            update.x = split.form.zeros()
        correction = solve(gradient)
        x = {name: x[name] + correction[name] for name in x}
    return best


def _negative_gradient(split: SplitForm, x: Blocks) -> Blocks:
    """-grad q(x), from the losses' residuals: more exact than target - H x where these nearly cancel."""
    form, gradient = split.form, split.form.zeros()
    for loss in form.losses:
        loss.add_adjoint(-loss.gradient(loss.predictions(x)), gradient)
    for k, curvature in split.exact_functions.items():
        f = form.functions[k]
        f.map.add_adjoint(-curvature.product(f.map.forward(x)), gradient)
    return gradient


SOLVER = ClosedForm()
