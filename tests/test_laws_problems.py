"""Laws of whole problems, over every loss and several regularizers on small data.

The judge is never the solver itself: optima come from the reference, bounds from random multipliers, data
from another layout.
"""

import zlib
from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import Loss
from mtldsl.certificates.certificate import certify
from mtldsl.normal_form.terms.structured_term import Mixture
from mtldsl.reference.solve import solve_reference
from tests.loops import for_each
from tests.models import MODELS, labels_of

N, D, M = 14, 5, 3
#: those of labellings are functions of other weights: test_laws_label_graph.py
LOSSES = sorted(
    name
    for name, atom in REGISTRY.items()
    if issubclass(atom, Loss) and atom.labels not in ("indicators", "classes")
)
every_loss = for_each("loss", LOSSES)
WEIGHTED = [name for name in LOSSES if REGISTRY[name].weighs_samples]


def labels(loss, X, rng):
    """Targets that the loss takes, one column a task."""
    W = np.outer(rng.normal(size=D), np.ones(M)) + 0.3 * rng.normal(size=(D, M))
    Z = X @ W + 0.3 * rng.normal(size=(len(X), M))
    return labels_of(REGISTRY[loss].labels, Z, rng)


def data(loss, seed=0, n=N):
    rng = np.random.default_rng([zlib.crc32(loss.encode()), seed])
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7)
    return X, labels(loss, X, rng), rng


def problem_of(loss, tasks, *regularizers, intercept=False):
    """loss + sum of (coefficient, word)."""
    W = mtl.Weights(tasks, intercept=intercept)
    objective = getattr(mtl, loss)(W, tasks)
    for coefficient, word in regularizers:
        objective = objective + coefficient * getattr(mtl, word)(W)
    return mtl.minimize(objective)


def optimum(problem, tol=1e-7):
    solution = problem.solve(tol=tol)
    assert solution.status == "optimal" and solution.solver != "cvxpy", solution
    return solution.objective


def test_the_lambda_max_of_an_f_score_is_a_bound_and_says_so():
    X, Y, _ = data("structured_hinge")
    tasks = mtl.Tasks.shared(X, Y)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    for metric in (
        mtl.metrics.FScore(), mtl.metrics.AUC(), mtl.metrics.ErrorRate(), mtl.metrics.BalancedError(),
    ):  # fmt: skip
        problem = mtl.minimize(lam * mtl.structured_hinge(W, tasks, metric=metric) + mtl.l1_norm(W))
        critical = problem.lambda_max(lam)
        assert critical.exact == (metric.name != "FScore") == (not critical.note)
        if critical.exact:
            assert critical == pytest.approx(1.0 / np.abs(2 * X.T @ Y).max(), rel=1e-9)


@pytest.mark.by_default("square_root_loss")
@pytest.mark.parametrize("loss", LOSSES)
def test_layouts_of_the_same_data_are_the_same_problem(loss):
    """Shared, separate, grouped and sparse: equal values and bounds at every point, equal optima."""
    X, Y, rng = data(loss)
    order = rng.permutation(N * M)  # grouped rows come in any order; tasks must first appear in theirs
    order = np.concatenate([[0, N, 2 * N], order[~np.isin(order, [0, N, 2 * N])]])
    stacked, flat, ids = np.tile(X, (M, 1))[order], Y.T.ravel()[order], np.repeat(np.arange(M), N)[order]
    layouts = {
        "shared": mtl.Tasks.shared(X, Y),
        "sparse": mtl.Tasks.shared(sparse.csr_array(X), Y),
        "separate": mtl.Tasks.separate([X] * M, list(Y.T)),
        "sparse separate": mtl.Tasks.separate([sparse.csr_array(X)] * M, list(Y.T)),
        "grouped": mtl.Tasks.grouped(stacked, flat, ids),
    }
    intercept = REGISTRY[loss].takes_intercept is not False  # a property, where the metric says
    problems = {
        name: problem_of(loss, tasks, (0.5, "l21_norm"), (0.2, "ridge"), intercept=intercept)
        for name, tasks in layouts.items()
    }
    point = {"W": rng.normal(size=(D, M)), "W.intercept": rng.normal(size=(1, M))}
    forms = {name: problem.form() for name, problem in problems.items()}
    expected = certify(forms["shared"], point)
    best = solve_reference(forms["shared"]).objective
    for name, problem in problems.items():
        found = certify(forms[name], point)
        assert found.objective == pytest.approx(expected.objective, rel=1e-12), name
        assert found.dual_bound == pytest.approx(expected.dual_bound, rel=1e-8, abs=1e-8), name
        assert optimum(problem) == pytest.approx(best, rel=1e-6), name


@pytest.mark.slow
@every_loss
def test_missing_labels_are_rows_that_are_not_there(loss):
    X, Y, rng = data(loss, n=20)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    kept = [~np.isnan(y) for y in Y.T]
    missing = problem_of(loss, mtl.Tasks.shared(X, Y), (0.5, "trace_norm"))
    rows = mtl.Tasks.separate([X[k] for k in kept], [y[k] for y, k in zip(Y.T, kept, strict=True)])
    removed = problem_of(loss, rows, (0.5, "trace_norm"))
    point = {"W": rng.normal(size=(D, M))}
    assert missing.form().value(point) == pytest.approx(removed.form().value(point), rel=1e-12)
    best = solve_reference(removed.form()).objective
    assert optimum(missing) == pytest.approx(best, rel=1e-6) == optimum(removed)


@pytest.mark.slow
@for_each("loss, mean", list(zip(WEIGHTED, cycle([True, False]), strict=False)))
def test_sample_weights_equal_replication(loss, mean):
    X, Y, rng = data(loss)
    copies = rng.integers(1, 4, size=N)
    weighted = mtl.Tasks.shared(X, Y, sample_weights=copies.astype(float))
    replicated = mtl.Tasks.shared(np.repeat(X, copies, axis=0), np.repeat(Y, copies, axis=0))
    problems = []
    for tasks in (weighted, replicated):
        W = mtl.Weights(tasks, intercept=REGISTRY[loss].takes_intercept is not False)
        problems.append(
            mtl.minimize(getattr(mtl, loss)(W, tasks, mean=mean) + 0.1 * mtl.l21_norm(W) + 0.1 * mtl.ridge(W))
        )
    point = {"W": rng.normal(size=(D, M)), "W.intercept": rng.normal(size=(1, M))}
    values = [problem.form().value(point) for problem in problems]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    best = solve_reference(problems[1].form()).objective
    assert [optimum(problem) for problem in problems] == pytest.approx([best, best], rel=1e-6)


@every_loss
def test_permuting_tasks_rows_and_features_permutes_the_solution(loss):
    X, Y, rng = data(loss)
    rows, features, tasks = rng.permutation(N), rng.permutation(D), rng.permutation(M)
    regularizers = (0.5, "l21_norm"), (0.3, "trace_norm"), (0.5, "ridge")
    solutions = [
        problem_of(loss, mtl.Tasks.shared(*arrays), *regularizers).solve(tol=1e-10)
        for arrays in ((X, Y), (X[rows][:, features], Y[rows][:, tasks]))
    ]
    assert solutions[0].objective == pytest.approx(solutions[1].objective, rel=1e-8)
    # the solution is unique: objective - optimum >= 0.25 ||W - W*||^2
    reach = 2 * np.sqrt(max(s.gap.absolute for s in solutions) / 0.25) + 1e-9
    assert np.linalg.norm(solutions[0].W[features][:, tasks] - solutions[1].W) <= reach <= 1e-3


@for_each("loss, degree, norm", [("squared_loss", 2, "l21_norm"), ("sum_of_squares", 2, "trace_norm"), ("absolute_loss", 1, "l1_norm"),
                                 ("quantile_loss", 1, "trace_norm"), ("square_root_loss", 1, "l21_norm")])  # fmt: skip
def test_rescaling_targets_rescales_the_solution(loss, degree, norm):
    """Targets times c: the weights times c, where the norm's coefficient is multiplied by c^(degree - 1)."""
    X, Y, _ = data(loss)
    c = 7.0
    one = optimum(problem_of(loss, mtl.Tasks.shared(X, Y), (0.4, norm)))
    scaled = optimum(problem_of(loss, mtl.Tasks.shared(X, c * Y), (0.4 * c ** (degree - 1), norm)))
    assert scaled == pytest.approx(c**degree * one, rel=1e-6)


def degenerate(loss):
    """case -> (X, Y): a zero column, two equal columns, one task, one feature, one row, few rows, constant
    targets.
    """
    X, Y, _ = data(loss)
    zero_column, equal_columns = X.copy(), X.copy()
    zero_column[:, 1], equal_columns[:, 1] = 0.0, X[:, 0]
    cases = {
        "zero column": (zero_column, Y),
        "equal columns": (equal_columns, Y),
        "one task": (X, Y[:, :1]),
        "one feature": (X[:, :1] + 1.0, Y),
        "one task, one feature": (X[:, :1] + 1.0, Y[:, :1]),
        "more features than rows": (X[:3], np.array([[1.0, -1, 1], [-1, 1, 1], [1, 1, -1]])),
    }
    if REGISTRY[loss].labels != "sign":
        cases["one row"] = (X[:1], np.abs(Y[:1]))
        cases["constant targets"] = (X, np.full_like(Y, 2.0))
    if REGISTRY[loss].labels in ("count", "positive"):
        cases = {case: (X, np.abs(Y)) for case, (X, Y) in cases.items()}
    return cases


def degenerate_cases():
    """Every loss with fewer rows than features, and in turn with two of the others; every norm."""
    norms = cycle(["l1_norm", "l21_norm", "trace_norm"])
    for k, loss in enumerate(LOSSES):
        names = list(degenerate(loss))
        names.remove("more features than rows")
        for case in ("more features than rows", names[k % len(names)], names[(k + 3) % len(names)]):
            yield loss, case, next(norms)


@pytest.mark.by_default("structured_hinge")
@pytest.mark.parametrize("loss, case, norm", list(degenerate_cases()))
def test_degenerate_data(loss, case, norm):
    problem = problem_of(loss, mtl.Tasks.shared(*degenerate(loss)[case]), (0.3, norm))
    best = solve_reference(problem.form()).objective
    assert optimum(problem, tol=1e-6) == pytest.approx(best, rel=2e-6, abs=1e-7)
    by_admm = problem.solve("admm", tol=1e-6)  # takes every model, so it must take these
    assert by_admm.status == "optimal", by_admm
    assert by_admm.objective == pytest.approx(best, rel=2e-6, abs=1e-7)


def test_targets_that_are_all_zero_have_the_zero_solution():
    for loss in ("squared_loss", "absolute_loss", "square_root_loss", "huber_loss"):
        X, _, _ = data(loss)
        solution = problem_of(loss, mtl.Tasks.shared(X, np.zeros((N, M))), (0.3, "l21_norm")).solve()
        assert solution.status == "optimal" and solution.objective == 0.0, (loss, solution)
        np.testing.assert_array_equal(solution.W, 0.0)


#: whose loss takes seconds for random multipliers, and is that of another model
OTHER_LIKELIHOOD = "label_likelihood_with_a_k_support_norm_nonnegative"


def disturbed(dual, size, rng):
    """A loss's multipliers, each changed; those of a structured hinge are a list with an array or random labellings a task."""
    if isinstance(dual, list):
        return [disturbed(part, size, rng) for part in dual]
    if isinstance(dual, Mixture):
        flips = dual.flips ^ (rng.random(dual.flips.shape) < min(size, 0.2))
        return Mixture(flips, dual.weights + size * rng.normal(size=dual.weights.shape))
    return dual + size * rng.normal(size=dual.shape)


@pytest.mark.by_default("a_metric_of_its_own_for_every_task_group_sparse")
@pytest.mark.parametrize("name", [name for name in MODELS if name != OTHER_LIKELIHOOD])
def test_weak_duality_on_random_points_and_multipliers(name):
    """Whatever the multipliers, the certificate's bound stays below the optimum that the reference found."""
    form = MODELS[name]().form()
    reference = solve_reference(form)
    rng = np.random.default_rng(3)
    margin = 1e-7 * (1 + abs(reference.objective))
    finite = 0
    for size in (0.0, 0.1, 1.0, 10.0):
        for _ in range(2):
            blocks = {block: size * rng.normal(size=shape) for block, shape in form.shapes.items()}
            loss_duals = [size * rng.normal(size=loss.tasks.n_samples) for loss in form.losses]
            function_duals = [size * rng.normal(size=f.map.shape) for f in form.functions]
            for duals in (
                (None, None), (loss_duals, function_duals), (loss_duals, None), (None, function_duals),
            ):  # fmt: skip
                bound = certify(form, blocks, *duals).dual_bound
                assert bound <= reference.objective + margin
                finite += np.isfinite(bound)
            near = [disturbed(u, 0.1 * size, rng) for u in reference.loss_duals]
            bound = certify(form, reference.blocks, near, reference.function_duals).dual_bound
            assert bound <= reference.objective + margin
    assert finite >= 8
