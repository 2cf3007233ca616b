"""The same model on other data: every Weights and every Tasks of the tree exchanged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mtldsl.atoms.function import Loss
from mtldsl.atoms.losses import LabelGraphLoss
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constraint import Argument, Constraint
from mtldsl.language.expressions.expression import Affine, Unknown
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.unknowns.label_graph import score_tasks
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint
from mtldsl.language.words.fitted import fitted
from mtldsl.tasks import Tasks
from mtldsl.tasks.names import elsewhere

__all__ = ["replace_tasks"]


def replace_tasks(
    objective: Objective, constraints: Iterable[Constraint | RangeConstraint], tasks: Tasks
) -> tuple[Objective, list[Constraint | RangeConstraint]]:
    """Parameters stay shared with the old model; weights are new. ModelError where sizes differ or several Tasks are used."""
    old = {id(term.source or term.tasks) for term in objective.terms if term.is_loss}
    if len(old) > 1:
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
                if (tasks.n_features, tasks.n_tasks) != (own.n_features, own.n_tasks):
                    raise ModelError(
                        f"{weights.name} was made for {(own.n_features, own.n_tasks)}, but the new tasks need "
                        f"{(tasks.n_features, tasks.n_tasks)} (features x tasks)"
                    )
                for kind, new, old_names in (
                    ("feature", tasks.feature_names, weights.tasks.feature_names),
                    ("task", tasks.task_names, weights.tasks.task_names),
                ):
                    name = elsewhere(new, old_names)
                    if name is not None:
                        raise ModelError(
                            f"{kind} {name!r} is number {new.index(name)} of the new tasks, but was number "
                            f"{old_names.index(name)}",
                            write_instead=f"give the {kind}s in the order of the old ones",
                        )
                exchanged[weights] = weights.of_tasks(tasks)
            parts.append(replace(part, weights=exchanged[weights]))
        return Affine(
            parts, argument.shape, argument.text, argument.latex, argument.precedence, argument.offset
        )

    terms = []
    for term in objective.terms:
        own, argument = tasks if term.is_loss else None, renew(term.argument)
        if isinstance(term.atom, LabelGraphLoss):
            own = score_tasks(tasks, term.atom.cliques, term.atom_text)
            term = replace(term, source=tasks)
        elif isinstance(term.atom, Loss):
            term = replace(term, atom=fitted(term.atom, tasks, term.atom_text))
        terms.append(
            replace(
                term,
                argument=argument,
                tasks=own,
                learned=tuple(map(relearn, term.learned)),
            )
        )
    return Objective(terms), [
        replace(c, unknown=relearn(c.unknown))
        if isinstance(c, RangeConstraint)
        else replace(c, argument=renew(c.argument))
        for c in constraints
    ]
