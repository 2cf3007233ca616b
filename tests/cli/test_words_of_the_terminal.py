"""Errors and advice of the command line are in its own words: commands, files, standard input."""

import io
import json
import sys
from time import perf_counter

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.cli.command_line import main
from mtldsl.cli.new_command import draft
from mtldsl.language.source_text import Source
from tests.loops import for_each
from tests.models import with_weights


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a solution s.npz, its proof p.npz, its data d.npz and a problem file of other data, o.toml."""
    folder = tmp_path_factory.mktemp("saved")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    Y = X @ rng.normal(size=(2, 2))
    np.savez(folder / "d.npz", X=X, Y=Y + 1)
    tasks, W = with_weights(mtl.Tasks.shared(X, Y, feature_names=["a", "b"]))
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    solution.save(folder / "s.npz")
    solution.certificate.save(folder / "p.npz")
    (folder / "o.toml").write_text('minimize = "squared_loss(W, tasks) + ridge(W)"\n[data]\npath = "d.npz"\n')
    return folder


@pytest.fixture(autouse=True)
def there(saved, monkeypatch):
    monkeypatch.chdir(saved)


def test_a_proof_is_no_solution(command_line):
    (told := command_line("predict", "p.npz", "new.csv")[2])
    assert "it is a proof, which holds no solution" in told and "[output] solution" in told
    (told := command_line("predict", "d.npz", "new.csv")[2])
    assert told.startswith("mtldsl: d.npz: ") and "[output] solution" in told


def test_verify_speaks_of_its_command_and_files(command_line):
    code, _, told = command_line("verify", "p.npz")
    assert code == 2 and told.startswith("mtldsl verify p.npz: the proof does not hold its data")
    code, _, told = command_line("verify", "nothere.npz")
    assert code == 2 and told.startswith("mtldsl verify nothere.npz: not a saved proof")
    code, _, told = command_line("verify", "p.npz", "o.toml")
    assert code == 2 and "mtldsl verify p.npz o.toml: " in told and "y in o.toml differs" in told
    told = command_line("verify", "s.npz", "o.toml")[2]
    assert "mtldsl verify s.npz o.toml: not a saved proof" in told
    told = command_line("verify", "p.npz", "d.npz")[2]
    assert told.startswith("mtldsl: d.npz: not a saved proof")


@for_each("command", ["solve", "check", "explain"])
def test_a_report_in_a_pipe_ends_no_line_with_spaces(command_line, command, monkeypatch):
    monkeypatch.setattr("mtldsl.cli.solve_commands.BEGAN", perf_counter() - 1e3)
    code, told, _ = command_line(command, "o.toml")
    assert code == 0 and len(told.splitlines()) > 5
    assert [line for line in told.splitlines() if line.endswith(" ")] == []
    assert command != "solve" or float(told.split()[-4]) >= 1e3  # seconds since the command began


def test_help_counts_per_task(capsys):
    for command in ([], ["predict"], ["report"]):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        told = " ".join(capsys.readouterr().out.split())
        assert "per task" in told and "a column a task" not in told and "one a task" not in told


def test_errors_of_a_pipe_name_standard_input(command_line, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,two\n")))
    code, _, told = command_line("predict", "s.npz", "-")
    assert code == 2 and told.startswith("mtldsl: standard input:2: ") and "standard_input" not in told


@pytest.mark.parametrize("last, several", [(("low", "high"), False), (("no", "yes"), True), ((1, 2), True)])
def test_several_labels_are_advised_where_read(last, several, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{i % 7},{(i * i) % 5},{last[i % 3 == 0]}" for i in range(30)]
    path.write_text("\n".join(["a,b,c", *rows]) + "\n")
    advised = next(one for one in draft(path).said if one.startswith("Label: c"))
    assert ("--labels A,B" in advised) == several and "--labels A" in advised


def test_a_solver_in_capitals_is_known(command_line):
    (told := command_line("explain", "o.toml")[2])
    assert told == ""
    code, _, told = command_line("solve", "o.toml", "--solver", "ADMM")
    assert code == 2 and "did you mean 'admm'?" in told


def test_a_narrow_window_cuts_no_solver(command_line, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    for arguments in (
        ("explain", "o.toml"),
        ("check", "o.toml"),
        ("words",),
        ("words", "squared_cluster_norm"),
    ):
        code, said, _ = command_line(*arguments)
        assert code == 0 and "…" not in said, arguments
    record = json.loads(command_line("check", "o.toml", "--json")[1])["cross_check"]
    said = command_line("check", "o.toml")[1]
    assert f"{record['reference_objective']:.10g}" in said and f"{record['reference_bound']:.10g}" in said


def test_closed_output_is_said(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)  # as of the shell's >&-
    assert main(["words"]) == 2
    assert "standard output is closed; print to a file" in capsys.readouterr().err


def test_an_empty_line_is_not_shown():
    assert Source.of("", "p.toml").spot(0, 1).shown == ""
    assert Source.of("x = ", "p.toml").spot(0, 1).shown.endswith("^")
