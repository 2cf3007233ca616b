"""`mkl_norm` in a model: its forms, what bounds theta, and what is refused with which words."""

import operator
import re

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.learned_structures.task_kernels import KernelWeightBall
from mtldsl.errors import ModelError
from tests.language.test_similarities import TASKS, tasks_of
from tests.loops import for_each

W = mtl.Weights(TASKS)
SIMS = [mtl.similarities.union(), mtl.similarities.individual()]  # four kernels


def model(theta, constraints, weights=W):
    return mtl.minimize(
        mtl.hinge_loss(weights, TASKS) + mtl.mkl_norm(weights, SIMS, theta), subject_to=constraints
    )


def atom_of(problem):
    return problem.form().functions[-1].atom


@for_each(
    "bound, ball",
    [
        (lambda theta: [mtl.p_norm(theta, 2) <= 1], KernelWeightBall(2.0)),
        (lambda theta: [mtl.p_norm(theta) <= 1], KernelWeightBall(2.0)),
        (lambda theta: [mtl.p_norm(theta, 1) <= 3], KernelWeightBall(1.0, 3.0)),
        (lambda theta: [theta.sum() <= 3], KernelWeightBall(1.0, 3.0)),
        (lambda theta: [mtl.p_norm(theta, 1.5) == 1], KernelWeightBall(1.5)),
        (lambda theta: [theta <= 0.5], KernelWeightBall(np.inf, 0.5)),
        (lambda theta: [mtl.p_norm(theta, np.inf) <= 0.5], KernelWeightBall(np.inf, 0.5)),
        (lambda theta: [mtl.p_norm(theta, "inf") <= 0.5], KernelWeightBall(np.inf, 0.5)),
        (lambda theta: [theta >= 0, mtl.p_norm(theta, 2) <= 1], KernelWeightBall(2.0)),
        (
            lambda theta: [mtl.p_norm(theta, 2) <= 1, theta >= 0, mtl.p_norm(theta, 2) <= 0.3],
            KernelWeightBall(2.0, 0.3),
        ),
    ],
)
def test_what_bounds_theta(bound, ball):
    for theta in (mtl.KernelWeights(), mtl.KernelWeights(4), mtl.KernelWeights(SIMS[:1] * 4)):
        assert atom_of(model(theta, bound(theta))).about == ball


def test_given_and_eliminated():
    given = np.array([0.5, 1.0, 0.0, 2.0])
    np.testing.assert_array_equal(atom_of(model(given, [])).about, given)
    for p in (1, 2.0, np.inf, "inf"):
        problem = mtl.minimize(mtl.hinge_loss(W, TASKS) + mtl.mkl_norm(W, SIMS, p=p))
        assert atom_of(problem).p == float(p) and atom_of(problem).about is None
    assert problem.form().is_convex


def test_as_printed():
    theta = mtl.KernelWeights(4)
    printed = str(model(theta, [mtl.p_norm(theta, 1.5) <= 1]))
    assert "mkl_norm(W, [union(), individual()], theta)" in printed and "p_norm(theta, 1.5) <= 1" in printed
    assert repr(theta.sum() <= 2) == "theta.sum() <= 2" and repr(theta >= 0) == "theta >= 0"
    assert (
        repr(mtl.p_norm(theta, np.inf) <= 1) == "p_norm(theta, inf) <= 1" and repr(theta <= 1) == "theta <= 1"
    )
    many = [mtl.similarities.from_kernel(np.eye(3)) for _ in range(9)]
    assert "[from_kernel(array(3, 3)), ... 9 similarities]" in mtl.mkl_norm(W, many, p=2).text


def test_names_of_the_weights():
    twice = mtl.mkl_norm(
        W, [mtl.similarities.union(), mtl.similarities.union(), mtl.similarities.union(columns="x")], p=2
    )
    assert twice.terms[0].atom.names == ("union", "union (2)", "x: union")
    assert atom_of(model(np.ones(4), [])).names == ("union", "a", "b", "c")


def test_rows_and_columns_of_an_expression():
    """Where tasks are selected their names go with them or make way for numbers, and kernels are of as many tasks as there are columns."""
    kernels = mtl.mkl_norm(W @ np.ones((3, 2)), [mtl.similarities.union()], p=2).terms[0].atom.kernels
    assert kernels[0].n_tasks == 2


THETA = mtl.KernelWeights(4)
OPERATORS = {"==": operator.eq, "<=": operator.le}
OTHER = mtl.Weights(tasks_of(names=("a", "b")), name="V")


def twice(theta):
    V = mtl.Weights(TASKS, name="V")
    both = mtl.mkl_norm(W, SIMS, theta) + mtl.mkl_norm(V, SIMS, theta)
    return mtl.minimize(mtl.hinge_loss(W + V, TASKS) + both, subject_to=[mtl.p_norm(theta, 2) <= 1])


#: what is typed, what is quoted, what is said or advised
REFUSED = {
    "no list": (lambda: mtl.mkl_norm(W, 3, p=2), "mkl_norm(W, 3, p=2)", "must be a list such as [union(), individual()]; theta comes third"),
    "theta second": (lambda: mtl.mkl_norm(W, THETA), "mkl_norm(W, theta)", "theta comes third"),
    "empty list": (lambda: mtl.mkl_norm(W, [], p=2), "mkl_norm(W, [], p=2)", "must be a list such as [union(), individual()]"),
    "a matrix": (lambda: mtl.mkl_norm(W, [np.eye(3)], p=2), "mkl_norm(W, [array(", "from_kernel(R) or from_similarity(Q)"),
    "a helper not called": (lambda: mtl.mkl_norm(W, [mtl.similarities.union], p=2), "mkl_norm(W, [union], p=2)", "union is a helper that makes a similarity; write union()"),
    "p in the place of theta": (lambda: mtl.mkl_norm(W, SIMS, 2), "mkl_norm(W, [union(), individual()], 2)", "write p=2"),
    "neither theta nor p": (lambda: mtl.mkl_norm(W, SIMS), "mkl_norm(W, [union(), individual()])", "p_norm(theta, 2) <= 1, or p"),
    "both": (lambda: mtl.mkl_norm(W, SIMS, THETA, p=2), "mkl_norm(W, [union(), individual()], theta, p=2)", "give either theta"),
    "p a word": (lambda: mtl.mkl_norm(W, SIMS, p="two"), "p='two'", "such as 1, 2 or np.inf"),
    "another number of weights": (lambda: mtl.mkl_norm(W, SIMS, mtl.KernelWeights(2)), "theta holds 2 weights, but the similarities are 4 kernels", "write KernelWeights(4), or KernelWeights(similarities)"),
    "theta a parameter": (lambda: mtl.mkl_norm(W, SIMS, mtl.Parameter(1.0)), "theta must be KernelWeights(4)", "or an array of 4 given weights"),
    "given, too few": (lambda: mtl.mkl_norm(W, SIMS, [1.0, 2.0]), "mkl_norm(W, [union(), individual()], ", "must be 4 finite numbers >= 0"),
    "given, negative": (lambda: mtl.mkl_norm(W, SIMS, [1.0, -2.0, 1, 1]), "given weights", "such as np.ones(4)"),
    "given, all zero": (lambda: mtl.mkl_norm(W, SIMS, np.zeros(4)), "given weights", "not all zero"),
    "a feature in no view": (lambda: mtl.mkl_norm(W, [mtl.similarities.union(columns=["x", "z"])], p=2), "mkl_norm(W, [union(columns=", "feature 1 is in no similarity"),
    "no bound": (lambda: model(THETA, []), "mkl_norm(W, [union(), individual()], theta): theta has no bound", "Add to subject_to: p_norm(theta, 2) <= 1"),
    "only >= 0": (lambda: model(THETA, [THETA >= 0]), "theta has no bound", "p_norm(theta, 2) <= 1"),
    "two norms": (lambda: model(THETA, [mtl.p_norm(THETA, 2) <= 1, THETA <= 1]).form(), "theta <= 1: theta is bounded in the 2-norm already", "keep one of the two"),
    "bound of another theta": (lambda: model(np.ones(4), [mtl.p_norm(THETA, 2) <= 1]), "p_norm(theta, 2) <= 1: theta is in no term", "leave it out, or add the term"),
    "KernelWeights(0)": (lambda: mtl.KernelWeights(0), "KernelWeights(...)", "KernelWeights(3)"),
    "KernelWeights(True)": (lambda: mtl.KernelWeights(True), "KernelWeights(...)", "KernelWeights(similarities)"),
    "KernelWeights([])": (lambda: mtl.KernelWeights([]), "KernelWeights(...)", "the number of similarities"),
    "KernelWeights, name": (lambda: mtl.KernelWeights(2, name="a b"), "KernelWeights(..., name='a b')", "a name must be a Python identifier"),
    "p_norm of weights": (lambda: mtl.p_norm(W, 2), "p_norm(W, 2)", "must be KernelWeights, as in p_norm(KernelWeights(3), 2) <= 1"),
    "p_norm, p < 1": (lambda: mtl.p_norm(THETA, 0.9), "p_norm(theta, 0.9)", "p must be a number in [1, inf]"),
    "bound of zero": (lambda: mtl.p_norm(THETA, 2) <= 0, "p_norm(theta, 2) <= 0", "a plain, finite number > 0"),
    "bound from below": (lambda: mtl.p_norm(THETA, 2) >= 1, "p_norm(theta, 2) >= 1", "write p_norm(theta, 2) <= 1"),
    "strictly": (lambda: mtl.p_norm(THETA, 2) < 1, "p_norm(theta, 2) < 1", "write p_norm(theta, 2) <= 1"),
    "strictly from below": (lambda: THETA.sum() > 1, "theta.sum() > 1", "write theta.sum() <= 1"),
    "unequal": (lambda: THETA.sum() != 1, "theta.sum() != 1", "write theta.sum() <= 1"),
    "arithmetic of a norm": (lambda: 2 * mtl.p_norm(THETA, 2), "p_norm(theta, 2): a norm of kernel weights stands in a comparison by itself", "write p_norm(theta, 2) <= 1"),
    "arithmetic": (lambda: 2 * THETA, "theta is the weights of similarities, learned beside W", "mkl_norm(W, similarities, theta)"),
    "an entry": (lambda: THETA[0], "theta is the weights of similarities, learned beside W", "not in arithmetic"),
    "in the order of matrices": (lambda: THETA << 1, "theta << 1: theta are weights, no matrix", "write p_norm(theta, 2) <= 1"),
    "trace": (lambda: THETA.trace(), "theta are weights, no matrix", "write p_norm(theta, 2) <= 1"),
    "from below": (lambda: THETA >= 0.1, "theta >= 0.1: kernel weights are >= 0 and bounded from above", "write p_norm(theta, 2) <= 1"),
    "theta strictly": (lambda: THETA < 1, "theta < 1: theta are weights that are learned", "write p_norm(theta, 2) <= 1"),
    "theta equal": (lambda: OPERATORS["=="](THETA, np.ones(4)), "theta == array", "in place of theta an array of given weights"),
    "a chain": (lambda: (THETA <= 1) << 2, "theta <= 1 is a constraint already", "a chain is two"),
    "theta in two terms": (lambda: twice(THETA), "theta stands in ", " and again in "),
    "kernels of other tasks": (lambda: mtl.mkl_norm(OTHER, [mtl.similarities.from_kernel(np.eye(3))], p=2), "mkl_norm(V, [from_kernel(array(3, 3))], p=2)", "is of 3 tasks, but there are 2"),
    "a bound on the penalty": (lambda: mtl.mkl_norm(W, SIMS, p=2) <= 3.0, "mkl_norm(W, [union(), individual()], p=2)", "<= 3"),
    "made for another list": (lambda: mtl.mkl_norm(W, SIMS, mtl.KernelWeights([mtl.similarities.union(), mtl.similarities.identity()])), "mkl_norm(W, [union(), individual()], theta)", "made for other similarities, which are 2 kernels"),
    "truth of a bound": (lambda: bool(THETA <= 1), "theta <= 1 has no truth value", "two constraints"),
}  # fmt: skip


@for_each("case", REFUSED)
def test_refused(case):
    make, quoted, said = REFUSED[case]
    with pytest.raises(ModelError, match=re.escape(quoted)) as raised:
        make()
    assert raised.match(re.escape(said))
