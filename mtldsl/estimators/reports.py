"""Views of a fitted estimator: a page, a table of weights, what features count, and a summary for the terminal."""

from __future__ import annotations

import warnings
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mtldsl.data.derived import with_fields
from mtldsl.data.labels import listed_tasks
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError
from mtldsl.estimators.calibration import metric_of
from mtldsl.estimators.estimator_inputs import refuse_unpaired
from mtldsl.estimators.label_tables import hold_classes, hold_targets, signs_of
from mtldsl.estimators.positive_class import positives
from mtldsl.estimators.scorers import classes_of, measure_of
from mtldsl.estimators.targets import columns_of, missing_mask
from mtldsl.problems.separate_models import separate_models
from mtldsl.solution.headline_sections import ReportContext, several
from mtldsl.solution.measures import Measure, name_of, named_measure
from mtldsl.solution.score_intervals import ScoredMeasure, score_classes
from mtldsl.solution.score_sections import feature_sizes
from mtldsl.solution.solution import Solution
from mtldsl.utils.validation import as_whole, complete, plain, quoted

if TYPE_CHECKING:
    from pandas import DataFrame, Series


#: Features of a summary that have a line each.
SHOWN_FEATURES = 8

#: Samples of the rows behind an interval.
SAMPLES = 200


@complete('write report(fitted, "fit.html", X, y)')
def report(estimator, file, X, y, *, groups=None, **options) -> Path:
    """Write one HTML page on a fitted estimator, scored on these rows, which it was not fitted on; return its path.

    estimator : fitted; or a Pipeline whose last step is one, which is given the raw rows, and whose names of features are shown; or a
                fitted search over either, such as GridSearchCV, of which its best is shown
    file      : where to write
    X, y      : rows as `fit` takes them, raw
    groups    : the tasks of the rows, where `fit` was given groups
    options   : those of `Solution.report`: title, cross_check, cross_validation, path, bootstrap, random_state

    DataError where nothing was learned.

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mtldsl.estimators import MultiTaskClassifier, report
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> fitted = make_pipeline(StandardScaler(), MultiTaskClassifier()).fit(X[:40], X[:40, :2] > 0)
    >>> report(fitted, "fit.html", X[40:], X[40:, :2] > 0, bootstrap=0).name  # doctest: +SKIP
    'fit.html'
    """
    if not isinstance(file, str | PathLike):
        raise ModelError(
            f"file={quoted(file, 40)} is not a path",
            term=f"report of {type(estimator).__name__}",
            write_instead='write report("fit.html", X, y)',
        )
    _refuse_unknown(options, type(estimator).__name__)
    refuse_unpaired(X, y=y, groups=groups)
    raw, (last, X, names) = X, _last_step(estimator, X)
    solution = solution_of(last)
    own, trained = _names(solution, names), solution.trained_on
    if trained is not None and len(trained.feature_names) == len(own):
        trained = with_fields(trained, feature_names=own)
    solution = replace(solution, feature_names=own, trained_on=trained)
    tasks = _tasks_of(last, solution, X, y, groups)
    tuned = None if solution.thresholds is None else metric_of(getattr(last, "tune_thresholds", None))
    separate = separate_models(ReportContext(solution).training, tuned)
    title, lost = f"{type(last).__name__}: {several(len(solution.task_names), 'task')}", _not_learned(last)
    if lost:
        title += f"; without {listed_tasks(lost)}, of one class or no label"
    chosen = _measure_chosen_by([(estimator, raw), (last, X)], y, groups, tasks.n_tasks)
    if chosen is None and getattr(getattr(last, "_labels", None), "kind", "") == "multiclass":
        samples = as_whole(options.get("bootstrap", SAMPLES)) or 0
        chosen = _scored_classes(last, ReportContext(solution).training, X, y, samples)
    beside: dict[str, Any] = {
        "separate": separate,
        "title": title,
        "positive": _positive(last, solution),
        "chosen_by": chosen,
        "by_name": True,
    }
    return solution.report(file, tasks, **(beside | options))


#: what a caller may say of a page
_OPTIONS = [
    name for name, one in signature(Solution.report).parameters.items() if one.kind is one.KEYWORD_ONLY
]


def _refuse_unknown(options: dict[str, Any], typed: str) -> None:
    """ModelError for an option of a page that there is not."""
    for name, value in options.items():
        if name not in _OPTIONS:
            near = get_close_matches(name, _OPTIONS, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise ModelError(
                f"there is no option {name!r}",
                term=f"report of {typed}, {name}={quoted(value)}",
                write_instead=f"{meant}options are {', '.join(_OPTIONS[:6])}",
            )


def frame(estimator, long: bool = False) -> DataFrame:
    """Return the weights as a pandas table of features and tasks, the intercepts in its last row: `Solution.frame`, with the names that a pipeline made.

    estimator : fitted; or a Pipeline whose last step is one
    long      : a row a feature and task

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from mtldsl.estimators import MultiTaskRegressor, frame
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> fitted = make_pipeline(PolynomialFeatures(include_bias=False), MultiTaskRegressor(lam=0.1)).fit(X, X)
    >>> frame(fitted).index.tolist()
    ['x0', 'x1', 'x0^2', 'x0 x1', 'x1^2', '(intercept)']
    """
    last, _, names = _last_step(estimator, None)
    solution = solution_of(last)
    return replace(solution, feature_names=_names(solution, names)).frame(long)


def importances(estimator) -> Series:
    """Return what every feature counts: sqrt(sum over tasks of (w_ij s_j)^2) as a share of all, s_j the spread of the feature in the rows that were
    fitted; the largest first, in the order of the report. A fit that was pickled has forgotten its rows: then every s_j is 1.

    estimator : fitted; or a Pipeline whose last step is one

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> MultiTaskRegressor(lam=0.1).fit(X, X[:, [0, 2]] * [1.0, 3.0]).importances().round(1).to_dict()
    {'x2': 0.7, 'x0': 0.3, 'x1': 0.0}
    """
    from pandas import Series

    last, _, names = _last_step(estimator, None)
    solution = solution_of(last)
    sizes, _ = feature_sizes(solution, ReportContext(solution).training)
    found = Series(sizes / (sizes.sum() or 1.0), index=list(_names(solution, names)), name="importance")
    if len(found) > last.n_features_in_:  # a column of ones, where the model has no other intercept
        found = found.drop("(intercept)", errors="ignore")
    return found.sort_values(ascending=False, kind="stable")


class Summary(str):
    """Text that a notebook and the prompt show as it is."""

    def __repr__(self) -> str:
        return str(self)


def summary(estimator) -> Summary:
    """Return as text what was learned, what is proven of it, and the features that count most; `print` it in a program.

    estimator : fitted; or a Pipeline whose last step is one
    """
    last, _, _ = _last_step(estimator, None)
    solution, typed = solution_of(last), type(last).__name__
    model = last._stated_model()
    lines = [f"{typed}: {model if isinstance(model, str) else 'a function'}", f"  {solution}"]
    lost = _not_learned(last)
    if lost:
        lines.append(f"  not learned, of one class or no label: {listed_tasks(lost)}")
    if hasattr(last, "best_params_"):
        chosen = ", ".join(f"{name} = {value:.4g}" for name, value in last.best_params_.items())
        name, score = _score_chosen_by(last)
        by = named_measure(getattr(last.scoring, "name", last.scoring))
        tuned = getattr(last, "thresholds_", None) is not None and (by is None or by.needs == "labels")
        at = ", at the threshold 0" if tuned else ""  # thresholds come after the choice
        lines.append(f"  chosen by cross-validation: {chosen}; {name} {score:.4f}, the mean over folds{at}")
    unsaid = positives(last._labels) if hasattr(last, "_labels") else {}
    if unsaid:
        listed = ", ".join(f"{unsaid[one]!r} of {one}" for one in unsaid)
        lines.append(f"  positive, the last class in sorted order: {listed}")
    shares = importances(estimator)
    used = shares[shares > 0]
    lines.append(
        f"  {len(used):,} of {len(shares):,} features have weights{'; the largest:' if len(used) else ''}"
    )
    lines += [f"    {name:<32} {share:6.1%}" for name, share in used.head(SHOWN_FEATURES).items()]
    return Summary("\n".join(lines))


def _measure_chosen_by(
    fitted: list[tuple[Any, Any]], y, groups, n_tasks: int
) -> Measure | ScoredMeasure | None:
    """The measure that the first of these chose a parameter by; a function's score on the rows beside it. None where there is none."""
    last = fitted[-1][0]
    for one, X in fitted:
        scoring = getattr(one, "scoring", None)
        if isinstance(
            scoring, list | tuple | dict
        ):  # several measures of a search, which names the one it chose by
            scoring = scoring.get(one.refit) if isinstance(scoring, dict) else one.refit
        by = measure_of(scoring, is_classifier(last))
        if by is None and (callable(scoring) or isinstance(scoring, str)):
            return _scored_as_chosen(one, _name_of_scoring(scoring), X, y, groups, n_tasks)
        calibrated = getattr(last, "_calibrators", None) is not None
        # a page has the probabilities of the loss
        if by is not None and not (calibrated and by.needs == "probabilities"):
            return by
    return None


def _scored_as_chosen(fitted, name: str, X, y, groups, n_tasks: int) -> ScoredMeasure | None:
    """The score of a function that says nothing of single tasks; None, with a warning, where it fails on these rows."""
    try:
        score = float(fitted.score(X, y, **({} if groups is None else {"groups": groups})))
    except Exception as error:  # whatever a user's function raises
        warnings.warn(
            f"report: {name} is left out, it fails on these rows: {error}", UserWarning, stacklevel=4
        )
        return None
    none, by = np.full(n_tasks, np.nan), Measure(name, "", "answers", True)
    return ScoredMeasure(by, name, none, none, none, none, none, (score, np.nan, np.nan, np.nan, np.nan))


def _scored_classes(fitted, training: Tasks | None, X, y, samples: int) -> ScoredMeasure:
    """The share of rows whose class `predict` says, the class with the highest score; no label alone has that.

    training : the rows that were learned on, whose most frequent class is the guess; None where they are forgotten
    """
    labels, classes = columns_of(y)[0][:, 0], fitted._labels.classes
    there = ~missing_mask(labels[:, None])[:, 0]
    right = (fitted.predict(X)[there] == labels[there]).astype(float)
    guessed = np.full(len(right), np.nan)
    if training is not None:
        counts = [np.sum(each > 0) for each in training.per_task(training.targets)]
        guessed = 1.0 * (labels[there] == classes[fitted._learned[int(np.argmax(counts))]])
    return score_classes(right, guessed, len(fitted._learned), samples)


def _not_learned(fitted) -> list:
    """The names of the tasks that have no weights, as all their labels were of one class, or missing."""
    learned = set(np.asarray(fitted._learned).tolist())
    names = getattr(fitted, "tasks_", getattr(fitted, "target_names_", None))
    n = len(names) if names is not None else np.atleast_2d(fitted.coef_).shape[0]
    names = range(n) if names is None else np.asarray(names).tolist()
    return [name for i, name in enumerate(names) if i not in learned]


def _name_of_scoring(scoring) -> str:
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))


def _score_chosen_by(last) -> tuple[str, float]:
    """(the name of the measure that folds were scored by, its best mean): of errors without the sign that makes higher better."""
    scoring, best = last.scoring, last.best_score_
    by = named_measure(getattr(scoring, "name", scoring))
    if by is not None:
        return name_of(by), by.direction * best
    if scoring is not None:
        return _name_of_scoring(scoring), best
    if not is_classifier(last):
        return "R²", best
    several = last._labels.kind == "multilabel" and last._labels.signs.shape[1] > 1
    return "share of rows whose labels are all right" if several else "accuracy", best


def _last_step(estimator, X) -> tuple[Any, Any, Any]:
    """(the fitted estimator, what it is given of X, the names of its features where a pipeline has made them); of a search its best.

    ModelError for an estimator that is not one of these, such as one that changes y.
    """
    if hasattr(estimator, "best_estimator_"):
        return _last_step(estimator.best_estimator_, X)
    if not isinstance(estimator, Pipeline):
        if not hasattr(estimator, "importances"):  # which estimators with a solution have
            raise ModelError(
                "is neither an estimator with a solution, nor a pipeline that ends in one, nor a search over them that was fitted "
                "with refit",
                term=quoted(estimator, 60),
                write_instead="give the fitted estimator inside of it, such as model.regressor_",
            )
        return estimator, X, None
    before, last = estimator[:-1], estimator[-1]
    if not len(before):
        return _last_step(last, X)
    try:
        names = before.get_feature_names_out()
    except (AttributeError, ValueError):  # a step that does not know the names of what it makes
        names = None
    last, rows, own = _last_step(last, None if X is None else before.transform(X))
    return last, rows, names if own is None else own


def _names(solution: Solution, made) -> tuple[str, ...]:
    """The names of features: those that a pipeline made, or the model's own."""
    own = solution.feature_names
    return tuple(map(str, made)) if made is not None and len(made) == len(own) else own


def solution_of(estimator) -> Solution:
    """Return the solution of a fitted estimator; DataError where no task was learned."""
    check_is_fitted(estimator, "solution_")
    if estimator.solution_ is None:
        raise DataError("no task was learned: all have labels of one class", term=type(estimator).__name__)
    return estimator.solution_


def _nothing_to_score(estimator, instead: str) -> DataError:
    return DataError(
        "no row here has a label and a task that was learned",
        term=f"report of {type(estimator).__name__}",
        write_instead=instead,
    )


def _tasks_of(estimator, solution: Solution, X, y, groups) -> Tasks:
    """New rows as tasks of the names that were learned."""
    names = list(solution.feature_names)
    if hasattr(estimator, "task_of"):
        rows, ids = estimator._rows(X, groups, fitting=False)
        labels = _columns(estimator, y)[0][:, 0]
        known = np.isin(ids, estimator.tasks_)
        there = ~np.isnan(labels) & known
        if not known.all():
            warnings.warn(
                f"report: {np.sum(~known):,} rows are left out, of tasks that training did not have, such as {quoted(plain(ids[~known][0]))}",
                UserWarning,
                stacklevel=3,
            )
        if not there.any():
            raise _nothing_to_score(estimator, f"give rows of tasks such as {estimator.tasks_.tolist()[0]!r}")
        tasks = Tasks.grouped(rows[there], labels[there], ids[there], feature_names=names)
        return tasks.select([name for name in solution.task_names if name in tasks.task_names])
    table = _columns(estimator, y)[0]
    if table.shape[1] < len(estimator._learned):  # two classes of a loss that has a task for each
        table = np.hstack([-table, table])
    table = table[:, estimator._learned]
    there = ~np.isnan(table)
    rows, kept = there.any(axis=1), np.flatnonzero(there.any(axis=0))
    if not len(kept):
        raise _nothing_to_score(estimator, "give rows with labels")
    inputs = estimator._inputs_of_solution(estimator._checked(X))[rows]
    if hasattr(estimator, "kernels"):  # features of kernels are not columns of X
        names = None if estimator.kernels == "precomputed" else estimator._names()
    scored = [solution.task_names[i] for i in kept]
    return Tasks.shared(inputs, table[rows][:, kept], feature_names=names, task_names=scored)


def _positive(estimator, solution: Solution) -> dict[str, str]:
    """{task: the class that counts as positive}; of one class against the rest it is the task's own name."""
    labels = getattr(estimator, "_labels", None)
    if labels is None or labels.kind == "multiclass":
        return {}
    known = [labels.classes] * len(solution.task_names)
    if labels.kind == "multilabel":
        known = [labels.classes[i] for i in estimator._learned]
    shown = [f"{each:g}" if isinstance(each, float) else str(each) for *_, each in known]
    return dict(zip(solution.task_names, shown, strict=True))


def _columns(estimator, y):
    """(n, m) numbers, or labels -1 and +1, NaN where one is missing."""
    hold_targets(estimator, y)
    if is_classifier(estimator):
        hold_classes(estimator, y)
    classes = classes_of(estimator)
    return signs_of(y, classes, "values" if classes is None else "labels")
