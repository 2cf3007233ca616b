"""Tasks from a tree: the sizes and moments of section 4, its erratum, and hierarchies that are found again."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mtldsl import DataError, Tasks, datasets
from tests.loops import for_each

SMALL = {"depth": 3, "n_features": 40, "n_flips": 4, "n_test": 5}


def paths(parents, leaf):
    """From a leaf to the root."""
    found = [leaf]
    while (above := parents[found[-1]]) is not None:
        found.append(above)
    return found


@pytest.mark.slow
def test_the_papers_sizes():
    tree = datasets.make_task_tree(random_state=0)
    assert tree.train.n_tasks == tree.test.n_tasks == 32 and tree.train.n_features == 100
    assert set(tree.train.counts) == {20} and set(tree.test.counts) == {2000}
    assert all(y.sum() == 0 for y in tree.train.per_task(tree.train.targets))
    assert len(tree.parents) == 63 and list(tree.parents.values()).count(None) == 1
    assert all(len(paths(tree.parents, leaf)) == 6 for leaf in tree.train.task_names)
    np.testing.assert_array_equal(np.abs(tree.mus), 1.0)
    np.testing.assert_array_equal(tree.similarity, tree.mus.T @ tree.mus)


def test_means_and_variance_are_those_promised():
    """40,000 rows of either class: means to five, the variance to five standard errors."""
    tree = datasets.make_task_tree(depth=1, n_features=6, n_flips=2, n_train=40_000, n_test=1, random_state=0)
    for X, y, mu in zip(tree.train.inputs, tree.train.per_task(tree.train.targets), tree.mus.T, strict=True):
        assert np.abs(X[y > 0].mean(axis=0) - mu / 2).max() < 5 * np.sqrt(20 / 40_000)
        assert np.abs(X[y < 0].mean(axis=0) + mu / 2).max() < 5 * np.sqrt(20 / 40_000)
        covariance = np.cov((X - np.outer(y, mu) / 2).T)
        assert np.abs(covariance - 20 * np.eye(6)).max() < 5 * 20 * np.sqrt(2 / 80_000)


@pytest.mark.slow
def test_every_edge_turns_as_many_signs_as_asked():
    """Siblings differ in 0 or 2 to 8 features, cousins may in more; in the mean as the formula in the docstring says."""
    sums, count = {1: 0.0, 2: 0.0, 3: 0.0}, 200
    for seed in range(count):
        tree = datasets.make_task_tree(**SMALL, n_train=1, random_state=seed)
        names = tree.train.task_names
        for s in range(0, 8, 2):
            apart = np.count_nonzero(tree.mus[:, s] != tree.mus[:, s + 1])
            assert apart <= 8 and apart % 2 == 0
        for k in sums:
            pairs = [(s, t) for s in range(8) for t in range(8) if common(names[s], names[t]) == 3 - k]
            sums[k] += np.mean([tree.similarity[pair] for pair in pairs])
    for k, total in sums.items():
        # the mean of one tree deviates by less than 6, that of 200 by less than 0.43: 4 standard errors
        assert total / count == pytest.approx(40 * (1 - 8 / 40) ** (2 * k), abs=1.7)


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


@pytest.mark.by_default("400.0")
@pytest.mark.parametrize("variance", [20.0, 400.0])
def test_bayes_auc_is_that_of_the_true_direction(variance):
    tree = datasets.make_task_tree(depth=2, variance=variance, n_test=5000, random_state=1)
    seen = [
        roc_auc_score(y, X @ mu)
        for X, y, mu in zip(tree.test.inputs, tree.test.per_task(tree.test.targets), tree.mus.T, strict=True)
    ]
    # the standard error of an AUC with 5,000 rows of either class is at most 0.006
    np.testing.assert_allclose(seen, tree.bayes_auc, atol=0.025)


def groups(parents, names):
    """The sets of tasks under each inner node: two trees with the same are the same."""
    under = {}
    for name in names:
        for node in paths(parents, name)[1:]:
            under.setdefault(node, set()).add(name)
    return {frozenset(members) for members in under.values()}


@for_each("method", ["average", "single", "complete", "weighted"])
def test_the_tree_is_found_again_in_a_tree_metric(method):
    """Similarity = shared ancestors: all linkages must give back the tree, under any order and scaling of the tasks."""
    tree = datasets.make_task_tree(**SMALL, random_state=0)
    names = list(tree.train.task_names)
    S = np.array([[1.0 + common(a, b) for b in names] for a in names])
    order = np.random.default_rng(0).permutation(8)
    names, scale = [names[i] for i in order], np.arange(1.0, 9.0)
    found = datasets.hierarchy(S[np.ix_(order, order)] * np.outer(scale, scale), names, method)
    assert groups(found, names) == groups(tree.parents, names)
    assert found["root"] is None and set(found) == {*names, *(f"group {k}" for k in range(1, 7)), "root"}
    with pytest.raises(DataError, match=r"method='ward'.*'average', 'single'"):
        datasets.hierarchy(S, names, "ward")


def test_one_and_two_tasks():
    assert datasets.hierarchy([[2.0]], ["only"]) == {"only": None}
    assert datasets.hierarchy([[1.0, -1.0], [-1.0, 1.0]], ["a", "b"]) == {
        "a": "root",
        "b": "root",
        "root": None,
    }


S = np.array([[4.0, 3.0, 0.0], [3.0, 4.0, 1.0], [0.0, 1.0, 4.0]])


def with_entry(i, j, value):
    changed = S.copy()
    changed[i, j] = value
    return changed


@for_each(
    ("similarity", "names", "pieces"),
    [
        (with_entry(0, 1, 2.0), "abc", ["not symmetric", "2 from 'a' to 'b'", "3 back", "(S + S.T) / 2"]),
        (with_entry(2, 2, 0.0), "abc", ["similarity of 'c' and 'c' is 0", "> 0"]),
        (1.0 - np.eye(3), "abc", ["similarity of 'a' and 'a' is 0"]),  # distances
        (np.where(S == 3, 5.0, S), "abc", ["similarity of 'a' and 'b' is 5", "root of the product"]),
        (with_entry(1, 2, np.nan), "abc", ["similarity of 'b' and 'c' is nan", "finite"]),
        (S[:2], "abc", ["square", "(2, 3)"]),
        (S.ravel(), "abc", ["(9,)"]),
        ("similar", "abc", ["array of numbers", "is a str"]),
        (S, "ab", ["2 names for 3"]),
        (S, "aba", ["the name 'a' occurs twice"]),
        (S, ["a", "root", "b"], ["a task is called 'root'", "rename"]),
    ],
)
def test_hierarchy_refuses(similarity, names, pieces):
    with pytest.raises(DataError) as error:
        datasets.hierarchy(similarity, list(names))
    assert all(piece in str(error.value) for piece in pieces), error.value


@for_each(
    ("change", "options", "pieces"),
    [
        (lambda X, y: (X, 0.5 * (y + 1)), {}, ["estimate_similarity(tasks, method='means')", "-1 or +1"]),
        (lambda X, y: (X, np.ones_like(y)), {}, ["one class only"]),
        (lambda X, y: (np.ones_like(X), y), {}, ["direction of task 'b' is 0"]),
        (lambda X, y: (np.ones_like(X), y), {"method": "ridge"}, ["direction of task 'b' is 0"]),
        (lambda X, y: (X, y), {"method": "lda"}, ["method='lda'", "'means', 'ridge'"]),
        (lambda X, y: (X, y), {"method": "ridge", "ridge": 0}, ["ridge=0"]),
    ],
)
def test_estimate_refuses(change, options, pieces):
    tree = datasets.make_task_tree(depth=1, n_features=6, n_flips=2, n_test=1, random_state=0)
    X, y = tree.train.inputs, tree.train.per_task(tree.train.targets)
    inputs, labels = zip((X[0], y[0]), change(X[1], y[1]), strict=True)
    with pytest.raises(DataError) as error:
        datasets.estimate_similarity(Tasks.separate(inputs, labels, task_names=["a", "b"]), **options)
    assert all(piece in str(error.value) for piece in pieces), error.value
