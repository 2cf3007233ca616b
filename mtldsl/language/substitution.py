"""Substitution of other tasks in a model, and its parts where losses share the tasks out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.data.input_checks import elsewhere
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.language.arguments import fit_loss_to_tasks
from mtldsl.language.constraints import Constraint, RangeConstraint
from mtldsl.language.expressions import Affine, AffineTerm
from mtldsl.language.label_graph import score_tasks
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import picked_rows
from mtldsl.language.weights import Weights

# --------------------------------------------------------------------------------------------------------------
# Which tasks each loss is of, where every loss takes some columns of the weights: a loss for each kind of tasks.


@dataclass(frozen=True, eq=False)
class TaskPartition:
    """A model with a loss for each kind of tasks.

    tasks   : all tasks that have a loss, in the order of the weights' columns
    terms   : one loss for each kind
    columns : for each of these the positions of its tasks in `tasks`, in the order of the loss
    """

    tasks: Tasks
    terms: tuple[Term, ...]
    columns: tuple[np.ndarray, ...]

    def of(self, tasks: Tasks, term: Term) -> Tasks:
        """Other data of all tasks, as this loss sees them."""
        # a second loss on the same columns is none of `terms`
        mine: Any = columns_of(term.argument)
        theirs: list[Any] = [columns_of(one.argument) for one in self.terms]
        return tasks.select(
            self.columns[next(k for k, one in enumerate(theirs) if np.array_equal(one, mine))]
        )


def shares_of(losses: Sequence[Term]) -> TaskPartition | None:
    """The shares of losses whose arguments are columns of weights for the same tasks, no column under two different sets of them. None
    for any other model: there the first loss predicts.
    """
    if len(losses) < 2:
        return None
    known = [(term, columns_of(term.argument)) for term in losses]
    whole = losses[0].argument.parts[0].weights.tasks
    parts = [part for term in losses for part in term.argument.parts]
    if not whole.in_memory or any(part.weights.tasks is not whole for part in parts):
        return None
    distinct: dict[tuple[int, ...], Term] = {}
    for term, columns in known:
        if columns is None or term.source is not None:
            return None
        distinct.setdefault(tuple(columns.tolist()), term)
    every = [column for columns in distinct for column in columns]
    if len(distinct) < 2 or len(set(every)) < len(every):
        return None
    if not all(_is_of(whole, np.array(columns), term.tasks) for columns, term in distinct.items()):
        return None
    used = np.sort(every)
    tasks = whole if len(used) == whole.n_tasks else whole.select(used)
    places = tuple(np.searchsorted(used, columns) for columns in distinct)
    return TaskPartition(tasks, tuple(distinct.values()), places)


def columns_of(argument: Affine) -> np.ndarray | None:
    """The columns that every part of an expression takes of its weights, as in (L + S)[:, [0, 2]]; None where rows are mapped, tasks are
    mixed, or the parts take different columns. Weights that tasks share have no column of one task."""
    of_tasks = [part for part in argument.parts if not part.weights.shared]
    found: list[Any] = [_picked(part.right, part.weights.shape[1]) for part in of_tasks if part.left is None]
    if not found or len(found) < len(of_tasks) or any(one is None for one in found):
        return None
    first = found[0]
    return first if all(np.array_equal(one, first) for one in found) else None


def intercepts_of(argument: Affine) -> dict[str, tuple[Weights, int]]:
    """{name of a block of intercepts: (whose they are, how many)}. Columns of weights have intercepts of their own: those
    of W[:, :2] are "W.intercept[0:2]".

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 4))), intercept=True)
    >>> list(intercepts_of(W)), list(intercepts_of(W[:, [0, 1, 3]]))
    (['W.intercept'], ['W.intercept[0:2, 3]'])
    """
    found: dict[str, tuple[Weights, int]] = {}
    for part in argument.parts:
        weights: Any = part.weights
        if weights.intercept:
            some = _some(part)
            name = f"{weights.name}.intercept" + ("" if some is None else f"[{_ranges(some)}]")
            found[name] = weights, weights.shape[1] if some is None else len(some)
    return found


def _some(part) -> np.ndarray | None:
    """The columns that a part takes of its weights, where they are fewer than all."""
    n = part.weights.shape[1]
    columns = _picked(part.right, n)
    return None if columns is None or len(columns) == n else columns


def _ranges(columns) -> str:
    """Such as 0:2, 3."""
    runs = np.split(columns, np.flatnonzero(np.diff(columns) != 1) + 1)
    return ", ".join(f"{run[0]}:{run[-1] + 1}" if len(run) > 1 else f"{run[0]}" for run in runs)


def why_not_intercepts(losses: Sequence[Term]) -> str | None:
    """None where no intercept belongs to two different sets of columns, else one sentence."""
    seen: dict[Any, list[np.ndarray]] = {}
    for term in losses:
        for part in term.argument.parts:
            if not part.weights.intercept:
                continue
            some = _some(part)
            mine = np.arange(part.weights.shape[1]) if some is None else some
            for other in seen.setdefault(part.weights, []):
                if not np.array_equal(other, mine) and np.intersect1d(other, mine).size:
                    return f"{term.atom_text} and a loss before it share some of the intercepts of {part.weights.name}, and not others"
            seen[part.weights].append(mine)
    return None


def _picked(right, n_columns: int) -> np.ndarray | None:
    if right is None:
        return np.arange(n_columns)
    columns = picked_rows(right.T)
    return columns if columns is not None and np.unique(columns).size == columns.size else None


def _is_of(whole: Tasks, columns: np.ndarray, own: Tasks | None) -> bool:
    """Tell whether the tasks of a loss are these of the whole: the same labels of the same rows."""
    if (
        own is None
        or not own.in_memory
        or own.is_shared != whole.is_shared
        or own.n_features != whole.n_features
    ):
        return False
    expected = whole.select(columns)
    if not np.array_equal(expected.counts, own.counts) or not np.array_equal(expected.targets, own.targets):
        return False
    if own.is_shared:
        return _same(expected.X, own.X)
    return all(_same(one, other) for one, other in zip(expected.inputs, own.inputs, strict=True))


def _same(one, other) -> bool:
    if one is other:
        return True
    if one.shape != other.shape or sparse.issparse(one) != sparse.issparse(other):
        return False
    return (one != other).nnz == 0 if sparse.issparse(one) else bool(np.array_equal(one, other))


# --------------------------------------------------------------------------------------------------------------
# The same model on other data: every Weights and every Tasks of the tree exchanged.


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
    exchanged: dict[Weights, Weights] = {}
    relearned: dict[LearnedUnknown, LearnedUnknown] = {}

    def relearn(unknown):
        if not isinstance(unknown, LearnedUnknown):  # a matrix that is given
            return unknown
        return relearned.setdefault(unknown, unknown.of_tasks(tasks))

    def renew(argument: Affine) -> Affine:
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
            right = np.ones((1, tasks.n_tasks)) if some and _is_repeated(part) else part.right
            parts.append(replace(part, weights=exchanged[weights], right=right))
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
            term = replace(term, atom=fit_loss_to_tasks(term.atom, cast(Tasks, own), term.atom_text))
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


def _shape_of_some(argument: Affine, tasks: Tasks) -> tuple[int, int]:
    """The shape that an expression of all tasks has over some of them. ModelError where it mixes tasks, or adds a number for each."""
    if argument.offset is not None or any(
        part.right is not None and not _is_repeated(part) for part in argument.parts
    ):
        raise ModelError(
            f"{argument.text} says something of each task, so that none can be left out", term=argument.text
        )
    shared = all(part.weights.shared and part.right is None for part in argument.parts)
    return argument.shape[0], argument.shape[1] if shared else tasks.n_tasks


def _is_repeated(part: AffineTerm) -> bool:
    """Tell whether it is a column that all tasks share, once a task."""
    right = part.right
    return (
        part.weights.shared
        and isinstance(right, np.ndarray)
        and right.shape[0] == 1
        and bool(np.all(right == 1.0))
    )


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
    """Tell whether it takes tasks in any order: seen from its values at random weights, whose columns change places."""
    W = np.random.default_rng(0).normal(size=shape)
    values = [function.value(W), function.value(np.roll(W, 1, axis=1))]
    return bool(np.isclose(*values, rtol=1e-6) or not np.isfinite(values).any())
