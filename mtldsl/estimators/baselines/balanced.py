"""Balanced k-means: clusters of as equal a size as there can be."""

from __future__ import annotations

import numpy as np

__all__ = ["balanced_clusters"]


def balanced_clusters(points, k: int, n_iter: int, random_state) -> list[np.ndarray]:
    """k parts of the rows of `points` (m, p), each of at most ceil(m / k), none empty; all rows apart where there are k or fewer.

    A row goes to its nearest centre; a cluster that is over-full sends away its farthest row, which goes to its nearest centre that it has
    not been sent from. Then centres are the clusters' means, so many rounds. The first
    centres are a row that random_state draws, and then each time the row that is farthest from those before.

    Source: Tsoumakas, Katakis and Vlahavas (2008), the algorithm "balanced k means".

    >>> points = np.array([[0.0], [0.1], [0.2], [5.0]])
    >>> balanced_clusters(points, 2, 5, np.random.RandomState(0))
    [array([0, 1]), array([2, 3])]
    """
    points = np.asarray(points, dtype=float)
    m = len(points)
    if m <= k:
        return [np.array([i]) for i in range(m)]
    first = [int(random_state.randint(m))]
    while len(first) < k:
        away = np.linalg.norm(points[:, None, :] - points[first][None, :, :], axis=2).min(axis=1)
        away[first] = -1.0
        first.append(int(np.argmax(away)))
    centres = points[first]
    room, parts = -(-m // k), []
    for _ in range(n_iter):
        before = parts
        parts = _assigned(points, centres, room)
        if len(before) == len(parts) and all(
            np.array_equal(a, b) for a, b in zip(before, parts, strict=True)
        ):
            break
        centres = np.stack(
            [
                points[each].mean(axis=0) if each.size else old
                for each, old in zip(parts, centres, strict=True)
            ]
        )
    return sorted((each for each in parts if each.size), key=lambda part: int(part[0]))


def _assigned(points, centres, room: int) -> list[np.ndarray]:
    """Which rows go to which centre, at most `room` to each."""
    distances = np.linalg.norm(points[:, None, :] - centres[None, :, :], axis=2)
    clusters: list[list[int]] = [[] for _ in centres]
    for i in range(len(points)):
        moving = i
        while True:
            nearest = int(np.argmin(distances[moving]))
            clusters[nearest].append(moving)
            if len(clusters[nearest]) <= room:
                break
            # the farthest, of equally far ones the last, is sent away for good
            moving = max(clusters[nearest], key=lambda row: (distances[row, nearest], row))
            clusters[nearest].remove(moving)
            distances[moving, nearest] = np.inf
    return [np.array(sorted(each), dtype=int) for each in clusters]
