"""What editors and type checkers see: the stub is that of the table of words, and both checkers find what is typed wrong."""

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mtldsl as mtl
from mtldsl.cli.type_stub import PATH, stub

ROOT = Path(__file__).parents[2]

RIGHT = """
import numpy as np

import mtldsl as mtl
from mtldsl import Tasks, Weights, huber_loss

tasks: Tasks = mtl.Tasks.shared(np.zeros((4, 3)), np.zeros((4, 2)))
W = Weights(tasks, intercept=True)
S = mtl.Weights(tasks)
lam = mtl.Parameter(2.0)
problem: mtl.Problem = mtl.minimize(
    huber_loss(W + S, tasks, delta=0.5, mean=True) + lam * mtl.trace_norm(W) + 0.1 * mtl.l1_norm(S, weights=np.ones((3, 2))),
    subject_to=[W >= 0, mtl.columns_on_simplex(S), mtl.l21_norm(W) <= 1],
)
solution: mtl.Solution = problem.solve(tol=1e-6)
weights: np.ndarray = solution.W
gap: float = solution.gap
one = mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore(beta=2.0))
each = mtl.structured_hinge(W, tasks, metric=[mtl.metrics.AUC(), mtl.metrics.ErrorRate()])
learned = mtl.matrix_normal(W, mtl.FeaturePrecision(tasks), np.eye(2), eta=2.0)
kernels = mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.individual()], p=2)
digits: Tasks = mtl.datasets.load_digits()
"""

#: a line that is wrong -> what both checkers say of it, in their own words
WRONG = {
    "mtl.huber_loss(W, tasks, dleta=0.5)": "dleta",
    "mtl.nuclear_norm(W)": "nuclear_norm|Module has no attribute",
    "mtl.huber_loss(tasks, W)": '"Tasks"',
    "mtl.trace_norm()": "parameter|argument",
    "mtl.structured_hinge(W, tasks, metric='f1')": "metric",
    "mtl.metrics.FScore(beat=2.0)": "beat",
    "mtl.minimize(mtl.squared_loss(W, tasks), constraints=[])": "constraints",
}
HEAD = """
import numpy as np
import mtldsl as mtl
tasks = mtl.Tasks.shared(np.zeros((4, 3)), np.zeros((4, 2)))
W = mtl.Weights(tasks)
"""


def test_the_stub_is_that_of_the_table():
    assert PATH.read_text(encoding="utf-8") == stub(), "write it anew: python -m mtldsl.cli.type_stub"


def test_the_stub_has_every_public_name_and_every_parameter():
    tree = compile(stub(), str(PATH), "exec", flags=__import__("ast").PyCF_ONLY_AST)
    functions = {node.name: node for node in tree.body if hasattr(node, "args")}
    for name, word in mtl.language.vocabulary.WORDS.items():
        if not isinstance(word, type):
            given = functions[name].args
            assert [a.arg for a in (*given.args, *given.kwonlyargs)] == list(
                inspect.signature(word).parameters
            )
    (names,) = [
        node.value
        for node in tree.body
        if getattr(getattr(node, "targets", [None])[0], "id", "") == "__all__"
    ]
    assert {name.value for name in names.elts} == {*mtl.__all__, *mtl._ROOMS}


def test_the_wheel_has_the_stub():
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert "*.pyi" in packaged["mtldsl"]


def lines_of_pyright(folder: Path) -> dict[str, list[tuple[int, str]]]:
    """file -> (line, message) of every error."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"include": ["."], "extraPaths": [str(ROOT)]}))
    found = run("pyright", "--outputjson", "--pythonpath", sys.executable, folder=folder)
    errors: dict[str, list] = {}
    for one in json.loads(found)["generalDiagnostics"]:
        errors.setdefault(Path(one["file"]).name, []).append(
            (one["range"]["start"]["line"] + 1, one["message"])
        )
    return errors


def lines_of_mypy(folder: Path) -> dict[str, list[tuple[int, str]]]:
    """file -> (line, message) of every error."""
    # the types of numpy and pandas take three times as long to read as ours; pyright reads them
    flags = ("--no-site-packages", "--follow-imports=silent", "--ignore-missing-imports", "--no-incremental")
    errors: dict[str, list] = {}
    for line in run("mypy", *flags, "right.py", "wrong.py", folder=folder).splitlines():
        match = re.match(r"(\w+\.py):(\d+): error: (.*)", line)
        if match:
            errors.setdefault(match[1], []).append((int(match[2]), match[3]))
    return errors


def run(tool: str, *arguments: str, folder: Path) -> str:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed: pip install mtldsl[dev]")
    command = [sys.executable, "-m", tool, *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(ROOT)}
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize("checker", [lines_of_pyright, lines_of_mypy])
def test_a_checker_takes_what_is_right_and_finds_what_is_wrong(checker, tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(HEAD + "\n".join(WRONG) + "\n")
    errors = checker(tmp_path)
    assert "right.py" not in errors, errors["right.py"]
    first = HEAD.count("\n") + 1
    for line, (typed, said) in enumerate(WRONG.items(), first):
        messages = [message for at, message in errors["wrong.py"] if at == line]
        assert messages and any(re.search(said, message) for message in messages), (typed, messages)
    assert {line for line, _ in errors["wrong.py"]} == set(range(first, first + len(WRONG)))
