"""What `problem.explain()` returns: a table of solvers and reasons."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """`rows`: (solver, one-line summary, None or the sentence with which it refuses), fastest first."""

    model: str
    rows: tuple[tuple[str, str, str | None], ...]

    @property
    def chosen(self) -> str | None:
        """The solver that solver="auto" starts with."""
        return next((name for name, _, refusal in self.rows if refusal is None), None)

    def verdicts(self) -> list[tuple[str, str, str]]:
        """(solver, "chosen" | "possible" | "refused", reason)."""
        return [
            (name, "refused", refusal)
            if refusal is not None
            else (name, "chosen" if name == self.chosen else "possible", summary)
            for name, summary, refusal in self.rows
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _, _ in self.rows)
        lines = [f"{name:<{width}}  {verdict:<8}  {reason}" for name, verdict, reason in self.verdicts()]
        return "\n".join([self.model, "", *lines])

    __repr__ = __str__
