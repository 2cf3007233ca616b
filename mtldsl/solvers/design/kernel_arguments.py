"""Named tuples of what compiled loops take: rows, nodes, cliques, penalties and mixtures.

Callers hand over plain tuples, `tuple(rows)`, and a loop names them again, `SampleRows(*rows)`: numba looks at a plain tuple's types in a tenth
of a microsecond, at those of a named one in three, at every call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# ------------------------------------------------------------------------------------------------------ samples


class SampleRows(NamedTuple):
    """Rows of inputs: `dense` (n, d), or where that has no rows the CSR arrays. `of` (N,) the row of every sample; empty where that is
    its own number."""

    of: np.ndarray
    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class FeatureSupports(NamedTuple):
    """features[ends[t] : ends[t + 1]]: those that occur in the rows of task t."""

    ends: np.ndarray
    features: np.ndarray


class NodePlaces(NamedTuple):
    """Feature j belongs to cell cell_of[j], in place place[j]. Task t has the entries e from entry_of[t] to entry_of[t + 1]: of the node
    vector that begins at[e] in the store, in cell[e], times factor[e], of the kernel kernel[e]."""

    cell_of: np.ndarray
    place: np.ndarray
    entry_of: np.ndarray
    at: np.ndarray
    cell: np.ndarray
    factor: np.ndarray
    kernel: np.ndarray


class TaskStates(NamedTuple):
    """The samples of task t are index[offsets[t] : offsets[t + 1]], the first active[t] of them active; its intercept, how far that
    moves for a change of a multiplier, and its random sequence."""

    offsets: np.ndarray
    index: np.ndarray
    active: np.ndarray
    shift: np.ndarray
    intercepts: np.ndarray
    random: np.ndarray


# --------------------------------------------------------------------------------------------------- labellings


class LabelledRows(NamedTuple):
    """Inputs X (n, d), the squares of their lengths, the samples' weights, true labels truth (n, K), and the cost of a wrong label. Edges
    see the first `seen` features, of these lengths: not the constant that intercepts are of."""

    X: np.ndarray
    lengths: np.ndarray
    lengths_seen: np.ndarray
    seen: int
    weights: np.ndarray
    truth: np.ndarray
    costs: np.ndarray


class CliqueArrays(NamedTuple):
    """The entries of a label graph, as `mtldsl.atoms.inference.cliques` has them."""

    table: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray


class PenaltyScales(NamedTuple):
    """per_node, per_clique: how much the weights move for a unit of multiplier, 1 / coefficient; tau, r: of the norm of cliques."""

    per_node: float
    per_clique: float
    tau: float
    r: int


class LabelingWeights(NamedTuple):
    """Z (S, d): the weights of labels, and of cliques the multipliers over their coefficient plus tau times the centre; squares (q,): the
    squared norms of the latter; order (q,): cliques by falling norm."""

    Z: np.ndarray
    squares: np.ndarray
    order: np.ndarray


class LabelingMixtures(NamedTuple):
    """labels (n, slots, K), alpha (n, slots), counts (n,): the random labelling of every sample, slot 0 the true one."""

    labels: np.ndarray
    alpha: np.ndarray
    counts: np.ndarray


class InferencePlan(NamedTuple):
    """sought: the entries that inference sees, in the order of its plan; the decoder's code and plan, and room for it to work in. Where
    labellings cost as a whole: patterns (n,), the row of every sample in the table `dear` (T, 2^K) of their costs; else None."""

    sought: np.ndarray
    eliminates: Any
    enumerates: Any
    plan: np.ndarray
    work: np.ndarray
    iwork: Any
    patterns: Any = None
    dear: Any = None


class DualLine(NamedTuple):
    """The dual value along a step of a sample, from one labelling to another, inside a loop.

    n, groups, up, down : the first n of these arrays say which cliques choose another entry, which one, and which one before
    g, length           : how far a clique's weights move for a unit of the step; the square of the sample's length
    longest             : the longest step.  rise : where the derivative begins
    base, fall          : what nodes add to it is base, less fall for a unit of the step
    """

    n: int
    groups: np.ndarray
    up: np.ndarray
    down: np.ndarray
    g: Any
    length: Any
    longest: float
    rise: float
    base: float
    fall: float
