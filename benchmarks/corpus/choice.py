"""Section of the page on the choice of solver: the choice before, and the table with one stall rule, beside the best single route.

The rows (`corpus_choice.csv`) have a problem, its data ("tuning", "judging", or "unseen"), the choice, CPU seconds of solver="auto" and of the
best route that was named, in one run of one machine; empty seconds did not arrive within the limit.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from .regret import TIE

__all__ = ["section"]

_DATA = {
    "tuning": "tuning half",
    "judging": "judging half",
    "unseen": "ten data sets that nobody had run",
}


def section(file: Path) -> str:
    """Return the section, of a file of rows."""
    with open(file, newline="") as opened:
        rows = list(csv.DictReader(opened))
    lines = [
        "## The choice of solver\n",
        f"CPU seconds to 1e-4 over those of the best route that was named, with {1000 * TIE:g} ms added to both. Asked: 95 % within 2 times,",
        "100 % within 4, geometric mean 1.15; on unseen data none above 4, and 1.2.\n",
        "| data | choice | problems | did not arrive | within 2 | within 4 | geometric mean | worst | seconds in all |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for data, words in _DATA.items():
        for choice in ("before", "now"):
            own = [row for row in rows if (row["data"], row["choice"]) == (data, choice)]
            if own:
                lines.append(f"| {words} | {choice} | {_figures(own)} |")
    notes = file.with_name("corpus_choice_notes.txt")
    return "\n".join(lines) + "\n\n" + (notes.read_text() if notes.exists() else "") + "\n"


def _figures(rows: list[dict]) -> str:
    seconds, best = (np.array([float(row[name] or "inf") for row in rows]) for name in ("seconds", "best"))
    arrived = np.isfinite(seconds)
    ratio = (seconds + TIE) / (best + TIE)
    mean = np.exp(np.mean(np.log(ratio[arrived])))
    within = (f"{100 * np.mean(ratio <= factor):.1f} %" for factor in (2, 4))
    figures = (*within, f"{mean:.3f}", f"{ratio[arrived].max():.1f}", f"{seconds[arrived].sum():.1f}")
    return " | ".join((str(len(rows)), str(int((~arrived).sum())), *figures))
