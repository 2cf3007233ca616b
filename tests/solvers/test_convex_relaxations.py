"""Multi-stage convex relaxation of penalties of sizes beside losses with kinks."""

from itertools import cycle, pairwise

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers.concave_sizes import CappedL1, MinimaxConcavePenalty, SmoothlyClippedDeviation
from tests.loops import for_each

ATOMS = [
    MinimaxConcavePenalty(0.7), MinimaxConcavePenalty(), SmoothlyClippedDeviation(), SmoothlyClippedDeviation(1.4),
    CappedL1(0.3),
]  # fmt: skip
PENALTIES = {
    "mcp": lambda W: mtl.mcp(W, 2.0),
    "scad": mtl.scad,
    "capped_l1": lambda W: mtl.capped_l1(W, 0.5),
    "mcp of rows": lambda W: mtl.mcp(W, 2.0, rows=True),
    "capped_l1 of rows": lambda W: mtl.capped_l1(W, 0.5, rows=True),
    "capped_l1 of differences, beside a norm": lambda W: (
        mtl.capped_l1(W[:, 1:] - W[:, :-1], 0.5) + 0.5 * mtl.l21_norm(W)
    ),
}
LOSSES = ["hinge_loss", "absolute_loss"]


def model(loss, penalty, seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    Y = X @ (rng.normal(size=(8, 3)) * (rng.random((8, 1)) < 0.5)) + 0.5 * rng.normal(size=(n, 3))
    tasks = mtl.Tasks.shared(X, np.where(Y > 0, 1.0, -1.0) if loss == "hinge_loss" else Y)
    W = mtl.Weights(tasks, intercept=seed % 2 == 1)
    return mtl.minimize(getattr(mtl, loss)(W, tasks) + 4.0 * PENALTIES[penalty](W))


@for_each("atom", ATOMS, ids=str)
def test_the_tangent_of_a_penalty_lies_above_it(atom):
    s, t = np.meshgrid(np.linspace(0.0, 6.0, 121), np.linspace(0.0, 6.0, 121))
    above = atom.penalty(s) + atom.slope(s) * (t - s)
    assert (above >= atom.penalty(t) - 1e-12).all()
    assert atom.slope(np.zeros(1)) == 1.0 and atom.slope(np.array([6.0])) == 0.0


@pytest.mark.slow
@for_each("loss, penalty", zip(cycle(LOSSES[::-1]), PENALTIES, strict=False))
def test_stages_end_where_slopes_stay(loss, penalty):
    """Plain cvxpy: the end is the optimum of the convex model whose norm has the slopes there as weights; and the objective never rose."""
    import cvxpy as cp

    seed = len(penalty) % 2
    problem = model(loss, penalty, seed)
    found = problem.solve()
    assert found.status == "stationary" and found.solver == "alternating"
    values = [row["objective"] for row in found.history]
    assert all(later <= before * (1 + 1e-9) for before, later in pairwise(values))
    form = problem.form()
    W, b = cp.Variable((8, 3)), cp.Variable((1, 3)) if seed else np.zeros((1, 3))
    tasks = form.losses[0].tasks
    labels = tasks.targets.reshape(3, -1).T
    z = tasks.X @ W + np.ones((60, 1)) @ b
    losses = {
        "hinge_loss": lambda: cp.sum(cp.pos(1 - cp.multiply(labels, z))),
        "absolute_loss": lambda: cp.sum(cp.abs(z - labels)),
    }
    total = losses[loss]()
    for f in form.functions:
        A = W @ np.eye(3) if f.map.shape == (8, 3) else W[:, 1:] - W[:, :-1]
        if not hasattr(f.atom, "slope"):
            total += f.coefficient * cp.sum(cp.norm(A, axis=1))
            continue
        slopes = f.coefficient * f.atom.slope(f.atom.sizes(f.map.forward(found.blocks)))
        total += (
            slopes.ravel() @ cp.norm(A, axis=1) if f.atom.rows else cp.sum(cp.multiply(slopes, cp.abs(A)))
        )
    problem_of_stage = cp.Problem(cp.Minimize(total))
    best = problem_of_stage.solve(solver="CLARABEL")
    W.value = found.W
    if seed:
        b.value = found.intercept[None, :]
    assert float(total.value) == pytest.approx(best, rel=1e-6)


def test_smooth_losses_are_left_to_admm():
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(30, 4)), rng.normal(size=(30, 2)))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.mcp(W))
    assert problem.solve().solver == "admm"
    with pytest.raises(mtl.ModelError, match="is not convex"):
        problem.solve("alternating")


@for_each("options", [{"method": "joint"}, {"w_step": "sylvester"}, {"continuation": 2}])
def test_options_of_learned_matrices_are_refused(options):
    with pytest.raises(mtl.errors.SolverError, match="relaxed in stages, which have no such option"):
        model("hinge_loss", "mcp").solve("alternating", **options)
