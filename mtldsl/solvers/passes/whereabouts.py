"""Where the rows of a model are, what is computed there, and what moves."""

from __future__ import annotations

from typing import Any

from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.compile.reductions.gathered import Gathered
from mtldsl.compile.reductions.lifted import has_one_maximum_a_task
from mtldsl.compile.terms.moments import has_one_gram

__all__ = ["whereabouts"]

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def whereabouts(loss: LossTerm, form: NormalForm) -> str:
    """A few sentences on a loss of a form."""
    tasks: Any = loss.tasks
    parts, (d, m) = tasks.parts, (tasks.n_features, tasks.n_tasks)
    place = f"those of {loss.typed} are in {parts.n_parts} parts ({parts.where}, workers: {parts.n_workers});"
    if Gathered().accepts(form) is None:
        grams = 1 if has_one_gram(tasks) else m
        return (
            f"{place} one pass tells their second moments, {_size(8 * (grams * (d + 1) ** 2 + (d + 2) * m))} from every worker, and everything else "
            "is computed here."
        )
    if has_one_maximum_a_task(loss):
        scores = int(max(tasks.counts))
        return (
            f"{place} a look is two passes, which send {_size(32 * (d + 1) * m)} to every worker and bring {_size(32 * m * (d + 6))} from each; between "
            f"them the scores of every task go to one worker, {_size(33 * scores)} of the largest, and its labellings go back; functions and "
            "constraints are dealt with here."
        )
    sent, back = 8 * (d + 1) * m, 8 * m * (2 * d + 14)
    return (
        f"{place} predictions, proximal steps and multipliers stay there; a pass sends {_size(sent)} to every worker and brings {_size(back)} from each, "
        f"with Newton's Hessians {_size(back + 8 * m * (d + 1) ** 2)}; functions and constraints are dealt with here."
    )


def _size(count: float) -> str:
    """
    >>> _size(300), _size(5_000_000)
    ('300 bytes', '4.8 MiB')
    """
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            break
        count /= 1024
    return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
