"""The [validation] table of a problem file: parameters that are chosen by folds of the training rows, before the solve."""

from __future__ import annotations

from typing import Any

from mtldsl.errors import MTLError
from mtldsl.files.row_groups import groups_of, numbers_of_rows
from mtldsl.files.rules import SEED, SWITCH, TEXT, Rule, one_of, whole
from mtldsl.files.section import Reading, Section
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.problem import Problem
from mtldsl.solution.metric_measure import as_measure

__all__ = ["VALIDATION", "check_measure"]

#: every value is a fit on every fold
_MOST = 1_000

_VALUES: Rule = (
    lambda v: (
        (isinstance(v, int) and not isinstance(v, bool) and 2 <= v <= _MOST)
        or _numbers(v)
        or (isinstance(v, dict) and v != {} and all(_numbers(own) for own in v.values()))
    ),
    "a list of numbers > 0, a whole number >= 2 and <= 1,000 of values that are found from the data, or such as "
    "{lam = [10.0, 1.0], mu = [1.0, 0.1]} for several parameters",
)
_GROUPS: Rule = (
    lambda v: (
        (isinstance(v, str) and v != "")
        or (isinstance(v, list) and v != [] and all(isinstance(one, int | str) for one in v))
    ),
    "a column of the CSV file, or a list with the group of every training row: whole numbers or text",
)
_RULES = {
    "parameter": TEXT,
    "values": _VALUES,
    "folds": whole(2, "a whole number >= 2 and <= 1,000", _MOST),
    "metric": TEXT,
    "rule": one_of(["best", "one_se"]),
    "one_class": one_of(["skip", "constant", "error"]),
    "stratify": SWITCH,
    "groups": _GROUPS,
    "random_state": SEED,
}


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(_positive(one) for one in value)


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _read(reading: Reading) -> None:
    file, said = reading.file, dict(reading.table("validation"))
    if "validation" not in file.content:
        return
    known = {name: value for name, value in reading.names.items() if isinstance(value, Parameter)}
    several = isinstance(said.get("values"), dict)
    if "parameter" not in said and not several:
        raise file.error(
            f'[validation] needs parameter = "...", one of {", ".join(known) or "[parameters], which has none"}',
            ("validation",),
        )
    if "parameter" in said and several:
        raise file.error("values names the parameters already: leave parameter out", ("validation", "parameter"))  # fmt: skip
    if several and len(said["values"]) > 1 and said.get("rule") == "one_se":
        raise file.error(
            'the rule of one standard error is of one parameter: write rule = "best"', ("validation", "rule"), value=True
        )  # fmt: skip
    chosen = list(said["values"]) if several else [said["parameter"]]
    for name in chosen:
        if name not in known:
            at = ("validation", "values", name) if several else ("validation", "parameter")
            raise file.error(f"[parameters] has no {name!r}{nearest(name, known)}", at, value=not several)
    if "metric" in said:
        try:
            as_measure(said["metric"], "[validation] metric")
        except MTLError as error:
            raise error.at(file.place(("validation", "metric"), value=True)) from error
    if isinstance(said.get("groups"), str):
        rows = numbers_of_rows(reading.train) if reading.train_rows is None else reading.train_rows
        said["groups"] = groups_of(reading, said["groups"], rows, ("validation", "groups"))
    values = said["values"].values() if several else [said.get("values")]
    said["values"] = {known[name]: own for name, own in zip(chosen, values, strict=True)}
    reading.validation = {key: value for key, value in said.items() if key != "parameter"}


def check_measure(reading: Reading, problem: Problem) -> None:
    """DataError with its place, before the folds, for a measure of numbers where labels are predicted, and of labels where counts or amounts are."""
    name = reading.table("validation").get("metric")
    if name is None:
        return
    loss: Any = problem.first_loss
    needs = as_measure(name, "[validation] metric").needs
    labels = loss.atom.labels in ("sign", "classes") or loss.source is not None
    if labels and needs == "values":
        said = 'predicts labels, and this measure is of numbers; write a measure of labels, such as metric = "f1"'
    elif loss.atom.labels in ("count", "positive") and needs != "values":
        said = 'does not predict labels, and this measure is of labels; write a measure of numbers, such as metric = "mae"'
    else:
        return
    raise reading.file.error(f"{loss.atom.name} {said}", ("validation", "metric"), value=True)


VALIDATION = Section("validation", _RULES, read=_read)
