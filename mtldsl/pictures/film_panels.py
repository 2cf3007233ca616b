"""The two sides of a film's frame: unknowns, and what is proven."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mtldsl.pictures.axes import COLOURS, GREY, plain
from mtldsl.pictures.figure import short
from mtldsl.pictures.graph import graph_plot
from mtldsl.pictures.graph_places import label_order

__all__ = ["bounds_panel", "proven_of", "unknowns_panel"]

#: points of the grid along each of two weights, and how far it reaches beyond the way
_GRID, _BEYOND = 61, 0.25

#: names that are written beside a map of weights
_NAMED = 16


def bounds_panel(ax, steps, solutions, k: int) -> None:
    """Objective and dual bound until frame k, and the gap between them; its limits are those of the whole film."""
    above = np.array([one.objective for one in solutions], dtype=float)
    below = np.array([one.dual_bound for one in solutions], dtype=float)
    at = np.array(steps)
    shown = slice(0, k + 1)
    proven = np.isfinite(below)
    # of all that is proven the best counts, also where a later bound was weaker
    best = np.maximum.accumulate(np.where(proven, below, -np.inf))
    drawn = np.isfinite(best)[shown]
    ax.plot(at[shown], above[shown], "o-", color=COLOURS[0], markersize=4, label="objective")
    if proven.any():
        ax.plot(
            at[shown][drawn], best[shown][drawn], "o-", color=COLOURS[1], markersize=4, label="dual bound"
        )
        ax.fill_between(
            at[shown][drawn], best[shown][drawn], above[shown][drawn], color=GREY, alpha=0.2, linewidth=0
        )
    ax.set_ylim(*_limits(above, best))
    ax.set_xlim(
        at[0] - 0.03 * (at[-1] - at[0]) - 0.5 * (len(at) == 1),
        at[-1] + 0.03 * (at[-1] - at[0]) + 0.5 * (len(at) == 1),
    )
    if at[-1] > 60:
        ax.set_xscale("log")
        ax.set_xlim(0.9, at[-1] * 1.1)
    else:
        ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("iteration", fontsize=12)
    ax.tick_params(labelsize=11)
    ax.legend(frameon=False, fontsize=11, loc="upper right")
    plain(ax, f"iteration {steps[k]}: {proven_of(solutions[k], float(best[k]))}".replace("-", "−"))


def proven_of(solution: Any, bound: float) -> str:
    """What a frame proves: an objective bounds the optimum from above only where the constraints are met."""
    met = solution.violation <= solution.tol
    if np.isfinite(bound) and met:
        return f"{bound:.5g} ≤ optimum ≤ {solution.objective:.5g}"
    low = [f"optimum ≥ {bound:.5g}"] if np.isfinite(bound) else []
    missed = "" if met else f", constraints missed by {solution.violation:.1g}"
    return "; ".join([*low, f"objective {solution.objective:.5g}{missed}"])


def _limits(above: np.ndarray, best: np.ndarray) -> tuple[float, float]:
    """As much of the first frame as leaves the end visible: a first bound may lie far below everything else."""
    above, best = above[np.isfinite(above)], best[np.isfinite(best)]
    if not above.size:
        return 0.0, 1.0
    end = float(above[-1])
    low = float(best.min()) if best.size else float(above.min())
    span = max(float(np.median(above)) - end, 0.5 * abs(end), 1e-12)
    low, high = max(low, end - 2.0 * span), min(float(above.max()), end + 2.0 * span)
    room = 0.08 * max(high - low, 1e-9 * max(abs(end), 1.0))
    return low - room, high + 3.0 * room


def unknowns_panel(problem: Any, solutions) -> Callable[[Any, Any], None]:
    """What draws the left side: the graph of labels, the way between two weights, or a map of W."""
    last = solutions[-1]
    if getattr(last, "label_graph", None) is not None:
        return _graph(last)
    if last.W.size == 2 and len(last.blocks) == 1:
        return _way(problem, solutions)
    return _map(solutions)


def _graph(last: Any) -> Callable[[Any, Any], None]:
    """Labels stand where the last frame has them."""
    order = label_order(last)

    def draw(ax, solution) -> None:
        graph_plot(solution, order=order, ax=ax)

    return draw


def _way(problem: Any, solutions) -> Callable[[Any, Any], None]:
    points = np.array([one.W.ravel() for one in solutions])
    low, high = np.minimum(points.min(axis=0), 0.0), np.maximum(points.max(axis=0), 0.0)
    room = _BEYOND * np.maximum(high - low, 0.5 * float(np.max(high - low)) or 1.0)
    one, other = (np.linspace(a, b, _GRID) for a, b in zip(low - room, high + room, strict=True))
    shape = solutions[0].W.shape
    heights = np.array([[problem.value(np.array([a, b]).reshape(shape)) for a in one] for b in other])
    inside = heights[np.isfinite(heights)]
    least = min(float(s.objective) for s in solutions)
    levels = (
        least + np.geomspace(1e-3, 1.0, 14) * max(float(inside.max()) - least, 1e-12) if inside.size else []
    )
    names = _entries(solutions[0])

    def draw(ax, solution) -> None:
        if len(levels):
            ax.contour(
                one,
                other,
                np.where(np.isfinite(heights), heights, np.nan),
                levels=levels,
                colors="#b9c0c8",
                linewidths=1,
            )
        k = next(i for i, s in enumerate(solutions) if s is solution)
        ax.plot(*points[: k + 1].T, "o-", color=COLOURS[1], markersize=5, linewidth=1.5)
        ax.plot(*points[k], "o", color="black", markersize=7)
        ax.set_xlabel(names[0], fontsize=12)
        ax.set_ylabel(names[1], fontsize=12)
        ax.tick_params(labelsize=11)
        plain(ax, "level lines of the objective")

    return draw


def _entries(solution: Any) -> list[str]:
    rows, columns = solution.W.shape
    if columns == 1:
        return [f"weight of {short(str(name))}" for name in solution.feature_names]
    return [f"weight in {short(str(name))}" for name in solution.task_names]


def _map(solutions) -> Callable[[Any, Any], None]:
    most = max(float(np.abs(one.W).max()) for one in solutions) or 1.0

    def draw(ax, solution) -> None:
        image = ax.imshow(
            solution.W, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest"
        )
        for axis, names, turn in ((ax.yaxis, solution.feature_names, 0), (ax.xaxis, solution.task_names, 90)):
            if len(names) <= _NAMED:
                axis.set_ticks(
                    range(len(names)), [short(str(name), 14) for name in names], rotation=turn, fontsize=10
                )
            else:
                axis.set_ticks([])
        ax.set_xlabel("task", fontsize=12)
        ax.set_ylabel("feature", fontsize=12)
        ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
        ax.set_title("weights", loc="left", fontsize=12)

    return draw
