"""Guess of each column's role in a CSV file: numbers, categories, labels, tasks or ids."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtldsl.data.readers.csv import SETTINGS as CSV
from mtldsl.data.readers.table import ANSWERS, is_number, number, with_point
from mtldsl.errors import DataError
from mtldsl.utils.validation import MISSING_TEXTS

# --------------------------------------------------------------------------------------------------------------
# What is seen of a column of a table before anything is known of it: numbers, categories, text, what may be an id or a label.


@dataclass(frozen=True)
class ColumnRoleSettings:
    """Limits of guesses, and numbers of the file that is written."""

    category_values: int = 20  # values of a text column that is of categories
    class_values: int = 20  # whole numbers among labels that may be classes
    test_share: float = 0.25  # of [split]
    folds: int = 5  # of [validation]


SETTINGS = ColumnRoleSettings()


@dataclass(frozen=True)
class ColumnRole:
    name: str
    kind: str  # "number", "category", "text"
    values: tuple  # distinct ones, without missing ones; of numbers as floats
    counts: tuple[int, ...]  # the rows of each value
    missing: int
    rows: int
    wrong: tuple[str, ...] = ()  # cells of text in a column of numbers

    @property
    def is_id(self) -> bool:
        """Tell whether every row has a value of its own, text or whole numbers close together: nothing can be learned from it."""
        if self.rows <= 2 or len(self.values) < self.rows:
            return False
        if self.kind != "number":
            return True
        numbers = np.array(self.values)  # amounts in whole euros may all differ too, but lie far apart
        return bool((numbers == np.round(numbers)).all() and np.ptp(numbers) < 10 * self.rows)

    @property
    def repeats(self) -> bool:
        """Tell whether it is text, or called an id, and has several values each of which comes again, as names of schools or shops do."""
        is_name = self.kind in ("category", "text") or self.is_called_id
        return is_name and not self.answers and len(self.counts) > 2 and min(self.counts) > 1

    @property
    def is_called_id(self) -> bool:
        return re.search(r"(?:(?:^|[^A-Za-z])[iI]|[a-z]I)[dD]$", self.name) is not None

    @property
    def is_constant(self) -> bool:
        return len(self.values) < 2

    @property
    def signs(self) -> bool:
        return self.kind == "number" and 0 < len(self.values) <= 2 and set(self.values) <= {-1.0, 1.0}

    @property
    def zero_one(self) -> bool:
        return self.kind == "number" and 0 < len(self.values) <= 2 and set(self.values) <= {0.0, 1.0}

    @property
    def answers(self) -> bool:
        """Text that says yes or no, as `binary` reads it."""
        return self.kind == "category" and {ANSWERS.get(value.lower()) for value in self.values} == {0.0, 1.0}

    @property
    def two_sided(self) -> bool:
        """Tell whether it is a label of yes and no in one spelling or another."""
        return self.signs or self.zero_one or self.answers

    @property
    def classes(self) -> bool:
        return self.kind == "category" and not self.is_constant

    @property
    def shares(self) -> list[float]:
        """The share of +1 in every task that these labels make."""
        if self.two_sided:
            positive = [(ANSWERS[v.lower()] if self.answers else v) == 1.0 for v in self.values]
            return [sum(n for n, one in zip(self.counts, positive, strict=True) if one) / sum(self.counts)]
        shares = [n / sum(self.counts) for n in self.counts]
        return shares[1:] if len(shares) == 2 else shares


def inspect_column(name: str, texts: Sequence[str]) -> ColumnRole:
    """The column of these cells."""
    wrong = [text.strip() for text in texts if not is_number(text)]
    there = [text.strip() for text in texts if text.strip() not in MISSING_TEXTS]
    if wrong:
        if len(set(there)) > SETTINGS.category_values and len(wrong) <= CSV.mistake_share * len(there):
            return ColumnRole(name, "text", (), (), len(texts) - len(there), len(texts), tuple(wrong))
        values = tuple(sorted(set(there)))
        kind, found = "category" if len(values) <= SETTINGS.category_values else "text", Counter(there)
        counts = tuple(found[value] for value in values)
        return ColumnRole(name, kind, values, counts, len(texts) - len(there), len(texts))
    numbers = np.array([number(text) for text in texts])
    known, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    missing = int(np.isnan(numbers).sum())
    return ColumnRole(name, "number", tuple(known.tolist()), tuple(counts.tolist()), missing, len(numbers))


def decimal_of(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """ "," where some column becomes one of numbers by it and no cell has a number with a point, else ".".

    >>> decimal_of([["a", "1,5"], ["b", "2"]], ";"), decimal_of([["1.5", "1,5"]], ";"), decimal_of([["1,5 and 2", "3"]], ";")
    (',', '.', '.')
    """
    if delimiter == ",":
        return "."
    found = False
    for texts in zip(*rows, strict=True):
        wrong = [text for text in texts if not is_number(text)]
        if any("." in text and is_number(text) for text in texts):
            return "."
        commas = sum(is_number(with_point(text)) for text in wrong)
        found |= commas > 0 and commas >= (1 - CSV.mistake_share) * len(wrong)
    return "," if found else "."


# --------------------------------------------------------------------------------------------------------------
# A guess of which columns of a table are labels, and whether one tells tasks apart; with what else the table may be, for its reader to say.


def features_of(columns: dict[str, ColumnRole], taken: set[str]):
    """({name: why not}, categories, features)."""
    dropped, one_hot, features = {}, [], []
    for name, column in columns.items():
        if name in taken:
            continue
        if not name:
            dropped[name] = "no name, as where a data frame was written with its index"
        elif column.missing == column.rows:
            dropped[name] = "no value at all"
        elif 2 * column.missing > column.rows:
            dropped[name] = f"{column.missing:,} of {column.rows:,} cells are empty; fill them in to use it"
        elif column.wrong:
            many = (
                "one cell is not"
                if len(column.wrong) == 1
                else f"{len(column.wrong):,} cells are not, such as"
            )
            dropped[name] = (
                f"numbers, but {many} ({column.wrong[0]!r}); mend or empty {'it' if len(column.wrong) == 1 else 'them'} to use the column"
            )
        elif column.is_constant:
            dropped[name] = "one value only"
        elif column.is_id:
            dropped[name] = "a value of its own in every row, as an id has"
        elif column.kind == "text":
            again = " that repeat: it may tell tasks apart" if column.repeats else ""
            dropped[name] = f"text with {len(column.values):,} values{again}"
        else:
            features.append(name)
            if column.kind == "category":
                one_hot.append(name)
    return dropped, one_hot, features


def labels_by_task(rows, label: int, task: int, loss: str) -> tuple[list[ColumnRole], list[str]]:
    """(the labels of every task that can be split, the names of the others)."""
    cells: dict[str, list[str]] = {}
    for row in rows:
        if row[label].strip() not in MISSING_TEXTS and row[task].strip() not in MISSING_TEXTS:
            cells.setdefault(row[task].strip(), []).append(row[label])
    found = {name: inspect_column(name, texts) for name, texts in cells.items()}
    two = loss == "logistic_loss"
    lacking = [
        name for name, one in found.items() if (min(one.counts) < 2 or len(one.counts) < 2 if two else one.rows < 2)
    ]  # fmt: skip
    return [one for name, one in found.items() if name not in lacking], sorted(lacking)


def loss_of_labels(labels: list[ColumnRole]) -> tuple[str, list[str], str]:
    """(the word, options of [data], what the labels look like)."""
    empty = next((one for one in labels if one.missing == one.rows), None)
    if empty is not None:
        raise DataError(
            f"the label {empty.name!r} is empty in every row",
            write_instead="name labels that are there, --labels COLUMN",
        )
    if all(one.signs for one in labels):
        return "logistic_loss", [], "The labels are -1 and +1"
    if all(one.signs or one.zero_one for one in labels):
        return "logistic_loss", ["binary = true  # labels 0/1 are read as -1/+1"], "The labels are 0 and 1"
    if all(one.signs or one.zero_one or one.answers for one in labels):
        return (
            "logistic_loss",
            ["binary = true  # no and yes are read as -1 and +1"],
            "Every label says yes or no",
        )
    if len(labels) == 1 and labels[0].classes:
        shown = ", ".join(map(str, labels[0].values[:5]))
        return (
            "logistic_loss",
            ["one_vs_rest = true  # a task for each class against the rest"],
            f"The labels are classes ({shown}, ...)",
        )
    whole = all(float(v).is_integer() for one in labels if one.kind == "number" for v in one.values)
    few = (
        len(labels) == 1 and labels[0].kind == "number" and 2 < len(labels[0].values) <= SETTINGS.class_values
    )
    if few and whole and labels[0].rows > 5 * len(labels[0].values):
        hint = f"The labels are {len(labels[0].values)} whole numbers, read as amounts; if they are classes: logistic_loss and one_vs_rest = true"
        return "squared_loss", ["# one_vs_rest = true"], hint
    wrong = next((one for one in labels if one.kind != "number" and not one.answers), None)
    wrong = wrong or next((one for one in labels if one.kind != "number"), None)
    if wrong is None:
        return "squared_loss", [], "The labels are numbers"
    instead = "name labels that are numbers or classes, --labels COLUMN"
    if wrong.classes:
        said = (
            f"is text ({', '.join(wrong.values[:3])}{', ...' * (len(wrong.values) > 3)}), and one of several"
        )
        instead = f"write 0/1 or no/yes in its cells, as in those of the others, or name it alone, --labels {shlex.quote(wrong.name)}"
    elif wrong.wrong:
        said = f"has numbers, and text in {len(wrong.wrong):,} of its cells, such as {wrong.wrong[0]!r}"
        instead = "mend them, or leave them empty: these labels are then missing"
    elif wrong.is_constant:
        said = f"is {', '.join(map(repr, wrong.values)) or 'empty'} in every row"
        instead = "name labels that differ, --labels COLUMN"
    else:
        said = f"is text with {len(wrong.values):,} values"
    raise DataError(f"the label {wrong.name!r} {said}", write_instead=instead)


def guess_roles(
    columns: dict[str, ColumnRole],
    names: list[str],
    rows: Sequence[Sequence[str]],
    file: str,
    labels: Sequence[str],
    task: str | None,
) -> tuple[list[str], str | None, dict[str, str], list[str]]:
    """(labels, the column of tasks, {column: why it is left out of the features}, what was guessed): what was asked for, and a guess of the rest.

    file : the name of the table, for the lines to type where it is something else; what was guessed has a paragraph each
    """
    typed = f"mtldsl new {shlex.quote(file)}"
    # where lines end with the mark between cells, a column without a name is behind the last
    last = next((name for name in reversed(columns) if name and name != task), next(reversed(columns)))
    outcomes = [] if labels else _outcomes(columns, task)
    if not features_of(columns, {*outcomes, *([task] if task else [])})[2]:
        outcomes = []
    chosen = list(labels) or (outcomes if outcomes and task is None else [last])
    dropped, said = {}, []
    if not labels:
        said.append(_of_labels(columns, chosen, last, typed))
    if task is not None and outcomes:
        others = [name for name in outcomes if name != last]
        dropped = {name: f"yes or no as {last} is; if it is known before {last}, it may be a feature" for name in others}  # fmt: skip
        said.append(
            f"Not used: {shorten_list(others)}, which may be labels too. If they are known before {last}, take them out of drop."
        )
    if task is None:
        ids = sorted(
            (one for name, one in columns.items() if name not in chosen and one.repeats),
            key=lambda one: one.kind != "text",
        )
        large = [
            one
            for one in ids
            if one.kind == "text" and min(one.counts) * (1 - SETTINGS.test_share) >= SETTINGS.folds
        ]
        if (
            len(chosen) == 1
            and len(large) == 1
            and _can_be_tasks(columns, names, rows, chosen[0], large[0].name)
        ):
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
    return chosen, task, dropped, said


def _can_be_tasks(columns: dict[str, ColumnRole], names: list[str], rows, label: str, task: str) -> bool:
    """Tell whether a model of this label can be learned and judged on every task of this column."""
    loss, options, _ = loss_of_labels([columns[label]])
    if any("one_vs_rest" in one for one in options):
        return False
    _, lacking = labels_by_task(rows, names.index(label), names.index(task), loss)
    return not lacking and bool(features_of(columns, {label, task})[2])


def _outcomes(columns: dict[str, ColumnRole], task: str | None) -> list[str]:
    """The columns at the end that all say yes or no, where there are several; what never changes is looked past."""
    found: list[str] = []
    for name, one in reversed(columns.items()):
        if name == task or not name or (found and one.is_constant):
            continue
        if not one.two_sided or one.is_constant:
            break
        found.insert(0, name)
    return found if len(found) > 1 else []


def _of_labels(columns: dict[str, ColumnRole], chosen: list[str], last: str, typed: str) -> str:
    if len(chosen) == 1:
        label = columns[last]
        several = (
            label.kind == "number" or label.answers
        )  # one of several labels has numbers, or answers such as yes and no
        more = ("it is another one, or one of several", "A,B") if several else ("it is another one", "A")
        return f"Label: {last}, the last column. If {more[0]}: {typed} --labels {more[1]}"
    return (
        f"Labels: {shorten_list(chosen)}, the last {len(chosen)} columns, since each says yes or no. If {last} alone is a label, and the others are known "
        f"before it: {typed} --labels {shlex.quote(last)}"
    )


def _repeating(column: ColumnRole) -> str:
    few, many = min(column.counts), max(column.counts)
    rows = f"{few:,}" if few == many else f"{few:,} to {many:,}"
    return f"{column.name} has {len(column.values):,} values that repeat, {rows} rows each"


def shorten_list(names: list[str]) -> str:
    """Return the names, the middle of a long list left out."""
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])}, ..., {names[-1]}"
