"""Every solver of the registry obeys the laws of solvers (mtldsl/testing/laws/solvers.py)."""

import pytest

from mtldsl.solvers.registry import SOLVERS
from mtldsl.testing.check import solver_cases
from mtldsl.testing.law import LawError
from mtldsl.testing.laws.solvers import LAWS

CASES = {name: solver_cases(name) for name in SOLVERS}


@pytest.mark.parametrize("name", SOLVERS)
def test_laws(name):
    """Every model that it takes is tried, though one before it fails."""
    broken = []
    for case in CASES[name]:
        try:
            case.run()
        except LawError as error:
            broken.append(str(error))
    assert not broken, "\n\n".join(broken)


def test_every_law_is_checked_on_some_solver():
    run = {id(case.law) for cases in CASES.values() for case in cases}
    assert len(LAWS) >= 6 and {law.name for law in LAWS if id(law) not in run} == set()
