"""All 2^K labellings, one after the other, and nothing that the package computes; random graphs to try it on."""

from functools import cache
from itertools import combinations, product

import numpy as np
from scipy.special import logsumexp

from mtldsl.atoms.inference.cliques import Cliques


def chosen_entries(n_labels, members):
    """(labellings (2^K, K), indicators (2^K, S)) from the words of the layout: 2k + y_k, then the members' digits read as binary."""
    labellings = list(product((0, 1), repeat=n_labels))
    rows = []
    for y in labellings:
        row = [0.0] * (2 * n_labels)
        for k in range(n_labels):
            row[2 * k + y[k]] = 1.0
        for clique in members:
            entries = [0.0] * 2 ** len(clique)
            entries[int("".join(str(y[k]) for k in clique), 2)] = 1.0
            row += entries
        rows.append(row)
    return np.array(labellings), np.array(rows)


_known = cache(chosen_entries)  # four methods are tried on each graph


def largest_scores(cliques, scores):
    """(n,) the score of the best labelling."""
    _, indicators = _known(cliques.n_labels, cliques.members)
    return (np.asarray(scores) @ indicators.T).max(axis=1)


def scores_of(cliques, scores, labels):
    """(n,) the scores of given labellings."""
    _, indicators = _known(cliques.n_labels, cliques.members)
    place = np.asarray(labels, int) @ 2 ** np.arange(cliques.n_labels)[::-1]
    return np.sum(np.asarray(scores) * indicators[place], axis=1)


def log_z_and_marginals(cliques, scores):
    _, indicators = _known(cliques.n_labels, cliques.members)
    values = np.asarray(scores) @ indicators.T
    log_z = logsumexp(values, axis=1)
    return log_z, np.exp(values - log_z[:, None]) @ indicators


def rounding(cliques, scores):
    """(n,) what the additions of a labelling's score can lose: about 1e-16 of the largest entry for each, with room of a hundred."""
    size = np.abs(np.asarray(scores)).max(axis=1)
    return 1e-14 * (cliques.n_labels + cliques.n_cliques) * (1.0 + size)


def random_cliques(rng, n_labels, density, sizes=(2,)):
    members = [c for s in sizes for c in combinations(range(n_labels), s) if rng.random() < density]
    rng.shuffle(members)
    return Cliques(n_labels, tuple(tuple(int(k) for k in c) for c in members))


def awkward_scores(rng, n_entries):
    """Rows of normal scores, small integers (many ties), all zero, minus zero, +-1e6, one huge entry, all equal, large with small."""
    rows = list(rng.normal(size=(12, n_entries)))
    rows += list(rng.integers(-2, 3, size=(6, n_entries)).astype(float))
    rows += [np.zeros(n_entries), -np.zeros(n_entries), np.full(n_entries, -3.25)]
    rows += list(1e6 * rng.choice([-1.0, 1.0], size=(4, n_entries)))
    spike = rng.normal(size=n_entries)
    spike[rng.integers(n_entries)] = 1e6
    rows += [spike, np.where(rng.random(n_entries) < 0.3, -1e6, rng.normal(size=n_entries))]
    return np.array(rows)


#: (labels, share of the possible cliques, sizes of cliques)
GRAPHS = [
    *product([1, 2, 3, 6, 9], [0.0, 0.15, 0.4, 0.7, 1.0], [(2,)]),
    *product([5, 7], [0.05, 0.3, 1.0], [(3,), (2, 3), (4,), (2, 3, 4), (5,), (2, 3, 4, 5)]),
]


def awkward(n_labels, density, sizes):
    """(cliques, scores) of one of GRAPHS."""
    rng = np.random.default_rng([n_labels, int(100 * density), len(sizes), sizes[0]])
    cliques = random_cliques(rng, n_labels, density, sizes)
    return cliques, awkward_scores(rng, cliques.n_entries)
