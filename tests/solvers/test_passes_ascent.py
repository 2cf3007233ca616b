"""Dual ascent inside parts that are brought to agree: the same optimum as with the rows here, with a proof."""

from dataclasses import replace
from itertools import cycle, pairwise, product

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.solvers.routes import get_solver
from mtldsl.utils import memory
from tests.loops import for_each
from tests.solvers.test_passes import stated, tables
from tests.solvers.test_passes_checkpoint import broken_off


def grouped(order: str, kind: str = "dense", m: int = 6, n: int = 180, d: int = 4):
    """(X, y, ids) of one long table, tasks one after the other or in turn."""
    rng = np.random.default_rng(5)
    truth = 0.5 * rng.normal(size=(m, d)) + rng.normal(size=d)
    X = rng.normal(size=(n, d)) + 0.2
    if kind == "sparse":
        X = X * (rng.random(X.shape) < 0.5)
    ids = np.arange(n) % m
    ids = np.sort(ids) if order == "sorted" else ids
    y = np.where((X * truth[ids]).sum(axis=1) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return (sparse.csr_array(X) if kind == "sparse" else X), y, ids


def cut(X, y, ids, parts: int = 4, **options):
    dask = pytest.importorskip("dask")
    ends = np.linspace(0, len(y), parts + 1).astype(int)
    rows = [(X[a:b], y[a:b], ids[a:b]) for a, b in pairwise(ends)]
    return mtl.datasets.from_parts([dask.delayed(one) for one in rows], keep=True, **options)


def both(order: str, **options):
    table = grouped(order, **options)
    return cut(*table), mtl.Tasks.grouped(*table)


RIDGE = "hinge_loss(W, tasks) + 2 * ridge(W)"
GRAPH = "hinge_loss(W, tasks) + ridge(W) + 3 * graph_laplacian(W, chain(tasks.n_tasks))"
MKL = ".3 * hinge_loss(W, tasks) + mkl_norm(W, [union(), individual()], p=2)"
F_SCORE = "structured_hinge(W, tasks, metric=FScore()) + .1 * l21_norm(W)"
PENALTIES = [
    GRAPH, "hinge_loss(W, tasks) + 3 * l21_norm(W)", "quantile_loss(W, tasks, q=.3) + l1_norm(W)",
    "hinge_loss(W, tasks) + 3 * trace_norm(W)", "hinge_loss(W, tasks) + l1_norm(W) + ridge(W)",
    "logistic_loss(W, tasks) + l21_norm(W)",
    "absolute_loss(W, tasks) + 2 * ridge(W)", MKL, "logistic_loss(W, tasks) + ridge(W)",
]  # fmt: skip


#: (words, (intercept, order of rows))
RUNS = list(zip(PENALTIES, cycle(product([False, True], ["sorted", "shuffled"]))))


@pytest.mark.slow
@pytest.mark.parametrize("words, how", RUNS)
def test_the_optimum_of_the_rows_here(words, how):
    (intercept, order), tol = how, 1e-4
    away, here = both(order)
    there = stated(away, words, intercept).solve(solver="consensus", tol=tol, max_iter=400)
    optimum = stated(here, words, intercept).solve(tol=1e-8).objective
    assert there.status == "optimal" and abs(there.gap) <= tol
    assert optimum * (1 - 1e-7) <= there.objective <= optimum * (1 + tol)
    for look in there.history:
        assert look["dual_bound"] <= optimum * (1 + 1e-7)


@pytest.mark.slow
@for_each("kind", ["sparse", "weights", "table", "missing", "views"])
def test_layouts(kind):
    words, layout = RIDGE, "grouped" if kind == "views" else kind
    here = mtl.Tasks.grouped(*grouped("sorted", kind)) if kind == "sparse" else tables(layout, "sign")
    if kind == "views":  # kernels on some features only
        words = "hinge_loss(W, tasks) + mkl_norm(W, [union(columns=[0, 1]), individual(), identity()], p=1.5)"
    away = DistributedTasks.cut(here, 3)
    optimum = stated(here, words).solve(tol=1e-8).objective
    # layouts differ in which rows are read: a wrong row is far more than 1e-3, and no pass goes into digits beyond it
    there = stated(away, words).solve(solver="consensus", tol=1e-3, max_iter=400)
    assert there.status == "optimal"
    assert optimum * (1 - 1e-7) <= there.objective <= optimum * (1 + 1e-3)


@pytest.mark.slow
def test_constraints_and_maps():
    away, here = both("sorted")
    for words, constraint in ((RIDGE, "W >= 0"), ("hinge_loss(W, tasks)", "W <= .2;W >= -.2")):
        there, known = (
            stated(one, words, True, constraint).solve(tol=1e-4, **options)
            for one, options in ((away, {"solver": "consensus"}), (here, {}))
        )
        assert there.status == "optimal" and there.violation <= 1e-4
        np.testing.assert_allclose(there.objective, known.objective, rtol=3e-4)


@pytest.mark.slow
@pytest.mark.parametrize("solver, words", [("consensus", MKL), ("planes_by_passes", F_SCORE)])
def test_bits_do_not_depend_on_workers(solver, words, two_workers):
    """The same parts here and on two workers: orders are seeded by the part and the pass. Other processes: test_spans.py, all solvers."""
    distributed = pytest.importorskip("distributed")
    table = grouped("shuffled", m=12, n=360, d=5)
    local = cut(*table)
    seen = [stated(local, words).solve(solver=solver, tol=1e-2, max_iter=5).W]
    with distributed.Client(two_workers):
        seen.append(stated(cut(*table), words).solve(solver=solver, tol=1e-2, max_iter=5).W)
    again = stated(cut(*table), words).solve(solver=solver, tol=1e-2, max_iter=5).W
    assert seen[0].tobytes() == seen[1].tobytes() == again.tobytes()


def test_refusals_say_why():
    away, here = both("sorted")
    consensus = get_solver("consensus")
    assert "here" in consensus.refuses(stated(here, RIDGE).form())
    exponential = stated(away, "exponential_loss(W, tasks) + ridge(W)")
    assert "neither quadratic" in consensus.refuses(exponential.form())
    two = stated(away, "hinge_loss(W, tasks) + logistic_loss(W, tasks)")
    assert "exactly one loss" in consensus.refuses(two.form())


@pytest.mark.slow
@for_each("words", [GRAPH, PENALTIES[1]])
def test_a_folder_goes_on_where_a_solve_was_broken_off(tmp_path, words):
    how = {"solver": "consensus", "tol": 1e-3, "max_iter": 400}
    first, second, third = (both("shuffled")[0] for _ in range(3))
    wanted = stated(first, words).solve(**how)
    most = wanted.iterations * 2 // 3
    broken_off(stated(second, words), second.parts, tmp_path / "run", most + 1, **how)
    found = stated(third, words).solve(checkpoint=tmp_path / "run", **how)
    assert found.status == "optimal" and abs(found.objective - wanted.objective) <= 2e-3 * wanted.objective
    assert found.iterations <= most


def test_hessians_that_do_not_fit_are_refused_by_name(monkeypatch):
    away, _ = both("shuffled")
    problem = stated(away, "hinge_loss(W, tasks) + 3 * l21_norm(W)")
    monkeypatch.setattr(memory, "SETTINGS", replace(memory.SETTINGS, unasked_bytes=0))
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    said = get_solver("newton_by_passes").refuses(problem.form())
    assert "6 tasks with 5 features" in said and "consensus" in said
    assert get_solver("consensus").refuses(problem.form()) is None
