"""The same model on other data: every Weights and every Tasks of the tree exchanged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from mtldsl.atoms.function import Loss, MatrixFunction
from mtldsl.atoms.losses import LabelGraphLoss
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constraint import Argument, Constraint
from mtldsl.language.expressions.expression import Affine, Unknown
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.unknowns.label_graph import score_tasks
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint
from mtldsl.language.words.fitted import fitted
from mtldsl.language.words.shares import columns_of, shares_of
from mtldsl.tasks import Tasks
from mtldsl.tasks.names import elsewhere

__all__ = ["replace_tasks"]


def replace_tasks(
    objective: Objective,
    constraints: Iterable[Constraint | RangeConstraint],
    tasks: Tasks,
    some: bool = False,
) -> tuple[Objective, list[Constraint | RangeConstraint]]:
    """Parameters stay shared with the old model; weights are new. ModelError where sizes differ or several Tasks are used.

    some : the tasks may be some of the old ones, in their order; ModelError where a term says something of each task, or mixes them
    """
    losses = [term for term in objective.terms if term.is_loss]
    old = {id(term.source or term.tasks) for term in losses}
    shares = shares_of(losses) if len(old) > 1 else None
    if len(old) > 1 and shares is None:
        raise ModelError(
            f"this model uses {len(old)} different Tasks, so it is not clear which to replace",
            term=objective.text,
        )
    exchanged: dict[Unknown, Unknown] = {}
    relearned: dict[LearnedUnknown, LearnedUnknown] = {}

    def relearn(unknown):
        if not isinstance(unknown, LearnedUnknown):  # a matrix that is given
            return unknown
        return relearned.setdefault(unknown, unknown.of_tasks(tasks))

    def renew(argument: Argument) -> Affine:
        parts = []
        for part in argument.parts:
            weights = part.weights
            if weights not in exchanged:
                own = weights.tasks
                m = own.n_tasks if some else tasks.n_tasks
                if (tasks.n_features, m) != (own.n_features, own.n_tasks):
                    raise ModelError(
                        f"{weights.name} was made for {(own.n_features, own.n_tasks)}, but the new tasks need "
                        f"{(tasks.n_features, tasks.n_tasks)} (features x tasks)"
                    )
                for kind, new, old_names in (
                    ("feature", tasks.feature_names, weights.tasks.feature_names),
                    ("task", tasks.task_names, weights.tasks.task_names),
                ):
                    name = None if some and kind == "task" else elsewhere(new, old_names)
                    if name is not None:
                        raise ModelError(
                            f"{kind} {name!r} is number {new.index(name)} of the new tasks, but was number "
                            f"{old_names.index(name)}",
                            write_instead=f"give the {kind}s in the order of the old ones",
                        )
                exchanged[weights] = weights.of_tasks(tasks)
            parts.append(replace(part, weights=exchanged[weights]))
        shape = _shape_of_some(argument, tasks) if some else argument.shape
        tree, precedence, offset = argument.tree, argument.precedence, argument.offset
        return Affine(parts, shape, argument.text, argument.latex, tree, precedence, offset)

    terms = []
    for term in objective.terms:
        if some:
            _require_any_tasks(term, term.text, tasks)
        own = tasks if term.is_loss else None
        argument: Any = relearn(term.argument) if term.of_learned else renew(term.argument)
        if own is not None and shares is not None:
            own = shares.of(tasks, term)
        elif own is not None and cast(Tasks, term.data).n_tasks < tasks.n_tasks:
            columns = columns_of(term.argument)
            own = own if columns is None else own.select(columns)
        if isinstance(term.atom, LabelGraphLoss):
            own = score_tasks(tasks, term.atom.cliques, term.atom_text)
            term = replace(term, source=tasks)
        elif isinstance(term.atom, Loss):
            term = replace(term, atom=fitted(term.atom, cast(Tasks, own), term.atom_text))
        terms.append(
            replace(
                term,
                argument=argument,
                tasks=own,
                learned=tuple(map(relearn, term.learned)),
            )
        )
    if some:
        for c in constraints:
            if not isinstance(c, RangeConstraint):
                _require_any_tasks(c, c.text, tasks)
    return Objective(terms), [
        replace(c, unknown=relearn(c.unknown))
        if isinstance(c, RangeConstraint)
        else replace(c, argument=renew(c.argument))
        for c in constraints
    ]


def _shape_of_some(argument: Argument, tasks: Tasks) -> tuple[int, int]:
    """The shape that an expression of all tasks has over some of them. ModelError where it mixes tasks, or adds a number for each."""
    if argument.offset is not None or any(part.right is not None for part in argument.parts):
        raise ModelError(
            f"{argument.text} says something of each task, so that none can be left out", term=argument.text
        )
    return argument.shape[0], tasks.n_tasks


def _require_any_tasks(one, text: str, tasks: Tasks) -> None:
    """ModelError where a term or a constraint holds numbers of each task, or a graph of them."""
    known = [matrix for matrix in getattr(one, "learned", ()) if not isinstance(matrix, LearnedUnknown)]
    wrong = "it is given a matrix of all tasks" if known else None
    if isinstance(one.atom, LabelGraphLoss):
        wrong = "its edges are between labels"
    elif isinstance(one.atom, MatrixFunction):
        wrong = wrong or one.atom.check(_shape_of_some(one.argument, tasks))
        if (
            wrong is None
            and not getattr(one, "learned", ())
            and not _is_symmetric(one.atom, one.argument.shape)
        ):
            wrong = "it says something of the order of tasks"
    if wrong:
        raise ModelError(f"no task can be left out of this term: {wrong}", term=text)


def _is_symmetric(function: MatrixFunction, shape: tuple[int, int]) -> bool:
    """Whether it takes tasks in any order: seen from its values at random weights, whose columns change places."""
    W = np.random.default_rng(0).normal(size=shape)
    values = [function.value(W), function.value(np.roll(W, 1, axis=1))]
    return bool(np.isclose(*values, rtol=1e-6) or not np.isfinite(values).any())
