"""A picture of cross-validation: how well every value of a parameter predicts rows that were not learned on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.pictures.axes import COLOURS, GREY, axes_for, plain
from mtldsl.pictures.figure import read_logs
from mtldsl.values.number import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cross_validation"]

#: Cells of a map that have their number written in, along one side.
_WRITTEN = 9


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
        one at that of the one-standard-error rule. Two or more are a map, a cell a point: the last parameter across, a ring around the best.

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
        _curve(found, ax, title is not None)
    else:
        width, height = len(list(dict.fromkeys(p[-1] for p in found.points))), len(_rows(found))
        ax = axes_for(ax, float(np.clip(0.6 * width + 3.0, 5.0, 10.0)), float(np.clip(0.45 * height + 1.8, 3.0, 9.0)))  # fmt: skip
        _map(found, ax)
        at = ", ".join(f"{name} = {value:.3g}" for name, value in zip(found.names, best, strict=True))
        title = f"best: {at}" if title is None else title
    return plain(ax, title)


def _measured(found: Any) -> str:
    return f"{found.metric} ({'higher' if found.higher_is_better else 'lower'} is better)"


def _curve(found: Any, ax: Axes, titled: bool) -> None:
    values = np.array([value for (value,) in found.points])
    order = np.argsort(values)
    values, mean, se = values[order], found.mean[order], np.nan_to_num(found.se[order])
    for k, scores in enumerate(found.scores[:, order]):
        ax.plot(values, scores, color=GREY, linewidth=0.7, alpha=0.6, label="folds" if k == 0 else None)
    ax.fill_between(values, mean - se, mean + se, color=COLOURS[0], alpha=0.2, linewidth=0)
    ax.plot(
        values, mean, color=COLOURS[0], linewidth=1.8, marker="o", markersize=4, label="mean ± standard error"
    )
    rules = [(found.best_value, "best", "-")]
    if found.one_se_value == found.best_value:
        rules = [(found.best_value, "best, one standard error too", "-")]
    else:
        rules.append((found.one_se_value, "one standard error", "--"))
    for value, said, style in rules:
        ax.axvline(value, color=COLOURS[1], linewidth=1.4, linestyle=style, zorder=0, label=f"{said}: {value:.3g}")  # fmt: skip
    _scale(values, ax)
    ax.set_xlabel(found.names[0])
    ax.set_ylabel(_measured(found))
    # above the picture, where no curve runs through it; below it where a title stands there
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.16)} if titled else {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}  # fmt: skip
    ax.legend(frameon=False, fontsize=9, ncols=2, **where)


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
    if max(table.shape) <= _WRITTEN:
        for (i, j), mean in np.ndenumerate(table):
            if np.isfinite(mean):
                red, green, blue, _ = shown.cmap(shown.norm(mean))
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
                ax.text(j, i, f"{mean:.3g}", ha="center", va="center", fontsize=9, color="white" if dark else "black")  # fmt: skip
    row, column = rows.index(found.best[:-1]), inner.index(found.best[-1])
    ring = {"markerfacecolor": "none", "markeredgecolor": COLOURS[1], "markeredgewidth": 2.5}
    ax.plot(column, row, marker="o", markersize=30 if max(table.shape) <= _WRITTEN else 12, linestyle="none", **ring)  # fmt: skip
    ax.spines[["left", "bottom"]].set_visible(False)
