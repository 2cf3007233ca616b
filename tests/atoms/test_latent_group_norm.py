"""The latent group norm: the definition by parts, norms that it is in special cases, many groups, its models, and what it refuses."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers import GroupNorm, L21Norm
from mtldsl.atoms.regularizers.latent_groups import LatentGroupNorm
from tests.loops import for_each

RNG = np.random.default_rng(0)


def test_groups_apart_are_the_group_norm_and_rows_l21():
    """Groups that are apart and single rows are the group norm and l21."""
    V = RNG.normal(size=(5, 3))
    pairs = [
        (
            LatentGroupNorm([[4, 0], [2], [1, 3]], weights=[1.0, 0.5, 2.0]),
            GroupNorm([[4, 0], [2], [1, 3]], [1.0, 0.5, 2.0]),
        ),
        (LatentGroupNorm([[k] for k in range(5)]), L21Norm()),
        (LatentGroupNorm([[k] for k in range(5)] + [[0, 1, 2, 3, 4]], weights=[1.0] * 5 + [10.0]), L21Norm()),
    ]
    for latent, same in pairs:
        assert latent.value(V) == pytest.approx(same.value(V), rel=1e-12)
        np.testing.assert_allclose(latent.prox(V, 0.8), same.prox(V, 0.8), atol=1e-12)


def test_no_parts_that_add_up_to_it_cost_less():
    groups, V = [[0, 1, 2], [2, 3], [1, 3, 4]], RNG.normal(size=(5, 2))
    norm = LatentGroupNorm(groups)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shares = np.zeros((5, 3))
        for g, group in enumerate(groups):
            shares[group, g] = rng.exponential(size=len(group))
        shares /= shares.sum(axis=1, keepdims=True)
        parts = [shares[:, g, None] * V for g in range(3)]
        assert norm.value(V) <= sum(map(np.linalg.norm, parts)) + 1e-12


@for_each("tiny", [0.0, 1e-8, 1e-13, 1e-15, 1e-20, 1e-100, 1e-200])
def test_a_row_that_is_nearly_zero_costs_nearly_nothing(tiny):
    norm, V = LatentGroupNorm([[0, 1, 2], [2, 3, 4], [4, 5]]), np.array([[1.9, 1.3, 1.8, 0.1, 0.1, 0.0]]).T
    without = norm.value(V)
    V[5] = tiny
    assert without - 1e-12 <= norm.value(V) <= without + tiny + 1e-12


@pytest.mark.by_default("0.3-300-100-12")
@pytest.mark.parametrize("n, n_groups, size", [(20, 40, 3), (60, 30, 6), (300, 100, 12)])
@pytest.mark.parametrize("step", [1e-3, 0.3, 2.0])
def test_the_residual_of_the_prox_is_a_subgradient(n, n_groups, size, step):
    """The residual of the prox is a subgradient with many groups."""
    rng = np.random.default_rng(n)
    groups = [rng.permutation(n)[:size].tolist() for _ in range(n_groups)]
    groups += [[row] for row in sorted(set(range(n)) - {row for group in groups for row in group})]
    norm, V = LatentGroupNorm(groups), rng.normal(size=(n, 3))
    P = norm.prox(V, step)
    Z = (V - P) / step
    # the prox is right to `accuracy` of V, which a small step magnifies: seen are 2e-8 at .001, and rounding at .3
    slack = max(1e-9, norm.accuracy * np.linalg.norm(V) / step)
    assert norm.dual_norm(Z) <= 1 + slack
    assert norm.value(P) == pytest.approx(np.vdot(Z, P), rel=slack, abs=1e-12)


@pytest.mark.by_default("logistic_loss")
@pytest.mark.parametrize("loss", ["squared_loss", "logistic_loss", "hinge_loss"])
def test_it_is_solved_with_a_proof_and_keeps_unions_of_groups(loss):
    X = RNG.normal(size=(40, 6))
    Y = X[:, :3] @ RNG.normal(size=(3, 3)) + 0.3 * RNG.normal(size=(40, 3))
    tasks = mtl.Tasks.shared(X, Y if loss == "squared_loss" else np.sign(Y))
    W = mtl.Weights(tasks)
    penalty = (20.0 if loss == "squared_loss" else 6.0) * mtl.latent_group_norm(
        W, [[0, 1, 2], [2, 3, 4], [4, 5]]
    )
    problem = mtl.minimize(getattr(mtl, loss)(W, tasks) + penalty)
    solution = problem.solve(tol=1e-7)
    assert solution.status == "optimal" and problem.cross_check(solution).agrees
    used = np.abs(solution.W).max(axis=1) > 1e-4
    whole = [row for group in ([0, 1, 2], [2, 3, 4], [4, 5]) if used[group].all() for row in group]
    assert 0 < used.sum() < 6 and set(np.flatnonzero(used)) == set(whole)  # a union of groups


@for_each(
    "options, says",
    [
        (
            {"groups": [[0, 1], [1, 2]]},
            r"row 3 is in no group, and could never be used; give it a group of its own, \[3\]",
        ),
        ({"groups": [[0, 1, 2, 3, 4]]}, "row 4 is in a group, but the argument has 4 rows"),
        ({"groups": [[0, 0]]}, "row 0 is twice in group 0"),
        ({"groups": [[0, 1], [2, 3]], "weights": [1.0, 0.0]}, "a weight is 0"),
        ({"groups": [[0, 1], [2, 3]], "weights": [1.0]}, "there are 1 weights for 2 groups"),
    ],
)
def test_what_is_refused(options, says):
    W = mtl.Weights(mtl.Tasks.shared(np.eye(4), np.ones((4, 3))))
    with pytest.raises(mtl.ModelError, match=says):
        mtl.latent_group_norm(W, **options)
