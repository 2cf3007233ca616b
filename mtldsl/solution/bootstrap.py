"""How sure a score is: the same predictions on rows drawn again."""

from __future__ import annotations

import numpy as np

from mtldsl.scoring.intervals import ScoreIntervals
from mtldsl.scoring.score import evaluate
from mtldsl.solution.metric_measure import as_measure
from mtldsl.solution.named_scores import truth_of
from mtldsl.solution.predictors import Fitted, predictor_of
from mtldsl.tasks import Tasks
from mtldsl.tasks.labels import require_kind
from mtldsl.tasks.resampling import checked_level, checked_times, drawn, units_of_rows
from mtldsl.values.seed import generator

__all__ = ["bootstrap_scores"]


def bootstrap_scores(fitted: Fitted, tasks: Tasks, metric, n, level, groups, random_state) -> ScoreIntervals:
    """See `Solution.bootstrap`."""
    if metric is None:
        metric = "accuracy" if fitted.loss["labels"] in ("sign", "indicators") else "r2"
    by, typed = as_measure(metric, "bootstrap(tasks, metric"), f"bootstrap(tasks, metric={metric!r})"
    n, level = checked_times(n, "bootstrap(tasks, n"), checked_level(level, "bootstrap(tasks, level")
    rng = generator(random_state, "bootstrap")
    like = fitted.schema.alike(tasks, "bootstrap")
    if by.needs != "values":
        require_kind(like, "sign", typed)
    units = units_of_rows(like, groups, "bootstrap(tasks, groups)")
    predicted = predictor_of(fitted).outputs(like.X if like.is_shared else like.inputs, by.needs, typed)
    truth, weights = truth_of(like)

    def score(rows: list[np.ndarray] | None):
        parts = [truth, predicted] if weights is None else [truth, predicted, weights]
        y, p, *w = (
            parts if rows is None else [[one[r] for one, r in zip(part, rows, strict=True)] for part in parts]
        )
        return evaluate(
            by, y, p, like.task_names, table=like.is_shared, weights=w[0] if w else None, typed=typed
        )

    found = []
    for _ in range(n):
        times = drawn(like, units, rng)
        each = [times] * like.n_tasks if like.is_shared else like.per_task(times)
        found.append(score([np.repeat(np.arange(len(one)), one) for one in each]))
    return ScoreIntervals(by.name, like.task_names, score(None), found, level)
