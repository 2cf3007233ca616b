"""What was learned beside the weights: matrices, weights of similarities, graphs of labels."""

from __future__ import annotations

from mtldsl.shown.page import Section
from mtldsl.shown.panel import Panel
from mtldsl.solution.page.facts import Facts

__all__ = ["learned"]


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
    panels = [Panel(_caption(name, one), text=str(one)) for name, one in found.items()]
    return Section("Learned beside the weights", panels=panels, figures=drawn)


def _caption(name: str, one) -> str:
    kind = getattr(one, "kind", "")
    return f"{name}: {kind} of {one.axis}" if kind and hasattr(one, "axis") else name
