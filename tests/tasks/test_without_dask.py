"""Without the extra `dask`, every way to rows that are elsewhere says the line that installs it, before it looks at anything else."""

import sys

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.distributed.cluster import connect_scheduler, start_processes
from mtldsl.errors import MissingExtraError
from tests.loops import for_each

INSTALL = r"pip install '\.\[dask\]' in the checkout"
FILE = 'minimize = "squared_loss(W, tasks) + l1_norm(W)"\n[data]\npath = "."\nengine = "dask"\n'


@pytest.fixture
def hidden(monkeypatch, tmp_path):
    """As if neither package were there, whatever was imported before."""
    names = [
        name for name in sys.modules if name.partition(".")[0] in ("dask", "distributed")
    ]  # also those below
    for name in {*names, "dask", "distributed"}:
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "p.toml").write_text(FILE)
    (tmp_path / "q.toml").write_text(FILE + 'scheduler = "local"\n')
    return tmp_path


@for_each("enter", [
    lambda folder: mtl.Tasks.from_dask(np.ones((4, 2)), np.ones(4)),
    lambda folder: mtl.Tasks.from_dask_dataframe(None, ["x"], "y"),
    lambda folder: datasets.scan(folder, labels="y"),
    lambda folder: datasets.scan("s3://nowhere/at/all"),
    lambda folder: datasets.from_parts([lambda: (np.ones((2, 2)), np.ones(2))]),
    lambda folder: load_problem(folder / "p.toml"),
    lambda folder: load_problem(folder / "q.toml"),
    lambda folder: load_problem(folder / "p.toml", scheduler="tcp://127.0.0.1:1"),
    lambda folder: start_processes(),
    lambda folder: connect_scheduler("tcp://127.0.0.1:1"),
], ids=[
    "from_dask", "from_dask_dataframe", "scan", "scan of a store", "from_parts", "engine", "scheduler", "--scheduler",
    "started", "connected",
])  # fmt: skip
def test_every_entrance_says_what_to_install(hidden, enter):
    with pytest.raises(MissingExtraError, match=INSTALL):
        enter(hidden)


def test_the_command_says_it_in_one_line(hidden, capsys):
    from mtldsl.cli.command_line import main

    assert main(["solve", str(hidden / "p.toml")]) == 2
    said = capsys.readouterr().err
    assert "p.toml:3:9: " in said and "pip install '.[dask]' in the checkout" in said
    assert "Traceback" not in said


def test_a_scheduler_needs_distributed_beside_dask(hidden, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=rf"q.toml:5:14: .*{INSTALL}"):
        load_problem(hidden / "q.toml")


def test_all_else_works(hidden):
    tasks = mtl.Tasks.shared(np.eye(3), np.ones(3))
    W, lam = mtl.Weights(tasks), mtl.Parameter(0.1, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l1_norm(W))
    assert problem.solve().status == "optimal" and tasks.in_memory
    assert problem.cross_validate(lam, [0.1, 0.01], folds=3, metric="mse").n_folds == 3
