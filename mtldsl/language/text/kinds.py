"""What a value of the language is, in words, for messages."""

from __future__ import annotations

from numbers import Real

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.expressions.scalar import Scalar
from mtldsl.language.unknowns.kernel_weights import KernelWeights, WeightsNorm
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint, Trace
from mtldsl.language.unknowns.similarities import TaskSimilarity
from mtldsl.tasks import Tasks

__all__ = ["is_compared", "kind_of", "place_of"]

_KINDS = [
    (bool, "a truth value"),
    (Affine, "an expression of weights"),
    (Objective, "a sum of losses and regularizers"),
    (Constraint, "a constraint"),
    (RangeConstraint, "a constraint"),
    (KernelWeights, "weights that are learned"),
    (LearnedUnknown, "a matrix that is learned"),
    (Trace, "the trace of a matrix"),
    (WeightsNorm, "a norm of kernel weights"),
    (TaskSimilarity, "a similarity of tasks"),
    (Scalar, "a parameter"),
    (Tasks, "a Tasks object"),
    (Metric, "a metric"),
    (Real, "a number"),
    (str, "text in quotes"),
    (list, "a list"),
    (dict, "a table"),
    (np.ndarray, "an array"),
]


def kind_of(value) -> str:
    """Such as "an expression of weights"; None and other kinds as they print.

    >>> kind_of(2.5), kind_of([1, 2])
    ('a number', 'a list')
    """
    return next((text for kind, text in _KINDS if isinstance(value, kind)), repr(value))


def is_compared(value) -> bool:
    """Whether this stands in comparisons alone: `D.trace()` of a matrix that is learned, `p_norm(theta, 2)` of kernel weights."""
    return isinstance(value, Trace | WeightsNorm)


def place_of(value) -> str:
    """Where a metric, a similarity, or a trace or norm of what is learned belongs; nothing for values of other kinds."""
    if isinstance(value, Metric):
        return f"; write structured_hinge(W, tasks, metric={value!r})"
    if isinstance(value, TaskSimilarity):
        return f"; write mkl_norm(W, [{value!r}], p=2)"
    return f"; it is bounded, {value!r} <= 1" if is_compared(value) else ""
