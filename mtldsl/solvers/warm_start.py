"""What a user hands to solve(warm_start=...), checked."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.random_labellings import RandomLabellings
from mtldsl.errors import SolverError
from mtldsl.solvers.solver import Point
from mtldsl.values.sparse_matrix import read_dense

__all__ = ["Solved", "starting_point"]


class Solved(Protocol):
    """What is asked of the Solution of another problem: its unknowns, and the point at which its solver stopped."""

    @property
    def blocks(self) -> Blocks: ...

    @property
    def state(self) -> object: ...  # a Point, or None where a file did not keep it


def starting_point(form: NormalForm, warm_start: Solved | dict | None) -> Point | None:
    """A Solution, or {block name: array}, as the point a solver starts from. SolverError where a block does not fit."""
    if warm_start is None:
        return None
    if isinstance(warm_start, dict) and all(isinstance(name, str) for name in warm_start):
        blocks, state = warm_start, None
    elif _is_solved(warm_start):
        blocks = warm_start.blocks
        state: Any = warm_start.state
    else:
        raise SolverError(
            term=f"solve(warm_start={type(warm_start).__name__})",
            write_instead="write a Solution, or a dict such as {'W': array}",
        )
    unknown = [name for name in blocks if name not in form.shapes]
    if unknown and isinstance(warm_start, dict):
        raise SolverError(
            f"there is no block {unknown[0]!r}; the blocks are {', '.join(map(repr, form.shapes))}",
            term="solve(warm_start=...)",
        )
    point = Point({name: _start_block(name, shape, blocks.get(name)) for name, shape in form.shapes.items()})
    if (
        state is not None
    ):  # multipliers and inner state of the same blocks; a solver checks whether they are its own
        point.loss_duals, point.function_duals, point.state = (
            _plain_multipliers(form, state.loss_duals),
            state.function_duals,
            state.state,
        )
    return point


def _is_solved(value) -> TypeGuard[Solved]:
    """Whether it has what a Solution has; the points of the reference are of a class of its own, with the same members."""
    state = getattr(value, "state", value)
    is_point = all(hasattr(state, member) for member in ("loss_duals", "function_duals", "state"))
    return hasattr(value, "blocks") and (state is None or is_point)


def _plain_multipliers(form: NormalForm, loss_duals):
    """Random labellings as the multipliers that they stand for; None where they are of other data."""
    if loss_duals is None or not any(isinstance(u, RandomLabellings) for u in loss_duals):
        return loss_duals
    if len(loss_duals) != len(form.losses):
        return None
    found = [loss.plain_multipliers(u) for loss, u in zip(form.losses, loss_duals, strict=True)]
    return None if any(u is None or isinstance(u, RandomLabellings) for u in found) else found


def _start_block(name: str, shape: tuple[int, int], value) -> np.ndarray:
    if value is None:
        raise SolverError(f"needs {name!r} of shape {shape}, got ()", term="solve(warm_start=...)")
    plain = type(value) is np.ndarray and value.dtype == np.float64
    block = value if plain else read_dense(value, f"solve(warm_start=...): {name!r}", SolverError)
    if block.shape != shape:
        raise SolverError(f"needs {name!r} of shape {shape}, got {block.shape}", term="solve(warm_start=...)")
    if not np.isfinite(block).all():
        raise SolverError(
            f"{name!r} contains NaN or infinity",
            term="solve(warm_start=...)",
            write_instead="write finite numbers",
        )
    return block
