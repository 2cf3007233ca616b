"""The models of the experiment in the package's language, and the choice of their trade-off by cross-validation.

    SMTL(r+F1), SMTL(r+AUC)   Omega(W) + lam * structured_hinge(W, tasks, metric)
    MTL-CLS(r)                Omega(W) + lam * hinge_loss(W, tasks)
    MTL-REG(r)                Omega(W) + lam * squared_loss(W, tasks)      labels -1, +1
    StructSVM(F1), (AUC)      ridge(w_i) + C_i * structured_hinge(w_i), every task by itself with its own C_i

with Omega the l1, l21 or trace norm (r).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

import mtldsl as mtl
from benchmarks.papers.smtl_data import measures, validation_measures
from benchmarks.papers.smtl_multilabel import MULTILABEL, fit_and_score

__all__ = ["METHODS", "Fit", "Settings", "run_method"]

#: {i 1e-3} + {i 1e-2} + {i 1e-1} + {2 i}, i = 1..10, + {40 i}, i = 1..20
PAPER_GRID = sorted(
    {round(i * s, 6) for s in (1e-3, 1e-2, 1e-1, 2.0) for i in range(1, 11)}
    | {40.0 * i for i in range(1, 21)}
)
#: walked upwards first, a factor of about 3 apart; all in the paper's grid
COARSE = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 4.0, 10.0, 40.0, 120.0, 400.0, 800.0]
#: the best C of an F-score or AUC with a ridge lies below the paper's grid, as their weights are of the size 1/n
BELOW = [1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4]
LOGISTIC_GRID = [0.01, 0.1, 1.0, 10.0]


@dataclass(frozen=True)
class Settings:
    folds: int = 5
    intercept: bool = True
    refine: bool = True
    cv_tol: float = 1e-3
    fit_tol: float = 1e-4
    cv_seconds: float = 2.0
    fit_seconds: float = 30.0
    quick: bool = False


@dataclass(frozen=True)
class Model:
    penalty: Callable
    loss: Callable  # (W, tasks) -> objective
    own: str  # the validation measure that chooses lam
    others: tuple[str, ...] = ()  # reported as well: the same model chosen by these
    apart: bool = False  # one lam a task


@dataclass
class Fit:
    """One row of the results: a method, and the measure that chose its lam."""

    select: str
    lam: str
    test: dict[str, float]
    status: str = ""
    gap: float = float("nan")
    fit_seconds: float = 0.0
    cv_seconds: float = 0.0
    cv_solves: int = 0
    cv_capped: int = 0


def _f1(W, tasks):
    return mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore())


def _auc(W, tasks):
    return mtl.structured_hinge(W, tasks, metric=mtl.metrics.AUC())


def _models() -> dict[str, Model]:
    models = {}
    for name, penalty in (("l21", mtl.l21_norm), ("l1", mtl.l1_norm), ("trace", mtl.trace_norm)):
        models[f"SMTL({name}+AUC)"] = Model(penalty, _auc, "auc")
        models[f"SMTL({name}+F1)"] = Model(penalty, _f1, "f1")
        models[f"MTL-CLS({name})"] = Model(penalty, mtl.hinge_loss, "accuracy", ("f1", "auc"))
        models[f"MTL-REG({name})"] = Model(penalty, mtl.squared_loss, "mse", ("f1", "auc"))
    models["StructSVM(AUC)"] = Model(mtl.ridge, _auc, "auc", apart=True)
    models["StructSVM(F1)"] = Model(mtl.ridge, _f1, "f1", apart=True)
    return models


MODELS = _models()
METHODS = [*MODELS, *MULTILABEL]


def run_method(name: str, train, test, folds: list, seed: int, settings: Settings) -> list[Fit]:
    """Choose lam on the folds, fit on the whole training part, measure on the test part."""
    train = train.standardize()
    test = test.scaled_by(train.scaling)
    if name in MULTILABEL:
        return _run_multilabel(name, train, test, folds, seed, settings)
    return _run_model(MODELS[name], train, test, folds, settings)


# ------------------------------------------------------------------------------------------- the package's models


@dataclass
class _Problem:
    """One model on one training set; solves and scores."""

    model: Model
    train: mtl.Tasks
    intercept: bool
    problem: mtl.Problem = field(init=False)

    def __post_init__(self):
        W = mtl.Weights(self.train, intercept=self.intercept)
        self.lam = mtl.Parameter(1.0, name="lam")
        self.problem = mtl.minimize(self.model.penalty(W) + self.lam * self.model.loss(W, self.train))

    def solve(self, lam: float, **options):
        self.lam.value = lam
        return self.problem.solve(**options)


def _scores(solution, tasks) -> list[np.ndarray]:
    scores = tasks.per_task(tasks.forward(solution.coef))
    if solution.intercept is None:
        return scores
    return [s + b for s, b in zip(scores, solution.intercept, strict=True)]


class _Search:
    """Values of lam tried on all folds, and what each measured: `found[lam][measure]` is (m,), the mean over the folds."""

    def __init__(self, model: Model, folds, settings: Settings):
        self.model, self.settings = model, settings
        self.validation = [validation for _, validation in folds]
        self.problems = [_Problem(model, train, settings.intercept) for train, _ in folds]
        self.found: dict[float, dict[str, np.ndarray]] = {}
        self.solutions: dict[float, list] = {}
        self.solves = self.capped = 0

    def try_value(self, lam: float, warm: list) -> bool:
        """Solve on every fold; whether all of them ran into the time cap."""
        options = {"tol": self.settings.cv_tol, "max_seconds": self.settings.cv_seconds}
        solutions, values, capped = [], [], 0
        for problem, validation, start in zip(self.problems, self.validation, warm, strict=True):
            solution = problem.solve(lam, warm_start=start, **options)
            solutions.append(solution)
            capped += solution.status != "optimal"
            values.append(
                validation_measures(validation.per_task(validation.targets), _scores(solution, validation))
            )
        self.found[lam] = {}
        for measure in values[0]:
            table = np.array([value[measure] for value in values])
            known = np.isfinite(table)
            sums = np.where(known, table, 0.0).sum(axis=0)
            self.found[lam][measure] = sums / np.maximum(known.sum(axis=0), 1)
        self.solutions[lam] = solutions
        self.solves += len(solutions)
        self.capped += capped
        return capped == len(solutions)

    def walk(self, grid: list[float]) -> None:
        """Upwards, each fold warm-started from the lam before; ends after two values in a row below the best for every measure that
        chooses (and every task, where each chooses its own), or two in a row where all folds ran into the cap; after four values at
        the earliest."""
        warm = [None] * len(self.problems)
        full, chosen_by = 0, (self.model.own, *self.model.others)
        tried = []
        for lam in grid:
            full = full + 1 if self.try_value(lam, warm) else 0
            warm = self.solutions[lam]
            tried.append(lam)
            tables = [np.array([self.found[v][measure] for v in tried]) for measure in chosen_by]
            seen = np.hstack(tables if self.model.apart else [t.mean(axis=1, keepdims=True) for t in tables])
            falling = len(tried) > 3 and bool(np.all(seen[-2:].max(axis=0) < seen[:-2].max(axis=0)))
            if falling or (full >= 2 and len(tried) > 4):
                return

    def refine(self, measure: str, whole_grid: list[float]) -> None:
        """The grid's values nearest to the geometric means of the best lam and its two neighbours."""
        tried = sorted(self.found)
        at = tried.index(self.best(measure))
        for neighbour in (at - 1, at + 1):
            if 0 <= neighbour < len(tried):
                middle = np.sqrt(tried[at] * tried[neighbour])
                lam = min(whole_grid, key=lambda v: abs(np.log(v / middle)))
                if lam not in self.found:
                    self.try_value(lam, self.solutions[max(v for v in tried if v < lam)])

    def best(self, measure: str, task: int | None = None) -> float:
        """The smallest lam with the largest mean over tasks, or value of one task."""
        value = {
            lam: np.mean(found[measure]) if task is None else found[measure][task]
            for lam, found in self.found.items()
        }
        return max(sorted(value), key=lambda lam: value[lam])


def _run_model(model: Model, train, test, folds, settings) -> list[Fit]:
    started = time.perf_counter()
    search = _Search(model, folds, settings)
    below = BELOW if model.apart else []
    coarse, whole = below + COARSE, below + PAPER_GRID
    search.walk(coarse[::3] if settings.quick else coarse)
    if settings.refine and not settings.quick:
        for measure in (model.own, *model.others):
            search.refine(measure, whole)
    seconds = time.perf_counter() - started
    fits: dict[str, Fit] = {}
    for measure in (model.own, *model.others):
        lam = "/".join(f"{v:g}" for v in _chosen(model, search, measure, train.n_tasks))
        same = next((fit for fit in fits.values() if fit.lam == lam), None)
        fit = replace(same) if same else _fit(model, search, measure, train, test, settings)
        fit.select = f"own: {measure}" if measure == model.own else measure
        fit.cv_seconds, fit.cv_solves, fit.cv_capped = seconds, search.solves, search.capped
        fits[measure] = fit
    return list(fits.values())


def _chosen(model, search, measure, m) -> list[float]:
    return [search.best(measure, i) for i in range(m)] if model.apart else [search.best(measure)]


def _fit(model, search, measure, train, test, settings) -> Fit:
    """The final fit on the whole training part, and its measures on the test part."""
    lams = _chosen(model, search, measure, train.n_tasks)
    which = [[i] for i in range(train.n_tasks)] if model.apart else [slice(None)]
    started = time.perf_counter()
    solutions = []
    for lam, some in zip(lams, which, strict=True):
        problem = _Problem(model, train.select(some), settings.intercept)
        solutions.append(problem.solve(lam, tol=settings.fit_tol, max_seconds=settings.fit_seconds))
    seconds = time.perf_counter() - started
    scores = [
        s
        for solution, some in zip(solutions, which, strict=True)
        for s in _scores(solution, test.select(some))
    ]
    values = measures(test.per_task(test.targets), scores, [np.where(s > 0, 1.0, -1.0) for s in scores])
    status = next((s.status for s in solutions if s.status != "optimal"), "optimal")
    gap = max(s.relative_gap for s in solutions)
    return Fit("", "/".join(f"{lam:g}" for lam in lams), values, status, gap, seconds)


# ------------------------------------------------------------------------------------------- scikit-learn's baselines


def _run_multilabel(name, train, test, folds, seed, settings) -> list[Fit]:
    """C by the mean over the folds of the macro-F1."""
    started = time.perf_counter()
    value = {}
    for C in LOGISTIC_GRID[::3] if settings.quick else LOGISTIC_GRID:
        found = []
        for fold_train, validation in folds:
            _, labels = fit_and_score(name, fold_train, validation, C, seed)
            found.append(validation_measures(validation.per_task(validation.targets), labels)["f1"])
        value[C] = np.nanmean(found)
    C = max(value, key=value.get)
    cv_seconds = time.perf_counter() - started
    started = time.perf_counter()
    scores, labels = fit_and_score(name, train, test, C, seed)
    seconds = time.perf_counter() - started
    values = measures(test.per_task(test.targets), scores, labels)
    solves = len(value) * len(folds)
    return [Fit("own: f1", f"{C:g}", values, "", float("nan"), seconds, cv_seconds, solves)]
