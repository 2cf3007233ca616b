"""Objectives and constraints as text. What may be written: `walk`. Nothing is ever executed."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.text.kinds import kind_of, place_of
from mtldsl.language.text.source import Source
from mtldsl.language.text.syntax import MAX_DEPTH, MAX_LENGTH
from mtldsl.language.text.walk import Walk
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse_constraint", "parse_objective"]


def parse_objective(text: str | Source, names: Mapping[str, object]) -> Objective:
    """The objective that `text` states, for `minimize`.

    names : what may be written besides the words: weights, tasks, parameters, arrays and numbers

    Raises ModelError (DataError where the data do not suit a loss) that begins with file, line and column and shows the line.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
    >>> W = mtl.Weights(tasks)
    >>> parse_objective("squared_loss(W, tasks) + 0.5*trace_norm(W)", {"W": W, "tasks": tasks})
    squared_loss(W, tasks) + 0.5 * trace_norm(W)
    >>> parse_objective("squared_loss(W, tasks) + trace_nrm(W)", {"W": W, "tasks": tasks})
    Traceback (most recent call last):
    mtldsl.errors.ModelError: text:1:26: there is no word 'trace_nrm'; did you mean 'trace_norm'?
      1 | squared_loss(W, tasks) + trace_nrm(W)
        |                          ^^^^^^^^^
    """
    walk = Walk(text, names)
    value = walk.result()
    if isinstance(value, Objective):
        return value
    if isinstance(value, Constraint | RangeConstraint):
        raise walk.error("this is a constraint; the objective is a sum of losses and regularizers", walk.body)
    raise walk.error(
        f"the objective must be a sum of losses and regularizers, such as squared_loss(W, tasks) + 0.1 * l1_norm(W); "
        f"this is {kind_of(value)}{place_of(value)}",
        walk.body,
    )


def parse_constraint(text: str | Source, names: Mapping[str, object]) -> Constraint | RangeConstraint:
    """The constraint that `text` states, for `subject_to`; as `parse_objective`.

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    >>> parse_constraint("W.sum(axis=0) == 1", {"W": W})
    W.sum(axis=0) == 1
    >>> parse_constraint("S << 100", {"S": mtl.TaskPrecision(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))), "S")})
    S << 100
    """
    walk = Walk(text, names)
    value = walk.result()
    if isinstance(value, Constraint | RangeConstraint):
        # the text as typed says more than `array(3, 2)` does; names of arrays are known only here
        return replace(value, text=ast.unparse(walk.body))
    hint = "write a comparison such as W >= 0 or l1_norm(W) <= 3"
    if isinstance(value, bool | np.bool_ | np.ndarray):
        raise walk.error(f"this constraint contains no weights; {hint}", walk.body)
    if isinstance(value, LearnedUnknown):
        bounds = {"precision": f"{value} >> 0.01", "weights": f"p_norm({value}, 2) <= 1"}
        hint = f"write {bounds.get(value.kind, f'{value}.trace() <= 1')}"
    raise walk.error(
        f"a constraint is expected, this is {kind_of(value)}{place_of(value) or f'; {hint}'}", walk.body
    )
