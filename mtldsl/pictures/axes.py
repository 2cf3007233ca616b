"""What every new picture begins with: its axes, and colours that people who confuse red and green tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtldsl.errors import DataError
from mtldsl.system.pyplot import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "GREY", "axes_for", "cycle", "plain"]

#: Okabe and Ito, "Color universal design", 2008; black and yellow aside, of which one is text and the other too light for a line.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
GREY = "#8a8a8a"


def axes_for(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """These axes, or those of a new figure of so many inches, whose letters can still be read at half its width."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    elif not hasattr(ax, "plot"):
        raise DataError(f"ax={type(ax).__name__}: write matplotlib Axes, such as plt.subplots()[1]")
    return ax


def cycle(n: int) -> list[str]:
    """n colours; after the last, the first again.

    >>> cycle(7)[0] == cycle(7)[-1]
    True
    """
    return [COLOURS[i % len(COLOURS)] for i in range(n)]


def plain(ax: Axes, title: str | None = None) -> Axes:
    """No frame above and beside; the title where lines begin."""
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=12)
    return ax
