"""Data of the CGM experiments: draws of the synthetic star, folds of published sets, and the measures on labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.metrics import f1_score, hamming_loss, precision_score, recall_score

from benchmarks.papers.given_data import row_folds
from mtldsl import Tasks, datasets

__all__ = [
    "FOLDS",
    "MEASURES",
    "MOST_LABELS",
    "REAL",
    "Part",
    "fold_part",
    "inner_part",
    "labels_of",
    "measures",
    "star_part",
]

#: data -> (loader, standardised?): Scene's features lie in [0, 1] and are taken as they are
REAL = {
    "scene": (datasets.load_scene, False),
    "emotions": (datasets.load_emotions, True),
    "flags": (datasets.load_flags, True),
}
FOLDS = 5
MEASURES = ("hamming", "macro_f1", "micro_f1", "micro_precision", "micro_recall")
#: Labels above which a graph over all of them is not searched here: exact inference is for a few.
MOST_LABELS = 14
#: The share of the training rows on which a parameter is chosen.
INNER = 0.2
#: Rows of --quick.
QUICK_ROWS = 300
_TRIES = 500


@dataclass(frozen=True)
class Part:
    """Tasks to train and to test on; true_edges where they are known, by name."""

    train: Tasks
    test: Tasks
    true_edges: frozenset[frozenset[str]] | None = None


def star_part(seed: int, label_noise: float = 0.0, quick: bool = False) -> Part:
    """A draw of section 5.2; quick: few rows."""
    sizes = {"n_train": 300, "n_test": 200} if quick else {}
    made = datasets.make_label_graph(**sizes, label_noise=label_noise, random_state=seed)
    # scores are linear without an intercept, in the data as in the model
    return Part(made.train, made.test, frozenset(frozenset(edge) for edge in made.graph.edges))


def fold_part(name: str, fold: int, quick: bool = False) -> Part:
    """One of five folds of a shuffle that leaves both classes of every label on all sides; a constant column is appended."""
    load, standardised = REAL[name]
    tasks = load()
    if quick:
        tasks = _few(tasks)
    held_out = row_folds(tasks, FOLDS, _TRIES, np.random.default_rng(0))[fold]
    train_rows = np.setdiff1d(np.arange(len(tasks.X)), held_out)
    return Part(*_prepared(tasks.take_rows(train_rows), tasks.take_rows(held_out), standardised))


@lru_cache(maxsize=1)  # the same rows for every method, and a graph selected on them once
def inner_part(part: Part, seed: int) -> Part:
    """The training rows split once more, to choose a parameter on; statistics of standardised features stay those of all."""
    inner, validation = part.train.split(INNER, seed)
    return Part(inner, validation, part.true_edges)


def _few(tasks: Tasks) -> Tasks:
    """So few rows that a fit takes no time, with rows of either class of every label for all folds."""
    rng = np.random.default_rng(0)
    Y = labels_of(tasks)
    needed = [rng.permutation(np.flatnonzero(y == c))[: 2 * FOLDS] for y in Y.T for c in (-1.0, 1.0)]
    kept = np.unique(np.concatenate(needed))
    others = np.setdiff1d(rng.permutation(len(Y))[:QUICK_ROWS], kept)
    return tasks.take_rows(np.sort(np.concatenate([kept, others[: max(0, QUICK_ROWS - len(kept))]])))


def _prepared(train: Tasks, test: Tasks, standardised: bool):
    if standardised:
        train = train.standardize()
        test = test.scaled_by(train.scaling)
    for tasks in (train, test):
        # the model has no intercept
        X = np.hstack([np.asarray(tasks.X), np.ones((len(tasks.X), 1))])
        yield Tasks.shared(
            X, labels_of(tasks), task_names=tasks.task_names, feature_names=[*tasks.feature_names, "constant"]
        )


def labels_of(tasks: Tasks) -> np.ndarray:
    """(n, K) of -1 and +1."""
    return tasks.targets.reshape(tasks.n_tasks, -1).T


def measures(truth, found) -> dict[str, float]:
    """Hamming loss, macro- and micro-F1, and precision and recall over all labels together (micro). By scikit-learn."""
    truth, found = np.asarray(truth) > 0, np.asarray(found) > 0
    return {
        "hamming": float(hamming_loss(truth, found)),
        "macro_f1": float(f1_score(truth, found, average="macro", zero_division=0.0)),
        "micro_f1": float(f1_score(truth, found, average="micro", zero_division=0.0)),
        "micro_precision": float(precision_score(truth, found, average="micro", zero_division=0.0)),
        "micro_recall": float(recall_score(truth, found, average="micro", zero_division=0.0)),
    }
