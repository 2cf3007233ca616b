"""The parts of fetr.md after Table 1: the weights' step, descents, rounds and correlations, each from its CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from benchmarks.papers.fetr_correlations import ACCURACIES, FUDGES, matrix_of
from benchmarks.papers.fetr_figures import read_descents, read_weights

__all__ = ["correlations_section", "descent_section", "rounds_section", "weights_section"]


def weights_section(results: Path) -> list[str]:
    from mtldsl.solvers.linear_systems.sylvester import METHODS

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


def descent_section(results: Path, name: str) -> list[str]:
    lines = [
        f"## Objective against time on {name} (the paper's Figure 2b)", "",
        "![objective against time](fetr_descent.png)", "",
        "Random starts (W normal; random eigenvectors, eigenvalues uniform in the logarithm over the box), eta = rho = 1, no "
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


def rounds_section(results: Path, name: str) -> list[str]:
    lines = [
        f"## Rounds that the paper's algorithm needs, and where flip-flop ends, {name}", "",
        "Rounds from the identity until the objective is within a relative distance of the best known, inputs standardised (the paper: "
        '"usually converges in less than 10 iterations"); and the relative distance of flip-flop after its last round (at most 1,000, or 20 s).', "",
        "| labels | eta | rho | " + " | ".join([*(f"{a:g}" for a in ACCURACIES), *(f"flip-flop, fudge {f:g}" for f in FUDGES)]) + " |",
        "|---|---|---|" + "---|" * len(ACCURACIES + FUDGES),
    ]  # fmt: skip
    with (results / "fetr_rounds.csv").open(newline="") as file:
        lines += ["| " + " | ".join(row) + " |" for row in list(csv.reader(file))[1:]]
    return lines


def correlations_section(results: Path, sarcos: bool, name: str) -> list[str]:
    if not sarcos:
        return _any_correlations(results, name)
    lines = [
        f"## Correlations of the tasks, {name} (the paper's Figure 3)", "",
        "![task correlations](fetr_correlations.png)", "",
        "The paper: the first four torques are negatively correlated with the other three, the fifth and sixth positively with each other.",
        "",
        "| labels | eta | rho | method | eigenvalues of Sigma2 | residual | negative of the 12 between 1-4 and 5-7 | their mean | "
        "mean among 1-4 | 5 with 6 | 4 with 7 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    with (results / "fetr_correlations.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            C = matrix_of(row)
            between, among = C[:4, 4:], C[:4, :4][np.triu_indices(4, 1)]
            name = {"lbfgs": "L-BFGS", "block": "paper's, 10 rounds"}.get(row["method"], row["method"])
            lines.append(
                f"| {row['labels']} | {row['eta']} | {row['rho']} | {name} | {row['spread']} | {row['residual']} | "
                f"{int(np.sum(between < -0.005))} | {between.mean():.2f} | {among.mean():.2f} | {C[4, 5]:.2f} | {C[3, 6]:.2f} |"
            )
    return lines


def _any_correlations(results: Path, name: str) -> list[str]:
    lines = [
        f"## Correlations of the tasks, {name} (as the paper's Figure 3)", "",
        "![task correlations](fetr_correlations.png)", "",
        "Tasks by their numbers, from 1.", "",
        "| labels | eta | rho | method | eigenvalues of Sigma2 | residual | most positive pair | most negative pair |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    with (results / "fetr_correlations.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            C = matrix_of(row)
            pairs = np.triu_indices(len(C), 1)
            values = C[pairs]
            if not values.size:
                continue
            ends = (int(values.argmax()), int(values.argmin()))
            cells = (f"{pairs[0][k] + 1} with {pairs[1][k] + 1}: {values[k]:.2f}" for k in ends)
            shown = {"lbfgs": "L-BFGS", "block": "paper's, 10 rounds"}.get(row["method"], row["method"])
            lines.append(
                f"| {row['labels']} | {row['eta']} | {row['rho']} | {shown} | {row['spread']} | {row['residual']} | "
                + " | ".join(cells)
                + " |"
            )
    return lines
