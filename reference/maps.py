"""The linear maps of a normal form on cvxpy variables: arguments of functions, predictions of losses."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.normal_form.form import Blocks, LossTerm
from mtldsl.normal_form.term import LinearMap


def image(linear_map: LinearMap, variables: dict[str, cp.Variable]) -> cp.Expression:
    """The map on the variables: the sum of coefficient * left @ block @ right, plus the offset."""
    parts = []
    for entry in linear_map.entries:
        part = variables[entry.block]
        if entry.left is not None:
            part = cp.Constant(entry.left) @ part
        if entry.right is not None:
            part = part @ cp.Constant(entry.right)
        parts.append(part if entry.coefficient == 1.0 else float(entry.coefficient) * part)
    if linear_map.offset is not None:
        parts.append(np.asarray(linear_map.offset, float))
    total = sum(parts) if linear_map.entries else cp.Constant(sum(parts, np.zeros(linear_map.shape)))  # W - W
    return total + np.zeros(linear_map.shape) if total.shape != tuple(linear_map.shape) else total


def map_value(linear_map: LinearMap, blocks: Blocks) -> np.ndarray:
    """The map at arrays."""
    return np.asarray(image(linear_map, constants(blocks)).value, float)


def constants(blocks: Blocks) -> dict[str, cp.Constant]:
    return {name: cp.Constant(block) for name, block in blocks.items()}


def prediction_parts(
    term: LossTerm, variables: dict[str, cp.Variable]
) -> list[tuple[sp.csr_array, cp.Expression]]:
    """(matrix, vector) pairs whose products add up to the flat predictions, task after task: the inputs, one
    block a task, on the stacked columns of W, and for an intercept its task's entry in every row.
    """
    inputs = sp.block_diag([sp.csr_array(X) for X in term.tasks.inputs], format="csr")
    parts = [(inputs, cp.vec(image(term.map, variables), order="F"))]
    for name in term.intercepts:
        ones = sp.block_diag([np.ones((n, 1)) for n in term.tasks.counts], format="csr")
        parts.append((ones, cp.vec(variables[name], order="F")))
    return parts


def predictions(term: LossTerm, variables: dict[str, cp.Variable]) -> cp.Expression:
    """The flat predictions (N,)."""
    return sum(cp.Constant(matrix) @ vector for matrix, vector in prediction_parts(term, variables))
