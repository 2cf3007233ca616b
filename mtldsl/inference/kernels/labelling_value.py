"""The score of one labelling."""

from __future__ import annotations

from mtldsl.system.compiled import compiled

__all__ = ["labelling_value"]


@compiled(inside=True, nogil=True, error_model="numpy")
def labelling_value(scores, plan, label):
    """Sum of the entries that `label` chooses, the nodes' first: the same order for every method, so equal labellings have equal values."""
    total = 0.0
    for k in range(plan[0]):
        total += scores[2 * k + label[k]]
    at = plan[2]
    for _ in range(plan[1]):
        size, entry = plan[at], plan[at + 1]
        number = 0
        for place in range(size):
            number = 2 * number + label[plan[at + 2 + place]]
        total += scores[entry + number]
        at += size + 2
    return total
