"""The structured hinge, from its definition: a maximum over labellings, task by task.

max over y' of Delta(y, y') - <y - y', z> is, with b negatives labelled +1 and c positives labelled -1, the maximum over
b and c of Delta(b, c) + 2 (sum of the c largest -z of positives) + 2 (sum of the b largest z of negatives). Stated so, it
has (Pos + 1)(Neg + 1) terms, which serves small tasks; for larger ones `planes.py` finds those that matter.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from mtldsl.compile.normal_form import LossTerm

from .metrics import delta_of, is_of_rankings
from .rankings import HIGHEST, MOST_ORDERS, orders_stated
from .registry import FORMULAS, formula, formula_of_loss

__all__ = ["LARGEST_STATED", "MOST_PAIRS_STATED", "is_stated", "metrics_of"]

#: Up to this many samples a task is stated in full.
LARGEST_STATED = 40

#: Likewise where it is of orders: its planes say which orders prove the bound, a statement does not.
LARGEST_IN_ORDERS = 12

#: Likewise up to this many pairs where the metric is one of rankings.
MOST_PAIRS_STATED = 10_000


def is_stated(metric, y) -> bool:
    """Whether the structured hinge of a task is small enough to be stated in full."""
    positives, negatives = int(np.sum(y > 0)), int(np.sum(y < 0))
    if is_of_rankings(metric) and metric.name in HIGHEST:
        return len(y) <= LARGEST_IN_ORDERS and orders_stated(metric, positives, negatives) <= MOST_ORDERS
    if is_of_rankings(metric):
        return positives * negatives <= MOST_PAIRS_STATED
    return len(y) <= LARGEST_STATED


def metrics_of(term: LossTerm) -> list:
    """The metric of every task; none where the loss has no metrics."""
    if not formula_of_loss(term).by_planes:
        return []
    return [term.atom.of_task(i).metric for i in range(term.tasks.n_tasks)]


@formula("structured_hinge", by_planes=True)
def structured_hinge(z, y, s, atom):
    """max over y' of Delta(y, y') - <y - y', z>"""
    metric = atom.metric
    if is_of_rankings(metric):
        return FORMULAS[metric.name](z, y, metric)
    positives, negatives = z[np.flatnonzero(y > 0)], z[np.flatnonzero(y < 0)]
    c, b = np.arange(positives.size + 1)[:, None], np.arange(negatives.size + 1)[None, :]
    delta = delta_of(metric, b, c, positives.size, negatives.size)
    row, column = np.nonzero(np.isfinite(delta))
    # every sum of the largest is written once and picked by the tables that contain it
    return cp.max(delta[row, column] + _sums(-positives)[row] + _sums(negatives)[column])


def _sums(x):
    """Twice the sum of the k largest entries of x, for k = 0, 1, ..., all (cvxpy's sum_largest stumbles over all)."""
    partial = [2.0 * cp.sum_largest(x, k) for k in range(1, x.size)]
    return cp.hstack([cp.Constant(0.0), *partial, 2.0 * cp.sum(x)])
