"""`Weights`: the unknown matrix W of a model, with one column for each task."""

from __future__ import annotations

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.display.math import escape_name
from mtldsl.errors import ModelError
from mtldsl.language.expressions import Affine, AffineTerm
from mtldsl.language.scalars import ONE, block, require_identifier
from mtldsl.utils.validation import as_flag, complete, quoted


class Weights(Affine):
    """The unknown weights W (d, m): column i is task i's weight vector; task i's predictions are X_i w_i (+ intercept_i).

    intercept : learn one number per task as well; no regularizer and no constraint ever touches it.
    shared    : one vector w (d, 1) for all tasks, which a sum repeats for each: `squared_loss(W + w, tasks)`.
    name      : how the model prints it and how the solution calls it (`solution["W"]`); two matrices in one model need two names.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
    >>> W = mtl.Weights(tasks)
    >>> W.shape
    (3, 2)
    >>> 2 * W[[0, 2], :]
    2 * W[[0, 2], :]
    >>> w = mtl.Weights(tasks, name="w", shared=True)
    >>> w.shape, (W + w).shape
    ((3, 1), (3, 2))
    """

    @complete("write Weights(tasks)")
    def __init__(self, tasks: Tasks, intercept: bool = False, name: str = "W", shared: bool = False):
        if not isinstance(tasks, Tasks):
            raise ModelError(
                "the first argument must be a Tasks object",
                term=f"Weights({type(tasks).__name__})",
                write_instead="write Weights(Tasks.shared(X, Y))",
            )
        require_identifier(name, "Weights", "'W' or 'L'")
        if not isinstance(intercept, bool | np.bool_):
            raise ModelError(
                term=f"Weights(..., intercept={quoted(intercept)})",
                write_instead="write intercept=True or intercept=False",
            )
        self.shared = as_flag(shared, "Weights(..., shared", ModelError)
        if shared and intercept:
            raise ModelError(
                "intercepts are of tasks, and these weights are of all tasks together",
                term="Weights(..., intercept=True, shared=True)",
                write_instead="give the intercept to the weights beside them",
            )
        self.tasks, self.intercept, self.name = tasks, bool(intercept), name
        latex = name if len(name) == 1 else rf"\mathrm{{{escape_name(name)}}}"
        super().__init__((), (tasks.n_features, self.n_columns), name, latex, block(name))

    @property
    def parts(self) -> tuple[AffineTerm, ...]:
        """Itself; made when asked for, since a part that it kept would keep it, and its data, until a collector of circles comes."""
        return (AffineTerm(self, ONE),)

    @property
    def n_columns(self) -> int:
        return 1 if self.shared else self.tasks.n_tasks

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return what each column is of: a task."""
        return ("all tasks",) if self.shared else self.tasks.task_names

    def of_tasks(self, tasks: Tasks) -> Weights:
        """The same unknown for other data."""
        return Weights(tasks, self.intercept, self.name, self.shared)

    def __getattr__(self, name: str):
        if name == "value":  # where cvxpy has it
            raise AttributeError(
                f"{self.name} is an unknown and has no value; write solution.{self.name}, with solution = problem.solve()",
                name=name,
                obj=None,
            )
        return super().__getattribute__(name)  # Python's own error
