"""One loss of one weight matrix, or one sentence that names what is wrong, in the words of the model."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.compile.single_block import single_block, single_loss

RNG = np.random.default_rng(0)
TASKS = mtl.Tasks.shared(RNG.normal(size=(8, 4)), RNG.normal(size=(8, 3)))


def form(make, **options):
    W, V = mtl.Weights(TASKS, **options), mtl.Weights(TASKS, name="V")
    return mtl.minimize(make(W, V)).form()


def squares(W):
    return mtl.squared_loss(W, TASKS)


def test_the_facts():
    facts = single_block(form(lambda W, V: squares(W) + mtl.l1_norm(W) + mtl.ridge(W), intercept=True))
    assert (facts.name, facts.shape, facts.intercept) == ("W", (4, 3), "W.intercept")
    assert facts.loss.typed == "squared_loss(W, tasks)" and facts.losses == (facts.loss,)
    assert single_block(form(lambda W, V: squares(W) + mtl.l1_norm(W))).intercept is None


WRONG = {
    "no loss": (lambda W, V: 0 * squares(W) + mtl.ridge(W), "no loss has a coefficient > 0."),
    "two losses": (
        lambda W, V: squares(W) + mtl.absolute_loss(W, TASKS) + mtl.ridge(W),
        "absolute_loss(W, tasks) is a second loss.",
    ),
    "two matrices": (
        lambda W, V: squares(W) + mtl.ridge(W) + mtl.ridge(V),
        "there are 2 weight matrices: W, V.",
    ),
    "combinations": (
        lambda W, V: mtl.squared_loss(2 * W, TASKS) + mtl.ridge(W),
        "squared_loss(2 * W, tasks) is a loss of combinations of W, not of W itself.",
    ),
    "part": (
        lambda W, V: squares(W) + mtl.l1_norm(W[1:]),
        "l1_norm(W[1:, :]) is not a function of W itself.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong(case):
    make, said = WRONG[case]
    assert single_block(form(make)) == said


@pytest.mark.parametrize(
    ("make", "ways"),
    [
        (lambda W: W, ["itself", "multiple", "affine", "anything"]),
        (lambda W: 2 * W, ["multiple", "affine", "anything"]),
        (lambda W: 2 * W - np.ones((4, 3)), ["affine", "anything"]),
        (lambda W: W[1:], ["anything"]),
    ],
)
def test_how_functions_may_read_the_matrix(make, ways):
    model = form(lambda W, V: squares(W) + mtl.l1_norm(make(W)))
    accepted = [
        way
        for way in ("itself", "multiple", "affine", "anything")
        if not isinstance(single_block(model, way), str)
    ]
    assert accepted == ways


def test_several_losses_where_they_are_allowed():
    model = form(lambda W, V: squares(W) + mtl.absolute_loss(W, TASKS) + mtl.ridge(W))
    assert len(single_block(model, several_losses=True).losses) == 2
    assert single_loss(model) == "absolute_loss(W, tasks) is a second loss."
    one = form(lambda W, V: squares(W) + mtl.ridge(W))
    assert single_loss(one) is one.losses[0]
