"""How well the weights predict, as plain values: by task, by the measures that matter, beside what a constant has."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import MTLError
from mtldsl.files.problem_file import ProblemFile
from mtldsl.problem import Problem
from mtldsl.scoring.rare import measure_of_rare
from mtldsl.solution.metric_measure import as_measure
from mtldsl.solution.page.guess import constant_score
from mtldsl.solution.predictors import sign_tasks
from mtldsl.solution.scoring import r_squared, score_of
from mtldsl.solution.solution import Solution
from mtldsl.tasks import Tasks

__all__ = ["describe_scores"]


def describe_scores(file: ProblemFile, solution: Solution) -> dict:
    """Per task on the held-out rows, or on the training rows where none were held out, beside the simplest guess."""
    tasks = file.tasks_train if file.tasks_test is None else file.tasks_test
    classes = sign_tasks(solution.loss, file.tasks_train.n_tasks) & (solution.loss["labels"] != "indicators")
    scores, guesses = solution.scores(tasks), tasks.constant_scores(_guess, file.tasks_train, classes)
    rows = [
        {"task": name, "rows": int(count), "score": float(score), "guess": float(guess), "metrics": {}}
        for name, count, score, guess in zip(tasks.task_names, tasks.counts, scores, guesses, strict=True)
    ]
    metrics, not_measured = _measured(file, tasks, solution, rows)
    named, not_named = _by_name(file, tasks, solution, rows)
    return {
        "measure": _by_kind(classes, "accuracy", "R2"),
        "rows": "training" if file.tasks_test is None else "held out",
        "guess": _by_kind(classes, "always the more frequent label", "always the mean"),
        "mean": float(np.mean(scores)),
        "mean_guess": float(np.mean(guesses)),
        "metrics": metrics | named,
        "metrics_not_measured": not_measured + not_named,
        "thresholds": None if solution.thresholds is None else _thresholds(file, solution),
        "tasks": rows,
    }


def _by_kind(classes: np.ndarray, of_labels: str, of_numbers: str) -> str:
    """What is said of tasks with labels, of those with numbers, or both."""
    said = [of_labels] * bool(classes.any()) + [of_numbers] * (not classes.all())
    return said[0] if len(said) == 1 else f"{of_labels} (labels), {of_numbers} (numbers)"


def _measured(
    file: ProblemFile, tasks: Tasks, solution: Solution, rows: list[dict]
) -> tuple[dict, list[str]]:
    """(means of every metric that the weights were learned for, why others have none); a task's own go into `rows`."""
    reasons = []
    for of_tasks in _learned_for(file.problem, tasks.n_tasks):
        try:
            scores = solution.scores(tasks, of_tasks)
        except MTLError as error:  # such as a task with one class only among the rows held out
            reasons.append(str(error))
            continue
        for i, (row, metric, score) in enumerate(zip(rows, of_tasks, scores, strict=True)):
            guess = _constant(metric, file.tasks_train, tasks, i) if tasks.in_memory else float("nan")
            row["metrics"][repr(metric)] = {"score": float(score), "guess": guess}
    means = {}
    for name in dict.fromkeys(name for row in rows for name in row["metrics"]):
        pairs = [row["metrics"][name] for row in rows if name in row["metrics"]]
        means[name] = {
            "mean": float(np.mean([pair["score"] for pair in pairs])),
            "mean_guess": float(np.mean([pair["guess"] for pair in pairs])),
            "tasks": len(pairs),
        }
    return means, reasons


def _by_name(file: ProblemFile, tasks: Tasks, solution: Solution, rows: list[dict]) -> tuple[dict, list[str]]:
    """The same of the measures that [output] metrics names, or that suit, beside what a constant has."""
    means, reasons = {}, []
    for name in file.metrics or _suiting(file, solution):
        by = as_measure(name, "[output] metrics")
        try:
            score = solution.score(tasks, name)
        except MTLError as error:
            reasons.append(str(error))
            continue
        guess = np.full(tasks.n_tasks, np.nan)
        if tasks.in_memory:
            guess = constant_score(by, file.tasks_train, tasks, sign_tasks(solution.loss, tasks.n_tasks))
        if score.by_task is not None:
            for row, own, beside in zip(rows, score.by_task, guess, strict=True):
                row["metrics"][name] = {"score": float(own), "guess": float(beside)}
        means[name] = {
            "mean": float(score),
            "mean_guess": float("nan") if np.isnan(guess).all() else float(np.nanmean(guess)),
            "tasks": tasks.n_tasks - len(score.left_out),
            "higher_is_better": by.higher_is_better,
        }
    return means, reasons


def _thresholds(file: ProblemFile, solution: Solution) -> dict:
    """What the thresholds of [thresholds] were tuned for, and where they are."""
    said = file.thresholds or {}
    beta = said.get("beta", 1.0)
    assert solution.thresholds is not None
    return {
        "metric": f"the F-score of beta {beta:g}" if beta != 1 else said.get("metric", "f1"),
        "folds": said.get("folds", 5),
        "by_task": dict(zip(solution.task_names, solution.thresholds.tolist(), strict=True)),
    }


def _suiting(file: ProblemFile, solution: Solution) -> list[str]:
    """What a reader has to see where nothing was asked for: the measure that a parameter was chosen by, or one that sees rare labels, and what
    thresholds were tuned for."""
    tuned = [] if file.thresholds is None else [file.thresholds.get("metric", "f1")]
    names = dict.fromkeys([*_seeing(file, solution), *tuned])
    return [name for name in names if name not in ("accuracy", "r2")]


def _seeing(file: ProblemFile, solution: Solution) -> list[str]:
    chosen_by = (file.validation or {}).get("metric")
    if chosen_by is not None:
        return [chosen_by]
    tasks = file.tasks_train
    if solution.loss["labels"] != "sign" or not tasks.in_memory or _learned_for(file.problem, 1):
        return []
    seen = measure_of_rare(float(np.mean(y > 0)) for y in tasks.per_task(tasks.targets))
    return [] if seen is None else [seen]


def _learned_for(problem: Problem, n_tasks: int) -> list[list[Metric]]:
    """One metric a task, for every loss with a metric."""
    found = [getattr(term.atom, "metric", None) for term in problem.objective.terms if term.is_loss]
    return [
        list(metric) if isinstance(metric, tuple) else [metric] * n_tasks
        for metric in found
        if metric is not None
    ]


def _constant(metric: Metric, train: Tasks, tasks: Tasks, i: int) -> float:
    """What one score for all samples of a task has under the metric, with the sign that is better on the training rows."""
    learned, y = train.per_task(train.targets)[i], tasks.per_task(tasks.targets)[i]
    sign = max((1.0, -1.0), key=lambda z: score_of(metric, np.full(len(learned), z), learned))
    return float(score_of(metric, np.full(len(y), sign), y))


def _guess(tasks: Tasks, train: Tasks, classes: np.ndarray) -> np.ndarray:
    """What a constant learned on the training rows scores: its accuracy, or its R^2."""
    learned = [np.mean(y) for y in train.per_task(train.targets)]
    targets = tasks.per_task(tasks.targets)
    return np.array(
        [
            np.mean((y > 0) == (mean > 0)) if of_labels else r_squared(mean, y)
            for mean, y, of_labels in zip(learned, targets, classes, strict=True)
        ]
    )
