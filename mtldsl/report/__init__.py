"""Reports of what was learned, and every picture by its name: `mtl.report.heatmap(matrix)`, `mtl.report.plot_path(solutions)`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtldsl.pictures.calibration import plot_calibration
    from mtldsl.pictures.clustered_order import clustered_order
    from mtldsl.pictures.co_occurrence import co_occurrence_plot
    from mtldsl.pictures.cross_validation import plot_cross_validation
    from mtldsl.pictures.film import film
    from mtldsl.pictures.graph import graph_plot
    from mtldsl.pictures.graph_places import label_order
    from mtldsl.pictures.graph_strip import graph_strip
    from mtldsl.pictures.heatmap import heatmap
    from mtldsl.pictures.path import plot_path
    from mtldsl.pictures.scores import plot_scores
    from mtldsl.pictures.trace import trace_plot
    from mtldsl.pictures.tree import tree_plot
    from mtldsl.pictures.weights import plot_weights

_WHERE = {
    "clustered_order": "mtldsl.pictures.clustered_order",
    "co_occurrence_plot": "mtldsl.pictures.co_occurrence",
    "film": "mtldsl.pictures.film",
    "graph_plot": "mtldsl.pictures.graph",
    "graph_strip": "mtldsl.pictures.graph_strip",
    "heatmap": "mtldsl.pictures.heatmap",
    "label_order": "mtldsl.pictures.graph_places",
    "plot_calibration": "mtldsl.pictures.calibration",
    "plot_cross_validation": "mtldsl.pictures.cross_validation",
    "plot_path": "mtldsl.pictures.path",
    "plot_scores": "mtldsl.pictures.scores",
    "plot_weights": "mtldsl.pictures.weights",
    "trace_plot": "mtldsl.pictures.trace",
    "tree_plot": "mtldsl.pictures.tree",
}

__all__ = [
    "clustered_order", "co_occurrence_plot", "film", "graph_plot", "graph_strip", "heatmap", "label_order", "plot_calibration",
    "plot_cross_validation", "plot_path", "plot_scores", "plot_weights", "trace_plot", "tree_plot",
]  # fmt: skip


def __getattr__(name: str):
    """What draws is imported where it is first asked for."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'mtldsl.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
