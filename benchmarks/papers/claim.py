"""A claim of a paper beside what was seen: the verdict follows from the rows by a rule, so that it cannot be left over from older ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import mtldsl as mtl
from benchmarks.machine import stamp
from mtldsl.problems.method_comparison import holm

__all__ = [
    "OPEN",
    "PARTLY",
    "REFUTED",
    "REPRODUCED",
    "RULE",
    "UNTESTED",
    "VERDICTS",
    "Claim",
    "Pair",
    "by_share",
    "by_significance",
    "counts",
    "judged",
    "paired",
    "reading",
    "tables",
    "verdict",
    "written",
]

REPRODUCED, PARTLY, OPEN, REFUTED, UNTESTED = "reproduced", "in part", "open", "refuted", "not testable here"
VERDICTS = (REPRODUCED, PARTLY, OPEN, REFUTED, UNTESTED)
#: The most words of a cell; figures with more of them stand below the table.
MOST_WORDS = 22
#: Rows that both methods need for a test.
FEWEST_ROWS = 3
#: Differences that are the same but for this share of their deviation are one comparison: two methods that came to the same weights.
SAME_SHARE = 0.1
LEVEL = 0.05
#: How claims are judged.
RULE = """A claim that one method is better rests on comparisons on the same rows. One holds where the mean difference has the claimed sign, and p < .05.
The test is the paired t-test. Partitions of one data set share rows, so there the variance has Nadeau and Bengio's correction.
It is made with the share of the rows that a partition tests. Draws of new data need none. Holm's correction is over the table.
Beside it stands what the plain t-test finds: better and worse, or its p.
A comparison is reversed where the other sign is significant. Methods that came to the same weights are one comparison.

- The claim is **reproduced** if at least two thirds hold.
- It is **refuted** if at most one third hold and more than one third are reversed, so that two thirds cannot hold.
- It is **open** if at most one third hold and no more are reversed; more data may decide it.
- Else it holds **in part**.
- A claim of all methods needs all, and one that is reversed refutes it. A comparison of "better or comparable" holds if it is not reversed.
- Other claims are counted: **reproduced** from two thirds on, **refuted** up to one third.
- Without rows it is **not testable here**. So are printed figures where the data are not the paper's."""


@dataclass(frozen=True)
class Pair:
    """A comparison on the same rows: differences, positive where the claim holds.

    tested : the share of the rows that a partition tests; 0 where every difference is of new data
    """

    name: str
    differences: np.ndarray
    tested: float = 0.0


@dataclass(frozen=True)
class Claim:
    """
    where   : table, figure or section of the paper
    says    : the claim in a sentence
    verdict : reproduced, in part, open, refuted, not testable here
    seen    : the figures that the verdict is made of
    command : prints, or makes, these figures; run from the root of the repository
    ours    : a question that the paper does not ask; it is not counted
    pairs   : the comparisons of a claim that `judged` judges
    every   : the claim is of all of them, such as "the best of all"; one that is reversed refutes it
    or_equal : the claim is "better or comparable"; a comparison holds that is not reversed
    """

    where: str
    says: str
    verdict: str
    seen: str
    command: str
    ours: bool = False
    pairs: tuple[Pair, ...] = ()
    every: bool = False
    or_equal: bool = False


def verdict(holds: bool | None) -> str:
    return UNTESTED if holds is None else REPRODUCED if holds else REFUTED


def by_share(held: int, of: int) -> str:
    """The verdict on a claim that held in so many of so many cases."""
    if not of:
        return UNTESTED
    return REPRODUCED if 3 * held >= 2 * of else REFUTED if 3 * held <= of else PARTLY


def by_significance(held: int, reversed_: int, of: int, every: bool = False) -> str:
    """The verdict on a claim whose comparisons held, or were reversed, significantly in so many of so many."""
    if every:
        return REPRODUCED if held == of else REFUTED if reversed_ else OPEN
    shared = by_share(held, of)
    return OPEN if shared == REFUTED and 3 * reversed_ <= of else shared


def judged(claims: Iterable[Claim]) -> list[Claim]:
    """Judge the claims that have pairs, by paired tests with Holm's correction over all comparisons of a table; others stay as they are."""
    claims = [replace(claim, pairs=tuple(_distinct(claim.pairs))) for claim in claims]
    tables: dict[tuple, dict[tuple, Pair]] = {}  # a comparison of several claims is one
    for claim in claims:
        tables.setdefault((claim.where, claim.ours), {}).update({_key(pair): pair for pair in claim.pairs})
    adjusted, found = {}, []
    for table, pairs in tables.items():
        tests = [_test(pair, pair.tested) for pair in pairs.values()]
        both = zip(tests, map(float, holm([test.t for test in tests])), strict=True)
        adjusted[table] = dict(zip(pairs, both, strict=True))
    for claim in claims:
        if claim.pairs:
            own = [adjusted[claim.where, claim.ours][_key(pair)] for pair in claim.pairs]
            held, against = (sum(sign * test.mean > 0 and p < LEVEL for test, p in own) for sign in (1, -1))
            holding = len(own) - against if claim.or_equal else held
            judgement = by_significance(holding, against, len(own), claim.every)
            seen = f"{_seen(claim.pairs, *zip(*own, strict=True), held, against)} {claim.seen}".rstrip()
            claim = replace(claim, verdict=judgement, seen=seen)
        found.append(claim)
    return found


def _key(pair: Pair) -> tuple:
    return pair.name, pair.differences.tobytes()


def paired(of_a: dict[tuple, float], of_b: dict[tuple, float]) -> np.ndarray:
    """b minus a, a number per partition: the mean over what the keys (partition, ...) have besides, such as sizes and seeds.

    Fits on the rows of one partition are not independent, so that only partitions are rows of a test.
    """
    found: dict[object, list[float]] = {}
    for key in sorted(set(of_a) & set(of_b)):
        found.setdefault(key[0], []).append(of_b[key] - of_a[key])
    return np.array([np.mean(differences) for differences in found.values()])


def _test(pair: Pair, tested: float):
    scores = {"a": pair.differences, "b": np.zeros(len(pair.differences))}
    return mtl.compare(scores, test_share=tested or None).pairs[0]


def _distinct(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs with enough rows; those that are the same comparison are one, under both names."""
    kept: list[Pair] = []
    for pair in pairs:
        if len(pair.differences) < FEWEST_ROWS:
            continue
        for k, other in enumerate(kept):
            if len(other.differences) == len(pair.differences):
                size = max(float(np.std(pair.differences)), 1e-12)
                if np.abs(other.differences - pair.differences).max() <= SAME_SHARE * size:
                    kept[k] = replace(other, name=f"{other.name} = {pair.name}")
                    break
        else:
            kept.append(pair)
    return kept


def _seen(pairs, tests, p, held: int, against: int) -> str:
    """Effects, intervals and p after all corrections; beside them the plain t-test, which the papers use, and Wilcoxon's."""
    plain = [_test(pair, 0.0) for pair in pairs]
    texts = [
        f"{pair.name} {test.mean:+.4f} [{test.low:+.4f}, {test.high:+.4f}], p = {value:.2g} (plain t-test {usual.t:.2g}, Wilcoxon "
        f"{test.wilcoxon:.2g}), better on {test.better}, equal on {test.equal} of {len(pair.differences)}"
        for pair, test, usual, value in zip(pairs, tests, plain, p, strict=True)
    ]
    if len(pairs) == 1:
        return texts[0] + "."
    ahead, behind = (sum(sign * one.mean > 0 and one.t < LEVEL for one in plain) for sign in (1, -1))
    counts = f"Significantly better in {held} of {len(pairs)}, worse in {against} (plain t-test: {ahead}, {behind})."
    return counts if len(pairs) > 8 else f"{counts} {'; '.join(texts)}."


def counts(claims: Iterable[Claim]) -> Counter:
    """How often each verdict falls on a claim of the paper."""
    return Counter(claim.verdict for claim in claims if not claim.ours)


def reading(claims: list[Claim], given: bool = False) -> list[str]:
    """A line each, for a report; what has no rows is left out, of data given by a user all that is not judged."""
    return [
        f"- **{claim.says}** ({'our question' if claim.ours else claim.where}): {claim.verdict}. {claim.seen}"
        for claim in claims
        if claim.verdict != UNTESTED or (claim.seen and not given)
    ]


def tables(claims: list[Claim], report: str) -> list[str]:
    """Return the lines of docs/papers.md on these claims: a command and its claims. Figures too many for a cell stand in the report."""
    lines = []
    for command in dict.fromkeys(claim.command for claim in claims):
        some = sorted((claim for claim in claims if claim.command == command), key=lambda claim: claim.ours)
        lines += [f"```sh\n{command}\n```", "", "| where | claim | verdict | seen |", "|---|---|---|---|"]
        for claim in some:
            seen = claim.seen or "Not run on this machine."
            if len(seen.split()) > MOST_WORDS:
                seen = f"[figures](../benchmarks/results/{report}.md#reading)"
            cells = (
                "*our question*" if claim.ours else claim.where,
                claim.says,
                f"**{claim.verdict}**",
                seen,
            )
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return lines


def written(*packages: str) -> str:
    """Date, machine and versions of a report; its rows may be older."""
    return stamp(*packages).replace("Measured", "Written", 1)
