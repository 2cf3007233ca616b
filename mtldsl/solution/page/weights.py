"""What was learned of every feature: how much it counts, the weights as a map, and how the solve went."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.pictures.path import plot_path
from mtldsl.pictures.weights import plot_weights
from mtldsl.shown.page import Section
from mtldsl.shown.panel import Panel, Table, some_rows
from mtldsl.solution.page.facts import Facts
from mtldsl.tasks import Tasks

__all__ = ["convergence", "feature_sizes", "features", "path"]

#: Features in the map of weights: more names than this are not legible below each other on one page.
MAX_MAP_FEATURES = 30

#: What the picture shows, and a line below it.
_GAP = (
    "objective above the proven bound, and the proven gap, at every look; both fall",
    "The gap that is proven at a look is never smaller than the true distance to the optimum.",
)
_NO_GAP = (
    "objective above the lowest that was found, at every look; it falls",
    "No gap is proven for a model that is not convex; what is proven stands on top.",
)


def features(facts: Facts) -> Section | None:
    """The importance of feature j is sqrt(sum over tasks of (w_ij s_j)^2), s_j the spread of its column in the training rows, as a share of all."""
    solution = facts.solution
    W = solution.W
    if W.ndim != 2 or len(solution.feature_names) != len(W) or W.shape[1] != len(solution.task_names):
        return None
    if not W.any():
        return Section("What was learned", ["All weights are zero: no feature counts."])
    sizes, told = feature_sizes(solution, facts.training)
    shares = sizes / (sizes.sum() or 1.0)
    order = np.argsort(-sizes, kind="stable")[: int(np.count_nonzero(sizes))]
    strongest = np.argmax(np.abs(W), axis=1)
    rows = [
        (
            solution.feature_names[j],
            f"{100 * shares[j]:.1f} %",
            f"{solution.task_names[strongest[j]]} ({W[j, strongest[j]]:+.3g})",
        )
        for j in order.tolist()
    ]
    rows, notes = some_rows(rows, "features with weights")
    zero = len(W) - len(order)
    text = [
        f"{len(order):,} of {len(W):,} features have weights"
        + (f"; {zero:,} {'was' if zero == 1 else 'were'} set to zero." if zero else ".")
    ]
    text.append(f"Importance is {told}.")
    table = Table(("feature", "importance", "largest weight"), rows)
    in_picture = order[:MAX_MAP_FEATURES]
    drawn = facts.pictures((
        lambda: plot_weights(W[in_picture], [solution.feature_names[j] for j in in_picture], solution.task_names, order=None),
        "the weights of features (down) and tasks (across); red is above zero, blue below",
        "Features stand in the order of the table." if len(order) <= MAX_MAP_FEATURES else f"The {MAX_MAP_FEATURES} most important features, in the order of the table.",
    ))  # fmt: skip
    return Section("What was learned", text, [Panel("", tables=[table], notes=notes)], drawn)


def feature_sizes(solution: Any, tasks: Tasks | None) -> tuple[np.ndarray, str]:
    """Return ((d,) sqrt(sum over tasks of (w_ij s_j)^2), what that is): s_j is the spread of a column in the training rows, 1 where these are
    not known, or were scaled by the tasks themselves.
    """
    W, whole = (
        np.reshape(solution.W, (len(solution.W), -1)),
        "the norm of its weights over the tasks, as a share of all",
    )
    if tasks is None or solution.scaling is not None:
        return np.linalg.norm(W, axis=1), whole
    squares = tasks.column_lengths**2  # (d, m)
    n = tasks.counts
    means = np.stack([np.asarray(X.sum(axis=0)).ravel() for X in tasks.inputs], axis=1) / n
    spread = np.sqrt(np.maximum(squares / n - means**2, 0.0)).mean(axis=1)
    sizes = np.linalg.norm(W * spread[:, None], axis=1)
    return sizes, f"{whole}, every feature measured in its own standard deviations"


def convergence(facts: Facts) -> Section | None:
    """How the objective fell, and how far it was proven to be from the optimum."""
    solution = facts.solution
    proven = solution.stationarity is None
    # without a bound the lowest look has no place on the picture, and one point is not a course
    if len(solution.history) < (2 if proven else 4):
        return None
    drawn = facts.pictures((
        solution.plot_convergence,
        *(_GAP if proven else _NO_GAP),
    ))  # fmt: skip
    if not drawn:
        return None
    text = f"It took {solution.iterations:,} iterations and {solution._time_said}; the objective, what was minimised, ended at {solution.objective:.6g}."
    return Section("How the solve went", [text], figures=drawn)


def path(facts: Facts) -> Section | None:
    if len(facts.path) < 2:
        return None
    drawn = facts.pictures((
        lambda: plot_path(facts.path),
        "the norm of every feature's weights at every value of the parameter",
        "The further right, the more the regularizer counts." if _falls(facts.path) else "",
    ))  # fmt: skip
    return Section(f"The path of {len(facts.path)} solutions", figures=drawn) if drawn else None


def _falls(solutions) -> bool:
    name = next(n for n in solutions[0].parameters if len({s.parameters[n] for s in solutions}) > 1)
    ends = sorted(solutions, key=lambda s: s.parameters[name])
    return bool(np.linalg.norm(ends[0].W) > np.linalg.norm(ends[-1].W))
