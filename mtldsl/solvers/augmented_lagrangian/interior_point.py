"""Interior-point method for losses with two slopes, the systems of many tasks side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from mtldsl.solvers.augmented_lagrangian.prox_parts import KinkedScores, RowPart
from mtldsl.solvers.augmented_lagrangian.semismooth_newton import NewtonState
from mtldsl.solvers.design.task_design import Designs

# --------------------------------------------------------------------------------------------------------------
# One task's system of an interior-point step, by the smaller of its two sides.


#: Divisors, and distances from the ends of an interval, stay above it.
SMALLEST_DIVISOR = 1e-300


@dataclass(frozen=True)
class InteriorPointSettings:
    """Constants of interior points; limits of size were measured on both sides.

    bump_share          : of a diagonal of ones, added where rounding made a matrix indefinite
    scaled_entries      : entries of the inputs that are scaled at a time
    step_share          : of the longest step, as long as complementarity is far from its end
    patience_iterations : iterations in which what is missing must fall by half
    group_entries       : entries of the systems that are held at a time
    last_gap_share      : of a task's first gap, from which on the task stands still
    zeroing_share       : of the gap that complementarity leaves, by which zeros may raise the objective
    zero_shares         : weights, over the room of their multipliers, that may be zero: the most that costs little is taken
    initial_mu_ratio    : mu over what the mean residual times its interval makes
    max_system_rows     : of the smaller side of a task
    newton_ratio        : rows over features from which on Newton steps, which see rows at kinks alone, are faster
    newton_entries      : entries of the inputs from which on they are
    look_share          : of the gap at the last look, at which there is another: one costs as much as an iteration of a small model
    look_ratio          : gap over the one that is asked for, from which on every iteration may be the last one
    """

    bump_share: float = 1e-14
    scaled_entries: int = 500_000
    step_share: float = 0.995
    patience_iterations: int = 15
    group_entries: float = 2e6
    last_gap_share: float = 1e-20
    zeroing_share: float = 0.3
    zero_shares: tuple[float, ...] = (0.1, 1e-3, 1e-5)
    initial_mu_ratio: float = 2.0
    max_system_rows: int = 2500
    newton_ratio: float = 20
    newton_entries: float = 1.5e5
    look_share: float = 0.01
    look_ratio: float = 10.0


SETTINGS = InteriorPointSettings()


class CentralSystem:
    """X dw + db - E du = g,  X^T du + K dw = h,  sum du = c,  E and K diagonal and positive.

    Few rows: (X K^-1 X^T + E) du - db = X K^-1 h - g. Few columns: (X^T E^-1 X + K) dw + X^T E^-1 1 db = h + X^T E^-1 g, from which
    db is taken first. Columns are centred where `designs` does so.
    """

    def __init__(self, designs: Designs, k: int):
        self.X: Any = designs.inputs_of(k)
        self.mean = None if designs.means is None else designs.means[:, k]
        self.has_intercept = designs.has_intercepts
        self.is_sparse = sparse.issparse(self.X)
        n, d = self.X.shape
        self.is_wide = n <= d
        self.Xt: Any = self.X.T.tocsr() if self.is_sparse and not self.is_wide else self.X.T

    def factor(self, E: np.ndarray, K: np.ndarray) -> None:
        self.E, self.K = E, K
        if self.is_wide:
            A = self._gram_of_rows()
            A.flat[:: len(A) + 1] += E
            self.cholesky = ScaledCholesky(A)
            if self.has_intercept:
                self.across = self.cholesky.solve(np.ones(len(E)))
                self.pivot = self.across.sum()
        else:
            if self.has_intercept:
                # columns centred by the weights of this step: the intercept's own equation then stands by itself, to all digits
                self.total = (1.0 / E).sum()
                self.place = self._adjoint(1.0 / E) / self.total
            A = self._gram_of_columns()
            A.flat[:: len(A) + 1] += K
            self.cholesky = ScaledCholesky(A)

    def _gram_of_rows(self) -> np.ndarray:
        """X K^-1 X^T."""
        scale = 1.0 / np.sqrt(self.K)
        if self.is_sparse:
            half = self.X.multiply(scale[None, :]).tocsr()
            return (half @ half.T).toarray()
        n, d = self.X.shape
        A = np.zeros((n, n))
        for some in _blocks(d, n):
            half = (self.X[:, some] if self.mean is None else self.X[:, some] - self.mean[some]) * scale[some]
            A += half @ half.T
        return A

    def _gram_of_columns(self) -> np.ndarray:
        """X^T E^-1 X, about `place` where there is an intercept."""
        scale = 1.0 / np.sqrt(self.E)
        if self.is_sparse:
            half = self.Xt.multiply(scale[None, :]).tocsr()
            A = (half @ half.T).toarray()
            return A - self.total * np.outer(self.place, self.place) if self.has_intercept else A
        n, d = self.X.shape
        place = self.place + (0.0 if self.mean is None else self.mean) if self.has_intercept else None
        A = np.zeros((d, d))
        for some in _blocks(n, d):
            half = (self.X[some] if place is None else self.X[some] - place) * scale[some, None]
            A += half.T @ half
        return A

    def solve(self, g: np.ndarray, h: np.ndarray, c: float):
        """(du, dw, db)."""
        if self.is_wide:
            du, db = self.cholesky.solve(self._forward(h / self.K) - g), 0.0
            if self.has_intercept:
                db = float((c - du.sum()) / self.pivot)
                du += db * self.across
            return du, (h - self._adjoint(du)) / self.K, db
        scaled = g / self.E
        if not self.has_intercept:
            dw = self.cholesky.solve(h + self._adjoint(scaled))
            return (self._forward(dw) - g) / self.E, dw, 0.0
        total = scaled.sum()
        dw = self.cholesky.solve(h + self._adjoint(scaled) - (total + c) * self.place)
        away = float((c + total) / self.total)
        moved = float(self.place @ dw)
        return (self._forward(dw) - moved + away - g) / self.E, dw, away - moved

    def inverse(self, B: np.ndarray) -> np.ndarray:
        """dw for every column of B (d, q) as h, with g = 0 and c = 0."""
        if not self.is_wide:
            return self.cholesky.solve(B)
        du = self.cholesky.solve(self._forward(B / self.K[:, None]))
        if self.has_intercept:
            du -= np.outer(self.across, du.sum(axis=0) / self.pivot)
        return (B - self._adjoint(du)) / self.K[:, None]

    def _forward(self, w):
        z = self.X @ w
        return z if self.mean is None else z - self.mean @ w

    def _adjoint(self, u):
        g = self.Xt @ u
        return g if self.mean is None else g - np.multiply.outer(self.mean, u.sum(axis=0))


def _blocks(count: int, size: int):
    """Slices of so many rows or columns as are copied at a time."""
    step = max(SETTINGS.scaled_entries // size, 1)
    return (slice(start, start + step) for start in range(0, count, step))


class ScaledCholesky:
    """Cholesky's, of a matrix brought to a diagonal of ones: entries of an interior point's matrix are many digits apart."""

    def __init__(self, A: np.ndarray):
        self.scale = 1.0 / np.sqrt(A.flat[:: len(A) + 1])
        A *= self.scale
        A *= self.scale[:, None]
        bump = SETTINGS.bump_share
        c, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=0)
        while info != 0:
            if not bump < 1.0:
                raise np.linalg.LinAlgError("a system of interior points has lost its digits")
            A.flat[:: len(A) + 1] += bump
            c, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=0)
            bump *= 100.0
        self.c = c

    def solve(self, r):
        """A^-1 r, a vector or columns."""
        if r.ndim == 2:
            return self.scale[:, None] * lapack.dpotrs(self.c, self.scale[:, None] * r, lower=1)[0]
        return self.scale * lapack.dpotrs(self.c, self.scale * r, lower=1)[0]


# --------------------------------------------------------------------------------------------------------------
# Interior points where tasks are not tied: losses with two slopes beside absolute values, squares and W >= 0 are quadratic programs.
#
#     z = X w + b,  z - kink = s - t,  X^T u + ridge w + r = 0,  sum u = 0 with an intercept,  w = p - q,
#     (high - u) s = (u - low) t = (l1 - r) p = (l1 + r) q = mu
#
# with s, t, p, q and the four distances above zero. mu falls to zero by predictor and corrector steps, in every task by itself; the system
# of a step is `central_systems`'.
#
# Source: Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2 (1992).


def has_interior(designs: Designs, part) -> bool:
    """Tell whether these tasks are programs by themselves that interior points are the faster way for: measured on both sides of each limit."""
    if not (isinstance(part, RowPart) and part.is_separable):
        return False
    if np.any(part.l1 > 0.0) and not (part.penalty.nonneg or np.all(part.l1 > 0.0)):
        return False  # an interval without inside
    n, d = int(designs.counts.max()), len(part.unit)
    is_tall = n > SETTINGS.newton_ratio * d and n * d > SETTINGS.newton_entries
    return min(n, d) <= SETTINGS.max_system_rows and not is_tall


def in_groups(
    designs: Designs, scores: KinkedScores, part: RowPart
) -> list[tuple[np.ndarray, InteriorPoint]]:
    """Runs of so many tasks as have their systems side by side, with what these tasks are."""
    side = min(int(designs.counts.max()), len(part.unit))
    size = max(int(SETTINGS.group_entries // side**2), 1)
    if designs.n_tasks <= size:
        return [(np.arange(designs.n_tasks), InteriorPoint(designs, scores, part))]
    groups = []
    for start in range(0, designs.n_tasks, size):
        ids = np.arange(start, min(start + size, designs.n_tasks))
        flat = np.arange(int(designs.offsets[ids[0]]), int(designs.offsets[ids[-1] + 1]))
        groups.append((ids, InteriorPoint(designs.on(ids), scores.on(ids, flat), part.on(ids))))
    return groups


@dataclass
class _BarrierPair:
    """Two distances from the ends of an interval, low and high of one multiplier, and what is complementary to each."""

    above: np.ndarray  # high - u
    below: np.ndarray  # u - low; infinite where nothing bounds it
    up: np.ndarray  # s, complementary to `above`
    down: np.ndarray  # t
    is_bounded: bool = True  # below

    def products(self, primal: Any = 0.0, dual: Any = 0.0, moves: Any = (0.0, 0.0), du: Any = 0.0) -> Any:
        """(of what is above, of what is below), after such steps."""
        above = (self.up + primal * moves[0]) * (self.above - dual * du)
        return above, (self.down + primal * moves[1]) * (self.below + dual * du) if self.is_bounded else None

    @property
    def slope(self) -> np.ndarray:
        """d (up - down) / d u, whatever the products are to become."""
        return self.up / self.above + self.down / self.below if self.is_bounded else self.up / self.above

    def constant(self, mu, up_correction=0.0, down_correction=0.0) -> np.ndarray:
        """d (up - down) where u stands still and the products become mu."""
        c_up = (mu - up_correction) / self.above - self.up
        return c_up - ((mu - down_correction) / self.below - self.down) if self.is_bounded else c_up

    def falls(self, moves, du):
        """(of what is primal, of what is dual): the smaller of two changes, as a share of what is there."""
        primal, dual = moves[0] / self.up, -du / self.above
        if self.is_bounded:
            np.minimum(primal, moves[1] / self.down, out=primal)
            np.minimum(dual, du / self.below, out=dual)
        return primal, dual

    def moves(self, du, mu, up_correction=0.0, down_correction=0.0):
        """(d up, d down)."""
        d_up = (mu - up_correction + self.up * du) / self.above - self.up
        if not self.is_bounded:
            return d_up, np.zeros_like(d_up)
        return d_up, (mu - down_correction - self.down * du) / self.below - self.down


class InteriorPoint:
    """A run for the tasks of `designs`, as `OuterLoop` is one: `at` is where it stands."""

    def __init__(self, designs: Designs, scores: KinkedScores, part: RowPart):
        self.designs, self.scores, self.part = designs, scores, part
        self.has_l1 = bool(np.any(part.l1 > 0.0)) or part.penalty.nonneg
        self.systems: dict[int, CentralSystem] = {}  # of one step
        self.iterations, self.goes_on = 0, np.ones(designs.n_tasks, bool)
        self._begin()

    def _begin(self) -> None:
        designs, scores = self.designs, self.scores
        m, d = designs.n_tasks, len(self.part.unit)
        width = np.maximum(scores.high - scores.low, 1e-12 * scores.high.max(initial=0.0) + SMALLEST_DIVISOR)
        self.b = designs.sums(scores.kink) / designs.counts if designs.has_intercepts else np.zeros(m)
        r = designs.spread(self.b) - scores.kink
        # mu of the size of the losses: multipliers near the middle where residuals are small, near their ends where they are large
        mu = np.maximum(designs.sums(np.abs(r) * width) / designs.counts, SMALLEST_DIVISOR)
        self.mu = SETTINGS.initial_mu_ratio * mu
        four = 4.0 * designs.spread(self.mu)
        x = 2.0 * r * width**2 / (four + np.sqrt(four**2 + 4.0 * r**2 * width**2))
        below, above = 0.5 * (width + x), 0.5 * (width - x)
        mu_flat = designs.spread(self.mu)
        self.of_loss = _BarrierPair(above, below, mu_flat / above, mu_flat / below)
        self.u = scores.low + below
        l1 = np.broadcast_to(self.part.l1, (d, m))
        W = np.zeros((d, m))
        self.r = np.zeros((d, m))
        if self.has_l1:
            pull = designs.adjoint(self.u)
            if self.part.penalty.nonneg:
                size = np.abs(pull) + l1
                self.r = np.minimum(-pull, 0.5 * l1) - 0.1 * (size + size.mean(axis=0)) - SMALLEST_DIVISOR
                above = l1 - self.r
                self.of_weights = _BarrierPair(
                    above, np.full((d, m), np.inf), self.mu / above, np.zeros((d, m)), False
                )
            else:
                self.r = np.clip(-pull, -0.5 * l1, 0.5 * l1)
                above, below = l1 - self.r, l1 + self.r
                self.of_weights = _BarrierPair(above, below, self.mu / above, self.mu / below)
            W = self.of_weights.up - self.of_weights.down
        self.W = W
        self.best, self.since = np.inf, 0
        self.first, self.away = self.missing, np.ones(m)

    # ------------------------------------------------------------------------------------------ one iteration

    def step(self) -> None:
        designs, part, loss = self.designs, self.part, self.of_loss
        self.iterations += 1
        # what is solved to the last digit would only lose some
        self.goes_on = self.goes_on & (self.missing > SETTINGS.last_gap_share * self.first)
        miss_z = designs.forward(self.W, self.b) - self.scores.kink - (loss.up - loss.down)
        miss_d = self._missing_stationarity()
        miss_b = designs.sums(self.u)
        slope = loss.slope
        if self.has_l1:
            give = self.of_weights.slope
            stiff = part.ridge + 1.0 / give
        else:
            give, stiff = None, np.broadcast_to(part.ridge, self.W.shape) + 0.0
        self._factor(slope, stiff)

        def solved(mu, corrections) -> Any:
            mu_flat = designs.spread(mu) if np.ndim(mu) else mu
            of_loss, of_weights = corrections
            e = loss.constant(mu_flat, *of_loss)
            rhs_z, rhs_d = e - miss_z, -miss_d
            if self.has_l1:
                f = self.of_weights.constant(mu, *of_weights)
                rhs_d = rhs_d + f / give
            du, dW, db = self._solve(rhs_z, rhs_d, miss_b)
            moves = loss.moves(du, mu_flat, *of_loss)
            if not self.has_l1:
                return du, dW, db, moves, None, None
            dr = (dW - f) / give
            return du, dW, db, moves, dr, self.of_weights.moves(dr, mu, *of_weights)

        nothing = ((0.0, 0.0), (0.0, 0.0))
        du, _, _, moves, dr, weight_moves = predicted = solved(0.0, nothing)
        primal, dual = self._longest(predicted)
        mu = self._mean_product(primal, dual, predicted)
        share = (mu / np.maximum(self.mu, SMALLEST_DIVISOR)).clip(0.0, 1.0) ** 3
        of_loss = -moves[0] * du, moves[1] * du
        of_weights = (-weight_moves[0] * dr, weight_moves[1] * dr) if self.has_l1 else (0.0, 0.0)
        corrected = solved(share * self.mu, (of_loss, of_weights))
        primal, dual = self._longest(corrected)
        self._move(corrected, primal, dual)
        self.systems = {}
        # a start far from the equations comes nearer to them first, by less than a full step each time
        self.away *= 1.0 - np.minimum(primal, dual)
        worst = float(
            (self.missing * (1.0 + self.away) + self.away * self.first)[self.goes_on].max(initial=0.0)
        )
        self.best, self.since = (worst, 0) if worst < 0.5 * self.best else (self.best, self.since + 1)

    def _missing_stationarity(self) -> np.ndarray:
        return self.designs.adjoint(self.u) + self.part.ridge * self.W + self.r

    def _factor(self, slope: np.ndarray, stiff: np.ndarray) -> None:
        self.systems = {k: CentralSystem(self.designs, k) for k in np.flatnonzero(self.goes_on).tolist()}
        for k, system in self.systems.items():
            system.factor(slope[self.designs.offsets[k] : self.designs.offsets[k + 1]], stiff[:, k])

    def _solve(self, rhs_z, rhs_d, miss_b):
        """(du, dW, db) of  X dW + db - slope du = rhs_z,  X^T du + stiff dW = rhs_d,  sum du = -miss_b."""
        designs = self.designs
        du, dW, db = np.zeros_like(rhs_z), np.zeros_like(rhs_d), np.zeros(designs.n_tasks)
        for k, system in self.systems.items():
            rows = slice(designs.offsets[k], designs.offsets[k + 1])
            du[rows], dW[:, k], db[k] = system.solve(rhs_z[rows], rhs_d[:, k], -miss_b[k])
        return du, dW, db

    def _longest(self, moves):
        """(m,) the longest steps of what is primal and what is dual, at most 1; the same where squares tie them."""
        du, _, _, loss_moves, dr, weight_moves = moves
        primal, dual = (
            np.minimum.reduceat(falls, self.designs.starts) for falls in self.of_loss.falls(loss_moves, du)
        )
        if self.has_l1:
            of_weights = (falls.min(axis=0) for falls in self.of_weights.falls(weight_moves, dr))
            primal, dual = map(np.minimum, (primal, dual), of_weights)
        if self.part.has_ridge:
            primal = dual = np.minimum(primal, dual)
        # a fall by all that there is, or more, is cut short
        return tuple(self.goes_on / np.maximum(-each / SETTINGS.step_share, 1.0) for each in (primal, dual))

    def _mean_product(self, primal: Any = 0.0, dual: Any = 0.0, moves: Any = None):
        """(m,) mu, after such steps."""
        designs = self.designs
        if moves is None:
            of_loss = self.of_loss.products()
            of_weights = self.of_weights.products() if self.has_l1 else ()
        else:
            du, _, _, loss_moves, dr, weight_moves = moves
            of_loss = self.of_loss.products(designs.spread(primal), designs.spread(dual), loss_moves, du)
            of_weights = self.of_weights.products(primal, dual, weight_moves, dr) if self.has_l1 else ()
        total = designs.sums(of_loss[0] + of_loss[1])
        for each in of_weights:
            total = total + each.sum(axis=0) if each is not None else total
        return total / self._pairs()

    def _pairs(self):
        count = 2.0 * self.designs.counts
        return count + len(self.part.unit) * (self.of_weights.is_bounded + 1.0) if self.has_l1 else count

    def _move(self, moves, primal, dual) -> None:
        designs, loss, scores = self.designs, self.of_loss, self.scores
        du, dW, db, (d_up, d_down), dr, weight_moves = moves
        p, q = designs.spread(primal), designs.spread(dual) * du
        loss.up += p * d_up
        loss.down += p * d_down
        loss.above -= q
        loss.below += q
        self.u = np.where(loss.below < loss.above, scores.low + loss.below, scores.high - loss.above)
        self.b += primal * db
        if self.has_l1:
            pair, q = self.of_weights, dual * dr
            pair.up += primal * weight_moves[0]
            pair.down += primal * weight_moves[1]
            pair.above -= q
            self.r = self.part.l1 - pair.above
            if pair.is_bounded:
                pair.below += q
                self.r = np.where(pair.below < pair.above, pair.below - self.part.l1, self.r)
            self.W = pair.up - pair.down
        else:
            self.W = self.W + primal * dW
        self.mu = self._mean_product()

    # ------------------------------------------------------------------------------------------ where it stands

    @property
    def missing(self) -> np.ndarray:
        """(m,) the gap that complementarity leaves."""
        return self.mu * self._pairs()

    @property
    def at(self) -> NewtonState:
        """Weights that their multipliers hold at zero more firmly than they stand off it are zero."""
        v = self.W
        if self.has_l1:
            pair = self.of_weights
            scale = self.part.l1 if not self.part.penalty.nonneg else np.maximum(np.abs(self.r), self.part.l1)
            size = np.maximum(pair.up, pair.down) * scale
            room = np.where(pair.up > pair.down, pair.above, pair.below) / np.maximum(scale, SMALLEST_DIVISOR)
            typical = np.maximum(size.max(axis=0), SMALLEST_DIVISOR)
            # where the loss is heavy, a small weight may count: zero is for what costs nothing to speak of
            most = self.objectives(self.W) + SETTINGS.zeroing_share * self.missing
            dear = np.ones(len(most), bool)
            for share in SETTINGS.zero_shares:
                some = np.where(size < share * room * typical, 0.0, self.W)
                some = np.maximum(some, 0.0) if self.part.penalty.nonneg else some
                v = np.where(dear, some, v)
                dear = dear & (self.objectives(v) > most)
                if not dear.any():
                    break
            v = np.where(dear, self.W, v)
        return NewtonState(self.W, self.b, None, self.u, self.r, v)  # type: ignore[arg-type]

    def objectives(self, W: np.ndarray) -> np.ndarray:
        """(m,) of every task."""
        z = self.designs.forward(W, self.b)
        return self.scores.values(z, self.designs) + self.part.values(W)

    @property
    def is_stalled(self) -> bool:
        return self.since >= SETTINGS.patience_iterations
