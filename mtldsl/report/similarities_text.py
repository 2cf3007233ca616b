"""The section about similarities of tasks: their weights as bars, the largest first, and which tasks are alike."""

from __future__ import annotations

import math

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mtldsl.report.layout import DIM, pairs, section
from mtldsl.report.unicode_math import to_unicode

__all__ = ["similarities"]

#: More weights than this are summed up, and a bar of the largest is this wide.
MAX_WEIGHTS, BAR = 16, 24

_EIGHTHS = " ▏▎▍▌▋▊▉"


def similarities(found: list[dict]) -> Group:
    """One part for every `mkl_norm` of the model."""
    return Group(*(_one(each) for each in found))


def _one(found: dict) -> Group:
    names, values = found["names"], [float(value) for value in found["weights"]]
    largest = max(values, default=0.0)
    order = sorted(range(len(values)), key=lambda m: -values[m])
    held = order[: len(values) - found["zeros"]]
    bars = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    bars.add_column(overflow="ellipsis", no_wrap=True, max_width=40)
    bars.add_column(justify="right")
    bars.add_column(no_wrap=True)
    for m in held[:MAX_WEIGHTS]:
        bars.add_row(Text(names[m]), f"{values[m]:.4g}", Text(_bar(values[m] / largest), "cyan"))
    rest, notes = held[MAX_WEIGHTS:], []
    if rest:
        total = math.fsum(values[m] for m in rest)
        notes.append(Text(f"and {len(rest):,} smaller ones, {total:.4g} together", DIM))
    if found["zeros"]:
        notes.append(Text(f"zero: {_counted(found['zeros'], len(values))}", DIM))
    facts = pairs([(found["symbol"], _bound(found)), *_facts(found)])
    return section("Weights of task similarities", bars, *notes, Text(), facts)


def _bar(share: float) -> str:
    """A bar of up to `BAR` letters, to the eighth of one; something for every weight that is not zero."""
    eighths = max(1, round(8 * BAR * share))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _counted(count: int, of: int) -> str:
    return f"{count:,} of {of:,}"


def _bound(found: dict) -> str:
    """What theta may be, and what became of it."""
    if found["how"] == "given":
        return f"given in {found['term']}"
    if math.isinf(found["p"]):
        return f"all {found['radius']:g}, since p = ∞ in {found['term']}"
    ball = to_unicode(rf"\|\theta\|_{{{found['p']:g}}} \leq {found['radius']:g}")
    if found["how"] == "learned":
        return f"learned beside W within {ball.replace('θ', found['symbol'])}"
    return f"the best within {ball}, of {found['term']}"


def _facts(found: dict) -> list[tuple[str, str]]:
    rows = []
    if found["support"] is not None:
        support = found["support"]
        rows.append(
            (
                "support",
                f"{_counted(support['count'], support['samples'])} samples have a multiplier that is not zero",
            )
        )
    for tasks in found["tasks"]:
        about = f", by {tasks['view']}" if tasks["view"] else ""
        for key in ("most", "least"):
            if tasks[key]:
                listed = ", ".join(
                    f"{' – '.join(each['pair'])} {each['correlation']:+.2f}" for each in tasks[key]
                )
                rows.append((f"{key} alike{about}", listed))
    return rows
