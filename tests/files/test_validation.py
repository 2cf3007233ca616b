"""[validation]: a parameter of a problem file is chosen by folds, as `problem.cross_validate` chooses it, before the solve."""

import csv
import json

import numpy as np
import pytest

from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import ProblemFile, load_problem
from mtldsl.cli.record import validation
from mtldsl.cli.run_report import to_text
from mtldsl.errors import MTLError
from tests.loops import for_each

FILE = """minimize = "squared_loss(W, tasks) + lam * l21_norm(W) + mu * ridge(W)"
[data]
dataset = "group_sparse"
n_tasks = 3
n_samples = 40
n_features = 8
random_state = 0
[split]
test_size = 0.25
[parameters]
lam = 5.0
mu = 2.0
[solve]
tol = 1e-8
[validation]
"""
CHOICE = 'parameter = "lam"\nvalues = [100.0, 1.0, 0.01]\nfolds = 3\nmetric = "mse"\nrandom_state = 1\n'


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_the_choice_is_cross_validates_on_training_rows(load, rule):
    file = load(FILE + CHOICE + f'rule = "{rule}"\n')
    lam = next(each for each in file.problem.parameters if each.name == "lam")
    expected = file.problem.cross_validate(
        lam, [100.0, 1.0, 0.01], 3, "mse", refit=False, random_state=1, tol=1e-8
    )
    assert lam.value == 5.0
    found = file.choose()
    assert (found.scores == expected.scores).all()
    assert lam.value == (expected.one_se_value if rule == "one_se" else expected.best_value) != 5.0


def test_values_from_the_data_and_groups(load):
    file = load(FILE + 'parameter = "lam"\nvalues = 4\nfolds = 2\nstratify = false\n')
    assert len(file.choose().points) == 4
    n = file.tasks_train.n_samples
    file = load(
        FILE + f'parameter = "lam"\nvalues = [1.0, 2.0]\nfolds = 2\ngroups = {[k % 5 for k in range(n)]}\n'
    )
    assert file.choose().scores.shape == (2, 2)
    assert load(FILE.replace("[validation]\n", "")).choose() is None
    ball = FILE.replace("+ lam * l21_norm(W)", "").replace(
        "[data]", 'subject_to = ["l1_norm(W) <= lam"]\n[data]', 1
    )
    with pytest.raises(MTLError, match=r"toml:\d+:1: .*lam is a radius.*values="):
        load(ball + 'parameter = "lam"\nvalues = 4\n').choose()


@pytest.mark.parametrize("is_proven", [True, False])
def test_a_proven_choice_fits_a_screen(is_proven):
    values = np.geomspace(100.0, 1.0, 60).tolist()
    record = {
        "parameter": "lam", "values": values, "mean": [0.5] * 60, "standard_error": [0.1] * 60, "folds": 5, "metric": "mse",
        "higher_is_better": False, "chosen": values[7], "best": values[7], "one_standard_error": values[3], "notes": [],
        "proof": {"regret": 0.01} if is_proven else None,
    }  # fmt: skip
    lines = to_text(validation(record)).splitlines()
    assert ("46 values more are on the report's page" in "".join(lines)) == is_proven
    assert (len(lines) < 20) == is_proven
    assert [line.split()[0] for line in lines if line.rstrip().endswith("best, chosen")] == [
        f"{values[7]:.4g}"
    ]


@pytest.mark.slow
def test_the_command_line_chooses_solves_and_reports(tmp_path, capsys):
    path = tmp_path / "p.toml"
    path.write_text(FILE + CHOICE, encoding="utf-8")
    file = load_problem(path)
    file.choose()
    expected = file.problem.solve(tol=1e-8)
    assert main(["solve", str(path), "--no-check", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["validation"]["chosen"] == expected.parameters["lam"]
    assert record["validation"]["values"] == [100.0, 1.0, 0.01] and record["validation"]["folds"] == 3
    assert record["solution"]["objective"] == pytest.approx(expected.objective, rel=1e-12)
    assert main(["solve", str(path), "--no-check", "--output", str(tmp_path / "r.html")]) == 0
    text = capsys.readouterr().out
    assert "lam chosen on 3 folds: mse (lower is better)" in text
    marked = [line for line in text.splitlines() if line.rstrip().endswith("chosen")]
    assert len(marked) == 1 and marked[0].split()[0] == f"{expected.parameters['lam']:g}"
    assert "chosen on 3 folds" in (tmp_path / "r.html").read_text(encoding="utf-8")


@for_each(
    ("said", "line", "says"),
    [
        ("folds = 3\n", 15, "needs parameter = .*one of lam, mu"),
        ('parameter = "lamb"\n', 16, "no 'lamb'; did you mean 'lam'"),
        ('parameter = "lam"\nvalues = []\n', 17, "values must be a list of numbers > 0"),
        ('parameter = "lam"\nvalues = [1.0, -1.0]\n', 17, "values must be a list of numbers > 0"),
        ('parameter = "lam"\nvalues = 1_000_000\n', 17, "whole number >= 2 and <= 1,000"),
        ('parameter = "lam"\nfolds = 1\n', 17, "folds must be a whole number >= 2"),
        ('parameter = "lam"\nmetric = "f2"\n', 17, "no such measure"),
        ('parameter = "lam"\nrule = "1se"\n', 17, "rule must be one of 'best', 'one_se'"),
        ('parameter = "lam"\nfold = 3\n', 17, "no key 'fold'; did you mean 'folds'"),
        ('parameter = "lam"\nregret = 0.1\n', 17, r"write between = \[1e-3, 1e3\] in place of values"),
        ('parameter = "lam"\nbetween = [1.0, 2.0]\n', 17, "write regret = 0.005 beside it"),
        (
            'parameter = "lam"\nregret = 0.1\nbetween = [2.0, 1.0]\n',
            18,
            "two numbers > 0, the lower one first",
        ),
        ('parameter = "lam"\nregret = -1\nbetween = [1.0, 2.0]\n', 17, "regret must be a number > 0"),
        ('parameter = "lam"\ngroups = 5\n', 17, "groups must be a column of the CSV file, or a list"),
    ],
)
def test_mistakes_are_shown_where_they_stand(load, said, line, says):
    with pytest.raises(MTLError, match=rf"(?s)p\.toml:{line}:.*{says}"):
        load(FILE + said)


@for_each(
    ("loss", "metric", "says"),
    [
        ("logistic_loss", "r2", "logistic_loss predicts labels"),
        ("poisson_loss", "f1", "poisson_loss does not predict labels"),
    ],
)
def test_a_measure_that_does_not_suit_the_loss_is_refused(loss, metric, says, tmp_path):
    rows = "\n".join(f"{i % 7},{i % 2}" for i in range(30))
    (tmp_path / "t.csv").write_text(f"u,y\n{rows}\n")
    (tmp_path / "p.toml").write_text(
        f'minimize = "{loss}(W, tasks) + lam * ridge(W)"\n[data]\npath = "t.csv"\nlabels = "y"\nbinary = {"true" if loss[0] == "l" else "false"}\n'
        f'[parameters]\nlam = 1.0\n[validation]\nparameter = "lam"\nmetric = "{metric}"\n'
    )
    with pytest.raises(MTLError) as caught:
        load_problem(tmp_path / "p.toml")
    assert f"p.toml:10:11: {says}" in str(caught.value)


RNG = np.random.default_rng(2)
N = 120
PATIENT = RNG.integers(40, size=N)
X = RNG.normal(size=(N, 2))
SICK = X[:, 0] + RNG.normal(size=N) > 0
SITE = np.array(["a", "b"])[RNG.integers(2, size=N)]


def problem_file(folder, data='labels = "y"\ndrop = ["patient_id", "site"]', split='groups = "patient_id"', cv='groups = "patient_id"'):  # fmt: skip
    rows = "\n".join(f"q{p};{s};{x[0]:.4f};{x[1]:.4f};{'NA' if i == 5 else int(y)}" for i, (p, s, x, y) in enumerate(zip(PATIENT, SITE, X, SICK, strict=True)))  # fmt: skip
    (folder / "t.csv").write_text(f"patient_id;site;u;v;y\n{rows}\n")
    path = folder / "p.toml"
    path.write_text(
        f'minimize = "logistic_loss(W, tasks) + lam * ridge(W)"\n[data]\npath = "t.csv"\ndelimiter = ";"\nbinary = true\n{data}\n[split]\ntest_size = 0.3\n{split}\n'
        f'[parameters]\nlam = 1.0\n[validation]\nparameter = "lam"\nvalues = 3\nfolds = 4\n{cv}\n[thresholds]\n[check]\ncross_check = false\n[output]\npredictions = {{path = "out.csv", keep = ["patient_id"]}}\n'
    )
    return path


@pytest.mark.by_default('labels = "y"\\ntask = "site"\\ndrop = ["patient_id"]')
@pytest.mark.parametrize(
    "data",
    ['labels = "y"\ndrop = ["patient_id", "site"]', 'labels = "y"\ntask = "site"\ndrop = ["patient_id"]'],
)
def test_no_patient_is_on_both_sides(data, tmp_path):
    path = problem_file(tmp_path, data)
    file = load_problem(path)
    train, test = set(file.validation["groups"]), {f"q{PATIENT[row]}" for row in file.test_rows}
    assert train | test == {f"q{p}" for p in PATIENT} and not train & test
    n = len(file.tasks_train.X) if file.tasks_train.is_shared else file.tasks_train.n_samples
    assert len(file.validation["groups"]) == n
    u = file.tasks_train.X[:, 0] if file.tasks_train.is_shared else file.tasks_train.stacked[:, 0]
    of = {f"{x:.4f}": f"q{p}" for x, p in zip(X[:, 0], PATIENT, strict=True)}
    assert [of[f"{x:.4f}"] for x in u] == file.validation["groups"]  # row by row
    assert main(["solve", str(path), "--quiet"]) == 0
    with (tmp_path / "out.csv").open() as rows:
        assert {row["patient_id"] for row in csv.DictReader(rows)} == test
    assert set(load_problem(problem_file(tmp_path, data, split="")).validation["groups"]) & test  # without it


@for_each(("options", "says"), [
    ({"split": 'groups = "patient"'},
     "p.toml:10:11: t.csv has no column 'patient'; did you mean 'patient_id'?"),
    ({"cv": 'groups = "sites"'}, "t.csv has no column 'sites'; did you mean 'site'?"),
    ({"split": "groups = [1]"}, "groups must be text in quotes"),
    ({"cv": 'groups = "y"'}, "t.csv:7: column 'y' is empty, so that it is not clear to whom"),
])  # fmt: skip
def test_columns_that_say_no_group_are_refused(options, says, tmp_path, capsys):
    assert main(["solve", str(problem_file(tmp_path, **options))]) == 2
    assert says in capsys.readouterr().err


def test_mtldsl_new_sees_ids_that_come_again(tmp_path, capsys):
    problem_file(tmp_path)
    assert main(["new", str(tmp_path / "t.csv"), "--print"]) == 0
    text = capsys.readouterr().out
    assert f'# groups = "patient_id"  # {len(set(PATIENT))} values in 120 rows' in text
    (tmp_path / "n.toml").write_text(text.replace('# groups = "patient_id"', 'groups = "patient_id"'))
    assert load_problem(tmp_path / "n.toml").tasks_test is not None


PROVEN = 'parameter = "mu"\nregret = 0.02\nbetween = [0.1, 100.0]\nfolds = 2\nmetric = "r2"\n'


def test_a_proven_choice_is_cross_validates(load):
    file = load(FILE + PROVEN)
    mu = next(each for each in file.problem.parameters if each.name == "mu")
    options = {"between": (0.1, 100.0), "regret": 0.02, "folds": 2, "metric": "r2", "refit": False}
    expected = file.problem.cross_validate(mu, **options, tol=1e-8)
    found = file.choose()
    assert found.proof.value == expected.proof.value <= 0.02 and mu.value == expected.best_value


@pytest.mark.slow
def test_reports_say_in_a_sentence_what_is_proven(tmp_path, capsys, monkeypatch):
    path = tmp_path / "p.toml"
    path.write_text(FILE + PROVEN, encoding="utf-8")
    assert main(["cv", str(path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["validation"]
    assert record["proof"]["regret"] <= record["proof"]["asked"] == 0.02 and record["proof"]["between"] == [
        0.1,
        100.0,
    ]
    assert record["proof"]["fits"] == 2 * len(record["values"])
    page = tmp_path / "r.html"
    assert (
        main(
            ["solve", str(path), "--no-check", "--report", str(page), "--proof", str(tmp_path / "proof.npz")]
        )
        == 0
    )
    assert "for no mu between 0.1 and 100 is r2 on these folds higher" in " ".join(
        capsys.readouterr().out.split()
    )
    assert "for no mu between 0.1 and 100" in page.read_text(encoding="utf-8")
    monkeypatch.setattr(ProblemFile, "choose", None)  # a proof states its value: nothing is chosen anew
    assert main(["verify", str(tmp_path / "proof.npz"), str(path)]) == 0
