"""The [validation] table of a problem file: a parameter that is chosen by folds of the training rows, before the solve."""

from __future__ import annotations

from typing import Any

from mtldsl.errors import MTLError
from mtldsl.files.rules import SEED, SWITCH, TEXT, Rule, one_of, whole
from mtldsl.files.section import Reading, Section
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.solution.metric_measure import as_measure

__all__ = ["VALIDATION"]

#: every value is a fit on every fold
_MOST = 1_000

_VALUES: Rule = (
    lambda v: (
        (isinstance(v, int) and not isinstance(v, bool) and 2 <= v <= _MOST)
        or (isinstance(v, list) and v != [] and all(_positive(one) for one in v))
    ),
    "a list of numbers > 0, or a whole number >= 2 and <= 1,000 of values that are found from the data",
)
_GROUPS: Rule = (
    lambda v: isinstance(v, list) and v != [] and all(isinstance(one, int | str) for one in v),
    "a list with the group of every training row: whole numbers or text",
)
_RULES = {
    "parameter": TEXT,
    "values": _VALUES,
    "folds": whole(2, "a whole number >= 2 and <= 1,000", _MOST),
    "metric": TEXT,
    "rule": one_of(["best", "one_se"]),
    "stratify": SWITCH,
    "groups": _GROUPS,
    "random_state": SEED,
}


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _read(reading: Reading) -> None:
    file, said = reading.file, dict(reading.table("validation"))
    if "validation" not in file.content:
        return
    known = [name for name, value in reading.names.items() if isinstance(value, Parameter)]
    if "parameter" not in said:
        raise file.error(
            f'[validation] needs parameter = "...", one of {", ".join(known) or "[parameters], which has none"}',
            ("validation",),
        )
    if said["parameter"] not in known:
        raise file.error(
            f"[parameters] has no {said['parameter']!r}{nearest(said['parameter'], known)}",
            ("validation", "parameter"),
            value=True,
        )
    if "metric" in said:
        try:
            as_measure(said["metric"], "[validation] metric")
        except MTLError as error:
            raise error.at(file.place(("validation", "metric"), value=True)) from error
    reading.validation = said | {"parameter": reading.names[said["parameter"]]}


VALIDATION = Section("validation", _RULES, read=_read)
