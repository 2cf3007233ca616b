"""What the estimators share: a model, solved on tasks, and its linear predictions."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mtldsl.atoms.function import REGISTRY
from mtldsl.errors import DataError, ModelError, SolverError
from mtldsl.estimators.columns import require_y
from mtldsl.estimators.inputs import checked_inputs, refuse_unpaired
from mtldsl.estimators.model_parameters import ModelParameters
from mtldsl.problem import Problem
from mtldsl.solution.solution import Solution
from mtldsl.solvers.limits import checked_jobs, checked_limits
from mtldsl.solvers.registry import get_solver
from mtldsl.tasks import Tasks
from mtldsl.values.number import quoted
from mtldsl.values.option import as_flag
from mtldsl.values.size import LARGEST

__all__ = ["MultiTaskEstimator"]


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
        return None if names is None else list(names)

    def _prepare(self, X, y, sample_weight=None, **others) -> Tasks | None:
        """The data as tasks, and what `_finish` has to know of them; None where no task is left to learn."""
        raise NotImplementedError

    def _task_ids(self) -> tuple | None:
        """The tasks of one long table; None where they are columns."""
        return None

    def _finish(self, solution: Solution | None) -> None:
        """The attributes of a fitted estimator."""
        self.solution_ = solution
        self.n_iter_ = 1 if solution is None else max(int(solution.iterations), 1)

    def _with(self, solution):
        """The estimator, fitted to it."""
        self._finish(solution)
        return self

    def _scores_of(self, points: list, X, y, options: dict) -> list[float]:
        """`score` of each of several points, which have what `_finish` asks of a solution; y as `_read` gives it."""
        return [float(self._with(point).score(X, y, **options)) for point in points]

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
        return model.on(tasks, self._values(model), self._intercept_in_model())

    def _solve(self, tasks: Tasks | None) -> Solution | None:
        """The model on these tasks, solved; cross-checked where that was asked for."""
        if self.check not in (None, "subsample", "full"):
            raise ModelError(
                f"check={quoted(self.check)}",
                term=type(self).__name__,
                write_instead="write None, 'subsample' or 'full'",
            )
        if tasks is None:
            return None
        problem = self._problem(tasks)
        return self._checked_solution(
            problem, problem.solve(warm_start=self._start(problem), **self._options())
        )

    def _options(self) -> dict[str, Any]:
        """Those of every solve; ModelError, which is a ValueError, for one that cannot be meant."""
        typed = type(self).__name__
        for name in {"fit_intercept", "warm_start", "per_task", "one_standard_error"} & vars(self).keys():
            as_flag(getattr(self, name), f"{typed}({name}", ModelError)
        try:
            checked_limits(self.tol, None, self.max_seconds, False)
            checked_jobs(self.n_jobs)
            if self.solver != "auto":
                get_solver(self.solver)
        except SolverError as error:
            raise ModelError(error.what, term=error.term, write_instead=error.write_instead) from error
        return {
            "solver": self.solver,
            "tol": self.tol,
            "max_seconds": self.max_seconds,
            "n_jobs": self.n_jobs,
            "cross_check": "never",  # `check` says it
        }

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
        """What was proven of the fit, None where nothing was left to learn; DataError where the estimator was read back: a file does not keep
        the proof."""
        check_is_fitted(self, "solution_")
        return None if self.solution_ is None else self.solution_.certificate

    # --------------------------------------------------------------------------------------- what it shows

    def report(self, file, X, y, *, groups=None, **options):
        """Write an HTML page, scored on rows that were not fitted on: `mtldsl.estimators.report(self, file, X, y)`, which takes pipelines too."""
        from mtldsl.estimators.reports import report

        return report(self, file, X, y, groups=groups, **options)

    def frame(self, long: bool = False):
        """Return the weights as a pandas table of features and tasks, the intercepts in its last row: `Solution.frame`."""
        from mtldsl.estimators.reports import solution_of

        return solution_of(self).frame(long)

    def importances(self):
        """Return what every feature counts, as a pandas Series: `mtldsl.estimators.importances(self)`."""
        from mtldsl.estimators.reports import importances

        return importances(self)

    def summary(self) -> None:
        """Print what was learned, what is proven of it, and the features that count most: `mtldsl.estimators.summary(self)`."""
        from mtldsl.estimators.reports import summary

        summary(self)

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
            and X.min() >= -LARGEST
            and X.max() <= LARGEST  # NaN is not
        ):
            return X
        return checked_inputs(self, X, reset=False)

    def _read(self, y):
        """What `score` takes in the place of y, where many fits are scored on it."""
        return y

    # ----------------------------------------------------------------------------------------------- pickles

    def __getstate__(self):
        """Without what only a warm start or a proof needs, which holds the training data; and the weights once."""
        state = dict(cast(dict, super().__getstate__()))
        if state.get("solution_") is not None:
            solution = state["solution_"] = _alone(state["solution_"])
            if "_weights" in state and np.array_equal(state["_weights"], solution.coef):
                state["_weights"] = solution.coef
        if "solutions_" in state:
            state["solutions_"] = [_alone(each) for each in state["solutions_"]]
        if "_weights" in state:
            state.pop("coef_", None)  # is a view of them
        return state

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if "_weights" in self.__dict__:
            self.coef_ = self._weights[:, 0] if self.__dict__.get("_flat") else self._weights.T

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def _alone(solution: Solution) -> Solution:
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
