"""The generators: the weights that they report are those that made the labels, and of the promised kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mtldsl import DataError, datasets

GENERATORS = {"low_rank": datasets.make_low_rank, "group_sparse": datasets.make_group_sparse}
SMALL = {"n_tasks": 5, "n_samples": 12, "n_features": 7, "random_state": 3}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_without_noise_the_labels_are_the_predictions_of_the_weights(make, shared):
    tasks, W = make(**SMALL, noise=0.0, shared=shared)
    assert tasks.is_shared is shared and W.shape == (7, 5) and tasks.counts.tolist() == [12] * 5
    expected = np.concatenate([X @ w for X, w in zip(tasks.inputs, W.T, strict=True)])
    np.testing.assert_allclose(tasks.targets, expected, rtol=1e-12, atol=1e-12)


@given(
    m=st.integers(1, 6),
    d=st.integers(1, 8),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
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


def test_sign_labels_are_the_signs_of_the_scores():
    tasks, W = datasets.make_group_sparse(6, 200, 5, 2, noise=0.0, labels="sign", random_state=1)
    np.testing.assert_array_equal(tasks.targets, np.sign(tasks.forward(W)))


@pytest.mark.parametrize("shared", [False, True])
def test_density_gives_sparse_inputs_of_that_density(shared):
    tasks, _ = datasets.make_low_rank(3, 200, 50, 2, density=0.1, shared=shared, random_state=0)
    assert tasks.is_sparse and all(sparse.issparse(X) for X in tasks.inputs)
    assert np.mean([X.nnz for X in tasks.inputs]) == pytest.approx(0.1 * 200 * 50, rel=0.05)


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_one_seed_one_problem(make):
    first, again, other = (make(**(SMALL | {"random_state": seed})) for seed in (3, 3, 4))
    assert first[0].fingerprint() == again[0].fingerprint() != other[0].fingerprint()
    np.testing.assert_array_equal(first[1], again[1])


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({"rank": 6}, ["rank=6", "at most rank 5"]),
        ({"rank": 0}, ["rank=0", "at least 1"]),
        ({"n_tasks": 2.0}, ["n_tasks=2.0", "whole number"]),
        ({"noise": -1}, ["noise=-1"]),
        ({"noise": np.nan}, ["noise=nan"]),
        ({"labels": "binary"}, ["labels='binary'", '"sign"']),
        ({"density": 0.0}, ["density=0.0"]),
        ({"labels": "sign", "n_samples": 1}, ["n_samples >= 2"]),
    ],
)
def test_what_makes_no_sense_is_refused(options, pieces):
    with pytest.raises(DataError) as error:
        datasets.make_low_rank(**(SMALL | options))
    assert all(piece in str(error.value) for piece in pieces), error.value


def test_more_relevant_features_than_features():
    with pytest.raises(DataError, match="n_relevant=8: there are only n_features=7"):
        datasets.make_group_sparse(**SMALL, n_relevant=8)


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
