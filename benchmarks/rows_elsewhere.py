"""Rows on Dask's workers: passes, CPU seconds, memory a worker, and the same solve with the rows in memory.

    python benchmarks/rows_elsewhere.py                          # writes results/rows_elsewhere.md; some ten minutes
    python benchmarks/rows_elsewhere.py --gigabytes .25 .5 1 8   # up to more than the workers have memory for
    python benchmarks/rows_elsewhere.py --quick

Two workers of one thread and 1.5 GB each on this machine, rows made by the workers (from seeds: kept where they fit into half of the workers' memory, else made anew
at every pass, which is counted; a script named dask.py would hide the package). CPU seconds are those of both workers and of this process; peaks are resident memory a worker, as the system counts it.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

FEATURES, TASKS, PART = 100, 5, 32 * 2**20  # bytes of a partition's inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", nargs="+", type=float, default=[0.125, 0.25, 0.5, 1.0])
    parser.add_argument("--quick", action="store_true", help="a few megabytes")
    parser.add_argument(
        "--models",
        nargs="+",
        default=MODELS,
        choices=MODELS,
        metavar="MODEL",
        help=", ".join(map(repr, MODELS)),
    )
    chosen = parser.parse_args()
    sizes = [0.004, 0.008] if chosen.quick else chosen.gigabytes
    from distributed import Client, LocalCluster
    from machine import RESULTS, stamp

    rows: list[dict] = []
    for model in chosen.models:
        for size in sizes:
            with (
                LocalCluster(
                    n_workers=2, threads_per_worker=1, memory_limit="1.5GB", host="127.0.0.1", dashboard_address=None
                ) as cluster,
                Client(cluster) as client,
            ):  # fmt: skip
                rows.append(measured(client, model, size, beside=size == sizes[0]))
            print(rows[-1], file=sys.stderr, flush=True)
    text = [
        "# Rows on Dask's workers",
        "",
        stamp("dask", "distributed"),
        "",
        __doc__.split("\n\n")[-1].strip(),
        "",
        table(rows),
        "",
        *exponents(rows),
    ]
    if chosen.quick:
        print("\n".join(text))
        return
    page = RESULTS / "rows_elsewhere.md"
    page.write_text("\n".join(text) + "\n")
    print(page)


# models -------------------------------------------------------------------------------------------------------------------------------

MODELS = ("squares + l21", "logistic + trace", "hinge + l21", "MT-MKL hinge, 1,000 tasks")
ASKED = {
    "squares + l21": "1",
    "logistic + trace": "<= 60 to 1e-6",
    "hinge + l21": "<= 100 to 1e-3",
    "MT-MKL hinge, 1,000 tasks": "<= 100 to 1e-3",
}
TOLERANCE = {"squares + l21": 1e-6, "logistic + trace": 1e-6}


def data(model: str, gigabytes: float):
    """Dask's arrays (X, Y); or what makes the parts (X, y, task ids) of one long table."""
    import dask
    import dask.array as da

    d = 20 if "MKL" in model else FEATURES
    parts = max(round(gigabytes * 2**30 / PART), 2)
    rows = max(int(gigabytes * 2**30 / (8 * d) / parts), 64)
    if "MKL" in model:
        return [dask.delayed(part_of)(k, rows, d) for k in range(parts)]
    rng, n = da.random.default_rng(0), rows * parts
    X = rng.normal(size=(n, d), chunks=(rows, d))
    truth = np.random.default_rng(1).normal(size=(d, TASKS)) * (np.arange(d) < d // 4)[:, None]
    scores = X @ truth + 3.0 * rng.normal(size=(n, TASKS), chunks=(rows, TASKS))
    return X, (scores if model.startswith("squares") else da.where(scores > 1.0, 1.0, -1.0))


def part_of(k: int, rows: int, d: int):
    """Rows of a thousand tasks, whose weights have something in common."""
    rng = np.random.default_rng([3, k])
    truth = 0.3 * np.random.default_rng(1).normal(size=(1000, d)) + np.random.default_rng(2).normal(size=d)
    X, ids = rng.normal(size=(rows, d)), np.arange(k * rows, (k + 1) * rows) % 1000
    return X, np.where((X * truth[ids]).sum(axis=1) + 2.0 * rng.normal(size=rows) > 0.0, 1.0, -1.0), ids


def stated(model: str, tasks):
    import mtldsl as mtl

    lam = 0.02 * float(np.mean(tasks.counts))
    W = mtl.Weights(tasks, intercept="MKL" not in model)
    if "MKL" in model:
        return mtl.model("MT-MKL", tasks, C=0.1)
    loss, norm = {
        "squares + l21": (mtl.squared_loss, mtl.l21_norm),
        "logistic + trace": (mtl.logistic_loss, mtl.trace_norm),
        "hinge + l21": (mtl.hinge_loss, mtl.l21_norm),
    }[model]
    return mtl.minimize(loss(W, tasks) + lam * norm(W))


def tasks_of(model: str, gigabytes: float, here: bool):
    import dask

    import mtldsl as mtl

    made = data(model, gigabytes)
    if isinstance(made, list):
        if not here:
            return mtl.datasets.from_parts(made)
        return mtl.Tasks.grouped(*(np.concatenate(one) for one in zip(*dask.compute(*made), strict=True)))
    if not here:
        return mtl.Tasks.from_dask(*made)
    return mtl.Tasks.shared(*(np.asarray(one.compute()) for one in made))


# measuring ------------------------------------------------------------------------------------------------------------------------------


def measured(client, model: str, gigabytes: float, beside: bool) -> dict:
    tol = TOLERANCE.get(model, 1e-3)
    away = tasks_of(model, gigabytes, here=False)
    before, passes = spent(client), away.parts.passes
    started = time.perf_counter()
    solution = stated(model, away).solve(tol=tol)
    row = {
        "model": model,
        "GB": gigabytes,
        "parts": away.parts.n_parts,
        "status": solution.status,
        "gap": f"{solution.gap + 0:.0e}",
        "passes": away.parts.passes - passes,
        "asked": ASKED[model],
        "wall s": round(time.perf_counter() - started, 2),
        "CPU s": round(spent(client) - before, 2),
        "peak a worker, MB": max(client.run(peak).values()),
        "in memory: CPU s": "",
        "CPU ratio": "",
        "objective apart": "",
    }
    if beside:
        here = stated(model, tasks_of(model, gigabytes, here=True))
        here.solve(tol=tol)  # compiled
        started = time.process_time()
        there = here.solve(tol=tol)
        seconds = time.process_time() - started
        exact = here.solve(tol=1e-10) if model.startswith("squares") else there
        row["in memory: CPU s"], row["CPU ratio"] = round(seconds, 2), round(row["CPU s"] / seconds, 2)
        row["objective apart"] = f"{abs(solution.objective - exact.objective) / abs(exact.objective):.0e}"
    return row


def spent(client) -> float:
    return time.process_time() + sum(client.run(time.process_time).values())


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def table(rows: list[dict]) -> str:
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(row[c]) for c in columns) + " |" for row in rows])


def exponents(rows: list[dict]) -> list[str]:
    """CPU seconds a pass against the size of the data, as a power of it."""
    lines = []
    for model in MODELS:
        own = [row for row in rows if row["model"] == model]
        if len(own) > 1:
            slope = np.polyfit(
                np.log([row["GB"] for row in own]),
                np.log([row["CPU s"] / max(row["passes"], 1) for row in own]),
                1,
            )[0]
            lines.append(f"- {model}: CPU seconds a pass grow with the power {slope:.2f} of the rows.")
    return lines


if __name__ == "__main__":
    main()
