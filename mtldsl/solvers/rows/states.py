"""An iterate of coordinate descent on some rows, with what makes their gradients cheap: Gram matrices, or the residual.

Where rows are many, one after another would be bound by memory. So they are taken in blocks: a matrix product brings a block's
gradients, the compiled sweep works on the block's own small Gram matrix, a matrix product passes its steps on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.solvers.rows.penalty import RowPenalty

__all__ = ["WIDE", "GramState", "ResidualState", "SeparateResidualState", "SeparateState"]

_BLOCK = 64
_SWEEPS = 2  # over a block once it is in cache
#: so few tasks make matrix products no faster than sweeps through so many rows as one block
_FEW_TASKS, WIDE = 4, 512


class _State:
    """rows: the features; W (m, p): their weights; carried: an array that is affine in W and is kept up to date with it."""

    carried: np.ndarray
    knows_gap = True  # whether the gap of the problem on these rows alone costs next to nothing
    takes_newton = True
    runs_rounds = False  # whether rounds of sweeps and extrapolations are one compiled call, `rounds`
    is_slow = False  # whether its last sweeps did not reach what was asked, and a state of another kind may
    dual_W: np.ndarray | None = (
        None  # weights whose residual proves more than that of W, where some are known
    )

    def __init__(self, design, penalty: RowPenalty, rows, W):
        self.design, self.rows, self.W = design, rows, W
        self.penalty = penalty.on(rows)
        self.columns: Any = None

    def _split(self) -> list[slice]:
        p = len(self.rows)
        return (
            [slice(0, p)] if p <= 2 * _BLOCK else [slice(a, min(a + _BLOCK, p)) for a in range(0, p, _BLOCK)]
        )

    def sweep_into(self, past_W, past_carried) -> None:
        """As many sweeps as these have rows, each of which keeps what a sweep has made of W and of what is carried."""
        for W, carried in zip(past_W, past_carried, strict=True):
            self.sweep()
            W[:], carried[:] = self.W.ravel(), self.carried.ravel()

    def sweep(self) -> None:
        raise NotImplementedError

    def _descend(self, gram, gradient, W, block: slice) -> None:
        from mtldsl.solvers.kernels.row_descent import sweep_shared

        penalty = self.penalty
        l1 = np.ascontiguousarray(penalty.l1[:, block])
        sweep_shared(gram, gradient, W, l1, penalty.l21[block], penalty.ridge[block], penalty.nonneg, _SWEEPS)

    def objective(self, W, carried) -> float:
        return self.smooth(W, carried) + self.penalty.value(W)

    def smooth(self, W, carried) -> float:
        raise NotImplementedError


class _Gradients(_State):
    """`carried` is the gradient of the smooth part on the rows."""

    def __init__(self, design, penalty, rows, W, gram):
        super().__init__(design, penalty, rows, W)
        self.gram, self.cross = gram, np.ascontiguousarray(design.cross[:, rows])
        self.carried = self.gradient(W)

    def gradient(self, W) -> np.ndarray:
        raise NotImplementedError

    def pull(self) -> np.ndarray:
        return -self.carried

    def smooth(self, W, carried) -> float:
        return 0.5 * (float(np.vdot(W, carried - self.cross)) + self.design.square)

    def moments(self) -> tuple[float, float]:
        """(||R||^2, <R, Y>) of the residual."""
        along, curved = float(np.vdot(self.cross, self.W)), float(np.vdot(self.W, self.carried))
        return self.design.square - along + curved, self.design.square - along


class GramState(_Gradients):
    """One Gram matrix (p, p) for all tasks."""

    def __init__(self, design, penalty, rows, W, gram, columns):
        super().__init__(design, penalty, rows, W, gram)
        self.columns = columns
        self.runs_rounds = len(rows) <= (2 * _BLOCK if len(W) > _FEW_TASKS else WIDE)
        if not self.runs_rounds:
            self.blocks = self._split()
            self.diagonal = [np.ascontiguousarray(gram[b, b]) for b in self.blocks]

    def gradient(self, W) -> np.ndarray:
        return W @ self.gram - self.cross

    def rounds(self, most: int, target: float) -> tuple[int, float, bool]:
        """(how many rounds, the relative gap on these rows, whether the last one left the support as it was)."""
        from mtldsl.solvers.kernels.row_rounds import rounds_shared

        p = self.penalty
        dual_W = np.empty(self.W.size)
        done, gap, settled = rounds_shared(
            self.gram, self.cross, self.design.square, self.carried, self.W,
            p.l1, p.l21, p.ridge, p.nonneg, _SWEEPS, most, target, dual_W, np.empty(len(self.rows)),
        )  # fmt: skip
        self.dual_W = dual_W.reshape(self.W.shape)
        return done, gap, settled

    def sweep(self) -> None:
        for block, gram in zip(self.blocks, self.diagonal, strict=True):
            before = self.W[:, block]
            W, gradient = before.copy(), self.carried[:, block].copy()
            self._descend(gram, gradient, W, block)
            step = W - before
            if step.any():
                self.carried += step @ self.gram[block]
                self.W[:, block] = W


class ResidualState(_State):
    """`carried` is the residual Y - W X^T: cheaper to pass on than gradients where the rows outnumber the samples."""

    knows_gap = False

    def __init__(self, design, penalty, rows, W, columns):
        super().__init__(design, penalty, rows, W)
        self.columns = columns
        self.carried = design.Y - W @ columns
        self.blocks = self._split()
        self.diagonal = [columns[b] @ columns[b].T for b in self.blocks]

    def sweep(self) -> None:
        for block, gram in zip(self.blocks, self.diagonal, strict=True):
            columns, before = self.columns[block], self.W[:, block]
            W, gradient = before.copy(), -(self.carried @ columns.T)
            self._descend(gram, gradient, W, block)
            step = W - before
            if step.any():
                self.carried -= step @ columns
                self.W[:, block] = W

    def smooth(self, W, carried) -> float:
        return 0.5 * float(np.vdot(carried, carried))


class SeparateState(_Gradients):
    """A Gram matrix a task, (m, p, p)."""

    def gradient(self, W) -> np.ndarray:
        return np.matmul(W[:, None, :], self.gram)[:, 0] - self.cross

    def sweep(self) -> None:
        from mtldsl.solvers.kernels.row_descent import sweep_separate

        penalty = self.penalty
        sweep_separate(
            self.gram, self.carried, self.W, penalty.l1, penalty.l21, penalty.ridge, penalty.nonneg, _SWEEPS
        )


class SeparateResidualState(_State):
    """As `SeparateState`, on the flat residual: where tasks have fewer samples than there are rows."""

    knows_gap = False

    def __init__(self, design, penalty, rows, W, columns):
        super().__init__(design, penalty, rows, W)
        self.columns, self.offsets = columns, np.asarray(design.tasks.offsets, dtype=np.int64)
        self.squares = np.add.reduceat(columns * columns, self.offsets[:-1], axis=1)
        self.carried = self.residual(W)

    def residual(self, W) -> np.ndarray:
        spread = np.repeat(W.T, self.design.tasks.counts, axis=1)
        return self.design.target - np.einsum("jk,jk->k", spread, self.columns)

    def sweep(self) -> None:
        from mtldsl.solvers.kernels.row_descent import sweep_separate_residual

        penalty = self.penalty
        sweep_separate_residual(
            self.columns, self.offsets, self.squares, self.carried, self.W,
            penalty.l1, penalty.l21, penalty.ridge, penalty.nonneg, _SWEEPS,
        )  # fmt: skip

    def smooth(self, W, carried) -> float:
        return 0.5 * float(np.vdot(carried, carried))
