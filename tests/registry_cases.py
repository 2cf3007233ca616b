"""Every atom's examples, random data for them, and what the reference says of them: the material of
test_registry.py.
"""

from __future__ import annotations

import warnings
import zlib

import cvxpy as cp
import mtldsl.reference.compile
import mtldsl.reference.structures
import numpy as np
import pytest
from mtldsl.reference import spectral
from mtldsl.reference.registry import FORMULAS, SPECTRA

import mtldsl.atoms.losses
import mtldsl.atoms.metrics
import mtldsl.atoms.regularizers
import mtldsl.atoms.sets  # noqa: F401  (importing the families registers their atoms)
from mtldsl.atoms.function import REGISTRY, Loss, MatrixFunction, Regularizer, Set
from mtldsl.atoms.structures import Structure

N, SHAPE = 12, (5, 4)


def name_of(atom, i) -> str:
    """Its word, and which example it is; a structured hinge says its metric too."""
    return f"{atom.name}-{getattr(atom, 'metric', i)}"


def examples(kind):
    """pytest parameters: every example of every registered atom of a kind, named by its word."""
    return [
        pytest.param(atom, id=name_of(atom, i))
        for name, cls in REGISTRY.items()
        if issubclass(cls, kind)
        for i, atom in enumerate(cls.examples())
    ]


LOSSES, REGULARIZERS, SETS = examples(Loss), examples(Regularizer), examples(Set)
#: those that are convex are regularizers too, their matrices eliminated
STRUCTURES = [
    case for case in examples(Structure) if case.values[0].learns and not case.values[0].weighs_kernels
]
#: that learn weights of given matrices
KERNEL_NORMS = [
    case for case in examples(Structure) if case.values[0].learns and case.values[0].weighs_kernels
]
#: whose one matrix is no unknown: functions of the weights alone, but no convex ones
REWEIGHTED = [case for case in examples(Structure) if not case.values[0].learns]
MATRIX_FUNCTIONS = REGULARIZERS + SETS + REWEIGHTED
#: not convex: the reference has them in numpy, and cvxpy is never asked
SPECTRAL = [
    case
    for case in examples(MatrixFunction)
    if case.values[0].separable == "spectrum" and not case.values[0].convex
]


def convex(cases):
    return [case for case in cases if case.values[0].convex]


def random(atom, salt=0):
    """A generator of its own for every atom and purpose."""
    return np.random.default_rng([zlib.crc32(atom.name.encode()), salt])


def targets(atom, rng, n=N):
    if atom.labels == "sign":
        return np.where(np.arange(n) % 3 == 0, -1.0, 1.0)[rng.permutation(n)]
    return rng.poisson(2.0, n).astype(float) if atom.labels == "count" else rng.normal(size=n)


#: how samples may be weighted: closed forms branch on it
WEIGHTINGS = {
    "unweighted": lambda rng: None,
    "weighted": lambda rng: rng.uniform(0.5, 2.0, size=N),
    "uniform weights": lambda rng: np.full(N, 2.5),
}

#: (loss, weighting) pairs: losses that count samples take no weights
WEIGHTED_LOSSES = [
    pytest.param(*case.values, weighting, id=f"{case.id}-{weighting}")
    for case in LOSSES
    for weighting in (WEIGHTINGS if case.values[0].weighs_samples else ["unweighted"])
]


def heaviest(atom) -> str:
    """The weighting that tells most: weights where the loss takes them."""
    return "weighted" if atom.weighs_samples else "unweighted"


def fewest(atom, y) -> int:
    """The first so many samples are all that a loss needs: one, or enough for both classes and for the metric."""
    if atom.weighs_samples:
        return 1
    sizes = [(n, np.sum(y[:n] > 0), np.sum(y[:n] < 0)) for n in range(2, N)]
    return next(n for n, p, q in sizes if p and q and atom.metric.check(int(p), int(q)) is None)


def loss_data(atom, weighting, salt=0):
    """(rng, z, y, s)"""
    rng = random(atom, salt)
    y = targets(atom, rng)
    return rng, 1.5 * rng.normal(size=N), y, WEIGHTINGS[weighting](rng)


def matrix(atom, salt=0, size=1.0):
    return size * random(atom, salt).normal(size=SHAPE)


def weights(atom, salt=0, shape=SHAPE) -> dict[str, np.ndarray]:
    """Of full rank and many sizes, of rank one, with a feature or a task that is zero, zero."""
    rng = random(atom, salt)
    W = rng.normal(size=shape)
    rank_one = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
    return {
        "middling": W,
        "small": 1e-2 * W,
        "large": 50.0 * W,
        "of many scales": W * 10.0 ** np.linspace(-3, 2, shape[1]),
        "rank one": rank_one,
        "zero column": W * (np.arange(shape[1]) != shape[1] - 1),
        "zero row": W * (np.arange(shape[0]) != 0)[:, None],
        "zero": np.zeros(shape),
    }


# --------------------------------------------------------------------------------- what the reference says


def loss_value(atom, z, y, s=None) -> float:
    """f(z) by the reference's formula."""
    return float(FORMULAS[atom.name](cp.Constant(z), y, s, atom).value)


def function_value(atom, W) -> float:
    """g(W) by the reference's formula."""
    if atom.name in SPECTRA:
        return spectral.penalty(atom, W)
    return float(FORMULAS[atom.name](cp.Constant(W), atom).value)


def set_violation(atom, W) -> float:
    """The largest violation of the reference's constraints."""
    if atom.name in SPECTRA:
        return spectral.excess(atom, W)
    V = cp.Variable(np.shape(W), value=W)
    return max((float(np.max(c.violation())) for c in FORMULAS[atom.name](V, atom)), default=0.0)


def _state(atom, V, *data):
    """(expression, constraints) of an atom on a variable: a set has an objective of zero."""
    if isinstance(atom, Set):
        return cp.Constant(0.0), FORMULAS[atom.name](V, atom)
    return FORMULAS[atom.name](V, *data, atom), []


def _solve(problem) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the callers compare values
        try:
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        except cp.error.SolverError:  # it may find no way on where the optimum is on the edge of many cones
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.status


def reference_prox(atom, point, step, *data) -> np.ndarray:
    """argmin step * f + 1/2 ||. - point||^2 by cvxpy."""
    V = cp.Variable(np.shape(point))
    value, constraints = _state(atom, V, *data)
    status = _solve(cp.Problem(cp.Minimize(step * value + 0.5 * cp.sum_squares(V - point)), constraints))
    assert status in ("optimal", "optimal_inaccurate")
    return V.value


def reference_conjugate(atom, dual, *data) -> float:
    """sup <dual, .> - f by cvxpy."""
    V = cp.Variable(np.shape(dual))
    value, constraints = _state(atom, V, *data)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(dual, V)) - value), constraints)
    status = _solve(problem)
    assert status in ("optimal", "optimal_inaccurate", "unbounded", "unbounded_inaccurate"), status
    return np.inf if "unbounded" in status else float(problem.value)


def inside_domain(atom, W) -> np.ndarray:
    """W, or a point near it where g is finite."""
    return W if np.isfinite(function_value(atom, W)) else atom.prox(W, 1.0)


def knows_order(atom) -> bool:
    """Whether its parameters name rows or tasks."""
    typed = atom.arguments().values()
    return hasattr(atom, "kernels") or any(not (np.isscalar(value) or callable(value)) for value in typed)


def inside_dual_domain(atom, Z, margin=1.0) -> np.ndarray:
    """A point of dom g* near Z: moved into the cone of the domain, then scaled to a gauge of at most
    `margin`.
    """
    Z = atom.dual_project(Z)
    gauge = atom.dual_gauge(Z)
    assert np.isfinite(gauge)
    return Z * min(1.0, margin / gauge) if gauge > 0 else Z


def assert_minimal(objective, x, rng, growth):
    """F(x + d) >= F(x) + growth / 2 ||d||^2.

    growth : 1 is what the minimiser of a convex function + 1/2 ||. - z||^2 obeys, 1 - m that of one which m/2 ||.||^2 makes convex, 0
             any minimiser
    """
    best = objective(x)
    for size in (1.0, 1e-1, 1e-2, 1e-3, 1e-4):
        for _ in range(6):
            d = size * rng.normal(size=x.shape) * (rng.random(x.shape) < rng.choice([0.2, 1.0]))
            assert objective(x + d) >= best + 0.5 * growth * np.sum(d**2) - 1e-13 * (1 + abs(best))


def growth(atom, step) -> float:
    """Of step * g + 1/2 ||. - W||^2 around its minimiser, by what g says of itself."""
    assert atom.weak_convexity == 0.0 or not atom.convex
    return max(0.0, 1.0 - step * atom.weak_convexity)
