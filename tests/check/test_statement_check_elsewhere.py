"""Every solve of rows that are elsewhere is held to the statement as typed, over all of few rows, and over a part or more of many."""

from dataclasses import replace
from functools import partial
from itertools import cycle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.losses.classification import LogisticLoss
from mtldsl.distributed import distributed_check, dual_statistics
from mtldsl.distributed.distributed_check import PartsCheck, PartsCheckSettings
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import RowParts
from mtldsl.errors import LostClusterError
from mtldsl.normal_form.terms import row_compression, row_statistics
from tests.check import test_statement_check as faults
from tests.check.test_statement_check import tables
from tests.loops import for_each
from tests.pairs import pairwise_cases


@pytest.fixture(params=["all rows", "a part"])
def looked_at(request, monkeypatch):
    """Whether rows are few, or many."""
    if request.param == "a part":
        monkeypatch.setattr(distributed_check, "SETTINGS", PartsCheckSettings(whole_entries=0))
    return request.param


def rows(labels="real", kind="table", intercept=False, **size):
    tasks = DistributedTasks.cut(tables(labels, kind, **size), 5)
    return tasks, mtl.Weights(tasks, intercept=intercept)


def dask_rows(labels="real", n=120):
    """The same in threads of Dask."""
    array = pytest.importorskip("dask.array")
    here = tables(labels, n=n)
    tasks = mtl.Tasks.from_dask(
        array.from_array(here.X, chunks=(30, -1)), here.targets.reshape(here.n_tasks, -1).T
    )
    return tasks, mtl.Weights(tasks)


def sample_weights_forgotten(monkeypatch):
    """Workers count every sample once."""
    nothing = property(lambda slab: None, lambda slab, weights: None)
    monkeypatch.setattr(dual_statistics.Slab, "s", nothing, raising=False)


def sample_weights_forgotten_in_moments(monkeypatch):
    """Sums of squares, too."""
    spread = row_statistics._spread
    monkeypatch.setattr(row_statistics, "_spread", lambda slab: spread((slab[0], slab[1], None)))


def labels_halved_in_moments(monkeypatch):
    """Sums of products are of other labels."""
    spread = row_statistics._spread
    monkeypatch.setattr(row_statistics, "_spread", lambda slab: spread((slab[0], 0.5 * slab[1], slab[2])))


def rest_forgotten(monkeypatch):
    """What no weights explain is left out of few rows."""
    least, rows_of = row_compression.LabelFactor.least_squares, row_compression.LabelFactor.rows
    without = lambda one, centred: rows_of(replace(one, rest=0.0 * one.rest), centred)  # noqa: E731
    monkeypatch.setattr(row_compression.LabelFactor, "least_squares", lambda one, W: least(one, W) - one.rest)
    monkeypatch.setattr(row_compression.LabelFactor, "rows", without)


def totals_are_counts(monkeypatch):
    """A mean divides by the rows, not by their weights."""
    faults.totals_are_counts(monkeypatch, DistributedTasks)


def loss_times(monkeypatch):
    """The logistic loss is .9 times as large, with gradient, Hessian and conjugate."""
    for name in ("pointwise", "slope", "second_slope"):
        f = getattr(LogisticLoss, name)
        monkeypatch.setattr(LogisticLoss, name, lambda self, z, y, f=f: 0.9 * f(self, z, y))
    interval, conjugate = LogisticLoss.dual_interval, LogisticLoss.pointwise_conjugate
    shorter = lambda self, y: tuple(0.9 * one for one in interval(self, y))  # noqa: E731
    lower = lambda self, u, y: 0.9 * conjugate(self, u / 0.9, y)  # noqa: E731
    monkeypatch.setattr(LogisticLoss, "dual_interval", shorter)
    monkeypatch.setattr(LogisticLoss, "pointwise_conjugate", lower)


typed = partial(faults.typed, make=rows)
squares = typed(lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W), intercept=True)
logistic = typed(lambda W, t: mtl.logistic_loss(W, t) + mtl.l1_norm(W), labels="sign")
f_score = typed(lambda W, t: mtl.structured_hinge(W, t) + 0.05 * mtl.ridge(W), labels="sign")
weighted = typed(lambda W, t: mtl.logistic_loss(W, t) + mtl.ridge(W), labels="sign", kind="weights")
weighted_squares = typed(lambda W, t: mtl.squared_loss(W, t) + mtl.ridge(W), kind="weights")

#: (what is wrong, what is typed, what the error names)
SABOTAGES = [
    (faults.losses_times, logistic, "logistic_loss(W, tasks)"),
    (faults.losses_times, squares, "squared_loss(W, tasks)"),
    (faults.losses_times, typed(lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W), make=dask_rows), "squared_loss(W, tasks)"),
    (faults.losses_times, f_score, "structured_hinge(W, tasks)"),
    (faults.sign_of_a_product, typed(lambda W, t: mtl.logistic_loss(W, t) + mtl.l1_norm(W @ faults.B - 1.0) + 0.1 * mtl.ridge(W), labels="sign"),
     "l1_norm(W @ array(4, 2) - 1)"),
    (faults.sign_of_a_product, typed(lambda W, t: mtl.huber_loss(W @ np.eye(4), t) + 0.1 * mtl.ridge(W), labels="sign"),
     "huber_loss(W @ array(4, 4), tasks)"),
    (faults.sign_of_a_product, typed(lambda W, t: mtl.logistic_loss(W @ np.eye(4), t) + 1e4 * mtl.l1_norm(W), labels="sign"),
     "logistic_loss(W @ array(4, 4), tasks)"),
    (faults.mean_forgotten, typed(lambda W, t: mtl.logistic_loss(W, t, mean=True) + 0.1 * mtl.ridge(W), labels="sign", kind="missing"),
     "logistic_loss(W, tasks, mean=True)"),
    (totals_are_counts, typed(lambda W, t: mtl.squared_loss(W, t, mean=True) + 0.1 * mtl.ridge(W), kind="weights"),
     "squared_loss(W, tasks, mean=True)"),
    (faults.constraints_dropped, typed(lambda W, t: mtl.logistic_loss(W, t) + mtl.ridge(W), lambda W: [W >= 0.1], labels="sign"), "W >= 0.1"),
    (sample_weights_forgotten, weighted, "logistic_loss(W, tasks)"),
    (sample_weights_forgotten_in_moments, weighted_squares, "squared_loss(W, tasks)"),
    (labels_halved_in_moments, typed(lambda W, t: mtl.square_root_loss(W, t) + 0.1 * mtl.ridge(W)), "square_root_loss(W, tasks)"),
    (rest_forgotten, typed(lambda W, t: mtl.squared_loss(W, t) + mtl.l21_norm(W), intercept=True), "squared_loss(W, tasks)"),
    (faults.trace_norm_times, typed(lambda W, t: mtl.logistic_loss(W, t) + 2.0 * mtl.trace_norm(W), labels="sign"), "2 * trace_norm(W)"),
    (loss_times, typed(lambda W, t: mtl.logistic_loss(W, t) + 0.5 * mtl.ridge(W), labels="sign"), "logistic_loss(W, tasks)"),
    (faults.blind_oracle, f_score, "structured_hinge(W, tasks)"),
    (faults.weights_altered, logistic, ""),
    (faults.weights_altered, squares, ""),
    (faults.weights_of_predictions_altered, logistic, "logistic_loss(W, tasks)"),
]  # fmt: skip


@pytest.mark.slow
@for_each("sabotage, build, named", SABOTAGES)
def test_a_sabotage_does_not_come_out(monkeypatch, looked_at, sabotage, build, named):
    faults.does_not_come_out(monkeypatch, sabotage, build, named)


@pytest.mark.slow
@for_each("build", {build for _, build, _ in SABOTAGES})
def test_without_the_sabotage_nothing_is_said(build, looked_at):
    statement, constraints = build()
    assert mtl.minimize(statement, subject_to=constraints).solve().is_certified


LOSSES = {
    "squared_loss": "real", "sum_of_squares": "real", "square_root_loss": "real", "absolute_loss": "real", "huber_loss": "real",
    "quantile_loss": "real", "logistic_loss": "sign", "squared_hinge_loss": "sign", "hinge_loss": "sign", "exponential_loss": "sign",
    "structured_hinge": "sign",
}  # fmt: skip


LAYOUTS = ["table", "missing", "weights", "grouped", "sparse"]


#: every loss, layouts and numbers of rows in turn
CASES = list(zip(LOSSES, cycle(LAYOUTS), cycle(["a part", "all rows"]), strict=False))


@pytest.mark.by_default("structured_hinge-table-a part")
@pytest.mark.parametrize("word, kind, looked_at", CASES, indirect=["looked_at"])
def test_losses_and_layouts_are_what_was_typed(word, kind, looked_at):
    """Every solve is held to its statement wherever it ends, so that a loose tolerance will do; a CrossCheckError fails the test."""
    tasks, W = rows(LOSSES[word], kind, intercept=kind != "sparse", m=2)
    mean = {"mean": True} if kind in ("missing", "weights") and word != "square_root_loss" else {}
    objective = getattr(mtl, word)(W, tasks, **mean) + 0.5 * mtl.l21_norm(W) + 0.1 * mtl.ridge(W)
    assert mtl.minimize(objective).solve(tol=1e-4, max_iter=50).status in ("optimal", "iteration_limit")
    assert mtl.minimize(objective + 1e6 * mtl.l1_norm(W)).solve(tol=1e-4).W.any() == 0


@pytest.mark.by_default("squared_loss-0.0-1e-09-all rows")
@pytest.mark.parametrize(
    "word, shift, scale, looked_at",
    pairwise_cases(
        ["squared_loss", "square_root_loss", "huber_loss", "logistic_loss"],
        [0.0, 1e6, 1e9],
        [1e-9, 1.0, 1e9],
        ["all rows", "a part"],
    ),
    indirect=["looked_at"],
)
def test_units_and_offsets_are_no_faults(word, shift, scale, looked_at):
    """A CrossCheckError fails it, wherever some iterations end."""
    here = tables("sign" if word == "logistic_loss" else "real")
    Y = here.targets.reshape(4, -1).T
    X = here.X * np.array([scale, 1.0, 1.0 / scale, 1e3]) + shift * np.array([0.0, 1.0, 0.0, 0.0])
    tasks = DistributedTasks.cut(mtl.Tasks.shared(X, Y if word == "logistic_loss" else scale * Y + shift), 5)
    W = mtl.Weights(tasks, intercept=True)
    loss = mtl.huber_loss(W, tasks, delta=scale) if word == "huber_loss" else getattr(mtl, word)(W, tasks)
    problem = mtl.minimize(loss + 1e-3 * mtl.l21_norm(W) + 1e-6 * mtl.ridge(W))
    assert np.isfinite(problem.solve(max_iter=5).objective)


@pytest.mark.by_default("squared_loss")
@pytest.mark.parametrize("word", ["squared_loss", "logistic_loss"])
def test_a_twentieth_of_many_rows_is_looked_at(monkeypatch, word):
    """Sums of squares know their value anywhere; another loss needs a pass where its best point was not among its last."""
    monkeypatch.setattr(distributed_check, "SETTINGS", PartsCheckSettings(whole_entries=0))
    tasks = DistributedTasks.cut(tables(LOSSES[word], n=800), 40)
    W, seen, before = mtl.Weights(tasks, intercept=True), [], []
    run, look = RowParts.run, PartsCheck.value

    def counted(parts, function, *given, **named):
        seen.append((parts is tasks.parts, parts.n_parts))
        return run(parts, function, *given, **named)

    monkeypatch.setattr(RowParts, "run", counted)
    monkeypatch.setattr(PartsCheck, "value", lambda self: before.append(len(seen)) or look(self))
    assert mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.l21_norm(W)).solve().is_certified
    (began,) = before
    passes = seen[began:].count((True, 40))
    assert passes <= (word != "squared_loss")
    assert sorted(seen[began:]) == [(False, 2), (False, 2)] + passes * [(True, 40)]


@pytest.mark.slow
def test_a_twentieth_of_the_parts_is_looked_at_others_in_turn(monkeypatch):
    monkeypatch.setattr(distributed_check, "SETTINGS", PartsCheckSettings(whole_entries=0))
    tasks = DistributedTasks.cut(tables("sign", n=800), 40)
    W, chosen, some = mtl.Weights(tasks, intercept=True), [], RowParts.some
    monkeypatch.setattr(
        RowParts, "some", lambda self, which: chosen.append(tuple(which)) or some(self, which)
    )
    for _ in range(3):
        mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W)).solve()
    assert len(set(chosen)) == 3 and {len(which) for which in chosen} == {2}


@pytest.mark.slow
def test_parts_without_a_label_are_no_fault(looked_at):
    here = tables("sign", n=60)
    parts = RowParts([None, *DistributedTasks.cut(here, 2).parts.parts, None, None])
    tasks = DistributedTasks(
        parts, task_names=here.task_names, feature_names=here.feature_names, is_table=True
    )
    W = mtl.Weights(tasks)
    for word in ("logistic_loss", "squared_loss"):
        for _ in range(4):
            assert mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.l21_norm(W)).solve().is_certified


def test_a_cluster_lost_after_the_solve_keeps_the_solution(monkeypatch, caplog):
    def lost(self):
        raise LostClusterError("the cluster is gone")

    monkeypatch.setattr(PartsCheck, "value", lost)
    tasks, W = rows("sign")
    solution = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W)).solve()
    assert solution.is_certified and "the cluster is gone" in caplog.text


def test_an_interrupted_run_asks_workers_for_nothing_more(monkeypatch):
    tasks, W = rows("sign")
    monkeypatch.setattr(PartsCheck, "value", lambda self: pytest.fail("a pass"))
    faults.after_the_solve(lambda solution: setattr(solution, "status", "interrupted"))(monkeypatch)
    mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W)).solve()
