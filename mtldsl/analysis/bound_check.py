"""What is told of a bound that somebody computed by hand."""

from __future__ import annotations

from dataclasses import dataclass

from mtldsl.shown.panel import GOOD, WRONG, Panel, Table
from mtldsl.shown.shown import Shown

__all__ = ["ALLOWED", "BoundCheck", "Condition"]

#: What a condition may fail by, relative to the size of what it is about: more than rounding, less than a mistake.
ALLOWED = 1e-9


@dataclass(frozen=True)
class Condition:
    """One condition of a bound. by : how much it fails by, relative; where: the entry at which it fails most, in words."""

    what: str
    by: float
    where: str = ""

    @property
    def holds(self) -> bool:
        return self.by <= ALLOWED


@dataclass(frozen=True, repr=False)
class BoundCheck(Shown):
    """What multipliers prove, as `problem.check_bound` found it.

    value      : the dual value; -inf where a condition fails
    conditions : all of them, those that fail with where and by how much
    repaired   : the bound that these multipliers prove once they are made feasible, and how that was done, in sentences; None where it
                 was not asked for
    hint       : what these multipliers may have been meant to be
    """

    model: str
    value: float
    conditions: tuple[Condition, ...]
    repaired: float | None = None
    repairs: tuple[str, ...] = ()
    hint: str = ""

    @property
    def holds(self) -> bool:
        """Whether every condition holds, so that `value` is a lower bound on the optimum."""
        return all(one.holds for one in self.conditions)

    def rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                one.what,
                "holds" if one.holds else "FAILS",
                "" if one.holds else f"{one.by:.1e}",
                "" if one.holds else one.where,
            )
            for one in self.conditions
        ]

    def __str__(self) -> str:
        lines = [
            f"{verdict:<6} {what}" + (f": by {by}, at {where}" if by else "")
            for what, verdict, by, where in self.rows()
        ]
        return "\n".join([*lines, *self._verdict()])

    __repr__ = __str__

    def _verdict(self) -> list[str]:
        said = (
            f"All conditions hold: no weights have an objective below {self.value:.10g}."
            if self.holds
            else "A condition fails: these multipliers, as they are, prove nothing."
        )
        mended = (
            []
            if self.repaired is None
            else [*self.repairs, f"So mended, they prove the bound {self.repaired:.10g}."]
        )
        return [said, *mended, *([self.hint] if self.hint else [])]

    def _panel(self) -> Panel:
        return Panel(
            "Bound", "proven" if self.holds else "nothing proven", GOOD if self.holds else WRONG, self._verdict()[0],
            tables=[Table(("condition", "", "by", "where"), self.rows())], notes=self._verdict()[1:],
            folded=[Panel("The model", text=self.model)],
        )  # fmt: skip
