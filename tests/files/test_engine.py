"""`engine = "dask"` in a problem file: the rows stay in their folder, the answer is that of the same rows here, mistakes have their place."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.distributed import cluster
from mtldsl.errors import DataError
from mtldsl.utils import interrupts
from tests.loops import for_each
from tests.models import with_weights

pytest.importorskip("dask", reason="pip install -e .[dask]")
distributed = pytest.importorskip("distributed", reason="pip install -e .[dask]")
pyarrow = pytest.importorskip("pyarrow", reason="pip install -e .[dask]")
parquet = pytest.importorskip("pyarrow.parquet")

EXAMPLE = Path(__file__).parents[2] / "examples" / "beyond_one_machine" / "clicks.toml"
RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 3))
Y = np.where(X[:, :2] + RNG.normal(size=(90, 2)) > 0, 1.0, -1.0)
MODEL = 'minimize = "logistic_loss(W, tasks) + 2 * l21_norm(W)"\n'
DASK = MODEL + '[data]\npath = "folder/"\nengine = "dask"\n'
LABELS = 'labels = ["y", "z"]\n'


def write_parts(folder, beside):
    """Three Parquet files of X and the columns beside it."""
    folder.mkdir()
    columns = {f"x{j}": X[:, j] for j in range(3)} | beside
    for k, rows in enumerate(np.array_split(np.arange(90), 3)):
        table = pyarrow.table({name: column[rows] for name, column in columns.items()})
        parquet.write_table(table, folder / f"{k}.parquet")


@pytest.fixture
def file(tmp_path):
    """text -> the path of a problem file beside a tiny folder of Parquet files."""
    write_parts(tmp_path / "folder", {"y": Y[:, 0], "z": Y[:, 1], "id": np.tile(["a", "b"], 45)})

    def write(text):
        path = tmp_path / "p.toml"
        path.write_text(text)
        return path

    return write


def in_memory():
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    return mtl.minimize(mtl.logistic_loss(W, tasks) + 2 * mtl.l21_norm(W)).solve(tol=1e-9).objective


def test_a_folder_beside_the_file_has_the_answer_of_its_rows(file, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path.parent)  # the path is relative to the problem file
    text = DASK + LABELS + 'features = ["x0", "x1", "x2"]\nkeep = true\n[solve]\ntol = 1e-9\n'
    with load_problem(file(text)) as loaded:
        assert not loaded.tasks_train.in_memory and loaded.tasks_train.parts.keep and loaded.cluster is None
        assert loaded.tasks_train.parts.names == ("0.parquet", "1.parquet", "2.parquet")
        solution = loaded.problem.solve(**loaded.solve)
    assert solution.status == "optimal" and solution.objective == pytest.approx(in_memory(), rel=1e-8)


def test_the_words_of_scan_are_those_of_the_table(file, tmp_path):
    with load_problem(file(DASK + 'labels = "y"\ntask = "id"\nfeatures = ["x0", "x2"]\n')) as loaded:
        assert (loaded.tasks_train.task_names, loaded.tasks_train.n_features) == (("a", "b"), 2)
    (tmp_path / "npz").mkdir()
    np.savez(tmp_path / "npz" / "a.npz", X=X[:40], Y=Y[:40], s=np.ones(40))
    np.savez(tmp_path / "npz" / "b.npz", X=X[40:], Y=Y[40:], s=np.ones(50))
    text = DASK.replace("folder/", "npz") + 'format = "npz"\nlabels = "Y"\nsample_weights = "s"\n'
    with load_problem(file(text)) as loaded:
        assert loaded.tasks_train.is_weighted and loaded.tasks_train.counts.tolist() == [90, 90]
    (tmp_path / "svm").mkdir()
    for k in range(2):
        (tmp_path / "svm" / f"{k}.svm").write_text(
            "1 qid:1 1:2 3:1\n-1 qid:1 2:1\n1 qid:2 1:1\n-1 qid:2 3:2\n"
        )
    text = DASK.replace('path = "folder/"', 'path = ["svm/0.svm", "svm/1.svm"]') + "n_features = 4\n"
    with load_problem(file(text)) as loaded:
        assert (loaded.tasks_train.n_features, loaded.tasks_train.counts.tolist()) == (4, [4, 4])


@pytest.mark.cluster
def test_processes_are_started_and_end_with_the_command(tmp_path, capsys, monkeypatch):
    """The example beside a tiny folder."""
    write_parts(tmp_path / "clicks", {"bought": Y[:, 0], "returned": Y[:, 1]})
    path = shutil.copy(EXAMPLE, tmp_path)
    assert main(["solve", str(path), "--json", "--output", str(tmp_path / "r.txt")]) == 0
    record = json.loads(capsys.readouterr().out)
    rows = record["rows"]
    assert (rows["parts"], rows["where"], rows["workers"]) == (3, "a local cluster", 2)
    assert rows["address"].startswith("tcp://127.0.0.1:")
    assert rows["passes"]["solve"] >= 2 and rows["passes"]["cross_check"] >= 1 and rows["bytes_moved"] > 0
    assert record["solution"]["certified"] and record["cross_check"]["agrees"]
    report = (tmp_path / "r.txt").read_text()
    assert "Where the rows are" in report and "3: 0.parquet, ..., 2.parquet" in report
    assert f"{rows['passes']['solve']} for solving, 1 for the cross-check" in report
    assert "2 workers of a local cluster" in report and "The two agree." in report and "Proven:" in report
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    monkeypatch.setattr(cluster, "SETTINGS", replace(cluster.SETTINGS, answer_seconds=0.5))
    with pytest.raises(DataError, match="no scheduler of Dask answers"):  # nobody listens there any more
        load_problem(path, scheduler=rows["address"])


@pytest.mark.slow
def test_a_scheduler_elsewhere_is_asked_where_the_reader_says_so(file, capsys, two_workers):
    address = two_workers.scheduler_address
    path = file(DASK + LABELS + f'features = ["x0", "x1", "x2"]\nscheduler = "{address}"\n')
    with pytest.raises(DataError, match=r"p.toml:7:14: whoever answers there can run code"):
        load_problem(path)
    assert main(["explain", str(path)]) == 2
    assert f"write --scheduler {address}" in capsys.readouterr().err
    with load_problem(path, scheduler=address) as loaded:
        assert (loaded.cluster.where, loaded.cluster.processes) == (address, None)
        assert loaded.problem.solve(tol=1e-9).objective == pytest.approx(in_memory(), rel=1e-8)
    assert len(two_workers.scheduler_info["workers"]) == 2  # whose they are, they stay


@pytest.mark.cluster
def test_ctrl_c_leaves_the_best_point_and_no_process(file, tmp_path):
    big = RNG.normal(size=(20_000, 30))
    noise = RNG.normal(size=(20_000, 3))
    np.savez(tmp_path / "folder" / "big.npz", X=big, Y=np.where(big[:, :1] + noise > 0, 1.0, -1.0))
    text = DASK.replace("folder/", "folder/big.npz").replace("logistic_loss", "hinge_loss")
    path = file(text + 'scheduler = "local"\nworkers = 1\n[solve]\ntol = 1e-14\nmax_iter = 100_000\n')
    watched = subprocess.Popen(
        [sys.executable, "-m", "mtldsl", "solve", str(path), "--no-check", "--set", "max_seconds=60"],
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    import psutil  # Dask needs it

    while len(psutil.Process(watched.pid).children()) < 1 and watched.poll() is None:
        time.sleep(0.2)
    time.sleep(3.0)
    os.killpg(watched.pid, signal.SIGINT)  # as a terminal does: the workers hear it, too
    out, err = watched.communicate(timeout=60)
    # on a slow machine the forecast is long enough to be said unasked; a solve that has begun answers the first Ctrl-C
    err = "".join(
        line
        for line in err.splitlines(True)
        if "usually needs" not in line and interrupts.INTERRUPTED not in line
    )
    assert (watched.returncode, err) in ((130, ""), (130, "mtldsl: interrupted before a point was found\n"))
    assert "NOT certified (interrupted)" in out or err
    ends = time.monotonic() + 120.0
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < ends:  # those that end are gone when their parent has seen it
            os.killpg(watched.pid, 0)
            time.sleep(0.2)


HERE = 'path = "folder/"\n'
ON = HERE + 'engine = "dask"\n'
MISTAKES = [
    # text, line:column, part of the message
    (HERE + 'engine = "spark"\n', "4:11", "engine must be one of 'dask'"),
    (HERE + "workers = 2\n", "4:1", 'workers is for rows on workers: write engine = "dask" beside it'),
    (HERE + 'labels = "y"\n', "3:9", 'a folder of Parquet, NPZ or LIBSVM files is read with engine = "dask"'),
    ('path = "folder/0.parquet"\nlabels = "y"\n', "3:9", 'write engine = "dask"'),
    ('dataset = "digits"\nengine = "dask"\n', "4:1", "engine is for path = ..., not for dataset = ..."),
    (ON + 'scheduler = "10.0.0.1"\n', "5:14", 'scheduler must be "local", or an address such as'),
    (ON + 'scheduler = "local"\nworkers = 0\n', "6:11", "workers must be a whole number of processes"),
    (ON + 'scheduler = "local"\nworkers = 4000\n', "6:11", "<= 256"),
    (ON + "workers = 2\n", "5:1", 'write scheduler = "local"'),
    (ON + 'scheduler = "local"\nmemory = "much"\n', "6:11", 'such as "1.5GB"'),
    (ON + 'format = "parket"\n', "5:11", "did you mean 'parquet'?"),
    (ON + 'lables = "y"\n', "5:1", "engine \"dask\" has no option 'lables'; did you mean 'labels'?"),
    (ON + 'labels = ["y", "w"]\n', "3:9", "there is no column 'w'"),
    (ON + 'labels = "y"\nfeatures = ["x0"]\nkeep = 3\n', "3:9", "keep=3"),
    ('path = "nowhere/"\nengine = "dask"\n', "3:9", "there is no file or folder"),
    *(
        (f'path = "{path}"\nengine = "dask"\nlabels = "y"\n', "3:9", "a problem file may name a folder, a file, or an address of s3")
        for path in ("reference://x", "simplecache::s3://b/f", "file:///etc", "memory://a")  # some run code or write
    ),
]  # fmt: skip


@for_each(("text", "place", "message"), MISTAKES)
def test_every_mistake_is_shown_where_it_is(file, text, place, message):
    with pytest.raises(DataError) as caught:
        load_problem(file(MODEL + "[data]\n" + text))
    said = str(caught.value)
    assert f"p.toml:{place}: " in said and message in said, said
    assert set(said.splitlines()[-1].split("|")[1].strip()) == {"^"}


def test_what_was_started_ends_where_the_rows_are_wrong(file, monkeypatch):
    closed = []

    class Started:
        def close(self):
            closed.append(True)

    monkeypatch.setattr(
        "mtldsl.cli.problem_files.data_sections.start_processes", lambda *arguments: Started()
    )
    with pytest.raises(DataError, match="there is no column"):
        load_problem(file(DASK + 'labels = "w"\nscheduler = "local"\n'))
    assert closed == [True]
    with pytest.raises(DataError, match=r"scheduler='remote': scheduler must be"):
        load_problem(file(DASK + LABELS), scheduler="remote")
    with pytest.raises(
        DataError, match=r"p.toml:.*--scheduler local .* is for rows on workers: leave it out"
    ):
        load_problem(file(MODEL + '[data]\npath = "p.csv"\n' + LABELS), scheduler="local")
