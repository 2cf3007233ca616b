"""Every solver of the registry obeys the laws of solvers (mtldsl/testing/laws/solvers.py)."""

import pytest

from mtldsl.solvers.registry import SOLVERS
from mtldsl.testing.check import solver_cases
from mtldsl.testing.laws.solvers import LAWS

CASES = [pytest.param(case, id=case.id) for name in SOLVERS for case in solver_cases(name)]


@pytest.mark.parametrize("case", CASES)
def test_law(case):
    case.run()


def test_every_law_is_checked_on_some_solver():
    run = {id(case.values[0].law) for case in CASES}
    assert len(LAWS) >= 6 and {law.name for law in LAWS if id(law) not in run} == set()
