"""The relative duality gap, with the absolute one beside it."""

from __future__ import annotations

__all__ = ["Gap"]


class Gap(float):
    """The relative duality gap as a number, with the absolute one beside it: `gap`, `gap.absolute`, `gap.relative`."""

    absolute: float

    def __new__(cls, relative: float, absolute: float):
        self = super().__new__(cls, relative)
        self.absolute = float(absolute)
        return self

    def __getnewargs__(self):
        return float(self), self.absolute

    @property
    def relative(self) -> float:
        return float(self)
