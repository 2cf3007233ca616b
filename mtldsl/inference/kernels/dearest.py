"""The best of all 2^K labellings where each has a cost of its own beside its score."""

from __future__ import annotations

from mtldsl.inference.kernels.enumeration import fill_tables
from mtldsl.inference.kernels.labelling_value import labelling_value
from mtldsl.inference.kernels.map_one import map_one
from mtldsl.system.compiled import compiled

__all__ = ["cost_of", "dearest", "dearest_each", "highest"]


@compiled(inside=True, nogil=True, error_model="numpy")
def dearest(scores, plan, work, costs, tilt, label):
    """The value, cost included, of the labelling with the largest score + tilt * cost, written into `label`; costs (2^K,) by number, label
    k in bit k. The plan is that of enumeration."""
    fill_tables(scores, plan, work)
    n_labels = plan[0]
    half = 1 << (n_labels - 1)
    total, change = work[:half], work[half : 2 * half]
    best, number = total[0] + tilt * costs[0], 0
    for r in range(half):
        value = total[r] + tilt * costs[r]
        if value > best:
            best, number = value, r
        value = total[r] + change[r] + tilt * costs[half + r]
        if value > best:
            best, number = value, half + r
    for k in range(n_labels):
        label[k] = (number >> k) & 1
    return labelling_value(scores, plan, label) + tilt * costs[number]


@compiled(inside=True, nogil=True, error_model="numpy")
def highest(eliminates, enumerates, scores, plan, work, iwork, patterns, dear, i, label):
    """(value, upper) of the best labelling of sample i: `map_one`, or with costs of whole labellings `dearest`. Where there are none,
    `patterns` and `dear` are None."""
    if dear is None:
        return map_one(eliminates, enumerates, scores, plan, work, iwork, label)
    else:  # numba leaves out the branch that its types rule out
        value = dearest(scores, plan, work, dear[patterns[i]], 1.0, label)
        return value, value


@compiled(inside=True, nogil=True, error_model="numpy")
def cost_of(patterns, dear, i, label):
    """What a labelling of sample i costs as a whole; 0 where costs are those of labels, which stand in the scores."""
    if dear is None:
        return 0.0
    else:
        number = 0
        for k in range(label.size):
            if label[k] == 1:
                number += 1 << k
        return dear[patterns[i], number]


@compiled(nogil=True, error_model="numpy")
def dearest_each(scores, plan, work, patterns, dear, labels, values):
    """`dearest` on every row of `scores` (n, S)."""
    for i in range(len(scores)):
        values[i] = dearest(scores[i], plan, work, dear[patterns[i]], 1.0, labels[i])
