"""What was learned beside the weights: matrices, weights of similarities, graphs of labels."""

from __future__ import annotations

import numpy as np

from mtldsl.shown.page import Section
from mtldsl.shown.panel import Panel, Table
from mtldsl.solution.page.facts import Facts

__all__ = ["learned"]

#: Pairs of a matrix that are written down.
_PAIRS = 8


def learned(facts: Facts) -> Section | None:
    """Every one as a picture and as text."""
    solution = facts.solution
    found = dict(solution.learned)
    if solution.label_graph is not None:
        found["graph of labels"] = solution.label_graph
    if not found:
        return None
    drawn = facts.pictures(
        *(
            (one.plot, f"a picture of {name}; its numbers stand in the text", _caption(name, one))
            for name, one in found.items()
        )
    )
    return Section("Learned beside the weights", panels=[_panel(name, one) for name, one in found.items()], figures=drawn)  # fmt: skip


def _panel(name: str, one) -> Panel:
    """Its text; of a matrix that is too large to be written down, the pairs that are furthest from independent."""
    text = str(one)
    if not text.startswith("<"):
        return Panel(_caption(name, one), text=text)
    correlation = np.asarray(one.correlation)
    first, second = np.triu_indices(len(correlation), k=1)
    sizes = np.nan_to_num(np.abs(correlation[first, second]))
    strongest = [k for k in np.argsort(-sizes, kind="stable")[:_PAIRS].tolist() if sizes[k] >= 0.005]
    if not strongest:
        return Panel(_caption(name, one), notes=["No two are correlated."])
    rows = [(one.names[first[k]], one.names[second[k]], f"{correlation[first[k], second[k]]:+.2f}") for k in strongest]  # fmt: skip
    table = Table(("one", "the other", "correlation"), rows)
    left = len(sizes) - len(rows)
    notes = [f"The strongest correlations; {left:,} more pairs are not shown."] if left else []
    return Panel(_caption(name, one), tables=[table], notes=notes)


def _caption(name: str, one) -> str:
    kind = getattr(one, "kind", "")
    return f"{name}: {kind} of {one.axis}" if kind and hasattr(one, "axis") else name
