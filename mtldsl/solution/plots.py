"""Methods of a solution that show it as a table, as pictures, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.data.schema import require_tasks
from mtldsl.data.tasks import Tasks
from mtldsl.display.pictures.curves import trace_plot
from mtldsl.display.pictures.heatmap import plot_weights
from mtldsl.display.pictures.scores import plot_calibration, plot_scores
from mtldsl.errors import DataError
from mtldsl.solution.score_intervals import outputs_beside
from mtldsl.utils.validation import as_flag, complete

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Pictured",
]


class Pictured:
    """Pictures of a `Solution`; every method takes `ax`, matplotlib Axes (None: a new figure), and returns the Axes that it drew on.

    MissingExtraError where matplotlib is not installed.
    """

    coef: np.ndarray
    intercept: np.ndarray | None
    history: list[dict]
    dual_bound: float
    stationarity: Any
    feature_names: tuple[str, ...]
    task_names: tuple[str, ...]
    predict_proba: Any
    scores: Any

    def frame(self, long: bool = False):
        """The weights as a pandas DataFrame: a row a feature and a column a task, with a last row "(intercept)" where there are intercepts.

        long : a row a weight in place: columns feature, task, weight
        """
        from pandas import DataFrame

        long = as_flag(long, "frame(long")
        W, rows = self.coef, list(self.feature_names) or list(range(len(self.coef)))
        if self.intercept is not None:
            W, rows = np.vstack([W, self.intercept]), [*rows, "(intercept)"]
        columns = list(self.task_names) if len(self.task_names) == W.shape[1] else list(range(W.shape[1]))
        wide = DataFrame(W, index=rows, columns=columns).rename_axis(index="feature", columns="task")
        return wide.stack().rename("weight").reset_index() if long else wide  # pyrefly: ignore[bad-argument-type]  # a Series

    def plot_convergence(self, against: str = "iteration", ax: Axes | None = None) -> Axes:
        """Return how the solve went, against "iteration" or "seconds": at every look the objective above the best bound that was proven, and the
        gap that was proven at that look, which is never smaller."""
        best = self.dual_bound if np.isfinite(self.dual_bound) else None
        # a bound of a model that is not convex is not what its objective falls to
        if best is None or self.stationarity is not None:
            return trace_plot(self.history, against=against, ax=ax)
        proven = [  # in this order rounding cannot take it below the objective: no look has a bound above the best
            look | {"objective": look["objective"] + (best - look["dual_bound"])}
            for look in self.history
            if np.isfinite(look["dual_bound"])
        ]
        runs = {"objective": self.history, **({"proven gap": proven} if proven else {})}
        return trace_plot(runs, against=against, best=best, ax=ax)

    def plot_weights(
        self,
        task: str | int | None = None,
        top: int = 30,
        order: str | None = "clustered",
        ax: Axes | None = None,
    ) -> Axes:
        """The weights as a map of features and tasks, or of one task as bars; see `mtl.report.plot_weights`."""
        tasks = self.task_names if len(self.task_names) == self.coef.shape[1] else None
        return plot_weights(self.coef, self.feature_names, tasks, task=task, top=top, order=order, ax=ax)

    def plot_scores(self, tasks: Tasks, metric=None, ax: Axes | None = None) -> Axes:
        """Every task's score (see `scores`) on these tasks; give rows that were not learned on."""
        measure = metric if isinstance(metric, str) else "score" if metric is None else repr(metric)
        return plot_scores(self.scores(tasks, metric), tasks.task_names, measure=measure, ax=ax)

    def plot_calibration(self, tasks: Tasks, bins: int = 10, ax: Axes | None = None) -> Axes:
        """The share of +1 among samples of all tasks whose predicted probability is alike; ModelError for losses without probabilities."""
        require_tasks(tasks, "plot_calibration(tasks)")
        pairs = outputs_beside(self, tasks, "probabilities", "plot_calibration(tasks)")  # type: ignore[arg-type]
        labels, p = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return plot_calibration({"all tasks": (labels, p)}, bins=bins, ax=ax)

    @complete('write solution.report("fit.html", tasks=held_out)')
    def report(
        self,
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
        random_state : of these samples; the same seed is the same page
        The verdict and the score stand first, by the metric that was learned for, or chosen by; then the scores of every task beside those of
        a guess, what was learned, the data, the model as formula, and how to repeat it. Without matplotlib (`pip install ".[report]"` in the checkout) the page has no pictures. DataError where it cannot be written.
        """
        from mtldsl.solution.solution_page import write_report

        if tasks is not None:
            _require_rows(tasks)
        cross_check = self.cross_check if cross_check is None else cross_check  # type: ignore[attr-defined]
        samples = {
            "bootstrap": bootstrap,
            "random_state": random_state,
            "separate": separate,
            "positive": positive or {},
        }
        return write_report(file, self, tasks, title, cross_check, cross_validation, path, **samples)


def _require_rows(tasks) -> None:
    """DataError that does not quote a table where (X, Y) was given."""
    if isinstance(tasks, tuple | list) and len(tasks) == 2:
        raise DataError(
            "the rows to score are Tasks, not a pair of tables",
            term="report(file, tasks)",
            write_instead="write report(file, Tasks.shared(X, Y)), with the names of the tasks that were learned",
        )
    require_tasks(tasks, "report(file, tasks)")
