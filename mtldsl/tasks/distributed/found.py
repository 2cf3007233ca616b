"""What the first pass over the partitions finds: the tasks that there are, facts of their labels, and whether the partitions go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks.distributed.facts import Facts, facts_of_tasks
from mtldsl.tasks.distributed.loading import Loaded, Places
from mtldsl.tasks.distributed.sums import add
from mtldsl.tasks.names import as_names
from mtldsl.values.size import SMALLEST

__all__ = ["Found", "PartFound", "found_in", "places_of"]


@dataclass(frozen=True)
class PartFound:
    """What one partition was."""

    checksum: int
    n_rows: int
    n_features: int
    n_columns: int | None
    columns: int | None  # a number for the names of its columns
    size: int
    exact: bool
    is_sparse: bool
    is_weighted: bool


@dataclass(frozen=True, eq=False)
class Found:
    """The sum of what was found in partitions, the earlier ones first."""

    parts: dict[int, PartFound]
    facts: Facts | None
    largest: np.ndarray | None
    columns: tuple[str, ...] | None
    labels: tuple[str, ...] | None

    def __add__(self, other: Found) -> Found:
        both = self.parts | other.parts, add(self.facts, other.facts), _larger(self.largest, other.largest)
        return Found(*both, self.columns or other.columns, self.labels or other.labels)

    @property
    def nbytes(self) -> int:
        return 64 * len(self.parts) + (0 if self.facts is None else self.facts.nbytes)


def _larger(a, b):
    if a is None or b is None:
        return b if a is None else a
    if a.size < b.size:
        a, b = b, a
    largest = a.copy()
    largest[: b.size] = np.maximum(a[: b.size], b)
    return largest


def found_in(loaded: Loaded, index: int) -> Found:
    """What is found in one partition."""
    tasks = loaded.tasks
    part = PartFound(
        loaded.checksum, loaded.n_rows, loaded.n_features, loaded.n_columns,
        None if loaded.columns is None else hash_of(loaded.columns),
        loaded.__sizeof__(), loaded.exact, tasks is not None and tasks.is_sparse, loaded.is_weighted,
    )  # fmt: skip
    facts = None if tasks is None else facts_of_tasks(tasks, loaded.keys, index)
    return Found({index: part}, facts, loaded.largest, loaded.columns, loaded.labels)


def hash_of(names: tuple[str, ...]) -> int:
    """The same on every machine, unlike Python's own."""
    import zlib

    return zlib.crc32("\n".join(names).encode())


def places_of(found: Found, names: tuple[str, ...], task_names, feature_names) -> Places:
    """DataError, which names the partition, where it does not go with the first."""
    parts = [found.parts[k] for k in range(len(names))]
    _refuse_unlike(parts, names)
    if found.facts is None:
        raise DataError("no row of any partition has a label", write_instead="give at least one row per task")
    d = max(part.n_features for part in parts)
    features = as_names(feature_names, found.columns, d, "feature_names", "x")
    _refuse_invisible(found.largest, features)
    m = parts[0].n_columns
    keys: Any = found.facts.keys if m is None else tuple(range(m))
    typed: Any = keys if m is None else found.labels
    tasks = as_names(task_names, typed, len(keys), "task_names", "task")
    rows = np.concatenate([[0], np.cumsum([part.n_rows for part in parts])])
    checksums = {k: part.checksum for k, part in enumerate(parts)}
    return Places({key: i for i, key in enumerate(keys)}, tasks, features, checksums, rows[:-1].tolist())


def _refuse_unlike(parts: list[PartFound], names) -> None:
    first = parts[0]
    d = max(part.n_features for part in parts)
    for name, part in zip(names, parts, strict=True):
        if (part.n_columns is None) != (first.n_columns is None):
            raise DataError(
                f"one has task ids, but {names[0]} has not, or the other way round",
                term=name, write_instead="give ids in every partition, or a column of Y per task in every one",
            )  # fmt: skip
        if part.n_columns != first.n_columns:
            raise DataError(f"Y has {part.n_columns} columns, but {first.n_columns} in {names[0]}", term=name)
        if part.exact and part.n_features != d:
            raise DataError(
                f"X has {part.n_features} columns, but {d} in {names[[p.n_features for p in parts].index(d)]}",
                term=name,
            )
        if None not in (part.columns, first.columns) and part.columns != first.columns:
            raise DataError(
                f"the columns of X have other names, or another order, than in {names[0]}", term=name,
                write_instead="give every partition the same columns in the same order",
            )  # fmt: skip
        if part.is_weighted != first.is_weighted:
            raise DataError(
                f"sample weights are in one of {names[0]} and {name} alone",
                write_instead="give them in every partition",
            )


def _refuse_invisible(largest, names) -> None:
    """As `require_visible`, over all partitions: a column may be small in one and not in another."""
    if largest is None:
        return
    lost = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if lost.size:
        raise DataError(
            f"the largest entry of {names[lost[0]]} is {largest[lost[0]]:g}, whose square is 0 in float64; rescale or standardise the "
            f"column, or write zeros ({lost.size} such columns)",
            term="X",
        )
