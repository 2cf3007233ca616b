"""Dual coordinate ascent on samples: equal to the reference, whatever must not change a result, on hard models."""

from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.errors import SolverError
from tests.known_optima import fixture
from tests.loops import for_each
from tests.models import D, M, separate, shared, with_weights

BOTH = [mtl.similarities.union(), mtl.similarities.individual()]

#: word -> what its labels are
LOSSES = {
    "hinge_loss": "sign", "squared_hinge_loss": "sign", "logistic_loss": "sign", "squared_loss": "real",
    "sum_of_squares": "real", "absolute_loss": "real", "huber_loss": "real", "quantile_loss": "real",
}  # fmt: skip


def assert_solved(problem, tol=1e-6, **options):
    """Certified by dual ascent, and equal to the reference. The objective is that of the theta shown: the best one for W is no worse,
    and no better than the bound.
    """
    solution = problem.solve(solver="dual_ascent", tol=tol, **options)
    assert solution.status == "optimal", solution
    value, rounding = problem.form().value(solution.blocks), 1e-12 * abs(solution.objective)
    assert solution.dual_bound - rounding <= value <= solution.objective + rounding
    assert solution.objective - solution.dual_bound <= tol * abs(solution.objective)
    check = problem.cross_check(solution)
    assert check.agrees, str(check)
    return solution


def arrays(n_tasks=3, n=10, d=4, seed=0, labels="sign", noise=0.5):
    rng = np.random.default_rng(seed)
    Xs = [rng.normal(size=(n, d)) for _ in range(n_tasks)]
    ys = [X @ np.ones(d) + noise * rng.normal(size=n) for X in Xs]
    return Xs, [np.sign(y) for y in ys] if labels == "sign" else ys


def model(Xs, ys, word=mtl.hinge_loss, C=1.0, p=2.0, similarities=BOTH, intercept=False, **options):
    tasks, W = with_weights(mtl.Tasks.separate(Xs, ys), intercept=intercept)
    return mtl.minimize(C * word(W, tasks, **options) + mtl.mkl_norm(W, similarities, p=p))


# -------------------------------------------------------------------------------------------- established optima
@pytest.mark.slow
@for_each("form", ["kept", "eliminated", "given"])
@for_each("name", ["mtmkl_pd_kernels", "mtmkl_tree_indicator"])
def test_known_optima(name, form):
    """To 1e-8; the fixtures agree among themselves to 5e-10. theta where it is unique (p > 1) to the square root of that. At p = 1 weights whose
    steps are corrected too seldom drift for ever, depending on the order of the samples: seeds 0 and 2.
    """
    found, seed = fixture(name), 2 if form == "eliminated" else 0
    tasks = mtl.Tasks.grouped(*(np.array(found[part]) for part in ("X", "y", "tau")))
    similarities = [mtl.similarities.from_kernel(R) for R in found["R"]]
    for key, result in found["results"].items():
        word, p = key.split("_p")
        W, theta = mtl.Weights(tasks), mtl.KernelWeights(similarities)
        losses = found["C"] * {"hinge": mtl.hinge_loss, "logistic": mtl.logistic_loss}[word](W, tasks)
        norm = {
            "kept": mtl.mkl_norm(W, similarities, theta),
            "eliminated": mtl.mkl_norm(W, similarities, p=float(p)),
            "given": mtl.mkl_norm(W, similarities, np.array(result["theta"])),
        }[form]
        bounds = [mtl.p_norm(theta, float(p)) <= 1] if form == "kept" else []
        solution = mtl.minimize(losses + norm, bounds).solve(solver="dual_ascent", tol=1e-9, seed=seed)
        assert solution.status == "optimal", (key, solution)
        assert solution.objective == pytest.approx(result["optimum"], rel=1e-8), key
        assert solution.dual_bound == pytest.approx(result["optimum"], rel=1e-8), key
        if float(p) > 1:
            np.testing.assert_allclose(solution.kernel_weights.values, result["theta"], atol=1e-3)


# --------------------------------------------------------------------- losses, layouts, similarities and exponents
PATH = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
HALF = np.array([[1.0, 0.5], [1.0, 0.0], [-0.5, 1.0], [0.0, 2.0]])

SIMILARITIES = [
    BOTH,
    [mtl.similarities.identity()],
    [mtl.similarities.tree([4, 4, 5, 5, 6, 6, -1])],
    [mtl.similarities.clusters(["a", "a", "b", "b"]), mtl.similarities.identity()],
    [mtl.similarities.laplacian(PATH, 0.5), mtl.similarities.union()],
    [mtl.similarities.evgeniou_pontil(0.5, 2.0), mtl.similarities.individual()],
    [mtl.similarities.from_kernel(HALF @ HALF.T), mtl.similarities.union()],  # of rank 2 together
    [mtl.similarities.union(columns=slice(0, 4)), mtl.similarities.individual(columns=[2, 3, 4, 5]),
     mtl.similarities.identity(columns=[0, 5])],
]  # fmt: skip


def grouped(tasks):
    """The same rows as one long table."""
    X = sparse.vstack(tasks.inputs) if tasks.is_sparse else np.vstack(tasks.inputs)
    ids = np.repeat(np.arange(tasks.n_tasks), tasks.counts)
    order = np.random.default_rng(0).permutation(ids.size)
    return mtl.Tasks.grouped(
        X.tocsr()[order] if tasks.is_sparse else X[order], tasks.targets[order], ids[order]
    )


LAYOUTS = [
    lambda labels: shared(1, n=14, labels=labels),
    lambda labels: shared(2, n=18, labels=labels, missing=0.25),
    lambda labels: separate(3, labels=labels),
    lambda labels: grouped(separate(4, labels=labels)),
    lambda labels: shared(5, n=16, labels=labels, density=0.4),
    lambda labels: shared(6, n=20, labels=labels, missing=0.2, density=0.5, sample_weights=True),
    lambda labels: separate(7, labels=labels, density=0.5),
    lambda labels: grouped(separate(8, labels=labels, density=0.5)),
    lambda labels: shared(9, n=14, labels=labels, sample_weights=True),
]

EXPONENTS = [1.0, 1.5, 2.0, np.inf, "given", "radius"]


def penalty_and_bounds(W, similarities, p):
    if p == "given":
        n = len(mtl.mkl_norm(W, similarities, p=2).terms[0].atom.kernels)
        return mtl.mkl_norm(W, similarities, np.linspace(0.3, 1.5, n)), []
    if p == "radius":
        theta = mtl.KernelWeights()
        return mtl.mkl_norm(W, similarities, theta), [mtl.p_norm(theta, 1.5) <= 3]
    return mtl.mkl_norm(W, similarities, p=p), []


@pytest.mark.slow
@for_each("i", [1, *(8 * k + (3 * k + j) % 8 for k in range(1, 6) for j in range(3))])
def test_certified_and_equal_to_the_reference(i):
    """Losses, exponents, data layouts, similarities, intercepts, C and mean=True in turn."""
    word, labels = list(LOSSES.items())[i % 8]
    p, similarities = EXPONENTS[i // 8], SIMILARITIES[(i // 8 + i) % 8]
    tasks, W = with_weights(LAYOUTS[i % 9](labels), intercept=(i // 3) % 2 == 1)
    mean = {"mean": True} if i % 4 == 1 else {}
    loss = getattr(mtl, word)(W, tasks, **mean)
    penalty, bounds = penalty_and_bounds(W, similarities, p)
    C = [0.3, 1.0, 5.0][i % 3] * (10.0 if mean else 1.0)
    solution = assert_solved(mtl.minimize(C * loss + penalty, subject_to=bounds))
    theta = solution.kernel_weights.values
    assert theta.min() >= 0
    if p not in ("given", "radius"):
        assert np.linalg.norm(theta, p) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.by_default("0.5-squared_loss-True")
@pytest.mark.parametrize(
    "word, intercept", [("hinge_loss", True), ("logistic_loss", False), ("squared_loss", True)]
)
@pytest.mark.parametrize("density", [None, 0.5])
def test_ridge_and_quadratics_between_tasks(word, intercept, density):
    """Without mkl_norm: one kernel, the inverse of the quadratics. Another solver finds the same optimum."""
    tasks, W = with_weights(shared(3, n=20, labels=LOSSES[word], density=density), intercept=intercept)
    loss = 2.0 * getattr(mtl, word)(W, tasks)
    coupling = PATH + 0.2 * np.eye(M)
    for penalty in (
        0.7 * mtl.ridge(W),
        mtl.ridge(W) + 0.5 * mtl.ridge(W),
        mtl.kronecker_ridge(W, SpectralMatrix(np.zeros((D, 0)), np.zeros(0), 0.8), coupling),
        1.5 * mtl.graph_laplacian(W, PATH) + 0.3 * mtl.ridge(W),
        mtl.mean_regularizer(W) + 0.1 * mtl.ridge(W),
    ):
        problem = mtl.minimize(loss + penalty)
        solution = problem.solve(solver="dual_ascent", tol=1e-7)
        other = problem.solve(solver="admm", tol=1e-7)
        assert solution.status == other.status == "optimal", (solution, other)
        assert solution.objective == pytest.approx(other.objective, rel=2e-7)
        np.testing.assert_allclose(solution.W, other.W, atol=2e-2)


# ------------------------------------------------------------------------------------------------- odd data
def zeros(word):
    """A row of zeros, and a task of zeros."""
    Xs, ys = arrays(labels=LOSSES[word])
    Xs[0][3] = 0
    Xs[1][:] = 0
    return Xs, ys


def one_sample(word):
    Xs, ys = arrays(labels=LOSSES[word])
    return [Xs[0][:1], *Xs[1:]], [ys[0][:1], *ys[1:]]


def no_inputs(word):
    Xs, ys = arrays()
    return [0 * X for X in Xs], ys


def unequal_classes(word):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(100, 9)) for _ in range(3)], [np.where(np.arange(100) < 6, 1.0, -1.0)] * 3


ODD = {
    "zeros": (zeros, {}, list(zip(LOSSES, cycle([True, False]), strict=False))),
    "one sample": (one_sample, {},
     [(w, True) for w in ("squared_loss", "absolute_loss", "huber_loss")]),
    "no inputs": (no_inputs, {}, [("hinge_loss", False), ("logistic_loss", True)]),
    "unequal classes": (unequal_classes,
     {"C": 1e-6, "p": np.inf, "similarities": [mtl.similarities.identity()]}, [("hinge_loss", True)]),
    "tiny C": (lambda word: arrays(n=20, labels=LOSSES[word]), {"C": 1e-6},
     [(word, True) for word in ("hinge_loss", "logistic_loss", "absolute_loss")]),
    "noise": (lambda word: arrays(n=40, labels="real", noise=2.0), {"C": 10.0}, [("absolute_loss", True)]),
}  # fmt: skip


@pytest.mark.slow
@for_each("name, word, intercept", [(name, *case) for name in ODD for case in ODD[name][2]])
def test_odd_data(name, word, intercept):
    data, options, _ = ODD[name]
    assert_solved(model(*data(word), getattr(mtl, word), intercept=intercept, **options))


def test_rows_of_zeros_far_from_the_intercept():
    """One feature, five samples, whose optimum is at the kinks of one or two."""
    X, y = np.array([[0.0], [0.0], [-2.1], [0.9], [2.3]]), np.array([-1.0, 2.5, -1.8, -0.7, 0.7])
    tasks = mtl.Tasks.separate([X], [y], sample_weights=[np.array([1.7, 1.4, 1.9, 1.5, 1.2])])
    W = mtl.Weights(tasks, intercept=True)
    assert_solved(mtl.minimize(10 * mtl.absolute_loss(W, tasks) + mtl.ridge(W)))


# ------------------------------------------------------------------------------------ models that once went wrong
@pytest.mark.slow
@for_each("word, p", [("absolute_loss", 1.0), ("squared_loss", 2.0), ("huber_loss", 1.0)])
def test_weights_do_not_lock_after_a_first_task_of_zeros(word, p):
    """All labels of one task are zero, so that its b_m is zero after a pass that begins with it (seed 2): there E.1 alone would leave
    its weight at zero, though it is a fifth of the optimum's.
    """
    Xs, ys = arrays(labels="real", seed=1, noise=0.0)
    ys[0] = np.zeros(10)
    problem = model(Xs, ys, getattr(mtl, word), p=p)
    solution = problem.solve(solver="dual_ascent", seed=2)
    assert solution.status == "optimal", solution
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy").objective, rel=2e-6)
    assert solution.kernel_weights.values[1] > 0.1


@pytest.mark.slow
def test_warm_start_from_other_similarities_data_and_unknowns():
    before = model(*arrays(), p=1.0).solve(solver="dual_ascent")
    others = [
        model(*arrays(), p=2.0),  # a smaller exponent left some at zero
        model(
            *arrays(), similarities=[mtl.similarities.union(), mtl.similarities.identity()]
        ),  # fewer weights
        model(
            *arrays(), similarities=[mtl.similarities.individual(), mtl.similarities.union()], p=1.5
        ),  # as many, of others
        model(*arrays(seed=3), p=1.0),
        model(*arrays(n=7, seed=3), p=1.0),
        model(*arrays(labels="real"), mtl.squared_loss),  # multipliers without bounds
        model(*arrays(), mtl.logistic_loss, C=0.1),  # others inside
    ]
    for problem in others:
        cold = problem.solve(solver="dual_ascent")
        warm = problem.solve(solver="dual_ascent", warm_start=before)
        assert cold.status == warm.status == "optimal", warm
        assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
    with_intercept = model(*arrays(), intercept=True)
    warm = with_intercept.solve(
        solver="dual_ascent", warm_start={"W": before.W, "W.intercept": np.zeros((1, 3))}
    )
    assert warm.status == "optimal"
    assert warm.objective == pytest.approx(with_intercept.solve(solver="dual_ascent").objective, rel=2e-6)


@pytest.mark.slow
@for_each("p", [1.0, 2.0])
def test_path_over_C_is_as_certified_as_cold_starts(p):
    """From a C where weights are lean to one where they are not, and back."""
    Xs, ys = arrays(n_tasks=4, n=20, d=5, noise=2.0)
    C = mtl.Parameter(1.0, name="C")
    problem = model(Xs, ys, C=C, p=p, similarities=[mtl.similarities.tree([4, 4, 5, 5, 6, 6, -1])])
    grid = [1e-5, 1e-3, 1e-1, 1.0, 1e-2, 1e-4]
    for value, solution in zip(grid, list(problem.path(C, grid)), strict=True):
        assert solution.status == "optimal" and solution.solver == "dual_ascent", (value, solution)
        C.value = value
        assert solution.objective == pytest.approx(
            problem.solve(solver="dual_ascent", seed=1).objective, rel=2e-6
        )


@pytest.mark.slow
@for_each("word, p, intercept", [
    ("hinge_loss", 1.0, False), ("hinge_loss", 2.0, True), ("squared_hinge_loss", 2.0, True),
    ("logistic_loss", 1.0, False), ("logistic_loss", np.inf, True),
])  # fmt: skip
def test_large_C(word, p, intercept):
    """Where one multiplier at a time crawls: all that are off their bounds move together."""
    assert_solved(model(*arrays(n=40), getattr(mtl, word), C=1e4, p=p, intercept=intercept))


@for_each("p", [1.001, 1.01, 1e300])
def test_exponents_near_their_ends(p):
    Xs, ys = arrays(n=30)
    solution, end = (
        model([30 * X for X in Xs], ys, C=1e-5, p=one).solve() for one in (p, 1.0 if p < 2 else np.inf)
    )
    assert solution.status == "optimal" and solution.dual_bound <= solution.objective * (1 + 1e-12)
    assert solution.objective == pytest.approx(end.objective, rel=2e-2)


def test_alternating_refuses_weights_of_given_matrices():
    problem = model(*arrays(), mtl.squared_loss)
    with pytest.raises(mtl.ModelError, match="learns the weights of given matrices, not a matrix"):
        problem.solve(solver="alternating")


# ----------------------------------------------------------------------- what must not change a result, and options
def problem_of(tasks=None):
    tasks, W = with_weights(separate(5, labels="sign") if tasks is None else tasks)
    return mtl.minimize(2 * mtl.hinge_loss(W, tasks) + 0.8 * mtl.mkl_norm(W, BOTH, p=2.0))


def test_another_seed_is_another_order_of_the_samples():
    runs = [problem_of().solve(solver="dual_ascent", tol=1e-7, seed=seed) for seed in (3, np.int64(3), 2**40)]
    np.testing.assert_array_equal(runs[0].W, runs[1].W)
    np.testing.assert_array_equal(runs[0].kernel_weights.values, runs[1].kernel_weights.values)
    assert not np.array_equal(runs[0].W, runs[2].W)
    assert runs[2].objective == pytest.approx(runs[0].objective, rel=2e-7)


def test_a_solve_leaves_the_data_and_a_warm_start_as_they_were():
    tasks = shared(3, n=20, labels="sign", sample_weights=True)
    problem = problem_of(tasks)
    before = problem.solve(solver="dual_ascent", tol=1e-3)
    given = [tasks.X, tasks.targets, tasks.sample_weights, *before.blocks.values()]
    given += before.state.state.values()
    copies = [np.array(one) for one in given]
    problem.solve(solver="dual_ascent", tol=1e-9, warm_start=before)
    for one, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(one, copy)


def test_options_belong_to_samples_or_to_planes():
    said = r"pull=1.*not for this model; here dual_ascent takes shrinking=True, seed=0"
    with pytest.raises(SolverError, match=said):
        problem_of().solve(solver="dual_ascent", pull=1)
    tasks, W = with_weights(shared(3, n=12, labels="sign"))
    planes = mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore()) + mtl.ridge(W))
    for name, value in {"shrinking": True, "seed": 1, "checkpoint": "run", "progress": True}.items():
        said = f"{name}=.*not for this model; here dual_ascent takes (?!shrinking).*pull="
        with pytest.raises(SolverError, match=said):
            planes.solve(solver="dual_ascent", **{name: value})
    with pytest.raises(SolverError, match="unknown option; dual_ascent takes"):
        problem_of().solve(solver="dual_ascent", shrink=True)
    with pytest.raises(SolverError, match="options belong to one solver"):
        problem_of().solve(shrinking=False)


@for_each("seed", [-1, 1.5, True, None, "0", np.float64(2)])
def test_seeds_that_are_none(seed):
    with pytest.raises(SolverError, match=r"seed=.*whole number >= 0"):
        problem_of().solve(solver="dual_ascent", seed=seed)


def test_progress_prints_a_line_a_pass(capsys):
    solution = problem_of().solve(solver="dual_ascent", progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == solution.iterations
    assert lines[0].startswith("pass 1: ") and " of 63 samples active, violation " in lines[0]
