"""A user's mistakes: each is refused before solving, quoting what was typed, saying why, and what to write instead."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.language.typed import assert_refused, mistakes
from tests.loops import for_each

rng = np.random.default_rng(1)
X, Y = rng.normal(size=(12, 4)), rng.normal(size=(12, 3))
REAL = mtl.Tasks.shared(X, Y)
SIGN = mtl.Tasks.shared(X, np.where(Y >= 0, 1.0, -1.0))
W = mtl.Weights(REAL)
L, S = mtl.Weights(REAL, name="L"), mtl.Weights(REAL, name="S")
NAMED = mtl.Tasks.shared(X, SIGN.targets.reshape(3, 12).T, task_names=["red", "blue", "green"])
ONE_CLASS = mtl.Tasks.shared(X, np.where([True, True, False], SIGN.targets.reshape(3, 12).T, 1.0))
WEIGHTED = mtl.Tasks.shared(X, SIGN.targets.reshape(3, 12).T, sample_weights=np.full(12, 2.0))
lam = mtl.Parameter(1.0)

WRONG = """
mtl.minimize(mtl.squared_loss(W, REAL) - 0.5 * mtl.l1_norm(W)) | -0.5 * l1_norm(W) is not convex | + 0.5 * l1_norm(W)
mtl.minimize(mtl.ridge(W)) | ridge(W) | there is no loss | squared_loss(W, tasks)
mtl.squared_loss(W, Y) | squared_loss(W, array(12, 3)) | second argument must be a Tasks object
mtl.squared_loss(W[:2, :], REAL) | squared_loss(W[:2, :], tasks) | (2, 3) | (4, 3)
W + W[:2, :] | W + W[:2, :] | (4, 3) | (2, 3)
W @ np.ones((4, 2)) | W @ A | 3 columns | A must be 3 x k
W @ W | product of two unknowns
W * np.ones((4, 3)) | W * array(4, 3) | weights=... | A @ W
mtl.l1_norm(W) * mtl.ridge(W) | l1_norm(W) | ridge(W) | not convex
mtl.l1_norm(W) ** 2 | l1_norm(W) ** 2 | squared_trace_norm
lam ** 2 * mtl.ridge(W) | lam ** 2 | lam * lam
mtl.squared_loss(W, REAL) + 3 | squared_loss(W, tasks) + 3 | only terms
0 <= W <= 1 | two constraints | [W >= 0, W <= 1]
W > 0 | W > ... | W >= ...
W != 0 | W != ... | not a convex constraint
mtl.l1_norm(W) >= 1 | l1_norm(W) >= 1 | not convex | <=
mtl.trace_norm(W) == 1 | trace_norm(W) == 1 | not convex
mtl.squared_loss(W, REAL) <= 4 | squared_loss(W, tasks) <= 4 | stands in the objective | frobenius_norm(X @ W - Y) <= c
mtl.squared_loss(W, REAL, offset=Y) | squared_loss(W, tasks) | 'offset' | W[-1:, :] == 1
mtl.squared_trace_norm(W) <= 1 | squared_trace_norm(W) <= 1 | is not a norm | lam * squared_trace_norm(W)
np.ones(7) <= W | W >= array(7) | (7,) | (4, 3)
np.nan <= W | W >= | NaN
mtl.minimize(mtl.squared_loss(W + mtl.Weights(REAL), REAL) + mtl.ridge(W)) | both called 'W': use one in every term | name="L"
mtl.minimize(mtl.squared_loss(W, REAL) + lam * mtl.ridge(W) + mtl.Parameter(2.0) * mtl.l1_norm(W)) | both called 'lam' | name="mu"
mtl.Parameter(-2.0) | 'lam' | -2.0 | >= 0
mtl.huber_loss(W, REAL, threshold=2.0) | huber_loss(W, tasks) | 'threshold' | delta
mtl.hinge_loss(W, REAL) | hinge_loss(W, tasks) | -1 | +1
mtl.structured_hinge(W, SIGN, metric=mtl.metrics.FScore) | structured_hinge(..., metric=FScore) | not a metric | write metric=FScore()
mtl.structured_hinge(W, SIGN, metric='F1') | structured_hinge(..., metric='F1') | without quotes | metric=FScore() | mtldsl.Metric
mtl.structured_hinge(W, SIGN, metric=0.5) | structured_hinge(..., metric=0.5) | not a metric | FScore(), AUC()
mtl.structured_hinge(W, SIGN, metric=[]) | metric=[] | not a metric
mtl.structured_hinge(W, SIGN, metric=X) | structured_hinge(..., metric=array([[ | not a metric
mtl.structured_hinge(W, SIGN, metric=[mtl.metrics.FScore(), mtl.metrics.AUC()]) | structured_hinge(..., metric=[...]) | 2 metrics for 3 tasks | one a task
mtl.structured_hinge(W, NAMED, metric=dict.fromkeys(['red', 'blue', 'gren', 'green'], mtl.metrics.AUC())) | metric={...} | no task 'gren' | 'red', 'blue', 'green'
mtl.structured_hinge(W, NAMED, metric={'red': mtl.metrics.AUC(), 'green': mtl.metrics.FScore()}) | metric={...} | task 'blue' has no metric
mtl.structured_hinge(W, SIGN, metric={'metric': 'GScore'}) | 'GScore' | import the module
mtl.structured_hinge(W, WEIGHTED) | structured_hinge(W, tasks) | sample weights | repeat rows | hinge_loss
mtl.structured_hinge(W, ONE_CLASS) | structured_hinge(W, tasks) | task 'task2' has one class only | leave the task out
mtl.structured_hinge(W, REAL) | structured_hinge(W, tasks) | labels must be -1 or +1
mtl.minimize(mtl.metrics.FScore(beta=2)) | FScore(beta=2.0) | sum of losses
mtl.l1_norm(W) + mtl.metrics.FScore() | l1_norm(W) + FScore() | only terms
mtl.poisson_loss(W, REAL) | poisson_loss(W, tasks)
mtl.l1_norm(mtl.ridge(W)) | l1_norm( | ridge(W) | Objective
mtl.minimize(mtl.squared_loss(W, REAL), subject_to=[3]) | contains 3 | not a constraint
mtl.squared_loss(mtl.Weights(REAL, intercept=True, name='A') + mtl.Weights(REAL, intercept=True, name='B'), REAL) | A and B both carry an intercept | one of them
mtl.squared_loss(W, REAL, mean='no') | squared_loss(W, tasks, mean='no') | mean=False
mtl.Weights(REAL, intercept='no') | intercept='no' | intercept=False
mtl.l1_norm(W) < 1 | l1_norm(W) < 1 | <=
mtl.minimize(mtl.squared_loss(W, REAL), subject_to=None) | subject_to=None | subject_to=[W >= 0]
mtl.minimize(mtl.squared_loss(W, REAL) + lam * mtl.l1_norm(W)).path(lam, 3.5) | path(lam, 3.5) | list of numbers | [10.0, 1.0, 0.1]
mtl.rank(W) >= 2 | rank(W) >= 2 | not convex | write <=
mtl.rank(W) == 2 | rank(W) == 2 | write <=
mtl.rank(W) < 2 | rank(W) < 2 | write <=
mtl.rank(W) <= 2.5 | rank( | 2.5 | whole number >= 1 | rank(W) <= 3
mtl.rank(W, 2) | rank(W) | too many arguments: 2 | no parameters
mtl.graph_laplacian(W, np.diag([1e300, 1e-300, 1.0])) | L[0, 0] is 1e+300, beside 1e-300 at [1, 1] | divide L
mtl.squared_loss(W, REAL, True) | squared_loss(W, tasks) | too many arguments: True | write mean=True by name
mtl.rank(X) | rank(array(12, 4), ...) | expression of Weights
mtl.minimize(mtl.squared_loss(W, REAL) - 0.5 * mtl.log_rank(W)) | -0.5 * log_rank(W) | + 0.5 * log_rank(W)
mtl.log_rank(mtl.trace_norm(W)) | log_rank( | trace_norm(W) is a number already
mtl.log_rank(W, REAL) | log_rank(..., eps= | finite number >= 0
mtl.capped_trace_norm(W) | capped_trace_norm(W) | needs tau | capped_trace_norm(W, tau=...)
mtl.spectral_penalty(W, np.sqrt) | spectral_penalty(W) | needs derivative
mtl.minimize(mtl.squared_loss(W, REAL), subject_to=mtl.rank(W) <= 2) | subject_to=[rank(W) <= 2]
"""


@for_each("typed, said", mistakes(WRONG))
def test_refused_with_a_message(typed, said):
    assert_refused(typed, said, globals(), mtl.MTLError)


SOLVE = {
    "option without a solver": (dict(inner="frank_wolfe"), ["inner", "solver=..."]),
    "solver that refuses": (dict(solver="proximal_gradient"),
     ["proximal_gradient", "absolute_loss(W, tasks)", "admm"]),
    "tolerance out of range": (dict(tol=0), ["tol=0", "1e-6"]),
    "iterations": (dict(max_iter=-1), ["max_iter=-1"]),
    "seconds": (dict(max_seconds=0), ["max_seconds=0"]),
    "seconds as text": (dict(max_seconds="10"), ["max_seconds='10'"]),
    "warm start that is not finite": (dict(warm_start={"W": np.full((4, 3), np.nan)}), ["'W'", "NaN"]),
    "warm start with a stranger": (dict(warm_start={"W": np.ones((4, 3)), "V": np.ones(2)}),
     ["no block 'V'", "'W'"]),
    "warm start of words": (dict(warm_start={"W": [["a"] * 3] * 4}), ["'W'", "not an array of numbers"]),
    "warm start of another shape": (dict(warm_start={"W": np.ones((2, 2))}), ["'W'", "(4, 3)", "(2, 2)"]),
}  # fmt: skip


@for_each("case", SOLVE)
def test_solve_refuses_wrong_options(case):
    options, expected = SOLVE[case]
    problem = mtl.minimize(mtl.absolute_loss(W, REAL) + mtl.ridge(W))
    with pytest.raises(mtl.MTLError) as error:
        problem.solve(**options)
    for piece in expected:
        assert piece in str(error.value), f"{piece!r} not in: {error.value}"
