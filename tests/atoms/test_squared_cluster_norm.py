"""The squared cluster norm: norms that it is in special cases, the definition, its models, and what it refuses."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers import SquaredTraceNorm
from mtldsl.atoms.regularizers.cluster_norm import SquaredClusterNorm
from tests.loops import for_each

RNG = np.random.default_rng(0)


def covariance(rng, m: int, lower: float, upper: float, trace: float) -> np.ndarray:
    """One within the bounds."""
    Q, _ = np.linalg.qr(rng.normal(size=(m, m)))
    v = rng.uniform(lower, upper, size=m)
    if v.sum() > trace:
        v = lower + (v - lower) * (trace - m * lower) / (v.sum() - m * lower)
    return (Q * v) @ Q.T


@pytest.mark.parametrize("shape", [(6, 4), (3, 5), (4, 4)])
def test_no_covariance_in_bounds_costs_less_than_the_norm(shape):
    """No covariance within the bounds costs less and one costs as much."""
    V, m = RNG.normal(size=shape), shape[1]
    atom = SquaredClusterNorm(0.1, 1.1, 0.1 * m + 1.6)
    value = atom.value(V)
    for seed in range(200):
        S = covariance(np.random.default_rng(seed), m, 0.1, 1.1, 0.1 * m + 1.6)
        assert value <= np.trace(V @ np.linalg.solve(S, V.T)) + 1e-10
    _, s, Vt = np.linalg.svd(V)
    v = np.full(m, 0.1)
    v[: len(s)] = atom._variances(s, m, 0.0)
    assert v.min() >= 0.1 and v.max() <= 1.1 + 1e-15 and v.sum() == pytest.approx(0.1 * m + 1.6, rel=1e-13)
    assert value == pytest.approx(np.trace(V @ Vt.T @ np.diag(1 / v) @ Vt @ V.T), rel=1e-12)


def test_limits_are_the_squared_trace_norm_and_a_ridge():
    """Without bounds it is the squared trace norm and with a large trace a ridge."""
    V = RNG.normal(size=(5, 4))
    for step in (0.1, 2.0):
        loose = SquaredClusterNorm(0.0, np.inf, 1.0)
        np.testing.assert_allclose(loose.prox(V, step), SquaredTraceNorm().prox(V, step), atol=1e-13)
        np.testing.assert_allclose(
            SquaredClusterNorm(0.2, 2.0, 50.0).prox(V, step), V / (1 + step), atol=1e-13
        )
    assert loose.value(V) == pytest.approx(SquaredTraceNorm().value(V), rel=1e-13)
    assert SquaredClusterNorm(0.2, 2.0, 50.0).value(V) == pytest.approx(np.sum(V**2) / 2, rel=1e-13)


def test_the_named_model_is_proven_and_agrees_with_cvxpy():
    """The named model is solved with a proof and agrees with cvxpy."""
    X, centres = RNG.normal(size=(30, 6)), RNG.normal(size=(6, 2))
    tasks = mtl.Tasks.shared(X, X @ np.repeat(centres, 3, axis=1) + 0.5 * RNG.normal(size=(30, 6)))
    problem = mtl.model("cCMTL", tasks, gamma=3.0, lower=0.1, upper=1.1, trace=2.6)
    solution = problem.solve(tol=1e-7)
    assert solution.status == "optimal" and problem.cross_check(solution).agrees
    assert str(mtl.model("cASO", tasks, gamma=3.0, lower=0.1, upper=1.1, trace=2.6)) == str(problem)


@for_each(
    "options, says",
    [
        (
            {"lower": 0.5, "upper": 1.0, "trace": 1.0},
            "the eigenvalues of 3 tasks, each >= 0.5, have a sum >= 1.5, above trace=1",
        ),
        ({"lower": -0.5, "upper": 1.0, "trace": 3.0}, "lower must be a number >= 0"),
        ({"lower": 0.5, "upper": 0.5, "trace": 3.0}, "upper must be a number > lower"),
        ({"lower": 0.5, "upper": 1.0, "trace": 0.0}, "trace must be a number > 0"),
    ],
)
def test_what_is_refused(options, says):
    W = mtl.Weights(mtl.Tasks.shared(np.eye(4), np.ones((4, 3))))
    with pytest.raises(mtl.ModelError, match=says):
        mtl.squared_cluster_norm(W, **options)
