"""The base of what notebooks show."""

from __future__ import annotations

from mtldsl.shown.panel import Panel

__all__ = ["Shown"]


class Shown:
    """An object that notebooks show as its panel."""

    def _panel(self) -> Panel:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from mtldsl.shown.html import html_of

        return html_of(self._panel())
