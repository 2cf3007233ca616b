"""The page of a solution, section by section."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from mtldsl.shown.page import Page, Section, html_page
from mtldsl.shown.panel import NEUTRAL, WRONG
from mtldsl.solution.page.about import check, data, model, repeat, solvers, validation
from mtldsl.solution.page.facts import Facts
from mtldsl.solution.page.headline import lead, numbers, verdict
from mtldsl.solution.page.learned import learned
from mtldsl.solution.page.measured import Scored
from mtldsl.solution.page.scores import scores
from mtldsl.solution.page.weights import convergence, features, path
from mtldsl.system.atomic_files import atomic_file
from mtldsl.values.path import as_path

__all__ = ["html_report", "write_report"]

#: In the order in which they are read; each returns None where there is nothing to tell.
SECTIONS: tuple[Callable[[Facts], Section | None], ...] = (
    scores, features, learned, check, validation, path, convergence, data, model, solvers, repeat,
)  # fmt: skip


def write_report(
    file, solution: Any, tasks, title: str, cross_check, cross_validation, solutions, **samples
) -> Path:
    """See `Solution.report`."""
    where = as_path(file, "path of a report")
    where = where if where.suffix else where.with_suffix(".html")
    facts = Facts(solution, tasks, cross_check, cross_validation, tuple(solutions), title=title, **samples)
    with atomic_file(where) as out:
        out.write(html_report(facts).encode())
    return where


def _shown_good(facts: Facts, first: Scored) -> bool:
    """Whether it is shown to be better than a guess, on rows not learned on, and one model per task has no better score."""
    return first.overall[-1] > 0 and not first.beaten and not facts.flatters


def html_report(facts: Facts) -> str:
    """The whole page."""
    sections = [found for make in SECTIONS if (found := make(facts)) is not None]
    sections += facts.more
    said, tone = verdict(facts)
    title = facts.title or "A solution"
    first, *rest = lead(facts)
    top = [first, f"{said}.", *rest]
    if tone == WRONG:  # what is not proven stands before what it predicts
        top[:2] = [f"{said}.", first]
    elif facts.tasks is not None and facts.first is not None and not _shown_good(facts, facts.first):
        tone = NEUTRAL  # proven, and not shown to be good
    foot = f"Made with mtldsl on {date.today():%Y-%m-%d}. This file needs no network."
    return html_page(Page(title, top[0], tone, top[1:], numbers(facts), sections, foot))
