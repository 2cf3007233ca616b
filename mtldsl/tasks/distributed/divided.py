"""Rows that are elsewhere, dealt to folds or to two sides where they are: one pass says what every side holds, and no row moves.

Within a partition rows are put in the order of what they carry - the task of a long table, the classes of a table's labels, rare ones first, and
random within these - and dealt in turn from a random start, so that every side gets of every kind the same number but one. The random numbers
depend on the seed and the partition alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks.derived import label_table
from mtldsl.tasks.distributed.facts import Facts, LabelFacts, facts_of
from mtldsl.tasks.distributed.fewer import with_tasks
from mtldsl.tasks.distributed.parts import Part
from mtldsl.tasks.folding import checked_folds
from mtldsl.values.number import as_float, quoted
from mtldsl.values.option import as_flag
from mtldsl.values.seed import generator

__all__ = ["Dealt", "deal_folds", "folds", "made", "split"]

#: columns of a table that rows are ordered by, the rarest classes first
_COLUMNS = 32


class Dealt(NamedTuple):
    """How rows are dealt: to `k` folds in turn, or with a share of them for the second of two sides.

    signs : (m,) whether the labels of a task are -1 and +1, which are then spread class by class; None: nothing is spread
    """

    seed: int
    k: int
    share: float | None
    signs: np.ndarray | None


def sides_of(part: Part, dealt: Dealt) -> np.ndarray:
    """(n,) the side, 0 to k - 1, of every row of the table, or of every labelled row, task after task."""
    tasks = part.tasks
    rng = np.random.default_rng([dealt.seed, part.index])
    n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    order = np.lexsort([rng.random(n), *_carried(part, dealt.signs)])
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    if dealt.share is None:
        return (place + rng.integers(dealt.k)) % dealt.k
    start = rng.random()
    return (np.floor((place + 1) * dealt.share + start) > np.floor(place * dealt.share + start)).astype(np.int64)  # fmt: skip


def _carried(part: Part, signs) -> list[np.ndarray]:
    """What rows are ordered by, the last the most important."""
    if signs is None:
        return []
    tasks, own = part.tasks, signs[part.which]
    if not tasks.is_shared:
        return [np.where(own[tasks.task_of], tasks.targets > 0, 0), tasks.task_of]
    kinds = []
    for y, two in zip(label_table(tasks, tasks.targets).T, own, strict=True):
        there = ~np.isnan(y)
        kinds.append(np.where(there & two & (y > 0), 2, there).astype(np.int8))
    least = [min((np.sum(kind == one) for one in np.unique(kind)), default=0) for kind in kinds]
    return [kinds[i] for i in np.argsort(least, kind="stable")[:_COLUMNS]][::-1]


def side(part: Part, dealt: Dealt, fold: int, inside: bool) -> Part | None:
    """The rows of one fold, or those of all others."""
    tasks = part.tasks
    chosen = (sides_of(part, dealt) == fold) == inside
    rows: Any = np.flatnonzero(chosen)
    if tasks.is_shared:
        there = np.full(tasks.n_tasks, rows.size > 0) if tasks.mask is None else tasks.mask[rows].any(axis=0)
    else:
        rows = [np.flatnonzero(one) for one in tasks.per_task(chosen)]
        there = np.array([one.size > 0 for one in rows])
        rows = [one for one in rows if one.size]
    if not there.any():
        return None
    return Part(tasks.select(there).take_rows(rows), part.which[there], part.index, part.first_row)


def _facts_of_sides(part: Part, dealt: Dealt) -> tuple[tuple[Facts | None, Facts | None], ...]:
    """(of the rows to learn on, of the rows held out) for every fold."""
    found = []
    for fold in range(dealt.k) if dealt.share is None else (1,):
        learned, held_out = (side(part, dealt, fold, held) for held in (False, True))
        found.append(
            (None if learned is None else facts_of(learned), None if held_out is None else facts_of(held_out))
        )
    return tuple(found)


def made(tasks: Any, dealt: Dealt, fold: int, inside: bool, facts: Facts, *, index=None, keep: bool) -> Any:
    """One side as tasks; index: some of its tasks. Unless kept, its rows are taken from the others at each pass."""
    parts = tasks.parts.mapped(side, dealt, fold, inside)
    known, names = LabelFacts.of(facts, tuple(range(tasks.n_tasks))), tasks.task_names
    if index is not None:
        parts, known = parts.mapped(with_tasks, index), known.chosen(index)
        names = tuple(names[i] for i in index)
    if not keep and hasattr(parts, "keep"):
        parts.keep = False
    return tasks._with(parts, facts=known, n_rows=facts.rows, task_names=names)


def deal_folds(tasks: Any, k, stratify, groups, random_state, typed: str) -> tuple[Dealt, tuple]:
    """(how rows are dealt, the facts of every fold's two sides), in one pass. DataError for groups, which are not known here."""
    k = checked_folds(k, f"{typed}k")
    _refuse_groups(groups, typed)
    signs = _signs(tasks) if as_flag(stratify, f"{typed}k, stratify") else None
    dealt = Dealt(int(generator(random_state, "folds").integers(2**63)), k, None, signs)
    return dealt, tasks.parts.run(_facts_of_sides, dealt)


def folds(tasks: Any, k, stratify, groups, random_state) -> list[tuple[Any, Any]]:
    """See `DistributedTasks.folds`."""
    dealt, found = deal_folds(tasks, k, stratify, groups, random_state, "folds(")
    for pair in found:
        _require(tasks, pair, f"folds(k={k})", False)
    return [
        tuple(made(tasks, dealt, fold, inside, pair[inside], keep=False) for inside in (False, True))
        for fold, pair in enumerate(found)
    ]  # type: ignore[return-value]


def split(tasks: Any, test_size, random_state, stratify, groups) -> tuple[Any, Any]:
    """See `DistributedTasks.split`."""
    share = as_float(test_size)
    typed = f"split(test_size={quoted(test_size)})"
    if share is None or not 0 < share < 1:
        raise DataError(term=typed, write_instead="write a fraction between 0 and 1, such as 0.25")
    _refuse_groups(groups, "split(test_size, ")
    as_flag(stratify, "split(test_size, stratify")
    dealt = Dealt(int(generator(random_state, "split").integers(2**63)), 2, share, _signs(tasks))
    (pair,) = tasks.parts.run(_facts_of_sides, dealt)
    _require(tasks, pair, typed, True)
    train, test = (made(tasks, dealt, 1, inside, pair[inside], keep=True) for inside in (False, True))
    return train, test


def _signs(tasks: Any) -> np.ndarray:
    """(m,) whether the labels of a task are -1 and +1."""
    return tasks.label_facts.are("sign")


def _refuse_groups(groups, typed: str) -> None:
    if groups is not None:
        raise DataError(
            "groups are a list as long as the rows, and these rows are in parts elsewhere", term=f"{typed}groups=...)",
            argument="groups", write_instead="leave them out, or give each group's rows to a task of their own: task=...",
        )  # fmt: skip


def _require(tasks: Any, pair: tuple, typed: str, both: bool) -> None:
    """DataError for a task without a label on a side; `both`: of a class, too."""
    for said, facts in zip(("to learn on", "held out"), pair, strict=True):
        there = {} if facts is None else dict(zip(facts.keys, zip(facts.lowest, facts.highest, strict=True), strict=True))  # fmt: skip
        for i, name in enumerate(tasks.task_names):
            low, high = there.get(i, (np.inf, -np.inf))
            signs = both and _signs(tasks)[i] and tasks.label_facts.distinct[i] > 1
            if low > high or (signs and low == high):
                what = "labelled row" if low > high else f"label {-low:+g}"
                raise DataError(
                    f"task {name!r} has {tasks.counts[i]} labelled rows, and no {what} among the rows {said}",
                    term=typed, write_instead="leave the task out, or deal in another way",
                )  # fmt: skip
