"""Clique generation: CPU seconds to a certified gap, true edges found, against Clarabel on all labellings, and the first solve of a process.

    python benchmarks/clique_generation.py                      # writes benchmarks/results/clique_generation.md (some five minutes)
    python benchmarks/clique_generation.py --sections speed,cold # some of speed,clarabel,spdca,cold; the others are kept as they were
    python benchmarks/clique_generation.py --quick              # small sizes, prints only

Data of the CGM paper's section 5.2: labels are the best labellings of random weights over a true graph.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mtldsl as mtl
from benchmarks.machine import RESULTS, fastest, stamp
from mtldsl.data.synthetic import STAR
from mtldsl.datasets import make_label_graph

SECTIONS = ("speed", "clarabel", "spdca", "cold")

#: name, asked, rows, labels, features, true edges (None: the star), share of labels turned, lam, r, options of solve
CASES = (
    ("45 candidates, noise-free", "6 s", 2000, 10, 10, None, 0.0, 1e-3, 1, {"tol": 1e-3}),
    ("45 candidates, 5 % of the labels turned", "6 s", 2000, 10, 10, None, 0.05, 1e-3, 1, {"tol": 1e-3}),
    ("6 candidates", "0.5 s", 500, 4, 10, ((0, 1), (0, 2), (0, 3)), 0.0, 1e-2, 1, {"tol": 1e-3}),
    ("6 candidates, 5 % of the labels turned", "0.5 s", 500, 4, 10, ((0, 1), (0, 2), (0, 3)), 0.05, 1e-2, 1, {"tol": 1e-3}),
    ("190 candidates", "6 s", 4000, 20, 50, 12, 0.0, 1e-1, 1, {"tol": 2e-2}),
    ("190 candidates, 14 edges at most", "6 s", 4000, 20, 50, 12, 0.0, 1e-3, 1, {"tol": 1e-2, "max_edges": 14}),
    ("4,950 candidates, 36 edges at most", "works", 2000, 100, 50, 30, 0.0, 1e-3, 1, {"tol": 2e-2, "max_edges": 36, "max_seconds": 200}),
)  # fmt: skip

COLD = """
import resource, time
import numpy as np, mtldsl as mtl
made = mtl.datasets.make_label_graph(n_labels=6, n_features=5, edges=((0, 1), (0, 2)), n_train=100, n_test=10, label_noise=.05, random_state=0)
U, V = mtl.NodeWeights(made.train), mtl.EdgeWeights(made.train)
problem = mtl.minimize(mtl.clique_hinge(U, V, made.train) + .05 * mtl.ridge(U) + .05 * mtl.half_squared_group_norm(V))
cpu, wall = time.process_time(), time.perf_counter()
solution = problem.solve(tol=1e-3)
assert (solution.status, solution.solver) == ("optimal", "clique_generation"), solution
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


def random_edges(n_labels: int, count: int, seed: int = 1) -> tuple:
    every = list(combinations(range(n_labels), 2))
    chosen = np.random.default_rng(seed).permutation(len(every))[:count]
    return tuple(every[i] for i in sorted(chosen))


def problem_of(n, n_labels, d, edges, noise, lam, r, seed=0):
    """(problem, true edges)"""
    edges = (
        STAR if edges is None else random_edges(n_labels, edges) if isinstance(edges, int) else tuple(edges)
    )
    tasks = make_label_graph(n_labels, d, edges, n, 2, noise, random_state=seed).train
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks)
    penalty = lam * mtl.ridge(U) + lam * mtl.half_squared_k_support_norm(V, r)
    return mtl.minimize(mtl.clique_hinge(U, V, tasks) + penalty), edges


def learned(solution) -> list[tuple]:
    """Edges with weights, the heaviest first."""
    graph = solution.label_graph
    order = np.argsort(-graph.weights, kind="stable")
    return [graph.cliques.members[c] for c in order if graph.weights[c] > 0]


def speed(quick: bool) -> list[str]:
    lines = [
        "| problem | n | K | d | lam | stop | asked | CPU s | epochs | status, certified gap | edges learned | true edges among the heaviest |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, asked, n, K, d, edges, noise, lam, r, options in CASES:
        n = n // 10 if quick else n
        problem, true = problem_of(n, K, d, edges, noise, lam, r)
        problem.solve("clique_generation", tol=0.9)  # compiles
        seconds, solution = fastest(
            lambda p=problem, o=options: p.solve("clique_generation", **o),
            1 if n * K > 50_000 or quick else 3,
        )
        found = learned(solution)
        hits = len(set(found[: len(true)]) & set(true))
        stop = ", ".join(f"{key} {value:g}" for key, value in options.items())
        lines.append(
            f"| {name} | {n:,} | {K} | {d} | {lam:g} | {stop} | {asked} | {seconds:.2f} | {solution.iterations} | {solution.status}, "
            f"{solution.gap:.1e} | {len(found)} | {hits} of {len(true)} |"
        )
        print(lines[-1], flush=True)
    return lines


def clarabel(quick: bool) -> list[str]:
    """Clarabel's accuracy is its own: it always ends near 1e-9 or below; ours is shown at 1e-3, as asked, and at 1e-6."""
    lines = [
        "| labels, candidates, labels turned | labellings stated | ours to 1e-3: CPU s | ours to 1e-6: CPU s, objective | Clarabel: CPU s, gap, objective | "
        "ratio to 1e-3 | ratio to 1e-6 |",
        "|---|---|---|---|---|---|---|",
    ]
    ring = (*((k, k + 1) for k in range(5)), (0, 5))
    n = 50 if quick else 500
    for K, candidates, noise in ((4, "all", 0.0), (4, "all", 0.05), (6, ring, 0.05)):
        tasks = make_label_graph(K, 10, ((0, 1), (1, 2), (2, 3)), n, 2, noise, random_state=0).train
        U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, candidates)
        penalty = 1e-2 * mtl.ridge(U) + 1e-2 * mtl.half_squared_group_norm(V)
        problem = mtl.minimize(mtl.clique_hinge(U, V, tasks) + penalty)
        problem.solve("clique_generation", tol=0.9)
        coarse, _ = fastest(lambda p=problem: p.solve("clique_generation", tol=1e-3), 3)
        fine, one = fastest(lambda p=problem: p.solve("clique_generation", tol=1e-6), 2)
        theirs, other = fastest(lambda p=problem: p.solve("cvxpy", backend="clarabel"), 1)
        lines.append(
            f"| {K}, 6, {noise:.0%} | {n * 2**K:,} | {coarse:.2f} | {fine:.2f}, {one.objective:.8f} | {theirs:.1f}, {other.gap:.0e}, "
            f"{other.objective:.8f} | {theirs / coarse:.0f} | {theirs / fine:.0f} |"
        )
        print(lines[-1], flush=True)
    return lines


def spdca(quick: bool) -> list[str]:
    """Epochs and seconds to gaps; where the smoothed problem ends."""
    problem, _ = problem_of(60 if quick else 200, 4, 10, ((0, 1), (0, 2), (0, 3)), 0.05, 1e-1, 1)
    lines = [
        "| method | epochs to a gap of 10 %, 3 %, 1 % | CPU s | ends with | certified gap | largest of f_h / objective | least of f_h / objective |",
        "|---|---|---|---|---|---|---|",
    ]
    runs = [("pairwise", {})] + [
        (f"spdca, sigma = {s:g} lam", {"method": "spdca", "sigma": s * 0.1}) for s in (1.0, 0.1, 0.01)
    ]
    for name, options in runs:
        problem.solve("clique_generation", tol=0.9, **options)
        seconds, solution = fastest(
            lambda o=options: problem.solve(
                "clique_generation", tol=1e-2, max_seconds=60, max_iter=20_000, **o
            ),
            1,
        )
        epochs = [
            next((str(row["iteration"]) for row in solution.history if row["relative_gap"] <= gap), "-")
            for gap in (0.1, 0.03, 0.01)
        ]
        lies = [
            row["paper_objective"] / row["objective"] for row in solution.history if "paper_objective" in row
        ]
        shown = f"{max(lies):.2f} | {min(lies):.3f}" if lies else "- | -"
        lines.append(
            f"| {name} | {', '.join(epochs)} | {seconds:.2f} | {solution.status} | {solution.gap:.1e} | {shown} |"
        )
        print(lines[-1], flush=True)
    return lines


def cold(quick: bool) -> list[str]:
    lines = [
        "| cache | whole process: CPU s | its first solve: CPU s | its first solve: wall s |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as cache:
        for name in ("empty", "filled"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-c", COLD], capture_output=True, text=True, check=False,
                env=os.environ | {"NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(done.stderr[-2000:])
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            cpu, wall = map(float, done.stdout.split())
            lines.append(f"| {name} | {whole:.1f} | {cpu:.1f} | {wall:.1f} |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sections", default=",".join(SECTIONS))
    options = parser.parse_args()
    kept = RESULTS / "clique_generation_sections.json"
    found = json.loads(kept.read_text()) if kept.exists() and not options.quick else {}
    for name in options.sections.split(","):
        started = time.perf_counter()
        with threadpool_limits(1):
            found[name] = {"lines": globals()[name](options.quick), "stamp": stamp("numba", "clarabel")}
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
        if not options.quick:
            kept.write_text(json.dumps(found, indent=1))
    if options.quick or set(found) < set(SECTIONS):
        return
    texts = {
        "speed": "## To a certified gap\n\nr = 1, seed 0. CPU seconds of all threads for one call of `solve()`, certificate included, compilation "
        "not; the fastest of three where it is short. The gap is over all candidates, also where a rule ended the growth.",
        "clarabel": "## Against Clarabel on the enumerated problem\n\nn = 500, d = 10, lam = 1e-2, r = 1, six candidate edges: all pairs of four labels, or a ring of six. Asked: 100 times.",
        "spdca": "## The paper's SPDCA, corrected\n\nn = 200, K = 4, six candidates, lam = 0.1, r = 1, 5 % of the labels turned. f_h is what the "
        "paper's Algorithm 2 calls the objective.",
        "cold": "## The first solve of a process\n\nn = 100, K = 6, 15 candidates; the compilation cache empty, then filled. Asked: 5 s for the first solve.",
    }
    parts = [
        "# Clique generation",
        "`python benchmarks/clique_generation.py`. r = 1 is half the squared group norm over pairs of labels.",
    ]
    for name in SECTIONS:
        parts += [texts[name], "\n".join(found[name]["lines"]), found[name]["stamp"]]
    (RESULTS / "clique_generation.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
