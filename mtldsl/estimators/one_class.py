"""Tasks whose labels are all of one class: refused, or left out with a word."""

from __future__ import annotations

import warnings

from mtldsl.errors import DataError, ModelError
from mtldsl.tasks.one_class import OneClassWarning, listed_tasks
from mtldsl.values.number import quoted

__all__ = ["OneTaskWarning", "check_one_class", "warn_of_no_label", "warn_of_one_class", "warn_of_one_task"]

ONE_CLASS = ("constant", "skip", "error")


def check_one_class(self) -> None:
    """ModelError for an option that is not known."""
    if self.one_class not in ONE_CLASS:
        raise ModelError(
            f"one_class={quoted(self.one_class)}",
            term=type(self).__name__,
            write_instead=f"write one of {', '.join(map(repr, ONE_CLASS))}",
        )


class OneTaskWarning(UserWarning):
    """Rows of tasks came without a word of their tasks, and are learned as one."""


def warn_of_one_task(self) -> None:
    """A warning that nothing said which row is of which task, as where a search kept `groups` for its folds."""
    warnings.warn(
        f"{type(self).__name__}: neither task= nor groups= says which row is of which task: all rows are one task; "
        "write task='column', or fit(X, y, groups=ids), which a search hands on after set_fit_request(groups=True)",
        OneTaskWarning,
        stacklevel=4,
    )


def warn_of_one_class(self, names: list, n_tasks: int) -> None:
    """A warning that these tasks are not learned; DataError where that was asked for."""
    _say(self, f"{len(names)} of {n_tasks} tasks have labels of one class alone: {listed_tasks(names)}")


def warn_of_no_label(self, names: list, n_tasks: int, then: str = "their scores are NaN") -> None:
    """A warning that these tasks have nothing to be learned from, and what becomes of them; DataError where that was asked for."""
    _say(
        self,
        f"{len(names)} of {n_tasks} tasks have no label, or none of weight above zero: {listed_tasks(names)}; {then}",
    )


def _say(self, said: str) -> None:
    option = getattr(self, "one_class", None)
    if option == "error":
        raise DataError(
            said,
            term=type(self).__name__,
            argument="y",
            write_instead="leave them out, or write one_class='constant' or 'skip'",
        )
    told = "" if option is None else f"; one_class={option!r}"
    warnings.warn(f"{type(self).__name__}: {said}{told}", OneClassWarning, stacklevel=5)
