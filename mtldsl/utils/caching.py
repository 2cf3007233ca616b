"""Caches: lazy fields of a solution, cached properties without a lock, and what the solves of a path share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

# --------------------------------------------------------------------------------------------------------------
# A property that is computed once: `functools.cached_property` without the lock that it has up to Python 3.11, which costs a small solve a few percent.

if TYPE_CHECKING:
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """As `functools.cached_property`. Two threads that ask at once may both compute the value, and the last one stays, as in Python 3.12.

        >>> class Circle:
        ...     def __init__(self, radius):
        ...         self.radius = radius
        ...
        ...     @cached_property
        ...     def area(self):
        ...         return 3 * self.radius**2
        >>> circle = Circle(2)
        >>> circle.area, circle.__dict__["area"]
        (12, 12)
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


# --------------------------------------------------------------------------------------------------------------
# Fields of a solution that are computed when they are first read: few of those on a path are.


class Lazy:
    """Value of a field, asked once."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make

    @cached_property
    def value(self):
        return self.make()


class LazyField:
    """A dataclass field, its default `default()`, which may be given as `Lazy`.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Answer:
    ...     numbers: list = LazyField(list)
    >>> one = Answer(Lazy(lambda: [42]))
    >>> one.numbers, Answer().numbers
    ([42], [])
    """

    def __init__(self, default: Callable[[], Any]):
        self.default = Lazy(default)

    def __set_name__(self, owner: type, name: str):
        self.name = name

    def __get__(self, solution, owner: type | None = None):
        if solution is None:
            return self.default
        value = solution.__dict__[self.name]
        if isinstance(value, Lazy):
            value = solution.__dict__[self.name] = value.value
        return value

    def __set__(self, solution, value) -> None:
        solution.__dict__[self.name] = value


# --------------------------------------------------------------------------------------------------------------
# What stays the same from one solve to the next is made once, where the solves are known to belong together: along a path.

T = TypeVar("T")
Store = dict[tuple[int, str], tuple[object, object]]

_store: ContextVar[Store | None] = ContextVar("what this path has made", default=None)


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """The variable has this value in the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def path_cache(store: Store) -> AbstractContextManager[None]:
    """A block in which what `cached_on_path` makes is kept in the store, as long as whoever holds that."""
    return setting(_store, store)


def cached_on_path(owner: object, what: str, make: Callable[[], T]) -> T:
    """make(), or what it gave before for the same owner. An owner does not change, and `make` asks for nothing else.

    >>> store, owner = {}, object()
    >>> with path_cache(store):
    ...     cached_on_path(owner, "number", lambda: 1), cached_on_path(owner, "number", lambda: 2)
    (1, 1)
    >>> cached_on_path(owner, "number", lambda: 3)
    3
    """
    store = _store.get()
    if store is None:
        return make()
    key = id(owner), what
    if key not in store:
        store[key] = owner, make()  # the owner too: no other object gets its id meanwhile
    return store[key][1]  # type: ignore[return-value]
