"""A picture of how the objective fell, one run or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError
from mtldsl.system.pyplot import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["trace_plot"]

_COLOURS = ("#1f5fa8", "#d9742b", "#3d9a8b", "#7a5195", "#b0413e", "#6b7280", "#c9a227", "#4fa3d1")


def trace_plot(
    history: Sequence[dict] | Mapping[str, Sequence[dict]],
    *,
    against: str = "iteration",
    best: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The objective above the best value, on a logarithmic axis, against iterations or seconds: one run or several.

    Parameters
    ----------
    history : list of dicts with "iteration", "seconds" and "objective", or a dict name -> such a list
        Such as `solution.history`, or {"block": one.history, "lbfgs": other.history}.
    against : "iteration" (default) or "seconds"
        Seconds are on a logarithmic axis too, without what was seen after 0 seconds, where the longest run took more than 20
        times the shortest.
    best : number, optional
        The value to subtract, such as a certified bound. Default: the smallest objective of all runs; the run that reached it then
        drops out of the picture just before its end, because 0 has no logarithm.
    title : str, optional
    ax : matplotlib Axes, optional
        Where to draw; default: in a new figure.

    Returns
    -------
    matplotlib Axes
        Objectives that are infinite (outside the domain), or at most `best`, are not drawn: outside the constraints ("violation"
        above 0) they may be lower.

    Raises
    ------
    DataError
        Where a history is empty, has no objective that is finite or lacks a key, and where an objective is below `best` at a look
        that violates no constraint.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> looks = [{"iteration": k, "seconds": 0.1 * k, "objective": 3 + 0.1**k} for k in range(4)]
    >>> ax = trace_plot(looks, best=3.0)
    >>> ax.get_yscale(), ax.lines[0].get_xdata().tolist()
    ('log', [0.0, 1.0, 2.0, 3.0])
    """
    if against not in ("iteration", "seconds"):
        raise DataError(f'against={against!r}: write against="iteration" or against="seconds"')
    runs = dict(history) if isinstance(history, Mapping) else {None: history}
    if not runs:
        raise DataError(
            "history={}: there is no run in it", write_instead="give a history, or a dict name -> history"
        )
    traces = {name: _trace(looks, against, name) for name, looks in runs.items()}
    if best is None:
        best = min(float(objectives.min()) for _, objectives in traces.values())
    lowest = min(map(_lowest_inside, runs.values()))
    if lowest < best - 1e-8 * max(1.0, abs(best)):
        raise DataError(
            f"best={best!r}: a run reached {lowest:.10g}, which is lower",
            write_instead="leave best out, or give a bound",
        )
    log_time = against == "seconds" and _spread(traces) > 20
    plt = pyplot()

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (name, (x, objectives)), colour in zip(traces.items(), _cycle(len(traces)), strict=True):
        above = objectives - best
        drawn = (above > 0) & (x > 0) if log_time else above > 0
        marker = "o" if drawn.sum() <= 40 else None
        ax.plot(
            x[drawn], above[drawn], color=colour, linewidth=1.6, marker=marker, markersize=3.5, label=name
        )
    if all(len(objectives) < 2 for _, objectives in traces.values()):
        ax.text(0.5, 0.5, "only one point was recorded", transform=ax.transAxes, ha="center", color="0.4")
    ax.set_yscale("log")
    if log_time:
        ax.set_xscale("log")
    ax.set_xlabel("seconds" if against == "seconds" else "iteration")
    ax.set_ylabel(f"objective above {best:.8g}".replace("-", "−"))
    ax.spines[["top", "right"]].set_visible(False)
    if len(traces) > 1:
        ax.legend(frameon=False, fontsize=9)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=11)
    return ax


def _trace(looks, against: str, name) -> tuple[np.ndarray, np.ndarray]:
    """(iterations or seconds, objectives) of the looks whose objective is finite."""
    of = "history" if name is None else f"history[{name!r}]"
    looks = list(looks)
    for i, look in enumerate(looks):
        for key in (against, "objective"):
            if not isinstance(look, Mapping) or key not in look:
                raise DataError(
                    f"{of}[{i}] has no {key!r}",
                    write_instead="pass the history of a solution, a list of dicts",
                )
    x = np.array([look[against] for look in looks], dtype=float)
    objectives = np.array([look["objective"] for look in looks], dtype=float)
    if np.isnan(objectives).any():
        raise DataError(f"{of}[{int(np.isnan(objectives).argmax())}] has the objective NaN")
    finite = np.isfinite(objectives)
    if not finite.any():
        raise DataError(f"{of} has no look with a finite objective: there is nothing to draw")
    return x[finite], objectives[finite]


def _lowest_inside(looks) -> float:
    """The lowest objective of the looks that violate no constraint."""
    return min((look["objective"] for look in looks if not look.get("violation")), default=np.inf)


def _cycle(n: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(n)]


def _spread(traces) -> float:
    """The longest run over the shortest."""
    ends = [float(x.max()) for x, _ in traces.values()]
    return max(ends) / min(ends) if min(ends) > 0 else np.inf
