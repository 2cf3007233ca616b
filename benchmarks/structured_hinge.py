"""Structured losses to a certified gap: the paper's data sizes, the floor, the paper's own inner method, and scaling.

    python benchmarks/structured_hinge.py                # writes benchmarks/results/structured_hinge.md
    python benchmarks/structured_hinge.py --scaling      # writes benchmarks/results/structured_hinge_scaling.md and .png
    python benchmarks/structured_hinge.py --weak         # writes benchmarks/results/structured_hinge_weak.md

Objective Omega(W) + lam * loss at lam = 100 lambda_max, features scaled to [0, 1], 60 % of the rows of the published sets as in the
paper. Every problem is solved once before it is timed (compilation), then timed three times, of which the best counts. "Floor": one
X W, one X^T U and one sort of the scores a round, measured on the same arrays, times the rounds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
from machine import RESULTS, stamp

#: Seconds to a certified 1e-4 that the issue asks for, l1 with (AUC, F-score, hinge); the paper's own times beside them.
ASKED = {"digits": 0.6, "Optdigits size": 1.0, "Emotions": 0.7, "Segmentation": 0.12}
PAPER = {
    "Optdigits size": (105, 511, 356, 19),
    "Emotions": (30, 30, 25, 7.4),
    "Segmentation": (1.9, 3.0, 2.0, 0.45),
}
GOALS = [("l1", 1e-4), ("l1", 1e-8), ("l21", 1e-6), ("trace", 1e-6)]
LOSSES = ("AUC", "FScore", "hinge", "least squares")


def data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """name -> (X in [0, 1], Y in {-1, +1})."""
    from mtldsl import datasets

    found = {"digits": _arrays(datasets.load_digits())}
    X, Y = found["digits"]
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(X), size=3372)
    # as many rows as the paper's Optdigits: digits drawn again, every pixel disturbed
    found["Optdigits size"] = _scaled(X[rows] + 0.1 * rng.normal(size=(3372, X.shape[1]))), Y[rows]
    Z, labels = rng.normal(size=(3372, 64)), rng.integers(0, 10, 3372)
    Z += rng.normal(size=(10, 64))[labels] / 2.2
    found["Gaussian, overlapping"] = _scaled(Z), np.where(labels[:, None] == np.arange(10), 1.0, -1.0)
    for name, load in (("Emotions", datasets.load_emotions), ("Segmentation", datasets.load_segmentation)):
        X, Y = _arrays(load())
        kept = rng.permutation(len(X))[: int(0.6 * len(X))]
        found[name] = X[kept], Y[kept]
    return found


def _arrays(tasks):
    X = tasks.X.toarray() if hasattr(tasks.X, "toarray") else np.asarray(tasks.X)
    return _scaled(X), np.column_stack(tasks.per_task(tasks.targets))


def _scaled(X):
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def problem(X, Y, norm: str, loss: str):
    import mtldsl as mtl

    tasks = mtl.Tasks.shared(X, Y)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    term = {
        "AUC": lambda: mtl.structured_hinge(W, tasks, metric=mtl.metrics.AUC()),
        "FScore": lambda: mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore()),
        "hinge": lambda: 2 * mtl.hinge_loss(W, tasks),
        "least squares": lambda: mtl.squared_loss(W, tasks),
    }[loss]()
    model = mtl.minimize(getattr(mtl, f"{norm}_norm")(W) + lam * term)
    lam.value = 100 * float(model.lambda_max(lam))
    return model


def timed(model, times: int = 3, **options):
    """(best seconds, the solution)."""
    solution = model.solve(**options)
    seconds = []
    for _ in range(times):
        started = time.process_time()
        solution = model.solve(**options)
        seconds.append(time.process_time() - started)
    return min(seconds), solution


def floor(X, Y) -> float:
    """Seconds of one X W, one X^T U and one sort of every task's scores."""
    rng = np.random.default_rng(0)
    W, U = rng.normal(size=(X.shape[1], Y.shape[1])), rng.normal(size=Y.shape)
    seconds = []
    for _ in range(30):
        started = time.process_time()
        scores = np.ascontiguousarray((X @ W).T)
        scores.sort(axis=1)
        X.T @ U
        seconds.append(time.process_time() - started)
    return float(np.median(seconds))


def speed_table(sets) -> list[str]:
    lines = [
        "| data | Omega, gap | " + " | ".join(LOSSES) + " | asked (each) | times the floor: AUC, F-score |",
        "|---|---|" + "---|" * (len(LOSSES) + 2),
    ]
    for name, (X, Y) in sets.items():
        base = floor(X, Y)
        for norm, tol in GOALS:
            cells, ratios = [], []
            for loss in LOSSES:
                seconds, solution = timed(problem(X, Y, norm, loss), tol=tol, max_seconds=60)
                mark = "" if solution.is_optimal else f" ({solution.status}, gap {solution.gap:.0e})"
                cells.append(f"{seconds:.3f}{mark}" if seconds < 0.1 else f"{seconds:.2f}{mark}")
                if loss in ("AUC", "FScore"):
                    ratios.append(
                        f"{seconds / (solution.iterations * base):.1f} ({solution.iterations} rounds)"
                    )
                print(name, norm, tol, loss, cells[-1], flush=True)
            asked = f"<= {ASKED[name]}" if name in ASKED and tol != 1e-8 else "-"
            lines.append(
                f"| {name} {X.shape[0]} x {X.shape[1]}, {Y.shape[1]} tasks | {norm}, {tol:.0e} | "
                + " | ".join(cells)
                + f" | {asked} | {', '.join(ratios)} |"
            )
    return lines


def inner_table(sets, seconds: float = 25.0) -> list[str]:
    """What the paper's coordinate ascent reaches in that time, and when planes were there."""
    lines = [
        f"| data, l1 | paper's inner method: gap after {seconds:.0f} s | oracle calls | planes: seconds to that gap | oracle calls | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("digits", "Optdigits size"):
        for loss in ("AUC", "FScore"):
            model = problem(*sets[name], "l1", loss)
            paper = model.solve("admm", inner="frank_wolfe", tol=1e-4, max_seconds=seconds)
            tol = float(np.clip(paper.gap, 1e-4, 0.5))
            needed, planes = timed(model, tol=tol, solver="admm")
            lines.append(
                f"| {name}, {loss} | {paper.gap:.1e} | {paper.history[-1]['oracle_calls']} | {needed:.2f} | "
                f"{planes.history[-1]['oracle_calls']} | {paper.seconds / needed:.0f} x |"
            )
            print(lines[-1], flush=True)
    return lines


# ------------------------------------------------------------------------------------------------------------- scaling

SWEEPS = {
    "n": (dict(d=20, m=1), [1_000, 10_000, 100_000, 1_000_000]),
    "m": (dict(n=1_000, d=20), [1, 5, 20, 50, 100, 200]),
}


def point(n: int, d: int, m: int, loss: str) -> dict:
    """One solve in this process: seconds, rounds, and megabytes above those that the data take."""
    import mtldsl as mtl

    def made(n, d, m):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        Z = X @ rng.normal(size=(d, 3)) @ rng.normal(size=(3, m)) + 2.0 * rng.normal(size=(n, m))
        Y = np.where(np.quantile(Z, 0.8, axis=0) <= Z, 1.0, -1.0)
        tasks = mtl.Tasks.shared(X, Y)
        W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
        model = mtl.minimize(
            mtl.l21_norm(W) + lam * mtl.structured_hinge(W, tasks, metric=getattr(mtl, loss)())
        )
        lam.value = 100 * float(model.lambda_max(lam))
        return model, 8 * (X.size + Y.size) / 2**20

    made(200, 5, 2)[0].solve(tol=1e-3)
    model, data = made(n, d, m)
    before = _peak(reset=True)
    started = time.process_time()
    solution = model.solve(tol=1e-4, max_seconds=300)
    seconds = time.process_time() - started
    return {
        "seconds": seconds,
        "data": data,
        "megabytes": _peak() - before,
        "rounds": solution.iterations,
        "status": solution.status,
    }


def _peak(reset: bool = False) -> float:
    """Megabytes: the process's largest resident set since the last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def scaling() -> None:
    lines = ["# Structured hinges: time and memory against samples and tasks", "", stamp("numba"), ""]
    lines += [
        "l21 + structured_hinge at 100 lambda_max, shared Gaussian X, labels of rank 3 with noise, 20 % positive, certified gap 1e-4;"
    ]
    lines += [
        "memory: the process's peak above what it held with the data, beside what X and Y take. One solve a process.",
        "",
    ]
    curves = {}
    for what, (fixed, sizes) in SWEEPS.items():
        for loss in ("AUC", "FScore"):
            lines += [f"## {loss}, {what} (" + ", ".join(f"{k} = {v}" for k, v in fixed.items()) + ")", ""]
            lines += [
                f"| {what} | seconds | rounds | seconds a round | memory MB | data MB | status |",
                "|---|---|---|---|---|---|---|",
            ]
            found = []
            for size in sizes:
                arguments = json.dumps({**fixed, what: size, "loss": loss})
                done = subprocess.run(
                    [sys.executable, __file__, "--point", arguments],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                seen = json.loads(done.stdout.splitlines()[-1])
                found.append(seen)
                lines.append(
                    f"| {size:,} | {seen['seconds']:.2f} | {seen['rounds']} | {seen['seconds'] / seen['rounds']:.5f} | "
                    f"{seen['megabytes']:.0f} | {seen['data']:.0f} | {seen['status']} |"
                )
                print(lines[-1], flush=True)
            half = len(sizes) // 2
            for key, values in {
                "seconds": [s["seconds"] for s in found],
                "seconds a round": [s["seconds"] / s["rounds"] for s in found],
            }.items():
                slope = np.polyfit(np.log(sizes[half - 1 :]), np.log(values[half - 1 :]), 1)[0]
                lines.append(f"\nexponent of {key} in {what}, larger half: {slope:.2f}")
                curves[(what, loss, key)] = values
            lines.append("")
    _plot(curves)
    (RESULTS / "structured_hinge_scaling.md").write_text(
        "\n".join([*lines, "![times](structured_hinge_scaling.png)", ""])
    )


def _plot(curves) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for axis, what in zip(axes, SWEEPS, strict=True):
        sizes = SWEEPS[what][1]
        for loss, colour in (("AUC", "C0"), ("FScore", "C1")):
            axis.loglog(sizes, curves[what, loss, "seconds"], "o-", color=colour, label=f"{loss}: solve")
            axis.loglog(
                sizes, curves[what, loss, "seconds a round"], "s--", color=colour, label=f"{loss}: one round"
            )
        axis.set_xlabel({"n": "samples a task n", "m": "tasks m"}[what])
        axis.set_ylabel("seconds")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.savefig(RESULTS / "structured_hinge_scaling.png", dpi=130)


# --------------------------------------------------------------------------------------------------------------
# Weak penalties: generated tables of the shapes of known multi-label sets.

#: name -> (samples, features, tasks, whether sparse with 2 % of the entries)
SHAPES = {
    "1,500 x 103, 14 tasks": (1500, 103, 14, False),
    "502 x 68, 146 tasks": (502, 68, 146, False),
    "300 x 400, 10 tasks": (300, 400, 10, False),
    "4,880 x 1,836 sparse, 20 tasks": (4880, 1836, 20, True),
}
MULTIPLES, GAPS, MAX_SECONDS = (10, 300, 3000), (1e-2, 1e-3, 1e-4), 60.0


def generated(n: int, d: int, m: int, is_sparse: bool):
    """Return linear scores with noise of twice their size, cut at quantiles between .6 and .95."""
    from scipy import sparse

    rng = np.random.default_rng(n + m)
    X = (
        sparse.random(n, d, density=0.02, format="csr", random_state=0)
        if is_sparse
        else rng.normal(size=(n, d))
    )
    Z = np.asarray(X @ rng.normal(size=(d, m)))
    Z = Z / Z.std(axis=0) + 2.0 * rng.normal(size=Z.shape)
    cuts = np.diagonal(np.quantile(Z, rng.uniform(0.6, 0.95, size=m), axis=0))
    return X, np.where(cuts < Z, 1.0, -1.0)


def weak_row(tasks, metric: str, norm: str, multiple: int, has_intercept: bool) -> str:
    """Return CPU seconds to every gap, of one solve to the last."""
    import mtldsl as mtl

    W, lam = mtl.Weights(tasks, intercept=has_intercept), mtl.Parameter(1.0)
    term = mtl.structured_hinge(W, tasks, metric=getattr(mtl.metrics, metric)())
    model = mtl.minimize(getattr(mtl, f"{norm}_norm")(W) + lam * term)
    lam.value = multiple * float(model.lambda_max(lam))
    looks, started = [], time.process_time()

    def look(record) -> bool:
        looks.append((time.process_time() - started, record["gap"]))
        return looks[-1][0] > MAX_SECONDS

    model.solve(tol=GAPS[-1], callback=look)
    found = [next((f"{at:.2f}" for at, gap in looks if gap <= wanted), "-") for wanted in GAPS]
    return " | ".join([*found, f"{min(gap for _, gap in looks):.0e}"])


def weak() -> None:
    import mtldsl as mtl

    lines = [
        "# Structured losses beside weak penalties: CPU seconds to certified gaps",
        "",
        stamp("numba"),
        "",
        "Objective Omega(W) + lam * loss, lam in multiples of lambda_max; F-score with intercepts, AUC without. A dash: not within 60 s.",
        "The first row of each loss compiles.",
        "",
        "| data | loss | Omega | lam | 1e-2 | 1e-3 | 1e-4 | smallest gap |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, shape in SHAPES.items():
        tasks = mtl.Tasks.shared(*generated(*shape))
        for metric, norm, multiple in product(("FScore", "AUC"), ("l1", "l21", "trace"), MULTIPLES):
            row = weak_row(tasks, metric, norm, multiple, metric == "FScore")
            lines.append(f"| {name} | {metric} | {norm} | {multiple:,} | {row} |")
            print(lines[-1], flush=True)
    (RESULTS / "structured_hinge_weak.md").write_text("\n".join([*lines, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--weak", action="store_true")
    parser.add_argument("--point")
    arguments = parser.parse_args()
    if arguments.point:
        print(json.dumps(point(**json.loads(arguments.point))))
    elif arguments.scaling:
        scaling()
    elif arguments.weak:
        weak()
    else:
        sets = data()
        lines = [
            "# Structured losses: CPU seconds to a certified gap",
            "",
            stamp("numba"),
            "",
            *__doc__.split("\n\n")[2].split("\n"),
            "",
        ]
        lines += [
            *speed_table(sets),
            "",
            "Paper's own times on its machine (AUC, F-score, hinge, least squares; no certificate): ",
        ]
        lines += [
            "; ".join(f"{name} {'/'.join(map(str, times))} s" for name, times in PAPER.items()) + ".",
            "",
        ]
        lines += [
            '## The paper\'s inner method beside it (`inner="frank_wolfe"`)',
            "",
            *inner_table(sets),
            "",
        ]
        (RESULTS / "structured_hinge.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
