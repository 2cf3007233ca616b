"""`LossTerm.magnitude` is at least the sums of absolute values that stand behind <u, y> and <u, z>."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.models import with_weights


def test_of_a_loss():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(15, 3))
    Y[rng.random(Y.shape) < 0.3] = np.nan
    tasks, W = with_weights(mtl.Tasks.shared(rng.normal(size=(15, 4)) * [1e6, 1, 1e-6, 1], Y), intercept=True)
    loss = mtl.minimize(mtl.squared_loss(W, tasks)).form().losses[0]
    for _ in range(20):
        x, u = (
            {"W": rng.normal(size=(4, 3)), "W.intercept": rng.normal(size=(1, 3))},
            rng.normal(size=tasks.n_samples),
        )
        sums = 0.0
        for i, (X, y, part) in enumerate(
            zip(tasks.inputs, tasks.per_task(tasks.targets), tasks.per_task(u), strict=True)
        ):
            z = np.abs(X) @ np.abs(x["W"][:, i]) + abs(x["W.intercept"][0, i])
            sums += float(np.abs(part) @ (z + np.abs(y)))
        assert sums <= loss.magnitude(u, x) <= 15 * sums


@pytest.mark.slow
def test_of_a_graph_of_labels():
    data = mtl.datasets.make_label_graph(n_train=60, random_state=0).train
    U, V = mtl.NodeWeights(data), mtl.EdgeWeights(data, edges="all")
    form = mtl.minimize(mtl.clique_hinge(U, V, data) + mtl.ridge(U) + mtl.half_squared_group_norm(V)).form()
    (loss,), rng = form.losses, np.random.default_rng(0)
    x = {block.name: rng.normal(size=block.shape) for block in form.blocks}
    u = loss.dual_at(x)
    table = np.abs(np.asarray(u)).reshape(loss.cliques.n_entries, -1).T
    sums = float(np.sum(table * (np.abs(data.X) @ np.abs(loss.map.forward(x)))))
    assert 0 < sums <= loss.magnitude(u, x)
