"""Tasks whose labels are all of one class: refused, or left out with a word."""

from __future__ import annotations

import warnings

from mtldsl.errors import DataError, ModelError
from mtldsl.tasks.one_class import OneClassWarning, listed_tasks
from mtldsl.values.number import quoted

__all__ = ["check_one_class", "warn_of_one_class"]

ONE_CLASS = ("constant", "skip", "error")


def check_one_class(self) -> None:
    """ModelError for an option that is not known."""
    if self.one_class not in ONE_CLASS:
        raise ModelError(
            f"one_class={quoted(self.one_class)}",
            term=type(self).__name__,
            write_instead=f"write one of {', '.join(map(repr, ONE_CLASS))}",
        )


def warn_of_one_class(self, names: list, n_tasks: int) -> None:
    """A warning that these tasks are not learned; DataError where that was asked for."""
    said = f"{len(names)} of {n_tasks} tasks have labels of one class alone: {listed_tasks(names)}"
    if self.one_class == "error":
        raise DataError(
            said,
            term=type(self).__name__,
            argument="y",
            write_instead="leave them out, or write one_class='constant' or 'skip'",
        )
    warnings.warn(
        f"{type(self).__name__}: {said}; one_class={self.one_class!r}", OneClassWarning, stacklevel=4
    )
