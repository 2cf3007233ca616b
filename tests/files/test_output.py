"""[output] metrics and predictions, [data] impute, and files relative to the problem file: as a user would, from another folder."""

import csv
import json

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, mean_absolute_error

import mtldsl as mtl
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import MTLError
from tests.loops import for_each

RNG = np.random.default_rng(0)
N = 90
FULL = RNG.normal(size=(N, 3))
GAPS = RNG.random((N, 3)) < [0.2, 0.1, 0.0]
SIGNS = (FULL @ RNG.normal(size=(3, 2)) + 0.5 * RNG.normal(size=(N, 2)) > 0).astype(int)
SCORE = FULL[:, 0] - FULL[:, 2] + 0.3 * RNG.normal(size=N)
SCHOOL = np.array(["North", "South, old"])[RNG.integers(2, size=N)]


@pytest.fixture
def folder(tmp_path):
    """A strange table: semicolons, quoted names, NaN in three spellings, a column without any value."""
    lines = ['id;"u; first";v;"w ""quoted""";empty;a;b;score;school']
    for i in range(N):
        cells = ["" if gap and j else ("NA" if i % 2 else "NaN") if gap else f"{x:.4f}" for j, (x, gap) in enumerate(zip(FULL[i], GAPS[i], strict=True))]  # fmt: skip
        lines.append(";".join([f"p{i}", *cells, "", str(SIGNS[i, 0]), str(SIGNS[i, 1]), f"{SCORE[i]:.4f}", f'"{SCHOOL[i]}"']))  # fmt: skip
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def problem_file(folder, minimize, data, output="", more=""):
    path = folder / "in" / "p.toml"
    path.write_text(
        f'minimize = "{minimize}"\n[data]\npath = "t.csv"\ndelimiter = ";"\n{data}\nstandardize = true\n[split]\ntest_size = 0.3\nrandom_state = 2\n'
        f"[weights]\nW = {{intercept = true}}\n[output]\n{output}\n[check]\ncross_check = false\n{more}"
    )
    return path


SIGNED = 'labels = ["a", "b"]\nbinary = true\nimpute = "median"\ndrop = ["id", "empty", "score", "school"]'
GROUPED = 'labels = "score"\ntask = "school"\nimpute = "mean"\ndrop = ["id", "empty", "a", "b"]'


def table(text):
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.slow
def test_predictions_of_rows_held_out_and_metrics(folder, command_line, monkeypatch, capsys):
    output = 'solution = "w.npz"\nmetrics = ["f1", "log_loss", "subset_accuracy"]\npredictions = {path = "out.csv", keep = ["id"], scores = true}'
    path = problem_file(folder, "logistic_loss(W, tasks) + ridge(W)", SIGNED, output)
    monkeypatch.chdir(folder)
    code, out, err = command_line("solve", "in/p.toml", "--json")
    assert code == 0, err
    rows, record = table((folder / "in" / "out.csv").read_text()), json.loads(out)
    file = load_problem(path)
    assert len(rows) == file.tasks_test.X.shape[0] == 27
    at = np.array([int(row["row"]) - 1 for row in rows])
    assert [row["id"] for row in rows] == [f"p{i}" for i in at] and (np.diff(at) > 0).all()
    solution = mtl.Solution.load(folder / "in" / "w.npz")
    raw = np.where(GAPS, np.nan, np.round(FULL, 4))[at]
    for i, name in enumerate("ab"):
        assert [row[f"{name}:label"] for row in rows] == [
            str(one) for one in SIGNS[at, i]
        ]  # 0/1, as in the table
        assert [2.0 * float(row[name]) - 1.0 for row in rows] == solution.predict(raw)[:, i].tolist()
        np.testing.assert_allclose([float(r[f"{name}:probability"]) for r in rows], solution.predict_proba(raw)[:, i], rtol=1e-8)  # fmt: skip
        np.testing.assert_allclose([float(r[f"{name}:score"]) for r in rows], solution.decision_function(raw)[:, i], rtol=1e-7)  # fmt: skip
    metrics = record["scores"]["metrics"]
    expected = [f1_score(SIGNS[at, i] > 0, solution.predict(raw)[:, i] > 0) for i in range(2)]
    assert metrics["f1"]["mean"] == pytest.approx(np.mean(expected)) and metrics["f1"]["higher_is_better"]
    assert [row["metrics"]["f1"]["score"] for row in record["scores"]["tasks"]] == pytest.approx(expected)
    shares = np.delete(SIGNS, at, axis=0).mean(axis=0)  # what a constant says: the share in the training rows
    guess = [log_loss(SIGNS[at, i], np.full(len(at), shares[i])) for i in range(2)]
    assert (
        metrics["log_loss"]["mean_guess"] == pytest.approx(np.mean(guess))
        and not metrics["log_loss"]["higher_is_better"]
    )
    right = ((solution.predict(raw) > 0) == (SIGNS[at] > 0)).all(axis=1)
    assert metrics["subset_accuracy"]["mean"] == pytest.approx(np.mean(right))
    assert record["data"]["imputed"]["strategy"] == "median"
    assert main(["solve", str(path), "--output", str(folder / "r.html")]) == 0
    out, page = capsys.readouterr().out, (folder / "r.html").read_text()
    assert "lower is better: log_loss" in out and "missing inputs, by the median of the training rows" in out
    assert ">F1<" in page and "ROC area" not in page and "the median of the training rows" in page


def test_predictions_of_tasks_told_apart_by_rows(folder):
    path = problem_file(folder, "squared_loss(W, tasks) + ridge(W)", GROUPED, 'metrics = ["mae"]\npredictions = "out.csv"')  # fmt: skip
    assert main(["solve", str(path), "--quiet", "--output", str(folder / "w.npz"), "--output", str(folder / "again.csv")]) == 0  # fmt: skip
    text = (folder / "in" / "out.csv").read_text()
    assert (folder / "again.csv").read_text() == text
    rows, solution = table(text), mtl.Solution.load(folder / "w.npz")
    at = np.array([int(row["row"]) - 1 for row in rows])
    np.testing.assert_allclose([float(row["label"]) for row in rows], np.round(SCORE[at], 4))
    assert [row["task"] for row in rows] == SCHOOL[at].tolist()
    place = [solution.task_names.index(name) for name in SCHOOL[at]]
    raw = np.where(GAPS, np.nan, np.round(FULL, 4))[at]
    np.testing.assert_allclose([float(r["prediction"]) for r in rows], solution.predict(raw)[np.arange(len(at)), place], rtol=1e-8)  # fmt: skip
    mine = place == np.zeros(len(at))
    assert solution.scores(load_problem(path).tasks_test, "mae")[0] == pytest.approx(
        mean_absolute_error(
            np.round(SCORE[at], 4)[mine], np.array([float(r["prediction"]) for r in rows])[mine]
        ),
        rel=1e-6,
    )


def test_new_rows_and_mtldsl_predict_agree(folder, capsys):
    (folder / "in" / "new.csv").write_text('id;"u; first";v;"w ""quoted"""\nx1;;1;2\nx2;0.5;NA;-1\n')
    output = 'solution = "w"\npredictions = {path = "out.csv", new = "new.csv", keep = ["id"]}'
    path = problem_file(folder, "logistic_loss(W, tasks) + ridge(W)", SIGNED, output)
    assert main(["solve", str(path), "--quiet"]) == 0
    capsys.readouterr()
    options = ["--keep", "id", "--probabilities", "--delimiter", ";"]
    assert main(["predict", str(folder / "in" / "w.npz"), str(folder / "in" / "new.csv"), *options]) == 0
    said = capsys.readouterr().out
    assert said == (folder / "in" / "out.csv").read_text()
    file, solution = load_problem(path), mtl.Solution.load(folder / "in" / "w.npz")
    fill = file.tasks_train.imputation.values
    filled = np.array([[fill[0], 1.0, 2.0], [0.5, fill[1], -1.0]])
    np.testing.assert_allclose([float(r["a:probability"]) for r in table(said)], solution.predict_proba(filled)[:, 0])  # fmt: skip


def test_a_checkpoint_lies_beside_the_problem_file(folder, monkeypatch):
    path = problem_file(
        folder, "hinge_loss(W, tasks) + mkl_norm(W, [union()], p=2)", SIGNED, "", '[solve]\nsolver = "dual_ascent"\ncheckpoint = "run.npz"\n',
    )  # fmt: skip
    path.write_text(path.read_text().replace("[weights]\nW = {intercept = true}\n", ""))
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert load_problem("../in/p.toml").solve["checkpoint"] == str(
        load_problem("../in/p.toml").path.parent / "run.npz"
    )
    assert main(["solve", "../in/p.toml", "--quiet"]) == 0
    assert (folder / "in" / "run.npz").exists() and not any((folder / "elsewhere").iterdir())


@for_each(
    ("output", "says"),
    [
        ('metrics = ["f2"]', "no such measure"),
        ("metrics = []", "metrics must be a list of measures"),
        ('metrics = "f1"', "metrics must be a list of measures"),
        ('solution = "t.csv"', "solution must be a path that ends in .npz"),
        ('predictions = "out.txt"', "predictions must be a path that ends in .csv"),
        ('predictions = {new = "t.csv"}', 'predictions needs path = "out.csv"'),
        ('predictions = {path = "out.csv", keeps = ["id"]}', "did you mean 'keep'"),
        ('predictions = {path = "out.csv", task = "school"}', "task is of new rows"),
        ('predictions = {path = "out.csv", new = "none.csv"}', "none.csv"),
        ('predictions = {path = "../out.csv"}', "'../out.csv' is not inside the folder"),
        ('predictions = "../out.csv"', "'../out.csv' is not inside the folder"),
        ('solutions = "w.npz"', "did you mean 'solution'"),
    ],
)
def test_mistakes_are_shown_where_they_stand(output, says, folder):
    path = problem_file(folder, "logistic_loss(W, tasks) + ridge(W)", SIGNED, output)
    with pytest.raises(MTLError, match=r"p\.toml:16:") as raised:
        load_problem(path)
    assert says in str(raised.value) and "^" in str(raised.value)


def test_what_only_the_data_tell(folder, capsys):
    path = problem_file(folder, "logistic_loss(W, tasks) + ridge(W)", SIGNED, 'predictions = {path = "out.csv", keep = ["name"]}')  # fmt: skip
    assert main(["solve", str(path)]) == 2
    assert "there is no column 'name' to keep" in capsys.readouterr().err
    path.write_text(path.read_text().replace("[split]\ntest_size = 0.3\nrandom_state = 2\n", "").replace('{path = "out.csv", keep = ["name"]}', '"out.csv"'))  # fmt: skip
    with pytest.raises(MTLError, match="there is no"):
        load_problem(path)
    for data, says in (
        (SIGNED.replace('"median"', '"error"'), r"such cells: \d+ in 'u; first', \d+ in 'v'.*impute = \"mean\""),
        (SIGNED.replace('"median"', '"mode"'), "write 'mean', 'median' or 'error'"),
        (SIGNED.replace('"empty", ', ""), "column 'empty' has no value, so that"),
    ):  # fmt: skip
        path = problem_file(folder, "logistic_loss(W, tasks) + ridge(W)", data)
        with pytest.raises(MTLError, match=rf"(?s)p\.toml:\d+:\d+: .*{says}.*\^"):
            load_problem(path)
