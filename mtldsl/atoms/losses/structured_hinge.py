"""The structured hinge: a measure of whole labellings or rankings, one maximum a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import REGISTRY, register
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics.contingency import FScore
from mtldsl.atoms.metrics.metric import Metric, check_delta, classes_of, is_own
from mtldsl.atoms.structured_prox.polytope import prox_of_planes
from mtldsl.errors import ModelError
from mtldsl.utils.validation import quoted


@register
@dataclass(frozen=True, eq=False)
class StructuredHinge(Loss):
    r"""The structured hinge of a metric: max over labellings y' of Delta(y, y') - <y - y', z>, with z = X_i w_i the predictions of
    a task and labels y in {-1, +1}. An upper bound of Delta at the labels sign(z), convex in z.

    Shapes: z and y are (n,). One maximum a task, not a sum over samples: Delta lies in [0, 1] (`ErrorRate`: twice the number of
    errors), so that a coefficient weighs tasks, whatever their size; `mean=True` divides by n all the same.

    Parameters
    ----------
    metric : a metric, or a list with one a task, or a dict {task name: metric}; default FScore()
        `FScore(beta)`, `AUC()`, `ErrorRate()`, `BalancedError()`, `Jaccard()`, `GMean()`, `PrecisionAt(k)`, `RecallAt(k)`; of orders
        `ROCArea()`, `PartialAUC(max_fpr)`, `AveragePrecision()`, `NDCG()`; or your own subclass of `Metric`.

    Raises
    ------
    ModelError
        Where metric is none of these, a list or dict of metrics does not fit the tasks, or a task has fewer than k samples.
    DataError
        Where a label is not -1 or +1, a task has labels of one class only, or samples carry weights: a metric counts samples.

    Notes
    -----
    With b negatives labelled +1 and c positives labelled -1, f(z) = max over b, c of Delta(b, c) - 2 (sum of the c smallest
    positive scores) + 2 (sum of the b largest negative scores). Not smooth; the subgradient at the most violated labelling is
    -2 y on the samples that it flips. With `ErrorRate` it equals 2 * `hinge_loss`; with `ROCArea` the maximum is over rankings,
    and f(z) is the mean over pairs (positive i, negative j) of max(0, 1 - 2 (z_i - z_j)).
    prox: in O(n log n) for `AUC` (level sets) and, at its usual size, `FScore` with beta >= 1 (thresholds); else planes are added
    where the current point violates them most, until none is violated.
    Conjugate: - the largest expected Delta of random labellings that flip sample j with probability p_j, u = -2 y p; for
    `FScore` with beta < 1 and own metrics on large tasks an upper bound of it (`Metric.conjugate`).
    Source: Joachims, "A support vector method for multivariate performance measures", ICML 2005; for several tasks, Ke, Pan,
    Yin and Huang, "Optimizing evaluation metrics for multi-task learning via the alternating direction method of multipliers"
    (SMTL), equations (2) and (8)-(11).

    Examples
    --------
    >>> import numpy as np
    >>> from mtldsl.atoms.metrics import AUC
    >>> z, y = np.array([2.0, 0.25, -1.0]), np.array([1.0, -1.0, -1.0])
    >>> StructuredHinge(metric=AUC()).value(z, y)
    0.5
    >>> round(StructuredHinge().value(z, y), 4)
    0.8333
    >>> StructuredHinge().gradient(z, y)
    array([0., 2., 0.])
    """

    metric: Metric | tuple[Metric, ...] = FScore()  # noqa: RUF009 (frozen: one instance serves all)

    name: ClassVar[str] = "structured_hinge"
    meaning: ClassVar[str] = "the structured hinge, a maximum over the labellings $y'$ of a task"
    formula: ClassVar[str] = r"\max_{y'}\big[\Delta(y_i,y')-\langle y_i-y',\,{}\rangle\big]"
    labels: ClassVar[str] = "sign"
    weighs_samples: ClassVar[bool] = False
    max_affine: ClassVar[bool] = True
    intercept_reason: ClassVar[str] = "its labellings have a fixed number of positives"

    def __post_init__(self):
        object.__setattr__(self, "metric", as_metrics(self.metric, f"{self.name}(...)"))

    @classmethod
    def examples(cls):
        return [cls(metric=metric) for kind in _metrics() for metric in kind.examples()]

    @property
    def takes_intercept(self) -> bool:
        metrics = self.metric if isinstance(self.metric, tuple) else (self.metric,)
        return not any(metric.fixes_positives for metric in metrics)

    # -------------------------------------------------------------------------------- one metric, or one a task

    def of_task(self, i: int) -> StructuredHinge:
        """The hinge of task i."""
        return StructuredHinge(self.metric[i]) if isinstance(self.metric, tuple) else self

    def for_tasks(self, names, class_sizes) -> StructuredHinge:
        """The same with its metrics in the order of the tasks; ModelError where they do not fit.

        names: the tasks' names; class_sizes: (positives, negatives) of every task.
        """
        metric = metrics_of_tasks(self.metric, names, class_sizes, f"{self.name}(...)")
        return self if metric is self.metric else StructuredHinge(metric)

    # --------------------------------------------------------------------------------- of one task's predictions

    @property
    def _only_metric(self) -> Metric:
        if isinstance(self.metric, tuple):
            raise TypeError(f"{self.name}: every task has a metric of its own; ask of_task(i)")
        return self.metric

    def most_violated(self, z, y, classes=None):
        """The highest plane at z (`MostViolatedPlane`)."""
        return self._only_metric.most_violated(np.asarray(z, float), np.asarray(y, float), classes)

    def value(self, z, y, s=None) -> float:
        self.refuse_weights(s)
        return self.most_violated(z, y).value

    def gradient(self, z, y, s=None):
        self.refuse_weights(s)
        return self.most_violated(z, y).gradient(y)

    def prox(self, z, y, step, s=None):
        self.refuse_weights(s)
        z, y, metric = np.asarray(z, float), np.asarray(y, float), self._only_metric
        found = metric.score_step(z, classes_of(y), step) if metric.exact_prox else None
        if found is not None:
            return z + 2.0 * step * y * found.flips

        def oracle(x):
            plane = metric.most_violated(x, y)
            return plane.gradient(y), plane.delta

        return prox_of_planes(oracle, z, step)

    def conjugate(self, u, y, s=None) -> float:
        self.refuse_weights(s)
        return self._only_metric.conjugate(u, y)

    def dual_project(self, u, y, s=None):
        self.refuse_weights(s)
        return self._only_metric.dual_project(u, y)


def as_metrics(metric, typed: str):
    """A metric, a tuple of metrics or a dict of them, from plain data too (`Metric.plain`); ModelError for anything else."""
    if isinstance(metric, dict) and len(metric) and not _is_plain(metric):
        return {name: _one(value, typed) for name, value in metric.items()}
    if isinstance(metric, (list, tuple)) and metric:
        return tuple(_one(value, typed) for value in metric)
    return _one(metric, typed)


def _is_plain(metric) -> bool:
    return isinstance(metric, dict) and isinstance(dict.get(metric, "metric"), str)


def _one(metric, typed: str) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if _is_plain(metric):
        return Metric.from_plain(metric)
    hint = ""
    if isinstance(metric, type) and issubclass(metric, Metric):
        hint = f"; write metric={metric.__name__}()"
    elif isinstance(metric, str):
        hint = "; metrics are written without quotes, such as metric=FScore()"
    shown = metric.__name__ if isinstance(metric, type) else quoted(metric)
    raise ModelError(
        f"this is not a metric{hint}; there are {', '.join(repr(kind.examples()[0]) for kind in _metrics())}, "
        "a list with one a task, or a subclass of mtldsl.Metric",
        term=_with(typed, shown),
    )


def metrics_of_tasks(metric, names, class_sizes: Iterable[tuple[int, int]], typed: str):
    """Return what `as_metrics` gave, as one metric or a tuple in the order of the tasks; ModelError where it does not fit them.

    names: the tasks' names; class_sizes: (positives, negatives) of every task.
    """
    if isinstance(metric, Mapping):
        unknown = [name for name in metric if name not in names]
        missing = [name for name in names if name not in metric]
        if unknown or missing:
            wrong = f"there is no task {unknown[0]!r}" if unknown else f"task {missing[0]!r} has no metric"
            raise ModelError(
                f"{_with(typed, '{...}')}: {wrong}",
                write_instead=f"give one metric for each of {', '.join(map(repr, names))}",
            )
        metric = tuple(metric[name] for name in names)
    if isinstance(metric, tuple) and len(metric) != len(names):
        raise ModelError(
            f"{len(metric)} metrics for {len(names)} tasks",
            term=_with(typed, "[...]"),
            write_instead="give one a task, or a single one for all",
        )
    smallest: dict[Metric, tuple[int, int]] = {}
    for i, sizes in enumerate(class_sizes):
        of_task = metric[i] if isinstance(metric, tuple) else metric
        reason = of_task.check(*sizes)
        if reason:
            raise ModelError(f"task {names[i]!r}: {reason}", term=_with(typed, repr(of_task)))
        if is_own(of_task) and of_task.labellings:
            smallest[of_task] = min(smallest.get(of_task, sizes), sizes, key=lambda pair: sum(pair))
    for of_task, sizes in smallest.items():
        check_delta(of_task, *map(int, sizes))
    return metric


def _with(typed: str, metric: str) -> str:
    """Such as structured_hinge(..., metric=FScore())."""
    return f"{typed.removesuffix(')')}, metric={metric})"


def _metrics() -> list[type[Metric]]:
    return [kind for kind in REGISTRY.values() if issubclass(kind, Metric)]
