"""What the rows and columns of an expression are called: after the features and tasks of its weights, wherever each is one of them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mtldsl.errors import ModelError

__all__ = ["Named", "column_names", "position_of", "row_names"]


class Named(Protocol):
    """What is asked of an expression here: expression.py imports this file."""

    text: str

    @property
    def parts(self) -> tuple[Any, ...]: ...


def row_names(expression: Named) -> tuple[str, ...]:
    """The feature of every row; () where rows are mixtures of several, or where the summands' rows are of different ones."""
    return _agreed([_picked(part.left, part.weights.tasks.feature_names) for part in expression.parts])


def column_names(expression: Named) -> tuple[str, ...]:
    """The task of every column; () where columns are mixtures of several, or where the summands' columns are of different ones."""
    of_parts = []
    for part in expression.parts:
        right = None if part.right is None else part.right.T
        of_parts.append(_picked(right, part.weights.column_names))
    return _agreed(of_parts)


def position_of(name: str, expression: Named, axis: int, typed: str, told: bool = True) -> int:
    """The row (axis 0) or the column (axis 1) of that name; ModelError where there is none.

    told : whether the error says how a name of the other axis is written

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(2), np.eye(2), feature_names=["age", "sex"]))
    >>> position_of("sex", W, 0, "W['sex', :]"), position_of("sex", W[["sex", "age"], :], 0, "...")
    (1, 0)
    """
    names, others = row_names(expression), column_names(expression)
    if axis == 1:
        names, others = others, names
    if name in names:
        return names.index(name)
    lines, theirs = ("rows", "column") if axis == 0 else ("columns", "row")
    if not names:
        raise ModelError(
            f"the {lines} of {expression.text} are not called anything, since they are mixtures",
            term=typed,
            write_instead="write positions",
        )
    shown = ", ".join(map(str, names[:8])) + ("..." if len(names) > 8 else "")
    place = f"{expression.text}[:, {name!r}]" if axis == 0 else f"{expression.text}[{name!r}, :]"
    near = get_close_matches(name, names, n=1)
    if name in others:
        advice = f"{name!r} is a {theirs}" + (f": write {place}" if told else "")
    else:
        advice = f"did you mean {near[0]!r}?" if near else ""
    raise ModelError(f"no name {name!r} among {shown}", term=typed, write_instead=advice)


def _picked(matrix: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that a matrix of zeros and a one a row picks; () of any other matrix."""
    if matrix is None:
        return tuple(names)
    rows = sparse.csr_array(matrix)
    rows.eliminate_zeros()
    if not (np.all(np.diff(rows.indptr) == 1) and np.all(rows.data == 1.0)):
        return ()
    return tuple(names[j] for j in rows.indices)


def _agreed(of_parts: list[tuple[str, ...]]) -> tuple[str, ...]:
    return of_parts[0] if of_parts and all(names == of_parts[0] for names in of_parts) else ()
