"""Squares of rows that are elsewhere, with columns and labels far from zero or of any size: what is claimed is true of the rows themselves."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.certificates.dual_bound import objective_scale
from mtldsl.distributed.distributed_tasks import DistributedTasks
from tests.loops import for_each
from tests.models import with_weights
from tests.pairs import pairwise_cases

L = np.longdouble
N = 600


RNG = np.random.default_rng(0)
A, U = RNG.normal(size=(N, 3)), RNG.uniform(0, 100, N)
LABELS = A @ [2.0, -1.0, 0.5] + 0.1 * RNG.normal(size=N)

#: name -> (X, y)
FAR = {
    "powers": (np.c_[A, U, U**2, U**3], LABELS),
    "customer numbers": (np.c_[A, RNG.integers(0, 10**7, N)], LABELS),
    "labels about 1e6": (A, LABELS + 1e6),
    "labels about 1e9": (A, LABELS + 1e9),
    "seconds since 1970": (np.c_[A, 1.6e9 + 1e7 * RNG.normal(size=N)], LABELS),
    "tiny": (1e-9 * A, 1e-9 * LABELS),
    "huge": (1e9 * A, 1e9 * LABELS),
    "tiny beside huge": (A * [1e-9, 1.0, 1e9], LABELS),
    "hardly any noise": (A, A @ [2.0, -1.0, 0.5] + 1e-7 * RNG.normal(size=N)),
    "columns almost alike": (np.c_[A, A[:, 0] + 1e-6 * A[:, 1]], LABELS),
    "all levels of a category": (np.c_[A, np.eye(4)[RNG.integers(0, 4, N)], np.ones(N)], LABELS + 1e4),
    "sorted by time": (np.c_[A, 1.6e9 + 60.0 * np.arange(N)], LABELS + 1e5 + np.arange(N)),
}


def residuals(X, y, w, b):
    """X w + b - y, each rounded once: in fractions, for products of 1e12 leave extended precision too few digits of what cancels."""
    w, b = [Fraction(float(each)) for each in w], Fraction(float(b))
    rows = zip(np.asarray(X, float).tolist(), np.asarray(y, float).tolist(), strict=True)
    return np.array(
        [
            float(sum((Fraction(x) * each for x, each in zip(row, w, strict=True)), b) - Fraction(t))
            for row, t in rows
        ]
    )


def objective(X, y, w, b, lam, loss="squared_loss", s=None):
    """The objective of one task with a ridge, of exact residuals."""
    r = L(residuals(X, y, w, b))
    squares = (r * r * (L(1.0) if s is None else L(s))).sum()
    value = {"squared_loss": squares / 2, "sum_of_squares": squares, "square_root_loss": np.sqrt(squares)}
    return value[loss] + L(lam) / 2 * (L(w) ** 2).sum()


def optimum(X, y, lam, intercept):
    """(w, b) of squares and a ridge, by an orthogonal factorisation of centred, scaled columns, refined in extended precision."""
    c, e = (L(X).mean(axis=0), L(y).mean()) if intercept else (L(0) * L(X[0]), L(0))
    Z, t = L(X) - c, L(y) - e
    size = np.abs(Z).max(axis=0)
    size[size == 0.0] = 1.0  # a constant column beside an intercept
    system = np.r_[Z / size, np.diag(np.sqrt(L(lam)) / size)].astype(L)
    t = np.r_[t, np.zeros(X.shape[1])]
    w = np.zeros(X.shape[1], L)
    for _ in range(6):
        w += np.linalg.lstsq(system.astype(float), (t - system @ w).astype(float), rcond=None)[0]
    w = w / size
    return w, e - c @ w


@pytest.mark.slow
@for_each("intercept", [True, False])
@for_each("name", FAR)
def test_bound_and_objective_enclose_the_optimum(name, intercept):
    X, y = FAR[name]
    lam = 0.1 * float(np.abs(X).max()) ** 2 * 1e-6 if name in ("tiny", "huge") else 0.1
    tasks, W = with_weights(DistributedTasks.cut(mtl.Tasks.shared(X, y[:, None]), 4), intercept=intercept)
    s = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W)).solve(max_iter=10_000)
    w, b = optimum(X, y, lam, intercept)
    best = objective(X, y, w, b, lam)
    there = objective(X, y, s.W[:, 0], s.intercept[0] if intercept else 0.0, lam)
    rounding = s.certificate.rounding
    assert abs(there - s.objective) <= rounding, (there, s)
    assert s.dual_bound <= best + rounding, (best, s)
    assert s.status == "optimal", (best, there, s)
    assert there <= best * (1 + 2e-6) + rounding and rounding <= 1e-6 * best


@for_each("offset", [2.0**k for k in (40, 46, 50, 53)])
def test_the_objective_is_that_of_the_intercepts_returned(offset):
    """Beside labels of 1e15 an intercept is a multiple of 1/8."""
    X, y = A, np.round(64 * LABELS) / 64 + offset
    tasks, W = with_weights(DistributedTasks.cut(mtl.Tasks.shared(X, y[:, None]), 3), intercept=True)
    s = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.ridge(W)).solve()
    truth = objective(X, y, s.W[:, 0], s.intercept[0], 0.1)
    assert abs(truth - s.objective) <= s.certificate.rounding
    best = objective(X, y - offset, *optimum(X, y - offset, 0.1, True), 0.1)
    assert s.dual_bound <= best
    assert (s.status == "optimal") == (offset == 2.0**40)
    assert s.status == "optimal" or "take their mean off the labels" in s.note


LOSSES = ["squared_loss", "sum_of_squares", "square_root_loss"]
PENALTIES = ["ridge", "l21_norm", "trace_norm"]
LAYOUTS = ["table", "missing", "weights", "separate", "sparse"]


def layout(kind, seed, N=200):
    """(tasks, [(X, y, weights) of each task]) with offsets of labels and columns drawn from 1 to 1e9."""
    rng = np.random.default_rng(seed)
    m, d = 3, 4
    size, offset = 10.0 ** rng.uniform(-3, 3, d), 10.0 ** rng.uniform(0, 9, d) * rng.choice([-1, 1], d)
    X = size * rng.normal(size=(N, d)) + offset
    signal = (X - offset) / size @ rng.normal(size=(d, m)) + 0.3 * rng.normal(size=(N, m))
    Y = signal + 10.0 ** rng.uniform(0, 8, m)
    s = rng.uniform(0.2, 3.0, size=(N, m))
    kept = rng.random((N, m)) < 0.8
    if kind in ("separate", "missing"):
        own = [(X[k], Y[k, i], None) for i, k in enumerate(kept.T)]
        separate = mtl.Tasks.separate([o[0] for o in own], [o[1] for o in own])
        return separate if kind == "separate" else mtl.Tasks.shared(X, np.where(kept, Y, np.nan)), own
    if kind == "weights":
        return mtl.Tasks.shared(X, Y, sample_weights=s), [(X, Y[:, i], s[:, i]) for i in range(m)]
    if kind == "sparse":
        X = X * (np.arange(d) < 2) + X * (rng.random(X.shape) < 0.5) * (np.arange(d) >= 2)
        return mtl.Tasks.shared(sparse.csr_array(X), Y), [(X, Y[:, i], None) for i in range(m)]
    return mtl.Tasks.shared(X, Y), [(X, Y[:, i], None) for i in range(m)]


def penalty_of(name, W):
    values = {
        "ridge": (L(W) ** 2).sum() / 2,
        "l1_norm": np.abs(L(W)).sum(),
        "l21_norm": np.sqrt((L(W) ** 2).sum(axis=1)).sum(),
        "trace_norm": L(np.linalg.svd(W, compute_uv=False).sum()),
    }
    return values[name]


@pytest.mark.slow
@for_each("loss, kind, penalty, intercept", pairwise_cases(LOSSES, LAYOUTS, PENALTIES, [True, False]))
def test_what_is_claimed_of_every_loss_penalty_and_layout(loss, kind, penalty, intercept):
    """The objective is that of the rows; and what is proven optimal here lies above no bound proven there, nor below it."""
    here, own = layout(kind, PENALTIES.index(penalty) + 10 * LAYOUTS.index(kind))
    mean = kind == "table" and loss != "square_root_loss"
    found = []
    cut, few = DistributedTasks.cut(here, 3), {"max_iter": 40}
    for tasks, limits in ((cut, {} if intercept else few), (here, few)):
        W = mtl.Weights(tasks, intercept=intercept)
        term = getattr(mtl, loss)(W, tasks, mean=True) if mean else getattr(mtl, loss)(W, tasks)
        found.append(mtl.minimize(term + 0.5 * getattr(mtl, penalty)(W)).solve(**limits))
    s, near = found
    b = s.intercept if intercept else np.zeros(3)
    parts = [
        objective(X, y, w, own_b, 0.0, loss, r) / (len(y) if mean else 1)
        for (X, y, r), w, own_b in zip(own, s.W.T, b, strict=True)
    ]
    truth = sum(parts) + L(0.5) * penalty_of(penalty, s.W)
    rounding = s.certificate.rounding
    assert abs(truth - s.objective) <= rounding + 1e-15 * abs(truth), (truth, s)
    assert s.dual_bound <= near.objective + near.certificate.rounding
    if s.status == "optimal":
        nothing = sum(
            objective(X, y, 0.0 * w, 0.0, 0.0, loss, r) / (len(y) if mean else 1)
            for (X, y, r), w in zip(own, s.W.T, strict=True)
        )
        assert rounding <= 1e-6 * nothing
        assert near.dual_bound - near.certificate.rounding <= s.objective + rounding
    if intercept:
        assert s.status == "optimal", s


def test_the_size_that_counts_as_zero_is_known_of_rows_elsewhere():
    """It is asked where an objective is far below that of zero weights; the labels themselves are not here."""
    tasks = DistributedTasks.cut(mtl.Tasks.shared(A, (LABELS + 1e9)[:, None]), 4)
    W = mtl.Weights(tasks, intercept=True)
    form = mtl.minimize(mtl.huber_loss(W, tasks) + 0.1 * mtl.ridge(W)).form()
    spread = np.abs(LABELS - LABELS.mean())
    assert objective_scale(form) == pytest.approx(
        1e-8 * np.where(spread < 1, spread**2 / 2, spread - 0.5).sum(), rel=1e-5
    )
