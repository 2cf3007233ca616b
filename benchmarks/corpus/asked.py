"""What the corpus is asked to show, and what the rows say to it: one line each."""

from __future__ import annotations

import numpy as np

from .regret import Measured, Regret, regrets

__all__ = ["asked", "mean", "share", "within"]

#: families in which other packages are at home: there no more of their time than they take
_AGAINST_PEERS = (
    "ridge", "lasso", "lasso_csr", "group_lasso", "elastic_net", "multi_task_lasso", "sparse_logistic", "ridge_logistic",
    "multi_logistic", "svm", "trace_squares", "trace_logistic",
)  # fmt: skip
_PROGRAMS = ("highs-simplex", "highs-interior", "clarabel")


def within(found: list[Regret], factor: float) -> int:
    """How many are within the factor; ties are."""
    return sum(r.ratio <= factor or (r.tie and not r.floor) for r in found)


def share(found: list[Regret], factor: float) -> str:
    return f"{100 * within(found, factor) / len(found):.0f} %" if found else "-"


def mean(found: list[Regret]) -> float:
    """The geometric mean of the ratios; NaN of none."""
    return float(np.exp(np.mean([np.log(max(r.ratio, 1e-9)) for r in found]))) if found else np.nan


def _line(what: str, asked_for: str, seen: str, holds: bool | None) -> str:
    if holds is None:
        return f"| {what} | {asked_for} | not measured | - |"
    return f"| {what} | {asked_for} | {seen} | {'yes' if holds else '**no**'} |"


def asked(families: dict[str, list[Measured]]) -> str:
    """A table: what, how much is asked, what was seen, whether it holds."""
    every = [each for found in families.values() for each in found]
    lines = ["| what | asked | seen | holds |", "|---|---|---|---|"]
    behind = [each for each in every if np.isinf(each.auto(1e-4)) and np.isfinite(_anybody(each, 1e-4))]
    lines.append(
        _line("to 1e-4 wherever any route or peer arrives", "all", f"{len(behind)} left", not behind)
    )
    own, reference = regrets(every, 1e-4, "own"), regrets(every, 1e-4, "reference")
    for factor, least in ((2, 0.95), (4, 1.0)):
        good = within(own, factor)
        text = f"{good} of {len(own)}, {share(own, factor)}"
        what = f"to 1e-4 within {factor} times our best route"
        lines.append(_line(what, f"{100 * least:.0f} %", text, good >= least * len(own) if own else None))
    good = within(reference, 2)
    text = f"{good} of {len(reference)}"
    lines.append(
        _line("at most 2 times the reference", "all", text, good == len(reference) if reference else None)
    )
    for tol in (1e-4, 1e-6):
        for against, whom in (
            ("peer", "the best peer"),
            ("package", "the best package, the plain gradient apart,"),
        ):
            lines += _peers(families, tol, against, whom)
    lines.append(_programs(families.get("kinks", [])))
    for tol, seconds in ((1e-3, 15.0), (1e-4, 30.0)):
        tried = [each for each in families.get("structured", []) if not np.isnan(each.auto(tol))]
        good = sum(each.auto(tol) <= seconds for each in tried)
        text = f"{good} of {len(tried)}"
        lines.append(
            _line(
                f"structured hinges to {tol:g} within {seconds:g} s",
                "all",
                text,
                good == len(tried) if tried else None,
            )
        )
    return "\n".join(lines) + "\n"


def _peers(families: dict[str, list[Measured]], tol: float, against: str, whom: str) -> list[str]:
    by_family = {name: regrets(families.get(name, []), tol, against) for name in _AGAINST_PEERS}
    slow = [f"{name} {mean(found):.2f}" for name, found in by_family.items() if mean(found) > 1.0]
    counted = sum(bool(found) for found in by_family.values())
    seen = f"{counted - len(slow)} of {counted} are" + (f"; not {', '.join(slow)}" if slow else "")
    what = f"to {tol:g}: geometric mean of auto over {whom} by family"
    losses = [r for found in by_family.values() for r in found if r.ratio > 2 and (r.floor or not r.tie)]
    total = sum(map(len, by_family.values()))
    return [
        _line(what, "at most 1 in all", seen, not slow if counted else None),
        _line(
            f"to {tol:g}: {whom} faster by more than 2",
            "never",
            f"{len(losses)} of {total}",
            not losses if total else None,
        ),
    ]


def _anybody(each: Measured, tol: float) -> float:
    return min(each.best_own(tol)[0], each.best_peer(tol)[0])


def _programs(found: list[Measured]) -> str:
    """Losses with kinks and an intercept, to 1e-6, against solvers of linear and conic programs."""
    ratios = []
    for each in found:
        others = min(
            (s for (route, tol), s in each.peers.items() if tol == 1e-6 and route in _PROGRAMS),
            default=np.inf,
        )
        auto = each.auto(1e-6)
        if np.isfinite(others) and not np.isnan(auto):
            ratios.append(
                Regret(
                    each.id,
                    auto if np.isfinite(auto) else max(others, each.limit["auto", 1e-6]),
                    others,
                    "",
                    np.isinf(auto),
                )
            )
    good = within(ratios, 0.5)
    seen = f"{good} of {len(ratios)}, geometric mean {mean(ratios):.2f}" if ratios else "-"
    return _line(
        "kinks with intercept to 1e-6, of HiGHS's or Clarabel's time",
        "at most half",
        seen,
        good == len(ratios) if ratios else None,
    )
