"""Expressions as they were typed: a tree of operations over the names of blocks, which holds no data of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Operation", "block"]


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation and what it was applied to, in the order typed.

    name     : "block" (a name) · "+" "-" (two operands) · "*" (a `Scalar`, an expression) · "@" (a matrix on either side) ·
               "[]" (an expression, its rows, its columns) · "sum" (an expression, an axis) · "beside" (columns after columns) ·
               ">=" "<=" "==" (two sides) · "in" (a set, an expression) · "ball" (a norm's factor, the norm, an expression, the radius)
    operands : operations, arrays, numbers, `Scalar`s

    The second evaluation of an objective walks this tree (`mtldsl.definitions`); all else reads `Affine.parts`, which are made
    beside it.
    """

    name: str
    operands: tuple[Any, ...]


def block(name: str) -> Operation:
    """Return the matrix of unknowns of that name."""
    return Operation("block", (name,))
