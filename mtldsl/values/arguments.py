"""Calls without what they need: Python's TypeError as an error that says what to write."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from mtldsl.errors import ModelError, MTLError

__all__ = ["complete"]

_F = TypeVar("_F", bound=Callable[..., Any])


def complete(write: str, error: type[MTLError] = ModelError) -> Callable[[_F], _F]:
    """Decorator: a call whose arguments do not fit the signature is `error`, with `write` as what to write instead.

    >>> @complete("write double(2)")
    ... def double(x):
    ...     return 2 * x
    >>> double()
    Traceback (most recent call last):
    mtldsl.errors.ModelError: double(): missing a required argument: 'x'; write double(2)
    """

    def decorated(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except TypeError:
                try:
                    inspect.signature(function).bind(*args, **kwargs)
                except TypeError as wrong:
                    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                    raise error(f"{wrong}", term=f"{name}()", write_instead=write) from None
                raise

        return call  # type: ignore[return-value]

    return decorated
