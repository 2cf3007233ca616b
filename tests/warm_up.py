"""Small solves that compile the largest kernels before the first test, so that no test has their seconds in its own time.

They take some seconds in a fresh clone, and a tenth of a second where the kernels are on the disk.
"""

import numpy as np

import mtldsl as mtl
from mtldsl.metrics import AUC, FScore


def data():
    """Forty rows of three tasks."""
    rng = np.random.default_rng(0)
    return mtl.Tasks.shared(rng.normal(size=(40, 4)), np.where(rng.random((40, 3)) < 0.5, 1.0, -1.0))


def dual_ascent():
    """Passes over samples, for one kernel and for several."""
    tasks = data()
    W = mtl.Weights(tasks)
    norm = mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.individual()], p=2.0)
    mtl.minimize(mtl.hinge_loss(W, tasks) + norm).solve("dual_ascent")


def coordinate_descent():
    """Sweeps over rows of weights."""
    tasks = data()
    W = mtl.Weights(tasks)
    mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W)).solve("coordinate_descent", max_iter=2)


def label_graph():
    """Passes over samples, weight moved between their labellings: these enumerated, and found by elimination."""
    star = mtl.datasets.make_label_graph(5, 4, [(0, 1), (0, 2)], n_train=20, random_state=0)
    U, V = mtl.NodeWeights(star.train), mtl.EdgeWeights(star.train)
    loss = mtl.clique_hinge(U, V, star.train)
    for penalty in (mtl.half_squared_group_norm(V), mtl.ridge(V)):
        mtl.minimize(loss + mtl.ridge(U) + penalty).solve("clique_generation", max_iter=2)


def labellings():
    """Proximal steps on cached planes."""
    tasks = data()
    W = mtl.Weights(tasks)
    mtl.minimize(mtl.structured_hinge(W, tasks, FScore()) + mtl.ridge(W)).solve("admm.planes", max_iter=2)


def exact_steps():
    """Proximal steps of an F-score and of the AUC."""
    tasks = data()
    W = mtl.Weights(tasks)
    for metric in (FScore(), AUC()):
        mtl.minimize(mtl.structured_hinge(W, tasks, metric) + mtl.ridge(W)).solve("multipliers", max_iter=2)


#: what each of the two processes solves: about the same seconds
SHARES = [[dual_ascent, label_graph], [coordinate_descent, labellings, exact_steps]]


def warm_up(process: str):
    """Solve the share of one process, such as "gw0"."""
    for solve in SHARES[int(process.removeprefix("gw")) % len(SHARES)]:
        solve()
