"""Smooth losses under row-sparse penalties: solve on the rows of W that matter, look at all rows, add those that are missing.

A product with all features is paid a few times only; in between the problem is a small one of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mtldsl.normal_form.form import Block, NormalForm, single_block
from mtldsl.normal_form.term import LinearMap, MapEntry
from mtldsl.solvers.design.row_penalty import RowPenalty, function_duals, unsupported_reason
from mtldsl.solvers.solver import Point, StoppingWatch, Watch


@dataclass(frozen=True)
class WorkingSetSettings:
    """Constants of working sets.

    min_rows      : of a weight matrix; fewer are solved for at once
    violation_tol : of the small problem, relative to the largest violation outside
    """

    min_rows: int = 200
    violation_tol: float = 0.1


SETTINGS = WorkingSetSettings()


Solve = Callable[[NormalForm, int, Point | None, Watch], Point]


def selection_refusal(form: NormalForm) -> str | None:
    """None for one large weight matrix itself whose penalties leave out rows, else one sentence."""
    facts = single_block(form, several_losses=True)
    if isinstance(facts, str):
        return facts
    if facts.shape[0] < SETTINGS.min_rows:
        return f"{facts.name} has fewer than {SETTINGS.min_rows} rows."
    return unsupported_reason(form.functions, facts.shape)


class RowSelection:
    """Runs `solve`, which takes whole forms, on a form's restrictions to growing sets of rows."""

    def __init__(self, form: NormalForm, solve: Solve):
        self.form, self.solve_form = form, solve
        (self.block,) = form.weight_blocks
        self.penalty = RowPenalty.of(form.functions, self.block.shape)

    def run(self, max_iter: int, start: Point | None, watch: Watch) -> Point:
        d, m = self.block.shape
        blocks = self.form.zeros() if start is None else {k: np.array(v) for k, v in start.blocks.items()}
        rows, iteration, precision = np.flatnonzero(blocks[self.block.name].any(axis=1)), 0, math.inf
        while True:
            point, excess, steepest = self._look(blocks, iteration)
            precision = min(precision, steepest)
            known = np.zeros(d, dtype=bool)
            known[rows] = True
            new = np.flatnonzero((excess > 0) & ~known)
            done = iteration >= max_iter or watch.expired
            if new.size == 0 or done:
                if watch(point) or done:
                    return point
                precision *= SETTINGS.violation_tol
            else:
                precision = min(precision, SETTINGS.violation_tol * float(excess[new].max()))
                support = int(blocks[self.block.name].any(axis=1).sum())
                most = max(int(math.sqrt(d * m)), 2 * support)
                if new.size > most:
                    new = new[np.argpartition(-excess[new], most)[:most]]
                rows = np.sort(np.concatenate([rows, new]))
            if rows.size == 0:  # only the intercepts move; a form needs a row
                rows = np.array([excess.argmax()])
            small = self._on(rows)
            inner = Point(blocks | {self.block.name: blocks[self.block.name][rows]})
            enough = StoppingWatch(watch, partial(_is_stationary, small, precision))
            found = self.solve_form(small, max_iter - iteration, inner, enough)
            iteration += found.iteration
            W = np.zeros(self.block.shape)
            W[rows] = found.blocks[self.block.name]
            blocks = found.blocks | {self.block.name: W}

    def _on(self, rows) -> NormalForm:
        """The model of these rows, the others being zero."""
        form, name, shape = self.form, self.block.name, (len(rows), self.block.shape[1])
        identity = LinearMap((MapEntry(name),), shape)
        losses = [replace(loss, tasks=loss.tasks.select_features(rows), map=identity) for loss in form.losses]
        atoms: Any = [
            f.atom.on_rows(rows, self.block.shape) for f in form.functions
        ]  # `selection_refusal` was asked
        functions = [
            replace(f, atom=atom, map=identity) for f, atom in zip(form.functions, atoms, strict=True)
        ]
        blocks = [Block(name, shape) if b is self.block else b for b in form.blocks]
        return replace(form, blocks=tuple(blocks), losses=tuple(losses), functions=tuple(functions))

    def _look(self, blocks, iteration: int) -> tuple[Point, np.ndarray, float]:
        """The point with its multipliers, by how much every row violates optimality, and the largest row of the gradient."""
        W, into, slopes = blocks[self.block.name], self.form.zeros(), []
        for loss in self.form.losses:
            slopes.append(loss.gradient(loss.predictions(blocks)))
            loss.add_adjoint(slopes[-1], into)
        pull = -into[self.block.name].T
        duals = function_duals(self.form.functions, self.penalty, pull, W)
        seen = self.penalty.inspect(pull - self.penalty.ridge * W.T)
        steepest = max(_largest_row(gradient) for gradient in into.values())
        return Point(blocks, slopes, duals, iteration), seen.norms - self.penalty.l21, steepest


def _largest_row(matrix) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", matrix, matrix).max(initial=0.0)))


def _is_stationary(form: NormalForm, precision: float, point: Point) -> bool:
    """Tell whether the multipliers of a small problem's point are stationary to this precision."""
    residual = form.zeros()
    assert point.loss_duals is not None and point.function_duals is not None  # the solver shows them
    for loss, u in zip(form.losses, point.loss_duals, strict=True):
        loss.add_adjoint(u, residual)
    for f, v in zip(form.functions, point.function_duals, strict=True):
        f.map.add_adjoint(v, residual)
    return max(_largest_row(r) for r in residual.values()) <= precision
