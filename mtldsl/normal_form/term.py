"""Blocks, linear maps and base classes of terms, and the registry of term types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.loss import Loss, SeparableLoss
from mtldsl.atoms.matrix_function import MatrixFunction, Set
from mtldsl.language.scalars import picked_rows
from mtldsl.utils.caching import cached_property
from mtldsl.utils.parallel import slabs

if TYPE_CHECKING:
    from mtldsl.data.tasks import Tasks

# --------------------------------------------------------------------------------------------------------------
# Blocks of unknowns, and linear maps of them: what the terms of a normal form are functions of. Other rooms take these names from `normal_form`.

Blocks = dict[str, np.ndarray]  # block name -> array


@dataclass(frozen=True)
class Block:
    """One unknown matrix. An intercept is a block of shape (1, m) of its own, with `intercept_of` naming its weights."""

    name: str
    shape: tuple[int, int]
    intercept_of: str | None = None


def picks(factor) -> bool:
    """Tell whether every row of a matrix factor is one 1 among zeros, and no column holds two; None is the identity."""
    if factor is None:
        return True
    picked = picked_rows(factor)
    return picked is not None and np.unique(picked).size == picked.size


def _squares(matrix) -> float:
    """The sum of the squares of a matrix's entries, dense or sparse."""
    entries = matrix.data if sparse.issparse(matrix) else np.asarray(matrix)
    return float(np.vdot(entries, entries))


@dataclass(frozen=True, eq=False)
class MapEntry:
    """coefficient * left @ x[block] @ right; `left` and `right` are dense arrays, scipy CSR matrices, or None for the identity."""

    block: str
    coefficient: float = 1.0
    left: Any = None
    right: Any = None

    def forward(self, W: np.ndarray) -> np.ndarray:
        if self.left is not None:
            W = self.left @ W
        if self.right is not None:
            W = W @ self.right
        return W if self.coefficient == 1.0 else self.coefficient * W

    @cached_property
    def gain(self) -> float:
        """Return how much longer than W its image is, the root mean square over all directions of W."""
        sides = [(self.left, 1), (self.right, 0)]
        lengths = [np.sqrt(_squares(side) / side.shape[axis]) for side, axis in sides if side is not None]
        return abs(self.coefficient) * float(np.prod(lengths))

    def adjoint(self, Z: np.ndarray) -> np.ndarray:
        if self.left is not None:
            Z = self.left.T @ Z
        if self.right is not None:
            Z = Z @ self.right.T
        return Z if self.coefficient == 1.0 else self.coefficient * Z


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x -> sum of entries + offset, a matrix of `shape`."""

    entries: tuple[MapEntry, ...]
    shape: tuple[int, int]
    offset: np.ndarray | None = None

    @cached_property
    def identity_of(self) -> str | None:
        """The block's name where the map is just that block, else None."""
        block = self.entries[0].block if self.entries else None
        return block if self.offset is None and block and self.multiple_of(block) == 1.0 else None

    def multiple_of(self, block: str) -> float:
        """c where the map is c * block + constant, else 0."""
        if len(self.entries) != 1:
            return 0.0
        (entry,) = self.entries
        plain = entry.block == block and entry.left is None and entry.right is None
        return entry.coefficient if plain else 0.0

    @property
    def blocks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.block for entry in self.entries))

    def with_row_below(self, names: tuple[str, ...], factor: float = 1.0, right: Any = None) -> LinearMap:
        """The map with one more row, the last: the sum of these blocks (1, .), times the factor and `right`."""
        d, m = self.shape
        above = sparse.eye_array(d + 1, d, format="csr")
        last = sparse.csr_array(([factor], ([d], [0])), shape=(d + 1, 1))
        entries = [
            replace(
                entry,
                left=above if entry.left is None else sparse.csr_array(above @ sparse.csr_array(entry.left)),
            )
            for entry in self.entries
        ]
        offset = None if self.offset is None else np.vstack([self.offset, np.zeros((1, m))])
        return LinearMap(
            (*entries, *(MapEntry(name, 1.0, last, right) for name in names)), (d + 1, m), offset
        )

    def usual_length(self, x: Blocks) -> float:
        """The length that the image of weights of this size has where it is not zero by rule: the root mean square over all directions."""
        squares = sum((entry.gain * np.linalg.norm(x[entry.block])) ** 2 for entry in self.entries)
        return float(np.sqrt(squares))

    def linear(self, x: Blocks) -> np.ndarray:
        """The map without its offset."""
        if self.identity_of is not None:
            return x[self.identity_of]
        total = sum(entry.forward(x[entry.block]) for entry in self.entries)
        return np.broadcast_to(total, self.shape) if np.shape(total) != self.shape else total  # pyrefly: ignore[bad-return]  # a sum's 0 is broadcast

    def forward(self, x: Blocks) -> np.ndarray:
        image = self.linear(x)
        return image if self.offset is None else image + self.offset

    def add_adjoint(self, Z: np.ndarray, into: Blocks) -> None:
        """into[block] += adjoint of the map at Z, for every block of the map."""
        for entry in self.entries:
            into[entry.block] += entry.adjoint(Z)


# --------------------------------------------------------------------------------------------------------------
# A regularizer or a constraint of the normal form: an atom on a linear map of the blocks.


@dataclass(frozen=True, eq=False)
class FunctionTerm:
    """coefficient * atom(map(x)): a regularizer, or (coefficient 1) the indicator of a constraint."""

    atom: MatrixFunction
    coefficient: float
    map: LinearMap
    typed: str

    @cached_property
    def is_constraint(self) -> bool:
        return isinstance(self.atom, Set)

    @property
    def is_spectral(self) -> bool:
        """Tell whether it is a function of the singular values of its argument, whatever the number of rows."""
        square = self.atom.entry_quadratic
        return self.atom.separable == "spectrum" or (square is not None and np.ndim(square) == 0)

    @property
    def is_of_gram(self) -> bool:
        """Tell whether it is a function of V^T V, V its argument: the same for rows in any orthonormal basis."""
        return self.is_spectral or self.atom.task_quadratic(self.map.shape[1]) is not None

    def value(self, x: Blocks) -> float:
        return 0.0 if self.is_constraint else self.coefficient * self.atom.value(self.map.forward(x))

    def violation(self, x: Blocks) -> float:
        return self.atom.violation(self.map.forward(x)) if isinstance(self.atom, Set) else 0.0

    def prox(self, V, step) -> np.ndarray:
        """The prox of coefficient * atom, on the image of the map."""
        return self.atom.prox(V, step * self.coefficient)

    def conjugate(self, V) -> float:
        if isinstance(self.atom, Set):
            return self.atom.support(V)
        return self.coefficient * self.atom.conjugate(V / self.coefficient)

    @cached_property
    def conjugate_at_zero(self) -> float:
        return 0.0 if self.atom.norm else self.conjugate(np.zeros(self.map.shape))

    def dual_value(self, V) -> float:
        """<V, offset> - conjugate(V), V in the conjugate's domain: its part of a dual bound."""
        inner = 0.0 if self.map.offset is None else float(np.vdot(V, self.map.offset))
        # of a norm 0 there: of a matrix's spectrum that costs singular values
        return inner - (0.0 if self.atom.norm else self.conjugate(V))

    def dual_gauge(self, V) -> float:
        return self.atom.dual_gauge(V / self.coefficient)


# --------------------------------------------------------------------------------------------------------------
# A loss of the normal form: an atom on the predictions of some tasks.

#: Rounding may carry a prediction across a kink this near to it, in sums of the sizes that it is the sum of.
_KINK_ROUNDING_SHARE = 64 * float(np.finfo(float).eps)


#: Entries of inputs whose absolute values are taken at once.
SLAB_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False)
class LossTerm:
    """sum over tasks i of coefficients[i] * atom(X_i map(x)_i + intercept_i).

    Predictions and dual vectors are flat (N,), task after task (see `Tasks.offsets`). A separable loss is evaluated on all
    tasks at once, its coefficients folded into `scale`, the weight of every sample.
    """

    atom: Loss
    coefficients: np.ndarray  # (m,)
    tasks: Tasks
    map: LinearMap  # onto (d, m)
    intercepts: tuple[str, ...]
    typed: str

    #: It is a sum over tasks, each of which may be left out.
    sums_tasks: ClassVar[bool] = True
    #: `prox` takes one step a sample, equal within a task, though the loss is not a sum over samples.
    takes_steps_by_task: ClassVar[bool] = False
    #: One product with the data serves all points of a line.
    has_cheap_lines: ClassVar[bool] = True
    #: Every task's loss is one maximum with an exact proximal step in the predictions and its derivative.
    has_score_steps: ClassVar[bool] = False

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        """Tell whether a loss of these tasks becomes a term of this type."""
        return True

    @property
    def shifts_apart(self) -> bool:
        """Tell whether multipliers may be moved sample by sample, each within an interval of its own; else `balanced` moves them."""
        return self.atom.separable

    @cached_property
    def is_piecewise_linear(self) -> bool:
        """Tell whether the loss of a sample is two lines, with an interval of zeros between them."""
        if not self.atom.separable:
            return False
        return cast(SeparableLoss, self.atom).zero_interval(self.tasks.targets) is not None

    @cached_property
    def scale(self) -> np.ndarray | None:
        """Weight of every sample for a separable loss: coefficient times sample weight; None where all are 1."""
        weights = self.tasks.sample_weights
        if weights is None and np.all(self.coefficients == 1.0):
            return None
        per_sample = np.repeat(self.coefficients, self.tasks.counts)
        return per_sample if weights is None else per_sample * weights

    @cached_property
    def uniform_scale(self) -> float | None:
        """The one number that `scale` repeats, else None."""
        if self.scale is None:
            return 1.0
        return float(self.scale[0]) if np.all(self.scale == self.scale[0]) else None

    @property
    def is_shared_complete(self) -> bool:
        """One X, every label present: predictions are one matrix product."""
        return self.tasks.is_shared and self.tasks.mask is None

    @property
    def column_lengths(self) -> np.ndarray:
        """(d, m) the Euclidean length of every feature's column in every task's inputs."""
        return self.tasks.column_lengths

    def magnitude(self, u, x: Blocks) -> float:
        """<|u|, |y|> + sum_i ||u_i|| (sum_j ||x_ij|| |w_ij|) + <|u_i|, |b_i|>: the absolute values that <u, y> and <u, z> are sums of.

        ||u_i|| ||x_ij|| stands for the sum of |u_ik| |x_ikj| over the rows k.
        """
        u, y = np.asarray(u), self.tasks.targets
        if self.is_shared_complete:
            table = u.reshape(self.tasks.n_tasks, -1)
            lengths = np.sqrt(np.einsum("ij,ij->i", table, table))
            total = float(self.column_lengths[:, 0] @ (np.abs(self.map.forward(x)) @ lengths))
        else:
            lengths = np.sqrt(self.tasks.sums_of(np.square, u))
            total = float((self.column_lengths * lengths * np.abs(self.map.forward(x))).sum())
        for part in slabs(u.size):
            total += float(np.abs(u[part]) @ self.atom.label_sizes(y[part]))
        for name in self.intercepts:
            total += float(self.absolute_sums(u) @ np.abs(x[name][0]))
        return total + self._summands(x)

    def slopes_at_kinks(self, x: Blocks) -> np.ndarray | None:
        """(N,) the steepest slope of every sample whose prediction a kink of the loss is within rounding of, else 0; None of other losses.

        There a value moves with the prediction by that slope, whatever the multiplier is.
        """
        atom = self.atom
        if not (isinstance(atom, SeparableLoss) and self.shifts_apart) or atom.smooth:
            return None
        z, y = self.predictions(x), self.tasks.targets
        summed = (self.column_lengths * np.abs(self.map.forward(x))).sum(axis=0)
        for name in self.intercepts:
            summed = summed + np.abs(x[name][0])
        near = _KINK_ROUNDING_SHARE * (np.repeat(summed, self.tasks.counts) + np.abs(y))
        below, above = atom.slope(z - near, y), atom.slope(z + near, y)
        steepest = np.where(below != above, np.maximum(np.abs(below), np.abs(above)), 0.0)
        return steepest if self.scale is None else self.scale * steepest

    def _summands(self, x: Blocks) -> float:
        """Return what `SeparableLoss.summands` adds up to."""
        if not isinstance(self.atom, SeparableLoss) or type(self.atom).summands is SeparableLoss.summands:
            return 0.0
        sizes = self.atom.summands(self.predictions(x), self.tasks.targets)
        assert sizes is not None
        return float(sizes.sum() if self.scale is None else self.scale @ sizes)

    def sums(self, u) -> np.ndarray:
        """(m,) the sums of multipliers over every task's samples."""
        return self.tasks.sums(np.asarray(u))

    def absolute_sums(self, u) -> np.ndarray:
        """(m,) the same of their absolute values."""
        return self.tasks.sums_of(np.abs, np.asarray(u))

    def absolute_adjoint(self, u) -> np.ndarray:
        """Return |X_i|^T |u_i| of every task, (d, m)."""
        tasks, sizes = self.tasks, np.abs(np.asarray(u))
        if tasks.is_shared:
            table = np.zeros((tasks.X.shape[0], tasks.n_tasks))
            if tasks.mask is None:
                table[:] = sizes.reshape(tasks.n_tasks, -1).T
            else:
                table.T[tasks.mask.T] = sizes
            return _absolute_times(tasks.X, table)
        pairs = zip(tasks.inputs, tasks.per_task(sizes), strict=True)
        return np.hstack([_absolute_times(X, own[:, None]) for X, own in pairs])

    def work(self, u, x: Blocks) -> np.ndarray:
        """(m,) <|u_i|, max(|z_i|, |y_i|)>: the size of what multipliers do to predictions and labels."""

        def size(u, z, y):
            return np.abs(u) * np.maximum(np.abs(z), self.atom.label_sizes(y))

        return self.tasks.sums_of(size, np.asarray(u), self.predictions(x), self.tasks.targets)

    def residual_squares(self, x: Blocks) -> np.ndarray:
        """(m,) ||z_i - y_i||^2, samples weighted."""
        squares, weights = (self.predictions(x) - self.tasks.targets) ** 2, self.tasks.sample_weights
        return self.tasks.sums(squares if weights is None else weights * squares)

    def along(self, u, z) -> float:
        """<u, z>."""
        return float(np.asarray(u) @ z)

    def _tasks_apart(self):
        """(slice, coefficient, targets, sample weights) of every task, for a loss that is not a sum over samples."""
        offsets, weights = self.tasks.offsets, self.tasks.sample_weights
        for i, c in enumerate(self.coefficients):
            rows = slice(offsets[i], offsets[i + 1])
            yield rows, c, self.tasks.targets[rows], None if weights is None else weights[rows]

    def predictions(self, x: Blocks) -> np.ndarray:
        z = self.tasks.forward(self.map.forward(x))
        for name in self.intercepts:
            self.tasks.shift(z, x[name][0])
        return z

    def offset_predictions(self) -> np.ndarray | None:
        """The predictions of the map's constant part, None where it has none."""
        return None if self.map.offset is None else self.tasks.forward(self.map.offset)

    def constant_statistics(self) -> LossTerm | None:
        """Return a loss with the same best constants beside weights of zero, of as few rows as are known; None where none is known."""
        return self

    @property
    def has_one_slope_at_zero(self) -> bool | None:
        """Tell whether the loss has one gradient where the weights are zero and the constants best; None where that is to be looked at."""
        return True if self.atom.smooth else None

    def add_adjoint(self, u: np.ndarray, into: Blocks) -> None:
        """into += adjoint of x -> predictions (without offset) at u."""
        u = np.asarray(u)
        self.map.add_adjoint(self.tasks.adjoint(u), into)
        for name in self.intercepts:
            into[name] += self.tasks.sums(u)[None, :]

    def value_at(self, x: Blocks) -> float:
        """Its part of the objective at a point."""
        return self.value(self.predictions(x))

    def value_at_zero(self, zeros: Blocks) -> float:
        """The same at blocks of zeros; asked once."""
        if "_at_zero" not in self.__dict__:
            self.__dict__["_at_zero"] = self.value_at(zeros)
        return self.__dict__["_at_zero"]

    def dual_of(self, z):
        """Multipliers made of predictions: the gradient there."""
        return self.gradient(z)

    def dual_at(self, x: Blocks):
        """Multipliers made of a point."""
        return self.dual_of(self.predictions(x))

    def shown(self, u) -> np.ndarray:
        """Multipliers as a user sees them, who may write into them."""
        return np.array(u)

    def shown_at(self, x: Blocks, given) -> np.ndarray | None:
        """Return the multipliers given, or without them the gradient at a point, as a user sees them; None where they are not here."""
        return self.shown(self.dual_at(x) if given is None else self.dual_project(given))

    def plain_multipliers(self, u):
        """Return multipliers as the numbers that they stand for, from which a solver can start; None where they are of other data."""
        return u

    def value(self, z) -> float:
        if self.atom.separable:
            return self.atom.value(z, self.tasks.targets, self.scale)
        return float(sum(c * self.atom.value(z[rows], y, s) for rows, c, y, s in self._tasks_apart()))

    def _map_tasks(self, function) -> np.ndarray:
        flat = np.empty(self.tasks.n_samples)
        for rows, c, y, s in self._tasks_apart():
            flat[rows] = function(rows, c, y, s)
        return flat

    def of_squares(self, squares: np.ndarray) -> float:
        """The value where every task has these squared residuals (m,), of a function of their norms."""
        atom: Any = self.atom
        return float(self.coefficients @ atom.value_of_norm(np.sqrt(np.maximum(squares, 0.0))))

    def gradient(self, z) -> np.ndarray:
        if self.atom.separable:
            return self.atom.gradient(z, self.tasks.targets, self.scale)
        return self._map_tasks(lambda rows, c, y, s: c * self.atom.gradient(z[rows], y, s))

    def prox(self, z, step) -> np.ndarray:
        """argmin over v of step * value(v) + 1/2 ||v - z||^2; `step` a number or, for a separable loss, one per sample."""
        if self.atom.separable:
            return self.atom.prox(z, self.tasks.targets, step, self.scale)
        return self._map_tasks(lambda rows, c, y, s: self.atom.prox(z[rows], y, step * c, s))

    def conjugate(self, u) -> float:
        if self.atom.separable:
            return self.atom.conjugate(u, self.tasks.targets, self.scale)
        return float(sum(c * self.atom.conjugate(u[rows] / c, y, s) for rows, c, y, s in self._tasks_apart()))

    @cached_property
    def conjugate_at_zero(self) -> float:
        return self.conjugate(self.dual_project(np.zeros(self.tasks.n_samples)))

    def dual_project(self, u) -> np.ndarray:
        u = np.asarray(u, float)
        if self.atom.separable:
            return self.atom.dual_project(u, self.tasks.targets, self.scale)
        return self._map_tasks(lambda rows, c, y, s: c * self.atom.dual_project(u[rows] / c, y, s))

    def clip(self, u: np.ndarray) -> np.ndarray:
        """Numbers of samples moved to dom f*; what they prove there may still be to be found."""
        return self.dual_project(u)

    def no_multipliers(self):
        """Multipliers of zero."""
        return np.zeros(self.tasks.n_samples)

    def balanced(self, u) -> np.ndarray:
        """u with every task's sum moved to zero, inside dom f*: there a norm's ball, so that projecting scales and keeps the sum."""
        means = self.tasks.sums(u) / self.tasks.counts
        return self.dual_project(self.tasks.shift(np.array(u), -means))

    @cached_property
    def has_free_dual(self) -> bool:
        """Tell whether every number may be a multiplier of any sample."""
        low, high = cast(SeparableLoss, self.atom).dual_interval(self.tasks.targets[:1])
        return bool(np.all(low == -np.inf) and np.all(high == np.inf)) and np.ndim(low) == np.ndim(high) == 0

    def room(self, u) -> np.ndarray:
        """(N,) how far multipliers may move before one leaves its interval; where there are none or they are infinite, equally far."""
        if not self.atom.separable:
            return np.ones(len(u))
        low, high = self.dual_interval()
        room = np.maximum(np.minimum(u - low, high - u), 0.0)
        longest = np.max(room, initial=0.0, where=np.isfinite(room))
        return np.where(np.isfinite(room), room, longest if longest > 0 else 1.0)

    def at_ends(self, u, share: float) -> np.ndarray:
        """Multipliers, those at an end of their interval whose distance to it is at most a share of the largest; each beside its scale."""
        if not self.atom.separable:
            return u
        low, high = self.dual_interval()
        scale = np.ones(len(u)) if self.scale is None else self.scale
        distance = np.maximum(np.minimum(u - low, high - u), 0.0)
        shares = np.divide(distance, scale, out=np.zeros(len(u)), where=scale > 0.0)
        is_near = shares <= share * np.max(shares, initial=0.0, where=np.isfinite(shares))
        return np.where(is_near, np.where(u - low <= high - u, low, high), u)

    @property
    def middle(self) -> np.ndarray | None:
        """(N,) multipliers as far from the ends of their intervals as can be; None where there are no intervals."""
        if not self.atom.separable:
            return None
        low, high = self.dual_interval()
        is_finite = np.isfinite(low) & np.isfinite(high)
        return np.where(is_finite, 0.5 * (low + high), np.clip(0.0, low + 1.0, high - 1.0))

    def dual_interval(self) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of every dual entry for a separable loss."""
        low, high = cast(SeparableLoss, self.atom).dual_interval(self.tasks.targets)
        scale = 1.0 if self.scale is None else self.scale
        size = self.tasks.n_samples
        return np.broadcast_to(low * scale, size), np.broadcast_to(high * scale, size)


def _absolute_times(X, table) -> np.ndarray:
    """Return |X|^T table, a slab of rows at a time: no copy of all inputs."""
    step = max(1, SLAB_ENTRIES // max(X.shape[1], 1))
    total = np.zeros((X.shape[1], table.shape[1]))
    for first in range(0, X.shape[0], step):
        total += abs(X[first : first + step]).T @ table[first : first + step]
    return total


#: the types of terms, in the order in which they were registered
_TYPES: list[type[LossTerm]] = [LossTerm]

T = TypeVar("T", bound=type[LossTerm])


def register_term(cls: T) -> T:
    """Register a type of terms, for the losses that it `handles`; it is asked before those registered so far."""
    _TYPES.append(cls)
    return cls


def term_type(loss: Loss, tasks: Tasks) -> type[LossTerm]:
    """Return the type of term that a loss of these tasks becomes."""
    return next(cls for cls in reversed(_TYPES) if cls.handles(loss, tasks))
