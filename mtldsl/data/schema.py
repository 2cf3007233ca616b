"""Schema of training data, against which later inputs and tasks are held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.data.derived import filled_by
from mtldsl.data.input_checks import as_learned, elsewhere
from mtldsl.data.kernel_map import KernelMap
from mtldsl.data.scaling import Scaling
from mtldsl.data.table_description import NOTHING_KNOWN, DataDescription
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, MTLError
from mtldsl.utils.validation import listed, quoted

# --------------------------------------------------------------------------------------------------------------
# Where a `Tasks` has to be given.


def describe_value(value) -> str:
    """A value of a wrong type, in a few words.

    >>> import numpy as np
    >>> describe_value(np.ones((3, 2))), describe_value(5)
    ('an array of shape (3, 2) is not', '5 is a int, not')
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        name = type(value).__name__
        return f"{'an array' if name == 'ndarray' else f'a {name}'} of shape {shape} is not"
    return f"{quoted(value)} is a {type(value).__name__}, not"


def require_tasks(value, typed: str, error: type[MTLError] = DataError) -> Tasks:
    """The value, where it is a Tasks. `typed` is such as "score(tasks)"."""
    if isinstance(value, Tasks):
        return value
    raise error(
        f"{describe_value(value)} Tasks",
        term=typed,
        write_instead="write Tasks.shared(X, Y), or one of its siblings",
    )


@dataclass(frozen=True, eq=False)
class Schema:
    """Names and numbers of the features and tasks that something was learned on, and what was done to the inputs before.

    shape : (features, tasks) of what was learned; the features are those of the kernels where there are any
    """

    shape: tuple[int, int]
    feature_names: tuple[str, ...]
    task_names: tuple[str, ...]
    scaling: Scaling | None = None
    kernel_map: KernelMap | None = None
    fill: np.ndarray | None = (
        None  # (d,) what stands in the place of inputs that are missing; None: they are refused
    )
    description: DataDescription = NOTHING_KNOWN  # of the table behind the tasks

    @classmethod
    def of(cls, tasks: Tasks) -> Schema:
        shape, names = (tasks.n_features, tasks.n_tasks), (tasks.feature_names, tasks.task_names)
        fill = None if tasks.imputation is None else tasks.imputation.values
        return cls(shape, *names, tasks.scaling, tasks.kernel_map, fill, tasks.description)

    def inputs(self, X) -> Any:
        """New inputs as the weights take them: scaled, or the features of their kernels. DataError where the columns do not fit."""
        if self.kernel_map is not None:
            _refuse_tasks(X)
            return self.kernel_map.transform(X, "predict: X")
        return self.scaled(self.columns(X))

    def columns(self, X):
        """(n, d) as given, dense or sparse; DataError for other columns than those learned on."""
        _refuse_tasks(X)
        return as_learned(X, self.feature_names, "predict: X", "the weights were learned on", self.fill)

    def scaled(self, X):
        """Columns on the scale of training."""
        return X if self.scaling is None else self.scaling.apply(X)

    def require_one_each(self, X: list) -> None:
        """DataError unless there are as many input matrices as tasks."""
        if len(X) != self.shape[1]:
            raise DataError(
                f"predict: {len(X)} input matrices for {self.shape[1]} tasks", write_instead="give one a task"
            )

    def alike(self, tasks, typed: str) -> Tasks:
        """The tasks with the features that were learned on, on the same scale; DataError where they are not those of training."""
        require_tasks(tasks, typed)
        if tasks.kernel_map is not None and tasks.kernel_map != self.kernel_map:
            raise DataError(
                "the features of these tasks are of other kernels, or of the rows of other tasks, than those of "
                "training",
                term=typed,
                write_instead="give raw tasks, or test.with_kernels(train.kernel_map)",
            )
        raw = (
            self.kernel_map if tasks.kernel_map is None else None
        )  # the map that raw features are to go through
        features = self.shape[0] if raw is None else len(raw.feature_names)
        if (tasks.n_features, tasks.n_tasks) != (features, self.shape[1]):
            write = "give the features of training"
            if tasks.n_features == features:
                missing = "; where labels are missing, give NaN" if tasks.n_tasks < self.shape[1] else ""
                write = f"give all tasks of training in their order, {listed(self.task_names)}{missing}"
            raise DataError(
                f"the tasks are {tasks.n_features} features x {tasks.n_tasks} tasks, the weights "
                f"{features} x {self.shape[1]}",
                term=typed,
                write_instead=write,
            )
        self._refuse_strangers(tasks, typed, self.feature_names if raw is None else raw.feature_names)
        if self.description.signs:  # labels 0/1 of what was learned on -1 and +1
            tasks.refuse_01(typed)
        if self.fill is not None:
            tasks = filled_by(tasks, self.fill)
        if self.scaling is not None and tasks.scaling is None:
            tasks = tasks.scaled_by(self.scaling)
        return tasks if raw is None else tasks.with_kernels(raw)

    def _refuse_strangers(self, tasks: Tasks, typed: str, feature_names: tuple[str, ...]) -> None:
        for what, learned, given in (
            ("feature", feature_names, tasks.feature_names),
            ("task", self.task_names, tasks.task_names),
        ):
            name = elsewhere(given, learned)
            if name is not None:
                raise DataError(
                    f"{what} {name!r} is number {given.index(name)} here, but was {learned.index(name)} in training",
                    term=typed,
                    write_instead=f"give the {what}s in the order {listed(learned)}",
                )
        if tasks.scaling is not None and not (self.scaling is not None and tasks.scaling == self.scaling):
            raise DataError(
                "these tasks were standardised with statistics other than the training tasks'",
                term=typed,
                write_instead="give raw tasks, or test.scaled_by(train.scaling)",
            )


def _refuse_tasks(X) -> None:
    """DataError where Tasks are given in place of inputs."""
    if hasattr(X, "task_names"):
        raise DataError(
            term="predict(tasks)",
            write_instead="give the inputs, tasks.X or tasks.inputs; score(tasks) compares with labels",
        )


def is_list_of_matrices(X) -> bool:
    """Tell whether these are the inputs of several tasks, one matrix (or the matrices of several kernels) a task."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and _is_matrix(X[0])


def _is_matrix(X) -> bool:
    """Tell whether this is what one task is given to predict: a matrix, or those of several kernels."""
    shape = getattr(X, "shape", None)
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], list | tuple | np.ndarray) and np.shape(X[0]) != ()
    return isinstance(X, dict) or (isinstance(shape, tuple) and len(shape) == 2)
