"""The log-partition and its marginals against all labellings written out, and against finite differences."""

from itertools import combinations

import numpy as np
import pytest

from mtldsl.errors import ModelError
from mtldsl.inference import Cliques, LogPartition
from tests.fresh import loaded_by
from tests.inference.brute_force import awkward_scores, log_z_and_marginals, random_cliques, rounding
from tests.loops import for_each


def assert_right(cliques, scores):
    partition = LogPartition(cliques)
    log_z, marginals = partition(scores)
    expected_z, expected = log_z_and_marginals(cliques, scores)
    slack = rounding(cliques, scores)
    assert (np.abs(log_z - expected_z) <= slack).all()
    # a probability moves by as much as the scores are lost in rounding, and by 1e-14 of its own
    assert (np.abs(marginals - expected).max(axis=1) <= 1e-13 + 2 * slack).all()
    assert (marginals >= 0.0).all() and (marginals <= 1.0 + 1e-12).all()
    return partition


@pytest.mark.slow
@for_each("density", [0.0, 0.2, 0.5, 1.0])
@for_each("n_labels", [1, 2, 4, 7, 10])
def test_graphs_of_every_density(n_labels, density):
    rng = np.random.default_rng([n_labels, int(10 * density)])
    cliques = random_cliques(rng, n_labels, density)
    assert_right(cliques, awkward_scores(rng, cliques.n_entries))


@for_each("sizes", [(3,), (2, 3), (2, 3, 4), (5,)], ids=str)
@for_each("density", [0.05, 0.3, 1.0])
def test_larger_cliques(density, sizes):
    rng = np.random.default_rng([len(sizes), sizes[0], int(100 * density)])
    for n_labels in (5, 7):
        cliques = random_cliques(rng, n_labels, density, sizes)
        assert_right(cliques, awkward_scores(rng, cliques.n_entries))


def test_both_methods_were_seen():
    chain = Cliques(8, tuple((k, k + 1) for k in range(7)))
    triples = Cliques(8, tuple(combinations(range(8), 3)))
    full = Cliques(8, tuple(combinations(range(8), 2)))
    rng = np.random.default_rng(0)
    found = [assert_right(c, rng.normal(size=(5, c.n_entries))).method for c in (chain, full, triples)]
    assert found == ["elimination", "enumeration", "enumeration"]


def test_forty_labels_on_a_band():
    """Too many to write out: the marginals sum to 1 in every table, agree between tables, and are the slope along a direction."""
    K = 40
    cliques = Cliques(K, tuple((i, j) for i in range(K) for j in range(i + 1, min(i + 4, K))))
    rng = np.random.default_rng(2)
    scores, direction = rng.normal(size=(3, cliques.n_entries)), rng.normal(size=cliques.n_entries)
    partition = LogPartition(cliques)
    assert partition.method == "elimination" and partition.treewidth == 3
    _, marginals = partition(scores)
    assert np.abs(marginals[:, : 2 * K].reshape(3, K, 2).sum(axis=2) - 1.0).max() <= 1e-13
    for c, (i, j) in enumerate(cliques.members):
        table = marginals[:, cliques.starts[c] : cliques.starts[c + 1]].reshape(3, 2, 2)
        assert np.abs(table.sum(axis=2) - marginals[:, 2 * i : 2 * i + 2]).max() <= 1e-13
        assert np.abs(table.sum(axis=1) - marginals[:, 2 * j : 2 * j + 2]).max() <= 1e-13
    step = 1e-5
    slopes = (partition(scores + step * direction)[0] - partition(scores - step * direction)[0]) / (2 * step)
    # log Z is about 100, so its rounding of 1e-14 over 2 steps is 1e-9; third derivatives along the direction times step^2: less
    assert np.abs(marginals @ direction - slopes).max() <= 1e-7


def test_a_batch_is_its_instances_one_by_one():
    rng = np.random.default_rng(4)
    for density in (0.2, 1.0):
        cliques = random_cliques(rng, 7, density)
        scores = rng.normal(size=(600, cliques.n_entries))
        partition = LogPartition(cliques)
        log_z, marginals = partition(scores)
        for threads in (1, 3):
            again = partition(scores, threads=threads)
            assert (again[0] == log_z).all() and (again[1] == marginals).all()
        for i in range(0, 600, 53):
            one = partition(scores[i : i + 1])
            assert one[0][0] == log_z[i] and (one[1][0] == marginals[i]).all()


def test_errors_say_what_to_write():
    with pytest.raises(ModelError, match=r"435 cliques over 30 labels .* 2\^29 .*Give fewer edges"):
        LogPartition(Cliques(30, tuple(combinations(range(30), 2))))
    with pytest.raises(ModelError, match="Give at least one label"):
        LogPartition(Cliques(0))
    partition = LogPartition(Cliques(2, ((0, 1),)))
    with pytest.raises(ModelError, match=r"must be \(n, 8\)"):
        partition(np.zeros((1, 7)))
    with pytest.raises(ModelError, match="finite"):
        partition(np.full((1, 8), np.nan))


def test_importing_the_room_does_not_import_numba():
    assert "numba" not in loaded_by("inference")
