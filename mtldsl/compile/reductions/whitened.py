"""A quadratic penalty between features, in coordinates in which it is a plain ridge: the inputs take the matrix upon themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers import Ridge
from mtldsl.compile.normal_form import Block, Blocks, Entry, FunctionTerm, LinearMap, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise
from mtldsl.compile.single_block import single_block
from mtldsl.tasks.derived import with_inputs

__all__ = ["White", "Whitened"]

#: Condition of the penalty up to which the new inputs keep half of the digits: they are divided by its square root.
_LARGEST_CONDITION = 1e12

#: Numbers that sparse inputs may become: in the new coordinates every sample has every feature.
_MOST_DENSE = 4_000_000


@dataclass(frozen=True, eq=False)
class White:
    """The way back: W = A^{-1/2} V. `shares` are the parts of A that each function has, in their order; `factors` what it reads W times."""

    block: Block
    root: SpectralMatrix  # A^{1/2}
    inverse_root: SpectralMatrix
    shares: tuple[SpectralMatrix, ...]
    factors: tuple[float, ...]


class Whitened:
    """losses(X W) + 1/2 tr(W^T A W) becomes losses(X A^{-1/2} V) + 1/2 ||V||^2, V = A^{1/2} W, whatever the losses.

    A is the sum of all functions: quadratics between features, each task by itself. Ridges have solvers that a matrix in their place has not.
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        facts = single_block(form, "multiple", several_losses=True)
        if isinstance(facts, str):
            return facts
        shares = [_share(f, facts.name) for f in form.functions]
        if all(f.atom.entry_quadratic is not None for f in form.functions):
            return "no function has a matrix between the features"
        for f, share in zip(form.functions, shares, strict=True):
            if share is None:
                return f"{f.typed} is not a quadratic between features with the same matrix for every task"
        for loss in form.losses:
            if loss.tasks.is_sparse and _size(loss.tasks) > _MOST_DENSE:
                return f"the sparse inputs of {loss.typed} would become dense"
        spectrum = _total(shares).eigenvalues()
        if not spectrum[0] * _LARGEST_CONDITION > spectrum[-1]:
            return "the matrix between the features is singular, or nearly"
        return None

    def apply(self, form: NormalForm) -> tuple[NormalForm, White]:
        (block,) = form.weight_blocks
        shares: Any = tuple(_share(f, block.name) for f in form.functions)  # there: the form was asked
        A = _total(shares)
        factors = tuple(f.map.multiple_of(block.name) for f in form.functions)
        white = White(block, A.power(0.5), A.power(-0.5), shares, factors)
        identity = LinearMap((Entry(block.name),), block.shape)
        typed = " + ".join(f.typed for f in form.functions)
        known: dict[int, Any] = {}

        def of_new_inputs(loss: LossTerm) -> LossTerm:
            if id(loss.tasks) not in known:
                known[id(loss.tasks)] = _turned(loss.tasks, white.inverse_root)
            return replace(loss, tasks=known[id(loss.tasks)])

        return replace(
            form,
            losses=tuple(map(of_new_inputs, form.losses)),
            functions=(FunctionTerm(Ridge(), 1.0, identity, typed),),
        ), white

    def restricted(self, point: Point, white: White) -> Point:
        """A point of the form in the new coordinates."""
        duals = point.function_duals
        if duals is not None:
            parts = [c * np.asarray(Z) for c, Z in zip(white.factors, duals, strict=True) if Z is not None]
            duals = [white.inverse_root.apply(sum(parts))] if len(parts) == len(duals) else None
        return replace(point, blocks=_moved(point.blocks, white, white.root), function_duals=duals)

    def invert(self, point: Point, white: White) -> Point:
        """The losses' multipliers are the same; that of the ridge is shared out as A is, which leaves the sum of the conjugates."""
        duals = point.function_duals
        if duals is not None and duals[0] is not None:
            G = white.inverse_root.apply(np.asarray(duals[0]))  # A^{-1} times the multiplier of the whole
            shared = zip(white.shares, white.factors, strict=True)
            duals = [share.apply(G) / c for share, c in shared]
        elif duals is not None:
            duals = [None for _ in white.shares]
        return replace(point, blocks=_moved(point.blocks, white, white.inverse_root), function_duals=duals)


def _share(f: FunctionTerm, block: str) -> SpectralMatrix | None:
    """A where the function is 1/2 tr(W^T A W), coefficients included; None where it is not."""
    if f.is_constraint:
        return None
    c = f.coefficient * f.map.multiple_of(block) ** 2
    both = f.atom.two_sided_quadratic()
    if both is None:
        square = f.atom.entry_quadratic
        if square is None or np.ndim(square):
            return None
        return SpectralMatrix.multiple_of_identity(c * float(square), f.map.shape[0])
    rows, columns = both
    every = columns.eigenvalues()
    if not 0.0 < every[-1] - 1e-14 * every[-1] <= every[0]:  # not a multiple of the identity
        return None
    return rows.scaled(c * every[0])


def _total(shares) -> SpectralMatrix:
    one, *more = shares
    return one if not more else SpectralMatrix.of(sum(share.dense() for share in shares))


def _size(tasks) -> int:
    rows, features = (tasks.X if tasks.is_shared else tasks.stacked).shape
    return rows * features


def _turned(tasks, inverse_root: SpectralMatrix):
    """The same tasks, their inputs X A^{-1/2}."""
    dense = inverse_root.dense() if tasks.is_sparse else None

    def turned(X):
        new = inverse_root.apply(np.asarray(X, float).T).T if dense is None else X @ dense
        return np.ascontiguousarray(new)

    inputs = [tasks.X] if tasks.is_shared else tasks.inputs
    return with_inputs(tasks, [turned(X) for X in inputs], scaling=None, kernel_map=None)


def _moved(blocks: Blocks, white: White, by: SpectralMatrix) -> Blocks:
    name = white.block.name
    return blocks | {name: np.ascontiguousarray(by.apply(blocks[name]))}
