"""A bound above an attained objective is an internal error that names the term, and rounding alone never is one."""

from fractions import Fraction

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import ProofError
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.losses import SquaredLoss
from mtldsl.atoms.regularizers import L1Norm
from mtldsl.certificates.certificate import Certificate, certify
from tests.loops import for_each
from tests.models import with_weights
from tests.registry_cases import targets


def lasso():
    rng = np.random.default_rng(0)
    tasks, W = with_weights(mtl.Tasks.shared(rng.normal(size=(20, 4)), rng.normal(size=(20, 2))))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))


def too_large(self, u, y, s=None):
    return 1.1 * float(0.5 * u @ u + u @ y)


def too_small(self, W):
    return 0.5 * float(np.abs(W).sum())


@for_each(
    "atom, method, wrong, term",
    [
        (SquaredLoss, "conjugate", too_large, r"squared_loss\(W, tasks\)"),
        (L1Norm, "value", too_small, r"l1_norm\(W\)"),
    ],
)
def test_a_wrong_formula_is_named(monkeypatch, atom, method, wrong, term):
    problem = lasso()
    solution = problem.solve(tol=1e-8)
    monkeypatch.setattr(atom, method, wrong)
    with pytest.raises(ProofError, match=rf"lies .* above the attained objective .*{term} is short by"):
        certify(problem.form(), solution.blocks)
    with pytest.raises(ProofError, match=f"{term} is short by"):
        problem.solve()


def test_what_float64_cannot_tell_is_not_optimal():
    certain = Certificate(objective=1.0, dual_bound=1.0, violation=0.0, scale=0.0, rounding=1e-9)
    assert certain.within(1e-8) and not certain.within(1e-10)
    assert "float64 may misplace" in certain.remark(1e-10) and certain.remark(1e-8) == ""


def test_weights_just_outside_a_singular_kernel_are_allowed():
    """mkl_norm of union() is +inf where columns differ: what rounding makes of them is not held against the bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    tasks = mtl.Tasks.shared(X, np.sign(X @ rng.normal(size=(4, 3)) + rng.normal(size=(60, 3))))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(
        10 * mtl.logistic_loss(W, tasks) + mtl.mkl_norm(W, [mtl.similarities.union()], p=np.inf)
    )
    form, best = problem.form(), problem.solve(tol=1e-12).W
    (loss,) = form.losses
    u = loss.dual_at({"W": best})
    apart = loss.tasks.adjoint(u)
    apart -= apart.mean(axis=1, keepdims=True)
    moved = best - 5e-9 * np.linalg.norm(best) * apart / np.linalg.norm(apart)
    atom = form.functions[0].atom
    assert np.isfinite(atom.value(moved)) and atom.outside(moved) == pytest.approx(moved - best, abs=1e-13)
    seen = certify(form, {"W": moved}, [u])
    assert seen.objective < seen.dual_bound and abs(seen.relative_gap) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@for_each("name", ["gamma_loss", "poisson_loss", "huber_loss", "squared_loss", "squared_hinge_loss"])
def test_no_bound_lies_above_a_perfect_fit(name, weighted):
    rng, (atom, *_) = np.random.default_rng(0), REGISTRY[name].examples()
    for _ in range(12):
        n = int(rng.integers(2, 5))
        X = np.round(rng.normal(size=(n, int(rng.integers(n, 6)))), 2)
        y = targets(atom, rng, n) + (atom.labels == "count")
        tasks = mtl.Tasks.shared(X, y, sample_weights=rng.uniform(0.1, 9.0, n) if weighted else None)
        solution = mtl.minimize(getattr(mtl, name)(mtl.Weights(tasks), tasks)).solve()
        assert solution.status == "optimal"
        assert solution.certificate.dual_bound <= solution.objective + 1e-9


def test_the_unit_of_amounts_costs_no_digits():
    X = np.random.default_rng(0).normal(size=(30, 2))
    tasks, W = with_weights(
        mtl.Tasks.shared(X, 1e9 * np.exp(X @ [1.0, -1.0] + np.sin(9 * X[:, 0]))), intercept=True
    )
    solution = mtl.minimize(mtl.gamma_loss(W, tasks) + mtl.ridge(W)).solve(tol=1e-10)
    assert solution.status == "optimal"
    # by the optimum's own size, which is a billionth of the objective at zero; ten times the accuracy that was asked for
    assert solution.dual_bound == pytest.approx(solution.objective, rel=1e-9)


def test_of_a_loss():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(15, 3))
    Y[rng.random(Y.shape) < 0.3] = np.nan
    tasks, W = with_weights(mtl.Tasks.shared(rng.normal(size=(15, 4)) * [1e6, 1, 1e-6, 1], Y), intercept=True)
    loss = mtl.minimize(mtl.squared_loss(W, tasks)).form().losses[0]
    for _ in range(20):
        x, u = (
            {"W": rng.normal(size=(4, 3)), "W.intercept": rng.normal(size=(1, 3))},
            rng.normal(size=tasks.n_samples),
        )
        sums = 0.0
        for i, (X, y, part) in enumerate(
            zip(tasks.inputs, tasks.per_task(tasks.targets), tasks.per_task(u), strict=True)
        ):
            z = np.abs(X) @ np.abs(x["W"][:, i]) + abs(x["W.intercept"][0, i])
            sums += float(np.abs(part) @ (z + np.abs(y)))
        assert sums <= loss.magnitude(u, x) <= 15 * sums


@pytest.mark.slow
def test_of_a_graph_of_labels():
    data = mtl.datasets.make_label_graph(n_train=60, random_state=0).train
    U, V = mtl.NodeWeights(data), mtl.EdgeWeights(data, edges="all")
    form = mtl.minimize(mtl.clique_hinge(U, V, data) + mtl.ridge(U) + mtl.half_squared_group_norm(V)).form()
    (loss,), rng = form.losses, np.random.default_rng(0)
    x = {block.name: rng.normal(size=block.shape) for block in form.blocks}
    u = loss.dual_at(x)
    table = np.abs(np.asarray(u)).reshape(loss.cliques.n_entries, -1).T
    sums = float(np.sum(table * (np.abs(data.X) @ np.abs(loss.map.forward(x)))))
    assert 0 < sums <= loss.magnitude(u, x)


def _exact_solution(x, Y, L, c):
    """(w, the optimum) of 1/2 ||x w - Y||^2 + c/2 w L w^T of one feature, in rational numbers."""
    x, Y, L = ([[Fraction(a) for a in row] for row in M.tolist()] for M in (x[None, :], Y.T, L))
    right, square = [sum(a * b for a, b in zip(x[0], y, strict=True)) for y in Y], sum(a * a for a in x[0])
    rows = [[c * a + square * (i == j) for j, a in enumerate(L[i])] + [right[i]] for i in range(len(L))]
    for i in range(len(rows)):
        own = [a / rows[i][i] for a in rows[i]]
        rows = [
            own if row is rows[i] else [a - row[i] * b for a, b in zip(row, own, strict=True)] for row in rows
        ]
    w, labels = [row[-1] for row in rows], sum(a * a for y in Y for a in y)
    return w, (labels - sum(a * b for a, b in zip(w, right, strict=True))) / 2


@for_each("seed", range(12))
def test_weakly_connected_groups_of_tasks_prove_nothing_false(seed):
    """The eigenvalue between them has few digits: a bound by it lay 1e-7 above the optimum, and many solves ended in a ProofError."""
    rng = np.random.default_rng(seed)
    x, Y, weak = rng.normal(size=4), rng.normal(size=(4, 3)), 10.0 ** rng.uniform(-10, -7)
    tasks, W = with_weights(mtl.Tasks.shared(x[:, None], Y))
    L = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0 + weak, -weak], [0.0, -weak, weak]])
    form = mtl.minimize(mtl.squared_loss(W, tasks) + 1e8 * mtl.graph_laplacian(W, L)).form()
    w, optimum = _exact_solution(x, Y, L, 10**8)
    proof = certify(form, {"W": np.array([w], dtype=float)})
    assert -1e-3 * optimum <= proof.dual_bound - optimum <= 1e-12 * optimum
    assert proof.objective >= optimum - proof.rounding
