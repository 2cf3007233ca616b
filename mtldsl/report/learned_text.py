"""Sections about a model that learns matrices: what was learned, and the check of each block."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mtldsl.report.layout import BAD, DIM, pairs, section, small

__all__ = ["block_check", "learned_matrices"]


def learned_matrices(learned: dict[str, dict]) -> Group:
    """Each learned matrix: its kind, the bounds that were hit, its condition, and the strongest correlations."""
    rows = []
    for name, matrix in learned.items():
        rows += [(name if i == 0 else "", text) for i, text in enumerate(_facts(matrix))]
        for i, found in enumerate(matrix["strongest"]):
            lead = "strongest correlations  " if i == 0 else " " * 24
            rows.append(("", f"{lead}{found['correlation']:+.2f}  {_pair(found)}"))
    notes = []
    precisions = [m["eigenvalues"] for m in learned.values() if m["kind"] == "precision"]
    if len(precisions) > 1:
        notes.append("Precisions of one term share a scale: compare correlations, not sizes.")
        if len(precisions) == 2 and sum(map(_is_flat, precisions)) == 1:
            notes.append(
                "Wherever the bounds allow it, the optimum puts what is learned into one of the two."
            )
    return section("Learned matrices", pairs(rows), *(Text(note, DIM) for note in notes))


def _is_flat(values) -> bool:
    """Whether all eigenvalues are one, but for rounding."""
    return bool(values[-1] - values[0] <= 1e-9 * values[-1])


def _pair(found: dict) -> str:
    return " – ".join(found["pair"])


def _facts(matrix: dict) -> list[str]:
    side, values = matrix["shape"][0], matrix["eigenvalues"]
    lines = [f"{matrix['kind']} of {side:,} {matrix['axis']}"]
    if matrix["trace_bound"] is not None:
        lines[0] += f", trace {matrix['trace']:.4g} of {matrix['trace_bound']:g}"
    bounds = [(matrix[f"at_{which}"], matrix[which], which) for which in ("lower", "upper")]
    bounds = [bound for bound in bounds if bound[1] is not None]
    if _is_flat(values):
        at = [f", the {which} bound" for count, _, which in bounds if count]
        return [*lines, f"a multiple of the identity: every eigenvalue is {values[0]:.3g}{''.join(at)}"]
    condition = f"rank {matrix['rank']:,} of {side:,}"
    if matrix["condition"] is not None:
        condition = f"condition number {matrix['condition']:.3g}"
    lines.append(f"eigenvalues {values[0]:.3g} to {values[-1]:.3g}, {condition}")
    if bounds:
        hit = [f"{count or 'none'} of {side} at {value:g}" for count, value, _ in bounds]
        lines.append(f"at the bounds: {', '.join(hit)}")
    return lines


# ------------------------------------------------------------------------------------------------ the check


def block_check(check: dict) -> Group:
    """Every block of unknowns against cvxpy, the others kept."""
    blocks = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=DIM)
    blocks.add_column("over", style=DIM)
    for name in ("mtldsl", "reference", "difference", "seconds"):
        blocks.add_column(name, justify="right")
    blocks.add_column("by")
    for row in check["blocks"]:
        blocks.add_row(
            Text(row["name"]),
            f"{row['objective']:.10g}",
            f"{row['reference']:.10g}",
            f"{row['difference']:+.1e}",
            f"{row['seconds']:.3f}",
            Text(row["method"]),
            style=None if row["agrees"] else BAD,
        )
    allowed = " and ".join(sorted({f"{row['allowed']:.1e}" for row in check["blocks"]}))
    rows = [
        ("objectives", f"may differ by {allowed}, relative to their size"),
        ("formulas", f"differ by {small(check['formula_difference'])} at the same point"),
        ("violation", small(check["violation"])),
    ]
    about = Text(
        f"{check['scope']}; the objective at the point, and its least over one block with the others kept"
    )
    words = [
        Text("The two agree on every block.", "green") if check["agrees"] else Text("The two DISAGREE:", BAD)
    ]
    words += [Text(f"- {text}", "red") for text in check["disagreements"]]
    words += [Text(f"- {text}", "yellow") for text in check["notes"]]
    title = "Cross-check of every block against an independent formulation in cvxpy"
    return section(title, about, blocks, pairs(rows), *words)
