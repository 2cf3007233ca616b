"""The [thresholds] table of a problem file: where a label is said, tuned on folds of the training rows after the solve."""

from __future__ import annotations

from typing import Any

from mtldsl.atoms.metrics import ErrorRate, FScore, Metric
from mtldsl.files.rules import SEED, number, one_of, whole
from mtldsl.files.section import Reading, Section
from mtldsl.problem import Problem

__all__ = ["THRESHOLDS", "check_loss", "metric_of"]

_RULES = {
    "metric": one_of(["f1", "accuracy"]),
    "beta": number(0.0, 100.0, "a number > 0: how much more recall counts than precision"),
    "folds": whole(2, "a whole number >= 2 and <= 1,000", 1_000),
    "random_state": SEED,
}


def _read(reading: Reading) -> None:
    file, said = reading.file, dict(reading.table("thresholds"))
    if "thresholds" not in file.content:
        return
    if "beta" in said and said.get("metric", "f1") != "f1":
        raise file.error('beta is of metric = "f1"', ("thresholds", "beta"))
    if not reading.train.in_memory:
        raise file.error("rows that stay where they are have no thresholds here", ("thresholds",))
    reading.thresholds = said


def check_loss(reading: Reading, problem: Problem) -> None:
    """DataError with its place, before the solve, where no label is cut from a score of its own."""
    first: Any = problem.first_loss
    if first.atom.labels != "sign" or first.source is not None:
        raise reading.file.error(
            f"{first.atom.name} does not score labels -1 and +1 one by one, so that there is nothing to cut; leave [thresholds] out",
            ("thresholds",),
        )


def metric_of(said: dict) -> Metric:
    """What thresholds are tuned for."""
    return ErrorRate() if said.get("metric", "f1") == "accuracy" else FScore(beta=float(said.get("beta", 1.0)))  # fmt: skip


THRESHOLDS = Section("thresholds", _RULES, read=_read)
