"""Which models dual coordinate ascent on samples sees, and what it sees of them: losses by their conjugates, penalties by their kernels."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.errors import ModelError
from tests.models import D, M, separate, shared

PATH = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)


def answer(problem, name="dual_ascent"):
    return next(one for one in problem.explain().answers if one.name == name)


def both(labels="sign", **layout):
    tasks = shared(2, n=12, labels=labels, **layout)
    return tasks, mtl.Weights(tasks)


SIMILARITIES = [mtl.similarities.union(), mtl.similarities.individual()]


def refused_models():
    tasks, W = both()
    real, V = both("real")
    S = mtl.Weights(tasks, name="S")
    off = mtl.Parameter(0.0)
    norm = mtl.mkl_norm(W, SIMILARITIES, p=2)
    hinge = mtl.hinge_loss(W, tasks)
    counts, U = both("count")
    yield "is a second loss", hinge + mtl.logistic_loss(W, tasks) + norm, []
    yield "is not a sum over samples", mtl.square_root_loss(V, real) + mtl.mkl_norm(V, SIMILARITIES, p=2), []
    poisson = mtl.poisson_loss(U, counts) + mtl.mkl_norm(U, SIMILARITIES, p=2)
    yield "neither quadratic on an interval nor an entropy", poisson, []
    yield "there are 2 weight matrices: W, S.", mtl.hinge_loss(W + S, tasks) + norm + mtl.ridge(S), []
    yield "l1_norm(W) <= 1", mtl.hinge_loss(W, tasks), [mtl.l1_norm(W) <= 1]
    yield "no regularizer whose conjugate is finite", hinge + off * norm, []
    yield "is not quadratic", hinge + norm + mtl.ridge(W), []
    yield "is not quadratic", hinge + norm + mtl.l1_norm(W), []
    moved = mtl.mkl_norm(W - np.ones((D, M)), SIMILARITIES, p=2)
    yield "is not a function of W itself", hinge + mtl.ridge(W) + moved, []
    yield "W >= 0", hinge + norm, [W >= 0]
    yield "singular: + 1e-6 * ridge", hinge + mtl.graph_laplacian(W, PATH), []


@pytest.mark.by_default("1")
@pytest.mark.parametrize("i", range(11))
def test_refusals_say_which_part_is_in_the_way(i):
    reason, objective, constraints = list(refused_models())[i]
    problem = mtl.minimize(objective, subject_to=constraints)
    said = answer(problem).refusal
    assert said is not None and reason in said, said
    assert said.endswith(".") and len(said) < 250
    with pytest.raises(ModelError, match="does not take this model"):
        problem.solve(solver="dual_ascent")
    assert problem.solve(tol=1e-5).status == "optimal"


def test_losses_with_coefficient_zero():
    """What remains is a penalty with minimum 0, whoever solves it."""
    tasks = shared(2, n=12, labels="sign")
    for intercept in (False, True):
        W = mtl.Weights(tasks, intercept=intercept)
        for penalty in (
            mtl.ridge(W),
            mtl.mkl_norm(W, SIMILARITIES, p=2),
            mtl.mkl_norm(W, SIMILARITIES, p=1) + mtl.l1_norm(W),
        ):
            for word in (mtl.hinge_loss, mtl.logistic_loss, mtl.squared_loss):
                problem = mtl.minimize(mtl.Parameter(0.0) * word(W, tasks) + penalty)
                assert "no loss has a coefficient > 0" in answer(problem).refusal
                solution = problem.solve()
                assert solution.status == "optimal" and solution.objective == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_weights_given_and_inputs_as_integers():
    """CSR inputs with 64-bit indices and integer values go through the compiled kernels as well."""
    tasks = separate(3, labels="sign", density=0.5)
    inputs = []
    for X in tasks.inputs:
        X = sparse.csr_array(X)
        inputs.append(
            sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
        )
    other = mtl.Tasks.separate(inputs, tasks.per_task(tasks.targets))
    objectives = []
    for data in (tasks, other):
        W = mtl.Weights(data)
        solution = mtl.minimize(mtl.hinge_loss(W, data) + mtl.mkl_norm(W, SIMILARITIES, p=2)).solve(
            solver="dual_ascent"
        )
        objectives.append(solution.objective)
    assert objectives[0] == objectives[1]
