"""Losses over a graph of labels, from their definition: every labelling of K labels is listed.

U (d, 2K) scores label k at 0 and at 1 by its columns 2k and 2k + 1; V (d, 4q) scores the values of the labels i and j of edge c by the
column 4c + 2 y_i + y_j. A sample's plane of a labelling y is Delta(y, y_i) + <s_i, Y(y) - Y(y_i)>, with the scores s_i = (U, V)^T x_i.
"""

from itertools import combinations

import cvxpy as cp
import numpy as np

from tests.fuzz.recipes import Constraint, Data, Expression, Loss, Model, Part, Penalty
from tests.inference.brute_force import chosen_entries

GRAPH_LOSSES = ("clique_hinge", "pairwise_log_loss")


def draw_label_graph(rng, seed: int) -> Model:
    K, d, n = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(3, 9))
    scale = str(rng.choice(["plain", "mild", "pair", "decades"]))
    spread = {"plain": 0, "mild": 3, "pair": 6, "decades": 12}[scale]
    sizes = 10.0 ** rng.uniform(-spread, spread, d)
    X = rng.normal(size=(n, d))
    Y = np.where(X @ rng.normal(size=(d, K)) + 0.5 * rng.normal(size=(n, K)) > 0, 1.0, -1.0)
    Y[0], Y[1] = 1.0, -1.0  # both classes of every label
    word = str(rng.choice(GRAPH_LOSSES))
    both = Expression("U, V", (Part("U"), Part("V")))
    loss = Loss(word, {}, float(10.0 ** rng.uniform(-2, 2)), False, both, 0)
    strengths = [float(10.0 ** rng.uniform(-3, 1)) for _ in range(2)]
    groups = [list(range(4 * c, 4 * c + 4)) for c in range(len(_edges(K)))]
    of_edges = str(
        rng.choice(["ridge", "column_group_norm", "half_squared_k_support_norm", "half_squared_group_norm"])
    )
    options = {} if of_edges == "ridge" else {"columns": groups}
    if of_edges == "half_squared_k_support_norm":
        options = {"r": int(rng.integers(1, len(groups) + 1)), **options}
    penalties = (
        Penalty(
            str(rng.choice(["ridge", "l1_norm", "l21_norm"])), {}, strengths[0], Expression("U", (Part("U"),))
        ),
        Penalty(of_edges, options, strengths[1], Expression("V", (Part("V"),))),
    )
    signs = (Constraint("at_least", Expression("V", (Part("V"),)), 0.0),) if rng.random() < 0.2 else ()
    tags = (scale, "label graph", word, *(p.word for p in penalties), *(("signs",) if signs else ()))
    return Model(
        seed, {"U": False, "V": False}, (Data(X * sizes, Y, None, "sign"),), (loss,), penalties, signs,
        True, tags,
    )  # fmt: skip


def _edges(n_labels: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_labels), 2))


def _planes(signs: np.ndarray, word: str) -> tuple[np.ndarray, np.ndarray]:
    """(heights, slopes) of a sample's labellings."""
    true = (np.asarray(signs) > 0).astype(int)
    labellings, chosen = chosen_entries(len(true), _edges(len(true)))
    wrong = np.sum(labellings != true, axis=1)
    return (wrong if word == "clique_hinge" else np.zeros(len(wrong))), chosen - chosen[wrong == 0]


def graph_value(model: Model, loss: Loss, blocks: dict):
    """The mean over samples, in extended precision."""
    data, long = model.data[loss.data], np.longdouble
    scores = np.asarray(data.X, long) @ np.hstack([np.asarray(blocks[name], long) for name in ("U", "V")])
    total = long(0)
    for s, signs in zip(scores, data.Y, strict=True):
        heights, slopes = _planes(signs, loss.word)
        at = heights + np.asarray(slopes, long) @ s
        largest = at.max()
        total += largest if loss.word == "clique_hinge" else largest + np.log(np.sum(np.exp(at - largest)))
    return total / len(data.Y)


def graph_statement(model: Model, loss: Loss, entries: dict, V: dict, factor: float):
    """factor * loss in the scaled unknowns, in cvxpy."""
    data = model.data[loss.data]
    scaled = [
        np.asarray(np.asarray(data.X, np.longdouble) * entries[name][:, 0], float) @ V[name]
        for name in ("U", "V")
    ]
    scores, total = cp.hstack(scaled), 0.0
    for i, signs in enumerate(data.Y):
        heights, slopes = _planes(signs, loss.word)
        at = heights + slopes @ scores[i, :]
        total = total + (cp.max(at) if loss.word == "clique_hinge" else cp.log_sum_exp(at))
    return factor / len(data.Y) * total
