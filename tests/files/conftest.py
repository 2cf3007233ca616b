"""What tests of problem files share: a file of a text beside whatever the test writes."""

import pytest

from mtldsl.cli.problem_files.problem_file import load_problem


@pytest.fixture
def load(tmp_path):
    """text -> what is read of a problem file p.toml with it."""

    def from_text(text):
        path = tmp_path / "p.toml"
        path.write_text(text, encoding="utf-8")
        return load_problem(path)

    return from_text
