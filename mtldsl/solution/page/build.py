"""The page of a solution, section by section."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.shown.page import Page, Section, html_page
from mtldsl.shown.panel import GOOD, WRONG
from mtldsl.solution.page.about import check, data, model, repeat, solvers, validation
from mtldsl.solution.page.facts import Facts
from mtldsl.solution.page.learned import learned
from mtldsl.solution.page.scores import scores
from mtldsl.solution.page.weights import convergence, features, path
from mtldsl.system.atomic_files import atomic_file
from mtldsl.values.path import as_path

__all__ = ["html_report", "write_report"]

#: In the order in which they are read; each returns None where there is nothing to tell.
SECTIONS: tuple[Callable[[Facts], Section | None], ...] = (
    scores, features, learned, check, validation, path, convergence, data, model, solvers, repeat,
)  # fmt: skip


def write_report(file, solution: Any, tasks, title: str, cross_check, cross_validation, solutions) -> Path:
    """See `Solution.report`."""
    where = as_path(file, "path of a report")
    where = where if where.suffix else where.with_suffix(".html")
    facts = Facts(solution, tasks, cross_check, cross_validation, tuple(solutions), title=title)
    with atomic_file(where) as out:
        out.write(html_report(facts).encode())
    return where


def html_report(facts: Facts) -> str:
    """The whole page."""
    sections = [found for make in SECTIONS if (found := make(facts)) is not None]
    sections += facts.more
    verdict, tone = _verdict(facts)
    title = facts.title or "A solution"
    foot = f"Made with mtldsl on {date.today():%Y-%m-%d}. This file needs no network."
    return html_page(Page(title, verdict, tone, _lead(facts), _numbers(facts), sections, foot))


def _verdict(facts: Facts) -> tuple[str, str]:
    solution, check = facts.solution, facts.cross_check
    said, tone = "Certified: the optimum, proven", GOOD
    if not solution.is_certified:
        said, tone = f"NOT certified: {solution.status.replace('_', ' ')}", WRONG
    elif solution.status == "stationary":
        said = "Certified: a stationary point; no proof of a global optimum exists for this model"
    if not solution.verified:
        said, tone = f"As its file says, not verified here: {solution.status}", "neutral"
    if check is None:
        return f"{said}; not cross-checked", tone
    if not hasattr(check, "agrees"):
        return f"{said}; NOT cross-checked", tone
    where = "" if check.scope == "the whole problem" else " on a subsample"
    if not check.agrees:
        return f"{said}; the cross-check DISAGREES{where}", WRONG
    return f"{said}; the cross-check agrees{where}", tone


def _lead(facts: Facts) -> str:
    solution = facts.solution
    m, d = len(solution.task_names), len(solution.W)
    return f"{m:,} tasks, {d:,} features, {solution.loss.get('word', 'a loss')}; solved by {solution.solver} in {solution._time_said}."


def _numbers(facts: Facts) -> list[tuple[str, str, str]]:
    solution = facts.solution
    rows = [("objective", f"{solution.objective:.6g}", "what was minimised")]
    if solution.status == "stationary" and solution.stationarity is not None:
        rows.append(
            ("residual", f"{solution.stationarity.residual:.1e}", "how far from a stationary point, at most")
        )
    elif np.isfinite(solution.relative_gap):
        rows.append(("gap", f"{solution.relative_gap:.1e}", "how far from the optimum, at most, relative"))
    if solution.violation:
        rows.append(("violation", f"{solution.violation:.1e}", "of the constraints, the largest"))
    if hasattr(facts.cross_check, "difference"):
        rows.append(
            (
                "cross-check",
                f"{facts.cross_check.difference:+.1e}",
                "objective beside the reference's, relative",
            )
        )
    used = int(np.count_nonzero(np.any(solution.W != 0, axis=1)))
    rows.append(("features used", f"{used:,} of {len(solution.W):,}", "those whose weights are not all zero"))
    return rows
