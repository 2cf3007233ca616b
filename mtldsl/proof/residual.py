"""What multipliers leave of  sum_t A_t^T u_t + sum_k B_k^T v_k = 0:  how large it is, entry by entry, and what it costs the bound.

For every x,  F(x) >= D(u, v) + <r, x>  with the residual r of that sum. Nothing of it is dropped. An entry of r counts as rounding only
beside the terms of its own sum, |A|^T |u| + |B|^T |v|, so that a feature of a large unit exempts no other; and what counts as
rounding is paid for: over all x with |x_j| <= B_j,  F(x) >= D(u, v) - sum_j |r_j| B_j.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm

__all__ = [
    "REACH",
    "ROUNDING",
    "add_magnitudes",
    "is_rounding",
    "losses_work",
    "magnitudes",
    "payment",
    "region",
    "stationarity",
]

#: an entry of the residual this small beside the terms of its own sum is rounding, not infeasibility
ROUNDING = 1e-12

#: how many times the size of the solution weights may have that are paid for
REACH = 100.0


def stationarity(form: NormalForm, u, v, only: Collection[str] | None = None) -> Blocks:
    """r = sum A^T u + sum B^T v on every block; `only` these are needed: intercepts alone cost no product with the inputs."""
    residual = form.zeros()
    for loss, dual in zip(form.losses, u, strict=True):
        if _is_needed(loss.map, only):
            loss.add_adjoint(dual, residual)
        else:
            _add_to_intercepts(loss, loss.sums(dual), residual)
    for f, dual in zip(form.functions, v, strict=True):
        if _is_needed(f.map, only):
            f.map.add_adjoint(dual, residual)
    return residual


def magnitudes(form: NormalForm, u, v, only: Collection[str] | None = None) -> Blocks:
    """s = sum |A|^T |u| + sum |B|^T |v| on every block: what rounding errors of `stationarity` are proportional to, entry by entry."""
    size = form.zeros()
    for loss, dual in zip(form.losses, u, strict=True):
        add_magnitudes(loss, dual, size, _is_needed(loss.map, only))
    for f, dual in zip(form.functions, v, strict=True):
        if _is_needed(f.map, only):
            _add_absolute(f.map, np.abs(dual), size)
    return size


def add_magnitudes(loss: LossTerm, dual, size: Blocks, on_weights: bool = True) -> None:
    """Add |A|^T |u| of one loss, `on_weights` too or on its intercepts alone."""
    if on_weights:
        _add_absolute(loss.map, loss.absolute_adjoint(dual), size)
    _add_to_intercepts(loss, loss.absolute_sums(dual), size)


def _is_needed(linear_map, only: Collection[str] | None) -> bool:
    return only is None or any(name in only for name in linear_map.blocks)


def _add_to_intercepts(loss: LossTerm, sums: np.ndarray, into: Blocks) -> None:
    """What a loss's intercepts see of multipliers."""
    for name in loss.intercepts:
        into[name] += sums[None, :]


def _add_absolute(linear_map, Z, into: Blocks) -> None:
    for entry in linear_map.entries:
        image = Z
        if entry.left is not None:
            image = abs(entry.left).T @ image
        if entry.right is not None:
            image = image @ abs(entry.right).T
        into[entry.block] += abs(entry.coefficient) * image


def largest_share(residual: np.ndarray, size: np.ndarray) -> float:
    """The largest entry of a residual beside the terms of its own sum; inf where one has none."""
    shares = np.divide(np.abs(residual), size, out=np.where(residual == 0.0, 0.0, np.inf), where=size > 0)
    return float(shares.max(initial=0.0))


def is_rounding(residual: np.ndarray, size: np.ndarray) -> bool:
    """Whether every entry of a residual is rounding beside the terms of its own sum."""
    return largest_share(residual, size) <= ROUNDING


def payment(residual: np.ndarray, region: np.ndarray) -> float:
    """max over |x| <= region of |<r, x>|."""
    return float(np.sum(np.abs(residual) * region))


def losses_work(form: NormalForm, blocks: Blocks, u) -> Blocks:
    """For every block and column the size of what multipliers do to predictions and labels: sum of <|u_i|, max(|z_i|, |y_i|)> over
    the tasks i that the column has a part in.
    """
    work = {name: np.zeros((1, shape[1])) for name, shape in form.shapes.items()}
    for loss, dual in zip(form.losses, u, strict=True):
        by_task = loss.work(dual, blocks)[None, :]
        for entry in loss.map.entries:
            work[entry.block] += by_task if entry.right is None else by_task.sum()
        for name in loss.intercepts:
            work[name] += by_task
    return work


def region(block: str, blocks: Blocks, size: np.ndarray, work: np.ndarray) -> np.ndarray:
    """B = 100 times the size of a point's weights, entry by entry; and no less than 100 times what it takes to do the losses' work
    alone, `work` / s.
    """
    own = np.abs(blocks[block])
    alone = np.divide(work, size, out=np.zeros(size.shape), where=size > 0)
    return REACH * np.maximum(own, alone)
