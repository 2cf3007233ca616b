"""Explanation of the choice of solver: what `problem.explain()` returns."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from mtldsl.display.displayable import Displayable
from mtldsl.display.sections import GOOD, WRONG, Panel, Table
from mtldsl.solvers.routes import RouteVerdict

#: Columns of a text that no terminal shows.
_COLUMNS = 100

#: Verdicts on a solver, in the order in which they are shown.
VERDICTS = ("chosen", "possible", "refused")

#: Words before the solvers that are for other models.
_OTHERS = "Not for this model: "


@dataclass(frozen=True)
class Explanation(Displayable):
    """`answers`: what every solver says, in the order in which solver="auto" tries those that accept.

    As text it leads with the solver that is chosen, and folds those that are for models of another kind; no line is wider than the
    terminal. `verdicts()` has every solver with its reason.
    """

    model: str
    answers: tuple[RouteVerdict, ...]
    #: where the rows are, and what moves, where they are elsewhere
    rows: str = ""

    @property
    def _accepting(self) -> list[RouteVerdict]:
        return [answer for answer in self.answers if answer.refusal is None]

    @property
    def chosen(self) -> str | None:
        """The solver that solver="auto" starts with."""
        return next((answer.name for answer in self._accepting), None)

    @property
    def why(self) -> str | None:
        """Why solver="auto" starts with it; None where no solver takes the model."""
        accepting = self._accepting
        if len(accepting) < 2:
            return "the only one that takes this model" if accepting else None
        pattern = f": {accepting[0].pattern}" if accepting[0].pattern else ""
        return f"the fastest, as measured, of the {len(accepting)} that take this model{pattern}"

    @property
    def method(self) -> str | None:
        """The method that this solver begins with; None where it has but one."""
        return next((answer.method for answer in self._accepting), None)

    def verdicts(self) -> list[tuple[str, str, str]]:
        """(solver, "chosen" | "possible" | "refused", reason)."""
        said = {
            name: "chosen" if name == self.chosen else "possible"
            for name in (one.name for one in self._accepting)
        }
        return [(one.name, said.get(one.name, "refused"), one.refusal or one.summary) for one in self.answers]

    def _rows(self) -> list[tuple[str, str, str]]:
        """The verdicts in the order in which they are shown, without the solvers that are for other models."""
        folded = {answer.name for answer in self.answers if answer.solves_only}
        rows = [row for row in self.verdicts() if row[0] not in folded]
        return sorted(rows, key=lambda row: VERDICTS.index(row[1]))

    def others(self) -> str:
        """One sentence on the solvers that are for models of another kind; "" without any."""
        return kinds_of_models((answer.name, answer.solves_only, answer.refusal) for answer in self.answers)

    def __str__(self) -> str:
        columns = shutil.get_terminal_size((_COLUMNS, 24)).columns
        rows, others = self._rows(), self.others()
        width = max((len(name) for name, _, _ in rows), default=0)
        lines = [_wrapped(line, columns, 12) for line in self.model.split("\n")] + [""]
        for name, verdict, reason in rows:
            if verdict == "chosen":
                reason += f"; {self.why}" + (f". It begins with {self.method}" if self.method else "")
            lines.append(_wrapped(f"{verdict:<8}  {name:<{width}}  {reason}", columns, width + 12))
        if self.rows:
            lines.append(_wrapped(f"Rows: {self.rows}", columns, 6))
        if others:
            lines.append(_wrapped(_OTHERS + others, columns, len(_OTHERS)))
        return "\n".join(lines)

    __repr__ = __str__

    def _panel(self) -> Panel:
        notes = [f"Rows: {self.rows}"] if self.rows else []
        others = [Panel("Solvers of other models", notes=[self.others()])] if self.others() else []
        begins = f"; begins with {self.method}" if self.method else ""
        lead = f"{self.why}{begins}" if self.chosen else "no solver takes this model"
        return Panel(
            "Solvers", self.chosen or "none", GOOD if self.chosen else WRONG, lead,
            tables=[Table(("solver", "verdict", "what it is for, or why not"), self._rows())], notes=notes, folded=others,
        )  # fmt: skip


def kinds_of_models(solvers: Iterable[tuple[str, str | None, str | None]]) -> str:
    """ "A solves only smooth models; B and C only convex models (rank(W) <= 2 is not convex)." of (name, kind, refusal).

    A kind that several solvers share is named once, with their refusal where all of them say the same.

    >>> kinds_of_models([("a", "smooth models", "f is not smooth."), ("b", None, None)])
    'a solves only smooth models.'
    """
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, kind, refusal in solvers:
        if kind:
            kinds.setdefault(kind, []).append((name, refusal or ""))
    parts = []
    for kind, found in kinds.items():
        names = [name for name, _ in found]
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        verb = "" if parts else ("solves " if len(names) == 1 else "solve ")
        shared = {refusal for _, refusal in found}
        why = f" ({shared.pop().rstrip('.')})" if len(names) > 1 and len(shared) == 1 else ""
        parts.append(f"{listed} {verb}only {kind}{why}")
    return "; ".join(parts) + "." if parts else ""


def _wrapped(line: str, columns: int, indent: int) -> str:
    """Lines of at most `columns`, broken at spaces, those after the first indented."""
    indent = min(indent, columns // 2)
    return textwrap.fill(line, columns, subsequent_indent=" " * indent, break_on_hyphens=False)
