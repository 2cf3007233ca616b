"""Pictures in a panel of a slide: no two ticks are written over each other."""

from itertools import pairwise

import numpy as np
import pytest

import mtldsl as mtl

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 12))
TASKS = mtl.Tasks.shared(X, X @ RNG.normal(size=(12, 8)) + RNG.normal(size=(60, 8)))


def drawn(plt, draw):
    figure, (left, _) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    draw(left)
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in left.get_xticklabels(which="both") if label.get_text()]
    return sorted((box.x0, box.x1) for box in boxes)


@pytest.mark.slow
def test_ticks_stand_apart(plt):
    W, lam = mtl.Weights(TASKS), mtl.Parameter(20.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + lam * mtl.l21_norm(W))
    solution = problem.solve()
    path = list(problem.path(lam, problem.lambda_max(lam) * np.geomspace(1, 0.02, 6)))
    for draw in (
        lambda ax: mtl.report.plot_path(path, ax=ax),
        lambda ax: solution.plot_weights(ax=ax),
        lambda ax: solution.plot_scores(TASKS, ax=ax),
    ):
        places = drawn(plt, draw)
        assert len(places) >= 3
        assert all(a[1] + 2.0 < b[0] for a, b in pairwise(places)), places
