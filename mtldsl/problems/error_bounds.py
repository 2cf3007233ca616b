r"""Scores of rows at all values of a parameter between two fits, bounded by convex duality.

For   F(W) = f(W) + t g(W) + 1/2 tr(W M W^T)   with f, g convex, any W_0 and any multipliers, with Fenchel-Young gaps e_f, e_g at W_0,

    the optimum W* lies in the ball of the M-norm around (W_0 + V) / 2  with the radius^2  ||W_0 - V||^2 / 4 + e_f + t e_g,

where V M = - (the slopes of f and t g that the multipliers are): W_0 and V are the ends of a diameter (docs/mathematics.md, section 15).
Two fits, mixed in any shares, are such a W_0 and such multipliers: no fit is needed for a bound between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.loss import SeparableLoss
from mtldsl.certificates.dual_bound import ROUNDING_UNITS, Bound, prove
from mtldsl.certificates.multipliers import SETTINGS as MULTIPLIERS
from mtldsl.errors import ModelError, SolverError
from mtldsl.language.scalars import Parameter, put_back
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm, single_block

_ROUNDING = ROUNDING_UNITS * float(np.finfo(float).eps)


@dataclass(frozen=True)
class BallSettings:
    """Limits of what counts as strongly convex, and of the search for an interval of an intercept."""

    eigenvalue_share: float = 1e-10  # of the largest one, below which an eigenvalue of M counts as 0
    proportion_rounding: float = 1e-12  # relative, of a coefficient typed as a multiple of the parameter
    doublings: int = 30  # of its length at most until an end is proven; then it is infinite
    secants: int = 3  # after which an end that is proven may stay as far as it is
    overshoot: float = 1.03  # times the root of a secant: beyond the end where slopes are nearly linear


SETTINGS = BallSettings()


# --------------------------------------------------------------------------------------------------------------
# A model as a function of a parameter.


@dataclass(frozen=True, eq=False)
class FunctionPart:
    """A function of f or g: `moves` in g. A quadratic one has the multiplier of its gradient, whose gap is 0 however fits are mixed.

    modulus : of it, what M has of this function already
    """

    index: int
    moves: bool
    is_quadratic: bool
    modulus: float


class ParameterForm:
    """A model as f(W) + t g(W) + 1/2 tr(W M W^T), where t is the parameter, or one over it.

    form     : the normal form at the parameter's value 1
    inverse  : whether t is one over the parameter: everything is then divided by it
    M        : (m, m) between tasks, positive definite
    by_task  : whether every task has a ball of its own, for nothing couples tasks
    """

    def __init__(self, problem: Any, parameter: Parameter, between: tuple[float, float], typed: str):
        with put_back([parameter]):
            parameter.value = 1.0
            self.form: NormalForm = problem.form()
            parameter.value = np.pi
            other: NormalForm = problem.form()
        name = parameter.name
        block = _refuse_unknown(problem, parameter, self.form, typed)
        self.block, (_, self.n_tasks), self.intercept = block.name, block.shape, block.intercept
        proportional = [
            [_is_proportional(one, other, name, typed) for one, other in zip(ours, theirs, strict=True)]
            for ours, theirs in ((self.form.losses, other.losses), (self.form.functions, other.functions))
        ]
        strong = [_quadratic_of(f, self.block, self.n_tasks) for f in self.form.functions]
        sums = []
        for kind in (False, True):
            own = [
                Q for Q, grows in zip(strong, proportional[1], strict=True) if grows == kind and Q is not None
            ]
            sums.append(sum((Q for Q, _ in own), np.zeros((self.n_tasks, self.n_tasks))))
        least = [_least_eigenvalue(M) for M in sums]
        middle = float(np.sqrt(between[0] * between[1]))
        if max(least) <= 0.0:
            raise ModelError(
                f"no term makes the model strongly convex in {self.block}, and without one a fit says nothing of the weights at other values of {name}",
                term=typed,
                write_instead=f"add + 1e-3 * ridge({self.block})",
            )
        #: everything is divided by the parameter where its own quadratic is the stronger one
        self.inverse = middle * least[1] >= least[0]
        self.M = sums[self.inverse]
        self.M_inverse = np.linalg.inv(self.M)
        self.moving_losses = [grows != self.inverse for grows in proportional[0]]
        self.parts: list[FunctionPart] = []
        for k, (f, grows, Q) in enumerate(zip(self.form.functions, proportional[1], strong, strict=True)):
            modulus = 0.0
            if grows == self.inverse and Q is not None:
                if Q[1]:
                    continue
                modulus = float(Q[0][0, 0])
            self.parts.append(FunctionPart(k, grows != self.inverse, _is_quadratic(f), modulus))
        diagonal = not np.any(self.M - np.diag(np.diag(self.M)))
        alone = all(
            _is_quadratic(f)
            and f.atom.separable == "entries"
            and all(entry.right is None for entry in f.map.entries)
            for f in (self.form.functions[part.index] for part in self.parts)
        )
        self.by_task = diagonal and alone
        #: the M-norm of a row of inputs of a task is so many times its Euclidean one
        self.row_factors = np.sqrt(np.diag(self.M_inverse))
        #: squares of the M-norms of rounding in V M^-1, task by task, over those in V
        self.row_lengths = (
            np.diag(self.M_inverse) if diagonal else np.full(self.n_tasks, np.linalg.norm(self.M_inverse, 2))
        )

    def t(self, value: float) -> float:
        """Return what stands for a value of the parameter."""
        return 1.0 / value if self.inverse else value

    def unit(self, moves: bool, value: float) -> float:
        """Return what multipliers at a value of the parameter are divided by."""
        return value if moves != self.inverse else 1.0

    def grouped(self, by_task: np.ndarray) -> np.ndarray:
        """Sums over the tasks that share a ball: (m,) as it is, or (1,)."""
        return by_task if self.by_task else by_task.sum(keepdims=True)

    def inner(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The inner products tr(A M B^T) over the tasks that share a ball."""
        return self.grouped(np.einsum("ji,ji->i", A @ self.M, B))


def _refuse_unknown(problem: Any, parameter: Parameter, form: NormalForm, typed: str):
    """The single block of weights. ModelError with the reason where nothing is proven of such a model."""

    def refuse(what: str, write_instead: str = "leave regret out, and give values"):
        return ModelError(what, term=typed, write_instead=write_instead)

    if not form.is_convex:
        raise refuse(
            "the model is not convex, and its fits are stationary points: nothing is proven of others"
        )
    if not form.in_memory:
        raise refuse("the rows are not in this process, and a proof reads them at every value")
    if parameter in problem._inside_arguments:
        raise refuse(
            f"{parameter.name} stands inside an argument or a radius, and a proof is of what stands before terms"
        )
    block = single_block(form, "anything", several_losses=True)
    if isinstance(block, str):
        raise refuse(f"a proof is of one matrix of weights: {block.rstrip('.')}")
    for loss in form.losses:
        if not isinstance(loss.atom, SeparableLoss) or type(loss) is not LossTerm:
            raise refuse(
                f"{loss.typed} is not a sum over samples, and bounds of its multipliers between two fits are not known"
            )
    if block.intercept is not None and len(form.losses) > 1:
        raise refuse(
            f"{len(form.losses)} losses share an intercept",
            f"write {block.name} without an intercept, or one loss",
        )
    for f in form.functions:
        if f.is_constraint:
            raise refuse(
                f"{f.typed} is a constraint, which fits meet to a tolerance only",
                "write a penalty in its place",
            )
        if f.map.blocks != (block.name,) or f.atom.accuracy > 0.0:
            raise refuse(f"{f.typed} is not a function of {block.name} alone whose value is known exactly")
    return block


def _is_proportional(one: Any, other: Any, name: str, typed: str) -> bool:
    """Tell whether a coefficient is a multiple of the parameter, and no constant, by its values at 1 and pi: lam^2 + 2 is 3 lam at 1 and 2.

    ModelError where it is neither.
    """
    a, b = (
        np.asarray(getattr(term, "coefficients", getattr(term, "coefficient", None))) for term in (one, other)
    )
    if np.array_equal(a, b):
        return False
    if np.allclose(np.pi * a, b, rtol=SETTINGS.proportion_rounding, atol=0.0):
        return True
    raise ModelError(
        f"the coefficient of {one.typed} is neither a constant nor a multiple of {name}",
        term=typed,
        write_instead=f"write {name} times a number before it",
    )


def _quadratic_of(f: FunctionTerm, block: str, n_tasks: int) -> tuple[np.ndarray, bool] | None:
    """((m, m) a quadratic between tasks that the function holds, whether that is all of it); None where it holds none."""
    if f.map.identity_of != block:
        return None
    Q = f.atom.task_quadratic(n_tasks)
    if Q is not None:
        return f.coefficient * Q, True
    modulus = (
        f.coefficient * f.atom.strong_convexity
    )  # of another function, the multipliers hold the quadratic already
    return (modulus * np.eye(n_tasks), False) if modulus > 0.0 and _is_quadratic(f) else None


def _least_eigenvalue(M: np.ndarray) -> float:
    """The least eigenvalue, 0 where it is rounding."""
    values = np.linalg.eigvalsh(M)
    return float(values[0]) if values[0] > SETTINGS.eigenvalue_share * values[-1] else 0.0


def _is_quadratic(f: FunctionTerm) -> bool:
    """Tell whether the gradient is linear."""
    atom, columns = f.atom, f.map.shape[1]
    return any(
        one is not None
        for one in (atom.task_quadratic(columns), atom.entry_quadratic, atom.two_sided_quadratic())
    )


# --------------------------------------------------------------------------------------------------------------
# Rows whose scores are bounded: those held out, and with an intercept those learned on too.


class ScoredRows:
    """Rows of every task, x of its scores x^T w, flat, task after task; less the `centre` (d, m) of a task, where there is one."""

    def __init__(self, inputs: Any, centre: np.ndarray | None, factors: np.ndarray):
        self._centre, self._factors = centre, factors
        self._inputs: list = inputs if isinstance(inputs, list) else [inputs] * len(factors)
        self.counts = np.array([X.shape[0] for X in self._inputs], dtype=int)
        self.task = np.repeat(np.arange(len(factors)), self.counts)
        squares = np.concatenate([_row_squares(X) for X in self._inputs])
        sizes = squares
        if centre is not None:
            far = np.einsum("ji,ji->i", centre, centre)[self.task]
            sizes = squares + far
            cross = self.scores(centre, centred=False)
            squares = np.maximum(squares - 2.0 * cross + far, 0.0) + _ROUNDING * (squares + far)
        #: (N,) lengths of the rows in the norm that is dual to the M-norm
        self.lengths = np.sqrt(squares) * factors[self.task]
        #: what rounding is relative to: the same before the centre is taken off
        self._sizes = np.sqrt(sizes) * factors[self.task]

    def scores(self, W: np.ndarray, centred: bool = True) -> np.ndarray:
        """(N,) the scores of weights (d, m)."""
        flat = np.concatenate([X @ w for X, w in zip(self._inputs, W.T, strict=True)])
        if self._centre is None or not centred:
            return flat
        return flat - np.einsum("ji,ji->i", self._centre, W)[self.task]

    def lengths_of(self, g: np.ndarray) -> np.ndarray:
        """(m,) lengths of the sums of g_j x_j over the rows of a task, as those of rows."""
        summed = np.column_stack([X.T @ own for X, own in zip(self._inputs, self.split(g), strict=True)])
        if self._centre is not None:
            summed = summed - self._centre * self.sums(g)
        sizes = np.bincount(self.task, np.abs(g) * self._sizes, len(self.counts))
        return np.linalg.norm(summed, axis=0) * self._factors + _ROUNDING * sizes

    def sums(self, flat: np.ndarray) -> np.ndarray:
        """(m,) sums over the rows of a task."""
        return np.bincount(self.task, flat, len(self.counts))

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        """One vector a task."""
        return np.split(flat, np.cumsum(self.counts)[:-1])


def _row_squares(X: Any) -> np.ndarray:
    """Squares of the lengths of rows, dense or sparse."""
    return (
        np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    )


# --------------------------------------------------------------------------------------------------------------
# A fit as the bounds read it.


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit at one value: weights, multipliers, and their products with the rows.

    vectors : W, and V of the still and of the moving terms, (d, m) each, V M^-1 in place of V
    scores  : of these, of the rows held out;  training : of those learned on, with an intercept only
    z, u    : predictions and multipliers of each loss, at the parameter's value 1
    parts   : (argument, multiplier, conjugate) of each function that is not quadratic
    constant: (m,) intercepts beside centred rows, 0 without
    work    : (m,) what predictions are sums of;  pull : (m,) the lengths of multipliers;  residual : (m,) their sums, with intercepts
    """

    value: float
    vectors: list[np.ndarray]
    scores: list[np.ndarray]
    training: list[np.ndarray]
    z: list[np.ndarray]
    u: list[np.ndarray]
    parts: list[tuple[np.ndarray, np.ndarray, float]]
    constant: np.ndarray
    work: np.ndarray
    pull: np.ndarray
    residual: np.ndarray
    reach: np.ndarray


class FoldBounds:
    """Bounds of the scores of one fold's held-out rows: `fit` for every solution, a `Bracket` for two of them.

    rows_held_out : inputs of the rows to score, of the shared table, or of every task that is learned
    """

    def __init__(self, model: ParameterForm, rows_held_out: Any):
        self.model, form = model, model.form
        #: (m,) Frobenius norms of the inputs of every loss
        self.data_lengths = [np.sqrt(np.square(loss.column_lengths).sum(axis=0)) for loss in form.losses]
        self._centre: np.ndarray | None = None
        self._training: ScoredRows | None = None
        if model.intercept is not None:
            tasks = form.losses[0].tasks
            self._centre = tasks.adjoint(np.ones(tasks.n_samples)) / tasks.counts
            self._training = ScoredRows(list(tasks.inputs), self._centre, model.row_factors)
        self.rows = ScoredRows(rows_held_out, self._centre, model.row_factors)

    def fit(self, form: NormalForm, value: float, blocks: Blocks, bound: Bound | None) -> Fit:
        """Read a solution. form : that of the value; bound : what its certificate proves. SolverError where it proves nothing."""
        model = self.model
        if bound is None or not bound.loss_duals:
            bound = prove(form, blocks)
        if not np.isfinite(bound.value):
            raise SolverError(f"there is no bound on the optimum at {value:g}: {bound.note}")
        W, m = blocks[model.block], model.n_tasks
        slopes = [model.form.zeros(), model.form.zeros()]
        z, u, work, pull, residual, reach = [], [], *np.zeros((4, m))
        for loss, dual, moves in zip(model.form.losses, bound.loss_duals, model.moving_losses, strict=True):
            own = loss.dual_project(np.asarray(dual) / model.unit(moves, value))
            loss.add_adjoint(own, slopes[moves])
            u.append(own)
            z.append(loss.predictions(blocks))
            work += np.einsum("ji,ji->i", np.broadcast_to(loss.column_lengths, W.shape), np.abs(W))
            pull += np.sqrt(loss.tasks.sums_of(np.square, own))
            if model.intercept is not None:
                b, sizes = blocks[model.intercept][0], loss.absolute_sums(own)
                residual += np.abs(loss.sums(own)) + _ROUNDING * sizes
                largest = np.maximum.reduceat(np.abs(z[-1]), loss.tasks.offsets[:-1])
                reach += MULTIPLIERS.reach_factor * np.maximum(np.abs(b), largest)
                work += np.abs(b) * np.sqrt(loss.tasks.counts)
        parts = []
        for part in model.parts:
            f = model.form.functions[part.index]
            y = f.map.forward(blocks)
            if part.is_quadratic:
                v = f.coefficient * f.atom.gradient(y) - (part.modulus * W if part.modulus else 0.0)
            else:
                v = np.asarray(bound.function_duals[part.index]) / model.unit(part.moves, value)
                outside = f.dual_gauge(v)
                v = v / (outside * (1.0 + 4.0 * _ROUNDING)) if outside > 1.0 else v
                parts.append((y, v, 0.0 if f.atom.norm else f.conjugate(v)))
            f.map.add_adjoint(v, slopes[part.moves])
        vectors = [W, *(-slope[model.block] @ model.M_inverse for slope in slopes)]
        constant = np.zeros(m)
        if self._centre is not None:
            constant = blocks[cast(str, model.intercept)][0] + np.einsum("ji,ji->i", self._centre, W)
        training = [] if self._training is None else [self._training.scores(A) for A in vectors]
        scores = [self.rows.scores(A) for A in vectors]
        return Fit(value, vectors, scores, training, z, u, parts, constant, work, pull, residual, reach)


@dataclass(frozen=True, eq=False)
class ScoreBounds:
    """Scores (one vector a task) of the held-out rows at all values of an interval: of any minimizer they lie between low and high.

    radius : of the balls in the middle, and the larger of those at either end, summed over balls
    """

    low: list[np.ndarray]
    high: list[np.ndarray]
    radius: tuple[float, float]
    rows: ScoredRows
    centres: list[tuple[np.ndarray, np.ndarray]]  # (scores (N,), radii) of the balls at either end
    intercepts: tuple[np.ndarray, np.ndarray]  # (m,) where they lie, 0 without

    def least_means(self, truth: Sequence[np.ndarray], function, slope) -> np.ndarray:
        """(m,) numbers that the mean of a convex function of (label, score) over the rows of a task is never below; NaN without a bound.

        A convex function lies above its tangent, here at the middle of the scores. The tangent is linear in the weights, so that a ball bounds
        it by one length, where row by row each is at its own best.
        """
        y = np.concatenate(truth)
        there, rows = ~np.isnan(y), self.rows
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # a task without labels here, or an intercept without an end
            z = 0.5 * (np.concatenate(self.low) + np.concatenate(self.high))
            g = np.where(there, slope(y, z), 0.0)
            values = rows.sums(np.where(there, function(y, z), 0.0))
            lengths, total = rows.lengths_of(g), rows.sums(g)
            ends = []
            for centre, radius in self.centres:
                rounding = _ROUNDING * rows.sums(np.abs(g) * (np.abs(centre) + np.abs(z)))
                ends.append(rows.sums(g * (centre - z)) - lengths * radius - rounding)
            low, high = self.intercepts
            moved = np.where(total > 0.0, total * low, total * high)
            return (values * (1.0 - _ROUNDING) + np.minimum(*ends) + moved) / rows.sums(there.astype(float))


class Bracket:
    """Two fits at values a < b, and what mixtures of them prove in between."""

    def __init__(self, fold: FoldBounds, a: Fit, b: Fit):
        model = fold.model
        self.fold, self.model, self.a, self.b = fold, model, a, b
        every = [*a.vectors, *b.vectors]
        gram = np.empty((len(every), len(every), len(model.grouped(np.zeros(model.n_tasks)))))
        for k, x in enumerate(every):
            for j in range(k + 1):
                gram[k, j] = gram[j, k] = model.inner(x, every[j])
        self._gram = np.moveaxis(gram, -1, 0)  # (balls, 6, 6)
        self._sizes = np.sqrt(np.maximum(np.einsum("gkk->gk", self._gram), 0.0))

    def mix(self, share: float, one, other):
        """(1 - share) times the first fit's, plus share times the second's."""
        return (1.0 - share) * one + share * other

    def bounds(self, low: float, high: float) -> ScoreBounds:
        """Bound the scores at all values in [low, high], which lies between the two fits.

        The mixture of both fits that belongs to the middle proves a ball at every value; its upper end in a direction is convex in t, so
        that the ends of the interval bound it.
        """
        model, a, b = self.model, self.a, self.b
        middle = float(np.sqrt(low * high))
        share = float(np.log(middle / a.value) / np.log(b.value / a.value))
        t_low, t_high, t_middle = model.t(low), model.t(high), model.t(middle)
        most = max(t_low, t_high)
        still, moving = self._gaps(share)
        slack = self._slack(most)

        def radius(t: float, t_gap: float) -> np.ndarray:
            c = np.concatenate([(1.0 - share) * np.array([1.0, -1.0, -t]), share * np.array([1.0, -1.0, -t])])
            size = self._sizes @ np.abs(c)
            squares = np.maximum(np.einsum("k,gkl,l->g", c, self._gram, c), 0.0) + _ROUNDING * np.square(size)
            return np.sqrt(0.25 * squares + still + t_gap * moving) + slack + _ROUNDING * size

        radii = [(t, radius(t, most)) for t in (t_low, t_high)]
        vectors = [self.mix(share, x, y) for x, y in zip(a.scores, b.scores, strict=True)]
        rows = self.fold.rows
        lows, highs = self._ends(vectors, rows, radii)
        least = largest = np.zeros(model.n_tasks)
        if model.intercept is not None:
            least, largest = self._intercepts(share, radii)
            lows, highs = lows + least[rows.task], highs + largest[rows.task]
        summed = float(radius(t_middle, t_middle).sum()), float(np.maximum(radii[0][1], radii[1][1]).sum())
        centres = [(0.5 * (vectors[0] + vectors[1] + t * vectors[2]), r) for t, r in radii]
        return ScoreBounds(rows.split(lows), rows.split(highs), summed, rows, centres, (least, largest))

    def _ends(self, vectors: list[np.ndarray], rows: ScoredRows, radii) -> tuple[np.ndarray, np.ndarray]:
        """(N,) the least and the largest scores over the balls at both ends of an interval."""
        lows = highs = None
        for t, radius in radii:
            centre = 0.5 * (vectors[0] + vectors[1] + t * vectors[2])
            reach = rows.lengths * (radius[rows.task] if self.model.by_task else radius[0])
            low, high = centre - reach, centre + reach
            lows = low if lows is None else np.minimum(lows, low)
            highs = high if highs is None else np.maximum(highs, high)
        assert lows is not None and highs is not None
        return lows, highs

    def _gaps(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """The Fenchel-Young gaps of the still and of the moving terms at a mixture, over the tasks that share a ball; rounding is paid for."""
        model, a, b = self.model, self.a, self.b
        found = np.zeros((2, model.n_tasks))
        whole = np.zeros(2)
        work, pull = a.work + b.work, a.pull + b.pull
        for k, (loss, moves) in enumerate(zip(model.form.losses, model.moving_losses, strict=True)):
            atom = cast(SeparableLoss, loss.atom)
            z, u, y = self.mix(share, a.z[k], b.z[k]), self.mix(share, a.u[k], b.u[k]), loss.tasks.targets
            s = 1.0 if loss.scale is None else loss.scale
            inside, _ = atom.within(u / s, y)
            value, conjugate = s * atom.pointwise(z, y), s * atom.pointwise_conjugate(inside, y)
            gaps = np.broadcast_to(value + conjugate - u * z, u.shape)
            rounding = _ROUNDING * (np.abs(value) + np.abs(conjugate) + np.abs(u * y))
            found[int(moves)] += np.maximum(loss.tasks.sums(gaps), 0.0) + loss.tasks.sums(
                np.broadcast_to(rounding, u.shape)
            )
            found[int(moves)] += _ROUNDING * work * pull + (a.residual + b.residual) * np.maximum(
                a.reach, b.reach
            )
        rough = [part for part in model.parts if not part.is_quadratic]
        for part, one, other in zip(rough, a.parts, b.parts, strict=True):
            f = model.form.functions[part.index]
            y, v = self.mix(share, one[0], other[0]), self.mix(share, one[1], other[1])
            value, inner = f.coefficient * f.atom.value(y), float(np.vdot(v, y))
            conjugate = self.mix(share, one[2], other[2])  # is convex
            rounding = _ROUNDING * (
                abs(value) + float(np.abs(v).ravel() @ np.abs(y).ravel()) + abs(conjugate)
            )
            whole[int(part.moves)] += max(value + conjugate - inner, 0.0) + rounding
        still, moving = (model.grouped(one) + more for one, more in zip(found, whole, strict=True))
        return still, moving

    def _slack(self, t: float) -> np.ndarray:
        """Rounding of V: by so much a ball may lie elsewhere."""
        model, pull = self.model, self.a.pull + self.b.pull
        squares = sum(
            np.square((t if moves else 1.0) * lengths)
            for lengths, moves in zip(self.fold.data_lengths, model.moving_losses, strict=True)
        )
        return _ROUNDING * np.sqrt(model.grouped(squares * np.square(pull) * model.row_lengths))

    def _intercepts(self, share: float, radii) -> tuple[np.ndarray, np.ndarray]:
        """(m,) where the intercepts beside centred rows lie: the slopes of the loss add up to zero there, and rise with every score."""
        fold, (loss,) = self.fold, self.model.form.losses
        rows, atom, y = cast(ScoredRows, fold._training), cast(SeparableLoss, loss.atom), loss.tasks.targets
        s = 1.0 if loss.scale is None else loss.scale
        vectors = [self.mix(share, p, q) for p, q in zip(self.a.training, self.b.training, strict=True)]
        lows, highs = self._ends(vectors, rows, radii)
        start, step = self.mix(share, self.a.constant, self.b.constant), np.zeros(self.model.n_tasks)
        widths = loss.tasks.sums(highs - lows) / loss.tasks.counts
        step = np.maximum(0.5 * widths, _ROUNDING * (1.0 + np.abs(start)))

        def excess(moved: np.ndarray, scores: np.ndarray, sign: float) -> np.ndarray:
            """By how much slopes at intercepts (m,) add up to more than rounding, on the side of `sign`: above 0 beyond the end."""
            slopes = s * atom.slope(scores + (start + sign * moved)[rows.task], y)
            return sign * loss.tasks.sums(slopes) - _ROUNDING * loss.tasks.sums(np.abs(slopes))

        found = []
        for sign, scores in ((-1.0, highs), (1.0, lows)):
            near, far = np.zeros(len(start)), step
            below, above = excess(near, scores, sign), excess(far, scores, sign)
            for k in range(SETTINGS.doublings):
                known, rise = above > 0.0, above - below
                root = near + (near - far) * below / np.where(rise > 0.0, rise, np.nan)
                tried = np.nan_to_num(SETTINGS.overshoot * root, nan=np.inf)
                tried = np.clip(tried, np.where(known, near, 1.25 * far), np.where(known, far, 4.0 * far))
                there = excess(tried, scores, sign)
                beyond = there > 0.0
                if beyond.all():
                    far, above = tried, there
                    break
                stays = known & ~beyond
                near, below = (
                    np.where(known, np.where(beyond, near, tried), far),
                    np.where(known, np.where(beyond, below, there), above),
                )
                far, above = np.where(stays, far, tried), np.where(stays, above, there)
                if k + 1 >= SETTINGS.secants and (above > 0.0).all():
                    break
            found.append(start + sign * np.where(above > 0.0, far, np.inf))
        return found[0], found[1]


def extreme_answers(
    truth: Sequence[np.ndarray], low: Sequence[np.ndarray], high: Sequence[np.ndarray], needs: str
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(the best, the worst) answers between two, task by task: what is nearest to the truth, and what is farthest from it.

    low, high : labels, numbers, probabilities or scores, each rising with the score of its row

    >>> best, worst = extreme_answers([np.array([1.0, -1.0])], [np.array([-1.0, -1.0])], [np.array([1.0, -1.0])], "labels")
    >>> best[0].tolist(), worst[0].tolist()
    ([1.0, -1.0], [-1.0, -1.0])
    """
    best, worst = [], []
    for y, a, b in zip(truth, low, high, strict=True):
        if needs == "scores":
            wanted = np.where(y > 0, np.inf, -np.inf)
        else:
            wanted = 0.5 * (y + 1.0) if needs == "probabilities" else y
        wanted = np.where(np.isnan(wanted), a, wanted)  # rows without a label, which nobody scores
        best.append(np.clip(wanted, a, b))
        nearer_low = wanted < 0.0 if needs == "scores" else np.abs(wanted - a) <= np.abs(wanted - b)
        worst.append(np.where(nearer_low, b, a))
    return best, worst
