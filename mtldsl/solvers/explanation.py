"""What `problem.explain()` returns: a table of solvers and reasons."""

from __future__ import annotations

from dataclasses import dataclass

from mtldsl.solvers.registry import Answer

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """`answers`: what every solver says, in the order in which solver="auto" tries those that accept."""

    model: str
    answers: tuple[Answer, ...]

    @property
    def chosen(self) -> str | None:
        """The solver that solver="auto" starts with."""
        return next((answer.name for answer in self.answers if answer.refusal is None), None)

    def verdicts(self) -> list[tuple[str, str, str]]:
        """(solver, "chosen" | "possible" | "refused", reason)."""
        rows = []
        for answer in self.answers:
            if answer.refusal is not None:
                rows.append((answer.name, "refused", answer.refusal))
                continue
            verdict = "chosen" if answer.name == self.chosen else "possible"
            rows.append(
                (answer.name, verdict, answer.summary + (f"; {answer.yields}" if answer.yields else ""))
            )
        return rows

    def __str__(self) -> str:
        width = max(len(answer.name) for answer in self.answers)
        lines = [f"{name:<{width}}  {verdict:<8}  {reason}" for name, verdict, reason in self.verdicts()]
        return "\n".join([self.model, "", *lines])

    __repr__ = __str__
