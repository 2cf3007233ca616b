"""A film of a solve: what a solver has after so many iterations, picture by picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.pictures.film_page import page_of
from mtldsl.pictures.film_panels import bounds_panel, proven_of, unknowns_panel
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.pyplot import pyplot
from mtldsl.values.number import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Film", "film"]

#: Frames where none are asked for: the first iterations, then ever fewer of them until the end.
_FRAMES = 24


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
    _drawn: dict = field(default_factory=dict, repr=False)

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
        draw = self.panel
        if draw is None:
            draw = self._drawn.get("panel") or unknowns_panel(self.problem, self.solutions)
            self._drawn["panel"] = draw
        draw(left, self.solutions[k])
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
        frames = self._rendered(dpi)
        if path.suffix == ".html":
            with atomic_file(path) as out:
                out.write(page_of(frames, self._captions(), str(self.problem), seconds).encode())
            return path
        import io

        from PIL import Image  # comes with matplotlib

        pictures = [Image.open(io.BytesIO(one)).convert("RGB").quantize(128) for one in frames]
        times = [round(1000 * seconds)] * (len(pictures) - 1) + [round(3000 * seconds)]
        with atomic_file(path) as out:
            pictures[0].save(out, "GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)
        return path

    def _repr_html_(self) -> str:
        """In a notebook: the page of `save`, in a frame of its own."""
        from html import escape

        page = page_of(self._rendered(72), self._captions(), str(self.problem), 0.6)
        return f'<iframe srcdoc="{escape(page, quote=True)}" width="100%" height="480" style="border:0" title="film of a solve"></iframe>'

    def _captions(self) -> list[str]:
        return [caption(step, one) for step, one in zip(self.steps, self.solutions, strict=True)]

    def _rendered(self, dpi: int) -> list[bytes]:
        """Every frame as a PNG, all of one size."""
        import io

        plt = pyplot()
        rendered = []
        for k in range(len(self)):
            figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
            try:
                self.still(k, axes)
                rendered.append(_png(figure, io.BytesIO(), dpi))
            finally:
                plt.close(figure)
        return rendered


def _png(figure: Figure, into, dpi: int) -> bytes:
    figure.savefig(into, format="png", dpi=dpi)
    return into.getvalue()


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
        chosen = _spread(problem.solve(solver, tol=tol, **options).iterations)
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


def _spread(last: int) -> list[int]:
    """1, 2, 3, ... and ever fewer until the last."""
    last = max(int(last), 1)
    if last <= _FRAMES:
        return list(range(1, last + 1))
    return sorted({round(one) for one in np.geomspace(1, last, _FRAMES).tolist()})
