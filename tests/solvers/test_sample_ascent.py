"""The passes of dual coordinate ascent: what every step raises, what must not change a result, and its options."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers.samples import ascent as ascent_module
from mtldsl.solvers.samples import face as face_module
from mtldsl.solvers.samples.ascent import Ascent
from mtldsl.solvers.samples.face import Face
from mtldsl.solvers.samples.kernel_form import kernel_form
from tests.models import D, separate, shared

BOTH = [mtl.union(), mtl.individual()]
VIEWS = [mtl.union(columns=slice(0, 4)), mtl.individual(columns=[2, 3, 4]), mtl.identity(columns=[0, 5])]
LABELS = {"hinge_loss": "sign", "squared_hinge_loss": "sign", "logistic_loss": "sign"}


def problem_of(word="hinge_loss", tasks=None, C=2.0, similarities=BOTH, p=2.0, intercept=False):
    tasks = separate(5, labels=LABELS.get(word, "real")) if tasks is None else tasks
    W = mtl.Weights(tasks, intercept=intercept)
    penalty = mtl.ridge(W) if similarities is None else 0.8 * mtl.mkl_norm(W, similarities, p=p)
    return mtl.minimize(C * getattr(mtl, word)(W, tasks) + penalty)


def ascent_of(problem, passes=0, shrinking=False, seed=0):
    ascent = Ascent(kernel_form(problem.form()), shrinking=shrinking, random_state=seed)
    for _ in range(passes):
        ascent.sweep()
        ascent.update_weights()
        if ascent.loss.intercepts:
            ascent.centre_intercepts()
    return ascent


def gram(ascent):
    """K (N, N): <x_i, x_j> times the weighted kernel of their tasks, over the coefficient, view by view."""
    tasks, K = ascent.loss.tasks, 0.0
    X = np.vstack([x.toarray() if sparse.issparse(x) else x for x in tasks.inputs])
    for weight, kernel in zip(ascent.theta, ascent.norm.kernels, strict=True):
        rows = slice(None) if kernel.columns is None else kernel.columns
        K = K + weight * (X[:, rows] @ X[:, rows].T) * kernel.matrix[np.ix_(tasks.task_of, tasks.task_of)]
    return K / ascent.coefficient


def dual_value(ascent, K):
    """-sum conj(u) - 1/2 u^T K u at the present theta."""
    u = ascent.u
    return -ascent.loss.conjugate(u) - 0.5 * float(u @ K @ u)


MODELS = pytest.mark.parametrize(
    "word, layout, similarities",
    [
        ("hinge_loss", {"labels": "sign"}, BOTH),
        ("squared_hinge_loss", {"labels": "sign", "density": 0.5}, VIEWS),
        ("logistic_loss", {"labels": "sign", "missing": 0.2}, VIEWS),
        ("logistic_loss", {"labels": "sign", "density": 0.5, "sample_weights": True}, BOTH),
        ("absolute_loss", {"missing": 0.2, "density": 0.5}, BOTH),
        ("squared_loss", {"sample_weights": True}, None),
        ("huber_loss", {}, VIEWS),
    ],
)


# ---------------------------------------------------------------------------------------------------------- passes


@MODELS
def test_every_pass_raises_the_dual_value_by_what_it_says(word, layout, similarities):
    """To rounding for quadratic conjugates; for an entropy it only rises."""
    ascent = ascent_of(problem_of(word, shared(3, n=15, **layout), similarities=similarities))
    K = gram(ascent)
    before = dual_value(ascent, K)
    for _ in range(6):
        ascent.sweep()
        value = dual_value(ascent, K)
        if ascent.samples.entropic:
            assert value >= before - 1e-12 * abs(before)
        else:
            assert value - before == pytest.approx(ascent.gain, rel=1e-9, abs=1e-10)
        before = value


def test_a_pass_over_entropies_says_no_more_than_it_raised():
    ascent = ascent_of(problem_of("logistic_loss"))
    K = gram(ascent)
    for _ in range(4):
        before = dual_value(ascent, K)
        ascent.sweep()
        assert 0 < ascent.gain <= dual_value(ascent, K) - before + 1e-10


@MODELS
def test_nodes_and_weights_belong_to_the_multipliers(word, layout, similarities):
    """After passes, kernel weights and a step on a face: W = -Z K_theta / c from the multipliers alone."""
    ascent = ascent_of(
        problem_of(word, shared(3, n=15, **layout), similarities=similarities, intercept=True), passes=4
    )
    ascent.move_on_face()
    Z = ascent.loss.tasks.adjoint(ascent.u)
    expected = np.zeros(Z.shape)
    for kernel, weight in zip(ascent.norm.kernels, ascent.theta, strict=True):
        rows = slice(None) if kernel.columns is None else kernel.columns
        expected[rows] -= weight * Z[rows] @ kernel.matrix / ascent.coefficient
    np.testing.assert_allclose(ascent.blocks()["W"], expected, atol=1e-11)
    np.testing.assert_allclose(ascent.nodes.sizes(), ascent.norm.sizes(Z), rtol=1e-10, atol=1e-12)
    low, high = ascent.loss.dual_interval()
    assert np.all((low <= ascent.u) & (ascent.u <= high))


@pytest.mark.parametrize("intercept", [False, True])
def test_look_estimates_the_certificates_gap(intercept):
    """Without an intercept it is that gap, of the point at hand."""
    from mtldsl.proof.certificate import certify

    problem = problem_of(intercept=intercept)
    ascent = ascent_of(problem, passes=12)
    point, gap = ascent.point(), ascent.look()
    seen = certify(problem.form(), point.blocks, point.loss_duals, None, structures=point.structures)
    if not intercept:
        assert gap == pytest.approx((seen.objective - seen.dual_bound) / seen.objective, rel=1e-9)
    else:
        assert gap >= 0 and seen.objective >= seen.dual_bound


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_kernel_weights_are_the_closed_form_and_never_zero(p):
    """E.1 on a_m = theta_m^2 b_m; a weight whose b_m is zero is small, and on the ball all the same."""
    ascent = ascent_of(problem_of(p=p))
    ascent.sweep()
    b, before = ascent.nodes.sizes(), ascent.theta.copy()
    ascent.last_gap = 1e-9
    ascent.update_weights()
    a = before**2 * b
    expected = a ** (1 / (p + 1)) / np.sum(a ** (p / (p + 1))) ** (1 / p)
    np.testing.assert_allclose(ascent.theta, expected, rtol=1e-6)
    ascent.nodes.store[:] = 0.0
    ascent.nodes.of_cell(0)[1] = 1.0  # one task alone
    for _ in range(50):
        ascent.update_weights()
        assert ascent.theta.min() > 0 and np.linalg.norm(ascent.theta, p) == pytest.approx(1.0, rel=1e-12)
    assert np.argmax(ascent.theta) == 1


# ----------------------------------------------------------------------------------------------------------- faces


@MODELS
@pytest.mark.parametrize("intercept", [False, True])
def test_a_step_on_the_face_raises_the_dual_value(word, layout, similarities, intercept):
    """By what it says: recomputed densely, the augmented Lagrangian's terms of the intercepts too."""
    problem = problem_of(word, shared(3, n=15, **layout), similarities=similarities, intercept=intercept)
    ascent = ascent_of(problem, passes=3)
    face = Face(
        ascent.samples,
        ascent.nodes,
        ascent.table,
        ascent.theta / ascent.coefficient,
        ascent.shift,
        ascent.intercepts,
    )
    assert face.free.size > 5
    # towards the face's own optimum, or where bounds are near only a little of the way
    (change, gain), *others = sorted((face.step(most)[:2] for most in (4, 200)), key=lambda step: -step[1])
    assert gain > 0 and all(other >= 0 for _, other in others)
    task = ascent.loss.tasks.task_of
    K = gram(ascent) + ascent.shift[task][:, None] * (task[:, None] == task)
    u, z = ascent.u, ascent.loss.predictions(ascent.blocks())
    whole = np.zeros(len(u))
    whole[face.free] = change
    rise = whole @ z - 0.5 * whole @ K @ whole - ascent.loss.conjugate(u + whole) + ascent.loss.conjugate(u)
    assert rise == pytest.approx(gain, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(face.kernel(change), (K @ whole)[face.free], atol=1e-9)
    before = dual_value(ascent, gram(ascent)) + ascent.intercepts[task] @ u
    ascent.move_on_face()  # the same step, shorter or longer
    if not intercept:
        assert dual_value(ascent, gram(ascent)) > before


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("word", ["squared_loss", "logistic_loss", "squared_hinge_loss"])
def test_its_direction_is_newtons(monkeypatch, word, intercept):
    """Conjugate gradients, made accurate, against a dense solve with the Hessian."""
    monkeypatch.setattr(face_module, "_ACCURATE", 1e-12)
    ascent = ascent_of(problem_of(word, similarities=VIEWS, C=0.5, intercept=intercept), passes=3)
    face = Face(
        ascent.samples,
        ascent.nodes,
        ascent.table,
        ascent.theta / ascent.coefficient,
        ascent.shift,
        ascent.intercepts,
    )
    task = ascent.loss.tasks.task_of
    K = gram(ascent) + ascent.shift[task][:, None] * (task[:, None] == task)
    u, s = ascent.u[face.free], ascent.samples.weight[face.free]
    if word == "logistic_loss":
        a = -ascent.samples.y[face.free] * u / s
        first, second = -ascent.samples.y[face.free] * np.log(a / (1 - a)), 1 / (s * a * (1 - a))
    else:  # conj(u) = y u + u^2 / (2 s), of the squared hinge loss y u + u^2 / (4 s) or as its scaling says
        b, c = ascent.loss.atom.dual_quadratic(ascent.samples.y[face.free])
        first, second = b + c * u / s, np.full(u.size, c / s)
    H = K[np.ix_(face.free, face.free)] + np.diag(second)
    expected = np.linalg.solve(H, ascent.loss.predictions(ascent.blocks())[face.free] - first)
    np.testing.assert_allclose(face._solve(2000), expected, rtol=1e-6, atol=1e-8)
    change, _, whole = face.step(2000)
    if word == "squared_loss":  # no bound is in the way: one step and the dual value is at its best
        np.testing.assert_allclose(change, expected, rtol=1e-6, atol=1e-8)
        assert whole


def test_one_step_solves_a_ridge_regression():
    """The multipliers that a squared loss settles at, and the weights of the normal equations."""
    tasks = separate(5)
    ascent = ascent_of(problem_of("squared_loss", tasks, C=1.0, similarities=None), passes=1)
    ascent.face_products = 500
    for _ in range(5):  # each to 1e-3 of what was left
        ascent.move_on_face()
    for i, (X, y) in enumerate(zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True)):
        expected = np.linalg.solve(X.T @ X + np.eye(D), X.T @ y)
        np.testing.assert_allclose(ascent.blocks()["W"][:, i], expected, atol=1e-9)


# ----------------------------------------------------------------------------------- what must not change a result


@pytest.mark.parametrize("word, intercept, density", [
    ("hinge_loss", False, None), ("hinge_loss", True, 0.5), ("logistic_loss", True, None), ("absolute_loss", False, 0.5),
])  # fmt: skip
def test_a_seed_gives_the_very_same_arrays(word, intercept, density):
    tasks = separate(4, labels=LABELS.get(word, "real"), density=density)
    runs = [
        problem_of(word, tasks, intercept=intercept).solve(solver="dual_ascent", tol=1e-7, seed=seed)
        for seed in (3, 3, 4)
    ]
    assert all(run.status == "optimal" for run in runs)
    for name in runs[0].blocks:
        np.testing.assert_array_equal(runs[0].blocks[name], runs[1].blocks[name])
    np.testing.assert_array_equal(runs[0].kernel_weights.values, runs[1].kernel_weights.values)
    assert runs[0].iterations == runs[1].iterations and runs[0].objective == runs[1].objective
    assert not np.array_equal(runs[0].W, runs[2].W)
    assert runs[2].objective == pytest.approx(runs[0].objective, rel=2e-7)


@pytest.mark.parametrize("word, p", [
    ("hinge_loss", 1.0), ("hinge_loss", 2.0), ("squared_hinge_loss", 1.0), ("squared_hinge_loss", 2.0), ("absolute_loss", 2.0),
])  # fmt: skip
def test_with_and_without_shrinking(word, p):
    problem = problem_of(word, shared(6, n=60, labels=LABELS.get(word, "real")), C=0.3, p=p)
    one, other = (
        problem.solve(solver="dual_ascent", shrinking=shrinking, tol=1e-8) for shrinking in (True, False)
    )
    assert one.status == other.status == "optimal"
    assert one.objective == pytest.approx(other.objective, rel=2e-8)
    least = [min(look["active_samples"] for look in run.history) for run in (one, other)]
    assert least[1] == 240 and (least[0] < 240 or word == "absolute_loss")


@pytest.mark.parametrize("word", ["hinge_loss", "logistic_loss"])
def test_order_of_rows_and_tasks(word):
    tasks, rng = separate(7, labels="sign"), np.random.default_rng(0)
    inputs, targets = tasks.inputs, tasks.per_task(tasks.targets)
    moved, order = [], [2, 0, 3, 1]
    for t in order:
        rows = rng.permutation(len(targets[t]))
        moved.append((inputs[t][rows], targets[t][rows]))
    one, other = (
        problem_of(word, some, intercept=True).solve(solver="dual_ascent", tol=1e-9)
        for some in (tasks, mtl.Tasks.separate(*zip(*moved, strict=True)))
    )
    assert one.objective == pytest.approx(other.objective, rel=2e-9)
    np.testing.assert_allclose(one.W[:, order], other.W, atol=1e-3)
    theta, rearranged = one.kernel_weights.values, other.kernel_weights.values
    np.testing.assert_allclose(np.append(theta[0], theta[1:][order]), rearranged, atol=1e-3)


@pytest.mark.parametrize(
    "word, density", [("hinge_loss", None), ("logistic_loss", 0.5), ("squared_hinge_loss", 0.5)]
)
@pytest.mark.parametrize(
    "similarities", [None, [mtl.identity()], [mtl.individual()]], ids=["ridge", "identity", "individual"]
)
def test_tasks_that_are_apart_in_two_threads(monkeypatch, word, density, similarities):
    """The very arrays of one thread: tasks share nothing but what a pass has read before it begins."""
    problem = problem_of(
        word, shared(8, n=40, labels="sign", density=density), similarities=similarities, intercept=True
    )
    one = problem.solve(solver="dual_ascent", tol=1e-6)
    monkeypatch.setattr(ascent_module, "_WORTH_THREADS", 0)
    monkeypatch.setattr(ascent_module.os, "cpu_count", lambda: 2)
    assert ascent_of(problem).threads == 2
    two = problem.solve(solver="dual_ascent", tol=1e-6)
    assert one.status == two.status == "optimal" and one.iterations == two.iterations
    for name in one.blocks:
        np.testing.assert_array_equal(one.blocks[name], two.blocks[name])


def test_tasks_that_are_not_apart_stay_in_one_thread(monkeypatch):
    problem = problem_of()
    one = problem.solve(solver="dual_ascent")
    monkeypatch.setattr(ascent_module, "_WORTH_THREADS", 0)
    monkeypatch.setattr(Ascent, "_in_parallel", lambda *arguments: pytest.fail("these tasks share nodes"))
    np.testing.assert_array_equal(problem.solve(solver="dual_ascent").W, one.W)


def test_a_solve_leaves_the_data_and_a_warm_start_as_they_were():
    tasks = shared(3, n=20, labels="sign", sample_weights=True)
    X, y, s = tasks.X.copy(), tasks.targets.copy(), tasks.sample_weights.copy()
    problem = problem_of(tasks=tasks)
    before = problem.solve(solver="dual_ascent", tol=1e-3)
    state = {name: np.array(value) for name, value in before.state.state.items()}
    blocks = {name: block.copy() for name, block in before.blocks.items()}
    problem.solve(solver="dual_ascent", tol=1e-9, warm_start=before)
    for a, b in (
        (tasks.X, X),
        (tasks.targets, y),
        (tasks.sample_weights, s),
        *((before.blocks[n], blocks[n]) for n in blocks),
    ):
        np.testing.assert_array_equal(a, b)
    for name, value in state.items():
        np.testing.assert_array_equal(before.state.state[name], value)


def test_a_warm_start_at_the_optimum_has_nothing_left_to_do():
    for word in ("hinge_loss", "logistic_loss", "squared_loss"):
        problem = problem_of(word, intercept=True)
        cold = problem.solve(solver="dual_ascent", tol=1e-8)
        warm = problem.solve(solver="dual_ascent", tol=1e-6, warm_start=cold)
        assert warm.status == "optimal" and warm.iterations <= 5 < cold.iterations


# ---------------------------------------------------------------------------------------------------------- options


def test_options_belong_to_samples_or_to_planes():
    with pytest.raises(
        SolverError, match=r"pull=1.*not for this model; here dual_ascent takes shrinking=True, seed=0"
    ):
        problem_of().solve(solver="dual_ascent", pull=1)
    tasks = shared(3, n=12, labels="sign")
    W = mtl.Weights(tasks)
    planes = mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.FScore()) + mtl.ridge(W))
    for option in ({"shrinking": True}, {"seed": 1}, {"checkpoint": "run"}, {"progress": True}):
        (name,) = option
        with pytest.raises(
            SolverError, match=f"{name}=.*not for this model; here dual_ascent takes (?!shrinking)"
        ) as error:
            planes.solve(solver="dual_ascent", **option)
        assert "pull=" in str(error.value)
    with pytest.raises(SolverError, match="unknown option; dual_ascent takes"):
        problem_of().solve(solver="dual_ascent", shrink=True)
    with pytest.raises(SolverError, match="options belong to one solver"):
        problem_of().solve(shrinking=False)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "0", np.float64(2)])
def test_seeds_that_are_none(seed):
    with pytest.raises(SolverError, match=r"seed=.*whole number >= 0"):
        problem_of().solve(solver="dual_ascent", seed=seed)


@pytest.mark.parametrize("seed", [np.int64(3), 2**40])
def test_seeds_of_other_kinds(seed):
    assert problem_of().solve(solver="dual_ascent", seed=seed).status == "optimal"


def test_progress_prints_a_line_a_pass(capsys):
    solution = problem_of().solve(solver="dual_ascent", progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == solution.iterations
    assert lines[0].startswith("pass 1: ") and " of 63 samples active, violation " in lines[0]


def test_limits_are_kept():
    problem = problem_of(C=1e3)
    short = problem.solve(solver="dual_ascent", max_iter=2, tol=1e-10)
    assert (short.status, short.iterations) == ("iteration_limit", 2) and np.isfinite(short.objective)
    assert short.dual_bound <= problem.solve(tol=1e-8).objective
    late = problem.solve(solver="dual_ascent", max_seconds=1e-9, tol=1e-10)
    assert late.status == "time_limit" and late.iterations <= 2
