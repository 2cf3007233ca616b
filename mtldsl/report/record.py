"""What a run found, as plain values: the one source of the text, the HTML and the JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

import mtldsl
from mtldsl.analysis.cross_validated import CrossValidation
from mtldsl.atoms.metrics import Metric
from mtldsl.check.comparison import CrossCheck
from mtldsl.check.comparison_blocks import BlockCheck
from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import MTLError
from mtldsl.files.problem_file import ProblemFile
from mtldsl.files.rare import measure_of_rare
from mtldsl.language.unknowns.kernel_weights import KernelWeights
from mtldsl.problem import Problem
from mtldsl.report.calibrated import describe_calibration, describe_smoothing, describe_starts
from mtldsl.report.elsewhere import constant_scores, describe_rows
from mtldsl.report.label_graph import describe_label_graph
from mtldsl.report.learned import describe_learned, describe_unknown
from mtldsl.report.similarities import describe_similarities, describe_theta
from mtldsl.report.unicode_math import to_unicode
from mtldsl.report.validation import describe_validation
from mtldsl.solution.metric_measure import as_measure
from mtldsl.solution.page.guess import constant_score
from mtldsl.solution.scoring import r_squared, score_of
from mtldsl.solution.solution import Solution
from mtldsl.tasks import Tasks

__all__ = ["describe_explanation", "describe_file", "describe_run", "plain"]

#: What a solution tells beside its weights, one file each: plain values, empty where a model has nothing of the kind. How they are
#: shown stands in `mtldsl.report.text.TOLD`.
TOLD: dict[str, Callable[[Problem, Solution], dict | list | None]] = {
    "learned": describe_learned,
    "similarities": describe_similarities,
    "label_graph": describe_label_graph,
    "calibration": describe_calibration,
}

#: Singular values below this share of the largest count as zero.
RANK_TOLERANCE = 1e-6


def describe_file(file: ProblemFile) -> dict:
    """The model and the data of a problem file."""
    problem, filled = file.problem, file.tasks_train.imputation
    return {
        "mtldsl": mtldsl.__version__,
        "file": str(file.path),
        "title": file.title,
        "model": {
            "objective": problem.objective.text,
            "subject_to": [constraint.text for constraint in problem.constraints],
            "latex": problem._repr_latex_(),
            "unicode": {
                "objective": to_unicode(problem.objective.latex),
                "subject_to": [to_unicode(constraint.latex) for constraint in problem.constraints],
                "parameters": [f"{to_unicode(p.latex)} = {p.value:g}" for p in problem.parameters],
                "learned": {unknown.name: to_unicode(unknown.latex) for unknown in problem.learned},
            },
            "parameters": {parameter.name: parameter.value for parameter in problem.parameters},
            "weights": {w.name: {"shape": list(w.shape), "intercept": w.intercept} for w in problem.weights},
            "learned": {unknown.name: _unknown(problem, unknown) for unknown in problem.learned},
        },
        "data": {
            "task_names": list(file.tasks_train.task_names),
            "train": file.tasks_train.describe(),
            "imputed": None
            if filled is None
            else {"strategy": filled.strategy, "cells": int(filled.gaps.nnz)},
            "held_out": None if file.tasks_test is None else file.tasks_test.describe(),
        },
    }


def _unknown(problem: Problem, unknown) -> dict:
    if isinstance(unknown, KernelWeights):
        return describe_theta(problem, unknown)
    return describe_unknown(unknown)


def describe_explanation(problem: Problem) -> dict:
    """Every solver with its verdict and reason; `solves_only`: the kind of models that it is for, where this is not one."""
    explanation = problem.explain()
    rows = [
        {"solver": name, "verdict": verdict, "reason": reason, "solves_only": answer.solves_only}
        for (name, verdict, reason), answer in zip(explanation.verdicts(), explanation.answers, strict=True)
    ]
    return {"chosen": explanation.chosen, "why": explanation.why, "solvers": rows}


def describe_run(
    file: ProblemFile,
    solution: Solution,
    check: CrossCheck | BlockCheck | str | None,
    chosen: CrossValidation | None = None,
    counts: list[tuple[int, int]] | None = None,
) -> dict:
    """Everything about one solve. `check`: the comparison, or why there is none, or None where none was asked for; `chosen`: what folds
    said of a parameter before it; `counts`: of runs over rows elsewhere, see `describe_rows`."""
    record = describe_file(file)
    record["solvers"] = describe_explanation(file.problem)["solvers"]
    form = file.problem.form()
    record["solution"] = {
        "status": solution.status,
        "certified": solution.is_certified,
        "solver": solution.solver,
        "reason": solution.reason,
        "objective": solution.objective,
        "dual_bound": solution.dual_bound,
        "gap": {"relative": solution.gap.relative, "absolute": solution.gap.absolute},
        "violation": solution.violation,
        "tol": solution.tol,
        "note": solution.note,
        "seconds": solution.seconds,
        "compile_seconds": solution.compile_seconds,
        "iterations": solution.iterations,
        # weights of no columns, of a graph without edges, are not unknowns
        "weights": {
            w.name: _structure(form, w.name, solution.blocks[w.name])
            for w in file.problem.weights
            if w.name in solution.blocks
        },
        "stationarity": None if solution.stationarity is None else asdict(solution.stationarity),
        **{name: describe(file.problem, solution) for name, describe in TOLD.items()},
        "starts": describe_starts(solution),
    }
    record["rows"] = describe_rows(file, counts or [])
    record["scores"] = _scores(file, solution)
    record["cross_check"] = _check(check)
    values = None if chosen is None else [solution.parameters[name] for name in chosen.names]
    record["validation"] = describe_validation(chosen, values)
    return record


def _structure(form: NormalForm, block: str, W: np.ndarray) -> dict:
    """How sparse and of what rank a weight matrix is."""
    singular = np.linalg.svd(W, compute_uv=False)
    return {
        "shape": list(W.shape),
        "rank": int(np.sum(singular > RANK_TOLERANCE * singular.max(initial=0.0))),
        "singular_values": singular,
        "nonzero_entries": int(np.count_nonzero(W)),
        "nonzero_rows": int(np.count_nonzero(np.any(W != 0, axis=1))),
        "nonzero_columns": int(np.count_nonzero(np.any(W != 0, axis=0))),
        "smoothing": describe_smoothing(form, block, singular),
    }


def _scores(file: ProblemFile, solution: Solution) -> dict:
    """Per task on the held-out rows, or on the training rows where none were held out, beside the simplest guess."""
    tasks = file.tasks_train if file.tasks_test is None else file.tasks_test
    classes = solution.loss["labels"] == "sign"
    scores, guesses = solution.scores(tasks), _guess(file.tasks_train, tasks, classes)
    rows = [
        {"task": name, "rows": int(count), "score": float(score), "guess": float(guess), "metrics": {}}
        for name, count, score, guess in zip(tasks.task_names, tasks.counts, scores, guesses, strict=True)
    ]
    metrics, not_measured = _measured(file, tasks, solution, rows)
    named, not_named = _by_name(file, tasks, solution, rows)
    return {
        "measure": "accuracy" if classes else "R2",
        "rows": "training" if file.tasks_test is None else "held out",
        "guess": "always the more frequent label" if classes else "always the mean",
        "mean": float(np.mean(scores)),
        "mean_guess": float(np.mean(guesses)),
        "metrics": metrics | named,
        "metrics_not_measured": not_measured + not_named,
        "thresholds": None if solution.thresholds is None else _thresholds(file, solution),
        "tasks": rows,
    }


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
            guess = float("nan") if tasks.is_distributed else _constant(metric, file.tasks_train, tasks, i)
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
        if not tasks.is_distributed:
            guess = constant_score(
                by, file.tasks_train, tasks, solution.loss["labels"] in ("sign", "indicators")
            )
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
    assert solution.thresholds is not None
    return {
        "metric": said.get("metric", "f1"),
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
    if solution.loss["labels"] != "sign" or tasks.is_distributed or _learned_for(file.problem, 1):
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


def _guess(train: Tasks, tasks: Tasks, classes: bool) -> np.ndarray:
    """What a constant learned on the training rows scores: its accuracy, or its R^2."""
    if tasks.is_distributed:
        return constant_scores(train, tasks, classes)
    learned = [np.mean(y) for y in train.per_task(train.targets)]
    targets = tasks.per_task(tasks.targets)
    if classes:
        return np.array([np.mean((y > 0) == (mean > 0)) for mean, y in zip(learned, targets, strict=True)])
    return np.array([r_squared(mean, y) for mean, y in zip(learned, targets, strict=True)])


def _check(check: CrossCheck | BlockCheck | str | None) -> dict | None:
    if check is None or isinstance(check, str):
        return check if check is None else {"agrees": None, "reason": check}
    shared = {"agrees": check.agrees, "disagreements": check.disagreements, "notes": check.notes}
    shared |= asdict(check) | {"formula_difference": check.formula_difference}
    if isinstance(check, BlockCheck):
        rows = [asdict(row) | {"difference": row.difference, "agrees": row.agrees} for row in check.blocks]
        return {"kind": check.kind, **shared, "reference_seconds": check.reference_seconds, "blocks": rows}
    return {"kind": "whole", **shared, "difference": check.difference, "gaps": list(check.gaps)}


def plain(value):
    """Values that JSON has: arrays as lists, infinity and NaN as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
