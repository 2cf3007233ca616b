"""Record of a run as plain values: the one source of the text, the HTML and the JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise

import numpy as np
from rich.table import Table
from rich.text import Text

from mtldsl.atoms.learned_structures.spectral_penalties import ConcaveSpectrum
from mtldsl.cli.problem_files.problem_file import ProblemFile
from mtldsl.cli.record_parts import (
    describe_label_graph,
    describe_learned,
    describe_rows,
    describe_scores,
    describe_similarities,
    describe_unknown,
)
from mtldsl.display.math import to_unicode
from mtldsl.display.terminal_layout import DIM, GOOD, section
from mtldsl.normal_form.form import NormalForm
from mtldsl.problems.cross_check_comparison import BlockCheck, CrossCheck
from mtldsl.problems.cross_validation_result import CrossValidation
from mtldsl.problems.problem import Problem
from mtldsl.solution.learned import SETTINGS as LEARNED
from mtldsl.solution.solution import Solution
from mtldsl.utils.starting import VERSION

# --------------------------------------------------------------------------------------------------------------
# What calibrated losses and penalties of the spectrum say of a run, and what came of several starts, as plain values.


#: Residuals of a task beside its labels: fitted exactly, its weight is not a number to compare.
EXACT_FIT_TOL = 1e-6

#: Relative difference of objectives that are of one stationary point, or of points that are as good.
OBJECTIVE_TOL = 1e-6


def describe_calibration(problem: Problem, solution: Solution) -> dict | None:
    """Weight and noise level of every task, where a loss gives tasks with more noise less weight; None elsewhere.

    A squared loss weighs all residuals alike, and one task has none to be compared with.
    """
    levels, weights = solution.noise_levels, solution.task_weights
    if levels is None or weights is None or len(weights) < 2:
        return None
    loss = next(loss for loss in problem.form().losses if loss.atom.radial)
    near, far = loss.atom.weight_of_norm(np.array([1.0, 2.0]))
    if near == far:
        return None
    sizes = np.array([np.sqrt(np.mean(y**2)) for y in loss.tasks.per_task(loss.tasks.targets)])
    exact = levels <= EXACT_FIT_TOL * np.where(sizes > 0, sizes, 1.0)
    rows = zip(loss.tasks.task_names, levels, weights, exact, strict=True)
    return {
        "loss": loss.typed,
        "tasks": [
            {"task": name, "noise_level": float(level), "weight": float(weight), "exact": bool(zero)}
            for name, level, weight, zero in rows
        ],
    }


def describe_smoothing(form: NormalForm, block: str, singular: np.ndarray) -> dict | None:
    """Return where a penalty of this block's spectrum is smoothed: sqrt(eps), and how many singular values are larger.

    Below it such a penalty is a multiple of sigma^2, and makes nothing exactly zero.
    """
    levels = [
        np.sqrt(f.atom.eps) / abs(f.map.multiple_of(block))
        for f in form.functions
        if isinstance(f.atom, ConcaveSpectrum) and f.atom.is_reweighted and f.map.multiple_of(block)
    ]
    if not levels:
        return None
    level = float(max(levels))
    return {"level": level, "count": int(np.sum(singular > level))}


def describe_starts(solution: Solution) -> dict | None:
    """One row a start, and how far the stationary points found lie apart; None where there was one start."""
    if not solution.starts:
        return None
    certified = sorted(
        row["objective"] for row in solution.starts if row["status"] in ("stationary", "optimal")
    )
    apart = [b - a > OBJECTIVE_TOL * max(abs(a), abs(b)) for a, b in pairwise(certified)]
    return {
        "rows": solution.starts,
        "certified": len(certified),
        "different": sum(apart) + bool(certified),
        "spread": solution.spread,
    }


# --------------------------------------------------------------------------------------------------------------
# How parameters were chosen before the solve, as plain values and as a section of a report.


def describe_validation(found: CrossValidation | None, chosen: Sequence[float] | None) -> dict | None:
    """None where no parameter was chosen. One parameter is its name and its values are numbers; several are lists."""
    if found is None:
        return None
    one = len(found.names) == 1

    def plain(point):
        return None if point is None else float(point[0]) if one else [float(value) for value in point]

    proof = found.proof
    proven = [] if proof is None else [found.describe_proof()]
    return {
        "parameter": found.names[0] if one else list(found.names),
        "chosen": plain(chosen),
        "best": plain(found.best),
        "one_standard_error": plain(found.one_se),
        "metric": found.metric,
        "higher_is_better": found.higher_is_better,
        "folds": len(found.scores),
        "values": [plain(point) for point in found.points],
        "mean": [float(each) for each in found.mean],
        "standard_error": [float(each) for each in found.se],
        "proof": None if proof is None else {
            "asked": proof.asked, "regret": proof.value, "between": list(proof.between), "fits": proof.fits, "intervals": len(proof.intervals)
        },
        "notes": [*proven, *found.notes, *found.describe_unscored()],
    }  # fmt: skip


#: values of a proven choice that a terminal shows, beside those that are marked
SHOWN_VALUES = 12


def validation(record: dict):
    """The values that were tried; those that are best, within one standard error of it, and chosen are marked. A proven choice tries a hundred,
    and a screenful of them is shown."""
    names, values = record["parameter"], record["values"]
    if isinstance(names, str):
        names, values = [names], [[value] for value in values]
    rows = Table.grid(padding=(0, 2))
    rows.add_row(
        *(Text(name, DIM) for name in names), Text("mean", DIM), Text("standard error", DIM), Text("")
    )
    marks = {"best": "best", "one_standard_error": "one standard error", "chosen": "chosen"}
    few = max((abs(value) for value in record["mean"] if value is not None), default=0.0) >= 0.01
    said = [
        ", ".join(word for key, word in marks.items() if given == record[key]) for given in record["values"]
    ]
    shown = range(len(values))
    if record["proof"] is not None and len(values) > SHOWN_VALUES:
        spread = np.linspace(0, len(values) - 1, SHOWN_VALUES).round().astype(int).tolist()
        shown = sorted({*spread, *(k for k, word in enumerate(said) if word)})
    for k in shown:
        style = GOOD if record["values"][k] == record["chosen"] else ""
        mean, error = _number(record["mean"][k], few), _number(record["standard_error"][k], few)
        rows.add_row(
            *(Text(cell, style) for cell in (*(f"{x:.4g}" for x in values[k]), mean, error, said[k]))
        )
    left_out = len(values) - len(shown)
    notes = [f"{left_out} values more are on the report's page and in --json"] if left_out else []
    better = "higher" if record["higher_is_better"] else "lower"
    title = (
        f"{' and '.join(names)} chosen on {record['folds']} folds: {record['metric']} ({better} is better)"
    )
    return section(title, rows, notes=[*notes, *record["notes"]])


def _number(value: float, few: bool) -> str:
    """`few` digits after the point, below which smaller scores would not be told apart."""
    return f"{value:.4f}" if few else f"{value:.4g}"


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
            "learned": {unknown.name: describe_unknown(problem, unknown) for unknown in problem.learned},
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
        "learned": describe_learned(file.problem, solution),
        "similarities": describe_similarities(file.problem, solution),
        "label_graph": describe_label_graph(file.problem, solution),
        "calibration": describe_calibration(file.problem, solution),
        "starts": describe_starts(solution),
    }
    record["rows"] = describe_rows(file.tasks_train.storage_facts(), file.cluster, counts or [])
    record["scores"] = describe_scores(file, solution)
    record["cross_check"] = _check(check)
    values = None if chosen is None else [solution.parameters[name] for name in chosen.names]
    record["validation"] = describe_validation(chosen, values)
    return record


def _structure(form: NormalForm, block: str, W: np.ndarray) -> dict:
    """Return how sparse and of what rank a weight matrix is."""
    singular = np.linalg.svd(W, compute_uv=False)
    return {
        "shape": list(W.shape),
        "rank": int(np.sum(singular > LEARNED.rank_tol * singular.max(initial=0.0))),
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
