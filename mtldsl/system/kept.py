"""A property that is computed once: `functools.cached_property` without the lock that it has up to Python 3.11, which costs a small solve a few percent."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

__all__ = ["cached_property"]

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
