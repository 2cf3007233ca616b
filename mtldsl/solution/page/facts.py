"""What a page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import MissingExtraError
from mtldsl.scoring.measures import MEASURES
from mtldsl.shown.page import Figure, Section, figure
from mtldsl.solution.metric_measure import as_measure
from mtldsl.solution.page.measured import Scored, measured
from mtldsl.solution.page.rows import of_tasks, seen_rows
from mtldsl.solution.page.words import name_of
from mtldsl.solution.predictors import sign_tasks
from mtldsl.tasks import Tasks

__all__ = ["Facts", "drawn"]


def drawn(*wanted) -> list[Figure]:
    """Those of (draw, alternative text, caption) that can be drawn: without matplotlib a page has no pictures."""
    try:
        return [figure(*one) for one in wanted]
    except MissingExtraError:
        return []


@dataclass(frozen=True)
class Facts:
    """The solution, the rows on which it is scored, and what else was found out about it.

    tasks            : rows to score, of all tasks or some, in any order; None: those of training, which the page says
    separate         : a solution of one model per task, learned on the same rows, to be compared with; None: no comparison
    cross_check      : what `problem.cross_check` returned, a sentence why there is none, or None
    cross_validation : what `problem.cross_validate` returned, or None
    path             : solutions of a path
    metrics          : names of measures to be shown; none: those that suit the labels
    bootstrap        : samples of the rows behind every interval, drawn from random_state; 0: no intervals
    held_out         : whether the caller divided the rows itself, so that those scored are new; False: rows are compared
    repeat           : the line that makes the same solution again;  more: sections for the end
    """

    solution: Any
    tasks: Tasks | None = None
    cross_check: Any = None
    cross_validation: Any = None
    path: Sequence[Any] = ()
    repeat: str = ""
    title: str = ""
    more: Sequence[Section] = ()
    metrics: Sequence[str] = ()
    bootstrap: int = 200
    random_state: Any = 0
    separate: Any = None
    held_out: bool = False

    @cached_property
    def training(self) -> Tasks | None:
        """The rows that were learned on; None for a solution from a file, and for rows that are elsewhere."""
        tasks = self.solution.trained_on
        return None if tasks is None or not tasks.in_memory else tasks

    @property
    def scored(self) -> Tasks | None:
        return self.training if self.tasks is None else self.tasks

    @cached_property
    def judged(self) -> Any:
        """The solution of the tasks that are scored."""
        return of_tasks(self.solution, self.tasks)

    @property
    def n_absent(self) -> int:
        """Tasks that were learned, and have no rows here."""
        return len(self.solution.task_names) - len(self.judged.task_names)

    @cached_property
    def n_seen(self) -> int | None:
        """How many of the rows scored are among those learned from; None where that is not known."""
        if self.tasks is None or self.held_out:
            return None if self.tasks is None else 0
        return seen_rows(self.judged, self.tasks, self._learned)

    @property
    def flatters(self) -> bool:
        """Whether all rows scored are among those learned from."""
        return self.tasks is None or self.n_seen == self.n_rows

    @property
    def n_rows(self) -> int:
        """Rows that are scored."""
        tasks = self.scored
        if tasks is None:
            return 0
        return tasks.X.shape[0] if tasks.is_shared and not tasks.is_distributed else tasks.n_samples

    @property
    def rows(self) -> str:
        """The rows that are scored, in words."""
        if self.tasks is None:
            return "the rows that it was learned on, which flatters it"
        count = f"{self.n_rows:,} row" + ("" if self.n_rows == 1 else "s")
        if self.flatters:
            return f"{count} that it was learned on, which flatters it"
        if self.n_seen == 0:
            return f"{count} that were not learned on"
        return f"{count} that you gave" + (f" ({self.n_seen:,} were learned on)" if self.n_seen else "")

    @property
    def _learned(self) -> Tasks | None:
        """The rows of the tasks that are scored, as they were learned from."""
        if self.training is None or self.judged is self.solution:
            return self.training
        return self.training.select(list(self.judged.task_names))

    @cached_property
    def signs(self) -> np.ndarray:
        """(m,) which tasks have labels -1 and +1."""
        return sign_tasks(self.judged.loss, len(self.judged.task_names) or self.judged.coef.shape[1])

    @property
    def classes(self) -> bool:
        """Whether any has."""
        return bool(self.signs.any())

    @cached_property
    def measures(self) -> tuple[list[Scored], list[str]]:
        """(the measures of the rows that are scored, first the one that was asked for, learned for or chosen by; why others have none)."""
        if self.scored is None:
            return [], []
        learned = self._learned or self.scored
        return measured(
            self.judged,
            self.scored,
            learned,
            self._wanted(),
            self.signs,
            self.bootstrap,
            self.random_state,
            None if self.separate is None else of_tasks(self.separate, self.tasks),
        )

    @property
    def first(self) -> Scored | None:
        """What the page begins with: what was asked for; else the first of the usual measures whose interval can be believed."""
        found = self.measures[0]
        believed = found if self._asked() else [one for one in found if one.sound]
        return (believed or found or [None])[0]

    def _asked(self) -> list:
        """Metrics that were asked for, learned for, or chosen by."""
        own = self.solution.loss.get("parameters", {}).get("metric")
        chosen = getattr(self.cross_validation, "metric", None)
        return list(self.metrics) or (
            [own] if isinstance(own, Metric) else [chosen] if chosen in MEASURES else []
        )

    def _wanted(self) -> list:
        """Names and metrics."""
        first = self._asked()
        if self.metrics:
            return first
        known = {name_of(as_measure(one, "report")) for one in first}
        usual = ["f1", "roc_auc", "accuracy"] if self.classes else []
        usual += [] if self.signs.all() else ["r2", "mae"]
        return [*first, *(name for name in usual if name_of(as_measure(name, "report")) not in known)]

    def pictures(self, *wanted) -> list[Figure]:
        """Those of (draw, alternative text, caption) that can be drawn: without matplotlib a page has no pictures."""
        return drawn(*wanted)
