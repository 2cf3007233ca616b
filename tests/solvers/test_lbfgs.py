"""L-BFGS and the metric that it walks in: against scipy, dense inverses and finite differences."""

import numpy as np
import pytest
from scipy import optimize

import mtldsl as mtl
from mtldsl.solvers.alternation.lbfgs import LBFGS
from mtldsl.solvers.alternation.metric import metric_at
from mtldsl.solvers.alternation.profile import _DataProfile, _GramProfile
from mtldsl.solvers.alternation.quadratic_data import curvature_data, quadratic_data
from mtldsl.solvers.alternation.weights_step import LinearStep

ETA, RHO, LOW, HIGH = 0.7, 1.3, 0.05, 20.0


# --------------------------------------------------------------------------------------------------- the method


def quadratic(n, seed=0, condition=1e4):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    H, x = (Q * np.geomspace(1.0, condition, n)) @ Q.T, rng.normal(size=n)
    return H, x, lambda z: (0.5 * (z - x) @ H @ (z - x) + 3.0, H @ (z - x))


def steps_until(search, norm, most=500):
    for k in range(most):
        if np.linalg.norm(search.gradient) <= norm:
            return k
        assert search.step(), f"no step after {k}, gradient {np.linalg.norm(search.gradient):.1e}"
    return most


@pytest.mark.parametrize("seed", range(5))
def test_one_step_in_the_exact_metric(seed):
    """Newton's method."""
    H, x, function = quadratic(12, seed)
    search = LBFGS(function, np.zeros(12), lambda g: np.linalg.solve(H, g), memory=10)
    assert steps_until(search, 1e-8) == 1
    np.testing.assert_allclose(search.x, x, atol=1e-10)


def test_a_metric_is_worth_more_than_memory():
    """In the right metric up to a factor of two an eigenvalue, far fewer steps than with memory alone."""
    H, _, function = quadratic(40)
    values, Q = np.linalg.eigh(H)
    rough = values * np.exp(np.random.default_rng(1).uniform(-0.7, 0.7, 40))
    with_metric = steps_until(LBFGS(function, np.zeros(40), lambda g: Q @ ((Q.T @ g) / rough), 10), 1e-6)
    without = steps_until(LBFGS(function, np.zeros(40), None, 10), 1e-6, most=1500)
    assert with_metric <= 25 and 10 * with_metric <= without < 1500


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0, 1e2, 1e6])
def test_a_metric_of_the_wrong_size_costs_few_steps(scale):
    H, _, function = quadratic(12)
    search = LBFGS(function, np.zeros(12), lambda g: scale * np.linalg.solve(H, g), memory=10)
    assert steps_until(search, 1e-6) <= 30


@pytest.mark.parametrize("metric", [None, lambda g: 1e-3 * g, lambda g: g])
def test_rosenbrock(metric):
    """The curved valley: value and gradient are scipy's, the minimum is at (1, ..., 1)."""
    search = LBFGS(lambda x: (optimize.rosen(x), optimize.rosen_der(x)), np.array([-1.2, 1.0]), metric, 10)
    values = [search.value]
    while np.linalg.norm(search.gradient) > 1e-8:
        assert search.step()
        values.append(search.value)
        assert len(values) < 300
    np.testing.assert_allclose(search.x, 1.0, atol=1e-7)
    assert np.all(np.diff(values) <= 1e-14)  # never up


def test_every_step_meets_the_conditions_of_wolfe():
    """Sufficient decrease and curvature along the step, with the constants of the source."""
    search = LBFGS(
        lambda x: (optimize.rosen(x), optimize.rosen_der(x)), np.array([-1.2, 1.0]), None, memory=10
    )
    for _ in range(25):
        x, value, gradient = search.x, search.value, search.gradient
        search.step()
        slope = gradient @ (search.x - x)
        assert slope < 0
        assert search.value <= value + 1e-4 * slope
        assert search.gradient @ (search.x - x) >= 0.9 * slope


@pytest.mark.parametrize("constant", [0.0, 1e3, 1e8])
def test_a_large_constant_costs_no_accuracy(constant):
    """Values agree to the last digit long before the gradient is zero: slopes take over. Nothing rises but by rounding."""
    H, x, function = quadratic(10, condition=1e3)
    evaluations = 0

    def shifted(z):
        nonlocal evaluations
        evaluations += 1
        value, gradient = function(z)
        return value + constant, gradient

    search = LBFGS(shifted, np.zeros(10), None, memory=10)
    first, lowest = np.linalg.norm(search.gradient), search.value
    steps = steps_until(search, 1e-12 * first)
    assert steps <= 150 and evaluations <= 1.5 * steps
    assert search.value <= lowest
    for _ in range(100):  # at the limit of rounding it stays there
        search.step()
        assert np.linalg.norm(search.gradient) <= 1e-10 * first
    np.testing.assert_allclose(search.x, x, atol=1e-10)


def test_there_is_no_step_at_a_minimum():
    H, x, function = quadratic(5)
    search = LBFGS(function, x.copy(), None, memory=10)
    assert not search.step()
    np.testing.assert_array_equal(search.x, x)


def test_a_direction_that_does_not_go_down_is_forgotten():
    """A metric that is not positive definite leads up: it says that there is no step, and does not climb."""
    _, _, function = quadratic(5)
    search = LBFGS(function, np.zeros(5), lambda g: -g, memory=10)
    assert not search.step() and not np.any(search.x)


def test_an_overflow_is_stepped_back_from():
    """exp overflows at the first trial: the search comes back to where it is finite."""

    def function(x):
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(np.exp(x) - 2.0 * x)), np.exp(x) - 2.0

    search = LBFGS(function, np.full(3, -2.0), lambda g: 1e4 * g, memory=5)
    assert steps_until(search, 1e-9, most=60) < 60
    np.testing.assert_allclose(search.x, np.log(2.0), atol=1e-9)


# ---------------------------------------------------------------------------------------------------- the metric


def tasks_of(kind, d, m, labels="real", n=12, seed=0):
    rng = np.random.default_rng(seed)
    X, Wt = [rng.normal(size=(n + i, d)) for i in range(m)], np.outer(rng.normal(size=d), rng.normal(size=m))
    X = [X[0]] * m if kind == "shared" else X
    y = [Xi @ w + 0.3 * rng.normal(size=len(Xi)) for Xi, w in zip(X, Wt.T, strict=True)]
    if labels == "sign":
        y = [np.where(yi > np.median(yi), 1.0, -1.0) for yi in y]
    if labels == "count":
        y = [rng.poisson(np.exp(np.clip(yi, -2, 2))).astype(float) for yi in y]
    return mtl.Tasks.shared(X[0], np.column_stack(y)) if kind == "shared" else mtl.Tasks.separate(X, y)


def fetr(tasks, loss=mtl.sum_of_squares, ridge=0.0, intercept=False, factor=1.0):
    W = mtl.Weights(tasks, intercept=intercept)
    first, second = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    objective = loss(W, tasks) + factor * mtl.matrix_normal(W, first, second, eta=ETA, rho=RHO)
    return mtl.minimize(
        objective + ridge * mtl.ridge(W) if ridge else objective,
        subject_to=[first >> LOW, first << HIGH, second >> LOW, second << HIGH],
    ).form()


def weights(d, m, seed=1, rank=None):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(d, m)) * 10.0 ** np.linspace(-1.5, 0.5, m)
    return W if rank is None else rng.normal(size=(d, rank)) @ rng.normal(size=(rank, m))


def pair(s, d, m):
    """a b of the joint minimiser at a singular value s, by a search over both logarithms."""
    low, high = np.log(LOW), np.log(HIGH)

    def cost(z):
        return ETA * np.exp(z.sum()) * s * s - RHO * (m * z[0] + d * z[1])

    def slope(z):
        return ETA * np.exp(z.sum()) * s * s - RHO * np.array([m, d])

    starts = [(low, low), (high, high), (low, high), (high, low)]
    found = [
        optimize.minimize(
            cost, z, jac=slope, bounds=[(low, high)] * 2, options={"ftol": 1e-15, "gtol": 1e-12}
        )
        for z in starts
    ]
    return float(np.exp(min(found, key=lambda f: f.fun).x.sum()))


def dense_metric(grams, W, extra=0.0, factor=1.0, aside=None):
    """The docstring's H, (d m, d m): losses' Hessian + sum_ij min(w_i, w_j) (u_i v_j^T)(u_i v_j^T)^T over both orthogonal bases.

    `aside`: the weight of a direction whose column lies in no v_j, which exists for d < m; None: that same minimum.
    """
    d, m = W.shape
    U, s, Vt = np.linalg.svd(W)
    s = np.concatenate([s, np.zeros(max(d, m) - s.size)])
    w = np.array([2 * ETA * factor * pair(v, d, m) for v in s])
    H = np.zeros((d * m, d * m))
    for t in range(m):
        H[t * d : (t + 1) * d, t * d : (t + 1) * d] = grams[t]
    for i in range(d):
        for j in range(m):
            direction = np.outer(U[:, i], Vt[j]).T.ravel()
            weight = min(w[i], w[j]) if j < d or aside is None else aside
            H += weight * np.outer(direction, direction)
    return H + extra * np.eye(d * m)


def matrix_of(invert, d, m):
    columns = [invert(e.reshape(m, d).T).T.ravel() for e in np.eye(d * m)]
    return np.column_stack(columns)


@pytest.mark.parametrize(
    "d, m, rank", [(5, 3, None), (3, 5, None), (4, 4, None), (6, 4, 2), (1, 3, None), (4, 1, None)]
)
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_the_metric_of_shared_inputs_is_exact(d, m, rank, ridge):
    form = fetr(tasks_of("shared", d, m), ridge=ridge, factor=1.5)
    data, W = quadratic_data(form), weights(d, m, rank=rank)
    # a gradient near a solution has no part beyond the rows of W: for d < m such columns count as zeros do
    zero = 2 * ETA * 1.5 * HIGH * HIGH
    expected = dense_metric([data.gram] * m, W, extra=ridge, factor=1.5, aside=zero)
    inverse = matrix_of(metric_at(form, data, W), d, m)
    np.testing.assert_allclose(inverse @ expected, np.eye(d * m), atol=1e-6)


@pytest.mark.parametrize("d, m, rank", [(5, 3, None), (3, 5, None), (6, 4, 2), (1, 3, None), (4, 1, None)])
def test_the_metric_of_separate_inputs_is_symmetric_positive_and_near(d, m, rank):
    """Two levels: its product with the docstring's H has eigenvalues near 1."""
    form = fetr(tasks_of("separate", d, m))
    data, W = quadratic_data(form), weights(d, m, rank=rank)
    assert not data.is_shared
    inverse = matrix_of(metric_at(form, data, W), d, m)
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-10 * np.abs(inverse).max())
    assert np.linalg.eigvalsh(inverse)[0] > 0
    near = np.linalg.eigvals(inverse @ dense_metric(data.gram, W)).real
    plain = np.linalg.eigvals(dense_metric(data.gram, W) / np.trace(dense_metric(data.gram, W))).real
    assert near.min() > 0.05 and near.max() < 20
    assert near.max() / near.min() < 0.5 * plain.max() / plain.min() or plain.max() / plain.min() < 4


def test_there_is_none_where_no_closed_form_is_known():
    tasks = tasks_of("shared", 4, 3)
    W, second = mtl.Weights(tasks), mtl.TaskPrecision(tasks)
    box = [second >> LOW, second << HIGH]
    given = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, np.eye(4), second), subject_to=box
    ).form()
    assert metric_at(given, quadratic_data(given), weights(4, 3)) is None
    part = mtl.FeaturePrecision(mtl.Tasks.shared(np.ones((2, 2)), np.ones((2, 1))))
    sliced = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W[:2], part, second),
        subject_to=[*box, part >> LOW, part << HIGH],
    ).form()
    assert metric_at(sliced, quadratic_data(sliced), weights(4, 3)) is None


# ------------------------------------------------------------------------------------------- curvature of losses

LOSSES = {
    "logistic_loss": "sign",
    "poisson_loss": "count",
    "sum_of_squares": "real",
    "squared_loss": "real",
    "huber_loss": "real",
    "squared_hinge_loss": "sign",
}
SMOOTH = ("logistic_loss", "poisson_loss", "sum_of_squares", "squared_loss")


def hessian_by_differences(form, x, step=1e-4):
    """The Hessian of the losses' sum, by differences of values alone; blocks in the form's order, columns of a block one after another."""
    names = [(name, k) for name, block in x.items() for k in np.ndindex(block.T.shape)]

    def value(moves):
        at = {name: block.copy() for name, block in x.items()}
        for (name, (j, i)), by in moves:
            at[name][i, j] += by
        return sum(loss.value(loss.predictions(at)) for loss in form.losses)

    n = len(names)
    H = np.zeros((n, n))
    for p in range(n):
        for q in range(p, n):
            ends = [
                a * b * value([(names[p], a * step), (names[q], b * step)]) for a in (1, -1) for b in (1, -1)
            ]
            H[p, q] = H[q, p] = sum(ends) / (4 * step * step)
    return H


def block_diagonal(grams):
    d = grams.shape[-1]
    H = np.zeros((d * len(grams), d * len(grams)))
    for t, gram in enumerate(grams):
        H[t * d : (t + 1) * d, t * d : (t + 1) * d] = gram
    return H


@pytest.mark.parametrize("kind", ["shared", "separate"])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("intercept", [False, True])
def test_curvature_is_that_of_the_losses(loss, kind, intercept):
    """With an intercept: eliminated, the Schur complement of the Hessian."""
    d, m = 3, 2
    form = fetr(tasks_of(kind, d, m, LOSSES[loss]), getattr(mtl, loss), intercept=intercept)
    rng = np.random.default_rng(2)
    x = {name: 0.3 * rng.normal(size=shape) for name, shape in form.shapes.items()}
    data, means, counts = curvature_data(form, x)
    H = hessian_by_differences(form, x)
    inner = H[: d * m, : d * m]
    if intercept:
        border, corner = H[: d * m, d * m :], H[d * m :, d * m :]
        inner = inner - border @ np.linalg.solve(corner, border.T)
        np.testing.assert_allclose(counts, np.diag(corner), rtol=1e-4)
        for t in range(m):
            np.testing.assert_allclose(means[:, t], border[t * d : (t + 1) * d, t] / corner[t, t], atol=1e-4)
    grams = np.broadcast_to(data.gram, (m, d, d))
    np.testing.assert_allclose(block_diagonal(grams), inner, atol=1e-4 * np.abs(inner).max())


@pytest.mark.parametrize("loss", ["huber_loss", "squared_hinge_loss"])
def test_curvature_of_flat_parts_is_small_but_positive(loss):
    form = fetr(tasks_of("separate", 3, 2, LOSSES[loss]), getattr(mtl, loss))
    x = {"W": 50.0 * np.random.default_rng(0).normal(size=(3, 2))}  # almost every sample on a flat part
    data, _, _ = curvature_data(form, x)
    for gram in data.gram:
        assert np.linalg.eigvalsh(gram)[0] > 0


@pytest.mark.parametrize("kind", ["shared", "separate"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic_loss", "poisson_loss", "squared_hinge_loss"])
def test_the_profile_metric_is_symmetric_and_positive(loss, intercept, kind):
    """With the intercept put back it is the inverse of a matrix in weights and intercepts together."""
    d, m = 4, 3
    form = fetr(tasks_of(kind, d, m, LOSSES[loss]), getattr(mtl, loss), intercept=intercept)
    profile = _DataProfile(form)
    x = {name: 0.3 * np.random.default_rng(2).normal(size=shape) for name, shape in form.shapes.items()}
    flat = profile.flat(x)
    apply = profile.metric(flat)
    inverse = np.column_stack([apply(e) for e in np.eye(flat.size)])
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-9 * np.abs(inverse).max())
    assert np.linalg.eigvalsh(0.5 * (inverse + inverse.T))[0] > 0
    if intercept:  # the block of the intercepts is that of losses and penalty together
        whole = np.linalg.inv(inverse)
        _, means, counts = curvature_data(form, x)
        np.testing.assert_allclose(whole[d * m :, d * m :], np.diag(counts), atol=1e-8 * counts.max())
        rows = whole[d * m :, : d * m].reshape(m, d, m)
        np.testing.assert_allclose(np.einsum("tit->it", rows), means * counts, atol=1e-8 * counts.max())


@pytest.mark.parametrize("kind", ["shared", "separate"])
@pytest.mark.parametrize("intercept", [False, True])
def test_both_profiles_are_one_function(kind, intercept):
    """By Gram matrices with the intercept eliminated, and by passes over the data."""
    form = fetr(tasks_of(kind, 4, 3), intercept=intercept, ridge=0.3)
    by_gram = _GramProfile(form, LinearStep(form, quadratic_data(form)))
    by_data = _DataProfile(form)
    flat = by_gram.flat({"W": weights(4, 3)})
    value, of_losses, of_penalties = by_gram.parts(flat)
    x = by_gram.blocks(flat)
    other, losses_too, penalties_too = by_data.parts(by_data.flat(x))
    assert value == pytest.approx(other, rel=1e-12) == pytest.approx(form.value(x), rel=1e-12)
    gradient = by_data.layout.blocks(losses_too + penalties_too)
    np.testing.assert_allclose(of_losses + of_penalties, gradient["W"].ravel(), atol=1e-9)
    if intercept:
        np.testing.assert_allclose(gradient["W.intercept"], 0.0, atol=1e-9)
