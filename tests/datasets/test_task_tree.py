"""Tasks from a tree: the sizes and moments of section 4, its erratum, and hierarchies that are found again."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import mtldsl as mtl
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


def test_parents_name_the_first_bits_of_the_path():
    tree = datasets.make_task_tree(**SMALL, random_state=0)
    assert paths(tree.parents, "010") == ["010", "01", "0", "root"]
    assert tree.train.task_names == tree.test.task_names == tuple(f"{t:03b}" for t in range(8))


@pytest.mark.slow
def test_as_printed_no_classifier_reaches_what_the_paper_reports():
    printed = datasets.make_task_tree(depth=4, variance=20.0**2, random_state=0)
    corrected = datasets.make_task_tree(random_state=0)
    assert printed.train.n_tasks == 16
    # the figures of the spec, three digits
    np.testing.assert_allclose(printed.bayes_auc, 0.638, atol=5e-4)
    np.testing.assert_allclose(corrected.bayes_auc, 0.943, atol=5e-4)
    assert printed.bayes_auc.max() < 0.6841 < 0.8293 < corrected.bayes_auc.min()  # the paper's worst and best


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


def test_seeds_and_further_samples():
    one, same, other = (datasets.make_task_tree(**SMALL, random_state=seed) for seed in (1, 1, 2))
    assert one.train.fingerprint() == same.train.fingerprint() != other.train.fingerprint()
    assert one.test.fingerprint() == same.test.fingerprint()
    new = one.sample(30, random_state=5)
    assert new.counts.tolist() == [60] * 8 and new.task_names == one.train.task_names
    assert (
        new.fingerprint() == one.sample(30, random_state=5).fingerprint() != one.sample(30, 6).fingerprint()
    )
    # the same tasks: the true directions score as they must
    many = one.sample(4000, random_state=7)
    seen = [
        roc_auc_score(y, X @ mu)
        for X, y, mu in zip(many.inputs, many.per_task(many.targets), one.mus.T, strict=True)
    ]
    np.testing.assert_allclose(seen, one.bayes_auc, atol=0.03)


@for_each(
    ("options", "pieces"),
    [
        ({"depth": 0}, ["depth=0", "at least 1"]),
        ({"n_features": 2.5}, ["n_features=2.5"]),
        ({"n_flips": 41}, ["n_flips=41", "of the 40 features"]),
        ({"n_flips": -1}, ["n_flips=-1"]),
        ({"variance": 0}, ["variance=0", "> 0"]),
        ({"variance": np.nan}, ["variance=nan"]),
        ({"variance": "20"}, ["variance='20'"]),
        ({"n_train": 0}, ["n_train=0"]),
        ({"n_test": True}, ["n_test=True"]),
    ],
)
def test_refuses_what_makes_no_sense(options, pieces):
    with pytest.raises(DataError) as error:
        datasets.make_task_tree(**(SMALL | options))
    assert all(piece in str(error.value) for piece in pieces), error.value


def test_a_problem_file_gets_the_training_tasks():
    made = datasets.LOADERS["task_tree"](**SMALL, random_state=4)
    assert made.fingerprint() == datasets.make_task_tree(**SMALL, random_state=4).train.fingerprint()
    assert mtl.datasets.make_task_tree is datasets.make_task_tree


# ------------------------------------------------------------------------------------------------ hierarchies


def groups(parents, names):
    """The sets of tasks under each inner node: two trees with the same are the same."""
    under = {}
    for name in names:
        for node in paths(parents, name)[1:]:
            under.setdefault(node, set()).add(name)
    return {frozenset(members) for members in under.values()}


@pytest.mark.parametrize("method", ["average", "single", "complete", "weighted"])
def test_the_tree_is_found_again_in_a_tree_metric(method):
    """Similarity = shared ancestors: all linkages must give back the tree, under any order and scaling of the tasks."""
    tree = datasets.make_task_tree(**SMALL, random_state=0)
    names = list(tree.train.task_names)
    S = np.array([[1.0 + common(a, b) for b in names] for a in names])
    order = np.random.default_rng(0).permutation(8)
    names, scale = [names[i] for i in order], np.arange(1.0, 9.0)
    found = datasets.hierarchy(S[np.ix_(order, order)] * np.outer(scale, scale), names, method)
    assert groups(found, names) == groups(tree.parents, names)
    assert (
        len(found) == 15
        and found["root"] is None
        and set(found) == {*names, *(f"group {k}" for k in range(1, 7)), "root"}
    )


def test_the_tree_is_found_again_from_many_rows():
    tree = datasets.make_task_tree(depth=3, n_train=2000, n_test=1, random_state=3)
    names = tree.train.task_names
    truth = groups(tree.parents, names)
    assert groups(datasets.hierarchy(tree.similarity, names), names) == truth
    for method in ("means", "ridge"):
        assert (
            groups(datasets.hierarchy(datasets.estimate_similarity(tree.train, method), names), names)
            == truth
        )


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
    ("similarity", "names", "method", "pieces"),
    [
        (
            with_entry(0, 1, 2.0),
            "abc",
            "average",
            ["not symmetric", "2 from 'a' to 'b'", "3 back", "(S + S.T) / 2"],
        ),
        (with_entry(2, 2, 0.0), "abc", "average", ["similarity of 'c' and 'c' is 0", "> 0"]),
        (1.0 - np.eye(3), "abc", "average", ["similarity of 'a' and 'a' is 0"]),  # distances
        (
            np.where(S == 3, 5.0, S),
            "abc",
            "average",
            ["similarity of 'a' and 'b' is 5", "root of the product"],
        ),
        (with_entry(1, 2, np.nan), "abc", "average", ["similarity of 'b' and 'c' is nan", "finite"]),
        (S[:2], "abc", "average", ["square", "(2, 3)"]),
        (S.ravel(), "abc", "average", ["(9,)"]),
        ("similar", "abc", "average", ["array of numbers", "is a str"]),
        (S, "ab", "average", ["2 names", "3 x 3"]),
        (S, "aba", "average", ["two tasks are called 'a'"]),
        (S, ["a", "root", "b"], "average", ["a task is called 'root'", "rename"]),
        (S, "abc", "ward", ["method='ward'", "'average', 'single'"]),
    ],
)
def test_hierarchy_refuses(similarity, names, method, pieces):
    with pytest.raises(DataError) as error:
        datasets.hierarchy(similarity, list(names), method)
    assert all(piece in str(error.value) for piece in pieces), error.value


def by_hand(tasks):
    rows = []
    for X, y in zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True):
        X = X.toarray() if sparse.issparse(X) else X
        rows.append(X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0))
    return np.array([[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in rows] for a in rows])


def test_estimates_by_hand_dense_sparse_and_weighted():
    drawn = datasets.make_task_tree(**SMALL, random_state=0).train
    tasks = drawn.take_rows([np.arange(14)] * 8)  # 10 rows of one class, 4 of the other
    np.testing.assert_allclose(datasets.estimate_similarity(tasks), by_hand(tasks), rtol=1e-12, atol=1e-12)
    labels = tasks.per_task(tasks.targets)
    packed = Tasks.separate([sparse.csr_array(X) for X in tasks.inputs], labels)
    for method in ("means", "ridge"):
        # ridge: scikit-learn solves sparse inputs iteratively, to 1e-4 of the residual
        np.testing.assert_allclose(
            datasets.estimate_similarity(packed, method),
            datasets.estimate_similarity(tasks, method),
            atol=1e-12 if method == "means" else 1e-2,
        )
    # a weight of 2 is a row twice
    counts = [np.where(np.arange(y.size) % 3 == 0, 2, 1) for y in labels]
    weighted = Tasks.separate(tasks.inputs, labels, sample_weights=[c.astype(float) for c in counts])
    repeated = Tasks.separate(
        [np.repeat(X, c, axis=0) for X, c in zip(tasks.inputs, counts, strict=True)],
        [np.repeat(y, c) for y, c in zip(labels, counts, strict=True)],
    )
    for method in ("means", "ridge"):
        # two routes through one linear system: rounding alone
        np.testing.assert_allclose(
            datasets.estimate_similarity(weighted, method),
            datasets.estimate_similarity(repeated, method),
            atol=1e-9,
        )


def test_ridge_solves_its_problem():
    """Each direction is the minimiser: checked by the gradient of the formula in the docstring, at another scaling of the labels."""
    rng = np.random.default_rng(0)
    X, directions = rng.normal(size=(50, 4)), rng.normal(size=(4, 3))
    tasks = Tasks.shared(X, X @ directions + 3.0)
    found = datasets.estimate_similarity(tasks, "ridge", ridge=2.5)
    centred = X - X.mean(axis=0)
    W = np.linalg.solve(centred.T @ centred + 2.5 * np.eye(4), centred.T @ (X @ directions))
    W /= np.linalg.norm(W, axis=0)
    np.testing.assert_allclose(found, W.T @ W, atol=1e-9)


@for_each(
    ("change", "options", "pieces"),
    [
        (lambda X, y: (X, 0.5 * (y + 1)), {}, ["estimate_similarity(tasks, method='means')", "-1 or +1"]),
        (lambda X, y: (X, np.ones_like(y)), {}, ["one class only"]),
        (lambda X, y: (np.ones_like(X), y), {}, ["direction of task 'b' is 0"]),
        (lambda X, y: (np.ones_like(X), y), {"method": "ridge"}, ["direction of task 'b' is 0"]),
        (lambda X, y: (X, y), {"method": "lda"}, ["method='lda'", '"means" or "ridge"']),
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
