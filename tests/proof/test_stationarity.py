"""What is claimed of points of models that are not convex, held to independent computations.

Minima over one block come from linear algebra written out here; the bound on the global optimum is held to many
other solves, and to a convex envelope on a grid."""

import signal

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.certificates.certificate import certify
from mtldsl.certificates.stationarity import NO_GLOBAL, finite_steps, profile_gradient, stationarity_of
from mtldsl.solvers.monitor import Monitor
from mtldsl.solvers.solver import Point
from tests.learned_models import ETA, HIGH, LOW, RHO, fetr, least
from tests.loops import for_each
from tests.models import separate
from tests.solvers.test_alternating import labels_of, of_matrix_normal, of_squares
from tests.system.test_stops import every_signal_of_a_test_is_a_first  # noqa: F401  (a fixture for every test)


def small(seed=0, n=9, d=3, m=2, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = scale * (X @ rng.normal(size=(d, m)) + 0.3 * rng.normal(size=(n, m)))
    return mtl.Tasks.shared(X, Y)


def objective(tasks, W, Sigma1, Sigma2):
    """Objective of FETR by its definition, on shared inputs."""
    return of_squares(tasks, W) + of_matrix_normal(W, Sigma1, Sigma2)


def best_weights(tasks, Sigma1, Sigma2, eta=ETA):
    """X^T X W + eta Sigma1 W Sigma2 = X^T Y as one system."""
    d, m = tasks.n_features, tasks.n_tasks
    system = np.kron(np.eye(m), tasks.X.T @ tasks.X) + eta * np.kron(Sigma2, Sigma1)
    return np.linalg.solve(system, (tasks.X.T @ labels_of(tasks)).T.ravel()).reshape(m, d).T


def spectral(solution):
    return {name: matrix.spectral for name, matrix in solution.learned.items()}


def dense_matrices(structures):
    return structures["Sigma1"].dense(), structures["Sigma2"].dense()


def first_order_gap(gradient, S, low=LOW, high=HIGH):
    """max over S' in the box of <gradient, S - S'>: bounds by how much a convex function can fall; 0 at its minimum."""
    values = np.linalg.eigvalsh(gradient)
    return float(np.sum(gradient * S) - np.sum(np.where(values > 0, low * values, high * values)))


def test_a_bound_above_the_objective_leaves_weights_unknown():
    tasks = small()
    form = fetr(tasks, loss=mtl.absolute_loss).form()
    blocks = {"W": 0.1 * np.random.default_rng(0).normal(size=(3, 2))}
    for wrong, known in ((1.0, False), (np.nan, False), (-1.0, True)):
        found = stationarity_of(form, blocks, None, lambda kept, by=wrong: kept.value(blocks) + by, 1e-8)
        assert np.isfinite(found.decreases["weights"]) == known


def test_an_update_that_is_worse_leaves_no_point_stationary(monkeypatch):
    """A fault in the closed form of a matrix: its decrease comes out negative, and the residual says inf, not 0."""
    problem = fetr(small())
    solution = problem.solve(tol=1e-8)
    assert solution.status == "stationary"
    structures = spectral(solution)
    at = (problem.form(), solution.blocks)
    assert certify(*at, structures=structures).is_stationary(1e-8)

    def wrong(self, k, W, matrices):
        identity = SpectralMatrix.multiple_of_identity(1.0, matrices[k].side)
        return tuple(identity if j == k else S for j, S in enumerate(matrices))

    monkeypatch.setattr(MatrixNormal, "update_one", wrong)
    proof = certify(*at, structures=structures)
    assert proof.stationarity.residual == np.inf and not proof.is_stationary(1.0)


@pytest.mark.slow
@for_each("method, seed", [("joint", 0), ("lbfgs", 1), ("block", 2)])
def test_solutions_meet_the_conditions_of_first_order(method, seed):
    """The gradient in W with both matrices kept, and in each matrix over its box: formulas of this file."""
    tasks = small(seed, d=3 + seed, m=2 + seed % 2)
    solution = fetr(tasks).solve(solver="alternating", method=method, tol=1e-8)
    assert solution.status == "stationary" and solution.note == NO_GLOBAL
    W, A, B = solution.W, *dense_matrices(spectral(solution))
    assert solution.objective == pytest.approx(objective(tasks, W, A, B), rel=1e-12)
    of_loss, of_penalty = 2 * tasks.X.T @ (tasks.X @ W - labels_of(tasks)), 2 * ETA * A @ W @ B
    assert np.linalg.norm(of_loss + of_penalty) <= 1e-6 * np.linalg.norm(of_loss)
    d, m = W.shape
    size = abs(solution.objective)
    assert first_order_gap(ETA * W @ B @ W.T - RHO * m * np.linalg.inv(A), A) <= 1e-6 * size
    assert first_order_gap(ETA * W.T @ A @ W - RHO * d * np.linalg.inv(B), B) <= 1e-6 * size


@pytest.mark.slow
@for_each("seed", range(2))
def test_decreases_are_the_true_ones(seed):
    """At points that are not stationary: of the weights by a linear system, of a matrix by its eigenvalues."""
    tasks, rng = small(seed), np.random.default_rng(seed)
    form = fetr(tasks).form()
    W = rng.normal(size=(3, 2))
    A, B = (
        SpectralMatrix(np.linalg.qr(rng.normal(size=(n, n)))[0], rng.uniform(0.5, 5.0, n), 0.0)
        for n in (3, 2)
    )
    seen = certify(form, {"W": W}, structures={"Sigma1": A, "Sigma2": B}).stationarity
    A, B = A.dense(), B.dense()
    now = objective(tasks, W, A, B)
    both = ETA * np.trace(A @ W @ B @ W.T)
    size = of_squares(tasks, W) + both  # what decreases are relative to: without log-determinants
    weights = (now - objective(tasks, best_weights(tasks, A, B), A, B)) / size
    assert weights * (1 - 1e-9) <= seen.decreases["weights"]  # it is an upper bound
    # in either matrix the objective is `both`, less its log-determinant
    first = (both - RHO * 2 * np.linalg.slogdet(A)[1] - least(W @ B @ W.T, 2)) / size
    second = (both - RHO * 3 * np.linalg.slogdet(B)[1] - least(W.T @ A @ W, 3)) / size
    assert seen.decreases["Sigma1"] == pytest.approx(first, abs=1e-7)
    assert seen.decreases["Sigma2"] == pytest.approx(second, abs=1e-7)
    assert seen.decreases["matrices"] >= max(first, second) - 1e-9


@pytest.mark.slow
@for_each(
    "name, beside",
    [
        ("Sigma1", {"more": lambda W: 0.5 * mtl.l1_norm(W)}),
        ("Sigma2", {}),
        ("Sigma2", {"constraints": lambda W: [W >= 0]}),
    ],
)
def test_a_wrong_matrix_is_not_stationary(name, beside):
    """The weights are the solution's; one matrix can lower the objective much."""
    problem = fetr(small(2), **beside)
    solution, form = problem.solve(tol=1e-7), problem.form()
    matrices = spectral(solution)
    side = matrices[name].side
    matrices[name] = SpectralMatrix.of(np.diag(np.linspace(1.0, 4.0, side)))
    point = solution.state
    seen = certify(form, point.blocks, point.loss_duals, point.function_duals, structures=matrices)
    assert seen.stationarity.decreases[name] > 1e-3
    assert not seen.is_stationary(1e-6), seen.stationarity


@pytest.mark.slow
@for_each("method, ball", [("block", mtl.trace_norm), ("joint", mtl.frobenius_norm)])
def test_stationary_means_that_no_block_can_be_improved(method, ball):
    """A ball keeps the weights where they are while the matrices still move: the weights alone say nothing."""
    problem = fetr(
        separate(2), constraints=lambda W: [ball(W) <= 1.0], low=0.01, high=100.0, eta=1.0, rho=1.0
    )
    solution = problem.solve(solver="alternating", method=method, max_seconds=600)
    assert solution.status == "stationary"
    assert max(solution.stationarity.decreases.values()) <= 1e-4, solution.stationarity
    W, A, B = solution.W, *dense_matrices(spectral(solution))
    gap = first_order_gap(W @ B @ W.T - W.shape[1] * np.linalg.inv(A), A, 0.01, 100.0)
    assert gap <= 1e-3 * abs(solution.objective)


@pytest.mark.by_default("smooth")
@pytest.mark.parametrize("more", [None, lambda W: 0.5 * mtl.l1_norm(W)], ids=["smooth", "l1"])
def test_the_flip_flop_baseline_is_not_called_stationary(more):
    """With a large fudge factor it settles where both matrices are far from their best."""
    solution = fetr(small(3), more=more).solve(
        solver="alternating", method="flip_flop", fudge=1.0, max_iter=200
    )
    assert max(solution.stationarity.decreases[name] for name in ("Sigma1", "Sigma2")) > 1e-2
    assert solution.status != "stationary", solution.stationarity


@pytest.mark.slow
@for_each("seed", range(5))
def test_no_solve_from_anywhere_ends_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    tasks = small(
        seed, n=7, d=int(rng.integers(1, 4)), m=int(rng.integers(1, 4)), scale=10.0 ** rng.uniform(-1, 1)
    )
    low, high = 10.0 ** rng.uniform(-2, 0), 10.0 ** rng.uniform(0, 2)
    problem = fetr(tasks, low=low, high=high, eta=rng.uniform(0.2, 3), rho=rng.uniform(0.2, 3))
    shape = tasks.n_features, tasks.n_tasks
    bound, lowest = problem.solve().dual_bound, np.inf
    for _ in range(10):
        start = {"W": 10.0 ** rng.uniform(-2, 1) * rng.normal(size=shape)}
        solution = problem.solve(solver="alternating", warm_start=start, tol=1e-4)
        lowest, bound = min(lowest, solution.objective), max(bound, solution.dual_bound)
    assert np.isfinite(bound)
    assert bound <= lowest + 1e-9 * abs(lowest)


def test_the_gap_to_the_bound_may_prove_a_global_optimum():
    """Weights so small that the penalty is quadratic there: its envelope is itself."""
    solution = fetr(small(5, scale=1e-3)).solve()
    assert solution.status == "optimal" and solution.gap <= 1e-6


@pytest.mark.parametrize("method, looks", [("block", 1), ("flip_flop", 3), ("joint", 3), ("lbfgs", 1)])
def test_an_interrupted_solution_is_one_point(method, looks):
    """Its objective is that of its weights with its matrices; what was reached before is not lost."""
    tasks, seen = small(6), []

    def interrupting(look):
        seen.append(look["objective"])
        if len(seen) == looks:
            signal.raise_signal(signal.SIGINT)

    solution = fetr(tasks).solve(solver="alternating", method=method, tol=1e-14, callback=interrupting)
    assert solution.status == "interrupted" and len(seen) == looks
    expected = objective(tasks, solution.W, *dense_matrices(spectral(solution)))
    assert solution.objective == pytest.approx(expected, rel=1e-10)
    assert solution.stationarity.residual > 0
    assert method == "flip_flop" or solution.objective <= min(seen) + 1e-12 * abs(min(seen))


@pytest.mark.slow
@for_each("seed", [0, 4])
def test_an_inactive_constraint_does_not_make_a_point_stationary(seed):
    """The residual is of first order there too: the same as without the constraint, whose profile has a gradient."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 12))
    Y = 2 * X @ rng.normal(size=(12, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(60, 6))
    tasks = mtl.Tasks.shared(X, Y)
    within = {"low": 0.01, "high": 100.0, "eta": 1.0, "rho": 1.0}
    free = fetr(tasks, **within)
    bounded = fetr(tasks, constraints=lambda W: [W >= -1e6], **within).solve(tol=1e-5)
    assert bounded.status == "stationary"
    assert profile_gradient(free.form(), {"W": bounded.W}) == pytest.approx(
        bounded.stationarity.residual, rel=1e-3, abs=1e-9
    )
    assert bounded.objective == pytest.approx(free.solve(tol=1e-8).objective, rel=1e-6)


def test_proximal_gradient_of_a_sparse_stationary_point_is_zero():
    """W = 0 is stationary beside an l1 norm that is strong enough, and nothing else is said to be."""
    tasks = small(3)
    slope = 2 * np.abs(tasks.X.T @ labels_of(tasks)).max()
    zero = {"W": np.zeros((3, 2))}

    def gradient(c):
        return profile_gradient(fetr(tasks, more=lambda W: c * slope * mtl.l1_norm(W)).form(), zero)

    assert gradient(1.01) == 0.0 and gradient(0.9) > 1e-3


def test_a_model_times_three_has_the_same_decreases():
    """Decreases are relative: coefficients of the loss and of the structure cancel."""
    tasks, rng = small(), np.random.default_rng(1)
    structures = {
        "Sigma1": SpectralMatrix(np.eye(3), rng.uniform(0.5, 5.0, 3), 0.0),
        "Sigma2": SpectralMatrix(np.eye(2), rng.uniform(0.5, 5.0, 2), 0.0),
    }
    x = {"W": rng.normal(size=(3, 2))}
    once, thrice = (
        certify(
            fetr(tasks, lambda W, t, c=c: c * mtl.sum_of_squares(W, t), times=c).form(),
            x,
            structures=structures,
        ).stationarity.decreases
        for c in (1.0, 3.0)
    )
    assert once["Sigma1"] > 1e-3 and once["Sigma2"] > 1e-3
    assert thrice == pytest.approx(once, rel=1e-10)  # differences of sums of some dozen numbers


def test_a_kink_within_reach_is_seen_where_the_gradient_is_zero():
    """Least-squares solution; the data hardly see one direction, whose singular value lies just above the cap. The lower point is the
    next start, and this one is not stationary.
    """
    X = np.diag([1.0, 1e-3])
    x = {"W": np.diag([100.0, 1.0005])}
    tasks = mtl.Tasks.shared(X, X @ x["W"])
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.capped_trace_norm(W, 1.0, eps=1e-4)).form()
    value, at = finite_steps(form, x, 1e-6)
    assert value < 0.6 * form.value(x) and np.isclose(form.value(at), value)
    assert np.linalg.norm(at["W"] - x["W"]) <= 1.01e-2 * np.linalg.norm(x["W"])
    monitor = Monitor(form, 1e-6, None)
    assert monitor(Point(x, iteration=1))
    assert not monitor.certificate.is_stationary(1e-6)
    assert monitor.history[0]["residual"] > 0.1 and form.value(monitor.restart) < 0.6 * form.value(x)


def test_no_step_leaves_the_constraints():
    """Lower objectives lie outside of W >= 0, one step away, and are not taken."""
    x = np.eye(4)[:, :3]
    X = np.random.default_rng(0).normal(size=(30, 4))
    tasks = mtl.Tasks.shared(X, X @ (2.0 * x - np.ones((4, 3))))  # 1 where x is, -1 elsewhere
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.01 * mtl.log_rank(W), subject_to=[W >= 0])
    form = problem.form()
    assert form.value({"W": x - 0.001 * (x == 0)}) < form.value({"W": x})
    value, at = finite_steps(form, {"W": x}, 1e-9)
    assert form.violation(at) <= 1e-9
