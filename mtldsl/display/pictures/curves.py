"""Pictures of curves: a path of weights, a cross-validation, and the convergence of a solve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.display.pictures.axes import (
    COLOURS,
    GREY,
    axes_for,
    cycle,
    plain,
    read_logs,
    short,
    write_numbers,
)
from mtldsl.errors import DataError
from mtldsl.utils.validation import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------------------
# A picture of cross-validation: how well every value of a parameter predicts rows that were not learned on.


@dataclass(frozen=True)
class CurveSettings:
    """Sizes up to which things are named."""

    annotated_cells: int = 9  # cells of a map along one side, up to which each has its number written in
    named_features: int = 6  # features that have a colour and a name; the others are grey


SETTINGS = CurveSettings()


def plot_cross_validation(found: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """The score over the values of one parameter, with its standard error over the folds; of two parameters, a map of means.

    Parameters
    ----------
    found : what `problem.cross_validate(...)` returned
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        One parameter is a curve: the mean over folds with a band of one standard error, every fold in grey, a line at the best value and
        one at that of the one-standard-error rule. With a proof it is the band that all values lie in, and the fits.
        Two or more are a map, a cell a point: the last parameter across, a ring around the best.

    Raises
    ------
    DataError
        For something else than a cross-validation, and where no fold has a number.
    MissingExtraError
        Where matplotlib is not installed.

    Source: the one-standard-error rule is that of Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984.

    Examples
    --------
    >>> import numpy as np, mtldsl as mtl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> tasks = mtl.Tasks.shared(X, X[:, :2] + rng.normal(size=(60, 2)))
    >>> W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
    >>> ax = plot_cross_validation(problem.cross_validate(lam, [30.0, 10.0, 1.0], folds=3))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('lam', 'r2 (higher is better)')
    """
    if not all(hasattr(found, name) for name in ("points", "scores", "names", "mean")):
        raise DataError(
            f"plot_cross_validation({quoted(found)})",
            write_instead="give what problem.cross_validate(...) returned",
        )
    best = found.best  # says so where no fold has a number
    if len(found.names) == 1:
        ax = axes_for(ax)
        draw = _curve if getattr(found, "proof", None) is None else _band
        draw(found, ax)
        _scale(np.array([value for (value,) in found.points]), ax)
        ax.set(xlabel=found.names[0], ylabel=_measured(found))
        # above the picture, where no curve runs through it; below it where a title stands there
        where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.16)} if title is not None else {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}  # fmt: skip
        ax.legend(frameon=False, fontsize=9, ncols=2, **where)
    else:
        width, height = len(list(dict.fromkeys(p[-1] for p in found.points))), len(_rows(found))
        ax = axes_for(ax, float(np.clip(0.6 * width + 3.0, 5.0, 10.0)), float(np.clip(0.45 * height + 1.8, 3.0, 9.0)))  # fmt: skip
        _map(found, ax)
        at = ", ".join(f"{name} = {value:.3g}" for name, value in zip(found.names, best, strict=True))
        title = f"best: {at}" if title is None else title
    return plain(ax, title)


def _measured(found: Any) -> str:
    return f"{found.metric} ({'higher' if found.higher_is_better else 'lower'} is better)"


def _curve(found: Any, ax: Axes) -> None:
    values = np.array([value for (value,) in found.points])
    order = np.argsort(values)
    values, mean, se = values[order], found.mean[order], np.nan_to_num(found.se[order])
    for k, scores in enumerate(found.scores[:, order]):
        ax.plot(values, scores, color=GREY, linewidth=0.7, alpha=0.6, label="folds" if k == 0 else None)
    ax.fill_between(values, mean - se, mean + se, color=COLOURS[0], alpha=0.2, linewidth=0)
    ax.plot(
        values, mean, color=COLOURS[0], linewidth=1.8, marker="o", markersize=4, label="mean ± standard error"
    )
    rules = [(found.best_value, "best", "-"), (found.one_se_value, "one standard error", "--")]
    if found.one_se_value == found.best_value:
        rules = [(found.best_value, "best, one standard error too", "-")]
    for value, said, style in rules:
        ax.axvline(value, color=COLOURS[1], linewidth=1.4, linestyle=style, zorder=0, label=f"{said}: {value:.3g}")  # fmt: skip


def _band(found: Any, ax: Axes) -> None:
    """The scores that are possible at all values, the fits, and the line that no value passes."""
    low, high, best, worst = found.proof.intervals.T
    values, top = np.array([value for (value,) in found.points]), found.mean[found._best]
    ends = np.column_stack([low, high]).ravel()
    style: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.2, "linewidth": 0}
    ax.fill_between(ends, np.repeat(worst, 2), np.repeat(best, 2), label="possible at any value", **style)
    ax.plot(values, found.mean, color=COLOURS[0], linestyle="none", marker="o", markersize=4, label="fits")
    ax.axvline(
        found.best_value, color=COLOURS[1], linewidth=1.4, zorder=0, label=f"best: {found.best_value:.3g}"
    )
    limit = top + found.proof.value * (1.0 if found.higher_is_better else -1.0)
    ax.axhline(
        limit, color="0.3", linewidth=1.2, linestyle="--", label=f"no value is better than {limit:.3g}"
    )
    # far from the best, bounds are as wide as they may be: the picture shows where scores are
    step = 0.15 * max(float(np.ptp(found.mean)), abs(limit - top), 1e-12)
    ax.set_ylim(min(found.mean.min(), limit) - step, max(found.mean.max(), limit) + step)


def _scale(values: np.ndarray, ax: Axes) -> None:
    """Values over more than a decade stand apart by their ratios."""
    positive = values[values > 0]
    if positive.size and positive.max() / positive.min() > 10:
        if (values > 0).all():
            ax.set_xscale("log")
            read_logs(ax.xaxis)
        else:
            ax.set_xscale("symlog", linthresh=positive.min())


def _rows(found: Any) -> list[tuple[float, ...]]:
    return list(dict.fromkeys(point[:-1] for point in found.points))


def _map(found: Any, ax: Axes) -> None:
    inner, rows = list(dict.fromkeys(point[-1] for point in found.points)), _rows(found)
    table = found.mean.reshape(len(rows), len(inner))
    shown = ax.imshow(table, aspect="auto", cmap="cividis" if found.higher_is_better else "cividis_r")
    ax.figure.colorbar(shown, ax=ax, label=_measured(found))
    ax.set_xticks(range(len(inner)), [f"{value:.3g}" for value in inner], rotation=45 if len(inner) > 8 else 0)  # fmt: skip
    ax.set_yticks(range(len(rows)), [", ".join(f"{value:.3g}" for value in row) for row in rows])
    ax.set_xlabel(found.names[-1])
    ax.set_ylabel(", ".join(found.names[:-1]))
    if max(table.shape) <= SETTINGS.annotated_cells:
        write_numbers(ax, np.where(np.isfinite(table), table, np.nan), shown.to_rgba(table), "{:.3g}")
    row, column = rows.index(found.best[:-1]), inner.index(found.best[-1])
    ring = {"markerfacecolor": "none", "markeredgecolor": COLOURS[1], "markeredgewidth": 2.5}
    ax.plot(column, row, marker="o", markersize=30 if max(table.shape) <= SETTINGS.annotated_cells else 12, linestyle="none", **ring)  # fmt: skip
    ax.spines[["left", "bottom"]].set_visible(False)


# --------------------------------------------------------------------------------------------------------------
# A picture of a path: what the weights are at every value of a parameter.


def plot_path(
    solutions: Iterable[Any],
    parameter: str | None = None,
    *,
    task: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Every feature's weights along a path: the norm of its row, or its weight in one task, against the parameter.

    Parameters
    ----------
    solutions : the solutions of `problem.path(lam, values)`, in any order
    parameter : the name of the parameter that changes; needed where several do
    task : the name of a task: its weights in place of norms over all tasks
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        The six features with the largest weights anywhere on the path have colours and names, the others are grey.

    Raises
    ------
    DataError
        Where there are fewer than two solutions, their weights have different shapes, or no or several parameters change.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[3.0, 0], [0, 1], [0, 0]]))
    >>> W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
    >>> ax = plot_path(problem.path(lam, [2.0, 1.0, 0.5]))
    >>> ax.get_xlabel(), len(ax.lines)
    ('lam', 3)
    """
    found = list(solutions)
    if len(found) < 2:
        raise DataError(
            f"plot_path(solutions): there are {len(found)}",
            write_instead="write the solutions of problem.path(lam, values), two at least",
        )
    shapes = {one.W.shape for one in found}
    if len(shapes) > 1:
        raise DataError(f"plot_path(solutions): their weights have different shapes, {sorted(shapes)}")
    name = _changing(found, parameter)
    order = np.argsort([one.parameters[name] for one in found], kind="stable")
    found = [found[k] for k in order]
    values = np.array([one.parameters[name] for one in found])
    heights = np.stack([_heights(one, task) for one in found])  # (values, features)
    names = found[0].feature_names or tuple(map(str, range(heights.shape[1])))
    strongest = np.argsort(-np.abs(heights).max(axis=0), kind="stable")
    named, others = strongest[: SETTINGS.named_features], strongest[SETTINGS.named_features :]
    named = named if others.size else np.sort(named)
    ax = axes_for(ax)
    ax.plot(values, heights[:, others[::-1]], color=GREY, linewidth=0.7, alpha=0.6)
    for j, colour in zip(named, cycle(len(named)), strict=True):
        style: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 3}
        ax.plot(values, heights[:, j], color=colour, label=short(names[j]), **style)
    _scale(values, ax)
    ax.set_xlabel(name)
    ax.set_ylabel("norm of a feature's weights" if task is None else f"weight in {task}")
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(ax, title)


def _heights(solution, task: str | None) -> np.ndarray:
    if task is None:
        return np.sqrt(np.einsum("jt,jt->j", solution.W, solution.W))
    if task not in solution.task_names:
        raise DataError(
            f"task={quoted(task)}: there is no such task",
            write_instead="write one of " + ", ".join(map(repr, solution.task_names[:8])),
        )
    return solution.W[:, solution.task_names.index(task)]


def _changing(solutions, parameter: str | None) -> str:
    names = list(solutions[0].parameters)
    changing = [name for name in names if len({one.parameters.get(name) for one in solutions}) > 1]
    if parameter is not None:
        if parameter not in names:
            raise DataError(
                f"parameter={quoted(parameter)}: these solutions have {', '.join(map(repr, names)) or 'no parameters'}"
            )
        return parameter
    if len(changing) != 1:
        many = f"{', '.join(changing)} change" if changing else "no parameter changes"
        raise DataError(f"plot_path(solutions): {many}; write parameter= with the one to draw against")
    return changing[0]


# --------------------------------------------------------------------------------------------------------------
# A picture of how the objective fell, one run or several.


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
    inside = [look["objective"] for looks in runs.values() for look in looks if not look.get("violation")]
    lowest = min(inside, default=np.inf)
    if lowest < best - 1e-8 * max(1.0, abs(best)):
        raise DataError(
            f"best={best!r}: a run reached {lowest:.10g}, which is lower",
            write_instead="leave best out, or give a bound",
        )
    ends = [float(x.max()) for x, _ in traces.values()]
    log_time = against == "seconds" and max(ends) > 20 * min(ends)
    ax = axes_for(ax)
    for (name, (x, objectives)), colour in zip(traces.items(), cycle(len(traces)), strict=True):
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
    if len(traces) > 1:
        ax.legend(frameon=False, fontsize=9)
    return plain(ax, title)


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
