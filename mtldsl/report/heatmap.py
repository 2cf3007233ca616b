"""Pictures of what was learned: a correlation matrix as a labelled heatmap, and how the objective fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError, MissingExtraError
from mtldsl.report.clustered_order import checked_correlation, clustered_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["clustered_order", "heatmap", "trace_plot"]

#: Up to so many names, each cell shows its number; from more than so many, not every name is written.
ANNOTATED, NAMED = 12, 40
#: Ends of the colour scale that are chosen for small correlations.
_LIMITS = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0])
_COLOURS = ("#1f5fa8", "#d9742b", "#3d9a8b", "#7a5195", "#b0413e", "#6b7280", "#c9a227", "#4fa3d1")
_GREY = "#d3d7dc"


def heatmap(
    matrix,
    names: Sequence[str] | None = None,
    *,
    title: str | None = None,
    order: str | Sequence[int] | None = "clustered",
    ax: Axes | None = None,
    limit: float | None = None,
) -> Axes:
    """A correlation matrix as coloured cells: red where two go together, blue where they oppose each other, white for 0.

    Parameters
    ----------
    matrix : (n, n) correlation matrix, or anything with `.correlation` and `.names`
        Such as `solution.Sigma2`. Of a covariance C, pass C / np.sqrt(np.outer(v, v)), v = np.diag(C).
    names : n strings, optional
        Of rows and columns; default: those of `matrix`, else 1, 2, ..., n.
    title : str, optional
    order : "clustered" (default), None, or a permutation of 0, ..., n - 1
        "clustered": as `clustered_order` says; None: as given. For two pictures in one order, pass `clustered_order` of one.
    ax : matplotlib Axes, optional
        Where to draw, best in a figure with layout="constrained"; default: in a new figure whose size follows n and the names.
    limit : number in (0, 1], optional
        The correlation with the full colour. Default: the smallest of 0.05, 0.1, 0.2, 0.3, 0.5, 0.75 and 1 that no entry
        outside the diagonal exceeds, so that weak correlations can be seen: look at the colour bar before comparing.

    Returns
    -------
    matplotlib Axes
        Up to 12 names, each cell shows its number; of more than 40, every second, third, ... name is written, which the
        picture says. The diagonal is grey: it is 1 for every matrix.

    Raises
    ------
    DataError
        Where `matrix` is no correlation matrix (not square, not symmetric, not finite, another diagonal than 1), or names,
        order or limit do not fit.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> ax = heatmap([[1, 0.1, 0.8], [0.1, 1, -0.4], [0.8, -0.4, 1]], ["maths", "sport", "physics"], order=None)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['maths', 'sport', 'physics']
    """
    if hasattr(matrix, "correlation"):
        names = getattr(matrix, "names", None) if names is None else names
        matrix = matrix.correlation
    R = checked_correlation(matrix)
    n = len(R)
    names = [str(i + 1) for i in range(n)] if names is None else [str(name) for name in names]
    if len(names) != n:
        raise DataError(
            f"names: there are {len(names)}, but the matrix is {n} x {n}; give one for each row, or none"
        )
    at = _permutation(order, R)
    limit = _limit(limit, R)
    plt = _pyplot()

    R, names = R[np.ix_(at, at)], [names[i] for i in at]
    own = ax is None
    if own:
        side = float(np.clip(0.3 * n + 1.4, 2.4, 9.0))
        ax = plt.figure(figsize=(2 * side, 2 * side)).add_axes((0.25, 0.25, 0.5, 0.5))
    colours = plt.get_cmap("RdBu_r").with_extremes(bad=_GREY)
    image = ax.imshow(
        np.ma.array(R, mask=np.eye(n, dtype=bool)),
        cmap=colours,
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
    )
    place = (
        {"cax": ax.inset_axes([1.03, 0.0, 0.04, 1.0])} if own else {"ax": ax, "fraction": 0.046, "pad": 0.04}
    )
    bar = ax.figure.colorbar(image, extend=_extend(R, limit), **place)
    bar.outline.set_visible(False)
    bar.set_label("correlation")
    _write_names(ax, names)
    if n <= ANNOTATED:
        _write_numbers(ax, R, image.to_rgba(R))
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=11)
    if own:
        _trim(ax, side)
    return ax


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
        Objectives that are infinite (outside the domain) or equal to `best` are not drawn.

    Raises
    ------
    DataError
        Where a history is empty, has no objective that is finite or lacks a key, and where an objective is below `best`.
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
        raise DataError("history={}: there is no run in it; give a history, or a dict name -> history")
    traces = {name: _trace(looks, against, name) for name, looks in runs.items()}
    lowest = min(float(objectives.min()) for _, objectives in traces.values())
    if best is None:
        best = lowest
    elif lowest < best - 1e-8 * max(1.0, abs(best)):
        raise DataError(
            f"best={best!r}: a run reached {lowest:.10g}, which is lower; leave best out, or give a bound"
        )
    log_time = against == "seconds" and _spread(traces) > 20
    plt = _pyplot()

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (name, (x, objectives)), colour in zip(traces.items(), _cycle(len(traces)), strict=True):
        above = objectives - best
        drawn = (above > 0) & (x > 0) if log_time else above > 0
        marker = "o" if drawn.sum() <= 40 else None
        ax.plot(
            x[drawn], above[drawn], color=colour, linewidth=1.6, marker=marker, markersize=3.5, label=name
        )
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


# ---------------------------------------------------------------------------------------------- what was handed over


def _permutation(order, R) -> np.ndarray:
    n = len(R)
    if order is None:
        return np.arange(n)
    if isinstance(order, str):
        if order == "clustered":
            return clustered_order(R)
        raise DataError(
            f'order={order!r}: write order="clustered", order=None, or a permutation of 0 to {n - 1}'
        )
    at = np.asarray(order)
    if at.shape != (n,) or at.dtype.kind not in "iu" or not np.array_equal(np.sort(at), np.arange(n)):
        raise DataError(f"order={order!r} is no permutation of 0 to {n - 1}")
    return at


def _limit(limit, R) -> float:
    if limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, int | float | np.number) or not 0 < limit <= 1:
            raise DataError(f"limit={limit!r}: write a number above 0 and up to 1, or leave it out")
        return float(limit)
    largest = np.abs(R[~np.eye(len(R), dtype=bool)]).max(initial=0.0)
    return float(_LIMITS[min(np.searchsorted(_LIMITS, largest), len(_LIMITS) - 1)])


def _trace(looks, against: str, name) -> tuple[np.ndarray, np.ndarray]:
    """(iterations or seconds, objectives) of the looks whose objective is finite."""
    of = "history" if name is None else f"history[{name!r}]"
    looks = list(looks)
    for i, look in enumerate(looks):
        for key in (against, "objective"):
            if not isinstance(look, Mapping) or key not in look:
                raise DataError(f"{of}[{i}] has no {key!r}; pass the history of a solution, a list of dicts")
    x = np.array([look[against] for look in looks], dtype=float)
    objectives = np.array([look["objective"] for look in looks], dtype=float)
    if np.isnan(objectives).any():
        raise DataError(f"{of}[{int(np.isnan(objectives).argmax())}] has the objective NaN")
    finite = np.isfinite(objectives)
    if not finite.any():
        raise DataError(f"{of} has no look with a finite objective: there is nothing to draw")
    return x[finite], objectives[finite]


# -------------------------------------------------------------------------------------------------------- how it is drawn


def _pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError(
            'a picture needs matplotlib, which is not installed; write: pip install "mtldsl[plots]"'
        ) from None
    return plt


def _write_names(ax: Axes, names: list[str]) -> None:
    n = len(names)
    step = -(-n // NAMED)
    at = np.arange(0, n, step)
    written = [_short(names[i]) for i in at]
    size = float(np.interp(n, [12, NAMED, 120], [10, 7.5, 6.5]))
    flat = max(map(len, written)) * len(written) <= 40
    ax.set_xticks(at, written, fontsize=size, rotation=0 if flat else 90)
    ax.set_yticks(at, written, fontsize=size)
    ax.tick_params(length=0 if step == 1 else 2, pad=3)
    if step > 1:
        ordinal = {2: "second", 3: "third"}.get(step, f"{step}th")
        ax.set_xlabel(f"{n} names, every {ordinal} written", fontsize=8, color="#555555")


def _trim(ax: Axes, side: float, pad: float = 0.12) -> None:
    """A figure just large enough for cells of `side` by `side` inches, the names, the colour bar and a title."""
    figure = ax.figure
    inches = figure.dpi_scale_trans.inverted()
    everything, cells = ax.get_tightbbox().transformed(inches), ax.get_window_extent().transformed(inches)
    left, below = cells.x0 - everything.x0 + pad, cells.y0 - everything.y0 + pad
    beside, above = everything.x1 - cells.x1 + pad, max(everything.y1 - cells.y1, 0.3) + pad
    width, height = left + side + beside, below + side + above
    figure.set_size_inches(width, height)
    ax.set_position((left / width, below / height, side / width, side / height))


def _short(name: str, longest: int = 28) -> str:
    """Start and end: names of one kind often differ in their last characters alone."""
    return name if len(name) <= longest else f"{name[: longest - 13]}…{name[-12:]}"


def _write_numbers(ax: Axes, R, colours) -> None:
    """In each cell, white on dark; and thin lines between the cells."""
    n = len(R)
    cell = min(ax.get_window_extent().width, ax.get_window_extent().height) / ax.figure.dpi / n
    size = min(9.0, 20.0 * cell)
    luminance = colours[..., :3] @ [0.299, 0.587, 0.114]
    for i in range(n):
        for j in range(n):
            if i != j:
                dark = luminance[i, j] < 0.58
                text = f"{R[i, j]:.2f}".replace("-0.00", "0.00").replace("-", "−")
                ax.text(
                    j, i, text, ha="center", va="center", fontsize=size, color="white" if dark else "#333333"
                )
    ax.set_xticks(np.arange(n - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(n - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="minor", length=0)


def _extend(R, limit: float) -> str:
    """Which ends of the colour bar stand for more than they say."""
    off = R[~np.eye(len(R), dtype=bool)]
    below, beyond = (off < -limit).any(), (off > limit).any()
    return "both" if below and beyond else "min" if below else "max" if beyond else "neither"


def _cycle(n: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(n)]


def _spread(traces) -> float:
    """The longest run over the shortest."""
    ends = [float(x.max()) for x, _ in traces.values()]
    return max(ends) / min(ends) if min(ends) > 0 else np.inf
