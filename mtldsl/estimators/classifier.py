"""Estimators for classification: labels of several tasks, or classes against the rest."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mtldsl.atoms.atom import REGISTRY
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError, MTLError
from mtldsl.estimators.base_estimator import (
    MultiTaskEstimator,
    check_one_class,
    constructor_of,
    tasks_of,
    warn_of_no_label,
    warn_of_one_class,
)
from mtldsl.estimators.calibration import (
    calibrators,
    cuts_of_scores,
    log_odds,
    metric_of,
    out_of_fold,
)
from mtldsl.estimators.label_tables import (
    keep_targets,
    share_right,
    unique_rows,
)
from mtldsl.estimators.model_argument import OWN, ModelSource, read_model_argument
from mtldsl.estimators.positive_class import EVEN, warn_of_positives
from mtldsl.estimators.regressor import MultiTaskRegressor
from mtldsl.estimators.sample_weights import class_weights, of_labels
from mtldsl.estimators.targets import ClassTargets, labels_of, name_of_vector, refuse_several_classes
from mtldsl.solution.solution import Solution
from mtldsl.solution.task_predictors import probabilities
from mtldsl.solution.thresholds import best_thresholds

# --------------------------------------------------------------------------------------------------------------
# What the words of a classifier's model say of it: whether it has `predict_proba`, and whether its loss is of all classes of a row.


def models_probabilities(self) -> bool:
    """Tell whether predict_proba is there: it is calibrated, or a loss of the model is a likelihood. Asked before fitting, of a statement's words."""
    if getattr(self, "calibration", None) is not None:
        return True
    facts = getattr(getattr(self, "solution_", None), "loss", None)
    if facts:
        words = {facts["word"]}
    else:
        try:
            words = self._stated().words
        except MTLError:
            return False
    if words is None or any(hasattr(REGISTRY.get(word), "probability") for word in words):
        return True
    losses = sorted(words & set(REGISTRY))
    raise AttributeError(
        f"{type(self).__name__} has no predict_proba here: {' and '.join(losses)} {'models' if len(losses) == 1 else 'model'} no "
        "probabilities; write logistic_loss in the model, or calibration='sigmoid', or call decision_function"
    )


class MultiTaskClassifier(ClassifierMixin, MultiTaskEstimator):
    """Classification of all labels at once, each fit with a certificate.

        min over W (d, m), b (m,)   the model, on labels -1 and +1

    The tasks are the columns of y where it is a table (n, m) of two classes a column; one task for a vector of two classes; one task a class
    for a vector of more, and of two for losses of all classes of a row (`softmax_loss`). Missing labels (None, NaN) are not in their task.

    model, loss, penalty, subject_to, fit_intercept, warm_start, tol, max_seconds, solver, check, n_jobs, parameters : as in `MultiTaskRegressor`
    class_weight : None; "balanced", n / (2 n_class) in every task; {class: weight}; of a table also a list of such, one a column
    one_class    : what becomes of a task whose training labels are all of one class: "constant" predicts that class, with weights of
                   zero and a score of -1 or +1; "skip" does, but its scores and probabilities are NaN, so that scorers can leave it
                   out; both with a OneClassWarning; "error" raises DataError. A task without a label has scores of NaN with both, and its
                   first class is predicted
    tune_thresholds : None: a label is predicted where its score is at least 0. A metric, such as FScore(), or True for that one: where it
                   is at least the threshold that is best under it for scores of rows that the weights were not fitted on (inner folds).
                   decision_function is the score less the threshold; probabilities stay what they are
    calibration  : None: probabilities are those of the loss, where it is a likelihood. "sigmoid" (a logistic regression on one score,
                   Platt 1999) or "isotonic": learned on the same scores, for any loss. The score is then the log-odds of the probability,
                   and a label is predicted where it is more probable than not, or by thresholds on the log-odds
    inner_folds  : the number of folds for both, which count {class: weight}; "balanced" is for the fit alone

    Attributes after `fit`: classes_ (k,), of a table of several columns their positions, and label_classes_, the two classes of each; coef_ (m, d),
    (1, d) for two classes; intercept_ (m,); thresholds_ (m,) where they were tuned; one_class_, the columns of tasks of one class or none; n_iter_, solution_, certificate_ (None where no task was left), n_features_in_, feature_names_in_, target_names_.

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> tags = [["no", "yes"], ["no", "no"], ["yes", "yes"], ["yes", "no"]]
    >>> fitted = MultiTaskClassifier(lam=0.1).fit(X, tags)
    >>> fitted.predict([[2.5, 1.0], [0.5, 0.0]])
    array([['yes', 'yes'],
           ['no', 'no']], dtype='<U3')
    >>> MultiTaskClassifier("structured_hinge(W, tasks, metric=FScore()) + lam * l21_norm(W)", lam=0.1).fit(X, tags).score(X, tags)
    1.0
    """

    _elsewhere: ClassVar[dict[str, str]] = {
        "count": "MultiTaskRegressor",
        "positive": "MultiTaskRegressor",
        "time": "MultiTaskRegressor",
        "indicators": "LabelGraphClassifier",
    }

    __init__ = constructor_of(
        MultiTaskRegressor, loss="logistic_loss", class_weight=None, one_class="constant", tune_thresholds=None, calibration=None, inner_folds=5
    )  # fmt: skip

    def fit(self, X, y, sample_weight=None):
        """X (n, d) dense or CSR, numpy, pandas or polars; y (n,) or (n, m)."""
        tasks = self._prepare(X, y, sample_weight)
        self._finish(self._solve(tasks))
        self._tune(X, y, sample_weight)
        return self

    def _tune(self, X, y, sample_weight) -> None:
        """Thresholds and calibrators, where they were asked for, on scores of rows that the weights were not fitted on."""
        metric, kind = metric_of(getattr(self, "tune_thresholds", None)), getattr(self, "calibration", None)
        self.thresholds_ = self._calibrators = None
        if metric is None and kind is None:
            return
        labels = self._labels_of(y)
        if metric is not None and labels.kind == "multiclass":
            raise ModelError(
                "Only binary classification is supported. The type of the target is multiclass: one of several classes is predicted by "
                "the highest score, not by thresholds",
                term=f"{type(self).__name__}(tune_thresholds=...)",
                write_instead="leave it out, or give a table with one column a label",
            )
        if metric is not None and not isinstance(metric, EVEN):
            warn_of_positives(labels, type(self).__name__, f"tune_thresholds={metric}")
        factors = None
        if self.class_weight is not None:
            given = of_labels(sample_weight, labels.signs.shape)
            given = np.ones(labels.signs.shape) if given is None else given
            factors = class_weights(self.class_weight, labels, given) / np.where(given > 0, given, 1.0)
        plain = self._untuned().set_params(class_weight=None, one_class="constant")
        held = out_of_fold(
            plain,
            X,
            labels.signs,
            sample_weight,
            self.inner_folds,
            checked=self._checked(X),
            factors=factors,
        )
        # "balanced" evens the classes for the fit alone; what the user says that a label counts for is said of these too
        stated = None if isinstance(self.class_weight, str) else factors
        if kind is not None:
            self._calibrators = calibrators(held, kind, stated)
            held = held._replace(z=log_odds(self._calibrators, held.z))
        if metric is not None:
            self.thresholds_ = best_thresholds(held.tasks(stated), metric, "tune_thresholds", count())
        # scores and report of the solution are of the labels predicted here, unless the highest score of several classes is predicted
        cuts = (
            self.thresholds_
            if self._calibrators is None
            else cuts_of_scores(self._calibrators, self.thresholds_)
        )
        if cuts is not None and self.solution_ is not None and self._labels.kind != "multiclass":
            self.solution_ = replace(self.solution_, thresholds=cuts[self._learned])

    def _untuned(self) -> MultiTaskClassifier:
        return clone(self).set_params(tune_thresholds=None, calibration=None, check=None)

    def _prepare(self, X, y, sample_weight=None, **others) -> Tasks | None:
        check_one_class(self)
        X = self._inputs(X, y, sample_weight)
        labels = self._labels_of(y)
        weights = self._weights_of(labels, of_labels(sample_weight, labels.signs.shape))
        signs = labels.signs if weights is None else np.where(weights > 0, labels.signs, np.nan)
        self._constant_side = self._constant(signs, labels)
        learned = self._learned = np.flatnonzero(self._constant_side == 0)
        self._labels = labels.without_rows()
        self.classes_, self.one_class_ = labels.known, np.flatnonzero(self._constant_side)
        self.__dict__.pop("label_classes_", None)  # of an earlier fit
        if labels.kind == "multilabel":
            self.label_classes_ = labels.classes
        keep_targets(self, labels.names if labels.kind == "multilabel" else None)
        if not learned.size:
            return None
        names = name_of_vector(y) if labels.kind == "binary" else labels.names
        names = None if names is None else [names[i] for i in learned]
        return self._tasks(X, signs[:, learned], None if weights is None else weights[:, learned], names)

    def _finish(self, solution: Solution | None) -> None:
        """coef_ (m, d) and intercept_ (m,) of all tasks, those of one class among them."""
        if solution is not None and solution.loss.get("labels") == "indicators":
            raise DataError(
                f"{solution.loss['word']} is of a graph of labels",
                argument="model",
                write_instead="use LabelGraphClassifier",
            )
        super()._finish(solution)
        others = (
            np.full(len(self._constant_side), np.nan) if self.one_class == "skip" else self._constant_side
        )
        self._take_weights(self.n_features_in_, others, solution)

    def _labels_of(self, y) -> ClassTargets:
        words = self._stated().words or ()  # a function does not say before it is on data what it compares
        kinds = {getattr(REGISTRY.get(word), "labels", "") for word in words}
        return labels_of(y, task_a_class="classes" in kinds)

    def _weights_of(self, labels: ClassTargets, weights: np.ndarray | None) -> np.ndarray | None:
        return class_weights(self.class_weight, labels, weights)

    def _tasks(self, X, signs, weights, names) -> Tasks:
        """The data of the tasks that are learned."""
        return tasks_of(X, signs, weights, self._names(), names)

    def _learned_scores(self, X) -> np.ndarray:
        """(n, tasks that were learned)."""
        if not self.one_class_.size:
            return X @ self._weights + self._shift
        return X @ self._weights[:, self._learned] + self._shift[self._learned]

    def _constant(self, signs, labels: ClassTargets) -> np.ndarray:
        """(m,) -1 or +1 for tasks that have that class alone, NaN for those without a label, else 0."""
        positive, negative = (signs > 0).any(axis=0), (signs < 0).any(axis=0)
        sides = np.where(positive | negative, positive * 1.0 - negative, np.nan)
        if np.isnan(sides).all():
            raise DataError("no task has a label of weight above zero", argument="y")
        if labels.kind == "binary" and len(labels.classes) == 1:
            sides[:] = 1.0
        for which, warn in ((np.abs(sides) == 1.0, warn_of_one_class), (np.isnan(sides), warn_of_no_label)):
            names = [labels.names[i] if labels.names else int(i) for i in np.flatnonzero(which)]
            if names:
                warn(self, names, len(sides))
        return sides

    def decision_function(self, X) -> np.ndarray:
        """(n, m); (n,) for one label of two classes: above 0 where the second class is predicted. The score x^T w + b, with `calibration` the log-odds of
        the probability; less the threshold where thresholds were tuned."""
        z = self._cut_scores(X)  # or that nothing is fitted
        return self._labels.scores_of_rows(z)

    def _cut_scores(self, X) -> np.ndarray:
        z, cuts = self._calibrated_scores(X), getattr(self, "thresholds_", None)
        return z if cuts is None else z - cuts

    def _calibrated_scores(self, X) -> np.ndarray:
        z, models = self._task_scores(X), getattr(self, "_calibrators", None)
        return z if models is None else log_odds(models, z)

    def _task_scores(self, X) -> np.ndarray:
        check_is_fitted(self, "classes_")
        X = self._checked(X)
        if not self.one_class_.size:
            return self._learned_scores(X)
        z = np.empty((X.shape[0], len(self._constant_side)))
        z[:] = np.nan if self.one_class == "skip" else self._constant_side
        if self._learned.size:
            z[:, self._learned] = self._learned_scores(X)
        return z

    def predict(self, X) -> np.ndarray:
        """(n,) or (n, m) of the classes that y had."""
        z = self._cut_scores(X)
        if self.one_class_.size:
            sides = np.nan_to_num(self._constant_side, nan=-np.inf)
            if self._labels.kind == "multiclass":
                sides[sides < 0] = -np.inf  # below classes that were learned
            z = np.where(sides != 0, sides, z)
        probable = getattr(self, "_calibrators", None) is not None and self.thresholds_ is None
        return self._labels.decoded(z > 0.0 if probable else z >= 0.0, z)

    @available_if(models_probabilities)
    def predict_proba(self, X) -> np.ndarray:
        """P(class | x): (n, 2) for two classes, (n, k) for more (each against the rest, made to sum to one); for a table of several columns
        (n, m), the probability of the second class of every column."""
        z = self._calibrated_scores(X)
        if getattr(self, "_calibrators", None) is not None:
            P = expit(z)
        else:
            P = (z >= 0) * 1.0 if self.solution_ is None else probabilities(self.solution_.loss, z)
        P = np.where(self._constant_side != 0, np.where(np.isnan(z), np.nan, z >= 0), P)
        return self._labels.probabilities_of_rows(P)

    @available_if(models_probabilities)
    def predict_log_proba(self, X) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X, y, sample_weight=None) -> float:
        """The share of rows whose labels are all right; missing labels are not counted, nor rows that have none."""
        return share_right(self, X, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = getattr(self, "tune_thresholds", None) in (None, False)
        return tags


#: the arguments of labels that are cut from scores of their own
TUNING = ("tune_thresholds", "calibration", "inner_folds")


# --------------------------------------------------------------------------------------------------------------
# Classification with kernels: between the rows, and between the tasks.


class KernelMultiTaskClassifier(MultiTaskClassifier):
    """Multi-task kernel learning: labels by kernels of the rows, with how alike the tasks are learned beside (MT-MKL).

        min over w, theta   C sum of hinge losses + half the squared mkl_norm of w, ||theta||_p <= 1, on the features of the kernels

    model   : "MT-MKL", "Vanilla MTL", "Union", "Individual", ... or a statement; see `MultiTaskClassifier`
    kernels : a name of `sklearn.metrics.pairwise` ("rbf", "linear", "poly", ...), "spectrum" or "weighted_degree" of sequences that
              `mtldsl.datasets.encode_sequences` gave, a function k(A, B), a list of them or a dict {name:
              kernel or (kernel, parameters)}, as in `Tasks.with_kernels`; or "precomputed": X is the Gram matrix (n, n) in `fit`, and
              (rows, n) in `predict`

    The others are as in `MultiTaskClassifier`; there is no coef_. solution_.kernel_weights tells what was learned of the tasks.

    Source: Widmer, Kloft, Goernitz and Raetsch, "Multi-task multiple kernel learning", Problem 1.

    >>> import numpy as np
    >>> from mtldsl.estimators import KernelMultiTaskClassifier
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> xor = KernelMultiTaskClassifier(kernels=("rbf"), C=100.0).fit(X, [0, 0, 1, 1])
    >>> xor.predict(X)
    array([0, 0, 1, 1])
    """

    _defaults: ClassVar[dict[str, float]] = {"C": 1.0}

    __init__ = constructor_of(MultiTaskClassifier, ("loss", "penalty"), model="MT-MKL", kernels="rbf")

    def _tasks(self, X, signs, weights, names) -> Tasks:
        if self.kernels != "precomputed":
            X, signs, weights = unique_rows(X, signs, weights)
            return tasks_of(X, signs, weights, self._names(), names).with_kernels(self.kernels)
        if X.shape[0] != X.shape[1]:
            raise DataError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix.",
                argument="X",
            )
        there = ~np.isnan(signs) if weights is None else ~np.isnan(signs) & (weights > 0)
        kept = self._rows = np.flatnonzero(there.any(axis=1))
        gram = X[np.ix_(kept, kept)]
        tasks = tasks_of(gram, signs[kept], None if weights is None else weights[kept], None, names)
        return tasks.with_kernels({"precomputed": gram})

    def _finish(self, solution: Solution | None) -> None:
        MultiTaskEstimator._finish(
            self, solution
        )  # features of kernels are not columns of X: there is no coef_

    def _inputs_of_solution(self, X):
        return X[:, self._rows] if self.kernels == "precomputed" else X

    def _learned_scores(self, X) -> np.ndarray:
        assert self.solution_ is not None
        return self.solution_.decision_function(self._inputs_of_solution(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernels, str) and self.kernels == "precomputed"
        return tags


# --------------------------------------------------------------------------------------------------------------
# Labels that depend on each other along a graph, which is learned with them.


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

    __init__ = constructor_of(
        MultiTaskClassifier, ("loss", "penalty", *TUNING), model="CGM", edges=None, tol=1e-4
    )

    def _stated(self) -> ModelSource:
        return read_model_argument(
            self.model, self.subject_to, self._defaults, edges=OWN if self.edges is None else self.edges
        )

    def _weights_of(self, labels: ClassTargets, weights: np.ndarray | None) -> np.ndarray | None:
        """Those of the samples times those of all classes that a row has: one number a row."""
        if self.class_weight is None or labels.signs.shape[1] == 1:
            return super()._weights_of(labels, weights)
        given = np.ones(labels.signs.shape) if weights is None else np.array(weights)
        _refuse_several(given)
        found = class_weights(self.class_weight, labels, given)
        assert found is not None
        share = np.where(np.isnan(labels.signs), 1.0, found / np.where(given > 0, given, 1.0))
        return np.where(given > 0, given * np.prod(share, axis=1, keepdims=True), 0.0)

    def _labels_of(self, y) -> ClassTargets:
        labels = super()._labels_of(y)
        refuse_several_classes(labels, "give a table with one column a label", argument="y")
        return labels

    def _tasks(self, X, signs, weights, names) -> Tasks:
        if weights is not None:
            _refuse_several(weights)
        X, signs, weights = unique_rows(X, signs, weights)
        features = self._names() or [f"x{j}" for j in range(X.shape[1])]
        return tasks_of(
            self._inputs_of_solution(X),
            signs,
            weights,
            features + ["(intercept)"] * bool(self.fit_intercept),
            names,
        )

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

    _learned_scores = KernelMultiTaskClassifier._learned_scores

    @available_if(models_probabilities)
    def predict_proba(self, X) -> np.ndarray:
        """The marginals: (n, m) P(second class of the column | x); (n, 2) for one label."""
        check_is_fitted(self, "classes_")
        X = self._checked(X)
        P = np.empty((X.shape[0], len(self._constant_side)))
        P[:] = np.nan if self.one_class == "skip" else self._constant_side > 0
        if self.solution_ is not None:
            P[:, self._learned] = self.solution_.predict_proba(self._inputs_of_solution(X))
        return self._labels.probabilities_of_rows(P)

    def _inputs_of_solution(self, X):
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
