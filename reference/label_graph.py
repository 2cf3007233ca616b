"""Losses over a graph of labels, from their definitions: every one of the 2^K labellings is stated.

Label k has two scores, for 0 and for 1, and a clique (i, j, ...) one for each assignment of values to its labels, 00, 01, 10, 11
for an edge; a labelling y chooses one of each, Upsilon(y). The atom is read for the model's data only: the cliques' members and the
costs of wrong labels.

Labels may be missing. The loss of a row is then that of another, smaller graph: the labels that it observes, and the cliques of them alone.
It is stated so, for each set of missing labels apart: the labellings of that smaller graph, their costs and their scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.errors import ModelError
from mtldsl.normal_form.form import LossTerm

from .losses import weighted_sum
from .metrics import delta_of
from .registry import formula, formula_of_loss

#: The value of a label that is missing.
GAP = 2


@dataclass(frozen=True)
class LabelGraphReferenceSettings:
    """Sizes of sums over labellings. A maximum over more than is stated is given by planes, for which all labellings are looked at."""

    # most labels of a statement: 2^6 = 64 labellings a sample; each label doubles the problem
    stated_labels: int = 6
    stated_labellings: int = 100_000  # most labellings n 2^K of all samples of a statement
    plane_labels: int = 14  # most labels of planes
    plane_labellings: int = 4_000_000  # most labellings of all samples of planes


SETTINGS = LabelGraphReferenceSettings()


def labellings(n_labels: int) -> np.ndarray:
    """(2^K, K) every labelling, of 0 and 1."""
    return np.array(list(product((0, 1), repeat=n_labels)), dtype=int).reshape(-1, n_labels)


def choices(members, labels) -> sp.csr_array:
    """(number of labellings, S) of 0 and 1: Upsilon of labellings (., K) for cliques of these members, node scores first. A missing label
    chooses nothing, nor does a clique that holds one.
    """
    blocks = []
    for clique in [(k,) for k in range(labels.shape[1])] + list(members):
        for values in product((0, 1), repeat=len(clique)):
            blocks.append(np.all(labels[:, list(clique)] == values, axis=1))
    return sp.csr_array(np.array(blocks, dtype=float).T.reshape(len(labels), -1))


def true_labels(y, n_labels: int, members) -> np.ndarray:
    """(n, K) of 0, 1 and `GAP`, from the indicators of nodes: a label is missing where neither of its two is 1."""
    S = 2 * n_labels + sum(2 ** len(clique) for clique in members)
    zero, one = (np.asarray(y, float).reshape(S, -1)[value : 2 * n_labels : 2].T > 0.5 for value in (0, 1))
    return np.where(one, 1, np.where(zero, 0, GAP))


class _ObservedLabels(NamedTuple):
    """Rows with the same labels missing, and the graph of the others: its scores among all, (S', rows); Upsilon of all its labellings
    (2^K', S') and of the true ones (rows, S'); those labellings (2^K', K') and true ones (rows, K'); what costs there."""

    rows: np.ndarray
    scores: cp.Expression
    upsilon: sp.csr_array
    own: sp.csr_array
    every: np.ndarray
    truth: np.ndarray
    loss: object


def _graphs(z, y, atom):
    """Every `_ObservedLabels` of the rows that have a label."""
    K, members = atom.cliques.n_labels, atom.cliques.members
    truth = true_labels(y, K, members)
    starts = 2 * K + np.concatenate([[0], np.cumsum([2 ** len(clique) for clique in members])]).astype(int)
    scores = cp.reshape(z, (int(starts[-1]), len(truth)), order="C")
    missing, of = np.unique(truth == GAP, axis=0, return_inverse=True)
    for number, gaps in enumerate(missing):
        if gaps.all():
            continue
        seen, rows = np.flatnonzero(~gaps), np.flatnonzero(of.ravel() == number)
        kept, inside = inside_of(members, seen)
        entries = [np.ravel([2 * seen, 2 * seen + 1], order="F")]
        entries += [np.arange(starts[c], starts[c + 1]) for c in kept]
        own_scores = scores if len(rows) == len(truth) else scores[:, rows]
        own_scores = own_scores[np.concatenate(entries), :] if gaps.any() else own_scores
        every, own = labellings(len(seen)), truth[np.ix_(rows, seen)]
        yield _ObservedLabels(
            rows, own_scores, choices(inside, every), choices(inside, own), every, own,
            costs_inside(getattr(atom, "loss", None), seen),
        )  # fmt: skip


def inside_of(members, seen) -> tuple[list[int], list[tuple[int, ...]]]:
    """(the positions of the cliques of these labels alone, their members, counted among these labels).

    >>> inside_of([(0, 1), (0, 2), (1, 2)], [0, 2])
    ([1], [(0, 1)])
    """
    place = {int(label): number for number, label in enumerate(seen)}
    kept = [c for c, clique in enumerate(members) if all(k in place for k in clique)]
    return kept, [tuple(place[k] for k in members[c]) for c in kept]


def costs_inside(loss, seen):
    """Return what labellings of some labels alone cost: of costs of labels those of these, of tables those of cliques of these alone."""
    if loss is None or isinstance(loss, str) or hasattr(loss, "labellings"):
        return loss
    if isinstance(loss[0], tuple):
        kept, inside = inside_of([clique for clique, _ in loss], seen)
        # without a table nothing costs anything
        tables = tuple((clique, loss[c][1]) for c, clique in zip(kept, inside, strict=True))
        return tables or (0.0,) * len(seen)
    return tuple(loss[int(k)] for k in seen)


def task_losses(loss, every, truth) -> np.ndarray:
    """(number of labellings, n): Delta of labellings (., K) beside the true ones (n, K), by its definition.

    >>> task_losses("zero_one", labellings(2), np.array([[0, 1]])).ravel()
    array([1., 0., 1., 1.])
    """
    wrong = every[:, None, :] != np.asarray(truth, int)[None, :, :]
    if isinstance(loss, str) and loss == "zero_one":
        return wrong.any(axis=2).astype(float)
    if isinstance(loss, str):
        return wrong.sum(axis=2).astype(float)
    if hasattr(loss, "labellings"):
        return np.array([_of_metric(loss, every, row.astype(int)) for row in truth]).reshape(len(truth), -1).T
    if isinstance(loss[0], tuple):
        total = np.zeros(wrong.shape[:2])
        for clique, table in loss:
            every_value = product((0, 1), repeat=len(clique))
            places: dict[tuple[int, ...], int] = {values: number for number, values in enumerate(every_value)}
            chosen = [places[tuple(int(y[k]) for k in clique)] for y in every]
            right = [places[tuple(int(y[k]) for k in clique)] for y in truth]
            total += np.asarray(table, float)[np.ix_(right, chosen)].T
        return total
    return wrong @ np.array(loss, float)


def _of_metric(metric, every, row) -> np.ndarray:
    """A metric of a row, its labels as samples; the true labelling costs nothing."""
    false_positives = np.sum((every == 1) & (row == 0), axis=1)
    false_negatives = np.sum((every == 0) & (row == 1), axis=1)
    wrong = false_positives + false_negatives > 0
    costs = np.zeros(len(every))
    positives = int(row.sum())
    costs[wrong] = delta_of(
        metric, false_positives[wrong], false_negatives[wrong], positives, len(row) - positives
    )
    return costs


def _above_truth(z, y, s, atom, of_all):
    """The sum over samples of s_i times what `of_all` makes of an `_ObservedLabels`, less <scores_i, Upsilon(y_i)>."""
    total = cp.Constant(0.0)
    for of in _graphs(z, y, atom):
        own = cp.sum(cp.multiply(of.own.T.toarray(), of.scores), axis=0)
        total += weighted_sum(None if s is None else s[of.rows], of_all(of) - own)
    return total


@formula("clique_hinge", of_labellings=True)
def clique_hinge(z, y, s, atom):
    """sum over samples of s_i max over y of Delta(y, y_i) + <scores_i, Upsilon(y) - Upsilon(y_i)>"""

    def highest(of):
        return cp.max(task_losses(of.loss, of.every, of.truth) + cp.Constant(of.upsilon) @ of.scores, axis=0)

    return _above_truth(z, y, s, atom, highest)


@formula("pairwise_log_loss", of_labellings=True, exponential=True)
def pairwise_log_loss(z, y, s, atom):
    """sum over samples of s_i (log sum over y of exp <scores_i, Upsilon(y)> - <scores_i, Upsilon(y_i)>)"""
    return _above_truth(z, y, s, atom, lambda of: cp.log_sum_exp(cp.Constant(of.upsilon) @ of.scores, axis=0))


# --------------------------------------------------------------------------------------------- as terms of a model


def sample_weights(term: LossTerm) -> np.ndarray:
    """(n,) coefficient times weight of every sample; the S scores of a sample are tasks with the same of both."""
    n = int(term.tasks.counts[0])
    weights = term.tasks.sample_weights
    return float(term.coefficients[0]) * (np.ones(n) if weights is None else np.asarray(weights, float)[:n])


def _is_of_labellings(term: LossTerm) -> bool:
    return formula_of_loss(term).of_labellings


def labellings_size(term: LossTerm) -> int:
    """n 2^K S, the scores of all labellings; 0 for losses that are not of labellings."""
    if not _is_of_labellings(term):
        return 0
    return int(term.tasks.n_samples) * 2**term.atom.cliques.n_labels


def needs_planes(term: LossTerm) -> bool:
    """Tell whether a maximum over labellings is of more than can be stated, and is given by planes."""
    if not _is_of_labellings(term) or formula_of_loss(term).exponential:
        return False
    K, n = term.atom.cliques.n_labels, int(term.tasks.counts[0])
    return SETTINGS.stated_labels < K or n * 2**K > SETTINGS.stated_labellings


def refusal(term: LossTerm) -> str | None:
    """None where all labellings of a term can be stated or looked at, else one sentence that says what to do."""
    if not _is_of_labellings(term):
        return None
    K, n = term.atom.cliques.n_labels, int(term.tasks.counts[0])
    planes = not formula_of_loss(term).exponential
    does = "looks at" if planes else "states"
    most, largest = SETTINGS.stated_labels, SETTINGS.stated_labellings
    if planes:
        most, largest = SETTINGS.plane_labels, SETTINGS.plane_labellings
    if most < K:
        return (
            f"the reference {does} every labelling, and {K} labels have 2^{K}; it takes up to {most} labels: make the "
            f"model of some of them, such as tasks.select(range({most}))"
        )
    if n * 2**K > largest:
        return (
            f"the reference {does} every labelling of every sample, {n * 2**K:,} here; it takes up to {largest:,}: give fewer "
            f"samples, such as tasks.subsample({largest // 2**K})"
        )
    return None


def refuse(term: LossTerm) -> None:
    """ModelError where the labellings of a term are too many to be stated."""
    reason = refusal(term)
    if reason is not None:
        raise ModelError(f"{reason}", term=term.typed)
