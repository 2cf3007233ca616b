"""`mtldsl path` and `mtldsl cv`: what the command line tells is what Python finds."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from tests.loops import for_each

FILE = """minimize = "squared_loss(W, tasks) + lam * l21_norm(W)"
title = "A path"
[data]
dataset = "group_sparse"
n_tasks = 3
n_samples = 40
n_features = 8
random_state = 0
[split]
test_size = 0.25
random_state = 0
[parameters]
lam = 5.0
[solve]
tol = 1e-8
"""
TWO = FILE.replace('l21_norm(W)"', 'l21_norm(W) + mu * ridge(W)"').replace("lam = 5.0", "lam = 5.0\nmu = 2.0")
VALIDATION = '[validation]\nparameter = "lam"\nvalues = [100.0, 1.0, 0.01]\nfolds = 3\nmetric = "mse"\n'


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "p.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_path_from_where_the_weights_are_zero(write, tmp_path, command_line, monkeypatch):
    """Names of outputs are of the folder where the command is typed."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = write(FILE)
    typed = "--values 5 --csv o.csv --plot o.png --report o.html"
    code, out, err = command_line("path", path, *typed.split())
    assert (code, err) == (0, "") and "r2 of the rows held out" in out
    assert "certified: 5 of 5" in out and out.endswith(" s of solving\n")
    file = load_problem(path)
    (lam,) = file.problem.parameters
    top, rows = file.problem.lambda_max(lam), table(Path("o.csv"))
    values = [float(row["lam"]) for row in rows]
    np.testing.assert_allclose(values, np.geomspace(top, top / 1000, 5))
    assert int(rows[0]["features"]) == 0 and int(rows[-1]["features"]) == 8
    for row, solution in zip(rows, file.problem.path(lam, values, tol=1e-8), strict=True):
        assert float(row["objective"]) == pytest.approx(solution.objective, rel=1e-7)
        assert float(row["score"]) == pytest.approx(float(solution.score(file.tasks_test, "r2")), rel=1e-6)
    assert Path("o.png").read_bytes().startswith(b"\x89PNG")
    page = Path("o.html").read_text()
    assert "5 of 5 solutions are certified" in page and "<title>A path</title>" in page
    assert "<dt>best " in page and "so a little too good" in page
    assert "mtldsl path p.toml --values 5" in page and "http" not in page.replace("http://www.w3.org", "")


@for_each("width", [30, 40, 60, 100])
def test_a_narrow_terminal_loses_columns_and_no_digits(width, write, command_line, monkeypatch):
    path = write(FILE)
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = command_line("path", path, "--values", "30,10,3")
    assert code == 0 and "…" not in out and max(map(len, out.splitlines())) <= width
    _, record, _ = command_line("path", path, "--values", "30,10,3", "--json")
    lines = [line.split() for line in out.splitlines() if "optimal" in line]
    for cells, row in zip(lines, json.loads(record)["path"]["rows"], strict=True):
        assert cells[0] == f"{row['value']:g}" and f"{row['score']:.4f}" in cells
    assert ("no room for seconds" in out) == (width < 70)


def test_values_that_are_given_and_one_of_two_parameters(write, command_line):
    path = write(TWO)
    code, out, _ = command_line("path", path, "--parameter", "mu", "--values", "1, 10,0.1", "--json")
    record = json.loads(out)["path"]
    assert code == 0 and record["parameter"] == "mu"
    assert [row["value"] for row in record["rows"]] == [1.0, 10.0, 0.1]
    code, _, err = command_line("path", path)
    assert code == 2 and "the model has lam, mu; write --parameter lam" in err
    code, out, err = command_line("path", write(TWO + VALIDATION), "--quiet", "--progress")
    assert code == 0 and out.startswith("certified: 3 of 3") and "lam 3 of 3: = 0.01" in err


def test_a_path_that_is_not_certified_says_so(write, capsys):
    assert main(["path", str(write(FILE)), "--values", "1,0.5", "--set", "max_iter=1", "--solver", "proximal_gradient"]) == 1  # fmt: skip
    assert "NOT certified" in capsys.readouterr().out


@pytest.mark.slow
@for_each("rule", ["best", "one_se"])
def test_cv_is_cross_validate_on_the_training_rows(rule, write, tmp_path, command_line, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(FILE + VALIDATION)
    typed = f"--rule {rule} --random-state 1 --csv o.csv --plot o.svg --report o.html --progress"
    code, out, err = command_line("cv", path, *typed.split())
    file = load_problem(path)
    (lam,) = file.problem.parameters
    found = file.problem.cross_validate(lam, [100.0, 1.0, 0.01], 3, "mse", refit=False, random_state=1, tol=1e-8)  # fmt: skip
    chosen = f"chosen: lam = {found.one_se_value if rule == 'one_se' else found.best_value:.6g}"
    assert code == 0 and chosen in out and "fold 3 of 3: best at lam" in err
    scores = [float(row["score"]) for row in table(Path("o.csv"))]
    assert len(scores) == 3 * 3 * 3
    np.testing.assert_allclose(scores, [row["score"] for row in found.table])
    page = Path("o.html").read_text()
    assert chosen in page and "mtldsl cv p.toml" in page and f"--rule {rule}" in page
    assert "<svg" in Path("o.svg").read_text()


def test_cv_without_a_table_in_the_file(write, command_line):
    """The file stays as it is."""
    path = write(FILE)
    typed = ["cv", path, *["--values", "10,1", "--folds", "2", "--metric", "mae"]]
    code, out, _ = command_line(*typed, "--json")
    record, problem = json.loads(out)["validation"], load_problem(path).problem
    found = problem.cross_validate(problem.parameters[0], [10.0, 1.0], 2, "mae", refit=False, tol=1e-8)
    assert code == 0 and record["mean"] == found.mean.tolist() and record["best"] == found.best_value
    assert record["one_standard_error"] == found.one_se_value and record["metric"] == "mae"
    assert command_line(*typed, "--quiet")[1].startswith(f"chosen: lam = {found.best_value:.6g}")
    assert path.read_text() == FILE


@pytest.mark.slow
def test_two_parameters_are_a_grid_in_cv_and_in_solve(write, tmp_path, command_line):
    path = write(TWO + "[validation]\nvalues = {lam = [10.0, 1.0], mu = [10.0, 0.1]}\nfolds = 3\n")
    code, out, _ = command_line("cv", path, "--json", "--plot", tmp_path / "map.png")
    record, file = json.loads(out)["validation"], load_problem(path)
    lam, mu = file.problem.parameters
    found = file.problem.cross_validate({lam: [10.0, 1.0], mu: [10.0, 0.1]}, folds=3, refit=False, tol=1e-8)
    assert code == 0 and record["parameter"] == ["lam", "mu"] and record["chosen"] == list(found.best)
    assert record["values"] == [list(point) for point in found.points]
    code, out, _ = command_line("solve", path, "--no-check")
    file.choose()
    assert code == 0 and "lam and mu chosen on 3 folds" in out and (lam.value, mu.value) == found.best
    assert f"λ = {lam.value:g}" in out and f"μ = {mu.value:g}" in out


@for_each(
    ("typed", "says"),
    [
        (["path", "--values", "ten"], "--values ten: write numbers with commas between"),
        (["path", "--values", "1"], "at least 2"),
        (["path", "--values=-1,2"], "finite and >= 0"),
        (["path", "--parameter", "mu"], "the model has no parameter 'mu'; it has lam"),
        (["path", "--plot", "a.txt"], "--plot a.txt: the path must end in .png, .svg or .pdf"),
        (["path", "--report", "a.txt"], "--report a.txt: the path must end in .html"),
        (["path", "--csv", "no/such/a.csv"], "cannot be written"),
        (["path", "--metric", "f2"], "no such measure"),
        (["cv", "--folds", "1"], "--folds 1: write a whole number of at least 2"),
        (["cv", "--random-state", "-1"], "--random-state -1: write a whole number >= 0"),
        (["cv", "--folds", "1000"], "--folds 1000: there are"),
        (["cv", "--set", "tol=2"], "--set tol=2"),
    ],
)
def test_mistakes_are_named(typed, says, write, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, *options = typed
    assert main([command, str(write(FILE)), *options]) == 2
    assert says in capsys.readouterr().err


def test_values_that_are_not_known_by_themselves(write, capsys):
    text = FILE.replace('+ lam * l21_norm(W)"', '"\nsubject_to = ["l21_norm(W) <= lam"]')
    for command in ("path", "cv"):
        assert main([command, str(write(text))]) == 2
        err = capsys.readouterr().err
        assert "write --values 10,1,0.1" in err and "values=[" not in err


@for_each(
    ("said", "says"),
    [
        ('parameter = "lam"\nvalues = {lam = [1.0]}\n', "leave parameter out"),
        ("values = {lam = [1.0], nu = [1.0]}\n", r"no 'nu'"),
        ("values = {lam = [1.0, -1.0]}\n", "values must be"),
        ('values = {lam = [1.0], mu = [1.0]}\nrule = "one_se"\n', "of one parameter"),
    ],
)
def test_mistakes_of_several_parameters_in_the_file(said, says, write, capsys):
    assert main(["cv", str(write(TWO + "[validation]\n" + said))]) == 2
    err = capsys.readouterr().err
    assert says in err and "p.toml:" in err and "^" in err


@for_each("columns, command", [(100, "path"), (100, "cv"), (100, "report"), (80, "path"), (80, "cv"), (80, "solve"), (80, "new"), (80, "predict"), (80, "report")])  # fmt: skip
def test_help_is_one_screen_and_ends_with_an_example(columns, command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 50 and f"  mtldsl {command} " in out.rpartition("example")[2]
    assert ("over a file that is there" in " ".join(out.split())) == (command != "new")


def test_folds_without_a_positive_are_told(write, tmp_path, capsys):
    """A rare label on more folds than it has positives: the mean is over the others."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.where(np.arange(40) < 6, 1, -1)
    np.savez(tmp_path / "rare.npz", X=X, Y=y[:, None])
    path = write(
        'minimize = "logistic_loss(W, tasks) + lam * ridge(W)"\n[data]\nformat = "npz"\npath = "rare.npz"\n[parameters]\nlam = 1.0\n'
        '[validation]\nparameter = "lam"\nvalues = [1.0]\nfolds = 10\nmetric = "average_precision"\n'
    )
    assert main(["cv", str(path)]) == 0
    assert "without a number: 'task0' in 4 of 10 folds" in " ".join(capsys.readouterr().out.split())
