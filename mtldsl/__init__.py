"""State a multi-task model as loss + regularizer + constraints; get its solution with a proof, and an independent check.

import mtldsl as mtl
tasks = mtl.Tasks.shared(X, Y)
W = mtl.Weights(tasks)
problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.trace_norm(W), subject_to=[W >= 0])
solution = problem.solve(tol=1e-6)
print(problem.cross_check())
"""

# ruff: noqa: E402  Ctrl-C is looked after before the imports that take a second
from importlib import import_module
from typing import TYPE_CHECKING
from warnings import warn

from mtldsl.utils.starting import leave_quietly as _leave_quietly

_leave_quietly()

from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.label_table import AcrossLabels
from mtldsl.data.tasks import Tasks
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
from mtldsl.language import vocabulary as _vocabulary
from mtldsl.language.factories import worst_task
from mtldsl.language.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.learned_unknowns import p_norm
from mtldsl.language.scalars import Parameter
from mtldsl.language.task_similarity import TaskSimilarity
from mtldsl.language.weights import Weights
from mtldsl.utils.progress import defaults
from mtldsl.utils.starting import VERSION

if TYPE_CHECKING:
    from mtldsl.certificates.verify_proof import verify_proof
    from mtldsl.extending.registration import register, register_solver, unregister
    from mtldsl.problems.method_comparison import compare
    from mtldsl.problems.named_models import model, models
    from mtldsl.problems.problem import Problem, minimize
    from mtldsl.solution.solution import Solution

__version__ = VERSION

#: what is imported where it is first asked for, and from where: problems bring the compiler and the solvers, models by name the parser
#: and the papers
_LATER = {
    "Problem": "mtldsl.problems.problem",
    "minimize": "mtldsl.problems.problem",
    "Solution": "mtldsl.solution.solution",
    "compare": "mtldsl.problems.method_comparison",
    "model": "mtldsl.problems.named_models",
    "models": "mtldsl.problems.named_models",
    "verify_proof": "mtldsl.certificates.verify_proof",
    # how words and solvers of one's own enter the language
    "register": "mtldsl.extending",
    "register_solver": "mtldsl.extending",
    "unregister": "mtldsl.extending",
}

#: modules that are reached as attributes
_ROOMS = ("datasets", "estimators", "metrics", "report", "similarities")

#: names of two of these modules that stood here until 0.2, and the module
_MOVED = dict.fromkeys(_vocabulary.METRICS, "metrics") | dict.fromkeys(
    _vocabulary.SIMILARITIES, "similarities"
)

_words = {name: word for name, word in _vocabulary.WORDS.items() if name not in _MOVED}
globals().update(_vocabulary.UNKNOWNS, **_words)


def __getattr__(name: str):
    """Return a name of `_LATER`, a public module, a moved name (and say so once), or a word of one's own."""
    if name in _LATER:
        # kept: the next time it is found without this function
        globals()[name] = getattr(import_module(_LATER[name]), name)
        return globals()[name]
    if name in _ROOMS:
        return import_module(f"mtldsl.{name}")
    if name in _MOVED:
        room = _MOVED[name]
        warn(f"mtldsl.{name} has moved; write mtldsl.{room}.{name}", FutureWarning, stacklevel=2)
        globals()[name] = getattr(import_module(f"mtldsl.{room}"), name)  # said once
        return globals()[name]
    if name in _vocabulary.WORDS:  # a word of one's own
        return _vocabulary.WORDS[name]
    said = ""
    if not name.startswith("_"):  # what Python and tools look for
        from mtldsl.language.suggestions import advice, meant

        instead, word = advice(name), meant(name, [*__dir__(), *_MOVED])
        word = f"{_MOVED[word]}.{word}" if word in _MOVED else word
        said = f"; write {instead}" if instead else f"; did you mean {word!r}?" if word else ""
    # without the module in it, or Python would add a guess of its own
    raise AttributeError(f"module 'mtldsl' has no attribute {name!r}{said}", name=name, obj=None)


def __dir__() -> list[str]:
    """List what a user types."""
    return sorted({*__all__, *_vocabulary.WORDS, *_ROOMS, "__version__"} - {*_MOVED})


__all__ = [  # pyrefly: ignore[unresolvable-dunder-all]  # words are found when the package is imported
    "AcrossLabels", "CrossCheckError", "DataError", "EdgeWeights", "InfeasibleError", "Interrupted", "MTLError", "Metric", "MissingExtraError", "ModelError", "NodeWeights", "Parameter", "Problem", "ProofError", "Solution", "SolverError", "Tasks",
    "TaskSimilarity", "Weights", "compare", "defaults", "minimize", "model", "models", "p_norm", "register", "register_solver", "unregister", "verify_proof", "worst_task", *_vocabulary.UNKNOWNS, *_words,
]  # fmt: skip
