"""Reduction to a null space: weights in coordinates in which equations with zero hold by themselves, beside nonconvex functions.

Rows fixed to zero, sums of rows or columns, differences of tasks: A W = 0 or W B = 0. With N and M orthonormal bases of what they leave free,
W = N V M^T, and V is not bound any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import null_space

from mtldsl.data.derived import with_inputs
from mtldsl.normal_form.form import Block, Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.reductions.coordinates import SETTINGS
from mtldsl.normal_form.reductions.reduction import Point, Promise
from mtldsl.normal_form.term import LinearMap, MapEntry
from mtldsl.normal_form.terms.structure_term import StructureTerm

#: A product this small relative to its factors is zero but for rounding.
_ZERO_SHARE = 1e-12


@dataclass(frozen=True, eq=False)
class NullSpaceBases:
    """W = left V right^T; dense, sparse where they only leave rows or columns out, None for the identity."""

    block: Block
    left: Any
    right: Any

    @property
    def shape(self) -> tuple[int, int]:
        p, q = self.block.shape
        return (
            p if self.left is None else self.left.shape[1],
            q if self.right is None else self.right.shape[1],
        )

    def out(self, V: np.ndarray) -> np.ndarray:
        W = V if self.left is None else self.left @ V
        return np.ascontiguousarray(W if self.right is None else W @ self.right.T)

    def into(self, W: np.ndarray) -> np.ndarray:
        V = W if self.left is None else self.left.T @ W
        return np.ascontiguousarray(V if self.right is None else V @ self.right)

    def of(self, entry: MapEntry) -> MapEntry:
        """The same of W as a map of V."""
        if entry.block != self.block.name:
            return entry
        left, right = _product(entry.left, self.left), _product(_turned(self.right), entry.right)
        return MapEntry(entry.block, entry.coefficient, left, right)


@dataclass(frozen=True, eq=False)
class NullSpaceRecovery:
    """The way back. `places` are those of the functions that are left, among the functions given."""

    given: NormalForm
    easier: NormalForm
    bases: dict[str, NullSpaceBases]
    places: tuple[int, ...]

    def out(self, blocks: Blocks) -> Blocks:
        """The unknowns alone of a point of the easier form, as those of the form given."""
        return {name: self.bases[name].out(V) if name in self.bases else V for name, V in blocks.items()}


class NullSpace:
    """losses(X W) + g(W) with A W = 0, W B = 0 becomes losses(X N V M^T) + g(V), where g is a function of singular values.

    Other functions are those of N V M^T. Inputs take N upon themselves, so that a loss of all tasks' own columns stays one.
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        if form.is_convex:
            return "every function is convex"
        found = _equations(form)
        if not found:
            return "no equation with zero is about all columns, or all rows, of one matrix alike"
        for f in form.functions:
            if (
                isinstance(f, StructureTerm)
                and f.atom.separable != "spectrum"
                and found.keys() & set(f.map.blocks)
            ):
                return f"{f.typed} learns matrices of the size of the weights"
        for bases in _bases(form, found).values():
            if 0 in bases.shape:
                return f"the equations leave nothing of {bases.block.name}"
            if any(
                side is not None and not sparse.issparse(side) and side.size > SETTINGS.dense_entries
                for side in (bases.left, bases.right)
            ):
                return f"what the equations leave free of {bases.block.name} has a large basis"
        return None

    def apply(self, form: NormalForm) -> tuple[NormalForm, NullSpaceRecovery]:
        found = _equations(form)
        bases = _bases(form, found)
        solved = {k for ks in found.values() for k, _, _ in ks}
        places = tuple(k for k in range(len(form.functions)) if k not in solved)
        functions, constant = [], form.constant
        for k in places:
            f = form.functions[k]
            moved = _function(f, bases)
            functions.append(moved)
            if (
                moved.map.shape != f.map.shape
            ):  # a function of singular values may count those that are always zero
                at_zero = (one.atom.value(np.zeros(one.map.shape)) for one in (f, moved))
                constant += 0.0 if f.is_constraint else f.coefficient * (next(at_zero) - next(at_zero))
        easier = replace(
            form,
            blocks=tuple(
                Block(b.name, bases[b.name].shape, b.intercept_of) if b.name in bases else b
                for b in form.blocks
            ),
            losses=tuple(_loss(loss, bases) for loss in form.losses),
            functions=tuple(functions),
            constant=constant,
        )
        return easier, NullSpaceRecovery(form, easier, bases, places)

    def restricted(self, point: Point, recipe: NullSpaceRecovery) -> Point:
        """The nearest point in the coordinates; multipliers of the losses are the same."""
        blocks = dict(point.blocks)
        for name, bases in recipe.bases.items():
            blocks[name] = bases.into(blocks[name])
        return replace(point, blocks=blocks, function_duals=None)

    def invert(self, point: Point, recipe: NullSpaceRecovery) -> Point:
        """The multipliers of functions of V are moved with it; those of the equations balance what is left."""
        blocks = recipe.out(point.blocks)
        return replace(point, blocks=blocks, function_duals=_multipliers(point, blocks, recipe))


# ---------------------------------------------------------------------------------------------- the equations


def _equations(form: NormalForm) -> dict[str, list[tuple[int, Any, Any]]]:
    """{block: (the function's place, A or None, B or None)} of all that fix A W or W B to zero, A and B matrices."""
    found: dict[str, list[tuple[int, Any, Any]]] = {}
    weights = {block.name for block in form.weight_blocks}
    for k, f in enumerate(form.functions):
        if not f.is_constraint or f.atom.interval is None or len(f.map.blocks) != 1:
            continue
        (name,) = f.map.blocks
        offset = 0.0 if f.map.offset is None else f.map.offset
        if name not in weights or any(np.any(np.asarray(end) - offset != 0.0) for end in f.atom.interval):
            continue
        lefts, rights = ([getattr(e, side) for e in f.map.entries] for side in ("left", "right"))
        factors = [e.coefficient for e in f.map.entries]
        shape = form.shapes[name]
        if all(B is None for B in rights) and any(A is not None for A in lefts):
            found.setdefault(name, []).append((k, _sum(lefts, factors, shape[0]), None))
        elif all(A is None for A in lefts) and any(B is not None for B in rights):
            found.setdefault(name, []).append((k, None, _sum(rights, factors, shape[1])))
    return found


def _sum(matrices: list, factors: list[float], n: int):
    """The sum of these multiples; None is the identity."""
    parts = [
        c * (sparse.eye_array(n, format="csr") if M is None else M)
        for M, c in zip(matrices, factors, strict=True)
    ]
    return reduce(lambda a, b: a + b, parts)


def _bases(form: NormalForm, found: dict[str, list[tuple[int, Any, Any]]]) -> dict[str, NullSpaceBases]:
    known = form.remembered.setdefault(NullSpace, {})  # by all values of a path
    key = tuple((name, k) for name, ks in found.items() for k, _, _ in ks)
    if key not in known:
        known[key] = {
            block.name: NullSpaceBases(
                block,
                _null_space([A for _, A, _ in found[block.name] if A is not None], block.shape[0]),
                _null_space([B.T for _, _, B in found[block.name] if B is not None], block.shape[1]),
            )
            for block in form.blocks
            if block.name in found
        }
    return known[key]


def _null_space(matrices: list, n: int):
    """(n, r) an orthonormal basis of the x with A x = 0 for every A; None without any. Entries that are fixed are zeros of every column."""
    if not matrices:
        return None
    A = sparse.csr_array(sparse.vstack([sparse.csr_array(M) for M in matrices]))
    A.eliminate_zeros()
    single = np.diff(A.indptr) == 1
    fixed = np.zeros(n, bool)
    fixed[A.indices[A.indptr[:-1][single]]] = True
    free = np.flatnonzero(~fixed)
    chosen = sparse.csr_array((np.ones(free.size), (free, np.arange(free.size))), shape=(n, free.size))
    rest = A[:, free]
    rest.eliminate_zeros()
    rest = rest[np.diff(rest.indptr) > 0]
    if not rest.shape[0] or not free.size:
        return chosen
    dense = rest.toarray()
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    kernel = null_space(dense, rcond=_ZERO_SHARE)
    basis = np.zeros((n, kernel.shape[1]))
    basis[free] = kernel
    return basis


# ---------------------------------------------------------------------------------------------- the terms


def _turned(matrix):
    if matrix is None:
        return None
    return sparse.csr_array(matrix.T) if sparse.issparse(matrix) else matrix.T


def _product(A, B):
    """A B; None is the identity. A sparse product that is the identity is None too."""
    if A is None or B is None:
        return B if A is None else A
    made = A @ B
    return sparse.csr_array(made) if sparse.issparse(made) else np.ascontiguousarray(made)


def _is_isometry(matrix) -> bool:
    """Tell whether its columns are orthonormal."""
    if matrix is None:
        return True
    gram = matrix.T @ matrix
    gram = gram.toarray() if sparse.issparse(gram) else gram
    return bool(np.abs(gram - np.eye(len(gram))).max(initial=0.0) <= _ZERO_SHARE)


def _function(f: FunctionTerm, bases: dict[str, NullSpaceBases]) -> FunctionTerm:
    """The function of V: of singular values, those of V itself where the map keeps lengths."""
    if not bases.keys() & set(f.map.blocks):
        return f
    moved = tuple(bases[e.block].of(e) if e.block in bases else e for e in f.map.entries)
    if len(moved) == 1 and f.map.offset is None and f.is_spectral:
        (entry,) = moved
        if _is_isometry(entry.left) and _is_isometry(_turned(entry.right)):
            own = MapEntry(entry.block, entry.coefficient)
            return replace(f, map=LinearMap((own,), bases[entry.block].shape))
    return replace(f, map=replace(f.map, entries=moved))


def _loss(loss: LossTerm, bases: dict[str, NullSpaceBases]) -> LossTerm:
    """The loss of V; its inputs are X N where it is a loss of W itself, or of a multiple."""
    if not bases.keys() & set(loss.map.blocks):
        return loss
    name, tasks = loss.map.blocks[0], loss.tasks
    own = bases.get(name)
    plain = tasks.in_memory and loss.map.offset is None and loss.map.multiple_of(name)
    if own is None or own.left is None or not plain or not _stays_small(tasks, own):
        moved = tuple(bases[e.block].of(e) if e.block in bases else e for e in loss.map.entries)
        return replace(loss, map=replace(loss.map, entries=moved))
    inputs = [_product(X, own.left) for X in ([tasks.X] if tasks.is_shared else tasks.inputs)]
    names = tuple(map(str, range(own.shape[0])))
    turned = with_inputs(tasks, inputs, feature_names=names, scaling=None, kernel_map=None)
    entry = MapEntry(name, loss.map.entries[0].coefficient, None, _turned(own.right))
    return replace(loss, tasks=turned, map=LinearMap((entry,), (own.shape[0], loss.map.shape[1])))


def _stays_small(tasks, own: NullSpaceBases) -> bool:
    """Tell whether the inputs are not made dense, or are few."""
    few = tasks.n_samples * own.shape[0] <= SETTINGS.dense_entries
    return sparse.issparse(own.left) or not tasks.is_sparse or few


# ---------------------------------------------------------------------------------------------- multipliers


def _multipliers(point: Any, blocks: Blocks, recipe: NullSpaceRecovery) -> list | None:
    """Those of the functions given: of one that lacks its own, what is left of the balance in the coordinates; of an equation, what is
    left of it outside."""
    given, easier = recipe.given, recipe.easier
    known = _completed(easier, point)
    if known is None:
        return None
    duals: list = [None] * len(given.functions)
    for k, v in zip(recipe.places, known, strict=True):
        f = given.functions[k]
        if v is None:
            duals[k] = f.coefficient * f.atom.gradient(f.map.forward(blocks))
        elif np.shape(v) == f.map.shape:
            duals[k] = v
        else:
            duals[k] = _image(f, recipe.bases, v)
    balance = _pull(given, blocks, point.loss_duals, duals)
    for name, equations in _equations(given).items():
        for side in ("left", "right"):
            _balance(balance[name], [(k, A if side == "left" else B) for k, A, B in equations], side, duals)
    return duals


def _balance(rest: np.ndarray, matrices: list, side: str, duals: list) -> None:
    """Multipliers of all equations of one side, by least squares; what they leave of `rest` stays in it."""
    own = [(k, _dense(M) if side == "left" else _dense(M).T) for k, M in matrices if M is not None]
    if not own:
        return
    whole = np.vstack([M for _, M in own])
    facing = rest if side == "left" else rest.T
    found = np.linalg.lstsq(whole.T, -facing, rcond=None)[0]
    facing += whole.T @ found
    ends = np.cumsum([len(M) for _, M in own])
    for (k, _), part in zip(own, np.split(found, ends[:-1]), strict=True):
        duals[k] = part if side == "left" else part.T


def _image(f: FunctionTerm, bases: dict[str, NullSpaceBases], v: np.ndarray) -> np.ndarray:
    """A multiplier of the function of V as one of the same function of the image of W."""
    (entry,) = f.map.entries
    own = replace(bases[entry.block].of(entry), coefficient=1.0)
    return own.forward(v)


def _dense(matrix) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def _completed(form: NormalForm, point: Any) -> list | None:
    """The multipliers of the functions; of one that lacks its own, what the others leave of the balance. None where several do."""
    given = point.function_duals
    duals: list = [None] * len(form.functions) if given is None else list(given)
    lacking = [k for k, f in enumerate(form.functions) if duals[k] is None and not _has_gradient(f)]
    if not lacking:
        return duals
    (k, *more) = lacking
    f = form.functions[k]
    factor = f.map.multiple_of(f.map.blocks[0])
    if more or not factor:
        return None
    duals[k] = -_pull(form, point.blocks, point.loss_duals, duals)[f.map.blocks[0]] / factor
    return duals


def _has_gradient(f: FunctionTerm) -> bool:
    return not f.is_constraint and f.atom.is_smooth


def _pull(form: NormalForm, blocks: Blocks, loss_duals, duals: list) -> Blocks:
    """The sum of all gradients and known multipliers, on every block."""
    total = form.zeros()
    for t, loss in enumerate(form.losses):
        given = None if loss_duals is None or loss.atom.smooth else loss_duals[t]
        u = loss.gradient(loss.predictions(blocks)) if given is None else np.asarray(loss.dual_project(given))
        loss.add_adjoint(u, total)
    for f, v in zip(form.functions, duals, strict=True):
        if _has_gradient(f):
            v = f.coefficient * f.atom.gradient(f.map.forward(blocks))
        if v is not None:
            f.map.add_adjoint(np.asarray(v), total)
    return total
