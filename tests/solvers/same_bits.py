"""What every solver answers to the small models that it takes, as digests of its bits: run by itself, it prints them."""

import hashlib
import json
import sys

import numpy as np

from mtldsl.extending.laws.solver_laws import MODELS, model_for
from mtldsl.solvers.multistart import seen_by_solvers
from mtldsl.solvers.routes import LAST, SOLVERS, get_solver, refusal

#: Enough for every stage of a solver to begin on models of this size.
MAX_ITER = 60


def digest(name: str, model: str) -> str:
    problem = MODELS[model]() if name == "auto" else model_for(get_solver(name), model)
    solution = problem.solve(name, tol=1e-7, max_iter=MAX_ITER)
    found = hashlib.sha256()
    for block in sorted(solution.blocks):
        found.update(np.ascontiguousarray(solution.blocks[block]).tobytes())
    found.update(np.array([solution.objective, solution.dual_bound, solution.iterations]).tobytes())
    return found.hexdigest()


def pairs() -> list[tuple[str, str]]:
    """Every solver with every model that it takes, and what solver="auto" does; the reference is of other people's code."""
    taken = [
        (name, model)
        for model in MODELS
        for name in SOLVERS
        if name != LAST
        and refusal(get_solver(name), seen_by_solvers(model_for(get_solver(name), model).form())) is None
    ]
    return taken + [("auto", model) for model in MODELS]


def digests() -> dict[str, str]:
    return {f"{name} on {model}": digest(name, model) for name, model in pairs()}


if __name__ == "__main__":
    json.dump(digests(), sys.stdout)
