"""cgm.md from cgm_runs.csv and cgm_history.csv: tables beside the paper's figures, and what the person who ran it says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.cgm_claims import claims, in_general, mean, of
from benchmarks.papers.cgm_data import MEASURES, REAL
from benchmarks.papers.cgm_figures import NAMES, draw_convergence, draw_growth
from benchmarks.papers.cgm_methods import METHODS
from benchmarks.papers.cgm_paper import PAPER_SCENE, PAPER_TABLE_2
from benchmarks.papers.cgm_studies import NOISES, SIZES
from benchmarks.papers.claim import reading, written
from benchmarks.papers.given_data import how_it_was_run
from benchmarks.papers.printed import printed
from benchmarks.papers.rows import cell, rows_of
from mtldsl.data.synthetic import STAR

__all__ = ["report"]

#: Studies that are the paper's; others are on files of the user.
_OWN_SOLVERS = ("star", "star, noise", "scene", "emotions", "flags", "scores")
_TRUE = {f"y{i}--y{j}" for i, j in STAR}


def report(results: Path, log=print) -> Path:
    """Write cgm.md and its figures; parts without runs are left out."""
    rows, history = rows_of(results / "cgm_runs.csv"), rows_of(results / "cgm_history.csv")
    studies = {name: [row for row in rows if row["study"] == name] for name in {row["study"] for row in rows}}
    given = [name for name in studies if name not in _OWN_SOLVERS and not name.startswith("growth")]
    parts = [
        "# Clique generation (CGM): the paper's experiments",
        "",
        written("scikit-learn", "numba"),
        "",
        "Made by `python -m benchmarks.papers.cgm --report-only` from `cgm_runs.csv` and `cgm_history.csv`.",
        "",
        "## Reading",
        "",
        *_reading(studies, given, history),
        *how_it_was_run(results, "cgm"),
    ]
    if "star" in studies:
        parts += ["", *_star(studies["star"], studies.get("star, noise", []))]
    if "scores" in studies:
        parts += ["", *_scores(studies["scores"])]
    if history:
        draw_convergence(history, results / "cgm_convergence.png")
        parts += ["", *_convergence(history)]
    for name in (*(name for name in _OWN_SOLVERS if name in REAL), *given):
        if name in studies:
            parts += ["", *_real(name, studies[name])]
    for study in (name for name in studies if name.startswith("growth")):
        data = study.removeprefix("growth").removeprefix(", ")
        paper = dict(
            zip(("hamming", "macro_f1", "micro_f1", "micro_precision"), PAPER_SCENE["CGM"], strict=True)
        )
        picture = f"cgm_growth{f'_{data}' * bool(data)}.png"
        draw_growth(studies[study], SIZES, {} if data else paper, results / picture)
        parts += ["", *_growth(studies[study], data or "Scene", picture)]
    path = results / "cgm.md"
    path.write_text("\n".join(parts) + "\n")
    log(f"written: {path}")
    return path


def _reading(studies, given, history) -> list[str]:
    lines = [] if given else reading(claims(studies, history))
    for name in given:
        lines += reading(in_general(name, studies[name], ""), True)
    return lines or ["- One draw, or fold, alone: nothing can be compared."]


def _cell(rows, column, digits=4) -> str:
    return cell([row[column] for row in rows], digits)


def _edges(row) -> set[str]:
    return set(filter(None, row["edges"].split(";")))


def _figure(value) -> str:
    return "" if value is None else f"{value:.4f}"


# -------------------------------------------------------------------------------------------------- Table 2


def _star(rows, noisy) -> list[str]:
    draws = len({row["seed"] for row in rows})
    base = of(rows, "CGM, refit")
    lines = [
        "## Table 2: Hamming loss on the synthetic star",
        "",
        f"Mean ± standard deviation over {draws} draws; the paper's figure is of one. Against the refit: "
        "the quotient of the means. Exactly the star: on how many draws the edges found are the four true ones, with how many edges in "
        "the mean. 5 % noise: as many of the training labels are turned, test labels are not.",
        "",
        "| method | Hamming loss | paper | against the refit | exactly the star | edges | 5 % noise: Hamming loss | exactly the star | edges | not certified | s |",
        "|---" * 11 + "|",
    ]
    for method in METHODS:
        found, found_noisy = of(rows, method), of(noisy, method)
        if not found:
            continue
        quotient = f"{mean(found, 'hamming') / mean(base, 'hamming'):.1f}" if base else ""
        lines.append(
            f"| {method} | {_cell(found, 'hamming')} | {_figure(PAPER_TABLE_2.get(method))} "
            f"| {quotient} | {_recovered(method, found)} | {_cell(found_noisy, 'hamming')} | {_recovered(method, found_noisy)} "
            f"| {_uncertified(found + found_noisy)} | {_median(found, 'seconds')} |"
        )
    others = ", ".join(f"{name} {found['hamming']:.3f}" for name, found in printed("CGM", "star").items())
    return [*lines, "", f"Not here, as printed in the paper: {others}."]


def _recovered(method, rows) -> str:
    """Two cells: on how many draws the edges are the true ones, and how many edges there are."""
    learns = method.startswith(("CGM", "HLLM", "Chow"))
    if not rows or not learns:
        return " | "
    exact = sum(_edges(row) == _TRUE for row in rows)
    return f"{exact} of {len(rows)} | {np.mean([len(_edges(row)) for row in rows]):.1f}"


def _uncertified(rows) -> str:
    """How many fits of a solver with certificates ended by the number of epochs or a time, and how many of those that chose a setting."""
    certified = [row["status"] == "optimal" for row in rows if row["status"]]
    tried, capped = (sum(int(row.get(name) or 0) for row in rows) for name in ("tried", "tried_capped"))
    chose = f"; choosing {capped} of {tried}" if tried else ""
    return f"{certified.count(False)} of {len(certified)}{chose}" if certified else ""


def _median(rows, column) -> str:
    return f"{np.median([float(row[column]) for row in rows]):.2f}" if rows else ""


def _scores(rows) -> list[str]:
    lines = [
        "## The first edges: scores of all 45 candidates at the dual of the model without edges",
        "",
        "| training labels turned | the four highest are the star | the true edges' places, worst draw |",
        "|---|---|---|",
    ]
    for noise in NOISES:
        found = of(rows, f"noise {noise:g}")
        if found:
            orders = [row["edges"].split(";") for row in found]
            right = sum(set(order[:4]) == _TRUE for order in orders)
            worst = max(max(order.index(edge) + 1 for edge in _TRUE) for order in orders)
            lines.append(f"| {noise:.0%} | {right} of {len(found)} | 1 to {worst} of 45 |")
    return lines


def _convergence(history) -> list[str]:
    lines = [
        "## Figure 2: objective against epochs, one draw",
        "",
        "![objective and gap against epochs](cgm_convergence.png)",
        "",
        "The penalties differ: half the squared group k-support norm with r = 2 of CGM, ridge of the fixed graphs.",
        "",
        "| | objective | relative gap | edges | epochs | s |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["method"] for row in history):
        last = of(history, name)[-1]
        objective, bound = float(last["objective"]), float(last["dual_bound"])
        lines.append(
            f"| {name} | {objective:.5f} | {(objective - bound) / abs(objective):.1e} | {last['edges']} | {last['epoch']} "
            f"| {float(last['seconds']):.1f} |"
        )
    return lines


# -------------------------------------------------------------------------------------------------- Table 3


def _real(name, rows) -> list[str]:
    folds = len({row["seed"] for row in rows})
    scene = name == "scene"
    lines = [
        f"## {'Table 3: ' * scene}{name.capitalize()}",
        "",
        f"Mean ± standard deviation over {folds} fold{'s' * (folds != 1)}. Lambda and r, C, M and alpha, or C and alpha, by the Hamming loss on a fifth of each fold's "
        "training rows."
        + (
            ' In brackets the paper\'s, whose "Recall" is precision over all labels together (micro-precision), as its F1 shows: '
            '2 P R / (P + R) = F1 gives R = .633 from P = .790, and its own Table 4 prints .640 as CGM\'s "Precision".'
            if scene
            else ""
        ),
        "",
        "| method | "
        + " | ".join(NAMES[measure] for measure in MEASURES)
        + " | edges | not certified | s a fit | slowest | chosen |",
        "|---" * (len(MEASURES) + 6) + "|",
    ]
    for method in METHODS:
        found = of(rows, method)
        if not found:
            continue
        paper = dict(zip(MEASURES, PAPER_SCENE.get(method, ()), strict=False)) if scene else {}
        cells = [
            _cell(found, measure, 3) + (f" ({paper[measure]:.3f})" if measure in paper else "")
            for measure in MEASURES
        ]
        edges = f"{np.mean([len(_edges(row)) for row in found]):.1f}" if found[0]["edges"] else ""
        slowest = [float(row["slowest_setting"] or row["seconds"]) for row in found]
        chosen = "; ".join(sorted({row["setting"] for row in found}))
        lines.append(
            f"| {method} | {' | '.join(cells)} | {edges} | {_uncertified(found)} | {_median(found, 'seconds')} | {max(slowest):.2f} | {chosen} |"
        )
    if scene:
        lines += [
            "",
            f"Systems of other papers, as printed in Table 4 (macro-F1, micro-F1, precision): {_printed('scene')}.",
        ]
    return lines


def _printed(data: str) -> str:
    systems = printed("CGM", data).items()
    return "; ".join(
        f"{system} {', '.join(f'{value:.3f}' for value in found.values())}" for system, found in systems
    )


def _growth(rows, name: str, picture: str) -> list[str]:
    lines = [
        f"## Figure 3: {name} against the number of edges",
        "",
        f"![measures against the number of edges]({picture})",
        "",
        "One edge a round, at the lambda and r chosen for CGM in each fold; the relaxation is solved over the edges there are.",
        "",
        "| edges at most | " + " | ".join(NAMES[measure] for measure in MEASURES) + " |",
        "|---" * (len(MEASURES) + 1) + "|",
    ]
    for size in SIZES:
        found = of(rows, f"{size} edges")
        if found:
            lines.append(f"| {size} | " + " | ".join(_cell(found, measure, 3) for measure in MEASURES) + " |")
    return lines
