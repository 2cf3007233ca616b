"""The laws of losses, such as value, prox, conjugate, gradient and best constants.

The two sides of a law never come from the same place: the prox is judged by the reference's values, the conjugate
by a supremum that cvxpy finds, the gradient by finite differences.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics.contingency import ErrorRate
from mtldsl.extending.law import Law, holds, law, same, same_arrays
from mtldsl.extending.laws.law_examples import (
    PROX_STEPS,
    WEIGHTINGS,
    assert_minimal,
    fewest,
    heaviest,
    loss_data,
    loss_value,
    random,
    reference_conjugate,
    reference_prox,
    samples,
    targets,
)

LAWS: list[Law] = []


def _weightings(loss) -> list[str]:
    """Losses that count samples take no weights."""
    return list(WEIGHTINGS) if loss.weighs_samples else ["unweighted"]


_law = partial(law, LAWS, Loss)
_of_samples = partial(law, LAWS, Loss, weighting=_weightings)


def _majorized(loss) -> bool:
    """Tell whether it knows a quadratic above it that touches."""
    return loss.majorizer_weight(*loss_data(loss, "unweighted", 14)[1:]) is not None


@_of_samples(size=(0.0, 0.1, 1.0, 30.0))
def value_is_the_reference_value(loss, weighting, size):
    """value(z, y, s) is what the reference function says."""
    _, z, y, s = loss_data(loss, weighting)
    same(loss.value(size * z, y, s), loss_value(loss, size * z, y, s), "value", rel=1e-12, abs=1e-14)


@_of_samples(step=PROX_STEPS)
def prox_is_the_minimiser(loss, weighting, step):
    """x = prox(z) minimises F = step f + 1/2 ||. - z||^2: F(v) >= F(x) + 1/2 ||v - x||^2 for every v, cvxpy's minimiser among them."""
    rng, z, y, s = loss_data(loss, weighting, 1)
    x = loss.prox(z, y, step, s)
    near = lambda v: step * loss.value(v, y, s) + 0.5 * np.sum((v - z) ** 2)  # noqa: E731
    objective = lambda v: step * loss_value(loss, v, y, s) + 0.5 * np.sum((v - z) ** 2)  # noqa: E731
    best = objective(x)
    same(near(x), best, "F at the prox, by value and by the reference", rel=1e-12, abs=1e-14)
    assert_minimal(near, x, rng, growth=1.0)
    of_reference = reference_prox(loss, z, step, y, s)
    same(objective(of_reference), best, "F at the prox, beside cvxpy's minimum", rel=1e-7)
    holds(
        objective(of_reference) >= best + 0.5 * np.sum((of_reference - x) ** 2) - 1e-12 * (1 + best),
        "cvxpy's minimiser is better than strong convexity allows",
    )


@_of_samples(step=(1e-6, 1e-2, 1.0, 1e2, 1e6))
def fenchel_young_is_tight_at_the_prox(loss, weighting, step):
    """u = (z - x) / step is a subgradient at x = prox(z): f(x) + f*(u) = <x, u>."""
    _, z, y, s = loss_data(loss, weighting, 2)
    x = loss.prox(z, y, step, s)
    u = (z - x) / step
    noise = 1e-15 * max(1.0, 1.0 / step)  # cancellation in z - x
    inside = loss.dual_project(u, y, s)
    same_arrays(
        inside, u, "the subgradient at the prox, projected onto dom f*", rtol=1e-9, atol=1e-9 + 100 * noise
    )
    pair = loss.value(x, y, s) + loss.conjugate(inside, y, s)
    size = 1 + abs(loss.value(x, y, s)) + np.abs(x) @ np.abs(inside)
    same(pair, x @ inside, "f(x) + f*(u), beside <x, u>", abs=(1e-10 + 1e4 * noise) * size)


@_of_samples()
def fenchel_young(loss, weighting):
    """f(z) + f*(u) >= <z, u>, with equality at a (sub)gradient u; every third value is compared with the reference's."""
    rng, z, y, s = loss_data(loss, weighting, 3)
    g = loss.gradient(z, y, s)
    conjugate = loss.conjugate(loss.dual_point(z, y, s), y, s)
    same(loss.value(z, y, s) + conjugate, z @ g, "f(z) + f*(u) at the gradient u", rel=1e-10, abs=1e-10)
    for size in (0.1, 0.5, 1.0, 3.0):
        for k in range(3):
            u = loss.dual_project(size * rng.normal(size=z.size), y, s)
            v = 2.0 * rng.normal(size=z.size)
            value, conjugate = loss.value(v, y, s), loss.conjugate(u, y, s)
            if k == 0:
                same(value, loss_value(loss, v, y, s), "value", rel=1e-12, abs=1e-14)
            holds(np.isfinite(conjugate), "dual_project returned a point where the conjugate is infinite")
            holds(value + conjugate >= v @ u - 1e-10, "f(v) + f*(u) is below <v, u>")


@_of_samples()
def conjugate_is_the_supremum(loss, weighting):
    """f*(u) is the supremum of <u, z> - f(z) that cvxpy finds."""
    rng, z, y, s = loss_data(loss, weighting, 4)
    g, h = (loss.gradient(v, y, s) for v in (z, rng.normal(size=z.size)))
    u = 0.6 * g + 0.4 * h  # dom f* is convex
    same(loss.conjugate(u, y, s), reference_conjugate(loss, u, y, s), "f*(u)", rel=1e-7, abs=1e-7)


@_of_samples()
def conjugate_is_infinite_outside_its_domain(loss, weighting):
    """f* is +inf where dual_project moves a point, as cvxpy finds, and a projected point stays where it is."""
    rng, z, y, s = loss_data(loss, weighting, 5)
    u = 50.0 * rng.normal(size=z.size)
    inside = loss.dual_project(u, y, s)
    # the nearest point of a polytope of labellings is a sum of vertices of size 1
    rounding = 1e-15 if loss.labels in ("indicators", "classes") else 0.0
    again = loss.dual_project(inside, y, s)
    same_arrays(again, inside, "dual_project of what it returned", rtol=1e-14, atol=rounding)
    bounded = not np.allclose(inside, u)
    holds(np.isinf(loss.conjugate(u, y, s)) == bounded, "f* is infinite exactly where dual_project moves u")
    holds(
        np.isinf(reference_conjugate(loss, u, y, s)) == bounded,
        f"u {'is moved by' if bounded else 'stays under'} dual_project, and cvxpy says otherwise of the domain of f*",
    )
    if bounded:  # and from just outside
        outside = inside + 1e-3 * (u - inside)
        holds(loss.conjugate(outside, y, s) == np.inf, "f* is finite just outside its domain")


@_of_samples()
def gradient_is_the_derivative(loss, weighting):
    """Finite differences where smooth, the subgradient inequality everywhere; `curvature` bounds the change of the gradient."""
    rng, z, y, s = loss_data(loss, weighting, 6)
    g = loss.gradient(z, y, s)
    if loss.smooth:
        for i in range(z.size):
            e = 1e-5 * np.eye(z.size)[i]
            slope = (loss_value(loss, z + e, y, s) - loss_value(loss, z - e, y, s)) / 2e-5
            same(g[i], slope, f"the gradient at sample {i}, beside a finite difference", rel=1e-6, abs=1e-6)
    changes = []
    for size in (1e-3, 0.1, 1.0, 5.0):
        for _ in range(5):
            v = z + size * rng.normal(size=z.size)
            tangent = loss_value(loss, z, y, s) + g @ (v - z)
            holds(loss_value(loss, v, y, s) >= tangent - 1e-11, "f is below its tangent: not a subgradient")
            changes.append(np.linalg.norm(loss.gradient(v, y, s) - g) / np.linalg.norm(v - z))
    if np.isfinite(loss.curvature):
        holds(loss.smooth, "a loss with a finite curvature is smooth")
        largest = loss.curvature * (1.0 if s is None else s.max()) * (1 + 1e-9)
        holds(
            max(changes) <= largest,
            f"the gradient changes by {max(changes):g} a unit, more than curvature={loss.curvature:g}",
        )


@_of_samples(applies=_majorized, size=(0.01, 1.0, 100.0))
def majorizer_touches_and_lies_above(loss, weighting, size):
    """f(x) <= f(z) + v/2 (sum s (x - y)^2 - sum s (z - y)^2) for every x, v = majorizer_weight(z)."""
    rng, z, y, s = loss_data(loss, weighting, 14)
    z = y + size * (z - y)
    v = loss.majorizer_weight(z, y, s)
    weights = np.ones(z.size) if s is None else s
    squares = lambda x: np.sum(weights * (x - y) ** 2)  # noqa: E731
    value = loss_value(loss, z, y, s)
    same_arrays(v * weights * (z - y), loss.gradient(z, y, s), "slope of the majorizer", rtol=1e-12)
    for spread in (1e-4, 1e-2, 1.0, 1e2, 1e4):
        for x in (
            z + spread * rng.normal(size=z.size),
            y + spread * (z - y),
            y + spread * rng.normal(size=z.size),
            y,
        ):
            above = value + 0.5 * v * (squares(x) - squares(z))
            slack = 1e-12 * (1 + v * (squares(x) + squares(z)))
            holds(loss_value(loss, x, y, s) <= above + slack, "f is above its majorizer")


@_of_samples()
def radial_is_what_it_says(loss, weighting):
    """Radial: f(z) = h(t), t = sqrt(sum s (z - y)^2), and h'(t) / t is `weight_of_norm`; others differ between residuals of one norm."""
    rng, z, y, s = loss_data(loss, weighting, 15)
    root = np.ones(z.size) if s is None else np.sqrt(s)
    sizes = np.array([1e-3, 0.1, 1.0, 30.0])
    directions = rng.normal(size=(2, z.size))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    values = np.array([[loss_value(loss, y + t * u / root, y, s) for t in sizes] for u in directions])
    if not loss.radial:
        holds(
            np.any(np.abs(values[0] - values[1]) > 1e-6),
            "it depends on the norm of the residuals only: radial = True",
        )
        return
    same_arrays(values, np.tile(loss.value_of_norm(sizes), (2, 1)), "value_of_norm", rtol=1e-12)
    h = 3e-4 * sizes
    slopes = (loss.value_of_norm(sizes + h) - loss.value_of_norm(sizes - h)) / (2.0 * h)
    weights = loss.weight_of_norm(sizes)
    same_arrays(weights * sizes, slopes, "weight_of_norm", rtol=1e-6, atol=1e-9)
    at = [loss.majorizer_weight(y + t * directions[0] / root, y, s) for t in sizes]
    same_arrays(at, weights, "majorizer_weight", rtol=1e-12)


@_law()
def bounded_below_is_a_bound(loss):
    """f >= bounded_below times the number of samples, and the loss is convex."""
    rng, z, y, _ = loss_data(loss, "unweighted", 7)
    lowest = min(
        loss_value(loss, size * rng.normal(size=z.size), y) for size in (0.1, 1, 3) for _ in range(20)
    )
    holds(
        lowest >= loss.bounded_below * z.size,
        f"f is {lowest:g} somewhere, below bounded_below={loss.bounded_below:g} a sample",
    )
    holds(loss.convex, "losses are convex")


@_law()
def quadratic_is_what_it_says(loss):
    """quadratic = q: f(z) = q/2 sum s (z - y)^2; None: f is not a parabola."""
    _, z, y, s = loss_data(loss, heaviest(loss), 8)
    if loss.quadratic is None:
        curved = [loss_value(loss, t * z, y, s) for t in (-1.0, 0.0, 1.0, 2.0)]
        holds(
            abs(np.diff(curved, 3)[0]) > 1e-9, "it is a parabola: say quadratic = ..."
        )  # no third difference
    else:
        expected = loss.quadratic / 2 * np.sum(s * (z - y) ** 2)
        same(loss_value(loss, z, y, s), expected, "q/2 sum s (z - y)^2")


@_law(applies=lambda loss: loss.smooth and loss.separable and loss.quadratic is None)
def piecewise_quadratic_is_what_it_says(loss):
    """piecewise_quadratic: at few of many places does a third difference of l not vanish; not so: at most it does not."""
    _, z, y, _ = loss_data(loss, heaviest(loss), 9)
    step = 1e-2
    rows = np.stack([loss.pointwise(z + k * step, y) for k in range(4)])
    bent = np.mean(np.abs(np.diff(rows, 3, axis=0)) > 1e-12 * np.abs(rows).max())
    if loss.piecewise_quadratic:
        holds(bent <= 0.25, f"l bends at {bent:.0%} of all places: it is not piecewise quadratic")
    else:
        holds(bent > 0.25, "it is piecewise quadratic: say piecewise_quadratic = True")


@_law(applies=lambda loss: loss.weighs_samples)
def sample_weights_equal_replication(loss):
    """A sample of weight k is k equal samples: in the value, the gradient and the conjugate."""
    rng, z, y, _ = loss_data(loss, "unweighted", 9)
    copies = rng.integers(1, 4, size=z.size)
    many = lambda v: np.repeat(v, copies)  # noqa: E731
    s = copies.astype(float)
    same(loss.value(z, y, s), loss.value(many(z), many(y)), "weighted value", rel=1e-12)
    gathered = np.add.reduceat(loss.gradient(many(z), many(y)), np.cumsum(copies) - copies)
    same_arrays(loss.gradient(z, y, s), gathered, "weighted gradient", rtol=1e-12, atol=1e-14)
    u = 0.7 * loss.gradient(z, y, s) + 0.3 * loss.gradient(-z, y, s)
    shared = loss.conjugate(many(u / s), many(y))  # by symmetry copies share their multiplier equally
    same(loss.conjugate(u, y, s), shared, "weighted conjugate", rel=1e-11)


@_law(applies=lambda loss: not loss.weighs_samples)
def a_loss_that_counts_samples_refuses_weights(loss):
    """weighs_samples = False: every method raises ValueError that says "no weights" where it is given some."""
    rng, z, y, _ = loss_data(loss, "unweighted", 9)
    s, u = rng.uniform(0.5, 2.0, size=z.size), loss.gradient(z, y)
    calls = {
        "value": lambda: loss.value(z, y, s),
        "gradient": lambda: loss.gradient(z, y, s),
        "prox": lambda: loss.prox(z, y, 0.5, s),
        "conjugate": lambda: loss.conjugate(u, y, s),
        "dual_project": lambda: loss.dual_project(u, y, s),
        "dual_point": lambda: loss.dual_point(z, y, s),
    }
    for name, call in calls.items():
        try:
            call()
        except ValueError as error:
            holds("no weights" in str(error) or "no sample weights" in str(error), f"{name} raised {error}")
        else:
            raise AssertionError(f"{name} took sample weights")


@_of_samples()
def the_order_of_samples_does_not_matter(loss, weighting):
    """Value, prox and gradient of permuted samples are the permuted ones."""
    rng, z, y, s = loss_data(loss, weighting, 10)
    order = rng.permutation(samples(loss, z.size)).T.ravel()
    t = None if s is None else s[order]
    same(loss.value(z[order], y[order], t), loss.value(z, y, s), "value", rel=1e-13)
    same_arrays(loss.prox(z[order], y[order], 0.7, t), loss.prox(z, y, 0.7, s)[order], "prox", rtol=1e-12)
    same_arrays(loss.gradient(z[order], y[order], t), loss.gradient(z, y, s)[order], "gradient", rtol=1e-12)


@_law()
def separable_is_a_sum_over_samples(loss):
    """separable: two tasks may be stacked, and every sample may have a step of its own in the prox."""
    _, z, y, s = loss_data(loss, heaviest(loss), 11)
    each = samples(loss, z.size)
    cut = 5 * len(each) // 12
    first, rest = each[:cut].T.ravel(), each[cut:].T.ravel()
    parts = sum(loss.value(z[part], y[part], None if s is None else s[part]) for part in (first, rest))
    if not loss.separable:
        # twice a hinge loss, whose class makes no use of that; of labellings, over samples of many predictions each
        is_sum = isinstance(getattr(loss, "metric", None), ErrorRate) or loss.labels in (
            "indicators",
            "classes",
        )
        found = abs(loss.value(z, y, s) - parts) <= 1e-3 * abs(parts)
        holds(found == is_sum, "it is a sum over samples: say separable = True, or take SeparableLoss")
        return
    same(loss.value(z, y, s), parts, "the sum of the losses of two halves", rel=1e-13)
    steps = np.where(np.arange(z.size) < cut, 0.3, 4.0)
    apart = [
        loss.prox(z[part], y[part], step, None if s is None else s[part])
        for part, step in ((first, 0.3), (rest, 4.0))
    ]
    same_arrays(
        loss.prox(z, y, steps, s), np.concatenate(apart), "prox, a step a sample", rtol=1e-12, atol=1e-13
    )


@_law()
def float32_and_a_single_sample(loss):
    """float32 is as good as its digits, and one sample (for a metric: as few as it takes) is right."""
    _, z, y, s = loss_data(loss, heaviest(loss), 12)
    single = [None if v is None else v.astype(np.float32) for v in (z, y, s)]
    double = [None if v is None else v.astype(float) for v in single]
    same(loss.value(*single), loss.value(*double), "value of float32", rel=1e-5)
    same_arrays(loss.gradient(*single), loss.gradient(*double), "gradient of float32", rtol=1e-4, atol=1e-5)
    of_single, of_double = (loss.prox(v[0], v[1], 0.7, v[2]) for v in (single, double))
    same_arrays(of_single, of_double, "prox of float32", rtol=1e-4, atol=1e-5)
    few = fewest(loss, y)
    same(loss.value(z[few], y[few]), loss_value(loss, z[few], y[few]), "value of one sample", rel=1e-12)


@_law()
def arguments_are_left_alone(loss):
    """No method writes into what it is given."""
    rng = random(loss, 13)
    y = targets(loss, rng)
    z = rng.normal(size=y.size)
    s = rng.uniform(0.5, 2, y.size) if loss.weighs_samples else None
    u = loss.gradient(z, y, s)
    given = [v for v in (z, y, s, u) if v is not None]
    before = [v.copy() for v in given]
    loss.value(z, y, s), loss.prox(z, y, 0.5, s), loss.conjugate(u, y, s), loss.dual_project(u, y, s)
    for now, then in zip(given, before, strict=True):
        holds(np.array_equal(now, then), "a method wrote into its argument")
