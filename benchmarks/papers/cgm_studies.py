"""Figures 2 and 3 and the claim on the first edges: runs that are not a table of methods."""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers.cgm_data import fold_part, labels_of, measures, star_part
from benchmarks.papers.cgm_methods import MOST_EPOCHS, ROUND_TOL, TOL, clique_problem, scores_of_edges
from benchmarks.papers.rows import append, done, rows_of
from mtldsl.datasets import chow_liu_tree

__all__ = ["COLUMNS", "HISTORY", "KEY", "NOISES", "SIZES", "convergence", "growth", "scores"]

KEY = ("study", "seed", "method")
COLUMNS = (
    *KEY, "setting", "hamming", "macro_f1", "micro_f1", "micro_precision", "micro_recall", "edges", "status", "gap", "epochs", "seconds",
    "slowest_setting", "tried", "tried_capped",
)  # fmt: skip
HISTORY = ("method", "epoch", "objective", "dual_bound", "edges", "seconds")
#: Shares of turned training labels at which the scores are looked at.
NOISES = (0.0, 0.05)
#: Edges at most, of Scene's 15.
SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
#: The paper's own method gains so little an epoch that more of them show nothing else.
SPDCA_EPOCHS = 500
LAMBDA = 1e-4  # the paper's, of the star


def scores(runs: Path, seeds, quick: bool) -> None:
    """The candidates in order of their score at the dual of the model without edges, all 45 of them."""
    for noise in NOISES:
        for seed in seeds:
            unit = dict(zip(KEY, ("scores", str(seed), f"noise {noise:g}"), strict=True))
            if tuple(unit.values()) in done(runs, KEY):
                continue
            found = scores_of_edges(star_part(seed, noise, quick).train, LAMBDA)
            order = sorted(found, key=found.get, reverse=True)
            edges = ";".join("--".join(sorted(edge)) for edge in order)
            append(runs, COLUMNS, unit | {"setting": f"lam={LAMBDA:g}", "edges": edges})
            print(f"scores {seed} noise {noise:g}: {edges[:40]}", flush=True)


def convergence(runs: Path, history: Path, quick: bool) -> None:
    """Objective and bound against epochs on one draw of the star: CGM, the same by the paper's SPDCA, and fixed graphs as structural SVMs."""
    train = star_part(0, 0.0, quick).train
    known = {row["method"] for row in rows_of(history)}
    starts = {
        "CGM": ("all", 2, {"cliques_per_round": 2, "graph_selection": True}),
        "CGM, optimum": ("all", 2, {"cliques_per_round": 2}),
        "no edges": ([], None, {}),
        "Chow-Liu tree": (chow_liu_tree(train), None, {}),
        "all edges": ("all", None, {}),
        "CGM, SPDCA": ("all", 2, {"cliques_per_round": 2, "graph_selection": True, "method": "spdca"}),
    }
    for name, (edges, r, options) in starts.items():
        if name in known:
            continue
        problem = clique_problem(train, edges, LAMBDA, r)
        solution = problem.solve(
            solver="clique_generation",
            tol=ROUND_TOL if r else TOL,
            max_iter=SPDCA_EPOCHS if "method" in options else MOST_EPOCHS,
            **options,
        )
        for row in solution.history:
            values = (
                name, row["iteration"], row["objective"], row["dual_bound"], row.get("edges", ""), row["seconds"],
            )  # fmt: skip
            append(history, HISTORY, dict(zip(HISTORY, values, strict=True)))
        print(f"convergence {name}: {solution.status}, gap {solution.gap:.1e}", flush=True)


def growth(runs: Path, study: str, data: str, folds, quick: bool) -> None:
    """Measures against the number of edges, at the parameters chosen for CGM in each fold; quick: every third number."""
    for fold in folds:
        part, (lam, r) = fold_part(data, fold, quick), _chosen(runs, data, fold)
        pairs = part.train.n_tasks * (part.train.n_tasks - 1) // 2
        for size in SIZES[:: 3 if quick else 1]:
            unit = dict(zip(KEY, (study, str(fold), f"{size} edges"), strict=True))
            if tuple(unit.values()) in done(runs, KEY) or size > pairs:
                continue
            problem = clique_problem(part.train, "all", lam, r)
            solution = problem.solve(
                solver="clique_generation", tol=TOL, max_edges=size, cliques_per_round=1, max_iter=MOST_EPOCHS
            )
            found = measures(labels_of(part.test), solution.predict(part.test.X))
            row = {name: f"{value:.5f}" for name, value in found.items()}
            row |= {
                "setting": f"lam={lam:g} r={r}",
                "edges": ";".join("--".join(sorted(edge)) for edge in solution.graph.edges),
                "status": solution.status,
                "gap": f"{solution.gap:.1e}",
                "epochs": solution.iterations,
            }
            append(runs, COLUMNS, unit | row)
            print(f"growth fold {fold}, {size} edges: Hamming {row['hamming']}", flush=True)


def _chosen(runs: Path, data: str, fold: int) -> tuple[float, int]:
    """lambda and r of CGM in that fold, where it has been run; else the middle of the grid."""
    for row in rows_of(runs):
        if (row["study"], row["seed"], row["method"]) == (data, str(fold), "CGM"):
            values = dict(pair.split("=") for pair in row["setting"].split())
            return float(values["lam"]), int(values["r"])
    return (1e-2, 3) if data == "scene" else (0.3, 3)
