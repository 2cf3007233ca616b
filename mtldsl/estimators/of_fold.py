"""The scores of one fold over all values of a parameter: a path on its training rows, each point scored on those held out."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.utils import _safe_indexing

from mtldsl.analysis.points import certified_points
from mtldsl.errors import ModelError
from mtldsl.estimators.by_task import ByTask
from mtldsl.estimators.one_class import OneTaskWarning
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.problem import Problem
from mtldsl.tasks.inputs import weights_of
from mtldsl.tasks.one_class import OneClassWarning

__all__ = ["of_fold", "parameter_of"]


def parameter_of(problem: Problem, name: str, typed: str) -> Parameter:
    found = [each for each in problem.parameters if each.name == name]
    if not found:
        raise ModelError(
            f"parameter={name!r} is an argument of a word, and a path is over what stands before words",
            term=typed,
            write_instead="use GridSearchCV for it",
        )
    return found[0]


def of_fold(estimator, name, values, scoring, X, y, sample_weight, others, train, test) -> list:
    """The scores of a fold over all values; NaN where it has no task to learn."""
    weights = None if sample_weight is None else weights_of(sample_weight, "sample_weight")
    with warnings.catch_warnings():
        for said in (OneClassWarning, OneTaskWarning):  # once, of all rows
            warnings.simplefilter("ignore", said)
        further = {key: _rows_of(each, train) for key, each in others.items()}
        tasks = estimator._prepare(
            _rows_of(X, train), _rows_of(y, train), _rows_of(weights, train), **further
        )
    held_out = _rows_of(X, test), _rows_of(y, test)
    options = {key: _rows_of(each, test) for key, each in others.items() if each is not None}
    if tasks is None:
        return [np.nan] * len(values)
    problem = estimator._problem(tasks)
    parameter, solve_options = parameter_of(problem, name, type(estimator).__name__), estimator._options()
    known, found = (held_out[0], estimator._read(held_out[1])), []
    by_task = scoring if isinstance(scoring, ByTask) else None
    own = scoring is None or by_task is not None  # weights are all that these scores ask for
    if own and problem.is_convex:
        for points in certified_points(problem, parameter, values, solve_options):
            if by_task is not None:
                found += [by_task(estimator._with(point), *held_out, **options) for point in points]
            else:
                found += estimator._scores_of(points, *known, options)
        return found
    for solution in problem.path(parameter, values, **solve_options):
        estimator._finish(solution)
        if by_task is not None:
            found.append(by_task(estimator, *held_out, **options))
        elif scoring is None:
            found.append(float(estimator.score(*known, **options)))
        else:
            found.append(float(scoring(estimator, *held_out, **options)))
    if len(found) < len(values):  # a path ends after Ctrl-C: there is nothing to choose among
        raise KeyboardInterrupt
    return found


def _rows_of(array, rows):
    return None if array is None else _safe_indexing(array, rows)
