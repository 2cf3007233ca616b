"""Rows on Dask's workers: passes, CPU seconds, memory a worker, and the same solve with the rows in memory.

    python benchmarks/rows_elsewhere.py                          # some ten minutes; the page is results/rows_elsewhere.md
    python benchmarks/rows_elsewhere.py --gigabytes 2 8          # more than the workers have memory for
    python benchmarks/rows_elsewhere.py --parquet --gigabytes 8  # from a folder that is written first, and deleted
    python benchmarks/rows_elsewhere.py --nodes                  # passes over partitions of a few rows, for rows_elsewhere_model.py
    python benchmarks/rows_elsewhere.py --page                   # the page again, from results/rows_elsewhere.jsonl
    python benchmarks/rows_elsewhere.py --quick

Two workers of one thread and 1.5 GB each on this machine. Rows are made by the workers from seeds, or read from Parquet files of 32 MB: kept where they fit into half of
the workers' memory, else made or read anew at every pass, which is counted. CPU seconds are those of both workers and of this process, its scheduler among them; "making rows"
is the share of them that one more pass over the rows takes that only looks at their number, times the passes; "idle" is
what the processes take when nothing is asked of them (some tenth of a core: heartbeats), times the seconds that the solve took, many of them on a busy machine. Peaks are resident memory a worker, as the system
counts it, from its start on. In memory: the same rows in this process on one thread, its second solve; workers are as warm, by a solve of a few rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FEATURES, TASKS, PART = 100, 5, 32 * 2**20  # bytes of a partition's inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", nargs="+", type=float, default=[0.125, 0.5])
    parser.add_argument("--quick", action="store_true", help="a few megabytes; nothing is written")
    parser.add_argument("--parquet", action="store_true", help="rows in a folder of files, written first")
    parser.add_argument("--beside", action="store_true", help="solve in memory, too")
    parser.add_argument(
        "--nodes", action="store_true", help="only measure passes over partitions of a few rows"
    )
    parser.add_argument("--page", action="store_true", help="only write the page from what was measured")
    parser.add_argument(
        "--models",
        nargs="+",
        default=MODELS,
        choices=MODELS,
        metavar="MODEL",
        help=", ".join(map(repr, MODELS)),
    )
    parser.add_argument(
        "--rows", type=Path, default=Path(__file__).parent / "results" / "rows_elsewhere.jsonl"
    )
    chosen = parser.parse_args()
    if chosen.nodes:
        with chosen.rows.with_name("rows_elsewhere_nodes.jsonl").open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in passes_of_nothing())
    elif not chosen.page:
        for model in chosen.models:
            for size in [0.004, 0.008] if chosen.quick else chosen.gigabytes:
                row = on_a_cluster(model, size, chosen)
                print(row, file=sys.stderr, flush=True)
                if not chosen.quick:
                    with chosen.rows.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    if not chosen.quick:
        write_page(chosen.rows)


def on_a_cluster(model: str, size: float, chosen) -> dict:
    from distributed import Client, LocalCluster

    folder = Path(tempfile.mkdtemp(prefix="rows_elsewhere_")) if chosen.parquet else None
    try:
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, memory_limit="1.5GB", host="127.0.0.1", dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            return measured(client, model, size, folder, chosen.beside or chosen.quick)
    finally:
        if folder is not None:
            shutil.rmtree(folder)


def write_page(rows: Path) -> None:
    from machine import RESULTS, stamp

    known: dict = {}
    for line in rows.read_text().splitlines():
        row = json.loads(line)
        known[row["model"], row["rows are"], row["GB"]] = row  # the last run of each
    found = sorted(known.values(), key=lambda row: (MODELS.index(row["model"]), row["rows are"], row["GB"]))
    text = [
        "# Rows on Dask's workers",
        "",
        stamp("dask", "distributed"),
        "",
        __doc__.split("\n\n")[-1].strip(),
        "",
        table(found),
        "",
    ]
    page = RESULTS / "rows_elsewhere.md"
    notes = RESULTS / "rows_elsewhere_notes.txt"
    text += [*exponents(found), *(["", notes.read_text().strip()] if notes.exists() else [])]
    page.write_text("\n".join(text) + "\n")
    print(page)


# models -------------------------------------------------------------------------------------------------------------------------------

MODELS = ("squares + l21", "logistic + trace", "hinge + l21", "MT-MKL hinge, 1,000 tasks")
ASKED = {
    "squares + l21": "1",
    "logistic + trace": "<= 60 to 1e-6",
    "hinge + l21": "<= 100 to 1e-3",
    "MT-MKL hinge, 1,000 tasks": "to 1e-4",
}
TOLERANCE = {
    "squares + l21": 1e-6,
    "logistic + trace": 1e-6,
    "hinge + l21": 1e-3,
    "MT-MKL hinge, 1,000 tasks": 1e-4,
}


def shape(model: str, gigabytes: float) -> tuple[int, int, int]:
    """(features, partitions, rows of each)."""
    d = 20 if "MKL" in model else FEATURES
    parts = max(round(gigabytes * 2**30 / PART), 2)
    return d, parts, max(int(gigabytes * 2**30 / (8 * d) / parts), 64)


def part_of(model: str, k: int, rows: int, d: int) -> tuple:
    """(X, Y); of a thousand tasks in one long table, whose weights have something in common, (X, y, task ids)."""
    rng = np.random.Generator(np.random.SFC64([3, k]))
    X = rng.standard_normal((rows, d))
    if "MKL" in model:
        truth = 0.3 * np.random.default_rng(1).normal(size=(1000, d)) + np.random.default_rng(2).normal(
            size=d
        )
        ids = np.arange(k * rows, (k + 1) * rows) % 1000
        scores = np.einsum("ij,ij->i", X, truth[ids]) + 2.0 * rng.standard_normal(rows)
        return X, np.where(scores > 0.0, 1.0, -1.0), ids
    truth = np.random.default_rng(1).normal(size=(d, TASKS)) * (np.arange(d) < d // 4)[:, None]
    scores = X @ truth + 3.0 * rng.standard_normal((rows, TASKS))
    return X, (scores if model.startswith("squares") else np.where(scores > 1.0, 1.0, -1.0))


def write_part(path: str, model: str, k: int, rows: int, d: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    X, Y, *ids = part_of(model, k, rows, d)
    columns = {f"x{j}": X[:, j] for j in range(d)} | {f"y{j}": y for j, y in enumerate(np.atleast_2d(Y.T))}
    if ids:
        columns["id"] = ids[0]
    parquet.write_table(pa.table(columns), path, compression="none", use_dictionary=False)


def write_folder(client, folder: Path, model: str, gigabytes: float) -> None:
    d, parts, rows = shape(model, gigabytes)
    coming = [
        client.submit(write_part, str(folder / f"{k:05}.parquet"), model, k, rows, d) for k in range(parts)
    ]
    client.gather(coming)


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


def tasks_of(model: str, gigabytes: float, folder: Path | None = None):
    import dask

    import mtldsl as mtl

    d, parts, rows = shape(model, gigabytes)
    if folder is not None:
        if "MKL" in model:
            return mtl.datasets.scan(folder, labels="y0", task="id")
        return mtl.datasets.scan(folder, labels=[f"y{i}" for i in range(TASKS)])
    return mtl.datasets.from_parts([dask.delayed(part_of)(model, k, rows, d) for k in range(parts)])


def here_of(model: str, gigabytes: float):
    import mtldsl as mtl

    d, parts, rows = shape(model, gigabytes)
    made = [part_of(model, k, rows, d) for k in range(parts)]
    return (mtl.Tasks.grouped if "MKL" in model else mtl.Tasks.shared)(
        *(np.concatenate(one) for one in zip(*made, strict=True))
    )


# measuring ------------------------------------------------------------------------------------------------------------------------------


def measured(client, model: str, gigabytes: float, folder: Path | None, beside: bool) -> dict:
    tol = TOLERANCE[model]
    stated(model, tasks_of(model, 0.002)).solve(tol=tol)  # compiled, imported
    if folder is not None:
        write_folder(client, folder, model, gigabytes)
    making = spent(client)
    away = tasks_of(model, gigabytes, folder)
    if away.parts.keep:
        away.parts.nodes()  # in the workers' memory, as those here are in this process's
    making = spent(client) - making
    idle = spent(client)
    time.sleep(2.0)
    idle = (spent(client) - idle) / 2.0
    started, passes, moved = time.perf_counter(), away.parts.passes, away.parts.bytes_moved
    driver, workers = time.process_time(), spent(client, workers=True)
    solution = stated(model, away).solve(tol=tol)
    driver, workers = time.process_time() - driver, spent(client, workers=True) - workers
    wall = time.perf_counter() - started
    passes, moved = away.parts.passes - passes, away.parts.bytes_moved - moved
    high = max(client.run(peak).values())
    looking = spent(client)
    away.parts.run(nothing)
    looking = (spent(client) - looking) * passes
    row = {
        "model": model,
        "rows are": "generated" if folder is None else "Parquet",
        "GB": gigabytes,
        "parts": away.parts.n_parts,
        "kept": away.parts.keep,
        "solver": solution.solver,
        "status": solution.status,
        "gap": f"{solution.gap + 0:.0e}",
        "passes": passes,
        "asked": ASKED[model],
        "wall s": round(wall, 1),
        "CPU s": round(driver + workers, 2),
        "of which here": round(driver, 2),
        "of which idle": round(idle * wall, 2),
        "of which making rows": round(looking, 2),
        "first pass: CPU s": round(making, 2),
        "MB moved": round(moved / 1e6, 1),
        "peak a worker, MB": high,
        "in memory: CPU s": "",
        "iterations": "",
        "CPU ratio": "",
        "objective apart": "",
    }
    if beside:
        here = stated(model, here_of(model, gigabytes))
        here.solve(tol=tol)  # compiled
        started = time.process_time()
        there = here.solve(tol=tol)
        seconds = time.process_time() - started
        row |= {
            "in memory: CPU s": round(seconds, 2),
            "iterations": there.iterations,
            "CPU ratio": round(row["CPU s"] / seconds, 2),
        }
        row["objective apart"] = f"{abs(solution.objective - there.objective) / abs(there.objective):.0e}"
    return row


def passes_of_nothing() -> list[dict]:
    """What partitions cost that have next to no rows: the least of several passes."""
    import dask
    from distributed import Client, LocalCluster

    import mtldsl as mtl

    found = []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1.5GB", host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        for parts in (4, 16, 64):
            rows = [dask.delayed(part_of)("logistic + trace", k, 64, FEATURES) for k in range(parts)]
            tasks = mtl.datasets.from_parts(rows, keep=True)
            seen = []
            for _ in range(4):
                wall, here, there = time.perf_counter(), time.process_time(), spent(client, workers=True)
                tasks.parts.run(nothing)
                there, here = spent(client, workers=True) - there, time.process_time() - here
                seen.append((here, there, time.perf_counter() - wall))
            here, there, wall = np.min(seen, axis=0).tolist()
            found.append({"partitions": parts, "here": here, "workers": there, "wall": wall})
    return found


def nothing(part) -> int:
    """A pass that makes the rows, and looks at nothing."""
    return part.tasks.n_samples


def spent(client, workers: bool = False) -> float:
    """CPU seconds of the workers, and of this process."""
    return sum(client.run(time.process_time).values()) + (0.0 if workers else time.process_time())


def peak() -> int:
    """Megabytes: VmHWM, since ru_maxrss begins with what the process that started this one had."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def table(rows: list[dict]) -> str:
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(row[c]) for c in columns) + " |" for row in rows])


def exponents(rows: list[dict]) -> list[str]:
    """CPU seconds a pass against the size of the data, as a power of it."""
    lines = []
    for model in MODELS:
        own = [row for row in rows if row["model"] == model]
        for kept in (True, False):
            some = [row for row in own if row["kept"] is kept]
            if len({row["GB"] for row in some}) > 1:
                # what is idle belongs to how busy the machine is, not to the rows
                seconds = [(row["CPU s"] - (row["of which idle"] or 0.0)) / row["passes"] for row in some]
                slope = np.polyfit(np.log([row["GB"] for row in some]), np.log(seconds), 1)[0]
                where = "kept" if kept else "made at every pass"
                lines.append(
                    f"- {model}, rows {where}: CPU seconds a pass, idle ones aside, grow with the power {slope:.2f} of the rows."
                )
    return lines


if __name__ == "__main__":
    main()
