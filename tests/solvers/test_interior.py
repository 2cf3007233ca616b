"""Interior points for losses of two slopes: their system, their way to the optimum, and what happens where they lose it."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.multipliers import interior
from mtldsl.solvers.multipliers.central_systems import CentralSystem
from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.features import FeatureTask
from mtldsl.solvers.multipliers.interior import Interior, has_interior
from mtldsl.solvers.multipliers.run import Run
from tests.models import shared
from tests.solvers.test_multipliers import LAYOUTS, LOSSES, by_newton_steps_alone, problem_of


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("density", [None, 0.5], ids=["dense", "sparse"])
@pytest.mark.parametrize("n, d", [(30, 7), (7, 30), (9, 9)])
def test_the_system_is_solved_by_its_smaller_side(n, d, density, intercept, monkeypatch):
    monkeypatch.setattr("mtldsl.solvers.multipliers.central_systems._COPIED", 40)
    rng = np.random.default_rng(1)
    X = rng.normal(2.0, 1.0, (n, d))
    X = X if density is None else sparse.csr_array(X * (rng.random(X.shape) < density))
    tasks = mtl.Tasks.shared(X, rng.normal(size=(n, 2)))
    W = mtl.Weights(tasks, intercept=intercept)
    (loss,) = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.l1_norm(W)).form().losses
    designs = Designs(loss)
    X = designs.inputs_of(0)
    X = X.toarray() if sparse.issparse(X) else np.array(X)
    X = X if designs.means is None else X - designs.means[:, 0]
    E, K = rng.uniform(1e-3, 10.0, n), rng.uniform(1e-3, 10.0, d)
    g, h, c = rng.normal(size=n), rng.normal(size=d), 0.7
    system = CentralSystem(designs, 0)
    system.factor(E, K)
    du, dw, db = system.solve(g, h, c)
    np.testing.assert_allclose(X @ dw + db - E * du, g, atol=1e-8)
    np.testing.assert_allclose(X.T @ du + K * dw, h, atol=1e-8)
    assert db == 0.0 if not intercept else du.sum() == pytest.approx(c, abs=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("penalty", ["l1", "elastic", "ridge"])
def test_products_fall_to_zero_and_equations_hold(loss, layout, penalty):
    """The optimality conditions themselves, at the point that a run of its own ends at."""
    run = Run(problem_of(loss, layout, penalty, True).form(), 1e-8, None)
    points = Interior(run.designs, run.scores, run.part)
    for _ in range(40):
        points.goes_on = points.mu > 1e-10
        if not points.goes_on.any():
            break
        points.step()
    designs, pair = run.designs, points.of_loss
    z = designs.forward(points.W, points.b)
    np.testing.assert_allclose(z - run.scores.kink, pair.up - pair.down, atol=1e-7)
    stationary = designs.adjoint(points.u) + run.part.ridge * points.W + points.r
    np.testing.assert_allclose(stationary, 0.0, atol=1e-7)
    np.testing.assert_allclose(designs.sums(points.u), 0.0, atol=1e-7)
    assert (points.mu <= 1e-10).all()
    assert (np.abs(points.r) <= run.part.l1 + 1e-12).all()
    assert (points.u >= run.scores.low - 1e-12).all() and (points.u <= run.scores.high + 1e-12).all()


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_beside_nonnegative_weights(ridge):
    tasks = shared(7, n=30)
    W = mtl.Weights(tasks, intercept=True)
    penalty = mtl.l1_norm(W) + ridge * mtl.ridge(W) if ridge else mtl.l1_norm(W)
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + penalty, [W >= 0])
    form = problem.form()
    run = Run(form, 1e-8, None)
    assert run.has_interior
    solution = problem.solve(solver="multipliers", tol=1e-8)
    expected = problem.solve(solver="cvxpy", tol=1e-7).objective
    assert solution.objective == pytest.approx(expected, rel=2e-7)
    assert (solution.blocks["W"] >= 0.0).all()


def test_weights_that_are_zero_are_so_exactly(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 30)) * np.geomspace(0.01, 100.0, 30)
    Y = X[:, 15:18] @ rng.normal(size=(3, 2)) / 10.0 + 0.1 * rng.normal(size=(80, 2))
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + 30.0 * mtl.l1_norm(W))
    loose, close = (problem.solve(solver="multipliers", tol=tol).blocks["W"] for tol in (1e-4, 1e-8))
    by_newton_steps_alone(monkeypatch)
    expected = problem.solve(solver="multipliers", tol=1e-8).blocks["W"]
    np.testing.assert_array_equal(close != 0.0, expected != 0.0)
    assert np.count_nonzero(loose) <= 1.2 * np.count_nonzero(expected) < 0.6 * expected.size


def test_weak_penalties_that_fit_every_sample():
    """Fewer samples than features and a penalty of a thousandth: every residual is zero in the end."""
    rng = np.random.default_rng(3)
    X = sparse.random(40, 200, 0.1, random_state=4, format="csr")
    tasks = mtl.Tasks.shared(X, rng.normal(size=(40, 1)))
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.quantile_loss(W, tasks, q=0.3) + 1e-4 * mtl.l1_norm(W))
    solution = problem.solve(solver="multipliers", tol=1e-8)
    assert solution.status == "optimal" and solution.iterations < 50
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-8).objective, rel=1e-6)


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, FloatingPointError, None])
def test_newton_steps_take_over_where_interior_points_lose_their_way(error, monkeypatch):
    problem = problem_of("hinge", "shared", "l1", True)
    expected = problem.solve(solver="multipliers", tol=1e-8).objective

    def step(self, first=Interior.step):
        if self.iterations < 4:
            first(self)
        elif error is None:  # nothing moves any more
            self.since += 1
        else:
            raise error("lost")

    monkeypatch.setattr(Interior, "step", step)
    solution = problem.solve(solver="multipliers", tol=1e-8)
    assert solution.status == "optimal" and solution.objective == pytest.approx(expected, rel=2e-8)


def test_sets_that_outgrow_their_use_leave_it_to_interior_points(monkeypatch):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(30, 120)), rng.normal(size=(30, 2))
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.l1_norm(W))
    expected = problem.solve(solver="multipliers", tol=1e-8).objective
    monkeypatch.setattr("mtldsl.solvers.multipliers.designs._MANY", 50)
    monkeypatch.setattr(interior, "_LIGHT", 0.0)
    monkeypatch.setattr("mtldsl.solvers.multipliers.run._FEW_FEATURES", 1.1)
    monkeypatch.setattr("mtldsl.solvers.multipliers.run._FEW_DENSE", 10.0)
    monkeypatch.setattr(FeatureTask, "is_outgrown", property(lambda self: len(self.rows) > 20))
    seen = []
    monkeypatch.setattr(
        Run,
        "by_features",
        lambda self, *rest, first=Run.by_features: seen.append(first(self, *rest)) or seen[-1],
    )
    solution = problem.solve(solver="multipliers", tol=1e-8)
    assert seen == [None] and solution.objective == pytest.approx(expected, rel=2e-8)


def test_where_newton_steps_go_first():
    """Many rows, of which few stand at kinks in the end; tasks that are tied; entries without an interval."""

    def answer(n, d, penalty, density=None):
        rng = np.random.default_rng(0)
        X = (
            rng.normal(size=(n, d))
            if density is None
            else sparse.random(n, d, density, random_state=0, format="csr")
        )
        tasks = mtl.Tasks.shared(X, rng.normal(size=(n, 2)))
        W = mtl.Weights(tasks)
        run = Run(mtl.minimize(mtl.absolute_loss(W, tasks) + penalty(W)).form(), 1e-6, None)
        return has_interior(run.designs, run.part)

    assert answer(50, 5, mtl.l1_norm) and answer(40, 300, mtl.l1_norm)
    assert not answer(20_000, 10, mtl.l1_norm)
    assert not answer(3000, 3000, mtl.l1_norm, 1e-3)
    assert not answer(50, 5, mtl.l21_norm)
    some = np.ones((5, 2))
    some[0] = 0.0
    assert not answer(50, 5, lambda W: mtl.l1_norm(W, weights=some) + mtl.ridge(W))


@pytest.mark.parametrize("coefficient", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_raw_inputs_far_from_the_equations_at_first(coefficient, scale, monkeypatch):
    """Counts, some columns constant, and a loss so heavy that the first multipliers are far too large: no other method takes over."""
    rng = np.random.default_rng(6)
    X = rng.poisson(4.0, size=(150, 40)) * 1.0
    X[:, :3] = 0.0
    X *= scale
    Y = np.where(X[:, 3:7] @ rng.normal(size=(4, 3)) > rng.normal(size=3), 1.0, -1.0)
    Y[:2] = [[1.0], [-1.0]]
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    monkeypatch.setattr(Run, "run", lambda *_: pytest.fail("interior points gave up"))
    problem = mtl.minimize(coefficient * mtl.hinge_loss(W, tasks) + mtl.l1_norm(W))
    assert problem.solve(solver="multipliers", tol=1e-8).status == "optimal"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tasks_in_groups_are_solved_as_all_together(layout, monkeypatch):
    problem = problem_of("hinge", layout, "elastic", True)
    together = problem.solve(solver="multipliers", tol=1e-8)
    monkeypatch.setattr(interior, "_TOGETHER", 100.0)
    by_groups = problem.solve(solver="multipliers", tol=1e-8)
    assert by_groups.status == "optimal"
    assert by_groups.objective == pytest.approx(together.objective, rel=2e-8)


@pytest.mark.parametrize("loss", ["hinge_loss", "absolute_loss"])
def test_newton_steps_go_on_from_a_solution_nearby(loss, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 10))
    Z = X @ rng.normal(size=(10, 2)) + rng.normal(size=(700, 2))
    tasks = mtl.Tasks.shared(X, np.sign(Z) if loss == "hinge_loss" else Z)
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(10.0)
    problem = mtl.minimize(getattr(mtl, loss)(W, tasks) + lam * mtl.ridge(W))
    monkeypatch.setattr(interior, "_HEAVY", 1e4)
    far, asked = Run.by_interior_points, []
    monkeypatch.setattr(Run, "by_interior_points", lambda *a: asked.append(1) or far(*a))
    first = problem.solve(solver="multipliers", tol=1e-7)
    lam.value = 8.0
    cold = problem.solve(solver="multipliers", tol=1e-7)
    assert len(asked) == 2
    warm = problem.solve(solver="multipliers", tol=1e-7, warm_start=first)
    assert warm.status == "optimal" and len(asked) == 2
    assert warm.objective == pytest.approx(cold.objective, rel=3e-7)
    monkeypatch.setattr("mtldsl.solvers.multipliers.run._STEPS_OF_NEIGHBOUR", 1)
    again = problem.solve(solver="multipliers", tol=1e-7, warm_start=first)
    assert again.status == "optimal" and len(asked) == 3  # after too many steps
    zero = {name: 0.0 * block for name, block in first.blocks.items()}
    assert problem.solve(solver="multipliers", tol=1e-7, warm_start=zero).status == "optimal"
    assert len(asked) == 4  # from far away
