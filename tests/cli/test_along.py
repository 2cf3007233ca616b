"""`mtldsl path` and `mtldsl cv`: what the command line tells is what Python finds."""

import csv
import json

import numpy as np
import pytest

from mtldsl.cli.command_line import main
from mtldsl.files.problem_file import load_problem
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
def test_a_path_from_where_the_weights_are_zero(write, tmp_path, capsys):
    path = write(FILE)
    outputs = [x for kind in ("csv", "plot", "report") for x in (f"--{kind}", str(tmp_path / f"o.{ {'plot': 'png', 'report': 'html'}.get(kind, kind) }"))]  # fmt: skip
    assert main(["path", str(path), "--values", "5", *outputs]) == 0
    out = capsys.readouterr().out
    file = load_problem(path)
    (lam,) = file.problem.parameters
    top = file.problem.lambda_max(lam)
    rows = table(tmp_path / "o.csv")
    values = [float(row["lam"]) for row in rows]
    np.testing.assert_allclose(values, np.geomspace(top, top / 1000, 5))
    assert int(rows[0]["features"]) == 0 and int(rows[-1]["features"]) == 8
    for row, solution in zip(rows, file.problem.path(lam, values, tol=1e-8), strict=True):
        assert float(row["objective"]) == pytest.approx(solution.objective, rel=1e-7)
        assert float(row["score"]) == pytest.approx(float(solution.score(file.tasks_test, "r2")), rel=1e-6)
    assert "r2, held out" in out and "certified: 5 of 5" in out
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "o.html").read_text()
    assert "5 of 5 solutions are certified" in page and "<title>A path</title>" in page
    assert "<dt>best " in page and "so a little too good" in page
    assert "mtldsl path p.toml --values 5" in page and "http" not in page.replace("http://www.w3.org", "")


def test_values_that_are_given_and_one_of_two_parameters(write, capsys):
    path = write(TWO)
    assert main(["path", str(path), "--parameter", "mu", "--values", "1, 10,0.1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["path"]
    assert record["parameter"] == "mu" and [row["value"] for row in record["rows"]] == [1.0, 10.0, 0.1]
    assert main(["path", str(path)]) == 2
    assert "the model has lam, mu; write --parameter lam" in capsys.readouterr().err
    assert main(["path", str(write(TWO + VALIDATION)), "--quiet", "--progress"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("certified: 3 of 3") and "lam 3 of 3: = 0.01" in err


def test_a_path_that_is_not_certified_says_so(write, capsys):
    assert main(["path", str(write(FILE)), "--values", "1,0.5", "--set", "max_iter=1", "--solver", "proximal_gradient"]) == 1  # fmt: skip
    assert "NOT certified" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_cv_is_cross_validate_on_the_training_rows(rule, write, tmp_path, capsys):
    path = write(FILE + VALIDATION)
    options = ["--rule", rule, "--random-state", "1"]
    outputs = ["--csv", str(tmp_path / "o.csv"), "--plot", str(tmp_path / "o.svg"), "--report", str(tmp_path / "o.html")]  # fmt: skip
    assert main(["cv", str(path), *options, *outputs, "--progress"]) == 0
    out, err = capsys.readouterr()
    file = load_problem(path)
    (lam,) = file.problem.parameters
    found = file.problem.cross_validate(lam, [100.0, 1.0, 0.01], 3, "mse", refit=False, random_state=1, tol=1e-8)  # fmt: skip
    chosen = found.one_se_value if rule == "one_se" else found.best_value
    assert f"chosen: lam = {chosen:.6g}" in out and "fold 3 of 3: best at lam" in err
    rows = table(tmp_path / "o.csv")
    assert len(rows) == 3 * 3 * 3
    np.testing.assert_allclose([float(row["score"]) for row in rows], [row["score"] for row in found.table])
    page = (tmp_path / "o.html").read_text()
    assert f"chosen: lam = {chosen:.6g}" in page and "mtldsl cv p.toml" in page and f"--rule {rule}" in page
    assert "<svg" in (tmp_path / "o.svg").read_text()


def test_cv_without_a_table_in_the_file(write, capsys):
    path = write(FILE)
    options = ["--values", "10,1", "--folds", "2", "--metric", "mae"]
    assert main(["cv", str(path), *options, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["validation"]
    file = load_problem(path)
    found = file.problem.cross_validate(
        file.problem.parameters[0], [10.0, 1.0], 2, "mae", refit=False, tol=1e-8
    )
    assert record["mean"] == found.mean.tolist() and record["best"] == found.best_value
    assert record["one_standard_error"] == found.one_se_value and record["metric"] == "mae"
    assert main(["cv", str(path), *options, "--quiet"]) == 0
    assert capsys.readouterr().out.startswith(f"chosen: lam = {found.best_value:.6g}")
    assert path.read_text() == FILE  # the file stays as it is


def test_two_parameters_are_a_grid_in_cv_and_in_solve(write, tmp_path, capsys):
    path = write(TWO + "[validation]\nvalues = {lam = [10.0, 1.0], mu = [10.0, 0.1]}\nfolds = 3\n")
    assert main(["cv", str(path), "--json", "--plot", str(tmp_path / "map.png")]) == 0
    record = json.loads(capsys.readouterr().out)["validation"]
    file = load_problem(path)
    lam, mu = file.problem.parameters
    found = file.problem.cross_validate({lam: [10.0, 1.0], mu: [10.0, 0.1]}, folds=3, refit=False, tol=1e-8)
    assert record["parameter"] == ["lam", "mu"] and record["chosen"] == list(found.best)
    assert record["values"] == [list(point) for point in found.points]
    assert main(["solve", str(path), "--no-check"]) == 0
    out = capsys.readouterr().out
    assert "lam and mu chosen on 3 folds" in out
    file.choose()
    assert (lam.value, mu.value) == found.best
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
        (["cv", "--metric", "f2"], "no such measure"),
        (["cv", "--folds", "1"], "--folds 1: write a whole number of at least 2"),
        (["cv", "--set", "tol=2"], "--set tol=2"),
    ],
)
def test_mistakes_are_named(typed, says, write, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, *options = typed
    assert main([command, str(write(FILE)), *options]) == 2
    assert says in capsys.readouterr().err


def test_values_that_are_not_known_by_themselves(write, capsys):
    text = FILE.replace('+ lam * l21_norm(W)"', '+ l21_norm(W) + lam * ridge(W)"')
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


@pytest.mark.slow
def test_as_a_user_from_another_folder(write, tmp_path, monkeypatch, command_line):
    (tmp_path / "elsewhere").mkdir()
    path = write(FILE)
    monkeypatch.chdir(tmp_path / "elsewhere")
    for command in (["path", str(path), "--values", "10,1", "--csv", "t.csv"], ["cv", "../p.toml", "--values", "10,1", "--quiet"]):  # fmt: skip
        code, _, err = command_line(*command)
        assert (code, err) == (0, "")
    assert len(table(tmp_path / "elsewhere" / "t.csv")) == 2


@pytest.mark.parametrize("command", ["path", "cv", "report"])
def test_help_is_one_screen_and_ends_with_an_example(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 50 and f"  mtldsl {command} exams" in out.rpartition("example")[2]


@for_each("command", ["path", "cv", "solve", "new", "predict", "report"])
def test_help_fits_a_page(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50


def test_folds_without_a_positive_are_told(write, tmp_path, capsys):
    """A rare label on more folds than it has positives: the mean is over the others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.where(np.arange(40) < 6, 1, -1)
    np.savez(tmp_path / "rare.npz", X=X, Y=y[:, None])
    path = write(
        'minimize = "logistic_loss(W, tasks) + lam * ridge(W)"\n[data]\nformat = "npz"\npath = "rare.npz"\n[parameters]\nlam = 1.0\n'
        '[validation]\nparameter = "lam"\nvalues = [1.0]\nfolds = 10\nmetric = "average_precision"\n'
    )
    assert main(["cv", str(path)]) == 0
    assert "without a number: 'task0' in 4 of 10 folds" in " ".join(capsys.readouterr().out.split())
