"""State a multi-task model as loss + regularizer + constraints; get its solution with a proof, and an independent check.

import mtldsl as mtl
tasks = mtl.Tasks.shared(X, Y)
W = mtl.Weights(tasks)
problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.trace_norm(W), subject_to=[W >= 0])
solution = problem.solve(tol=1e-6)
print(problem.cross_check())
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import (
    CrossCheckError,
    DataError,
    InfeasibleError,
    MissingExtraError,
    ModelError,
    MTLError,
    ProofError,
    SolverError,
)
from mtldsl.language import vocabulary as _vocabulary
from mtldsl.language.kernel_weights import p_norm
from mtldsl.language.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.scalar import Parameter
from mtldsl.language.task_similarity import TaskSimilarity
from mtldsl.language.vocabulary import *  # noqa: F403  the words themselves
from mtldsl.language.weights import Weights
from mtldsl.problem import Problem, minimize
from mtldsl.solution import Solution
from mtldsl.tasks import Tasks

if TYPE_CHECKING:
    from mtldsl.named_models import model, models
    from mtldsl.proof.checker.verify import verify_proof

__version__ = "0.1.0"


def __getattr__(name: str):
    """Models by name bring the parser and the papers, data sets and reports their readers: only where they are asked for."""
    if name in ("model", "models"):
        from mtldsl import named_models

        return getattr(named_models, name)
    if name == "verify_proof":
        from mtldsl.proof.checker.verify import verify_proof

        return verify_proof
    if name in ("datasets", "report"):
        return import_module(f"mtldsl.{name}")
    raise AttributeError(f"module 'mtldsl' has no attribute {name!r}")


__all__ = [
    "CrossCheckError", "DataError", "EdgeWeights", "InfeasibleError", "MTLError", "Metric", "MissingExtraError", "ModelError", "NodeWeights", "Parameter", "Problem", "ProofError", "Solution", "SolverError", "Tasks",
    "TaskSimilarity", "Weights", "minimize", "model", "models", "p_norm", "verify_proof", *_vocabulary.SIMILARITIES, *_vocabulary.UNKNOWNS,
    *_vocabulary.WORDS,
]  # fmt: skip
