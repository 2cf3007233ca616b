"""A word that was registered a moment ago composes, is ordered and is chosen by its traits, like the old word that has the same."""

from types import SimpleNamespace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.solvers.admm.admm import why_not_two_blocks
from mtldsl.solvers.coordinate_descent import working_set
from mtldsl.testing import check_atom
from tests.atoms import new_words
from tests.atoms.new_words import NEW
from tests.loops import for_each
from tests.models import label_graph, shared, with_weights

#: new word -> the old one, as typed
TWINS = {
    "row_lengths": "l21_norm", "magnitudes": "l1_norm", "half_squares": "ridge",
    "margin_shortfall": "hinge_loss", "nonnegative(W)": "W >= 0",
    "nonnegative": "at_least",
}  # fmt: skip
OLD = SimpleNamespace(
    **{new: getattr(mtl, old) for new, old in TWINS.items() if hasattr(mtl, old)},
    nonnegative=lambda W: W >= 0,
)


@pytest.fixture(scope="module")
def new():
    with new_words.registered() as words:
        yield words
    assert not {cls.name for cls in NEW} & set(REGISTRY)


@pytest.mark.slow
@for_each("cls", NEW)
def test_the_laws_hold(new, cls):
    """Those of values, proxes and conjugates, and those of traits."""
    assert check_atom(cls) > 20


MODELS = {}


def model(chosen):
    def enter(build):
        MODELS[build.__name__] = (build, chosen)
        return build

    return enter


@model("closed_form")
def ridge_regression(w):
    t, W = with_weights(shared(1), intercept=True)
    return mtl.minimize(mtl.squared_loss(W, t) + 2.0 * w.half_squares(W))


@model("coordinate_descent")
def sparse_groups_of_features_nonnegative(w):
    t, W = with_weights(shared(2))
    penalty = 0.5 * w.magnitudes(W) + 1.5 * w.row_lengths(W) + 0.3 * w.half_squares(W)
    return mtl.minimize(mtl.squared_loss(W, t) + penalty, subject_to=[w.nonnegative(W)])


@model("proximal_gradient")
def many_features_of_which_few_matter(w):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 220))
    t, W = with_weights(mtl.Tasks.shared(X, rng.poisson(np.exp(0.5 * X[:, :3])).astype(float)))
    problem = mtl.minimize(mtl.poisson_loss(W, t) + 1.0 * w.magnitudes(W) + 2.0 * w.row_lengths(W))
    assert working_set.selection_refusal(problem.form()) is None
    return problem


@model("dual_ascent")
def support_vector_machines(w):
    rng = np.random.default_rng(6)
    t, W = with_weights(mtl.Tasks.shared(rng.normal(size=(40, 2500)), np.sign(rng.normal(size=(40, 2)))))
    return mtl.minimize(w.margin_shortfall(W, t) + 20.0 * w.half_squares(W))


@model("multipliers")
def hinge_of_shared_features(w):
    """By planes, then by its prox."""
    t, W = with_weights(shared(8, labels="sign", sample_weights=True), intercept=True)
    return mtl.minimize(w.margin_shortfall(W, t) + 1.0 * w.row_lengths(W))


@model("alternating")
def learned_precisions_beside_a_ridge(w):
    t = shared(9)
    W, A, B = mtl.Weights(t), mtl.FeaturePrecision(t, name="A"), mtl.TaskPrecision(t, name="B")
    bounds = [A >> 0.1, A << 10.0, B >> 0.1, B << 10.0]
    return mtl.minimize(
        mtl.squared_loss(W, t) + mtl.matrix_normal(W, A, B) + 0.5 * w.half_squares(W), subject_to=bounds
    )


@model("admm")
def shares_of_every_task(w):
    """The two constraints are one set, the simplex."""
    t, W = with_weights(shared(10))
    problem = mtl.minimize(
        mtl.absolute_loss(W, t) + 0.3 * w.row_lengths(W), subject_to=[w.nonnegative(W), W.sum(axis=0) == 1]
    )
    assert [f.atom.name for f in problem.form().constraints] == ["columns_on_simplex"]
    return problem


@model("clique_generation")
def labels_of_a_graph(w):
    t, U, V = label_graph(11, edges=[(0, 1), (1, 2)])
    return mtl.minimize(mtl.clique_hinge(U, V, t) + 0.5 * w.half_squares(U) + 0.5 * w.half_squares(V))


def told_in_old_words(text: str) -> str:
    for word, twin in TWINS.items():
        text = text.replace(word, twin)
    return text


@for_each(("build", "chosen"), MODELS.values(), ids=MODELS)
def test_solvers_say_of_it_what_they_say_of_the_old_word(new, build, chosen):
    """The same are chosen, possible and refused, in the same order and for the same reasons."""
    said = [tuple(map(told_in_old_words, row)) for row in build(new).explain().verdicts()]
    assert said == build(OLD).explain().verdicts()
    assert [row[0] for row in said if row[1] == "chosen"] == [chosen]


@pytest.mark.by_default("many_features_of_which_few_matter")
@pytest.mark.parametrize(("build", "chosen"), MODELS.values(), ids=MODELS)
def test_its_answers_are_those_of_the_old_word_and_are_proven(new, build, chosen):
    here, there = build(new), build(OLD)
    names = [
        name for name, verdict, _ in here.explain().verdicts() if verdict != "refused" and name != "cvxpy"
    ]
    for name in {chosen, names[-1]}:
        solution, expected = (problem.solve(name, tol=1e-6) for problem in (here, there))
        assert solution.status == expected.status
        if here.form().is_convex:
            assert solution.status == "optimal"
            assert solution.gap <= 1e-6
        assert solution.objective == pytest.approx(expected.objective, rel=2e-6)


def test_a_mixture_of_row_penalties_is_descended_by_coordinates(new):
    """Like the sum of the three old words that it is, with one multiplier instead of three."""
    t, W = with_weights(shared(12))
    here = mtl.minimize(mtl.squared_loss(W, t) + 2.0 * new.row_mixture(W), subject_to=[W >= 0])
    there = mtl.minimize(
        mtl.squared_loss(W, t) + 0.6 * mtl.l1_norm(W) + 1.6 * mtl.l21_norm(W) + 0.4 * mtl.ridge(W),
        subject_to=[W >= 0],
    )
    assert here.explain().chosen == there.explain().chosen == "coordinate_descent"
    solution, expected = here.solve(tol=1e-9), there.solve(tol=1e-9)
    assert solution.status == "optimal"
    assert solution.gap <= 1e-9
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)
    np.testing.assert_allclose(solution.W, expected.W, atol=1e-6)


@pytest.mark.slow
def test_a_hinge_of_another_margin_takes_planes_and_samples(new):
    """max(0, 1/2 - y z) is half of max(0, 1 - y (2 z))."""
    t, W = with_weights(shared(13, labels="sign", sample_weights=True))
    here = mtl.minimize(new.half_margin(W, t) + 0.5 * mtl.l21_norm(W))
    there = mtl.minimize(0.5 * mtl.hinge_loss(2.0 * W, t) + 0.5 * mtl.l21_norm(W))
    solution, expected = here.solve("admm", tol=1e-7), there.solve("admm", tol=1e-7)
    assert solution.status == "optimal"
    assert why_not_two_blocks(here.form()) is None
    assert solution.objective == pytest.approx(expected.objective, rel=1e-6)
    ridged = mtl.minimize(new.half_margin(W, t) + 2.0 * mtl.ridge(W)).solve("dual_ascent", tol=1e-7)
    twice = mtl.minimize(0.5 * mtl.hinge_loss(2.0 * W, t) + 2.0 * mtl.ridge(W)).solve("admm", tol=1e-7)
    assert ridged.status == "optimal"
    assert ridged.objective == pytest.approx(twice.objective, rel=1e-6)
