"""MAP inference against all labellings written out: every method, every density, cliques of any size, awkward scores."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mtldsl.atoms.inference import decoder as batch
from mtldsl.atoms.inference.cliques import Cliques
from mtldsl.atoms.inference.decoder import Decoder, LogPartition
from mtldsl.errors import ModelError
from tests.inference.brute_force import GRAPHS, awkward, largest_scores, random_cliques, rounding, scores_of
from tests.loops import for_each

EXACT = ("elimination", "enumeration")
METHODS = (*EXACT, "mplp", "auto")


def assert_right(cliques, scores, method):
    decoder = Decoder(cliques, method)
    found = decoder(scores)
    best, slack = largest_scores(cliques, scores), rounding(cliques, scores)
    assert found.labels.dtype == np.uint8 and found.labels.shape == (len(scores), cliques.n_labels)
    assert set(np.unique(found.labels)) <= {0, 1}
    # the value is that of the labelling, the bound is one, and a certificate is never wrong
    assert (np.abs(scores_of(cliques, scores, found.labels) - found.values) <= slack).all()
    assert (found.values <= best + slack).all()
    assert (found.upper >= best - slack).all()
    proven = 1e-9 * (1.0 + np.abs(found.values)) + slack
    assert ((best - found.values) <= proven)[found.certified].all()
    if decoder.is_exact or not cliques.members:
        assert (np.abs(found.values - best) <= slack).all()
        assert found.certified.all()
    return decoder, found


@pytest.mark.slow
@for_each("method", METHODS)
@for_each("graph", GRAPHS, ids=str)
def test_graphs_of_every_density_and_size(graph, method):
    assert_right(*awkward(*graph), method)


@for_each("method", ["elimination", "auto"])
def test_long_chain_against_dynamic_programming(method):
    """60 labels: a chain's maximum by the recursion m_k(y) = theta_k(y) + max over y' of m_(k-1)(y') + theta_(k-1, k)(y', y)."""
    K = 60
    cliques = Cliques(K, tuple((k, k + 1) for k in range(K - 1)))
    scores = np.random.default_rng(5).normal(size=(10, cliques.n_entries))
    decoder = Decoder(cliques, method)
    assert decoder.treewidth == 1 and decoder.method == "elimination"
    found = decoder(scores)
    for row, value in zip(scores, found.values, strict=True):
        best = row[:2].copy()
        for k in range(1, K):
            pair = row[2 * K + 4 * (k - 1) :][:4].reshape(2, 2)
            best = row[2 * k : 2 * k + 2] + (best[:, None] + pair).max(axis=0)
        assert abs(best.max() - value) <= 1e-11


@for_each("method", METHODS)
def test_a_batch_is_its_instances_one_by_one(method, monkeypatch):
    rng = np.random.default_rng(9)
    cliques = random_cliques(rng, 8, 0.5)
    scores = rng.integers(-1, 2, size=(600, cliques.n_entries)).astype(float)  # ties almost everywhere
    decoder = Decoder(cliques, method)
    whole = decoder(scores)
    for other in (decoder(scores, threads=1), decoder(scores, threads=3), Decoder(cliques, method)(scores)):
        for field in ("labels", "values", "upper", "certified"):
            assert (getattr(whole, field) == getattr(other, field)).all()
    monkeypatch.setattr(
        batch, "SETTINGS", replace(batch.SETTINGS, call_operations=1)
    )  # in as many parts as can be
    parts = decoder(scores[:40])
    assert (parts.labels == whole.labels[:40]).all() and (parts.upper == whole.upper[:40]).all()
    for i in range(0, 600, 37):
        one = decoder(scores[i : i + 1])
        assert (one.labels[0] == whole.labels[i]).all()
        assert one.values[0] == whole.values[i] and one.upper[0] == whole.upper[i]


@pytest.mark.slow
@for_each("method", ["elimination", "enumeration", "mplp"])
def test_one_instance_from_compiled_code(method):
    """What a solver's loop calls: no more than the sizes said is touched, whatever stands in the scratch before."""
    from numba import njit

    from mtldsl.atoms.inference.map_kernels import map_one as inner

    @njit
    def map_one(eliminates, enumerates, scores, plan, work, iwork, label):
        return inner(eliminates, enumerates, scores, plan, work, iwork, label)

    for sizes in ((2,), (2, 3)):
        cliques, scores = awkward(6, 0.6, sizes)
        decoder = Decoder(cliques, method)
        found = decoder(scores := scores[:5])
        work, iwork = np.full(decoder.work_size + 3, np.nan), np.full(decoder.iwork_size + 3, -99)
        for i in range(5):
            label = np.full(6, 7, dtype=np.uint8)
            before = scores[i].copy()
            own_iwork = None if decoder.is_exact else iwork
            value, upper = map_one(*decoder.choice, scores[i], decoder.plan, work, own_iwork, label)
            assert value == found.values[i] and upper == found.upper[i]
            assert (label == found.labels[i]).all()
            assert (scores[i] == before).all()
            # with the decoder's own scratch
            own = np.full(6, 7, dtype=np.uint8)
            again = map_one(*decoder.choice, scores[i], decoder.plan, *decoder.scratch(), own)
            assert again == (value, upper) and (own == label).all()
        assert np.isnan(work[decoder.work_size :]).all() and (iwork[decoder.iwork_size :] == -99).all()


def test_scores_of_other_kinds_are_read():
    scores = np.random.default_rng(12).normal(size=(4, 10)).astype(np.float32)
    decoder = Decoder(Cliques(3, ((0, 2),)))
    expected = decoder(scores.astype(float)).values
    for other in (scores, np.asfortranarray(scores), scores.tolist()):
        assert (decoder(other).values == expected).all()
    none = decoder(np.empty((0, 10)))
    assert none.labels.shape == (0, 3) and none.values.shape == none.certified.shape == (0,)


PAIRS, FULL = Cliques(3, ((0, 1),)), Cliques(30, tuple(combinations(range(30), 2)))
NOT_FINITE = [np.where(np.arange(20).reshape(2, 10) == 14, bad, 0.0) for bad in (np.nan, np.inf, -np.inf)]


@for_each("ask, says", [
    (lambda: Decoder(PAIRS, "viterbi"),
     r"method='viterbi' is unknown. Write one of: 'auto', 'elimination'"),
    (lambda: Decoder(FULL, "elimination"), r"2\^29 on this graph .* Write method='mplp'"),
    (lambda: Decoder(FULL, "enumeration"), r"2\^30 labellings; it takes at most 24"),
    (lambda: Decoder(Cliques(0)), "Give at least one label"),
    *(
        (lambda wrong=wrong: Decoder(Cliques(3, (wrong,))), "ascending")
        for wrong in ((1, 0), (0, 0), (0,), (0, 3), (-1, 2), (0, 1, 1))
    ),
    (lambda: Decoder(PAIRS)(np.zeros((2, 9))), r"shape \(2, 9\) do not fit.*S = 10"),
    (lambda: Decoder(PAIRS)(np.zeros(10)), r"shape \(10,\)"),
    *(
        (lambda scores=scores: Decoder(PAIRS)(scores), r"scores\[1, 4\] is .*finite")
        for scores in NOT_FINITE
    ),
    (lambda: LogPartition(FULL), r"435 cliques over 30 labels .* 2\^29 .*Give fewer edges"),
    (lambda: LogPartition(Cliques(0)), "Give at least one label"),
    (lambda: LogPartition(PAIRS)(np.zeros((1, 7))), r"must be \(n, 10\)"),
    (lambda: LogPartition(PAIRS)(np.full((1, 10), np.nan)), "finite"),
])  # fmt: skip
def test_errors_say_what_to_write(ask, says):
    with pytest.raises(ModelError, match=says):
        ask()
