"""A convex model over the weights of some tasks alone, those of all others kept: where data are too large for cvxpy.

Where nothing couples tasks, as with a quadratic above a spectrum, the minimum of the whole is the sum of such minima.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from mtldsl.compile.normal_form import Block, Blocks, Entry, FunctionTerm, LinearMap, LossTerm, NormalForm

from .compile import nonzeros, to_cvxpy
from .registry import formula_of
from .spectral_above import SpectralQuadratic, Subspace

__all__ = ["of_tasks", "value_and_violation", "why_not_by_tasks"]

#: Nonzero scalars of data that cvxpy evaluates at once (measured on 10,000,000 in 1,000 tasks: so, 4 s and 20 MB; all at once,
#: 8 s and 300 MB).
AT_ONCE = 2_000_000

#: Sets that hold column by column, and the parameter of each that may be an array.
_BY_COLUMNS = {
    "at_least": "bound",
    "at_most": "bound",
    "equal_to": "bound",
    "columns_on_simplex": None,
    Subspace.name: None,
}


def why_not_by_tasks(form: NormalForm) -> str | None:
    """None where the model can be restricted to tasks, else one sentence."""
    for f in form.functions:
        if f.is_constraint and not (
            f.atom.name in _BY_COLUMNS and _keeps_columns(f.map) and not _of_rows(f.atom)
        ):
            return f"{f.typed} couples tasks"
    return _why_not_losses(form)


def _why_not_losses(form: NormalForm) -> str | None:
    m = form.losses[0].tasks.n_tasks
    if any(loss.tasks.n_tasks != m for loss in form.losses) or any(b.shape[1] != m for b in form.blocks):
        return "the unknowns have other columns than tasks"
    for loss in form.losses:
        if formula_of(loss.atom.name, loss.typed).of_labellings:
            return f"{loss.typed} is a loss of all labels together"
        if formula_of(loss.atom.name, loss.typed).by_planes:
            return f"{loss.typed} is given by planes"
        if not _keeps_columns(loss.map):
            return f"{loss.typed} mixes the weights of tasks"
    return None


def value_and_violation(form: NormalForm, blocks: Blocks) -> tuple[float, float]:
    """(objective, violation) of a convex model at arrays, by the reference's formulas: of large data, some tasks at a time."""
    size = sum(nonzeros(loss) for loss in form.losses)
    if size <= AT_ONCE or _why_not_losses(form) is not None:
        model = to_cvxpy(form)
        return model.objective_value(blocks), model.violation(blocks)
    model = to_cvxpy(replace(form, losses=()))
    total, violation = model.objective_value(blocks), model.violation(blocks)
    m = form.losses[0].tasks.n_tasks
    for which in np.array_split(np.arange(m), min(m, -(-size // AT_ONCE))):
        part = replace(
            form, blocks=_some_columns(form, which), losses=_losses(form, which), functions=(), constant=0.0
        )
        total += to_cvxpy(part).objective_value({name: block[:, which] for name, block in blocks.items()})
    return total, violation


def of_tasks(form: NormalForm, at: Blocks, which) -> tuple[NormalForm, Blocks]:
    """(the model over columns `which` of every block, all other columns kept at the blocks `at`; `at` in these columns).

    Losses of other tasks are left out, and of terms that are sums over columns, the other columns' share.
    """
    which = np.asarray(which, int)
    functions = tuple(_function(f, at, which) for f in form.functions)
    restricted = replace(
        form,
        blocks=_some_columns(form, which),
        losses=_losses(form, which),
        functions=functions,
        constant=0.0,
    )
    return restricted, {name: np.asarray(block)[:, which] for name, block in at.items()}


def _some_columns(form: NormalForm, which) -> tuple[Block, ...]:
    return tuple(Block(b.name, (b.shape[0], len(which)), b.intercept_of) for b in form.blocks)


def _losses(form: NormalForm, which) -> tuple[LossTerm, ...]:
    return tuple(
        replace(
            loss,
            coefficients=np.asarray(loss.coefficients)[which],
            tasks=loss.tasks.select([int(i) for i in which]),
            map=_of_columns(loss.map, which),
        )
        for loss in form.losses
    )


def _keeps_columns(linear_map: LinearMap) -> bool:
    return all(entry.right is None for entry in linear_map.entries)


def _of_rows(atom) -> bool:
    return bool(getattr(atom, "of_rows", False))


def _function(f: FunctionTerm, at: Blocks, which) -> FunctionTerm:
    if f.atom.name == SpectralQuadratic.name and _keeps_columns(f.map) and not _of_rows(f.atom):
        return replace(f, map=_of_columns(f.map, which))
    if not f.is_constraint:
        return replace(f, map=_others_kept(f.map, at, which))
    field, atom = _BY_COLUMNS[f.atom.name], f.atom
    if field is not None:
        bound = np.broadcast_to(np.asarray(getattr(atom, field), float), f.map.shape)
        atom = replace(atom, **{field: bound[:, which]})
    return replace(f, atom=atom, map=_of_columns(f.map, which))


def _of_columns(linear_map: LinearMap, which) -> LinearMap:
    """The columns `which` of a map that keeps columns."""
    offset = (
        None if linear_map.offset is None else np.broadcast_to(linear_map.offset, linear_map.shape)[:, which]
    )
    return LinearMap(linear_map.entries, (linear_map.shape[0], len(which)), offset)


def _others_kept(linear_map: LinearMap, at: Blocks, which) -> LinearMap:
    offset = np.zeros(linear_map.shape)
    if linear_map.offset is not None:
        offset += linear_map.offset
    entries = []
    for entry in linear_map.entries:
        kept = np.array(at[entry.block], float)
        m = kept.shape[1]
        kept[:, which] = 0.0
        offset += entry.forward(kept)
        pick = sp.csr_array((np.ones(len(which)), (np.arange(len(which)), which)), shape=(len(which), m))
        right = pick if entry.right is None else pick @ entry.right
        entries.append(Entry(entry.block, entry.coefficient, entry.left, right))
    return LinearMap(tuple(entries), linear_map.shape, offset)
