"""What a similarity between tasks is, before it is known of which tasks: a recipe for the kernels R_m of `mkl_norm`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mtldsl.atoms.structures import TaskKernel
from mtldsl.errors import ModelError
from mtldsl.language.expressions.latex import index_text
from mtldsl.values.listing import as_list, as_positions
from mtldsl.values.number import quoted

__all__ = ["Factors", "TaskSimilarity", "made", "require_tasks"]

Factors = list[tuple[str, sparse.csr_array]]  # name of a weight, B (T, r) with R = B B^T


@dataclass(frozen=True, eq=False)
class TaskSimilarity:
    """One or several kernels R_m between tasks, made by a helper such as `union()`; what they are is known with the tasks.

    columns : the features that it is about - a slice, positions, names, or the name of a view of the tasks; None: all

    >>> from mtldsl.language.unknowns.similarities import tree, union
    >>> union(), tree([-1], columns="text")
    (union(), tree(1 node, columns='text'))
    """

    text: str
    factors: Callable[[tuple[str, ...]], Factors]
    columns: object = None

    def __repr__(self):
        return self.text

    def kernels(self, tasks, typed: str) -> tuple[TaskKernel, ...]:
        """Its kernels for these tasks; ModelError, which quotes `typed`, where it does not fit them."""
        columns = self._columns(tasks, typed)
        try:
            found = self.factors(tuple(tasks.task_names))
        except ModelError as error:
            raise error.within(typed) from None
        for name, factor in found:
            if factor.shape[0] != tasks.n_tasks:
                raise ModelError(
                    f"{self.text} is of {factor.shape[0]} tasks, but there are {tasks.n_tasks}",
                    term=typed,
                    write_instead=f"give {name!r} a row and a column for every task",
                )
        view = (
            ""
            if columns is None
            else self.columns
            if isinstance(self.columns, str)
            else index_text(self.columns)
        )
        lead = f"{view}: " if view else ""
        return tuple(TaskKernel(lead + name, factor, columns, view) for name, factor in found)

    def _columns(self, tasks, typed: str) -> np.ndarray | None:
        if self.columns is None:
            return None
        views, names, asked = getattr(tasks, "views", {}), list(tasks.feature_names), self.columns
        if isinstance(asked, str):
            if asked not in views and asked not in names:
                known = f"the views are {', '.join(map(repr, views))}" if views else "there are no views"
                raise ModelError(
                    f"{self.text}: there is no view or feature {asked!r}; {known}, and the features "
                    f"{', '.join(map(repr, names[:5]))}{', ...' * (len(names) > 5)}",
                    term=typed,
                )
            asked = views.get(asked, [asked])
        listed = asked if isinstance(asked, slice) else as_list(asked)
        if listed is None:
            raise ModelError(
                f"{self.text}: columns must be a slice, a list of positions or names, or the name of a view",
                term=typed,
                write_instead=f"write columns=[{quoted(asked)}] for one feature",
            )
        if not isinstance(listed, slice):
            places = {name: j for j, name in enumerate(names)}
            listed = [_position(one, places, typed, self.text) for one in listed]
        positions = np.unique(
            as_positions(
                listed, len(names), f"{typed}: {self.text}: there are {len(names)} features", ModelError
            )
        )
        if not positions.size:
            raise ModelError(
                f"{self.text} is about no feature",
                term=typed,
                write_instead="select at least one, or leave columns=... out",
            )
        return positions


def _position(one, names: dict[str, int], typed: str, text: str):
    if not isinstance(one, str):
        return one
    if one not in names:
        raise ModelError(
            f"{text}: there is no feature {one!r}; the features are {', '.join(map(repr, list(names)[:5]))}"
            f"{', ...' * (len(names) > 5)}",
            term=typed,
        )
    return names[one]


def made(word: str, shown: list[str], factors: Callable, columns) -> TaskSimilarity:
    """The similarity that the helper `word` returns; `shown` are its arguments as they print."""
    if columns is not None:
        shown = [
            *shown,
            f"columns={columns!r}" if isinstance(columns, str) else f"columns={index_text(columns)}",
        ]
    return TaskSimilarity(f"{word}({', '.join(shown)})", factors, columns)


def require_tasks(given, names, word: str) -> None:
    """ModelError where a helper does not name every task once."""
    for missing in (name for name in names if name not in given):
        raise ModelError(f"{word}(...): task {missing!r} is missing", write_instead="name every task once")
    for unknown in (name for name in given if name not in names):
        raise ModelError(
            f"{word}(...): there is no task {unknown!r}; the tasks are {', '.join(map(repr, names[:8]))}{', ...' * (len(names) > 8)}"
        )
