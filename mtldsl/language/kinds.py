"""What a value of the language is, in words, for messages."""

from __future__ import annotations

from numbers import Real

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.language.constraint import Constraint
from mtldsl.language.expression import Affine
from mtldsl.language.learned import LearnedUnknown, RangeConstraint, Trace
from mtldsl.language.objective import Objective
from mtldsl.language.scalar import Scalar
from mtldsl.tasks import Tasks

__all__ = ["is_trace", "kind_of"]

_KINDS = [
    (bool, "a truth value"),
    (Affine, "an expression of weights"),
    (Objective, "a sum of losses and regularizers"),
    (Constraint, "a constraint"),
    (RangeConstraint, "a constraint"),
    (LearnedUnknown, "a matrix that is learned"),
    (Trace, "the trace of a matrix"),
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


def is_trace(value) -> bool:
    """Whether this is `D.trace()` of a matrix that is learned."""
    return isinstance(value, Trace)
