"""One model per task, to be compared with: ridge regression of numbers, logistic regression of labels."""

from __future__ import annotations

import warnings

import numpy as np

from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.tasks import Tasks
from mtldsl.errors import MTLError
from mtldsl.language.scalars import Parameter
from mtldsl.language.vocabulary import logistic_loss, ridge, squared_loss
from mtldsl.language.weights import Weights
from mtldsl.problems.cross_validation import thresholds_of_folds
from mtldsl.problems.problem import minimize
from mtldsl.solution.solution import Solution

#: Strengths that folds choose among, in multiples of the rows of a task.
STRENGTHS = np.geomspace(10.0, 1e-4, 11)


#: Folds that choose a strength.
FOLDS = 3

#: Relative gap of every solve.
GAP_TOL = 1e-4


def separate_models(tasks: Tasks | None, thresholds: Metric | None = None) -> Solution | None:
    """Return what every task learns alone, on the same rows: a loss + lam * ridge(W), with an intercept; lam is chosen on three folds.

    The best lam has the smallest error of all rows that were held out: their squared errors, or the log-losses of labels.
    thresholds : the metric that thresholds of labels are tuned for, on scores of rows held out; None: 0 is the threshold
    None where there is one task alone, where rows are elsewhere, or where the folds cannot be made: then there is nothing to compare with.

    >>> from mtldsl.data.tasks import Tasks
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> separate_models(Tasks.shared(X, X[:, :2] + 0.1 * rng.normal(size=(60, 2)))).W.round(1) + 0.0
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    if tasks is None or not tasks.in_memory or tasks.n_tasks < 2:
        return None
    labels = bool(np.isin(tasks.targets, (-1.0, 1.0)).all())
    W, lam = Weights(tasks, intercept=True), Parameter(1.0, name="lam")
    problem = minimize((logistic_loss if labels else squared_loss)(W, tasks) + lam * ridge(W))
    values = float(np.max(tasks.counts)) * STRENGTHS
    metric = "log_loss" if labels else "mse"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = problem.cross_validate(lam, values, folds=FOLDS, metric=metric, refit=False, tol=GAP_TOL)
            lam.value = _best(found.table, tasks)
            solution = problem.solve(tol=GAP_TOL)
            if thresholds is None or not labels:
                return solution
            return thresholds_of_folds(problem, solution, thresholds, tol=GAP_TOL)
    except MTLError:  # such as a task of fewer labels than folds
        return None


def _best(table: list[dict], tasks: Tasks) -> float:
    """The lam of the smallest summed error: a mean over tasks of few rows follows the worst of them.

    Columns of a table have units of their own, so that their squared errors count in their own variances.
    """
    units = np.ones(tasks.n_tasks)
    if tasks.is_shared:
        units = np.array([np.var(y) or 1.0 for y in tasks.per_task(tasks.targets)])
    unit, errors = dict(zip(tasks.task_names, units.tolist(), strict=True)), dict[float, float]()
    for row in table:
        error = row["score"] * row["tested"] / unit[row["task"]]
        errors[row["lam"]] = errors.get(row["lam"], 0.0) + float(np.nan_to_num(error))
    return min(errors, key=errors.__getitem__)
