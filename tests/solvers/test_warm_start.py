"""Where a solver starts: from a solution, from blocks, and from nothing else."""

from dataclasses import dataclass

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers.solver import Point
from mtldsl.solvers.warm_start import starting_point
from tests.models import shared


@pytest.fixture(scope="module")
def form():
    tasks = shared(1, n=20)
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W)).form()


@dataclass
class Solved:
    blocks: dict
    state: Point | None


def test_whatever_has_blocks_and_a_point_is_a_start(form):
    blocks = {name: np.full(shape, 0.5) for name, shape in form.shapes.items()}
    last = Point(blocks, loss_duals=[np.ones(3)], state={"step": 0.1})
    start = starting_point(form, Solved(blocks, last))
    assert start.loss_duals is last.loss_duals and start.state == {"step": 0.1}
    for name, block in blocks.items():
        np.testing.assert_array_equal(start.blocks[name], block)
    assert starting_point(form, Solved(blocks, None)).loss_duals is None


@pytest.mark.parametrize(
    "wrong", [3, "W", {1: np.ones(2)}, Point({})], ids=["number", "text", "names", "point"]
)
def test_anything_else_is_refused(form, wrong):
    """A solver's own point has blocks and a state too, but of another kind."""
    with pytest.raises(SolverError, match=r"warm_start=.*write a Solution, or a dict"):
        starting_point(form, wrong)


def test_the_references_solutions_start_others_and_a_path_goes_on_from_them():
    """Where every fast solver stalls, a point of a path is cvxpy's, and the next one starts there."""
    rng = np.random.default_rng(1)
    tasks = mtl.Tasks.shared(rng.normal(size=(30, 4)), np.sign(rng.normal(size=(30, 2))))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + lam * mtl.l1_norm(W) + mtl.trace_norm(W))
    reference = problem.solve("cvxpy")
    assert problem.solve(warm_start=reference).status == "optimal"
    path = list(problem.path(lam, [3.0, 2.0, 1.0], solver="cvxpy"))
    assert [one.status for one in path] == ["optimal"] * 3
    assert path[-1].objective == pytest.approx(reference.objective, rel=1e-6)
    assert problem.cross_validate(lam, [2.0, 1.0], folds=2, solver="cvxpy").best_value in (1.0, 2.0)
