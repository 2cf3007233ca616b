"""The rows of mt_mkl_runs.csv of one study, by draw, hierarchy and method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.papers.mt_mkl_data import STUDIES, Part, tree_part
from benchmarks.papers.mt_mkl_methods import USES_HIERARCHY, above

__all__ = ["Runs", "Unit"]


@dataclass(frozen=True)
class Unit:
    """One method on one draw: a row for every C."""

    seed: int
    hierarchy: str
    rows: list[dict]

    @cached_property
    def chosen(self) -> dict:
        return next(row for row in self.rows if row["chosen"] == "1")

    @cached_property
    def theta(self) -> dict[str, float]:
        """The weight of every node, or of every task."""
        pairs = (pair.rsplit("=", 1) for pair in self.chosen["theta"].split(";"))
        return {name: float(value) for name, value in pairs}

    def similarity(self, parents: dict, tasks) -> np.ndarray:
        """sum_m theta_m R_m of a tree: for two tasks the weights of the nodes above both."""
        sets = [set(above(parents, task)) for task in tasks]
        # kernels of trace 1 have no names of nodes, but their order
        weights = (
            dict(zip(parents, self.theta.values(), strict=True))
            if self.hierarchy == "unit trace"
            else self.theta
        )
        share = {
            node: sum(node in nodes for nodes in sets) if self.hierarchy == "unit trace" else 1
            for node in parents
        }
        return np.array([[sum(weights[node] / share[node] for node in a & b) for b in sets] for a in sets])

    def by_level(self, parents: dict) -> np.ndarray:
        """The share of the sum of theta on each level of a tree, from the root down."""
        level = {node: len(above(parents, node)) - 1 for node in parents}
        sums = np.bincount([level[node] for node in self.theta], weights=list(self.theta.values()))
        return sums / sums.sum()

    @property
    def tpr(self) -> np.ndarray:
        return np.array([float(value) for value in self.chosen["tpr"].split()])


class Runs:
    """The runs of one study."""

    def __init__(self, rows: list[dict]):
        self.study = rows[0]["study"]
        self.grid = sorted({float(row["C"]) for row in rows})
        self.seeds = sorted({int(row["seed"]) for row in rows})
        self.count = len(self.seeds)
        self._units: dict[tuple, dict[int, list[dict]]] = {}
        for row in rows:
            of_seed = self._units.setdefault((row["method"], row["hierarchy"]), {})
            of_seed.setdefault(int(row["seed"]), []).append(row)

    @property
    def tested_share(self) -> float:
        """The share of a file's rows that a split tests, as its name says; 0 where every draw is of new data."""
        return 0.0 if self.study in STUDIES else 1.0 - 2 * float(self.study.rsplit(" ", 1)[1])

    def units(self, method: str, hierarchy: str) -> list[Unit]:
        """By seed; of methods without a hierarchy the same for all."""
        of_seed = self._units.get((method, hierarchy if method in USES_HIERARCHY else "none"), {})
        return [Unit(seed, hierarchy, of_seed[seed]) for seed in sorted(of_seed)]

    def at(self, method: str, hierarchy: str, C: float) -> list[float]:
        """AUC on the test rows at one C, a figure a draw."""
        found = (row for unit in self.units(method, hierarchy) for row in unit.rows)
        return [float(row["auc"]) for row in found if np.isclose(float(row["C"]), C)]

    def uncertified(self, method: str, hierarchy: str, C: float) -> int:
        """How many of these fits did not reach the accuracy asked for."""
        found = (row for unit in self.units(method, hierarchy) for row in unit.rows)
        return sum(row["status"] != "optimal" for row in found if np.isclose(float(row["C"]), C))

    def differences(self, one: str, other: str, hierarchy: str) -> np.ndarray:
        """AUC of one minus that of the other at their chosen C, on the draws that both have."""
        a, b = (
            {unit.seed: float(unit.chosen["auc"]) for unit in self.units(name, hierarchy)}
            for name in (one, other)
        )
        return np.array([a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())])

    def part(self, seed: int) -> Part:
        """The draw, made again; those of --quick have fewer tasks, as the number of weights tells."""
        unit = next(u for method in USES_HIERARCHY for u in self.units(method, "true") if u.seed == seed)
        part = tree_part(self.study, seed)
        return (
            part
            if len(part.hierarchies["true"]) == len(unit.theta)
            else tree_part(self.study, seed, quick=True)
        )
