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

    tasks            : rows that were not learned on; None: those of training, which the page says
    separate         : a solution of one model per task, learned on the same rows, to be compared with; None: no comparison
    cross_check      : what `problem.cross_check` returned, a sentence why there is none, or None
    cross_validation : what `problem.cross_validate` returned, or None
    path             : solutions of a path
    metrics          : names of measures to be shown; none: those that suit the labels
    bootstrap        : samples of the rows behind every interval, drawn from random_state; 0: no intervals
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

    @cached_property
    def training(self) -> Tasks | None:
        """The rows that were learned on; None for a solution from a file, and for rows that are elsewhere."""
        tasks = self.solution.trained_on
        return None if tasks is None or not tasks.in_memory else tasks

    @property
    def scored(self) -> Tasks | None:
        return self.training if self.tasks is None else self.tasks

    @cached_property
    def signs(self) -> np.ndarray:
        """(m,) which tasks have labels -1 and +1."""
        return sign_tasks(self.solution.loss, len(self.solution.task_names) or self.solution.coef.shape[1])

    @property
    def classes(self) -> bool:
        """Whether any has."""
        return bool(self.signs.any())

    @cached_property
    def measures(self) -> tuple[list[Scored], list[str]]:
        """(the measures of the rows that are scored, first the one that was asked for, learned for or chosen by; why others have none)."""
        if self.scored is None:
            return [], []
        learned = self.training or self.scored
        return measured(
            self.solution,
            self.scored,
            learned,
            self._wanted(),
            self.signs,
            self.bootstrap,
            self.random_state,
            self.separate,
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
