"""Splitting of a normal form for ADMM: copied terms, and the matrices of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.term import LinearMap, MapEntry
from mtldsl.solvers.design.sufficient_statistics import gram_and_border, quadratic_weights

# --------------------------------------------------------------------------------------------------------------
# ADMM's splitting: which terms stay in the quadratic x-update, and which get a copy of their argument.
#
#     minimize over x, w   q(x) + sum_j h_j(w_j)   subject to   w_j = K_j x + k_j
#
# q holds the quadratic losses and the quadratic penalties that couple no tasks; every other loss t brings h_j = f_t with
# K_j x + k_j its predictions, every other function k brings h_j = c_k g_k with K_j x + k_j the image of its map. All copies lie
# one after another in one flat vector, so that the iteration is vector arithmetic.


def linear_predictions(loss: LossTerm, x: Blocks) -> np.ndarray:
    """The predictions without the map's constant part, flat (N,)."""
    z = loss.tasks.forward(loss.map.linear(x))
    for name in loss.intercepts:
        z = z + np.repeat(x[name][0], loss.tasks.counts)
    return z


@dataclass(frozen=True, eq=False)
class SplitVariable:
    """One copied term and its place in the flat vector; `metric` weighs its part of the penalty, entry by entry."""

    term: Any  # a LossTerm where `is_loss`, else a FunctionTerm: a flag tells, no class
    index: int  # its place in form.losses or form.functions
    shape: tuple[int, ...]
    rows: slice
    profile: np.ndarray | None = None  # relative penalties of the entries (mean 1), None: all 1

    @property
    def is_loss(self) -> bool:
        return isinstance(self.term, LossTerm)


@dataclass(frozen=True, eq=False)
class QuadraticHessian:
    """The Hessian of a quadratic function of V (p, q): V -> weights * V, or V -> V @ coupling."""

    weights: np.ndarray | None = None  # (q,) one a column, or (p, q)
    coupling: np.ndarray | None = None  # (q, q), not diagonal

    def product(self, V: np.ndarray) -> np.ndarray:
        return V @ self.coupling if self.weights is None else self.weights * V

    @staticmethod
    def of(f: FunctionTerm) -> QuadraticHessian | None:
        """None where the function is not 1/2 <V, H V>; the coefficient is included."""
        if f.is_constraint or not np.isfinite(f.atom.curvature):
            return None
        squares = f.atom.entry_quadratic
        if squares is not None and (
            np.ndim(squares) < 2 or np.shape(squares)[0] == 1
        ):  # no matrix of the tasks' size is made
            return QuadraticHessian(f.coefficient * np.broadcast_to(np.ravel(squares), f.map.shape[1:]))
        L = f.atom.task_quadratic(f.map.shape[1])
        if L is not None:
            L, diagonal = f.coefficient * np.asarray(L), f.coefficient * np.diag(L)
            return (
                QuadraticHessian(diagonal)
                if np.array_equal(L, np.diag(diagonal))
                else QuadraticHessian(coupling=L)
            )
        if f.atom.separable == "entries":
            ones = np.ones(f.map.shape)
            weights = f.atom.gradient(ones)
            if np.array_equal(
                f.atom.gradient(-(2.0**30) * ones), -(2.0**30) * weights
            ):  # linear, so quadratic
                return QuadraticHessian(f.coefficient * weights)
        return None


class SplitForm:
    """A normal form as q(x) + sum_j h_j(w_j), w = K x + k. With `coupled`, q takes quadratics that couple tasks too."""

    def __init__(self, form: NormalForm, coupled: bool = False):
        self.form = form
        self.exact_losses = [t for t, loss in enumerate(form.losses) if loss.atom.quadratic is not None]
        found = {k: QuadraticHessian.of(f) for k, f in enumerate(form.functions)}
        self.exact_functions = {
            k: c for k, c in found.items() if c is not None and (coupled or c.coupling is None)
        }
        self.copies: list[SplitVariable] = []
        self.size = 0
        for t, loss in enumerate(form.losses):
            if t not in self.exact_losses:
                self._add(loss, t, (loss.tasks.n_samples,), _loss_profile(loss))
        for k, f in enumerate(form.functions):
            if k not in self.exact_functions:
                self._add(f, k, f.map.shape, None)

    def _add(self, term, index, shape, profile) -> None:
        rows = slice(self.size, self.size + int(np.prod(shape)))
        self.copies.append(SplitVariable(term, index, shape, rows, profile))
        self.size = rows.stop

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        """One penalty a copy -> one penalty an entry, flat."""
        flat = np.empty(self.size)
        for copy, penalty in zip(self.copies, penalties, strict=True):
            flat[copy.rows] = penalty if copy.profile is None else penalty * copy.profile
        return flat

    def image(self, x: Blocks) -> np.ndarray:
        """K x + k."""
        flat = np.empty(self.size)
        for copy in self.copies:
            image = copy.term.predictions(x) if copy.is_loss else copy.term.map.forward(x)
            flat[copy.rows] = image.ravel()
        return flat

    def linear_image(self, x: Blocks) -> np.ndarray:
        """K x."""
        flat = np.empty(self.size)
        for copy in self.copies:
            image = linear_predictions(copy.term, x) if copy.is_loss else copy.term.map.linear(x)
            flat[copy.rows] = image.ravel()
        return flat

    def constant(self) -> np.ndarray | float:
        """k (0.0 where every map is linear)."""
        flat = self.image(self.form.zeros())
        return flat if flat.any() else 0.0

    def add_adjoint(self, flat: np.ndarray, into: Blocks) -> None:
        """Add K^T flat."""
        for copy in self.copies:
            part = flat[copy.rows]
            if copy.is_loss:
                copy.term.add_adjoint(part, into)
            else:
                copy.term.map.add_adjoint(part.reshape(copy.shape), into)

    def prox(self, s: np.ndarray, metric: np.ndarray) -> np.ndarray:
        """Return argmin over w of sum_j h_j(w_j) + 1/2 ||w - s||^2 in the metric."""
        w = np.empty(self.size)
        for copy in self.copies:
            part, first = s[copy.rows], metric[copy.rows.start]
            if copy.is_loss:
                step = 1.0 / first if copy.profile is None else 1.0 / metric[copy.rows]
                w[copy.rows] = copy.term.prox(part, step)
            else:
                w[copy.rows] = copy.term.prox(part.reshape(copy.shape), 1.0 / first).ravel()
        return w

    # ------------------------------------------------------------------------------------- the quadratic part

    def quadratic_product(self, x: Blocks) -> Blocks:
        """The Hessian of q at x."""
        product = self.form.zeros()
        for t in self.exact_losses:
            loss = self.form.losses[t]
            loss.add_adjoint(quadratic_weights(loss) * linear_predictions(loss, x), product)
        for k, curvature in self.exact_functions.items():
            f = self.form.functions[k]
            f.map.add_adjoint(curvature.product(f.map.linear(x)), product)
        return product

    def quadratic_target(self) -> Blocks:
        """Minus the gradient of q at zero."""
        target = self.form.zeros()
        for t in self.exact_losses:
            loss = self.form.losses[t]
            constant = loss.offset_predictions()
            y = loss.tasks.targets if constant is None else loss.tasks.targets - constant
            loss.add_adjoint(quadratic_weights(loss) * y, target)
        for k, curvature in self.exact_functions.items():
            f = self.form.functions[k]
            if f.map.offset is not None:
                f.map.add_adjoint(-curvature.product(f.map.offset), target)
        return target


def _loss_profile(loss: LossTerm) -> np.ndarray | None:
    """Penalties in proportion to the samples' weights: then every sample's copy moves at the same pace."""
    if not loss.atom.separable or loss.uniform_scale is not None:
        return None
    return None if loss.scale is None else loss.scale / loss.scale.mean()


# --------------------------------------------------------------------------------------------------------------
# Where the blocks of a form lie in one array: a flat vector of everything, or one column of unknowns a task.


class BlockLayout:
    """All blocks, one after another.

    slices : of every block, in the flat vector of `size` entries, in the order of the form
    rows   : of every block, in the stacked column of one task, `depth` entries, intercepts last
    """

    def __init__(self, form: NormalForm):
        self.shapes = form.shapes
        self.slices = places({name: rows * columns for name, (rows, columns) in self.shapes.items()})
        ordered = sorted(form.blocks, key=lambda block: block.intercept_of is not None)
        self.rows = places({block.name: block.shape[0] for block in ordered})
        self.size = sum(rows * columns for rows, columns in self.shapes.values())
        self.depth = sum(rows for rows, _ in self.shapes.values())
        self.n_tasks = ordered[0].shape[1]

    @property
    def has_columns(self) -> bool:
        """Tell whether all blocks have a column a task, so that they can be stacked."""
        return all(columns == self.n_tasks for _, columns in self.shapes.values())

    def blocks(self, flat: np.ndarray) -> Blocks:
        """Views of a flat vector."""
        return {name: flat[at].reshape(self.shapes[name]) for name, at in self.slices.items()}

    def flat(self, blocks: Blocks) -> np.ndarray:
        return np.concatenate([np.ravel(blocks[name]) for name in self.shapes])

    def stack(self, blocks: Blocks) -> np.ndarray:
        """(depth, m)."""
        stacked = np.empty((self.depth, self.n_tasks))
        for name, rows in self.rows.items():
            stacked[rows] = blocks[name]
        return stacked

    def unstack(self, stacked: np.ndarray) -> Blocks:
        """Views of stacked columns."""
        return {name: stacked[rows] for name, rows in self.rows.items()}


def places(lengths: dict[str, int]) -> dict[str, slice]:
    """One after another."""
    found, start = {}, 0
    for name, length in lengths.items():
        found[name] = slice(start, start + length)
        start += length
    return found


# --------------------------------------------------------------------------------------------------------------
# The matrices of ADMM's x-update, one task at a time: q's Hessian and K^T M K as stacks of small symmetric matrices.
#
# Where no map mixes tasks, the unknowns of task i are one stacked vector: its column of every block, intercepts last. The Hessian is
# then block diagonal over tasks: an array (m, D, D), or (1, D, D) where all tasks share it (one X, uniform weights).


def couples_tasks(split: SplitForm) -> bool:
    """Tell whether q or a loss mixes the columns of different tasks."""
    form = split.form
    if not BlockLayout(form).has_columns:
        return True
    for t, loss in enumerate(form.losses):
        rights = _rights(loss.map, form)
        if loss.intercepts and not all(map(_is_identity, rights)):
            return True
        quadratic = t in split.exact_losses
        if _mixes(rights, uniform=quadratic and loss.is_shared_complete and loss.uniform_scale is not None):
            return True
    for k, curvature in split.exact_functions.items():
        if curvature.coupling is not None:
            return True
        weights: Any = curvature.weights  # there, where there is no coupling
        uniform = weights.ndim == 1 and bool(np.all(weights == weights[0]))
        if _mixes(_rights(form.functions[k].map, form), uniform):
            return True
    return False


def mixes_tasks(copy: SplitVariable, form: NormalForm) -> bool:
    """Tell whether an image column of the copy's map reads several tasks."""
    return _mixes(_rights(copy.term.map, form), uniform=False)


def diagonal_of(map: LinearMap) -> float | None:
    """The number that K^T K has on the entries that the map reads, where it is a multiple of a choice of rows and columns."""
    if len(map.entries) != 1:
        return None
    entry = map.entries[0]
    right: Any = entry.right
    for factor in (entry.left, None if right is None else right.T):
        if factor is not None:
            picks: Any = as_array(factor)
            if (
                np.any((picks != 0) & (picks != 1))
                or np.any(picks.sum(axis=1) != 1)
                or np.any(picks.sum(axis=0) > 1)
            ):
                return None
    return entry.coefficient**2


def as_array(factor: Any) -> np.ndarray:
    return factor.toarray() if sparse.issparse(factor) else np.asarray(factor)


def quadratic_matrices(split: SplitForm, layout: BlockLayout) -> np.ndarray:
    """The Hessian of q."""
    total = np.zeros((1, layout.depth, layout.depth))
    for t in split.exact_losses:
        loss = split.form.losses[t]
        total = total + _loss_matrices(loss, quadratic_weights(loss), layout, split.form)
    for k, curvature in split.exact_functions.items():
        map = split.form.functions[k].map
        middle, columns, coupling = None, curvature.weights, curvature.coupling
        if columns is None:  # couples tasks: what each task has of it by itself
            assert coupling is not None  # one of the two is there
            columns = np.diag(coupling)
        elif columns.ndim == 2:
            middle, columns = columns.T[:, :, None] * np.eye(map.shape[0]), np.ones(map.shape[1])
        total = total + _map_matrices(map, middle, columns, layout, split.form)
    return total


def penalty_matrices(copy: SplitVariable, split: SplitForm, layout: BlockLayout) -> np.ndarray:
    """Return K_j^T P K_j of one copy, P its profile of penalties."""
    if copy.is_loss:
        return _loss_matrices(copy.term, 1.0 if copy.profile is None else copy.profile, layout, split.form)
    return _map_matrices(copy.term.map, None, np.ones(copy.shape[1]), layout, split.form)


def _loss_matrices(loss: LossTerm, weights, layout, form) -> np.ndarray:
    """A^T diag(weights) A; weights a number or flat (N,)."""
    tasks = loss.tasks
    gram, cross, sums = gram_and_border(loss, weights)
    columns = np.ones(loss.map.shape[1])
    total = _map_matrices(loss.map, gram, columns, layout, form)
    if cross is None or sums is None or tasks.n_tasks != layout.n_tasks:
        return total
    if gram.ndim == 2:
        cross, sums = cross[:, :1], sums[:1]
    into = {name: np.zeros((rows.stop - rows.start, cross.shape[1])) for name, rows in layout.rows.items()}
    for entry in loss.map.entries:  # an intercept and a right factor do not meet here: see `couples_tasks`
        into[entry.block] += MapEntry(entry.block, entry.coefficient, entry.left).adjoint(cross)
    border = np.zeros((sums.size, layout.depth, layout.depth))
    for name in loss.intercepts:
        at = layout.rows[name].start
        for block, part in into.items():
            border[:, layout.rows[block], at] += part.T
            border[:, at, layout.rows[block]] += part.T
        for other in loss.intercepts:
            border[:, at, layout.rows[other].start] += sums
    return total + border


def _map_matrices(map: LinearMap, middle, columns, layout: BlockLayout, form: NormalForm) -> np.ndarray:
    """The diagonal blocks of sum over image columns j of columns[j] * C_j^T M_j C_j, C_j the map onto image column j.

    middle: M as None (identity), (p, p), or (q, p, p). Where the map mixes tasks, entries between tasks are left out.
    """
    total = np.zeros((1, layout.depth, layout.depth))
    rights = _rights(map, form)
    for first, right_1 in zip(map.entries, rights, strict=True):
        for second, right_2 in zip(map.entries, rights, strict=True):
            matrix = _sandwich(first, middle, second, map.shape[0])
            weights = sparse.csr_array(
                right_1.multiply(right_2).multiply(columns)
            )  # (m, q): how much of image column j falls to task i
            if matrix.ndim == 3:
                one_to_one = _is_diagonal(weights)
                part = (
                    weights.diagonal()[:, None, None] * matrix
                    if one_to_one
                    else np.tensordot(weights.toarray(), matrix, 1)
                )
            else:
                per_task = np.ravel(weights.sum(axis=1))
                same = np.all(per_task == per_task[0])
                part = (per_task[:1] if same else per_task)[:, None, None] * matrix
            if len(part) > len(total):
                total = np.repeat(total, len(part), axis=0)
            total[:, layout.rows[first.block], layout.rows[second.block]] += part
    return total


def _sandwich(first: MapEntry, middle, second: MapEntry, p: int) -> np.ndarray:
    """coefficients * left_1^T M left_2, (., .) or (q, ., .)."""
    matrix = np.eye(p) if middle is None else middle
    if second.left is not None:
        matrix = matrix @ as_array(second.left)
    if first.left is not None:
        matrix = as_array(first.left).T @ matrix
    return first.coefficient * second.coefficient * matrix


def _rights(map: LinearMap, form: NormalForm) -> list[sparse.csr_array]:
    """The right factor of every entry (m, q): most are identities, which have a million zeros where there are a thousand tasks."""
    rights = []
    for entry in map.entries:
        right = sparse.eye_array(form.shapes[entry.block][1]) if entry.right is None else entry.right
        rights.append(sparse.csr_array(right))
    return rights


def _mixes(rights: list[sparse.csr_array], uniform: bool) -> bool:
    """Tell whether sum_j weight_j R_1[:, j] R_2[:, j]^T has entries between tasks; unless uniform, for any weights."""
    rights = rights if uniform else [abs(right) for right in rights]
    return not all(_is_diagonal(first @ second.T) for first in rights for second in rights)


def _is_diagonal(matrix: Any) -> bool:
    entries = matrix.tocoo()
    return matrix.shape[0] == matrix.shape[1] and bool(
        ((entries.row == entries.col) | (entries.data == 0)).all()
    )


def _is_identity(matrix: sparse.csr_array) -> bool:
    return _is_diagonal(matrix) and bool((matrix.diagonal() == 1.0).all())
