"""The log-partition and its marginals against all labellings written out, and against finite differences."""

import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mtldsl.atoms.inference import decoder
from mtldsl.atoms.inference.cliques import Cliques
from mtldsl.atoms.inference.decoder import LogPartition
from tests.inference.brute_force import GRAPHS, awkward, log_z_and_marginals, random_cliques, rounding
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
@for_each("graph", GRAPHS, ids=str)
def test_graphs_of_every_density_and_size(graph):
    assert_right(*awkward(*graph))


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


def test_a_batch_is_its_instances_one_by_one(monkeypatch):
    rng = np.random.default_rng(4)
    for density in (0.2, 1.0):
        cliques = random_cliques(rng, 7, density)
        scores = rng.normal(size=(600, cliques.n_entries))
        partition = LogPartition(cliques)
        log_z, marginals = partition(scores)
        with monkeypatch.context() as patched:  # in as many parts as can be
            patched.setattr(decoder, "SETTINGS", replace(decoder.SETTINGS, call_operations=1))
            parts = partition(scores[:40])
        assert (parts[0] == log_z[:40]).all() and (parts[1] == marginals[:40]).all()
        for threads in (1, 3):
            again = partition(scores, threads=threads)
            assert (again[0] == log_z).all() and (again[1] == marginals).all()
        for i in range(0, 600, 53):
            one = partition(scores[i : i + 1])
            assert one[0][0] == log_z[i] and (one[1][0] == marginals[i]).all()


@pytest.mark.slow
def test_after_an_error_no_part_is_begun():
    begun = []

    def action(rows):
        begun.append(rows)
        time.sleep(0.01)  # all of them take a minute
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decoder.in_parts(10_000, 2, action, operations=decoder.SETTINGS.call_operations)
    assert len(begun) < 5000
