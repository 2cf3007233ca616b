"""The laws of functions of a matrix, regularizers and sets, over every example of every registered atom.

As in test_registry.py, the two sides of a law never come from the same place.
"""

import numpy as np
import pytest

from mtldsl.atoms.function import Set
from mtldsl.atoms.regularizers import KroneckerRidge
from tests.registry_cases import (
    MATRIX_FUNCTIONS,
    REGULARIZERS,
    REWEIGHTED,
    SETS,
    SHAPE,
    assert_is_reference_prox,
    assert_minimal,
    convex,
    function_value,
    growth,
    inside_domain,
    inside_dual_domain,
    knows_order,
    matrix,
    random,
    reference_conjugate,
    reference_prox,
    set_violation,
)

STEPS = (0.3, 2.0)
all_functions = pytest.mark.parametrize("atom", MATRIX_FUNCTIONS)
all_regularizers = pytest.mark.parametrize("atom", REGULARIZERS)
all_penalties = pytest.mark.parametrize("atom", REGULARIZERS + REWEIGHTED)
all_sets = pytest.mark.parametrize("atom", SETS)
convex_functions = pytest.mark.parametrize("atom", convex(MATRIX_FUNCTIONS))
BALLS = [case for case in convex(REGULARIZERS) if case.values[0].ball(1.0) is not None]
convex_regularizers = pytest.mark.parametrize("atom", convex(REGULARIZERS))


def with_prox(cases):
    return pytest.mark.parametrize("atom", [case for case in cases if case.values[0].exact_prox])


@all_penalties
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3])
def test_regularizer_value_is_the_reference_value(atom, size):
    W = matrix(atom, 0, size)
    assert atom.check(SHAPE) is None
    assert atom.value(W) == pytest.approx(function_value(atom, W), rel=max(1e-11, atom.accuracy), abs=1e-13)


@all_sets
@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 30.0])
def test_set_violation_is_the_reference_violation(atom, size):
    W = matrix(atom, 0, size)
    assert atom.check(SHAPE) is None and atom.value(W) == 0.0
    assert atom.violation(W) == pytest.approx(set_violation(atom, W), rel=1e-10, abs=1e-12)


@with_prox(REGULARIZERS + REWEIGHTED)
@pytest.mark.parametrize("step", STEPS)
def test_regularizer_prox(atom, step):
    """As for losses: F(V) >= F(P) + 1/2 ||V - P||^2 for every V, and for cvxpy's own minimiser above all; where g is not convex, less
    of the square or none of it.
    """
    W = matrix(atom, 1, 2.0)
    P = atom.prox(W, step)
    objective = lambda V: step * function_value(atom, V) + 0.5 * np.sum((V - W) ** 2)  # noqa: E731
    assert_minimal(objective, P, random(atom, 2), growth(atom, step))
    if atom.convex:
        assert_is_reference_prox(atom, P, W, step)


@with_prox(convex(REGULARIZERS))
def test_prox_of_no_step_is_the_identity(atom):
    """Solvers project onto constraints with a step of zero: W stays, parts that are zero too."""
    W = inside_domain(atom, matrix(atom, 21))
    for V in (W, W * (np.arange(SHAPE[1]) < 2), np.zeros(SHAPE)):
        if np.isfinite(function_value(atom, V)):
            np.testing.assert_allclose(atom.prox(V, 0.0), V, rtol=1e-12, atol=1e-12)


@all_sets
@pytest.mark.parametrize("size", [0.05, 1.0, 10.0])
def test_set_projection(atom, size):
    """P is feasible and, C being convex, <W - P, V - P> <= 0 for every feasible V; V comes from cvxpy's own projections."""
    W = matrix(atom, 1, size)
    P = atom.project(W)
    assert set_violation(atom, P) <= 1e-12 * max(1.0, np.abs(W).max())
    np.testing.assert_allclose(atom.project(P), P, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(atom.prox(W, 0.7), P)
    if not atom.convex:
        return
    of_reference = reference_prox(atom, W, 1.0)
    np.testing.assert_allclose(P, of_reference, atol=1e-4 * max(1.0, size))
    for salt in range(4):
        V = reference_prox(atom, W + matrix(atom, 10 + salt, 0.5 * size), 1.0)
        assert np.vdot(W - P, V - P) <= 1e-7 * max(1.0, size) ** 2


@with_prox(convex(MATRIX_FUNCTIONS))
@pytest.mark.parametrize("step", [1e-5, 0.3, 2.0, 1e5])
def test_fenchel_young_is_tight_at_the_prox(atom, step):
    """V = (W - P) / step is a subgradient at P = prox(W): g(P) + g*(V) = <P, V>, and V lies in dom g*."""
    W = matrix(atom, 3, 2.0)
    P = atom.prox(W, step)
    V = (W - P) / step
    noise = 1e-15 * max(1.0, 1.0 / step)
    near = atom.dual_project(V)
    np.testing.assert_allclose(near, V, rtol=1e-9, atol=1e-9 + 100 * noise)
    assert atom.dual_gauge(near) <= 1 + 1e-9 + 1e3 * noise
    V = inside_dual_domain(atom, V)
    size = 1 + np.sum(np.abs(P)) * np.abs(V).max()
    assert atom.value(P) + atom.conjugate(V) == pytest.approx(np.vdot(P, V), abs=(1e-9 + 1e4 * noise) * size)


@all_functions
def test_fenchel_young(atom):
    """g(W) + g*(Z) >= <W, Z> on random pairs: of W by the reference for regularizers, projected for sets."""
    for salt in range(20, 40):
        Z = inside_dual_domain(atom, matrix(atom, salt, 10.0 ** random(atom, salt).uniform(-1, 1)))
        W = matrix(atom, 100 + salt, 2.0)
        if isinstance(atom, Set):
            W = atom.project(W)
            assert set_violation(atom, W) <= 1e-12 * max(1.0, np.abs(W).max())
        value = 0.0 if isinstance(atom, Set) else function_value(atom, W)
        conjugate = atom.conjugate(Z)
        assert np.isfinite(conjugate)
        assert value + conjugate >= np.vdot(W, Z) - 1e-10 * (1 + abs(value))


@convex_functions
def test_conjugate_is_the_supremum(atom):
    Z = inside_dual_domain(atom, matrix(atom, 4), margin=0.9)
    assert atom.conjugate(Z) == pytest.approx(reference_conjugate(atom, Z), rel=1e-6, abs=1e-6)


@convex_functions
def test_dual_gauge_tells_the_domain_of_the_conjugate(atom):
    """Finite up to gauge 1, infinite beyond; outside the cone of the domain the gauge is infinite, for cvxpy
    as well.
    """
    Z = matrix(atom, 5)
    projected = atom.dual_project(Z)
    np.testing.assert_allclose(atom.dual_project(projected), projected, rtol=1e-10, atol=1e-12)
    gauge = atom.dual_gauge(projected)
    assert np.isfinite(gauge) and gauge >= 0
    if gauge > 0:
        assert atom.dual_gauge(3.0 * projected) == pytest.approx(3.0 * gauge, rel=1e-10)
        assert np.isfinite(atom.conjugate(projected * (1 - 1e-10) / gauge))
        assert atom.conjugate(projected * (1 + 1e-6) / gauge) == np.inf
        assert reference_conjugate(atom, 1.5 * projected / gauge) == np.inf
    inside_cone = np.allclose(projected, Z)
    assert np.isfinite(atom.dual_gauge(Z)) == inside_cone
    if not inside_cone:
        assert atom.conjugate(Z) == np.inf and reference_conjugate(atom, Z) == np.inf
    if atom.absorbs:
        assert inside_cone
    if atom.finite_dual:
        assert atom.absorbs and gauge == 0.0 and np.isfinite(atom.conjugate(1e3 * Z))


@all_regularizers
def test_norm_and_dual_norm(atom):
    V, W = (inside_domain(atom, matrix(atom, salt)) for salt in (6, 7))
    value = lambda W: function_value(atom, W)  # noqa: E731
    homogeneous = value(3.0 * W) == pytest.approx(3.0 * value(W), rel=1e-10)
    assert homogeneous == atom.norm
    if not atom.norm:
        with pytest.raises(TypeError, match=atom.name):
            atom.dual_norm(W)
        return
    assert value(V + W) <= value(V) + value(W) + 1e-12 and value(-W) == pytest.approx(value(W))
    Z = atom.dual_project(matrix(atom, 8))
    dual = atom.dual_norm(Z)
    assert np.vdot(Z, W) <= dual * value(W) + 1e-10
    # sup of <Z, W> over the unit ball is the least t with Z in t times the dual ball, so g* jumps there
    assert reference_conjugate(atom, Z * 0.999 / dual) == pytest.approx(0.0, abs=1e-6)
    assert reference_conjugate(atom, Z * 1.01 / dual) == np.inf


@all_regularizers
def test_regularizer_traits(atom):
    V, W = (inside_domain(atom, matrix(atom, salt)) for salt in (9, 10))
    value = lambda W: function_value(atom, W)  # noqa: E731
    assert value(np.zeros(SHAPE)) == 0.0 and value(W) >= 0.0
    bend = (value(V) + value(W)) / 2 - value((V + W) / 2)
    assert bend >= (atom.strong_convexity - atom.weak_convexity) / 8 * np.sum(
        (V - W) ** 2
    ) - 1e-11 - atom.accuracy * value(W)
    if atom.monotone:
        assert value(np.abs(W)) == pytest.approx(value(W)) and value(1.3 * np.abs(W) + np.abs(V)) >= value(W)
    quadratic = atom.task_quadratic(SHAPE[1])
    if quadratic is not None:
        assert value(W) == pytest.approx(0.5 * np.trace(W @ quadratic @ W.T))
    if np.isfinite(atom.curvature):
        D = matrix(atom, 11)
        slope = (value(W + 1e-5 * D) - value(W - 1e-5 * D)) / 2e-5
        assert np.vdot(atom.gradient(W), D) == pytest.approx(slope, rel=1e-6)
        change = np.linalg.norm(atom.gradient(V) - atom.gradient(W))
        assert change <= atom.curvature * np.linalg.norm(V - W) * (1 + 1e-10)


@with_prox(MATRIX_FUNCTIONS)
def test_separable_prox_acts_on_each_part_alone(atom):
    """Changing one part of W changes that part of the prox only; "spectrum": the prox commutes with
    rotations.
    """
    W, rng = matrix(atom, 12, 2.0), random(atom, 13)
    P = atom.prox(W, 0.4)
    if atom.separable == "spectrum":
        Q, R = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in SHAPE)
        np.testing.assert_allclose(atom.prox(Q @ W @ R, 0.4), Q @ P @ R, atol=1e-12)
        return
    parts = {"entries": (2, 3), "rows": (2, slice(None)), "columns": (slice(None), 3)}
    if atom.separable not in parts:
        assert atom.separable in (None, "matrix")
        return
    part = parts[atom.separable]
    changed = W.copy()
    changed[part] += 1.0
    Q = atom.prox(changed, 0.4)
    Q[part] = P[part]
    np.testing.assert_allclose(Q, P, rtol=1e-13, atol=1e-14)


@all_functions
def test_permuting_rows_and_tasks(atom):
    """Atoms without parameters know no order, save that total_variation runs along the tasks, either way
    round.
    """
    if knows_order(atom):
        pytest.skip("its parameters name rows or tasks")
    W, rng = matrix(atom, 14, 2.0), random(atom, 15)
    rows, tasks = rng.permutation(SHAPE[0]), rng.permutation(SHAPE[1])
    if atom.name == "total_variation":
        tasks = np.arange(SHAPE[1])[::-1]
    permuted = W[rows][:, tasks]
    if atom.exact_prox:
        np.testing.assert_allclose(atom.prox(permuted, 0.4), atom.prox(W, 0.4)[rows][:, tasks], atol=1e-12)
    assert atom.value(permuted) == pytest.approx(atom.value(W), rel=max(1e-12, atom.accuracy))


def assert_least(atom, W, step, P):
    """P is the minimiser for a function that is not convex: no perturbation, nor W itself, nor zero is better."""
    outside = lambda V: np.inf if set_violation(atom, V) > 1e-9 else 0.0  # noqa: E731
    objective = lambda V: (  # noqa: E731
        (outside(V) if isinstance(atom, Set) else step * function_value(atom, V)) + 0.5 * np.sum((V - W) ** 2)
    )
    assert_minimal(objective, P, random(atom, 21), growth(atom, step))
    for V in (W, np.zeros(W.shape)):
        assert objective(V) >= objective(P) - 1e-13 * (1 + objective(P))


@all_functions
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (5, 1), (4, 5)])
def test_other_shapes(atom, shape):
    """One task, one feature, wide: refused by `check` with a sentence, or as right as any other."""
    refusal = atom.check(shape)
    if refusal is not None:
        assert isinstance(refusal, str) and len(refusal) > 10
        return
    W = 2.0 * random(atom, 16).normal(size=shape)
    if not isinstance(atom, Set):
        assert atom.value(W) == pytest.approx(function_value(atom, W), rel=max(1e-11, atom.accuracy))
    if not atom.exact_prox:
        return
    P = atom.prox(W, 0.4)
    assert P.shape == shape
    if atom.convex:
        assert_is_reference_prox(atom, P, W, 0.4)
    else:
        assert_least(atom, W, 0.4, P)
    if not isinstance(atom, Set):
        np.testing.assert_array_equal(atom.prox(np.zeros(shape), 0.4), 0.0)


@all_functions
def test_degenerate_matrices(atom):
    """Zeros, equal columns, a zero row: value and prox stay right (and warn of nothing)."""
    W = matrix(atom, 17, 2.0)
    equal = np.repeat(W[:, :1], SHAPE[1], axis=1)
    zero_row = W * (np.arange(SHAPE[0]) != 2)[:, None]
    for V in (np.zeros(SHAPE), equal, zero_row, np.ones(SHAPE)):
        if not atom.exact_prox:
            pass
        elif atom.convex:
            assert_is_reference_prox(atom, atom.prox(V, 0.4), V, 0.4)
        else:
            assert_least(atom, V, 0.4, atom.prox(V, 0.4))
        if isinstance(atom, Set):
            assert atom.violation(V) == pytest.approx(set_violation(atom, V), rel=1e-10, abs=1e-12)
        else:
            assert atom.value(V) == pytest.approx(
                function_value(atom, V), rel=max(1e-10, atom.accuracy), abs=1e-12
            )


@all_functions
def test_function_takes_float32_and_leaves_its_arguments_alone(atom):
    W = matrix(atom, 18).astype(np.float32)
    Z = inside_dual_domain(atom, matrix(atom, 19), 0.5)
    before_W, before_Z = W.copy(), Z.copy()
    if atom.exact_prox:
        np.testing.assert_allclose(atom.prox(W, 0.4), atom.prox(W.astype(float), 0.4), rtol=1e-4, atol=1e-5)
    assert atom.value(W) == pytest.approx(atom.value(W.astype(float)), rel=1e-5, abs=1e-6)
    atom.conjugate(Z), atom.dual_gauge(Z), atom.dual_project(Z)
    np.testing.assert_array_equal(W, before_W)
    np.testing.assert_array_equal(Z, before_Z)


def test_the_norms_without_weights_have_balls():
    """What `test_ball` runs over, so that it cannot come to run over nothing."""
    assert {"l1_norm", "l21_norm", "trace_norm", "frobenius_norm"} <= {case.values[0].name for case in BALLS}


@pytest.mark.parametrize("atom", BALLS)
def test_ball(atom):
    """ball(r) is {W : g(W) <= r}: same members, and the projection of an outer point lies on its surface."""
    W = matrix(atom, 20, 3.0)
    radius = 0.4 * function_value(atom, W)
    ball = atom.ball(radius)
    P = ball.project(W)
    assert function_value(atom, P) == pytest.approx(radius, rel=1e-12)
    assert ball.violation(W) == pytest.approx(function_value(atom, W) - radius, rel=1e-12)
    np.testing.assert_allclose(ball.project(0.3 * W), 0.3 * W, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("condition", [1e4, 1e8])
def test_a_kronecker_ridge_of_bad_condition_keeps_its_conjugate(condition):
    """Fenchel's equality at the gradient, to rounding: eigenvalues far apart must not cancel."""
    rng = np.random.default_rng(0)
    Q, R = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (6, 4))
    A, B = (V @ np.diag(np.geomspace(1.0 / condition, 1.0, len(V))) @ V.T for V in (Q, R))
    penalty = KroneckerRidge(0.5 * (A + A.T), 0.5 * (B + B.T))
    scale = np.diag(penalty.rows.values**-0.5), np.diag(penalty.columns.values**-0.5)
    W = penalty.rows.basis @ scale[0] @ rng.normal(size=(6, 4)) @ scale[1] @ penalty.columns.basis.T
    Z = penalty.gradient(W)
    assert penalty.value(W) + penalty.conjugate(Z) == pytest.approx(float(np.vdot(W, Z)), rel=1e-7)
