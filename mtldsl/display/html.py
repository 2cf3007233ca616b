"""A panel as a piece of HTML: it stands on its own in a notebook, light or dark, and inside a page."""

from __future__ import annotations

import base64
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape as escaped
from io import BytesIO
from typing import Any, NamedTuple

from mtldsl.display.math import mathml, words_mathml
from mtldsl.display.sections import NEUTRAL, Formula, Panel, Table, visible


def escape(text: str) -> str:
    """Text inside a tag, its control characters spelled out."""
    return escaped(visible(str(text), kept="\n"))


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
    return f"<style>{_style()}</style>{inside(panel)}"


def inside(panel: Panel, heading: bool = True) -> str:
    """The same without the style, for a page that has it."""
    top = f'<span class="title">{escape(panel.title)}</span>' if heading else ""
    if panel.verdict:
        top += f'<span class="verdict {escape(panel.tone)}">{escape(panel.verdict)}</span>'
    top += f"<span>{escape(panel.lead)}</span>" if panel.lead else ""
    parts = [f"<div>{top}</div>"] if top else []
    if panel.formula is not None:
        parts.append(_formula(panel.formula))
    if panel.facts:
        rows = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
            for name, value in panel.facts
        )
        parts.append(_scrolled(f'<table class="facts"><tbody>{rows}</tbody></table>'))
    if panel.text:
        parts.append(f"<pre>{escape(panel.text)}</pre>")
    parts += [_table(table) for table in panel.tables]
    parts += [f"<p>{escape(note)}</p>" for note in panel.notes]
    for one in panel.folded:
        parts.append(f"<details><summary>{escape(one.title)}</summary>{inside(one, heading=False)}</details>")
    return f'<div class="mtldsl-panel">{"".join(parts)}</div>'


def _table(table: Table) -> str:
    """Columns of numbers are aligned to the right; words are broken in columns of long ones alone."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.head)
    numbers = [all(_NUMBER.fullmatch(cell) for cell in column) and any(column) for column in columns]
    long = [
        any(len(word) > SETTINGS.whole_characters for cell in column for word in cell.split())
        for column in columns
    ]
    kinds = [
        ' class="number"' if number else ' class="long"' if breaks else ""
        for number, breaks in zip(numbers, long, strict=True)
    ]
    head = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(table.head, kinds, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    hint = _hint(table, columns, numbers)
    return hint + _scrolled(f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")


def _hint(table: Table, columns, numbers: Sequence[bool]) -> str:
    """A line above a table that a narrow screen does not show whole, or no screen."""
    width = 0
    for name, column, number in zip(table.head, columns, numbers, strict=True):
        longest = max(map(len, (name, *column)))
        width += 2 + (longest if number else min(longest, SETTINGS.wrapped_characters))
    if width - len(columns) <= SETTINGS.phone_characters:
        return ""
    limits = (SETTINGS.tablet_characters, SETTINGS.laptop_characters, SETTINGS.desk_characters)
    kind = ("", " wide", " wider", " widest")[sum(width > limit for limit in limits)]
    return f'<p class="hint{kind}">This table scrolls sideways →</p>'


def _formula(formula: Formula) -> str:
    lines = "".join(
        f'<tr><th scope="row">{escape(words)}</th><td>{mathml(latex)}</td></tr>'
        for words, latex in formula.lines
    )
    shown = _scrolled(f'<table class="formula"><tbody>{lines}</tbody></table>')
    if not formula.where:
        return shown
    rows = "".join(
        f'<tr><th scope="row">{mathml(latex)}</th><td>{words_mathml(words)}</td></tr>'
        for latex, words in formula.where
    )
    return shown + "<p>where</p>" + _scrolled(f'<table class="formula"><tbody>{rows}</tbody></table>')


def _scrolled(table: str) -> str:
    """A table that is wider than the page scrolls by itself."""
    return f'<div class="scroll">{table}</div>'


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
    foot: str = ""


def html_page(page: Page) -> str:
    """The page as HTML, with style, pictures and formulas inside."""
    found = template("page.html.jinja")
    return found.render(page=page, style=_style(), panel=_panel, breakable=_breakable)


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


def _panel(panel: Panel):
    from markupsafe import Markup

    return Markup(inside(panel, heading=bool(panel.title)))


def _breakable(title: str):
    """The title as HTML: a word of several capitals, as names of classes are, may break before one."""
    from markupsafe import Markup

    return Markup(re.sub("(?<=[a-z])(?=[A-Z])", "<wbr>", escaped(visible(title))))


def _style() -> str:
    return template("panel.css.jinja").render()


@cache
def template(name: str) -> Any:
    """A jinja template that stands beside this file; what it is given is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mtldsl", "display"),
        autoescape=True,
        undefined=StrictUndefined,
        # text with its control characters spelled out; HTML as it is
        finalize=lambda value: visible(value, kept="\n") if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
