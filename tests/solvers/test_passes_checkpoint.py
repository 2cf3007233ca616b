"""A solve of rows that are elsewhere in a folder: broken off anywhere, it goes on from there; other models and data are refused."""

import json

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import DataError, SolverError
from mtldsl.distributed.distributed_planes import PlanesByPasses
from mtldsl.distributed.distributed_solver import CheckpointFolder
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import RowParts
from tests.loops import for_each
from tests.models import with_weights

RNG = np.random.default_rng(3)
X = RNG.normal(size=(240, 6)) * np.linspace(0.3, 2.0, 6) + 0.5
Z = X @ RNG.normal(size=(6, 3)) + 0.3 + RNG.normal(size=(240, 3))
SIGNS = np.where(Z > 0.0, 1.0, -1.0)


def model(loss="hinge_loss", norm=3.0, labels=SIGNS, X=X, n_parts=4, intercept=True, sets=False):
    tasks, W = with_weights(DistributedTasks.cut(mtl.Tasks.shared(X, labels), n_parts), intercept=intercept)
    return mtl.minimize(
        getattr(mtl, loss)(W, tasks) + norm * mtl.l21_norm(W), subject_to=[W >= 0.0] if sets else []
    ), tasks.parts


class Broken(Exception):
    pass


def broken_off(problem, parts, folder, passes, **options):
    """A process that ends after so many passes: nothing of it is left but the folder."""
    run, count = parts.run, iter(range(passes))

    def some(*typed, **named):
        if next(count, None) is None:
            raise Broken
        return run(*typed, **named)

    parts.run = some
    with pytest.raises(Broken):
        problem.solve(checkpoint=folder, **options)


@pytest.mark.slow
@for_each(
    "solver, loss, after, sets",
    [
        ("majorization", "logistic_loss", 14, False),
        ("newton_by_passes", "logistic_loss", 7, True),
        ("newton_by_passes", "hinge_loss", 28, False),
        ("auto", "logistic_loss", 6, True),
    ],
)
def test_the_same_call_goes_on(tmp_path, solver, loss, after, sets):
    how = {"solver": solver, "tol": 1e-6}
    problem, parts = model(loss, sets=sets)
    wanted = problem.solve(**how)
    whole = parts.passes
    problem, parts = model(loss, sets=sets)
    broken_off(problem, parts, tmp_path / "run", after, **how)
    problem, parts = model(loss, sets=sets)
    before = parts.passes
    found = problem.solve(checkpoint=tmp_path / "run", **how)
    assert found.status == "optimal" and found.gap <= 1e-6
    assert abs(found.objective - wanted.objective) <= 2e-6 * wanted.objective
    assert parts.passes - before <= whole - after // 2
    problem, parts = model(loss, sets=sets)
    before = parts.passes
    again = problem.solve(checkpoint=tmp_path / "run", **how)
    # a look at guesses, and one where it ended
    assert again.status == "optimal" and parts.passes - before <= 4


def test_writing_changes_no_bit(tmp_path):
    without, written = (model("logistic_loss")[0].solve(**how) for how in ({}, {"checkpoint": str(tmp_path)}))
    assert without.W.tobytes() == written.W.tobytes() and without.gap == written.gap


@pytest.mark.slow
def test_other_models_and_data_are_refused(tmp_path):
    X_changed = X.copy()
    X_changed[17, 2] += 1e-12
    model()[0].solve(checkpoint=tmp_path, max_iter=3)
    for what, (other, _) in [
        ("model", model("logistic_loss")),
        ("data", model(X=X_changed)),
        ("data", model(n_parts=3)),
        ("numbers", model(intercept=False)),
    ]:
        with pytest.raises(SolverError, match=rf"checkpoint=.*it was written for another {what}"):
            other.solve(checkpoint=tmp_path)
    assert model()[0].solve(checkpoint=tmp_path).status == "optimal"


@pytest.mark.slow
def test_a_folder_is_what_is_asked_for(tmp_path):
    (tmp_path / "file").write_text("")
    for name, said in {
        "file": "File exists.*name a folder",
        "no/run": "No such file.*name a folder, in one that is there",
        "a\0": "cannot be made",
    }.items():
        with pytest.raises(SolverError, match=said):
            model()[0].solve(checkpoint=tmp_path / name)
    with pytest.raises(SolverError, match=r"a checkpoint is of one start"):
        model()[0].solve(checkpoint=tmp_path, starts=2)
    with pytest.raises(SolverError, match="options belong to one solver"):
        model()[0].solve(checkpoint=tmp_path, seed=1)
    problem = model()[0]
    with CheckpointFolder(tmp_path, problem.form()), pytest.raises(SolverError, match="another run is using"):
        problem.solve(checkpoint=tmp_path)
    assert model()[0].solve(checkpoint=None).status == "optimal"


@pytest.mark.slow
def test_what_is_damaged_is_said(tmp_path):
    model()[0].solve(checkpoint=tmp_path, max_iter=12)
    rows = list(tmp_path.glob("rows-*.npz"))
    assert len(rows) == 4
    rows[0].write_bytes(b"no")
    with pytest.warns(UserWarning, match="what was beside the rows is lost, and begins anew"):
        assert model()[0].solve(checkpoint=tmp_path).status == "optimal"
    with np.load(tmp_path / "solve.npz") as found:
        arrays = dict(found)
    assert (
        arrays["about"].dtype.kind == "U" and json.loads(str(arrays["about"]))["solver"] == "newton_by_passes"
    )
    for name, value in {"about": np.array("{"), "block:W": np.zeros((2, 2))}.items():
        np.savez(tmp_path / "solve.npz", **(arrays | {name: value}))
        with pytest.raises(SolverError, match=r"checkpoint=.*(is damaged|cannot be read).*delete it"):
            model()[0].solve(checkpoint=tmp_path)


@pytest.mark.slow
def test_rows_that_nobody_else_sees_are_dropped_in_words(tmp_path, monkeypatch):
    why = "partition 0: what is beside its rows was written where it is not seen here"

    def fails(*_):
        raise DataError(why)

    monkeypatch.setattr(RowParts, "write_states", fails)
    with pytest.warns(UserWarning, match=f"weights are written, but not what is beside the rows: {why}"):
        model()[0].solve(checkpoint=tmp_path, max_iter=20)
    assert not list(tmp_path.glob("rows-*"))
    with pytest.warns(UserWarning, match="not what is beside the rows"):
        assert model()[0].solve(checkpoint=tmp_path).status == "optimal"


def planes(norm=mtl.ridge, intercept=False):
    tasks, W = with_weights(DistributedTasks.cut(mtl.Tasks.shared(X, SIGNS), 4), intercept=intercept)
    hinge = mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore())
    return mtl.minimize(20.0 * hinge + norm(W)), tasks.parts


@pytest.mark.slow
@for_each("case", [(mtl.l21_norm, True), (mtl.trace_norm, False), (mtl.ridge, False)])
def test_planes_go_on(tmp_path, case):
    """As if nothing had happened: with the same bits as without the break, and without the looks that were made before it."""
    problem, parts = planes(*case)
    first = parts.passes
    wanted, whole = problem.solve(tol=1e-4), parts.passes - first
    problem, parts = planes(*case)
    assert np.array_equal(problem.solve(tol=1e-4, checkpoint=tmp_path / "other").W, wanted.W)
    problem, parts = planes(*case)
    broken_off(problem, parts, tmp_path, 2 * whole // 3, tol=1e-4)
    problem, parts = planes(*case)
    first = parts.passes
    found = problem.solve(tol=1e-4, checkpoint=tmp_path)
    assert found.solver == "planes_by_passes" and found.status == wanted.status == "optimal"
    assert np.array_equal(found.W, wanted.W) and found.dual_bound == wanted.dual_bound
    assert parts.passes - first < 0.6 * whole


def test_a_solver_that_cannot_go_on_says_so(tmp_path, monkeypatch):
    """Such as one of a user's."""
    monkeypatch.setattr(PlanesByPasses, "options", {})
    said = r"no solver that takes this model writes checkpoints .*; leave it out"
    with pytest.raises(SolverError, match=said):
        planes()[0].solve(checkpoint=tmp_path)
