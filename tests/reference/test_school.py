"""The reference on real data: the London School problems whose optima were established elsewhere to twelve
digits.
"""

import pytest

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.errors import DataError
from mtldsl.reference.solve import solve_reference

OPTIMA = {
    "trace_norm": (100, 725844.67783737),
    "l21_norm": (50, 708730.74427390),
    "l1_norm": (10, 729570.63966130),
}


@pytest.mark.slow
@pytest.mark.papers
@pytest.mark.parametrize("word", OPTIMA)
def test_school(word):
    try:
        tasks = datasets.load_school()
    except DataError as reason:
        pytest.skip(str(reason))
    coefficient, optimum = OPTIMA[word]
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + coefficient * getattr(mtl, word)(W))
    assert solve_reference(problem.form()).objective == pytest.approx(optimum, rel=1e-9)
