"""Every solver, with every option, on every small model that it takes, beside the reference.

python -m mtldsl.cli.solver_matrix > docs/solver_matrix.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mtldsl.certificates.certificate import objective_scale
from mtldsl.data.tasks import Tasks
from mtldsl.display.html import template
from mtldsl.errors import SolverError
from mtldsl.extending.laws.solver_laws import MODELS as KINDS
from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.named_models import MODELS as NAMED
from mtldsl.problems.named_models import model
from mtldsl.problems.problem import Problem
from mtldsl.solvers.multistart import seen_by_solvers
from mtldsl.solvers.routes import LAST, SOLVERS, get_solver, refusal


@dataclass(frozen=True)
class SolverMatrixSettings:
    """Accuracy of the solves, and sizes of their tables."""

    gap_tol: float = 1e-6  # relative duality gap that is asked for
    # relative difference of a certified objective and the reference's that is agreement: both gaps, with room
    agreement_tol: float = 1e-5
    unproven_tol: float = 1e-3  # that of a point without the proof
    cell_words: int = 25  # words of a cell of the table


SETTINGS = SolverMatrixSettings()


#: solver -> ways to call it beside its defaults. Every option is in one of them, but those of LEFT_OUT
ROUTES: dict[str, list[dict]] = {
    "dual_ascent": [{"pull": 0.5}, {"shrinking": False}, {"seed": 1}],
    "clique_generation": [{"method": "spdca"}, {"seed": 1}, {"cliques_per_round": 1}],
    "admm": [
        {"relaxation": 1.0}, {"anderson_memory": 0}, {"pull": 0.3}, {"inner_steps": 20}, {"inner": "frank_wolfe"},
    ],
    "alternating": [
        *({"method": name} for name in ("newton", "block", "joint", "lbfgs", "algorithm_1", "flip_flop")),
        *({"w_step": name} for name in ("simultaneous_diagonalization", "sylvester", "closed_form", "gradient_descent", "conjugate_gradient")),
        {"continuation": 2},
    ],
    "cvxpy": [{"backend": name} for name in ("clarabel", "scs", "osqp")],
}  # fmt: skip

#: option -> why it is in no way: it changes what is solved, or not what comes of it
LEFT_OUT = {
    "checkpoint": "where a run is written to",
    "progress": "what is said",
    "max_edges": "it ends the run sooner",
    "graph_selection": "it ends the run sooner",
    "sigma": "smoothing of method='spdca', which has one",
    "fudge": "of method='flip_flop', which has one",
}

#: Ways that may end without the proof that is asked for: as papers print them, for study; and OSQP, whose first-order steps do not settle every
#: linear program. `alternating` is for learned matrices: where the model is convex, its multipliers prove less than the others'.
FOR_STUDY = (
    {"inner": "frank_wolfe"}, {"method": "algorithm_1"}, {"method": "block"}, {"method": "flip_flop"}, {"method": "spdca"}, {"backend": "osqp"},
)  # fmt: skip
#: Ways of `alternating` that need a minute and more where the model is convex, for which it is not made.
SLOW_WHERE_CONVEX = ({"w_step": "gradient_descent"},)


@dataclass(frozen=True)
class SolveOutcome:
    """Outcome of one call.

    difference : (objective - the reference's), relative; of a model that is not convex, the most that cvxpy gains in any block
    """

    model: str
    solver: str
    options: dict
    status: str
    difference: float

    @property
    def certified(self) -> bool:
        return self.status in ("optimal", "stationary")

    @property
    def agrees(self) -> bool:
        """Certified, and the reference says the same; without the proof, where that may be, near it."""
        if self.certified:
            return abs(self.difference) <= SETTINGS.agreement_tol
        is_allowed = self.options in FOR_STUDY or self.solver == "alternating"
        return is_allowed and abs(self.difference) <= SETTINGS.unproven_tol


def _data(labels: str) -> Tasks:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 4))
    Z = X @ rng.normal(size=(4, 1)) @ rng.normal(size=(1, 3)) + 0.3 * rng.normal(size=(14, 3))
    return Tasks.shared(X, np.where(np.median(Z, axis=0) <= Z, 1.0, -1.0) if labels == "sign" else Z)


def _named(each: NamedModel) -> Problem:
    """On small data, with numbers with which no weights are zero."""
    values = {name: 0.9 - 0.2 * i for i, name in enumerate(each.parameters)} | {"r": 1}
    if each.edges is not None and "mu" in values:
        values["mu"] = 0.02
    signs = "hinge" in each.statement or "logistic" in each.statement or each.edges is not None
    given: dict[str, Any] = {name: values[name] for name in each.parameters} | dict(each.defaults)
    return model(each.name, _data("sign" if signs else "real"), **given)


@cache
def models() -> dict[str, Problem]:
    """Those of the catalogue (`mtldsl models`), and small ones of every kind."""
    return {each.name: _named(each) for each in NAMED} | {name: make() for name, make in KINDS.items()}


def takes(solver: str, name: str) -> bool:
    return refusal(get_solver(solver), seen_by_solvers(models()[name].form())) is None


@cache
def _optimum(name: str) -> float:
    """Optimum of a convex model, by the reference."""
    return models()[name].solve(LAST, tol=1e-7).objective


def cells(
    name: str, without: Sequence[dict] = (), study_limits: dict | None = None
) -> Iterator[SolveOutcome]:
    """One a call that is not refused, `without` some ways; the reference's own ways are among them. Ways for study have 5 s, or limits of their own."""
    problem = models()[name]
    for solver in SOLVERS:
        if not takes(solver, name):
            continue
        for options in ({}, *ROUTES.get(solver, ())):
            if options in without or (problem.is_convex and options in SLOW_WHERE_CONVEX):
                continue
            limits: dict[str, Any] = {"max_seconds": 60.0}
            if options in FOR_STUDY:
                limits = study_limits or {"max_seconds": 5.0}
            try:
                solution = problem.solve(solver, tol=SETTINGS.gap_tol, **limits, **options)
            except SolverError as error:
                if any(repr(value) in str(error) for value in options.values()):
                    continue  # this way of it does not fit, which it says
                raise
            if problem.is_convex:
                size = max(abs(_optimum(name)), objective_scale(problem.form()))
                difference = (solution.objective - _optimum(name)) / size
            else:
                check: Any = problem.cross_check(solution)  # block by block
                difference = max((abs(row.difference) for row in check.blocks), default=0.0)
            yield SolveOutcome(name, solver, options, solution.status, float(difference))


def markdown() -> str:
    """The page: models that the same solvers take are one row."""
    found = {name: list(cells(name)) for name in models()}
    all_cells = [cell for row in found.values() for cell in row]
    takers: dict[tuple[str, ...], list[str]] = {}
    for name, row in found.items():
        takers.setdefault(tuple(dict.fromkeys(cell.solver for cell in row)), []).append(name)
    rows = [
        (part, solvers, max(abs(cell.difference) for name in part for cell in found[name] if cell.certified))
        for solvers, names in takers.items()
        for part in _cells_of(names)
    ]
    by_solver: dict[str, list[SolveOutcome]] = {}
    for cell in all_cells:
        if not cell.certified:
            by_solver.setdefault(cell.solver, []).append(cell)
    unproven = [
        (solver, Counter(map(_typed, on)), max(abs(cell.difference) for cell in on))
        for solver, on in by_solver.items()
    ]
    return template("solver_matrix.md.jinja", "cli").render(
        n_models=len(found), n_ways=sum(map(len, ROUTES.values())), n_solves=len(all_cells),
        n_unproven=sum(map(len, by_solver.values())), rows=rows, unproven=unproven, settings=SETTINGS,
    )  # fmt: skip


def _typed(cell: SolveOutcome) -> str:
    """The options as they are typed, in Markdown."""
    typed = ", ".join(f"{name}={value!r}" for name, value in cell.options.items())
    return f"`{typed}`" if typed else "as it is"


def _cells_of(names: Sequence[str]) -> list[list[str]]:
    """The names in cells of a table, each of few enough words.

    >>> len(_cells_of(["squares of separate inputs, a ridge and an intercept"] * 3))
    2
    """
    parts: list[list[str]] = [[]]
    for name in names:
        if parts[-1] and len(" ".join([*parts[-1], name]).split()) > SETTINGS.cell_words:
            parts.append([])
        parts[-1].append(name)
    return parts


if __name__ == "__main__":
    print(markdown(), end="")
