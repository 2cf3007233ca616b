"""What is solved: a loss, regularizers, an intercept or none, a constraint or none; and how the strength stands in the statement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import critical, papers

__all__ = ["Model", "ModelSource", "Numbers", "groups_of", "numbers_of", "state"]

#: word of the loss -> kind of targets that it takes
TARGETS = {
    "squared": "real",
    "sum_of_squares": "real",
    "square_root": "real",
    "absolute": "real",
    "quantile": "real",
    "huber": "real",
    "hinge": "labels",
    "squared_hinge": "labels",
    "logistic": "labels",
    "exponential": "labels",
    "structured_f": "labels",
    "structured_auc": "labels",
    "poisson": "counts",
    "gamma": "amounts",
}

#: penalties that are quadratic, so that no strength makes the weights zero: their unit is the size of the data


@dataclass(frozen=True)
class Model:
    """lam * (penalties) + loss, or penalties + C * loss where `by_loss`; `penalties` are (word, share of the strength)."""

    loss: str
    penalties: tuple[tuple[str, float], ...] = ()
    intercept: bool = False
    by_loss: bool = False
    one: bool = False  # the first task alone
    constraint: str = ""
    paper: str = ""  # the name of a paper's model: `papers` states it, and only `loss` is read here

    @property
    def name(self) -> str:
        if self.paper:
            return self.paper
        parts = [self.loss, *(word for word, _ in self.penalties)]
        text = "+".join(parts) + ("+b" if self.intercept else "")
        return text + (f"|{self.constraint}" if self.constraint else "") + (",one" if self.one else "")

    @property
    def targets(self) -> str:
        return TARGETS[self.loss]

    def penalty(self, *words: str) -> bool:
        """Whether the penalties are exactly these."""
        return tuple(sorted(word for word, _ in self.penalties)) == tuple(sorted(words))


@dataclass(frozen=True)
class Numbers:
    """What stands before and in the words: coefficient of the loss and of each penalty, the radius, parameters of a paper's model."""

    loss: float = 1.0
    penalties: tuple[float, ...] = ()
    radius: float = 0.0
    parameters: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class ModelSource:
    """A problem with its numbers, so that a peer can be told the same."""

    problem: object
    tasks: object
    model: Model
    numbers: Numbers

    @property
    def plain(self) -> bool:
        """Whether loss, penalties and numbers tell all of it."""
        return not self.model.paper and not self.model.constraint

    @property
    def relative(self) -> dict[str, float]:
        """Penalty -> its coefficient where the loss has coefficient 1."""
        words = [word for word, _ in self.model.penalties]
        return {w: c / self.numbers.loss for w, c in zip(words, self.numbers.penalties, strict=True)}


def groups_of(d: int) -> list[list[int]]:
    """Neighbours by five; the last group may be smaller."""
    return [list(range(start, min(start + 5, d))) for start in range(0, d, 5)]


def numbers_of(model: Model, tasks, strength: float) -> Numbers:
    """The numbers at a strength (a share or a multiple of the unit that `critical` finds)."""
    if model.paper:
        return Numbers(
            parameters=tuple(papers.parameters(model.paper, tasks, strength, model.intercept).items())
        )
    unit, radius = 1.0, 0.0
    if model.penalties:
        unit = critical.unit(model, tasks, groups_of(tasks.n_features))
    if model.constraint in critical.BALLS:
        radius = strength * critical.radius(model, tasks)
    elif model.constraint == "box":
        radius = 0.3 * np.abs(critical.near_solution(model, tasks)).max()
    outer, inner = (strength * unit, 1.0) if model.by_loss else (1.0, strength * unit)
    return Numbers(outer, tuple(inner * share for _, share in model.penalties), float(radius))


def state(model: Model, tasks, numbers: Numbers) -> ModelSource:
    """The problem, made anew: nothing of an earlier solve is remembered where `tasks` are new as well."""
    import mtldsl as mtl

    if model.paper:
        problem = mtl.model(model.paper, tasks, intercept=model.intercept, **dict(numbers.parameters))
        return ModelSource(problem, tasks, model, numbers)
    W = mtl.Weights(tasks, intercept=model.intercept)
    objective = numbers.loss * _loss(model.loss, W, tasks)
    for (word, _), coefficient in zip(model.penalties, numbers.penalties, strict=True):
        objective = objective + coefficient * _penalty(word, W, groups_of(tasks.n_features))
    problem = mtl.minimize(objective, _constraints(model.constraint, W, numbers.radius))
    return ModelSource(problem, tasks, model, numbers)


def _loss(word: str, W, tasks):
    import mtldsl as mtl

    if word == "structured_f":
        return mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore())
    if word == "structured_auc":
        return mtl.structured_hinge(W, tasks, metric=mtl.metrics.AUC())
    if word == "quantile":
        return mtl.quantile_loss(W, tasks, q=critical.QUANTILE)
    if word == "huber":
        return mtl.huber_loss(W, tasks, delta=critical.huber_delta(tasks))
    if word == "sum_of_squares":
        return mtl.sum_of_squares(W, tasks)
    return getattr(mtl, f"{word}_loss")(W, tasks)


def _penalty(word: str, W, groups):
    import mtldsl as mtl

    m = W.n_columns
    if word == "ridge":
        return mtl.ridge(W)
    if word == "group":
        return mtl.group_norm(W, groups)
    if word == "column_group":
        return mtl.column_group_norm(W, [list(range(i, min(i + 2, m))) for i in range(0, m, 2)])
    if word == "half_squared_group":
        return mtl.half_squared_group_norm(W)
    if word == "sorted_l1":
        return mtl.sorted_l1_norm(W, q=0.1)
    if word == "mean":
        return mtl.mean_regularizer(W)
    if word == "variation":
        return mtl.total_variation(W)
    if word == "laplacian":
        return mtl.graph_laplacian(W, critical.chain(m))
    if word == "squared_trace":
        return mtl.squared_trace_norm(W)
    return getattr(mtl, f"{word}_norm")(W)


def _constraints(word: str, W, radius: float) -> list:
    import mtldsl as mtl

    if not word:
        return []
    if word in critical.BALLS:
        return [getattr(mtl, f"{word[:-5]}_norm")(W) <= radius]
    return {
        "nonneg": lambda: [W >= 0],
        "box": lambda: [-radius <= W, radius >= W],
        "rows_sum_to_0": lambda: [W.sum(axis=1) == 0],
        "simplex": lambda: [mtl.columns_on_simplex(W)],
    }[word]()
