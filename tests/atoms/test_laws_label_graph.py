"""Laws of models over a graph of labels: what CGM's optima obey, and what data may do to them.

The judge is the reference, which states every labelling, or another model that must have the same optimum.
"""

from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.proof.certificate import certify
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.solve import solve_reference

N, D, K = 16, 4, 4
EDGES = [(0, 1), (1, 3), (0, 2, 3)]
LOSSES = {
    "hinge": mtl.clique_hinge,
    "hinge with costs": lambda U, V, t: mtl.clique_hinge(U, V, t, loss=[0.5, 2.0, 1.0, 0.0][: t.n_tasks]),
    "zero-one": lambda U, V, t: mtl.clique_hinge(U, V, t, loss="zero_one"),
    "F-score of rows": lambda U, V, t: mtl.clique_hinge(U, V, t, loss=mtl.FScore()),
    "likelihood": mtl.pairwise_log_loss,
}
every_loss = pytest.mark.parametrize("word", LOSSES.values(), ids=LOSSES)


def data(seed=0, n=N, k=K):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.8)
    common = rng.normal(size=(n, 1))
    return (
        X,
        np.where(X @ rng.normal(size=(D, k)) + common + 0.3 * rng.normal(size=(n, k)) > 0, 1.0, -1.0),
        rng,
    )


def model(word, tasks, edges=EDGES, penalty=mtl.half_squared_group_norm, lam=0.1):
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges)
    return mtl.minimize(word(U, V, tasks) + lam * (mtl.ridge(U) + penalty(V)))


def at_random(problem, rng):
    return {name: rng.normal(size=shape) for name, shape in problem.form().shapes.items()}


def optimum(problem, tol=1e-7):
    solution = problem.solve(tol=tol)
    assert solution.status == "optimal" and solution.solver != "cvxpy", solution
    return solution.objective


def support(r):
    return lambda V: mtl.half_squared_k_support_norm(V, r)


# ------------------------------------------------------------------------------------------------ CGM's laws


@pytest.mark.by_default("hinge-ridge")
@pytest.mark.parametrize(
    "word, penalty",
    [
        pytest.param(word, penalty, id=f"{name}-{penalty.__name__}")
        for (name, word), penalty in zip(
            LOSSES.items(), cycle([mtl.ridge, mtl.half_squared_group_norm, support(2)]), strict=False
        )
    ],
)
def test_columns_of_labels_are_opposite_and_of_edges_sum_to_zero(word, penalty):
    """At an optimum: probabilities of 0 and 1, and of the values of an edge, change by opposite amounts. By the reference and the solver."""
    X, Y, _ = data()
    problem = model(word, mtl.Tasks.shared(X, Y), penalty=penalty)
    for blocks in (solve_reference(problem.form()).blocks, problem.solve(tol=1e-10).blocks):
        U, V = blocks["U"], blocks["V"]
        size = max(np.abs(U).max(), np.abs(V).max())
        np.testing.assert_allclose(U[:, ::2], -U[:, 1::2], atol=1e-4 * size)
        for columns in ([0, 1, 2, 3], [4, 5, 6, 7], range(8, 16)):
            np.testing.assert_allclose(V[:, list(columns)].sum(axis=1), 0.0, atol=1e-4 * size)


def test_the_hinge_without_edges_is_one_svm_a_label():
    """In b = u_1 - u_0, with a quarter of lam: max(0, 1 - y z) is the hinge of Delta = 1 and z = <x, b>."""
    X, Y, _ = data(1)
    tasks, lam = mtl.Tasks.shared(X, Y), 0.1
    labels = model(mtl.clique_hinge, tasks, [], lam=lam)
    W = mtl.Weights(tasks)
    apart = mtl.minimize(mtl.hinge_loss(W, tasks, mean=True) + 0.5 * lam * mtl.ridge(W))
    best = solve_reference(apart.form())
    found = solve_reference(labels.form())
    assert found.objective == pytest.approx(best.objective, rel=1e-8)
    assert optimum(labels) == pytest.approx(best.objective, rel=1e-6) == optimum(apart)
    U = found.blocks["U"]
    np.testing.assert_allclose(U[:, 1::2] - U[:, ::2], best.blocks["W"], atol=1e-4)


def test_the_likelihood_without_edges_is_logistic_a_label():
    """Without edges the likelihood is one logistic regression a label."""
    X, Y, _ = data(2)
    tasks, lam = mtl.Tasks.shared(X, Y), 0.1
    W = mtl.Weights(tasks)
    apart = mtl.minimize(mtl.logistic_loss(W, tasks, mean=True) + 0.5 * lam * mtl.ridge(W))
    best = solve_reference(apart.form()).objective
    assert optimum(model(mtl.pairwise_log_loss, tasks, [], lam=lam)) == pytest.approx(best, rel=1e-6)


@pytest.mark.slow
@every_loss
def test_more_edges_allowed_cost_less(word):
    """Omega_r falls with r, from the squared group norm at r = 1 to the ridge at r >= q."""
    X, Y, _ = data(3)
    tasks = mtl.Tasks.shared(X, Y)
    values = [solve_reference(model(word, tasks, penalty=support(r)).form()).objective for r in (1, 2, 3, 9)]
    assert values[0] >= values[1] >= values[2] - 1e-9
    ridge = solve_reference(model(word, tasks, penalty=mtl.ridge).form()).objective
    assert values[2] == pytest.approx(ridge, rel=1e-8) and values[3] == pytest.approx(ridge, rel=1e-8)
    group = solve_reference(model(word, tasks).form()).objective
    assert values[0] == pytest.approx(group, rel=1e-8)
    assert optimum(model(word, tasks, penalty=support(2))) == pytest.approx(values[1], rel=1e-6)


def test_the_squared_group_norm_is_kernel_learning_with_p_1():
    """One kernel a group of columns: 1/2 (sum of the groups' norms)^2."""
    rng = np.random.default_rng(4)
    W = rng.normal(size=(3, 6))
    tasks = mtl.Tasks.shared(rng.normal(size=(5, 3)), rng.normal(size=(5, 6)))
    kernels = []
    for group in ([0, 1], [2, 3], [4, 5]):
        R = np.zeros((6, 6))
        R[group, group] = 1.0  # the identity among the columns of the group
        kernels.append(mtl.from_kernel(R))
    weights = mtl.Weights(tasks)
    mkl = mtl.minimize(mtl.squared_loss(weights, tasks) + mtl.mkl_norm(weights, kernels, p=1.0))
    group = mtl.minimize(
        mtl.squared_loss(weights, tasks)
        + mtl.half_squared_group_norm(weights, columns=[[0, 1], [2, 3], [4, 5]])
    )
    assert mkl.form().value({"W": W}) == pytest.approx(group.form().value({"W": W}), rel=1e-10)
    assert optimum(mkl) == pytest.approx(optimum(group), rel=1e-6)


# ---------------------------------------------------------------------------------------------- the same data


@pytest.mark.by_default("hinge with costs")
@every_loss
def test_value_and_bound_at_random_points(word):
    """The value is the reference's; the bound, from the point's own multipliers or from random ones, is below the optimum."""
    X, Y, rng = data(5)
    problem = model(word, mtl.Tasks.shared(X, Y, sample_weights=rng.uniform(0.5, 2.0, N)))
    form = problem.form()
    stated, best = to_cvxpy(form), solve_reference(form).objective
    for size in (0.0, 0.1, 1.0, 10.0):
        point = {name: size * block for name, block in at_random(problem, rng).items()}
        found = certify(form, point)
        assert found.objective == pytest.approx(stated.objective_value(point), rel=1e-12)
        assert np.isfinite(found.dual_bound) and found.dual_bound <= best + 1e-8
        u = size * rng.normal(size=form.losses[0].tasks.n_samples)
        assert certify(form, point, [u]).dual_bound <= best + 1e-8


@pytest.mark.slow
@every_loss
def test_weights_of_samples_equal_replication(word):
    X, Y, rng = data(6)
    copies = rng.integers(1, 4, size=N)
    weighted = model(word, mtl.Tasks.shared(X, Y, sample_weights=copies.astype(float)))
    replicated = model(word, mtl.Tasks.shared(np.repeat(X, copies, axis=0), np.repeat(Y, copies, axis=0)))
    point = at_random(weighted, rng)
    assert weighted.form().value(point) == pytest.approx(replicated.form().value(point), rel=1e-12)
    best = solve_reference(replicated.form()).objective
    assert solve_reference(weighted.form()).objective == pytest.approx(best, rel=1e-7)
    assert [optimum(weighted), optimum(replicated)] == pytest.approx([best, best], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "word", [LOSSES["hinge with costs"], LOSSES["likelihood"]], ids=["hinge", "likelihood"]
)
def test_sparse_and_single_precision_inputs_are_the_same_problem(word):
    X, Y, rng = data(7)
    X = X.astype(np.float32)
    problems = [
        model(word, mtl.Tasks.shared(inputs, Y))
        for inputs in (X.astype(float), X, sparse.csr_array(X.astype(float)))
    ]
    point = at_random(problems[0], rng)
    found = [certify(problem.form(), point) for problem in problems]
    best = solve_reference(problems[0].form()).objective
    for problem, certificate in zip(problems, found, strict=True):
        assert certificate.objective == pytest.approx(found[0].objective, rel=1e-12)
        assert certificate.dual_bound == pytest.approx(found[0].dual_bound, rel=1e-9)
        assert optimum(problem) == pytest.approx(best, rel=1e-6)


@pytest.mark.slow
@every_loss
def test_permuting_the_data_permutes_the_solution(word):
    """Permuting samples features and labels permutes the solution."""
    X, Y, rng = data(8)
    rows, features, order = rng.permutation(N), rng.permutation(D), [2, 0, 3, 1]
    place = {label: k for k, label in enumerate(order)}
    moved = [tuple(place[k] for k in clique) for clique in EDGES]
    costs = [0.5, 2.0, 1.0, 0.0]
    if word is LOSSES["hinge with costs"]:
        word = lambda U, V, t: mtl.clique_hinge(U, V, t, loss=dict(zip("abcd", costs, strict=True)))  # noqa: E731
    names = np.array(list("abcd"))
    here = model(word, mtl.Tasks.shared(X, Y, task_names=list(names)))
    there = model(
        word, mtl.Tasks.shared(X[rows][:, features], Y[rows][:, order], task_names=list(names[order])), moved
    )
    solutions = [problem.solve(tol=1e-7) for problem in (here, there)]
    assert all(solution.status == "optimal" for solution in solutions)
    assert solutions[0].objective == pytest.approx(solutions[1].objective, rel=3e-7)  # of two gaps
    best = [solve_reference(problem.form()).objective for problem in (here, there)]
    assert best[0] == pytest.approx(best[1], rel=1e-8) == pytest.approx(solutions[0].objective, rel=3e-7)
    U, moved_U = (s.blocks["U"] for s in solutions)
    # the objective grows by 0.05 ||U - U*||^2
    reach = 2 * np.sqrt(max(s.gap.absolute for s in solutions) / 0.05) + 1e-9
    columns = np.ravel([[2 * k, 2 * k + 1] for k in order])
    assert np.linalg.norm(U[features][:, columns] - moved_U) <= reach <= 1e-2
    np.testing.assert_array_equal(solutions[0].predict(X)[rows], solutions[0].predict(X[rows]))


# ------------------------------------------------------------------------------------------------ degenerate


def degenerate():
    X, Y, rng = data(9)
    zero_column, equal_labels = X.copy(), Y.copy()
    zero_column[:, 1] = 0.0
    equal_labels[:, 1] = equal_labels[:, 0]
    one = np.where(rng.random((2, K)) < 0.5, 1.0, -1.0)
    one[1] = -one[0]
    return {
        "two samples": (X[:2], one, "all"),
        "one label": (X, Y[:, :1], "all"),
        "a label without edges": (X, Y, [(0, 1)]),
        "no edges": (X, Y, []),
        "zero column": (zero_column, Y, "all"),
        "equal labels": (X, equal_labels, "all"),
        "opposite labels": (X, np.hstack([Y[:, :1], -Y[:, :1]]), "all"),
        "one feature": (np.ones((N, 1)), Y, "all"),
        "equal samples": (np.tile(X[:1], (N, 1)), Y, EDGES),
        "a clique of all labels": (X, Y, [(0, 1, 2, 3)]),
        "zero inputs": (0.0 * X, Y, EDGES),
    }


#: each case with one of the hinges, and every other one with the likelihood
DEGENERATE = [*zip(degenerate(), cycle([name for name in LOSSES if name != "likelihood"]), strict=False)]
DEGENERATE += [(case, "likelihood") for case in list(degenerate())[::2]]


@pytest.mark.by_default("two samples-hinge")
@pytest.mark.parametrize("case, name", DEGENERATE)
def test_degenerate_data(case, name):
    X, Y, edges = degenerate()[case]
    tasks = mtl.Tasks.shared(X, Y)
    problem = model(LOSSES[name], tasks, edges)
    best = solve_reference(problem.form()).objective
    assert optimum(problem, tol=1e-6) == pytest.approx(best, rel=2e-6)
    admm = problem.solve("admm", tol=1e-6)
    assert admm.status == "optimal", admm
    assert admm.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.slow
@every_loss
def test_cross_check_agrees_on_both_sides(word):
    """Penalties take turns."""
    X, Y, _ = data(10)
    penalties = mtl.half_squared_group_norm, support(2), mtl.trace_norm
    penalty = penalties[list(LOSSES.values()).index(word) % 3]
    check = model(word, mtl.Tasks.shared(X, Y), "all", penalty).cross_check()
    assert check.agrees and check.certified, check


def test_proximal_steps_together_are_those_of_every_sample(monkeypatch):
    """Newton's method on all rows at once, and row by row, at scores and steps of all sizes."""
    X, Y, rng = data(11)
    atom = model(mtl.pairwise_log_loss, mtl.Tasks.shared(X, Y)).form().losses[0].atom
    truth = (Y > 0).astype(np.uint8)
    for size in (0.0, 1.0, 30.0, 1000.0):
        scores = size * rng.normal(size=(N, atom.cliques.n_entries))
        steps = 10.0 ** rng.uniform(-4, 4, size=N)
        together = atom.prox_of_samples(scores, truth, steps)
        with monkeypatch.context() as patched:
            patched.setattr("mtldsl.atoms.losses.pairwise_log._HELD", 0)
            apart = atom.prox_of_samples(scores, truth, steps)
        slopes = [
            np.linalg.norm(steps[:, None] * atom.gradient_of_samples(x, truth) + x - scores, axis=1)
            for x in (together, apart)
        ]
        # what is minimised is 1-strongly convex: the length of its slope bounds how far a point is from the minimiser
        assert np.all(np.linalg.norm(together - apart, axis=1) <= sum(slopes) + 1e-12 * (1.0 + size + steps))
        # the value is exact to 15 digits, the slope to half of these
        assert np.all(slopes[0] <= 1e-7 * (1.0 + size + steps))
