"""Every atom's examples, random data for them, and what the reference says of them: the material of
test_registry.py.
"""

from __future__ import annotations

import warnings
import zlib

import cvxpy as cp
import numpy as np
import pytest

import mtldsl.language.words.vocabulary  # noqa: F401  (every word's atom is registered)
from mtldsl.atoms.function import REGISTRY, Loss, MatrixFunction, Regularizer, Set
from mtldsl.atoms.structures import Structure
from mtldsl.reference import spectral
from mtldsl.reference.label_graph import choices
from mtldsl.reference.registry import FORMULAS, SPECTRA

N, SHAPE = 12, (5, 4)

#: samples of a loss of labellings, each with the scores of all entries of its graph
LABELLED = 3


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
#: whose one matrix is not an unknown: functions of the weights alone, but not convex ones
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


def targets(atom, rng, n=None):
    """One a prediction: n of them, but of a loss of labellings the indicators of those of n samples, entry after entry."""
    n = n or (LABELLED if atom.labels == "indicators" else N)
    if atom.labels == "indicators":
        labels = rng.integers(0, 2, size=(n, atom.cliques.n_labels))
        return choices(atom.cliques.members, labels).T.toarray().ravel()
    if atom.labels == "sign":
        return np.where(np.arange(n) % 3 == 0, -1.0, 1.0)[rng.permutation(n)]
    if atom.labels == "positive":
        return rng.gamma(2.0, size=n)
    return rng.poisson(2.0, n).astype(float) if atom.labels == "count" else rng.normal(size=n)


def samples(atom, size) -> np.ndarray:
    """(samples, predictions of one) positions in a flat vector of that size."""
    return np.arange(size).reshape(atom.cliques.n_entries if atom.labels == "indicators" else 1, -1).T


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


def fewest(atom, y) -> np.ndarray:
    """Where the predictions of as few samples are as a loss needs: one, or enough for both classes and for the metric."""
    if atom.weighs_samples or atom.labels == "indicators":
        return samples(atom, len(y))[0]
    sizes = [(n, np.sum(y[:n] > 0), np.sum(y[:n] < 0)) for n in range(2, N)]
    return np.arange(next(n for n, p, q in sizes if p and q and atom.metric.check(int(p), int(q)) is None))


def loss_data(atom, weighting, salt=0):
    """(rng, z, y, s)"""
    rng = random(atom, salt)
    y = targets(atom, rng)
    return rng, 1.5 * rng.normal(size=len(y)), y, WEIGHTINGS[weighting](rng)


def matrix(atom, salt=0, size=1.0):
    return size * random(atom, salt).normal(size=SHAPE)


def weights(atom, salt=0, shape=SHAPE) -> dict[str, np.ndarray]:
    """Weights of full rank and many sizes, of rank one, with a feature or a task that is zero, zero."""
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


#: What Clarabel is asked for: it may find no way on, or give up early, where the optimum is on the edge of many cones.
ACCURACIES = (1e-11, 1e-9, 1e-8)


def _solve(problem, accuracy) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the callers compare values
        try:
            problem.solve(solver="CLARABEL", tol_gap_abs=accuracy, tol_gap_rel=accuracy, tol_feas=accuracy)
        except cp.error.SolverError:
            return "failed"
    return problem.status


def reference_prox(atom, point, step, *data) -> np.ndarray:
    """argmin step * f + 1/2 ||. - point||^2 by cvxpy; where it is not content with a function's, the best of two or three."""
    V, points = cp.Variable(np.shape(point)), []
    value, constraints = _state(atom, V, *data)
    problem = cp.Problem(cp.Minimize(step * value + 0.5 * cp.sum_squares(V - point)), constraints)

    def objective(v):
        return step * (loss_value if data else function_value)(atom, v, *data) + 0.5 * np.sum(
            (v - point) ** 2
        )

    for accuracy in ACCURACIES:
        status = _solve(problem, accuracy)
        assert status in ("optimal", "optimal_inaccurate", "failed")
        points += [] if status == "failed" else [V.value]
        if status == "optimal" or (points and isinstance(atom, Set)):
            return points[-1]
    return min(points, key=objective)


def assert_is_reference_prox(atom, P, W, step):
    """Convex functions: the reference's minimiser is not below P, by what strong convexity demands, and to 1e-7 not above. Sets: it
    is P.
    """
    of_reference = reference_prox(atom, W, step)
    if isinstance(atom, Set):
        np.testing.assert_allclose(P, of_reference, atol=2e-5)
        return
    objective = lambda V: step * function_value(atom, V) + 0.5 * np.sum((V - W) ** 2)  # noqa: E731
    best, other = objective(P), objective(of_reference)
    assert other == pytest.approx(best, rel=1e-7, abs=1e-12)
    assert other >= best + 0.5 * np.sum((of_reference - P) ** 2) - 1e-12 * (1 + best)


def reference_conjugate(atom, dual, *data) -> float:
    """sup <dual, .> - f by cvxpy."""
    V = cp.Variable(np.shape(dual))
    value, constraints = _state(atom, V, *data)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(dual, V)) - value), constraints)
    status = next(status for status in (_solve(problem, a) for a in ACCURACIES) if status != "failed")
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
    """The growth of step * g + 1/2 ||. - W||^2 around its minimiser, by what g says of itself."""
    assert atom.weak_convexity == 0.0 or not atom.convex
    return max(0.0, 1.0 - step * atom.weak_convexity)
