"""Expressions beside arrays and tables of numpy and pandas: which of their functions the language has, and what to write for the others."""

from __future__ import annotations

import sys

import numpy as np

from mtldsl.errors import ModelError

__all__ = ["Mixable", "NoArray"]

#: numpy's functions behind the operators of an array on the left, and what they are here.
_REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "matmul": "__rmatmul__", "less_equal": "__ge__", "greater_equal": "__le__", "equal": "__eq__", "less": "__gt__",
    "greater": "__lt__", "not_equal": "__ne__",
}  # fmt: skip

#: What to write in place of functions of entries.
_INSTEAD = {
    "absolute": "write l1_norm({0}), the sum of absolute values",
    "square": "write ridge({0}), half the sum of squares",
    "power": "write ridge({0}), half the sum of squares",
    "exp": "write a loss, such as exponential_loss or poisson_loss",
    "log": "write a loss, such as logistic_loss",
    "sqrt": "write frobenius_norm({0})",
    "maximum": "write a constraint, {0} >= 0, or a loss, such as hinge_loss",
    "minimum": "write a constraint, {0} <= 1",
}


#: The same of numpy's functions of arrays.
_OF_ARRAYS = {
    "mean": "write {0}.sum() / n, with the number of entries as n; mean_regularizer(W) draws tasks to their mean",
    "average": "write {0}.sum() / n, with the number of entries as n",
    "norm": "write frobenius_norm({0}), or trace_norm, l1_norm, l21_norm",
    "svd": "write trace_norm({0}), the sum of singular values",
    "diff": "write total_variation({0})",
    "transpose": "write A @ {0} or {0} @ A",
    "clip": "write constraints, subject_to=[{0} >= 0, {0} <= 1]",
    "max": "write a constraint, {0} <= 1, or l1_inf_norm({0})",
    "amax": "write a constraint, {0} <= 1, or l1_inf_norm({0})",
    "min": "write a constraint, {0} >= 0",
    "amin": "write a constraint, {0} >= 0",
}


class NoArray:
    """A thing of the language: one object for numpy and scipy, which then leave `A @ W` to it."""

    def __array__(self, dtype=None, copy=None):
        """Return the object itself, of shape (). ModelError where pandas asks, which keeps `table @ W` and `table.dot(W)` to itself."""
        if sys._getframe(1).f_globals.get("__name__", "").startswith("pandas."):
            raise ModelError(
                f"{getattr(self, 'text', type(self).__name__)} is not an array of numbers, and a pandas table on the left of @ wants one",
                write_instead="write A.to_numpy() in place of the table A",
            )
        itself = np.empty((), dtype=object)
        itself[()] = self
        return itself


class Mixable(NoArray):
    """An expression that numpy and pandas hand their operators to."""

    text: str

    answers_arrays = True  # by `__array_ufunc__`
    __pandas_priority__ = 10_000  # pandas tables on the left defer to the operators below

    def __array_function__(self, function, types, args, kwargs):
        """`np.sum` and `np.dot` are `.sum()` and `@`; other functions of arrays are not in the language."""
        name = function.__name__
        if name == "sum" and args and args[0] is self and hasattr(self, "sum"):
            return self.sum(*args[1:], **kwargs)  # type: ignore[attr-defined]
        if name == "dot" and len(args) == 2 and not kwargs:
            return args[0] @ args[1]
        if name in ("shape", "ndim", "size"):
            return function._implementation(*args, **kwargs)
        raise ModelError(
            f"np.{name} of {self.text} is not in the language",
            write_instead=_OF_ARRAYS.get(name, "write + - * / @ and the words of the language").format(
                self.text
            ),
        )

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """Arrays on the left defer to the operators below; other functions of numpy are not in the language."""
        reflected = _REFLECTED.get(ufunc.__name__)
        if reflected and method == "__call__" and not options and not isinstance(inputs[0], Mixable):
            return getattr(self, reflected)(inputs[0])
        raise ModelError(
            f"np.{ufunc.__name__} of {self.text} is not in the language",
            write_instead=_INSTEAD.get(
                ufunc.__name__, "write + - * / @ and the words of the language"
            ).format(self.text),
        )
