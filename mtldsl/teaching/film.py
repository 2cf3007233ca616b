"""A film of a solve: what a solver has after so many iterations, picture by picture."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.display.html import template
from mtldsl.display.pictures.axes import COLOURS, GREY, plain, pyplot, short
from mtldsl.display.pictures.graph import graph_plot, label_order
from mtldsl.errors import DataError
from mtldsl.utils.files import atomic_file
from mtldsl.utils.validation import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------------------
# The two sides of a film's frame: unknowns, and what is proven.


@dataclass(frozen=True)
class FilmSettings:
    """Sizes of a film.

    grid_points    : points along each of two weights
    margin_share   : how far the grid reaches beyond the way, as a share of it
    named_features : names that are written beside a map of weights
    default_frames : frames where none are asked for: the first iterations, then ever fewer of them until the end
    """

    grid_points: int = 61
    margin_share: float = 0.25
    named_features: int = 16
    default_frames: int = 24


SETTINGS = FilmSettings()


def bounds_panel(ax, steps, solutions, k: int) -> None:
    """Objective and dual bound until frame k, and the gap between them; its limits are those of the whole film."""
    above = np.array([one.objective for one in solutions], dtype=float)
    below = np.array([one.dual_bound for one in solutions], dtype=float)
    at = np.array(steps)
    shown = slice(0, k + 1)
    proven = np.isfinite(below)
    # of all that is proven the best counts, also where a later bound was weaker
    best = np.maximum.accumulate(np.where(proven, below, -np.inf))
    ax.plot(at[shown], above[shown], "o-", color=COLOURS[0], markersize=4, label="objective")
    if proven.any():
        drawn = np.flatnonzero(np.isfinite(best)[shown])
        ax.plot(at[drawn], best[drawn], "o-", color=COLOURS[1], markersize=4, label="dual bound")
        ax.fill_between(at[drawn], best[drawn], above[drawn], color=GREY, alpha=0.2, linewidth=0)
    ax.set_ylim(*_limits(above, best))
    room = 0.03 * (at[-1] - at[0]) + 0.5 * (len(at) == 1)
    ax.set_xlim(at[0] - room, at[-1] + room)
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
    """Return what a frame proves: an objective bounds the optimum from above only where the constraints are met."""
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


def unknowns_panel(problem: Any, solutions) -> Callable[[Any, Any], Any]:
    """Return what draws the left side: the graph of labels, the way between two weights, or a map of W."""
    last = solutions[-1]
    if getattr(last, "label_graph", None) is not None:
        order = label_order(last)  # labels stand where the last frame has them
        return lambda ax, solution: graph_plot(solution, order=order, ax=ax)
    if last.W.size == 2 and len(last.blocks) == 1:
        return _way(problem, solutions)
    return _map(solutions)


def _way(problem: Any, solutions) -> Callable[[Any, Any], None]:
    points = np.array([one.W.ravel() for one in solutions])
    low, high = np.minimum(points.min(axis=0), 0.0), np.maximum(points.max(axis=0), 0.0)
    room = SETTINGS.margin_share * np.maximum(high - low, 0.5 * float(np.max(high - low)) or 1.0)
    one, other = (
        np.linspace(a, b, SETTINGS.grid_points) for a, b in zip(low - room, high + room, strict=True)
    )
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
            if len(names) <= SETTINGS.named_features:
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


@dataclass(frozen=True, eq=False)
class Film:
    """Frames of a solve, as `mtl.report.film` made them.

    steps     : the iterations that were counted; ascending
    solutions : what the solver had after each of them: a Solution with W, objective, dual_bound, status
    solver    : whose iterations they are
    """

    problem: Any
    solver: str
    steps: tuple[int, ...]
    solutions: tuple[Any, ...]
    panel: Callable[[Axes, Any], Any] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.steps)

    def still(self, frame: int, axes=None):
        """One frame, drawn into two axes (or into a new figure); returns them. frame : 0, 1, ..., or from the end, -1, -2, ...

        DataError for a frame that there is not, and for axes that are not two.
        """
        if not (isinstance(frame, int | np.integer) and -len(self) <= frame < len(self)):
            raise DataError(f"frame={quoted(frame)}: this film has the frames 0 to {len(self) - 1}")
        if axes is None:
            axes = pyplot().subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")[1]
        axes = list(np.ravel(axes))
        if len(axes) != 2 or not all(hasattr(ax, "plot") for ax in axes):
            raise DataError("axes: write two matplotlib Axes, such as plt.subplots(1, 2)[1]")
        left, right = axes
        k = int(frame) % len(self)
        self._draw_unknowns(left, self.solutions[k])
        bounds_panel(right, self.steps, self.solutions, k)
        return axes

    def save(self, file, seconds: float = 0.6, dpi: int = 80) -> Path:
        """Write the film: `NAME.gif`, or `NAME.html` with a slider, which needs no network; returns the path.

        seconds : how long a frame is shown; the last one three times as long
        DataError for another ending, and for seconds or dpi that are not positive.
        """
        path = Path(file)
        if path.suffix not in (".gif", ".html"):
            raise DataError(f"file={str(path)!r}: a film is a .gif or a .html file")
        for name, value in (("seconds", seconds), ("dpi", dpi)):
            if not (isinstance(value, int | float) and 0 < value < np.inf):
                raise DataError(f"{name}={quoted(value)}: write a positive number")
        if path.suffix == ".html":
            page = self._page(seconds, dpi)
            with atomic_file(path) as out:
                out.write(page.encode())
            return path
        from PIL import Image  # comes with matplotlib

        pictures = [Image.open(BytesIO(one)).convert("RGB").quantize(128) for one in self._rendered(dpi)]
        times = [round(1000 * seconds)] * (len(pictures) - 1) + [round(3000 * seconds)]
        with atomic_file(path) as out:
            pictures[0].save(out, "GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)
        return path

    def _repr_html_(self) -> str:
        """In a notebook: the page of `save`, in a frame of its own."""
        page = self._page(0.6, 72)
        return f'<iframe srcdoc="{escape(page, quote=True)}" width="100%" height="480" style="border:0" title="film of a solve"></iframe>'

    @cached_property
    def _draw_unknowns(self) -> Callable[[Axes, Any], Any]:
        return self.panel or unknowns_panel(self.problem, self.solutions)

    def _page(self, seconds: float, dpi: int) -> str:
        """A picture, a slider, a button; no network, and nothing that moves unasked."""
        sources = [f"data:image/png;base64,{base64.b64encode(one).decode()}" for one in self._rendered(dpi)]
        captions = [caption(step, one) for step, one in zip(self.steps, self.solutions, strict=True)]
        page = template("film.html.jinja")
        return page.render(
            frames=sources, captions=captions, model=str(self.problem), pause=round(1000 * seconds)
        )

    def _rendered(self, dpi: int) -> list[bytes]:
        """Every frame as a PNG, all of one size."""
        plt = pyplot()
        rendered = []
        for k in range(len(self)):
            figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
            try:
                self.still(k, axes)
                figure.savefig(page := BytesIO(), format="png", dpi=dpi)
                rendered.append(page.getvalue())
            finally:
                plt.close(figure)
        return rendered


def caption(step: int, solution: Any) -> str:
    """A frame in words."""
    return f"After {step} iteration{'s' * (step > 1)}: {proven_of(solution, float(solution.dual_bound))} ({solution.status.replace('_', ' ')})"


def film(
    problem: Any,
    solver: str = "auto",
    *,
    steps: Iterable[int] | None = None,
    tol: float = 1e-6,
    panel: Callable[[Axes, Any], Any] | None = None,
    **options: Any,
) -> Film:
    """The film of a solve of your own problem: unknowns on the left, objective and dual bound on the right, after 1, 2, 3, ... iterations.

    Every frame is a solve of its own that stops after so many iterations (`max_iter`), so that it is what the solver really has then: the best
    point it knows, and what is proven. The same input gives the same iterations, so the frames are one run. What a solver holds inside, such as
    ADMM's copies of W, is not shown: lesson 4 does that by hand.

    Parameters
    ----------
    problem : Problem
        Small ones: as many solves as frames.
    solver : str
        As in `problem.solve`, "admm" or "dual_ascent" for instance; "auto" films the one that ends the solve.
    steps : whole numbers, ascending, optional
        After which iterations. Default: the first ones, then ever fewer, until the end: some 24.
    tol : float
        Where the film ends.
    panel : function of (ax, solution), optional
        Draws the left side. Default: the objective's level lines and the way of the points, where W has two entries; the graph, where a graph of
        labels is learned; else a map of W.
    **options
        The solver's own, as in `problem.solve`.

    Returns
    -------
    Film
        `.save("admm.gif")` or `.save("admm.html")`, `.still(3)` for a slide; in a notebook it shows itself.

    Raises
    ------
    DataError
        For steps that are not ascending whole numbers above 0, and for what is not a problem.
    MissingExtraError
        Where matplotlib is not installed, once something is drawn.

    Examples
    --------
    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(2), np.array([[2.0], [1.0]]))
    >>> W = mtl.Weights(tasks)
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))
    >>> shown = film(problem, "admm", steps=[1, 2, 4])
    >>> len(shown), shown.solver, shown.solutions[-1].dual_bound <= 2.0 <= shown.solutions[-1].objective
    (3, 'admm', True)
    """
    if not hasattr(problem, "solve"):
        raise DataError(
            f"film({type(problem).__name__}): it takes a problem, which it solves",
            write_instead="write film(mtl.minimize(...))",
        )
    if panel is not None and not callable(panel):
        raise DataError(f"panel={quoted(panel)}: write a function of (ax, solution)")
    chosen = None if steps is None else _checked(steps)
    if solver == "auto":
        solver = problem.solve(tol=tol).solver
    if chosen is None:
        # 1, 2, 3, ... and ever fewer until the last
        last = max(int(problem.solve(solver, tol=tol, **options).iterations), 1)
        chosen = list(range(1, last + 1))
        if last > SETTINGS.default_frames:
            chosen = sorted({round(one) for one in np.geomspace(1, last, SETTINGS.default_frames).tolist()})
    found = []
    for step in chosen:
        found.append(problem.solve(solver, tol=tol, max_iter=step, **options))
        if found[-1].status in ("optimal", "stationary"):
            break
    return Film(problem, solver, tuple(chosen[: len(found)]), tuple(found), panel)


def _checked(steps) -> list[int]:
    given = list(steps) if isinstance(steps, Iterable) else []
    whole = all(isinstance(one, int | np.integer) and not isinstance(one, bool) and one > 0 for one in given)
    if not given or not whole or any(a >= b for a, b in pairwise(given)):
        raise DataError(f"steps={quoted(steps)}: write ascending whole numbers above 0, such as range(1, 20)")
    return [int(one) for one in given]
