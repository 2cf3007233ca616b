"""Modules that a fresh interpreter has loaded after each of its first steps with the package: two processes, which all tests ask."""

import json
import subprocess
import sys
from functools import cache

#: quick steps that one interpreter takes after each other: what an early one loads, a later one finds loaded too
STEPS = {
    "import": "import mtldsl",
    "inference": "import mtldsl.atoms.inference",
    "pictures": "import mtldsl.display.pictures.tree; mtldsl.report.graph_plot",
    "order": "from mtldsl.report import clustered_order; clustered_order([[1, 0, 0], [0, 1, 0], [0, 0, 1]])",
    "version": "from mtldsl.cli import main; main(['--version'])",
    "help": "main(['--help'])",
}

#: steps of a second that another interpreter takes
LONG_STEPS = {
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
def _take(steps: str) -> tuple[dict[str, list], dict[str, str], list]:
    """Return what a new interpreter says of the steps, both as JSON."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, steps], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def printed_by(step: str) -> str:
    """Return what one of the quick steps prints."""
    return _take(json.dumps(STEPS))[1][step]


def loaded_by(step: str) -> set[str]:
    """Return the modules that are there after a step."""
    return set(_take(json.dumps(STEPS if step in STEPS else LONG_STEPS))[0][step])


def shown_by_all() -> tuple[bool, list[str]]:
    """Return whether a name is one class everywhere, and dir(mtldsl), after all long steps."""
    return _take(json.dumps(LONG_STEPS))[2]
