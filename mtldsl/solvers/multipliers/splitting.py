"""A first phase of ADMM on the same copies: cheap steps that end where Newton's begin, with penalties that balance task by task."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.newton import Penalties, State
from mtldsl.system.long_calls import eigh

__all__ = ["Spectra", "Splitting"]

_RELAXATION = 1.6
_BALANCE = 10  # iterations between two looks at the penalties
_UNBALANCED = 3.0
_LEAST, _LEAST_MULTIPLIERS = (
    1e-2,
    1e-6,
)  # parts of their usual sizes below which scores and multipliers count as so large
_FARTHEST = 1e6  # penalties stay within so many times the first ones, and such a part of them
_ROWS = 1000  # of the inputs that are centred at a time
_LARGEST = 1500  # unknowns or rows of one task's system


class Spectra:
    """X^T X of every task, in the unit of the weights and about the columns' means where there are intercepts, by its eigenvalues: a
    change of penalties costs nothing.

    means (d, m) : what the designs leave to be taken off
    """

    def __init__(self, designs: Designs, unit: np.ndarray):
        self.designs, self.unit = designs, unit
        self.is_common = designs.is_shared and designs.rows_of is None
        parts = [self._of(k) for k in range(1 if self.is_common else designs.n_tasks)]
        self.values, self.vectors = [part[1] for part in parts], [part[2] for part in parts]
        means = np.column_stack([part[0] for part in parts])
        self.means = np.repeat(means, designs.n_tasks, axis=1) if self.is_common else means

    @staticmethod
    def fits(designs: Designs, d: int) -> bool:
        return min(d, int(designs.counts.max())) <= _LARGEST

    def _of(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        designs, X = self.designs, self.designs.inputs_of(k)
        (n, d), zero = X.shape, np.zeros(X.shape[1])
        gram: Any
        if not designs.is_sparse:
            gram, rows = (np.zeros((d, d)), _ROWS) if d <= n else (None, n)
            for start in range(0, n, rows):  # without a copy of all rows
                block = X[start : start + rows]
                block = (block if designs.means is None else block - designs.means[:, k]) / self.unit
                if gram is None:
                    return zero, *_of_few_rows(block @ block.T, block.T)
                gram += block.T @ block
            return zero, *_positive(gram)  # pyrefly: ignore[bad-argument-type]
        X = X.multiply(1.0 / self.unit[None, :]).tocsr()
        mean = np.asarray(X.mean(axis=0)).ravel() if designs.has_intercepts else zero
        if d <= n:
            return mean, *_positive((X.T @ X).toarray() - n * np.outer(mean, mean))
        across = np.asarray(X @ mean).ravel()
        kernel = (X @ X.T).toarray() - across[:, None] - across[None, :] + mean @ mean
        return mean, *_of_few_rows(kernel, X.T.tocsr(), mean)

    def solve(self, rhs: np.ndarray, s: np.ndarray, r: np.ndarray) -> np.ndarray:
        """(d, m) in units of the weights: (s_i X^T X + r_i)^-1 rhs_i."""
        if self.is_common:
            return self._one(self.values[0], self.vectors[0], rhs, s, r)
        return np.column_stack(
            [
                self._one(values, vectors, rhs[:, k : k + 1], s[k : k + 1], r[k : k + 1])
                for k, (values, vectors) in enumerate(zip(self.values, self.vectors, strict=True))
            ]
        )

    @staticmethod
    def _one(values, vectors, rhs, s, r) -> np.ndarray:
        # 1 / (s v + r) = 1 / r - s v / (r (s v + r)): vectors need not be a whole basis
        share = (s * values[:, None]) / (s * values[:, None] + r)
        return (rhs - vectors @ (share * (vectors.T @ rhs))) / r


def _positive(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = eigh(gram)
    return np.maximum(values, 0.0), vectors


def _of_few_rows(kernel: np.ndarray, Xt: Any, mean: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Those that are not zero, of X X^T."""
    values, left = eigh(kernel)
    kept = values > 1e-12 * max(values[-1], 1e-300)
    values, left = values[kept], left[:, kept]
    vectors = np.asarray(Xt @ left)
    if mean is not None:
        vectors -= np.outer(mean, left.sum(axis=0))
    return values, vectors / np.sqrt(values)


class Splitting:
    """Over-relaxed ADMM between the weights and the copies of scores and weights."""

    def __init__(self, designs: Designs, scores: Any, part: Any, at: State, penalties: Penalties):
        self.designs, self.scores, self.part, self.penalties = designs, scores, part, penalties
        self.spectra = Spectra(designs, part.unit)
        self.at, self.copy, self.iterations = at, at.z, 0
        # a task whose scores, or multipliers, are zero in the end has nothing that its residual could be compared with
        roots = np.sqrt(designs.counts)
        self.least = (
            _LEAST * roots * scores.spread_of_scores(designs),
            _LEAST_MULTIPLIERS * roots * scores.sizes(designs),
        )
        self.first = penalties

    def run(self, iterations: int) -> State:
        designs, part, unit = self.designs, self.part, self.part.unit[:, None]
        means = self.spectra.means
        W, b, u, P, v, copy = self.at.W, self.at.b, self.at.u, self.at.P, self.at.v, self.copy
        z = self.at.z
        for _ in range(iterations):
            p = self.penalties
            s, M = designs.spread(p.loss), part.metric(p.regularizer)
            wanted = s * copy - u
            totals = designs.sums(wanted)
            rhs = designs.adjoint(wanted) / unit + (M * v - P) / unit
            if designs.has_intercepts:
                rhs -= means * totals
            scaled = self.spectra.solve(rhs, p.loss, p.regularizer)
            W = scaled / unit
            if designs.has_intercepts:
                b = totals / (p.loss * designs.counts) - (means * scaled).sum(axis=0)
            z = designs.forward(W, b)
            mixed = _RELAXATION * z + (1.0 - _RELAXATION) * copy
            y = self.scores.near_multipliers(mixed, u, s)
            before, copy = copy, mixed + (u - y) / s
            u = y
            between = _RELAXATION * W + (1.0 - _RELAXATION) * v if part.has_copy else W
            Q = part.multipliers(between, P, M)
            v_before, v, P = v, part.copy(between, P, Q, M), Q
            self.iterations += 1
            if self.iterations % _BALANCE == 0:
                self._balance(
                    z - copy,
                    copy - before,
                    copy,
                    u,
                    unit * (W - v),
                    unit * (v - v_before),
                    unit * v,
                    P / unit,
                )
        self.copy = copy
        self.at = State(W, b, z, u, P, v)
        return self.at

    def _balance(self, apart, moved, copy, u, v_apart, v_moved, v, P) -> None:
        """Double or halve a penalty where one of its normalised residuals is three times the other."""
        designs, p = self.designs, self.penalties

        def norms(flat):
            return np.sqrt(designs.sums(flat * flat))

        def columns(V):
            own = np.sqrt((V * V).sum(axis=0))
            return own if self.part.is_separable else np.full(len(own), np.linalg.norm(V))

        if designs.has_intercepts:
            copy = copy - designs.spread(designs.sums(copy) / designs.counts)
        tiny = 1e-300
        of_loss = _factors(
            norms(apart) / np.maximum(norms(copy), self.least[0]),
            p.loss * norms(moved) / np.maximum(norms(u), self.least[1]),
        )
        size = np.maximum(columns(v), columns(v_apart + v))
        of_weights = _factors(
            columns(v_apart) / (size + tiny), p.regularizer * columns(v_moved) / (columns(P) + tiny)
        )
        first = self.first
        loss = np.clip(of_loss * p.loss, first.loss / _FARTHEST, first.loss * _FARTHEST)
        regularizer = p.regularizer
        if self.part.has_copy:
            regularizer = np.clip(
                of_weights * p.regularizer, first.regularizer / _FARTHEST, first.regularizer * _FARTHEST
            )
        self.penalties = Penalties(loss, regularizer, p.proximal)


def _factors(primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
    return np.where(primal > _UNBALANCED * dual, 2.0, np.where(dual > _UNBALANCED * primal, 0.5, 1.0))
