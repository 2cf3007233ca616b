"""Cross-validation: values of parameters, each learned on all folds but one and scored on that one, along warm-started paths."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.splits import fold_numbers, refuse_overlap
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError
from mtldsl.language.scalars import put_back
from mtldsl.normal_form.statement import Statement
from mtldsl.problems.cross_validation_result import CrossValidation, Trial
from mtldsl.problems.folds import (
    ONE_CLASS,
    Fold,
    data_of,
    make_part,
    model_on_tasks,
    needs_two_classes,
    warn_of,
)
from mtldsl.problems.parallel_fits import in_parallel, in_parts, jobs_of
from mtldsl.problems.path import ParameterValues, grid_of
from mtldsl.problems.proven_choice import checked_choice, choose_proven
from mtldsl.solution.measures import OF_KINDS, Measure
from mtldsl.solution.score import as_measure
from mtldsl.solution.solution import Solution
from mtldsl.solution.thresholds import best_thresholds
from mtldsl.utils.progress import defaults, progress_bar
from mtldsl.utils.validation import as_flag, as_list, as_positions, as_whole, complete, one_of, quoted

_TYPED = "cross_validate"


#: What scikit-learn calls it.
_MEANT = {
    "cv": "folds",
    "k": "folds",
    "n_folds": "folds",
    "n_splits": "folds",
    "scoring": "metric",
    "score": "metric",
    "param_grid": "values",
    "alphas": "values",
}


@complete("write problem.cross_validate(lam, [1.0, 0.1], folds=5), with a Parameter of this problem")
def cross_validate(
    problem: Any,
    lam,
    values=None,
    folds=5,
    metric: str | Metric | None = None,
    *,
    between=None,
    regret: float | None = None,
    max_fits: int | None = None,
    n_jobs: int | None = None,
    refit: bool | str = True,
    random_state=0,
    one_class: str = "skip",
    stratify: bool = True,
    groups=None,
    progress: bool = False,
    **solve_options,
) -> CrossValidation:
    """Return which value of a parameter predicts best: each is learned on all folds but one and scored on that one.

    lam       : a Parameter of the model; several, with their values: {lam: [...], mu: [...]}
    values    : those to try, in the order of a warm-started path on every fold; a number: so many. None: 20 from `lambda_max` down to a
                thousandth of it for `loss + lam * norm`, up to a thousand times it for `norm + C * loss`
    folds     : how many (as in `Tasks.folds`, with stratify, groups and random_state), or pairs (rows to train on, rows to test on),
                the rows of the shared X, or the labelled rows of separate inputs, task after task
    metric    : the name of a measure, as in `Solution.score`, or a metric such as `FScore(beta=2)`; None: "accuracy" for labels, "concordance" for times, else "r2"
    regret    : in place of values: choose among *all* values of the interval `between`, fitting where it is needed to prove that none has a
                metric better than the best one's by more than this number. `result.proof` says what was proven, a picture has the band that
                all values lie in. The model is strongly convex, such as with + lam * ridge(W); see docs/model_selection.md
    between   : (low, high) of the parameter, with regret
    max_fits  : values at most, with regret; the proof is then of a larger regret. None: 1,000
    n_jobs    : folds at a time, in processes of joblib's (-1: one a core), or in what `joblib.parallel_config` says, such as Dask's
                workers; None: one after another, or as many as it says. The result does not depend on it. With regret all folds are
                fitted one after another in this process, since each fit starts from its neighbour
    refit     : solve on all data at the best value (True), at the one of the one-standard-error rule ("one_se"), or not (False)
    one_class : what becomes of a task whose labels in a training fold are of one class, where the loss needs two, or that has none:
                "skip", the others are learned, and it is NaN there; "constant", it is predicted to be of that class; both with a
                OneClassWarning; "error", DataError
    progress  : a bar on standard error, or a line a fold where standard error is not a terminal; the logger "mtldsl" has these lines at
                level DEBUG in any case
    solve_options : of every `solve`, such as tol and max_seconds

    Ctrl-C raises `Interrupted`: its `completed` is the result of the folds that were complete, without a refit; with regret it is the
    choice among the values that were fitted, and what is proven of all others.
    Parameters are put back; `result.solution.parameters` tells what the refit has. A lam that multiplies a norm beside losses that are
    sums over samples weighs less on all data than on a fold of them; with `mean=True` it weighs the same.

    ModelError for what is not a parameter or a metric, where values are not given and `lambda_max` is not known, and where a task has
    to be left out of a model that says something of each; DataError as in `Tasks.folds`.

    >>> import numpy as np, mtldsl as mtl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 20))
    >>> tasks = mtl.Tasks.shared(X, X[:, :2] @ rng.normal(size=(2, 3)) + rng.normal(size=(60, 3)))
    >>> W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
    >>> problem.cross_validate(lam, [30.0, 10.0, 1.0], folds=3, metric="mse")
    mse (lower is better), mean of 3 folds and its standard error, 3 tasks
           lam       mean        se
            30     1.5082    0.0990
            10     1.1702    0.0814  best, one standard error
             1     1.6538    0.0269
    """
    with in_parts(_TYPED, "fold", "folds") as made, defaults(cross_check="never"):
        one_of(one_class, ONE_CLASS, f"{_TYPED}(lam, one_class", ModelError)
        refit = _checked_refit(refit)
        jobs_of(n_jobs)
        progress = as_flag(progress, f"{_TYPED}(lam, progress", ModelError)
        _refuse_other_options(solve_options)
        tasks = data_of(problem, _TYPED)
        by = as_measure(_default(problem) if metric is None else metric, f"{_TYPED}(lam, metric")
        two = needs_two_classes(problem)
        parts = tasks.cv_folds(folds, stratify, groups, random_state, two, one_class, _TYPED)
        if parts is None:
            parts = [
                make_part(tasks, train, test, two, one_class, f"{_TYPED}: training fold {k}")
                for k, (train, test) in enumerate(_divided(tasks, folds, stratify, groups, random_state))
            ]
        # after the folds, of which a mistake is found at once
        chosen = checked_choice(problem, lam, values, between, regret, max_fits, solve_options, _TYPED)
        grid = grid_of(problem, lam, values, _TYPED) if chosen is None else chosen.values(chosen.between)
        if refit == "one_se" and len(grid.parameters) > 1:
            raise ModelError(
                "the one-standard-error rule is of one parameter", term=f"{_TYPED}({{...}}, refit='one_se')", write_instead="write refit=True"
            )  # fmt: skip
        names = ", ".join(parameter.name for parameter in grid.parameters)
        notes = warn_of(parts, one_class, f"{_TYPED}({names})")
        divided = [part.identity(tasks) for part in parts]
        model = problem.with_tasks(tasks)  # without what the problem remembers
        made.expect(
            len(parts),
            lambda trials: CrossValidation.of(
                grid, by, parts[: len(trials)], trials, notes, str(problem), divided[: len(trials)]
            ),
        )
        if chosen is not None:
            found = choose_proven(
                chosen, model, tasks, parts, by, solve_options, (notes, str(problem), divided), progress, made
            )
        else:
            with progress_bar(f"choosing {names}, fold", len(parts), progress) as tell:
                trials = in_parallel(
                    _run, (model, grid, by, solve_options), tasks, [(part,) for part in parts], n_jobs, made,
                    tell=lambda found: tell(_summarize_fold(found, grid, by)),
                )  # fmt: skip
            found = made.complete(trials)
        if refit:
            point = found.one_se if refit == "one_se" else None
            found.solution = _solved_at(problem, grid, found.best if point is None else point, solve_options)
            if found.solution.interrupted:
                raise KeyboardInterrupt
        return found


def _checked_refit(refit) -> bool | str:
    if refit == "one_se":
        return refit
    if isinstance(refit, str):
        raise ModelError(
            f"{_TYPED}(lam, refit={quoted(refit)})", write_instead="write refit=True, refit=False or refit='one_se'", argument="refit"
        )  # fmt: skip
    return as_flag(refit, f"{_TYPED}(lam, refit", ModelError)


def _refuse_other_options(solve_options: dict) -> None:
    meant = next((key for key in solve_options if key in _MEANT), None)
    if meant is not None:
        raise ModelError(
            "there is no such option", term=f"{_TYPED}(lam, {meant}=...)", write_instead=f"write {_MEANT[meant]}= in place of {meant}="
        )  # fmt: skip
    if "warm_start" in solve_options:
        raise ModelError(
            "a path starts every solve at the solution before it", term=f"{_TYPED}(lam, warm_start=...)", write_instead="leave it out"
        )  # fmt: skip


def _summarize_fold(trials: list[Trial], grid: ParameterValues, by: Measure) -> str:
    """Return what a fold found, in a few words."""
    scores = np.array([float(trial.score) for trial in trials])
    seconds = f"{len(trials)} values, {sum(trial.seconds for trial in trials):.2f} s"
    if np.isnan(scores).all():
        return seconds
    best = trials[int(np.nanargmax(scores if by.higher_is_better else -scores))]
    at = ", ".join(f"{p.name} = {value:.4g}" for p, value in zip(grid.parameters, best.point, strict=True))
    return f"best at {at} ({by.name} {float(best.score):.4g}), {seconds}"


def _default(statement: Statement) -> str:
    losses = [statement.first_loss] if statement.shares is None else list(statement.shares.terms)
    if all(cast(Loss, one.atom).labels == "time" for one in losses):
        return "concordance"
    signs = {cast(Loss, one.atom).labels in ("sign", "classes") or one.source is not None for one in losses}
    return OF_KINDS.name if len(signs) > 1 else "accuracy" if signs == {True} else "r2"


def _divided(tasks: Tasks, folds, stratify, groups, random_state) -> list[tuple[np.ndarray, np.ndarray]]:
    """Masks (train, test) of the rows, from a number of folds or pairs of positions."""
    n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    if as_whole(folds) is not None:
        numbers = fold_numbers(tasks, folds, stratify, groups, random_state, f"{_TYPED}(lam, folds")
        return [(numbers != k, numbers == k) for k in range(folds)]
    listed, found = as_list(folds), []
    for one in listed or []:
        pair = as_list(one)
        if pair is None or len(pair) != 2:
            listed = None
            break
        masks = np.zeros((2, n), dtype=bool)
        for mask, rows in zip(masks, pair, strict=True):
            mask[as_positions(rows, n, f"{_TYPED}(lam, folds)", DataError)] = True
        refuse_overlap(len(found), masks[0], masks[1], f"{_TYPED}(lam, folds)")
        if not masks.any(axis=1).all():
            raise DataError(f"fold {len(found)} has a side without rows", term=f"{_TYPED}(lam, folds)")
        found.append((masks[0], masks[1]))
    if not listed:
        raise DataError(
            term=f"{_TYPED}(lam, folds={quoted(folds)})",
            write_instead="write how many folds, or a list of pairs (rows to train on, rows to test on)",
        )
    return found


def _run(common: tuple[Any, ParameterValues, Measure, dict], tasks: Tasks, part: Fold) -> list[Trial]:
    """All values on one fold. The model's parameters are copied, for other folds may be in other threads."""
    model, grid, by, solve_options = common
    model, parameters = copy.deepcopy((model, grid.parameters), {id(tasks): tasks})
    train = part.train(tasks)
    model = model_on_tasks(model, train, part.learned)
    *outer, last = parameters
    path, found = list(grid.values.values())[-1], []
    before: tuple[float, ...] | None = None
    for point in grid.points:
        if point[:-1] == before:
            continue
        before = point[:-1]
        for parameter, value in zip(outer, before, strict=True):
            parameter.value = value
        for value, solution in zip(path, model.path(last, path, **solve_options), strict=False):
            if solution.interrupted:
                raise KeyboardInterrupt
            score = part.score(tasks, solution, by, _TYPED)
            found.append(Trial((*before, value), score, solution.status, solution.seconds))
    if len(found) != len(grid.points):
        raise KeyboardInterrupt
    part.count(tasks, train)
    return found


def _solved_at(problem: Any, grid: ParameterValues, point: tuple[float, ...], solve_options: dict):
    with put_back(grid.parameters):
        for parameter, value in zip(grid.parameters, point, strict=True):
            parameter.value = value
        return problem.solve(**solve_options)


# --------------------------------------------------------------------------------------------------------------
# Thresholds of labels from rows that the weights were not learned on: every row is scored by the model learned on the other folds.

_TYPED_FOLD_THRESHOLDS = "thresholds"


def thresholds_of_folds(
    problem: Any, solution: Solution, metric: Metric, *, folds: int = 5, groups=None, random_state=0, progress: bool = False, **solve_options
) -> Solution:  # fmt: skip
    """A copy of the solution whose thresholds are, for every task, the best under the metric on scores of the training rows, each by the same
    model, at the same parameters, learned on the other folds.

    On the rows that the weights were learned on scores are firmer than on new ones, so that a threshold tuned there lies too far out. A task
    that has one class only among the rows with a score keeps 0. ModelError for losses that do not predict labels one by one.
    Ctrl-C raises KeyboardInterrupt: half the folds say nothing.
    """
    if solution.loss["labels"] != "sign":
        raise ModelError(
            f"{solution.loss['word']} does not score labels one by one, so that there is nothing to cut",
            term=_TYPED_FOLD_THRESHOLDS, write_instead="leave [thresholds] out",
        )  # fmt: skip
    tasks = data_of(problem, _TYPED_FOLD_THRESHOLDS)
    numbers = fold_numbers(tasks, folds, groups=groups, random_state=random_state)
    two = needs_two_classes(problem)
    parts = [make_part(tasks, numbers != k, numbers == k, two, "skip", f"{_TYPED_FOLD_THRESHOLDS}: training fold {k}") for k in range(folds)]  # fmt: skip
    warn_of(parts, "skip", _TYPED_FOLD_THRESHOLDS)
    found: list[list[tuple[np.ndarray, ...]]] = [[] for _ in tasks.task_names]
    with progress_bar("tuning thresholds, fold", len(parts), progress) as tell:
        for part in parts:
            model = copy.deepcopy(problem.with_tasks(tasks), {id(tasks): tasks})
            own = model_on_tasks(model, part.train(tasks), part.learned).solve(**solve_options)
            if own.interrupted:
                raise KeyboardInterrupt
            truth, scores, weights = part.outputs(tasks, own, "scores", _TYPED_FOLD_THRESHOLDS)
            for i, of_task in enumerate(found):
                w = np.ones(len(truth[i])) if weights is None else weights[i]
                of_task.append((scores[i], truth[i], w))
            tell(own.status)
    held = []
    for of_task in found:
        z, y, w = (np.concatenate(part) for part in zip(*of_task, strict=True))
        known = ~np.isnan(z) & ~np.isnan(y)
        held.append((z[known], y[known], w[known]))
    cuts = best_thresholds(held, metric, _TYPED_FOLD_THRESHOLDS, tasks.task_names)
    return replace(solution, thresholds=cuts)
