"""What comes from outside, checked: the graph, and the scores on it; and when a labelling counts as proven."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.inference.cliques import LARGEST_CLIQUE, Cliques

__all__ = ["CERTIFIED", "check_cliques", "read_scores"]

#: An upper bound this close to a labelling's value, relative to 1 + |value|, is a proof that the labelling is the best.
CERTIFIED = 1e-9


def check_cliques(cliques: Cliques) -> None:
    """Raises ModelError unless there is a label, and every clique has 2 to 5 labels in ascending order."""
    K = cliques.n_labels
    if K < 1:
        raise ModelError(f"Cliques({K}) has no label to infer. Give at least one label.")
    for clique in cliques.members:
        ascending = all(i < j for i, j in pairwise(clique))
        if not (2 <= len(clique) <= LARGEST_CLIQUE and ascending and clique[0] >= 0 and clique[-1] < K):
            raise ModelError(
                f"The clique {tuple(clique)} cannot be used: write 2 to {LARGEST_CLIQUE} different labels out of 0..{K - 1} in "
                "ascending order."
            )


def read_scores(cliques: Cliques, scores) -> np.ndarray:
    """(n, S) contiguous float64. Raises ModelError on another shape and on NaN or infinite entries."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    S = cliques.n_entries
    if scores.ndim != 2 or scores.shape[1] != S:
        raise ModelError(
            f"scores of shape {scores.shape} do not fit: {cliques.n_labels} labels and {cliques.n_cliques} cliques have S = {S} "
            f"entries, so scores must be (n, {S}), one row an instance."
        )
    if not np.isfinite(scores).all():
        row, entry = np.argwhere(~np.isfinite(scores))[0]
        raise ModelError(
            f"scores[{row}, {entry}] is {scores[row, entry]}; scores must be finite. To forbid a setting, give it a large "
            "negative number."
        )
    return scores
