"""A user's mistakes: each is refused before solving, quoting what was typed, saying why, and what to write instead."""

import numpy as np
import pytest

import mtldsl as mtl
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

WRONG = {
    "concave term": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL) - 0.5 * mtl.l1_norm(W)),
        ["-0.5 * l1_norm(W) is not convex", "+ 0.5 * l1_norm(W)"],
    ),
    "no loss": (
        lambda: mtl.minimize(mtl.ridge(W)),
        ["ridge(W)", "there is no loss", "squared_loss(W, tasks)"],
    ),
    "arguments swapped": (lambda: mtl.squared_loss(REAL, W), ["squared_loss(", "the weights come first"]),
    "no tasks": (lambda: mtl.squared_loss(W, Y), ["squared_loss(W, array(12, 3))", "must be a Tasks object"]),
    "weights from an array": (lambda: mtl.Weights(X), ["Weights(ndarray)", "Weights(Tasks.shared(X, Y))"]),
    "wrong shape for a loss": (
        lambda: mtl.squared_loss(W[:2, :], REAL),
        ["squared_loss(W[:2, :], tasks)", "(2, 3)", "(4, 3)"],
    ),
    "sum of different shapes": (lambda: W + W[:2, :], ["W + W[:2, :]", "(4, 3)", "(2, 3)"]),
    "matrix product of wrong shape": (lambda: W @ np.ones((4, 2)), ["W @ A", "3 columns", "A must be 3 x k"]),
    "product of unknowns": (lambda: W @ W, ["product of two unknowns"]),
    "elementwise product": (lambda: W * np.ones((4, 3)), ["W * array(4, 3)", "weights=..."]),
    "product of terms": (lambda: mtl.l1_norm(W) * mtl.ridge(W), ["l1_norm(W)", "ridge(W)", "not convex"]),
    "power of a term": (lambda: mtl.l1_norm(W) ** 2, ["l1_norm(W) ** 2", "squared_trace_norm"]),
    "power of a parameter": (lambda: lam**2 * mtl.ridge(W), ["lam ** 2", "lam * lam"]),
    "a number added": (lambda: mtl.squared_loss(W, REAL) + 3, ["squared_loss(W, tasks) + 3", "only terms"]),
    "chained comparison": (lambda: 0 <= W <= 1, ["two constraints", "W >= 0, W <= 1"]),
    "strict inequality": (lambda: W > 0, ["W > ...", "W >= ..."]),
    "not equal": (lambda: W != 0, ["W != ...", "not a convex constraint"]),
    "outside of a ball": (lambda: mtl.l1_norm(W) >= 1, ["l1_norm(W) >= 1", "not convex", "<="]),
    "surface of a ball": (lambda: mtl.trace_norm(W) == 1, ["trace_norm(W) == 1", "not convex"]),
    "loss bounded": (
        lambda: mtl.squared_loss(W, REAL) <= 4,
        ["squared_loss(W, tasks) <= 4", "only a single norm", "objective"],
    ),
    "ball of what is not a norm": (
        lambda: mtl.squared_trace_norm(W) <= 1,
        ["squared_trace_norm(W) <= 1", "is not a norm", "lam * squared_trace_norm(W)"],
    ),
    "bound of wrong shape": (lambda: np.ones(7) <= W, ["W >= array(7)", "(7,)", "(4, 3)"]),
    "bound is NaN": (lambda: np.nan <= W, ["W >=", "NaN"]),
    "two blocks of one name": (
        lambda: mtl.minimize(mtl.squared_loss(W + mtl.Weights(REAL), REAL) + mtl.ridge(W)),
        ["both called 'W'", 'name="L"'],
    ),
    "two parameters of one name": (
        lambda: mtl.minimize(
            mtl.squared_loss(W, REAL) + lam * mtl.ridge(W) + mtl.Parameter(2.0) * mtl.l1_norm(W)
        ),
        ["both called 'lam'", 'name="mu"'],
    ),
    "negative parameter": (lambda: mtl.Parameter(-2.0), ["'lam'", "-2.0", ">= 0"]),
    "unknown parameter of a word": (
        lambda: mtl.huber_loss(W, REAL, threshold=2.0),
        ["huber_loss(W, tasks)", "'threshold'", "delta"],
    ),
    "missing parameter of a word": (lambda: mtl.group_norm(W), ["group_norm(W)", "groups"]),
    "classification loss on real targets": (
        lambda: mtl.hinge_loss(W, REAL),
        ["hinge_loss(W, tasks)", "-1", "+1"],
    ),
    "metric without its brackets": (
        lambda: mtl.structured_hinge(W, SIGN, metric=mtl.FScore),
        ["structured_hinge(..., metric=FScore)", "not a metric", "write metric=FScore()"],
    ),
    "metric as text": (
        lambda: mtl.structured_hinge(W, SIGN, metric="F1"),
        ["structured_hinge(..., metric='F1')", "without quotes", "metric=FScore()", "mtldsl.Metric"],
    ),
    "metric as a number": (
        lambda: mtl.structured_hinge(W, SIGN, metric=0.5),
        ["structured_hinge(..., metric=0.5)", "not a metric", "FScore(), AUC()"],
    ),
    "no metric at all": (lambda: mtl.structured_hinge(W, SIGN, metric=[]), ["metric=[]", "not a metric"]),
    "metric of a table": (
        lambda: mtl.structured_hinge(W, SIGN, metric=X),
        ["structured_hinge(..., metric=array([[", "not a metric"],
    ),
    "beta is zero": (
        lambda: mtl.structured_hinge(W, SIGN, metric=mtl.FScore(beta=0)),
        ["FScore(..., beta=0)", "beta must be a number", "beta=1.0"],
    ),
    "none of the samples": (lambda: mtl.PrecisionAt(0), ["PrecisionAt(k=0)", "k=10", "k=0.1"]),
    "more than the samples": (
        lambda: mtl.structured_hinge(W, NAMED, metric=mtl.PrecisionAt(1000)),
        ["metric=PrecisionAt(k=1000)", "task 'red'", "k=1000", "the task has 12", "k=12"],
    ),
    "metrics for other tasks": (
        lambda: mtl.structured_hinge(W, SIGN, metric=[mtl.FScore(), mtl.AUC()]),
        ["structured_hinge(..., metric=[...])", "2 metrics for 3 tasks", "one a task"],
    ),
    "metric of a task that is not there": (
        lambda: mtl.structured_hinge(
            W, NAMED, metric=dict.fromkeys(["red", "blue", "gren", "green"], mtl.AUC())
        ),
        ["metric={...}", "no task 'gren'", "'red', 'blue', 'green'"],
    ),
    "task without a metric": (
        lambda: mtl.structured_hinge(W, NAMED, metric={"red": mtl.AUC(), "green": mtl.FScore()}),
        ["metric={...}", "task 'blue' has no metric"],
    ),
    "metric that nobody defined": (
        lambda: mtl.structured_hinge(W, SIGN, metric={"metric": "GScore"}),
        ["'GScore'", "import the module"],
    ),
    "structured hinge of weighted samples": (
        lambda: mtl.structured_hinge(W, WEIGHTED),
        ["structured_hinge(W, tasks)", "sample weights", "repeat rows", "hinge_loss"],
    ),
    "structured hinge of one class": (
        lambda: mtl.structured_hinge(W, ONE_CLASS),
        ["structured_hinge(W, tasks)", "task 'task2' has one class only", "leave the task out"],
    ),
    "structured hinge of numbers": (
        lambda: mtl.structured_hinge(W, REAL),
        ["structured_hinge(W, tasks)", "labels must be -1 or +1"],
    ),
    "metric of another loss": (
        lambda: mtl.hinge_loss(W, SIGN, metric=mtl.FScore()),
        ["hinge_loss(W, tasks)", "no parameter 'metric'"],
    ),
    "metric as objective": (lambda: mtl.minimize(mtl.FScore(beta=2)), ["FScore(beta=2.0)", "sum of losses"]),
    "metric as a term": (
        lambda: mtl.l1_norm(W) + mtl.FScore(),
        ["l1_norm(W) + FScore()", "only terms"],
    ),
    "negative counts": (lambda: mtl.poisson_loss(W, REAL), ["poisson_loss(W, tasks)"]),
    "function of a term": (lambda: mtl.l1_norm(mtl.ridge(W)), ["l1_norm(", "ridge(W)", "Objective"]),
    "constraint outside a list": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL), subject_to=W >= 0),
        ["subject_to=[W >= 0]"],
    ),
    "number as a constraint": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL), subject_to=[3]),
        ["contains 3", "not a constraint"],
    ),
    "two intercepts": (
        lambda: mtl.squared_loss(
            mtl.Weights(REAL, intercept=True, name="A") + mtl.Weights(REAL, intercept=True, name="B"), REAL
        ),
        ["A and B both carry an intercept", "one of them"],
    ),
    "unknown name in a selection": (lambda: W[:, "physics"], ["no name 'physics'"]),
    "index out of range": (lambda: W[9, :], ["W[9, :]", "out of range"]),
    "mean is not a truth value": (
        lambda: mtl.squared_loss(W, REAL, mean="no"),
        ["squared_loss(W, tasks, mean='no')", "mean=False"],
    ),
    "intercept is not a truth value": (
        lambda: mtl.Weights(REAL, intercept="no"),
        ["intercept='no'", "intercept=False"],
    ),
    "strictly inside a ball": (lambda: mtl.l1_norm(W) < 1, ["l1_norm(W) < 1", "<="]),
    "no list of constraints": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL), subject_to=None),
        ["subject_to=None", "subject_to=[W >= 0]"],
    ),
    "name of a parameter": (lambda: mtl.Parameter(1.0, name="my lam"), ["name='my lam'", "identifier"]),
    "path over one number": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL) + lam * mtl.l1_norm(W)).path(lam, 3),
        ["path(lam, 3)", "list of numbers"],
    ),
    "transpose": (lambda: W.T @ W, ["W.T", "W @ A"]),
    "rank as a bound from below": (lambda: mtl.rank(W) >= 2, ["rank(W) >= 2", "not convex", "write <="]),
    "rank given": (lambda: mtl.rank(W) == 2, ["rank(W) == 2", "write <="]),
    "rank strictly below": (lambda: mtl.rank(W) < 2, ["rank(W) < 2", "write <="]),
    "rank that is not a whole number": (
        lambda: mtl.rank(W) <= 2.5,
        ["rank(", "2.5", "whole number >= 1", "rank(W) <= 3"],
    ),
    "rank zero": (lambda: mtl.rank(W) <= 0, ["rank(", "whole number >= 1", "rank(W) <= 3"]),
    "rank by a parameter": (lambda: mtl.rank(W) <= mtl.Parameter(2.5), ["<= 2.5", "a whole number"]),
    "rank with its bound inside": (
        lambda: mtl.rank(W, 2),
        ["rank(W)", "too many arguments", "no parameters"],
    ),
    "rank of an array": (lambda: mtl.rank(X), ["rank(array(12, 4), ...)", "expression of Weights"]),
    "rank rewarded": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL) - mtl.rank(W)),
        ["-1 * rank(W)", "+ 1 * rank(W)"],
    ),
    "log-rank rewarded": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL) - 0.5 * mtl.log_rank(W)),
        ["-0.5 * log_rank(W)", "+ 0.5 * log_rank(W)"],
    ),
    "log-rank bounded": (
        lambda: mtl.log_rank(W) <= 3,
        ["log_rank(W) <= 3", "is not a norm", "lam * log_rank(W)"],
    ),
    "Schatten bounded": (
        lambda: mtl.schatten_norm(W, 0.5) <= 3,
        ["schatten_norm(W, p=0.5) <= 3", "is not a norm", "lam * schatten_norm(W, p=0.5)"],
    ),
    "log-rank squared": (lambda: mtl.log_rank(W) ** 2, ["log_rank(W) ** 2", "powers of a term"]),
    "log-rank times rank": (
        lambda: mtl.log_rank(W) * mtl.rank(W),
        ["log_rank(W)", "rank(W)", "a number or a Parameter only"],
    ),
    "log-rank of a number": (
        lambda: mtl.log_rank(mtl.trace_norm(W)),
        ["log_rank(", "trace_norm(W) is a number already"],
    ),
    "log-rank of the data": (
        lambda: mtl.log_rank(X),
        ["log_rank(array(12, 4), ...)", "expression of Weights"],
    ),
    "log-rank with tasks": (lambda: mtl.log_rank(W, REAL), ["log_rank(..., eps=", "finite number >= 0"]),
    "log-rank with another word's parameter": (
        lambda: mtl.log_rank(W, tau=1.0),
        ["log_rank(W)", "no parameter 'tau'", "eps"],
    ),
    "log-rank with a parameter inside": (
        lambda: mtl.log_rank(W, eps=lam),
        ["log_rank(..., eps=Parameter(", "finite number >= 0", "eps=1e-2"],
    ),
    "log-rank with a negative eps": (lambda: mtl.log_rank(W, eps=-1), ["log_rank(..., eps=-1)", ">= 0"]),
    "log-rank without a loss": (
        lambda: mtl.minimize(mtl.log_rank(W)),
        ["minimize(log_rank(W))", "there is no loss"],
    ),
    "capped without its cap": (
        lambda: mtl.capped_trace_norm(W),
        ["capped_trace_norm(W)", "needs tau", "capped_trace_norm(W, tau=...)"],
    ),
    "cap of zero": (lambda: mtl.capped_trace_norm(W, 0), ["capped_trace_norm(..., tau=0)", "> 0"]),
    "Schatten without p": (lambda: mtl.schatten_norm(W), ["needs p", "schatten_norm(W, p=...)"]),
    "Schatten with p = 1": (
        lambda: mtl.schatten_norm(W, 1),
        ["schatten_norm(..., p=1)", "between 0 and 1", "write trace_norm"],
    ),
    "Schatten with p = 2": (lambda: mtl.schatten_norm(W, p=2.0), ["p=2.0", "between 0 and 1"]),
    "own penalty without its derivative": (
        lambda: mtl.spectral_penalty(W, np.sqrt),
        ["spectral_penalty(W)", "needs derivative"],
    ),
    "own penalty by name": (
        lambda: mtl.spectral_penalty(W, "sqrt", "1 / sqrt"),
        ["function='sqrt'", "function of an array", "np.exp"],
    ),
    "own penalty that is convex": (
        lambda: mtl.spectral_penalty(W, np.square, lambda x: 2.0 * x),
        ["function=square", "not concave", "rises from 0.02"],
    ),
    "own penalty with a derivative of its own": (
        lambda: mtl.spectral_penalty(W, np.sqrt, lambda x: 1.0 / np.sqrt(x)),
        ["function=sqrt", "at x = 0.01 the derivative says 10", "with respect to x = sigma^2 + eps"],
    ),
    "own penalty that is infinite at zero": (
        lambda: mtl.spectral_penalty(W, np.log, lambda x: 1.0 / x, eps=0.0),
        ["function=log", "not finite at x = 0", "eps = 0"],
    ),
    "square-root loss with a negative eps": (
        lambda: mtl.square_root_loss(W, REAL, eps=-1e-3),
        ["square_root_loss(..., eps=-0.001)", "finite number >= 0", "eps=1e-3"],
    ),
    "eps for a loss that is smooth": (
        lambda: mtl.squared_loss(W, REAL, eps=1e-3),
        ["squared_loss(W, tasks)", "no parameter 'eps'"],
    ),
    "penalty as a constraint": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL), subject_to=[mtl.rank(W)]),
        ["subject_to contains rank(W)", "not a constraint"],
    ),
    "rank constraint outside a list": (
        lambda: mtl.minimize(mtl.squared_loss(W, REAL), subject_to=mtl.rank(W) <= 2),
        ["subject_to=[rank(W) <= 2]"],
    ),
    "parameter as a factor": (
        lambda: lam * mtl.l1_norm(W) <= 1,
        ["lam * l1_norm(W) <= 1", "divide the radius by lam"],
    ),
}


@for_each("case", WRONG)
def test_refused_with_a_message(case):
    build, expected = WRONG[case]
    with pytest.raises(mtl.MTLError) as error:
        build()
    for piece in expected:
        assert piece in str(error.value), f"{piece!r} not in: {error.value}"


SOLVE = {
    "unknown solver": (dict(solver="newton"), ["'newton'", "proximal_gradient"]),
    "unknown option": (dict(solver="admm", momentum=3), ["momentum", "unknown option"]),
    "option without a solver": (dict(inner="frank_wolfe"), ["inner", "solver=..."]),
    "solver that refuses": (
        dict(solver="proximal_gradient"),
        ["proximal_gradient", "absolute_loss(W, tasks)", "admm"],
    ),
    "tolerance out of range": (dict(tol=0), ["tol=0"]),
    "iterations": (dict(max_iter=-1), ["max_iter=-1"]),
    "seconds": (dict(max_seconds=0), ["max_seconds=0"]),
    "seconds as text": (dict(max_seconds="10"), ["max_seconds='10'"]),
    "warm start that is not finite": (dict(warm_start={"W": np.full((4, 3), np.nan)}), ["'W'", "NaN"]),
    "warm start with a stranger": (
        dict(warm_start={"W": np.ones((4, 3)), "V": np.ones(2)}),
        ["no block 'V'", "'W'"],
    ),
    "warm start of words": (dict(warm_start={"W": [["a"] * 3] * 4}), ["'W'", "not an array of numbers"]),
    "warm start of another shape": (dict(warm_start={"W": np.ones((2, 2))}), ["'W'", "(4, 3)", "(2, 2)"]),
}


@for_each("case", SOLVE)
def test_solve_refuses_wrong_options(case):
    options, expected = SOLVE[case]
    problem = mtl.minimize(mtl.absolute_loss(W, REAL) + mtl.ridge(W))
    with pytest.raises(mtl.MTLError) as error:
        problem.solve(**options)
    for piece in expected:
        assert piece in str(error.value), f"{piece!r} not in: {error.value}"
