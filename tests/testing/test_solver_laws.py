"""Every solver of the registry obeys the laws of solvers (mtldsl/extending/laws/solver_laws.py)."""

import pytest

from mtldsl.extending.checks import solver_cases
from mtldsl.extending.law import LawError
from mtldsl.extending.laws.solver_laws import LAWS
from mtldsl.solvers.routes import SOLVERS

CASES = {name: solver_cases(name) for name in SOLVERS}

#: Solvers that take seconds for a model twice, and the model that each takes longest for.
DEAR = {
    "admm": "labels that depend on each other",
    "newton_by_passes": "absolute residuals beside a ridge",
    "ascent_by_passes": "absolute residuals beside a ridge",
    "consensus": "absolute residuals beside a ridge",
    "cvxpy": "structured hinge and a ridge",
}


def is_dear(case) -> bool:
    model, _ = case.arguments.get("model", ("", None))
    twice = case.law.name == "the_same_model_gives_the_same_bits"
    return case.about in DEAR and (twice or model == DEAR[case.about])


@pytest.mark.parametrize(
    ("name", "dear"),
    [(name, False) for name in SOLVERS] + [pytest.param(name, True, marks=pytest.mark.slow) for name in DEAR],
)
def test_laws(name, dear):
    """Every model that it takes is tried, though one before it fails."""
    cases, broken = [case for case in CASES[name] if is_dear(case) == dear], []
    assert cases
    for case in cases:
        try:
            case.run()
        except LawError as error:
            broken.append(str(error))
    assert not broken, "\n\n".join(broken)


def test_every_law_is_checked_on_some_solver():
    run = {id(case.law) for cases in CASES.values() for case in cases}
    assert len(LAWS) >= 6 and {law.name for law in LAWS if id(law) not in run} == set()
