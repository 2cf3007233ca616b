"""The page: made of rows alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

import numpy as np

from .asked import asked, mean, share
from .choice import section
from .contents import contents
from .measure import TOLERANCES
from .pictures import draw
from .problems import FAMILIES, Problem
from .regret import TIE, Measured, Regret, collect, regrets

__all__ = ["write"]

_MAIN = 1e-4  # the accuracy that pictures and families are shown at
_WORST = 12
_WORDS = {"tuning": "Tuning half", "judging": "Judging half", "data": "Your data"}


def write(rows: list[dict], problems: list[Problem], folder: Path, machine: str = "") -> None:
    """corpus.md and its pictures, of the rows of one machine."""
    machines = Counter(row["machine"] for row in rows)
    if not machines:
        print("no rows, no page")
        return
    machine = next((name for name in machines if machine and machine in name), machines.most_common(1)[0][0])
    rows = [row for row in rows if row["machine"] == machine]
    known = {problem.id: problem for problem in problems}
    measured = {name: each for name, each in collect(rows, machine).items() if name in known}
    halves = [half for half in _WORDS if any(known[name].half == half for name in measured)]
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_head(rows, measured, problems, machine)]
    for half in halves:
        families = {
            family: [
                each
                for name, each in measured.items()
                if (known[name].family, known[name].half) == (family, half)
            ]
            for family in FAMILIES
        }
        parts.append(_half(half, families))
        picture = folder / f"corpus_{half}.png"
        draw(
            families,
            _MAIN,
            f"{_WORDS[half]}: share of problems solved to {_MAIN:g} within a factor of the fastest",
            picture,
        )
        parts.append(f"![performance profiles]({picture.name})\n")
    if (choices := folder / "corpus_choice.csv").exists():
        parts.append(section(choices))
    parts.append(contents(problems))
    (folder / "corpus.md").write_text("\n".join(parts))
    print(f"wrote {folder / 'corpus.md'}")


def _head(rows: list[dict], measured: dict, problems: list[Problem], machine: str) -> str:
    versions = Counter(row["version"] for row in rows if row["kind"] == "own")
    peers = sorted({row["version"] for row in rows if row["kind"] == "peer" and row["version"]})
    limits = Counter(row["limit"] for row in rows if row["kind"] == "own" and row["route"] == "auto")
    states = ", ".join(f"{name} ({count} rows)" for name, count in versions.most_common(4))
    return f"""# The corpus

Written by `python benchmarks/corpus` from the rows beside it ({len(rows)}) on {date.today()}; measured on {machine}, one BLAS thread, CPU
seconds; a route's limit is {", ".join(f"{limit:g}" for limit, _ in limits.most_common(2))} s, or less (from 2 s on) where another
route has arrived in a small part of that. State of the package: {states}. Peers: {", ".join(peers)}.

{len(measured)} of {len(problems)} problems were measured: data x scaling x model x strength, chosen by `benchmarks/corpus/problems.py`. Data sets
belong to one of two halves: thresholds may be set on the tuning half; what holds is read off the judging half. One formula for all: the
objective by the model's own definitions, above the best one proven, over its size. A route of ours counts from `solve(tol=...)` to its
certificate; a peer at the loosest of its tolerances that reaches the accuracy so measured, and nobody's compiling. What cvxpy does before
Clarabel and SCS is not counted; the plain gradient is told the optimum to stop at.
"auto / best" compares with the fastest route of our own that was named, the reference included. Where auto did not arrive, its seconds are
the limit (">"). Differences below {1000 * TIE:g} ms are ties, left out of the worst. Models that are not convex count as solved where they are stationary.
In the pictures a route that does not take a problem, or was not tried on it, counts as one that does not arrive; 3 ms are added to all.
"""


def _half(half: str, families: dict[str, list[Measured]]) -> str:
    everything = [each for found in families.values() for each in found]
    parts = [f"## {_WORDS[half]}\n", asked(families), _summary(everything)]
    parts.append(f"By family, to {_MAIN:g} (and the geometric mean against peers to 1e-6):\n")
    parts.append(
        "| family | problems | auto solves | within 2 x / 4 x of our best | worst | auto / best peer: geometric mean at 1e-3, 1e-4, 1e-6"
        " | peer faster by > 2 | worst | auto / reference: mean, worst |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name, found in families.items():
        if found:
            parts.append(_line(name, found))
    parts.append("")
    parts.append(_unsolved(everything))
    for against, words in (("own", "our own routes"), ("peer", "peers"), ("reference", "the reference")):
        parts.append(_worst(everything, against, words))
    parts.append(_peer_wins(everything))
    return "\n".join(parts)


def _mean(found: list[Regret]) -> str:
    return f"{mean(found):.2f}" if found else "-"


def _largest(found: list[Regret]) -> str:
    real = [r for r in found if not r.tie or r.floor]
    if not real:
        return "-"
    worst = max(real, key=lambda r: r.ratio)
    return f"{'>' if worst.floor else ''}{worst.ratio:.3g}"


def _solved(found: list[Measured], tol: float) -> str:
    tried = [each for each in found if not np.isnan(each.auto(tol))]
    return f"{sum(np.isfinite(each.auto(tol)) for each in tried)} of {len(tried)}"


def _summary(found: list[Measured]) -> str:
    lines = [
        "| to | auto solves | others do, auto not | within 2 x / 4 x of our best | geometric mean against the best peer | no peer faster by > 2"
        " | at most 2 x the reference |\n|---|---|---|---|---|---|---|"
    ]
    for tol in TOLERANCES:
        own, peer, reference = (regrets(found, tol, against) for against in ("own", "peer", "reference"))
        left = len(_left(found, tol))
        lines.append(
            f"| {tol:g} | {_solved(found, tol)} | {left} | {share(own, 2)} / {share(own, 4)} of {len(own)} | {_mean(peer)} over {len(peer)} | "
            f"{share(peer, 2)} | {share(reference, 2)} of {len(reference)} |"
        )
    return "\n".join(lines) + "\n"


def _line(name: str, found: list[Measured]) -> str:
    own, peer, reference = (regrets(found, _MAIN, against) for against in ("own", "peer", "reference"))
    means = ", ".join(_mean(regrets(found, tol, "peer")) for tol in TOLERANCES)
    late = sum(r.ratio > 2 and (r.floor or not r.tie) for r in peer)
    return (
        f"| {name} | {len(found)} | {_solved(found, _MAIN)} | {share(own, 2)} / {share(own, 4)} | {_largest(own)} | {means} | "
        f"{late} of {len(peer)} | {_largest(peer)} | {_mean(reference)}, {_largest(reference)} |"
    )


def _left(found: list[Measured], tol: float) -> list[tuple[Measured, float, str]]:
    """What another route or a peer solves and auto does not."""
    left = []
    for each in found:
        if np.isinf(each.auto(tol)):
            seconds, route = min(each.best_own(tol), each.best_peer(tol))
            if np.isfinite(seconds):
                left.append((each, seconds, route))
    return left


def _unsolved(found: list[Measured]) -> str:
    lines, said = [], set()
    for tol in TOLERANCES:
        others = {each.id: (seconds, route) for each, seconds, route in _left(found, tol)}
        for each in found:
            if np.isinf(each.auto(tol)) and each.id not in said:
                said.add(each.id)
                status = each.status.get(("auto", tol), "")
                who = (
                    f"{others[each.id][1]} does in {others[each.id][0]:.3g} s"
                    if each.id in others
                    else "nobody does"
                )
                lines.append(f"- `{each.id}` to {tol:g}: {status}; {who}")
    return "Not solved by auto:\n\n" + ("\n".join(lines) if lines else "- nothing") + "\n"


def _worst(found: list[Measured], against: str, words: str) -> str:
    """The largest regret of each problem over the accuracies."""
    by_problem: dict[str, tuple[Regret, float]] = {}
    for tol in TOLERANCES:
        for r in regrets(found, tol, against):
            if (not r.tie or r.floor) and (
                r.problem not in by_problem or r.ratio > by_problem[r.problem][0].ratio
            ):
                by_problem[r.problem] = (r, tol)
    worst = sorted(by_problem.values(), key=lambda pair: -pair[0].ratio)[:_WORST]
    lines = [f"- to {tol:g}: {r}" for r, tol in worst if r.ratio > 1.5]
    return f"Worst against {words}:\n\n" + ("\n".join(lines) if lines else "- nothing above 1.5") + "\n"


def _peer_wins(found: list[Measured]) -> str:
    """Geometric mean against every peer that took part, over all accuracies."""
    logs: dict[str, list[float]] = defaultdict(list)
    for each in found:
        for (route, tol), seconds in each.peers.items():
            auto = each.auto(tol)
            if np.isfinite(seconds) and np.isfinite(auto):
                logs[route].append(np.log(auto / seconds))
    cells = [
        f"{route} {np.exp(np.mean(values)):.2f} ({len(values)})" for route, values in sorted(logs.items())
    ]
    return (
        "auto's seconds over each peer's, geometric mean (measurements): " + ", ".join(cells) + ".\n"
        if cells
        else ""
    )
