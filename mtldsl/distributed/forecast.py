"""Forecast of the time that a solve by passes will take: from the first pass on, and better with every look."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mtldsl.utils import progress
from mtldsl.utils.progress import Listener

log = logging.getLogger("mtldsl")


@dataclass(frozen=True)
class ForecastSettings:
    """Limit of a wait: a solve that is forecast to take more than `long_seconds` says so unasked."""

    long_seconds: float = 60.0


SETTINGS = ForecastSettings()


@dataclass(eq=False)
class Forecast:
    """The hearer of a solve's passes (`system.passes`) and its listener, who adds a forecast to every record.

    After the first pass it says how long that took, how many passes the solver usually needs and what they take together: to `say`, and
    to the logger, as a warning where that is long and `say` is None. A record of a look has beside its other fields

    passes, pass_seconds      : how many there were in this solve, and what one takes, with what is computed here in between
    passes_left, seconds_left : about how many will follow, as the gap has fallen so far; at first, as the solver usually needs;
                                None where nobody can tell

    rows : of the data; tol : the gap asked for
    """

    rows: int
    tol: float
    listener: Listener | None
    say: Callable[[str], Any] | None
    solver: str = ""
    low: int = 0
    high: int = 0
    ends: list[float] = field(default_factory=list)  # the time at the end of every pass
    seconds: float = 0.0  # of the last pass
    before: int = 0  # passes of earlier solvers
    gaps: list[tuple[int, float]] = field(default_factory=list)  # (passes so far, gap) of every look
    is_told: bool = False

    # -------------------------------------------------------------------------------------- as a hearer of passes

    def expects(self, solver: str, low: int, high: int) -> None:
        """Begin with a solver."""
        self.is_told = self.is_told and solver == self.solver
        self.solver, self.low, self.high = solver, low, high
        self.before, self.gaps = len(self.ends), []
        self._tell()

    def passed(self, seconds: float) -> None:
        """Hear of a pass."""
        self.ends.append(progress.clock())
        self.seconds = seconds
        self._tell()

    def _tell(self) -> None:
        if self.is_told or not self.ends or not self.solver:
            return
        self.is_told = True
        one = f"a pass over {self.rows:,} rows took {in_words(self.seconds)}"
        if self.high == 1:
            said = f"{one}; everything else is computed here"
        else:
            some = f"{in_words(self.low * self.seconds)} to {in_words(self.high * self.seconds)}"
            said = f"{one}; {self.solver} usually needs {self.low} to {self.high} passes: {some} in all"
        if self.say is not None:
            self.say(said)
        is_long = self.high > 1 and self.high * self.seconds > SETTINGS.long_seconds
        log.log(logging.WARNING if is_long and self.say is None else logging.INFO, "%s", said)

    # -------------------------------------------------------------------------------------- as a listener of looks

    def __call__(self, record: dict[str, Any]) -> Any:
        self.gaps.append((len(self.ends) - self.before, abs(float(record["gap"]))))
        if self.listener is None:
            return None
        return self.listener(record | self._fields())

    def _fields(self) -> dict[str, Any]:
        if not self.ends:
            return {}
        one, left = self._cycle(), self._left()
        return {
            "passes": len(self.ends),
            "pass_seconds": one,
            "passes_left": left,
            "seconds_left": None if left is None else left * one,
        }

    def _cycle(self) -> float:
        """Return the seconds from the end of one pass to the end of the next, on average; the first may have made the rows."""
        if len(self.ends) < 2:
            return self.seconds
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)

    def _left(self) -> int | None:
        """Return about how many passes will follow: those in which the gap falls to tol as fast as in the later half of the looks so far.
        None where it does not fall, and there were more passes than usual.
        """
        now, gap = self.gaps[-1]
        if gap <= self.tol or self.high == 1:
            return 0
        before, wide = self.gaps[(len(self.gaps) - 1) // 2]
        falls = math.isfinite(wide) and gap < wide and now > before
        if not falls or self.tol == 0.0:
            return max((self.low + self.high) // 2 - now, 1) if now < self.high else None
        return max(math.ceil(math.log(gap / self.tol) / math.log(wide / gap) * (now - before)), 1)


def in_words(seconds: float) -> str:
    """Return a time as one reads it.

    >>> in_words(0.0421), in_words(9.44), in_words(84), in_words(5000), in_words(30000)
    ('0.042 s', '9.4 s', '84 s', '83 min', '8.3 h')
    """
    if seconds < 90.0:
        return f"{seconds:.2g} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 3 * 3600.0 else f"{seconds / 3600.0:.1f} h"
