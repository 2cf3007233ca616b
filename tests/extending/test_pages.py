"""Every page of docs/extending/ that adds something is run as it stands: its module, its sessions, and its problem file by the command line."""

import doctest
import sys
import types
from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks, sessions

PAGES = sorted((ROOT / "docs" / "extending").glob("a_*.md"))


def test_there_is_a_page_for_each_kind():
    assert {page.stem for page in PAGES} >= {
        *("a_regularizer", "a_loss", "a_metric", "a_constraint", "a_structure", "a_solver")
    }


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs_as_written(page):
    module = types.ModuleType("my_words")
    sys.modules["my_words"] = module
    exec(compile(blocks(page, "python"), str(page), "exec"), vars(module))
    assert doctest.testmod(module).failed == 0
    assert sessions(page, vars(module)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_problem_file_is_solved_where_the_plugin_is_allowed(page, tmp_path, monkeypatch, command_line):
    Path(tmp_path, "my_words.py").write_text(blocks(page, "python"))
    Path(tmp_path, "model.toml").write_text(blocks(page, "toml"))
    monkeypatch.chdir(tmp_path)
    code, out, err = command_line("solve", "model.toml", "--quiet", "--allow-plugins", "my_words.py")
    assert code == 0 and "certified" in out, out + err
