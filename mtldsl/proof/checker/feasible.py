"""A point that misses constraints by rounding or tolerance, moved to where they hold: as a real point, of which an enclosure is known."""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.interval import Interval, maximum
from mtldsl.proof.checker.products import product
from mtldsl.proof.checker.sets import Ball, EqualTo

__all__ = ["made_feasible"]


def made_feasible(x, sets) -> tuple[dict, object]:
    """(the point, an upper bound of its largest violation). `sets` have a `part` with formulas and a `map`."""
    if not sets:
        return x, 0.0
    held = _held_exactly(x, sets)
    violations = [
        s.part.violation(s.map.forward(held[0])).high for k, s in enumerate(sets) if k not in held[1]
    ]
    before = [s.part.violation(s.map.forward(x)).high for s in sets]
    after = float(np.max(np.array(violations, dtype=float), initial=0.0))  # NaN where one is NaN
    worst = float(np.max(np.array(before, dtype=float)))
    return (held[0], after) if after < worst else (x, worst)


def _held_exactly(x, sets):
    """(a point near, the sets in which it is by construction)."""
    x, done = dict(x), set()
    names = {e["block"] for s in sets for e in s.map.entries}
    for name in names:
        own = [k for k, s in enumerate(sets) if {e["block"] for e in s.map.entries} == {name}]
        if any(name in {e["block"] for e in s.map.entries} and k not in own for k, s in enumerate(sets)):
            continue  # a constraint on several blocks at once
        W = x[name]
        plain = [k for k in own if _is_plain(sets[k].map)]
        equations = [k for k in own if isinstance(sets[k].part, EqualTo)]
        sums = [k for k in equations if _is_column_sum(sets[k].map)]
        above = [k for k in plain if getattr(sets[k].part, "side", 0.0) > 0 and sets[k].part.cone]
        balls = [k for k in plain if isinstance(sets[k].part, Ball)]
        if sums and set(own) == {*sums, *above} and len(sums) == 1:
            (k,) = sums
            target = sets[k].part.bound.reshape(-1) / sets[k].map.entries[0]["coefficient"]
            W = maximum(W, 0.0) if above else W
            totals = W.sum(axis=0)
            if above and (totals.low > 0).all() and (target.low > 0).all():
                x[name] = W * (target / totals).reshape(1, -1)
                done |= {*sums, *above}
            elif not above:
                x[name] = W + ((target - totals) / float(W.shape[0])).reshape(1, -1)
                done |= set(sums)
            continue
        others = [k for k in own if k not in plain]
        if others and all(k in equations and sets[k].part.cone for k in others) and len(others) == 1:
            projected = _onto_kernel(W, sets[others[0]].map)
            if projected is None:
                continue
            W = projected
            done |= set(others)
        elif others:
            continue
        boxes = [k for k in plain if k not in balls and hasattr(sets[k].part, "repaired")]
        if boxes and (others or (balls and not all(sets[k].part.shrinks for k in boxes))):
            done -= set(others)
            continue
        for k in [*boxes, *balls]:  # shrinking keeps boxes around 0, cones and equations of 0
            W = sets[k].part.repaired(W)
        x[name] = W
        # of several boxes or simplices the last repair may undo the first: they are looked at again
        done |= set(balls) | (set(boxes) if len(boxes) == 1 else set())
    return x, done


def _is_plain(map) -> bool:
    e = map.entries[0]
    return (
        len(map.entries) == 1
        and e["left"] is None
        and e["right"] is None
        and e["coefficient"] == 1.0
        and map.offset is None
    )


def _is_column_sum(map) -> bool:
    e = map.entries[0]
    if len(map.entries) > 1 or e["right"] is not None or e["left"] is None or map.offset is not None:
        return False
    left = e["left"].toarray() if hasattr(e["left"], "toarray") else np.asarray(e["left"])
    return left.shape[0] == 1 and bool((left == 1).all())


def _onto_kernel(W: Interval, map) -> Interval | None:
    """The nearest W with A W = 0, or W A = 0, for an A of full rank; its enclosure by a checked approximate inverse."""
    e = map.entries[0]
    if len(map.entries) > 1 or map.offset is not None or (e["left"] is None) == (e["right"] is None):
        return None
    A = e["left"] if e["left"] is not None else e["right"].T
    A = A.toarray() if hasattr(A, "toarray") else np.asarray(A, float)
    a, V = W.like(A), W if e["left"] is not None else W.T
    gram = product(a, a.T)
    try:
        R = np.linalg.inv(gram.middle)
    except np.linalg.LinAlgError:
        return None
    off = abs(product(W.like(R), gram) - np.eye(len(R))).sum(axis=1).max()
    if not off.high < 0.5:
        return None
    guess = product(W.like(R), product(a, V))
    slack = (abs(guess).max(axis=0) * (off / (1.0 - off))).high[None, :]
    y = Interval(guess.low - slack * 2, guess.high + slack * 2)
    found = V - product(a.T, y)
    return found if e["left"] is not None else found.T
