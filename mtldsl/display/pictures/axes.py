"""Axes of every new picture, and colours that people who confuse red and green tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colorbar import Colorbar
    from matplotlib.transforms import BboxBase


# --------------------------------------------------------------------------------------------------------------
# matplotlib, where it is installed: pictures need an extra.


def pyplot():
    """The module matplotlib.pyplot. MissingExtraError where there is none."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError(
            "a picture needs matplotlib, which is not installed",
            write_instead='write: pip install ".[plots]" in the checkout',
        ) from None
    return plt


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


# --------------------------------------------------------------------------------------------------------------
# What pictures share: a figure that is just large enough, and names that are not too long.


@dataclass(frozen=True)
class AxesSettings:
    """Sizes of what is written in pictures."""

    annotated_columns: int = 12  # columns of a map up to which each cell shows its number
    named_ticks: int = 40  # names along an axis up to which each is written
    letter_inches: float = 0.0079  # width of a letter at a size of one point


SETTINGS = AxesSettings()

#: Colour of text and of names in pictures of graphs and trees.
TEXT_COLOUR = "#22262b"
#: Colour of what is zero there.
FAINT_COLOUR = "#7d858f"


def box_of(ax: Axes) -> BboxBase:
    """Return what axes cover with all that stands around them, in pixels."""
    box = ax.get_tightbbox()
    assert box is not None  # the axes are visible
    return box


def inches_of(ax: Axes, box: BboxBase | None = None) -> BboxBase:
    """A box in pixels as one in inches; None: that of the axes alone."""
    box = ax.get_window_extent() if box is None else box
    return box.transformed(ax.figure.dpi_scale_trans.inverted())


def new_axes(width: float, height: float) -> Axes:
    """Axes of so many inches in a new figure with room around them, to be trimmed when they are drawn."""
    whole = width + 4.0, height + 4.0
    place = (2.0 / whole[0], 2.0 / whole[1], width / whole[0], height / whole[1])
    return pyplot().figure(figsize=whole).add_axes(place)


def trim(ax: Axes, width: float, height: float, pad: float = 0.12) -> None:
    """A figure just large enough for axes of `width` by `height` inches and what stands around them: names, a colour bar, a title."""
    from matplotlib.figure import Figure

    figure = ax.figure
    assert isinstance(figure, Figure)  # the picture's own
    everything, cells = inches_of(ax, box_of(ax)), inches_of(ax)
    left, below = cells.x0 - everything.x0 + pad, cells.y0 - everything.y0 + pad
    beside, above = everything.x1 - cells.x1 + pad, max(everything.y1 - cells.y1, 0.3) + pad
    whole = left + width + beside, below + height + above
    figure.set_size_inches(*whole)
    ax.set_position((left / whole[0], below / whole[1], width / whole[0], height / whole[1]))


def short(name: str, longest: int = 28) -> str:
    """Start and end: names of one kind often differ in their last characters alone.

    >>> short("a name that goes on and on to its end 17", 20)
    'a name th…its end 17'
    """
    if len(name) <= longest:
        return name
    end = min(12, longest // 2)
    return f"{name[: longest - end - 1]}…{name[-end:]}"


def ordinal(step: int) -> str:
    """Which names are written where `step` - 1 are left out between two.

    >>> ordinal(2), ordinal(3), ordinal(12), ordinal(21)
    ('second', 'third', '12th', '21st')
    """
    ending = "th" if step // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(step % 10, "th")
    return {2: "second", 3: "third"}.get(step, f"{step}{ending}")


def read_logs(axis: Axis) -> None:
    """Ticks of a logarithmic axis as plain numbers, as many as there is room for at half width: 1, 2, 5, 10, ... or the powers of ten alone."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    few = high < 300 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def bar_below(shades, ax: Axes, place: tuple[float, float, float, float] | None, **beside: float) -> Colorbar:
    """A flat colour bar below a drawing: at `place` of its axes, or where matplotlib finds room beside another's."""
    where: dict[str, Any] = (
        {"ax": ax, **beside, "aspect": 25} if place is None else {"cax": ax.inset_axes(place)}
    )
    bar = ax.figure.colorbar(shades, orientation="horizontal", **where)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5, length=2)
    return bar


def bar_beside(
    image, ax: Axes, own: bool, label: str, extend: str = "neither", fontsize: float | None = None
):
    """The colour bar of a matrix: as high as the cells where the figure is the picture's own; beside another's axes where matplotlib finds room."""
    place: dict[str, Any] = (
        {"cax": ax.inset_axes((1.03, 0.0, 0.04, 1.0))} if own else {"ax": ax, "fraction": 0.046, "pad": 0.04}
    )
    bar = ax.figure.colorbar(image, extend=extend, **place)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=fontsize)
    return bar


def write_names(ax: Axes, names: list[str], what: str = "names") -> None:
    """Names along both axes of a matrix, as large as there is room; of many, every second, third, ..."""
    n = len(names)
    step = -(-n // SETTINGS.named_ticks)
    at = np.arange(0, n, step)
    written = [short(names[i]) for i in at]
    size = float(np.interp(n, [12, SETTINGS.named_ticks, 120], [10, 7.5, 6.5]))
    flat = max(map(len, written)) * len(written) <= 40
    ax.set_xticks(at, written, fontsize=size, rotation=0 if flat else 90)
    ax.set_yticks(at, written, fontsize=size)
    ax.tick_params(length=0 if step == 1 else 2, pad=3)
    if step > 1:
        ax.set_xlabel(f"{n} {what}, every {ordinal(step)} written", fontsize=8, color="#555555")


def write_numbers(ax: Axes, values: np.ndarray, colours: np.ndarray, form: str) -> None:
    """Write each number in its cell, white on dark; no NaN.

    colours : (rows, columns, 4) of the cells;  form : such as "{:.2f}"
    """
    rows, columns = values.shape
    box = ax.get_window_extent()
    wide, high = (inches / ax.figure.dpi for inches in (box.width / columns, box.height / rows))
    size = min(9.0, 20.0 * wide, 40.0 * high)
    luminance = colours[..., :3] @ [0.299, 0.587, 0.114]
    for i, j in np.argwhere(~np.isnan(values)):
        text = form.format(values[i, j])
        text = text if float(text) else text.lstrip("-")
        colour = "white" if luminance[i, j] < 0.58 else "#333333"
        ax.text(j, i, text.replace("-", "−"), ha="center", va="center", fontsize=size, color=colour)
