"""A model of fewer samples than features, in the coordinates of the samples' span: the representer theorem as a smaller model of the same kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from mtldsl.compile.normal_form import Block, Blocks, Entry, FunctionTerm, LinearMap, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise
from mtldsl.compile.single_block import single_block
from mtldsl.tasks.derived import with_inputs

__all__ = ["Span", "Spanned"]

#: Squared pivots of the kernel matrix, relative to the largest, below which its factor would lose half the digits.
_SMALLEST_PIVOT = 1e-6


@dataclass(frozen=True, eq=False)
class Span:
    """The way back: W = Q V for the weights V of the coordinates, where X^T = Q L^T and Q has orthonormal columns."""

    block: Block
    L: np.ndarray  # (n, n)
    out: Callable[[np.ndarray], np.ndarray]  # V -> Q V
    into: Callable[[np.ndarray], np.ndarray]  # W -> Q^T W


class Spanned:
    """X (n, d) becomes L (n, n) with L L^T = X X^T, and W (d, m) the V (n, m) of W = Q V.

    Losses see X W = L V; a function of the singular values, or of W^T W, is the same of V as of Q V, and no larger at V = Q^T W than at any
    other W of the same predictions.
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        facts = single_block(form)
        if isinstance(facts, str):
            return facts
        tasks = facts.loss.tasks
        if not tasks.is_shared or tasks.is_sparse:
            return f"the inputs of {facts.loss.typed} are not one dense matrix"
        if tasks.X.shape[0] >= facts.shape[0]:
            return "there are no fewer samples than features"
        if facts.loss.map.offset is not None:
            return f"{facts.loss.typed} is a loss of a matrix plus a constant"
        return next((f"{f.typed} changes with the basis" for f in form.functions if not _is_of_lengths(f)), None)

    def apply(self, form: NormalForm) -> tuple[NormalForm, Span]:
        (block,) = form.weight_blocks
        (loss,) = form.losses
        span = _known(form, block, loss.tasks.X)
        n, m = span.L.shape[0], block.shape[1]
        identity = LinearMap((Entry(block.name),), (n, m))
        names = tuple(map(str, range(n)))
        tasks = with_inputs(loss.tasks, [span.L], feature_names=names, scaling=None, kernel_map=None)

        def of_loss(loss: LossTerm) -> LossTerm:
            return replace(loss, tasks=tasks, map=identity)

        def of_function(f: FunctionTerm) -> FunctionTerm:
            return replace(f, map=identity)

        smaller = replace(
            form,
            blocks=tuple(Block(b.name, (n, m)) if b.name == block.name else b for b in form.blocks),
            losses=tuple(map(of_loss, form.losses)),
            functions=tuple(map(of_function, form.functions)),
        )
        return smaller, span

    def restricted(self, point: Point, span: Span) -> Point:
        """The part of a point of the form that lies in the span; multipliers of the losses are the same."""
        return _moved(point, span, span.into)

    def invert(self, point: Point, span: Span) -> Point:
        """The weights in the span; multipliers of the losses are the same, and those of the functions lie in it as well."""
        return _moved(point, span, span.out)


def _is_of_lengths(f: FunctionTerm) -> bool:
    """Whether a function of W is one of W^T W, whatever the number of rows."""
    if f.atom.separable == "spectrum":
        return True
    square = f.atom.entry_quadratic
    return square is not None and np.ndim(square) == 0


def _moved(point: Any, span: Span, way: Callable[[np.ndarray], np.ndarray]) -> Any:
    name, blocks = span.block.name, dict(point.blocks)
    blocks[name] = way(blocks[name])
    duals = point.function_duals
    if duals is not None:
        duals = [None if Z is None else way(np.asarray(Z)) for Z in duals]
    return replace(point, blocks=_as_blocks(blocks), function_duals=duals)


def _as_blocks(blocks: Blocks) -> Blocks:
    return {name: np.ascontiguousarray(array) for name, array in blocks.items()}


def _known(form: NormalForm, block: Block, X: np.ndarray) -> Span:
    """Made once for the values of a path, which share the inputs."""
    inputs, span = form.remembered.get(Spanned, (None, None))
    if inputs is not X or span.block != block:
        span = _span(block, X)
        form.remembered[Spanned] = (X, span)
    return span


def _span(block: Block, X: np.ndarray) -> Span:
    """By the kernel matrix where that keeps the digits, else by Householder's reflections, at four times the price."""
    X = np.asarray(X, float)
    try:
        L = cholesky(X @ X.T, lower=True, check_finite=False)
        pivots = np.square(L.diagonal())
        if pivots.min() > _SMALLEST_PIVOT * pivots.max():
            return Span(
                block,
                L,
                lambda V: X.T @ solve_triangular(L, V, lower=True, trans="T", check_finite=False),
                lambda W: solve_triangular(L, X @ W, lower=True, check_finite=False),
            )
    except LinAlgError:
        pass
    Q, R = qr(X.T, mode="economic", check_finite=False)
    return Span(block, np.ascontiguousarray(R.T), lambda V: Q @ V, lambda W: Q.T @ W)
