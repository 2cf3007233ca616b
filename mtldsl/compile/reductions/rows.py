"""A model on some rows of its one weight matrix, all others being zero: what is left is a small model of the same kind."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import Set
from mtldsl.compile.normal_form import Block, Blocks, Entry, FunctionTerm, LinearMap, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise

__all__ = ["Rows"]


class Rows:
    """The rows `rows` of W, and of the tasks' features those alone."""

    promise: ClassVar[Promise] = Promise.RESTRICTION

    def __init__(self, rows):
        self.rows = np.asarray(rows, int)

    def accepts(self, form: NormalForm) -> str | None:
        if len(form.weight_blocks) != 1:
            return f"there are {len(form.weight_blocks)} weight matrices"
        (block,) = form.weight_blocks
        for term in (*form.losses, *form.functions):
            if term.map.identity_of != block.name:
                return f"{term.typed} is not a function of {block.name} itself"
        for f in form.functions:
            if f.atom.on_rows(self.rows, block.shape) is None:
                return f"{f.typed} is not a sum over rows"
            if isinstance(f.atom, Set) and f.atom.violation(np.zeros(block.shape)) > 0:
                return f"{f.typed} leaves no row zero"
        return None

    def apply(self, form: NormalForm) -> tuple[NormalForm, Block]:
        """The recipe is the block that rows are left out of."""
        (block,) = form.weight_blocks
        shape = (len(self.rows), block.shape[1])
        identity = LinearMap((Entry(block.name),), shape)

        def loss_on_rows(loss: LossTerm) -> LossTerm:
            return replace(loss, tasks=loss.tasks.select_features(self.rows), map=identity)

        def function_on_rows(f: FunctionTerm) -> FunctionTerm:
            return replace(f, atom=f.atom.on_rows(self.rows, block.shape), map=identity)  # pyrefly: ignore[bad-argument-type]  # asked above

        return replace(
            form,
            blocks=tuple(Block(b.name, shape) if b.name == block.name else b for b in form.blocks),
            losses=tuple(map(loss_on_rows, form.losses)),
            functions=tuple(map(function_on_rows, form.functions)),
        ), block

    def restricted(self, blocks: Blocks, recipe: Block) -> Blocks:
        """A point of the form that is zero in the other rows, as one of the smaller form."""
        return blocks | {recipe.name: blocks[recipe.name][self.rows]}

    def invert(self, point: Point, recipe: Block) -> Point:
        """Zeros in the other rows; the losses' multipliers are the same, the functions' are not known there."""
        W = np.zeros(recipe.shape)
        W[self.rows] = point.blocks[recipe.name]
        return replace(point, blocks=point.blocks | {recipe.name: W}, function_duals=None)
