"""The generators: the weights that they report are those that made the labels, and of the promised kind."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mtldsl import DataError, datasets
from tests.loops import for_each

GENERATORS = {"low_rank": datasets.make_low_rank, "group_sparse": datasets.make_group_sparse}
SMALL = {"n_tasks": 5, "n_samples": 12, "n_features": 7, "random_state": 3}
TREE = {"depth": 3, "n_features": 40, "n_flips": 4, "n_test": 5}
GRAPH = {"n_train": 40, "n_test": 30}


@for_each("shared", [False, True])
@for_each("make", GENERATORS.values(), ids=GENERATORS)
def test_labels_without_noise_are_predictions_of_the_weights(make, shared):
    tasks, W = make(**SMALL, noise=0.0, shared=shared)
    assert tasks.is_shared is shared and W.shape == (7, 5) and tasks.counts.tolist() == [12] * 5
    expected = np.concatenate([X @ w for X, w in zip(tasks.inputs, W.T, strict=True)])
    np.testing.assert_allclose(tasks.targets, expected, rtol=1e-12, atol=1e-12)


@given(m=st.integers(1, 6), d=st.integers(1, 8), share=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_rank_and_relevant_rows_are_as_asked(m, d, share, seed):
    rank = 1 + int(share * (min(m, d) - 1))
    _, W = datasets.make_low_rank(m, 2, d, rank, random_state=seed)
    sigma = np.linalg.svd(W, compute_uv=False)
    assert (sigma[rank:] <= 1e-12 * sigma[0]).all() and sigma[rank - 1] > 1e-9 * sigma[0]
    relevant = 1 + int(share * (d - 1))
    _, W = datasets.make_group_sparse(m, 2, d, relevant, random_state=seed)
    assert np.count_nonzero(np.linalg.norm(W, axis=1)) == relevant


def test_noise_has_the_standard_deviation_asked_for():
    tasks, W = datasets.make_low_rank(4, 5000, 6, 2, noise=2.5, random_state=0)
    residual = tasks.targets - tasks.forward(W)
    assert residual.std() == pytest.approx(2.5, rel=0.02) and abs(residual.mean()) < 0.1


@pytest.mark.parametrize("shared", [False, True])
def test_sign_labels_have_both_classes_even_from_two_rows(shared):
    for seed in range(20):
        tasks, _ = datasets.make_low_rank(6, 2, 3, 1, labels="sign", shared=shared, random_state=seed)
        tasks.require_labels("sign", "logistic_loss(W, tasks)")
        assert all(set(y) == {-1.0, 1.0} for y in tasks.per_task(tasks.targets))


def test_sign_labels_are_the_signs_of_the_scores():
    tasks, W = datasets.make_group_sparse(6, 200, 5, 2, noise=0.0, labels="sign", random_state=1)
    np.testing.assert_array_equal(tasks.targets, np.sign(tasks.forward(W)))


@for_each("shared", [False, True])
def test_density_gives_sparse_inputs_of_that_density(shared):
    tasks, _ = datasets.make_low_rank(3, 200, 50, 2, density=0.1, shared=shared, random_state=0)
    assert tasks.is_sparse and all(sparse.issparse(X) for X in tasks.inputs)
    assert np.mean([X.nnz for X in tasks.inputs]) == pytest.approx(0.1 * 200 * 50, rel=0.05)


@for_each("make", GENERATORS.values(), ids=GENERATORS)
def test_one_seed_one_problem(make):
    first, again, other = (make(**(SMALL | {"random_state": seed})) for seed in (3, 3, 4))
    assert first[0].fingerprint() == again[0].fingerprint() != other[0].fingerprint()
    np.testing.assert_array_equal(first[1], again[1])


@for_each("make, small, rows", [(datasets.make_task_tree, TREE, 60), (datasets.make_label_graph, GRAPH, 30)])
def test_seeds_and_further_samples(make, small, rows):
    one, same, other = (make(**small, random_state=seed) for seed in (1, 1, 2))
    assert one.train.fingerprint() == same.train.fingerprint() != other.train.fingerprint()
    assert one.test.fingerprint() == same.test.fingerprint()
    new, again, elsewhere = (one.sample(30, random_state=seed) for seed in (5, 5, 6))
    assert new.task_names == one.train.task_names and set(new.counts) == {rows}
    assert new.fingerprint() == again.fingerprint() != elsewhere.fingerprint()


PRINTED = {  # the vectors of (51), first, second, third and last exponent of 101
    "d1": (0, 3 / 100, 6 / 100, 300 / 100),
    "d2": (0, 0, 0, 0),
    "d3": (0, 3 / 25, 6 / 25, 300 / 25),
    "d4": (0, 1 / 4, 2 / 4, 100 / 4),
}


@for_each("setting", PRINTED)
def test_noise_levels_of_101_tasks_are_those_of_the_paper(setting):
    _, _, noise = datasets.make_calibrated(setting, n_samples=1, n_features=3, random_state=0)
    assert noise.shape == (101,)
    np.testing.assert_allclose(noise[[0, 1, 2, 100]], [2 * 2**-e for e in PRINTED[setting]], rtol=1e-12)


def test_each_task_has_the_noise_reported():
    tasks, W, noise = datasets.make_calibrated("d1", 6, 4000, 5, rank=2, max_noise=3.0, random_state=1)
    residuals = tasks.per_task(tasks.targets - tasks.forward(W))
    np.testing.assert_allclose([r.std() for r in residuals], noise, rtol=0.05)
    assert noise[0] == 3.0 and noise[-1] == 3.0 / 8


@pytest.mark.slow
def test_inputs_are_equicorrelated_and_weights_as_stated():
    tasks, W, _ = datasets.make_calibrated(n_tasks=40, n_samples=4000, n_features=20, rank=4, random_state=0)
    covariance = np.cov(np.vstack(list(tasks.inputs)), rowvar=False)
    np.testing.assert_allclose(covariance, 0.5 * (np.eye(20) + 1), atol=0.01)
    assert np.linalg.matrix_rank(W) == 4
    squares = [
        np.sum(
            datasets.make_calibrated(n_tasks=40, n_samples=1, n_features=20, rank=4, random_state=seed)[1]
            ** 2
        )
        for seed in range(50)
    ]
    assert np.mean(squares) / 40 == pytest.approx(20 * 4 * 0.05**2, rel=0.1)


REFUSED = [
    (datasets.make_low_rank, {"rank": 6}, ["rank=6", "at most rank 5"]),
    (datasets.make_low_rank, {"rank": 0}, ["rank=0", "at least 1"]),
    (datasets.make_low_rank, {"n_tasks": 2.0}, ["n_tasks=2.0", "whole number"]),
    (datasets.make_low_rank, {"noise": -1}, ["noise=-1"]),
    (datasets.make_low_rank, {"labels": "binary"}, ["labels='binary'", "'sign'"]),
    (datasets.make_low_rank, {"density": 0.0}, ["density=0.0"]),
    (datasets.make_low_rank, {"labels": "sign", "n_samples": 1}, ["n_samples >= 2"]),
    (datasets.make_group_sparse, {"n_relevant": 8}, ["n_relevant=8: there are only n_features=7"]),
    (datasets.make_calibrated, {"setting": "d5"}, ["setting='d5'", "'d1', 'd2', 'd3', 'd4'"]),
    (datasets.make_calibrated, {"rank": 6}, ["rank=6", "at most rank 5"]),
    (datasets.make_calibrated, {"n_samples": 0}, ["n_samples=0", "at least 1"]),
    (datasets.make_calibrated, {"max_noise": -1.0}, ["max_noise=-1.0", "standard deviation"]),
    (datasets.make_task_tree, {"depth": 0}, ["depth=0", "at least 1"]),
    (datasets.make_task_tree, {"n_features": 2.5}, ["n_features=2.5"]),
    (datasets.make_task_tree, {"n_flips": 41}, ["n_flips=41", "of the 40 features"]),
    (datasets.make_task_tree, {"n_flips": -1}, ["n_flips=-1"]),
    (datasets.make_task_tree, {"variance": 0}, ["variance=0", "> 0"]),
    (datasets.make_task_tree, {"n_train": 0}, ["n_train=0"]),
    (datasets.make_task_tree, {"n_test": True}, ["n_test=True"]),
    (datasets.make_label_graph, {"n_labels": 0}, ["n_labels=0", "at least 1"]),
    (datasets.make_label_graph, {"n_features": 2.5}, ["n_features=2.5"]),
    (datasets.make_label_graph, {"n_train": True}, ["n_train=True"]),
    (datasets.make_label_graph, {"label_noise": 1.5}, ["label_noise=1.5", "[0, 1]"]),
    (datasets.make_label_graph, {"edges": 3}, ["edges=3", "pairs"]),
    (datasets.make_label_graph, {"edges": [(0, 10)]}, ["(0, 10)", "0 to 9"]),
    (datasets.make_label_graph, {"edges": [(2, 2)]}, ["(2, 2)", "two different"]),
    (datasets.make_label_graph, {"edges": [(0, 1, 2)]}, ["(0, 1, 2)", "is not a pair"]),
    (datasets.make_label_graph, {"edges": [("a", "b")]}, ["('a', 'b')", "is not a pair"]),
    (datasets.make_label_graph, {"edges": [(0, 1), (1, 0)]}, ["(0, 1)", "twice"]),
    (datasets.make_label_graph, {"n_labels": 20, "edges": list(combinations(range(20), 2))},
     ["190", "treewidth 19"]),
    (datasets.make_label_graph, {"n_labels": 4}, ["(0, 4)", "0 to 3"]),  # the star needs five labels
]  # fmt: skip


@for_each(("make", "options", "pieces"), REFUSED)
def test_what_makes_no_sense_is_refused(make, options, pieces):
    small = {datasets.make_task_tree: TREE, datasets.make_label_graph: GRAPH}.get(make, SMALL)
    with pytest.raises(DataError) as error:
        make(**(small | options))
    assert all(piece in str(error.value) for piece in pieces), error.value


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    data, tasks = load_digits(), datasets.load_digits()
    np.testing.assert_array_equal(tasks.X * 16, data.data)
    labels = np.stack(tasks.per_task(tasks.targets))
    np.testing.assert_array_equal(labels.argmax(axis=0), data.target)
    assert (labels.sum(axis=0) == -8).all()  # one +1 and nine -1


def test_loaders_give_tasks_from_keyword_options():
    made = datasets.LOADERS["group_sparse"](**SMALL, n_relevant=2)
    assert made.fingerprint() == datasets.make_group_sparse(**SMALL, n_relevant=2)[0].fingerprint()
    assert datasets.LOADERS["digits"]().n_tasks == 10
    tree = {"depth": 2, "n_features": 9, "n_flips": 2, "n_test": 1, "random_state": 4}
    found = datasets.LOADERS["task_tree"](**tree).fingerprint()
    assert found == datasets.make_task_tree(**tree).train.fingerprint()
