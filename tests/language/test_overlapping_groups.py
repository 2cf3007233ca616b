"""Groups of rows that overlap: the sum that the word becomes, its value, its proof, and where the weights vanish."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 7))
Y = X @ RNG.normal(size=(7, 4)) + RNG.normal(size=(40, 4))
TASKS, W = with_weights(mtl.Tasks.shared(X, Y, feature_names=list("abcdefg")))
CHAIN = [[0, 1, 2], [2, 3, 4], [4, 5, 6], [0, 6], [0, 1, 2, 3, 4]]


def by_definition(V, groups, a):
    return sum(c * np.linalg.norm(V[g]) for c, g in zip(a, groups, strict=True))


@for_each("seed", range(4))
def test_the_sum_is_the_norm_of_all_groups(seed):
    rng = np.random.default_rng(seed)
    groups = [rng.permutation(7)[: rng.integers(1, 6)].tolist() for _ in range(6)]
    a, V = rng.uniform(0.1, 2.0, size=6), rng.normal(size=(7, 4))
    terms = mtl.group_norm(W, groups, weights=a).terms
    assert sum(term.atom.value(V) for term in terms) == pytest.approx(by_definition(V, groups, a), rel=1e-13)


@pytest.mark.by_default("hinge_loss")
@pytest.mark.parametrize("loss", ["squared_loss", "logistic_loss", "hinge_loss"])
def test_it_is_solved_with_a_proof(loss):
    tasks, V = with_weights(TASKS if loss == "squared_loss" else mtl.Tasks.shared(X, np.sign(Y)))
    problem = mtl.minimize(getattr(mtl, loss)(V, tasks) + 2.0 * mtl.group_norm(V, CHAIN))
    solution = problem.solve(tol=1e-7)
    assert solution.status == "optimal" and problem.cross_check(solution).agrees


def test_names_and_dicts_are_printed_as_typed():
    named = mtl.group_norm(W, {"one": ["a", "b"], "two": ["b", "c"], "three": ["a", "b", "c", "d"]})
    assert str(named) == (
        "tree_norm(W, rows={'one': ['a', 'b'], 'three': ['a', 'b', 'c', 'd']}) + group_norm(W, groups={'two': ['b', 'c']})"
    )


def test_where_the_weights_vanish_is_bounded_from_both_sides():
    lam = mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + lam * mtl.group_norm(W, CHAIN))
    critical = problem.lambda_max(lam)
    low, high = critical.bounds
    assert low <= high <= low * (1 + 1e-8) and critical == high
    lam.value = high
    assert not np.any(np.abs(problem.solve(tol=1e-10).W) > 1e-6)
    lam.value = 0.98 * low
    assert np.abs(problem.solve(tol=1e-9).W).max() > 1e-4


@for_each(
    "groups, options, says",
    [
        ([[0, 1], [1, 1]], {}, "row 1 is twice in group 1"),
        ([[0, 1], [1, 9]], {}, "row 9 is in a group, but the argument has 7 rows"),
        ([[0, 1], [1, 2]], {"weights": [1.0]}, "there are 1 weights for 2 groups"),
        ([[0, 1], [1, 2]], {"weights": [1.0, -2.0]}, "weight"),
    ],
)
def test_what_is_refused(groups, options, says):
    with pytest.raises(mtl.ModelError, match=says):
        mtl.group_norm(W, groups, **options)
