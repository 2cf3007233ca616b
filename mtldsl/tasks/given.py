"""Where a `Tasks` has to be given."""

from __future__ import annotations

from mtldsl.errors import DataError, MTLError
from mtldsl.tasks.tasks import Tasks
from mtldsl.values.number import quoted

__all__ = ["require_tasks"]


def require_tasks(value, typed: str, error: type[MTLError] = DataError) -> Tasks:
    """The value, where it is a Tasks. `typed` is such as "score(tasks)"."""
    if isinstance(value, Tasks):
        return value
    raise error(
        f"{quoted(value)} is a {type(value).__name__}, not Tasks",
        term=typed,
        write_instead="write Tasks.shared(X, Y), or one of its siblings",
    )
