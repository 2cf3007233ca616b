"""Compiled passes of dual ascent over samples, and sums over nodes of task kernels."""

from __future__ import annotations

import math

import numpy as np

from mtldsl.solvers.design.kernel_arguments import FeatureSupports, NodePlaces, SampleRows, TaskStates
from mtldsl.utils.jit import compiled

# --------------------------------------------------------------------------------------------------------------
# Dual coordinate ascent over samples, task by task: sequential by nature, so compiled; imported when first used.
#
# While the samples of one task are visited, only its own weights w = -sum over nodes of (coefficient theta node) change, by multiples of
# rows x_i: one dot product and one addition of a row a step, however many kernels act. The nodes are brought up to date when the task is left.


@compiled(inside=True, nogil=True, error_model="numpy")
def _random(state, t):
    """xorshift64: the next state of the seeded sequence of task t, in place."""
    x = state[t]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[t] = x
    return x


@compiled(inside=True, nogil=True, error_model="numpy")
def _entropy_step(u, y, z, q, s):
    """argmax over v of -s H(-y v / s) + v z - q/2 (v - u)^2 by Newton's method, kept inside (0, s): the logistic loss."""
    a0 = -y * u
    low, high = 0.0, s
    a = min(max(a0, 1e-3 * s), (1.0 - 1e-3) * s)
    for _ in range(60):
        g = math.log(a / (s - a)) + y * z + q * (a - a0)
        if g > 0.0:
            high = a
        else:
            low = a
        step = g / (s / (a * (s - a)) + q)
        new = a - step
        if not (low < new < high):
            # towards an end the root may lie near no float but the end's neighbours: halve the distance to it
            new = (
                0.5 * (low + high) if low > 0.0 and high < s else (0.1 * a if g > 0.0 else s - 0.1 * (s - a))
            )
            if new <= low or new >= high:
                new = 0.5 * (low + high)
        if abs(new - a) <= 1e-15 * min(a, s - a) or new <= 1e-300:
            a = new
            break
        a = new
    return -y * a


@compiled(inside=True, nogil=True, error_model="numpy")
def _shuffle(index, first, n, random, t):
    for i in range(n - 1, 0, -1):
        # the upper half of the bits, scaled: a division would take longer than the rest
        other = int(((_random(random, t) >> np.uint64(32)) * np.uint64(i + 1)) >> np.uint64(32))
        index[first + i], index[first + other] = index[first + other], index[first + i]


@compiled(inside=True, nogil=True, error_model="numpy")
def _dot(w, dense, row):
    """Four sums side by side: each addition to one sum has to wait for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = w.size - w.size % 4
    for j in range(0, whole, 4):
        a += w[j] * dense[row, j]
        b += w[j + 1] * dense[row, j + 1]
        c += w[j + 2] * dense[row, j + 2]
        d += w[j + 3] * dense[row, j + 3]
    for j in range(whole, w.size):
        a += w[j] * dense[row, j]
    return (a + b) + (c + d)


@compiled(inside=True, nogil=True, error_model="numpy")
def _read_nodes(t, features, nodes, theta, store, n_cells, w):
    """w = -sum over the nodes of task t of factor * theta * node, on its features."""
    cell_of, place = nodes.cell_of, nodes.place
    for p in range(features.size):
        w[features[p]] = 0.0
    for e in range(nodes.entry_of[t], nodes.entry_of[t + 1]):
        f = -theta[nodes.kernel[e]] * nodes.factor[e]
        if f != 0.0:
            at, c = nodes.at[e], nodes.cell[e]
            for p in range(features.size):
                j = features[p]
                if n_cells == 1 or cell_of[j] == c:
                    w[j] += f * store[at + place[j]]


@compiled(inside=True, nogil=True, error_model="numpy")
def _add_to_nodes(t, features, nodes, store, n_cells, w):
    """store += factor * w for every node of task t, on its features."""
    cell_of, place = nodes.cell_of, nodes.place
    for e in range(nodes.entry_of[t], nodes.entry_of[t + 1]):
        f, at, c = nodes.factor[e], nodes.at[e], nodes.cell[e]
        for p in range(features.size):
            j = features[p]
            if n_cells == 1 or cell_of[j] == c:
                store[at + place[j]] += f * w[j]


@compiled(inside=True, nogil=True, error_model="numpy")
def _fill_scale(t, nodes, theta, scale):
    """By how much the weights of task t move with a multiplier, cell by cell."""
    for c in range(scale.size):
        scale[c] = 0.0
    for e in range(nodes.entry_of[t], nodes.entry_of[t + 1]):
        scale[nodes.cell[e]] += theta[nodes.kernel[e]] * (nodes.factor[e] * nodes.factor[e])
    for c in range(scale.size):
        scale[c] = max(scale[c], 1e-60)  # weights of zero leave no trace in w, and the change is read from w


@compiled(nogil=True, error_model="numpy")
def sweep(
    order,
    passes,
    wanted,
    tasks,
    rows,
    supports,
    nodes,
    samples,
    entropic,
    theta,
    store,
    bounds,
    told,
    shrinking,
):
    """Passes over the active samples of the tasks in `order`, of every task as many until its violation is `wanted` or less. Changes tasks,
    samples, store, bounds, told.

    tasks, rows, supports, nodes: `TaskStates`, `SampleRows`, `FeatureSupports`, `NodePlaces` as plain tuples.
    Multipliers u maximise -sum conj_i(u_i) - 1/2 sum_m theta_m b_m(u). A row of `samples`, together so that it is one look into memory:
    u, low, high, b, c, then the squared norm of x_i over every cell of features; conj(u) = b u + c u^2 / 2 on [low, high] or, where
    `entropic`, the entropy on 0 <= -y u <= s with y in place of b and s in place of c.
    bounds (T, 2): lowest and highest projected gradient of the task's last pass, infinite where of no use to shrinking.
    told (T, 5): by how much the dual value rose in the task's last pass, the samples visited there, how many passes it was, and the lowest
    and highest projected gradient.
    """
    tasks, rows = TaskStates(*tasks), SampleRows(*rows)
    supports, nodes = FeatureSupports(*supports), NodePlaces(*nodes)
    # read once, and loops over a row stay in place: arrays that are handed on in the loop are counted by reference at every turn
    index, active, shift, intercepts = tasks.index, tasks.active, tasks.shift, tasks.intercepts
    row_of, dense, data, indices, indptr = rows.of, rows.dense, rows.data, rows.indices, rows.indptr
    cell_of = nodes.cell_of
    n_cells, is_dense = samples.shape[1] - 5, dense.shape[0] > 0
    scale, w, old = np.empty(n_cells), np.empty(cell_of.size), np.empty(cell_of.size)
    for j in range(cell_of.size):
        w[j] = 0.0
    for place in range(order.size):  # an array's own iteration takes a quarter of a second to compile
        t = order[place]
        for k in range(told.shape[1]):
            told[t, k] = 0.0
        if active[t] == 0:
            bounds[t, 0], bounds[t, 1] = -np.inf, np.inf
            continue
        first = tasks.offsets[t]
        features = supports.features[supports.ends[t] : supports.ends[t + 1]]
        _fill_scale(t, nodes, theta, scale)
        _read_nodes(t, features, nodes, theta, store, n_cells, w)
        for p in range(features.size):
            old[p] = w[features[p]]
        n_active = active[t]
        for turn in range(passes):
            least, most, gain, k, visited = np.inf, -np.inf, 0.0, 0, n_active
            _shuffle(index, first, n_active, tasks.random, t)
            while k < n_active:
                i = index[first + k]
                row = row_of[i] if row_of.size > 0 else i
                z = intercepts[t]
                if is_dense:
                    z += _dot(w, dense, row)
                else:
                    for p in range(indptr[row], indptr[row + 1]):
                        z += w[indices[p]] * data[p]
                q = shift[t]
                for c in range(n_cells):
                    q += scale[c] * samples[i, 5 + c]
                before, low, high, linear, curvature = samples[i, 0], samples[i, 1], samples[i, 2], samples[i, 3], samples[i, 4]  # fmt: skip
                slope, curved = 0.0, 0.0
                if entropic:
                    new = _entropy_step(before, linear, z, q, curvature)
                    moved = abs(new - before) * q
                    most = max(most, moved)
                    least = min(least, 0.0)
                else:
                    slope = linear + curvature * before - z
                    projected = slope
                    if before <= low:
                        if shrinking and slope > bounds[t, 1]:
                            n_active -= 1
                            index[first + k], index[first + n_active] = index[first + n_active], i
                            continue
                        projected = min(slope, 0.0)
                    elif before >= high:
                        if shrinking and slope < bounds[t, 0]:
                            n_active -= 1
                            index[first + k], index[first + n_active] = index[first + n_active], i
                            continue
                        projected = max(slope, 0.0)
                    most, least = max(most, projected), min(least, projected)
                    curved = q + curvature
                    if projected == 0.0:
                        new = before
                    elif curved > 0.0:
                        new = min(max(before - slope / curved, low), high)
                    else:  # a row of zeros: the conjugate alone decides
                        new = low if slope > 0.0 else high
                        new = new if abs(new) < np.inf else before
                change = new - before
                if change != 0.0:
                    # of an entropy, at least what its quadratic part says
                    gain += (
                        0.5 * q * change * change if entropic else -change * (slope + 0.5 * curved * change)
                    )
                    samples[i, 0] = new
                    intercepts[t] -= shift[t] * change
                    if is_dense:
                        if n_cells == 1:
                            f = scale[0] * change
                            for j in range(w.size):
                                w[j] -= f * dense[row, j]
                        else:
                            for j in range(w.size):
                                w[j] -= scale[cell_of[j]] * change * dense[row, j]
                    elif n_cells == 1:
                        f = scale[0] * change
                        for p in range(indptr[row], indptr[row + 1]):
                            w[indices[p]] -= f * data[p]
                    else:
                        for p in range(indptr[row], indptr[row + 1]):
                            j = indices[p]
                            w[j] -= scale[cell_of[j]] * change * data[p]
                k += 1
            if most < least:  # all of them were left out
                least, most = 0.0, 0.0
            told[t, 0], told[t, 1], told[t, 2], told[t, 3], told[t, 4] = gain, visited, turn + 1, least, most
            bounds[t, 0] = least if least < 0.0 else -np.inf
            bounds[t, 1] = most if most > 0.0 else np.inf
            if most - least <= wanted or n_active == 0:
                break
        active[t] = n_active
        for p in range(features.size):
            j = features[p]
            w[j] = (old[p] - w[j]) / scale[cell_of[j]]
        _add_to_nodes(t, features, nodes, store, n_cells, w)


# --------------------------------------------------------------------------------------------------------------
# Products with the kernel matrix of a few samples, through the nodes; imported when first used.


@compiled(inside=True, nogil=True, error_model="numpy")
def _one_or_more(cell_of):
    """1 where there is one cell, else 2: an array's own maximum takes a quarter of a second to compile."""
    for j in range(cell_of.size):
        if cell_of[j] > 0:
            return 2
    return 1


@compiled(nogil=True, error_model="numpy")
def gather(v, offsets, rows, supports, nodes, w, store):
    """store += the node vectors of the samples (rows, task by task) with multipliers v.

    rows, supports, nodes: `SampleRows`, `FeatureSupports`, `NodePlaces` as plain tuples.
    """
    rows, supports, nodes = SampleRows(*rows), FeatureSupports(*supports), NodePlaces(*nodes)
    row_of, dense, data, indices, indptr = rows.of, rows.dense, rows.data, rows.indices, rows.indptr
    n_cells = _one_or_more(nodes.cell_of)
    for t in range(offsets.size - 1):
        features = supports.features[supports.ends[t] : supports.ends[t + 1]]
        if offsets[t] == offsets[t + 1]:
            continue
        for p in range(features.size):
            w[features[p]] = 0.0
        for i in range(offsets[t], offsets[t + 1]):
            row, f = row_of[i], v[i]
            if dense.shape[0] > 0:
                for j in range(w.size):
                    w[j] += f * dense[row, j]
            else:
                for p in range(indptr[row], indptr[row + 1]):
                    w[indices[p]] += f * data[p]
        _add_to_nodes(t, features, nodes, store, n_cells, w)


@compiled(nogil=True, error_model="numpy")
def dots(store, theta, offsets, rows, supports, nodes, w, z):
    """z_i = <x_i, w> with w as of `_read_nodes`, of the sample's task. Arguments as of `gather`."""
    rows, supports, nodes = SampleRows(*rows), FeatureSupports(*supports), NodePlaces(*nodes)
    row_of, dense, data, indices, indptr = rows.of, rows.dense, rows.data, rows.indices, rows.indptr
    n_cells = _one_or_more(nodes.cell_of)
    for t in range(offsets.size - 1):
        features = supports.features[supports.ends[t] : supports.ends[t + 1]]
        if offsets[t] == offsets[t + 1]:
            continue
        _read_nodes(t, features, nodes, theta, store, n_cells, w)
        for i in range(offsets[t], offsets[t + 1]):
            row, total = row_of[i], 0.0
            if dense.shape[0] > 0:
                for j in range(w.size):
                    total += w[j] * dense[row, j]
            else:
                for p in range(indptr[row], indptr[row + 1]):
                    total += w[indices[p]] * data[p]
            z[i] = total
