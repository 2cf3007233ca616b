"""Smooth losses under a ridge and nothing else: Newton's method, on the kernel's side where features outnumber samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.single_block import single_block
from mtldsl.solvers.point import Point
from mtldsl.solvers.smooth.bordered import Bordered, Made
from mtldsl.solvers.smooth.designs import SharedDesign, design_of
from mtldsl.solvers.smooth.ridge_newton import RidgeNewton, RidgeState
from mtldsl.solvers.smooth.samples import SmoothLoss, one_smooth_loss
from mtldsl.solvers.watches import Watch
from mtldsl.system.once import once

__all__ = ["solve", "why_not"]

_JITTER = 1e-13
_LARGEST_KERNEL = 1000  # samples


def why_not(form: NormalForm) -> str | None:
    """None for one smooth loss that is a sum over samples, not quadratic, of one matrix under ridges of all its entries; else a sentence."""
    facts = one_smooth_loss(form)
    if isinstance(facts, str):
        return facts
    for f in form.functions:
        if f.atom.entry_quadratic is None:
            return f"{f.typed} is not a sum of squares."
    return None if np.all(_ridge(form, facts.shape) > 0) else "some entries have no ridge."


def _ridge(form: NormalForm, shape) -> np.ndarray:
    """(m, d)."""
    total = np.zeros(shape)
    for f in form.functions:
        weights = f.atom.entry_quadratic
        assert weights is not None  # why_not() was asked
        total += f.coefficient * np.asarray(weights)
    return np.ascontiguousarray(total.T)


def solve(form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch) -> Point:
    facts = single_block(form)
    assert not isinstance(facts, str)  # why_not() was asked
    loss, ridge = facts.loss, _ridge(form, facts.shape)
    m, d = ridge.shape
    centred = facts.intercept is not None
    b = np.zeros(m)
    if start is not None and centred:
        assert facts.intercept is not None
        b = np.array(start.blocks[facts.intercept][0])
    W = np.zeros((m, d)) if start is None else np.array(start.blocks[facts.name].T, order="C")
    design = design_of(loss)
    small = _by_kernel(design, ridge) if start is None else None
    if small is not None:
        design, W = small, np.zeros((m, small.n_features))
    own = ridge if small is None else np.repeat(ridge[:, :1], W.shape[1], axis=1)
    whole, samples = design_of(loss) if small is not None else design, SmoothLoss.of(loss)
    last: list[Point] = []

    def report(state: RidgeState, steps: int) -> bool:
        V = state.V[:, :-1] if small is None else -whole.pull(state.u) / ridge
        blocks = {facts.name: np.ascontiguousarray(V.T)}
        if facts.intercept is not None:
            blocks[facts.intercept] = state.V[:, -1][None, :].copy()
        duals: Any = None
        if len(form.functions) > 1:
            squares = [f.coefficient * np.asarray(f.atom.entry_quadratic) for f in form.functions]
            duals = [square * blocks[facts.name] for square in squares]
        u = samples.balanced(state.u, state.curvature) if centred else state.u.copy()
        last[:] = [Point(blocks, [u], duals, steps)]
        return watch(last[0])

    V = np.column_stack([W, b])
    # along a path those of the value before do: what ridges add to them is known
    hessians = once(loss, "hessians", Made) if small is None else None
    steps = RidgeNewton(
        samples, Bordered(design, centred, hessians), np.column_stack([own, np.zeros(m)]), tol
    )
    steps.run(V, max_iter, report, lambda: watch.expired)
    return last[0]


def _by_kernel(design, ridge) -> SharedDesign | None:
    """L with L L^T = X X^T in the place of X, where that is smaller: weights V of L mean W = V (L^-1 X), of the same length.

    None where it is not smaller, or where the ridge weighs entries of a task differently.
    """
    if not isinstance(design, SharedDesign) or design.is_sparse or not np.all(ridge == ridge[:, :1]):
        return None
    n, d = design.X.shape
    if 1.5 * n > d or n > _LARGEST_KERNEL:
        return None
    K = design.X @ design.X.T
    K[np.diag_indices(n)] += _JITTER * max(float(K.trace()) / n, np.finfo(float).tiny)
    try:
        L = cholesky(K, lower=True, check_finite=False)
    except LinAlgError:
        return None
    return SharedDesign(L, design.n_tasks)
