"""The compiled loop of `mtldsl.atoms.planes.label_polytope`: the minimum-norm-point method, sample by sample."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.planes.simplex_kernel import minimize_on_simplex
from mtldsl.inference.kernels.dearest import cost_of, dearest
from mtldsl.inference.kernels.map_one import map_one
from mtldsl.inference.kernels.marginals import choose, keep_gaps
from mtldsl.system.compiled import compiled

__all__ = ["project_each"]

_MOST_ROUNDS = 10_000


@compiled(inside=True, nogil=True, error_model="numpy")
def _shared(a, b):
    """How many entries two labellings have in common: the inner product of what they choose."""
    count = 0
    for place in range(a.size):
        if a[place] == b[place]:
            count += 1
    return count


@compiled(inside=True, nogil=True, error_model="numpy")
def _seek(eliminates, enumerates, left, plan, work, iwork, patterns, dear, i, tilt, label):
    """The highest labelling along `left`, tilted by costs where there are some."""
    if dear is None:
        map_one(eliminates, enumerates, left, plan, work, iwork, label)
    else:
        dearest(left, plan, work, dear[patterns[i]], tilt, label)


@compiled(nogil=True)
def project_each(
    points,
    truth,
    table,
    sizes,
    starts,
    eliminates,
    enumerates,
    plan,
    work,
    iwork,
    slots,
    exact,
    found,
    patterns,
    dear,
    tilts,
    expected,
):
    """found[i] = the nearest point to points[i] among expected Upsilon(y) - Upsilon(truth[i]); `slots` vertices are kept at most. With costs
    of whole labellings, `dear`, the one that maximises tilts[i] * expected[i], the expected cost, minus half its squared distance."""
    n, S = points.shape
    E = truth.shape[1] + sizes.size
    label, left = np.empty(truth.shape[1], np.uint8), np.empty(S)
    entries = np.empty((slots, E), np.int64)
    heights, beta, paid = np.empty(slots), np.empty(slots), np.empty(slots)
    for i in range(n):
        choose(table, sizes, starts, truth[i], entries[0])
        beta[0], heights[0], paid[0], count, tilt = 1.0, 0.0, 0.0, 1, tilts[i]
        expected[i] = 0.0
        for s in range(S):
            found[i, s] = 0.0
        for _ in range(_MOST_ROUNDS):
            size, along = 0.0, 0.0
            for s in range(S):
                left[s] = points[i, s] - found[i, s]
                along += left[s] * found[i, s]
                size += abs(left[s]) * abs(found[i, s])
            size += tilt * expected[i]
            _seek(eliminates, enumerates, left, plan, work, iwork, patterns, dear, i, tilt, label)
            keep_gaps(truth[i], label)
            if count == slots:  # those without weight make room
                kept = 1
                for j in range(1, count):
                    if beta[j] > 0.0:
                        for e in range(E):
                            entries[kept, e] = entries[j, e]
                        beta[kept], heights[kept], paid[kept] = beta[j], heights[j], paid[j]
                        kept += 1
                if kept == count:
                    return False
                count = kept
            new = entries[count]
            choose(table, sizes, starts, label, new)
            paid[count] = cost_of(patterns, dear, i, label)
            rise, height = tilt * (paid[count] - expected[i]) - along, tilt * paid[count]
            for e in range(E):
                if new[e] != entries[0, e]:
                    rise += left[new[e]] - left[entries[0, e]]
                    size += abs(left[new[e]]) + abs(left[entries[0, e]])
                    height += points[i, new[e]] - points[i, entries[0, e]]
            known = False
            for j in range(count):
                known = known or _shared(new, entries[j]) == E
            if rise <= exact * size or known:
                break
            heights[count], beta[count] = height, 0.0
            count += 1
            gram = np.empty((count, count))
            for a in range(count):
                for b in range(a + 1):
                    gram[a, b] = _shared(entries[a], entries[b]) - _shared(entries[a], entries[0])
                    gram[a, b] += E - _shared(entries[b], entries[0])
                    gram[b, a] = gram[a, b]
            minimize_on_simplex(gram, heights[:count], beta[:count], 1e-15)
            for s in range(S):
                found[i, s] = 0.0
            expected[i] = 0.0
            for j in range(1, count):
                if beta[j] > 0.0:
                    expected[i] += beta[j] * paid[j]
                    for e in range(E):
                        found[i, entries[j, e]] += beta[j]
                        found[i, entries[0, e]] -= beta[j]
    return True
