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
    "tables",
    "verdict",
    "written",
]

REPRODUCED, PARTLY, REFUTED, UNTESTED = "reproduced", "in part", "refuted", "not testable here"
#: The most words of a cell; figures with more of them stand below the table.
MOST_WORDS = 22
#: How `by_share` judges.
RULE = (
    "A claim over several comparisons is **reproduced** if it holds in at least two thirds of them. It is **refuted** if it holds in at most "
    "one third. Between these it holds **in part**."
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


def tables(claims: list[Claim], report: str) -> list[str]:
    """Return the lines of docs/papers.md on these claims: a command and its claims. Figures too many for a cell stand in the report."""
    lines = []
    for command in dict.fromkeys(claim.command for claim in claims):
        some = [claim for claim in claims if claim.command == command]
        lines += [f"```sh\n{command}\n```", "", "| where | claim | verdict | seen |", "|---|---|---|---|"]
        for claim in some:
            seen = claim.seen or "Not run on this machine."
            if len(seen.split()) > MOST_WORDS:
                seen = f"[figures](../benchmarks/results/{report}.md#reading)"
            cells = (claim.where, claim.says, f"**{claim.verdict}**", seen)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return lines


def written(*packages: str) -> str:
    """Date, machine and versions of a report; its rows may be older."""
    return stamp(*packages).replace("Measured", "Written", 1)
