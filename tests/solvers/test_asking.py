"""Solvers are asked as late as possible, and in the order that explain() shows."""

import pytest

from mtldsl.solvers.registry import answers, candidates
from tests.models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_the_order_is_that_of_explain(name):
    form = MODELS[name]().form()
    assert candidates(form) == [one.name for one in answers(form) if one.refusal is None]
