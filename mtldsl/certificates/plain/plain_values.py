"""Value of a statement at a point, evaluated by plain formulas with a bound on the rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.certificates.plain.plain_formula import DEFINITIONS, SETTINGS, Definition
from mtldsl.certificates.plain.plain_losses import GAP
from mtldsl.certificates.plain.plain_penalties import (
    largest_difference,
    largest_excess,
    singular_values,
    spectrum_of,
)
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.language.scalars import Operation
from mtldsl.language.substitution import intercepts_of

# --------------------------------------------------------------------------------------------------------------
# Expressions at a point, and what they predict: X_i w_i + b_i by numpy's own products, from the numbers that tasks hold.


def matrix_of(tree: Any, blocks: Mapping[str, np.ndarray], sizes: bool = False) -> Any:
    """Return the value of an expression as typed. KeyError, with its name, for a block that is not there.

    sizes : the same with the absolute value of every number in it, and every difference a sum: what rounding is proportional to
    """
    if not isinstance(tree, Operation):
        return abs(tree) if sizes else tree
    name, operands = tree.name, tree.operands
    if name == "block":
        return abs(blocks[operands[0]]) if sizes else blocks[operands[0]]
    if name == "*":
        factor, value = operands[0].value, matrix_of(operands[1], blocks, sizes)
        return (abs(factor) if sizes else factor) * value
    if name == "sum":
        value, axis = matrix_of(operands[0], blocks, sizes), operands[1]
        return np.asarray(value).sum(axis=axis, keepdims=True)
    if name == "[]":
        return matrix_of(operands[0], blocks, sizes)[operands[1], :][:, operands[2]]
    if name == "T":
        return matrix_of(operands[0], blocks, sizes).T
    left, right = (matrix_of(one, blocks, sizes) for one in operands)
    if name == "@":
        return left @ right
    if name == "beside":
        return np.hstack([left, right])
    return left - right if name == "-" and not sizes else left + right


def predictions(tasks: Any, W: np.ndarray, b: np.ndarray | None, sizes: bool = False) -> np.ndarray:
    """Return X_i w_i + b_i (N,), task after task. sizes: of |X|, |W| and |b|, whatever the signs of X."""
    if tasks.is_shared:
        z = scores(tasks.X, W, b, sizes)
        return z.ravel() if tasks.mask is None else z[tasks.mask.T]
    z = np.empty(tasks.n_samples)
    ends = tasks.offsets.tolist()
    X = tasks.stacked
    for i, (first, last) in enumerate(pairwise(ends)):
        rows = X[first:last]
        z[first:last] = (abs(rows) if sizes else rows) @ W[:, i]
    if b is not None:
        z += np.repeat(b, tasks.counts)
    return z


def scores(X: Any, W: np.ndarray, b: np.ndarray | None, sizes: bool = False) -> np.ndarray:
    """Return X W + b as (m, n): a row for every column of W."""
    if sparse.issparse(X):
        z = np.ascontiguousarray(np.asarray((abs(X) if sizes else X) @ np.ascontiguousarray(W)).T)
    else:
        z = W.T @ (abs(X) if sizes else X).T
    if b is not None:
        z += b[:, None]
    return z


def table_of(tasks: Any, values: np.ndarray, missing: float) -> np.ndarray:
    """Return (n, m) of what tasks with one X hold task after task; `missing` where there is no label."""
    n = tasks.X.shape[0]
    if tasks.mask is None:
        return values.reshape(tasks.n_tasks, n).T
    table = np.full((tasks.n_tasks, n), missing)
    table[tasks.mask.T] = values
    return table.T


# --------------------------------------------------------------------------------------------------------------
# The terms and the constraints of a statement at a point, by plain formulas, with how far rounding may have moved them.

EPS = float(np.finfo(float).eps)


#: Units in the last place by which a sum may be off, relative to the absolute values that it is made of; as in `certificates/dual_bound.py`.
ROUNDING_UNITS = 64.0


@dataclass(frozen=True)
class TypedPoint:
    """Weights and what is learned beside them, at which terms and constraints are evaluated as typed.

    blocks  : {name: array}, intercepts as "W.intercept"
    learned : {name: a `LearnedMatrix` or `LearnedWeights`}
    """

    blocks: Mapping[str, np.ndarray]
    learned: Mapping[str, Any]

    # --------------------------------------------------------------------------------------------------- terms

    def value(self, term: Any, kernels: Any = None) -> float | None:
        """Return coefficient * word(argument); None where the word is too dear to evaluate. kernels: the weights of `mkl_norm` where they have
        no name.
        """
        factor = term.coefficient.value
        if factor == 0.0 or 0 in term.argument.shape:
            return 0.0
        with np.errstate(all="ignore"):
            found = self._loss(term) if term.is_loss else self._penalty(term, kernels)
            return None if found is None else float(factor * found)

    def rounding(self, term: Any, kernels: Any = None) -> float:
        """Bound how far rounding, here or there, may have moved `value`."""
        factor = term.coefficient.value
        if factor == 0.0 or 0 in term.argument.shape:
            return 0.0
        with np.errstate(all="ignore"):
            own = self._rounding_of_loss(term) if term.is_loss else self._rounding_of_penalty(term, kernels)
            return float(abs(factor) * own)

    # -------------------------------------------------------------------------------------------------- losses

    def intercept(self, term: Any, sizes: bool = False) -> np.ndarray | None:
        """Return the intercepts (m,) of a loss, None where it has none. sizes: their absolute values."""
        names = list(intercepts_of(term.argument))
        if not names:
            return None
        b = np.ravel(self.blocks[names[0]])
        return np.abs(b) if sizes else b

    def _predictions(self, term: Any, sizes: bool = False) -> np.ndarray:
        W = matrix_of(term.argument.tree, self.blocks, sizes)
        return predictions(term.tasks, W, self.intercept(term, sizes), sizes)

    def _loss(self, term: Any, move: Any = None) -> float | None:
        """Return the loss, at predictions that `move` has changed."""
        definition = DEFINITIONS.get(term.atom.name)
        if term.atom.labels == "indicators":
            return self._of_labellings(term, definition)
        z = self._predictions(term)
        z = z if move is None else move(z)
        if definition is None and term.atom.labels == "classes":
            return None
        if definition is not None and definition.kind == "classes":
            return _of_classes(term, definition.function, z)
        if definition is None or definition.kind == "task":
            return over_tasks(term, _of_tasks(term, definition, z))
        l = pointwise(definition.function, term, z)
        return over_tasks(term, l if definition.of_sum is None else sums_of_tasks(term, l), definition.of_sum)

    def _of_labellings(self, term: Any, definition: Definition | None, sizes: bool = False) -> float | None:
        tasks, atom = term.data, term.atom
        b, K = self.intercept(term, sizes), term.data.n_tasks
        E = matrix_of(term.argument.tree, self.blocks, sizes)
        b = None if b is None else np.append(b, np.zeros(E.shape[1] - 2 * K))
        s = scores(tasks.X, E, b, sizes).T
        if sizes:
            return float(np.abs(s).sum(axis=1).max())
        truth = table_of(tasks, np.where(tasks.targets > 0, 1, 0), GAP).astype(int)
        values = None if definition is None else definition.function(s, truth, atom)
        if values is None:
            return None
        known = np.any(truth != GAP, axis=1)
        weights = known.astype(float)
        if tasks.sample_weights is not None:
            weights = weights * table_of(tasks, tasks.sample_weights, 0.0).max(axis=1)
        return float(weights @ values / weights.sum())

    def _rounding_of_loss(self, term: Any) -> float:
        definition = DEFINITIONS.get(term.atom.name)
        if term.atom.labels == "indicators":
            size = self._of_labellings(term, definition, sizes=True)
            return ROUNDING_UNITS * EPS * (1.0 + (size or 0.0))
        tasks, sizes = term.tasks, self._predictions(term, sizes=True)
        if definition is not None and definition.kind == "samples" and definition.of_sum is None:
            z = self._predictions(term)
            return over_tasks(term, rounding_of_samples(term, definition.function, definition.size, z, sizes))
        step = EPS * (8.0 + np.sqrt(tasks.n_features)) * (sizes + np.abs(tasks.targets))
        plain, rng = self._loss(term), np.random.default_rng(0)
        if plain is None:
            return 0.0
        directions = [1.0, -1.0] + [
            rng.choice([-1.0, 1.0], step.size) for _ in range(SETTINGS.rounding_directions)
        ]
        total = rounding_seen(plain, [self._loss(term, lambda z, u=u: z + u * step) for u in directions])
        if definition is not None and definition.size is not None:
            z, sized = self._predictions(term), replace(definition, function=definition.size)
            by_task = definition.kind == "task"
            size = (
                over_tasks(term, _of_tasks(term, sized, z))
                if by_task
                else _of_classes(term, definition.size, z)
            )
            total += ROUNDING_UNITS * EPS * abs(size)
        return total

    # ----------------------------------------------------------------------------------------------- penalties

    def _penalty(self, term: Any, kernels: Any) -> float | None:
        definition, atom = DEFINITIONS.get(term.typed_atom.name), term.typed_atom
        if term.of_learned:
            matrix = spectrum_of(self._learned(term.argument)).dense()
            return None if definition is None else definition.function(matrix, atom)
        W = matrix_of(term.tree, self.blocks)
        return self._of_matrix(term, definition, W, kernels)

    def _of_matrix(self, term: Any, definition: Definition | None, W, kernels) -> Any:
        atom = term.typed_atom
        if definition is None and term.learned:  # a structure of one's own, without a plain formula
            return atom.value_at(W, tuple(self._learned(one) for one in term.learned))
        if definition is not None and definition.kind == "kept":
            return definition.function(W, self._matrices(term, kernels), atom)
        return _of_weights(definition, atom, W)[0]

    def _learned(self, matrix: Any) -> Any:
        """Return a matrix, or weights, by its name; one that is given is itself."""
        if not isinstance(matrix, LearnedUnknown):
            return matrix
        found = self.learned[matrix.name]
        return getattr(found, "spectral", found)

    def _matrices(self, term: Any, kernels: Any) -> tuple:
        if term.atom.weighs_kernels:
            return (np.asarray(self._learned(term.learned[0]) if term.learned else kernels, float),)
        return tuple(spectrum_of(self._learned(one)) for one in term.learned)

    def _rounding_of_penalty(self, term: Any, kernels: Any) -> float:
        definition = DEFINITIONS.get(term.typed_atom.name)
        if term.of_learned:
            return ROUNDING_UNITS * EPS * abs(self._penalty(term, kernels) or 0.0)
        W = matrix_of(term.tree, self.blocks)
        if definition is not None and definition.kind == "between":
            value, spread = _of_weights(definition, term.typed_atom, W)
            return spread + (definition.within + ROUNDING_UNITS * EPS) * value
        step = 2.0 * EPS * matrix_of(term.tree, self.blocks, sizes=True)
        plain, rng = self._of_matrix(term, definition, W, kernels), np.random.default_rng(0)
        if plain is None:
            return 0.0
        if definition is not None and definition.kind == "spectrum":
            s = _padded(singular_values(W), len(W))
            by = ROUNDING_UNITS * EPS * s.max(initial=0.0) + float(np.linalg.norm(step))
            r = definition.function(s, term.typed_atom)
            moved = [
                np.abs(definition.function(np.maximum(s + u, 0.0), term.typed_atom) - r) for u in (by, -by)
            ]
            return float(np.sum(np.maximum(*moved))) + ROUNDING_UNITS * EPS * abs(plain)
        moved = [W + rng.choice([-1.0, 1.0], W.shape) * step for _ in range(SETTINGS.rounding_directions)]
        total = rounding_seen(plain, [self._of_matrix(term, definition, one, kernels) for one in moved])
        if definition is not None:
            if definition.kind == "kept":
                total += ROUNDING_UNITS * len(W) * EPS * abs(plain)
            if definition.size is not None:
                more = (self._matrices(term, kernels),) if definition.kind == "kept" else ()
                total += ROUNDING_UNITS * EPS * abs(definition.size(W, *more, term.typed_atom))
        return total

    # --------------------------------------------------------------------------------------------- constraints

    def violation(self, constraint: Any) -> float:
        """Return how far a constraint on weights is from being met, in its own units."""
        tree, blocks = constraint.tree, self.blocks
        operands = tree.operands
        with np.errstate(all="ignore"):
            if tree.name == "in":
                atom, W = operands[0], matrix_of(operands[1], blocks)
                definition = DEFINITIONS.get(atom.name)
                return float(atom.violation(W) if definition is None else definition.function(W, atom))
            if tree.name == "ball":
                factor, atom, argument, radius = operands
                W, most = matrix_of(argument, blocks), radius.value / factor.value
                if atom.name == "rank":
                    return float(np.linalg.norm(singular_values(W)[int(most) :]))
                return float(max(_of_weights(DEFINITIONS.get(atom.name), atom, W)[0] - most, 0.0))
            left, right = (matrix_of(one, blocks) for one in operands)
            if tree.name == "==":
                return float(largest_difference(left, right))
            return float(largest_excess(left, right) if tree.name == "<=" else largest_excess(-left, -right))

    def rounding_of_violation(self, constraint: Any) -> float:
        """Bound how far rounding may have moved it."""
        name, operands = constraint.tree.name, constraint.tree.operands
        units = ROUNDING_UNITS * EPS
        with np.errstate(all="ignore"):
            if name == "in":
                return units * float(np.sum(matrix_of(operands[1], self.blocks, sizes=True)))
            if name == "ball":
                atom, definition = operands[1], DEFINITIONS.get(operands[1].name)
                size = matrix_of(operands[2], self.blocks, sizes=True)
                norm, spread = _of_weights(definition, atom, size)
                within = 0.0 if definition is None else definition.within
                return float(units * np.sum(size) + (units + within) * norm + spread)
            left, right = (matrix_of(one, self.blocks, sizes=True) for one in operands)
            return units * float(np.max(left + np.where(np.isfinite(right), right, 0.0), initial=0.0))


def _of_weights(definition: Definition | None, atom: Any, W: np.ndarray) -> tuple[float, float]:
    """Return (a penalty of W alone, by how much it may be off); without a plain formula it is what the word says itself."""
    if definition is None:
        return atom.value(W), 0.0
    if definition.kind == "spectrum":
        return np.sum(definition.function(_padded(singular_values(W), len(W)), atom)), 0.0
    found = definition.function(W, atom)
    low, high = found if definition.kind == "between" else (found, found)
    return 0.5 * (low + high), 0.5 * (high - low)


# --------------------------------------------------------------------------------------------- losses over tasks


def rounding_seen(plain: float, moved: list[Any]) -> float:
    """Bound how far rounding may have moved a value that is these values where its argument has moved by rounding."""
    return 4.0 * max(abs(one - plain) for one in moved) + ROUNDING_UNITS * EPS * abs(plain)


def pointwise(function, term: Any, z: np.ndarray) -> np.ndarray:
    """Return the losses of samples (N,), weighted."""
    l, s = function(z, term.tasks.targets, term.atom), term.tasks.sample_weights
    return l if s is None else s * l


def rounding_of_samples(term: Any, function, size, z: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Bound (N,) how far rounding may have moved every sample's loss at predictions z, the sums of numbers of these sizes."""
    step = EPS * (8.0 + np.sqrt(term.tasks.n_features)) * (sizes + np.abs(term.tasks.targets))
    l = pointwise(function, term, z)
    moved = [np.abs(pointwise(function, term, z + sign * step) - l) for sign in (1.0, -1.0)]
    total = np.maximum(*moved) + EPS * ROUNDING_UNITS * np.abs(l)
    return total if size is None else total + EPS * ROUNDING_UNITS * pointwise(size, term, z)


def totals_of(tasks: Any) -> np.ndarray:
    """Add up the weights (m,) of every task's samples."""
    s = tasks.sample_weights
    return np.asarray(tasks.counts, float) if s is None else np.add.reduceat(s, tasks.offsets[:-1])


def sums_of_tasks(term: Any, l: np.ndarray) -> np.ndarray:
    """Add up (m,) over every task's samples."""
    return np.add.reduceat(l, term.tasks.offsets[:-1])


def _of_tasks(term: Any, definition: Definition | None, z: np.ndarray) -> np.ndarray:
    """Return losses (m,) that are functions of a whole task; of a word of one's own, what it says itself."""
    tasks, found = term.tasks, []
    s = [None] * tasks.n_tasks if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)
    each = zip(tasks.per_task(z), tasks.per_task(tasks.targets), s, strict=True)
    for i, given in enumerate(each):
        atom = term.atom.of_task(i)
        found.append(atom.value(*given) if definition is None else definition.function(*given, atom))
    return np.array(found)


def over_tasks(term: Any, losses: np.ndarray, of_sum=None, totals: np.ndarray | None = None) -> float:
    """Return the sum, or the largest where the worst task counts, of losses of samples (N,) or of tasks (m,). totals: the weights (m,) of
    every task's samples, where tasks do not hold them.
    """
    tasks = term.tasks
    if not (term.mean or term.worst or of_sum):
        return float(np.sum(losses))
    if losses.size == tasks.n_samples and losses.size != tasks.n_tasks:
        losses = sums_of_tasks(term, losses)
    losses = losses if of_sum is None else of_sum(losses, term.atom)
    if term.mean:
        if totals is None:
            totals = totals_of(tasks)
        losses = losses / totals
    return float(np.max(losses) if term.worst else np.sum(losses))


def _of_classes(term: Any, function, z: np.ndarray) -> float:
    """Add up losses of rows, each a function of all of its scores."""
    tasks = term.tasks
    m, s = tasks.n_tasks, tasks.sample_weights
    table, true = z.reshape(m, -1).T, np.argmax(tasks.targets.reshape(m, -1), axis=0)
    l = function(table, true, term.atom)
    s = np.ones(len(l)) if s is None else s[: len(l)]
    return float(s @ l / (s.sum() if term.mean else 1.0))


def _padded(s: np.ndarray, n: int) -> np.ndarray:
    """Add zeros to the singular values of a matrix with n rows: formulas are of n of them."""
    return np.append(s, np.zeros(n - s.size)) if s.size < n else s
