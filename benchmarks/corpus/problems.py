"""The list of problems: families, the models of each, and a fixed choice of data, scalings and strengths, balanced over all four."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import critical, papers
from .data import SCALINGS, SETS, DataSet, resized
from .models import Model

__all__ = ["FAMILIES", "HALVES", "Problem", "interleaved", "problems"]

HALVES = ("tuning", "judging")
_SHARES = (0.5, 0.1, 0.02, 0.005, 0.001)  # of lambda_max
_MULTIPLES = (3.0, 30.0, 300.0, 3000.0)  # of lambda_max
_RIDGES = (0.1, 1e-3, 1e-5)  # of the mean squared column
_COSTS = (0.1, 1.0, 30.0)  # C, over the mean squared row


@dataclass(frozen=True)
class Problem:
    """One problem; `id` names it for ever."""

    family: str
    data: str
    scaling: str
    model: Model
    strength: float
    half: str

    @property
    def id(self) -> str:
        return f"{self.family}/{self.data}/{self.scaling}/{self.model.name}/{self.strength:g}"


@dataclass(frozen=True)
class Family:
    """Models that one asks about together. `fits(data, model)`: which data sets they are solved on."""

    name: str
    models: tuple[Model, ...]
    count: int  # problems in each half
    layouts: tuple[str, ...] = ("dense", "csr", "separate", "missing")
    most: float = 3e7  # scalars of data times tasks
    tasks: tuple[int, int] = (1, 1000)
    strengths: tuple[float, ...] = ()
    fits: Callable[[DataSet, Model], bool] = field(default=lambda data, model: True)


def _each(losses, penalties, **options) -> tuple[Model, ...]:
    """Every loss with every list of penalties, without and with an intercept."""
    return tuple(
        Model(loss, tuple((word, 1.0) for word in words.split()), intercept, **options)
        for loss in losses.split()
        for words in penalties
        for intercept in (False, True)
    )


def _constrained() -> tuple[Model, ...]:
    l1, ridge, nothing = (("l1", 1.0),), (("ridge", 1.0),), ()
    return (
        Model("squared", nothing, constraint="l1_ball"),
        Model("squared", nothing, True, constraint="l21_ball"),
        Model("squared", nothing, constraint="trace_ball"),
        Model("squared", nothing, constraint="frobenius_ball"),
        Model("logistic", nothing, constraint="l1_ball"),
        Model("logistic", nothing, True, constraint="l21_ball"),
        Model("hinge", nothing, True, constraint="l1_ball"),
        Model("squared", l1, constraint="nonneg"),
        Model("squared", l1, True, constraint="nonneg"),
        Model("logistic", l1, constraint="nonneg"),
        Model("hinge", (("l21", 1.0),), True, constraint="nonneg"),
        Model("squared", l1, constraint="rows_sum_to_0"),
        Model("absolute", l1, constraint="rows_sum_to_0"),
        Model("squared", ridge, constraint="box"),
        Model("logistic", (("l21", 1.0),), constraint="box"),
        Model("squared", ridge, constraint="simplex"),
    )


def _paper_fits(data: DataSet, model: Model) -> bool:
    loss, _, _, most = papers.MODELS[model.paper]
    if data.size > most or data.layout == "csr" or data.m == 1:
        return False
    if model.paper in papers.OVER_LABELS:
        return data.layout == "dense" and data.labels and data.m <= 7
    return not (model.paper in ("MTRL", "MTFL") and data.m > 150)


def _families() -> tuple[Family, ...]:
    dense = ("dense",)
    sums = ("l12", "l1_inf", "column_group", "half_squared_group", "sorted_l1", "l1 mean", "l21 laplacian")
    more = ("variation ridge", "squared_trace", "l1 l21", "l21 ridge", "trace ridge", "l1 trace")
    paper_models = tuple(
        Model(loss, intercept=with_intercept, paper=name)
        for name, (loss, _, with_intercept, _) in papers.MODELS.items()
    )
    one_l1 = _each("squared", ["l1"], one=True)
    norms, norms_and_ridge = ["l1", "l21", "trace"], ["l1", "l21", "trace", "ridge"]
    many = {"tasks": (2, 1000)}
    return (
        Family("ridge", _each("squared sum_of_squares", ["ridge"]), 13),
        Family("lasso", one_l1, 14, dense),
        Family("lasso_csr", one_l1 + _each("squared", ["l1"]), 9, ("csr",)),
        Family("group_lasso", _each("squared", ["group"], one=True), 12, dense),
        Family("elastic_net", _elastic("squared"), 12, ("dense", "csr")),
        Family("multi_task_lasso", _each("squared sum_of_squares", ["l21"]), 14, **many),
        Family("sparse_logistic", _each("logistic", ["l1"], one=True), 14, ("dense", "csr")),
        Family("ridge_logistic", _each("logistic", ["ridge"]), 13),
        Family("multi_logistic", _each("logistic", ["l1", "l21"]), 14, **many),
        Family("svm", _each("hinge squared_hinge", ["ridge"], by_loss=True), 14),
        Family("trace_squares", _each("squared", ["trace"]), 13, **many),
        Family("trace_logistic", _each("logistic", ["trace"]), 13, **many),
        Family("kinks", _with(_kinked(norms), True), 18, most=5e6),
        Family("kinks_plain", _with(_kinked(norms), False) + _each("absolute quantile", ["ridge"]), 14, most=5e6),
        Family("structured", _each("structured_f structured_auc", norms_and_ridge, by_loss=True), 18, most=5e6),
        Family("smooth", _smooth(), 30, most=1e7, fits=_tame),
        Family("penalties", _each("squared logistic hinge", [*sums, *more]), 16, dense, most=3e6, **many),
        Family("constraints", _constrained(), 14, dense, most=3e6, **many),
        Family("papers", paper_models, 16, fits=_paper_fits),
    )  # fmt: skip


def _elastic(loss: str) -> tuple[Model, ...]:
    """Little and much ridge beside an l1 norm, one task and several."""
    return tuple(
        Model(loss, (("l1", 1.0), ("ridge", share)), intercept, one=one)
        for share in (0.05, 1.0)
        for intercept in (False, True)
        for one in (False, True)
    )


def _kinked(norms) -> tuple[Model, ...]:
    return _each("absolute quantile", norms) + _each("hinge", norms, by_loss=True)


def _with(models, intercept: bool) -> tuple[Model, ...]:
    return tuple(model for model in models if model.intercept == intercept)


def _smooth() -> tuple[Model, ...]:
    norms, ridge = ["l1", "l21", "trace"], ["ridge"]
    return _each("huber exponential poisson gamma square_root", norms + ridge) + _each("squared_hinge", norms)


def _tame(data: DataSet, model: Model) -> bool:
    """Not 200 tasks and more under a trace norm, where each prox is a singular value decomposition of that size."""
    return not (model.penalty("trace") and data.m > 200)


FAMILIES: dict[str, Family] = {each.name: each for each in _families()}
_EXPONENTIAL = ("exponential", "poisson", "gamma")  # overflow at raw features' scale


def _strengths(model: Model) -> tuple[float, ...]:
    if model.paper:
        return papers.MODELS[model.paper][1]
    if model.constraint in critical.BALLS:
        return (0.7, 0.2, 0.05)
    if model.penalties and model.penalties[0][0] in critical.QUADRATIC:
        return _COSTS if model.by_loss else _RIDGES
    return _MULTIPLES if model.by_loss else _SHARES


def _candidates(family: Family, half: str, sets: dict[str, DataSet]) -> list[Problem]:
    found = []
    for data in sets.values():
        if data.half != half or data.layout not in family.layouts or not data.m >= family.tasks[0]:
            continue
        for model in family.models:
            size = data.size / (data.m if model.one else 1) * (0.01 if data.layout == "csr" else 1)
            if size > family.most or not family.fits(data, model):
                continue
            if data.layout in ("separate", "missing") and model.one:
                continue
            for scaling in SCALINGS:
                if scaling == "raw" and (model.loss in _EXPONENTIAL or model.paper):
                    continue
                for strength in _strengths(model):
                    found.append(Problem(family.name, data.name, scaling, model, strength, half))
    return found


def _balanced(candidates: list[Problem], count: int, seed: str) -> list[Problem]:
    """So many of them that every data set, model, scaling and strength occurs about equally often; the same ones always."""
    rng = random.Random(seed)
    chosen, used = [], Counter()
    left = [(problem, _traits(problem)) for problem in rng.sample(candidates, min(len(candidates), 1500))]
    while left and len(chosen) < count:
        place = min(range(len(left)), key=lambda i: (_wear(left[i][1], used), i))
        problem, traits = left.pop(place)
        chosen.append(problem)
        used.update(traits)
    return chosen


def _traits(problem: Problem):
    model = problem.model
    return (
        ("data", problem.data),
        ("model", model.name),
        ("scaling", problem.scaling),
        ("strength", problem.strength, model.by_loss),
        ("both", problem.scaling, problem.strength),
        ("real", SETS[problem.data].real),
    )


def _wear(traits: tuple, used: Counter) -> float:
    weights = (2.0, 3.0, 0.5, 0.5, 0.5, 0.25)
    return sum(w * used.get(trait, 0) for w, trait in zip(weights, traits, strict=True))


def problems(folder: str = "") -> list[Problem]:
    """All of them, family by family; with a folder, the same models on the data files there, as a half called "data"."""
    sets, halves = SETS, HALVES
    if folder:
        from .user_data import sets_of

        sets, halves = _registered(folder, sets_of), ("data",)
    return [
        problem
        for family in FAMILIES.values()
        for half in halves
        for problem in _balanced(_candidates(family, half, sets), family.count, f"{family.name} {half}")
    ]


_read_folders: dict[str, dict[str, DataSet]] = {}


def _registered(folder: str, read) -> dict[str, DataSet]:
    """A user's data sets, among those that problems are looked up in by name."""
    if folder not in _read_folders:
        found = {
            f"user:{name}": resized(each, name=f"user:{name}") for name, each in read(Path(folder)).items()
        }
        SETS.update(found)
        _read_folders[folder] = found
    return _read_folders[folder]


def interleaved(chosen: list[Problem]) -> list[Problem]:
    """Round after round one problem of every family and half, so that a run that is cut short is a fair sample."""
    rng = random.Random("order")
    piles: dict = {}
    for problem in chosen:
        piles.setdefault((problem.family, problem.half), []).append(problem)
    for pile in piles.values():
        rng.shuffle(pile)
    order = []
    while piles:
        keys = list(piles)
        rng.shuffle(keys)
        for key in keys:
            order.append(piles[key].pop())
            if not piles[key]:
                del piles[key]
    return order
