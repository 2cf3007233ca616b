"""One problem with its data loaded: stated anew as often as one likes, so that no solve profits from what an earlier one has left behind."""

from __future__ import annotations

import copy

import numpy as np

from . import papers
from .data import SETS, DataSet, Raw, tasks_of
from .models import ModelSource, Numbers, numbers_of, state
from .problems import Problem

__all__ = ["Instance", "tiny"]


class Instance:
    """`fresh()`: the problem on new `Tasks`; `value(blocks)`: the objective, by the model's own definitions."""

    def __init__(self, problem: Problem, data: DataSet, raw: Raw):
        self.problem, self.data, self.raw = problem, data, raw
        self.numbers: Numbers = numbers_of(problem.model, self._tasks(), problem.strength)
        self.stated: ModelSource = self.fresh()
        self.form = self.stated.problem.form()

    @classmethod
    def of(cls, problem: Problem) -> Instance:
        data = SETS[problem.data]
        return cls(problem, data, data.load())

    def _tasks(self):
        model = self.problem.model
        constant = model.paper in papers.OVER_LABELS
        return tasks_of(self.data, self.raw, self.problem.scaling, model.targets, model.one, constant)

    def fresh(self) -> ModelSource:
        return state(self.problem.model, self._tasks(), self.numbers)

    @property
    def convex(self) -> bool:
        return self.problem.model.paper not in papers.NOT_CONVEX

    def value(self, blocks: dict[str, np.ndarray]) -> float:
        return float(self.form.value(blocks))

    def violation(self, blocks) -> float:
        return float(self.form.violation(blocks))

    def blocks(self, W, b=None) -> dict[str, np.ndarray]:
        """Weights (d, m) and intercepts (m,), or a dict of all unknowns, as the model's unknowns."""
        if isinstance(W, dict):
            return {
                name: np.asarray(W[name], float).reshape(shape) for name, shape in self.form.shapes.items()
            }
        found = {"W": np.asarray(W, float).reshape(self.form.shapes["W"])}
        if "W.intercept" in self.form.shapes:
            b = np.zeros(found["W"].shape[1]) if b is None else b
            found["W.intercept"] = np.asarray(b, float).reshape(1, -1)
        return found


def tiny(problem: Problem) -> Instance:
    """The same model on 24 rows, 6 features and at most 3 tasks in the same layout: solved first, so that compiling is not measured."""
    from . import generated

    data = SETS[problem.data]
    few = copy.copy(problem)
    m = min(data.m, 3)
    maker = {"csr": generated.sparse, "separate": generated.separate, "missing": generated.missing}.get(
        data.layout, generated.autoregressive
    )
    options = {"density": 0.3} if data.layout == "csr" else {}
    rows = 24 * m if data.layout == "separate" else 24
    raw = Raw(*maker(rows, 6, m, 1, labels=data.labels, **options))
    return Instance(few, data, raw)
