"""Plugins of problem files: code runs only where whoever reads the file has agreed."""

import doctest
import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import mtldsl as mtl
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.language import vocabulary
from tests.test_docs import ROOT, blocks, sessions

PAGE = ROOT / "docs" / "extending" / "a_constraint.md"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a problem file, and with its plugin beside it, which says that it was run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_words.py").write_text("open('was_run', 'w').close()\n" + blocks(PAGE, "python"))
    (tmp_path / "model.toml").write_text(blocks(PAGE, "toml"))
    return tmp_path


def test_what_lies_beside_the_file_is_not_run(here):
    with pytest.raises(mtl.ModelError) as error:
        load_problem("model.toml")
    said = str(error.value)
    assert said.startswith("model.toml:") and 'use = ["my_words"]' in said
    assert (
        "the plugin 'my_words' is not installed and not allowed" in said
        and "--allow-plugins my_words" in said
    )
    assert not (here / "was_run").exists()
    with pytest.raises(mtl.ModelError, match="not allowed; did you mean 'my_word'"):
        load_problem("model.toml", allow_plugins=["my_word"])
    assert not (here / "was_run").exists()


def test_a_file_that_is_allowed_is_run_once(here):
    for _ in range(2):
        file = load_problem("model.toml", allow_plugins=["my_words.py"])
    assert (here / "was_run").exists() and "columns_in_balls(W, radius=0.5)" in str(file.problem)
    assert file.problem.solve().status == "optimal"


def test_an_allowed_module_is_imported_as_an_installed_one(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    assert "columns_in_balls" in str(load_problem("model.toml", allow_plugins=["my_words"]).problem)
    mtl.unregister("columns_in_balls")
    del sys.modules["my_words"]
    point = EntryPoint("my_words", "my_words", vocabulary.GROUP)
    monkeypatch.setattr(
        vocabulary, "entry_points", lambda group: (point,) if group == "mtldsl.plugins" else ()
    )
    assert "columns_in_balls" in str(load_problem("model.toml").problem)


def test_a_plugin_that_fails_is_an_error_of_the_file(here):
    (here / "my_words.py").write_text("1 / 0")
    with pytest.raises(
        mtl.ModelError, match=r"(?s)model.toml:\d+.*plugin 'my_words' cannot be used: ZeroDivisionError"
    ):
        load_problem("model.toml", allow_plugins=["my_words.py"])
    (here / "model.toml").write_text('minimize = "ridge(W)"\n[plugins]\nuse = "my_words"\n')
    with pytest.raises(mtl.DataError, match="use must be a list of names such as"):
        load_problem("model.toml", allow_plugins=["my_words.py"])
    (here / "json.py").write_text("raise SystemError")
    (here / "model.toml").write_text(blocks(PAGE, "toml").replace("my_words", "json"))
    with pytest.raises(mtl.ModelError, match="there is a module 'json' already"):
        load_problem("model.toml", allow_plugins=["json.py"])


@pytest.mark.slow
def test_the_command_line_says_what_to_type(here, command_line):
    code, _, err = command_line("explain", "model.toml")
    assert code == 2 and "--allow-plugins my_words" in err
    code, out, err = command_line("explain", "model.toml", "--allow-plugins", "my_words.py")
    assert code == 0 and "columns_in_balls(W, radius=0.5)" in out, err


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
