"""HTML page of a solution, put together from its sections and written; and its panel in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.display.html import Page, PageSection, html_page
from mtldsl.display.sections import GOOD, NEUTRAL, WRONG, Panel, Table, some_rows
from mtldsl.errors import DataError
from mtldsl.solution.headline_sections import (
    ReportContext,
    check,
    data,
    lead,
    model,
    numbers,
    repeat,
    solvers,
    typed_model,
    validation,
    verdict,
)
from mtldsl.solution.learned import SETTINGS as LEARNED
from mtldsl.solution.score_intervals import ScoredMeasure
from mtldsl.solution.score_sections import SETTINGS, convergence, features, learned_sections, path, scores
from mtldsl.utils.files import atomic_file, named
from mtldsl.utils.validation import as_path

# --------------------------------------------------------------------------------------------------------------
# The page of a solution, section by section.

#: In the order in which they are read; each returns None where there is nothing to tell.
SECTIONS: tuple[Callable[[ReportContext], PageSection | None], ...] = (
    scores, features, learned_sections, check, validation, path, convergence, data, model, solvers, repeat,
)  # fmt: skip


def write_report(file, facts: ReportContext) -> Path:
    """Write the page to a file; an ending .html is added where there is none."""
    where = as_path(file, "path of a report")
    where = where if where.suffix else named(where).with_suffix(".html")
    if where.suffix.lower() not in (".html", ".htm"):
        raise DataError(
            f"a report is a page of HTML, and the ending {where.suffix} is of something else",
            term=where,
            write_instead=f"write {where.with_suffix('.html').name!r}",
        )
    with atomic_file(where) as out:
        out.write(html_report(facts).encode())
    return where


def _shown_good(facts: ReportContext, first: ScoredMeasure) -> bool:
    """Tell whether it is shown to be better than a guess, on rows not learned on, and one model per task has no better score."""
    return first.overall[-1] > 0 and not first.beaten and not facts.flatters


def html_report(facts: ReportContext) -> str:
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
    return html_page(Page(title, top[0], tone, top[1:], numbers(facts), sections))


# --------------------------------------------------------------------------------------------------------------
# A solution as a panel: its proof first, then the weights.


def panel_of(solution: Any) -> Panel:
    """Status and gap; sizes of every block; the features with the largest weights; the model."""
    tone = WRONG if not solution.is_certified else GOOD if solution.verified else NEUTRAL
    blocks = [_block(name, W) for name, W in solution.blocks.items() if W.size]
    tables = [Table(("block", "shape", "rows that are not zero", "rank"), blocks)]
    table, notes = _largest(solution)
    if table is not None:
        tables.append(table)
    if solution.note:
        notes.append(solution.note)
    verdict = solution.status if solution.verified else f"{solution.status} (as saved, not verified)"
    return Panel(
        "Solution",
        verdict,
        tone,
        _proof(solution),
        facts=_facts(solution),
        tables=tables,
        notes=notes,
        folded=[Panel("The model", text=typed_model(solution))],
    )


def _proof(solution: Any) -> str:
    if solution.stationarity is not None and solution.status != "optimal":
        return f"a stationary point to {solution.stationarity.residual:.1e}; the global optimum is not proven"
    if not np.isfinite(solution.relative_gap):
        return "no lower bound is proven"
    return f"at most {solution.relative_gap:.1e} above the optimum, relative: proven"


def _facts(solution: Any) -> list[tuple[str, str]]:
    facts = [("objective", f"{solution.objective:.10g}")]
    if np.isfinite(solution.dual_bound):
        facts.append(("proven lower bound", f"{solution.dual_bound:.10g}"))
    if solution.violation:
        facts.append(("largest violation", f"{solution.violation:.1e}"))
    if solution.cross_check is not None:
        found = solution.cross_check
        facts.append(("cross-check", found if isinstance(found, str) else found.verdict()[0]))
    facts.append(("solver", f"{solution.solver}, {solution.iterations:,} iterations, {solution._time_said}"))
    return facts


def _block(name: str, W: np.ndarray) -> tuple[str, ...]:
    W = np.atleast_2d(W)
    rows = int(np.count_nonzero(np.any(W != 0.0, axis=1)))
    rank = "-"
    if min(W.shape) > 1 and W.size <= SETTINGS.rank_entries:
        singular = np.linalg.svd(W, compute_uv=False)
        rank = str(int(np.sum(singular > LEARNED.rank_tol * singular.max(initial=0.0))))
    return name, f"{W.shape[0]:,} x {W.shape[1]:,}", f"{rows:,}", rank


def _largest(solution: Any) -> tuple[Table | None, list[str]]:
    """(the rows of W with the largest norms, a note on the others)."""
    W = solution.W
    if W.ndim != 2 or len(solution.feature_names) not in (0, len(W)):
        return None, []
    norms = np.sqrt(np.einsum("jt,jt->j", W, W))
    order = np.argsort(-norms, kind="stable")[: int(np.count_nonzero(norms))]
    if not order.size:
        return None, ["All weights are zero."]
    names = solution.feature_names or tuple(f"feature {j}" for j in range(len(W)))
    beside = W.shape[1] <= SETTINGS.weight_tasks
    tasks = (
        solution.task_names if len(solution.task_names) == W.shape[1] else tuple(map(str, range(W.shape[1])))
    )
    head = ("feature", "norm", *(tasks if beside else ()))
    rows = [
        (names[j], f"{norms[j]:.4g}", *(f"{w:+.4g}" for w in (W[j] if beside else ())))
        for j in order.tolist()
    ]
    rows, notes = some_rows(rows, "features with weights")
    return Table(head, rows, "The largest weights"), notes
