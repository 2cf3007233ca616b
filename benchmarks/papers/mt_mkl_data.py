"""Data of the MT-MKL experiment, one draw or split a seed, and what is measured on it: AUC and the ROC curve, averaged over tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl import Tasks, datasets

__all__ = [
    "FALSE_POSITIVES",
    "STUDIES",
    "VALIDATION",
    "Part",
    "auc",
    "given_part",
    "off_diagonal",
    "roc",
    "tree_part",
]

#: Rows of either class and task to choose C on.
VALIDATION = 100
#: Where the ROC curves are read off: averaged over tasks at equal false positive rates.
FALSE_POSITIVES = np.linspace(0.0, 1.0, 51)

#: study -> the generator's options; "printed" is the paper's text, "corrected" what can have been meant
STUDIES = {"corrected": {}, "printed": {"depth": 4, "variance": 20.0**2}}


@dataclass(frozen=True)
class Part:
    """Tasks to train, to choose C and to test on, and the trees of tasks that may be used, by name."""

    train: Tasks
    validation: Tasks
    test: Tasks
    hierarchies: dict[str, dict]
    similarity: np.ndarray | None  # the true one, where it is known
    bayes_auc: float | None
    intercept: bool


def tree_part(study: str, seed: int, quick: bool = False) -> Part:
    """A draw of section 4's data; quick: 8 tasks and few rows to test on."""
    small = {"depth": 3, "n_test": 100} if quick else {}
    tree = datasets.make_task_tree(**STUDIES[study] | small, random_state=seed)
    validation = tree.sample(VALIDATION, random_state=np.random.default_rng([seed, 1]))
    hierarchies = {"true": tree.parents, "inferred": _inferred(tree.train)}
    # the classes lie symmetric about 0 and the paper's framework has no intercept
    return Part(
        tree.train, validation, tree.test, hierarchies, tree.similarity, float(tree.bayes_auc.mean()), False
    )


def given_part(tasks: Tasks, seed: int, share: float) -> Part:
    """A share of every task's rows, class by class, to train on, as many to choose C on, the others to test on; inputs
    standardised by the training rows of all tasks."""
    train, others = tasks.split(1.0 - share, seed)
    validation, test = others.split(1.0 - share / (1.0 - share), seed)
    train = train.standardize()
    validation, test = (part.scaled_by(train.scaling) for part in (validation, test))
    # many more rows of one class than of the other: an intercept a task, not penalised
    return Part(train, validation, test, {"inferred": _inferred(train)}, None, None, True)


def _inferred(train: Tasks) -> dict:
    """A tree from the training rows alone."""
    return datasets.hierarchy(datasets.estimate_similarity(train), train.task_names)


def auc(W: np.ndarray, tasks: Tasks) -> float:
    """Mean over tasks; an intercept changes no AUC."""
    from sklearn.metrics import roc_auc_score

    return float(np.mean([roc_auc_score(y, z) for y, z in _scored(W, tasks)]))


def roc(W: np.ndarray, tasks: Tasks) -> np.ndarray:
    """True positive rates at FALSE_POSITIVES, mean over tasks."""
    from sklearn.metrics import roc_curve

    curves = []
    for y, z in _scored(W, tasks):
        false, true, _ = roc_curve(y, z)
        curves.append(np.interp(FALSE_POSITIVES, false, true))
    return np.mean(curves, axis=0)


def _scored(W, tasks):
    return zip(tasks.per_task(tasks.targets), tasks.per_task(tasks.forward(W)), strict=True)


def off_diagonal(A: np.ndarray) -> np.ndarray:
    """The entries above the diagonal, one a pair of tasks."""
    return A[np.triu_indices(len(A), 1)]
