"""The rows of smtl_runs.csv as numbers: which runs belong together, their values a partition, and paired tests."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import mtldsl as mtl

__all__ = ["MEASURES", "PENALTIES", "TESTED", "Runs", "read_runs"]

MEASURES = {"macro_f1": "macro-F1", "micro_f1": "micro-F1", "auc": "mean AUC"}
PENALTIES = ("l21", "l1", "trace")
#: The share of the rows that a partition tests.
TESTED = 0.4
_SETTINGS = ("folds", "intercept", "refine")


@dataclass(frozen=True)
class Runs:
    """All rows of one data set of one study (and class ratio) that were made with the same settings."""

    data: str
    ratio: int
    settings: dict[str, str]
    rows: list[dict[str, str]]

    @property
    def seeds(self) -> list[int]:
        return sorted({int(row["seed"]) for row in self.rows})

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(row["method"] for row in self.rows))

    def values(self, method: str, measure: str, select: str = "own") -> dict[int, float]:
        """seed -> value; select="own", or the validation measure that chose lam ("f1", "auc")."""
        wanted = {}
        for row in self.rows:
            own, chosen_by = row["select"].startswith("own: "), row["select"].removeprefix("own: ")
            if row["method"] == method and (own if select == "own" else chosen_by == select):
                wanted[int(row["seed"])] = float(row[measure])
        return wanted

    def mean(self, method: str, measure: str, select: str = "own") -> tuple[float, float, int]:
        """(mean, standard deviation, partitions); NaN without any."""
        v = np.array(list(self.values(method, measure, select).values()))
        if not v.size:
            return np.nan, np.nan, 0
        return float(v.mean()), float(v.std(ddof=1)) if v.size > 1 else np.nan, v.size

    def median(self, method: str, column: str) -> float:
        """Median over the fits that the method's own measure chose; NaN without any."""
        own = [row for row in self.rows if row["method"] == method and row["select"].startswith("own")]
        return float(np.median([float(row[column]) for row in own])) if own else np.nan

    def best(self, measure: str, methods=None) -> str | None:
        """The method with the largest mean over the partitions that all of them have."""
        found = {m: self.values(m, measure) for m in (methods or self.methods)}
        found = {m: v for m, v in found.items() if v}
        if not found:
            return None
        common = set.intersection(*(set(v) for v in found.values()))
        return max(found, key=lambda m: np.mean([found[m][s] for s in common])) if common else None

    def differences(self, a: str, b: str, measure: str, select_b: str = "own") -> np.ndarray:
        """Method a minus method b on the partitions that both have."""
        va, vb = self.values(a, measure), self.values(b, measure, select_b)
        return np.array([va[s] - vb[s] for s in sorted(set(va) & set(vb))])

    def compare(self, a: str, b: str, measure: str, select_b: str = "own"):
        """`mtl.compare` on the common partitions, the t-test corrected for the rows that they share; None with fewer than three."""
        d = self.differences(a, b, measure, select_b)
        return mtl.compare({a: d, b: np.zeros(d.size)}, test_share=TESTED).pairs[0] if d.size > 2 else None


def read_runs(path: Path, study: str) -> list[Runs]:
    """The runs of a study; where a data set was run with several settings, those with the most rows."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["study"] == study]
    groups = []
    for data, ratio in dict.fromkeys((row["data"], row["ratio"]) for row in rows):
        here = [row for row in rows if (row["data"], row["ratio"]) == (data, ratio)]
        (chosen, _), *_ = Counter(tuple(row[s] for s in _SETTINGS) for row in here).most_common(1)
        kept = [row for row in here if tuple(row[s] for s in _SETTINGS) == chosen]
        groups.append(Runs(data, int(ratio), dict(zip(_SETTINGS, chosen, strict=True)), kept))
    return groups
