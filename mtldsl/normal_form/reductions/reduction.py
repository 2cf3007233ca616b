"""Reductions: a form that is easier, and the way back to the one that was typed.

A reduction is an object with these members; what it needs beside the form - a point, matrices, rows - it is made with.

promise       : a `Promise`
accepts(form) : None where it makes this form easier, else one sentence that says why not
apply(form)   : (the easier form, the recipe for the way back); nothing is promised where the form is not accepted
invert(point, recipe) : a point of the easier form as one of the form; the point itself is not changed. Multipliers that have no
                counterpart are None, and the certificate makes its own
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse

from mtldsl.normal_form.form import Block, Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.term import LinearMap, MapEntry


class Promise(Enum):
    """Relation of the easier form's points to the form as given; `invert` takes them there."""

    EXACT = "the same objective and violation; an optimum becomes an optimum, and multipliers become multipliers that prove it"
    RESTRICTION = "the same objective but for a constant, and the same violation; points that it cannot reach may be lower"
    MAJORIZATION = "an objective that is no higher, and the same violation"


#: a point of a solver or of the reference: a dataclass with `blocks`, `loss_duals` and `function_duals`
Point = TypeVar("Point", bound=Any)


# --------------------------------------------------------------------------------------------------------------
# Terms with convex functions above them in their place, which touch them somewhere.
#
# It holds no formula: which functions lie above a term, and where they touch it, is what its caller says. The reference says it by its own
# formulas (`mtldsl.reference.spectral`), and is the only one who does.


@dataclass(frozen=True, eq=False)
class Majorant:
    """Replacement of an atom g: functions that are added up, a constant, and constraints on g's argument."""

    text: str  # "{} majorised": the term as typed goes where the braces are
    functions: tuple
    constant: float
    constraints: tuple = ()


class TermMajorization:
    """The terms that `ways` names, by what it names; a function above g, or one that is only on a subspace."""

    promise: ClassVar[Promise] = Promise.MAJORIZATION

    def __init__(self, ways: Mapping[FunctionTerm, Majorant]):
        self.ways = ways

    def accepts(self, form: NormalForm) -> str | None:
        missing = next((f for f in self.ways if f not in form.functions), None)
        return None if missing is None else f"{missing.typed} is not a term of this model"

    def apply(self, form: NormalForm) -> tuple[NormalForm, str]:
        """The recipe is what was done, in words."""
        functions, constraints, texts, constant = [], [], [], form.constant
        for f in form.functions:
            way = self.ways.get(f)
            if way is None:
                (constraints if f.is_constraint else functions).append(f)
                continue
            texts.append(way.text.replace("{}", f.typed))
            functions += [FunctionTerm(atom, f.coefficient, f.map, f.typed) for atom in way.functions]
            constraints += [FunctionTerm(atom, 1.0, f.map, f.typed) for atom in way.constraints]
            constant += 0.0 if f.is_constraint else f.coefficient * way.constant
        return replace(form, functions=(*functions, *constraints), constant=constant), ", ".join(texts)

    def invert(self, point: Point, recipe: str) -> Point:
        """The same weights; multipliers belong to what lies above."""
        return replace(point, function_duals=None)


# --------------------------------------------------------------------------------------------------------------
# A model over the weights of some tasks alone, those of all others kept.
#
# Where nothing couples tasks, the minimum of the whole is the sum of such minima. The reference restricts to some tasks what is too large
# for cvxpy; it hands in its own evaluation of a map, so that no number of it is the fast side's.


class TaskSubset:
    """The columns `which` of every block, all other columns kept at the blocks `at`.

    Losses of other tasks are left out, and of terms that are sums over columns, the other columns' share: the two objectives differ by a
    constant.

    image : (map, blocks) -> the map's value there; None: that of the normal form
    """

    promise: ClassVar[Promise] = Promise.RESTRICTION

    def __init__(
        self, which, at: Blocks, image: Callable[[LinearMap, Blocks], np.ndarray] = LinearMap.forward
    ):
        self.which, self.at, self.image = np.asarray(which, int), at, image

    def accepts(self, form: NormalForm) -> str | None:
        for f in form.functions:
            if f.is_constraint and self._of_columns(f) is None:
                return f"{f.typed} couples tasks"
        return why_not_losses(form)

    def apply(self, form: NormalForm) -> tuple[NormalForm, Blocks]:
        """The recipe is the point that the other columns are kept at."""
        functions = tuple(self._function(f) for f in form.functions)
        return replace(losses_of_tasks(form, self.which), functions=functions, constant=0.0), self.at

    def invert(self, point: Point, recipe: Blocks) -> Point:
        """All columns; no multipliers, since those of other tasks are not known."""
        blocks = {name: np.array(block, float) for name, block in recipe.items()}
        for name, block in point.blocks.items():
            blocks[name][:, self.which] = block
        return replace(point, blocks=blocks, loss_duals=None, function_duals=None)

    def restricted(self, blocks: Blocks) -> Blocks:
        """A point of the form in the columns of the smaller one."""
        return {name: np.asarray(block)[:, self.which] for name, block in blocks.items()}

    def _of_columns(self, f: FunctionTerm) -> FunctionTerm | None:
        """The term of these columns alone, where it is a sum over columns."""
        atom = f.atom.on_columns(self.which, f.map.shape) if _keeps_columns(f.map) else None
        return None if atom is None else replace(f, atom=atom, map=_of_columns(f.map, self.which))

    def _function(self, f: FunctionTerm) -> FunctionTerm:
        return self._of_columns(f) or replace(f, map=self._others_kept(f.map))

    def _others_kept(self, linear_map: LinearMap) -> LinearMap:
        others, entries = {}, []
        for entry in linear_map.entries:
            others[entry.block] = np.array(self.at[entry.block], float)
            m = others[entry.block].shape[1]
            others[entry.block][:, self.which] = 0.0
            pick = sparse.csr_array(
                (np.ones(len(self.which)), (np.arange(len(self.which)), self.which)),
                shape=(len(self.which), m),
            )
            right = pick if entry.right is None else pick @ entry.right
            entries.append(MapEntry(entry.block, entry.coefficient, entry.left, right))
        return LinearMap(tuple(entries), linear_map.shape, np.array(self.image(linear_map, others)))


def why_not_losses(form: NormalForm) -> str | None:
    """None where losses and unknowns have a column a task, else one sentence."""
    m = form.losses[0].tasks.n_tasks
    if any(loss.tasks.n_tasks != m for loss in form.losses) or any(b.shape[1] != m for b in form.blocks):
        return "the unknowns have other columns than tasks"
    for loss in form.losses:
        if loss.atom.labels in ("indicators", "classes"):
            return f"{loss.typed} is a loss of all labels together"
        if not loss.sums_tasks:
            return f"{loss.typed} is not a sum over tasks"
        if any(loss.atom.of_task(i) is not loss.atom for i in range(m)):
            return f"{loss.typed} has a loss of its own for every task"
        if not _keeps_columns(loss.map):
            return f"{loss.typed} mixes the weights of tasks"
    return None


def losses_of_tasks(form: NormalForm, which) -> NormalForm:
    """The columns `which` of all unknowns under the losses of these tasks, no function and no constant beside them."""
    blocks = tuple(Block(b.name, (b.shape[0], len(which)), b.intercept_of) for b in form.blocks)
    losses = tuple(_loss(loss, which) for loss in form.losses)
    return replace(form, blocks=blocks, losses=losses, functions=(), constant=0.0)


def _loss(loss: LossTerm, which) -> LossTerm:
    return replace(
        loss,
        coefficients=np.asarray(loss.coefficients)[which],
        tasks=loss.tasks.select([int(i) for i in which]),
        map=_of_columns(loss.map, which),
    )


def _keeps_columns(linear_map: LinearMap) -> bool:
    return all(entry.right is None for entry in linear_map.entries)


def _of_columns(linear_map: LinearMap, which) -> LinearMap:
    """The columns `which` of a map that keeps columns."""
    offset = (
        None if linear_map.offset is None else np.broadcast_to(linear_map.offset, linear_map.shape)[:, which]
    )
    return LinearMap(linear_map.entries, (linear_map.shape[0], len(which)), offset)
