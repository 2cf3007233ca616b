"""What is done unasked, for the whole process: `mtl.defaults(...)`."""

from __future__ import annotations

from mtldsl.errors import ModelError
from mtldsl.values.number import quoted

__all__ = ["Defaults", "as_cross_check", "default_cross_check", "defaults"]

#: Solutions are not checked unasked: a small solve takes a millisecond, and cvxpy needs thirty to state the same model.
_now: dict[str, bool | str] = {"cross_check": "never"}


def as_cross_check(value, typed: str) -> bool | str:
    """True, "subsample" or "never" (False is the same); ModelError for all else. `typed` is such as "solve"."""
    if value is False:
        return "never"
    if value is True or (isinstance(value, str) and value in ("subsample", "never")):
        return value
    raise ModelError(
        f"{typed}(cross_check={quoted(value)})", write_instead='write True, "subsample" or "never"'
    )


def default_cross_check() -> bool | str:
    """What holds for solves that say nothing of it."""
    return _now["cross_check"]


class Defaults:
    """What `defaults` returns: as a context manager it puts back, at its end, what was so before."""

    def __init__(self, before: dict[str, bool | str]):
        self._before = before

    def __enter__(self) -> Defaults:
        return self

    def __exit__(self, *_) -> None:
        _now.update(self._before)

    def __repr__(self) -> str:
        return f"<defaults: {', '.join(f'{name}={value!r}' for name, value in _now.items())}>"


def defaults(*, cross_check: bool | str | None = None) -> Defaults:
    """Set what every later `solve()` and `path()` of this process does unasked; in a `with` statement, of that block alone. Says what holds.

    cross_check : "never" (as it is at first): no solution is checked unless its solve says so. True: each is checked against the
                  reference as a whole, where that is within cvxpy's reach (`cross_check`'s max_size, 1,000,000 scalars of input data as
                  it counts them); above it none is. "subsample": each is checked, on few rows where there are many.
                  None: as it is

    It holds for what is solved by `solve` and `path`. Folds, bootstrap samples, halves and estimators, which have `check=`, are left alone.
    What came of a check is `solution.cross_check`. ModelError for another value.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[3.0, 0], [0, 1], [0, 0]]))
    >>> W = mtl.Weights(tasks)
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))
    >>> with mtl.defaults(cross_check=True):
    ...     problem.solve().cross_check.agrees
    True
    >>> mtl.defaults()
    <defaults: cross_check='never'>
    """
    before = dict(_now)
    if cross_check is not None:
        _now["cross_check"] = as_cross_check(cross_check, "defaults")
    return Defaults(before)
