"""Objective against time on SARCOS from random starts: coordinate minimisation, its competitors in the paper, and what is faster.

All run on the same Gram matrices, so that the price of an iteration does not depend on the samples; the one pass over the data that
makes them is not counted, for none. Seconds are those of the processor, and stand still while an objective is looked at.
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import mtldsl as mtl
from benchmarks.papers.fetr_methods import BOX, fetr_problem
from mtldsl import datasets
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.solvers.design.sufficient_statistics import quadratic_data
from mtldsl.solvers.nonconvex.block_updates import accelerate, alternate, flip_flop, update_in_turn
from mtldsl.solvers.nonconvex.variable_projection import minimize_profile
from mtldsl.solvers.nonconvex.weights_step import LinearStep
from mtldsl.solvers.solver import Point

__all__ = ["METHODS", "Trace", "run_descent", "sarcos_problem"]

METHODS = (
    "coordinate minimisation",
    "flip-flop",
    "projected gradient",
    "projected gradient, a step a block",
    "joint",
    "lbfgs",
)
FUDGE = 1e-3


def sarcos_problem(scaled: bool, tasks=None) -> mtl.Problem:
    """eta = rho = 1 and the paper's box on the 4,449-row subsample, or on tasks of the user that share their inputs: as they are, or with
    inputs and labels standardised."""
    tasks = tasks or datasets.load_sarcos()
    if scaled:
        Y = np.column_stack([(y - y.mean()) / y.std() for y in tasks.per_task(tasks.targets)])
        tasks = mtl.Tasks.shared(tasks.X, Y, task_names=tasks.task_names).standardize()
    return fetr_problem(tasks, 1.0, 1.0, intercept=False)


@dataclass
class Trace:
    """Seconds and objectives at the looks of one run, each with the matrices that the method had there."""

    most_seconds: float
    most_iterations: int
    value: object  # Point -> objective
    seconds: list[float] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)

    def __post_init__(self):
        self.began, self.paused = time.process_time(), 0.0

    @property
    def now(self) -> float:
        return time.process_time() - self.began - self.paused

    @property
    def expired(self) -> bool:
        return self.now > self.most_seconds

    def __call__(self, point: Point) -> bool:
        seconds, stopped = self.now, time.process_time()
        self.seconds.append(seconds)
        self.iterations.append(point.iteration)
        self.objectives.append(self.value(point))
        self.paused += time.process_time() - stopped
        return self.expired or point.iteration >= self.most_iterations


class _Model:
    """The objective as plain arithmetic of (W, Sigma1, Sigma2), for projected gradient."""

    def __init__(self, form):
        self.form = form
        self.data = quadratic_data(form)
        self.step = LinearStep(form, self.data, "sylvester")  # as the paper on SARCOS
        (self.name,) = (block.name for block in form.weight_blocks)

    def value(self, W, A, B) -> float:
        """A and B as (eigenvalues, eigenvectors)."""
        (a, _), (b, _) = A, B
        AWB = _dense(A) @ W @ _dense(B)
        logs = W.shape[1] * np.log(a).sum() + W.shape[0] * np.log(b).sum()
        return self.data.value(W) + float(np.vdot(W, AWB)) - logs

    def gradients(self, W, A, B):
        dense_A, dense_B = _dense(A), _dense(B)
        WB = W @ dense_B
        of_W = self.data.product(W) - self.data.cross + 2.0 * dense_A @ WB
        of_A = WB @ W.T - W.shape[1] * _inverse(A)
        of_B = W.T @ dense_A @ W - W.shape[0] * _inverse(B)
        return of_W, of_A, of_B


def _dense(S):
    return (S[1] * S[0]) @ S[1].T


def _inverse(S):
    return (S[1] / S[0]) @ S[1].T


def _project(dense):
    """The nearest matrix with eigenvalues within the box."""
    values, vectors = np.linalg.eigh(0.5 * (dense + dense.T))
    return np.clip(values, *BOX), vectors


def random_start(shape, rng):
    """W of standard normal entries; matrices with random eigenvectors and eigenvalues drawn uniformly in the logarithm."""
    W = rng.normal(size=shape)

    def matrix(n):
        basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
        return np.exp(rng.uniform(*np.log(BOX), size=n)), basis

    return W, matrix(shape[0]), matrix(shape[1])


def projected_gradient(model: _Model, W, A, B, watch: Trace, *, separate: bool) -> None:
    """A gradient step on all three at once, both matrices projected, the step halved until the objective falls enough.

    "Enough" is f(x+) <= f(x) - ||x+ - x||^2 / (4 t), the usual test of a projected step; a step that is taken at once is doubled for
    the next. separate: a step size of its own for each of the three, tried one after another, the kindest reading of the method.
    """
    f, t = model.value(W, A, B), [1.0, 1.0, 1.0]
    watch(Point({}, iteration=0, structures=(W, A, B)))
    iteration = looked = 0
    while True:
        iteration += 1
        for group in ((0,), (1,), (2,)) if separate else ((0, 1, 2),):
            gradients = model.gradients(W, A, B)
            tries = 0
            while tries < 60:
                tries += 1
                step = t[group[0]]
                new_W = W - step * gradients[0] if 0 in group else W
                new_A = _project(_dense(A) - step * gradients[1]) if 1 in group else A
                new_B = _project(_dense(B) - step * gradients[2]) if 2 in group else B
                moved = (
                    np.sum((new_W - W) ** 2)
                    + np.sum((_dense(new_A) - _dense(A)) ** 2)
                    + np.sum((_dense(new_B) - _dense(B)) ** 2)
                )
                value = model.value(new_W, new_A, new_B)
                if value <= f - moved / (4.0 * step):
                    W, A, B, f = new_W, new_A, new_B, value
                    break
                for k in group:
                    t[k] *= 0.5
            if tries == 1:
                for k in group:
                    t[k] *= 2.0
        # every twentieth of the way is often enough for a figure
        if iteration <= 20 or iteration >= 1.05 * looked or watch.expired:
            looked = iteration
            if watch(Point({}, iteration=iteration, structures=(W, A, B))):
                return


def run_method(model: _Model, method: str, start, *, seconds: float, iterations: int) -> Trace:
    """One run from one start."""
    form, step = model.form, model.step
    W, A, B = start
    x = {model.name: W}
    structures = {"Sigma1": SpectralMatrix.of(_dense(A)), "Sigma2": SpectralMatrix.of(_dense(B))}
    if method.startswith("projected"):
        trace = Trace(seconds, 10**9, lambda point: model.value(*point.structures))
        projected_gradient(model, W, A, B, trace, separate="block" in method)
        return trace

    def value(point):
        return step.value(point.blocks, getattr(point, "structures", None))

    trace = Trace(seconds, iterations, value)
    if method in ("coordinate minimisation", "flip-flop"):
        update = update_in_turn if method != "flip-flop" else flip_flop(FUDGE)
        alternate(
            step,
            form,
            update,
            x,
            structures,
            max_iter=iterations,
            watch=trace,
            descends=method != "flip-flop",
        )
        return trace
    fast = LinearStep(form, model.data, "auto")
    if method == "joint":
        accelerate(fast, form, x, structures, tol=1e-12, max_iter=iterations, watch=trace)
        return trace
    # L-BFGS looks where it may be done: so mild a tolerance makes its first look early, each later one at a third of that residual
    minimize_profile(fast, form, x, structures, tol=1.0, max_iter=iterations, watch=trace)
    return trace


def run_descent(
    results: Path, *, starts: int = 10, seconds: float = 10.0, iterations: int = 1000, log=print, tasks=None
) -> None:
    """Every method from `starts` random starts, on both scalings; the traces go to results/fetr_descent.csv."""
    path = results / "fetr_descent.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("data", "method", "start", "iteration", "seconds", "objective"))
        for scaled in (False, True):
            data = "standardised" if scaled else "as published"
            model = _Model(sarcos_problem(scaled, tasks).form())
            for method in METHODS:
                for number in range(starts):
                    start = random_start(model.data.shape, np.random.default_rng(number))
                    trace = run_method(model, method, start, seconds=seconds, iterations=iterations)
                    for row in zip(trace.iterations, trace.seconds, trace.objectives, strict=True):
                        writer.writerow((data, method, number, row[0], f"{row[1]:.6f}", f"{row[2]:.12g}"))
                file.flush()
                log(
                    f"{data}, {method}: {trace.iterations[-1]} iterations, {trace.seconds[-1]:.2f} s, objective {trace.objectives[-1]:.6f}",
                    flush=True,
                )
