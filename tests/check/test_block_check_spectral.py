"""Penalties of the spectrum and bounded ranks against cvxpy: agreement where it should be, and everything that is spoiled noticed.

Points of models without smoothing come from plain proximal gradient steps, steps of majorisation from the formulas of the paper,
both written here: no solver of the package has a hand in them.
"""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
import mtldsl.reference.majorization as majorization
from mtldsl.atoms.learned_structures.spectral_penalties import LogRank
from mtldsl.normal_form.terms.structure_term import MajorizationStep
from mtldsl.solvers.nonconvex import majorization_minimization
from mtldsl.testing import assert_agrees
from tests.check.test_block_check import data
from tests.concave_functions import geman, geman_slope, laplace, laplace_slope
from tests.learned_models import fetr
from tests.loops import for_each
from tests.models import with_weights

D, M = 4, 3


def model(penalty, loss=mtl.sum_of_squares, constraints=lambda W: [], tasks=None, **weights):
    tasks, W = with_weights(data() if tasks is None else tasks, **weights)
    return mtl.minimize(loss(W, tasks) + 0.5 * penalty(W), subject_to=constraints(W))


REWEIGHTED = {
    "calibrated": (lambda: model(mtl.log_rank, lambda W, t: mtl.square_root_loss(W, t, eps=0.01)),
     "0.5 * log_rank(W)"),
    "intercept": (lambda: model(mtl.log_rank, intercept=True), "0.5 * log_rank(W)"),
    "far labels": (lambda: model(mtl.log_rank, tasks=data(offset=1e4), intercept=True), "0.5 * log_rank(W)"),
    "moved": (lambda: model(lambda W: mtl.log_rank(2 * W - 1)), "0.5 * log_rank(2 * W - 1)"),
    "capped": (lambda: model(lambda W: mtl.capped_trace_norm(W, 0.5, eps=1e-3)),
     "0.5 * capped_trace_norm(W, tau=0.5, eps=0.001)"),
    "own": (lambda: model(lambda W: mtl.spectral_penalty(W, laplace, laplace_slope)),
     "0.5 * spectral_penalty(W, function=laplace, derivative=laplace_slope)"),
    "covariances": (lambda: fetr(data(), more=lambda W: 0.5 * mtl.log_rank(W)), "0.5 * log_rank(W)"),
}  # fmt: skip


def assert_stated(problem, solution):
    """The model that cvxpy is given at a solution has its objective there, and its optimum."""
    taken = problem.to_cvxpy(at=solution)
    assert taken.objective_value(solution.blocks) == pytest.approx(solution.objective, rel=1e-9)
    taken.problem.solve(solver=cp.CLARABEL)
    assert taken.objective_value(taken.blocks()) == pytest.approx(solution.objective, rel=1e-6)


@pytest.mark.by_default("far labels")
@pytest.mark.parametrize("name", REWEIGHTED)
def test_agreement_of_reweighted_models(name):
    make, typed = REWEIGHTED[name]
    problem = make()
    solution = problem.solve(tol=1e-7)
    check = assert_agrees(problem, solution)
    assert check.status == "stationary" and check.blocks[0].name == f"weights, {typed} majorised"
    assert [row.name for row in check.blocks if row.name.startswith("Sigma")] == (
        ["Sigma1", "Sigma2"] if name == "covariances" else []
    )
    assert check.formula_difference <= 1e-12 and abs(check.blocks[0].difference) <= 1e-7
    assert_stated(problem, solution)


@pytest.fixture(scope="module")
def solved():
    problem = model(mtl.log_rank, tasks=data(seed=3))
    return problem, problem.solve(tol=1e-8)


def moved(problem, solution, W):
    """The solution with other weights, and with the objective that they have."""
    return replace(solution, blocks={"W": W}, coef=W, objective=problem.form().value({"W": W}))


def test_a_wrong_point_objective_or_formula_is_noticed(solved, monkeypatch):
    problem, solution = solved
    W = solution.W + 0.02 * np.random.default_rng(0).normal(size=solution.W.shape)
    check = problem.cross_check(moved(problem, solution, W))
    assert len(check.disagreements) == 1
    assert check.disagreements[0].startswith(
        "weights, 0.5 * log_rank(W) majorised: with everything else kept, the ref"
    )
    check = problem.cross_check(replace(solution, objective=solution.objective * (1 + 1e-7)))
    assert len(check.disagreements) == 1 and "the solution states the objective" in check.disagreements[0]
    right = LogRank.penalty
    monkeypatch.setattr(LogRank, "penalty", lambda self, x: (1 + 1e-6) * right(self, x))
    assert any("the two formulas differ" in text for text in problem.cross_check(solution).disagreements)


def test_a_wrong_slope_is_noticed(monkeypatch):
    """The solver then ends elsewhere, and certifies it: what it knows of the penalty's derivative is all wrong."""
    right = LogRank.slope
    monkeypatch.setattr(LogRank, "slope", lambda self, x: 1.2 * right(self, x))
    problem = model(mtl.log_rank, tasks=data(seed=3))
    with pytest.raises(mtl.SolverError, match="the objective rose"):  # the first to notice
        problem.solve(solver="alternating", tol=1e-7)
    monkeypatch.setattr(majorization_minimization, "assert_descent", lambda *seen: None)
    check = problem.cross_check(problem.solve(solver="alternating", tol=1e-7, max_iter=200))
    assert any("with everything else kept, the reference finds" in text for text in check.disagreements)


def test_a_wrong_reference_is_noticed(solved, monkeypatch):
    """Its majoriser too low: then its least value is above, in comparison with what it says of the point itself."""
    problem, solution = solved
    right = majorization.convex_forms

    def steeper(form, at, random_state=0):
        return [(text, replace(f, functions=2 * f.functions)) for text, f in right(form, at, random_state)]

    monkeypatch.setattr(majorization, "convex_forms", steeper)
    assert not problem.cross_check(solution).agrees


def exact(penalty=None, constraints=lambda W: [], largest_rank=M):
    """The model, and a point of it: proximal gradient steps on the sum of squares, from the least-squares weights."""
    tasks, W = with_weights(data(seed=2, rank=2))
    loss = mtl.sum_of_squares(W, tasks)
    problem = mtl.minimize(loss if penalty is None else loss + 6.0 * penalty(W), subject_to=constraints(W))
    (f,) = problem.form().functions
    X, Y = tasks.X, tasks.targets.reshape(M, -1).T
    V, step = np.linalg.lstsq(X, Y)[0], 0.5 / np.linalg.norm(X, 2) ** 2
    for _ in range(5000):
        before, V = V, f.prox(V - step * 2 * X.T @ (X @ V - Y), step)
        if largest_rank < M:
            U, s, Vt = np.linalg.svd(V, full_matrices=False)
            V = (U[:, :largest_rank] * s[:largest_rank]) @ Vt[:largest_rank]
        if np.linalg.norm(V - before) <= 1e-14 * np.linalg.norm(V):
            break
    return problem, claimed(problem, V)


def claimed(problem, V):
    """A solution that states these weights."""
    tasks, W = with_weights(problem.form().losses[0].tasks)
    any_solution = mtl.minimize(mtl.sum_of_squares(W, tasks) + mtl.log_rank(W)).solve()
    stated = replace(moved(problem, any_solution, V), status="stationary", dual_bound=-np.inf, tol=1e-9)
    return with_steps(stated, ())


EXACT = {
    "log_rank": (lambda W: mtl.log_rank(W, eps=0), ["6 * log_rank(W, eps=0) majorised"]),
    "capped": (lambda W: mtl.capped_trace_norm(W, 2.0), ["6 * capped_trace_norm(W, tau=2) majorised"]),
    "geman": (lambda W: mtl.spectral_penalty(W, geman, geman_slope, eps=0),
     ["6 * spectral_penalty(W, function=geman, derivative=geman_slope, eps=0) majorised"]),
    "laplace": (lambda W: mtl.spectral_penalty(W, laplace, laplace_slope, eps=0),
     ["6 * spectral_penalty(W, function=laplace, derivative=laplace_slope, eps=0) majorised"]),
    "schatten": (lambda W: mtl.schatten_norm(W, 0.5, eps=0),
     [f"6 * schatten_norm(W, p=0.5, eps=0) with its {side} space kept" for side in ("column", "row")]),
    "rank": (mtl.rank, [f"6 * rank(W) with its {side} space kept" for side in ("column", "row")]),
}  # fmt: skip


@pytest.mark.slow
@for_each("name", EXACT)
def test_agreement_without_smoothing(name):
    penalty, texts = EXACT[name]
    problem, solution = exact(penalty)
    rank = np.linalg.matrix_rank(solution.W)
    assert 1 <= rank < M or name == "laplace"  # a smooth function of singular values near zero
    check = assert_agrees(problem, solution)
    assert [row.name for row in check.blocks] == [f"weights, {text}" for text in texts]
    assert all(abs(row.difference) <= 1e-7 for row in check.blocks)
    assert_stated(problem, solution)
    # a little off in a direction that all of them leave open
    wrong = problem.cross_check(claimed(problem, 1.02 * solution.W))
    assert all(row.difference > 1e-5 for row in wrong.blocks) and len(wrong.disagreements) == len(texts)


@pytest.mark.slow
@for_each("name", ["log_rank", "capped", "geman"])
def test_a_singular_value_that_should_not_be_zero_is_noticed(name):
    """The best of rank one: there the slope of the penalty at zero is less than what the data pull at the second."""
    problem, solution = exact(EXACT[name][0])
    assert np.linalg.svd(solution.W, compute_uv=False)[1] > 0.5
    _, low = exact(EXACT[name][0], largest_rank=1)
    assert np.linalg.svd(low.W, compute_uv=False)[1] < 1e-12
    check = problem.cross_check(low)
    assert check.blocks[0].difference > 1e-3 and len(check.disagreements) == 1


def test_agreement_of_a_bounded_rank():
    problem, solution = exact(constraints=lambda W: [mtl.rank(W) <= 2])
    assert np.linalg.matrix_rank(solution.W) == 2
    check = assert_agrees(problem, solution)
    assert [row.name for row in check.blocks] == [
        f"weights, rank(W) <= 2 with its {side} space kept" for side in ("column", "row")
    ]
    larger = solution.W + 1e-3 * np.random.default_rng(0).normal(size=(D, M))
    wrong = problem.cross_check(claimed(problem, larger))
    assert any("violates a constraint by" in text for text in wrong.disagreements)
    some = problem.cross_check(solution, max_size=100)  # the row space of large data is not compared
    assert some.agrees and "2 of 3 tasks" in some.scope
    assert [row.name for row in some.blocks] == ["weights, rank(W) <= 2 with its column space kept"]


def test_a_rank_too_low_is_noticed():
    """The best of rank one where two are allowed: stationary among those of rank one, and no minimum."""
    problem, _ = exact(constraints=lambda W: [mtl.rank(W) <= 2])
    _, low = exact(constraints=lambda W: [mtl.rank(W) <= 1])
    check = problem.cross_check(claimed(problem, low.W))
    assert len(check.disagreements) == 2 and all(row.difference > 1e-4 for row in check.blocks)


@for_each("wrong", ["row", "column"])
def test_a_wrong_space_is_noticed_by_the_other_row(wrong):
    """Weights that are the best of their column space, which is not the right one, agree in that block alone; likewise rows."""
    problem, solution = exact(constraints=lambda W: [mtl.rank(W) <= 2])
    tasks = problem.form().losses[0].tasks
    X, Y, rng = tasks.X, tasks.targets.reshape(M, -1).T, np.random.default_rng(1)
    if wrong == "column":
        U = np.linalg.qr(rng.normal(size=(D, 2)))[0]
        V = U @ np.linalg.lstsq(X @ U, Y)[0]
    else:
        R = np.linalg.qr(rng.normal(size=(M, 2)))[0]
        V = np.linalg.lstsq(X, Y @ R)[0] @ R.T
    check = problem.cross_check(claimed(problem, V))
    by_column, by_row = (row.difference for row in check.blocks)
    keeps, notices = (by_column, by_row) if wrong == "column" else (by_row, by_column)
    assert abs(keeps) < 1e-7 and notices > 1e-3
    assert len(check.disagreements) == 1


EPS = 1e-2


def calibrated(reweights_losses=True, m=M, **options):
    """(problem, solution) with the first, a middle and the last step of the paper's Algorithm 1, or of it for sums of squares."""
    tasks, W = with_weights(data(layout="separate", m=m, rank=2, **options))
    loss = mtl.square_root_loss(W, tasks, eps=EPS) if reweights_losses else mtl.sum_of_squares(W, tasks)
    problem = mtl.minimize(loss + 0.5 * mtl.log_rank(W, eps=EPS))
    y = tasks.per_task(tasks.targets)
    V, steps = np.column_stack([X.T @ t for X, t in zip(tasks.inputs, y, strict=True)]), []
    for k in range(400):
        values, U = np.linalg.eigh(V @ V.T + EPS * np.eye(len(V)))
        penalty = (U / (2 * np.sqrt(values) * (1 + np.sqrt(values)))) @ U.T
        columns = []
        for X, t, w in zip(tasks.inputs, y, V.T, strict=True):
            v = 1 / np.sqrt(np.sum((X @ w - t) ** 2) + EPS**2) if reweights_losses else 2.0
            columns.append(np.linalg.solve(v * X.T @ X + 2 * 0.5 * penalty, v * X.T @ t))
        after = np.column_stack(columns)
        if k in (0, 7, 399):
            steps.append(MajorizationStep(k + 1, {"W": V}, {"W": after}, reweights_losses))
        V = after
    solution = problem.solve(tol=1e-8)
    return problem, with_steps(moved(problem, solution, V), steps)


def with_steps(solution, steps):
    solution = replace(solution)
    object.__setattr__(solution, "majorizations", tuple(steps))
    return solution


@pytest.fixture(scope="module", params=[True, False], ids=["calibrated", "squares"])
def stepped(request):
    return calibrated(request.param)


def steps_of(check):
    return [row for row in check.blocks if row.name.startswith("majorisation")]


@pytest.mark.slow
def test_steps_agree(stepped):
    problem, solution = stepped
    check = assert_agrees(problem, solution)
    rows = steps_of(check)
    assert [row.name for row in rows] == [f"majorisation step {k}: weights" for k in (1, 8, 400)]
    for row in rows:
        assert abs(row.difference) <= 1e-9 and row.allowed == 1e-7
        assert abs(row.touching) <= 1e-12 and row.margin >= -1e-12
    assert (
        rows[0].margin > 1e-3 and rows[0].objective > solution.objective
    )  # far from the end it is far above
    assert "majorisation step 8: weights" in str(check)


@pytest.mark.slow
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_wrong_step_is_noticed(stepped, k):
    """Ended a little beside the minimiser, or begun elsewhere."""
    problem, solution = stepped
    step, rng = solution.majorizations[k], np.random.default_rng(0)
    beside = {"W": step.after["W"] + 0.01 * rng.normal(size=step.after["W"].shape)}
    elsewhere = {"W": 1.3 * step.before["W"]}
    for wrong in (
        replace(step, after=beside),
        replace(step, before=elsewhere),
        replace(step, after=step.before),
    ):
        if k == 2 and wrong.after is step.before:
            continue  # at the end a step goes nowhere
        steps = [wrong if j == k else right for j, right in enumerate(solution.majorizations)]
        check = problem.cross_check(with_steps(solution, steps))
        (text,) = check.disagreements
        assert text.startswith(
            f"majorisation step {wrong.iteration}: weights: the reference finds a majoriser lower by"
        )
        assert not steps_of(check)[k].agrees and sum(row.agrees for row in check.blocks) == 3


@pytest.mark.slow
def test_what_was_reweighted_matters():
    problem, solution = calibrated()
    steps = [replace(step, reweights_losses=False) for step in solution.majorizations]
    check = problem.cross_check(with_steps(solution, steps))
    assert not steps_of(check)[0].agrees


@pytest.mark.slow
def test_a_majoriser_that_is_none_is_noticed(stepped, monkeypatch):
    problem, solution = stepped
    right = majorization.convex_forms

    def lower(form, at, random_state=0):
        return [(text, replace(f, constant=f.constant - 0.5)) for text, f in right(form, at, random_state)]

    monkeypatch.setattr(majorization, "convex_forms", lower)
    wrong = problem.cross_check(solution).disagreements
    assert sum("misses the objective before the step by" in text for text in wrong) == 3
    assert any("after the step the majoriser is below the objective by" in text for text in wrong)


@pytest.mark.slow
def test_of_large_data_some_tasks_are_compared():
    """The very solution and its very steps, not those of a subsample."""
    problem, solution = calibrated(m=8, n=14)
    size = sum(X.size for X in problem.form().losses[0].tasks.inputs)
    check = problem.cross_check(solution, max_size=size // 3, random_state=4)
    assert check.agrees and check.objective == pytest.approx(solution.objective) and len(steps_of(check)) == 3
    assert "over the weights of 2 of 8 tasks, the others kept, random_state=4" in check.scope
    assert all(row.size < check.size for row in check.blocks)  # relative to what is compared
    chosen = np.sort(np.random.default_rng(4).permutation(8)[:2])
    for task in chosen:
        V = solution.W.copy()
        V[:, task] *= 1.05
        wrong = problem.cross_check(moved(problem, solution, V), max_size=size // 3, random_state=4)
        assert wrong.blocks[0].difference > 1e-5 and not wrong.agrees
        steps = [
            replace(step, after={"W": step.after["W"] * V / solution.W}) for step in solution.majorizations
        ]
        wrong = problem.cross_check(with_steps(solution, steps), max_size=size // 3, random_state=4)
        assert not any(row.agrees for row in steps_of(wrong)) and wrong.blocks[0].agrees
    whole = problem.cross_check(solution, max_size=None)
    assert whole.scope == "the whole problem" and whole.agrees


@pytest.mark.slow
def test_large_data_of_coupled_tasks_are_checked_on_fewer_rows():
    problem = model(mtl.log_rank, constraints=lambda W: [mtl.l1_norm(W) <= 2.0], tasks=data(n=30))
    check = problem.cross_check(problem.solve(tol=1e-7), max_size=150)
    assert check.agrees and "rows a task" in check.scope
