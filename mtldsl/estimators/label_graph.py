"""Labels that depend on each other along a graph, which is learned with them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mtldsl.errors import DataError
from mtldsl.estimators.classifier import MultiTaskClassifier
from mtldsl.estimators.distinct_rows import distinct_rows
from mtldsl.estimators.has_probabilities import models_probabilities
from mtldsl.estimators.multi_task import MultiTaskEstimator, tasks_of
from mtldsl.estimators.sample_weights import class_weights
from mtldsl.estimators.stated import OWN, Stated, stated
from mtldsl.estimators.targets import Labels
from mtldsl.solution.solution import Solution
from mtldsl.tasks import Tasks

__all__ = ["LabelGraphClassifier"]


class LabelGraphClassifier(MultiTaskClassifier):
    """Clique generation (CGM): the labels of a row are predicted together, along the edges of a graph that is learned.

        min over U, V   clique_hinge(U, V) + lam / 2 ||U||^2 + lam / 2 ||V||^2 in its squared group norm over edges

    model : "CGM", "Structured SVM", "HLLM-L1", "No edges", or a statement in U, V
    edges : the edges that there may be: None for the model's own, "all", a list of pairs of labels, or a networkx graph
    fit_intercept : give the inputs a column of ones

    class_weight  : as in `MultiTaskClassifier`; of several columns a row weighs the product of the weights of its classes, as in
                    scikit-learn's `compute_sample_weight` and its trees
    sample_weight : (n,), or (n, m) with one value a row

    The others are as in `MultiTaskClassifier`. y is (n, m) of two classes a column, or a vector of two classes, one label. A row with missing
    labels (NaN) is learned from by its observed labels and the edges between them, which is not to fill its gaps: two labels that no
    row has together get no edge, and what is predicted is a labelling of all labels all the same.
    decision_function is by how much the best labelling's score falls where one label is turned; predict the best labelling;
    predict_proba the marginals of "HLLM-L1". `solution_.label_graph` is what was learned of the edges.

    Source: Tan and others, "Learning graph structure for multi-label image classification via clique generation", CVPR 2015.

    >>> import numpy as np
    >>> from mtldsl.estimators import LabelGraphClassifier
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> LabelGraphClassifier(lam=0.1).fit(X, Y).predict([[0.5], [2.5]])
    array([[0, 1],
           [1, 0]])
    """

    _defaults: ClassVar[dict[str, float]] = {"lam": 0.01}
    _elsewhere: ClassVar[dict[str, str]] = {"sign": "MultiTaskClassifier", "real": "MultiTaskRegressor"}

    def __init__(
        self,
        model="CGM",
        *,
        edges=None,
        subject_to=(),
        fit_intercept=True,
        class_weight=None,
        one_class="constant",
        warm_start=False,
        tol=1e-4,
        max_seconds=None,
        solver="auto",
        check=None,
        n_jobs=None,
        **parameters,
    ):
        self._set(locals())

    def _stated(self) -> Stated:
        return stated(
            self.model, self.subject_to, self._defaults, edges=OWN if self.edges is None else self.edges
        )

    def _weights_of(self, labels: Labels, weights: np.ndarray | None) -> np.ndarray | None:
        """Those of the samples times those of all classes that a row has: one number a row."""
        if self.class_weight is None or labels.signs.shape[1] == 1:
            return super()._weights_of(labels, weights)
        given = np.ones(labels.signs.shape) if weights is None else np.array(weights)
        _refuse_several(given)
        found = class_weights(self.class_weight, labels, given)
        assert found is not None
        share = np.where(np.isnan(labels.signs), 1.0, found / np.where(given > 0, given, 1.0))
        return np.where(given > 0, given * np.prod(share, axis=1, keepdims=True), 0.0)

    def _labels_of(self, y) -> Labels:
        labels = super()._labels_of(y)
        if labels.kind == "multiclass":
            raise DataError(
                "Only binary classification is supported. The type of the target is multiclass",
                argument="y",
                write_instead="give a table with one column a label",
            )
        return labels

    def _tasks(self, X, signs, weights, names) -> Tasks:
        if weights is not None:
            _refuse_several(weights)
        X, signs, weights = distinct_rows(X, signs, weights)
        return tasks_of(self._with_ones(X), signs, weights, None, names)

    def _intercept_in_model(self) -> bool:
        return False

    def _finish(self, solution: Solution | None) -> None:
        if solution is not None and solution.label_graph is None:
            raise DataError(
                f"{solution.loss['word']} is not of a graph of labels",
                argument="model",
                write_instead="use MultiTaskClassifier",
            )
        MultiTaskEstimator._finish(self, solution)

    def _learned_scores(self, X) -> np.ndarray:
        assert self.solution_ is not None
        return self.solution_.decision_function(self._with_ones(X))

    @available_if(models_probabilities)
    def predict_proba(self, X) -> np.ndarray:
        """The marginals: (n, m) P(second class of the column | x); (n, 2) for a vector of two classes."""
        check_is_fitted(self, "classes_")
        X = self._checked(X)
        P = np.empty((X.shape[0], len(self._constant_side)))
        P[:] = np.nan if self.one_class == "skip" else self._constant_side > 0
        if self.solution_ is not None:
            P[:, self._learned] = self.solution_.predict_proba(self._with_ones(X))
        if self._labels.kind == "multilabel":
            return P
        return np.hstack([1.0 - P, P]) if len(self.classes_) == 2 else np.ones((len(P), 1))

    def _with_ones(self, X):
        if not self.fit_intercept:
            return X
        ones = np.ones((X.shape[0], 1))
        return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _refuse_several(weights: np.ndarray) -> None:
    """DataError where a row of weights (n, m) has several, those of missing labels, 0, aside."""
    several = ((weights != weights.max(axis=1, keepdims=True)) & (weights > 0)).any(axis=1)
    if several.any():
        raise DataError(
            f"sample_weight has several values in row {int(np.argmax(several))}: the loss of a row is that of its whole labelling, not a sum "
            "over labels that have a weight each",
            argument="sample_weight",
            write_instead="give one weight a row, (n,), or use MultiTaskClassifier",
        )
