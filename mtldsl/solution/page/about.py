"""What a solution was made from and how to make it again: data, model, solvers, versions."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from mtldsl.shown.page import Section
from mtldsl.shown.panel import Panel
from mtldsl.solution.page.facts import Facts
from mtldsl.solvers.explanation import Explanation
from mtldsl.solvers.registry import answers
from mtldsl.solvers.solve import seen_by_solvers
from mtldsl.tasks.panel import panel_of

__all__ = ["check", "data", "model", "packages", "repeat", "validation"]

#: What the numbers depend on.
_PACKAGES = ("mtldsl", "numpy", "scipy", "cvxpy", "numba", "scikit-learn")


def check(facts: Facts) -> Section | None:
    """The independent reference beside the solver."""
    found = facts.cross_check
    if found is None:
        return None
    text = [
        "cvxpy solved the same model from formulas of its own, and both answers were held against each other."
    ]
    if not hasattr(found, "agrees"):
        return Section("Cross-check", [f"There is none: {found}."])
    return Section("Cross-check", text, [found._panel()])


def validation(facts: Facts) -> Section | None:
    """How a parameter was chosen."""
    found = facts.cross_validation
    if found is None:
        return None
    drawn = facts.pictures((
        found.plot, f"{found.metric} over the values of {', '.join(found.names)}; the same numbers stand in the table", ""
    ))  # fmt: skip
    return Section("How the parameter was chosen", panels=[found._panel()], figures=drawn)


def data(facts: Facts) -> Section:
    """The training rows, and those that are scored."""
    panels = []
    trained = facts.solution.trained_on
    if trained is not None:
        panels.append(_titled(panel_of(trained), "Learned from"))
    if facts.tasks is not None:
        panels.append(_titled(panel_of(facts.tasks), "Scored on"))
    text = [] if panels else ["The solution was read from a file, which does not hold its data."]
    return Section("The data", text, panels)


def model(facts: Facts) -> Section:
    """The formula, its symbols, and the model as typed."""
    solution = facts.solution
    typed = "\n".join(
        [solution.model, *(f"{name} = {value:g}" for name, value in solution.parameters.items())]
    )
    panel = Panel("", formula=solution.formula, folded=[Panel("As typed", text=typed)])
    if solution.formula is None:
        panel = Panel("", text=typed)
    return Section("The model", panels=[panel])


def solvers(facts: Facts) -> Section | None:
    """Which solver was taken, and why not the others; opened on demand."""
    solution = facts.solution
    if solution.proof is None:
        return None
    found = Explanation(solution.model, tuple(answers(seen_by_solvers(solution.proof.form))))
    return Section(
        "Solvers", [f"Solved by {solution.solver}: {solution.reason}"], [found._panel()], folded=True
    )


def repeat(facts: Facts) -> Section:
    """Versions, the data's fingerprint, and the line to type."""
    solution = facts.solution
    rows = packages()
    rows += [
        ("tolerance", f"{solution.tol:g}"),
        ("objective", f"{solution.objective:.10g}"),
        ("solver", solution.solver),
    ]
    if facts.training is not None:
        rows.append(("data (SHA-256)", facts.training.fingerprint()))
    typed = facts.repeat or f'problem.solve(solver="{solution.solver}", tol={solution.tol:g})'
    return Section("How to repeat it", panels=[Panel("", facts=rows, text=typed)], folded=True, printed=True)


def packages() -> list[tuple[str, str]]:
    """(name, version) of what the numbers depend on."""
    rows = [("Python", platform.python_version()), ("system", platform.platform())]
    for name in _PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return rows


def _titled(panel: Panel, title: str) -> Panel:
    return Panel(title, lead=panel.lead, facts=panel.facts, tables=panel.tables, notes=panel.notes)
