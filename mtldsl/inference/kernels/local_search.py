"""Better labellings by flipping one label at a time, with a short memory against going back (tabu search)."""

from __future__ import annotations

from mtldsl.system.compiled import compiled

__all__ = ["improve"]


@compiled(inside=True, nogil=True, error_model="numpy")
def improve(scores, plan, patience, scale, work, iwork, label):
    """Flips labels of `label` until `patience` flips in a row brought nothing new; leaves the best labelling met in `label`.

    Each step flips the label that gains most (or loses least) among those not flipped in the last 1 + K/4 steps, or any that
    leads to a new best. With `patience` 0 only gaining flips are made: iterated conditional modes, steepest first. `scale` is the
    largest score in size.

    Reads the plan of `plans.message_passing_plan`. work[K : 2K] holds what flipping each label gains; iwork holds the entry that
    each clique has now (q,), until which step a label waits (K,), the best labelling met (K,).
    """
    n_labels, n_cliques = plan[0], plan[1]
    gain, wait, best = n_labels, n_cliques, n_cliques + n_labels
    for k in range(n_labels):
        work[gain + k] = scores[2 * k + 1 - label[k]] - scores[2 * k + label[k]]
        iwork[wait + k] = 0
        iwork[best + k] = label[k]
    at = plan[2]
    for c in range(n_cliques):
        size, entry = plan[at], plan[at + 1]
        number = 0
        for place in range(size):
            number = 2 * number + label[plan[at + 2 + place]]
        iwork[c] = number
        for place in range(size):
            flipped = number ^ (1 << (size - 1 - place))
            work[gain + plan[at + 2 + place]] += scores[entry + flipped] - scores[entry + number]
        at += size + 2
    noise = 1e-13 * (
        1.0 + scale
    )  # gains are kept by additions: a flip there and back must not look like a new best
    now = 0.0  # against the labelling that came in
    record = 0.0
    since = 0
    for step in range(
        1, 100 * n_labels
    ):  # far more than it takes; an end even where rounding makes gains out of nothing
        chosen = -1
        for k in range(n_labels):
            allowed = iwork[wait + k] < step or now + work[gain + k] > record + noise
            if allowed and (chosen < 0 or work[gain + k] > work[gain + chosen]):
                chosen = k
        if chosen < 0 or (patience == 0 and work[gain + chosen] <= noise):
            break
        now += work[gain + chosen]
        _flip(scores, plan, chosen, work, iwork, label)
        iwork[wait + chosen] = step + 1 + n_labels // 4
        if now > record + noise:
            record = now
            since = 0
            for k in range(n_labels):
                iwork[best + k] = label[k]
        else:
            since += 1
            if since >= patience:
                break
    for k in range(n_labels):
        label[k] = iwork[best + k]


@compiled(inside=True, nogil=True, error_model="numpy")
def _flip(scores, plan, k, work, iwork, label):
    """Flips label k and brings the gains of all labels that share a clique with it up to date."""
    gain = plan[0]
    own = -work[gain + k]
    index = plan[3]
    first = index + plan[0] + 1
    for p in range(first + 4 * plan[index + k], first + 4 * plan[index + k + 1], 4):
        c, at = plan[p], plan[p + 2]
        size, entry = plan[at], plan[at + 1]
        old = iwork[c]
        new = old ^ (1 << (size - 1 - plan[p + 1]))
        iwork[c] = new
        base = scores[entry + old] - scores[entry + new]
        for place in range(size):
            bit = 1 << (size - 1 - place)
            work[gain + plan[at + 2 + place]] += (
                scores[entry + (new ^ bit)] - scores[entry + (old ^ bit)] + base
            )
    work[gain + k] = own
    label[k] = 1 - label[k]
