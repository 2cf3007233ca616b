"""A panel as a piece of HTML: it stands on its own in a notebook, light or dark, and inside a page."""

from __future__ import annotations

import base64
import json
import re
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from html import escape
from io import BytesIO
from typing import Any, NamedTuple

from markupsafe import Markup

from mtldsl.display.math import mathml, words_mathml
from mtldsl.display.sections import NEUTRAL, Panel, Table, visible

_NUMBER = re.compile(r"[-+−±]?[\d.,]+(e[-+]?\d+)?( ?%| ?s)?( \[[-+−\d., ]+\])?|nan|[-+]?inf|-|")


@dataclass(frozen=True)
class HtmlSettings:
    """Characters beside each other that fit, and pictures that stay as wide as they were drawn."""

    phone_characters: int = 48  # of a table, on a phone, where a column has one of space
    tablet_characters: int = 96  # of a table, on a tablet
    laptop_characters: int = 132  # of a table, in the 62 rem that a small screen has
    desk_characters: int = 185  # of a table, in the 86 rem of a page on any wider screen
    wrapped_characters: int = 14  # of a column of words, which has several lines beyond
    whole_characters: int = 15  # of a word, which may be broken beyond
    # of a picture beyond which a phone shows it in its own size: 1.4 times the 28 rem of others
    wide_points: float = 470.0


SETTINGS = HtmlSettings()


def html_of(panel: Panel) -> str:
    """The panel with its style."""
    return f"<style>{_style()}</style>{template('panel.html.jinja').module.show(panel)}"


def _layout(table: Table) -> tuple[list[str], str | None]:
    """(the class of every column, that of a line above a table which some screens do not show whole; None for no line).

    Columns of numbers are aligned to the right; words are broken in columns of long ones alone.
    """
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.head)
    kinds, width = [], -len(columns)
    for name, column in zip(table.head, columns, strict=True):
        longest = max(map(len, (name, *column)))
        if all(_NUMBER.fullmatch(cell) for cell in column) and any(column):
            kinds.append("number")
        else:
            words = (word for cell in column for word in cell.split())
            kinds.append("long" if any(len(word) > SETTINGS.whole_characters for word in words) else "")
            longest = min(longest, SETTINGS.wrapped_characters)
        width += 2 + longest
    if width <= SETTINGS.phone_characters:
        return kinds, None
    limits = (SETTINGS.tablet_characters, SETTINGS.laptop_characters, SETTINGS.desk_characters)
    return kinds, ("", " wide", " wider", " widest")[sum(width + len(columns) > limit for limit in limits)]


# --------------------------------------------------------------------------------------------------------------
# A page: one HTML file that needs nothing else, readable on a phone and on paper, in light and dark.


@dataclass(frozen=True)
class Figure:
    """A picture as SVG, in words for those who do not see it, and with a line below it."""

    svg: bytes
    alt: str
    caption: str = ""

    @property
    def is_wide(self) -> bool:
        """Tell whether its letters are too small to read where it is made as narrow as a phone lets it be."""
        width = re.search(rb'<svg[^>]* width="([\d.]+)pt"', self.svg)
        return width is not None and float(width[1]) > SETTINGS.wide_points

    @property
    def source(self) -> str:
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode()


@dataclass(frozen=True)
class PageSection:
    """A heading, a few sentences, panels and pictures; `folded`: opened on demand, and on paper only where it is `printed`."""

    heading: str
    text: Sequence[str] = ()
    panels: Sequence[Panel] = ()
    figures: Sequence[Figure] = ()
    folded: bool = False
    printed: bool = False


class KeyFigure(NamedTuple):
    """One of the few numbers that matter: its name, its value, what it means, and whether it is good news."""

    name: str
    value: str
    means: str = ""
    tone: str = NEUTRAL


@dataclass(frozen=True)
class Page:
    """Top of a page: a title, a verdict with its tone and sentences, the few numbers that matter; then sections."""

    title: str
    verdict: str
    tone: str = NEUTRAL
    lead: Sequence[str] = ()
    numbers: Sequence[KeyFigure] = ()
    sections: Sequence[PageSection] = ()


def html_page(page: Page) -> str:
    """The page as HTML, with style, pictures and formulas inside."""
    found = template("page.html.jinja")
    return found.render(page=page, style=_style(), today=date.today())


def figure(draw, alt: str, caption: str = "") -> Figure:
    """The picture on the Axes that `draw()` returns. MissingExtraError where matplotlib is not installed."""
    from mtldsl.display.pictures.axes import pyplot

    plt = pyplot()
    # letters stay letters: small, selectable, and in the reader's own font
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mtldsl", "font.family": "sans-serif"}):
        ax: Any = draw()
        file = BytesIO()
        with warnings.catch_warnings():
            # of fonts on this machine, while the page's reader has others
            warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
            ax.figure.savefig(file, format="svg", bbox_inches="tight", transparent=True, metadata={"Date": None, "Creator": None})  # fmt: skip
        plt.close(ax.figure)
    return Figure(file.getvalue(), alt, caption)


def _breakable(title: str) -> Markup:
    """The title as HTML: a word of several capitals, as names of classes are, may break before one."""
    return Markup(re.sub("(?<=[a-z])(?=[A-Z])", "<wbr>", escape(visible(title))))


def _style() -> str:
    return template("panel.css.jinja").render()


@cache
def template(name: str, room: str = "display") -> Any:
    """A jinja template that stands in a room; in HTML what it is given is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mtldsl", room),
        autoescape=name.endswith(".html.jinja"),
        undefined=StrictUndefined,
        # text with its control characters spelled out; HTML as it is
        finalize=lambda value: visible(value, kept="\n") if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    own: dict[str, Any] = {
        "layout": _layout,
        "breakable": _breakable,
        "mathml": lambda latex: Markup(mathml(latex)),
        "words_mathml": lambda words: Markup(words_mathml(words)),
        "toml": lambda value: json.dumps(value, ensure_ascii=False),
        "shell": shlex.quote,
    }
    environment.filters |= own
    return environment.get_template(name)
