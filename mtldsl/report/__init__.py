"""Reports and pictures of what was learned; the pictures of label graphs also by name, `mtl.report.graph_plot(solution)`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtldsl.report.label_co_occurrence import co_occurrence_plot
    from mtldsl.report.label_graph_places import label_order
    from mtldsl.report.label_graph_plot import graph_plot
    from mtldsl.report.label_graph_strip import graph_strip

__all__ = ["co_occurrence_plot", "graph_plot", "graph_strip", "label_order"]

_WHERE = {
    "graph_plot": "label_graph_plot",
    "label_order": "label_graph_places",
    "graph_strip": "label_graph_strip",
    "co_occurrence_plot": "label_co_occurrence",
}


def __getattr__(name: str):
    """What draws is imported where it is first asked for."""
    if name in _WHERE:
        return getattr(import_module(f"mtldsl.report.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'mtldsl.report' has no attribute {name!r}")
