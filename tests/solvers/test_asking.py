"""Solvers are asked as late as possible, and in the order that explain() shows."""

from mtldsl.solvers.registry import answers, candidates
from tests.loops import for_each
from tests.models import MODELS


@for_each("name", MODELS)
def test_the_order_is_that_of_explain(name):
    form = MODELS[name]().form()
    assert candidates(form) == [one.name for one in answers(form) if one.refusal is None]
