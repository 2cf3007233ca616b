"""Partitions, folds, resampling to a class ratio, and the measures: what every method of the experiment shares."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import f1_score, roc_auc_score

from mtldsl import Tasks, datasets
from mtldsl.data.splits import fold_numbers

__all__ = ["DATA", "folds_of", "measures", "partition", "resampled", "validation_measures"]

DATA = {
    "flags": datasets.load_flags,
    "emotions": datasets.load_emotions,
    "segmentation": datasets.load_segmentation,
    "digits": datasets.load_digits,
    "scene": datasets.load_scene,
}
_TRIES = 200


def partition(data, seed: int) -> tuple[Tasks, Tasks]:
    """A random 60:40 partition into (train, test) with both classes of every label on both sides; not normalised yet.

    data : the name of a published set, or a file of the user (`given_data.Source`)
    """
    tasks = DATA[data]() if isinstance(data, str) else data.labelled
    return tasks.split(0.4, random_state=seed)


def folds_of(tasks: Tasks, k: int, seed: int) -> list[tuple[Tasks, Tasks]]:
    """k (train, validation) pairs, each normalised by the statistics of its own training rows.

    Shared inputs: rows are shuffled until both classes of every label are in all training and validation parts; where 200
    shuffles do not do it, in all training parts, or they are stratified. Separate inputs: dealt out class by class within each task, copies together.
    """
    rng = np.random.default_rng(10_000 + seed)
    pairs = _shared_folds(tasks, k, rng) if tasks.is_shared else _separate_folds(tasks, k, rng)
    parts = []
    for train_rows, validation_rows in pairs:
        train = tasks.take_rows(train_rows).standardize()
        parts.append((train, tasks.take_rows(validation_rows).scaled_by(train.scaling)))
    return parts


def _shared_folds(tasks, k, rng):
    n = tasks.X.shape[0]
    Y = tasks.targets.reshape(tasks.n_tasks, n).T
    fallback = None
    for _ in range(_TRIES):
        parts = np.array_split(rng.permutation(n), k)
        pairs = [(np.setdiff1d(np.arange(n), part), np.sort(part)) for part in parts]
        if all(_both(Y[train]) for train, _ in pairs):
            fallback = pairs
            if all(_both(Y[validation]) for _, validation in pairs):
                return pairs
    if fallback is None:
        number = fold_numbers(tasks, k)
        fallback = [(np.flatnonzero(number != fold), np.flatnonzero(number == fold)) for fold in range(k)]
    for name, y in zip(tasks.task_names, Y.T, strict=True):
        if not all(np.ptp(y[train]) for train, _ in fallback):
            raise SystemExit(
                f"{k} folds: label {name!r} has too few rows of one class, {min((y > 0).sum(), (y < 0).sum())} of {n} to train on; --rare "
                "leaves rare labels out"
            )
    return fallback


def _both(Y) -> bool:
    return bool(np.all((Y > 0).any(axis=0) & (Y < 0).any(axis=0)))


def _separate_folds(tasks, k, rng):
    """Class by class within each task; all copies of a row go to the same fold, or validation would repeat training."""
    fold_of = []
    for X, y in zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True):
        fold = np.empty(len(y), int)
        for c in (-1.0, 1.0):
            rows = np.flatnonzero(y == c)
            _, original = np.unique(X[rows], axis=0, return_inverse=True)
            dealt = rng.permutation(int(original.max()) + 1) % k
            fold[rows] = dealt[np.ravel(original)]
        fold_of.append(fold)
    return [
        ([np.flatnonzero(f != i) for f in fold_of], [np.flatnonzero(f == i) for f in fold_of])
        for i in range(k)
    ]


def resampled(tasks: Tasks, ratio: int, rows: int, seed: int) -> Tasks:
    """Every task with its own `rows` rows, drawn with replacement: one positive to `ratio` negatives."""
    rng = np.random.default_rng(20_000 + seed)
    X, y = [], []
    positives = max(round(rows / (1 + ratio)), 2)
    for inputs, targets in zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True):
        drawn = np.concatenate(
            [
                rng.choice(np.flatnonzero(targets > 0), positives),
                rng.choice(np.flatnonzero(targets < 0), rows - positives),
            ]
        )
        X.append(inputs[drawn])
        y.append(targets[drawn])
    return Tasks.separate(X, y, task_names=tasks.task_names)


def measures(y: list, scores: list, labels: list) -> dict[str, float]:
    """Test measures in per cent: macro-F1, micro-F1, mean AUC of the scores, mean AUC of the labels (the paper's eq. 11)."""
    f1 = [f1_score(t > 0, p > 0, zero_division=0.0) for t, p in zip(y, labels, strict=True)]
    # one flat binary problem has the counts of all labels together: its F1 is the micro-F1
    micro = f1_score(np.concatenate(y) > 0, np.concatenate(labels) > 0, zero_division=0.0)
    auc = [roc_auc_score(t > 0, s) for t, s in zip(y, scores, strict=True)]
    on_labels = [1.0 - np.mean(p[t < 0] > 0) * np.mean(p[t > 0] <= 0) for t, p in zip(y, labels, strict=True)]
    values = {
        "macro_f1": np.mean(f1),
        "micro_f1": micro,
        "auc": np.mean(auc),
        "auc_labels": np.mean(on_labels),
    }
    return {name: 100.0 * float(value) for name, value in values.items()}


def validation_measures(y: list, scores: list) -> dict[str, np.ndarray]:
    """Per-task values (m,), larger is better; NaN where a fold has one class only of a label.

    The same F1 and AUC as scikit-learn's, from counts and ranks: scikit-learn's checks would take longer than the solver.
    """
    values = {"f1": [], "auc": [], "accuracy": [], "mse": []}
    for t, s in zip(y, scores, strict=True):
        truth, found = t > 0, s > 0
        P, hits = int(truth.sum()), int((truth & found).sum())
        values["f1"].append(2.0 * hits / (P + int(found.sum())) if P else np.nan)
        values["auc"].append(_auc(truth, s, P) if 0 < P < len(t) else np.nan)
        values["accuracy"].append(np.mean(found == truth))
        values["mse"].append(-np.mean((s - t) ** 2))
    return {name: np.array(value, float) for name, value in values.items()}


def _auc(truth, scores, P) -> float:
    ranks = rankdata(scores)
    return float((ranks[truth].sum() - 0.5 * P * (P + 1)) / (P * (len(truth) - P)))
