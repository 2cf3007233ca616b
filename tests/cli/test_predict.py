"""`mtldsl predict`: what the command line predicts is what Python does."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.cli.command_line import main
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
NAMES = ["hours", "age", "colour=red"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    Z = np.column_stack([X[:, :2], X[:, 2] > 0])
    Y = np.sign(Z @ RNG.normal(size=(3, 2)) + 0.3 * RNG.normal(size=(40, 2)))
    path = tmp_path_factory.mktemp("data") / "t.csv"
    lines = [f"{h},{a},{'red' if red else 'blue'},{y},{z}" for (h, a, red), (y, z) in zip(Z, Y, strict=True)]
    path.write_text("\n".join(['hours,age,colour,a,"b, c"', *lines]) + "\n")
    tasks = mtl.datasets.read_csv(path, labels=2, one_hot=["colour"]).standardize()
    assert tasks.feature_names == tuple(NAMES) and np.array_equal(tasks.task_names, ["a", "b, c"])
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W)).solve()
    return solution, solution.save(tmp_path_factory.mktemp("model") / "w.npz")


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("id,age,colour,hours,extra\n7,1.5,red,0.2,x\n8,-1,blue,3,y\n")
    return path, np.array([[0.2, 1.5, 1.0], [3.0, -1.0, 0.0]])


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_columns_are_found_by_name(model, new, capsys):
    solution, path = model
    file, Z = new
    assert main(["predict", str(path), str(file), "--keep", "id", "--probabilities", "--scores"]) == 0
    rows = table(capsys.readouterr().out)
    assert [row["id"] for row in rows] == ["7", "8"] and "extra" not in rows[0]
    for ending, face in (("", "predict"), (":probability", "predict_proba"), (":score", "decision_function")):
        found = [[float(row[task + ending]) for task in solution.task_names] for row in rows]
        np.testing.assert_allclose(found, getattr(solution, face)(Z), rtol=1e-9)


def test_rows_of_one_task_each(model, new, tmp_path, capsys):
    solution, path = model
    file, Z = new
    file.write_text(file.read_text().replace("x\n", "a\n").replace("y\n", '"b, c"\n'))
    out = tmp_path / "out.csv"
    assert main(["predict", str(path), str(file), "--task", "extra", "--output", str(out)]) == 0
    assert capsys.readouterr().out == ""
    rows, found = table(out.read_text()), solution.predict(Z)
    assert [float(r["prediction"]) for r in rows] == [found[0, 0], found[1, 1]]


def test_thresholds_count(model, new, tmp_path, capsys):
    high = replace(model[0], thresholds=np.full(2, 1e6))
    assert main(["predict", str(high.save(tmp_path / "high.npz")), str(new[0])]) == 0
    assert {row["a"] for row in table(capsys.readouterr().out)} == {"-1"}


def test_graphs_of_labels_say_what_is_proven(tmp_path, capsys):
    Y = np.sign(RNG.normal(size=(40, 3)))
    tasks = mtl.Tasks.shared(X, Y, feature_names=["x", "y", "z"])
    solution = mtl.model("Structured SVM", tasks, lam=0.5).solve(tol=1e-2)
    path = solution.save(tmp_path / "graph.npz")
    file = tmp_path / "new.csv"
    file.write_text("x,y,z\n1,0,2\n0,1,-1\n")
    assert main(["predict", str(path), str(file)]) == 0
    rows = table(capsys.readouterr().out)
    labels, certified = solution.predict(np.array([[1.0, 0, 2], [0, 1, -1]]), return_certified=True)
    assert [[float(r[t]) for t in solution.task_names] for r in rows] == labels.tolist()
    assert [r["certified"] == "yes" for r in rows] == certified.tolist()


@for_each("content, options, words", [
    ("age,hours\n1,2\n", [], "there is no column 'colour'"),
    ("ages,hours,colour\n1,2,red\n", [], "there is no column 'age', which the model was learned on; did you mean 'ages'?"),
    ("age,hours,colour\n1,two,red\n", [], "new.csv:2: column 'hours' is 'two', not a finite number"),
    ("age,hours,colour\n1,2,red\n,2,red\n", [], "new.csv:3: column 'age' is empty"),
    ("age,hours,colour\n1,2,red\n", ["--keep", "id"], "there is no column 'id'"),
    ("age,hours,colour,t\n1,2,red,z\n", ["--task", "t"], "names a task 'z' that the model does not know; it knows 'a'"),
    ("age;hours;colour\n1;2;red\n", ["--delimiter", ","], "delimiter"),
])  # fmt: skip
def test_mistakes_are_named(model, tmp_path, capsys, content, options, words):
    file = tmp_path / "new.csv"
    file.write_text(content)
    assert main(["predict", str(model[1]), str(file), *options]) == 2
    assert words in capsys.readouterr().err


def test_arrays_are_read_too(model, tmp_path, command_line):
    solution, path = model
    file = tmp_path / "new.npz"
    np.savez(file, X=np.ones((2, 3)))
    code, out, _ = command_line("predict", path, file)
    expected = solution.predict(np.ones((2, 3)))[:, 0].tolist()
    assert code == 0 and [float(row["a"]) for row in table(out)] == expected
    np.savez(file, X=np.ones((2, 4)))
    code, _, err = command_line("predict", path, file)
    assert code == 2 and "X has shape (2, 4), but the model was learned on 3 features" in err
