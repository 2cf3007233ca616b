"""Sums over slabs of rows are the sums over the rows, whatever the layout, and whatever the size of a slab."""

import numpy as np
import pytest
from scipy import sparse

from mtldsl import Tasks
from mtldsl.atoms.losses.counts import PoissonLoss
from mtldsl.atoms.losses.logistic import LogisticLoss
from mtldsl.atoms.losses.margins import HingeLoss
from mtldsl.atoms.losses.squares import SquaredLoss
from mtldsl.compile.terms import row_slabs
from mtldsl.compile.terms.moments import gram_with_ones
from mtldsl.compile.terms.seen_sums import SeenSums
from mtldsl.tasks.distributed import Part

RNG = np.random.default_rng(4)
X = RNG.normal(size=(90, 4))
SIGNS = np.where(RNG.normal(size=(90, 3)) > 0, 1.0, -1.0)
HOLES = np.where(RNG.random(SIGNS.shape) < 0.4, np.nan, SIGNS)
HOLES[10:60, 1] = np.nan  # a task without samples in some slabs
WEIGHTS, IDS = RNG.random(90) + 0.5, RNG.permutation(np.repeat(list("abc"), [2, 58, 30]))
THIN = sparse.csr_array(X * (np.abs(X) > 0.5))
LAYOUTS = {
    "table": lambda Y: Tasks.shared(X, Y),
    "holes and weights": lambda Y: Tasks.shared(
        X, np.where(np.isnan(HOLES), np.nan, Y), sample_weights=WEIGHTS
    ),
    "sparse": lambda Y: Tasks.shared(THIN, np.where(np.isnan(HOLES), np.nan, Y)),
    "long": lambda Y: Tasks.grouped(X, Y[:, 0], IDS),
    "sparse long, weights": lambda Y: Tasks.grouped(THIN, Y[:, 0], IDS, sample_weights=WEIGHTS),
}
LABELS = {
    LogisticLoss: SIGNS,
    HingeLoss: SIGNS,
    SquaredLoss: SIGNS * 1.5,
    PoissonLoss: np.abs(np.round(2 * SIGNS + 1)),
}


@pytest.fixture(autouse=True)
def short_slabs(monkeypatch):
    monkeypatch.setattr(row_slabs, "_BYTES", 8 * 4 * 7)
    monkeypatch.setattr(row_slabs, "_SAMPLES", 11)
    monkeypatch.setattr(row_slabs, "_FEWEST", 7)


@pytest.mark.parametrize("by_sign", [False, True])
@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_those_of_all_rows(layout, loss, by_sign):
    tasks, atom = LAYOUTS[layout](LABELS[loss]), loss()
    m, which = (
        tasks.n_tasks + 2,
        np.arange(tasks.n_tasks) + 1,
    )  # a part without the first and the last of all tasks
    c, V, b = RNG.random(m) + 0.5, RNG.normal(size=(4, m)), RNG.normal(size=m)
    part = Part(tasks, which)
    sums = SeenSums(part, m, atom, c, by_sign)
    weights = RNG.random(tasks.n_samples) * (RNG.random(tasks.n_samples) < 0.7)
    multipliers = np.empty(tasks.n_samples)
    for slab in sums.rows.slabs(part.columns(V), b[which]):
        u = atom.gradient(slab.z, slab.y, slab.s)
        slab.put(multipliers, u)
        sums.rows.weigh(slab, slab.take(weights))
        sums.add(slab, u)
    seen = sums.seen()

    z = tasks.forward(V[:, which]) + np.repeat(b[which], tasks.counts)
    s = np.repeat(c[which], tasks.counts) * (1.0 if tasks.sample_weights is None else tasks.sample_weights)
    y, u, zero = tasks.targets, atom.gradient(z, tasks.targets, s), np.zeros(tasks.n_samples)
    np.testing.assert_allclose(multipliers, u, rtol=1e-12, atol=1e-14)
    sides = [u > 0.0, u <= 0.0] if by_sign else [np.ones(u.size, bool)]
    rows = [slice(a, e) for a, e in zip(tasks.offsets[:-1], tasks.offsets[1:], strict=True)]
    for k, side in enumerate(sides):
        np.testing.assert_allclose(
            seen["adjoint"][k][:, which], tasks.adjoint(np.where(side, u, 0.0)), atol=1e-11
        )
        for i, own in zip(which, rows, strict=True):
            some = np.flatnonzero(side[own]) + own.start
            expected = {
                "sums": u[some].sum(),
                "squares": u[some] @ u[some],
                "labels": np.abs(u[some]) @ np.abs(y[some]),
                "work": np.abs(u[some]) @ np.maximum(np.abs(z[some]), np.abs(y[some])),
                "conjugate": atom.conjugate(u[some], y[some], s[some]),
                "at_zero": atom.conjugate(zero[some], y[some], s[some]),
            }
            for name, value in expected.items():
                assert seen[name][k, i] == pytest.approx(value, rel=1e-11, abs=1e-12), name
    for i, own, inputs in zip(which, rows, tasks.inputs, strict=True):
        assert seen["value"][i] == pytest.approx(atom.value(z[own], y[own], s[own]), rel=1e-12)
        found = sums.rows.grams().get(
            int(i) - 1, np.zeros((5, 5))
        )  # nothing of a task whose weights are all zero
        np.testing.assert_allclose(found, gram_with_ones(inputs, weights[own]), atol=1e-12)
    assert not any(np.any(array[..., [0, m - 1]]) for array in seen.values())


@pytest.mark.parametrize("by_sign", [False, True])
def test_multipliers_outside_the_domain_have_an_infinite_conjugate(by_sign):
    sums = SeenSums(Part(Tasks.shared(X, SIGNS), np.arange(3)), 3, HingeLoss(), np.ones(3), by_sign)
    for slab in sums.rows.slabs(np.zeros((4, 3)), np.zeros(3)):
        sums.add(slab, -0.5 * slab.y)
    assert np.isfinite(sums.seen()["conjugate"]).all()
    for slab in sums.rows.slabs(np.zeros((4, 3)), np.zeros(3)):
        u = -0.5 * slab.y
        u[slab.starts[1]] = -2.0  # of the second task
        sums.add(slab, u)
    lost = np.isinf(sums.seen()["conjugate"])
    assert lost[-1].tolist() == [False, True, False] and lost.sum() == 1
