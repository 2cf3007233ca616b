"""The method of multipliers with Newton steps: held to the reference on every layout, and its derivatives to differences."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.solvers.multipliers import held_rows as held
from mtldsl.solvers.multipliers import newton, systems
from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.held_rows import HeldRows, gram_of, held_rows, squares_of
from mtldsl.solvers.multipliers.matrix_part import MatrixPart
from mtldsl.solvers.multipliers.row_part import RowPart
from mtldsl.solvers.multipliers.run import Run
from mtldsl.solvers.multipliers.scores import KinkedScores
from mtldsl.solvers.multipliers.systems import TaskSystem
from mtldsl.solvers.registry import get_solver
from mtldsl.solvers.rows.penalty import RowPenalty
from tests.models import separate, shared

LOSSES = {
    "hinge": (mtl.hinge_loss, "sign", {}),
    "absolute": (mtl.absolute_loss, "real", {}),
    "quantile": (mtl.quantile_loss, "real", {"q": 0.8}),
}
LAYOUTS = {
    "shared": lambda labels: shared(1, n=24, labels=labels),
    "missing": lambda labels: shared(2, n=24, labels=labels, missing=0.3),
    "weighted": lambda labels: shared(3, n=24, labels=labels, sample_weights=True),
    "sparse": lambda labels: shared(4, n=24, labels=labels, density=0.5),
    "separate": lambda labels: separate(5, labels=labels),
    "sparse separate": lambda labels: separate(6, labels=labels, density=0.6),
}
PENALTIES = {
    "l1": lambda W: mtl.l1_norm(W),
    "l21": lambda W: mtl.l21_norm(W),
    "trace": lambda W: mtl.trace_norm(W),
    "both": lambda W: mtl.l1_norm(W) + 0.7 * mtl.l21_norm(W),
    "elastic": lambda W: mtl.l1_norm(W) + 0.2 * mtl.ridge(W),
    "max": lambda W: mtl.l1_inf_norm(W),
    "ridge": lambda W: mtl.ridge(W),
}


def problem_of(loss, layout, penalty, intercept, coefficient=0.5):
    word, labels, arguments = LOSSES[loss]
    tasks = LAYOUTS[layout](labels)
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(coefficient * word(W, tasks, **arguments) + PENALTIES[penalty](W))


def assert_solved(problem, tol=1e-8, **options):
    solution = problem.solve(solver="multipliers", tol=tol, **options)
    assert solution.status == "optimal", solution
    assert solution.objective - solution.dual_bound <= tol * abs(solution.objective)
    return solution


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss, layout", [(l, "shared") for l in LOSSES] + [("hinge", l) for l in LAYOUTS])
def test_the_optimum_is_the_references(loss, layout, penalty, intercept):
    problem = problem_of(loss, layout, penalty, intercept)
    expected = problem.solve(solver="cvxpy", tol=1e-7).objective
    assert assert_solved(problem).objective == pytest.approx(expected, rel=2e-7)


def by_newton_steps_alone(monkeypatch):
    monkeypatch.setattr("mtldsl.solvers.multipliers.run.has_interior", lambda *_: False)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("penalty", ["l1", "elastic", "ridge"])
@pytest.mark.parametrize("loss, layout", [("quantile", "shared")] + [("hinge", l) for l in LAYOUTS])
def test_newton_steps_end_where_interior_points_do(loss, layout, penalty, intercept, monkeypatch):
    problem = problem_of(loss, layout, penalty, intercept)
    expected = assert_solved(problem).objective
    by_newton_steps_alone(monkeypatch)
    assert assert_solved(problem).objective == pytest.approx(expected, rel=2e-8)


@pytest.mark.parametrize(("sign", "solver"), [(1, "multipliers"), (-1, "auto")])
def test_beside_a_bound(sign, solver):
    tasks = shared(7, n=30)
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.l1_norm(W), [sign * W >= 0])
    expected = problem.solve(solver="cvxpy", tol=1e-7).objective
    assert (get_solver("multipliers").refuses(problem.form()) is None) == (solver == "multipliers")
    solution = problem.solve(solver=solver, tol=1e-8)
    assert solution.status == "optimal" and (sign * solution.W >= 0).all()
    assert solution.objective == pytest.approx(expected, rel=2e-7)


def generated(n, d, m, seed, scale=1.0):
    """Columns that follow one another closely (AR(.9)), some twice, of sizes apart by `scale`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
    X = np.hstack([X, X[:, : d // 3]]) * np.geomspace(1.0, scale, d + d // 3) + 3.0
    Z = X[:, :d] @ (rng.normal(size=(d, m)) / np.geomspace(1.0, scale, d)[:, None]) + 2.0 * rng.normal(
        size=(n, m)
    )
    return X, np.where(np.quantile(Z, 0.6, axis=0) < Z, 1.0, -1.0)


@pytest.mark.parametrize("coefficient", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("penalty", ["l1", "l21", "trace"])
@pytest.mark.parametrize("shape", [(80, 9, 3), (15, 60, 2)], ids=["tall", "wide"])
@pytest.mark.parametrize("newton", [False, True], ids=["", "newton"])
def test_small_gaps_on_badly_conditioned_data(shape, penalty, coefficient, newton, monkeypatch):
    if newton:
        by_newton_steps_alone(monkeypatch)
    X, Y = generated(*shape, seed=1, scale=100.0 if penalty != "trace" else 1.0)
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    assert_solved(mtl.minimize(coefficient * mtl.hinge_loss(W, tasks) + PENALTIES[penalty](W)), max_iter=2000)


@pytest.mark.parametrize("penalty", ["l1", "l21", "trace"])
def test_a_strong_penalty_gives_zero(penalty):
    problem = problem_of("hinge", "shared", penalty, True, coefficient=1e-4)
    solution = assert_solved(problem)
    assert not solution.blocks["W"].any()


def test_it_goes_first_on_kinks_and_is_refused_elsewhere():
    problem = problem_of("hinge", "shared", "trace", True)
    assert problem.explain().chosen == "multipliers"
    tasks = shared(1)
    W = mtl.Weights(tasks)
    smooth = mtl.minimize(mtl.huber_loss(W, tasks) + mtl.l1_norm(W))
    assert "huber_loss(W, tasks) is not piecewise linear." in get_solver("multipliers").refuses(smooth.form())
    bounded = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.l1_norm(W), [W.sum(axis=1) <= 0])
    assert "W.sum(axis=1)" in get_solver("multipliers").refuses(bounded.form())
    alone = mtl.minimize(mtl.absolute_loss(W, tasks))
    assert get_solver("multipliers").refuses(alone.form()) == "there is no regularizer."


def test_admm_goes_first_where_many_features_tie_tasks():
    def chosen(n, d, penalty, m=3):
        rng = np.random.default_rng(3)
        tasks = mtl.Tasks.shared(rng.normal(size=(n, d)), rng.normal(size=(n, m)))
        W = mtl.Weights(tasks, intercept=True)
        return mtl.minimize(mtl.absolute_loss(W, tasks) + penalty(W)).explain().chosen

    assert chosen(620, 100, mtl.trace_norm) == chosen(1300, 300, mtl.l21_norm) == "multipliers"
    assert chosen(580, 100, mtl.trace_norm) == "admm"  # by the spectrum from more rows on
    assert chosen(1300, 300, mtl.trace_norm) == chosen(100, 60, mtl.l21_norm) == "admm"
    assert chosen(100, 60, mtl.l1_norm) == chosen(100, 60, mtl.l21_norm, m=1) == "multipliers"
    assert chosen(60, 20, mtl.l21_norm) == "multipliers"


def test_admm_goes_first_where_hundreds_of_sparse_features_tie_tasks():
    def chosen(d, penalty, m=3):
        rng = np.random.default_rng(3)
        X = sparse.random_array((5 * d, d), density=0.02, rng=rng, format="csr")
        tasks = mtl.Tasks.shared(X, np.sign(rng.normal(size=(5 * d, m))))
        W = mtl.Weights(tasks)
        return mtl.minimize(mtl.hinge_loss(W, tasks) + penalty(W)).explain().chosen

    assert chosen(250, mtl.l21_norm) == "admm"
    assert chosen(150, mtl.l21_norm) == chosen(250, mtl.l1_norm) == "multipliers"


def points_of(problem, monkeypatch, tol=1e-8):
    """What multipliers show on the way."""
    shown, made = [], Run._made
    monkeypatch.setattr(Run, "_made", lambda *args: shown.append(made(*args)) or shown[-1])
    assert_solved(problem, tol)
    return shown


@pytest.mark.parametrize("penalty", ["l21", "trace"])
def test_work_on_tied_tasks_is_counted_in_iterations_of_admm(penalty, monkeypatch):
    """So that turns are shared out by work: a step on more features is more of it."""
    steps = []
    for d in (20, 80):
        tasks = mtl.Tasks.shared(*generated(400, d, 3, seed=1))
        W = mtl.Weights(tasks)
        word = mtl.l21_norm if penalty == "l21" else mtl.trace_norm
        last = points_of(mtl.minimize(mtl.absolute_loss(W, tasks) + 5 * word(W)), monkeypatch)[-1]
        assert last.effort > last.iteration
        steps.append(last.effort / last.iteration)
    assert steps[1] > 1.5 * steps[0]


@pytest.mark.parametrize("word, n_tasks", [(mtl.l1_norm, 3), (mtl.trace_norm, 1)])
def test_steps_of_tasks_that_nothing_ties_are_counted_as_they_are(word, n_tasks, monkeypatch):
    tasks = mtl.Tasks.shared(*generated(60, 8, n_tasks, seed=1))
    W = mtl.Weights(tasks)
    shown = points_of(mtl.minimize(mtl.absolute_loss(W, tasks) + 5 * word(W)), monkeypatch)
    assert all(point.effort is None for point in shown)


def test_a_warm_start_is_used():
    problem = problem_of("absolute", "shared", "l21", True)
    first = assert_solved(problem)
    again = problem.solve(solver="multipliers", tol=1e-6, warm_start=first)
    assert again.status == "optimal" and again.objective == pytest.approx(first.objective, rel=2e-6)


def test_limits_are_kept():
    problem = problem_of("hinge", "shared", "trace", True)
    stopped = problem.solve(solver="multipliers", tol=1e-12, max_iter=3)
    assert stopped.status == "iteration_limit" and stopped.iterations <= 3


@pytest.mark.parametrize("layout", ["dense", "sparse", "separate"])
@pytest.mark.parametrize("loss, labels", [(mtl.hinge_loss, "sign"), (mtl.absolute_loss, "real")])
def test_many_features_go_by_working_sets(loss, labels, layout, monkeypatch):
    """The same optimum, to the same gap, as with all of them at once."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 90)) * (rng.random((60, 90)) < 0.5)
    Y = X[:, :3] @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(60, 4))
    Y = np.where(Y > 0.5, 1.0, -1.0) if labels == "sign" else Y
    inputs = sparse.csr_array(X) if layout == "sparse" else X
    tasks = (
        mtl.Tasks.separate([inputs] * 4, list(Y.T)) if layout == "separate" else mtl.Tasks.shared(inputs, Y)
    )
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(loss(W, tasks) + 8 * mtl.l1_norm(W) + 0.1 * mtl.ridge(W))
    whole = assert_solved(problem)
    by_newton_steps_alone(monkeypatch)
    monkeypatch.setattr("mtldsl.solvers.multipliers.designs._MANY", 50)
    asked = []
    monkeypatch.setattr(
        "mtldsl.solvers.multipliers.run.Run.by_features",
        lambda self, *rest, first=Run.by_features: asked.append(len(rest[0])) or first(self, *rest),
    )
    parts = assert_solved(problem)
    assert asked == [4]
    assert parts.objective == pytest.approx(whole.objective, rel=2e-8)
    np.testing.assert_array_equal(abs(parts.blocks["W"]) > 1e-6, abs(whole.blocks["W"]) > 1e-6)


# ------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("rows, unknowns", [(9, 30), (30, 9), (12, 120), (0, 5), (0, 90)])
@pytest.mark.parametrize("density", [None, 0.4])
def test_systems_are_solved_both_ways(rows, unknowns, density):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(rows, unknowns))
    F = F if density is None else sparse.csr_array(F * (rng.random(F.shape) < density))
    diagonal = np.where(rng.random(unknowns) < 0.3, 1e-3, 5.0)
    system = TaskSystem(F, 2.0, diagonal)
    dense = F if density is None else F.toarray()
    H = 2.0 * dense.T @ dense + np.diag(diagonal)
    r = rng.normal(size=unknowns)
    np.testing.assert_allclose(H @ system.solve(r), r, atol=1e-8)
    np.testing.assert_allclose(system.product(r), H @ r, rtol=1e-10)
    tied = np.flatnonzero(rng.random(unknowns) < 0.4)
    system = TaskSystem(F, 2.0, diagonal, tied)
    np.testing.assert_allclose(H @ system.solve(r), r, atol=1e-8)
    expected = np.tril(np.linalg.inv(H)[np.ix_(tied, tied)])
    np.testing.assert_allclose(np.tril(system.inverse_on_tied(tied)), expected, atol=1e-8)


def prox_by_rows(V, M, l1, l21, ridge, nonneg):
    """Soft threshold, then shrink rows, then scale, in a metric that is one number along a row."""
    q = np.maximum(V - l1 / M, 0.0) if nonneg else np.sign(V) * np.maximum(np.abs(V) - l1 / M, 0.0)
    norms = np.linalg.norm(q, axis=1, keepdims=True)
    return q * np.maximum(1.0 - l21 / M / np.maximum(norms, 1e-300), 0.0) * M / (M + ridge)


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize(
    "l1, l21, ridge", [(0.5, 0.0, 0.0), (0.0, 1.0, 0.0), (0.4, 0.8, 0.0), (0.4, 0.8, 0.7), (0.5, 0.0, 0.3)]
)
def test_the_derivative_of_the_rows_prox(l1, l21, ridge, nonneg):
    rng = np.random.default_rng(1)
    d, m = 7, 4
    unit = rng.uniform(0.5, 2.0, d)
    part = RowPart(RowPenalty(np.full((m, d), l1), np.full(d, l21), np.full(d, ridge), nonneg), unit)
    M = part.metric(np.full(m, 1.3))
    V, H = rng.normal(size=(d, m)), rng.normal(size=(d, m))
    eps = 1e-6
    zero = np.zeros_like(V)
    difference = (part.multipliers(V + eps * H, zero, M) - part.multipliers(V - eps * H, zero, M)) / (2 * eps)
    v = part.copy(V, zero, part.multipliers(V, zero, M), M)
    np.testing.assert_allclose(v, prox_by_rows(V, M, l1, l21, ridge, nonneg), atol=1e-12)
    product = part.diagonal(M) * H
    tie = part.coupling(M)
    if tie is not None:
        rows, vectors, scales = tie
        product[rows] -= scales[:, None] * vectors * (vectors * H[rows]).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(product, difference, atol=1e-7)


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
@pytest.mark.parametrize("penalty", ["trace", "max"])
def test_the_derivative_of_any_other_prox(shape, penalty):
    rng = np.random.default_rng(2)
    d, m = shape
    tasks = mtl.Tasks.shared(rng.normal(size=(9, d)), rng.normal(size=(9, m)))
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.absolute_loss(W, tasks) + PENALTIES[penalty](W)).form()
    part = MatrixPart(form.functions, np.ones(d))
    M = part.metric(np.full(m, 0.8))
    V, H = rng.normal(size=shape), rng.normal(size=shape)
    eps = 1e-6
    difference = H - (part.prox(V + eps * H, M) - part.prox(V - eps * H, M)) / (2 * eps)
    part.multipliers(V, np.zeros_like(V), M)
    product, _ = part.derivative(M)
    np.testing.assert_allclose(product(H), difference, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_multipliers_are_those_of_the_prox(loss, layout):
    """s (t - prox(t)) at t = z + u / s, its derivative s (I - D) by rows of the inputs, products with columns centred."""
    word, labels, arguments = LOSSES[loss]
    tasks = LAYOUTS[layout](labels)
    W = mtl.Weights(tasks, intercept=True)
    (term,) = mtl.minimize(0.7 * word(W, tasks, **arguments) + mtl.l1_norm(W)).form().losses
    designs, scores = Designs(term), KinkedScores(term)
    rng = np.random.default_rng(3)
    V, b = rng.normal(size=(tasks.n_features, tasks.n_tasks)), rng.normal(size=tasks.n_tasks)
    z = designs.forward(V, b)
    as_given = {"W": V, "W.intercept": designs.intercepts(V, b)[None, :]}
    np.testing.assert_allclose(z, term.predictions(as_given), atol=1e-10)
    np.testing.assert_allclose(designs.centred(V, designs.intercepts(V, b)), b, atol=1e-12)
    u, s = 0.1 * rng.normal(size=len(z)), 1.7
    t = z + u / s
    y = scores.multipliers(z, u, np.full(len(z), s))
    np.testing.assert_allclose(y, s * (t - term.prox(t, 1 / s)), atol=1e-12)
    assert scores.values(z, designs).sum() == pytest.approx(term.value(z))
    assert scores.conjugates(y, designs).sum() == pytest.approx(term.conjugate(y))
    assert abs(designs.sums(scores.balanced(y, designs))).max() < 1e-12
    np.testing.assert_allclose(
        np.vdot(designs.forward(V, b), y), np.vdot(V, designs.adjoint(y)) + b @ designs.sums(y)
    )
    free = (y > scores.low) & (y < scores.high)
    for k, part in enumerate(scores.parts(y, designs)):
        F = held_rows(designs, k, part)
        F = F.toarray() if sparse.issparse(F) else F
        image = F @ np.append(V[:, k], b[k])
        np.testing.assert_allclose(
            image,
            z[designs.starts[k] : designs.offsets[k + 1]][free[designs.starts[k] : designs.offsets[k + 1]]],
        )


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_rows_at_kinks_are_not_copied_at_once(layout, intercept, monkeypatch):
    tasks = LAYOUTS[layout](LOSSES["hinge"][1])
    W = mtl.Weights(tasks, intercept=intercept)
    (term,) = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.l1_norm(W)).form().losses
    designs, rng = Designs(term), np.random.default_rng(3)
    for k in range(designs.n_tasks):
        part = SimpleNamespace(rows=np.arange(1, designs.counts[k] - 1))
        monkeypatch.setattr(held, "_FEW", 10**9)
        F = held_rows(designs, k, part)
        dense = F.toarray() if sparse.issparse(F) else F
        monkeypatch.setattr(held, "_FEW", 2)
        monkeypatch.setattr(held, "_AT_ONCE", 2)
        rows = held_rows(designs, k, part)
        assert isinstance(rows, HeldRows) and rows.shape == F.shape
        np.testing.assert_allclose(gram_of(rows), dense.T @ dense, atol=1e-11)
        np.testing.assert_allclose(squares_of(rows), np.square(dense).sum(axis=0), atol=1e-11)
        x = rng.normal(size=F.shape[1])
        if rows.is_most:
            np.testing.assert_allclose(rows.curved(x), dense.T @ (dense @ x), atol=1e-11)
        for direct in (True, False):
            monkeypatch.setattr("mtldsl.solvers.multipliers.systems._DEAR", 1e8 if direct else -1.0)
            monkeypatch.setattr("mtldsl.solvers.multipliers.systems._BLOCKED", 8.0 if direct else -1.0)
            found = [TaskSystem(one, 1.5, np.full(F.shape[1], 0.3)) for one in (F, rows)]
            assert found[1].is_direct == direct
            np.testing.assert_allclose(found[1].product(x), found[0].product(x), atol=1e-10)
            np.testing.assert_allclose(found[1].solve(x), found[0].solve(x), atol=1e-10)


@pytest.mark.parametrize("penalty", ["elastic", "l1", "l21", "trace"])
def test_tasks_at_their_minimum_make_no_systems(penalty, monkeypatch):
    """What Newton's decrement is at most, by the diagonal alone, is no less than the decrement: no step is left out that would be taken."""
    seen, direction = [], newton.Newton._direction

    def looked_at(self, g, g_b, y, here, wanted):
        dW, db = direction(self, g, g_b, y, here, np.ones_like(wanted))
        decrement = -(np.einsum("ij,ij->j", g, dW) + g_b * db)
        assert np.all(self.pooled(decrement) <= self.pooled(here.most_decrement(g, g_b)) * (1 + 1e-6) + 1e-12)
        seen.append(wanted)
        return np.where(wanted, dW, 0.0), np.where(wanted, db, 0.0)

    monkeypatch.setattr(newton.Newton, "_direction", looked_at)
    tasks = shared(1, n=24, labels="sign")
    W = mtl.Weights(tasks, intercept=True)
    form = mtl.minimize(mtl.hinge_loss(W, tasks) + PENALTIES[penalty](W)).form()
    watch = MagicMock(side_effect=lambda point: point.iteration >= 60)
    watch.expired = False
    Run(form, 1e-6, None).run(100, watch)
    assert len(seen) > 5
    if penalty in ("elastic", "l1"):
        assert not np.concatenate(seen).all()


@pytest.mark.parametrize("rank", [700, 40], ids=["positive definite", "singular"])
def test_a_large_matrix_is_factorized_in_its_own_place(rank):
    """And is put together again from its other triangle where rounding made it indefinite."""
    F = np.random.default_rng(0).normal(size=(rank, 600))
    H = F.T @ F
    H = 0.5 * (H + H.T)
    expected, copied = H.copy(), H.copy()
    factor = systems._factor(copied)
    assert H.size > systems._LARGE and (np.may_share_memory(factor, copied) or rank < 600)
    L = np.tril(factor)
    np.testing.assert_allclose(L @ L.T, expected, atol=1e-9 * np.trace(H))
    if rank < 600:
        small = np.tril(systems._factor(np.asfortranarray(H)))  # which is copied
        np.testing.assert_allclose(L @ L.T, small @ small.T, atol=1e-12 * np.trace(H))
