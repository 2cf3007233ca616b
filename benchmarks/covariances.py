"""What learned covariances cost: SARCOS and School to a stationary point, the covariance step, the weights' step, size and memory.

    python benchmarks/covariances.py            # writes benchmarks/results/covariances.md
    python benchmarks/covariances.py --quick    # a minute, prints only

One thread. eta = rho = 1. Needs the published data, see `mtldsl.datasets`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import cvxpy as cp
import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mtldsl as mtl
from benchmarks.machine import RESULTS, fastest, stamp
from benchmarks.papers.fetr_methods import BOX, fetr_problem
from benchmarks.papers.fetr_weights import step_of
from mtldsl import datasets
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.reference import structures
from mtldsl.solvers.design.sufficient_statistics import quadratic_data
from mtldsl.solvers.linear_systems.sylvester import METHODS, solve_weights
from mtldsl.solvers.nonconvex import variable_projection
from mtldsl.solvers.nonconvex.alternating import SOLVER

REPEATS = 15  # of everything quick; the shortest counts


@contextmanager
def recorded():
    """A list of (CPU seconds, objective) that fills, a row for every step of L-BFGS in the block."""
    rows, started = [], time.process_time()

    class Recording(variable_projection.LBFGS):
        def step(self):
            moved = super().step()
            rows.append((time.process_time() - started, self.value))
            return moved

    with patch.object(variable_projection, "LBFGS", Recording):
        yield rows


# ------------------------------------------------------------------------------------------------------------ SARCOS


def sarcos(copies: int, scaled: bool) -> mtl.Tasks:
    tasks = datasets.load_sarcos()
    X, Y = tasks.X, np.column_stack(tasks.per_task(tasks.targets))
    if scaled:
        Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    tiled = mtl.Tasks.shared(np.tile(X, (copies, 1)), np.tile(Y, (copies, 1)))
    return tiled.standardize() if scaled else tiled


class _GramWatch:
    """Stops a solver at the profile's gradient as the Gram matrices show it, without a pass over the data."""

    expired = False

    def __init__(self, form, tol: float):
        self.tol, self.data = tol, quadratic_data(form)
        (self.penalty,) = form.functions

    def __call__(self, point) -> bool:
        W = point.blocks[self.data.block]
        parts = (
            self.data.product(W) - self.data.cross,
            self.penalty.coefficient * self.penalty.atom.gradient(W),
        )
        return np.linalg.norm(sum(parts)) <= self.tol * max(map(np.linalg.norm, parts))


def sarcos_table(quick: bool) -> list[str]:
    table = [
        "| SARCOS, 4,449-row subsample | rows | residual asked | reached | iterations | solve, ms | of it one pass over the data, ms | "
        "iterations, ms | certificate and the rest, ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for scaled in (False, True):
        for copies in (1, 10) if quick else (1, 10, 100):
            tasks = sarcos(copies, scaled)
            problem = fetr_problem(tasks, 1.0, 1.0, intercept=False)
            form = problem.form()
            repeats = REPEATS if copies < 100 else 4
            one_pass, _ = fastest(lambda f=form: quadratic_data(f), repeats)
            for tol in (1e-4, 1e-6):
                seconds, solution = fastest(lambda p=problem, t=tol: p.solve("alternating", tol=t), repeats)
                watch = _GramWatch(form, tol)
                solver, _ = fastest(
                    lambda f=form, t=tol, w=watch: SOLVER.solve(f, tol=t, max_iter=1000, start=None, watch=w),
                    repeats,
                )
                table.append(
                    f"| {'standardised' if scaled else 'as published'} | {tasks.X.shape[0]:,} | {tol:g} | "
                    f"{solution.stationarity.residual:.1e} | {solution.iterations} | {1e3 * seconds:.1f} | {1e3 * one_pass:.1f} | "
                    f"{1e3 * (solver - one_pass):.1f} | {1e3 * (seconds - solver):.1f} |"
                )
                print(table[-1], flush=True)
    return table


# ------------------------------------------------------------------------------------------------------------ School


def school_table(quick: bool) -> list[str]:
    table = [
        "| School | box | objective within 1e-4, s | 1e-6, s | residual 1e-4, s | iterations to it | final objective | its residual | "
        "run, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in ("as published", "standardised, intercepts"):
        tasks = datasets.load_school()
        if name != "as published":
            tasks = tasks.standardize()
        for box in ((0.01, 100.0), (0.1, 10.0)):
            problem = fetr_problem(tasks, 1.0, 1.0, intercept=name != "as published", box=box)
            with recorded() as rows:
                final = problem.solve("alternating", tol=1e-7, max_seconds=5.0 if quick else 60.0)
            seconds, values = np.array(rows).T
            within = [
                seconds[np.argmax(values <= final.objective + eps * abs(final.objective))]
                for eps in (1e-4, 1e-6)
            ]
            began = time.process_time()
            reached = problem.solve("alternating", tol=1e-4, max_seconds=5.0 if quick else 60.0)
            to_residual = time.process_time() - began
            proven = reached.status == "stationary"
            table.append(
                f"| {name} | [{box[0]:g}, {box[1]:g}] | {within[0]:.2f} | {within[1]:.2f} | "
                f"{to_residual:.2f}{'' if proven else f': only {reached.stationarity.residual:.1e}'} | {reached.iterations} | "
                f"{final.objective:.4f} | {final.stationarity.residual:.1e} | {seconds[-1]:.1f} |"
            )
            print(table[-1], flush=True)
    return table


# ------------------------------------------------------------------------------------------------- the covariance step


def sdp(M, c: float, backend: str, options: dict):
    """min tr(S M) - c log|S|, l I <= S <= u I: (CPU seconds with its compilation, S)"""
    S = cp.Variable(M.shape, symmetric=True)
    identity = np.eye(len(M))
    problem = cp.Problem(
        cp.Minimize(cp.trace(M @ S) - c * cp.log_det(S)), [S >> BOX[0] * identity, S << BOX[1] * identity]
    )
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=backend, **options)
    return time.process_time() - started, S.value


def covariance_table(quick: bool) -> list[str]:
    """Sigma1 (21 x 21), the rest given: at SARCOS' ridge weights, and at weights whose eigenvalues are within the box."""
    tasks, rng = sarcos(1, False), np.random.default_rng(0)
    ridge = np.linalg.solve(tasks.X.T @ tasks.X + np.eye(21), tasks.cross())
    _, penalties = step_of(21, 7, rng, rows=30)
    cases = {
        "SARCOS, Sigma2 = I": (ridge, np.eye(7)),
        "normal weights, Sigma2 in the box": (rng.normal(size=(21, 7)), penalties[0].columns.dense()),
    }
    table = [
        "| 21 x 21 | by | ms | times ours | objective above ours, relative | matrix, relative distance |",
        "|---|---|---|---|---|---|",
    ]
    for case, (W, Sigma2) in cases.items():
        table += _covariance_rows(case, W, Sigma2, quick)
    return table


def _covariance_rows(case: str, W, Sigma2, quick: bool) -> list[str]:
    m = W.shape[1]
    atom = MatrixNormal(1.0, 1.0).bound([Range(*BOX), Range(*BOX)])
    given = (SpectralMatrix.multiple_of_identity(1.0, len(W)), SpectralMatrix.of(Sigma2))
    ours, updated = fastest(lambda: atom.update_one(0, W, given), 200)
    best, M = updated[0].dense(), W @ Sigma2 @ W.T

    def value(S):
        return float(np.vdot(S, M)) - m * np.linalg.slogdet(S)[1]

    def compared(name, seconds, S):
        above = (value(S) - value(best)) / abs(value(best))
        away = np.linalg.norm(S - best) / np.linalg.norm(best)
        return f"| {case} | {name} | {1e3 * seconds:.0f} | {seconds / ours:,.0f} | {above:.1e} | {away:.1e} |"

    matrices = (best, Sigma2)
    kept = structures.objective(atom, W, matrices)
    below = (structures.block_bound(atom, 0, W, matrices) - kept) / abs(kept)
    rows = [
        f"| {case} | closed form | {1e3 * ours:.4f} | 1 | 0; Lagrange's lower bound: {below:.1e} | 0 |",
    ]
    print(rows[-1], flush=True)
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    ask = {
        "Clarabel": (cp.CLARABEL, {}),
        "Clarabel, tolerances 1e-11": (cp.CLARABEL, tight),
        "SCS": (cp.SCS, {}),
        "SCS, eps 1e-9": (
            cp.SCS,
            {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 2_000 if quick else 20_000},
        ),
    }
    for name, (backend, options) in ask.items():
        try:
            runs = [sdp(M, m, backend, options) for _ in range(1 if quick else 3)]
        except cp.SolverError as error:
            rows.append(f"| {case} | {name} | failed: {str(error).splitlines()[0]} |  |  |  |")
        else:
            values, vectors = np.linalg.eigh(runs[0][1])
            # as it came, it may lie a little outside the box
            rows.append(
                compared(name, min(run[0] for run in runs), (vectors * np.clip(values, *BOX)) @ vectors.T)
            )
        print(rows[-1], flush=True)
    began = time.process_time()
    reference = structures.block_optimum(atom, 0, W, matrices)
    rows.append(
        compared(
            "this package's reference: Clarabel in better units",
            time.process_time() - began,
            reference.matrix,
        )
    )
    print(rows[-1], flush=True)
    return rows


# ----------------------------------------------------------------------------------------------------- the weights' step


def weights_table(quick: bool) -> list[str]:
    d, m = (300, 50) if quick else (1000, 100)
    data, penalties = step_of(d, m, np.random.default_rng(0))
    table = [
        f"| weights' step, d = {d}, m = {m} | seconds | relative residual |  |",
        "|---|---|---|---|",
    ]
    for method in METHODS:
        if quick and method == "closed_form":  # here it would fit, and take minutes
            continue
        if method == "gradient_descent":
            shown = _gradient_descent_estimate(data, penalties)
        else:
            try:
                repeats = 1 if method == "conjugate_gradient" else 5
                seconds, W = fastest(
                    lambda k=method: solve_weights(k, data, penalties, np.zeros((d, m)), 1e-10), repeats
                )
                rest = data.product(W) + sum(p.product(W) for p in penalties) - data.cross
                shown = f"{seconds:.3f} | {np.linalg.norm(rest) / np.linalg.norm(data.cross):.1e} |"
            except mtl.SolverError as error:
                shown = f"refused |  | {error}"
        table.append(f"| {method} | {shown} |")
        print(table[-1], flush=True)
    return table


def _gradient_descent_estimate(data, penalties) -> str:
    """Its price, known beforehand: one step's, times the logarithm of the accuracy by the condition number."""
    spectrum = np.linalg.eigvalsh(data.gram)
    ends = [
        spectrum[k]
        + sum(float(p.rows.eigenvalues()[k]) * float(p.columns.eigenvalues()[k]) for p in penalties)
        for k in (0, -1)
    ]
    W = np.ones(data.shape)
    seconds, _ = fastest(lambda: data.product(W) + sum(p.product(W) for p in penalties), 5)
    steps = 0.5 * np.log(1e10) * ends[1] / ends[0]
    return (
        f"about {steps * seconds:,.0f}, not run |  | {steps:,.0f} steps of {1e3 * seconds:.0f} ms by its rate"
    )


# ------------------------------------------------------------------------------------------------------------- scale


def synthetic(d: int, m: int, n: int, seed: int = 0) -> mtl.Tasks:
    """Weights of rank 3 and noise."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(d, 3)) @ rng.normal(size=(3, m)) / np.sqrt(d)
    X = rng.normal(size=(n, d))
    return mtl.Tasks.shared(X, X @ W + rng.normal(size=(n, m)))


_CHILD = """
import json, sys, time
sys.path.insert(0, {root!r})
from benchmarks.covariances import synthetic
from benchmarks.papers.fetr_methods import fetr_problem
def peak():
    # of this program alone: what getrusage calls the maximum counts the parent's too
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
tasks = synthetic({d}, {m}, {n})
problem = fetr_problem(tasks, 1.0, 1.0, intercept=False)
before, began = peak(), time.process_time()
solution = problem.solve("alternating", tol=1e-4)
seconds = time.process_time() - began
print(json.dumps([seconds, before, peak(), solution.iterations, solution.stationarity.residual]))
"""


def size_table(quick: bool) -> list[str]:
    table = [
        "| d | m | rows | seconds | iterations | residual | peak before the solve, MB | added by it, MB | times 8 (d m + d^2) bytes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    root = str(Path(__file__).resolve().parents[1])
    for d, m, n in [(600, 20, 500)] if quick else [(1250, 20, 2000), (2500, 20, 2000), (5000, 20, 2000)]:
        # a process of its own: the peak of memory that a process reports never falls
        run = subprocess.run(
            [sys.executable, "-c", _CHILD.format(root=root, d=d, m=m, n=n)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        seconds, before, after, iterations, residual = json.loads(run.stdout)
        table.append(
            f"| {d:,} | {m} | {n:,} | {seconds:.1f} | {iterations} | {residual:.1e} | {before / 1e6:.0f} | {(after - before) / 1e6:.0f} | "
            f"{(after - before) / (8 * (d * m + d * d)):.1f} |"
        )
        print(table[-1], flush=True)
    d = 300_000
    X = np.ones((2, d))
    try:
        fetr_problem(mtl.Tasks.shared(X, np.ones((2, 2))), 1.0, 1.0, intercept=False).solve(
            "alternating", max_seconds=5.0
        )
    except mtl.SolverError as error:
        table += ["", f"Where it does not fit, d = {d:,}: `{error}`"]
    print(table[-1], flush=True)
    return table


def exponent_tables(quick: bool) -> list[str]:
    """Seconds to a residual of 1e-4, and the slope of their logarithm over the last three sizes."""
    lines = []
    features, tasks = (100, 200, 400, 800, 1600), (25, 50, 100, 200, 400)
    sizes = {
        "d, with m = 20": [(d, 20) for d in (features[:3] if quick else features)],
        "m, with d = 50": [(50, m) for m in (tasks[:3] if quick else tasks)],
    }
    for name, shapes in sizes.items():
        rows, seconds, iterations = [], [], []
        for d, m in shapes:
            problem = fetr_problem(synthetic(d, m, 4000), 1.0, 1.0, intercept=False)
            one, solution = fastest(
                lambda p=problem: p.solve("alternating", tol=1e-4, max_seconds=60.0), 3 if d < 1000 else 2
            )
            seconds.append(one)
            iterations.append(solution.iterations)
            rows.append(
                f"| {d} | {m} | {one:.3f} | {solution.iterations} | {1e3 * one / solution.iterations:.1f} | "
                f"{solution.stationarity.residual:.1e} |"
            )
            print(rows[-1], flush=True)
        x = np.log([max(shape) if name[0] == "d" else shape[1] for shape in shapes])[-3:]
        total = np.polyfit(x, np.log(seconds[-3:]), 1)[0]
        each = np.polyfit(x, np.log(np.array(seconds[-3:]) / np.array(iterations[-3:])), 1)[0]
        lines += [
            "", f"Exponent in {name}: {total:.1f} in all, {each:.1f} an iteration (over the last three sizes).", "",
            "| d | m | seconds | iterations | ms an iteration | residual |", "|---|---|---|---|---|---|", *rows,
        ]  # fmt: skip
        print(lines[-len(rows) - 4], flush=True)
    return lines


def main() -> None:
    quick = "--quick" in sys.argv
    tables = {
        "SARCOS: asked <= 50 iterations and <= 50 ms to 1e-4, any number of rows after one pass": sarcos_table,
        "School, 139 tasks: asked <= 3 s": school_table,
        "The covariance step against cvxpy: asked >= 1000 times faster, agreement 1e-10": covariance_table,
        "The weights' step: asked <= 1 s": weights_table,
        "Scale: asked memory linear in d m + d^2": size_table,
        "Time against features and tasks": exponent_tables,
    }
    parts = []
    with threadpool_limits(1):
        for title, make in tables.items():
            print("\n" + title, flush=True)
            parts += ["", f"## {title}", "", *make(quick)]
    notes = RESULTS / "covariances_notes.txt"
    reading = [f"- {line}" for line in notes.read_text().strip().splitlines()] if notes.is_file() else []
    head = ["# Learned covariances: time, memory, accuracy", "", stamp("cvxpy", "clarabel", "scs"), ""]
    how = (
        "One thread on a machine that other work shared while this ran: times are CPU seconds of the process, the shortest of several "
        "runs, and even those may be too long, as caches were shared. eta = rho = 1, box [0.01, 100] unless said. The residual is the norm of the profile's gradient relative to those of its "
        "parts, the larger of losses and penalty; times are those of `problem.solve()`, certificate included, unless said."
    )
    folder = Path(tempfile.mkdtemp(prefix="covariances_")) if quick else RESULTS
    (folder / "covariances.md").write_text("\n".join([*head, how, "", *reading, *parts, ""]))
    print(f"\nwritten: {folder / 'covariances.md'}")


if __name__ == "__main__":
    main()
