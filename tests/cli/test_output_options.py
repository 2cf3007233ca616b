"""Where commands write and read: proofs, problem files elsewhere, rows from standard input."""

import io
import sys

import numpy as np
import pytest

from tests.loops import for_each


@pytest.fixture
def table(tmp_path, monkeypatch):
    """t.csv in the current directory: three features, two columns that say yes or no."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(3)
    ill, tired = np.where(X[:, 0] + rng.normal(size=60) > 0, "yes", "no"), np.where(X[:, 1] > 0, "yes", "no")
    rows = [",".join(map(str, [*x, a, b])) for x, a, b in zip(X, ill, tired, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["age,iron,salt,ill,tired", *rows]) + "\n")
    return tmp_path


def drafted(command_line, *more):
    code, said, told = command_line("new", "t.csv", "--labels", "ill", "tired", *more)
    assert code == 0, told
    return said


@pytest.mark.slow
@pytest.mark.parametrize("by", ["option", "file"])
def test_a_proof_is_of_the_value_that_folds_chose(table, command_line, by):
    drafted(command_line)
    options = ["--proof", "pf"] if by == "option" else []
    if by == "file":
        text = (table / "t.toml").read_text()
        (table / "t.toml").write_text(text.replace("[output]", '[output]\nproof = "pf"'))
    code, _, told = command_line("solve", "t.toml", "--no-check", "--quiet", *options)
    assert code == 0, told
    code, said, _ = command_line("verify", "pf.npz", "t.toml")
    assert code == 0 and "the claim is confirmed" in said
    text = (table / "t.toml").read_text()
    (table / "t.toml").write_text(text.replace("values = 12", "values = [1e3]"))
    assert command_line("verify", "pf.npz", "t.toml")[0] == 1


def test_a_model_that_is_not_convex_has_no_proof_to_write(table, command_line):
    drafted(command_line)
    text = (table / "t.toml").read_text().replace("l21_norm(W)", "log_rank(W)")
    (table / "t.toml").write_text(text)
    code, _, told = command_line("solve", "t.toml", "--no-check", "--quiet", "--proof", "pf")
    assert code == 2 and "not convex, and a saved proof is of a convex one" in told


@for_each("labels", [["--labels", "ill", "tired"], ["--labels", "ill,tired"], ["--labels", "ill,", "tired"]])
def test_labels_are_apart_by_spaces_or_commas(table, command_line, labels):
    code, said, _ = command_line("new", "t.csv", *labels, "--print")
    assert code == 0 and 'labels = ["ill", "tired"]' in said


def test_a_problem_file_elsewhere_finds_the_table(table, command_line):
    (table / "models").mkdir()
    said = drafted(command_line, "--output", "models/first.toml")
    assert (
        "models/first.toml is written" in said
        and 'path = "../t.csv"' in (table / "models/first.toml").read_text()
    )
    assert command_line("explain", "models/first.toml")[0] == 0
    code, _, told = command_line("new", "t.csv", "--output", "models/first.toml")
    assert code == 2 and "write --output PATH" in told


@pytest.mark.slow
def test_rows_from_standard_input_are_those_of_a_file(table, command_line, monkeypatch):
    drafted(command_line)
    assert command_line("solve", "t.toml", "--no-check", "--quiet")[0] == 0
    _, of_file, _ = command_line("predict", "t.npz", "t.csv")
    standard_input = io.TextIOWrapper(io.BytesIO((table / "t.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", standard_input)
    code, of_pipe, _ = command_line("predict", "t.npz", "-")
    assert code == 0 and of_pipe == of_file and "yes" in of_pipe
