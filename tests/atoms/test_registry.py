"""The laws every atom obeys (mtldsl/testing/laws), over every example of every registered atom."""

import numpy as np
import pytest

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.atoms.metrics import Metric
from mtldsl.atoms.prox import shrinkage
from mtldsl.atoms.regularizers import GroupNorm, TotalVariation
from mtldsl.extending.checks import atom_cases
from mtldsl.extending.laws import loss_laws, matrix_function_laws, trait_laws
from mtldsl.reference.registry import FORMULAS, SPECTRA, STRUCTURES
from tests.law_groups import groups, run_all
from tests.loops import for_each
from tests.registry_cases import CONCAVE, MATRIX_FUNCTIONS, REGULARIZERS, SPECTRAL, WEIGHTS_SHAPE, convex
from tests.registry_cases import STRUCTURES as LEARNED

#: those of metrics are those of structured_hinge, whose examples they are
CASES = [case for cls in REGISTRY.values() if not issubclass(cls, Metric) for case in atom_cases(cls)]

#: they minimise numerically, over orders of labels, label graphs, groups that overlap or weights of kernels
SLOW = (
    "prox_is_the_minimiser-mkl_norm", "prox_is_the_minimiser-structured_hinge", "prox_is_the_minimiser-latent_group_norm",
    "prox_is_the_minimiser-clique_hinge", "prox_is_the_minimiser-squared_cluster_norm", "prox_is_the_minimiser-sorted_l1_norm",
    "fenchel_young-structured_hinge", "fenchel_young-mkl_norm", "fenchel_young-latent_group_norm", "degenerate_matrices-mkl_norm",
    "bounded_below_is_a_bound-structured_hinge", "gradient_is_the_derivative-structured_hinge", "traits_are_what_they_say-mkl_norm",
    "projection_is_the_nearest_point-norm_ball", "norm_and_dual_norm-mkl_norm", "conjugate_is_the_supremum-structured_hinge",
    "fenchel_young_is_tight_at_the_prox-structured_hinge", "conjugate_is_infinite_outside_its_domain-structured_hinge",
    "prox_of_no_step_is_the_identity-mkl_norm",
)  # fmt: skip


#: quick with few arguments, and dear with all of them
DEAR = (
    "value_is_the_reference_value-structured_hinge", "value_is_the_reference_value-clique_hinge", "value_is_the_reference_value-mkl_norm",
    "fenchel_young_is_tight_at_the_prox-mkl_norm", "prox_is_the_minimiser", "other_shapes_are_refused_or_right",
)  # fmt: skip


@pytest.mark.parametrize("cases", groups(CASES, SLOW, DEAR))
def test_law(cases, every_case):
    run_all(cases, every_case)


def test_every_law_is_checked_on_some_word():
    """So that none comes to run over nothing."""
    run = {id(case.law) for case in CASES}
    laws = [*loss_laws.LAWS, *matrix_function_laws.LAWS, *trait_laws.LAWS]
    assert len(laws) > 30 and {law.name for law in laws if id(law) not in run} == set()


def test_norms_have_balls_and_radial_losses_majorizers():

    def words(law):
        return {case.subject.name for case in CASES if case.law.name == law}

    assert {"l1_norm", "l21_norm", "trace_norm", "frobenius_norm"} <= words("ball_is_the_level_set")
    radial = {name for name, cls in REGISTRY.items() if issubclass(cls, Loss) and cls.radial}
    assert radial and radial <= words("majorizer_touches_and_lies_above")


def test_every_atom_has_a_formula_and_every_formula_an_atom():
    """A learned structure has one with its matrices kept, and only where it is convex one on the weights alone; a function of the
    spectrum that is not convex has one in numpy.
    """
    structures = {name for name, cls in REGISTRY.items() if issubclass(cls, Structure) and cls.learns}
    spectral = {case.values[0].name for case in SPECTRAL + CONCAVE}
    assert structures == set(STRUCTURES) and spectral == set(SPECTRA)
    without = spectral | {name for name in structures if REGISTRY[name].convex is not True}
    assert set(REGISTRY) - set(FORMULAS) == without
    assert set(FORMULAS) <= set(REGISTRY)


def test_every_function_of_a_matrix_obeys_some_laws():
    cases = convex(MATRIX_FUNCTIONS) + LEARNED + SPECTRAL + CONCAVE
    assert {case.values[0].name for case in cases} == {
        name for name, cls in REGISTRY.items() if issubclass(cls, MatrixFunction)
    }


@for_each("name", REGISTRY)
def test_every_atom_says_what_it_is(name):
    atom = REGISTRY[name]
    assert issubclass(atom, (Loss, MatrixFunction, Metric)) and atom.name == name
    assert "{}" in atom.formula and len(atom.__doc__.splitlines()) > 3 and ">>>" in atom.__doc__
    for example in atom.examples():
        shown = example.latex("L + S")
        assert "L + S" in shown and "{}" not in shown and shown.count("{") == shown.count("}")
        numbers = [value for value in example.arguments().values() if isinstance(value, float)]
        assert not issubclass(atom, Loss) or all(f"{value:g}" in shown for value in numbers)


#: whose dual norm and ball are closed forms, finite everywhere
NORMS = [
    case
    for case in REGULARIZERS
    for norm in case.values
    if norm.norm and norm.exact_prox and norm.absorbs and norm.accuracy == 0.0
]
every_norm = for_each("norm", NORMS)


def matrix(seed, exponent=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=WEIGHTS_SHAPE) * 10.0 ** (exponent * rng.normal(size=(WEIGHTS_SHAPE[0], 1)))


@every_norm
@for_each("exponent", [0.0, 2.0])
def test_the_dual_norm(norm, exponent):
    for seed in range(5):
        Z = matrix(seed, exponent)
        assert shrinkage.dual_norm(norm, Z) == pytest.approx(norm.dual_gauge(Z), rel=1e-13)
    assert shrinkage.dual_norm(norm, np.zeros(WEIGHTS_SHAPE)) == 0.0


@pytest.mark.slow
@every_norm
@for_each("exponent", [0.0, 2.0])
@for_each("share", [1e-6, 0.01, 0.3, 0.99, 1 - 1e-9])
def test_the_nearest_point_of_a_ball(norm, exponent, share):
    """In the ball, and no point of it lies further along W - P: <W - P, P> is the support function's value."""
    W = matrix(3, exponent)
    radius = share * norm.value(W)
    P = shrinkage.nearest_in_ball(norm, W, radius, norm.dual_gauge(W))
    assert norm.value(P) == pytest.approx(radius, rel=1e-12)
    size = np.linalg.norm(W)
    furthest = NormBall(norm, radius).support(W - P)
    assert abs(np.vdot(W - P, P) - furthest) <= 1e-12 * size**2
    assert np.linalg.norm(P - NormBall(norm, radius).project(W)) <= 1e-11 * size


def test_the_ball_of_a_seminorm_keeps_what_it_does_not_see():
    W = matrix(5)
    flat = NormBall(TotalVariation(), 0.0).project(W)
    np.testing.assert_allclose(
        flat, np.repeat(W.mean(axis=1, keepdims=True), WEIGHTS_SHAPE[1], axis=1), rtol=1e-12
    )
    free = GroupNorm([[0, 1]])
    P = NormBall(free, 0.1).project(W)
    assert np.array_equal(P[2:], W[2:]) and free.value(P) == pytest.approx(0.1, rel=1e-13)
