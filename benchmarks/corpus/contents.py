"""What the corpus consists of, for its page: data sets by half, models by family."""

from __future__ import annotations

from .data import SETS
from .problems import FAMILIES, Problem

__all__ = ["contents"]


def contents(problems: list[Problem]) -> str:
    """Two tables."""
    used = {problem.data for problem in problems}
    lines = [
        "## Contents\n",
        "| data set | half | rows x features x tasks | layout | |",
        "|---|---|---|---|---|",
    ]
    for each in SETS.values():
        if each.name in used:
            kind = ("real" if each.real else "generated") + (", labels" if each.labels else "")
            lines.append(
                f"| {each.name} | {each.half} | {each.n} x {each.d} x {each.m} | {each.layout} | {kind} |"
            )
    lines += [
        "\nReal-valued targets become labels by their median, and counts or amounts by an exponential, where a loss asks for those.",
        "Scalings: raw; standard (columns of mean 0 and deviation 1, CSR of mean square 1); unit (columns within [0, 1]). "
        "A strength is a share of lambda_max for `loss + lam * norm`, a multiple of 1 / lambda_max for `norm + C * loss`, and for quadratic "
        "penalties relative to the mean squared column or row; `+b`: with an intercept; `one`: the first task alone.\n",
        "| family | problems | models |",
        "|---|---|---|",
    ]
    for family in FAMILIES:
        own = [problem for problem in problems if problem.family == family]
        names = sorted({problem.model.name.replace("|", " s.t. ") for problem in own})
        if own:
            lines.append(f"| {family} | {len(own)} | {', '.join(names)} |")
    return "\n".join(lines) + "\n"
