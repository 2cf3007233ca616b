"""What the compiled loops read: one array of integers for a graph and a method.

Every plan begins with four numbers: K, q, where the cliques are written, where the method's own part begins. A clique is written
as its size, its first entry, and its members.
"""

from __future__ import annotations

import numpy as np

from mtldsl.inference.cliques import Cliques

__all__ = [
    "MOST_GATHERS",
    "elimination_gathers",
    "elimination_plan",
    "enumeration_plan",
    "message_passing_plan",
]

HEADER = 4
#: Entries that one elimination may read: each is a number of the plan, so this many are 128 MB.
MOST_GATHERS = 2**24


def enumeration_plan(cliques: Cliques) -> np.ndarray:
    """Own part: the size of the largest clique."""
    return _plan(cliques, [int(cliques.sizes.max(initial=1))])


def message_passing_plan(cliques: Cliques) -> np.ndarray:
    """Own part: for label k from where to where its places stand (K + 1 numbers), then the places: clique, place in the clique,
    where the clique is written in the plan, where its messages begin."""
    written, messages, places = _clique_positions(cliques), 0, [[] for _ in range(cliques.n_labels)]
    for c, clique in enumerate(cliques.members):
        for place, k in enumerate(clique):
            places[k].append((c, place, written[c], messages))
        messages += len(clique)
    counts = np.concatenate([[0], np.cumsum([len(found) for found in places])])
    flat = [number for found in places for row in found for number in row]
    return _plan(cliques, np.concatenate([counts, np.array(flat, dtype=np.int64)]))


def elimination_plan(cliques: Cliques, order, scopes) -> tuple[np.ndarray, int]:
    """The plan of bucket elimination, and the entries of all its messages.

    Own part, for each label in the order: the label, the number w of neighbours left, the number of factors that are read from
    the scores, that of messages, where its own message begins (-1: none, w = 0), the w neighbours (the first is the highest
    bit); then for each of the 2^w settings of the neighbours, for each factor, its entry where the label is 0 and where it is 1.
    The last K numbers are where the parts begin, in the order of elimination: the way back reads them from the end.
    """
    step = {label: t for t, label in enumerate(order)}
    factors: list[list[tuple]] = [[] for _ in order]  # per step: (members, first entry, whether a message)
    for label in order:
        factors[step[label]].append(((label,), 2 * label, False))
    for clique, start in zip(cliques.members, cliques.starts, strict=False):
        factors[min(step[k] for k in clique)].append((clique, int(start), False))
    parts, messages = [], 0
    for t, (label, scope) in enumerate(zip(order, scopes, strict=True)):
        held = sorted(factors[t], key=lambda factor: factor[2])
        n_messages = sum(factor[2] for factor in held)
        parts.append(
            [label, len(scope), len(held) - n_messages, n_messages, messages if scope else -1, *scope]
        )
        parts.append(_entries(label, scope, held))
        if scope:
            factors[min(step[k] for k in scope)].append((tuple(scope), messages, True))
            messages += 2 ** len(scope)
    own = np.concatenate([np.asarray(part, dtype=np.int64).ravel() for part in parts])
    begins = np.cumsum(
        [0, *(len(head) + entries.size for head, entries in zip(parts[::2], parts[1::2], strict=True))]
    )[:-1]
    first = _clique_positions(cliques)[-1]
    return _plan(cliques, np.concatenate([own, first + begins])), messages


def elimination_gathers(cliques: Cliques, order, scopes) -> int:
    """Entries that one elimination reads: what it costs."""
    step = {label: t for t, label in enumerate(order)}
    held = np.ones(len(order), dtype=np.int64)
    for group in (*cliques.members, *(scope for scope in scopes if scope)):
        held[min(step[k] for k in group)] += 1
    return sum(int(n) * 2 ** (len(scope) + 1) for n, scope in zip(held, scopes, strict=True))


def _entries(label: int, scope, held) -> np.ndarray:
    """(2^w, factors, 2) the entry of each factor at each setting of the neighbours and of the label."""
    setting = np.arange(2 ** len(scope))
    value = {k: (setting >> (len(scope) - 1 - place)) & 1 for place, k in enumerate(scope)}
    entries = np.empty((len(setting), len(held), 2), dtype=np.int64)
    for f, (members, start, _) in enumerate(held):
        for own in (0, 1):
            number = np.zeros(len(setting), dtype=np.int64)
            for k in members:
                number = 2 * number + (own if k == label else value[k])
            entries[:, f, own] = start + number
    return entries


def _clique_positions(cliques: Cliques) -> list[int]:
    return (HEADER + np.concatenate([[0], np.cumsum(cliques.sizes + 2)])).astype(int).tolist()


def _plan(cliques: Cliques, own) -> np.ndarray:
    written = []
    for clique, start in zip(cliques.members, cliques.starts, strict=False):
        written += [len(clique), int(start), *clique]
    head = [cliques.n_labels, cliques.n_cliques, HEADER, HEADER + len(written)]
    return np.concatenate([np.array(head + written, dtype=np.int64), np.asarray(own, dtype=np.int64)])
