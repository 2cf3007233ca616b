"""Points and multipliers as somebody types them, in the shapes that a form has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.errors import ModelError
from mtldsl.values.number import quoted
from mtldsl.values.sparse_matrix import read_dense

__all__ = ["blocks_of", "by_loss", "multipliers_of"]


def blocks_of(form: NormalForm, given: Any) -> Blocks:
    """A point from a matrix, {block: array} or a Solution; intercepts that are not given are 0."""
    given = getattr(given, "blocks", given)
    weights = [block.name for block in form.weight_blocks]
    if not isinstance(given, Mapping):
        if len(weights) > 1:
            raise ModelError(
                f"this model has {' and '.join(weights)}", term="value(W)",
                write_instead="write {" + ", ".join(f"{name!r}: ..." for name in weights) + "}",
            )  # fmt: skip
        given = {weights[0]: given}
    strange = [name for name in given if name not in form.shapes]
    if strange:
        raise ModelError(
            f"there is no block {quoted(strange[0])}; this model has {', '.join(map(repr, form.shapes))}",
            term="value(W)",
        )
    missing = [name for name in weights if name not in given]
    if missing:
        raise ModelError(f"the block {missing[0]!r} is not given", term="value(W)")
    x = form.zeros()
    for name, array in given.items():
        array = read_dense(array, f"value: {name}", ModelError)
        if array.shape != form.shapes[name] and array.size == np.prod(form.shapes[name]) and array.ndim == 1:
            array = array.reshape(form.shapes[name])
        if array.shape != form.shapes[name]:
            raise ModelError(
                f"{name} has shape {array.shape}; it must be {form.shapes[name]}", term="value(W)"
            )
        x[name] = array
    return x


def by_loss(form: NormalForm, given: Any) -> list:
    """What was given for every loss: one thing where there is one loss, else a dict by the terms as typed."""
    if not isinstance(given, Mapping):
        if len(form.losses) > 1:
            raise ModelError(
                f"this model has {len(form.losses)} losses", term="check_bound(u)",
                write_instead="write {" + ", ".join(f"{loss.typed!r}: ..." for loss in form.losses) + "}",
            )  # fmt: skip
        return [given]
    names = [loss.typed for loss in form.losses]
    strange = next((name for name in given if name not in names), None)
    missing = next((name for name in names if name not in given), None)
    if strange is not None or missing is not None:
        raise ModelError(
            f"there is no loss {strange!r}" if strange is not None else f"the multipliers of {missing} are not given",
            term="check_bound(u)", write_instead=f"write {{{', '.join(f'{name!r}: ...' for name in names)}}}",
        )  # fmt: skip
    return [given[name] for name in names]


def multipliers_of(loss: LossTerm, given: Any) -> np.ndarray:
    """(N,) from that, a list of (n_i,) a task, or a table (n, m) where inputs are shared. ModelError for another shape, NaN and infinities."""
    u = _flat(loss, given)
    strange = np.flatnonzero(~np.isfinite(u))
    if strange.size:
        task, row = loss.tasks.place(int(strange[0]))
        raise ModelError(
            f"the multiplier of task {loss.tasks.task_names[task]!r}, row {row} is {u[strange[0]]}", term="check_bound(u)"
        )  # fmt: skip
    return u


def _flat(loss: LossTerm, given: Any) -> np.ndarray:
    tasks, term = loss.tasks, "check_bound(u)"
    shapes = f"({tasks.n_samples},), a list of one vector a task"
    if tasks.is_shared:
        shapes += f", or ({tasks.X.shape[0]}, {tasks.n_tasks})"
    if (
        isinstance(given, Sequence)
        and len(given) == tasks.n_tasks
        and all(np.ndim(one) == 1 for one in given)
    ):
        parts = [read_dense(one, "check_bound: u", ModelError) for one in given]
        for i, (one, n) in enumerate(zip(parts, tasks.counts, strict=True)):
            if len(one) != n:
                raise ModelError(
                    f"task {tasks.task_names[i]!r} has {n} rows, and {len(one)} multipliers are given",
                    term=term,
                )
        return np.concatenate(parts)
    u = read_dense(given, "check_bound: u", ModelError)
    if u.shape == (tasks.n_samples,):
        return u
    if tasks.is_shared and u.shape == (tasks.X.shape[0], tasks.n_tasks):
        if tasks.mask is None:
            return u.T.ravel()
        return u.T[tasks.mask.T]
    raise ModelError(f"u has shape {u.shape}; multipliers of {loss.typed} are {shapes}", term=term)
