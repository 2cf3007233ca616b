"""MCP, SCAD and capped l1 in models: stationary answers that the reference's tangents agree with, and steps past a kink."""

import numpy as np

import mtldsl as mtl
from mtldsl.certificates.stationarity import finite_steps
from mtldsl.language.vocabulary import WORDS
from tests.loops import for_each
from tests.models import shared, with_weights
from tests.pairs import pairwise_cases

LOSSES = {"squared_loss": "real", "huber_loss": "real", "square_root_loss": "real", "logistic_loss": "sign"}
PENALTIES = {"mcp": {"gamma": 0.7}, "scad": {"a": 2.5}, "capped_l1": {"tau": 0.4}}


@for_each("word, rows, loss", pairwise_cases(PENALTIES, [False, True], LOSSES))
def test_a_stationary_point_is_found(word, rows, loss):
    tasks, W = with_weights(shared(1, n=60, labels=LOSSES[loss]), intercept=True)
    penalty = 2.0 * WORDS[word](W, **PENALTIES[word], rows=rows)
    problem = mtl.minimize(WORDS[loss](W, tasks) + penalty + 0.01 * mtl.ridge(W))
    solution = problem.solve()
    assert solution.status == "stationary" and problem.cross_check(solution).agrees


def test_a_finite_step_sees_past_the_kink():
    """An entry just above the cap may have no gradient, and yet gain by a step below it."""
    tasks, W = with_weights(mtl.Tasks.shared(np.eye(2), [[1.0], [3.0]]))
    form = mtl.minimize(mtl.squared_loss(W, tasks) + 9.0 * mtl.capped_l1(W, tau=1.001)).form()
    at = {"W": np.array([[1.002], [3.0]])}
    value, blocks = finite_steps(form, at, 1e-6)
    assert value < form.value(at) - 0.1 and blocks["W"][0, 0] < 1.0
