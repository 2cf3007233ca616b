"""Epochs of dual ascent beside kernel regularizers, one sample at a time, and the steps of kernel weights between them."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.atoms.learned_structures.task_kernels import TaskKernel
from mtldsl.normal_form.form import FunctionTerm, LossTerm, NormalForm, single_block
from mtldsl.solvers.design.kernel_arguments import TaskStates
from mtldsl.solvers.sdca.dual_state import ActiveFace, FlatSamples, Nodes
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.interrupts import eigh
from mtldsl.utils.parallel import asked_jobs

if TYPE_CHECKING:
    from mtldsl.atoms.learned_structures.task_kernels import KernelWeightBall


@dataclass(frozen=True)
class DualAscentSettings:
    """Limits of passes, faces, looks and steps of kernel weights.

    kernel_tasks         : beyond which a quadratic would need too large a T x T inverse
    singular_share       : of the largest eigenvalue: a quadratic whose smallest is below it has no kernel
    longer_factor        : of a step of kernel weights in the direction of the one before
    shorter_factor       : of one that turns
    vanishing_max_factor : of (E.1), for weights on their way to zero
    vanishing_share      : of the largest weight, below which one is on its way there
    bold_max_factor      : of (E.1), for the others, which could overshoot
    weights_gap_share    : of the relative gap, the sum of weights at their least beside the largest: the gap that is left is not theirs
    moved_share          : of the largest kernel weight: a move by more brings samples back that were left out
    shift_factor         : of the step of the method of multipliers on intercepts, in units of `DualAscentRun._shifts`
    clear_share          : of the last pass's largest violation, by which the slope of a sample that rests at a bound is clear of zero
    batch_rows           : samples that are looked at together
    settled_share        : of the largest violation seen: below it one is none, but for rounding
    slow_ratio           : of a gap to the one before, above which it is slow
    patience_passes      : for every update of kernel weights
    look_passes          : between looks while kernel weights are learned; 15 to 100 converge for p = 1, 40 % of all passes on 1 seed of 8
    answer_rounds        : in which intercepts and the face answer each other
    face_min_products    : of conjugate gradients, in a step on a face
    face_max_products    : the same at most
    face_min_passes      : between two such steps
    face_max_passes      : the same at most
    unseen_flops         : of passes that go by without a look at the time
    look_flops           : that the calls of a look at the gap are worth
    face_flops           : that the calls of a step on a face are worth
    pause_passes         : before a look at the gap
    threads_entries      : of data that make a second thread worth its start
    """

    kernel_tasks: int = 2000
    singular_share: float = 1e-12
    longer_factor: float = 1.3
    shorter_factor: float = 0.5
    vanishing_max_factor: float = 40.0
    vanishing_share: float = 0.01
    bold_max_factor: float = 4.0
    weights_gap_share: float = 0.1
    moved_share: float = 0.01
    shift_factor: float = 6.0
    clear_share: float = 0.1
    batch_rows: int = 1 << 16
    settled_share: float = 1e-14
    slow_ratio: float = 0.9
    patience_passes: int = 16
    look_passes: int = 25
    answer_rounds: int = 3
    face_min_products: int = 8
    face_max_products: int = 500
    face_min_passes: int = 5
    face_max_passes: int = 40
    unseen_flops: float = 3e7
    look_flops: float = 1e6
    face_flops: float = 2e6
    pause_passes: int = 100
    threads_entries: int = 2_000_000


SETTINGS = DualAscentSettings()


# --------------------------------------------------------------------------------------------------------------
# Which models are one loss beside one kernel regularizer, and that regularizer as an `MKLNorm`.


@dataclass(frozen=True)
class KernelForm:
    """minimize loss + coefficient * norm; `name` is that of the norm's weights, None where the model has none."""

    loss: LossTerm
    norm: MKLNorm
    coefficient: float
    name: str | None


def kernel_form(form: NormalForm) -> KernelForm | str:
    """The form, or one sentence that says why it is none."""
    facts = single_block(form)
    if isinstance(facts, str):
        return facts
    loss = facts.loss
    if not loss.atom.separable:
        return f"{loss.typed} is not a sum over samples."
    atom: Any = loss.atom  # separable: such an atom knows its conjugate's parts
    if not atom.entropic and atom.dual_quadratic(_some_labels(loss)) is None:
        return f"the conjugate of {loss.typed} is neither quadratic on an interval nor an entropy."
    if not form.functions:
        return "there is no regularizer whose conjugate is finite."
    for f in form.functions:
        if f.is_constraint:
            return f"{f.typed} is not quadratic in the loss's weights."
    if len(form.functions) == 1 and form.functions[0].atom.weighs_kernels:
        term: Any = form.functions[0]  # it weighs kernels: its atom is an MKLNorm, its weights have names
        return KernelForm(loss, term.atom, term.coefficient, term.names[0])
    return _of_quadratics(form.functions, loss)


def _some_labels(loss: LossTerm) -> np.ndarray:
    """Labels to ask by: whether a conjugate is quadratic does not depend on them, and they may be elsewhere."""
    return loss.tasks.targets if loss.tasks.in_memory else np.ones(1)


@lru_cache(maxsize=8)
def _tasks_alone(T: int) -> MKLNorm:
    """Every form with plain ridges is asked for it, whichever solver takes the form."""
    kernel = TaskKernel("identity", sparse.eye_array(T, format="csr"))
    return MKLNorm((kernel,), about=np.array([1.0]))


def _of_quadratics(functions: tuple[FunctionTerm, ...], loss: LossTerm) -> KernelForm | str:
    """Quadratics 1/2 tr(W L W^T) of the tasks, as the one kernel L^{-1}."""
    T = loss.tasks.n_tasks
    modulus = 0.0
    for f in functions:  # plain ridges, without a T x T matrix
        same = not f.atom.norm and f.atom.finite_dual and f.atom.curvature == f.atom.strong_convexity
        modulus += f.coefficient * f.atom.curvature if same else np.nan
    if np.isfinite(modulus):
        return KernelForm(loss, _tasks_alone(T), modulus, None)
    if SETTINGS.kernel_tasks < T:
        return f"{functions[0].typed} would need the inverse of a {T} x {T} matrix."
    total = np.zeros((T, T))
    for f in functions:
        L = f.atom.task_quadratic(T)
        if L is None:
            return f"{f.typed} is not quadratic between tasks."
        total += f.coefficient * L
    values, basis = eigh(total)
    if values[0] <= SETTINGS.singular_share * values[-1]:
        return "the quadratic penalties are singular: + 1e-6 * ridge(W) would give them an inverse."
    kernel = TaskKernel("inverse", sparse.csr_array(basis / np.sqrt(values)))
    return KernelForm(loss, MKLNorm((kernel,), about=np.array([1.0])), 1.0, None)


# --------------------------------------------------------------------------------------------------------------
# Kernel weights between passes: the closed form (E.1), with longer steps where it keeps going the same way.


class WeightsStep:
    """theta <- theta (E.1(theta) / theta)^longer, into the ball; (E.1) is the minimiser where the parts W_m are kept, `KernelWeightBall.update`.

    A weight that tends to zero, as most do for p = 1, falls by the same small factor at every step of (E.1); so `longer`, one a
    weight, grows while its weight goes the same way.
    """

    def __init__(self, ball: KernelWeightBall, n: int):
        self.ball = ball
        self.longer, self.before = np.ones(n), np.zeros(n)
        # for larger p, (E.1) is nearly the best step itself
        boldest = SETTINGS.bold_max_factor
        self.boldest = max(boldest / min(ball.p, boldest) ** 2, 1.0)

    def __call__(self, theta: np.ndarray, b: np.ndarray, gap: float) -> np.ndarray:
        """The next weights; `gap` is the relative gap as far as it is known."""
        if not np.any(theta * b):
            return self.lifted(theta, gap)
        closed_form = self.ball.update(theta**2 * b)
        way = np.log(np.maximum(closed_form, np.finfo(float).tiny) / theta)
        same = way * self.before > 0
        most = np.where(
            (theta < SETTINGS.vanishing_share * theta.max()) & (way < 0),
            SETTINGS.vanishing_max_factor,
            self.boldest,
        )
        self.longer = np.clip(
            self.longer * np.where(same, SETTINGS.longer_factor, SETTINGS.shorter_factor), 1.0, most
        )
        self.before = way
        # one step multiplies by no more than a factor of ten
        return self.lifted(theta * np.exp(np.clip(self.longer * way, -2.3, 2.3)), gap)

    def lifted(self, theta: np.ndarray, gap: float) -> np.ndarray:
        """The weights in the ball, none so small that it could not come back: steps multiply, and zero would stay zero."""
        theta = np.maximum(theta, SETTINGS.weights_gap_share / theta.size * min(gap, 1.0) * theta.max())
        return theta * (self.ball.radius / np.linalg.norm(theta, self.ball.p))


# --------------------------------------------------------------------------------------------------------------
# Dual coordinate ascent on a loss beside a kernel regularizer: epochs over samples, kernel weights in closed form between them.

log = logging.getLogger("mtldsl")


class DualAscentRun:
    """State and epochs of   maximize over u   -sum_i conj_i(u_i) - 1/(2 c) max over theta of sum_m theta_m b_m(u),   c the coefficient.

    Source: MT-MKL, (E.1), (E.3) and (F.1), with factored kernels; shrinking after Hsieh et al., "A dual coordinate descent method for
    large-scale linear SVM", ICML 2008; logistic steps after Yu, Huang and Lin, Machine Learning 85 (2011).
    """

    def __init__(self, model: KernelForm, *, shrinking: bool, random_state: int):
        self.model, self.loss, self.norm, self.coefficient = model, model.loss, model.norm, model.coefficient
        loss, norm = model.loss, model.norm
        assert loss.map.identity_of is not None  # kernel_form lets through only a loss of one block itself
        self.block = loss.map.identity_of
        self.samples, self.nodes = FlatSamples(loss), Nodes(norm, loss.tasks.n_features)
        self.learns = (
            norm.weights_ball is not None and not np.isinf(norm.weights_ball.p) and len(norm.kernels) > 1
        )
        self.theta = np.array(norm.start((loss.tasks.n_features, loss.tasks.n_tasks))[0], float)
        ball: Any = norm.weights_ball  # there, where weights are learned
        self.weights_step: Any = WeightsStep(ball, len(norm.kernels)) if self.learns else None
        self.shrinking = shrinking and not self.samples.entropic
        self.rng = np.random.default_rng(random_state)
        self.random = self.rng.integers(1, 2**63, size=self.samples.n_tasks).astype(np.uint64)
        self.table = self.samples.table(len(self.nodes.cells))
        self.table[:, 0] = self.samples.start()
        if self.table[:, 0].any():  # an entropy starts inside
            self.nodes.fill(self.loss.tasks.adjoint(self.u))
        self.index = np.arange(self.samples.n, dtype=np.int64)
        self.intercepts, self.shift = np.zeros(self.samples.n_tasks), np.zeros(self.samples.n_tasks)
        self.epoch, self.last_gap = 0, np.inf
        self.per_row = (
            self.samples.n_features
            if not self.samples.is_sparse
            else self.samples.data.size / max(self.samples.indptr.size - 1, 1)
        )
        self.work = self.per_row * self.samples.n  # multiplications of the last pass, and of all of them
        self.worked, self.face_from = 0.0, SETTINGS.face_flops
        self.gain = self.rate = 0.0  # of the dual value, in the last pass and for every row that it visited
        self.patience = 1  # passes for every update of the kernel weights
        # not before some passes: what is solved by then need not wait for the compilation of the products
        self.face_products, self.face_pause = SETTINGS.face_min_products, SETTINGS.face_min_passes
        self.next_face = 2 * SETTINGS.face_min_passes
        self.threads = 1
        if max(self.samples.data.size, self.samples.dense.size) > SETTINGS.threads_entries:
            self.threads = min(asked_jobs() or min(os.cpu_count() or 1, 8), self.samples.n_tasks)
        self.table[:, 5:] = self.samples.squared_norms(self.nodes.places.cell_of, len(self.nodes.cells))
        if self.loss.intercepts:
            self.shift = self._shifts()
        self.be_all_active()

    def _shifts(self) -> np.ndarray:
        """(T,) steps of the method of multipliers on the intercepts: how far one has to move for the multipliers' sum to change by one.

        A multiplier answers by as much as its interval is wide, and by no more than its own curvature allows.
        """
        n, s = self.nodes.places, self.samples
        values = self.theta[n.kernel] * n.factor**2 / self.coefficient
        diagonal = np.zeros((s.n_tasks, len(self.nodes.cells)))
        np.add.at(diagonal, (np.repeat(np.arange(s.n_tasks), np.diff(n.entry_of)), n.cell), values)
        curved = np.einsum("ij,ij->i", diagonal[self.loss.tasks.task_of], self.table[:, 5:])
        if not s.entropic:
            curved = curved + self.table[:, 4]
        width = self.table[:, 2] - self.table[:, 1]
        answers = 1.0 / np.maximum(curved, 1.0 / width)
        return SETTINGS.shift_factor / np.add.reduceat(answers, s.offsets[:-1])

    def start_from(self, u, theta, intercepts=None) -> None:
        """Go on from multipliers and weights of an earlier run."""
        self.table[:, 0] = self.samples.start(u)
        if self.learns and theta is not None and len(theta) == len(self.theta):
            self.theta = self.weights_step.lifted(np.array(theta, float), self.last_gap)
        if intercepts is not None and self.loss.intercepts:
            self.intercepts = np.array(intercepts, float)
        self.nodes.fill(self.loss.tasks.adjoint(self.u))
        self.be_all_active()

    def be_all_active(self) -> None:
        self.active = np.diff(self.samples.offsets)
        self.bounds = np.tile([-np.inf, np.inf], (self.samples.n_tasks, 1))

    @property
    def u(self) -> np.ndarray:
        """(N,) the multipliers."""
        return self.table[:, 0].copy()

    @property
    def n_active(self) -> int:
        return int(self.active.sum())

    @property
    def is_small(self) -> bool:
        """Tell whether the certificate, with its T x T matrices and its passes over the data, costs next to nothing."""
        entries = max(self.samples.data.size, self.samples.dense.size)
        return self.samples.n_tasks**2 * self.samples.n_features < 10**8 and entries < 10**6

    # ------------------------------------------------------------------------------------------------- an epoch

    def sweep(self, passes: int = 1, wanted: float = 0.0) -> float:
        """Passes over the active samples, tasks in random order, fewer in tasks that come down to the violation wanted. Returns the largest
        violation that the last of them met."""
        from mtldsl.solvers.sdca.sdca_kernels import sweep

        s, n = self.samples, self.nodes
        theta = self.theta / self.coefficient
        order = self.rng.permutation(s.n_tasks)
        apart = self.threads > 1 and self.nodes.tasks_are_apart
        states = tuple(
            TaskStates(s.offsets, self.index, self.active, self.shift, self.intercepts, self.random)
        )
        told = np.zeros((s.n_tasks, 5))

        def run(tasks):
            sweep(
                tasks, passes, wanted, states, tuple(s.inputs), tuple(s.support), tuple(n.places),
                self.table, s.entropic, theta, n.store, self.bounds, told, self.shrinking,
            )  # fmt: skip

        if apart:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(run, np.array_split(order, self.threads)))
        else:
            run(order)
        # sums over tasks, not over threads: the same bits for any number of them
        turns = max(int(told[:, 2].max()), 1)
        self.epoch += turns
        self.gain, rows = told[:, :2].sum(axis=0).tolist()
        self.rate = self.gain / max(rows, 1.0)
        self.work = rows * self.per_row
        self.worked += self.work * turns
        least, most = told[:, 3], told[:, 4]
        if not self.unlinked:  # one program, not one a task
            least, most = least.min(), most.max()
            self.bounds[:] = (least if least < 0 else -np.inf, most if most > 0 else np.inf)
        return float(np.max(most - least))

    @property
    def unlinked(self) -> bool:
        """Tell whether nothing links the tasks, no kernel, weight or intercept: then some passes over each may go by before the next task."""
        return not self.learns and not self.loss.intercepts and self.nodes.tasks_are_apart

    def _passes(self, until: int) -> int:
        """Return how many passes may go by before anything else is to be done."""
        if not self.unlinked:
            return 1
        return max(1, min(until - self.epoch, int(SETTINGS.unseen_flops / max(self.work, 1.0))))

    def _pause(self) -> int:
        """Passes before the next look at the gap, which costs one over all samples and what its calls do."""
        more = max(int(0.4 * self.epoch), 1)
        if self.learns:
            return min(more, SETTINGS.look_passes)
        if not self.unlinked:
            return more
        look = SETTINGS.look_flops + max(self.samples.data.size, self.samples.dense.size)
        return max(more, min(int(2.0 * look / max(self.work, 1.0)), SETTINGS.pause_passes))

    def move_on_face(self) -> None:
        """A step of all multipliers off their bounds together, where that has been paying; it is tried again less often where not.

        What pays is the rise of the dual value for every row that is visited: a clock would make runs differ.
        """
        theta = self.theta / self.coefficient
        face = ActiveFace(self.samples, self.nodes, self.table, theta, self.shift, self.intercepts)
        if not face.free.size:
            return
        change, gain, whole = face.step(self.face_products)
        self.face_products = (
            min(2 * self.face_products, SETTINGS.face_max_products)
            if whole
            else max(self.face_products // 2, SETTINGS.face_min_products)
        )
        if gain > 0.0:
            self.table[face.free, 0] += change
            self.nodes.store += face.nodes_of(change)
            self.intercepts -= self.shift * np.bincount(
                face.task, weights=change, minlength=self.samples.n_tasks
            )
        pays = gain / (face.products * face.free.size) > self.rate
        self.face_pause = (
            max(self.face_pause // 2, SETTINGS.face_min_passes)
            if pays
            else min(2 * self.face_pause, SETTINGS.face_max_passes)
        )
        self.next_face, self.face_from = (
            self.epoch + self.face_pause,
            self.worked + (0.0 if pays else SETTINGS.face_flops),
        )

    def update_weights(self) -> float:
        """A step of the kernel weights; returns by how much they moved, relative to the largest."""
        if not self.learns:
            return 0.0
        before = self.theta
        self.theta = self.weights_step(before, self.nodes.sizes(), self.last_gap)
        return float(np.abs(self.theta - before).max() / self.theta.max())

    def centre_intercepts(self) -> None:
        """Method of multipliers: intercepts are those of sum_i u_i = 0 in every task, whose violation moves them further."""
        self.intercepts -= self.shift * np.add.reduceat(self.u, self.samples.offsets[:-1])

    # ------------------------------------------------------------------------------------------------- looking

    def blocks(self) -> dict[str, np.ndarray]:
        """The weights W = -Z K_theta / c, and the intercepts."""
        W = self.nodes.weights(self.theta / self.coefficient)
        return {self.block: W} | {name: self.intercepts[None, :].copy() for name in self.loss.intercepts}

    def look(self) -> float:
        """An estimate of the relative gap, from the state at hand (the certificate's is recomputed from a point alone); the samples that
        violate their conditions, wherever they were, are active from here.
        """
        b, z, u = self.nodes.sizes(), self.loss.predictions(self.blocks()), self.u
        primal = self.loss.value(z) + 0.5 * float(self.theta @ b) / self.coefficient
        support = (
            float(self.theta @ b) if self.norm.weights_ball is None else self.norm.weights_ball.support(b)
        )
        dual = -self.loss.conjugate(u) - 0.5 * support / self.coefficient
        if self.loss.intercepts:  # they pay for multipliers that do not sum to zero
            primal += float(np.abs(self.intercepts) @ np.abs(np.add.reduceat(u, self.samples.offsets[:-1])))
        if self.shrinking:
            self._activate(z)
        return (primal - dual) / max(abs(primal), abs(dual), np.finfo(float).tiny)

    def _activate(self, z) -> None:
        """Within every task the active samples first; some tasks at a time, as arrays of all samples add up beside sparse inputs."""
        offsets, first = self.samples.offsets, 0
        self.index, self.active = np.empty_like(self.index), np.diff(offsets)
        while first < self.samples.n_tasks:
            begin = offsets[first]
            last = max(
                int(np.searchsorted(offsets, begin + SETTINGS.batch_rows, side="right")) - 1, first + 1
            )
            some = slice(begin, offsets[last])
            u, low, high, linear, curvature = self.table[some, :5].T
            slope = linear + curvature * u - z[some]
            of = self.loss.tasks.task_of[some]
            lowest, highest = self.bounds[of].T
            rests = ((u <= low) & (slope > SETTINGS.clear_share * highest)) | (
                (u >= high) & (slope < SETTINGS.clear_share * lowest)
            )
            self.index[some] = begin + np.argsort(2 * of + rests, kind="stable")
            self.active[first:last] -= np.add.reduceat(rests, offsets[first:last] - begin, dtype=np.int64)
            first = last

    def point(self) -> Point:
        name = self.model.name
        structures: Any = None if name is None else {name: self.theta.copy()}
        state = {"solver": "dual_ascent"} | {key: array.copy() for key, array in self.state().items()}
        notes = {"active_samples": self.n_active, "support": int(np.count_nonzero(self.table[:, 0]))}
        return Point(self.blocks(), [self.u], None, self.epoch, state, notes, structures)

    def state(self) -> dict[str, np.ndarray]:
        """Return what a run goes on from."""
        return {"u": self.u, "theta": self.theta, "intercepts": self.intercepts}

    def run(self, tol: float, max_iter: int, watch: Watch, after_epoch=None) -> Point:
        """Epochs until the watch is satisfied. `after_epoch(violation)` is called after each of them."""
        wanted, largest, next_gap = 0.0, 0.0, self._pause() if self.unlinked else 1
        next_look = 1 if self.is_small and not self.unlinked else 16
        while True:
            until = (
                min(next_gap, max(self.next_face, self.epoch + 5), max_iter)
                if after_epoch is None
                else self.epoch + 1
            )
            violation = self.sweep(self._passes(until), wanted)
            last = self.epoch >= max_iter or watch.expired
            if self.epoch >= self.next_face and (not self.unlinked or self.worked >= self.face_from):
                self.move_on_face()
                # a face step answers to the intercepts as they were: without rounds of both, each overtakes the other
                for _ in range(SETTINGS.answer_rounds if self.loss.intercepts else 0):
                    self.centre_intercepts()
                    self.move_on_face()
            wanted = wanted or 0.1 * violation
            largest = max(largest, violation)
            settled = violation <= max(wanted, SETTINGS.settled_share * largest)
            # multipliers that have settled wait for nothing but the weights
            due = settled or last or self.epoch % self.patience == 0
            moved = self.update_weights() if due else 0.0
            if self.loss.intercepts:
                self.centre_intercepts()
            if after_epoch is not None:
                after_epoch(violation)
            if moved > SETTINGS.moved_share:
                self.be_all_active()
            if settled or last or self.epoch >= next_gap:
                next_gap = self.epoch + self._pause()
                before, self.last_gap = self.last_gap, self.look()
                # where the gap stands still, weights run ahead of multipliers that are far from their best
                slow = self.last_gap > SETTINGS.slow_ratio * before
                waits = slow and not settled
                self.patience = (
                    min(2 * self.patience, SETTINGS.patience_passes) if waits else max(self.patience // 2, 1)
                )
                log.debug(
                    "pass %d: %d active, violation %.2e, gap %.2e",
                    self.epoch,
                    self.n_active,
                    violation,
                    self.last_gap,
                )
                if self.last_gap <= 0.9 * tol or last or self.epoch >= next_look:
                    next_look = 2 * self.epoch
                    point = self.point()
                    if watch(point) or last:
                        return point
                if settled:
                    wanted = violation / 3.0
