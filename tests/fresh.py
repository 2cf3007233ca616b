"""Modules that a fresh interpreter has loaded after each of its first steps with the package: one process, which all tests ask."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

#: steps that one interpreter takes after each other: what an early one loads, a later one finds loaded too
STEPS = {
    "import": "import mtldsl",
    "inference": "import mtldsl.atoms.inference",
    "pictures": "import mtldsl.display.pictures.tree; mtldsl.report.graph_plot",
    "order": "from mtldsl.report import clustered_order; clustered_order([[1, 0, 0], [0, 1, 0], [0, 0, 1]])",
    "version": "from mtldsl.cli import main; main(['--version'])",
    "help": "main(['--help'])",
    "networks": "import mtldsl.nn",
    "all": "import mtldsl.cli.command_line, mtldsl.report, mtldsl.datasets",
}

_PROGRAM = """
import contextlib, io, json, sys
loaded, printed = {}, {}
for name, step in json.loads(sys.argv[1]).items():
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        exec(step)
    loaded[name], printed[name] = list(sys.modules), out.getvalue()
shown = [mtldsl.errors.DataError is mtldsl.DataError, dir(mtldsl)]
print(json.dumps([loaded, printed, shown]))
"""


@cache
def first_steps() -> tuple[dict[str, set[str]], dict[str, str], list]:
    """Return what was loaded and what was printed by step, and at the end whether a name is one class everywhere, and dir(mtldsl)."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded, printed, shown = json.loads(done.stdout)
    return {name: set(modules) for name, modules in loaded.items()}, printed, shown


def loaded_by(step: str) -> set[str]:
    """Return the modules that are there after a step."""
    return first_steps()[0][step]
