"""The certificate of a point of a model that is not convex, in plain words."""

from __future__ import annotations

import math

from rich.console import Group
from rich.text import Text

from mtldsl.report.layout import BAD, pairs, section, small, time

__all__ = ["is_of_stationary_point", "stationary_point"]

#: What `Stationarity.decreases` calls blocks that are not a single matrix.
_TOGETHER = {"weights": "the weights alone", "matrices": "all matrices together"}


def is_of_stationary_point(found: dict) -> bool:
    """Whether what is proven of a solution is stationarity. A global certificate, where there is one, says more."""
    return found["stationarity"] is not None and found["status"] != "optimal"


def stationary_point(found: dict, constrained: bool) -> Group:
    """What was measured, and what that proves."""
    proof = found["stationarity"]
    rows = [("objective", f"{found['objective']:.10g}")]
    if found["certified"]:
        rows.append(("found", "a stationary point, no global certificate"))
    label, measured = _measure(found)
    rows.append((label, f"{small(proof['residual'])}, asked for {found['tol']:.0e}; {measured}"))
    for i, (term, missing) in enumerate((proof["conditions"] or {}).items()):
        of_term = "their sum over all terms" if term == "balance" else term
        rows.append(("missing" if i == 0 else "", f"{small(missing)} at {of_term}"))
    for i, (name, decrease) in enumerate(proof["decreases"].items()):
        bound = "at most " if name == "weights" else ""
        rows.append(
            ("possible decrease" if i == 0 else "", f"{bound}{small(decrease)} over {_over(found, name)}")
        )
    bounded, distance = math.isfinite(found["dual_bound"]), found["objective"] - found["dual_bound"]
    bound = f"{found['dual_bound']:.10g}, for every point; this one lies {distance:.4g} above it"
    rows.append(("lower bound", bound if bounded else "none"))
    if constrained:
        rows.append(("violation", f"{small(found['violation'])}, the largest of the constraints"))
    rows.append(("time", f"{time(found)}, {found['iterations']:,} iterations"))
    return section("Certificate", pairs(rows), *_claims(found, bounded))


def _measure(found: dict) -> tuple[str, str]:
    """(what the residual is called, what it is)."""
    proof = found["stationarity"]
    if proof["gradient"] is not None:
        return (
            "profile gradient" if found["learned"] else "gradient"
        ), "relative to the gradients of its parts"
    if proof["conditions"] is not None:
        return "residual", "what is missing of the first-order conditions, relative to their largest part"
    return "residual", "the possible decrease over the weights, relative to the penalty"


def _over(found: dict, block: str) -> str:
    if block == "weights" and not found["learned"]:
        return "the weights, on the convex model that touches here from above"
    return _TOGETHER.get(block) or f"{block} alone"


def _claims(found: dict, bounded: bool) -> list[Text]:
    decreases = found["stationarity"]["decreases"]
    largest = max(decreases.values(), default=math.inf)
    amount = "rounding" if largest == 0 else f"{small(largest)} of its size"
    if not found["certified"]:
        first = Text(f"Not to the accuracy asked for: {found['status'].replace('_', ' ')}.", BAD)
    elif not math.isfinite(largest):
        first = Text("Proven: a stationary point to the accuracy asked for.", "green")
    elif not found["learned"]:
        convex = (
            "Proven: the convex model that touches the objective here from above is at its minimum, up to"
        )
        first = Text(f"{convex} {amount}.", "green")
    else:
        *names, last = (_over(found, name) for name in decreases)
        changed = f"{', '.join(names)} or {last}" if names else last
        first = Text(f"Proven: changing {changed} lowers the objective by no more than {amount}.", "green")
    second = "Nothing is proven of all points."
    if bounded:
        second = f"It is proven only that no point lies below {found['dual_bound']:.10g}."
    return [first, Text(f"Another point may be lower. {second}")]
