"""mt_mkl.md from mt_mkl_runs.csv: tables beside the paper's figures, and what the person who ran it says of them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.papers.claim import reading, written
from benchmarks.papers.given_data import how_it_was_run
from benchmarks.papers.mt_mkl_claims import claims, in_general
from benchmarks.papers.mt_mkl_data import STUDIES
from benchmarks.papers.mt_mkl_figures import draw_roc, draw_similarity
from benchmarks.papers.mt_mkl_methods import EXTRAS, HIERARCHIES, METHODS, USES_HIERARCHY
from benchmarks.papers.mt_mkl_paper import PAPER_AUC
from benchmarks.papers.mt_mkl_runs import Runs
from benchmarks.papers.rows import cell, rows_of

__all__ = ["report"]

_NAMES = (*METHODS, *EXTRAS)


def report(results: Path, log=print) -> Path:
    """Write mt_mkl.md and its figures; parts without runs are left out."""
    rows = rows_of(results / "mt_mkl_runs.csv")
    studies = {
        study: Runs([row for row in rows if row["study"] == study])
        for study in dict.fromkeys(row["study"] for row in rows)
    }
    parts = [
        "# Multi-task multiple kernel learning (MT-MKL): the paper's experiment",
        "",
        written("scikit-learn"),
        "",
        "Made by `python -m benchmarks.papers.mt_mkl --report-only` from `mt_mkl_runs.csv`.",
        "",
        "## Reading",
        "",
        *_reading(studies),
        *how_it_was_run(results, "mt_mkl"),
    ]
    for study, runs in studies.items():
        if study == "corrected":
            draw_roc(runs, results / "mt_mkl_roc.png")
            draw_similarity(runs, results / "mt_mkl_similarity.png")
            parts += ["", *_corrected(runs)]
        elif study == "printed":
            parts += ["", *_printed(runs)]
        else:
            parts += ["", *_given(runs, study)]
    path = results / "mt_mkl.md"
    path.write_text("\n".join(parts) + "\n")
    log(f"written: {path}")
    return path


def _reading(studies) -> list[str]:
    lines = reading(claims(studies))
    for study, runs in studies.items():
        if study not in STUDIES:
            found = reading(in_general(runs, "inferred", ""), True)
            lines += [f"{line[:2]}{study}: {line[2:]}" for line in found]
    return lines or ["- One draw, or split, alone: nothing can be compared."]


# ------------------------------------------------------------------------------------------------- Figure 1


def _corrected(runs: Runs) -> list[str]:
    return [
        "## Figure 1(b): AUC, the tree that made the data given",
        "",
        "![ROC curves, and AUC against C](mt_mkl_roc.png)",
        "",
        f"Mean ± standard deviation over {_several(runs.count, 'draw')} of the AUC averaged over tasks; the paper's figure is of one draw. "
        f"No classifier has more than {runs.part(runs.seeds[0]).bayes_auc:.3f} (Bayes). Best C: "
        "the C with the highest AUC on the test rows, which shows what the choice of C costs.",
        "",
        *_table(runs, "true", _NAMES, beside=True),
        "",
        *_pairs(runs, "true"),
        "",
        "## AUC against C",
        "",
        *_by_C(runs, "true"),
        "",
        "## The tree inferred from the training rows",
        "",
        "Average linkage on the cosines of the tasks' mean differences (`datasets.hierarchy(datasets.estimate_similarity(train), ...)`), "
        "20 rows a task.",
        "",
        *_table(runs, "inferred", USES_HIERARCHY),
        "",
        *_pairs(runs, "inferred"),
        "",
        "## The tree given, with kernels of trace 1",
        "",
        "Each node's indicator is divided by the number of tasks below it, as kernels are often normalised before MKL; Vanilla is again "
        "theta = 1, of these kernels.",
        "",
        *_table(runs, "unit trace", USES_HIERARCHY),
        "",
        *_pairs(runs, "unit trace"),
        "",
        "## Figure 1(a): the similarity that is learned",
        "",
        "![true and learned similarity](mt_mkl_similarity.png)",
        "",
        *_similarity(runs),
    ]


def _table(runs: Runs, hierarchy: str, methods, beside: bool = False) -> list[str]:
    """beside: with the paper's figures."""
    heads = {
        "method": True,
        "AUC, C chosen": True,
        "paper": beside,
        "C chosen: median (range)": True,
        "best C: AUC": True,
        "weights that count": True,
        "not certified": True,
        "s a path": True,
    }
    lines = [
        "| " + " | ".join(head for head, shown in heads.items() if shown) + " |",
        "|---" * sum(heads.values()) + "|",
    ]
    for method in methods:
        units = runs.units(method, hierarchy)
        if not units:
            continue
        chosen = [unit.chosen for unit in units]
        Cs = np.array([float(row["C"]) for row in chosen])
        fits = [row for unit in units for row in unit.rows]
        cells = (
            f"*{method}*" if method in EXTRAS else method,
            cell([row["auc"] for row in chosen]),
            _digits(PAPER_AUC.get(method)),
            f"{np.median(Cs):.2g} ({Cs.min():.2g} to {Cs.max():.2g})",
            cell([max(float(row["auc"]) for row in unit.rows) for unit in units]),
            f"{np.mean([int(row['nodes']) for row in chosen]):.0f} of {len(units[0].theta)}",
            f"{sum(row['status'] != 'optimal' for row in fits)} of {len(fits)}",
            f"{np.median([sum(float(row['seconds']) for row in unit.rows) for unit in units]):.1f}",
        )
        shown = [text for text, is_shown in zip(cells, heads.values(), strict=True) if is_shown]
        lines.append("| " + " | ".join(shown) + " |")
    return lines


def _several(n: int, what: str) -> str:
    return f"{n} {what}" + "s" * (n != 1)


def _digits(value) -> str:
    return "" if value is None else f"{value:.3f}"


def _pairs(runs: Runs, hierarchy: str) -> list[str]:
    """Differences on the same draws, each method at its own chosen C."""
    lines = [
        "Differences on the same draws, each method at the C chosen for it: mean ± standard error; higher on so many draws.",
        "",
        "| | " + " | ".join(f"minus {name}" for name in METHODS) + " |",
        "|---|" + "---|" * len(METHODS),
    ]
    for one in USES_HIERARCHY:
        cells = []
        for other in METHODS:
            d = runs.differences(one, other, hierarchy)
            cells.append("" if one == other or not d.size else _difference(d))
        if any(cells):
            lines.append(f"| {one} | " + " | ".join(cells) + " |")
    return lines


def _difference(d) -> str:
    error = f" ± {d.std(ddof=1) / np.sqrt(d.size):.4f}" if d.size > 1 else ""
    return f"{d.mean():+.4f}{error}; {int((d > 0).sum())} of {d.size}"


def _by_C(runs: Runs, hierarchy: str) -> list[str]:
    lines = [
        "Mean over the draws; the highest of each row in bold; * where not all fits are certified.",
        "",
        "| method | " + " | ".join(f"{C:.2g}" for C in runs.grid) + " |",
        "|---|" + "---|" * len(runs.grid),
    ]
    for method in _NAMES:
        means = [np.mean(runs.at(method, hierarchy, C) or np.nan) for C in runs.grid]
        if not np.isnan(means).all():
            best = np.nanmax(means)
            marks = ["*" if runs.uncertified(method, hierarchy, C) else "" for C in runs.grid]
            cells = [
                (f"**{mean:.3f}**" if mean == best else f"{mean:.3f}") + mark
                for mean, mark in zip(means, marks, strict=True)
            ]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def _similarity(runs: Runs) -> list[str]:
    lines = [
        "sum_m theta_m R_m beside the true similarity, at the C chosen: correlation over the pairs of tasks, and alignment (the cosine of "
        "the two matrices, diagonal and level included); mean ± deviation over the draws. Vanilla's is that of the tree itself, as "
        "nothing is learned.",
        "",
        "| method | correlation: the tree given | inferred | trace 1 | alignment: the tree given | inferred | trace 1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in USES_HIERARCHY:
        cells = [
            cell([unit.chosen[measure] for unit in runs.units(method, hierarchy)], 3)
            for measure in ("alike", "alignment")
            for hierarchy in HIERARCHIES
        ]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    shares, parents = defaultdict(list), runs.part(runs.seeds[0]).hierarchies["true"]
    for method in USES_HIERARCHY[:-1]:
        for unit in runs.units(method, "true"):
            for level, share in enumerate(unit.by_level(parents)):
                shares[method, level].append(share)
    levels = sorted({level for _, level in shares})
    lines += [
        "",
        "Share of the sum of theta on each level of the tree given, mean over the draws (the root is level 0, the leaves the last):",
        "",
        "| method | " + " | ".join(f"level {level}" for level in levels) + " |",
        "|---|" + "---|" * len(levels),
    ]
    for method in USES_HIERARCHY[:-1]:
        if (method, 0) in shares:
            cells = [f"{np.mean(shares[method, level]):.3f}" for level in levels]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


# --------------------------------------------------------------------------------- as printed, and other data


def _printed(runs: Runs) -> list[str]:
    lines = [
        "## The data as printed: standard deviation 20, depth 4",
        "",
        f"16 tasks. No classifier has an AUC above {runs.part(runs.seeds[0]).bayes_auc:.3f} (Bayes), so that the paper's figures, in brackets, cannot come from these "
        f"data. {_several(runs.count, 'draw')}.",
        "",
        "| method | AUC, C chosen | best C: AUC |",
        "|---|---|---|",
    ]
    for method in _NAMES:
        units = runs.units(method, "true")
        if units:
            paper = f" ({PAPER_AUC[method]:.3f})" if method in PAPER_AUC else ""
            best = cell([max(float(row["auc"]) for row in unit.rows) for unit in units])
            lines.append(f"| {method} | {cell([unit.chosen['auc'] for unit in units])}{paper} | {best} |")
    return lines


def _given(runs: Runs, study: str) -> list[str]:
    return [
        f"## {study.rsplit(' ', 1)[0]}: {float(study.rsplit(' ', 1)[1]):.0%} of the rows to train on",
        "",
        f"{_several(runs.count, 'random split')}, the tree inferred from the training rows; an intercept a task.",
        "",
        *_table(runs, "inferred", METHODS),
        "",
        *_pairs(runs, "inferred"),
    ]
