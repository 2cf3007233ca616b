"""The start of a path's next solve: on the curve through the last ones, where that means something."""

from types import SimpleNamespace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.analysis import path as module
from mtldsl.analysis.ahead import Past
from mtldsl.analysis.ahead import ahead as of_path


def ahead(form, found, value):
    past = Past()
    for each, solution in found:
        past = past.then(each, solution)
    return of_path(form, past, found[-1][1], value)


def form_of(is_convex=True, constraints=(), smooth=False):
    losses = (SimpleNamespace(atom=SimpleNamespace(smooth=smooth, quadratic=1.0)),)
    return SimpleNamespace(is_convex=is_convex, constraints=constraints, losses=losses, functions=())


convex, smooth = form_of(), form_of(smooth=True)


def solved(*entries, state=None, iterations=1):
    point = SimpleNamespace(state={} if state is None else state)
    return SimpleNamespace(blocks={"W": np.array([entries])}, state=point, iterations=iterations)


def test_weights_go_on_along_the_logarithm_and_zeros_stay():
    one, two = solved(1.0, 2.0, 0.5), solved(2.0, 1.5, 0.0)
    start = ahead(convex, [(8.0, one), (4.0, two)], 2.0)
    np.testing.assert_allclose(start.blocks["W"], [[3.0, 1.0, 0.0]])
    assert start.state is two.state
    half = ahead(convex, [(8.0, one), (4.0, two)], 4.0 / np.sqrt(2.0))
    np.testing.assert_allclose(half.blocks["W"], [[2.5, 1.25, 0.0]])


@pytest.mark.parametrize(
    ("form", "values"),
    [
        (form_of(is_convex=False), (8.0, 4.0, 2.0)),
        (form_of(constraints=("W >= 0",)), (8.0, 4.0, 2.0)),
        (convex, (8.0, 4.0, 6.0)),  # turns back
        (convex, (8.0, 4.0, 0.0)),
        (convex, (4.0, 4.0, 3.0)),
        (convex, (4.4, 4.0, 3.0)),  # three steps ahead of a short one
        (convex, (8.0, 4.0, 1.5)),  # too coarse
    ],
)
def test_elsewhere_it_is_the_last_solution(form, values):
    one, two = solved(1.0), solved(2.0)
    assert ahead(form, [(values[0], one), (values[1], two)], values[2]) is two


def test_a_solver_goes_on_from_its_own_state():
    one, two = solved(1.0), solved(2.0, state={"splits": 1})
    assert ahead(convex, [(8.0, one), (4.0, two)], 2.0) is two
    two.state = None
    assert ahead(convex, [(8.0, one), (4.0, two)], 2.0) is two


def test_beside_losses_without_a_kink_it_is_a_parabola():
    values = [16.0, 8.0, 4.0, 2.0, 1.0]
    curve = [3.0 - 2.0 * k + 0.5 * k * k for k in range(5)]
    found = [(value, solved(w)) for value, w in zip(values, curve, strict=True)]
    np.testing.assert_allclose(ahead(smooth, found[:3], 2.0).blocks["W"], [[curve[3]]])
    np.testing.assert_allclose(ahead(convex, found[:3], 2.0).blocks["W"], [[2.0 * curve[2] - curve[1]]])
    # over one that no solver has moved, which may be off
    skipped = [*found[:3], (2.0, solved(curve[3] + 0.1, iterations=0))]
    np.testing.assert_allclose(ahead(smooth, skipped, 1.0).blocks["W"], [[curve[4]]])
    # not over two: through the last two
    skipped = [*skipped, (1.0, solved(curve[4] - 0.1, iterations=0))]
    np.testing.assert_allclose(
        ahead(smooth, skipped, 0.5).blocks["W"], [[2 * (curve[4] - 0.1) - (curve[3] + 0.1)]]
    )


def test_newton_steps_are_saved_and_the_optimum_is_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    tasks = mtl.Tasks.shared(X, np.sign(X @ rng.normal(size=(12, 3)) + rng.normal(size=(200, 3))))

    def path():
        W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
        problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.ridge(W))
        return list(problem.path(lam, np.geomspace(100.0, 1.0, 20), tol=1e-6))

    with_line = path()
    monkeypatch.setattr(module, "ahead", lambda form, past, last, value: last)
    without = path()
    assert all(one.status == "optimal" for one in with_line)
    np.testing.assert_allclose(
        [one.objective for one in with_line], [one.objective for one in without], rtol=2e-6
    )
    assert sum(one.iterations for one in with_line) < 0.8 * sum(one.iterations for one in without)
