"""Bucket elimination with sums: the log-partition forwards, its derivatives (the marginals) backwards."""

from __future__ import annotations

import math

from mtldsl.system.compiled import compiled

__all__ = ["sum_eliminate"]


@compiled(inside=True, nogil=True, error_model="numpy")
def sum_eliminate(scores, plan, n_messages_in_all, work, marginals):
    """log Z; P(entry chosen) = d log Z / d score is written into `marginals` (S,). Reads the plan of `plans.elimination_plan`.

    With t_0, t_1 the sums of the factors with label k where it is 0 and 1: m(neighbours) = log(e^t_0 + e^t_1), of which the
    derivative is 1/(1 + e^(t_0 - t_1)) in t_1; backwards each factor's entries get it times the derivative in m.
    work holds, each as long as all messages: the messages, the shares of t_1, the derivatives in the messages.
    """
    n_labels = plan[0]
    share, slope = n_messages_in_all, 2 * n_messages_in_all
    for a in range(n_messages_in_all):
        work[slope + a] = 0.0
    for entry in range(len(marginals)):
        marginals[entry] = 0.0
    log_z = 0.0
    for t in range(n_labels):
        at = plan[len(plan) - n_labels + t]
        width, n_scores, n_messages, message = plan[at + 1], plan[at + 2], plan[at + 3], plan[at + 4]
        read = at + 5 + width
        for setting in range(1 << width):
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
            small = math.exp(-abs(one - zero))
            both = max(zero, one) + math.log(1.0 + small)  # absolute accuracy is what a sum of logs keeps
            part = (1.0 if one > zero else small) / (1.0 + small)
            if message >= 0:
                work[message + setting] = both
                work[share + message + setting] = part
            else:  # no neighbour: a component is finished, and the labels of its own table are the last of it
                log_z += both
                marginals[2 * plan[at] + 1] = part
    for t in range(n_labels - 1, -1, -1):
        at = plan[len(plan) - n_labels + t]
        width, n_scores, n_messages, message = plan[at + 1], plan[at + 2], plan[at + 3], plan[at + 4]
        read = at + 5 + width
        for setting in range(1 << width):
            if message >= 0:
                whole = work[slope + message + setting]
                one = whole * work[share + message + setting]
            else:
                whole = 1.0
                one = marginals[2 * plan[at] + 1]
                marginals[2 * plan[at] + 1] = 0.0
            zero = whole - one
            for _ in range(n_scores):
                marginals[plan[read]] += zero
                marginals[plan[read + 1]] += one
                read += 2
            for _ in range(n_messages):
                work[slope + plan[read]] += zero
                work[slope + plan[read + 1]] += one
                read += 2
    return log_z
