"""Rows that are not in this process: where they are, and how often they were gone through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from mtldsl.report.layout import pairs, section

if TYPE_CHECKING:
    from mtldsl.files.problem_file import ProblemFile

__all__ = ["describe_rows", "rows_elsewhere"]

#: what is done, in this order
_STEPS = ("validation", "solve", "cross_check")


def describe_rows(file: ProblemFile, counts: list[tuple[int, int]]) -> dict | None:
    """Where the rows of a file's tasks are, and what each step took; None where they are in this process.

    counts : (runs over the rows, bytes moved) before the first step and after each
    """
    facts = file.tasks_train.storage_facts()
    if not facts:
        return None
    steps = zip(_STEPS, counts, counts[1:], strict=False)
    return {
        "parts": facts["parts"],
        "names": facts["names"],
        "where": "this process, in threads" if file.cluster is None else file.cluster.where,
        "address": None if file.cluster is None else file.cluster.address,
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
