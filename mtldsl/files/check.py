"""The [check] table of a problem file: how the solution is cross-checked against cvxpy."""

from __future__ import annotations

from mtldsl.files.rules import SECONDS, SEED, SWITCH, TOLERANCE, one_of
from mtldsl.files.section import Reading, Section

__all__ = ["CHECK"]

_RULES = {
    "max_seconds": SECONDS,
    "cross_check": SWITCH,
    "tol": TOLERANCE,
    "solver": one_of(["clarabel", "scs", "osqp"]),
    "max_size": (
        lambda v: v == float("inf") or (isinstance(v, int) and not isinstance(v, bool) and v > 0),
        "a whole number > 0, or inf for no limit",
    ),
    "random_state": SEED,
}


def _read(reading: Reading) -> None:
    check = dict(reading.table("check"))
    if check.get("max_size") == float("inf"):
        check["max_size"] = None
    reading.cross_check = check if check.pop("cross_check", True) else None


CHECK = Section("check", _RULES, read=_read)
