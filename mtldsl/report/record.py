"""What a run found, as plain values: the one source of the text, the HTML and the JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from mtldsl.analysis.cross_validated import CrossValidation
from mtldsl.check.comparison import CrossCheck
from mtldsl.check.comparison_blocks import BlockCheck
from mtldsl.compile.normal_form import NormalForm
from mtldsl.files.problem_file import ProblemFile
from mtldsl.language.unknowns.kernel_weights import KernelWeights
from mtldsl.problem import Problem
from mtldsl.report.calibrated import describe_calibration, describe_smoothing, describe_starts
from mtldsl.report.elsewhere import describe_rows
from mtldsl.report.label_graph import describe_label_graph
from mtldsl.report.learned import describe_learned, describe_unknown
from mtldsl.report.scores import describe_scores
from mtldsl.report.similarities import describe_similarities, describe_theta
from mtldsl.report.unicode_math import to_unicode
from mtldsl.report.validation import describe_validation
from mtldsl.solution.solution import Solution
from mtldsl.system.version import VERSION

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
        "mtldsl": VERSION,
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
    record["rows"] = describe_rows(file.tasks_train.storage_facts(), file.cluster, counts or [])
    record["scores"] = describe_scores(file, solution)
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
