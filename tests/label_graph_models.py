"""Models over a graph of labels for tests of solvers: data with dependent labels, and objectives by looking at every labelling."""

from itertools import combinations, product

import numpy as np
from scipy import sparse

import mtldsl as mtl
from tests.known_optima import fixture

#: Objectives of the fixtures: name -> (edges, penalty on V).
KNOWN = {
    "ssvm_no_edges": ([], mtl.ridge),
    "ssvm_edges": (None, mtl.ridge),
    "ssvm_all_edges": ("all", mtl.ridge),
    "l21sq_edges_r1": (None, mtl.half_squared_group_norm),
    "relaxation6_r1": ("all", lambda V: mtl.half_squared_k_support_norm(V, 1)),
    "relaxation6_r2": ("all", lambda V: mtl.half_squared_k_support_norm(V, 2)),
    "ssvm_3clique": ([(0, 1, 2)], mtl.ridge),
}
CASES = [
    (name, key)
    for name in ("cgm_n8_K3", "cgm_n12_K4")
    for key in KNOWN
    if (name, key) != ("cgm_n8_K3", "ssvm_3clique")
]


def known(name, key):
    """(problem, optimal objective to 2e-10) of a fixture."""
    read = fixture(name)
    tasks = mtl.Tasks.shared(np.array(read["X"]), 2.0 * np.array(read["Y"]) - 1.0)
    edges, penalty = KNOWN[key]
    edges = [tuple(edge) for edge in read["edges"]] if edges is None else edges
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges)
    objective = mtl.clique_hinge(U, V, tasks) + read["lam"] * (mtl.ridge(U) + penalty(V))
    return mtl.minimize(objective), read["objective"][key]["clarabel_primal"]


def data(n=30, K=4, d=3, seed=0, noise=0.1, edges=((0, 1), (1, 2))):
    """X (n, d) and Y (n, K) of -1/+1: the best labellings of random weights over `edges`, looked for among all; some labels turned."""
    rng = np.random.default_rng(seed)
    X, labellings = rng.normal(size=(n, d)), np.array(list(product((0, 1), repeat=K)))
    scores = X @ rng.normal(size=(d, 2 * K)) @ _one_hot(labellings)
    for i, j in edges:
        if j < K:
            state = 2 * labellings[:, i] + labellings[:, j]
            scores = scores + (X @ rng.normal(size=(d, 4)))[:, state]
    Y = 2.0 * labellings[scores.argmax(axis=1)] - 1.0
    Y[rng.random(Y.shape) < noise] *= -1.0
    for k in range(K):  # labels of one class are refused
        if np.ptp(Y[:, k]) == 0.0:
            Y[k % n, k] *= -1.0
    return X, Y


def _one_hot(labellings):
    return np.stack([labellings == 0, labellings == 1], axis=2).reshape(len(labellings), -1).T.astype(float)


def model(
    X, Y, edges="all", r=1, a=0.05, b=None, penalty=None, loss="hamming", sample_weights=None, density=None
):
    """clique_hinge + a ridge(U) + b * (half the squared k-support norm of r, or `penalty`) of V; `a` and `b` may be Parameters."""
    X = sparse.csr_array(X) if density == "sparse" else X
    tasks = mtl.Tasks.shared(X, Y, sample_weights=sample_weights)
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges)
    on_edges = mtl.half_squared_k_support_norm(V, r) if penalty is None else penalty(V)
    return mtl.minimize(
        mtl.clique_hinge(U, V, tasks, loss=loss) + a * mtl.ridge(U) + (a if b is None else b) * on_edges
    )


def all_pairs(K):
    return list(combinations(range(K), 2))


def dependent(seed, n, k, d=3, shift=0.0):
    """X (n, d), Y (n, k) of labels that depend on one another, both classes of each, and the generator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    common = rng.normal(size=(n, 1))
    scores = X @ rng.normal(size=(d, k)) + common + shift + 0.3 * rng.normal(size=(n, k))
    Y = np.where(scores > 0, 1.0, -1.0)
    Y[0], Y[1] = 1.0, -1.0
    return X, Y, rng


def regularized(
    word, tasks, edges="all", penalty=mtl.half_squared_group_norm, lam=0.1, intercept=False, **options
):
    """word(U, V, tasks) + lam * (ridge(U) + penalty(V))"""
    U, V = mtl.NodeWeights(tasks, intercept=intercept), mtl.EdgeWeights(tasks, edges)
    return mtl.minimize(word(U, V, tasks, **options) + lam * (mtl.ridge(U) + penalty(V)))


def cost(loss, y, truth) -> float:
    """What labels {place: 0 or 1} cost beside the true ones; a table counts where all its places are."""
    wrong = [k for k in truth if y[k] != truth[k]]
    if isinstance(loss, dict):
        total = 0.0
        for clique, table in loss.items():
            places = [k if isinstance(k, int) else "abcd".index(k) for k in clique]
            if all(k in truth for k in places):
                row, column = (int("".join(str(of[k]) for k in places), 2) for of in (truth, y))
                total += table[row][column]
        return total
    if isinstance(loss, list):
        return sum(loss[k] for k in wrong)
    if isinstance(loss, str):
        return float(len(wrong) if loss == "hamming" else bool(wrong))
    if not wrong:
        return 0.0
    right = sum(y[k] and truth[k] for k in truth)
    if isinstance(loss, mtl.metrics.Jaccard):
        return 1.0 - right / sum(y[k] or truth[k] for k in truth)
    square = loss.beta**2
    return 1.0 - (1.0 + square) * right / (sum(y.values()) + square * sum(truth.values()))
