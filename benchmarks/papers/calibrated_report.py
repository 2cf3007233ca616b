"""calibrated.md from the CSV files that the runs leave: tables beside the paper's, and what the person who ran it says of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.papers.calibrated_claims import claims, in_general
from benchmarks.papers.calibrated_methods import EXTRAS, METHODS
from benchmarks.papers.calibrated_paper import PAPER_SYNTHETIC, PAPER_TABLE
from benchmarks.papers.calibrated_sections import convergence_section, mu_section, time_section
from benchmarks.papers.claim import reading, written
from benchmarks.papers.given_data import data_lines, how_it_was_run
from benchmarks.papers.rows import cell, rows_of

__all__ = ["report"]

#: NC-CMTL minus these, on the same partitions.
RIVALS = tuple(name for name in METHODS if name != "NC-CMTL")


def report(results: Path, log=print) -> Path:
    """Write calibrated.md and its figures; parts without runs are left out."""
    given = data_lines(results, "calibrated")
    # a folder holds the paper's studies, or those of one file of the user
    name = given[0].split(":")[0] if given else ""
    read = reading(in_general(results, name) if given else claims(results), bool(given))
    parts = [
        "# Calibrated multi-task learning (NC-CMTL): the paper's experiments",
        "",
        written(),
        "",
        "Made by `python -m benchmarks.papers.calibrated --report-only` from the CSV files `calibrated_*.csv`."
        + " SARCOS is a **4,449-row subsample** throughout: the published test file." * (not given),
        "",
        "## Reading",
        "",
        *(read or ["- One partition alone: nothing can be compared."]),
        *how_it_was_run(results, "calibrated"),
        "",
    ]
    sarcos, school = (name, name) if given else ("SARCOS (4,449-row subsample)", "School, 20 % to train on")
    for file, section in (
        ("calibrated_synthetic.csv", _synthetic),
        ("calibrated_mu.csv", lambda folder: mu_section(folder, sarcos, bool(given))),
        ("calibrated_convergence.csv", lambda folder: convergence_section(folder, school)),
        ("calibrated_runs.csv", _table),
        ("calibrated_time.csv", time_section),
    ):
        if (results / file).is_file():
            parts += [*section(results), ""]
    path = results / "calibrated.md"
    path.write_text("\n".join(parts).rstrip() + "\n")
    log(f"written: {path}")
    return path


def _chosen(rows) -> str:
    counted = Counter(row["chosen"].replace(" ", ", ") for row in rows).most_common(3)
    return "; ".join(f"{setting} ({n})" if n > 1 else setting for setting, n in counted)


# ------------------------------------------------------------------------------------------------------------ Table 3


def _synthetic(results: Path) -> list[str]:
    rows = rows_of(results / "calibrated_synthetic.csv")
    repeats = len({row["repeat"] for row in rows})
    lines = [
        "## Table 3: noise that differs by task",
        "",
        f"At most {repeats} data set(s) a setting, their number in the table, mean ± deviation over them; the paper's 100 with its standard "
        "errors in brackets. Error: "
        "||W - W*||_F^2 / K; noisy, quiet: the same over the quarter of the tasks with the most and the least noise. nMSE: mean over tasks of "
        "MSE / var(y) on the test rows; (52): MSE / ||y||, as printed.",
        "",
        "| noise | variant | method | data sets | nMSE | (52) | nMSE, paper | error | error, paper | noisy | quiet | rank | mu chosen | not certified | s a fit |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for setting in dict.fromkeys(row["setting"] for row in rows):
        for variant in dict.fromkeys(row["variant"] for row in rows):
            errors = {}
            for method in ("NC-MTL", "NC-CMTL"):
                found = [
                    r for r in rows if (r["setting"], r["variant"], r["method"]) == (setting, variant, method)
                ]
                if not found:
                    continue
                of = {
                    k: [float(r[k]) for r in found]
                    for k in ("nmse", "nmse_printed", "ee", "ee_noisy", "ee_quiet", "rank")
                }
                errors[method] = {r["repeat"]: float(r["ee"]) for r in found}
                a, b, c, d = PAPER_SYNTHETIC[setting, method]
                capped, fits = (sum(int(r[k]) for r in found) for k in ("uncertified", "fits"))
                lines.append(
                    f"| {setting} | {variant} | {method} | {len(found)} | {cell(of['nmse'])} | {cell(of['nmse_printed'])} | {a} ({b}) | {cell(of['ee'])} | "
                    f"{c} ({d}) | {np.mean(of['ee_noisy']):.3g} | {np.mean(of['ee_quiet']):.3g} | {np.median(of['rank']):g} | "
                    f"{_chosen(found)} | {capped} of {fits} | {np.median([float(r['fit_seconds']) for r in found]):.1f} |"
                )
            if len(errors) == 2:
                both = sorted(set(errors["NC-MTL"]) & set(errors["NC-CMTL"]))
                if both:
                    mean = {m: np.mean([errors[m][k] for k in both]) for m in errors}
                    wins = sum(errors["NC-CMTL"][k] < errors["NC-MTL"][k] for k in both)
                    printed = PAPER_SYNTHETIC[setting, "NC-MTL"][2] / PAPER_SYNTHETIC[setting, "NC-CMTL"][2]
                    ratios.append(
                        f"- {setting}, {variant}: the error of NC-MTL is {mean['NC-MTL'] / mean['NC-CMTL']:.2f} times that of NC-CMTL (the "
                        f"paper: {printed:.2f}); NC-CMTL is better on {wins} of {len(both)}."
                    )
    return [*lines, "", *ratios]


# ------------------------------------------------------------------------------------------------------------ Table 4


def _table(results: Path) -> list[str]:
    rows = rows_of(results / "calibrated_runs.csv")
    sets = list(dict.fromkeys((row["data"], row["way"]) for row in rows))
    lines = ["## Table 4", ""]
    for data, way in sorted(sets, key=lambda pair: pair[0] != "school"):
        found = [r for r in rows if (r["data"], r["way"]) == (data, way)]
        lines += [*_one_table(data, way, found), ""]
    return lines[:-1]


def _one_table(data, way, rows) -> list[str]:
    sizes = sorted({int(r["size"]) for r in rows})
    unit = " rows" if data == "sarcos" else "%"
    title = {"school": "School", "sarcos": f"SARCOS, 4,449-row subsample, {way}"}.get(data, f"{data}, {way}")
    counts = ", ".join(
        f"{len({r['partition'] for r in rows if r['size'] == str(s)})} at {s}{unit}" for s in sizes
    )
    lines = [
        f"### {title}",
        "",
        f"nMSE on the test rows, mean ± deviation over partitions ({counts}; where a method has fewer, their number "
        "in square brackets); the paper's in round brackets.",
        "",
        "| method | "
        + " | ".join(f"{size}{unit}" for size in sizes)
        + (" | pooled nMSE at " + f"{sizes[-1]}{unit}")
        + " | chosen at "
        + " | chosen at ".join(f"{size}{unit}" for size in sizes)
        + " | rank | not certified | failed | s a fit |",
        "|---|" + "---|" * (2 * len(sizes) + 5),
    ]
    by = {(r["size"], r["method"], r["partition"]): r for r in rows}
    most = {size: len({r["partition"] for r in rows if r["size"] == str(size)}) for size in sizes}
    for method in METHODS:
        of_size = {size: [r for key, r in by.items() if key[:2] == (str(size), method)] for size in sizes}
        every = [r for found in of_size.values() for r in found]
        if not every:
            continue
        cells = []
        for size in sizes:
            printed = PAPER_TABLE.get((data, size, method))
            cells.append(
                cell([r["nmse"] for r in of_size[size]])
                + (f" [{len(of_size[size])}]" if len(of_size[size]) < most[size] else "")
                + (f" ({printed[0]:.4f} ± {printed[1]:.4f})" if printed else "")
                if of_size[size]
                else ""
            )
        capped, failed, fits = (sum(int(r[k]) for r in every) for k in ("uncertified", "failed", "fits"))
        pooled = cell([r["pooled"] for r in of_size[sizes[-1]]]) if of_size[sizes[-1]] else ""
        ranks = "/".join(f"{np.median([int(r['rank']) for r in of_size[s]]):g}" for s in sizes if of_size[s])
        seconds = np.median([float(r["fit_seconds"]) for r in every])
        name = f"*{method}*" if method in EXTRAS or method == "NC-MTL" else method
        lines.append(
            f"| {name} | " + " | ".join(cells) + f" | {pooled} | " + " | ".join(_chosen(of_size[s]) for s in sizes)
            + f" | {ranks} | {capped} of {fits} | {failed} | {seconds:.2g} |"
        )  # fmt: skip
    lines += [
        "",
        "In italics: not in the paper's table. Rank: median, by size. NC-CMTL against the others, on the same partitions:",
        "",
    ]
    lines += [
        "| NC-CMTL minus | "
        + " | ".join(f"{s}{unit}: mean ± standard error; better on" for s in sizes)
        + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for rival in RIVALS:
        cells = []
        for size in sizes:
            pairs = [
                (float(by[str(size), "NC-CMTL", p]["nmse"]), float(by[str(size), rival, p]["nmse"]))
                for p in sorted({key[2] for key in by})
                if (str(size), "NC-CMTL", p) in by and (str(size), rival, p) in by
            ]
            if not pairs:
                cells.append("")
                continue
            d = np.array([a - b for a, b in pairs])
            error = f" ± {d.std(ddof=1) / np.sqrt(d.size):.4f}" if d.size > 1 else ""
            cells.append(f"{d.mean():+.4f}{error}; {int((d < 0).sum())} of {d.size}")
        if any(cells):
            lines.append(f"| {rival} | " + " | ".join(cells) + " |")
    return lines
