"""A guess of which columns of a table are labels, and whether one tells tasks apart; with what else the table may be, for its reader to say."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mtldsl.files.columns import Column

__all__ = ["FOLDS", "TEST_SHARE", "Guess", "guess_of", "shown"]

#: of [split] and [validation] of the file that is written
TEST_SHARE, FOLDS = 0.25, 5


@dataclass(frozen=True)
class Guess:
    """Labels and the column of tasks, as they were asked for or guessed.

    dropped : {column: why it is left out of the features}
    said    : what was guessed, and what to type where it is something else; a paragraph each
    """

    labels: list[str]
    task: str | None
    dropped: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def guess_of(
    columns: dict[str, Column],
    file: str,
    labels: Sequence[str],
    task: str | None,
    leaves_features: Callable[[set[str]], bool],
    can_be_tasks: Callable[[str, str], bool],
) -> Guess:
    """What was asked for, and a guess of the rest.

    file            : the name of the table, for the lines to type
    leaves_features : whether there are features beside these columns
    can_be_tasks    : whether a model of this label can be learned and judged on every task of this column
    """
    typed = f"mtldsl new {shlex.quote(file)}"
    last = next(name for name in reversed(columns) if name != task)
    outcomes = [] if labels else _outcomes(columns, task)
    if not leaves_features({*outcomes, *([task] if task else [])}):
        outcomes = []
    chosen = list(labels) or (outcomes if outcomes and task is None else [last])
    dropped, said = {}, []
    if not labels:
        said.append(_of_labels(columns, chosen, last, typed))
    if task is not None and outcomes:
        others = [name for name in outcomes if name != last]
        dropped = {name: f"yes or no as {last} is; if it is known before {last}, it may be a feature" for name in others}  # fmt: skip
        said.append(
            f"Not used: {shown(others)}, which may be labels too. If they are known before {last}, take them out of drop."
        )
    if task is None:
        ids = sorted(
            (one for name, one in columns.items() if name not in chosen and one.repeats),
            key=lambda one: one.kind != "text",
        )
        large = [one for one in ids if one.kind == "text" and min(one.counts) * (1 - TEST_SHARE) >= FOLDS]
        if len(chosen) == 1 and len(large) == 1 and can_be_tasks(chosen[0], large[0].name):
            task = large[0].name
            said.append(
                f"Tasks: {_repeating(large[0])}, and each is a task. If these are not the tasks, take the line task out, and write {task} into drop."
            )
        elif ids:
            several = "; ".join(map(_repeating, ids[:3])) + "; ..." * (len(ids) > 3)
            such = f"{typed} --task {shlex.quote(ids[0].name)} --labels {shlex.quote(chosen[-1])}"
            said.append(
                f"Tasks: one a label. {several}. If such a column tells the tasks apart, of one label: {such}"
            )
    return Guess(chosen, task, dropped, said)


def _outcomes(columns: dict[str, Column], task: str | None) -> list[str]:
    """The columns at the end that all say yes or no, where there are several; what never changes is looked past."""
    found: list[str] = []
    for name, one in reversed(columns.items()):
        if name == task or (found and one.is_constant):
            continue
        if not one.two_sided or one.is_constant:
            break
        found.insert(0, name)
    return found if len(found) > 1 else []


def _of_labels(columns: dict[str, Column], chosen: list[str], last: str, typed: str) -> str:
    if len(chosen) == 1:
        label = columns[last]
        several = label.kind == "number" or label.answers  # one of several labels is no text of other words
        more = ("it is another one, or one of several", "A,B") if several else ("it is another one", "A")
        return f"Label: {last}, the last column. If {more[0]}: {typed} --labels {more[1]}"
    return (
        f"Labels: {shown(chosen)}, the last {len(chosen)} columns, since each says yes or no. If {last} alone is a label, and the others are known "
        f"before it: {typed} --labels {shlex.quote(last)}"
    )


def _repeating(column: Column) -> str:
    few, many = min(column.counts), max(column.counts)
    rows = f"{few:,}" if few == many else f"{few:,} to {many:,}"
    return f"{column.name} has {len(column.values):,} values that repeat, {rows} rows each"


def shown(names: list[str]) -> str:
    """Return the names, the middle of a long list left out."""
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])}, ..., {names[-1]}"
