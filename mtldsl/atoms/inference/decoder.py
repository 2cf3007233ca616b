"""MAP inference over label graphs: the labelling with the largest score, with a proof where there is one; and the log-partition function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mtldsl.atoms.inference import cliques as plans
from mtldsl.atoms.inference.cliques import CERTIFIED_TOL, Cliques, check_cliques, min_fill, read_scores
from mtldsl.errors import ModelError
from mtldsl.utils.parallel import in_jobs, jobs, slabs

# --------------------------------------------------------------------------------------------------------------
# A batch cut into parts: one a thread, for compiled loops run without the interpreter's lock, and none so long that a signal waits.


@dataclass(frozen=True)
class DecoderSettings:
    """Limits of decoding: the choice of a method, and the parts of a batch.

    threaded_rows                : instances below which a second thread costs more than it brings
    call_operations              : operations in one call of compiled code, some tenths of a second: it hears no signal and no time limit
    automatic_width_labels       : width up to which elimination, with tables of 2^width, is always chosen
    automatic_entries            : entries that elimination of a wider graph may read: measured, about the time of MPLP, and exact
    enumeration_labels           : most labels K of an enumeration, with tables of 2^K
    automatic_enumeration_labels : the same where the method is chosen for the user
    mplp_member_operations       : operations of MPLP for a member of a clique: it makes some hundred passes
    slab_entries                 : numbers of a dense table that are filled at once
    """

    threaded_rows: int = 256
    call_operations: int = 200_000_000
    automatic_width_labels: int = 6
    automatic_entries: int = 80_000
    enumeration_labels: int = 24
    automatic_enumeration_labels: int = 16
    mplp_member_operations: int = 3000
    slab_entries: int = 1 << 22


SETTINGS = DecoderSettings()


def rows_at_once(operations: float) -> int:
    """Return how many instances of so many operations each one call of compiled code may take."""
    return max(1, int(SETTINGS.call_operations / max(operations, 1.0)))


def in_parts(n: int, threads: int, action: Callable[[slice], None], operations: float = 1.0) -> None:
    """Calls action(rows) on slices that cover 0..n-1, at most `threads` of them at the same time. operations: of one row."""
    threads = 1 if n < SETTINGS.threaded_rows else max(threads, 1)
    share = min(-(-n // threads), rows_at_once(operations))
    parts = slabs(n, share) if n else []
    with jobs(threads):
        in_jobs(lambda rows, _: action(rows), parts)


#: By name.
METHODS = ("elimination", "enumeration", "mplp")


@dataclass(frozen=True)
class DecodedLabelings:
    """Labellings of n instances, their scores, and what is proven about them.

    labels (n, K) of 0 and 1 · values (n,) their scores · upper (n,) proven bounds: no labelling scores more (up to rounding) ·
    certified (n,) whether upper - values <= 1e-9 (1 + |values|): the labelling is a best one.
    """

    labels: np.ndarray
    values: np.ndarray
    upper: np.ndarray

    @property
    def certified(self) -> np.ndarray:
        return self.upper - self.values <= CERTIFIED_TOL * (1.0 + np.abs(self.values))


class Decoder:
    """argmax over y in {0, 1}^K of the sum of the entries of a score vector that y chooses (`Cliques`), for many vectors.

    method: "elimination" (exact, 2^treewidth), "enumeration" (exact, 2^K), "mplp" (any graph: a labelling, an upper bound, and a
    certificate where they meet), or "auto": up to 16 labels enumeration or elimination, whichever is cheaper; beyond, elimination up to
    treewidth 6 and wherever it is no slower than MPLP (about treewidth 10 at 20 labels), else MPLP. The costs of mistakes are added to
    the entries of the nodes by the caller (loss-augmented inference).

    Attributes: method (the one chosen), code, treewidth (of the min-fill order), is_exact; plan, work_size, iwork_size: what
    `mtldsl.atoms.inference.map_kernels.map_one` needs.

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
        self.is_exact = self.method != "mplp"
        self.work_size, self.iwork_size = 1, 1
        self.operations = 1.0  # of one labelling, roughly
        if self.method == "elimination":
            if plans.elimination_gathers(cliques, order, scopes) > plans.SETTINGS.elimination_entries:
                raise ModelError(
                    f"method='elimination' makes tables of 2^{self.treewidth} on this graph (treewidth {self.treewidth}, min-fill), "
                    "which is too much. Write method='mplp', or give fewer edges."
                )
            self.plan, messages = plans.elimination_plan(cliques, order, scopes)
            self.work_size = max(1, messages)
            self.operations = plans.elimination_gathers(cliques, order, scopes)
        elif self.method == "enumeration":
            if cliques.n_labels > SETTINGS.enumeration_labels:
                raise ModelError(
                    f"method='enumeration' looks at 2^{cliques.n_labels} labellings; it takes at most {SETTINGS.enumeration_labels} labels. "
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
            self.operations = SETTINGS.mplp_member_operations * float(cliques.sizes.sum() + cliques.n_labels)

    @property
    def choice(self) -> tuple[bool | None, bool | None]:
        """The first two arguments of `mtldsl.atoms.inference.map_kernels.map_one`: (True, None) for elimination, (None, True) for enumeration."""
        return self.method == "elimination" or None, self.method == "enumeration" or None

    def scratch(self) -> tuple[np.ndarray, np.ndarray | None]:
        """(work, iwork) for one caller of `mtldsl.atoms.inference.map_kernels.map_one`; iwork is None where the method is exact."""
        return np.empty(self.work_size), None if self.is_exact else np.empty(self.iwork_size, dtype=np.int64)

    def __call__(self, scores, rows=None, costs=None, *, threads: int = 2) -> DecodedLabelings:
        """The best labellings for scores (n, S). Equal scores: always the same labelling, whatever the batch and the threads.

        costs : labelling number r of instance i, label k in bit k, costs costs[rows[i], r] beside its score; by enumeration.
        """
        from mtldsl.atoms.inference.map_kernels import highest_each

        scores = read_scores(self.cliques, scores)
        n = len(scores)
        labels = np.zeros((n, self.cliques.n_labels), dtype=np.uint8)
        values, upper = np.empty(n), np.empty(n)

        def decode(part: slice) -> None:
            highest_each(
                *self.choice, scores[part], self.plan, *self.scratch(), None if rows is None else rows[part], costs,
                labels[part], values[part], upper[part],
            )  # fmt: skip

        in_parts(n, threads, decode, self.operations)
        return DecodedLabelings(labels, values, upper)


def _chosen(cliques: Cliques, order, scopes) -> str:
    """The cheapest exact method where one is cheap enough, else MPLP."""
    gathers = plans.elimination_gathers(cliques, order, scopes)
    if cliques.n_labels <= SETTINGS.automatic_enumeration_labels:
        # an addition in a contiguous loop against a gather: measured, about 1 to 6
        passes = 2 if cliques.sizes.max(initial=1) <= 2 else cliques.n_labels / 2
        return "elimination" if gathers <= 2.0**cliques.n_labels * passes / 6.0 else "enumeration"
    narrow = max(map(len, scopes)) <= SETTINGS.automatic_width_labels or gathers <= SETTINGS.automatic_entries
    return "elimination" if narrow else "mplp"


# --------------------------------------------------------------------------------------------------------------
# The log-partition of a label graph and its marginals, exactly.


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
        if SETTINGS.automatic_enumeration_labels >= K and gathers > 2.0**K * passes:
            self.method, self._messages, self._work_size = "enumeration", None, 2**K + max(K + K * K, 32)
            self._plan = plans.enumeration_plan(cliques)
            return
        if gathers > plans.SETTINGS.elimination_entries:
            raise ModelError(
                f"The exact log-partition of these {cliques.n_cliques} cliques over {K} labels needs tables of 2^{self.treewidth} "
                f"(treewidth, min-fill), which is too much. Give fewer edges (a tree has treewidth 1), or at most "
                f"{SETTINGS.automatic_enumeration_labels} labels."
            )
        self.method = "elimination"
        self._plan, self._messages = plans.elimination_plan(cliques, order, scopes)
        self._work_size = max(1, 3 * self._messages)

    def __call__(self, scores, threads: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """(log Z (n,), marginals (n, S)) for scores (n, S)."""
        scores = read_scores(self.cliques, scores)
        from mtldsl.atoms.inference.sum_kernels import sum_each

        log_z, marginals = np.empty(len(scores)), np.empty(scores.shape)

        def add_up(rows: slice) -> None:
            work = np.empty(self._work_size)
            sum_each(scores[rows], self._plan, self._messages, work, log_z[rows], marginals[rows])

        in_parts(len(scores), threads, add_up, 10.0 * self._work_size)
        return log_z, marginals


# --------------------------------------------------------------------------------------------------------------
# The expected change of what is chosen: E[Upsilon(y)] - Upsilon(y_i) of random labellings, as a sparse table or times inputs.


def expected_changes(cliques: Cliques, truth, labels, weights, starts) -> sparse.csr_array:
    """(n, S): for sample i the sum over j in starts[i] ... starts[i + 1] - 1 of weights[j] (Upsilon(labels[j]) - Upsilon(truth[i])).

    truth (n, K) and labels (L, K) of 0 and 1, and of `GAP` where the truth is; weights (L,); starts (n + 1,). Only entries that some labelling changes are stored.

    >>> expected_changes(Cliques(1), [[1]], [[0]], [0.5], [0, 1]).toarray()
    array([[ 0.5, -0.5]])
    """
    tables = [sparse.csr_array(table) for _, table in _tables(cliques, truth, labels, weights, starts)]
    return sparse.vstack(tables, format="csr") if tables else sparse.csr_array((0, cliques.n_entries))


def changes_times(cliques: Cliques, truth, labels, weights, starts, X) -> np.ndarray:
    """(S, d): the transpose of `expected_changes` times X (n, d), without the table.

    >>> changes_times(Cliques(1), [[1]], [[0]], [0.5], [0, 1], np.array([[4.0, 2.0]]))
    array([[ 2.,  1.],
           [-2., -1.]])
    """
    total = np.zeros((cliques.n_entries, X.shape[1]))
    for part, table in _tables(cliques, truth, labels, weights, starts):
        total += (X[part].T @ table).T if sparse.issparse(X) else table.T @ X[part]
    return total


def _tables(cliques: Cliques, truth, labels, weights, starts) -> Iterator[tuple[slice, np.ndarray]]:
    """(which samples, their rows of the table, dense), some at a time."""
    from mtldsl.atoms.inference.sum_kernels import fill_changes

    truth, labels = (np.ascontiguousarray(values, dtype=np.uint8) for values in (truth, labels))
    weights, starts = np.ascontiguousarray(weights, dtype=float), np.ascontiguousarray(starts, dtype=np.int64)
    for part in slabs(len(truth), max(1, SETTINGS.slab_entries // max(cliques.n_entries, 1))):
        own = truth[part]
        table = np.zeros((len(own), cliques.n_entries))
        fill_changes(
            cliques.table, cliques.sizes, cliques.starts, *cliques.incidence, own, labels, weights,
            starts[part.start :][: len(own) + 1], table,
        )  # fmt: skip
        yield part, table
