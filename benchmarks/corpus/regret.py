"""What the rows say: seconds of every route to every accuracy, and how far "auto" is from the best route, peer and the reference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from .measure import Known, accuracy
from .routes import AUTO

__all__ = ["TIE", "Measured", "collect", "regrets"]

TIE = 3e-3  # seconds: differences below are ties
_GOOD = ("optimal", "stationary")


@dataclass
class Measured:
    """One problem: (route, tol) -> seconds, inf where it was tried and not reached."""

    id: str
    own: dict[tuple[str, float], float] = field(default_factory=dict)
    peers: dict[tuple[str, float], float] = field(default_factory=dict)
    solver: dict[tuple[str, float], str] = field(default_factory=dict)
    limit: dict[tuple[str, float], float] = field(default_factory=dict)
    status: dict[tuple[str, float], str] = field(default_factory=dict)

    def best(self, table: dict, tol: float, without: tuple[str, ...] = ()) -> tuple[float, str]:
        """(seconds, route) of the fastest; (inf, "") where none reached it."""
        found = [(s, route) for (route, t), s in table.items() if t == tol and route not in without]
        return min(found, default=(np.inf, ""))

    def best_own(self, tol: float) -> tuple[float, str]:
        return self.best(self.own, tol, (AUTO,))

    def best_peer(self, tol: float) -> tuple[float, str]:
        return self.best(self.peers, tol)

    def best_package(self, tol: float) -> tuple[float, str]:
        """As `best_peer`, without the plain gradient, which proves nothing and is told when to stop."""
        return self.best(self.peers, tol, ("fista",))

    def auto(self, tol: float) -> float:
        return self.own.get((AUTO, tol), np.nan)

    def reference(self, tol: float) -> float:
        return self.own.get(("cvxpy", tol), np.inf)


def collect(rows: Iterable[dict], machine: str) -> dict[str, Measured]:
    """The latest row of every (problem, route, tol) on one machine. What a peer has reached is measured anew, against the best optimum."""
    known: dict[str, Known] = {}
    latest: dict[tuple, dict] = {}
    for row in rows:
        if row["machine"] == machine:
            known.setdefault(row["problem"], Known()).see(row)
            latest[row["problem"], row["route"], row["tol"]] = row
    found: dict[str, Measured] = {}
    for (problem, route, tol), row in latest.items():
        each = found.setdefault(problem, Measured(problem))
        key = (route, tol)
        good = row["status"] in _GOOD
        if row["kind"] == "peer":
            good = good and accuracy(row["objective"], known[problem].optimum) <= 1.001 * tol
            each.peers[key] = row["seconds"] if good else np.inf
        elif row["kind"] == "own":
            each.own[key] = row["seconds"] if good else np.inf
            each.solver[key] = row["solver"]
        each.limit[key], each.status[key] = row["limit"], row["status"]
    return found


@dataclass(frozen=True)
class Regret:
    """auto's seconds and the other's, and who that is. `floor`: auto did not arrive; its seconds are the limit that it was given."""

    problem: str
    auto: float
    other: float
    route: str
    floor: bool = False

    @property
    def ratio(self) -> float:
        return self.auto / self.other

    @property
    def tie(self) -> bool:
        return abs(self.auto - self.other) < TIE

    def __str__(self) -> str:
        text = f"{'>' if self.floor else ''}{self.ratio:.3g} x  `{self.problem}`"
        return f"{text}: {'not in ' if self.floor else ''}{self.auto:.3g} s against {self.other:.3g} s ({self.route})"


def regrets(measured: Iterable[Measured], tol: float, against: str) -> list[Regret]:
    """against: "own", "peer", "package" (a peer that is one) or "reference"; a problem counts where auto was measured and the other has arrived."""
    found = []
    for each in measured:
        other, route = {
            "own": each.best_own, "peer": each.best_peer, "package": each.best_package, "reference": lambda t: (each.reference(t), "cvxpy"),  # noqa: B023
        }[against](tol)  # fmt: skip
        auto = each.auto(tol)
        if not np.isfinite(other) or np.isnan(auto):
            continue
        if np.isfinite(auto):
            found.append(Regret(each.id, auto, other, route))
        else:
            limit = each.limit[AUTO, tol]
            found.append(
                Regret(each.id, max(limit if np.isfinite(limit) else 0.0, other), other, route, True)
            )
    return found
