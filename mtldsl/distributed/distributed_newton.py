"""Newton's method by passes over rows elsewhere: gradients and Hessians summed where the rows are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.losses.regression import SquaredLoss
from mtldsl.data.products import require_gram_memory
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.distributed_solver import (
    CheckpointFolder,
    DistributedRun,
    DistributedSolver,
    sum_over_samples,
)
from mtldsl.distributed.distributed_term import (
    DistributedDual,
    DistributedTerm,
    intercepts_beside,
    step_between,
)
from mtldsl.distributed.dual_statistics import DualStatistics, Slab, weighted_grams
from mtldsl.distributed.partitions import PartitionTasks
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task
from mtldsl.normal_form.terms.row_compression import factor_of
from mtldsl.normal_form.terms.row_statistics import SufficientStatistics, moments_of
from mtldsl.solvers.solver import Point, Watch

# --------------------------------------------------------------------------------------------------------------
# What Newton steps by passes compute where the rows are: value, gradient and Hessian of a loss, or of its Moreau envelope.


@dataclass(frozen=True)
class DistributedNewtonSettings:
    """Numbers of Newton's method.

    feature_samples       : samples a feature, at least, that a Hessian is estimated by: off by some tenth, it costs a step or two more, and fifteen sixteenths of its price less (measured)
    hessian_share         : and of the samples
    whole_share           : a share above this is all of them
    sampling_seed         : of the random numbers that choose rows, beside the number of the part
    probe_ratio           : shift of a prediction, relative to its size, over which the slope of a proximal step is measured
    inner_error_share     : of what the step before was to gain, that the next may be off by
    initial_damping_share : of the penalty, at the first step
    damping_factor        : by which damping grows after a step that failed
    damping_fall_factor   : and falls after one that kept its promise
    min_damping_share     : of the penalty
    accepted_share        : of a promise, from which on a step is made
    kept_share            : and from which on the promise is kept
    multiplier_share      : of what multipliers have moved by: they step where the next Newton step promises less
    penalty_factor        : by which the penalty grows then
    residual_factor       : if the residual fell by less
    """

    feature_samples: float = 50.0
    hessian_share: float = 1.0 / 16.0
    whole_share: float = 0.5
    sampling_seed: int = 7
    probe_ratio: float = 1e-6
    inner_error_share: float = 1e-3
    initial_damping_share: float = 0.1
    damping_factor: float = 4.0
    damping_fall_factor: float = 0.4
    min_damping_share: float = 1e-6
    accepted_share: float = 0.1
    kept_share: float = 0.7
    multiplier_share: float = 0.1
    penalty_factor: float = 2.0
    residual_factor: float = 0.5


SETTINGS = DistributedNewtonSettings()


def hessian_shares(counts: np.ndarray, n_features: int) -> np.ndarray:
    """(m,) of every task's samples, the share that its Hessian is estimated by.

    >>> hessian_shares(np.array([100, 100_000, 10_000_000]), 99)
    array([1.    , 0.0625, 0.0625])
    """
    shares = np.maximum(SETTINGS.feature_samples * (n_features + 1) / counts, SETTINGS.hessian_share)
    return np.where(shares > SETTINGS.whole_share, 1.0, shares)


def look(part: PartitionTasks, n_tasks: int, atom, coefficients, V, b, by_sign: bool, shares) -> dict:
    """Sums over one part's rows, of a smooth loss; the Hessian by `shares` (m,) of them."""
    sums = DualStatistics(part, n_tasks, atom, coefficients, V, b, by_sign)
    for slab in sums.slabs():
        sums.add(slab, atom.gradient(slab.z, slab.y, slab.s))
    shares, few, times = shares[part.which], part, 1.0
    if part.tasks.is_shared:
        shares = np.full_like(shares, shares.max())
    if (shares < 1.0).any():
        few, times = _drawn(part, shares)
    own = coefficients.copy()
    own[part.which] *= times
    at = sums if few is part else DualStatistics(few, n_tasks, atom, own, V, b, by_sign)
    grams = weighted_grams(few.tasks, atom.hessian(at.z, few.tasks.targets, at.s))
    return _told(part, sums, grams, float(sums.values.sum()), 0.0)


def _drawn(part: PartitionTasks, shares: np.ndarray) -> tuple[PartitionTasks, np.ndarray]:
    """(a share of the rows of each task, the same at every pass and on every worker; how many rows stand behind each of them (k,))."""
    rng, tasks = np.random.default_rng([SETTINGS.sampling_seed, part.index]), part.tasks
    sizes = [tasks.X.shape[0]] if tasks.is_shared else tasks.counts.tolist()
    rows = [
        np.sort(rng.permutation(n)[: math.ceil(share * n)]) for n, share in zip(sizes, shares, strict=False)
    ]
    few = tasks.take_rows(rows[0] if tasks.is_shared else rows)
    times = [n / len(own) for n, own in zip(sizes, rows, strict=True)]
    return PartitionTasks(few, part.which, part.index), np.array(times)


def step(
    part: PartitionTasks, u, n_tasks: int, atom, coefficients, V, b, by_sign: bool, penalty: float, stepped_from: float | None
):  # fmt: skip
    """(u, sums over one part's rows): zeros at first, then a step made with the penalty of the steps before."""
    stepped = np.zeros(part.tasks.n_samples)  # what was held is what another pass may ask for again
    sent = n_tasks, atom, coefficients, V, b, by_sign, penalty
    return stepped, sums_at_multipliers(part, u, *sent, stepped_from, stepped)


def sums_at_multipliers(
    part: PartitionTasks, u, n_tasks: int, atom, coefficients, V, b, by_sign: bool, penalty: float,
    stepped_from: float | None = None, stepped: np.ndarray | None = None,
) -> dict:  # fmt: skip
    """Sums over one part's rows, of a loss with kinks at multipliers u; where they step, they are written into `stepped` first."""
    sums, envelope, moved = DualStatistics(part, n_tasks, atom, coefficients, V, b, by_sign), 0.0, 0.0
    held, curved = (np.zeros(part.tasks.n_samples) if u is None else u), np.empty(part.tasks.n_samples)
    for slab in sums.slabs():
        own = held[slab.flat]
        if stepped_from is not None:
            own = _envelope(atom, slab, own, stepped_from)[1]
        if stepped is not None:
            stepped[slab.flat] = own
        z, new = _envelope(atom, slab, own, penalty)
        away, change = z - slab.z - own / penalty, new - own
        envelope += atom.value(z, slab.y, slab.s) + 0.5 * penalty * float(away @ away)
        envelope -= 0.5 / penalty * float(own @ own)
        moved += float(change @ change)
        curved[slab.flat] = _curved(atom, slab, own, z, penalty)
        sums.add(slab, new)
    return _told(part, sums, weighted_grams(part.tasks, curved), envelope, moved)


def _envelope(atom, slab: Slab, u, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """(the proximal point, the multipliers there)."""
    v = slab.z + u / penalty
    z = atom.prox(v, slab.y, 1.0 / penalty, slab.s)
    return z, atom.dual_project(penalty * (v - z), slab.y, slab.s)


def _curved(atom, slab: Slab, u, z, penalty: float) -> np.ndarray:
    """The generalised second derivative of the envelope: the proximal step's slope by a difference; what is next to nothing is nothing."""
    shift = SETTINGS.probe_ratio * (1.0 + np.abs(slab.z))
    ahead = atom.prox(slab.z + u / penalty + shift, slab.y, 1.0 / penalty, slab.s)
    weights = np.clip(penalty * (1.0 - (ahead - z) / shift), 0.0, penalty)
    weights[weights < 1e-3 * penalty] = 0.0
    return weights


def _told(
    part: PartitionTasks, sums: DualStatistics, grams: dict[int, np.ndarray], envelope: float, moved: float
) -> dict:
    hessian = {int(part.which[i]): G for i, G in grams.items()}
    return {"seen": sums.seen(), "hessian": hessian, "envelope": envelope, "moved": moved}


# --------------------------------------------------------------------------------------------------------------
# A quadratic model of a loss of rows that are elsewhere, as a loss of a few rows here.


class NewtonModel:
    """<g_i, (w, b)_i> + 1/2 (w, b)_i^T H_i (w, b)_i of every task i, as a function of the step (w, b); the intercepts at their best for w.

    H_i : (d+1, d+1), its Hessian over features and the column of ones, plus `damping` times the Gram matrix
    """

    def __init__(
        self, loss: LossTerm, hessian: dict[int, np.ndarray], moments: SufficientStatistics, damping: float
    ):
        self.loss, self.m = loss, loss.tasks.n_tasks
        self.H = np.stack([damping * moments.gram(i) + hessian.get(i, 0.0) for i in range(self.m)])
        self.totals = self.H[:, -1, -1]
        self.centres = (self.H[:, :-1, -1] / self.totals[:, None]).T  # (d, m)

    def term(self, y: Blocks, adjoint: np.ndarray, sums: np.ndarray) -> LossTerm:
        V, G, g = self.loss.map.forward(y), self.H[:, :-1, :-1], adjoint.T
        if self.loss.intercepts:
            c = self.centres.T
            G = G - self.totals[:, None, None] * (c[:, :, None] * c[:, None, :])
            g = g - c * sums[:, None]
        factors = [factor_of(one, own[:, None]) for one, own in zip(G, g, strict=True)]
        like = self.loss.tasks
        tasks = Tasks(
            stacked=np.concatenate([R for R, _ in factors]), counts=np.full(self.m, len(V)),
            targets=np.concatenate([R @ v - Z[:, 0] for (R, Z), v in zip(factors, V.T, strict=True)]),
            task_names=like.task_names, feature_names=like.feature_names,
        )  # fmt: skip
        return LossTerm(SquaredLoss(), np.ones(self.m), tasks, self.loss.map, (), self.loss.typed)

    def rise(self, x: Blocks, y: Blocks, adjoint: np.ndarray, sums: np.ndarray) -> float:
        """The model's value at x, from y."""
        D, b = step_between(self.loss, x, y)
        ends = np.vstack([D, b[None, :]])
        curved = float(np.einsum("im,mij,jm->", ends, self.H, ends, optimize=True))
        return float(np.vdot(adjoint, D) + sums @ b) + 0.5 * curved


# --------------------------------------------------------------------------------------------------------------
# Newton steps of rows that are elsewhere, a pass over the data each; losses with kinks by the method of multipliers.


class NewtonByPasses(DistributedSolver):
    """minimize f(A x) + h(x): f a sum over samples, smooth or with a proximal step, h any functions and constraints.

    A smooth f is taken as it is, its Hessian estimated by some of many rows. With multipliers u of the rows and a penalty rho, f becomes its Moreau envelope e(A x + u / rho), smooth, with the gradient
    A^T u+, u+ = rho (v - prox(v)) in the domain of f*, and the generalised Hessian rho A^T (1 - prox'(v)) A. One pass tells both; h beside the
    quadratic model, damped in the metric of A^T A, is solved here; a step that does not lower the envelope + h as promised is taken
    again, more damped. Where a step promises little, u+ replaces u. Rows keep u and nothing else.

    Sources: Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming", 1976; Li, Sun and
    Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM J. Optim. 28 (2018).
    """

    name = "newton_by_passes"
    summary = "Newton steps, each one pass over rows that are elsewhere: smooth losses, and kinks by multipliers that stay beside the rows"

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        loss = sum_over_samples(form)
        if isinstance(loss, str):
            return loss
        try:
            require_gram_memory(
                loss.tasks.n_features + 1, loss.tasks.n_tasks, "name consensus, which forms none"
            )
        except SolverError as error:
            return f"{error}."
        return None

    def is_nearest(self, form: NormalForm) -> bool:
        return not any(map(has_one_maximum_a_task, form.losses))

    def usual_passes(self, form: NormalForm) -> tuple[int, int]:
        """Measured: three losses of either kind beside four penalties, 400 to 3,000 rows of 6 to 60 features, and the runs of half a GB to 8 GB."""
        return (7, 15) if form.losses[0].atom.smooth else (40, 120)


class _DistributedNewtonRun(DistributedRun):
    solver = NewtonByPasses.name

    def __init__(self, form: NormalForm, start: Point | None, file: CheckpointFolder | None):
        super().__init__(form, start, file)
        (loss,) = form.losses
        assert isinstance(loss, DistributedTerm)
        self.loss, self.moments = loss, moments_of(loss.tasks)
        self.penalty, self.damping = _first_penalty(loss), SETTINGS.initial_damping_share
        self.apart = math.inf
        # a penalty without the multipliers that it was for would be too steep
        if self.left is not None and (loss.atom.smooth or self.left["rows"] is not None):
            self.rows, numbers = self.left["rows"], self.left["numbers"]
            self.penalty, self.damping, self.apart = (numbers[n] for n in ("penalty", "damping", "apart"))

    def solve(self, max_iter: int, watch: Watch) -> Point:
        told = self._pass(self.x, self._functions(self.x), None)
        while True:
            u, notes = DistributedDual.of(told["seen"]), {"penalty": self.penalty}
            point = Point(self.x, [u], self.inner.duals, self.passes, {}, notes)
            done = watch(point) or self.passes >= max_iter
            self.keep({"penalty": self.penalty, "damping": self.damping, "apart": self.apart}, now=done)
            if done:
                return point
            model = NewtonModel(self.loss, told["hessian"], self.moments, self.damping * self.penalty)
            sums = self.loss.sums(u)
            term = model.term(self.x, u.adjoint, sums)
            new = self.inner.solve([term], self.x, self._missing(told, u), told["functions"])
            new |= intercepts_beside(self.loss, new, self.x, sums, model.centres, model.totals)
            functions = self._functions(new)
            there = told["envelope"] + model.rise(new, self.x, u.adjoint, sums)
            promised = told["here"] - there - functions  # rounded as what is gained is
            if (
                not self.loss.atom.smooth
                and promised <= SETTINGS.multiplier_share * told["moved"] / self.penalty
            ):
                old, apart = self.penalty, told["moved"] / self.penalty**2
                if apart > SETTINGS.residual_factor * self.apart:
                    self.penalty *= SETTINGS.penalty_factor
                self.apart = apart
                told = self._pass(self.x, told["functions"], old)
                continue
            seen = self._pass(new, functions, None)
            gained = told["here"] - seen["here"]
            if gained >= SETTINGS.accepted_share * promised:
                self.x, told = new, seen
                if gained >= SETTINGS.kept_share * promised:
                    self.damping = max(
                        SETTINGS.damping_fall_factor * self.damping, SETTINGS.min_damping_share
                    )
            else:
                self.damping = min(SETTINGS.damping_factor * self.damping, 1.0)
                if self.damping == 1.0 and gained <= 0.0 and promised <= 1e-12 * abs(told["here"]):
                    return point

    def _pass(self, x: Blocks, functions: float, stepped_from: float | None) -> dict:
        """At x, where the regularizers have the value `functions`, with the multipliers as they are; or, where these are to step, after that, made with the penalty of the steps before."""
        loss, z = self.loss, self.loss.predictions(x)
        sent = loss.tasks.n_tasks, loss.atom, loss.coefficients, z.V, z.b, bool(loss.intercepts)
        run = loss.tasks.parts.run
        if loss.atom.smooth:
            told = run(look, *sent, hessian_shares(loss.tasks.counts, loss.tasks.n_features))
        elif self.rows is None or stepped_from is not None:
            self.rows, told = run(step, *sent, self.penalty, stepped_from, state=self.rows, stateful=True)
        else:  # multipliers stay as they are: what is lost of them with a worker takes no such pass to have again
            told = run(sums_at_multipliers, *sent, self.penalty, state=self.rows)
        loss.known(x, told["seen"])
        self.passes += 1
        return told | {"functions": functions, "here": told["envelope"] + functions}

    def _functions(self, x: Blocks) -> float:
        return float(sum(f.value(x) for f in self.form.functions))

    def _missing(self, told: dict, u: DistributedDual) -> float:
        """Return what a step may be off by."""
        if not self.loss.atom.smooth:
            return SETTINGS.inner_error_share * told["moved"] / self.penalty or math.inf
        return SETTINGS.inner_error_share * self.inner_error(self.x, [u], told["here"])


def _first_penalty(loss) -> float:
    """A smooth loss's curvature; else a multiplier's size over that of a prediction."""
    if loss.atom.smooth and np.isfinite(loss.atom.curvature):
        return float(np.median(loss.atom.curvature * loss.coefficients))
    facts = loss.tasks.label_facts
    spread = np.sqrt(np.maximum(facts.squares / facts.counts, np.finfo(float).tiny))
    return float(np.median(loss.coefficients / spread))


SOLVER = NewtonByPasses(_DistributedNewtonRun)
