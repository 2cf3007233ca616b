"""calibrated.md from the CSV files that the runs leave: tables beside the paper's, and what the person who ran it says of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.machine import stamp
from benchmarks.papers.calibrated_convergence import LEVELS, draw_convergence, read_convergence
from benchmarks.papers.calibrated_convergence import METHODS as DESCENTS
from benchmarks.papers.calibrated_data import SIZES
from benchmarks.papers.calibrated_methods import EXTRAS, METHODS
from benchmarks.papers.calibrated_mu import MODELS, draw_mu, read_mu
from benchmarks.papers.calibrated_paper import PAPER_SECONDS, PAPER_SYNTHETIC, PAPER_TABLE
from benchmarks.papers.calibrated_rows import rows_of
from benchmarks.papers.calibrated_table import WAYS

__all__ = ["report"]

#: NC-CMTL minus these, on the same partitions.
RIVALS = tuple(name for name in METHODS if name != "NC-CMTL")


def report(results: Path, log=print) -> Path:
    """Write calibrated.md and its figures; parts without runs are left out."""
    notes = results / "calibrated_notes.txt"
    lines = notes.read_text().strip().splitlines() if notes.is_file() else []
    parts = [
        "# Calibrated multi-task learning (NC-CMTL): the paper's experiments",
        "",
        stamp(),
        "",
        "Made by `python -m benchmarks.papers.calibrated --report-only` from the CSV files `calibrated_*.csv`. SARCOS is a **4,449-row "
        "subsample** throughout: the published test file.",
        "",
        "## Reading",
        "",
        *(f"- {line[2:]}" for line in lines if line.startswith("> ")),
        "",
        "## How it was run, and what differs from the paper",
        "",
        *(f"- {line}" for line in lines if line.strip() and not line.startswith("> ")),
        "",
    ]
    for file, section in (
        ("calibrated_synthetic.csv", _synthetic),
        ("calibrated_mu.csv", _mu),
        ("calibrated_convergence.csv", _convergence),
        ("calibrated_runs.csv", _table),
        ("calibrated_time.csv", _time),
    ):
        if (results / file).is_file():
            parts += [*section(results), ""]
    path = results / "calibrated.md"
    path.write_text("\n".join(parts).rstrip() + "\n")
    log(f"written: {path}")
    return path


def _cell(values, digits: int = 4) -> str:
    values = np.asarray(values, float)
    deviation = f" ± {values.std(ddof=1):.{digits}f}" if values.size > 1 else ""
    return f"{values.mean():.{digits}f}{deviation}"


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
                    f"| {setting} | {variant} | {method} | {len(found)} | {_cell(of['nmse'])} | {_cell(of['nmse_printed'])} | {a} ({b}) | {_cell(of['ee'])} | "
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


# ------------------------------------------------------------------------------------------------------------- Fig. 2


def _mu(results: Path) -> list[str]:
    draw_mu(results)
    curves = read_mu(results)
    failed = Counter(row["status"] for row in rows_of(results / "calibrated_mu.csv"))
    lines = [
        "## Fig. 2: nMSE on SARCOS (4,449-row subsample) against mu",
        "",
        "![nMSE against mu](calibrated_mu.png)",
        "",
        "Mean nMSE over the partitions; `calibrated_mu.csv` has all. Status of the fits: "
        + ", ".join(f"{status} {count}" for status, count in failed.most_common())
        + ".",
        "",
    ]
    shown = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4]
    lines += [
        "| labels | rows | method | partitions | "
        + " | ".join(f"{mu:g}" for mu in shown)
        + " | lowest, at |",
        "|---|---|---|---|" + "---|" * (len(shown) + 1),
    ]
    for way in dict.fromkeys(key[0] for key in curves):
        for size in sorted({key[1] for key in curves}):
            for name in MODELS:
                of_mu = {mu: v.mean() for mu, v in curves.get((way, size, name), {}).items()}
                if of_mu:
                    best = min(of_mu, key=of_mu.get)
                    count = max(len(v) for v in curves[way, size, name].values())
                    cells = (f"{of_mu[mu]:.4f}" if mu in of_mu else "" for mu in shown)
                    lines.append(
                        f"| {way} | {size} | {name} | {count} | "
                        + " | ".join(cells)
                        + f" | {of_mu[best]:.4f} at {best:g} |"
                    )
    return lines


# ------------------------------------------------------------------------------------------------------------- Fig. 3


def _convergence(results: Path) -> list[str]:
    draw_convergence(results)
    lines = [
        "## Fig. 3: convergence of NC-CMTL on School, 20 % to train on",
        "",
        "![objective by iteration](calibrated_convergence.png)",
        "",
        "Iterations from X_i^T y_i until the smoothed objective is within a relative distance of the lowest seen by any method at that eps; "
        'the paper: "converges within 5-10 iterations". Asked for: a residual of 1e-8, at most 1,000 iterations.',
        "",
    ]
    for (eps, loss_eps), of_method in read_convergence(results).items():
        best = min(float(row["objective"]) for rows in of_method.values() for row in rows)
        mu = next(iter(of_method.values()))[0]["mu"]
        lines += [
            f"| eps {eps}, mu {mu}, eps of the loss {loss_eps} | "
            + " | ".join(f"to {level:g}" for level in LEVELS)
            + " | last objective | iterations | s | residual | status | never rises |",
            "|---|" + "---|" * (len(LEVELS) + 6),
        ]
        for method, rows in of_method.items():
            values = np.array([float(row["objective"]) for row in rows])
            cells = []
            for level in LEVELS:
                there = np.flatnonzero(values <= best * (1 + level))
                cells.append(rows[there[0]]["iteration"] if there.size else "never")
            falls = "yes" if (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all() else "no"
            end = rows[-1]
            lines.append(
                f"| {DESCENTS[method]} | "
                + " | ".join(cells)
                + f" | {values[-1]:.9g} | {end['iteration']} | {float(end['seconds']):.2f} | {end['residual']} | {end['status']} | {falls} |"
            )
        lines.append("")
    return lines[:-1]


# ------------------------------------------------------------------------------------------------------------ Table 4


def _table(results: Path) -> list[str]:
    rows = rows_of(results / "calibrated_runs.csv")
    lines = ["## Table 4: School, and SARCOS (4,449-row subsample)", ""]
    for data in SIZES:
        for way in WAYS[data]:
            found = [r for r in rows if (r["data"], r["way"]) == (data, way)]
            if found:
                lines += [*_one_table(data, way, found), ""]
    return lines[:-1]


def _one_table(data, way, rows) -> list[str]:
    sizes = [size for size in SIZES[data] if any(r["size"] == str(size) for r in rows)]
    unit = "%" if data == "school" else " rows"
    title = "School" if data == "school" else f"SARCOS, 4,449-row subsample, {way}"
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
                _cell([r["nmse"] for r in of_size[size]])
                + (f" [{len(of_size[size])}]" if len(of_size[size]) < most[size] else "")
                + (f" ({printed[0]:.4f} ± {printed[1]:.4f})" if printed else "")
                if of_size[size]
                else ""
            )
        capped, failed, fits = (sum(int(r[k]) for r in every) for k in ("uncertified", "failed", "fits"))
        pooled = _cell([r["pooled"] for r in of_size[sizes[-1]]]) if of_size[sizes[-1]] else ""
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


# ------------------------------------------------------------------------------------------------------------ Table 5


def _time(results: Path) -> list[str]:
    rows = rows_of(results / "calibrated_time.csv")
    lines = [
        "## Table 5: seconds of one fit",
        "",
        "Median processor time of five fits on one thread, at the setting chosen in the first partition, to two accuracies (relative gap of the "
        "convex, residual of the others). The paper's machine and accuracy are not known.",
        "",
        "| data | method | setting | 1e-4: s (iterations) | 1e-6: s (iterations) | status at 1e-6 | paper, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, size, method in dict.fromkeys((r["data"], r["size"], r["method"]) for r in rows):
        of = {r["tol"]: r for r in rows if (r["data"], r["method"]) == (data, method)}
        cells = [
            f"{float(of[t]['seconds']):.3f} ({of[t]['iterations']})" if t in of else ""
            for t in ("0.0001", "1e-06")
        ]
        last = of.get("1e-06", {"status": "", "accuracy": ""})
        printed = PAPER_SECONDS.get((data, method))
        lines.append(
            f"| {data} {size} | {method} | {next(iter(of.values()))['chosen'].replace(' ', ', ')} | {cells[0]} | {cells[1]} | "
            f"{last['status']}, {last['accuracy']} | {'' if printed is None else f'{printed:.2f}'} |"
        )
    return lines
