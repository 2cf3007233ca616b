"""Structured hinges by the method of multipliers: proven optima on every layout, its first phase, and its place among the solvers."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError
from mtldsl.solvers.multipliers import held_rows as held
from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.held_rows import HeldTangent, gram_of, held_rows, squares_of
from mtldsl.solvers.multipliers.splitting import Spectra
from mtldsl.solvers.multipliers.structured_scores import StructuredScores
from mtldsl.solvers.registry import candidates, get_solver
from tests.models import separate, shared

LAYOUTS = {
    "shared": lambda: shared(1, n=24, labels="sign"),
    "missing": lambda: shared(2, n=24, labels="sign", missing=0.3),
    "sparse": lambda: shared(4, n=24, labels="sign", density=0.5),
    "separate": lambda: separate(5, labels="sign"),
    "sparse separate": lambda: separate(6, labels="sign", density=0.6),
}
PENALTIES = {
    "l1": lambda W: mtl.l1_norm(W),
    "l21": lambda W: mtl.l21_norm(W),
    "trace": lambda W: mtl.trace_norm(W),
    "elastic": lambda W: mtl.l1_norm(W) + 0.2 * mtl.ridge(W),
    "max": lambda W: mtl.l1_inf_norm(W),
    "ridge": lambda W: mtl.ridge(W),
}
METRICS = {"AUC": mtl.AUC(), "F1": mtl.FScore(), "F2": mtl.FScore(beta=2.0)}


def problem_of(layout, penalty, metric, intercept, coefficient=20.0):
    tasks = LAYOUTS[layout]()
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(coefficient * mtl.structured_hinge(W, tasks, metric=metric) + PENALTIES[penalty](W))


def assert_solved(problem, tol=1e-7, **options):
    solution = problem.solve(solver="multipliers", tol=tol, **options)
    assert solution.status == "optimal", solution
    assert solution.objective - solution.dual_bound <= tol * abs(solution.objective)
    return solution


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("metric, layout", [(m, "shared") for m in METRICS] + [("F1", l) for l in LAYOUTS])
def test_the_optimum_is_proven_and_that_of_planes(metric, layout, penalty, intercept):
    problem = problem_of(layout, penalty, METRICS[metric], intercept)
    solution = assert_solved(problem)
    planes = problem.solve(solver="admm", tol=1e-5)
    assert planes.dual_bound <= solution.objective * (1.0 + 1e-9)
    assert solution.dual_bound <= planes.objective * (1.0 + 1e-9)


def test_every_task_may_have_a_metric_of_its_own():
    tasks = LAYOUTS["shared"]()
    metrics = [(mtl.AUC(), mtl.FScore(), mtl.FScore(beta=3.0))[i % 3] for i in range(tasks.n_tasks)]
    W = mtl.Weights(tasks, intercept=True)
    assert_solved(mtl.minimize(10.0 * mtl.structured_hinge(W, tasks, metric=metrics) + mtl.l21_norm(W)))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("coefficient", [1e-6, 3.0, 1e4])
def test_units_and_strengths(scale, coefficient):
    """At a coefficient far too small for any weights, zero is proven."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 30)) * scale * 10.0 ** rng.uniform(-1.0, 1.0, 30) + scale * rng.normal(size=30)
    Y = np.where(X[:, :3] @ rng.normal(size=(3, 2)) + scale * rng.normal(size=(60, 2)) > 0, 1.0, -1.0)
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    for penalty in (mtl.l1_norm, mtl.trace_norm):
        hinge = mtl.structured_hinge(W, tasks, metric=mtl.FScore())
        assert_solved(mtl.minimize(coefficient * hinge + scale * penalty(W)), tol=1e-5)


@pytest.mark.parametrize("coefficient", [1e-3, 1e3])
def test_ridges_far_from_and_near_to_separable(coefficient):
    """With more features than samples the hinge vanishes, and multipliers are far smaller than C."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(40, 90))
    tasks = mtl.Tasks.shared(X, np.where(X[:, :3] > 0.3, 1.0, -1.0))
    W = mtl.Weights(tasks)
    for metric in (mtl.AUC(), mtl.FScore()):
        problem = mtl.minimize(coefficient * mtl.structured_hinge(W, tasks, metric=metric) + mtl.ridge(W))
        assert_solved(problem, tol=1e-6, max_iter=1000)


def test_one_positive_and_one_negative():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 30))
    Y = np.ones((40, 3))
    Y[:20, 0], Y[0, 1], Y[1:, 2] = -1.0, -1.0, -1.0
    tasks = mtl.Tasks.shared(X, Y)
    for metric in (mtl.AUC(), mtl.FScore()):
        for intercept in (False, True):
            W = mtl.Weights(tasks, intercept=intercept)
            assert_solved(
                mtl.minimize(50.0 * mtl.structured_hinge(W, tasks, metric=metric) + mtl.l21_norm(W))
            )


def test_the_same_input_gives_the_same_bits():
    problem = problem_of("shared", "l21", mtl.FScore(), True)
    one, two = (problem.solve(solver="multipliers", tol=1e-6) for _ in range(2))
    assert one.objective == two.objective and one.dual_bound == two.dual_bound
    np.testing.assert_array_equal(one.W, two.W)


def test_it_goes_on_from_planes_and_along_a_path():
    problem = problem_of("shared", "l21", mtl.FScore(), True)
    planes = problem.solve(solver="admm", tol=1e-3)
    assert_solved(problem, warm_start=planes)
    tasks, C = LAYOUTS["separate"](), mtl.Parameter(1.0, name="C")
    W = mtl.Weights(tasks)
    model = mtl.minimize(C * mtl.structured_hinge(W, tasks, metric=mtl.AUC()) + mtl.l1_norm(W))
    for solution in model.path(C, [1.0, 5.0, 25.0], solver="multipliers", tol=1e-6):
        assert solution.status == "optimal"


def test_a_saved_proof_holds(tmp_path):
    """The F-score's witness is a random labelling that thresholds give."""
    solution = assert_solved(problem_of("shared", "l21", mtl.FScore(), True), tol=1e-6)
    assert mtl.verify_proof(solution.certificate.save(tmp_path / "proof", data=True)).confirmed


def test_where_planes_go_first():
    def order(d, metric, penalty=mtl.l1_norm):
        rng = np.random.default_rng(9)
        tasks = mtl.Tasks.shared(rng.normal(size=(30, d)), np.where(rng.random((30, 2)) < 0.5, 1.0, -1.0))
        W = mtl.Weights(tasks)
        problem = mtl.minimize(mtl.structured_hinge(W, tasks, metric=metric) + penalty(W))
        return [name for name in candidates(problem.form()) if name != "cvxpy"]

    # with more features than rows of dense inputs exact steps are few; elsewhere planes have some rounds to show what they can
    assert order(5, mtl.FScore()) == order(30, mtl.AUC()) == ["admm", "multipliers"]
    assert order(60, mtl.FScore()) == ["multipliers", "admm"]
    # planes of dual_ascent suit a ridge better than those of admm
    assert order(5, mtl.AUC(), mtl.ridge) == ["dual_ascent", "multipliers", "admm"]
    assert order(60, mtl.AUC(), mtl.ridge) == ["multipliers", "admm", "dual_ascent"]
    assert order(60, mtl.FScore(beta=0.5)) == order(60, mtl.ROCArea()) == ["admm"]
    with pytest.raises(ModelError, match="has no exact step in its scores"):
        problem_of("shared", "l1", mtl.PrecisionAt(3), False).solve(solver="multipliers")


# ------------------------------------------------------------------------------------------------- parts of it


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_spectra_solve_the_systems(layout, intercept):
    loss = problem_of(layout, "l1", mtl.AUC(), intercept).form().losses[0]
    designs = Designs(loss)
    unit = designs.unit()
    rng = np.random.default_rng(10)
    rhs = rng.normal(size=(len(unit), designs.n_tasks))
    s, r = rng.exponential(size=designs.n_tasks), rng.exponential(size=designs.n_tasks)
    spectra = Spectra(designs, unit)
    found = spectra.solve(rhs, s, r)
    for k in range(designs.n_tasks):
        X = designs.inputs_of(k)
        X = (X.toarray() if designs.is_sparse else X) / unit
        X = X - X.mean(axis=0) if intercept else X
        H = s[k] * X.T @ X + r[k] * np.eye(len(unit))
        np.testing.assert_allclose(H @ found[:, k], rhs[:, k], atol=1e-8)


def test_scores_are_balanced_inside_the_domain():
    form = problem_of("missing", "l1", mtl.FScore(), True).form()
    loss, rng = form.losses[0], np.random.default_rng(11)
    designs, scores = Designs(loss), StructuredScores(loss)
    u = scores.multipliers(
        rng.normal(size=designs.offsets[-1]), np.zeros(designs.offsets[-1]), np.ones(designs.offsets[-1])
    )
    balanced = scores.balanced(u)
    np.testing.assert_allclose(designs.sums(balanced), 0.0, atol=1e-12 * np.abs(u).max())
    assert np.all(np.abs(balanced) <= np.abs(u)) and np.all(balanced * u >= 0.0)
    # the bound that they prove is that of the certificate's own conjugate
    assert scores.conjugates(balanced).sum() == pytest.approx(loss.conjugate(balanced), rel=1e-12)
    some = scores.on(np.array([1]), np.arange(designs.offsets[1], designs.offsets[2]))
    part = slice(designs.offsets[1], designs.offsets[2])
    np.testing.assert_allclose(some.values(u[part])[0], scores.values(u)[1], rtol=1e-13)


def test_steps_of_admm_go_first():
    looks = assert_solved(problem_of("shared", "l21", mtl.FScore(), False)).history
    assert looks[0]["iteration"] == 10 and looks[0]["relative_gap"] > 1e-2


def test_the_solver_says_what_it_is_for():
    assert "kinks" in get_solver("multipliers").summary


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("inputs", ["sparse", "shared", "separate"])
def test_sums_of_large_inputs_are_not_made_at_once(metric, intercept, inputs, monkeypatch):
    tasks = LAYOUTS[inputs]()
    W = mtl.Weights(tasks, intercept=intercept)
    word = 20.0 * mtl.structured_hinge(W, tasks, metric=METRICS[metric])
    (term,) = mtl.minimize(word + mtl.l1_norm(W)).form().losses
    designs, scores, rng = Designs(term), StructuredScores(term), np.random.default_rng(5)
    z, u = rng.normal(size=tasks.n_samples), 0.1 * rng.normal(size=tasks.n_samples)
    y = scores.multipliers(z, u, np.full(len(z), 3.0))
    seen = 0
    for k, part in enumerate(scores.parts(y, designs)):
        monkeypatch.setattr(held, "_FEW", 10**9)
        F = held_rows(designs, k, part)
        monkeypatch.setattr(held, "_FEW", -1)
        rows = held_rows(designs, k, part)
        assert isinstance(rows, HeldTangent) and rows.shape == F.shape
        x = rng.normal(size=F.shape[1])
        np.testing.assert_allclose(rows.array(), F, atol=1e-12)
        np.testing.assert_allclose(gram_of(rows), F.T @ F, atol=1e-11)
        np.testing.assert_allclose(squares_of(rows), np.square(F).sum(axis=0), atol=1e-11)
        np.testing.assert_allclose(rows.curved(x), F.T @ (F @ x), atol=1e-11)
        seen += part.rank
    assert seen > 0


@pytest.mark.parametrize("metric, rows, first", [
    (mtl.FScore(), 2600, "dual_ascent"), (mtl.FScore(), 300, "multipliers"), (mtl.AUC(), 2600, "multipliers")
])  # fmt: skip
def test_beside_a_ridge_dear_steps_are_left_to_planes_where_rows_are_many(metric, rows, first):
    rng = np.random.default_rng(9)
    tasks = mtl.Tasks.shared(rng.normal(size=(rows, 60)), np.where(rng.random((rows, 2)) < 0.3, 1.0, -1.0))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.ridge(W) + mtl.structured_hinge(W, tasks, metric=metric))
    assert problem.explain().chosen == first
