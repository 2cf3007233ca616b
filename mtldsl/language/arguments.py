"""Checks of a word's arguments: matrices, groups, trees and similarities, with names turned into positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from types import SimpleNamespace
from typing import Any

import numpy as np

from mtldsl.atoms import learned_structures, metrics
from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm, checked_weights
from mtldsl.atoms.learned_structures.task_kernels import TaskKernel
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import Atom
from mtldsl.atoms.regularizers.quadratic import checked_symmetric
from mtldsl.data.labels import require_classes
from mtldsl.data.task_data import require_in_memory
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError
from mtldsl.language.constraints import quote_value
from mtldsl.language.expressions import Affine, position_of
from mtldsl.language.learned_unknowns import KernelWeights, LearnedUnknown, checked_exponent
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import ONE, Scalar, constant_text, constructor_text, declaration_hint
from mtldsl.language.task_similarity import TaskSimilarity, groups_of_tree
from mtldsl.utils.validation import as_float, as_list, as_whole, groups_of_labels, quoted

# --------------------------------------------------------------------------------------------------------------
# A loss meets its data: do labels, sample weights and parameters suit each other?


def fit_loss_to_tasks(atom: Loss, tasks: Tasks, typed: str) -> Loss:
    """The loss for these tasks; DataError or ModelError where they do not suit each other."""
    tasks.require_labels("sign" if atom.labels == "classes" else atom.labels, typed)
    if atom.labels == "classes":
        require_classes(tasks, typed)
        return atom.for_tasks(tasks.task_names, None)
    if atom.labels == "time":
        require_in_memory(
            tasks,
            "the rows at risk of a task are wanted together",
            typed,
            DataError,
            rows="the rows of these tasks",
        )
    if tasks.is_weighted and not atom.weighs_samples:
        raise DataError(
            f"these tasks have sample weights, and {atom.name} counts samples",
            term=typed,
            write_instead="repeat rows instead, or use a loss that is a sum over samples, such as hinge_loss",
        )
    if atom.labels != "sign":
        return atom.for_tasks(tasks.task_names, None)
    positives = tasks.positives
    return atom.for_tasks(
        tasks.task_names, list(zip(positives.tolist(), (tasks.counts - positives).tolist(), strict=True))
    )


# --------------------------------------------------------------------------------------------------------------
# A matrix that a word learns: the unknown that stands there, or a given matrix, where it fits.


def unknown_of(description: learned_structures.Learned) -> type[LearnedUnknown]:
    """The class of unknowns that stand where a structure learns such a matrix."""
    return next(
        kind
        for kind in LearnedUnknown.__subclasses__()
        if (kind.axis, kind.kind) == (description.axis, description.kind)
    )


def checked_matrix(matrix, description: learned_structures.Learned, W: Affine, typed: str):
    """The unknown, or the matrix that is given, where it fits; ModelError where it does not."""
    wanted, side = unknown_of(description), W.shape[0 if description.axis == "features" else 1]
    if isinstance(matrix, LearnedUnknown):
        if not isinstance(matrix, wanted):
            raise ModelError(
                f"{description.name} must be a {wanted.__name__}, and {matrix.text} is a {type(matrix).__name__}",
                write_instead=f"write {description.name} = " + constructor_text(wanted.__name__),
            )
        if matrix.side != side:
            raise ModelError(
                f"{matrix.text} is {matrix.side} x {matrix.side}, but {W.text} has {side} "
                f"{'rows (features)' if description.axis == 'features' else 'columns (tasks)'}; the word takes an expression of "
                "the full shape"
            )
        return matrix
    if isinstance(matrix, (Affine, Objective, Scalar, Tasks, str, Real)) or matrix is None:
        given = f", or an array ({side}, {side}) that fixes it" if description.kind == "precision" else ""
        raise ModelError(
            f"{description.name} must be a {wanted.__name__}{given}; this is {short(matrix)}"
            + declaration_hint(wanted.__name__, description.name)
        )
    if description.kind == "covariance":
        sides = (
            "rows=inv(D), columns=eye(m)"
            if description.axis == "features"
            else "rows=eye(d), columns=inv(Omega)"
        )
        raise ModelError(
            f"{description.name} is a matrix that is learned, and an array is given; with a given covariance the penalty "
            f"is 2 * kronecker_ridge({W.text}, {sides})"
        )
    fixed = checked_symmetric(matrix, typed, positive=True)
    if fixed.side != side:
        raise ModelError(
            f"{description.name} is given as a {fixed.side} x {fixed.side} matrix, but {W.text} needs {side} x {side}"
        )
    return fixed


def short(value) -> str:
    if isinstance(value, (list, tuple)) and any(isinstance(item, metrics.Metric) for item in value):
        return repr(list(value))
    if callable(value) and not isinstance(value, type):  # a user's own function
        return getattr(value, "__name__", repr(value)[:40])
    return constant_text(value)


# --------------------------------------------------------------------------------------------------------------
# The word `mkl_norm`: its similarities become kernels between the tasks of W, and theta an unknown, a given array, or p.


#: Characters up to which similarities are printed one by one.
SHOWN_CHARACTERS = 80


def mkl_norm(W: Affine, similarities, theta, p, typed: str) -> Objective:
    if not isinstance(similarities, (list, tuple)) or not similarities:
        hint = "; theta comes third" if isinstance(similarities, (LearnedUnknown, int, float)) else ""
        raise ModelError(f"similarities must be a list such as [union(), individual()]{hint}")
    for one in similarities:
        if callable(one):
            name = getattr(one, "__name__", "union")
            raise ModelError(f"{name} is a helper that makes a similarity", write_instead=f"write {name}()")
        if not isinstance(one, TaskSimilarity):
            raise ModelError(
                f"{quote_value(one)} is not a similarity of tasks",
                write_instead="write union(), individual(), tree(parents), ..., and a matrix as "
                "from_kernel(R) or from_similarity(Q)",
            )
    if (theta is None) == (p is None):
        raise ModelError(
            "give either theta, KernelWeights that the model bounds by p_norm(theta, 2) <= 1, or p, as in "
            "mkl_norm(W, similarities, p=2)" + declaration_hint("KernelWeights", "theta")
        )
    sides = _sides(W)
    kernels = tuple(kernel for one in similarities for kernel in one.kernels(sides, typed))
    kernels = _told_apart(kernels)
    atom = MKLNorm(kernels, 2.0 if p is None else checked_exponent(p, typed))
    problem = atom.check(W.shape)
    if problem:
        raise ModelError(f"{problem}")
    learned, symbols = (), None
    if theta is not None:
        if isinstance(theta, KernelWeights) and theta.similarities:
            number = sum(len(one.kernels(sides, typed)) for one in theta.similarities)
            if number != len(kernels):
                raise ModelError(
                    f"{theta.text} was made for other similarities, which are {number} kernels, and these are {len(kernels)}",
                    write_instead="write KernelWeights(similarities) with these",
                )
        theta = _checked_theta(theta, len(kernels), typed)
        learned = (theta,)
        symbols = {"theta": theta.latex if isinstance(theta, KernelWeights) else r"\theta"}
    return Objective([Term(ONE, atom, W, typed, atom.latex(W.latex, symbols), learned=learned)])


def _checked_theta(theta, n: int, typed: str) -> KernelWeights | np.ndarray:
    if isinstance(theta, KernelWeights):
        if theta.number not in (None, n):
            raise ModelError(
                f"{theta.text} holds {theta.number} weights, but the similarities are {n} kernels (helpers such as individual() "
                f"and tree(...) stand for several)",
                write_instead=f"write KernelWeights({n}), or KernelWeights(similarities)",
            )
        return theta
    if isinstance(theta, (Scalar, Affine, Objective, LearnedUnknown, str)):
        raise ModelError(
            "theta must be "
            + constructor_text("KernelWeights", n)
            + f", or an array of {n} given weights; this is {quote_value(theta)}"
        )
    if isinstance(theta, (int, float)) and not isinstance(theta, bool):
        raise ModelError(
            f"the third argument is theta, the weights; the exponent has a name: write p={quoted(theta)}"
        )
    return checked_weights(theta, n, typed)


def mkl_norm_text(W: Affine, similarities, theta, p) -> str:
    """The term as it is printed."""
    parts = [W.text, _list_text(similarities)]
    if theta is not None:
        parts.append(getattr(theta, "text", None) or constant_text(theta))
    if p is not None:
        number = as_float(p)
        parts.append(f"p={quoted(p) if number is None else f'{number:g}'}")
    return f"mkl_norm({', '.join(parts)})"


def _list_text(similarities) -> str:
    if not isinstance(similarities, (list, tuple)):
        return quote_value(similarities)
    texts = [
        one.text if isinstance(one, TaskSimilarity) else getattr(one, "__name__", None) or quote_value(one)
        for one in similarities
    ]
    whole = f"[{', '.join(texts)}]"
    return whole if len(whole) <= SHOWN_CHARACTERS else f"[{texts[0]}, ... {len(texts)} similarities]"


def _sides(W: Affine) -> SimpleNamespace:
    """Names of rows and columns: those of features and tasks where the expression keeps them, else their numbers."""
    part, (n_rows, n_columns) = W.parts[0], W.shape
    tasks = part.weights.tasks
    kept = part.left is None
    rows = tuple(tasks.feature_names) if kept else tuple(f"row{j}" for j in range(n_rows))
    columns = tuple(tasks.task_names) if part.right is None else tuple(f"column{t}" for t in range(n_columns))
    views = getattr(tasks, "views", {}) if kept else {}
    return SimpleNamespace(feature_names=rows, task_names=columns, views=views, n_tasks=n_columns)


def _told_apart(kernels: tuple[TaskKernel, ...]) -> tuple[TaskKernel, ...]:
    """Weights need names of their own: the second of a name is called "name (2)"."""
    seen: dict[str, int] = {}
    found = []
    for kernel in kernels:
        count = seen[kernel.name] = seen.get(kernel.name, 0) + 1
        found.append(kernel if count == 1 else replace(kernel, name=f"{kernel.name} ({count})"))
    return tuple(found)


# --------------------------------------------------------------------------------------------------------------
# Groups of rows and columns by the names of features and tasks, where an atom wants positions; a tree is the groups of its nodes.


def is_tree(groups: Any) -> bool:
    """Tell whether it is a dict whose values are parents, not lists of members.

    >>> is_tree({"age": "who", "who": None}), is_tree({"who": ["age"]}), is_tree([["age"]])
    (True, False, False)
    """
    return isinstance(groups, Mapping) and not any(_is_members(value) for value in groups.values())


def _is_members(value: Any) -> bool:
    return isinstance(value, Mapping | set | frozenset) or as_list(value) is not None


_AXES = {"rows": 0, "columns": 1}


def by_position(cls: type[Atom], parameters: dict[str, Any], W: Affine, typed: str) -> dict[str, Any]:
    """The parameters of a word, with positions in W for names in every field with `metadata={"names": "rows"}`, or "columns".

    Groups may be a dict, {what a group is called: its members}. What is not a list of lists is left to the atom, which refuses it.
    """
    parameters = listed_once(cls, parameters)
    found = {name: _groups(parameters[name], W, axis, typed) for name, axis in _named(cls, parameters)}
    return parameters | found


def listed_once(cls: type[Atom], parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters, with lists in place of iterators of groups, which give what they have only once."""
    trees = {field.name for field in cls.typed_fields() if field.metadata.get("tree")}
    given = {name: parameters[name] for name, _ in _named(cls, parameters)}
    return parameters | {
        name: groups_of_tree(groups, cls.name) if name in trees and is_tree(groups) else _lists(groups)
        for name, groups in given.items()
    }


def _lists(groups: Any) -> Any:
    if isinstance(groups, Mapping):
        return {name: _list(group) for name, group in groups.items()}
    listed = as_list(groups)
    return groups if listed is None else [_list(group) for group in listed]


def _list(group: Any) -> Any:
    listed = as_list(group)
    return group if listed is None else listed


def groups_as_given(cls: type[Atom], parameters: dict[str, Any]) -> dict[str, str]:
    """{parameter: its groups as they are printed}, with the names that were typed, and not the whole of many.

    >>> from mtldsl.atoms.regularizers import GroupNorm
    >>> groups_as_given(GroupNorm, {"groups": [["age", "sex"], [2]]})
    {'groups': "[['age', 'sex'], [2]]"}
    """
    return {name: _printed(parameters[name]) for name, _ in _named(cls, parameters)}


def _printed(groups: Any) -> str:
    if isinstance(groups, Mapping):
        return quoted({name: _plain(group) for name, group in groups.items()}, 80)
    return quoted([_plain(group) for group in groups], 80)


def _plain(group: list) -> list:
    return [member if isinstance(member, str) else as_whole(member) for member in group]


def _named(cls: type[Atom], parameters: dict[str, Any]) -> list[tuple[str, int]]:
    """(field, axis) of every field that holds groups, and is given."""
    axes = {field.name: _AXES.get(field.metadata.get("names", "")) for field in cls.typed_fields()}
    return [
        (name, axis) for name, axis in axes.items() if axis is not None and parameters.get(name) is not None
    ]


def _groups(groups: Any, W: Affine, axis: int, typed: str) -> Any:
    if isinstance(groups, Mapping):
        groups = list(groups.values())
    if not isinstance(groups, list):
        return groups
    for g, group in enumerate(groups):
        if isinstance(group, str):
            raise ModelError(
                f"group {g} is {group!r}, not a list",
                term=typed,
                write_instead=f"write [[{group!r}, ...], ...], a list per group" + groups_of_labels(groups),
            )
    return [
        [position_of(m, W, axis, typed, told=False) if isinstance(m, str) else m for m in group]
        if isinstance(group, list)
        else group
        for group in groups
    ]
