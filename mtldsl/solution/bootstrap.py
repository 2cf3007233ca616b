"""How sure a score is: the same predictions on rows drawn again."""

from __future__ import annotations

from mtldsl.scoring.intervals import ScoreIntervals
from mtldsl.solution.metric_measure import as_measure
from mtldsl.solution.predictors import Fitted, default_measure, predictor_of, require_signs
from mtldsl.solution.resampled import resampled
from mtldsl.tasks import Tasks
from mtldsl.tasks.resampling import checked_level, checked_times, units_of_rows
from mtldsl.values.seed import generator

__all__ = ["bootstrap_scores"]


def bootstrap_scores(fitted: Fitted, tasks: Tasks, metric, n, level, groups, random_state) -> ScoreIntervals:
    """See `Solution.bootstrap`."""
    if metric is None:
        metric = default_measure(fitted.loss)
    by, typed = as_measure(metric, "bootstrap(tasks, metric"), f"bootstrap(tasks, metric={metric!r})"
    n, level = checked_times(n, "bootstrap(tasks, n"), checked_level(level, "bootstrap(tasks, level")
    rng = generator(random_state, "bootstrap")
    like = fitted.schema.alike(tasks, "bootstrap")
    require_signs(fitted, like, typed, by.needs)
    units = units_of_rows(like, groups, "bootstrap(tasks, groups)")
    predicted = predictor_of(fitted).outputs(like.X if like.is_shared else like.inputs, by.needs, typed)
    return resampled(by, like, predicted, n, level, units, rng, typed)
