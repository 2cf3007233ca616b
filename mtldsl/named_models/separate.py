"""One model per task, to be compared with: ridge regression of numbers, logistic regression of labels."""

from __future__ import annotations

import warnings

import numpy as np

from mtldsl.errors import MTLError
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.words.vocabulary import logistic_loss, ridge, squared_loss
from mtldsl.problem import minimize
from mtldsl.solution.solution import Solution
from mtldsl.tasks import Tasks

__all__ = ["separate_models"]

#: Strengths that folds choose among, in multiples of the rows of a task.
_STRENGTHS = np.geomspace(1.0, 1e-4, 9)

_FOLDS = 3


def separate_models(tasks: Tasks | None) -> Solution | None:
    """Return what every task learns alone, on the same rows: a loss + lam * ridge(W), with an intercept; lam is chosen on three folds.

    None where there is one task alone, where rows are elsewhere, or where the folds cannot be made: then there is nothing to compare with.

    >>> from mtldsl.tasks import Tasks
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
    values = float(np.max(tasks.counts)) * _STRENGTHS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return problem.cross_validate(lam, values, folds=_FOLDS, tol=1e-4).solution
    except MTLError:  # such as a task of fewer labels than folds
        return None
