"""What stays the same from one solve to the next is made once, where the solves are known to belong together: along a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["Store", "once", "remembering"]

T = TypeVar("T")
Store = dict[tuple[int, str], tuple[object, object]]

_store: ContextVar[Store | None] = ContextVar("what this path has made", default=None)


@contextmanager
def remembering(store: Store) -> Iterator[None]:
    """What `once` makes in this block is kept in the store, as long as whoever holds that."""
    token = _store.set(store)
    try:
        yield
    finally:
        _store.reset(token)


def once(owner: object, what: str, make: Callable[[], T]) -> T:
    """make(), or what it gave before for the same owner. An owner does not change, and `make` asks for nothing else.

    >>> store, owner = {}, object()
    >>> with remembering(store):
    ...     once(owner, "number", lambda: 1), once(owner, "number", lambda: 2)
    (1, 1)
    >>> once(owner, "number", lambda: 3)
    3
    """
    store = _store.get()
    if store is None:
        return make()
    key = id(owner), what
    if key not in store:
        store[key] = owner, make()  # the owner too: no other object gets its id meanwhile
    return store[key][1]  # type: ignore[return-value]
