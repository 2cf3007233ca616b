"""The norm of a tree of groups beside formulas of its own, minimisers by another method, and what it refuses."""

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers import GroupNorm, L1Norm, L21Norm
from mtldsl.atoms.regularizers.families import crossing, levels, nested_families
from mtldsl.atoms.regularizers.nested_groups import TreeNorm
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


@pytest.mark.by_default("columns-1")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("along", ["rows", "columns"])
def test_value_and_prox_of_random_trees(seed, along):
    rng = np.random.default_rng(seed)
    shape = (7, 3) if along == "rows" else (3, 7)
    groups, V = nested_at_random(rng, 7), 3.0 * rng.normal(size=shape)
    a = rng.uniform(size=len(groups))
    norm = TreeNorm(**{along: groups}, weights=a)
    lines = V if along == "rows" else V.T
    each = (
        (lambda part: np.linalg.norm(part))
        if along == "rows"
        else (lambda part: np.linalg.norm(part, axis=0).sum())
    )
    assert norm.value(V) == pytest.approx(
        sum(c * each(lines[g]) for c, g in zip(a, groups, strict=True)), rel=1e-13
    )
    P = cp.Variable(shape)
    rows = P if along == "rows" else P.T
    norms = [
        c * (cp.norm(rows[g], "fro") if along == "rows" else cp.sum(cp.norm(rows[g], 2, axis=0)))
        for c, g in zip(a, groups, strict=True)
    ]
    cp.Problem(cp.Minimize(0.7 * sum(norms) + 0.5 * cp.sum_squares(P - V))).solve(solver="CLARABEL")
    np.testing.assert_allclose(norm.prox(V, 0.7), P.value, atol=2e-5)


def test_a_tree_of_one_level_is_a_group_norm():
    """A tree of one level is the group norm, and a tree of single lines l21 or l1."""
    V = RNG.normal(size=(4, 3))
    pairs = [
        (TreeNorm(rows=[[0, 3], [1, 2]]), GroupNorm([[0, 3], [1, 2]])),
        (TreeNorm(rows=[[0], [1], [2], [3]]), L21Norm()),
        (TreeNorm(columns=[[0], [1], [2]]), L1Norm()),
        (TreeNorm(columns=[[0, 1, 2]]), L21Norm()),
    ]
    for tree, same in pairs:
        assert tree.value(V) == pytest.approx(same.value(V), rel=1e-14)
        assert tree.dual_norm(V) == pytest.approx(same.dual_norm(V), rel=1e-12)
        np.testing.assert_allclose(tree.prox(V, 0.4), same.prox(V, 0.4), atol=1e-15)


def test_what_is_nested_and_what_is_not():
    assert crossing(((0, 1), (2, 3), (0, 1, 2, 3), (4,))) is None
    assert crossing(((0, 1, 2), (4,), (2, 3))) == (0, 2)
    assert crossing(((0, 1, 2), (1, 2, 3))) == (0, 1)
    assert levels(((0, 1, 2), (0,), (0, 1), (2,))) == [[1, 3], [2], [0]]
    rng = np.random.default_rng(3)
    for _ in range(50):
        groups = tuple(tuple(rng.permutation(8)[: rng.integers(1, 5)].tolist()) for _ in range(6))
        families = nested_families(groups)
        assert sorted(g for family in families for g in family) == list(range(6))
        assert all(crossing(tuple(groups[g] for g in family)) is None for family in families)
        by_hand = any(
            set(a) & set(b) and not set(a) <= set(b) and not set(b) <= set(a) for a in groups for b in groups
        )
        assert by_hand == (crossing(groups) is not None) == (len(families) > 1)


def test_a_tree_is_its_nodes_with_the_leaves_below():
    tree = {"a": "warm", "b": "warm", "c": None, "warm": "all"}
    groups = {"a": ["a"], "b": ["b"], "c": ["c"], "warm": ["a", "b"], "all": ["a", "b"]}
    (term,), (listed,) = mtl.tree_norm(W, columns=tree).terms, mtl.tree_norm(W, columns=groups).terms
    assert term.atom.groups == listed.atom.groups == ((0,), (1,), (2,), (0, 1), (0, 1))
    assert term.text == listed.text


@for_each(
    "options, says",
    [
        ({}, "tree_norm needs groups, of rows"),
        ({"rows": [[0]], "columns": [[0]]}, "tree_norm needs groups, of rows"),
        ({"rows": [[0, 1], [1, 2]]}, "groups 0 and 1 overlap, and neither holds the other"),
        ({"rows": [[0, 0]]}, "row 0 is twice in group 0"),
        ({"rows": [[]]}, "group 0 is empty"),
        ({"rows": [[9]]}, "row 9 is in a group, but the argument has 4 rows"),
        ({"columns": [[3]]}, "column 3 is in a group, but the argument has 3 columns"),
        ({"columns": [["d"]]}, "no name 'd' among a, b, c"),
        ({"columns": {"a": "x", "x": "y", "y": "x"}}, "go round in a circle"),
        ({"columns": {"a": np.array(1)}}, "is not a node of a tree"),
        ({"columns": 3}, "columns is a list of lists of columns"),
        ({"rows": [[0], [1]], "weights": [1.0]}, "there are 1 weights for 2 groups"),
        ({"rows": [[0], [1]], "weights": [1.0, -1.0]}, "the weight at 1 is -1"),
    ],
)
def test_what_is_refused(options, says):
    with pytest.raises(mtl.ModelError, match=says):
        mtl.tree_norm(W, **options)
