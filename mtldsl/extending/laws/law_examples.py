"""Examples and reference sides of laws: random data, and values, proxes and conjugates by cvxpy."""

from __future__ import annotations

import warnings
import zlib
from typing import cast

import cvxpy as cp
import numpy as np

import mtldsl.reference.compile
import mtldsl.reference.structures  # noqa: F401  (importing them enters the formulas)
from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.matrix_function import Regularizer, Set
from mtldsl.extending.law import holds, same, same_arrays
from mtldsl.reference import spectral
from mtldsl.reference.label_graph import GAP, choices
from mtldsl.reference.registry import FORMULAS, SPECTRA

# --------------------------------------------------------------------------------------------------------------
# What the reference says of an atom: values from its formulas, minimisers and suprema that cvxpy finds.

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
        except cp.SolverError:
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
        holds(status in ("optimal", "optimal_inaccurate", "failed"), f"cvxpy says {status} of the prox")
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
        same_arrays(P, of_reference, "the projection, beside cvxpy's", rtol=0.0, atol=2e-5)
        return
    objective = lambda V: step * function_value(atom, V) + 0.5 * np.sum((V - W) ** 2)  # noqa: E731
    best, other = objective(P), objective(of_reference)
    same(other, best, "step * g(P) + 1/2 ||P - W||^2 at the prox, beside cvxpy's minimum", rel=1e-7)
    holds(
        other >= best + 0.5 * np.sum((of_reference - P) ** 2) - 1e-12 * (1 + best),
        f"cvxpy's minimiser is better than strong convexity allows: {other!r}, and {best!r} at the prox",
    )


def reference_conjugate(atom, dual, *data) -> float:
    """sup <dual, .> - f by cvxpy."""
    V = cp.Variable(np.shape(dual))
    value, constraints = _state(atom, V, *data)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(dual, V)) - value), constraints)
    status = next(status for status in (_solve(problem, a) for a in ACCURACIES) if status != "failed")
    holds(
        status.removesuffix("_inaccurate") in ("optimal", "unbounded"),
        f"cvxpy says {status} of the conjugate",
    )
    return np.inf if "unbounded" in status else float(cast(float, problem.value))


def covered(atom) -> bool:
    """Tell whether it is a function of the weights alone; other learned structures have laws of their own."""
    return not isinstance(atom, Structure) or isinstance(atom, Regularizer) or not atom.learns


def inside_domain(atom, W) -> np.ndarray:
    """W, or a point near it where g is finite."""
    return W if np.isfinite(function_value(atom, W)) else atom.prox(W, 1.0)


def knows_order(atom) -> bool:
    """Tell whether its parameters name rows, tasks or their order."""
    typed = atom.arguments().values()
    return hasattr(atom, "kernels") or any(not (np.isscalar(value) or callable(value)) for value in typed)


def inside_dual_domain(atom, Z, margin=1.0) -> np.ndarray:
    """A point of dom g* near Z: moved into the cone of the domain, then scaled to a gauge of at most
    `margin`.
    """
    Z = atom.dual_project(Z)
    gauge = atom.dual_gauge(Z)
    holds(np.isfinite(gauge), "dual_gauge is infinite at a point that dual_project returned")
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
            found = objective(x + d)
            holds(
                found >= best + 0.5 * growth * np.sum(d**2) - 1e-13 * (1 + abs(best)),
                f"the prox is not the minimiser: a change by {np.linalg.norm(d):.1e} is better by {best - found:.2e}",
            )


def growth(atom, step) -> float:
    """The growth of step * g + 1/2 ||. - W||^2 around its minimiser, by what g says of itself."""
    holds(atom.weak_convexity == 0.0 or not atom.convex, "a convex function has weak_convexity = 0")
    return max(0.0, 1.0 - step * atom.weak_convexity)


# --------------------------------------------------------------------------------------------------------------
# Random data for an example of an atom: predictions and labels for a loss, matrices for a function of weights.

#: Steps of proximal operators.
PROX_STEPS = (0.3, 2.0)
#: Samples of a loss.
N_SAMPLES = 12
#: Features and tasks of the matrices of all examples.
WEIGHTS_SHAPE = (5, 4)

#: samples of a loss of labellings, each with the scores of all entries of its graph
N_LABELLED = 3


def random(atom, salt=0):
    """A generator of its own for every atom and purpose."""
    return np.random.default_rng([zlib.crc32(atom.name.encode()), salt])


def targets(atom, rng, n=None):
    """One a prediction: n of them, but of a loss of labellings the indicators of those of n samples, entry after entry."""
    n = n or (N_LABELLED if atom.labels == "indicators" else N_SAMPLES)
    if atom.labels == "indicators":
        labels = rng.integers(0, 2, size=(n, atom.cliques.n_labels))
        labels[1::3, 0] = GAP  # some rows observe some labels, one row none
        labels[4::6, -1] = GAP
        labels[max(n - 1, 1) :] = GAP
        return choices(atom.cliques.members, labels).T.toarray().ravel()
    if atom.labels == "classes":
        own = rng.permutation(np.arange(n) % atom.n_classes)
        return np.where(np.arange(atom.n_classes)[:, None] == own, 1.0, -1.0).ravel()
    if atom.labels == "sign":
        return np.where(np.arange(n) % 3 == 0, -1.0, 1.0)[rng.permutation(n)]
    if atom.labels == "time":  # a few times, so that some are equal
        return rng.choice([-1.0, 1.0, 1.0], n) * rng.integers(1, 8, n)
    if atom.labels == "positive":
        return rng.gamma(2.0, size=n)
    return rng.poisson(2.0, n).astype(float) if atom.labels == "count" else rng.normal(size=n)


def samples(atom, size) -> np.ndarray:
    """(samples, predictions of one) positions in a flat vector of that size."""
    each = atom.cliques.n_entries if atom.labels == "indicators" else 1
    each = atom.n_classes if atom.labels == "classes" else each
    return np.arange(size).reshape(each, -1).T


#: how samples may be weighted: closed forms branch on it
WEIGHTINGS = {
    "unweighted": lambda rng: None,
    "weighted": lambda rng: rng.uniform(0.5, 2.0, size=N_SAMPLES),
    "uniform weights": lambda rng: np.full(N_SAMPLES, 2.5),
}


def heaviest(atom) -> str:
    """The weighting that tells most: weights where the loss takes them."""
    return "weighted" if atom.weighs_samples else "unweighted"


def fewest(atom, y) -> np.ndarray:
    """Return where the predictions of as few samples are as a loss needs: one, or enough for both classes and for the metric."""
    if atom.weighs_samples or atom.labels in ("indicators", "classes"):
        return samples(atom, len(y))[0]
    sizes = [(n, np.sum(y[:n] > 0), np.sum(y[:n] < 0)) for n in range(2, N_SAMPLES)]
    return np.arange(next(n for n, p, q in sizes if p and q and atom.metric.check(int(p), int(q)) is None))


def loss_data(atom, weighting, salt=0):
    """(rng, z, y, s)"""
    rng = random(atom, salt)
    y = targets(atom, rng)
    return rng, 1.5 * rng.normal(size=len(y)), y, WEIGHTINGS[weighting](rng)


def matrix(atom, salt=0, size=1.0):
    return size * random(atom, salt).normal(size=WEIGHTS_SHAPE)


def weights(atom, salt=0, shape=WEIGHTS_SHAPE) -> dict[str, np.ndarray]:
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


# --------------------------------------------------------------------------------------------------------------
# Finite differences of an atom's value, and where they end.


def quotient(atom, W: np.ndarray, at: tuple[int, ...], step: float) -> float:
    """The slope from W to a step away in one entry."""
    moved = W.copy()
    moved[at] += step
    return (atom.value(moved) - atom.value(W)) / step


def limit(of: list[float]) -> float:
    """Return where a sequence with errors that shrink by one factor ends (Aitken): the differences of |w|^(3/2) at 0 are the root of the step.

    >>> limit([1.5, 1.25, 1.125]), limit([3.0, 3.0, 3.0])
    (1.0, 3.0)
    """
    first, second, third = of
    bend = (third - second) - (second - first)
    return float(third if bend == 0.0 else third - (third - second) ** 2 / bend)
