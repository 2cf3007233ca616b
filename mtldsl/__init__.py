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
    Interrupted,
    MissingExtraError,
    ModelError,
    MTLError,
    ProofError,
    SolverError,
)
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.unknowns.kernel_weights import p_norm
from mtldsl.language.unknowns.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.unknowns.task_similarity import TaskSimilarity
from mtldsl.language.words import vocabulary as _vocabulary
from mtldsl.language.words.vocabulary import *  # noqa: F403  the words themselves
from mtldsl.language.words.worst_task import worst_task
from mtldsl.system.defaults import defaults
from mtldsl.tasks import AcrossLabels, Tasks

if TYPE_CHECKING:
    from mtldsl.extending import register, register_solver, unregister
    from mtldsl.named_models import model, models
    from mtldsl.problem import Problem, minimize
    from mtldsl.proof.verifying import verify_proof
    from mtldsl.solution.solution import Solution

__version__ = "0.2.0"

#: what is imported where it is first asked for, and from where: problems bring the compiler and the solvers, models by name the parser
#: and the papers
_LATER = {
    "Problem": "problem",
    "minimize": "problem",
    "Solution": "solution.solution",
    "model": "named_models",
    "models": "named_models",
    "verify_proof": "proof.verifying",
    # how words and solvers of one's own enter the language
    "register": "extending",
    "register_solver": "extending",
    "unregister": "extending",
}

#: modules that are reached as attributes, and where they are
_ROOMS = {
    "datasets": "datasets",
    "estimators": "estimators",
    "metrics": "atoms.metrics",
    "report": "report",
    "similarities": "language.unknowns.similarities",
}


def __getattr__(name: str):
    """A name of `_LATER` or a word of one's own; data sets and reports, with their readers."""
    if name in _LATER:
        # kept: the next time it is found without this function
        globals()[name] = getattr(import_module(f"mtldsl.{_LATER[name]}"), name)
        return globals()[name]
    if name in _vocabulary.WORDS:  # a word of one's own
        return _vocabulary.WORDS[name]
    if name in _ROOMS:
        return import_module(f"mtldsl.{_ROOMS[name]}")
    said = ""
    if not name.startswith("_"):  # what Python and tools look for
        from mtldsl.language.words.did_you_mean import advice, meant

        instead, word = advice(name), meant(name, [*__dir__(), *__all__])
        said = f"; write {instead}" if instead else f"; did you mean {word!r}?" if word else ""
    # without the module in it, or Python would add a guess of its own
    raise AttributeError(f"module 'mtldsl' has no attribute {name!r}{said}", name=name, obj=None)


def __dir__() -> list[str]:
    """What a user types. Metrics and similarities are listed by `mtl.metrics` and `mtl.similarities`; their names here work all the same."""
    elsewhere = {*_vocabulary.METRICS, *_vocabulary.SIMILARITIES}
    return sorted({*__all__, *_vocabulary.WORDS, *_ROOMS, "__version__"} - elsewhere)


__all__ = [  # pyrefly: ignore[unresolvable-dunder-all]  # words are found when the package is imported
    "AcrossLabels", "CrossCheckError", "DataError", "EdgeWeights", "InfeasibleError", "Interrupted", "MTLError", "Metric", "MissingExtraError", "ModelError", "NodeWeights", "Parameter", "Problem", "ProofError", "Solution", "SolverError", "Tasks",
    "TaskSimilarity", "Weights", "defaults", "minimize", "model", "models", "p_norm", "register", "register_solver", "unregister", "verify_proof", "worst_task", *_vocabulary.SIMILARITIES, *_vocabulary.UNKNOWNS,
    *_vocabulary.WORDS,
]  # fmt: skip
