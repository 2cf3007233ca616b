"""The multi-label baselines on top of scikit-learn's logistic regression: BR, ECC, LP and RAkEL, each with scores and labels.

BR   : one logistic regression a label.
ECC  : ten classifier chains in random orders, probabilities averaged.
LP   : one multinomial logistic regression on the label combinations seen in training.
RAkEL: 2 m label powersets on random subsets of 3 labels; labels by the votes, scores by the mean of the marginal probabilities.

LP and RAkEL are written here: scikit-multilearn-ng's RAkEL gives labels only, and the AUC needs scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain

from mtldsl import Tasks

__all__ = ["MULTILABEL", "fit_and_score"]

CHAINS, SUBSET = 10, 3
#: X, Y, X_new, C, seed -> (scores, labels), each (n_new, m), labels 0/1
Fitted = Callable[..., tuple[np.ndarray, np.ndarray]]


def fit_and_score(name: str, train: Tasks, new: Tasks, C: float, seed: int) -> tuple[list, list]:
    """(scores, labels) of every task for the rows of `new`: scores centred so that 0 is the threshold of a probability 1/2."""
    Y = (train.targets.reshape(train.n_tasks, -1).T > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        scores, labels = MULTILABEL[name](train.X, Y, new.X, C, seed)
    return list(scores.T - 0.5), list(np.where(labels > 0, 1.0, -1.0).T)


def _logistic(C):
    return LogisticRegression(C=C, max_iter=300)


def binary_relevance(X, Y, X_new, C, seed):
    scores = np.column_stack([_logistic(C).fit(X, y).predict_proba(X_new)[:, 1] for y in Y.T])
    return scores, scores > 0.5


def chains(X, Y, X_new, C, seed):
    scores = np.mean(
        [
            ClassifierChain(_logistic(C), order="random", random_state=1000 * seed + i)
            .fit(X, Y)
            .predict_proba(X_new)
            for i in range(CHAINS)
        ],
        axis=0,
    )
    return scores, scores > 0.5


def powerset(X, Y, X_new, C, seed=0):
    combinations, index = np.unique(Y, axis=0, return_inverse=True)
    index = np.ravel(index)
    if len(combinations) == 1:
        both = np.repeat(combinations, len(X_new), axis=0)
        return both.astype(float), both
    model = _logistic(C).fit(X, index)
    probability = model.predict_proba(X_new)
    return probability @ combinations[model.classes_], combinations[model.predict(X_new)]


def rakel(X, Y, X_new, C, seed):
    rng, m = np.random.default_rng(30_000 + seed), Y.shape[1]
    scores, votes, count = np.zeros((len(X_new), m)), np.zeros((len(X_new), m)), np.zeros(m)
    subsets = [rng.choice(m, min(SUBSET, m), replace=False) for _ in range(2 * m)]
    left_out = np.setdiff1d(np.arange(m), np.concatenate(subsets))
    if left_out.size:  # every label needs a vote
        subsets.append(left_out)
    for subset in subsets:
        marginal, labels = powerset(X, Y[:, subset], X_new, C)
        scores[:, subset] += marginal
        votes[:, subset] += labels
        count[subset] += 1
    return scores / count, votes / count > 0.5


MULTILABEL: dict[str, Fitted] = {"BR": binary_relevance, "LP": powerset, "ECC": chains, "RAkEL": rakel}
