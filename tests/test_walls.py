"""Who may import whom: the linter says so of the package as it is, and says otherwise of a copy with one import that is forbidden."""

import ast
import graphlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytest.importorskip("importlinter", reason="pip install -e .[dev]")

#: file -> the line that is added to it, each against a contract: what is imported must not be known there
FORBIDDEN = {
    "reference/maps.py": "from mtldsl.solvers.design import row_penalty",
    "reference/losses.py": "from mtldsl.atoms.prox import composition",
    "reference/metrics.py": "from mtldsl.atoms import sets",
    "reference/planes.py": "from mtldsl.certificates import multipliers",
    "reference/solve.py": "from mtldsl.atoms.inference import cliques",
    "reference/spectral.py": "from mtldsl.normal_form.terms import structure_term",
    "reference/majorization.py": "from mtldsl.normal_form.reductions import block_reductions",
    "normal_form/reductions/reduction.py": "from mtldsl.normal_form.terms import structured_term",
    "normal_form/term.py": "from mtldsl.atoms.regularizers import norm",
    "atoms/losses/regression.py": "from mtldsl.language import vocabulary",
    "data/derived.py": "from mtldsl.language import weights",
    "certificates/dual_bound.py": "from mtldsl.solvers import solver",
    "certificates/checker/loss_formulas.py": "from mtldsl.atoms import atom",
    "solvers/admm/admm.py": "import cvxpy",
    "solvers/coordinate_descent/working_set.py": "from mtldsl.reference import maps",
    "normal_form/form.py": "from mtldsl.problems import problem",
    "certificates/plain/plain_losses.py": "from mtldsl.atoms.losses import regression",
    "certificates/plain/plain_metrics.py": "from mtldsl.atoms.inference import decoder",
    "certificates/plain/plain_values.py": "from mtldsl.normal_form import form",
    "solution/learned.py": "from mtldsl.problems import cross_check_comparison",
    "solvers/multistart.py": "from mtldsl.solution import solution",
    "problems/path.py": "from mtldsl.distributed import distributed_tasks",
    "utils/memory.py": "from mtldsl.data import scaling",
}


def module(file: str) -> str:
    return "mtldsl." + file.removesuffix(".py").replace("/", ".")


def imported(line: str) -> str:
    """The module that the line imports."""
    (node,) = ast.parse(line).body
    if isinstance(node, ast.Import):
        return node.names[0].name
    below = Path(ROOT, *node.module.split("."), f"{node.names[0].name}.py")
    return f"{node.module}.{node.names[0].name}" if below.exists() else node.module


@pytest.fixture
def copy(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    shutil.copytree(ROOT / "mtldsl", tmp_path / "mtldsl", ignore=ignored)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def lint(folder) -> subprocess.CompletedProcess:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code, "--config", ".importlinter", "--no-cache"], cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "400"}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.process
def test_the_package_keeps_its_contracts(copy):
    found = lint(copy)
    assert found.returncode == 0 and " 0 broken" in found.stdout, found.stdout + found.stderr


@pytest.mark.process
def test_every_forbidden_import_is_seen(copy):
    for file, line in FORBIDDEN.items():
        path = copy / "mtldsl" / file
        path.write_text(path.read_text() + "\n" + line + "\n")
    found = lint(copy)
    assert found.returncode == 1, found.stdout + found.stderr
    told = " ".join(found.stdout.split())
    missed = [file for file, line in FORBIDDEN.items() if f"{module(file)} -> {imported(line)} " not in told]
    assert not missed, found.stdout


@pytest.mark.slow
def test_no_file_imports_one_that_imports_it():
    """Imports inside functions and for annotations count too: who reads the one file has to read the other."""
    files = {module(str(path.relative_to(ROOT / "mtldsl"))): path for path in (ROOT / "mtldsl").rglob("*.py")}
    files |= {module(str(path.relative_to(ROOT))): path for path in (ROOT / "reference").rglob("*.py")}
    files = {name.removesuffix(".__init__"): path for name, path in sorted(files.items())}
    arrows = {name: imports_of(name, path, files) for name, path in files.items()}
    assert sum(map(len, arrows.values())) > 2000
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        pytest.fail("a circle: " + " -> ".join(error.args[1]))


def imports_of(name: str, path: Path, files) -> set[str]:
    """The files that a file imports, wherever it does so."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                package = name if path.name == "__init__.py" else name.rpartition(".")[0]
                source = ".".join(part for part in (package, node.module) if part)
            parts = {f"{source}.{alias.name}" for alias in node.names}
            found |= {part if part in files else source for part in parts}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & files.keys()) - {name}
