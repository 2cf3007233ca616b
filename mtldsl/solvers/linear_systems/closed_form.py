"""Closed-form solver of ridge-type problems: quadratic losses and penalties only, so the optimum solves one linear system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm, SingleBlock, single_block
from mtldsl.normal_form.terms.structure_term import structure_terms
from mtldsl.solvers.design.sufficient_statistics import quadratic_data, quadratic_weights
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
    factor_flops: float = 5e4
    unevenness_ratio: float = 1e5


SETTINGS = ClosedFormSettings()


#: Relative rounding of a double.
MACHINE_EPS = float(np.finfo(float).eps)


class ClosedForm(Solver):
    """One linear system, by the cheapest exact way its structure allows.

    - `shared_ridge`: one X for all tasks; the tasks' penalty L = U diag(l) U^T turns the system G W + W L = C into one system a task, of
      the features' or the rows' size, which tasks of one l_j share (`SharedRidge`);
    - `spectral`: where these are singular, or too near to it: X = P diag(s) Q^T leads to (s_i^2 + l_j) V_ij = (Q^T C U)_ij.
    - `least_squares`: no penalty at all: orthogonal factorizations, the solution of smallest norm.
    - a kronecker_ridge between features and tasks: both precisions and the Gram matrix diagonalized together, or conjugate
      gradients where tasks have inputs of their own;
    - `solve_per_task`: ridge on inputs, weights or missing labels of the tasks' own, a Cholesky factor a task, of the smaller side.
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
    facts = single_block(split.form)
    L = None if isinstance(facts, str) else _task_penalty(split, facts.shape[1])
    if isinstance(facts, str) or L is None:
        yield normal_equations(split), None
        return
    ridge = shared_ridge(facts, L) if split.exact_functions else None
    shown = False
    for W, b, u in ridge.solutions(tol) if ridge else ():
        shown = True
        yield _blocks(facts, W, b), u
    if shown and facts.loss.tasks.is_sparse:  # singular values ask for dense inputs
        return
    found = spectral(facts, L)
    if not found:
        found = solve_per_task(facts, L) if split.exact_functions else least_squares(facts)
    yield found or normal_equations(split), None


def _between_features_and_tasks(form: NormalForm) -> bool:
    return any(f.atom.two_sided_quadratic() is not None for f in form.functions) and not structure_terms(form)


def _dual(loss: LossTerm, x: Blocks) -> np.ndarray:
    """The gradient at the predictions; exactly 0 where these interpolate, for there it is made of rounding alone."""
    z, y = loss.predictions(x), loss.tasks.targets
    return loss.gradient(y if _interpolates(z, y) else z)


def _interpolates(z, y) -> bool:
    rounding = 1e-12 * max(y.max(initial=0.0), -y.min(initial=0.0))
    return all(
        np.abs(z[k] - y[k]).max(initial=0.0) <= rounding for k in slabs(z.size)
    )  # the first mostly tells


# -------------------------------------------------------------------------------------------- structure


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


def _blocks(facts: SingleBlock, W: np.ndarray, b: np.ndarray | None) -> Blocks:
    return (
        {facts.name: W}
        if facts.intercept is None or b is None
        else {facts.name: W, facts.intercept: b[None, :]}
    )


# ------------------------------------------------------------------------------------------ exact solutions


def shared_ridge(facts: SingleBlock, L: np.ndarray) -> SharedRidge | None:
    """One X with every label present, samples that weigh the same in all tasks."""
    loss = facts.loss
    if not loss.is_shared_complete:
        return None
    weights = np.asarray(quadratic_weights(loss))
    if min(loss.tasks.X.shape) > SETTINGS.task_features and not loss.tasks.is_sparse:
        return None
    if weights.ndim == 0:
        weight, own = float(weights), None
    else:
        table = weights.reshape(loss.tasks.n_tasks, -1)
        weight, own = 1.0, table[0]
        if np.any(table != own):
            return None
    tasks = loss.tasks
    Y = tasks.targets.reshape(tasks.n_tasks, -1)
    products = (
        lambda V: tasks.forward(V.T).reshape(len(V), -1),
        lambda R: tasks.adjoint(R.ravel()).T,
    )
    return SharedRidge(tasks.X, Y, L, bool(loss.intercepts), weight, own, products)


def spectral(facts: SingleBlock, L: np.ndarray) -> Blocks | None:
    """One dense X with every label present, and one weight for all samples."""
    loss = facts.loss
    if not loss.is_shared_complete or loss.uniform_scale is None or loss.tasks.is_sparse:
        return None
    X, Y = loss.tasks.X, loss.tasks.targets.reshape(loss.tasks.n_tasks, -1).T
    x_mean, y_mean = (X.mean(axis=0), Y.mean(axis=0)) if facts.intercept else (0.0, 0.0)
    X = X - x_mean
    if _unevenness(X) > SETTINGS.unevenness_ratio:
        return (
            None  # singular values are exact to rounding of the largest: columns of small units drown in it
        )
    left, s, right = svd(X)
    weight = quadratic_weights(loss)
    levels, rotation = eigh(np.diag(L) if L.ndim == 1 else L)
    levels[np.abs(levels) <= 1e-13 * np.abs(levels).max(initial=0.0)] = 0.0
    kept = s > np.finfo(float).eps * max(X.shape) * s.max(initial=0.0)
    s, left, right = s[kept], left[:, kept], right[kept]
    V = weight * s[:, None] * (left.T @ (Y - y_mean) @ rotation) / (weight * np.square(s)[:, None] + levels)
    W = right.T @ V @ rotation.T
    return _blocks(facts, W, y_mean - x_mean @ W if facts.intercept else None)


def solve_per_task(facts: SingleBlock, L: np.ndarray) -> Blocks | None:
    """A ridge a task and nothing that ties them, of tasks whose smaller side is worth a factor of its own."""
    tasks, d = facts.loss.tasks, facts.shape[0]
    has_few_rows = L.min() > 0 and tasks.counts.max() < d
    if L.ndim != 1 or (not has_few_rows and (facts.loss.is_shared_complete or d > SETTINGS.task_features)):
        return None
    if (tasks.n_samples / tasks.n_tasks + d) * d * d < SETTINGS.factor_flops:
        return None
    weights = np.broadcast_to(np.asarray(quadratic_weights(facts.loss), dtype=float), tasks.n_samples)
    found = separate_ridge(facts.loss, L, weights)
    return None if found is None else _blocks(facts, *found)


def least_squares(facts: SingleBlock) -> Blocks:
    """No penalty: every task by itself, the solution of smallest norm."""
    tasks = facts.loss.tasks
    root = np.sqrt(np.broadcast_to(quadratic_weights(facts.loss), tasks.n_samples))
    W, b = np.empty((tasks.n_features, tasks.n_tasks)), np.zeros(tasks.n_tasks)
    for i, (X, first, last) in enumerate(
        zip(tasks.inputs, tasks.offsets[:-1], tasks.offsets[1:], strict=True)
    ):
        X, weight, y = X.toarray() if tasks.is_sparse else X, root[first:last], tasks.targets[first:last]
        shares = np.square(weight) / np.square(weight).sum()
        x_mean, y_mean = (shares @ X, shares @ y) if facts.intercept else (0.0, 0.0)
        W[:, i] = _least_squares((X - x_mean) * weight[:, None], (y - y_mean) * weight)
        b[i] = y_mean - x_mean @ W[:, i] if facts.intercept else 0.0
    return _blocks(facts, W, b)


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
            update.x[:] = 0.0
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
