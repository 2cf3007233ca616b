"""Equality constraints of the weights, such as W.sum(axis=1) == 0, beside losses of two slopes: interior points with one multiplier an equation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr

from mtldsl.normal_form.form import FunctionTerm, NormalForm, SingleBlock, single_block
from mtldsl.solvers.augmented_lagrangian.interior_point import SETTINGS as INTERIOR
from mtldsl.solvers.augmented_lagrangian.interior_point import InteriorPoint, ScaledCholesky, has_interior
from mtldsl.solvers.augmented_lagrangian.prox_parts import KinkedScores, RowPart
from mtldsl.solvers.design.row_penalty import RowPenalty, function_duals
from mtldsl.solvers.design.row_penalty import unsupported_reason as why_not_by_rows
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class EquationSettings:
    """Constants of linear equations.

    max_equations : their system is dense
    max_entries   : a task's equations times features
    """

    max_equations: int = 1500
    max_entries: float = 2e7


SETTINGS = EquationSettings()


def takes(form: NormalForm) -> bool:
    """Tell whether a loss of two slopes stands beside an l1 norm or a ridge, and at least one linear equation of the weights."""
    plain, equations = _split(form)
    facts = single_block(plain)
    if not equations or isinstance(facts, str) or not facts.loss.is_piecewise_linear:
        return False
    if KinkedScores(facts.loss).gap is not None:
        return False
    count, d = sum(f.map.shape[0] * f.map.shape[1] for f in equations), facts.shape[0]
    if count > SETTINGS.max_equations or count * d > SETTINGS.max_entries or not _has_rows(plain, facts):
        return False
    part = RowPart(RowPenalty.of(plain.functions, facts.shape), np.ones(d))
    return has_interior(Designs(facts.loss), part)


def _has_rows(plain: NormalForm, facts: SingleBlock) -> bool:
    return bool(plain.functions) and why_not_by_rows(plain.functions, facts.shape) is None


def _split(form: NormalForm) -> tuple[NormalForm, list[FunctionTerm]]:
    """The form without its equations, and these."""
    blocks = {block.name for block in form.weight_blocks}
    equations = [f for f in form.functions if _is_equation(f) and set(f.map.blocks) <= blocks]
    plain = tuple(f for f in form.functions if not any(f is one for one in equations))
    return replace(form, functions=plain), equations


def _is_equation(f: FunctionTerm) -> bool:
    if f.map.identity_of is not None or f.atom.interval is None:
        return False
    low, high = f.atom.interval
    return np.array_equal(low, high)


class EqualityConstrainedRun:
    """One run on a form that `takes` says yes to."""

    def __init__(self, form: NormalForm, tol: float):
        self.form, self.tol = form, tol
        self.plain, self.equations = _split(form)
        facts = single_block(self.plain)
        assert not isinstance(facts, str)
        self.loss, self.block = facts.loss, facts.name
        self.designs = designs = Designs(self.loss)
        self.part = RowPart(RowPenalty.of(self.plain.functions, facts.shape), designs.unit())
        A, c = self._system(facts.shape)
        self.interior = EqualityInteriorPoint(designs, KinkedScores(self.loss), self.part, A, c)

    def _system(self, shape: tuple[int, int]):
        """(A, c) with A vec(W) = c, W column after column."""
        rows, targets = [], []
        for f in self.equations:
            low, _ = f.atom.interval  # type: ignore[misc]
            target = np.broadcast_to(low, f.map.shape)
            targets.append((target if f.map.offset is None else target - f.map.offset).ravel())
            for j in range(targets[-1].size):
                Z, into = np.zeros(f.map.shape), {self.block: np.zeros(shape)}
                Z.flat[j] = 1.0
                f.map.add_adjoint(Z, into)
                rows.append(sparse.csr_array(into[self.block].T.reshape(1, -1)))
        A, c = sparse.vstack(rows, format="csr"), np.concatenate(targets)
        self.count, self.kept = len(c), _independent(A, c)
        return A[self.kept].tocsc(), c[self.kept]

    def run(self, max_iter: int, watch: Watch) -> Point:
        run, looked_at, point = self.interior, np.inf, None
        while True:
            try:
                run.step()
                lost = run.is_stalled
            except (ArithmeticError, np.linalg.LinAlgError):
                lost = True
            if lost and point is not None:
                point.stopped = "stalled"
                return point
            objective, missing = abs(run.objectives(run.W).sum()), run.missing.sum()
            stops = run.iterations >= max_iter or watch.expired
            near = INTERIOR.look_ratio * self.tol * objective
            if lost or stops or missing < INTERIOR.look_share * looked_at or missing < near:
                looked_at, point = missing, self._point()
                if watch(point) or stops:
                    return point

    def _point(self) -> Point:
        run, designs = self.interior, self.designs
        v = run.on_equations(run.at.v)
        blocks = {self.block: v}
        for name in self.loss.intercepts:
            blocks[name] = designs.intercepts(v, run.b + designs.centred(v - run.W, np.zeros_like(run.b)))[
                None, :
            ]
        pull = -designs.adjoint(run.u) - run.pull_of_equations()
        of_rows = iter(function_duals(self.plain.functions, self.part.penalty, pull.T, v))
        shares, at, N = {}, 0, np.zeros(self.count)
        N[self.kept] = run.N
        for f in self.equations:
            size = f.map.shape[0] * f.map.shape[1]
            shares[id(f)] = N[at : at + size].reshape(f.map.shape)
            at += size
        duals = [shares[id(f)] if id(f) in shares else next(of_rows) for f in self.form.functions]
        return Point(blocks, [run.u], duals, run.iterations)


def _independent(A: Any, c: np.ndarray) -> np.ndarray:
    """The equations without those that others imply: a system of all of them has no inverse. All, where they contradict one another."""
    gram = (A @ A.T).toarray()
    scale = np.sqrt(np.maximum(gram.diagonal(), 1e-300))
    R, order = qr(gram / scale / scale[:, None], mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(R.diagonal()) > 1e-10))
    kept, implied = np.sort(order[:rank]), np.sort(order[rank:])
    if not len(implied):
        return kept
    shares = np.linalg.solve(gram[np.ix_(kept, kept)], gram[np.ix_(kept, implied)])
    away = np.abs(shares.T @ c[kept] - c[implied])
    return kept if np.all(away <= 1e-9 * (1.0 + np.abs(c).max())) else np.arange(len(c))


class EqualityInteriorPoint(InteriorPoint):
    """With A vec(W) = c and multipliers N: stationarity gains A^T N, and S = A H^-1 A^T is what N is found by, H the tasks' systems.

    All tasks take the same steps.
    """

    def __init__(self, designs: Designs, scores: KinkedScores, part: RowPart, A: Any, c: np.ndarray):
        d = len(part.unit)
        self.A, self.c, self.N = A, c, np.zeros(len(c))
        self.parts = [A[:, k * d : (k + 1) * d].tocsr() for k in range(designs.n_tasks)]
        super().__init__(designs, scores, part)

    def pull_of_equations(self) -> np.ndarray:
        """(d, m) A^T N."""
        return self._adjoint(self.N)

    def _adjoint(self, N: np.ndarray) -> np.ndarray:
        return (self.A.T @ N).reshape(self.designs.n_tasks, -1).T

    def _image(self, W: np.ndarray) -> np.ndarray:
        return self.A @ W.T.ravel()

    def _missing_stationarity(self) -> np.ndarray:
        return super()._missing_stationarity() + self.pull_of_equations()

    def _factor(self, slope: np.ndarray, stiff: np.ndarray) -> None:
        super()._factor(slope, stiff)
        self.slope, self.stiff = slope, stiff
        self.miss_a = self._image(self.W) - self.c
        S = np.zeros((len(self.c), len(self.c)))
        for k, system in self.systems.items():
            A = self.parts[k]
            used = np.flatnonzero(np.diff(A.indptr))
            some = A[used].toarray()
            S[np.ix_(used, used)] += some @ system.inverse(some.T)
        S.flat[:: len(S) + 1] += 1e-300
        self.S = ScaledCholesky(S)

    def _solve(self, rhs_z, rhs_d, miss_b):
        """Twice: the digits that systems within a system lose come back where what is left is solved for once more."""
        du, dW, db, self.dN = self._solve_once(rhs_z, rhs_d, miss_b, self.miss_a)
        designs = self.designs
        left_z = rhs_z - designs.forward(dW, db) + self.slope * du
        left_d = rhs_d - designs.adjoint(du) - self.stiff * dW - self._adjoint(self.dN)
        more = self._solve_once(left_z, left_d, miss_b + designs.sums(du), self.miss_a + self._image(dW))
        self.dN = self.dN + more[3]
        return du + more[0], dW + more[1], db + more[2]

    def _solve_once(self, rhs_z, rhs_d, miss_b, miss_a):
        _, dW, _ = super()._solve(rhs_z, rhs_d, miss_b)
        dN = self.S.solve(self._image(dW) + miss_a)  # A (dW - H^-1 A^T dN) = -miss_a
        return *super()._solve(rhs_z, rhs_d - self._adjoint(dN), miss_b), dN

    def _longest(self, moves):
        primal, dual = super()._longest(moves)
        return np.full_like(primal, primal.min()), np.full_like(dual, dual.min())

    def _mean_product(self, primal=0.0, dual=0.0, moves=None):
        means, pairs = super()._mean_product(primal, dual, moves), self._pairs()
        return np.full_like(means, (means * pairs).sum() / pairs.sum())

    def _move(self, moves, primal, dual) -> None:
        super()._move(moves, primal, dual)
        self.N = self.N + dual[0] * self.dN

    def on_equations(self, v: np.ndarray) -> np.ndarray:
        """The nearest weights that satisfy the equations, zeros where v has them if that can be."""
        for free in (np.flatnonzero(v.T), np.arange(v.size)):
            A = self.A[:, free].tocsr()
            gram = (A @ A.T).toarray()
            away = self.c - self._image(v)
            moved = v.T.ravel()
            moved[free] += A.T @ np.linalg.lstsq(gram, away, rcond=1e-12)[0]
            moved = moved.reshape(v.T.shape).T
            if np.abs(self._image(moved) - self.c).max(initial=0.0) <= 1e-12 * (
                1.0 + np.abs(self.c).max(initial=0.0) + np.abs(v).max(initial=0.0)
            ):
                break
        return moved
