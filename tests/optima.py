"""Solutions of the mixed models and the reference's optima of them, each found once.

    python -m tests.optima     finds all optima anew, and stores them in optima.json

An optimum is stored beside a hash of what it follows from: the code of the model, of the helpers of `tests.models`, and of the reference,
without docstrings and comments. Where one of these has changed the optimum is found anew, in every run, until it is stored; `.ci/run` compares
all of them with what a cross-check finds anew.
"""

import ast
import hashlib
import inspect
import json
import textwrap
from functools import cache
from pathlib import Path

from tests import models
from tests.models import MODELS

STORE = Path(__file__).with_name("optima.json")
REFERENCE = Path(__file__).parents[1] / "reference"
_HELPERS = (
    models._inputs, models._weights, models.shared, models.separate, models.with_weights,
    models.label_graph,
)  # fmt: skip


@cache
def solution_of(name: str, tol: float = 1e-6):
    """Return (problem, solution) of a mixed model by the solver that is chosen for it."""
    problem = MODELS[name]()
    return problem, problem.solve(tol=tol)


@cache
def reference_optimum(name: str) -> tuple[float, float]:
    """Return (objective, certified bound) of a mixed model, by the cvxpy reference."""
    known = stored().get(name)
    if known is None or known["hash"] != fingerprint(name):
        return solved_by_reference(name)
    return known["objective"], known["bound"]


def solved_by_reference(name: str) -> tuple[float, float]:
    solution = MODELS[name]().solve(solver="cvxpy", tol=1e-6)
    return solution.objective, solution.dual_bound


@cache
def stored() -> dict[str, dict]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def fingerprint(name: str) -> str:
    """Return the hash of a model's code and of all that its optimum follows from."""
    return hashlib.sha256((_code(inspect.getsource(MODELS[name])) + _sources()).encode()).hexdigest()[:16]


@cache
def _sources() -> str:
    texts = [inspect.getsource(helper) for helper in _HELPERS]
    texts += [path.read_text() for path in sorted(REFERENCE.rglob("*.py"))]
    return "".join(map(_code, texts))


def _code(text: str) -> str:
    """Return Python's own writing of a text, without docstrings and comments."""
    tree = ast.parse(textwrap.dedent(text))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def main() -> None:
    found = {}
    for name in MODELS:
        objective, bound = solved_by_reference(name)
        found[name] = {"hash": fingerprint(name), "objective": objective, "bound": bound}
    STORE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
