"""MAP inference: the labelling with the largest score, with a proof where there is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.inference import plans
from mtldsl.inference.batch import in_parts
from mtldsl.inference.checks import CERTIFIED, check_cliques, read_scores
from mtldsl.inference.cliques import Cliques
from mtldsl.inference.elimination_order import min_fill

__all__ = ["METHODS", "Decoded", "Decoder"]

#: The methods by name, with their code in the compiled loops.
METHODS = {"elimination": 0, "enumeration": 1, "mplp": 2}
#: Elimination makes tables of 2^width. Up to this width it is always chosen; wider graphs too if it reads no more entries than
#: this: measured, that takes about as long as MPLP does, and is exact.
WIDEST_AUTOMATIC, MOST_GATHERS_AUTOMATIC = 6, 80_000
#: Enumeration makes tables of 2^K.
MOST_LABELS, MOST_LABELS_AUTOMATIC = 24, 16
#: MPLP makes some hundred passes over the members of all cliques.
OPERATIONS_OF_MPLP = 3000


@dataclass(frozen=True)
class Decoded:
    """Labellings of n instances, their scores, and what is proven about them.

    labels (n, K) of 0 and 1 · values (n,) their scores · upper (n,) proven bounds: no labelling scores more (up to rounding) ·
    certified (n,) whether upper - values <= 1e-9 (1 + |values|): the labelling is a best one.
    """

    labels: np.ndarray
    values: np.ndarray
    upper: np.ndarray

    @property
    def certified(self) -> np.ndarray:
        return self.upper - self.values <= CERTIFIED * (1.0 + np.abs(self.values))


class Decoder:
    """argmax over y in {0, 1}^K of the sum of the entries of a score vector that y chooses (`Cliques`), for many vectors.

    method: "elimination" (exact, 2^treewidth), "enumeration" (exact, 2^K), "mplp" (any graph: a labelling, an upper bound, and a
    certificate where they meet), or "auto": up to 16 labels enumeration or elimination, whichever is cheaper; beyond, elimination up to
    treewidth 6 and wherever it is no slower than MPLP (about treewidth 10 at 20 labels), else MPLP. The costs of mistakes are added to
    the entries of the nodes by the caller (loss-augmented inference).

    Attributes: method (the one chosen), code, treewidth (of the min-fill order), is_exact; plan, work_size, iwork_size: what
    `kernels.map_one.map_one` needs.

    Raises ModelError: unknown method, too many labels or too large a treewidth for the method asked for, scores of another shape
    or not finite, a clique that is none.
    Source: CGM, section 3; Globerson and Jaakkola 2008 for MPLP.

    >>> decoder = Decoder(Cliques(2, ((0, 1),)))
    >>> found = decoder([[0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, -3.0]])  # each label likes to be 1, but not both
    >>> found.labels, found.values, found.certified
    (array([[0, 1]], dtype=uint8), array([1.]), array([ True]))
    """

    def __init__(self, cliques: Cliques, method: str = "auto"):
        if method != "auto" and method not in METHODS:
            raise ModelError(
                f"method={method!r} is unknown. Write one of: 'auto', {', '.join(map(repr, METHODS))}."
            )
        check_cliques(cliques)
        self.cliques = cliques
        order, scopes = min_fill(cliques)
        self.treewidth = max(map(len, scopes))
        self.method = _chosen(cliques, order, scopes) if method == "auto" else method
        self.code = METHODS[self.method]
        self.is_exact = self.method != "mplp"
        self.work_size, self.iwork_size = 1, 1
        self.operations = 1.0  # of one labelling, roughly
        if self.method == "elimination":
            if plans.elimination_gathers(cliques, order, scopes) > plans.MOST_GATHERS:
                raise ModelError(
                    f"method='elimination' makes tables of 2^{self.treewidth} on this graph (treewidth {self.treewidth}, min-fill), "
                    "which is too much. Write method='mplp', or give fewer edges."
                )
            self.plan, messages = plans.elimination_plan(cliques, order, scopes)
            self.work_size = max(1, messages)
            self.operations = plans.elimination_gathers(cliques, order, scopes)
        elif self.method == "enumeration":
            if cliques.n_labels > MOST_LABELS:
                raise ModelError(
                    f"method='enumeration' looks at 2^{cliques.n_labels} labellings; it takes at most {MOST_LABELS} labels. "
                    "Write method='auto' (elimination on sparse graphs, MPLP on dense ones)."
                )
            self.plan = plans.enumeration_plan(cliques)
            K = cliques.n_labels
            self.work_size = 2**K + max(K + K * K, 32)
            self.operations = 2.0 * 2**K
        else:
            self.plan = plans.message_passing_plan(cliques)
            self.work_size = 2 * cliques.n_labels + 15 + int(cliques.sizes.sum())
            self.iwork_size = cliques.n_cliques + 3 * cliques.n_labels
            self.operations = OPERATIONS_OF_MPLP * float(cliques.sizes.sum() + cliques.n_labels)

    @property
    def choice(self) -> tuple[bool | None, bool | None]:
        """The first two arguments of `kernels.map_one.map_one`: (True, None) for elimination, (None, True) for enumeration."""
        return True if self.code == 0 else None, True if self.code == 1 else None

    def scratch(self) -> tuple[np.ndarray, np.ndarray | None]:
        """(work, iwork) for one caller of `kernels.map_one.map_one`; iwork is None where the method is exact."""
        return np.empty(self.work_size), None if self.is_exact else np.empty(self.iwork_size, dtype=np.int64)

    def __call__(self, scores, threads: int = 2) -> Decoded:
        """The best labellings for scores (n, S). Equal scores: always the same labelling, whatever the batch and the threads."""
        scores = read_scores(self.cliques, scores)
        from mtldsl.inference.kernels import each

        loops = (each.eliminate_each, each.enumerate_each, each.pass_messages_each)
        n = len(scores)
        labels = np.zeros((n, self.cliques.n_labels), dtype=np.uint8)
        values, upper = np.empty(n), np.empty(n)

        def decode(rows: slice) -> None:
            work, iwork = self.scratch()
            loops[self.code](scores[rows], self.plan, work, iwork, labels[rows], values[rows], upper[rows])

        in_parts(n, threads, decode, self.operations)
        return Decoded(labels, values, upper)

    def with_costs(self, scores, rows, costs, threads: int = 2) -> Decoded:
        """The best labellings where labelling number r of instance i, label k in bit k, costs costs[rows[i], r] beside its score; by enumeration."""
        scores = read_scores(self.cliques, scores)
        from mtldsl.inference.kernels.dearest import dearest_each

        labels, values = np.zeros((len(scores), self.cliques.n_labels), dtype=np.uint8), np.empty(len(scores))

        def decode(part: slice) -> None:
            dearest_each(
                scores[part], self.plan, self.scratch()[0], rows[part], costs, labels[part], values[part]
            )

        in_parts(len(scores), threads, decode, self.operations)
        return Decoded(labels, values, values)


def _chosen(cliques: Cliques, order, scopes) -> str:
    """The cheapest exact method where one is cheap enough, else MPLP."""
    gathers = plans.elimination_gathers(cliques, order, scopes)
    if cliques.n_labels <= MOST_LABELS_AUTOMATIC:
        # an addition in a contiguous loop against a gather: measured, about 1 to 6
        passes = 2 if cliques.sizes.max(initial=1) <= 2 else cliques.n_labels / 2
        return "elimination" if gathers <= 2.0**cliques.n_labels * passes / 6.0 else "enumeration"
    narrow = max(map(len, scopes)) <= WIDEST_AUTOMATIC or gathers <= MOST_GATHERS_AUTOMATIC
    return "elimination" if narrow else "mplp"
