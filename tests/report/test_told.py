"""What is told of a solution is described once and shown once: nothing that is described is left out of the text."""

import pytest

from mtldsl.files.problem_file import load_problem
from mtldsl.report import record, text

FILE = """minimize = "squared_loss(W, tasks) + ridge(W)"
[data]
dataset = "low_rank"
n_tasks = 3
n_samples = 12
n_features = 4
random_state = 0
"""


def test_what_is_described_is_shown():
    assert record.TOLD.keys() == text.TOLD.keys()


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    path = tmp_path_factory.mktemp("told") / "model.toml"
    path.write_text(FILE)
    file = load_problem(path)
    return file, file.problem.solve()


def test_another_section_is_one_line_of_each_list(solved, monkeypatch):
    """A section of one's own stands in the record and in the text without any other change."""
    monkeypatch.setitem(record.TOLD, "columns", lambda problem, solution: {"columns": solution.W.shape[1]})
    monkeypatch.setitem(text.TOLD, "columns", lambda found: f"a section of {found['columns']} columns")
    run = record.describe_run(*solved, None)
    assert run["solution"]["columns"] == {"columns": 3}
    assert "a section of 3 columns" in text.to_text(text.run_report(run))


def test_what_a_model_has_not_is_not_shown(solved, monkeypatch):
    for name in record.TOLD:
        monkeypatch.setitem(text.TOLD, name, lambda found, name=name: f"a section of {name}")
    run = record.describe_run(*solved, None)
    assert not any(run["solution"][name] for name in record.TOLD)
    assert "a section of" not in text.to_text(text.run_report(run))
