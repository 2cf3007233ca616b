"""The example of every word: a model that uses it, which runs when it is pasted into a fresh interpreter."""

from __future__ import annotations

from dataclasses import MISSING

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import Set

_START = (
    ">>> import numpy as np",
    ">>> import mtldsl as mtl",
    ">>> X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [2.0, 0.0, 1.0]])",
)

#: the kind of labels of a loss -> the tasks of its example
_TASKS = {
    "real": ">>> tasks = mtl.Tasks.shared(X, [[1.0, 0.5], [0.0, 2.0], [1.5, 1.0], [2.0, 0.0]])",
    "sign": ">>> tasks = mtl.Tasks.shared(X, [[1, -1], [-1, 1], [1, 1], [-1, -1]])",
    "count": ">>> tasks = mtl.Tasks.shared(X, [[1, 0], [0, 2], [3, 1], [2, 1]])",
    "positive": ">>> tasks = mtl.Tasks.shared(X, [[1.0, 0.5], [0.2, 2.0], [1.5, 1.0], [2.0, 0.3]])",
    "time": ">>> tasks = mtl.Tasks.shared(X, [[1.0, -0.5], [-0.2, 2.0], [1.5, 1.0], [2.0, -0.3]])",
    "classes": '>>> tasks = mtl.Tasks.from_classes(X, ["low", "high", "low", "high"])',
    "indicators": ">>> tasks = mtl.Tasks.shared(X, [[1, -1], [-1, 1], [1, 1], [-1, -1]])",
}

#: word -> what is typed after `W`, where a word needs more than the weights
_ARGUMENTS = {
    "group_norm": ", [[0, 1], [2]]",
    "latent_group_norm": ", [[0, 1], [1, 2]]",
    "tree_norm": ", rows=[[0, 1, 2], [0, 1]]",
    "half_squared_k_support_norm": ", r=1",
    "squared_cluster_norm": ", lower=0.1, upper=1.0, trace=1.0",
    "graph_laplacian": ", np.array([[1.0, -1.0], [-1.0, 1.0]])",
    "kronecker_ridge": ", np.eye(3), np.eye(2)",
    "capped_trace_norm": ", tau=1.0",
    "capped_l1": ", tau=1.0",
    "schatten_norm": ", p=0.5",
    "spectral_penalty": ", np.log1p, lambda s: 1 / (1 + s)",
    "mkl_norm": ", [mtl.similarities.union(), mtl.similarities.individual()], p=2",
}

#: word -> (lines that come before the model, its objective beside the loss, its constraints)
_LEARNED = {
    "matrix_normal": (
        ">>> S, T = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)",
        "mtl.matrix_normal(W, S, T)",
        "[S >> 0.1, S << 10, T >> 0.1, T << 10]",
    ),
    "feature_covariance_norm": (
        ">>> D = mtl.FeatureCovariance(tasks)",
        "mtl.feature_covariance_norm(W, D)",
        "[D.trace() <= 1]",
    ),
    "task_covariance_norm": (
        ">>> Omega = mtl.TaskCovariance(tasks)",
        "mtl.task_covariance_norm(W, Omega)",
        "[Omega.trace() <= 1]",
    ),
}


def example_of(cls) -> str | None:
    """Return the lines of a session with a model that has the word of an atom in it; None where it needs arguments that are not known here."""
    name = cls.name
    if name in _LEARNED:
        before, penalty, constraints = _LEARNED[name]
        model = f"mtl.squared_loss(W, tasks) + {penalty}, subject_to={constraints}"
        return _session("real", [">>> W = mtl.Weights(tasks)", before], model)
    if issubclass(cls, Loss) and cls.labels == "indicators":
        unknowns = ">>> U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks)"
        return _session(cls.labels, [unknowns], f"mtl.{name}(U, V, tasks) + mtl.ridge(U) + mtl.ridge(V)")
    if name not in _ARGUMENTS and any(field.default is MISSING for field in cls.typed_fields()):
        return None
    weights = [">>> W = mtl.Weights(tasks)"]
    if issubclass(cls, Loss):
        labels = cls.labels if cls.labels in _TASKS else "real"
        return _session(labels, weights, f"mtl.{name}(W, tasks) + mtl.ridge(W)")
    if issubclass(cls, Set):
        return _session("real", weights, f"mtl.squared_loss(W, tasks), subject_to=[mtl.{name}(W)]")
    return _session(
        "real", weights, f"mtl.squared_loss(W, tasks) + 0.5 * mtl.{name}(W{_ARGUMENTS.get(name, '')})"
    )


def _session(labels: str, before: list[str], model: str) -> str:
    lines = [
        *_START,
        _TASKS[labels],
        *before,
        f">>> problem = mtl.minimize({model})",
        ">>> problem.solve().is_certified",
        "True",
    ]
    return "\n".join(lines)
