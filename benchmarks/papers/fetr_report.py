"""fetr.md from the CSV files that the runs leave: tables beside the paper's, counts, and what the person who ran it says of them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from benchmarks.machine import stamp
from benchmarks.papers.fetr_correlations import ACCURACIES, FUDGES, draw_correlations
from benchmarks.papers.fetr_figures import draw_descent, draw_weights, read_descents, read_weights
from benchmarks.papers.fetr_methods import LINEAR, NETWORKS
from benchmarks.papers.fetr_paper import PAPER_SARCOS, PAPER_SCHOOL

__all__ = ["report"]

_METHODS = (*LINEAR, *NETWORKS)
_NAMES = {"FETR (block)": "FETR, the paper's algorithm"}


def report(results: Path, log=print) -> Path:
    """Write fetr.md and its figures; parts without runs are left out."""
    notes = results / "fetr_notes.txt"
    lines = notes.read_text().strip().splitlines() if notes.is_file() else []
    parts = [
        "# FETR: the paper's experiments",
        "",
        stamp("torch", "scikit-learn"),
        "",
        "Made by `python -m benchmarks.papers.fetr --report-only` from the CSV files `fetr_*.csv`. SARCOS is a **4,449-row subsample** "
        "throughout: the published test file; the 44,484 training rows are not here.",
        "",
        "## Reading",
        "",
        *(f"- {line[2:]}" for line in lines if line.startswith("> ")),
        "",
        "## What differs from the paper, and how it was run",
        "",
        *(f"- {line}" for line in lines if line.strip() and not line.startswith("> ")),
    ]
    if (results / "fetr_runs.csv").is_file():
        with (results / "fetr_runs.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        parts += ["", *_prediction(rows)]
    if (results / "fetr_weights.csv").is_file():
        draw_weights(results)
        parts += ["", *_weights(results)]
    if (results / "fetr_descent.csv").is_file():
        draw_descent(results)
        parts += ["", *_descent(results)]
    if (results / "fetr_rounds.csv").is_file():
        parts += ["", *_rounds(results)]
    if (results / "fetr_correlations.csv").is_file():
        draw_correlations(results)
        parts += ["", *_correlations(results)]
    path = results / "fetr.md"
    path.write_text("\n".join(parts) + "\n")
    log(f"written: {path}")
    return path


# ------------------------------------------------------------------------------------------------------------ Table 1


def _values(rows, data, preparation, method) -> list[dict]:
    wanted = [
        row for row in rows if (row["data"], row["preparation"], row["method"]) == (data, preparation, method)
    ]
    return sorted(wanted, key=lambda row: (int(row["partition"]), int(row["seed"])))


def _prediction(rows) -> list[str]:
    lines = ["## Table 1: SARCOS, 4,449-row subsample", ""]
    for preparation in ("scaled labels", "raw labels", "scaled labels and 60 rows"):
        lines += [
            f"### Linear models on {preparation}"
            + (", and networks" if preparation == "scaled labels" else ""),
            "",
        ]
        lines += [*_sarcos_table(rows, preparation), ""]
    lines += ["## Table 1: School", ""]
    for preparation, title in (
        ("intercepts", "Inputs standardised, an unpenalised intercept a school"),
        ("raw inputs", "Inputs as published, with their constant column and no intercept"),
    ):
        table = _school_table(rows, preparation)
        if table:
            lines += [f"### {title}", "", *table, ""]
    return lines


def _sarcos_table(rows, preparation) -> list[str]:
    table = [
        "Mean squared error a torque on the test blocks, mean over the partitions; the paper's in brackets (other rows, ten times as "
        "many to train on).",
        "",
        "| method | partitions | "
        + " | ".join(f"torque {k}" for k in range(1, 8))
        + " | NMSE, mean ± deviation | settings chosen |",
        "|---|---|" + "---|" * 9,
    ]
    for method in _METHODS:
        found = _values(rows, "sarcos", preparation, method)
        if not found:
            continue
        mse = np.mean([[float(v) for v in row["mse"].split()] for row in found], axis=0)
        printed = PAPER_SARCOS.get(method)
        cells = [
            f"{_short(value)}" + (f" ({printed[k]:g})" if printed else "") for k, value in enumerate(mse)
        ]
        table.append(
            f"| {_NAMES.get(method, method)} | {len(found)} | "
            + " | ".join(cells)
            + f" | {_mean(found)} | {_chosen(found)} |"
        )
    return [*table, "", *_pairs(rows, "sarcos", preparation)]


def _school_table(rows, preparation) -> list[str]:
    table = [
        "| method | folds | NMSE, mean ± deviation over folds | paper | settings chosen | capped fits |",
        "|---|---|---|---|---|---|",
    ]
    for method in LINEAR:
        found = _values(rows, "school", preparation, method)
        if not found:
            continue
        printed = PAPER_SCHOOL.get(method)
        capped = sum(int(row["capped"]) for row in found)
        capped = "ten rounds, all" if method in ("MTFRL", "FETR (block)") else capped
        table.append(
            f"| {_NAMES.get(method, method)} | {len(found)} | {_mean(found)} | "
            + (f"{printed[0]:.4f} ± {printed[1]:.4f}" if printed else "")
            + f" | {_chosen(found)} | {capped} of {sum(int(row['fits']) for row in found)} |"
        )
    return [*table, "", *_pairs(rows, "school", preparation)] if len(table) > 2 else []


def _short(value: float) -> str:
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _mean(found) -> str:
    values = np.array([float(row["nmse"]) for row in found])
    return f"{values.mean():.4f}" + (f" ± {values.std(ddof=1):.4f}" if len(values) > 1 else "")


def _chosen(found) -> str:
    settings = [row["chosen"].replace(" ", ", ") for row in found]
    counted = sorted({s: settings.count(s) for s in settings}.items(), key=lambda pair: -pair[1])
    return "; ".join(f"{s} ({n})" if n > 1 else s for s, n in counted[:3]) + (
        "; ..." if len(counted) > 3 else ""
    )


def _pairs(rows, data, preparation) -> list[str]:
    """On how many partitions each method is better than those the paper says it beats, with the mean difference."""
    lines = []
    claims = [("FETR", other) for other in ("STL", "MTFL", "MTRL", "MTFRL", "FETR (block)")]
    if preparation == "scaled labels":
        claims += [("MTN-FETR", "MTN"), ("MTN", "STN"), ("MTN-FETR", "STN"), ("STN", "FETR")]
    for a, b in claims:
        of_a, of_b = (
            {(r["partition"], r["seed"]): float(r["nmse"]) for r in _values(rows, data, preparation, m)}
            for m in (a, b)
        )
        common = sorted(set(of_a) & set(of_b))
        if common:
            d = np.array([of_b[key] - of_a[key] for key in common])
            error = f" ± {d.std(ddof=1) / np.sqrt(len(d)):.4f} (standard error)" if len(d) > 1 else ""
            ties = int(np.sum(np.abs(d) < 5e-5))
            better = int(np.sum(d >= 5e-5))
            lines.append(
                f"- {_NAMES.get(a, a)} below {_NAMES.get(b, b)} on {better} of {len(d)} partitions ({ties} equal to four "
                f"places); mean difference in NMSE {d.mean():+.4f}{error}."
            )
    return lines


# --------------------------------------------------------------------------------------------------- Figures 2(a), (b)


def _weights(results: Path) -> list[str]:
    from mtldsl.solvers.alternation.linear_step import METHODS

    lines = [
        "## The weights' step by size (the paper's Figure 2a)", "", "![seconds against size](fetr_weights.png)", "",
        "Milliseconds, mean ± deviation over up to ten draws (fewer where a method had used 8 s). X: 10,000 rows uniform on [0, 1]^d, "
        "eigenvalues of Sigma1 and Sigma2 over the whole box, eta = 1; X^T X given. Gradient methods stop at a relative residual of 1e-8.",
        "",
    ]  # fmt: skip
    for against, sizes in read_weights(results).items():
        lines += [f"| d x m ({against}) | " + " | ".join(METHODS) + " |", "|---|" + "---|" * len(METHODS)]
        worst = dict.fromkeys(METHODS, 0.0)
        for (d, m), runs in sizes.items():
            cells = []
            for method in METHODS:
                if method not in runs:
                    cells.append("not tried")
                    continue
                seconds, residuals = runs[method]
                worst[method] = max(worst[method], residuals.max())
                cells.append(f"{1e3 * seconds.mean():.3g} ± {1e3 * seconds.std():.2g}")
            lines.append(f"| {d} x {m} | " + " | ".join(cells) + " |")
        lines += [
            "| largest relative residual | " + " | ".join(f"{worst[m]:.0e}" for m in METHODS) + " |",
            "",
        ]
    return lines


_LEVELS = (1e-2, 1e-3, 1e-4, 1e-6)


def _descent(results: Path) -> list[str]:
    lines = [
        "## Objective against time on SARCOS, 4,449-row subsample (the paper's Figure 2b)", "",
        "![objective against time](fetr_descent.png)", "",
        "Ten random starts (W normal; random eigenvectors, eigenvalues uniform in the logarithm over the box), eta = rho = 1, no "
        "intercept. Seconds and iterations until the objective is within a relative distance of the best that any method found, mean over "
        "the starts that got there, their number in brackets where not all did.",
        "",
    ]  # fmt: skip
    for data, descents in read_descents(results).items():
        lines += [
            f"| inputs and labels {data} | " + " | ".join(f"{level:g}: s (iterations)" for level in _LEVELS)
            + " | last objective, mean ± deviation | its distance | seconds run |",
            "|---|" + "---|" * (len(_LEVELS) + 3),
        ]  # fmt: skip
        for method, runs in descents.runs.items():
            cells = []
            for level in _LEVELS:
                reached = descents.reached(method, level)
                few = f" [{len(reached)} of {len(runs)}]" if 0 < len(reached) < len(runs) else ""
                cells.append(
                    f"{np.mean([r[0] for r in reached]):.2g} ({np.mean([r[1] for r in reached]):.0f}){few}"
                    if reached
                    else "never"
                )
            last = descents.last(method)
            lines.append(
                f"| {method} | "
                + " | ".join(cells)
                + f" | {last.mean():.6g} ± {last.std():.2g} | {descents.above(last).mean():.1e} | "
                f"{np.mean([run[0][-1] for run in runs]):.2f} |"
            )
        lines += ["", *_against_projected(descents), ""]
    return lines


def _against_projected(descents) -> list[str]:
    """How much sooner coordinate minimisation is where projected gradient ends."""
    lines = []
    for method in (name for name in descents.runs if name.startswith("projected")):
        ratios = []
        for slow, fast in zip(descents.runs[method], descents.runs["coordinate minimisation"], strict=True):
            there = np.flatnonzero(fast[1] <= slow[1][-1])
            if there.size:
                ratios.append(slow[0][-1] / fast[0][there[0]])
        if ratios:
            lines.append(
                f"- {method}: coordinate minimisation is at or below the objective where it ended after 1/{np.median(ratios):,.0f} of its "
                f"time (median over starts; in {len(ratios)} of {len(descents.runs[method])})."
            )
    return lines


def _rounds(results: Path) -> list[str]:
    lines = [
        "## Rounds that the paper's algorithm needs, and where flip-flop ends, SARCOS, 4,449-row subsample", "",
        "Rounds from the identity until the objective is within a relative distance of the best known, inputs standardised (the paper: "
        '"usually converges in less than 10 iterations"); and the relative distance of flip-flop after its last round (at most 1,000, or 20 s).', "",
        "| labels | eta | rho | " + " | ".join([*(f"{a:g}" for a in ACCURACIES), *(f"flip-flop, fudge {f:g}" for f in FUDGES)]) + " |",
        "|---|---|---|" + "---|" * len(ACCURACIES + FUDGES),
    ]  # fmt: skip
    with (results / "fetr_rounds.csv").open(newline="") as file:
        lines += ["| " + " | ".join(row) + " |" for row in list(csv.reader(file))[1:]]
    return lines


def _correlations(results: Path) -> list[str]:
    lines = [
        "## Correlations of the tasks, SARCOS, 4,449-row subsample (the paper's Figure 3)", "",
        "![task correlations](fetr_correlations.png)", "",
        "The paper: the first four torques are negatively correlated with the other three, the fifth and sixth positively with each other.",
        "",
        "| labels | eta | rho | method | eigenvalues of Sigma2 | residual | negative of the 12 between 1-4 and 5-7 | their mean | "
        "mean among 1-4 | 5 with 6 | 4 with 7 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    with (results / "fetr_correlations.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            C = np.array(row["correlation"].split(), float).reshape(7, 7)
            between, among = C[:4, 4:], C[:4, :4][np.triu_indices(4, 1)]
            name = {"lbfgs": "L-BFGS", "block": "paper's, 10 rounds"}.get(row["method"], row["method"])
            lines.append(
                f"| {row['labels']} | {row['eta']} | {row['rho']} | {name} | {row['spread']} | {row['residual']} | "
                f"{int(np.sum(between < -0.005))} | {between.mean():.2f} | {among.mean():.2f} | {C[4, 5]:.2f} | {C[3, 6]:.2f} |"
            )
    return lines
