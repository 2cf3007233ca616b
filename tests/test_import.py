"""The first second of a new user: importing is light, and what README, package and metadata say of themselves agrees."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mtldsl
from mtldsl.language import vocabulary
from tests.fresh import loaded_by, shown_by_all

ROOT = Path(__file__).parents[1]
HEAVY = [
    "torch", "cvxpy", "numba", "sklearn", "matplotlib", "pandas", "polars", "narwhals", "rich", "osqp",
    "scs", "clarabel",
]  # fmt: skip


def test_import_loads_few_modules_and_nothing_heavy():
    """99 modules of our own today, of some 400; how long that takes is in benchmarks/cold_start.py."""
    loaded = loaded_by("import")
    assert not set(HEAVY) & loaded
    assert not any(name.startswith("mtldsl.distributed") for name in loaded)
    assert 60 < sum(name.startswith("mtldsl.") for name in loaded) <= 100


def test_every_public_name_is_there_and_documented():
    for name in mtldsl.__all__:
        assert getattr(mtldsl, name).__doc__, name


@pytest.mark.process
def test_dir_shows_what_a_user_types_and_no_module():
    """In a process where everything was imported already: the modules are there, and are not shown."""
    fits, shown = shown_by_all()
    assert fits and set(shown) == {*mtldsl.__all__, *mtldsl._ROOMS, "__version__"}
    assert not {*vocabulary.METRICS, *vocabulary.SIMILARITIES} & set(shown)
    assert not {"errors", "annotations", "TYPE_CHECKING", "import_module", "language", "cli"} & set(shown)
    for name in shown:
        assert hasattr(mtldsl, name), name


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert pyproject()["version"] == mtldsl.__version__
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE).group(1) == mtldsl.__version__


def test_installed_metadata_has_the_same_version():
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("mtldsl")
    except PackageNotFoundError:
        pytest.skip("mtldsl runs from a checkout that is not installed")
    assert installed == mtldsl.__version__


def first_commands() -> list[str]:
    """The commands of the README's first shell blocks."""
    text = (ROOT / "README.md").read_text()
    return [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.strip().splitlines()
    ]


def test_readme_starts_with_two_commands_that_fit_the_package():
    install, test = first_commands()[:2]
    assert (
        '-m venv .venv && .venv/bin/pip install -e ".[dev]" && .venv/bin/mtldsl solve examples/01_digits.toml'
        in install
    )
    assert test == ".venv/bin/python -m pytest"
    assert pyproject()["scripts"]["mtldsl"].startswith("mtldsl.cli:")
    assert "dev" in pyproject()["optional-dependencies"]
    assert (ROOT / "examples" / "01_digits.toml").is_file()
    assert f"Python {pyproject()['requires-python'].removeprefix('>=')}" in (ROOT / "README.md").read_text()


def test_readme_shows_the_report_of_the_present_problem_file(command_line, monkeypatch):
    """Model, data and their wording; the figures of the solve are as they were when they were pasted."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "96")
    _, shown, _ = command_line("explain", "examples/01_digits.toml")
    readme = (ROOT / "README.md").read_text()
    described = shown[: shown.index("Solvers")].strip().splitlines()
    assert len(described) > 8
    for line in described:
        assert line.rstrip() in readme, line


def test_moved_names_work_and_say_so_once():
    """In a process of its own: the names are kept once they were asked for."""
    code = (
        "import warnings, mtldsl as mtl\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    for name, room in mtl._MOVED.items():\n"
        "        assert getattr(mtl, name) is getattr(mtl, name) is getattr(getattr(mtl, room), name)\n"
        "assert [str(one.message) for one in said] == [\n"
        "    f'mtldsl.{name} has moved; write mtldsl.{room}.{name}' for name, room in mtl._MOVED.items()\n"
        "]\n"
        "assert not set(mtl._MOVED) & set(mtl.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
