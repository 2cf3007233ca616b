"""A point moved into the constraints, in extended precision: what it attains there is attained."""

import numpy as np

from tests.fuzz.formulas import LONG, PENALTIES, evaluate
from tests.fuzz.recipes import Constraint, Model


def repaired(model: Model, blocks: dict) -> dict:
    """Every recipe's constraints can be met one after the other: bounds and balls hold 0, equalities and simplices stand alone."""
    moved = {name: np.array(value, LONG) for name, value in blocks.items()}
    for c in model.constraints:
        _move(c, moved)
    return moved


def _move(c: Constraint, blocks: dict) -> None:
    name = c.argument.parts[0].block
    W = blocks[name]
    if c.kind == "at_least":
        blocks[name] = np.maximum(W, LONG(c.bound))
    elif c.kind == "at_most":
        blocks[name] = np.minimum(W, LONG(c.bound))
    elif c.kind == "equal_to":  # left @ W == bound, with rows of left orthogonal
        left = np.asarray(c.argument.parts[0].left, LONG)
        missing = LONG(c.bound) - left @ W
        blocks[name] = W + left.T @ (missing / np.sum(left * left, axis=1, keepdims=True))
    elif c.kind == "columns_on_simplex":
        W = np.maximum(W, 0)
        sums = W.sum(axis=0)
        uniform = np.full_like(W, LONG(c.bound) / len(W))
        blocks[name] = np.where(sums > 0, W * (LONG(c.bound) / np.where(sums > 0, sums, 1)), uniform)
    else:
        size = PENALTIES[c.kind](evaluate(c.argument, blocks))
        if size > c.bound:
            for part in c.argument.parts:
                blocks[part.block] = blocks[part.block] * (LONG(c.bound) / size)
