"""A first problem file for a table: which columns are labels, features, ids or tasks is guessed, said, and left to the reader to change."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtldsl.datasets.formats.cells import ANSWERS, number
from mtldsl.datasets.formats.csv_files import rows_of
from mtldsl.errors import DataError
from mtldsl.files.rare import measure_of_rare
from mtldsl.system.reading import regular_file

__all__ = ["draft"]

#: Text columns of at most so many values are categories; labels of at most so many whole numbers may be classes.
_CATEGORIES, _CLASSES = 20, 20


@dataclass(frozen=True)
class _Column:
    name: str
    kind: str  # "number", "category", "text"
    values: tuple  # distinct ones, without missing ones; of numbers as floats
    counts: tuple[int, ...]  # the rows of each value
    missing: int
    rows: int

    @property
    def is_id(self) -> bool:
        """Whether every row has a value of its own, text or whole numbers close together: nothing can be learned from it."""
        if self.rows <= 2 or len(self.values) < self.rows:
            return False
        if self.kind != "number":
            return True
        numbers = np.array(self.values)  # amounts in whole euros may all differ too, but lie far apart
        return bool((numbers == np.round(numbers)).all() and np.ptp(numbers) < 10 * self.rows)

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
    def classes(self) -> bool:
        return self.kind == "category" and not self.is_constant

    @property
    def shares(self) -> list[float]:
        """The share of +1 in every task that these labels make."""
        if self.signs or self.zero_one or self.answers:
            positive = [(ANSWERS[v.lower()] if self.answers else v) == 1.0 for v in self.values]
            return [sum(n for n, one in zip(self.counts, positive, strict=True) if one) / sum(self.counts)]
        shares = [n / sum(self.counts) for n in self.counts]
        return shares[1:] if len(shares) == 2 else shares


def draft(path, labels: Sequence[str] = (), task: str | None = None, delimiter: str | None = None) -> str:
    """The text of a commented problem file for a CSV file: `mtldsl new`.

    labels : columns of labels, one task each; none: the last column
    task   : the column that tells the tasks apart by rows
    delimiter : what stands between cells; None: what makes the most columns of the first line
    The file says what was seen of every column, and why it is a feature or not. DataError for a column that is not there, and where
    nothing is left to learn from.
    """
    path = regular_file(path)
    delimiter = delimiter or _between(path)
    names, rows, _ = rows_of(path, delimiter, True)
    columns = {name: _column(name, texts) for name, texts in zip(names, zip(*rows, strict=True), strict=True)}
    for name in (*labels, *([task] if task else [])):
        if name not in columns:
            raise DataError(
                f"there is no column {name!r}; the columns are {', '.join(names[:12])}", term=path
            )
    chosen = list(labels) or [next(name for name in reversed(names) if name != task)]
    dropped, one_hot, features = _features(columns, {*chosen, *([task] if task else [])})
    gaps = {name: columns[name].missing for name in features if columns[name].missing}
    if not features:
        raise DataError("no column is left to learn from", term=path)
    loss, options, why = _loss([columns[name] for name in chosen])
    metric = measure_of_rare(share for name in chosen for share in columns[name].shares) if loss == "logistic_loss" else None
    lines = [
        f"# Written by `mtldsl new {path.name}` after a look at {len(rows):,} rows; change what was guessed wrong.",
        "#",
        f"#     mtldsl solve {shlex.quote(path.stem + '.toml')}",
        "",
        f"title = {_text(path.stem)}",
        f"# {why}; lam weighs the penalty: the larger, the fewer features are used, the same for all tasks.",
        f'minimize = "{loss}(W, tasks) + lam * l21_norm(W)"',
        "",
        "[data]",
        f"path = {_text(path.name)}",
        *([f"delimiter = {_text(delimiter)}"] if delimiter != "," else []),
        f"labels = {_list(chosen) if len(chosen) > 1 else _text(chosen[0])}",
        *([f"task = {_text(task)}"] if task else ["# task = \"...\"  # a column that tells tasks apart by rows, such as schools or customers"]),
        *options,
        *([f"one_hot = {_list(one_hot)}  # text with few values: a 0/1 column for each"] if one_hot else []),
        *_dropped(dropped),
        *_imputed(gaps),
        "standardize = true  # every feature in its own standard deviations; new rows are scaled alike",
        "",
        "[split]",
        "test_size = 0.25  # held out: the scores are of rows that were not learned on",
        "random_state = 0",
        "",
        "[weights]",
        "W = { intercept = true }",
        "",
        "[parameters]",
        "lam = 1.0  # replaced by the choice below",
        "",
        "[validation]",
        "parameter = \"lam\"  # chosen on folds of the training rows",
        "values = 12",
        "folds = 5",
        *([f'metric = "{metric}"  # {_WHY}'] if metric else []),
        "random_state = 0",
        "",
        "[check]",
        "cross_check = true  # the reference solves it too, and both are compared",
        "random_state = 0",
        "",
        "[output]",
        f"solution = {_text(path.stem + '.npz')}  # for `mtldsl predict`",
        f"report = {_text(path.stem + '.html')}  # one page, to be opened in a browser",
        *([f'metrics = ["{metric}"]  # in the report, beside accuracy'] if metric else []),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _between(path) -> str:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        first = file.readline(1 << 20)
    return max(",;\t|", key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def _column(name: str, texts) -> _Column:
    try:
        numbers = np.array([number(text) for text in texts])
    except ValueError:
        there = [text.strip() for text in texts if text.strip() not in ("", "?", "NA", "N/A", "NaN", "nan")]
        values = tuple(sorted(set(there)))
        kind = "category" if len(values) <= _CATEGORIES else "text"
        found = Counter(there)
        counts = tuple(found[value] for value in values)
        return _Column(name, kind, values, counts, len(texts) - len(there), len(texts))
    known, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    missing = int(np.isnan(numbers).sum())
    return _Column(name, "number", tuple(known.tolist()), tuple(counts.tolist()), missing, len(numbers))


def _features(columns: dict[str, _Column], taken: set[str]):
    """({name: why not}, categories, features)."""
    dropped, one_hot, features = {}, [], []
    for name, column in columns.items():
        if name in taken:
            continue
        if column.missing == column.rows:
            dropped[name] = "no value at all"
        elif 2 * column.missing > column.rows:
            dropped[name] = f"{column.missing:,} of {column.rows:,} cells are empty; fill them in to use it"
        elif column.is_constant:
            dropped[name] = "one value only"
        elif column.is_id:
            dropped[name] = "a value of its own in every row, as an id has"
        elif column.kind == "text":
            dropped[name] = f"text with {len(column.values):,} values"
        else:
            features.append(name)
            if column.kind == "category":
                one_hot.append(name)
    return dropped, one_hot, features


def _loss(labels: list[_Column]) -> tuple[str, list[str], str]:
    """(the word, options of [data], what the labels look like)."""
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
    few = len(labels) == 1 and labels[0].kind == "number" and 2 < len(labels[0].values) <= _CLASSES
    if few and whole and labels[0].rows > 5 * len(labels[0].values):
        hint = f"The labels are {len(labels[0].values)} whole numbers, read as amounts; if they are classes: logistic_loss and one_vs_rest = true"
        return "squared_loss", ["# one_vs_rest = true"], hint
    wrong = next((one for one in labels if one.kind != "number" and not one.answers), None)
    wrong = wrong or next((one for one in labels if one.kind != "number"), None)
    if wrong is not None and wrong.classes:
        raise DataError(
            f"the label {wrong.name!r} is text ({', '.join(wrong.values[:3])}{', ...' * (len(wrong.values) > 3)}), and one of several",
            write_instead=f"write 0/1 or no/yes in its cells, as in those of the others, or name it alone, --labels {shlex.quote(wrong.name)}",
        )
    if wrong is not None:
        raise DataError(
            f"the label {wrong.name!r} is text with {len(wrong.values):,} values",
            write_instead="name labels that are numbers or classes, --labels COLUMN",
        )
    return "squared_loss", [], "The labels are numbers"


_WHY = "a label is rare: chosen by accuracy, no feature might be used at all, since the frequent label alone is right so often"


def _dropped(dropped: dict[str, str]) -> list[str]:
    if not dropped:
        return []
    return [*(f"# {name}: {why}" for name, why in dropped.items()), f"drop = {_list(list(dropped))}"]


def _imputed(gaps: dict[str, int]) -> list[str]:
    if not gaps:
        return []
    shown = ", ".join(f"{count:,} in {name}" for name, count in list(gaps.items())[:6]) + ", ..." * (
        len(gaps) > 6
    )
    return [
        f'impute = "median"  # empty cells ({shown}) get the median of the training rows\' column; new rows alike'
    ]


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list(values: list[str]) -> str:
    return "[" + ", ".join(map(_text, values)) + "]"
