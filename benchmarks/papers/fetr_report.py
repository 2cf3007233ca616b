"""fetr.md from the CSV files that the runs leave: tables beside the paper's, counts, and what the person who ran it says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.claim import reading, written
from benchmarks.papers.fetr_claims import claims, in_general, values_of
from benchmarks.papers.fetr_correlations import draw_correlations
from benchmarks.papers.fetr_figures import draw_descent, draw_weights
from benchmarks.papers.fetr_methods import LINEAR, NETWORKS, networks_missing
from benchmarks.papers.fetr_paper import PAPER_SARCOS, PAPER_SCHOOL
from benchmarks.papers.fetr_sections import (
    correlations_section,
    descent_section,
    rounds_section,
    weights_section,
)
from benchmarks.papers.given_data import data_lines, how_it_was_run
from benchmarks.papers.rows import cell, rows_of

__all__ = ["report"]

_METHODS = (*LINEAR, *NETWORKS)
_NAMES = {"FETR (block)": "FETR, the paper's algorithm"}


def report(results: Path, log=print) -> Path:
    """Write fetr.md and its figures; parts without runs are left out."""
    given = data_lines(results, "fetr")
    rows = rows_of(results / "fetr_runs.csv")
    # a folder holds the paper's studies, or those of one file of the user
    name = given[0].split(":")[0] if given else "SARCOS, 4,449-row subsample"
    read = reading(in_general(rows, name, "") if given else claims(results), bool(given))
    parts = [
        "# FETR: the paper's experiments",
        "",
        written("torch", "scikit-learn"),
        "",
        "Made by `python -m benchmarks.papers.fetr --report-only` from the CSV files `fetr_*.csv`."
        + " SARCOS is a **4,449-row subsample** throughout: the published test file; the 44,484 training rows are not here."
        * (not given),
        "",
        "## Reading",
        "",
        *(read or ["- One partition alone: nothing can be compared."]),
        *how_it_was_run(results, "fetr", *_networks(rows)),
    ]
    if rows:
        parts += ["", *(_any_prediction(rows, name) if given else _prediction(rows))]
    if (results / "fetr_weights.csv").is_file():
        draw_weights(results)
        parts += ["", *weights_section(results)]
    if (results / "fetr_descent.csv").is_file():
        draw_descent(results, name)
        parts += ["", *descent_section(results, name)]
    if (results / "fetr_rounds.csv").is_file():
        parts += ["", *rounds_section(results, name)]
    if (results / "fetr_correlations.csv").is_file():
        torques = ("task", "") if given else ("torque", " (paper: 1-4 against 5-7 negative)")
        draw_correlations(results, name, *torques)
        parts += ["", *correlations_section(results, not given, name)]
    path = results / "fetr.md"
    path.write_text("\n".join(parts) + "\n")
    log(f"written: {path}")
    return path


# ------------------------------------------------------------------------------------------------------------ Table 1


def _networks(rows) -> list[str]:
    """Said where there is no row of a network, though there could be."""
    shared = any(row["preparation"] == "scaled labels" for row in rows)
    missing = networks_missing()
    if missing and shared and not any(row["method"] in NETWORKS for row in rows):
        return [f"{missing[0].upper()}{missing[1:]}."]
    return []


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
        table = _nmse_table(rows, "school", preparation, PAPER_SCHOOL)
        if table:
            lines += [f"### {title}", "", *table, ""]
    return lines


def _any_prediction(rows, name) -> list[str]:
    """A table for data of the user, the same for shared and separate inputs."""
    lines = [
        f"## Table 1: {name}",
        "",
        "NMSE: mean over the tasks of the mean squared error over the variance.",
        "",
    ]
    for preparation in dict.fromkeys(row["preparation"] for row in rows):
        table = _nmse_table(rows, name, preparation, {})
        lines += [f"### {preparation[0].upper()}{preparation[1:]}", "", *table, ""]
    return lines[:-1]


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
        found = values_of(rows, "sarcos", preparation, method)
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
            + f" | {cell([row['nmse'] for row in found])} | {_chosen(found)} |"
        )
    return [*table, "", *_pairs(rows, "sarcos", preparation)]


def _nmse_table(rows, data, preparation, paper) -> list[str]:
    table = [
        f"| method | partitions | NMSE, mean ± deviation over them{' (the paper)' * bool(paper)} | settings chosen | capped fits |",
        "|---|---|---|---|---|",
    ]
    for method in _METHODS:
        found = values_of(rows, data, preparation, method)
        if not found:
            continue
        printed = paper.get(method)
        capped = sum(int(row["capped"]) for row in found)
        capped = "ten rounds, all" if method in ("MTFRL", "FETR (block)") else capped
        table.append(
            f"| {_NAMES.get(method, method)} | {len(found)} | {cell([row['nmse'] for row in found])}"
            + (f" ({printed[0]:.4f} ± {printed[1]:.4f})" if printed else "")
            + f" | {_chosen(found)} | {capped} of {sum(int(row['fits']) for row in found)} |"
        )
    return [*table, "", *_pairs(rows, data, preparation)] if len(table) > 2 else []


def _short(value: float) -> str:
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


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
            {(r["partition"], r["seed"]): float(r["nmse"]) for r in values_of(rows, data, preparation, m)}
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
