"""What low rank without convexity costs: NC-CMTL on School and SARCOS, the exact problem, the convex relatives, thousands of tasks.

    python benchmarks/low_rank.py            # writes benchmarks/results/low_rank.md (some ten minutes)
    python benchmarks/low_rank.py --quick    # a minute, without the thousands of tasks, prints only

One thread; CPU seconds, the shortest of several calls. Needs the published data, see `mtldsl.datasets`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mtldsl as mtl
from benchmarks.machine import RESULTS, fastest, stamp
from mtldsl import datasets

REPEATS, SPLITS = 5, 3
METHODS = {"newton": "accelerated, then Newton", "joint": "Anderson", "block": "plain reweighting"}
TASKS = (250, 500, 1000, 2000, 5000)


def school(share: float, seed: int) -> mtl.Tasks:
    """A share of every school's students, inputs and scores z-scored over all of them."""
    whole, rng = datasets.load_school(), np.random.default_rng(seed)
    inputs, targets = [], []
    for X, y in zip(whole.inputs, whole.per_task(whole.targets), strict=True):
        rows = rng.permutation(len(y))[: max(2, round(share * len(y)))]
        inputs.append(np.asarray(X)[rows])
        targets.append(y[rows])
    stacked, labels = np.vstack(inputs), np.concatenate(targets)
    scale = np.where(stacked.std(axis=0) > 0, stacked.std(axis=0), 1.0)
    inputs = [(X - stacked.mean(axis=0)) / scale for X in inputs]
    return mtl.Tasks.separate(inputs, [(y - labels.mean()) / labels.std() for y in targets])


def sarcos(rows: int, seed: int) -> mtl.Tasks:
    tasks, rng = datasets.load_sarcos(), np.random.default_rng(seed)
    X, Y = np.asarray(tasks.X), np.column_stack(tasks.per_task(tasks.targets))
    picked = rng.permutation(len(X))[:rows]
    X, Y = X[picked], Y[picked]
    return mtl.Tasks.shared((X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean(axis=0)) / Y.std(axis=0))


def nc_cmtl(tasks: mtl.Tasks, mu: float, eps: float = 1e-2) -> mtl.Problem:
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.square_root_loss(W, tasks) + mu * mtl.log_rank(W, eps=eps))


def school_rows(splits: int) -> list[str]:
    lines = [
        "| mu | method | iterations to 1e-6 in P | CPU s to 1e-6 in P | whole solve to a residual of 1e-6: iterations, CPU s |",
        "|---|---|---|---|---|",
    ]
    for mu in (1.0, 3.0, 10.0):
        found = {method: [] for method in METHODS}
        for seed in range(splits):
            problem = nc_cmtl(school(0.2, seed), mu)
            least = problem.solve(tol=1e-9).objective
            for method in METHODS:
                options = {"solver": "alternating", "method": method, "max_iter": 3000}
                seconds, solution = fastest(
                    lambda p=problem, o=options: p.solve(tol=1e-6, **o), 1 if method == "block" else REPEATS
                )
                # another method may end in a lower stationary point: its own end is what it is measured against
                objectives = [value for look in solution.history for value in look["objectives"]]
                end = least if abs(solution.objective - least) < 1e-5 * abs(least) else solution.objective
                near = np.asarray(objectives) <= end * (1.0 + 1e-6)
                if not near.any():
                    found[method].append((np.nan, np.nan, solution.iterations, seconds))
                    continue
                count = int(np.argmax(near)) + 1
                options["max_iter"] = count
                short, _ = fastest(
                    lambda p=problem, o=dict(options): p.solve(tol=1e-12, **o),
                    1 if method == "block" else REPEATS,
                )
                found[method].append((count, short, solution.iterations, seconds))
        for method, rows in found.items():
            count, short, whole, seconds = np.median(np.array(rows), axis=0)
            lines.append(
                f"| {mu:g} | {METHODS[method]} | {count:.0f} | {short:.3f} | {whole:.0f}, {seconds:.3f} |"
            )
    return lines


def sarcos_rows() -> list[str]:
    lines = ["| mu | CPU s of `solve()` | iterations | residual |", "|---|---|---|---|"]
    for mu in (0.1, 1.0, 10.0):
        problem = nc_cmtl(sarcos(300, 0), mu)
        seconds, solution = fastest(problem.solve, 15)
        lines.append(
            f"| {mu:g} | {seconds:.4f} | {solution.iterations} | {solution.stationarity.residual:.1e} |"
        )
    return lines


def exact_rows() -> list[str]:
    lines = ["| problem | CPU s | status | residual | objective | rank |", "|---|---|---|---|---|---|"]
    cases = {}
    fixture = _fixture()
    if fixture is not None:
        cases["fixture cmtl_9x6, mu = 2, asked: residual 1e-8"] = nc_cmtl(fixture, 2.0, eps=0.0), 1e-8
    for mu in (3.0, 30.0):
        cases[f"School 20 %, mu = {mu:g}"] = nc_cmtl(school(0.2, 0), mu, eps=0.0), 1e-6
    tasks = school(0.2, 0)
    W = mtl.Weights(tasks)
    cases["School 20 %, sum_of_squares + 30 capped_trace_norm(tau=2)"] = (
        mtl.minimize(mtl.sum_of_squares(W, tasks) + 30.0 * mtl.capped_trace_norm(W, 2.0)), 1e-6,
    )  # fmt: skip
    cases["School 20 %, sum_of_squares + ridge, rank(W) <= 3"] = (
        mtl.minimize(mtl.sum_of_squares(W, tasks) + mtl.ridge(W), subject_to=[mtl.rank(W) <= 3]), 1e-6,
    )  # fmt: skip
    for name, (problem, tol) in cases.items():
        seconds, s = fastest(lambda problem=problem, tol=tol: problem.solve(tol=tol, max_seconds=60), 1)
        lines.append(
            f"| {name} | {seconds:.2f} | {s.status} | {s.stationarity.residual:.1e} | {s.objective:.8f} | {np.linalg.matrix_rank(s.W)} |"
        )
    return lines


def convex_rows() -> list[str]:
    lines = ["| problem on full School | CPU s to 1e-6, certified | gap | objective |", "|---|---|---|---|"]
    raw = datasets.load_school()
    L, S = mtl.Weights(raw, name="L"), mtl.Weights(raw, name="S")
    robust = mtl.squared_loss(L + S, raw) + 50.0 * mtl.trace_norm(L) + 15.0 * mtl.l12_norm(S)
    problems = {"Robust-MTL, 1/2 loss + 50 trace + 15 l12, raw": mtl.minimize(robust)}
    for name, tasks in (("raw", raw), ("z-scored", school(1.0, 0))):
        W = mtl.Weights(tasks)
        for mu in (100.0, 10.0, 1.0, 0.1, 0.01):
            loss = mtl.square_root_loss(W, tasks)
            problems[f"square-root loss + {mu:g} trace norm, {name}"] = mtl.minimize(
                loss + mu * mtl.trace_norm(W)
            )
        problems[f"square-root loss + 10 l21 norm (CMTFL), {name}"] = mtl.minimize(
            mtl.square_root_loss(W, tasks) + 10.0 * mtl.l21_norm(W)
        )
    for name, problem in problems.items():
        seconds, s = fastest(lambda problem=problem: problem.solve(max_seconds=60), 3)
        lines.append(f"| {name} | {seconds:.2f} | {s.relative_gap:.1e} ({s.status}) | {s.objective:.8g} |")
    return lines


def many_tasks(count: int) -> dict:
    """d = 200, 50 rows a task, rank 5; in a process of its own, for its peak memory."""
    run = subprocess.run(
        [sys.executable, __file__, "--tasks", str(count)], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def solve_many(count: int) -> None:
    import resource

    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 5)) @ rng.normal(size=(5, count)) / np.sqrt(5 * 200)
    inputs = [rng.normal(size=(50, 200)) for _ in range(count)]
    tasks = mtl.Tasks.separate(
        inputs, [X @ w + 0.3 * rng.normal(size=50) for X, w in zip(inputs, truth.T, strict=True)]
    )
    del inputs
    problem = nc_cmtl(tasks, 40.0 * np.sqrt(count / 250))  # for less, tasks of 50 rows are interpolated
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    with threadpool_limits(1):
        solution = problem.solve(tol=1e-4)
    print(
        json.dumps(
            {
                "tasks": count, "seconds": time.process_time() - started, "iterations": solution.iterations,
                "status": solution.status, "residual": solution.stationarity.residual,
                "before": before / 1e6, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
                "data": count * 50 * 200 * 8 / 1e9,
                "error": float(np.linalg.norm(solution.W - truth) / np.linalg.norm(truth)),
            }
        )
    )  # fmt: skip


def scaling_rows(counts) -> list[str]:
    lines = [
        "| tasks | data GB | peak memory GB, of which before the solve | CPU s | iterations | CPU s an iteration | residual | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = [many_tasks(count) for count in counts]
    for r in rows:
        lines.append(
            f"| {r['tasks']} | {r['data']:.2f} | {r['peak']:.2f}, {r['before']:.2f} | {r['seconds']:.1f} | {r['iterations']} | "
            f"{r['seconds'] / r['iterations']:.2f} | {r['residual']:.1e} ({r['status']}) | {r['error']:.3f} |"
        )
    logs = np.log([r["tasks"] for r in rows])
    per_iteration = np.polyfit(logs, np.log([r["seconds"] / r["iterations"] for r in rows]), 1)[0]
    memory = np.polyfit(logs, np.log([r["peak"] - r["before"] for r in rows]), 1)[0]
    lines += [
        "",
        f"Exponents in the number of tasks: {per_iteration:.2f} for an iteration, {memory:.2f} for the memory of the solve.",
    ]
    return lines


def _fixture() -> mtl.Tasks | None:
    for parent in Path(__file__).resolve().parents:
        path = parent / "shared" / "fixtures" / "cmtl_9x6.json"
        if path.is_file():
            data = json.loads(path.read_text())
            return mtl.Tasks.separate([np.array(X) for X in data["X"]], [np.array(y) for y in data["y"]])
    return None


def main() -> None:
    if "--tasks" in sys.argv:
        solve_many(int(sys.argv[-1]))
        return
    quick = "--quick" in sys.argv
    with threadpool_limits(1):
        parts = [
            "# Low rank without convexity",
            stamp(),
            "`python benchmarks/low_rank.py`. CPU seconds of one thread; P is the objective as typed, eps = 1e-2.",
            "## NC-CMTL on School, 20 % of every school's students, z-scored",
            "Asked: at most 60 accelerated iterations and 0.2 s to 1e-6 in P. Medians over splits; each call includes the reduction of "
            "the data and one look at the certificate.",
            "\n".join(school_rows(1 if quick else SPLITS)),
            "## NC-CMTL on SARCOS, 300 rows, z-scored",
            "Asked: at most 0.05 s.",
            "\n".join(sarcos_rows()),
            "## Exact penalties (eps = 0) and bounded rank",
            "\n".join(exact_rows()),
            "## Convex relatives",
            "Asked: at most 2 s each.",
            "\n".join(convex_rows()),
        ]
        if not quick:
            parts += [
                "## Thousands of tasks, d = 200, 50 rows each, rank 5",
                "Asked: memory and time linear in the number of tasks.",
                "\n".join(scaling_rows(TASKS)),
            ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if not quick:
        (RESULTS / "low_rank.md").write_text(text)


if __name__ == "__main__":
    main()
