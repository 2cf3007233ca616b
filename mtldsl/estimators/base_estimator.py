"""Base class of the estimators: a model on tasks, its parameters, its inputs checked, and warnings; `fit` is each estimator's own."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mtldsl.atoms.atom import REGISTRY
from mtldsl.data.input_checks import is_numbered
from mtldsl.data.labels import OneClassWarning, listed_tasks
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError, MTLError, SolverError
from mtldsl.estimators.estimator_inputs import checked_inputs, refuse_unpaired, wrong_option
from mtldsl.estimators.model_argument import ModelSource, read_model_argument
from mtldsl.estimators.penalties import no_penalty, statement_of
from mtldsl.estimators.targets import require_y
from mtldsl.estimators.unit_warnings import warn_of_units
from mtldsl.problems.problem import Problem
from mtldsl.solution.solution import Solution
from mtldsl.solvers.routes import get_solver
from mtldsl.solvers.run import checked_jobs, checked_limits
from mtldsl.utils.validation import MAX_MAGNITUDE, as_flag, complete, quoted

# --------------------------------------------------------------------------------------------------------------
# A model as a hyperparameter, and its own parameters as further ones.


#: Parameters of scikit-learn's estimators -> those that do the same here, the first that the estimator has.
SYNONYMS = {
    "alpha": ("lam", "values"), "alphas": ("values", "lam"), "lambda_": ("lam", "values"), "lambdas": ("values", "lam"), "lams": ("values", "lam"),
    "C": ("lam", "values"), "Cs": ("values", "lam"), "n_alphas": ("n_values",), "n_lambdas": ("n_values",),
    "tolerance": ("tol",), "time_limit": ("max_seconds",), "timeout": ("max_seconds",), "max_time": ("max_seconds",), "metric": ("scoring",),
    "folds": ("cv",), "n_folds": ("cv",), "n_splits": ("cv",), "regularizer": ("penalty",), "reg": ("penalty",), "constraints": ("subject_to",),
}  # fmt: skip


#: A name as alike to an argument's is meant for it.
MISSPELT_SHARE = 0.8

#: A name as alike to a parameter's may be meant for it.
MEANT_SHARE = 0.7

#: Most estimators that are named as those that have a parameter.
NAMED_OWNERS = 2


def constructor_of(plain: type, without: Sequence[str] = (), **arguments) -> Callable[..., None]:
    """A constructor with the arguments of another estimator, but for some, and with these of its own or with another default, as scikit-learn
    reads them off its signature."""
    known = {
        name: one for name, one in inspect.signature(plain.__init__).parameters.items() if name not in without
    }
    others = known.pop("parameters")
    for name, value in arguments.items():
        kind = known[name].kind if name in known else inspect.Parameter.KEYWORD_ONLY
        known[name] = inspect.Parameter(name, kind, default=value)
    defaults = {name: one.default for name, one in known.items() if name not in ("self", "model")}

    def __init__(self, model=known["model"].default, **arguments):
        own = {name: arguments.pop(name, default) for name, default in defaults.items()}
        self._set({"model": model, **own, "parameters": arguments})

    # functions have no such attribute for a type checker
    setattr(__init__, "__signature__", inspect.Signature([*known.values(), others]))  # noqa: B010
    return __init__


class ModelParameters(BaseEstimator):
    """Parameters of the model are parameters of the estimator: `get_params` lists them, `set_params` changes them."""

    #: values of the parameters of the estimator's own model
    _defaults: ClassVar[dict[str, float]] = {"lam": 1.0}

    model: Any
    loss: Any
    penalty: Any
    subject_to: Any

    def _stated(self) -> ModelSource:
        return read_model_argument(self._stated_model(), self.subject_to, self._defaults)

    def _stated_model(self) -> Any:
        """`model` as it was given, or the statement that `loss` and `penalty` name. ModelError where both were given."""
        if not hasattr(self, "penalty"):
            return self.model
        usual = inspect.signature(type(self)).parameters
        for name in ("loss", "penalty"):
            given = getattr(self, name)
            if name == "penalty" and given is None:
                raise no_penalty(given, type(self).__name__)
            if not isinstance(given, str):
                raise ModelError(
                    term=f"{type(self).__name__}({name}={quoted(given)})",
                    write_instead=f"write its name, such as {name}={usual[name].default!r}",
                )
            if self.model is not None and given != usual[name].default:
                raise ModelError(
                    f"{name}={given!r} stands beside model={quoted(self.model, 60)}, which has its own {name}",
                    term=type(self).__name__,
                    write_instead="write one of the two",
                )
        if self.model is not None:
            return self.model
        return statement_of(self.loss, self.penalty, type(self).__name__)

    def _set(self, arguments: dict[str, Any]) -> None:
        """Return what the constructor was called with, as it was; parameters of the model stand apart, for scikit-learn expects no further
        attributes."""
        self._parameters = dict(arguments.pop("parameters"))
        for name, value in arguments.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)
        self._refuse_misspelt()

    def _refuse_misspelt(self) -> None:
        """ModelError for a name that is nearly an argument's; `fit` says of others that the model has no such parameter."""
        if not self._parameters:
            return
        try:
            known = self._stated().parameters
        except MTLError:  # `fit` says what is wrong with the model
            return
        for name, value in self._parameters.items():
            near = get_close_matches(name, self._get_param_names(), n=1, cutoff=MISSPELT_SHARE)
            if name not in known and near:
                raise ModelError(
                    f"there is no parameter {name!r}",
                    term=f"{type(self).__name__}({name}={quoted(value)})",
                    write_instead=f"did you mean {near[0]!r}?",
                )

    def _owners(self, name: str) -> str:
        """The estimators that have a parameter of this name, the nearest first, as a clause behind others; "" for none."""
        classes, found = [ModelParameters], []
        for each in classes:
            classes += each.__subclasses__()
            if each.__name__ in sys.modules["mtldsl.estimators"].__all__ and name in each._get_param_names():
                found.append(each.__name__)
        near = get_close_matches(type(self).__name__, dict.fromkeys(found), n=NAMED_OWNERS, cutoff=0.0)
        return f"; {' and '.join(near)} {'have' if len(near) > 1 else 'has'} {name!r}" if near else ""

    def _meant(self, name: str) -> str:
        """The parameter whose name is nearest, as a question with a space behind it; "" where none is near."""
        known = [each for each in self.get_params(deep=False) if each != name]
        near = [each for each in SYNONYMS.get(name, ()) if each in known] or get_close_matches(
            name, known, n=1, cutoff=MEANT_SHARE
        )
        return f"did you mean {near[0]!r}? " if near else ""

    def _with_parameter(self, name: str) -> str:
        """The statement of `loss` and `penalty` with an argument that the loss has, and a semicolon; "" where it has none of that name."""
        if getattr(self, "model", None) is not None or not isinstance(getattr(self, "loss", None), str):
            return ""
        arguments = {one.name for one in getattr(REGISTRY.get(self.loss), "typed_fields", list)()}
        if name not in arguments:
            return ""
        call = f"{self.loss}(W, tasks, {name}={self._parameters[name]!r})"
        typed = str(self._stated_model()).replace(f"{self.loss}(W, tasks)", call, 1)
        return f"write model={typed!r}; "

    def __getattr__(self, name: str):
        given = self.__dict__.get("_parameters", {})
        if name in given:
            return given[name]
        if hasattr(type(self), name):  # a method or property that said why it is not there: once more
            try:
                return object.__getattribute__(self, name)
            except AttributeError as error:
                raise (error.__cause__ or error) from None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, and every parameter of the model: its value, its default, or None where it needs one."""
        found = super().get_params(deep)
        try:
            model = self._stated()
            found |= {name: model.defaults.get(name) for name in model.parameters}
        except MTLError:  # `fit` says what is wrong with the model
            pass
        return found | self._parameters

    def set_params(self, **params):
        """As scikit-learn's; a new model is set before its parameters. ValueError, naming the known ones, for others."""
        if "model" in params:
            self._change_model(params.pop("model"))
        own = self._get_param_names()
        mine = {name: value for name, value in params.items() if name.partition("__")[0] in own}
        super().set_params(**mine)
        known = self.get_params(deep=False)
        for name in params.keys() - mine.keys():
            if name not in known:
                raise ModelError(
                    f"Invalid parameter {name!r} for {type(self).__name__} with model={quoted(self._stated_model(), 60)}",
                    write_instead=f"{self._meant(name)}valid parameters are {', '.join(known)}",
                )
        self._parameters |= {name: value for name, value in params.items() if name not in mine}
        return self

    def _change_model(self, model) -> None:
        """Another model. Parameters of the old one that have their defaults go with it: `clone` writes these out, and a search over models
        clones first."""
        try:
            old = self._stated()
            self.model = model
            kept = self._stated().parameters
        except MTLError:  # `fit` says what is wrong
            self.model = model
            return
        for name in list(self._parameters):
            if (
                name not in kept
                and name in old.parameters
                and self._parameters[name] == old.defaults.get(name)
            ):
                del self._parameters[name]

    def _values(self, model: ModelSource) -> dict[str, Any]:
        """The values of the model's parameters. ModelError for parameters that it does not have, and where one has no value."""
        given = {name: value for name, value in self._parameters.items() if value is not None}
        known = ", ".join(model.parameters) or "none"
        strange = [name for name in given if name not in model.parameters]
        if strange:
            meant = self._with_parameter(strange[0]) or self._meant(strange[0])
            raise ModelError(
                f"the model has no parameter {strange[0]!r}",
                term=f"{type(self).__name__}(model={quoted(self._stated_model(), 60)}, {strange[0]}={quoted(given[strange[0]])})",
                write_instead=f"{meant}its parameters: {known}{'' if meant else self._owners(SYNONYMS.get(strange[0], strange)[0])}",
            )
        values = {**model.defaults, **given}
        missing = [name for name in model.parameters if values.get(name) is None]
        if missing:
            raise ModelError(
                f"the model needs {' and '.join(missing)}",
                term=f"{type(self).__name__}(model={quoted(self._stated_model(), 60)})",
                write_instead=f"write {', '.join(f'{name}=...' for name in missing)}",
            )
        return values


# --------------------------------------------------------------------------------------------------------------
# What the estimators share: a model, solved on tasks, and its linear predictions.


class MultiTaskEstimator(ModelParameters):
    """A model on tasks, solved with its certificate, whose predictions are linear."""

    #: the kinds of labels that losses of other estimators have -> which these are
    _elsewhere: ClassVar[dict[str, str]] = {"indicators": "LabelGraphClassifier"}

    fit_intercept: bool
    warm_start: bool
    tol: float
    max_seconds: float | None
    solver: str
    check: str | None
    n_jobs: int | None

    #: which tasks are learned, by position
    _learned: Any

    # ---------------------------------------------------------------------------------------------- fitting

    def _inputs(self, X, y, sample_weight=None):
        """X as numbers, with a row for each label and weight; names and number of features are kept."""
        require_y(y)
        refuse_unpaired(X, y=y, sample_weight=sample_weight)
        return checked_inputs(self, X, reset=True)

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            return list(names)
        others = list(map(str, getattr(self, "_column_names", [])))
        return None if not others or is_numbered(others) else others

    def _prepare(self, X, y, sample_weight=None, **others) -> Tasks | None:
        """The data as tasks, and what `_finish` has to know of them; None where no task is left to learn."""
        raise NotImplementedError

    def _inputs_of_solution(self, X):
        """Checked rows in the columns that the solution takes."""
        return X

    def _task_ids(self) -> tuple | None:
        """The tasks of one long table; None where they are columns."""
        return None

    def _finish(self, solution: Solution | None) -> None:
        """The attributes of a fitted estimator."""
        self.solution_ = solution
        self.n_iter_ = 1 if solution is None else max(int(solution.iterations), 1)

    def _take_weights(self, n_features: int, others, solution: Solution | None) -> None:
        """The weights and shifts of all tasks: of those that were learned the solution's, of others zeros and `others` (m,), all NaN where that is."""
        self._shift = np.array(others, dtype=float)
        self._weights = np.where(np.isnan(self._shift), np.nan, np.zeros((n_features, 1)))
        if solution is not None:
            self._weights[:, self._learned] = solution.coef
            self._shift[self._learned] = 0.0 if solution.intercept is None else solution.intercept
        self._show_weights()

    def _show_weights(self) -> None:
        """As scikit-learn shows them: of a vector y without an axis of tasks."""
        flat = self.__dict__.get("_flat", False)
        self.coef_ = self._weights[:, 0] if flat else self._weights.T
        self.intercept_ = float(self._shift[0]) if flat else self._shift

    def _problem(self, tasks: Tasks) -> Problem:
        model = self._stated()
        for word in sorted(model.words or ()):
            other = self._elsewhere.get(getattr(REGISTRY.get(word), "labels", ""))
            if other is not None:
                raise ModelError(
                    f"{word} is not a loss for {type(self).__name__}",
                    argument="model",
                    write_instead=f"use {other}",
                )
            kind: Any = REGISTRY.get(word)
            if getattr(kind, "takes_intercept", True) is False and self._intercept_in_model():
                raise ModelError(
                    f"{word} has no intercept, since {kind.intercept_reason}",
                    argument="fit_intercept",
                    write_instead="write fit_intercept=False",
                )
        return model.on(tasks, self._values(model), self._intercept_in_model())

    def _solve(self, tasks: Tasks | None) -> Solution | None:
        """The model on these tasks, solved; cross-checked where that was asked for."""
        if self.check not in (None, "subsample", "full"):
            raise wrong_option(self, "check", "write None, 'subsample' or 'full'")
        if tasks is None:
            return None
        problem = self._problem(tasks)
        warn_of_units(problem, tasks, type(self).__name__)
        return self._checked_solution(
            problem, problem.solve(warm_start=self._start(problem), **self._options())
        )

    def _options(self) -> dict[str, Any]:
        """Those of every solve; ModelError, which is a ValueError, for one that cannot be meant."""
        typed = type(self).__name__
        for name in {"fit_intercept", "warm_start", "one_standard_error"} & vars(self).keys():
            as_flag(getattr(self, name), f"{typed}({name}", ModelError)
        try:
            checked_limits(self.tol, None, self.max_seconds, False)
            threads = self._threads()
            if self.solver != "auto":
                get_solver(self.solver)
        except SolverError as error:
            raise ModelError(error.what, term=error.term, write_instead=error.write_instead) from error
        return {
            "solver": self.solver,
            "tol": self.tol,
            "max_seconds": self.max_seconds,
            "n_jobs": threads,
            "cross_check": "never",  # `check` says it
        }

    def _threads(self) -> int | None:
        """Return how many a solve has. SolverError for what cannot be meant."""
        return checked_jobs(self.n_jobs)

    def _checked_solution(self, problem: Problem, solution: Solution) -> Solution:
        if not solution.is_certified:
            warnings.warn(
                f"{type(self).__name__}: {solution.status} after {solution.iterations} iterations; {solution}",
                ConvergenceWarning,
                stacklevel=4,
            )
        if self.check is not None:
            whole = {"max_size": None} if self.check == "full" else {}
            self.cross_check_ = problem.cross_check(solution, raise_on_disagreement=True, **whole)
        return solution

    def _intercept_in_model(self) -> bool:
        return bool(self.fit_intercept)

    def _start(self, problem) -> Solution | None:
        """The last solution, where a warm start was asked for and its unknowns are those of this problem."""
        last = getattr(self, "solution_", None)
        if not self.warm_start or last is None:
            return None
        shapes = {weights.name: weights.shape for weights in problem.weights}
        fits = all(name in last.blocks and last.blocks[name].shape == shape for name, shape in shapes.items())
        return last if fits else None

    @property
    def certificate_(self):
        """Return what was proven of the fit, None where nothing was left to learn; DataError where the estimator was read back: a file does not keep
        the proof."""
        check_is_fitted(self, "solution_")
        return None if self.solution_ is None else self.solution_.certificate

    # --------------------------------------------------------------------------------------- what it shows

    @complete('write fitted.report("fit.html", X, y)')
    def report(self, file, X, y, *, groups=None, **options):
        """Write an HTML page, scored on rows that were not fitted on: `mtldsl.estimators.report(self, file, X, y)`, which takes pipelines too."""
        from mtldsl.estimators.reports import report

        return report(self, file, X, y, groups=groups, **options)

    def frame(self, long: bool = False):
        """Return the weights as a pandas table of features and tasks, the intercepts in its last row: `mtldsl.estimators.frame(self)`."""
        from mtldsl.estimators.reports import frame

        return frame(self, long)

    def importances(self):
        """Return what every feature counts, as a pandas Series: `mtldsl.estimators.importances(self)`."""
        from mtldsl.estimators.reports import importances

        return importances(self)

    def summary(self):
        """Return as text what was learned, what is proven of it, and the features that count most: `mtldsl.estimators.summary(self)`."""
        from mtldsl.estimators.reports import summary

        return summary(self)

    # ------------------------------------------------------------------------------------------- predictions

    def _scores(self, X) -> np.ndarray:
        """(n, m) X W + intercept."""
        check_is_fitted(self, "solution_")
        return self._checked(X) @ self._weights + self._shift

    def _checked(self, X):
        """New inputs; what needs no checking beyond its ends is not checked further, for a row predicted alone."""
        if (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and X.min() >= -MAX_MAGNITUDE
            and X.max() <= MAX_MAGNITUDE  # NaN is not
        ):
            return X
        return checked_inputs(self, X, reset=False)

    # ----------------------------------------------------------------------------------------------- pickles

    def __getstate__(self):
        """Without what only a warm start or a proof needs, which holds the training data; and the weights once."""
        state = dict(cast(dict, super().__getstate__()))
        if state.get("solution_") is not None:
            solution = state["solution_"] = _strip_solution(state["solution_"])
            if "_weights" in state and np.array_equal(state["_weights"], solution.coef):
                state["_weights"] = solution.coef
        if "_weights" in state:
            state.pop("coef_", None)  # is a view of them
        return state

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if "_weights" in self.__dict__:
            self._show_weights()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def _strip_solution(solution: Solution) -> Solution:
    """A solution without what only a warm start or a proof needs, and one array where a block is all of the weights."""
    blocks = {
        name: solution.coef if np.array_equal(block, solution.coef) else block
        for name, block in solution.blocks.items()
    }
    return replace(
        solution, blocks=blocks, state=None, multipliers={}, majorizations=(), proof=None, history=[]
    )


def tasks_of(X, Y: np.ndarray, weights: np.ndarray | None, feature_names, task_names) -> Tasks:
    """One X for all columns of Y; labels of weight zero are missing."""
    if weights is not None:
        Y = np.where(weights > 0, Y, np.nan)
        weights = np.where(weights > 0, weights, 1.0)
        if (weights == 1.0).all():
            weights = None
    gone = np.isnan(Y)
    if not gone.any():
        return Tasks.shared(X, Y, sample_weights=weights, feature_names=feature_names, task_names=task_names)
    empty = np.flatnonzero(gone.all(axis=0))
    if empty.size:
        name = repr(task_names[empty[0]]) if task_names else empty[0]
        raise DataError(
            f"Sample weights are zero, or labels missing, in all rows of column {name} of y",
            argument="sample_weight",
        )
    kept = ~gone.all(axis=1)
    if not kept.all():
        X, Y, weights = X[kept], Y[kept], None if weights is None else weights[kept]
    return Tasks.shared(X, Y, sample_weights=weights, feature_names=feature_names, task_names=task_names)


# --------------------------------------------------------------------------------------------------------------
# Tasks whose labels are all of one class: refused, or left out with a word.

ONE_CLASS = ("constant", "skip", "error")


def check_one_class(self) -> None:
    """ModelError for an option that is not known."""
    if self.one_class not in ONE_CLASS:
        raise wrong_option(self, "one_class", f"write one of {', '.join(map(repr, ONE_CLASS))}")


class OneTaskWarning(UserWarning):
    """Rows of tasks came without a word of their tasks, and are learned as one."""


def warn_of_one_task(self) -> None:
    """A warning that nothing said which row is of which task, as where a search kept `groups` for its folds."""
    warnings.warn(
        f"{type(self).__name__}: neither task= nor groups= says which row is of which task: all rows are one task; "
        "write task='column', or fit(X, y, groups=ids), which a search hands on after set_fit_request(groups=True)",
        OneTaskWarning,
        stacklevel=4,
    )


def warn_of_one_class(self, names: list, n_tasks: int) -> None:
    """A warning that these tasks are not learned; DataError where that was asked for."""
    _say(self, f"{len(names)} of {n_tasks} tasks have labels of one class alone: {listed_tasks(names)}")


def warn_of_no_label(self, names: list, n_tasks: int, then: str = "their scores are NaN") -> None:
    """A warning that these tasks have nothing to be learned from, and what becomes of them; DataError where that was asked for."""
    _say(
        self,
        f"{len(names)} of {n_tasks} tasks have no label, or none of weight above zero: {listed_tasks(names)}; {then}",
    )


def _say(self, said: str) -> None:
    option = getattr(self, "one_class", None)
    if option == "error":
        raise DataError(
            said,
            term=type(self).__name__,
            argument="y",
            write_instead="leave them out, or write one_class='constant' or 'skip'",
        )
    told = "" if option is None else f"; one_class={option!r}"
    warnings.warn(f"{type(self).__name__}: {said}{told}", OneClassWarning, stacklevel=5)
