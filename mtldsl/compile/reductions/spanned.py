"""A model of fewer samples than features, in the coordinates of the samples' span: the representer theorem as a smaller model of the same kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpstrf

from mtldsl.compile.normal_form import Block, Blocks, Entry, FunctionTerm, LinearMap, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise
from mtldsl.compile.single_block import single_block
from mtldsl.tasks.derived import with_inputs

__all__ = ["Span", "Spanned"]

#: Squared pivots of the kernel matrix, relative to the largest, below which its factor would lose half the digits.
_SMALLEST_PIVOT = 1e-6
#: The same of rows that may be sums of others, and what these sums may then differ from them, relative to the longest row.
_NOTHING, _ROUNDING = 1e-12, 1e-12


@dataclass(frozen=True, eq=False)
class Span:
    """The way back: W = Q V for the weights V of the coordinates, where X^T = Q L^T and Q has orthonormal columns."""

    block: Block
    L: np.ndarray  # (n, r), r the samples that are not sums of others
    out: Callable[[np.ndarray], np.ndarray]  # V -> Q V
    into: Callable[[np.ndarray], np.ndarray]  # W -> Q^T W


class Spanned:
    """X (n, d) becomes L (n, r) with L L^T = X X^T, and W (d, m) the V (r, m) of W = Q V.

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
        return next(
            (f"{f.typed} changes with the basis" for f in form.functions if not _is_of_lengths(f)), None
        )

    def apply(self, form: NormalForm) -> tuple[NormalForm, Span]:
        (block,) = form.weight_blocks
        (loss,) = form.losses
        known = form.remembered.get(Spanned)  # by all values of a path
        if known is None or known[0] is not loss:
            known = form.remembered[Spanned] = (loss, *_loss_in_span(loss, block))
        _, inside, span = known
        identity = inside.map
        smaller = replace(
            form,
            blocks=tuple(Block(b.name, identity.shape) if b.name == block.name else b for b in form.blocks),
            losses=(inside,),
            functions=tuple(replace(f, map=identity) for f in form.functions),
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


def _loss_in_span(loss: LossTerm, block: Block) -> tuple[LossTerm, Span]:
    span = _span(block, loss.tasks.X)
    r = span.L.shape[1]
    names = tuple(map(str, range(r)))
    tasks = with_inputs(loss.tasks, [span.L], feature_names=names, scaling=None, kernel_map=None)
    return replace(loss, tasks=tasks, map=LinearMap((Entry(block.name),), (r, block.shape[1]))), span


def _span(block: Block, X: np.ndarray) -> Span:
    """By the kernel matrix where that keeps the digits, else by Householder's reflections, at four times the price."""
    X = np.asarray(X, float)
    found = _by_kernel(block, X)
    if found is not None:
        return found
    Q, R = qr(X.T, mode="economic", check_finite=False)
    return Span(block, np.ascontiguousarray(R.T), lambda V: Q @ V, lambda W: Q.T @ W)


def _by_kernel(block: Block, X: np.ndarray) -> Span | None:
    """A pivoted Cholesky factor of X X^T: rows that others add up to (of centred columns all together do) have no coordinate of their own."""
    K = X @ X.T
    largest = float(K.diagonal().max())
    if not 0.0 < largest < np.inf:
        return None
    factor, order, rank, _ = dpstrf(K, lower=1, tol=_NOTHING * largest)
    order = order - 1
    rows, rest = order[:rank], order[rank:]
    own = np.tril(factor[:rank, :rank])
    if own.diagonal().min() ** 2 <= _SMALLEST_PIVOT * largest:
        return None
    L = np.zeros((len(X), rank))
    L[rows], L[rest] = own, factor[rank:, :rank]

    def out(V):
        shares = np.zeros((len(X), V.shape[1]))
        shares[rows] = solve_triangular(own, V, lower=True, trans="T", check_finite=False)
        return X.T @ shares

    def into(W):
        return solve_triangular(own, X[rows] @ W, lower=True, check_finite=False)

    if rest.size and np.abs(X[rest] - out(L[rest].T).T).max() > _ROUNDING * np.sqrt(largest):
        return None
    return Span(block, L, out, into)
