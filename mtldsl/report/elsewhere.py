"""Rows that are not in this process: where they are, and how often they were gone through."""

from __future__ import annotations

from typing import Any

from rich.console import Group

from mtldsl.report.layout import pairs, section

__all__ = ["describe_rows", "rows_elsewhere"]

#: what is done, in this order
_STEPS = ("validation", "solve", "cross_check")


def describe_rows(facts: dict[str, Any], cluster: Any, counts: list[tuple[int, int]]) -> dict | None:
    """Where rows are, and what each step took; None where they are in memory.

    facts  : `Tasks.storage_facts` of the training tasks
    cluster: the workers that a file named; None: those of this process
    counts : (runs over the rows, bytes moved) before the first step and after each
    """
    if not facts:
        return None
    steps = zip(_STEPS, counts, counts[1:], strict=False)
    return {
        "parts": facts["parts"],
        "names": facts["names"],
        "where": "this process, in threads" if cluster is None else cluster.where,
        "address": None if cluster is None else cluster.address,
        "workers": facts["workers"],
        "passes": {name: after[0] - before[0] for name, before, after in steps},
        "bytes_moved": counts[-1][1] - counts[0][1] if counts else 0,
    }


def rows_elsewhere(rows: dict) -> Group:
    """The section of a report."""
    names = rows["names"]
    shown = ", ".join(names) if len(names) <= 2 else f"{names[0]}, ..., {names[-1]}"
    workers = f"{rows['workers']} worker{'s' if rows['workers'] > 1 else ''}"
    where = rows["where"] if rows["address"] is None else f"{workers} of {rows['where']}"
    passes = {"validation": "choosing", "solve": "solving", "cross_check": "the cross-check"}
    told = ", ".join(f"{n} for {passes[name]}" for name, n in rows["passes"].items() if n)
    return section(
        "Where the rows are",
        pairs(
            [
                ("parts", f"{rows['parts']:,}: {shown}"),
                ("read by", where),
                ("passes", f"{told or 'none'}; {rows['bytes_moved'] / 1024:,.0f} KiB moved"),
            ]
        ),
    )
