"""Fit of the route table: the order of routes, and the numbers of its patterns, read off the tuning half's rows of single routes.

python benchmarks/corpus --fit prints, for the first route of every problem, the regret of the table as it is and of the fitted one, by family.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from .data import SETS
from .instance import Instance
from .problems import Problem
from .regret import TIE

__all__ = ["Table", "fitted_numbers", "fitted_order", "report"]

#: what a route that does not arrive counts as, in times of the best one
UNSOLVED = 100.0
#: values that a number of a pattern is tried at, as multiples of the present one
MULTIPLES = (0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0)


class Table:
    """Seconds of single routes, and of methods that patterns name (problems x columns; nan where one refuses), and which patterns hold."""

    def __init__(self, problems: Iterable[Problem], rows: Iterable[dict], tol: float = 1e-4):
        from mtldsl.solvers.route_table import PATTERNS
        from mtldsl.solvers.routes import LAST, SOLVERS

        names = [name for name in SOLVERS if name != LAST and "mtldsl.distributed" not in str(SOLVERS[name])]
        methods = [name for pattern in PATTERNS for name in pattern.first if "." in name]
        columns = [*names, *methods]
        seconds: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["route"] in columns and row["tol"] == tol:
                good = row["status"] in ("optimal", "stationary")
                seconds.setdefault(row["problem"], {})[row["route"]] = row["seconds"] if good else np.inf
        self.problems = [p for p in problems if p.half == "tuning" and len(seconds.get(p.id, ())) > 1]
        self.routes, self.columns, self.patterns = names, columns, list(PATTERNS)
        load = cache(lambda name: SETS[name].load())
        self.forms = [Instance(p, SETS[p.data], load(p.data)).form for p in self.problems]
        found = [[seconds[p.id].get(name, np.nan) for name in columns] for p in self.problems]
        self.seconds = np.array(found)
        with np.errstate(invalid="ignore"):
            cost = (self.seconds + TIE) / (np.nanmin(self.seconds, axis=1, keepdims=True) + TIE)
        self.log_cost = np.log(np.minimum(cost, UNSOLVED))
        self.holds = self.held_by(self.patterns)

    def held_by(self, patterns) -> np.ndarray:
        """(problems, patterns)."""
        return np.array([[pattern.holds(form) for pattern in patterns] for form in self.forms])

    def first_routes(self, order: Iterable[str], holds: np.ndarray) -> np.ndarray:
        """The column of the route that goes first on every problem."""
        column = {name: k for k, name in enumerate(self.columns)}
        ranked = np.array([column[name] for name in order])
        first = np.full(len(self.problems), -1)
        for k, row in enumerate(self.seconds):
            ahead = [column[name] for j in np.flatnonzero(holds[k]) for name in self.patterns[j].first]
            first[k] = next(c for c in [*ahead, *ranked] if not np.isnan(row[c]))
        return first

    def mean_cost(self, first: np.ndarray) -> float:
        """The geometric mean, over problems, of the first route's time over the best one's."""
        return float(np.exp(self.log_cost[np.arange(len(first)), first].mean()))


def fitted_order(table: Table) -> tuple[list[str], float]:
    """The order of least mean cost, with the patterns as they are; of equal ones the present order."""
    present = list(table.routes)
    best, least = present, table.mean_cost(table.first_routes(present, table.holds))
    improved = True
    while improved:  # exchanges of two places: the cost of an order is a sum over pairs, nearly
        improved = False
        for i, j in itertools.combinations(range(len(best)), 2):
            order = list(best)
            order.insert(i, order.pop(j))
            cost = table.mean_cost(table.first_routes(order, table.holds))
            if cost < 0.999 * least:
                best, least, improved = order, cost, True
    return best, least


def fitted_numbers(table: Table) -> list[tuple[str, str, float, float, float, float]]:
    """(pattern, field, present number, its mean cost, the best number, its mean cost) of every number of the patterns."""
    from mtldsl.solvers.route_table import SizeRange

    found = []
    for j, pattern in enumerate(table.patterns):
        for field, values in pattern.where.items():
            if not isinstance(values, SizeRange):
                continue
            end = "most" if np.isfinite(values.most) else "least"
            number, costs = getattr(values, end), {}
            for multiple in MULTIPLES:
                other = replace(
                    pattern, where={**pattern.where, field: replace(values, **{end: multiple * number})}
                )
                holds = table.holds.copy()
                holds[:, j] = table.held_by([other])[:, 0]
                costs[multiple * number] = table.mean_cost(table.first_routes(table.routes, holds))
            best = min(costs, key=lambda value: (costs[value], abs(np.log(value / number))))
            found.append((pattern.name, field, number, costs[number], best, costs[best]))
    return found


def report(table: Table) -> str:
    """Regret by family of the table, and what the fit would change."""
    first = table.first_routes(table.routes, table.holds)
    plain = table.first_routes(table.routes, np.zeros_like(table.holds))
    lines = [f"{len(table.problems)} problems; the first route's time over the best route's, geometric mean"]
    lines.append(f"order alone {table.mean_cost(plain):.3f}, with patterns {table.mean_cost(first):.3f}")
    families = sorted({p.family for p in table.problems})
    cost = table.log_cost[np.arange(len(first)), first]
    for family in families:
        own = np.array([p.family == family for p in table.problems])
        lines.append(
            f"  {family:18} {np.exp(cost[own].mean()):.2f} over {own.sum()}, worst {np.exp(cost[own].max()):.1f}"
        )
    order, least = fitted_order(table)
    lines.append(
        "the order is the fit's"
        if order == table.routes
        else f"a better order ({least:.3f}): {', '.join(order)}"
    )
    for name, field, number, cost_now, best, cost_best in fitted_numbers(table):
        lines.append(
            f"  {name}: {field} {number:g} ({cost_now:.3f}); best of the grid {best:g} ({cost_best:.3f})"
        )
    for j, pattern in enumerate(table.patterns):
        holds = table.holds.copy()
        holds[:, j] = False
        without = table.mean_cost(table.first_routes(table.routes, holds))
        lines.append(
            f"  {pattern.name}: holds for {int(table.holds[:, j].sum())}, mean without it {without:.3f}"
        )
    return "\n".join(lines)
