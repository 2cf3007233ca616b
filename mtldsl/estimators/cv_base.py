"""Estimators that choose a parameter of their model by cross-validation: one warm-started path a fold, then a fit on all rows."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from mtldsl.data.input_checks import SpellingWarning, UnlikeIndexWarning, weights_of
from mtldsl.data.labels import OneClassWarning
from mtldsl.data.splits import refuse_overlap, stratified_folds
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError, MTLError
from mtldsl.estimators.base_estimator import MultiTaskEstimator, OneTaskWarning, constructor_of
from mtldsl.estimators.estimator_inputs import number_tasks, refuse_unpaired, wrong_option
from mtldsl.estimators.positive_class import OF_POSITIVES, PositiveClassWarning, warn_of_positives
from mtldsl.estimators.regressor import MultiTaskRegressor
from mtldsl.estimators.scorers import MeasureScorer, fold_scorer
from mtldsl.estimators.targets import columns_of, labels_of, missing_mask
from mtldsl.estimators.unit_warnings import warn_of_units
from mtldsl.language.scalars import Parameter
from mtldsl.problems.parallel_fits import PartsProgress, in_parts, jobs_of
from mtldsl.problems.path import certified_points, strengthens_losses, strongest_value
from mtldsl.problems.problem import Problem
from mtldsl.solution.measures import mean_and_error, named_measure
from mtldsl.utils.arrays import as_array
from mtldsl.utils.progress import progress_bar
from mtldsl.utils.validation import as_whole, generator, quoted

# --------------------------------------------------------------------------------------------------------------
# The scores of one fold over all values of a parameter: a path on its training rows, each point scored on those held out.


def parameter_of(problem: Problem, name: str, typed: str) -> Parameter:
    found = [each for each in problem.parameters if each.name == name]
    if not found:
        raise ModelError(
            f"parameter={name!r} is an argument of a word, and a path is over what stands before words",
            term=typed,
            write_instead="use GridSearchCV for it",
        )
    return found[0]


@contextmanager
def listening(said: dict[str, type[Warning]]) -> Iterator[None]:
    """Context in which a measure's warnings go to `said`, to be told once for all folds."""
    with warnings.catch_warnings(record=True) as heard:
        for told in (PositiveClassWarning, UnlikeIndexWarning):  # once, of all rows
            warnings.simplefilter("ignore", told)
        for told in (UndefinedMetricWarning, OneClassWarning):
            warnings.simplefilter("always", told)
        yield
    said |= {str(one.message): one.category for one in heard}


def of_fold(estimator, name, values, scoring, X, y, sample_weight, others, train, test) -> tuple[list, dict]:
    """(the scores of a fold over all values, NaN where it has no task to learn; what its measure warned of)."""
    weights = None if sample_weight is None else weights_of(sample_weight, "sample_weight")
    with warnings.catch_warnings():
        # once, of all rows
        for told in (OneClassWarning, OneTaskWarning, SpellingWarning, UnlikeIndexWarning):
            warnings.simplefilter("ignore", told)
        further = {key: _rows_of(each, train) for key, each in others.items()}
        tasks = estimator._prepare(
            _rows_of(X, train), _rows_of(y, train), _rows_of(weights, train), **further
        )
    held_out = _rows_of(X, test), _rows_of(y, test)
    options = {key: _rows_of(each, test) for key, each in others.items() if each is not None}
    if tasks is None:
        return [np.nan] * len(values), {}
    problem = estimator._problem(tasks)
    parameter, solve_options = parameter_of(problem, name, type(estimator).__name__), estimator._options()
    found, said = [], {}
    points: Iterable
    if problem.is_convex and scoring is None:  # weights are all that these scores ask for
        points = certified_points(problem, parameter, values, solve_options)
    else:
        points = problem.path(parameter, values, **solve_options)
    for point in points:
        estimator._finish(point)
        with listening(said):
            found.append(float((scoring or type(estimator).score)(estimator, *held_out, **options)))
    if len(found) < len(values):  # a path ends after Ctrl-C: there is nothing to choose among
        raise KeyboardInterrupt
    return found, {} if scoring is None else said  # a fold without an own score is left out


def _rows_of(array, rows):
    return None if array is None else _safe_indexing(array, rows)


_ATTRIBUTES = """\
Attributes after `fit`: values_, from the strongest regularization to the weakest; best_index_, best_value_, best_score_,
best_params_; proof_ with `regret`; cv_results_, a dict of arrays as GridSearchCV's: param_NAME, mean_test_score, std_test_score,
standard_error, split0_test_score, ..."""


#: the arguments of the choice, and another default than the plain estimator has
_ARGUMENTS = {
    "parameter": "lam", "values": None, "regret": None, "n_values": 30, "eps": 1e-3, "cv": 5, "scoring": None, "one_standard_error": False,
    "random_state": 0, "verbose": False, "tol": 1e-4,
}  # fmt: skip


def with_parameters(cls):
    """Class decorator: the arguments of the choice beside those of the plain estimator, in the constructor, and in place of `{parameters}` in
    the documentation."""
    cls.__init__ = constructor_of(cls._plain, **_ARGUMENTS)
    plain = _parameters_of(cls._plain)
    if "as in `MultiTaskRegressor`" in plain:
        plain = "\n".join(line for line in plain.split("\n") if "as in `MultiTaskRegressor`" not in line)
        plain += "\n" + _parameters_of(MultiTaskRegressor)
    text = f"The choice:\n\n{_parameters_of(CrossValidated)}\n\nThe model and its fit:\n\n{plain}\n\n{_ATTRIBUTES}"
    cls.__doc__ = inspect.cleandoc(cls.__doc__).replace("{parameters}", text)
    return cls


def _parameters_of(cls) -> str:
    """The block of `name : what it is` in the documentation of a class."""
    blocks = inspect.cleandoc(cls.__doc__).split("\n\n")
    return "\n".join(block for block in blocks if re.match(r"[\w, ]+? +: ", block))


class CrossValidated(MultiTaskEstimator):
    """One parameter of the model chosen by cross-validation. What the estimators whose names end in CV share:

    parameter : its name; of a model with one parameter alone that one
    values    : what to try. None: n_values of a geometric grid from where the weights are zero, `Problem.lambda_max`, to eps times it; for
                norm + C * loss from there to 1 / eps times it; where no value makes them zero, from max_i ||X_i||_F^2 to eps^2 times it
    regret    : None: the values are a grid. A number: choose among all values between the ends of `values`, with a proof in `proof_` that
                none has a mean score better by more ([docs](model_selection.md#a-choice-that-is-proven)); values_ are those that were fitted
    cv        : a number of folds, dealt by iterative stratification and seeded by random_state; a scikit-learn splitter; or a list of
                (train, test) rows
    scoring   : None, the estimator's own score; the name of a measure, ours or scikit-learn's, such as "f1", "roc_auc" or
                "neg_mean_squared_error": the mean over tasks, gaps left out; or a function (estimator, X, y). `score` is by it too.
                Thresholds and calibration come after the choice, so that folds are scored without them
    one_standard_error : take the strongest regularization whose mean score is within one standard error of the best (Breiman, Friedman,
                Olshen and Stone, Classification and Regression Trees, 1984)
    n_jobs    : processes for the folds (joblib)
    verbose   : tell of every fold on standard error: a bar in a terminal, a line a fold elsewhere

    Every fold is one path, warm-started from value to value. The last fit is on all rows, at the value chosen; where the model is not convex
    it is a path down to that value. Ctrl-C raises `mtl.Interrupted`, whose `completed` is the cv_results_ of the folds that were complete.
    """

    _plain: ClassVar[type]
    parameter: str
    values: Any
    regret: float | None
    n_values: int
    eps: float
    cv: Any
    scoring: Any
    one_standard_error: bool
    random_state: Any
    verbose: Any

    def _set(self, arguments: dict[str, Any]) -> None:
        super()._set(arguments)
        self._refuse_chosen(self._parameters)

    def set_params(self, **params):
        """Set parameters as the plain estimator does. ModelError for a value of the parameter that is chosen."""
        first = {name: params.pop(name) for name in ("model", "parameter") if name in params}
        super().set_params(**first)  # which say what is chosen
        self._refuse_chosen(self._parameters | params)
        return super().set_params(**params)

    def _refuse_chosen(self, given: dict[str, Any]) -> None:
        if not given:
            return
        try:
            known, name = self._stated().parameters, self._chosen
        except MTLError:  # `fit` says what is wrong with the model
            return
        if name in known and given.get(name) is not None:
            raise ModelError(
                f"{name} is chosen by cross-validation, so that no value of it can be given",
                term=f"{type(self).__name__}({name}={quoted(given[name])})",
                write_instead=f"write values=[...] for those to choose from, or {self._plain.__name__}({name}={quoted(given[name])})",
            )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return those of the plain estimator, without the parameter that is chosen: `best_params_` has its value after `fit`."""
        found = super().get_params(deep)
        try:
            known, name = self._stated().parameters, self._chosen
        except MTLError:  # `fit` says what is wrong with the model
            return found
        hidden = {name} if name in known else set(known)  # of an unknown name `fit` says so
        return {name: value for name, value in found.items() if name not in hidden - self._parameters.keys()}

    def score(self, X, y, sample_weight=None) -> float:
        """Score by `scoring`, as the folds were scored; without it by the plain estimator's own score."""
        return self._score(X, y, sample_weight=sample_weight)

    def _score(self, X, y, **beside) -> float:
        refuse_unpaired(X, y=y, **beside)
        given = {name: each for name, each in beside.items() if each is not None}
        plain: Any = super()
        if self.scoring is None:
            return float(plain.score(X, y, **given))
        same = object.__new__(type(self))  # a function may ask for the own score, as it did of the folds
        same.__dict__ = self.__dict__ | {"scoring": None}
        by = fold_scorer(self.scoring, y, self._task_ids() is not None, type(self).__name__)
        return float(by(same, X, y, **given))

    def _fit(self, X, y, sample_weight=None, **others):
        with in_parts(type(self).__name__, "fold", "folds", "; it is not fitted") as made:
            return self._fit_at_best(made, X, y, sample_weight, **others)

    def _fit_at_best(self, made: PartsProgress, X, y, sample_weight=None, **others):
        """Fitted at the value that folds choose."""
        tasks = self._prepare(X, y, sample_weight, **others)
        X, y, sample_weight, *rest = indexable(X, y, sample_weight, *others.values())
        others = dict(zip(others, rest, strict=True))
        self._require(_num_samples(X))
        if tasks is None:
            raise DataError("no task has labels of both classes", term=type(self).__name__, argument="y")
        problem = self._problem(tasks)
        warn_of_units(problem, tasks, type(self).__name__)
        parameter = parameter_of(problem, self._chosen, type(self).__name__)
        self.values_ = self._grid(problem, parameter)
        splits = self._splits(X, y, others.get("groups"))
        self._refuse_lost_tasks(X, y, others.get("groups"), splits)
        run = delayed(of_fold)
        plain, scoring = self._one(), self._scorer(y)
        given = (self._chosen, self.values_, scoring, X, y, sample_weight, others)
        made.expect(len(splits), lambda scores: self._results(np.array(scores)))
        loud, said = _is_loud(self.verbose, type(self).__name__), {}
        if self.regret is not None:
            made.found = self._proven_scores(problem, parameter, tasks, splits, _num_samples(X), loud)
        else:
            with progress_bar("choosing parameters, fold", len(splits), loud) as tell:
                found = Parallel(n_jobs=self.n_jobs, return_as="generator")
                for scores, warned in found(run(clone(plain), *given, *rows) for rows in splits):
                    made.found.append(scores)
                    said |= warned
                    tell(f"{len(scores)} values of {self._chosen}")
        for text, category in said.items():
            warnings.warn(f"{type(self).__name__}, in folds: {text}", category, stacklevel=4)
        self._choose(np.array(made.found))
        # a convex model has the same optimum whatever came before
        first = self.best_index_ if problem.is_convex else 0
        wanted = self.values_[first : self.best_index_ + 1]
        solutions = list(problem.path(parameter, wanted, **self._options()))
        if len(solutions) < len(wanted) or any(one.interrupted for one in solutions):
            raise KeyboardInterrupt
        parameter.value = self.best_value_
        self._finish(self._checked_solution(problem, solutions[-1]))
        return self

    def _proven_scores(
        self, problem: Problem, parameter: Parameter, tasks: Tasks, splits: list, rows: int, loud: bool
    ) -> list:
        """The scores of every fold at the values that a proof needs, which are values_ from here on; the proof is proof_."""
        typed = f"{type(self).__name__}(regret={quoted(self.regret)})"
        measured = named_measure(self.scoring)
        is_one_table = tasks.is_shared and tasks.X.shape[0] == rows and self._task_ids() is None
        several = getattr(getattr(self, "_labels", None), "kind", "") == "multiclass"
        for is_wrong, said, instead in (
            (self.scoring is not None and measured is None, f"scoring={quoted(self.scoring)} cannot be bounded",
             "write a name such as 'accuracy', 'f1' or 'r2'"),
            (not is_one_table, "a proof takes one table of rows, each with a label",
             "write problem.cross_validate(lam, regret=...) for other data"),
            (tasks.sample_weights is not None, "weights of rows or classes count in learning and not in scores here",
             "leave them out, or write problem.cross_validate(lam, regret=...)"),
            (self.scoring is None and several, "the class of a row is the highest of several scores, which is not bounded score by score",
             "write scoring='roc_auc', or a column a class"),
        ):  # fmt: skip
            if is_wrong:
                raise ModelError(said, term=typed, write_instead=instead)
        own = "r2" if not is_classifier(self) else "accuracy" if tasks.n_tasks == 1 else "subset_accuracy"
        options = {name: value for name, value in self._options().items() if name not in ("tol", "n_jobs")}
        found = problem.cross_validate(
            parameter, between=(float(self.values_.min()), float(self.values_.max())), regret=self.regret,
            metric=own if measured is None else measured.name, folds=splits, refit=False, progress=loud, **options,
        )  # fmt: skip
        self.values_, self.proof_ = np.array([value for (value,) in found.points]), found.proof
        return list(found.scores if found.higher_is_better else -found.scores)

    @property
    def _chosen(self) -> str:
        """The name of the parameter that is chosen: `parameter`, or the only one that a model without it has."""
        known = self._stated().parameters
        only = len(known) == 1 and self.parameter == "lam"
        return known[0] if only else self.parameter

    def _scorer(self, y):
        """Return what scores a fold's fits; None for the estimator's own score."""
        if self.scoring is None:
            return None
        found = fold_scorer(self.scoring, y, self._task_ids() is not None, type(self).__name__)
        by = named_measure(getattr(found, "name", None))
        if by is not None and by.needs != "values" and not is_classifier(self):
            raise ModelError(
                f"scoring={quoted(self.scoring)} is a measure of classes, and numbers are learned here",
                term=type(self).__name__,
                write_instead=f"write 'r2' or 'mae', or use {type(self).__name__.replace('Regressor', 'Classifier')} for classes",
            )
        counts_positives = isinstance(found, MeasureScorer) and found.name in OF_POSITIVES
        if counts_positives and is_classifier(self) and not getattr(self, "tune_thresholds", None):
            warn_of_positives(labels_of(y), type(self).__name__, f"scoring={quoted(self.scoring)}")
        return found

    def _require(self, n_samples: int) -> None:
        self._threads()
        known = self._stated().parameters
        if self._chosen not in known:
            raise ModelError(
                f"parameter={quoted(self.parameter)} is not a parameter of the model",
                term=type(self).__name__,
                write_instead=f"write one of {', '.join(map(repr, known)) or 'none: it has none'}",
            )
        folds = None if isinstance(self.cv, bool) else as_whole(self.cv)
        if folds is not None and folds < 2:
            raise wrong_option(self, "cv", "write a number of folds >= 2", DataError)
        if folds is not None and n_samples < folds:
            raise DataError(
                f"n_samples = {n_samples}: {folds} folds need {folds} rows",
                term=type(self).__name__,
                argument="cv",
                write_instead=f"write at most cv={n_samples}" if n_samples > 1 else "give more rows",
            )
        n, eps = as_whole(self.n_values), self.eps
        if n is None or n < 1:
            raise wrong_option(self, "n_values", "write a whole number >= 1")
        if isinstance(eps, bool) or not isinstance(eps, int | float | np.number) or not 0 < eps < 1:
            raise wrong_option(self, "eps", "write a number between 0 and 1, such as 1e-3")

    def _values(self, model: Any) -> dict[str, Any]:
        """Any value stands for the one that is chosen, until it is."""
        if self._parameters.get(self._chosen) is None and model.defaults.get(self._chosen) is None:
            defaults = {**model.defaults, self._chosen: 1.0}
            model = SimpleNamespace(parameters=model.parameters, defaults=defaults)
        return super()._values(model)

    def _threads(self) -> None:
        """None: n_jobs is for the folds."""
        try:
            jobs_of(self.n_jobs)
        except ModelError as error:
            raise error.about(f"{type(self).__name__}({error.term})") from None

    def _one(self) -> MultiTaskEstimator:
        """The plain estimator with the same arguments."""
        own = self.get_params(deep=False)
        known = set(self._plain._get_param_names())
        kept = {
            name: value for name, value in own.items() if name in known or name in self._stated().parameters
        }
        if kept.get(self._chosen) is None:
            kept[self._chosen] = 1.0
        aside = {name: None for name in ("tune_thresholds", "calibration") if name in known}
        return self._plain(**{**kept, **aside, "n_jobs": None, "check": None})

    def _grid(self, problem: Problem, parameter: Parameter) -> np.ndarray:
        """From the strongest regularization to the weakest."""
        on_losses = strengthens_losses(problem, parameter)
        if self.values is not None:
            given = as_array(self.values, "values", ModelError).astype(float).ravel()
            if not given.size or not ((given >= 0) & (given < np.inf)).all():
                raise ModelError(
                    f"values={quoted(self.values, 60)}",
                    term=type(self).__name__,
                    write_instead="write numbers >= 0",
                )
            ordered = np.unique(given)
            return ordered if on_losses else ordered[::-1]
        start, ratio = strongest_value(problem, parameter, 1.0 / self.eps)
        if not 0 < start < np.inf:
            raise DataError(
                "the weights are zero whatever the parameter: the labels do not depend on X",
                argument="y",
                term=type(self).__name__,
            )
        return np.geomspace(start, start * ratio if on_losses else start / ratio, int(self.n_values))

    def _splits(self, X, y, groups) -> list:
        number = as_whole(self.cv)
        if number is not None and not isinstance(self.cv, bool):
            random = generator(self.random_state, type(self).__name__)
            folds = stratified_folds(self._fold_table(X, y, groups), number, True, None, random)
            return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(number)]
        try:
            found = list(check_cv(self.cv, y, classifier=False).split(X, y, groups))
            if not found:
                raise ValueError("there is none in it")
            n = _num_samples(X)
            pairs = [(_positions(train, n), _positions(test, n)) for train, test in found]
            for k, (train, test) in enumerate(pairs):
                refuse_overlap(k, train, test, type(self).__name__, "cv")
            return pairs
        except MTLError:
            raise
        except (TypeError, ValueError) as error:
            raise DataError(
                f"cv={quoted(self.cv, 60)} makes no folds of these rows: {str(error).rstrip('.')}",
                term=type(self).__name__,
                argument="cv",
                write_instead="write a number of folds, such as cv=5, or a list of (train, test) rows, "
                "such as cv=list(GroupKFold(5).split(X, y, groups))",
            ) from error

    def _refuse_lost_tasks(self, X, y, groups, splits) -> None:
        """DataError where rows of a task are held out of which none is left to learn from, and nothing else would answer for it."""
        if not hasattr(self, "task_of") or getattr(self, "unseen", "mean") == "mean":
            return
        names, task = number_tasks(self.task_of(X, groups=groups))
        there = ~missing_mask(columns_of(y)[0]).all(axis=1)
        for k, (train, test) in enumerate(splits):
            left = np.bincount(task[train][there[train]], minlength=len(names)) > 0
            lost = test[~left[task[test]]]
            if lost.size:
                raise DataError(
                    f"no row with a label of the task {names[task[lost[0]]]!r} is left to learn from where fold {k} is held out",
                    term=type(self).__name__,
                    argument="cv",
                    write_instead="leave out tasks of one row, or write unseen='mean', which predicts by the mean of all tasks' weights",
                )

    def _fold_table(self, X, y, groups) -> np.ndarray:
        """(n, m) what folds are stratified by."""
        raise NotImplementedError

    def _choose(self, scores: np.ndarray) -> None:
        """scores (folds, values), NaN where a fold could not be scored."""
        mean, error = mean_and_error(scores)
        if np.isnan(mean).all():
            raise DataError(
                "no fold could be scored at any value",
                term=type(self).__name__,
                argument="cv",
                write_instead="write fewer folds, so that labels differ in each, or scoring='neg_mean_squared_error' for numbers",
            )
        mean = np.where(np.isnan(mean), -np.inf, mean)
        best = int(np.argmax(mean))
        if self.one_standard_error:
            best = int(np.argmax(mean >= mean[best] - np.nan_to_num(error[best])))
        self.best_index_ = best
        self.best_value_, self.best_score_ = float(self.values_[best]), float(mean[best])
        self.best_params_ = {self._chosen: self.best_value_}
        self.cv_results_ = self._results(scores)

    def _results(self, scores: np.ndarray) -> dict[str, Any]:
        """The folds that have scores, as GridSearchCV's `cv_results_`."""
        mean, error = mean_and_error(scores)
        k = (~np.isnan(scores)).sum(axis=0)
        mean = np.where(k > 0, mean, -np.inf)
        return {
            f"param_{self._chosen}": self.values_,
            "params": [{self._chosen: float(value)} for value in self.values_],
            "mean_test_score": mean,
            "std_test_score": np.where(k > 0, np.nan_to_num(error) * np.sqrt(np.maximum(k - 1, 0)), np.nan),
            "standard_error": error,
            "rank_test_score": 1 + (mean[None] > mean[:, None]).sum(axis=1),
            **{f"split{k}_test_score": row for k, row in enumerate(scores)},
        }


def _positions(rows, n: int) -> np.ndarray:
    """The rows of one side of a fold, given by their positions, negative ones from the end, or as a mask; ValueError for others, and for none."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise ValueError(f"{quoted(rows, 40)} are not the positions of rows")
    if not (given.min() >= -n and given.max() < n):
        raise ValueError(f"the row {given.max() if given.max() >= n else given.min()} is not one of {n:,}")
    return given % n


def _is_loud(verbose, typed: str) -> bool:
    """Tell whether progress is told: True or False, or a number as elsewhere in scikit-learn."""
    number = as_whole(verbose)
    if isinstance(verbose, bool) or (number is not None and number >= 0):
        return bool(verbose)
    raise ModelError(term=f"{typed}(verbose={quoted(verbose)})", write_instead="write True or False")
