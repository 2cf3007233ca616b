"""Every solve of rows that are elsewhere is held to the statement as typed, over all of few rows, and over a part or more of many."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.losses.logistic import LogisticLoss
from mtldsl.atoms.metrics import FScore
from mtldsl.atoms.regularizers import TraceNorm
from mtldsl.check.rows import CheckSettings, PartsCheck
from mtldsl.compile import from_tree
from mtldsl.compile.linear_map import LinearMap
from mtldsl.compile.terms import few_rows, moments, row_slabs
from mtldsl.errors import LostClusterError
from mtldsl.tasks import DistributedTasks
from mtldsl.tasks.distributed.parts import LocalParts
from tests.check.test_statement_check import _after_the_solve, _changed_loss, _negated
from tests.loops import for_each
from tests.pairs import pairwise_cases

B = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0], [0.5, 0.0]])


@pytest.fixture(params=["all rows", "a part"])
def looked_at(request, monkeypatch):
    """Whether rows are few, or many."""
    if request.param == "a part":
        monkeypatch.setattr(PartsCheck, "settings", CheckSettings(whole_entries=0))
    return request.param


def tables(labels="real", kind="table", n=120, d=4, m=4, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = X @ rng.normal(size=(d, m)) + 0.4 + 0.5 * rng.normal(size=(n, m))
    Y = np.where(Y > 0.0, 1.0, -1.0) if labels == "sign" else Y
    if kind == "missing":
        Y[rng.random(Y.shape) < 0.2] = np.nan
    weights = 0.5 + rng.random(n) if kind == "weights" else None
    if kind == "sparse":
        X = sparse.csr_array(X * (rng.random(X.shape) < 0.6))
    if kind == "grouped":
        return mtl.Tasks.grouped(X, Y[:, 0], rng.permutation(np.repeat(np.arange(m), n // m)))
    return mtl.Tasks.shared(X, Y, sample_weights=weights)


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


# --------------------------------------------------------------------------------------------------- the compile step


def losses_times(monkeypatch):
    """Every loss counts 1.3 times."""
    monkeypatch.setattr(
        from_tree,
        "_loss_term",
        _changed_loss(lambda loss: replace(loss, coefficients=1.3 * loss.coefficients)),
    )
    tasks, W = rows("sign")
    return mtl.logistic_loss(W, tasks) + mtl.l1_norm(W), [], "logistic_loss(W, tasks)"


def squares_times(monkeypatch):
    """The same of squares, which become few rows."""
    monkeypatch.setattr(
        from_tree,
        "_loss_term",
        _changed_loss(lambda loss: replace(loss, coefficients=1.3 * loss.coefficients)),
    )
    tasks, W = rows(intercept=True)
    return mtl.squared_loss(W, tasks) + mtl.l1_norm(W), [], "squared_loss(W, tasks)"


def squares_times_on_dask(monkeypatch):
    """The same on Dask."""
    monkeypatch.setattr(
        from_tree,
        "_loss_term",
        _changed_loss(lambda loss: replace(loss, coefficients=1.3 * loss.coefficients)),
    )
    tasks, W = dask_rows()
    return mtl.squared_loss(W, tasks) + mtl.l1_norm(W), [], "squared_loss(W, tasks)"


def structured_losses_times(monkeypatch):
    """The same of losses of whole tasks."""
    monkeypatch.setattr(
        from_tree,
        "_loss_term",
        _changed_loss(lambda loss: replace(loss, coefficients=1.3 * loss.coefficients)),
    )
    tasks, W = rows("sign")
    return mtl.structured_hinge(W, tasks) + 0.5 * mtl.ridge(W), [], "structured_hinge(W, tasks)"


def sign_of_a_product(monkeypatch):
    """W @ B becomes -W @ B in a penalty."""
    make = from_tree.linear_map

    def linear_map(argument):
        found = make(argument)
        return LinearMap(_negated(found.entries), found.shape, found.offset)

    monkeypatch.setattr(from_tree, "linear_map", linear_map)
    tasks, W = rows("sign")
    return (
        mtl.logistic_loss(W, tasks) + mtl.l1_norm(W @ B - 1.0) + 0.1 * mtl.ridge(W), [], "l1_norm(W @ array(4, 2) - 1)"
    )  # fmt: skip


def sign_of_a_product_in_a_loss(monkeypatch):
    """W @ B becomes -W @ B where predictions are made."""
    objective, _, _ = sign_of_a_product(monkeypatch)
    tasks, W = objective.terms[0].tasks, objective.terms[0].argument
    return (
        mtl.huber_loss(W @ np.eye(4), tasks) + 0.1 * mtl.ridge(W), [], "huber_loss(W @ array(4, 4), tasks)"
    )  # fmt: skip


def sign_of_weights_that_are_zero(monkeypatch):
    """The same where all weights are zero."""
    objective, _, _ = sign_of_a_product(monkeypatch)
    tasks, W = objective.terms[0].tasks, objective.terms[0].argument
    return (
        mtl.logistic_loss(W @ np.eye(4), tasks) + 1e4 * mtl.l1_norm(W), [], "logistic_loss(W @ array(4, 4), tasks)"
    )  # fmt: skip


def mean_forgotten(monkeypatch):
    """mean=True is a sum."""
    make = from_tree._loss_term
    monkeypatch.setattr(from_tree, "_loss_term", lambda term: make(replace(term, mean=False)))
    tasks, W = rows("sign", "missing")
    return (
        mtl.logistic_loss(W, tasks, mean=True) + 0.1 * mtl.ridge(W), [], "logistic_loss(W, tasks, mean=True)"
    )  # fmt: skip


def totals_are_counts(monkeypatch):
    """A mean divides by the rows, not by their weights."""
    monkeypatch.setattr(DistributedTasks, "totals", property(lambda tasks: tasks.counts))
    tasks, W = rows("real", "weights")
    return (
        mtl.squared_loss(W, tasks, mean=True) + 0.1 * mtl.ridge(W), [], "squared_loss(W, tasks, mean=True)"
    )  # fmt: skip


def constraints_dropped(monkeypatch):
    """Constraints are not in the normal form."""
    monkeypatch.setattr(from_tree, "on_weights", lambda constraints: [])
    tasks, W = rows("sign")
    return mtl.logistic_loss(W, tasks) + mtl.ridge(W), [W >= 0.1], "W >= 0.1"


# ------------------------------------------------------------------------------------------------- what workers do


def sample_weights_forgotten(monkeypatch):
    """Workers count every sample once."""
    nothing = property(lambda slab: None, lambda slab, weights: None)
    monkeypatch.setattr(row_slabs.Slab, "s", nothing, raising=False)
    tasks, W = rows("sign", "weights")
    return mtl.logistic_loss(W, tasks) + mtl.ridge(W), [], "logistic_loss(W, tasks)"


def sample_weights_forgotten_in_moments(monkeypatch):
    """Sums of squares, too."""
    spread = moments._spread
    monkeypatch.setattr(moments, "_spread", lambda slab: spread((slab[0], slab[1], None)))
    tasks, W = rows("real", "weights")
    return mtl.squared_loss(W, tasks) + mtl.ridge(W), [], "squared_loss(W, tasks)"


def labels_halved_in_moments(monkeypatch):
    """Sums of products are of other labels."""
    spread = moments._spread
    monkeypatch.setattr(moments, "_spread", lambda slab: spread((slab[0], 0.5 * slab[1], slab[2])))
    tasks, W = rows()
    return mtl.square_root_loss(W, tasks) + 0.1 * mtl.ridge(W), [], "square_root_loss(W, tasks)"


def rest_forgotten(monkeypatch):
    """What no weights explain is left out of few rows."""
    least = few_rows.Factor.least_squares
    monkeypatch.setattr(few_rows.Factor, "least_squares", lambda one, W: least(one, W) - one.rest)
    rows_of = few_rows.Factor.rows
    monkeypatch.setattr(
        few_rows.Factor, "rows", lambda one, centred: rows_of(replace(one, rest=0.0 * one.rest), centred)
    )
    tasks, W = rows(intercept=True)
    return mtl.squared_loss(W, tasks) + mtl.l21_norm(W), [], "squared_loss(W, tasks)"


# ------------------------------------------------------------------------------------------------------------- words


def trace_norm_times(monkeypatch):
    """The trace norm is 1.1 times as large, with its prox and its dual norm."""
    value, prox, gauge = TraceNorm.value, TraceNorm.prox, TraceNorm.dual_gauge
    monkeypatch.setattr(TraceNorm, "value", lambda self, W: 1.1 * value(self, W))
    monkeypatch.setattr(TraceNorm, "prox", lambda self, W, step: prox(self, W, 1.1 * step))
    monkeypatch.setattr(TraceNorm, "dual_gauge", lambda self, Z: gauge(self, Z) / 1.1)
    tasks, W = rows("sign")
    return mtl.logistic_loss(W, tasks) + 2.0 * mtl.trace_norm(W), [], "2 * trace_norm(W)"


def loss_times(monkeypatch):
    """The logistic loss is .9 times as large, with gradient, Hessian and conjugate."""
    for name in ("pointwise", "slope", "second_slope"):
        f = getattr(LogisticLoss, name)
        monkeypatch.setattr(LogisticLoss, name, lambda self, z, y, f=f: 0.9 * f(self, z, y))
    interval = LogisticLoss.dual_interval
    monkeypatch.setattr(
        LogisticLoss, "dual_interval", lambda self, y: tuple(0.9 * one for one in interval(self, y))
    )
    conjugate = LogisticLoss.pointwise_conjugate
    monkeypatch.setattr(
        LogisticLoss, "pointwise_conjugate", lambda self, u, y: 0.9 * conjugate(self, u / 0.9, y)
    )
    tasks, W = rows("sign")
    return mtl.logistic_loss(W, tasks) + 0.5 * mtl.ridge(W), [], "logistic_loss(W, tasks)"


def blind_oracle(monkeypatch):
    """The oracle of the F-score finds that the true labelling is the most violated one."""

    def nothing(self, ordered, batch, ends):
        return np.zeros(len(ends)), np.zeros((len(ends), 2), np.int64)

    monkeypatch.setattr(FScore, "_highest_tables", nothing)
    tasks, W = rows("sign")
    return mtl.structured_hinge(W, tasks) + 0.05 * mtl.ridge(W), [], "structured_hinge(W, tasks)"


# --------------------------------------------------------------------------------------------- what comes back is not it


def weights_altered(monkeypatch):
    """The weights are rounded on the way."""

    def change(solution):
        solution.blocks = {name: block.round(2) for name, block in solution.blocks.items()}

    _after_the_solve(monkeypatch, change)
    tasks, W = rows("sign")
    return mtl.logistic_loss(W, tasks) + mtl.l1_norm(W), [], None


def weights_of_squares_altered(monkeypatch):
    """The same where few rows stand for the data."""
    weights_altered(monkeypatch)
    tasks, W = rows(intercept=True)
    return mtl.squared_loss(W, tasks) + mtl.l1_norm(W), [], None


def weights_of_predictions_altered(monkeypatch):
    """`solution.W` is not the block W."""

    def change(solution):
        solution.coef = solution.coef[:, ::-1]

    _after_the_solve(monkeypatch, change)
    tasks, W = rows("sign")
    return mtl.logistic_loss(W, tasks) + mtl.l1_norm(W), [], "logistic_loss(W, tasks)"


SABOTAGES = [
    losses_times, squares_times, squares_times_on_dask, structured_losses_times, sign_of_a_product, sign_of_a_product_in_a_loss,
    sign_of_weights_that_are_zero, mean_forgotten, totals_are_counts, constraints_dropped, sample_weights_forgotten,
    sample_weights_forgotten_in_moments, labels_halved_in_moments, rest_forgotten, trace_norm_times, loss_times, blind_oracle,
    weights_altered, weights_of_squares_altered, weights_of_predictions_altered,
]  # fmt: skip


@pytest.mark.by_default("a part")
@for_each("sabotage", SABOTAGES)
def test_a_sabotage_does_not_come_out(monkeypatch, sabotage, looked_at):
    statement, constraints, named = sabotage(monkeypatch)
    with pytest.raises(mtl.CrossCheckError) as caught:
        mtl.minimize(statement, subject_to=constraints).solve()
    assert caught.value.solution is not None
    assert named is None or named in str(caught.value)


@pytest.mark.slow
@for_each("sabotage", SABOTAGES)
def test_without_the_sabotage_nothing_is_said(monkeypatch, sabotage):
    statement, constraints, _ = sabotage(monkeypatch)
    monkeypatch.undo()
    for settings in (CheckSettings(), CheckSettings(whole_entries=0)):
        monkeypatch.setattr(PartsCheck, "settings", settings)
        assert mtl.minimize(statement, subject_to=constraints).solve().is_certified


# ------------------------------------------------------------------------------------------------------ no false alarm


LOSSES = {
    "squared_loss": "real", "sum_of_squares": "real", "square_root_loss": "real", "absolute_loss": "real", "huber_loss": "real",
    "quantile_loss": "real", "logistic_loss": "sign", "squared_hinge_loss": "sign", "hinge_loss": "sign", "exponential_loss": "sign",
    "structured_hinge": "sign",
}  # fmt: skip


LAYOUTS = ["table", "missing", "weights", "grouped", "sparse"]


#: every loss with two layouts, of few rows and of many
CASES = [
    (word, LAYOUTS[(k + j) % len(LAYOUTS)], ["all rows", "a part"][(k + j) % 2])
    for k, word in enumerate(LOSSES)
    for j in range(2)
]


@pytest.mark.by_default("structured_hinge-table-all rows")
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


# ----------------------------------------------------------------------------------------------------------- the price


@pytest.mark.by_default("squared_loss")
@pytest.mark.parametrize("word", ["squared_loss", "logistic_loss"])
def test_a_twentieth_of_many_rows_is_looked_at(monkeypatch, word):
    monkeypatch.setattr(PartsCheck, "settings", CheckSettings(whole_entries=0))
    tasks = DistributedTasks.cut(tables(LOSSES[word], n=800), 40)
    W = mtl.Weights(tasks, intercept=True)
    seen, evaluated = [], []
    run = LocalParts.run

    def counted(parts, function, *given, **named):
        seen.append((parts is tasks.parts, parts.n_parts))
        return run(parts, function, *given, **named)

    monkeypatch.setattr(LocalParts, "run", counted)
    look = PartsCheck.value
    monkeypatch.setattr(PartsCheck, "value", lambda self: (evaluated.append(len(seen)), look(self))[1])
    assert mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.l21_norm(W)).solve().is_certified
    (before,) = evaluated
    assert seen[before:] == [(False, 2), (False, 2)]  # as typed, and as the normal form has it


@pytest.mark.slow
def test_other_parts_are_looked_at_another_time(monkeypatch):
    monkeypatch.setattr(PartsCheck, "settings", CheckSettings(whole_entries=0))
    tasks = DistributedTasks.cut(tables("sign", n=800), 40)
    W = mtl.Weights(tasks)
    chosen = []
    some = LocalParts.some
    monkeypatch.setattr(
        LocalParts, "some", lambda self, which: (chosen.append(tuple(which)), some(self, which))[1]
    )
    for _ in range(3):
        mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W)).solve()
    assert len(set(chosen)) == 3


@pytest.mark.slow
def test_parts_without_a_label_are_no_fault(looked_at):
    here = tables("sign", n=60)
    parts = LocalParts([None, *DistributedTasks.cut(here, 2).parts.parts, None, None])
    tasks = DistributedTasks(
        parts, task_names=here.task_names, feature_names=here.feature_names, is_table=True
    )
    W = mtl.Weights(tasks)
    for word in ("logistic_loss", "squared_loss"):
        for _ in range(4):
            assert mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.l21_norm(W)).solve().is_certified


def test_a_cluster_lost_after_the_solve_keeps_the_solution(monkeypatch, caplog):
    """A cluster that is lost after the solve takes no solution with it."""

    def lost(self):
        raise LostClusterError("the cluster is gone")

    monkeypatch.setattr(PartsCheck, "value", lost)
    tasks, W = rows("sign")
    solution = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W)).solve()
    assert solution.is_certified and "the cluster is gone" in caplog.text


def test_an_interrupted_run_asks_workers_for_nothing_more(monkeypatch):
    """A run that was interrupted asks the workers for nothing more."""
    tasks, W = rows("sign")
    monkeypatch.setattr(PartsCheck, "value", lambda self: pytest.fail("a pass"))
    _after_the_solve(monkeypatch, lambda solution: setattr(solution, "status", "interrupted"))
    mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W)).solve()


@pytest.mark.cluster
def test_two_processes_say_the_same(client_of_processes, looked_at):
    """A CrossCheckError fails it: three iterations are a point to be looked at."""
    array = pytest.importorskip("dask.array")
    for word in ("square_root_loss", "huber_loss", "structured_hinge"):
        here = tables(LOSSES[word])
        Y = here.targets.reshape(here.n_tasks, -1).T
        tasks = mtl.Tasks.from_dask(
            array.from_array(here.X, chunks=(30, -1)), array.from_array(Y, chunks=(30, -1))
        )
        W = mtl.Weights(tasks)
        mtl.minimize(getattr(mtl, word)(W, tasks) + mtl.ridge(W)).solve(tol=1e-2, max_iter=3)
