"""A page: one HTML file that needs nothing else, readable on a phone and on paper, in light and dark."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

from mtldsl.shown.html import STYLE, inside
from mtldsl.shown.panel import NEUTRAL, Panel
from mtldsl.system.visible import visible

__all__ = ["Figure", "Number", "Page", "Section", "figure", "html_page"]


@dataclass(frozen=True)
class Figure:
    """A picture as SVG, in words for those who do not see it, and with a line below it."""

    svg: bytes
    alt: str
    caption: str = ""

    @property
    def source(self) -> str:
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode()


@dataclass(frozen=True)
class Section:
    """A heading, a few sentences, panels and pictures; `folded`: opened on demand, and on paper only where it is `printed`."""

    heading: str
    text: Sequence[str] = ()
    panels: Sequence[Panel] = ()
    figures: Sequence[Figure] = ()
    folded: bool = False
    printed: bool = False


class Number(NamedTuple):
    """One of the few numbers that matter: its name, its value, what it means, and whether it is good news."""

    name: str
    value: str
    means: str = ""
    tone: str = NEUTRAL


@dataclass(frozen=True)
class Page:
    """What stands on top: a title, a verdict with its tone and sentences, the few numbers that matter; then sections."""

    title: str
    verdict: str
    tone: str = NEUTRAL
    lead: Sequence[str] = ()
    numbers: Sequence[Number] = ()
    sections: Sequence[Section] = ()
    foot: str = ""


def html_page(page: Page) -> str:
    """The page as HTML, with style, pictures and formulas inside."""
    return _template().render(page=page, style=STYLE, panel=_panel)


def figure(draw, alt: str, caption: str = "") -> Figure:
    """The picture on the Axes that `draw()` returns. MissingExtraError where matplotlib is not installed."""
    from mtldsl.system.pyplot import pyplot

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


def _panel(panel: Panel):
    from markupsafe import Markup

    return Markup(inside(panel, heading=bool(panel.title)))


def _visible(value):
    """Text with its control characters spelled out; HTML as it is."""
    return visible(value, kept="\n") if type(value) is str else value


@cache
def _template():
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mtldsl", "shown"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")
