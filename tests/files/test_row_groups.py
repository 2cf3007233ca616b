"""Rows of one patient, named by a column: on one side of a split, and in one fold, as a user writes it."""

import csv

import numpy as np
import pytest

from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from tests.loops import for_each

RNG = np.random.default_rng(2)
N = 120
PATIENT = RNG.integers(40, size=N)
X = RNG.normal(size=(N, 2))
SICK = X[:, 0] + RNG.normal(size=N) > 0
SITE = np.array(["a", "b"])[RNG.integers(2, size=N)]


def problem_file(folder, data='labels = "y"\ndrop = ["patient_id", "site"]', split='groups = "patient_id"', cv='groups = "patient_id"'):  # fmt: skip
    rows = "\n".join(f"q{p};{s};{x[0]:.4f};{x[1]:.4f};{'' if i == 5 else int(y)}" for i, (p, s, x, y) in enumerate(zip(PATIENT, SITE, X, SICK, strict=True)))  # fmt: skip
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


@for_each(
    ("options", "says"),
    [
        ({"split": 'groups = "patient"'},
         "p.toml:10:11: t.csv has no column 'patient'; did you mean 'patient_id'?"),
        ({"cv": 'groups = "sites"'}, "t.csv has no column 'sites'; did you mean 'site'?"),
        ({"split": "groups = [1]"}, "groups must be text in quotes"),
        ({"cv": 'groups = "y"'}, "t.csv:7: column 'y' is empty, so that it is not clear to whom"),
    ],
)  # fmt: skip
def test_columns_that_say_no_group_are_refused(options, says, tmp_path, capsys):
    assert main(["solve", str(problem_file(tmp_path, **options))]) == 2
    assert says in capsys.readouterr().err


def test_rows_of_a_missing_group_are_refused(tmp_path, capsys):
    path = problem_file(tmp_path, 'labels = "y"\ndrop = ["patient_id", "site"]', 'groups = "site"')
    lines = (tmp_path / "t.csv").read_text().splitlines()
    lines[3] = lines[3].replace(";a;", ";NA;").replace(";b;", ";NA;")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert main(["solve", str(path)]) == 2
    assert "t.csv:4: column 'site' is empty" in capsys.readouterr().err


def test_mtldsl_new_sees_ids_that_come_again(tmp_path, capsys):
    problem_file(tmp_path)
    assert main(["new", str(tmp_path / "t.csv"), "--print"]) == 0
    text = capsys.readouterr().out
    assert f'# groups = "patient_id"  # {len(set(PATIENT))} values in 120 rows' in text
    (tmp_path / "n.toml").write_text(text.replace('# groups = "patient_id"', 'groups = "patient_id"'))
    assert load_problem(tmp_path / "n.toml").tasks_test is not None
