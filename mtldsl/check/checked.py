"""What a problem asks of the independent reference: the formulation to take away, and a second opinion on a solution."""

from __future__ import annotations

from typing import Any

from mtldsl.errors import ModelError
from mtldsl.solution.solution import Solution
from mtldsl.values.number import quoted

__all__ = ["Checked", "require_solution"]


class Checked:
    """Part of `Problem`."""

    form: Any
    parameters: Any
    _last: Solution | None

    def to_cvxpy(self, at: Solution | None = None):
        """The reference formulation as a cvxpy model: `.problem`, and `.variables` by block name.

        at : of a model that is not convex, the solution at which it is made so: learned matrices are kept, and functions of the
             spectrum replaced by convex ones that touch them there from above. ModelError without it.

        Structured hinges of more than 40 samples have too many planes to state: then `.problem` is a relaxation until the
        model's own `solve()`, which adds planes until none is violated.
        """
        from mtldsl.check.touching import stated
        from mtldsl.reference.compile import to_cvxpy

        require_solution(at, "to_cvxpy(at)")
        return to_cvxpy(stated(self.form(), at))

    def cross_check(self, solution: Solution | None = None, **options):
        """Solve with the independent reference too and compare; see `mtldsl.check.cross_check.cross_check`.

        A model that is not convex is compared block by block. The solution keeps what came of it as `solution.cross_check`.
        """
        from mtldsl.check.cross_check import cross_check

        require_solution(solution, "cross_check(solution)")
        solution = solution if solution is not None else self._fresh()
        problem: Any = self  # which this part of it does not know
        found = cross_check(problem, solution, **options)
        if solution is not None:
            solution.cross_check = found
        return found

    def _fresh(self) -> Solution | None:
        """The last solution, where the parameters have not changed since."""
        if self._last is not None and self._last.parameters == {p.name: p.value for p in self.parameters}:
            return self._last
        return None


def require_solution(value, typed: str) -> None:
    if value is not None and not isinstance(value, Solution):
        raise ModelError(
            f"{quoted(value)} is a {type(value).__name__}, not a Solution",
            term=typed,
            write_instead="write what solve() returned",
        )
