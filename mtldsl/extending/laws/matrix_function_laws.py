"""The laws of functions of weights, regularizers and sets.

As for losses, the two sides of a law never come from the same place.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mtldsl.atoms.matrix_function import MatrixFunction, Regularizer, Set
from mtldsl.extending.law import Law, holds, law, same, same_arrays
from mtldsl.extending.laws.law_examples import (
    PROX_STEPS,
    WEIGHTS_SHAPE,
    assert_is_reference_prox,
    assert_minimal,
    covered,
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

LAWS: list[Law] = []


def _convex(atom) -> bool:
    return covered(atom) and atom.convex


def _has_prox(atom) -> bool:
    return covered(atom) and atom.exact_prox


_all = partial(law, LAWS, MatrixFunction, covered)
_convex_ones = partial(law, LAWS, MatrixFunction, _convex)
_with_prox = partial(law, LAWS, MatrixFunction, _has_prox)
_penalties = partial(law, LAWS, MatrixFunction, lambda atom: covered(atom) and not isinstance(atom, Set))
_regularizers = partial(law, LAWS, Regularizer)
_sets = partial(law, LAWS, Set)


def _takes_its_examples(atom) -> None:
    refusal = atom.check(WEIGHTS_SHAPE)
    holds(refusal is None, f"examples are for matrices of {WEIGHTS_SHAPE}, and check says: {refusal}")


def _value_is_right(atom, W, rel: float, abs: float = 1e-12) -> None:
    same(atom.value(W), function_value(atom, W), "value", rel=max(rel, atom.accuracy), abs=abs)


@_penalties(size=(0.0, 1e-3, 1.0, 1e3))
def value_is_the_reference_value(atom, size):
    """value(W) is what the reference function says."""
    W = matrix(atom, 0, size)
    _takes_its_examples(atom)
    _value_is_right(atom, W, 1e-11, 1e-13)


@_sets(size=(0.0, 0.1, 1.0, 30.0))
def violation_is_the_reference_violation(atom, size):
    """violation(W) is by how much the reference's constraints are violated, and the value of a set is 0."""
    W = matrix(atom, 0, size)
    _takes_its_examples(atom)
    holds(atom.value(W) == 0.0, "the value of a set is 0 everywhere: it has a violation")
    same(atom.violation(W), set_violation(atom, W), "violation", rel=1e-10, abs=1e-12)


@law(LAWS, MatrixFunction, lambda atom: _has_prox(atom) and not isinstance(atom, Set), step=PROX_STEPS)
def prox_is_the_minimiser(atom, step):
    """P = prox(W) minimises F = step g + 1/2 ||. - W||^2: F(V) >= F(P) + 1/2 ||V - P||^2 for every V, and for cvxpy's own minimiser
    above all; where g is not convex, less of the square or none of it.

    Where g is convex, F near P is made of `value`: the reference's, a program for some words, is compared at P and at cvxpy's minimiser.
    """
    W = matrix(atom, 1, 2.0)
    P = atom.prox(W, step)
    value = atom.value if atom.convex else partial(function_value, atom)
    objective = lambda V: step * value(V) + 0.5 * np.sum((V - W) ** 2)  # noqa: E731
    assert_minimal(objective, P, random(atom, 2), growth(atom, step))
    if atom.convex:
        _value_is_right(atom, P, 1e-11, 1e-13)
        assert_is_reference_prox(atom, P, W, step)


@law(LAWS, Regularizer, lambda atom: atom.convex and atom.exact_prox)
def prox_of_no_step_is_the_identity(atom):
    """prox(W, 0) is W: solvers project onto constraints with a step of zero, and parts that are zero stay so."""
    W = inside_domain(atom, matrix(atom, 21))
    for V in (W, W * (np.arange(WEIGHTS_SHAPE[1]) < 2), np.zeros(WEIGHTS_SHAPE)):
        if np.isfinite(function_value(atom, V)):
            same_arrays(atom.prox(V, 0.0), V, "prox of step 0", rtol=1e-12, atol=1e-12)


@_sets(size=(0.05, 1.0, 10.0))
def projection_is_the_nearest_point(atom, size):
    """P = project(W) is feasible and, C being convex, <W - P, V - P> <= 0 for every feasible V; V are cvxpy's own projections."""
    W = matrix(atom, 1, size)
    P = atom.project(W)
    outside = set_violation(atom, P)
    holds(
        outside <= 1e-12 * max(1.0, np.abs(W).max()),
        f"the projection violates the constraint by {outside:.1e}",
    )
    same_arrays(atom.project(P), P, "the projection, projected", rtol=1e-12, atol=1e-12)
    holds(np.array_equal(atom.prox(W, 0.7), P), "prox of a set is its projection, whatever the step")
    if not atom.convex:
        return
    same_arrays(
        P,
        reference_prox(atom, W, 1.0),
        "the projection, beside cvxpy's",
        rtol=0.0,
        atol=1e-4 * max(1.0, size),
    )
    for salt in range(4):
        V = reference_prox(atom, W + matrix(atom, 10 + salt, 0.5 * size), 1.0)
        holds(
            np.vdot(W - P, V - P) <= 1e-7 * max(1.0, size) ** 2,
            "a feasible point is nearer than the projection",
        )


@law(LAWS, MatrixFunction, lambda atom: _convex(atom) and atom.exact_prox, step=(1e-5, 0.3, 2.0, 1e5))
def fenchel_young_is_tight_at_the_prox(atom, step):
    """V = (W - P) / step is a subgradient at P = prox(W): g(P) + g*(V) = <P, V>, and V lies in dom g*."""
    W = matrix(atom, 3, 2.0)
    P = atom.prox(W, step)
    V = (W - P) / step
    noise = 1e-15 * max(1.0, 1.0 / step)
    near = atom.dual_project(V)
    same_arrays(
        near, V, "the subgradient at the prox, projected onto dom g*", rtol=1e-9, atol=1e-9 + 100 * noise
    )
    gauge = atom.dual_gauge(near)
    holds(gauge <= 1 + 1e-9 + 1e3 * noise, f"dual_gauge is {gauge!r} > 1 at a subgradient")
    V = inside_dual_domain(atom, V)
    size = 1 + np.sum(np.abs(P)) * np.abs(V).max()
    pair = atom.value(P) + atom.conjugate(V)
    same(pair, np.vdot(P, V), "g(P) + g*(V), beside <P, V>", abs=(1e-9 + 1e4 * noise) * size)


@_all()
def fenchel_young(atom):
    """g(W) + g*(Z) >= <W, Z> on random pairs; every fourth value is compared with the reference's. W of sets are projected."""
    for salt in range(20, 32):
        Z = inside_dual_domain(atom, matrix(atom, salt, 10.0 ** random(atom, salt).uniform(-1, 1)))
        W = matrix(atom, 100 + salt, 2.0)
        if isinstance(atom, Set):
            W = atom.project(W)
            holds(
                set_violation(atom, W) <= 1e-12 * max(1.0, np.abs(W).max()), "the projection is not feasible"
            )
        value = 0.0 if isinstance(atom, Set) else atom.value(W)
        if salt % 4 == 0 and not isinstance(atom, Set):
            _value_is_right(atom, W, 1e-11, 1e-13)
        conjugate = atom.conjugate(Z)
        holds(np.isfinite(conjugate), "g* is infinite at a point of dual_gauge <= 1")
        holds(value + conjugate >= np.vdot(W, Z) - 1e-10 * (1 + abs(value)), "g(W) + g*(Z) is below <W, Z>")


@_convex_ones()
def conjugate_is_the_supremum(atom):
    """g*(Z) is the supremum of <Z, W> - g(W) that cvxpy finds."""
    Z = inside_dual_domain(atom, matrix(atom, 4), margin=0.9)
    same(atom.conjugate(Z), reference_conjugate(atom, Z), "g*(Z)", rel=1e-6, abs=1e-6)


@_convex_ones()
def dual_gauge_tells_the_domain_of_the_conjugate(atom):
    """g* is finite up to dual_gauge 1 and infinite beyond; outside the cone of the domain the gauge is infinite, for cvxpy as well."""
    Z = matrix(atom, 5)
    projected = atom.dual_project(Z)
    same_arrays(
        atom.dual_project(projected), projected, "dual_project of what it returned", rtol=1e-10, atol=1e-12
    )
    gauge = atom.dual_gauge(projected)
    holds(np.isfinite(gauge) and gauge >= 0, f"dual_gauge is {gauge!r} at a point that dual_project returned")
    if gauge > 0:
        same(atom.dual_gauge(3.0 * projected), 3.0 * gauge, "dual_gauge(3 Z)", rel=1e-10)
        holds(
            np.isfinite(atom.conjugate(projected * (1 - 1e-10) / gauge)), "g* is infinite just inside gauge 1"
        )
        holds(atom.conjugate(projected * (1 + 1e-6) / gauge) == np.inf, "g* is finite beyond gauge 1")
        beyond = reference_conjugate(atom, 1.5 * projected / gauge)
        holds(beyond == np.inf, f"cvxpy finds g* = {beyond!r} at gauge 1.5: the gauge is too large")
    inside_cone = np.allclose(projected, Z)
    holds(
        np.isfinite(atom.dual_gauge(Z)) == inside_cone,
        "dual_gauge is finite exactly where dual_project leaves Z",
    )
    if not inside_cone:
        infinite = atom.conjugate(Z) == np.inf and reference_conjugate(atom, Z) == np.inf
        holds(infinite, "g* is finite outside the cone of its domain")
    holds(inside_cone or not atom.absorbs, "absorbs = True: dual_gauge is finite for every Z")
    if atom.finite_dual:
        finite = atom.absorbs and gauge == 0.0 and np.isfinite(atom.conjugate(1e3 * Z))
        holds(finite, "finite_dual = True: g* is finite everywhere and dual_gauge 0")


@_regularizers()
def norm_and_dual_norm(atom):
    """norm: g(3 W) = 3 g(W), the triangle inequality, <Z, W> <= dual_norm(Z) g(W), and g* jumps at dual_norm 1; else TypeError."""
    V, W = (inside_domain(atom, matrix(atom, salt)) for salt in (6, 7))
    value = partial(function_value, atom)
    homogeneous = abs(value(3.0 * W) - 3.0 * value(W)) <= 1e-10 * abs(3.0 * value(W))
    holds(
        homogeneous == atom.norm, f"norm = {atom.norm}, and g(3 W) is {'' if homogeneous else 'not '}3 g(W)"
    )
    if not atom.norm:
        try:
            atom.dual_norm(W)
        except TypeError as error:
            holds(atom.name in str(error), "dual_norm of what is not a norm names the word")
            return
        raise AssertionError("dual_norm of what is not a norm raises TypeError")
    holds(value(V + W) <= value(V) + value(W) + 1e-12, "g(V + W) is above g(V) + g(W)")
    same(value(-W), value(W), "g(-W)")
    Z = atom.dual_project(matrix(atom, 8))
    dual = atom.dual_norm(Z)
    holds(np.vdot(Z, W) <= dual * value(W) + 1e-10, "<Z, W> is above dual_norm(Z) g(W)")
    # sup of <Z, W> over the unit ball is the least t with Z in t times the dual ball, so g* jumps there
    same(reference_conjugate(atom, Z * 0.999 / dual), 0.0, "g* just inside the dual ball, by cvxpy", abs=1e-6)
    holds(
        reference_conjugate(atom, Z * 1.01 / dual) == np.inf, "g* is finite outside the dual ball, by cvxpy"
    )


@_regularizers()
def traits_are_what_they_say(atom):
    """g(0) = 0 <= g; strong_convexity and weak_convexity; monotone; task_quadratic; the gradient, and curvature, which bounds it."""
    V, W = (inside_domain(atom, matrix(atom, salt)) for salt in (9, 10))
    value = partial(function_value, atom)
    holds(value(np.zeros(WEIGHTS_SHAPE)) == 0.0 and value(W) >= 0.0, "g(0) = 0 and g >= 0")
    bend = (value(V) + value(W)) / 2 - value((V + W) / 2)
    least = (atom.strong_convexity - atom.weak_convexity) / 8 * np.sum((V - W) ** 2)
    slack = 1e-11 + atom.accuracy * value(W)
    holds(bend >= least - slack, "g bends less than strong_convexity and weak_convexity say")
    if atom.monotone:
        same(value(np.abs(W)), value(W), "monotone: g(|W|)")
        holds(
            value(1.3 * np.abs(W) + np.abs(V)) >= value(W), "monotone: g increases with the absolute values"
        )
    quadratic = atom.task_quadratic(WEIGHTS_SHAPE[1])
    if quadratic is not None:
        same(value(W), 0.5 * np.trace(W @ quadratic @ W.T), "task_quadratic: 1/2 tr(W L W^T)")
    if np.isfinite(atom.curvature):
        D = matrix(atom, 11)
        slope = (value(W + 1e-5 * D) - value(W - 1e-5 * D)) / 2e-5
        same(np.vdot(atom.gradient(W), D), slope, "the gradient, beside a finite difference", rel=1e-6)
        change = np.linalg.norm(atom.gradient(V) - atom.gradient(W))
        most = atom.curvature * np.linalg.norm(V - W) * (1 + 1e-10)
        holds(change <= most, f"the gradient changes by more than curvature={atom.curvature:g} a unit")


_SHAPE_OF_TRANSPOSE = WEIGHTS_SHAPE[::-1]


@law(LAWS, MatrixFunction, lambda atom: atom.of_transpose(_SHAPE_OF_TRANSPOSE) is not None)
def word_of_the_transpose_has_the_same_value(atom):
    """h = of_transpose(shape) fits this shape, and h(W^T) is g(W) by the reference of h."""
    h = atom.of_transpose(_SHAPE_OF_TRANSPOSE)
    refusal = h.check(_SHAPE_OF_TRANSPOSE)
    holds(refusal is None, f"check of the word of the transpose says: {refusal}")
    W = inside_domain(atom, matrix(atom, 22))
    same(function_value(h, W.T), atom.value(W), "value of the transpose", rel=max(1e-10, atom.accuracy))


@_with_prox()
def separable_prox_acts_on_each_part_alone(atom):
    """Changing one part of W changes that part of the prox only; "spectrum": the prox commutes with rotations."""
    W, rng = matrix(atom, 12, 2.0), random(atom, 13)
    P = atom.prox(W, 0.4)
    if atom.separable == "spectrum":
        Q, R = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in WEIGHTS_SHAPE)
        same_arrays(atom.prox(Q @ W @ R, 0.4), Q @ P @ R, "the prox of a rotated W", rtol=1e-7, atol=1e-12)
        return
    parts = {"entries": (2, 3), "rows": (2, slice(None)), "columns": (slice(None), 3)}
    if atom.separable not in parts:
        holds(atom.separable in (None, "matrix"), f"separable = {atom.separable!r} is not known")
        return
    part = parts[atom.separable]
    changed = W.copy()
    changed[part] += 1.0
    Q = atom.prox(changed, 0.4)
    Q[part] = P[part]
    same_arrays(Q, P, f"the prox outside a changed part ({atom.separable})", rtol=1e-13, atol=1e-14)


@law(LAWS, MatrixFunction, lambda atom: covered(atom) and not knows_order(atom))
def permuting_rows_and_tasks_permutes(atom):
    """Functions without parameters of rows or tasks know no order, save that those that are `ordinal` run along the tasks."""
    W, rng = matrix(atom, 14, 2.0), random(atom, 15)
    rows, tasks = rng.permutation(WEIGHTS_SHAPE[0]), rng.permutation(WEIGHTS_SHAPE[1])
    if atom.ordinal:
        tasks = np.arange(WEIGHTS_SHAPE[1])
    permuted = W[rows][:, tasks]
    if atom.exact_prox:
        expected = atom.prox(W, 0.4)[rows][:, tasks]
        same_arrays(atom.prox(permuted, 0.4), expected, "the prox of permuted weights", atol=1e-12)
    same(atom.value(permuted), atom.value(W), "the value of permuted weights", rel=max(1e-12, atom.accuracy))


def _is_prox(atom, W, step) -> np.ndarray:
    P = atom.prox(W, step)
    if atom.convex:
        assert_is_reference_prox(atom, P, W, step)
        return P
    outside = lambda V: np.inf if set_violation(atom, V) > 1e-9 else 0.0  # noqa: E731
    objective = lambda V: (  # noqa: E731
        (outside(V) if isinstance(atom, Set) else step * function_value(atom, V)) + 0.5 * np.sum((V - W) ** 2)
    )
    assert_minimal(objective, P, random(atom, 21), growth(atom, step))
    for V in (W, np.zeros(W.shape)):
        least = objective(V) >= objective(P) - 1e-13 * (1 + objective(P))
        holds(least, "W itself, or zero, is better than the prox")
    return P


@_all(shape=((1, 1), (1, 4), (5, 1), (4, 5)))
def other_shapes_are_refused_or_right(atom, shape):
    """One task, one feature, wide: refused by `check` with a sentence, or as right as any other."""
    refusal = atom.check(shape)
    if refusal is not None:
        holds(
            isinstance(refusal, str) and len(refusal) > 10, f"check({shape}) is not a sentence: {refusal!r}"
        )
        return
    W = 2.0 * random(atom, 16).normal(size=shape)
    if not isinstance(atom, Set):
        _value_is_right(atom, W, 1e-11)
    if atom.exact_prox:
        holds(_is_prox(atom, W, 0.4).shape == shape, "the prox has another shape than W")
        if not isinstance(atom, Set):
            holds(not np.any(atom.prox(np.zeros(shape), 0.4)), "the prox of zero is zero")


@_all()
def degenerate_matrices(atom):
    """Zeros, equal columns, a zero row: value and prox stay right (and warn of nothing)."""
    W = matrix(atom, 17, 2.0)
    equal = np.repeat(W[:, :1], WEIGHTS_SHAPE[1], axis=1)
    zero_row = W * (np.arange(WEIGHTS_SHAPE[0]) != 2)[:, None]
    for V in (np.zeros(WEIGHTS_SHAPE), equal, zero_row, np.ones(WEIGHTS_SHAPE)):
        if atom.exact_prox:
            _is_prox(atom, V, 0.4)
        if isinstance(atom, Set):
            same(atom.violation(V), set_violation(atom, V), "violation", rel=1e-10, abs=1e-12)
        else:
            _value_is_right(atom, V, 1e-10)


@_all()
def float32_and_arguments_left_alone(atom):
    """float32 is as good as its digits, and no method writes into what it is given."""
    W = matrix(atom, 18).astype(np.float32)
    Z = inside_dual_domain(atom, matrix(atom, 19), 0.5)
    before_W, before_Z = W.copy(), Z.copy()
    if atom.exact_prox:
        double = atom.prox(W.astype(float), 0.4)
        same_arrays(atom.prox(W, 0.4), double, "prox of float32", rtol=1e-4, atol=1e-5)
    same(atom.value(W), atom.value(W.astype(float)), "value of float32", rel=1e-5, abs=1e-6)
    atom.conjugate(Z), atom.dual_gauge(Z), atom.dual_project(Z)
    holds(np.array_equal(W, before_W) and np.array_equal(Z, before_Z), "a method wrote into its argument")


@law(LAWS, Regularizer, lambda atom: atom.convex and atom.exact_prox and atom.ball(1.0) is not None)
def ball_is_the_level_set(atom):
    """ball(r) is {W : g(W) <= r}: same members, and the projection of an outer point lies on its surface."""
    W = matrix(atom, 20, 3.0)
    radius = 0.4 * function_value(atom, W)
    ball = atom.ball(radius)
    same(function_value(atom, ball.project(W)), radius, "g at the projection", rel=1e-12)
    same(ball.violation(W), function_value(atom, W) - radius, "violation of the ball", rel=1e-12)
    same_arrays(ball.project(0.3 * W), 0.3 * W, "projection of a member", rtol=1e-12, atol=1e-13)
