"""The log-partition of a label graph and its marginals, exactly."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.inference import plans
from mtldsl.inference.batch import in_parts
from mtldsl.inference.checks import check_cliques, read_scores
from mtldsl.inference.cliques import Cliques
from mtldsl.inference.decoder import MOST_LABELS_AUTOMATIC
from mtldsl.inference.elimination_order import min_fill

__all__ = ["LogPartition"]


class LogPartition:
    """log Z = log of the sum over y in {0, 1}^K of exp(score of y), and P(entry chosen) under p(y) = exp(score of y) / Z.

    The score of a labelling is the sum of the entries that it chooses (`Cliques`). By elimination with sums (min-fill order,
    2^treewidth), or from the table of all 2^K scores where that is cheaper (K <= 16). Both are exact up to rounding, and the
    marginals are the gradient of log Z in the scores.

    Attributes: method ("elimination" or "enumeration"), treewidth (of the min-fill order).
    Raises ModelError where neither is possible (treewidth above about 15), and for scores of another shape or not finite.
    Source: Koller and Friedman, Probabilistic Graphical Models, chapters 9 and 10.

    >>> pair = LogPartition(Cliques(2, ((0, 1),)))
    >>> log_z, marginals = pair(np.zeros((1, 8)))
    >>> np.allclose(np.exp(log_z), 4.0)  # four labellings, equally likely
    True
    >>> marginals
    array([[0.5 , 0.5 , 0.5 , 0.5 , 0.25, 0.25, 0.25, 0.25]])
    """

    def __init__(self, cliques: Cliques):
        check_cliques(cliques)
        self.cliques = cliques
        order, scopes = min_fill(cliques)
        K, gathers = cliques.n_labels, plans.elimination_gathers(cliques, order, scopes)
        self.treewidth = max(map(len, scopes))
        # an exponential costs about as much as ten entries read
        passes = 1.0 if cliques.sizes.max(initial=1) <= 2 else 1.0 + K / 10.0
        if K <= MOST_LABELS_AUTOMATIC and gathers > 2.0**K * passes:
            self.method, self._messages, self._work_size = "enumeration", 0, 2**K + max(K + K * K, 32)
            self._plan = plans.enumeration_plan(cliques)
            return
        if gathers > plans.MOST_GATHERS:
            raise ModelError(
                f"The exact log-partition of these {cliques.n_cliques} cliques over {K} labels needs tables of 2^{self.treewidth} "
                f"(treewidth, min-fill), which is too much. Give fewer edges (a tree has treewidth 1), or at most "
                f"{MOST_LABELS_AUTOMATIC} labels."
            )
        self.method = "elimination"
        self._plan, self._messages = plans.elimination_plan(cliques, order, scopes)
        self._work_size = max(1, 3 * self._messages)

    def __call__(self, scores, threads: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """(log Z (n,), marginals (n, S)) for scores (n, S)."""
        scores = read_scores(self.cliques, scores)
        from mtldsl.inference.kernels import each

        loop = each.sum_eliminate_each if self.method == "elimination" else each.sum_enumerate_each
        log_z, marginals = np.empty(len(scores)), np.empty(scores.shape)

        def add_up(rows: slice) -> None:
            work = np.empty(self._work_size)
            loop(scores[rows], self._plan, self._messages, work, log_z[rows], marginals[rows])

        in_parts(len(scores), threads, add_up, 10.0 * self._work_size)
        return log_z, marginals
