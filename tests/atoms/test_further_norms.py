"""The norms of trees, of latent groups and of the largest factors at sizes that the laws leave out, and what typed norms refuse."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers.group_norms import TreeNorm
from mtldsl.atoms.regularizers.latent_groups import LatentGroupNorm
from mtldsl.atoms.regularizers.spectral_norms import MaxNorm
from mtldsl.certificates.plain.plain_formula import DEFINITIONS
from mtldsl.extending.laws.law_examples import assert_is_reference_prox, function_value
from tests.loops import for_each

RNG = np.random.default_rng(0)
TASKS = mtl.Tasks.shared(RNG.normal(size=(12, 4)), RNG.normal(size=(12, 3)), task_names=["a", "b", "c"])
W = mtl.Weights(TASKS)


def nested_at_random(rng, n: int) -> list[list[int]]:
    """Random halves of random halves, some of them left out, in a random order."""
    found, open_ones = [], [rng.permutation(n).tolist()]
    while open_ones:
        group = open_ones.pop()
        if rng.random() < 0.8:
            found.append(group)
        if len(group) > 1:
            cut = int(rng.integers(1, len(group)))
            open_ones += [group[:cut], group[cut:]]
    return [found[k] for k in rng.permutation(len(found))]


@for_each("along, seed", [("rows", 0), ("columns", 1), ("rows", 2), ("columns", 3)])
def test_a_random_tree_has_the_value_and_prox_of_its_groups(along, seed):
    rng = np.random.default_rng(seed)
    shape = (7, 3) if along == "rows" else (3, 7)
    groups, V = nested_at_random(rng, 7), 3.0 * rng.normal(size=shape)
    norm = TreeNorm(**{along: groups}, weights=rng.uniform(size=len(groups)))
    assert norm.value(V) == pytest.approx(function_value(norm, V), rel=1e-13)
    assert_is_reference_prox(norm, norm.prox(V, 0.7), V, 0.7)


def test_a_tree_is_its_nodes_with_the_leaves_below():
    tree = {"a": "warm", "b": "warm", "c": None, "warm": "all"}
    groups = {"a": ["a"], "b": ["b"], "c": ["c"], "warm": ["a", "b"], "all": ["a", "b"]}
    (term,), (listed,) = mtl.tree_norm(W, columns=tree).terms, mtl.tree_norm(W, columns=groups).terms
    assert term.atom.groups == listed.atom.groups == ((0,), (1,), (2,), (0, 1), (0, 1))
    assert term.text == listed.text


@for_each("tiny", [0.0, 1e-8, 1e-13, 1e-15, 1e-20, 1e-100, 1e-200])
def test_a_latent_row_of_nearly_zero_costs_nearly_nothing(tiny):
    norm, V = LatentGroupNorm([[0, 1, 2], [2, 3, 4], [4, 5]]), np.array([[1.9, 1.3, 1.8, 0.1, 0.1, 0.0]]).T
    without = norm.value(V)
    V[5] = tiny
    assert without - 1e-12 <= norm.value(V) <= without + tiny + 1e-12


@for_each("step, n, n_groups, size", [(2.0, 20, 40, 3), (1e-3, 60, 30, 6), (0.3, 300, 100, 12)])
def test_the_latent_prox_leaves_a_subgradient(step, n, n_groups, size):
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


@pytest.mark.slow
@for_each("loss", ["squared_loss", "logistic_loss", "hinge_loss"])
def test_latent_groups_are_proven_and_keep_unions_of_groups(loss):
    X = RNG.normal(size=(20, 6))
    Y = X[:, :3] @ RNG.normal(size=(3, 3)) + 0.3 * RNG.normal(size=(20, 3))
    tasks = mtl.Tasks.shared(X, Y if loss == "squared_loss" else np.sign(Y))
    W, groups = mtl.Weights(tasks), [[0, 1, 2], [2, 3, 4], [4, 5]]
    penalty = (20.0 if loss == "squared_loss" else 6.0) * mtl.latent_group_norm(W, groups)
    problem = mtl.minimize(getattr(mtl, loss)(W, tasks) + penalty)
    solution = problem.solve(tol=1e-7)
    assert solution.status == "optimal" and problem.cross_check(solution).agrees
    used = np.abs(solution.W).max(axis=1) > 1e-4
    whole = [row for group in groups if used[group].all() for row in group]
    assert 0 < used.sum() < 6 and set(np.flatnonzero(used)) == set(whole)  # a union of groups


@pytest.mark.by_default("shape1")
@pytest.mark.parametrize("shape", [(60, 5), (4, 40)])
def test_the_max_norm_of_a_long_matrix_is_between_its_bounds(shape):
    """Factors of W bound it from above, the trace norm of W with scaled rows and columns from below; of 60 x 5 it was .4 % too large."""
    W = np.random.default_rng(1).normal(size=shape)
    low, high = DEFINITIONS["max_norm"].function(W, None)
    assert low * (1 - 1e-12) <= MaxNorm().value(W) <= high * (1 + 1e-7) and high - low <= 1e-4 * high


REFUSED = [
    (mtl.tree_norm, {}, "tree_norm needs groups, of rows"),
    (mtl.tree_norm, {"rows": [[0]], "columns": [[0]]}, "tree_norm needs groups, of rows"),
    (mtl.tree_norm, {"rows": [[0, 1], [1, 2]]}, "groups 0 and 1 overlap, and neither holds the other"),
    (mtl.tree_norm, {"columns": [[3]]}, "column 3 is in a group, but the argument has 3 columns"),
    (mtl.tree_norm, {"columns": [["d"]]}, "no name 'd' among a, b, c"),
    (mtl.tree_norm, {"columns": {"a": "x", "x": "y", "y": "x"}}, "go round in a circle"),
    (mtl.tree_norm, {"columns": {"a": np.array(1)}}, "is not a node of a tree"),
    (mtl.tree_norm, {"columns": 3}, "columns is a list of lists of columns"),
    (mtl.tree_norm, {"rows": [[0], [1]], "weights": [1.0]}, "there are 1 weights for 2 groups"),
    (mtl.tree_norm, {"rows": [[0], [1]], "weights": [1.0, -1.0]}, "the weight at 1 is -1"),
    (mtl.exclusive_lasso, {"groups": [[0, 1], [1, 2, 3]]}, "row 1 is in groups 0 and 1"),
    (mtl.exclusive_lasso, {"groups": [[0, 1]]}, "the groups hold 2 rows, but the argument has 4; give every row a group"),
    (mtl.latent_group_norm, {"groups": [[0, 1], [1, 2]]}, r"row 3 is in no group, and could never be used; give it a group of its own, \[3\]"),
    (mtl.latent_group_norm, {"groups": [[0, 1], [2, 3]], "weights": [1.0, 0.0]}, "a weight is 0"),
    (mtl.latent_group_norm, {"groups": [[0, 1], [2, 3]], "weights": [1.0]}, "there are 1 weights for 2 groups"),
    (mtl.squared_cluster_norm, {"lower": 0.5, "upper": 1.0, "trace": 1.0}, "the eigenvalues of 3 tasks, each >= 0.5, have a sum >= 1.5, above trace=1"),
    (mtl.squared_cluster_norm, {"lower": -0.5, "upper": 1.0, "trace": 3.0}, "lower must be a number >= 0"),
    (mtl.squared_cluster_norm, {"lower": 0.5, "upper": 0.5, "trace": 3.0}, "upper must be a number > lower"),
    (mtl.squared_cluster_norm, {"lower": 0.5, "upper": 1.0, "trace": 0.0}, "trace must be a number > 0"),
    (mtl.sorted_l1_norm, {"weights": [1.0, 2.0]}, r"weight 2 is 2, more than the one before it, 1: not convex"),
    (mtl.sorted_l1_norm, {"weights": [0.0, 0.0]}, "all weights are zero"),
    (mtl.sorted_l1_norm, {"weights": [1.0, 1.0]}, "there are 2 weights for 4 x 3 entries"),
    (mtl.sorted_l1_norm, {"weights": [2.0, -1.0]}, r"the weight at 1 is -1"),
    (mtl.sorted_l1_norm, {"q": 1.5}, "q must be a number between 0 and 1"),
    (mtl.sorted_l1_norm, {"weights": 1.0, "q": 0.1}, "write one of the two"),
]  # fmt: skip


@for_each("word, options, says", REFUSED)
def test_what_is_refused(word, options, says):
    with pytest.raises(mtl.ModelError, match=says):
        word(W, **options)
