"""The parts of calibrated.md after Table 3 but Table 4: errors against mu, convergence, seconds; each from its CSV file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.papers.calibrated_convergence import LEVELS, draw_convergence, read_convergence
from benchmarks.papers.calibrated_convergence import METHODS as DESCENTS
from benchmarks.papers.calibrated_mu import MODELS, draw_mu, read_mu
from benchmarks.papers.calibrated_paper import PAPER_SECONDS
from benchmarks.papers.rows import rows_of

__all__ = ["convergence_section", "mu_section", "time_section"]


# ------------------------------------------------------------------------------------------------------------- Fig. 2


def mu_section(results: Path, name: str, given: bool) -> list[str]:
    unit, test = (" % to train on", "rows") if given else (" training rows", "blocks")
    draw_mu(results, name, unit, test)
    curves = read_mu(results)
    failed = Counter(row["status"] for row in rows_of(results / "calibrated_mu.csv"))
    lines = [
        f"## Fig. 2: nMSE on {name} against mu",
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
        f"| labels | {'per cent' if given else 'rows'} | method | partitions | "
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


def convergence_section(results: Path, name: str) -> list[str]:
    draw_convergence(results, name)
    lines = [
        f"## Fig. 3: convergence of NC-CMTL on {name}",
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


# ------------------------------------------------------------------------------------------------------------ Table 5


def time_section(results: Path) -> list[str]:
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
