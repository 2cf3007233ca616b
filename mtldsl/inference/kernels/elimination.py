"""Bucket elimination: maximise one label after the other out of the sum, then read the choices backwards."""

from __future__ import annotations

from mtldsl.system.compiled import compiled

__all__ = ["eliminate"]


@compiled(inside=True, nogil=True, error_model="numpy")
def eliminate(scores, plan, work, label):
    """The best labelling, written into `label`; `work` holds the messages. Reads the plan of `plans.elimination_plan`.

    m(neighbours) = max over y_k in {0, 1} of the sum of the factors with k. Ties go to 0.
    """
    n_labels = plan[0]
    at = plan[3]
    for _ in range(n_labels):
        width, n_scores, n_messages, message = plan[at + 1], plan[at + 2], plan[at + 3], plan[at + 4]
        at += 5 + width
        if message < 0:  # no neighbour is left: nothing to tell anyone
            at += 2 * (n_scores + n_messages)
            continue
        for setting in range(1 << width):
            zero = 0.0
            one = 0.0
            for _ in range(n_scores):
                zero += scores[plan[at]]
                one += scores[plan[at + 1]]
                at += 2
            for _ in range(n_messages):
                zero += work[plan[at]]
                one += work[plan[at + 1]]
                at += 2
            work[message + setting] = one if one > zero else zero
    # Backwards: the neighbours of a label are eliminated after it, so theirs are known. Only one setting of each table is needed,
    # so its two sums are made again instead of keeping all choices.
    for t in range(n_labels):
        at = plan[len(plan) - 1 - t]
        width, n_scores, n_messages = plan[at + 1], plan[at + 2], plan[at + 3]
        setting = 0
        for place in range(width):
            setting = 2 * setting + label[plan[at + 5 + place]]
        read = at + 5 + width + setting * 2 * (n_scores + n_messages)
        zero = 0.0
        one = 0.0
        for _ in range(n_scores):
            zero += scores[plan[read]]
            one += scores[plan[read + 1]]
            read += 2
        for _ in range(n_messages):
            zero += work[plan[read]]
            one += work[plan[read + 1]]
            read += 2
        label[plan[at]] = 1 if one > zero else 0
