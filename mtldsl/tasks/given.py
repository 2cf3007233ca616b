"""Where a `Tasks` has to be given."""

from __future__ import annotations

from mtldsl.errors import DataError, MTLError
from mtldsl.tasks.tasks import Tasks
from mtldsl.values.number import quoted

__all__ = ["require_tasks"]


def described(value) -> str:
    """A value of a wrong type, in a few words.

    >>> import numpy as np
    >>> described(np.ones((3, 2))), described(5)
    ('an array of shape (3, 2) is not', '5 is a int, not')
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        name = type(value).__name__
        return f"{'an array' if name == 'ndarray' else f'a {name}'} of shape {shape} is not"
    return f"{quoted(value)} is a {type(value).__name__}, not"


def require_tasks(value, typed: str, error: type[MTLError] = DataError) -> Tasks:
    """The value, where it is a Tasks. `typed` is such as "score(tasks)"."""
    if isinstance(value, Tasks):
        return value
    raise error(
        f"{described(value)} Tasks",
        term=typed,
        write_instead="write Tasks.shared(X, Y), or one of its siblings",
    )
