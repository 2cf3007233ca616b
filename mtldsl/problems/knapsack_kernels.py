"""Compiled loops over slopes in boxes: the highest sum whose total is given, in a few passes and without a sort."""

from __future__ import annotations

from mtldsl.utils.jit import compiled

__all__ = [
    "totals",
    "upwards",
]


@compiled("void(f8[::1], f8[::1], i8[::1], f8[:, ::1])", error_model="numpy")
def totals(low, width, starts, found):
    """found (m, 3): of every task the sum of low, the sum of the widths, and how many are not zero."""
    for i in range(starts.size - 1):
        lowest, total, count = 0.0, 0.0, 0
        for j in range(starts[i], starts[i + 1]):
            lowest += low[j]
            total += width[j]
            count += width[j] > 0.0
        found[i, 0], found[i, 1], found[i, 2] = lowest, total, count


@compiled(
    "void(f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[:, ::1], f8[::1], f8[::1], f8[::1])",
    error_model="numpy",
)
def upwards(z, low, width, starts, rooms, found, weights, u, most):
    """u between low and low + width that takes the room of every task, more where z is higher; and most[0], an upper bound of <u, z> over all of
    these, next to the largest.

    found : of `totals`; weights: scratch, as many places as it has bins
    """
    bins = weights.size
    for i in range(starts.size - 1):
        first, last, room, total = starts[i], starts[i + 1], rooms[i], found[i, 1]
        lowest, highest, mean, square = 1e308, -1e308, 0.0, 0.0
        for j in range(first, last):
            u[j] = low[j]
            most[0] += low[j] * z[j]
            if width[j] > 0.0:
                lowest, highest = min(lowest, z[j]), max(highest, z[j])
                mean += z[j]
                square += z[j] * z[j]
        if room <= 0.0 or total <= 0.0:
            continue
        mean /= found[i, 2]
        spread = max(square / found[i, 2] - mean * mean, 0.0) ** 0.5
        if highest <= lowest or spread == 0.0:
            most[0] += room * highest
            for j in range(first, last):
                u[j] += room / total * width[j]
            continue
        # the level above which the widths are the room: in which bin of three rounds, each of the bin before
        bottom, top, above, level = lowest, highest, 0.0, lowest
        for _ in range(3):
            if top <= bottom:
                break
            unit = bins / (top - bottom)
            weights[:] = 0.0
            for j in range(first, last):
                if bottom <= z[j] <= top:
                    weights[min(int((z[j] - bottom) * unit), bins - 1)] += width[j]
            k = bins - 1
            while k > 0 and above + weights[k] < room:
                above += weights[k]
                k -= 1
            bottom, top = bottom + k / unit, bottom + (k + 1) / unit
            level = bottom
        # the dual value of the knapsack: an upper bound at every level, at the best one the largest sum itself
        over = 0.0
        for j in range(first, last):
            over += width[j] * max(z[j] - level, 0.0)
        most[0] += room * level + over
        # shares that rise from 0 to 1 over one spread: Newton's steps to where they take the room
        start, taken = level - 0.5 * spread, 0.0
        for step in range(3):
            taken, rising = 0.0, 0.0
            for j in range(first, last):
                share = (z[j] - start) / spread
                taken += width[j] * min(max(share, 0.0), 1.0)
                rising += width[j] * (0.0 < share < 1.0)
            if step == 2 or rising == 0.0:
                break
            start += spread * (taken - room) / rising
        # what is left: all shares go to one end by the same part
        scale, more = 1.0, 0.0
        if taken > room:
            scale = room / taken
        elif taken < min(room, total):
            more = (min(room, total) - taken) / (total - taken)
            scale = 1.0 - more
        for j in range(first, last):
            share = min(max((z[j] - start) / spread, 0.0), 1.0)
            u[j] += width[j] * (scale * share + more)
