"""Fields of a solution that are computed when they are first read: few of those on a path are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtldsl.system.kept import cached_property

__all__ = ["Field", "Later"]


class Later:
    """What a field will be, asked once."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make

    @cached_property
    def value(self):
        return self.make()


class Field:
    """A dataclass field, its default `default()`, which may be given as `Later`.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Answer:
    ...     numbers: list = Field(list)
    >>> one = Answer(Later(lambda: [42]))
    >>> one.numbers, Answer().numbers
    ([42], [])
    """

    def __init__(self, default: Callable[[], Any]):
        self.default = Later(default)

    def __set_name__(self, owner: type, name: str):
        self.name = name

    def __get__(self, solution, owner: type | None = None):
        if solution is None:
            return self.default
        value = solution.__dict__[self.name]
        if isinstance(value, Later):
            value = solution.__dict__[self.name] = value.value
        return value

    def __set__(self, solution, value) -> None:
        solution.__dict__[self.name] = value
