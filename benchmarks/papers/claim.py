"""A claim of a paper beside what was seen: the verdict follows from the rows by a rule, so that it cannot be left over from older ones."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.machine import stamp

__all__ = [
    "REFUTED",
    "REPRODUCED",
    "RULE",
    "UNTESTED",
    "Claim",
    "by_share",
    "reading",
    "table",
    "verdict",
    "written",
]

REPRODUCED, PARTLY, REFUTED, UNTESTED = "reproduced", "in part", "refuted", "not testable here"
#: How `by_share` judges.
RULE = (
    "A claim over several comparisons is reproduced where it holds in at least two thirds of them, refuted where it holds in at most "
    "one third, and holds in part between."
)


@dataclass(frozen=True)
class Claim:
    """
    where   : table, figure or section of the paper
    says    : the claim in a sentence
    verdict : reproduced, in part, refuted, not testable here
    seen    : the figures that the verdict is made of
    command : prints, or makes, these figures; run from the root of the repository
    """

    where: str
    says: str
    verdict: str
    seen: str
    command: str


def verdict(holds: bool | None) -> str:
    return UNTESTED if holds is None else REPRODUCED if holds else REFUTED


def by_share(held: int, of: int) -> str:
    """The verdict on a claim that held in so many of so many comparisons."""
    if not of:
        return UNTESTED
    return REPRODUCED if 3 * held >= 2 * of else REFUTED if 3 * held <= of else PARTLY


def reading(claims: list[Claim]) -> list[str]:
    """A line each, for a report; what has no rows is left out."""
    return [
        f"- **{claim.says}** ({claim.where}): {claim.verdict}. {claim.seen}"
        for claim in claims
        if claim.verdict != UNTESTED
    ]


def table(claims: list[Claim]) -> list[str]:
    """Rows for docs/papers.md."""
    lines = ["| where | claim | verdict | seen | command |", "|---|---|---|---|---|"]
    for claim in claims:
        seen = claim.seen or "Not run on this machine; the command does it."
        cells = (
            claim.where,
            claim.says,
            f"**{claim.verdict}**",
            seen,
            f"`{claim.command}`" if claim.command else "",
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def written(*packages: str) -> str:
    """Date, machine and versions of a report; its rows may be older."""
    return stamp(*packages).replace("Measured", "Written", 1)
