"""Reports of what was learned, and every picture by its name: `mtl.report.heatmap(matrix)`, `mtl.report.plot_path(solutions)`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtldsl.data.label_table import co_occurrence_plot
    from mtldsl.display.pictures.curves import plot_cross_validation, plot_path, trace_plot
    from mtldsl.display.pictures.graph import graph_plot, graph_strip, label_order
    from mtldsl.display.pictures.heatmap import clustered_order, heatmap, plot_weights
    from mtldsl.display.pictures.scores import plot_calibration, plot_scores
    from mtldsl.display.pictures.tree import tree_plot
    from mtldsl.teaching.film import film

__all__ = [
    "clustered_order",
    "co_occurrence_plot",
    "film",
    "graph_plot",
    "graph_strip",
    "heatmap",
    "label_order",
    "plot_calibration",
    "plot_cross_validation",
    "plot_path",
    "plot_scores",
    "plot_weights",
    "trace_plot",
    "tree_plot",
]


def __dir__() -> list[str]:
    return __all__


_WHERE = {
    "clustered_order": "mtldsl.display.pictures.heatmap",
    "co_occurrence_plot": "mtldsl.data.label_table",
    "film": "mtldsl.teaching.film",
    "graph_plot": "mtldsl.display.pictures.graph",
    "graph_strip": "mtldsl.display.pictures.graph",
    "heatmap": "mtldsl.display.pictures.heatmap",
    "label_order": "mtldsl.display.pictures.graph",
    "plot_calibration": "mtldsl.display.pictures.scores",
    "plot_cross_validation": "mtldsl.display.pictures.curves",
    "plot_path": "mtldsl.display.pictures.curves",
    "plot_scores": "mtldsl.display.pictures.scores",
    "plot_weights": "mtldsl.display.pictures.heatmap",
    "trace_plot": "mtldsl.display.pictures.curves",
    "tree_plot": "mtldsl.display.pictures.tree",
}


def __getattr__(name: str):
    """Return what draws is imported where it is first asked for."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'mtldsl.report' has no attribute {name!r}")
