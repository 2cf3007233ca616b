"""Answers are in the units of the labels that were learned on, and the description of the table goes where the model goes."""

import csv
import json

import numpy as np
import pytest
from scipy.io import savemat

import mtldsl as mtl
from mtldsl.cli.command_line import main
from mtldsl.data.readers.new_rows import read_inputs
from mtldsl.data.table_description import NOTHING_KNOWN, DataDescription, TableColumn
from mtldsl.errors import DataError
from tests.loops import for_each
from tests.models import with_weights

RNG = np.random.default_rng(5)
N = 60
X = RNG.normal(size=(N, 2)).round(3)
UP = X @ [1.0, -1.0] + 0.1 * RNG.normal(size=N) > 0

#: name -> (negative, positive) as the table has them, and what [data] says
SPELLINGS = {
    "0/1": (("0", "1"), "binary = true"),
    "no/yes": (("no", "yes"), "binary = true"),
    "False/True": (("False", "True"), "binary = true"),
    "0.0/1.0": (("0.0", "1.0"), "binary = true"),
    "-1/+1": (("-1", "1"), ""),
    "classes": (("benign", "malign"), "one_vs_rest = true"),
}


def solved(folder, labels, data, minimize="logistic_loss(W, tasks) + ridge(W)", more="", columns="u,v,y"):
    lines = [f"{u},{v},{y}" for (u, v), y in zip(X, labels, strict=True)]
    (folder / "t.csv").write_text("\n".join([columns, *lines]) + "\n")
    (folder / "new.csv").write_text((folder / "t.csv").read_text())
    (folder / "p.toml").write_text(
        f'minimize = "{minimize}"\n[data]\npath = "t.csv"\nlabels = "y"\n{data}\n[output]\nsolution = "w.npz"\n{more}'
    )
    assert main(["solve", str(folder / "p.toml"), "--quiet", "--no-check"]) == 0
    return folder / "w.npz"


def rows_of(text):
    return list(csv.DictReader(text.splitlines()))


def predicted(capsys, path, rows, *options):
    """The rows that `mtldsl predict` prints."""
    capsys.readouterr()
    assert main(["predict", str(path), str(rows), *options]) == 0
    return rows_of(capsys.readouterr().out)


def kept(tasks, path):
    """A saved solution of the tasks."""
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W)).solve().save(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPELLINGS)
def test_two_labels_are_answered_as_they_were_given(name, tmp_path, capsys):
    (no, yes), data = SPELLINGS[name]
    more = 'predictions = {path = "out.csv", new = "new.csv"}\n'
    path = solved(tmp_path, np.where(UP, yes, no), data, more=more)
    said = predicted(capsys, path, tmp_path / "new.csv")
    solution = mtl.Solution.load(path)
    expected = np.where(solution.predict(X)[:, 0] > 0, yes, no).tolist()
    assert [row["y"] for row in said] == expected and len(set(expected)) == 2
    assert [row["y"] for row in rows_of((tmp_path / "out.csv").read_text())] == expected
    assert main(["report", str(path), str(tmp_path / "new.csv"), "-o", str(tmp_path / "r.html")]) == 0
    tasks = mtl.Tasks.shared(X, np.where(UP, 1.0, -1.0))
    assert f"{float(solution.score(tasks)):.3f}" in (tmp_path / "r.html").read_text()


@pytest.mark.by_default("read_libsvm")
@pytest.mark.parametrize(
    "door", ["read_npz", "read_npz grouped", "read_mat", "read_libsvm", "read_libsvm classes"]
)
def test_arrays_of_labels_0_1_are_answered_as_such(door, tmp_path, capsys):
    values, ids = (3, 7) if "classes" in door else (0, 1), np.arange(N) % 2
    y = np.where(UP, values[1], values[0])
    np.savez(tmp_path / "t.npz", X=X, Y=y, ids=ids)
    savemat(tmp_path / "t.mat", {"X": X, "Y": y[:, None]})
    (tmp_path / "t.svm").write_text("".join(f"{one} 1:{u} 2:{v}\n" for one, (u, v) in zip(y, X, strict=True)))
    read = {
        "read_npz": lambda: mtl.datasets.read_npz(tmp_path / "t.npz", binary=True),
        "read_npz grouped": lambda: mtl.datasets.read_npz(tmp_path / "t.npz", task_ids="ids", binary=True),
        "read_mat": lambda: mtl.datasets.read_mat(tmp_path / "t.mat", binary=True),
        "read_libsvm": lambda: mtl.datasets.read_libsvm(tmp_path / "t.svm", binary=True),
        "read_libsvm classes": lambda: mtl.datasets.read_libsvm(tmp_path / "t.svm", one_vs_rest=True),
    }
    path = kept(read[door](), tmp_path / "w.npz")
    np.savez(tmp_path / "new.npz", X=X)
    said, solution = predicted(capsys, path, tmp_path / "new.npz"), mtl.Solution.load(path)
    for name, signs in zip(solution.task_names, solution.predict(X).T, strict=True):
        assert [int(row[name]) for row in said] == np.where(signs > 0, values[1], values[0]).tolist()


def test_the_probability_of_a_class_says_of_which(tmp_path, capsys):
    path = solved(tmp_path, np.where(UP, "malign", "benign"), "one_vs_rest = true")
    said = predicted(capsys, path, tmp_path / "new.csv", "--probabilities")
    expected = mtl.Solution.load(path).predict_proba(X)[:, 0]
    np.testing.assert_allclose([float(row["y=malign:probability"]) for row in said], expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic_loss", "softmax_loss"])
def test_one_of_several_classes_is_answered(loss, tmp_path, capsys):
    kinds = np.array(["fir", "oak", "elm"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    more = 'predictions = "held.csv"\n[split]\nrandom_state = 0\n[weights]\nW = {intercept = true}\n'
    path = solved(tmp_path, kinds, "one_vs_rest = true", f"{loss}(W, tasks) + 0.1 * ridge(W)", more)
    said, solution = predicted(capsys, path, tmp_path / "new.csv", "--scores"), mtl.Solution.load(path)
    expected = np.array(solution.task_names)[solution.decision_function(X).argmax(axis=1)].tolist()
    assert [row["y"] for row in said] == expected and len(set(expected)) > 1
    assert "elm" not in said[0] and "elm:score" in said[0]
    held = rows_of((tmp_path / "held.csv").read_text())
    at = [int(row["row"]) - 1 for row in held]
    assert [row["y:label"] for row in held] == kinds[at].tolist()
    assert [row["y"] for row in held] == np.array(expected)[at].tolist()
    capsys.readouterr()
    page = tmp_path / "r.html"
    assert main(["solve", str(tmp_path / "p.toml"), "--json", "--no-check", "--report", str(page)]) == 0
    first, (scored,) = next(iter(json.loads(capsys.readouterr().out)["scores"].items()))
    right = np.mean([row["y"] == row["y:label"] for row in held])
    assert (first, scored["label"], scored["rows"]) == ("classes", "y", len(held))
    assert scored["right"] == pytest.approx(right)
    assert f"its share of rows whose class is right is {right:.3f} (" in page.read_text("utf-8")


def test_rows_held_out_that_are_told_apart_by_rows(tmp_path):
    ids = np.where(np.arange(N) % 2, "A", "B")
    labels = [f"{'yes' if up else 'no'},{one}" for up, one in zip(UP, ids, strict=True)]
    more = 'predictions = "held.csv"\n[split]\nrandom_state = 0\n'
    solved(tmp_path, labels, 'binary = true\ntask = "t"', more=more, columns="u,v,y,t")
    held = rows_of((tmp_path / "held.csv").read_text())
    at = [int(row["row"]) - 1 for row in held]
    assert [row["label"] for row in held] == np.where(UP, "yes", "no")[at].tolist()
    assert {row["prediction"] for row in held} == {"no", "yes"}


def test_an_unknown_class_is_named(tmp_path, capsys):
    path = solved(tmp_path, np.where(UP, "malign", "benign"), "one_vs_rest = true")
    (tmp_path / "new.csv").write_text("u,v,y\n1,2,malign\n1,2,Benign\n")
    assert main(["report", str(path), str(tmp_path / "new.csv"), "-o", str(tmp_path / "r.html")]) == 2
    said = capsys.readouterr().err
    assert (
        "new.csv:3: column 'y' has a class 'Benign' that the model does not know" in said
        and "did you mean 'benign'?" in said
    )


SEX = TableColumn.of("sex", ("female", "male"))
TABLE = DataDescription((SEX,), (TableColumn.of("y", ("no", "yes"), ["y", "y"]),), None, ",", True)


@pytest.fixture
def tasks(tmp_path):
    rows = [
        f"{'male' if up else 'female'},{u},{'yes' if v > 0 else 'no'}"
        for up, (u, v) in zip(UP, X, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["sex,u,y", *rows]) + "\n")
    return mtl.datasets.read_csv(tmp_path / "t.csv", "y", one_hot=["sex"], binary=True)


@for_each(
    "change",
    [
        lambda t: t.standardize(),
        lambda t: t.split(0.3, random_state=0)[0],
        lambda t: t.folds(3)[1][0],
        lambda t: t.select(["y"]),
        lambda t: t.select_features(["sex=male"]),
        lambda t: t.take_rows(range(20)),
        lambda t: t.subsample(30, 0),
        lambda t: t.with_targets(-t.targets),
        lambda t: t.without_one_class(),
    ],
)
def test_the_description_goes_along_with_tasks(change, tasks):
    assert tasks.description.features == (SEX,) and tasks.description.labels == TABLE.labels
    assert change(tasks).description == tasks.description


def test_the_description_is_saved(tasks, tmp_path):
    solution = mtl.Solution.load(kept(tasks, tmp_path / "w.npz"))
    assert solution.description == DataDescription((SEX,), TABLE.labels, signs=True)
    assert solution.schema.description == solution.description


def without_description(path, change):
    """The file as another version, or somebody, wrote it."""
    with np.load(path) as file:
        arrays = dict(file)
    plain = json.loads(str(arrays["json"]))
    change(plain)
    np.savez(path, **{**arrays, "json": np.array(json.dumps(plain))})


def test_files_of_older_versions_know_what_has_a_feature(tasks, tmp_path, capsys):
    path = kept(tasks, tmp_path / "w.npz")
    without_description(path, lambda plain: plain.pop("description"))
    solution = mtl.Solution.load(path)
    assert solution.description == NOTHING_KNOWN
    new = tmp_path / "new.csv"
    new.write_text("sex,u\nmale,1\n")
    assert predicted(capsys, path, new)[0]["y"] == f"{solution.predict([[1.0, 1.0]])[0, 0]:g}"
    new.write_text("sex,u\nfemale,1\n")
    assert main(["predict", str(path), str(new)]) == 2
    assert (
        "new.csv:2: column 'sex' has a category 'female' that the model does not know"
        in capsys.readouterr().err
    )
    new.write_text("sex=male,u\n0,1\n")
    assert main(["predict", str(path), str(new)]) == 0


@for_each(
    "change",
    [
        lambda one: one["features"][0]["values"].pop(),
        lambda one: one["features"][0].update(parts=[None, 3]),
        lambda one: one["features"][0].update(values=["a", "a"]),
        lambda one: one.update(decimal="x"),
        lambda one: one.update(task="t", labels=[]),
        lambda one: one.update(more=1),
        lambda one: one.pop("signs"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(change, tasks, tmp_path):
    path = kept(tasks, tmp_path / "w.npz")
    without_description(path, lambda plain: change(plain["description"]))
    with pytest.raises(DataError, match=r"Solution.load"):
        mtl.Solution.load(path)


def test_arrays_of_new_rows_are_read_as_those_of_training(tmp_path):
    np.savez(tmp_path / "n.npz", X=[[1.0, 2.0]], feature_names=["v", "u"])
    with pytest.raises(DataError, match="X has other columns than those learned on"):
        read_inputs(tmp_path / "n.npz", ["u", "v"])
    for X in ([["1", "2"]], np.array([["2020-01-01"] * 2], dtype="datetime64[D]"), [[2**53 + 1, 1]]):
        np.savez(tmp_path / "n.npz", X=X)
        with pytest.raises(DataError):
            read_inputs(tmp_path / "n.npz", ["u", "v"])


@for_each("loss", ["logistic_loss", "hinge_loss", "squared_loss", "softmax_loss"])
@for_each("labels", ["0/1", "bool"])
def test_scores_without_a_metric_refuse_other_units(loss, labels):
    Y = np.where(np.column_stack([UP, ~UP]), 1.0, -1.0)
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    solution = mtl.minimize(getattr(mtl, loss)(W, tasks) + mtl.ridge(W)).solve()
    other = mtl.Tasks.shared(X, (Y + 1) / 2 if labels == "0/1" else Y > 0)
    for call in (
        lambda: solution.score(other),
        lambda: solution.scores(other),
        lambda: solution.score(other, metric="accuracy"),
        lambda: solution.plot_scores(other),
        lambda: solution.bootstrap(other, n=10),
    ):
        with pytest.raises(DataError, match=r"labels must be -1 or \+1; for labels 0/1 write 2 \* Y - 1"):
            call()
    assert float(solution.score(tasks)) > 0.3


def test_a_kind_of_labels_beside_numbers_keeps_to_its_units():
    Y = np.column_stack([np.where(UP, 1.0, -1.0), X[:, 0]])
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    model = mtl.logistic_loss(W[:, :1], tasks.select([0])) + mtl.squared_loss(W[:, 1:], tasks.select([1]))
    solution = mtl.minimize(model + mtl.ridge(W)).solve()
    other = mtl.Tasks.shared(X, np.column_stack([UP, X[:, 0]]))
    for metric in (None, "accuracy or r2"):
        with pytest.raises(DataError, match=r"labels must be -1 or \+1"):
            solution.score(other, metric)
