"""Accelerated proximal gradient: its smooth part, its optimality, and what it refuses."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.proximal_gradient import SOLVER
from mtldsl.solvers.smooth_part import GramPart, ImagePart, smooth_part
from tests.models import separate, shared

rng = np.random.default_rng(0)


def squared(tasks, **options):
    W = mtl.Weights(tasks)
    return mtl.minimize(3 * mtl.squared_loss(W, tasks, **options) + mtl.l21_norm(W)).form()


@pytest.mark.parametrize(
    "tasks",
    [
        shared(1),
        shared(1, sample_weights=True),
        shared(1, missing=0.3),
        separate(1),
        separate(2, density=0.5),
    ],
    ids=["shared", "weighted", "missing", "separate", "sparse"],
)
def test_gram_and_images_are_the_same_function(tasks):
    form = squared(tasks, mean=True)
    gram, image = GramPart(form.losses[0], form), ImagePart(form, [])
    x, y = ({"W": rng.normal(size=form.shapes["W"])} for _ in range(2))
    gradients = []
    for part in (gram, image):
        at_x, at_y = part.images(x), part.images(y)
        gradients.append(part.gradient(at_x, x)["W"])
        excess, _ = part.excess(at_y, y, at_x, x, part.gradient(at_x, x))
        z_x, z_y = (form.losses[0].value(form.losses[0].predictions(point)) for point in (x, y))
        by_hand = z_y - z_x - np.vdot(gradients[-1], y["W"] - x["W"])
        assert excess == pytest.approx(by_hand, rel=1e-9)
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-10, atol=1e-10)
    # the largest eigenvalue, by a dense Hessian built column by column
    size = x["W"].size
    zero = {"W": np.zeros_like(x["W"])}
    base = image.gradient(image.images(zero), zero)["W"].ravel()
    columns = []
    for j in range(size):
        e = {"W": np.eye(size)[j].reshape(x["W"].shape)}
        columns.append(image.gradient(image.images(e), e)["W"].ravel() - base)
    largest = np.linalg.eigvalsh(np.array(columns)).max()
    assert gram.lipschitz() == pytest.approx(largest, rel=1e-10)
    assert 0.5 * largest <= image.lipschitz() <= largest * (1 + 1e-9)


def test_the_gram_is_used_where_it_is_smaller():
    assert isinstance(smooth_part(squared(shared(1, n=40)), []), GramPart)
    wide = mtl.Tasks.shared(rng.normal(size=(5, 30)), rng.normal(size=(5, 2)))
    assert isinstance(smooth_part(squared(wide), []), ImagePart)


def test_optimality_conditions_by_hand():
    """Multi-task lasso: on rows that are used the pull is exactly lam W_r / ||W_r||, elsewhere it is at most lam."""
    tasks = shared(3, n=40)
    W, lam = mtl.Weights(tasks), 4.0
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W)).solve(
        solver="proximal_gradient", tol=1e-12
    )
    Y = tasks.targets.reshape(tasks.n_tasks, -1).T
    pull = tasks.X.T @ (Y - tasks.X @ solution.W)
    used = np.linalg.norm(solution.W, axis=1) > 0
    assert 0 < used.sum() < used.size
    rows = solution.W[used]
    np.testing.assert_allclose(
        pull[used], lam * rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-4
    )
    assert np.linalg.norm(pull[~used], axis=1).max() <= lam * (1 + 1e-6)


def test_a_step_from_far_away_survives_an_overflow():
    """exp overflows on the first trial steps of a Poisson model with large inputs; backtracking must get over it."""
    counts = rng.poisson(3.0, size=(20, 2)).astype(float)
    tasks = mtl.Tasks.shared(300 * rng.normal(size=(20, 3)), counts)
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.poisson_loss(W, tasks) + 5.0 * mtl.l1_norm(W))
    solution = problem.solve(solver="proximal_gradient", tol=1e-6)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-6).objective, rel=2e-6)


def test_smooth_penalties_go_where_they_cost_least():
    tasks = shared(4)
    W = mtl.Weights(tasks)
    laplacian = 2 * np.eye(4) - np.ones((4, 4)) / 2
    alone = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.graph_laplacian(W, laplacian) + mtl.ridge(W))
    beside = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.graph_laplacian(W, laplacian) + mtl.l1_norm(W))
    through = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.ridge(W @ np.ones((4, 2))) + mtl.l1_norm(W))
    for problem in (alone, beside, through):
        assert SOLVER.refuses(problem.form()) is None
        solution = problem.solve(solver="proximal_gradient", tol=1e-8)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(problem.solve(solver="admm", tol=1e-8).objective, rel=2e-8)


@pytest.mark.parametrize(
    "build, pieces",
    [
        (lambda W, t: mtl.absolute_loss(W, t) + mtl.ridge(W), ["absolute_loss(W, tasks)", "not smooth"]),
        (
            lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W) + 2 * mtl.trace_norm(W),
            ["l1_norm", "2 * trace_norm(W)", "singular values"],
        ),
        (
            lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W @ np.ones((4, 2))),
            ["l1_norm(W @ array(4, 2))", "linear image"],
        ),
    ],
)
def test_refusals_name_the_term(build, pieces):
    tasks = shared(5)
    refusal = SOLVER.refuses(mtl.minimize(build(mtl.Weights(tasks), tasks)).form())
    for piece in pieces:
        assert piece in refusal


def test_large_models_go_to_proximal_gradient_and_explain_says_why():
    wide = mtl.Tasks.shared(
        rng.normal(size=(6, 3000)),
        np.where(rng.normal(size=(6, 2)) > 0, 1.0, -1.0) * [[1], [-1], [1], [1], [1], [-1]],
    )
    W = mtl.Weights(wide)
    explanation = mtl.minimize(mtl.logistic_loss(W, wide) + mtl.trace_norm(W)).explain()
    assert explanation.chosen == "proximal_gradient"
    assert (
        "3000 unknowns a task" in dict((name, reason) for name, _, reason in explanation.verdicts())["admm"]
    )
