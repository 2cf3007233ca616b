"""Methods of a solution that show it as a table, as pictures, and as a page.

Those that draw take `ax`, matplotlib Axes (None: a new figure), and return the Axes that they drew on. MissingExtraError where
matplotlib is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.data.schema import require_tasks
from mtldsl.data.tasks import Tasks
from mtldsl.display.pictures import heatmap, scores
from mtldsl.display.pictures.curves import trace_plot
from mtldsl.errors import DataError
from mtldsl.solution.measures import Measure
from mtldsl.solution.score_intervals import outputs_beside
from mtldsl.utils.validation import as_flag, complete, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def frame(solution: Any, long: bool = False):
    """Return the weights as a pandas DataFrame: a row a feature and a column a task, with a last row "(intercept)" where there are intercepts.

    long : a row a weight in place: columns feature, task, weight
    """
    from pandas import DataFrame

    long = as_flag(long, "frame(long")
    W, rows = solution.coef, list(solution.feature_names) or list(range(len(solution.coef)))
    if solution.intercept is not None:
        W, rows = np.vstack([W, solution.intercept]), [*rows, "(intercept)"]
    columns = list(solution.task_names) if len(solution.task_names) == W.shape[1] else list(range(W.shape[1]))
    wide = DataFrame(W, index=rows, columns=columns).rename_axis(index="feature", columns="task")
    return wide.stack().rename("weight").reset_index() if long else wide  # pyrefly: ignore[bad-argument-type]  # a Series


def plot_convergence(solution: Any, against: str = "iteration", ax: Axes | None = None) -> Axes:
    """Draw how the solve went, against "iteration" or "seconds": at every look the objective above the best bound that was proven, and the
    gap that was proven at that look, which is never smaller."""
    best = solution.dual_bound if np.isfinite(solution.dual_bound) else None
    # a bound of a model that is not convex is not what its objective falls to
    if best is None or solution.stationarity is not None:
        return trace_plot(solution.history, against=against, ax=ax)
    proven = [  # in this order rounding cannot take it below the objective: no look has a bound above the best
        look | {"objective": look["objective"] + (best - look["dual_bound"])}
        for look in solution.history
        if np.isfinite(look["dual_bound"])
    ]
    runs = {"objective": solution.history, **({"proven gap": proven} if proven else {})}
    return trace_plot(runs, against=against, best=best, ax=ax)


def plot_weights(
    solution: Any,
    task: str | int | None = None,
    top: int = 30,
    order: str | None = "clustered",
    ax: Axes | None = None,
) -> Axes:
    """Draw the weights as a map of features and tasks, or of one task as bars; see `mtl.report.plot_weights`."""
    tasks = solution.task_names if len(solution.task_names) == solution.coef.shape[1] else None
    return heatmap.plot_weights(
        solution.coef, solution.feature_names, tasks, task=task, top=top, order=order, ax=ax
    )


def plot_scores(solution: Any, tasks: Tasks, metric=None, ax: Axes | None = None) -> Axes:
    """Draw every task's score (see `scores`) on these tasks; give rows that were not learned on."""
    measure = metric if isinstance(metric, str) else "score" if metric is None else repr(metric)
    return scores.plot_scores(
        solution.scores(tasks, metric).tolist(), tasks.task_names, measure=measure, ax=ax
    )


def plot_calibration(solution: Any, tasks: Tasks, bins: int = 10, ax: Axes | None = None) -> Axes:
    """Draw the share of +1 among samples of all tasks whose predicted probability is alike; ModelError for losses without probabilities."""
    require_tasks(tasks, "plot_calibration(tasks)")
    pairs = outputs_beside(solution, tasks, "probabilities", "plot_calibration(tasks)")
    labels, p = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return scores.plot_calibration({"all tasks": (labels, p)}, bins=bins, ax=ax)


@complete('write solution.report("fit.html", tasks=held_out)')
def report(
    solution: Any,
    file,
    tasks: Tasks | None = None,
    *,
    title: str = "",
    cross_check=None,
    cross_validation=None,
    path: Sequence = (),
    bootstrap: int = 200,
    random_state=0,
    separate=None,
    positive: Mapping[str, str] | None = None,
    chosen_by: str | Measure | None = None,
    by_name: bool = False,
) -> Path:
    """Write one HTML file for people who were not there; it needs no network, and can be read on a phone and on paper. Returns its path.

    file : where to write; an ending .html is added where there is none
    tasks : rows that were not learned on, for the scores; None: the training rows, which the page says
    cross_check, cross_validation : what `problem.cross_check()` and `problem.cross_validate(...)` returned, to be shown too; None: of
        the cross-check, what the solution has as `solution.cross_check`
    path : solutions of `problem.path(...)`, to be drawn
    bootstrap : samples of the rows behind every interval, and behind the words "better than a guess": on the same samples, 95 % of the
        differences to the guess are on the better side. 0: no intervals; a guess is one answer for all rows
    separate : a solution of one model per task on the same rows, shown beside this one: `mtldsl.problems.separate_models.separate_models(tasks)`
    positive : {task: the class that +1 stands for}, to be named beside its share
    chosen_by : the measure, or its name, that a parameter was chosen by, where `cross_validation` is not here to tell
    by_name : tasks that are called by a number are the solution's of that name, and not at that position
    random_state : of these samples; the same seed is the same page
    The verdict and the score stand first, by the metric that was learned for, or chosen by; then the scores of every task beside those of
    a guess, what was learned, the data, the model as formula, and how to repeat it. Without matplotlib (`pip install ".[report]"` in the checkout) the page has no pictures. DataError where it cannot be written.
    """
    from mtldsl.solution.headline_sections import ReportContext
    from mtldsl.solution.solution_page import write_report

    if tasks is not None:
        _require_rows(tasks)
    if not isinstance(title, str):
        raise DataError(term=f"report(title={quoted(title)})", write_instead="write text", argument="title")
    facts = ReportContext(
        solution,
        tasks,
        solution.cross_check if cross_check is None else cross_check,
        cross_validation,
        tuple(path),
        title=title,
        bootstrap=bootstrap,
        random_state=random_state,
        separate=separate,
        positive=positive or {},
        chosen_by=chosen_by,
        by_name=by_name,
    )
    return write_report(file, facts)


def _require_rows(tasks) -> None:
    """DataError that does not quote a table where (X, Y) was given."""
    if isinstance(tasks, tuple | list) and len(tasks) == 2:
        raise DataError(
            "the rows to score are Tasks, not a pair of tables",
            term="report(file, tasks)",
            write_instead="write report(file, Tasks.shared(X, Y)), with the names of the tasks that were learned",
        )
    require_tasks(tasks, "report(file, tasks)")
