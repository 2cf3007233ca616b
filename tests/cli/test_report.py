"""`mtldsl report`: the page of a saved solution, with scores on rows that were held out."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.cli.command_line import main
from mtldsl.data.readers.new_rows import read_held_out
from tests.loops import for_each

RNG = np.random.default_rng(0)
N = 60
U = RNG.normal(size=(N, 2)).round(3)
SCHOOL = np.array(["A", "B, C"])[RNG.integers(2, size=N)]
SIGNS = (U @ np.array([[1.0, -1.0], [0.5, 1.0]]) + 0.5 * RNG.normal(size=(N, 2)) > 0).astype(int)
SCORE = (U[:, 0] + 0.3 * RNG.normal(size=N)).round(3)


@pytest.fixture
def table(tmp_path):
    lines = [f'{u},{v},"{s}",{a},{b},{y}' for (u, v), s, (a, b), y in zip(U, SCHOOL, SIGNS, SCORE, strict=True)]  # fmt: skip
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["u,v,school,a,b,score", *lines]) + "\n")
    return path


RIDGE = "squared_loss(W, tasks) + ridge(W)", 'labels = "score"\ndrop = ["a", "b", "school"]'
SIDES = "logistic_loss(W, tasks) + ridge(W)", 'labels = ["a", "b"]\nbinary = true\ndrop = ["school", "score"]'


def file(tmp_path, minimize, data, more=""):
    path = tmp_path / "p.toml"
    path.write_text(
        f'minimize = "{minimize}"\n[data]\npath = "t.csv"\nstandardize = true\n{data}\n[split]\nrandom_state = 0\n[output]\nsolution = "w.npz"\n{more}'
    )
    assert main(["solve", str(path), "--quiet", "--no-check"]) == 0
    return path


@pytest.mark.slow
def test_the_held_out_rows_of_the_problem_file(table, tmp_path, capsys):
    path = file(tmp_path, *SIDES)
    assert main(["report", str(tmp_path / "w.npz"), str(path), "-o", str(tmp_path / "r.html"), "--title", "Mine", "--metric", "f1"]) == 0  # fmt: skip
    assert capsys.readouterr().out.splitlines()[-1].endswith("r.html is written")
    page = (tmp_path / "r.html").read_text()
    assert "<title>Mine</title>" in page and "As its file says, not verified here: optimal" in page
    assert (
        "rows that were not learned on. A certificate" in page and ">F1<" in page and "ROC area" not in page
    )
    assert "mtldsl report w.npz p.toml --metric f1" in page
    assert "One model per task has" in page


@pytest.mark.slow
def test_tasks_that_are_told_apart_by_rows(table, tmp_path, capsys):
    file(tmp_path, "squared_loss(W, tasks) + ridge(W)", 'labels = "score"\ntask = "school"\ndrop = ["a", "b"]')  # fmt: skip
    out, model = tmp_path / "r.html", str(tmp_path / "w.npz")
    assert main(["report", model, str(table), "--task", "school", "--labels", "score", "-o", str(out)]) == 0
    solution = mtl.Solution.load(model)
    tasks = read_held_out(
        table, solution.feature_names, solution.task_names, signs=False, labels="score", task="school"
    )
    for name, y, X in zip(tasks.task_names, tasks.per_task(tasks.targets), tasks.inputs, strict=True):
        np.testing.assert_array_equal(y, SCORE[name == SCHOOL])
        np.testing.assert_array_equal(X, U[name == SCHOOL])
    assert f"{float(solution.scores(tasks)[0]):.3f}" in out.read_text()
    assert main(["report", model, str(table)]) == 0  # the model knows what the columns were called
    assert f"{float(solution.scores(tasks)[0]):.3f}" in (tmp_path / "w.html").read_text()
    (tmp_path / "other.csv").write_text(table.read_text().replace("school", "place"))
    assert main(["report", model, str(tmp_path / "other.csv"), "-o", str(out)]) == 2
    assert "write --task COLUMN --labels COLUMN" in capsys.readouterr().err
    assert main(["report", model, str(table), "--labels", "score", "-o", str(out)]) == 2
    assert "the column 'score' has labels of 'score', and the model has the tasks" in capsys.readouterr().err
    assert main(["report", model, str(table), "--task", "school", "-o", str(out)]) == 2
    assert "name the column of their labels" in capsys.readouterr().err


@pytest.mark.slow
def test_a_page_that_is_there_stays_unless_it_is_named(table, tmp_path, capsys):
    """`solve` writes a fuller page under this name; a path that was typed is overwritten, as that of every command is."""
    model, page = str(tmp_path / "w.npz"), tmp_path / "w.html"
    file(tmp_path, *RIDGE, 'report = "w.html"')
    before = page.read_bytes()
    assert main(["report", model]) == 2
    said = capsys.readouterr().err
    assert f"{page} is there already" in said and f"-o {page} to overwrite it" in said
    assert page.read_bytes() == before
    assert main(["report", model, "-o", str(page)]) == 0 and page.read_bytes() != before


@pytest.mark.slow
def test_classes_of_one_column(tmp_path):
    kinds = np.array(["low", "mid", "high"])[np.digitize(SCORE, [-0.5, 0.5])]
    (tmp_path / "t.csv").write_text("\n".join(["u,v,kind", *(f"{u},{v},{k}" for (u, v), k in zip(U, kinds, strict=True))]) + "\n")  # fmt: skip
    file(tmp_path, "logistic_loss(W, tasks) + ridge(W)", 'labels = "kind"\none_vs_rest = true')
    model = str(tmp_path / "w.npz")
    solution = mtl.Solution.load(model)
    tasks = read_held_out(
        tmp_path / "t.csv", solution.feature_names, solution.task_names, signs=True, labels="kind"
    )
    expected = [np.where(kinds == name, 1.0, -1.0) for name in solution.task_names]
    np.testing.assert_array_equal(tasks.per_task(tasks.targets), expected)
    assert main(["report", model, str(tmp_path / "t.csv"), "--labels", "kind", "--metric", "f1"]) == 0
    assert "its share of rows whose class is right is" in (tmp_path / "w.html").read_text("utf-8")


@for_each(
    ("typed", "says"),
    [
        (["-o", "r.txt"], "--output r.txt: the path must end in .html"),
        (["t.csv", "--metric", "f2"], "no such measure"),
        (["p.toml", "--task", "school"], "--task is for a table"),
        (["other.toml"], "states another model now than"),
        (["whole.toml"], "holds no rows out"),
        (["none.csv"], "none.csv"),
    ],
)
def test_mistakes_are_named(typed, says, table, capsys, monkeypatch):
    tmp_path = table.parent
    monkeypatch.chdir(tmp_path)
    path = file(tmp_path, *RIDGE)
    (tmp_path / "other.toml").write_text(path.read_text().replace("+ ridge(W)", "+ 2 * ridge(W)"))
    (tmp_path / "whole.toml").write_text(path.read_text().replace("[split]\nrandom_state = 0\n", ""))
    assert main(["report", "w.npz", *typed]) == 2
    assert says in capsys.readouterr().err
    assert main(["report", "p.toml"]) == 2
    assert "write mtldsl report p.npz p.toml" in capsys.readouterr().err
