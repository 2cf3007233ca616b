"""Scorers for scikit-learn's tools: measures by name on y with gaps, tasks without a number left out of the mean and told."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.multiclass import type_of_target

from mtldsl.data.labels import OneClassWarning
from mtldsl.errors import DataError, ModelError, MTLError
from mtldsl.estimators.estimator_inputs import number_tasks, refuse_unpaired
from mtldsl.estimators.label_tables import (
    complete_classes,
    hold_targets,
    learned_attribute,
    place_scores,
    signs_of,
)
from mtldsl.estimators.positive_class import OF_POSITIVES, warn_of_positives
from mtldsl.estimators.sample_weights import of_labels
from mtldsl.estimators.targets import ClassTargets, columns_of, missing_mask
from mtldsl.solution.measures import Measure, Needs, measure, named_measure
from mtldsl.solution.score import Score, evaluate
from mtldsl.utils.validation import quoted

#: scikit-learn's scorers that do not take a vector of several classes
_OF_TWO_CLASSES = frozenset(("average_precision", "f1", "precision", "recall", "roc_auc"))


def scorer(name: str) -> Any:  # of our measures a MeasureScorer
    """scoring=scorer("average_precision") for `cross_val_score`, `GridSearchCV` and the like.

    name : a measure's, as in `solution.score(tasks, metric=name)`: "r2", "nmse", "accuracy", "f1_micro", "ranking_loss", ...; or what `scoring=`
           takes besides, scikit-learn's name of it ("neg_log_loss") or of one that scikit-learn has alone ("neg_max_error")

    It asks any estimator for what the measure needs (`predict`, `decision_function` or `predict_proba`), for vectors y, tables (n, m) of
    two classes a column, and vectors of several classes, each against the rest. Missing labels are left out; so are tasks for which
    the measure is not defined, with a OneClassWarning that says how many. A class that training did not have is wrong wherever it is.
    `set_score_request(sample_weight=True, groups=True)` asks metadata routing for them. Losses and errors are negated, so that higher is better.
    ModelError for a name that is not known.

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskClassifier, scorer
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> Y = np.array([[0, 1], [0, 0], [1, np.nan], [1, 0]])
    >>> fitted = MultiTaskClassifier(lam=0.1).fit(X, Y)
    >>> scorer("roc_auc")(fitted, X, Y), scorer("log_loss")
    (1.0, scorer('log_loss'))
    """
    if named_measure(name) is None and name in get_scorer_names():
        return TheirScorer(name, f"scorer({name!r})")
    return MeasureScorer(name)


class RoutedScorer:
    """Base of both scorers: their name, and what they ask of scikit-learn's metadata routing."""

    #: what routing may hand on
    takes: ClassVar[tuple[str, ...]]
    name: str
    _requested: Mapping[str, bool | str | None] = {}

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"

    def set_score_request(self, **requested):
        """Tell whether metadata routing is to hand on each of what it takes: True, False, None, or the name they go by. A new scorer."""
        strange = [name for name in requested if name not in self.takes]
        if strange:
            raise ModelError(
                f"set_score_request({strange[0]}=...)",
                term=repr(self),
                write_instead=f"write {' or '.join(self.takes)}",
            )
        asking = copy(self)
        asking._requested = {**self._requested, **requested}
        return asking

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what is asked of scikit-learn's metadata routing."""
        request = MetadataRequest(owner=self)
        for name in self.takes:
            request.score.add_request(param=name, alias=self._requested.get(name))
        return request


class MeasureScorer(RoutedScorer):
    """Callable that `scorer` makes: called with (estimator, X, y); `score` tells more."""

    takes: ClassVar[tuple[str, ...]] = ("sample_weight", "groups")
    _has_warned = False  # of the positive class: once, not in every fold

    def __init__(self, name: str):
        self._measure = named_measure(name) or measure(name, "scorer(name", get_scorer_names())
        self.name = self._measure.name

    def __call__(self, estimator, X, y, sample_weight=None, groups=None) -> float:
        found = self.score(estimator, X, y, sample_weight, groups)
        if found.left_out:
            warnings.warn(f"{self!r}: {found.note}", OneClassWarning, stacklevel=2)
        return self._measure.direction * float(found)

    def score(self, estimator, X, y, sample_weight=None, groups=None) -> Score:
        """The score with its sign as it is: a float with `by_task`, `left_out` and `note`. groups: of an estimator whose tasks they are."""
        refuse_unpaired(X, y=y, sample_weight=sample_weight)
        hold_targets(estimator, y)
        asked = {} if groups is None else {"groups": groups}
        needs, classes = self._measure.needs, classes_of(estimator)
        if needs == "values":
            truth, names = signs_of(y, None)
            predicted = np.reshape(np.asarray(estimator.predict(X, **asked), dtype=float), truth.shape)
        else:
            # scikit-learn's one against the rest numbers its labels
            if classes is not None and getattr(estimator, "multilabel_", False):
                classes = [np.array([0, 1])] * len(classes)
            everything = classes if classes is None else complete_classes(classes, y)
            truth, names = signs_of(y, everything, needs)
            predicted = self._predicted(estimator, X, needs, classes, everything, truth.shape[1], asked)
            if (
                self.name in OF_POSITIVES
                and not self._has_warned
                and everything is not None
                and not learned_attribute(estimator, "tune_thresholds")
            ):
                columns = isinstance(everything, list)
                kind = "multilabel" if columns else "binary" if truth.shape[1] == 1 else "multiclass"
                told = ClassTargets(truth, everything, kind, tuple(names) if columns and names else None)
                self._has_warned = warn_of_positives(told, type(estimator).__name__, repr(self))
        weights = of_labels(sample_weight, truth.shape)
        if hasattr(estimator, "task_of"):  # one long table: its rows are of tasks
            return self._by_rows(estimator.task_of(X, **asked), truth[:, 0], predicted[:, 0], weights)
        m = truth.shape[1]
        return evaluate(
            self._measure, list(truth.T), list(predicted.T), list(names) if names else list(map(str, range(m))), table=True,
            weights=None if weights is None else list(weights.T), typed=repr(self),
        )  # fmt: skip

    def _by_rows(self, ids, truth, predicted, weights) -> Score:
        """The score of one long table, whose rows are of the task that their id says."""
        names, own = number_tasks(ids)
        rows = [np.flatnonzero(own == k) for k in range(len(names))]
        return evaluate(
            self._measure, [truth[r] for r in rows], [predicted[r] for r in rows], list(map(str, names)), table=False,
            weights=None if weights is None else [weights[r, 0] for r in rows], typed=repr(self),
        )  # fmt: skip

    def _predicted(self, estimator, X, needs, classes, everything, m, asked) -> np.ndarray:
        """(n, m) labels -1 and +1, scores, or probabilities of +1; of `everything`, the classes learned and those that y has besides."""
        if needs == "labels":
            return signs_of(estimator.predict(X, **asked), everything, needs)[0]
        by_score = needs == "scores" and hasattr(estimator, "decision_function")
        if not by_score and not hasattr(estimator, "predict_proba"):
            raise DataError(
                f"{type(estimator).__name__} has no predict_proba{' and no decision_function' * (needs == 'scores')}",
                term=repr(self),
                write_instead="write a measure of labels, such as scorer('accuracy')",
            )
        found = (estimator.decision_function if by_score else estimator.predict_proba)(X, **asked)
        if isinstance(found, list):  # one (n, 2) a label
            columns = [
                np.asarray(one)[:, 1] if np.shape(one)[1] == 2 else np.full(len(one), np.nan) for one in found
            ]
            table = np.stack(columns, axis=1)
        else:
            table = np.asarray(found, dtype=float)
            one = m == 1 if classes is None or isinstance(everything, list) else len(classes) <= 2
            if table.ndim == 2 and table.shape[1] == 2 and one:
                table = table[:, 1:]
            table = table.reshape(len(table), -1)
        if classes is None:
            return table
        return place_scores(table, classes, everything, np.negative if by_score else lambda P: 1.0 - P)


class TheirScorer(RoutedScorer):
    """scikit-learn's scorer of this name; ModelError, which quotes what was `typed`, where it does not take the labels, as most take no table and no
    gap."""

    takes: ClassVar[tuple[str, ...]] = ("sample_weight",)

    def __init__(self, name: str, typed: str):
        self.name, self.typed = name, typed

    def __call__(self, estimator, X, y, **beside) -> float:
        values = np.asarray(y)
        # an array of objects has no classes for these scorers: what stands in it has
        y = np.array(values.tolist()) if values.dtype.kind == "O" else values
        try:
            with warnings.catch_warnings():  # of columns of labels, which are not classes of one label
                warnings.filterwarnings("error", r"The y_\w+ values do not sum to one", UserWarning)
                return get_scorer(self.name)(estimator, X, y, **beside)
        except MTLError:
            raise
        except (TypeError, ValueError, UserWarning) as error:
            ours = "'f1' or 'roc_auc'" if is_classifier(estimator) else "'mse' or 'mae'"
            mean = f"{self.name}_macro"
            takes_table = "multilabel-indicator" in str(error) and mean in get_scorer_names()
            ours = f"{mean!r}, {ours}" if takes_table else ours
            raise ModelError(
                f"scikit-learn's scorer does not take these labels: {str(error).rstrip('.')}",
                term=self.typed,
                write_instead=f"write a measure of tables with gaps, such as {ours}",
            ) from error


@dataclass(frozen=True)
class TheirMeasure(Measure):
    """Measure of one task that scikit-learn has alone, by its own function."""

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        try:
            return super().of_task(y, predicted, weights)
        except (TypeError, ValueError) as error:  # such as a logarithm of numbers below zero
            raise DataError(str(error).rstrip("."), term=self.name) from error


#: how scikit-learn averages over labels -> how a measure does; "samples" is of whole rows
_AVERAGES: dict[Any, Literal["mean", "support", "pooled"]] = {
    None: "mean", "binary": "mean", "macro": "mean", "weighted": "support", "micro": "pooled",
}  # fmt: skip


def measure_of(scoring, classes: bool) -> Measure | None:
    """The measure that a scorer, or its name, stands for, ours or one of every task by scikit-learn's function; None where there is none.

    classes : whether it is asked of a classifier

    >>> measure_of("neg_max_error", False).name, measure_of("f1_macro", True).name, measure_of("f1_samples", True)
    ('max_error', 'f1', None)
    """
    name = getattr(scoring, "name", scoring)
    found = named_measure(name)
    if found is not None or name not in get_scorer_names():
        return found
    theirs: Any = get_scorer(name)
    options, asked = dict(theirs._kwargs), theirs._response_method
    average = options.pop("average", None)
    if average not in _AVERAGES:
        return None
    options.pop("pos_label", None)
    needs: Needs = "labels" if classes else "values"
    if asked != "predict":
        needs = "probabilities" if asked == "predict_proba" else "scores"
    return TheirMeasure(
        name.removeprefix("neg_"), theirs._score_func.__name__, needs, theirs._sign > 0,
        "any" if asked == "predict" else "two", _AVERAGES[average], arguments=options,
    )  # fmt: skip


def fold_scorer(scoring, y, grouped: bool, typed: str):
    """Return what `scoring=` of an estimator stands for: a function (estimator, X, y), higher is better.

    A name that is one of our measures, by our name or scikit-learn's, is that measure wherever y is a table, has gaps, or rows belong to
    tasks. A complete vector is scored by scikit-learn's own scorer of that name. ModelError for a name that neither has.
    """
    if not isinstance(scoring, str):
        if not callable(scoring):
            raise ModelError(
                term=f"{typed}(scoring={quoted(scoring)})",
                write_instead="write the name of one measure, or a function (estimator, X, y)",
            )
        return get_scorer(scoring)
    found = named_measure(scoring)
    if scoring in get_scorer_names() and (found is None or not (grouped or _is_ours(y, scoring))):
        return TheirScorer(scoring, f"{typed}(scoring={scoring!r})")
    if found is not None:
        return MeasureScorer(found.name)
    return MeasureScorer(measure(scoring, f"{typed}(scoring", get_scorer_names()).name)


def _is_ours(y, scoring: str) -> bool:
    """Tell whether scikit-learn's scorers do not take these labels, or score columns in another way than task by task."""
    table, _, flat = columns_of(y)
    if not flat or missing_mask(table).any():
        return True
    column = table[:, 0]
    # scikit-learn's scorers take the class 1 for the positive one, and estimators the last
    renamed = np.asarray(table).dtype.kind not in "biuf" or column.max() > 1
    several = len(set(column.tolist())) > 2
    if scoring == "neg_brier_score":
        return renamed and not several
    return scoring in _OF_TWO_CLASSES and (renamed or type_of_target(column) == "multiclass")


def classes_of(estimator):
    """The classes of a vector, or of every column of a table, wherever the estimator that learned them stands: pipelines and searches show
    its classes_ alone, which of a table are the positions of its columns."""
    found = learned_attribute(estimator, "label_classes_")
    return getattr(estimator, "classes_", None) if found is None else found
