"""Parts of a run's record as plain values: rows elsewhere, label graph, learned matrices, scores, similarities."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np
from rich.console import Group

from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.cli.problem_files.problem_file import ProblemFile
from mtldsl.data.tasks import Tasks
from mtldsl.display.math import matrix_latex, to_unicode
from mtldsl.display.pictures.tree import SETTINGS as TREE
from mtldsl.display.terminal_layout import pairs, section
from mtldsl.errors import MTLError
from mtldsl.language.constraints import RangeConstraint, ranges_of
from mtldsl.language.learned_unknowns import KernelWeights, LearnedUnknown
from mtldsl.normal_form.terms.structure_term import structure_terms
from mtldsl.problems.problem import Problem
from mtldsl.solution.learned import SETTINGS as LEARNED
from mtldsl.solution.learned import LearnedMatrix, LearnedWeights, correlation_of
from mtldsl.solution.measures import measure_of_rare
from mtldsl.solution.predictors import sign_tasks
from mtldsl.solution.score import as_measure, r_squared, score_of
from mtldsl.solution.score_intervals import class_vectors, guessed_score
from mtldsl.solution.solution import Solution

# --------------------------------------------------------------------------------------------------------------
# Rows that are not in this process: where they are, and how often they were gone through.

#: what is done, in this order
_STEPS = ("validation", "solve", "cross_check")


def describe_rows(facts: dict[str, Any], cluster: Any, counts: list[tuple[int, int]]) -> dict | None:
    """Return where rows are, and what each step took; None where they are in memory.

    facts  : `Tasks.storage_facts` of the training tasks
    cluster: the workers that a file named; None: those of this process
    counts : (runs over the rows, bytes moved) before the first step and after each
    """
    if not facts:
        return None
    steps = zip(_STEPS, counts, counts[1:], strict=False)
    return {
        "parts": facts["parts"],
        "names": facts["names"],
        "where": "this process, in threads" if cluster is None else cluster.where,
        "address": None if cluster is None else cluster.address,
        "workers": facts["workers"],
        "passes": {name: after[0] - before[0] for name, before, after in steps},
        "bytes_moved": counts[-1][1] - counts[0][1] if counts else 0,
    }


def rows_elsewhere(rows: dict) -> Group:
    """The section of a report."""
    names = rows["names"]
    shown = ", ".join(names) if len(names) <= 2 else f"{names[0]}, ..., {names[-1]}"
    workers = f"{rows['workers']} worker{'s' if rows['workers'] > 1 else ''}"
    where = rows["where"] if rows["address"] is None else f"{workers} of {rows['where']}"
    passes = {"validation": "choosing", "solve": "solving", "cross_check": "the cross-check"}
    told = ", ".join(f"{n} for {passes[name]}" for name, n in rows["passes"].items() if n)
    moved = f"{rows['bytes_moved'] / 1024:,.0f} KiB moved"
    facts = [
        ("parts", f"{rows['parts']:,}: {shown}"),
        ("read by", where),
        ("passes", f"{told or 'none'}; {moved}"),
    ]
    return section("Where the rows are", pairs(facts))


# --------------------------------------------------------------------------------------------------------------
# What a run learned of the graph over the labels: its edges, how strong they are, and what they decide.


@dataclass(frozen=True)
class RecordPartSettings:
    """Sizes of what is recorded, and shares that count as zero."""

    listed_edges: int = 12  # edges of a graph that are listed
    # edges up to which it is looked up how many labellings each decides: an inference a row each
    counted_edges: int = 40
    matrix_rows: int = 200  # rows of a matrix; a larger one is described by its eigenvalues alone
    named_pairs: int = 5  # pairs of features or tasks that a report names
    bound_tol: float = 1e-9  # relative distance of an eigenvalue that is at a bound
    correlation_tol: float = 1e-9  # correlation that is rounding
    slab_entries: int = 4_000_000  # entries of a correlation matrix that are computed at once
    correlated_tasks: int = 200  # tasks up to which their correlations are part of a record
    compared_tasks: int = 2000  # and up to which the pairs most alike are sought
    similar_pairs: int = 3  # pairs of tasks that are named, of those most alike and of those least alike


SETTINGS = RecordPartSettings()


def describe_label_graph(problem: Problem, solution: Solution) -> dict | None:
    """Return what `solution.graph` says of a loss over a graph of labels, the inference, and how many maxima are exact; None for other losses."""
    graph = solution.label_graph
    if graph is None:
        return None
    method, treewidth, exact = graph.inference
    usage = (
        solution.edge_usage(problem.first_loss.data) if 0 < len(graph.used) <= SETTINGS.counted_edges else {}
    )
    at = {tuple(pair): k for k, pair in enumerate(graph.pairs.tolist())}
    edges = []
    for c in graph.used[: SETTINGS.listed_edges].tolist():
        pulls = [at[pair] for pair in combinations(graph.cliques.members[c], 2)]
        found = graph.facts_of(c) | {"usage": usage.get(graph.labels_of(c))}
        if len(pulls) == 1:
            found["coupling"] = float(graph.coupling[pulls[0]])
            found["attraction"] = float(graph.attraction[pulls[0]])
        edges.append(found)
    certified = solution.certified
    return {
        "labels": len(graph.names),
        "candidates": graph.cliques.n_cliques,
        "larger": int(np.sum(graph.cliques.sizes > 2)),
        "edges": len(graph.used),
        "listed": edges,
        "inference": {"method": method, "treewidth": treewidth, "exact": exact},
        "certified": None
        if certified is None
        else {"exact": int(certified.sum()), "rows": int(certified.size)},
    }


# --------------------------------------------------------------------------------------------------------------
# What a run learned beside the weights, and what is proven where a model is not convex, as plain values.


def describe_unknown(problem: Problem, unknown: LearnedUnknown) -> dict:
    """Return what a model says of a matrix that it learns, or of kernel weights and how many there are."""
    if isinstance(unknown, KernelWeights):
        term = next(term for term in problem.objective.terms if unknown in term.learned)
        count = len(cast(MKLNorm, term.atom).kernels)
        return {"kind": unknown.kind, "axis": "task similarities", "shape": [count]}
    return {"kind": unknown.kind, "axis": unknown.axis, "shape": list(unknown.shape)}


def describe_learned(problem: Problem, solution: Solution) -> dict[str, dict]:
    """Every learned matrix: spectrum, bounds that were hit, strongest correlations, and, up to a side of 200, itself."""
    ranges = ranges_of(c for c in problem.constraints if isinstance(c, RangeConstraint))
    return {
        unknown.name: describe_unknown(problem, unknown)
        | _spectrum(matrix, ranges.get(unknown, unknown.unconstrained))
        | {"strongest": strongest_correlations(matrix, SETTINGS.named_pairs)}
        | _arrays(matrix)
        for unknown in problem.learned
        if not isinstance(unknown, KernelWeights)
        and isinstance(
            matrix := solution.learned.get(unknown.name), LearnedMatrix
        )  # its term may have the coefficient 0
    }


def _spectrum(matrix: LearnedMatrix, bounds) -> dict:
    values = matrix.eigenvalues()
    smallest, largest = float(values[0]), float(values[-1])
    rank = int(np.sum(values > LEARNED.rank_tol * largest)) if matrix.kind == "covariance" else len(values)
    found = {
        "lower": bounds.lower if bounds.lower > 0 else None,
        "upper": bounds.upper if np.isfinite(bounds.upper) else None,
        "trace_bound": bounds.trace if np.isfinite(bounds.trace) else None,
        "trace": float(values.sum()),
        "rank": rank,
        "condition": largest / smallest if rank == len(values) else None,
        "eigenvalues": values,
    }
    at_lower = int(np.sum(values <= bounds.lower * (1 + SETTINGS.bound_tol)))
    at_upper = int(np.sum(values >= bounds.upper * (1 - SETTINGS.bound_tol)))
    found["at_lower"] = at_lower if found["lower"] else None
    found["at_upper"] = at_upper if found["upper"] else None
    return found


def _arrays(matrix: LearnedMatrix) -> dict:
    if matrix.shape[0] > SETTINGS.matrix_rows:
        return {"names": None, "matrix": None, "correlation": None}
    return {
        "names": list(matrix.names),
        "matrix": np.asarray(matrix),
        "correlation": matrix.correlation,
    }


def strongest_correlations(matrix: LearnedMatrix, count: int) -> list[dict]:
    """The `count` pairs of largest absolute correlation, strongest first; in memory linear in the side of the matrix.

    >>> from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
    >>> S = SpectralMatrix.of(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> (found,) = strongest_correlations(LearnedMatrix("Sigma2", "tasks", "precision", ("a", "b", "c"), S), 5)
    >>> found["pair"], round(found["correlation"], 12)
    (['a', 'b'], -0.5)
    """
    covariance = matrix.spectral if matrix.kind == "covariance" else matrix.spectral.power(-1.0)
    rest = covariance.rest if covariance.n_rest else 0.0
    # off the diagonal, the covariance is basis diag(core) basis^T
    basis, core = covariance.basis, covariance.values - rest
    variances = basis**2 @ core + rest
    scales = np.zeros(len(variances))
    # a feature without variance has no correlation
    held = variances > SETTINGS.correlation_tol * variances.max()
    scales[held] = 1.0 / np.sqrt(variances[held])
    scaled, found, side = basis * scales[:, None], [], covariance.side
    step = max(1, SETTINGS.slab_entries // side)
    for first in range(0, side, step):
        block = (scaled[first : first + step] * core) @ scaled[first:].T
        block[np.tri(*block.shape, dtype=bool)] = 0.0  # each pair once
        sizes = np.abs(block).ravel()
        for k in np.argpartition(sizes, -min(count, sizes.size))[-min(count, sizes.size) :]:
            i, j = divmod(int(k), block.shape[1])
            found.append((float(block[i, j]), first + i, first + j))
    found = sorted(found, key=lambda entry: (-abs(entry[0]), entry[1:]))[:count]
    return [
        {"pair": [matrix.names[i], matrix.names[j]], "correlation": float(np.clip(c, -1.0, 1.0))}
        for c, i, j in found
        if abs(c) > SETTINGS.correlation_tol
    ]


# --------------------------------------------------------------------------------------------------------------
# How well the weights predict, as plain values: by task, by the measures that matter, beside what a constant has.


def describe_scores(file: ProblemFile, solution: Solution) -> dict:
    """Per task on the held-out rows, or on the training rows where none were held out, beside the simplest guess."""
    tasks = file.tasks_train if file.tasks_test is None else file.tasks_test
    classes = sign_tasks(solution.loss, file.tasks_train.n_tasks) & (solution.loss["labels"] != "indicators")
    scores, of_times = solution.scores(tasks), solution.loss["labels"] == "time"
    guesses = np.full(scores.shape, 0.5)  # of times, where all risks are alike
    guesses = guesses if of_times else tasks.constant_scores(_guess, file.tasks_train, classes)
    rows = [
        {"task": name, "rows": int(count), "score": float(score), "guess": float(guess), "metrics": {}}
        for name, count, score, guess in zip(tasks.task_names, tasks.counts, scores, guesses, strict=True)
    ]
    metrics, not_measured = _measured(file, tasks, solution, rows)
    named, not_named = _by_name(file, tasks, solution, rows)
    return {
        "classes": [
            {"label": name, "rows": count, "right": one.overall[0], "guess": one.overall[3]}
            for name, (count, one) in class_vectors(solution, tasks, file.tasks_train, samples=0).items()
        ],
        "measure": _by_kind(classes, "accuracy", "concordance" if of_times else "R2"),
        "rows": "training" if file.tasks_test is None else "held out",
        "guess": _by_kind(
            classes, "always the more frequent label", "always one risk" if of_times else "always the mean"
        ),
        "mean": float(np.mean(scores)),
        "mean_guess": float(np.mean(guesses)),
        "metrics": metrics | named,
        "metrics_not_measured": not_measured + not_named,
        "thresholds": None if solution.thresholds is None else _thresholds(file, solution),
        "tasks": rows,
    }


def _by_kind(classes: np.ndarray, of_labels: str, of_numbers: str) -> str:
    """Return what is said of tasks with labels, of those with numbers, or both."""
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
            found = guessed_score(by, file.tasks_train, tasks, sign_tasks(solution.loss, tasks.n_tasks))
            guess = guess if found.by_task is None else found.by_task
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
    """Return what the thresholds of [thresholds] were tuned for, and where they are."""
    said = file.thresholds or {}
    beta = said.get("beta", 1.0)
    assert solution.thresholds is not None
    return {
        "metric": f"the F-score of beta {beta:g}" if beta != 1 else said.get("metric", "f1"),
        "folds": said.get("folds", 5),
        "by_task": dict(zip(solution.task_names, solution.thresholds.tolist(), strict=True)),
    }


def _suiting(file: ProblemFile, solution: Solution) -> list[str]:
    """Return what a reader has to see where nothing was asked for: the measure that a parameter was chosen by, or one that sees rare labels, and what
    thresholds were tuned for."""
    tasks, seeing = file.tasks_train, (file.validation or {}).get("metric")
    learned_for = _learned_for(file.problem, 1)
    if seeing is None and solution.loss["labels"] == "sign" and tasks.in_memory and not learned_for:
        seeing = measure_of_rare(float(np.mean(y > 0)) for y in tasks.per_task(tasks.targets))
    tuned = None if file.thresholds is None else file.thresholds.get("metric", "f1")
    return [name for name in dict.fromkeys([seeing, tuned]) if name not in (None, "accuracy", "r2")]


def _learned_for(problem: Problem, n_tasks: int) -> list[list[Metric]]:
    """One metric a task, for every loss with a metric."""
    found = [getattr(term.atom, "metric", None) for term in problem.objective.terms if term.is_loss]
    found = [metric for metric in found if metric is not None]
    return [list(metric) if isinstance(metric, tuple) else [metric] * n_tasks for metric in found]


def _constant(metric: Metric, train: Tasks, tasks: Tasks, i: int) -> float:
    """Return what one score for all samples of a task has under the metric, with the sign that is better on the training rows."""
    learned, y = train.per_task(train.targets)[i], tasks.per_task(tasks.targets)[i]
    sign = max((1.0, -1.0), key=lambda z: score_of(metric, np.full(len(learned), z), learned))
    return float(score_of(metric, np.full(len(y), sign), y))


def _guess(tasks: Tasks, train: Tasks, classes: np.ndarray) -> np.ndarray:
    """Return what a constant learned on the training rows scores: its accuracy, or its R^2."""
    learned = [np.mean(y) for y in train.per_task(train.targets)]
    each = zip(learned, tasks.per_task(tasks.targets), classes, strict=True)
    return np.array(
        [np.mean((y > 0) == (mean > 0)) if labels else r_squared(mean, y) for mean, y, labels in each]
    )


# --------------------------------------------------------------------------------------------------------------
# What a run learned of the similarities between tasks: the weight of each, and how alike the tasks are in the end.


def describe_similarities(problem: Problem, solution: Solution) -> list[dict]:
    """Every `mkl_norm`: its weights by name, the bound that they are in, the samples that count, and the tasks most alike."""
    found, samples = [], sum(loss.tasks.n_samples for loss in problem.form().losses)
    for term in structure_terms(problem.form()):
        name = term.names[0]
        weights = None if name is None else solution.learned.get(name)
        if name is None or not isinstance(weights, LearnedWeights):  # its coefficient may be 0
            continue
        ball = cast(MKLNorm, term.atom).weights_ball
        kept = name in {unknown.name for unknown in problem.learned}
        found.append(
            {
                "term": term.typed,
                "name": name if kept else None,
                "symbol": to_unicode(matrix_latex(name)) if kept else "θ",
                "how": "given" if ball is None else "learned" if kept else "eliminated",
                "p": None if ball is None else ball.p,
                "radius": None if ball is None else ball.radius,
                "names": list(weights.names),
                "weights": weights.values,
                "zeros": int(
                    np.sum(weights.values <= TREE.zero_weight_share * weights.values.max(initial=0.0))
                ),
                # samples with a multiplier that is not zero, where the solver has multipliers
                "support": None
                if weights.support is None
                else {"count": weights.support, "samples": samples},
                # "" alone where all similarities are about all features
                "tasks": [
                    _alike(weights, view) for view in dict.fromkeys(filter(None, weights.views)) or [""]
                ],
            }
        )
    return found


def _alike(weights: LearnedWeights, view: str) -> dict:
    """The correlations of the tasks under sum_m theta_m R_m, on the features of one view."""
    n = len(weights.task_names)
    found = {"view": view, "names": None, "correlation": None, "similarity": None, "most": [], "least": []}
    if n > SETTINGS.compared_tasks:  # n x n numbers for five lines
        return found
    similarity = weights.similarity_of(view) if view else weights.similarity
    correlation = correlation_of(similarity)
    if n <= SETTINGS.correlated_tasks:
        found |= {"names": list(weights.task_names), "similarity": similarity, "correlation": correlation}
    pairs = np.triu_indices(n, 1)
    values = correlation[pairs]
    known = np.flatnonzero(~np.isnan(values))  # a task that no similarity is about has no correlation
    order = known[np.argsort(-values[known], kind="stable")]
    count = min(SETTINGS.similar_pairs, len(order) // 2) if len(order) > 1 else len(order)
    names = weights.task_names
    for key, at in (("most", order[:count]), ("least", order[::-1][:count] if len(order) > 1 else [])):
        found[key] = [
            {"pair": [names[i], names[j]], "correlation": float(value)}
            for i, j, value in zip(pairs[0][at], pairs[1][at], values[at], strict=True)
        ]
    return found
