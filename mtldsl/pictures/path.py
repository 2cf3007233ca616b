"""A picture of a path: what the weights are at every value of a parameter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.pictures.axes import GREY, axes_for, cycle, plain
from mtldsl.pictures.figure import read_logs, short
from mtldsl.values.number import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_path"]

#: Features that have a colour and a name; the others are grey.
_NAMED = 6


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
    named = strongest[:_NAMED] if len(strongest) > _NAMED else np.arange(len(strongest))
    ax = axes_for(ax)
    for j in strongest[: _NAMED - 1 : -1] if len(strongest) > _NAMED else ():
        ax.plot(values, heights[:, j], color=GREY, linewidth=0.7, alpha=0.6)
    for j, colour in zip(named, cycle(len(named)), strict=True):
        ax.plot(
            values,
            heights[:, j],
            color=colour,
            linewidth=1.8,
            marker="o",
            markersize=3,
            label=short(names[j]),
        )
    if (values > 0).all() and values.max() > 10 * values.min():
        ax.set_xscale("log")
        read_logs(ax.xaxis)
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
