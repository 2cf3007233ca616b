"""The pages of docs/ are run: sessions as doctests, the how-to with its word under every law, the catalogue against the registry."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mtldsl as mtl
from mtldsl import estimators
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import ModelError
from tests.loops import for_each

ROOT = Path(__file__).parents[1]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path, language: str) -> str:
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL))


def sessions(page: Path, names: dict | None = None) -> int:
    """Run the page's Python sessions, one after the other in one namespace; how many examples there were."""
    test = doctest.DocTestParser().get_doctest(
        blocks(page, "pycon"), dict(names or {}), page.name, str(page), 0
    )
    failed, attempted = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
    assert failed == 0, f"{page.name}: {failed} of {attempted} examples differ; see the captured output"
    return attempted


@pytest.mark.by_default("scaling.md-9")
@pytest.mark.parametrize("name, at_least", [
    ("language.md", 20), ("mathematics.md", 20), ("solvers.md", 10), ("scaling.md", 9),
    ("proofs.md", 15), ("estimators.md", 15), ("model_selection.md", 10), ("faq.md", 4),
])  # fmt: skip
def test_sessions_on_the_page_run(name, at_least, tmp_path, monkeypatch):
    """That of start.md runs in tests/docs/test_example_page.py."""
    monkeypatch.chdir(tmp_path)  # what a page writes
    assert sessions(ROOT / "docs" / name) >= at_least


@pytest.mark.process
def test_adding_a_word_runs_as_written_and_obeys_every_law():
    """In an interpreter of its own, so that the new word stays out of the other tests' registry; the catalogue has it by itself."""
    program = """
import doctest, sys, types
import mtldsl.language.vocabulary as vocabulary
from mtldsl.cli.catalogue import entry
from mtldsl.testing import check_atom
from tests.test_docs import ROOT, blocks, sessions

page = ROOT / "docs" / "adding_a_word.md"
word = types.ModuleType("the_new_word")
sys.modules["the_new_word"] = word
exec(compile(blocks(page, "python"), str(page), "exec"), vars(word))
vocabulary.WORDS["expectile_loss"] = word.expectile_loss
assert doctest.testmod(word).failed == 0
sessions(page, vars(word))
new = entry("expectile_loss")
print(new.typed, new.kind, "admm" in new.solvers, new.reference)
print(check_atom(word.expectile_loss))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    *_, said, checks = done.stdout.splitlines()
    assert said == "expectile_loss(W, tasks, q=0.5, *, mean=False) loss True True"
    assert int(checks) >= 12


def test_the_problem_file_on_the_page_is_read_solved_and_checked(tmp_path, monkeypatch):
    page = ROOT / "docs" / "problem_files.md"
    monkeypatch.chdir(tmp_path)
    Path("exams.csv").write_text(blocks(page, "csv"))
    Path("exams.toml").write_text(blocks(page, "toml"))
    file = load_problem("exams.toml")
    solution = file.problem.solve(**file.solve)
    assert solution.is_optimal and solution.task_names == ("North", "East", "West")
    assert (solution.W[0] > 0).all() and file.problem.cross_check(solution).agrees
    assert file.outputs["solution"].name == "exams.npz"

    Path("exams.toml").write_text(blocks(page, "toml").replace("l21_norm", "l21_nrom"))
    with pytest.raises(ModelError) as error:
        load_problem("exams.toml")
    assert str(error.value).strip() in blocks(page, "text")


@for_each("what", ["words", "models"])
def test_the_catalogue_page_is_what_the_command_prints(what, command_line):
    _, printed, _ = command_line(what, "--markdown")
    page = (ROOT / "docs" / f"{what}.md").read_text()
    assert page == printed, f"write it anew: mtldsl {what} --markdown > docs/{what}.md"


PUBLIC = {
    **{name: getattr(mtl, name) for name in mtl.__all__},
    **{name: getattr(estimators, name) for name in estimators.__all__},
}


def examples_of(name):
    return doctest.DocTestParser().get_doctest(PUBLIC[name].__doc__ or "", {}, name, None, 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(8))
def test_an_example_runs_by_itself(start):
    failed = {}
    for name in list(PUBLIC)[start::8]:
        said = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
        runner.run(examples_of(name), out=said.append)
        if runner.failures:
            failed[name] = "".join(said)
    assert failed == {}


@for_each("name", [name for name, word in PUBLIC.items() if hasattr(word, "atom")])
def test_the_example_of_a_word_has_it_in_a_model(name):
    typed = "".join(one.source for one in examples_of(name).examples)
    assert f"mtl.{name}(" in typed and "mtl.minimize(" in typed and "solve()" in typed
