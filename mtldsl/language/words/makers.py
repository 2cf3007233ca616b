"""How an atom becomes a word: what is typed is checked, and a term or a constraint made of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING
from typing import Any, TypeVar

from mtldsl.atoms import losses, structures
from mtldsl.atoms.function import Atom, Loss, Regularizer, Set
from mtldsl.errors import ModelError, Spelled
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.operation import Operation
from mtldsl.language.expressions.scalar import ONE
from mtldsl.language.spelling import made
from mtldsl.language.unknowns import label_graph
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.words import mkl_word
from mtldsl.language.words.dress import dressed, parameter
from mtldsl.language.words.fitted import fitted
from mtldsl.language.words.learned_argument import checked_matrix, short, unknown_of
from mtldsl.language.words.loss_latex import loss_latex
from mtldsl.language.words.named_groups import by_position, groups_as_given, listed_once
from mtldsl.language.words.of_precision import of_precision
from mtldsl.language.words.overlapping import families_of, sum_of_families
from mtldsl.language.words.shares import columns_of
from mtldsl.tasks import Tasks
from mtldsl.tasks.names import elsewhere
from mtldsl.values.number import quoted
from mtldsl.values.option import as_flag

__all__ = ["constraint", "label_loss", "loss", "mkl", "regularizer", "structure"]


_A = TypeVar("_A", bound=Atom)

#: What other libraries call weights of samples and classes, which belong to the data here.
_WEIGHTS = ("class_weight", "class_weights", "sample_weight", "sample_weights", "weights", "pos_weight")
_OF_SAMPLES = "write Tasks.shared(X, Y, sample_weights=...); the estimators take class_weight='balanced'"

#: What other libraries call the factor before a term.
_COEFFICIENTS = ("alpha", "lam", "lambda_", "C", "coefficient", "strength", "reg", "rho", "scale", "weight")


def _build(cls: type[_A], args, kwargs, typed: str, W: Affine) -> _A:
    return cls(**by_position(cls, _given(cls, args, kwargs, typed), W, typed))


def _given(cls: type[Atom], args, kwargs, typed: str) -> dict[str, Any]:
    """{parameter: what was typed for it}; ModelError for what a word does not take, and lacks."""
    names = [field.name for field in cls.typed_fields()]
    if len(args) > len(names):
        raise ModelError(
            f"too many arguments; {cls.name} takes {names or 'no parameters'} after the expression",
            term=typed,
        )
    parameters = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise ModelError(
                f"{cls.name} has no parameter {name!r}; it takes {', '.join(names) or 'none'}",
                term=typed,
                write_instead=_instead(cls, name),
            )
        if name in parameters:
            raise ModelError(f"the parameter {name!r} is given twice", term=typed)
        parameters[name] = value
    missing = [f.name for f in cls.typed_fields() if f.default is MISSING and f.name not in parameters]
    if missing:
        raise ModelError(
            f"{cls.name} needs {', '.join(missing)}",
            term=typed,
            write_instead=f"write {cls.name}(W, {', '.join(f'{name}=...' for name in missing)})",
        )
    return parameters


def _instead(cls: type[Atom], name: str) -> str:
    """What to write where a word was given a parameter that it does not have."""
    if name in _WEIGHTS and issubclass(cls, Loss):
        return _OF_SAMPLES
    if name in _COEFFICIENTS:
        tasks = ", tasks" if issubclass(cls, Loss) else ""
        return f"write 0.1 * {cls.name}(W{tasks}), a factor before the word"
    return ""


def _typed(cls, argument, atom: Atom | None, extra=(), given: dict[str, Any] | None = None) -> str:
    shown = [getattr(argument, "text", None) or quoted(argument), *extra]
    if atom is not None:
        texts = {name: short(value) for name, value in atom.arguments().items()}
        shown += [f"{name}={text}" for name, text in (texts | groups_as_given(cls, given or {})).items()]
    return f"{cls.name}({', '.join(shown)})"


def _require_affine(cls, argument) -> None:
    if isinstance(argument, Affine):
        return
    hint = ""
    if isinstance(argument, Tasks):
        hint = (
            f"; the weights come first: {cls.name}(W, tasks)"
            if issubclass(cls, Loss)
            else f"; write {cls.name}(W)"
        )
    elif isinstance(argument, Objective):
        hint = f"; {argument.text} is a number already, and a function of it is outside the language"
    raise ModelError(
        f"{cls.name}({short(argument)}, ...): the first argument must be an expression of Weights, "
        f"not {type(argument).__name__}{hint}"
    )


def loss(cls: type[Loss]):
    def word(W, tasks, *args, mean=False, **kwargs):
        _require_affine(cls, W)
        if not isinstance(tasks, Tasks):
            raise ModelError(
                f"{cls.name}({W.text}, {short(tasks)}): the second argument must be a Tasks object, "
                f"not {type(tasks).__name__}",
                write_instead=f"write {cls.name}({W.text}, tasks)",
            )
        mean = as_flag(mean, f"{cls.name}({W.text}, tasks, mean", ModelError)
        atom = _build(cls, args, kwargs, _typed(cls, W, None, ["tasks"]), W)
        typed = _typed(cls, W, atom, ["tasks"] + (["mean=True"] if mean else []))
        if W.shape[1] < tasks.n_tasks and all(part.weights.tasks is tasks for part in W.parts):
            columns = columns_of(W)  # of the tasks that the weights are for, those of these columns
            tasks = tasks if columns is None else tasks.select(columns)
        expected = (tasks.n_features, tasks.n_tasks)
        if W.shape != expected:
            raise ModelError(
                f"{W.text} has shape {W.shape}, but these tasks need {expected} (features x tasks); a loss takes "
                "one column of weights for every task",
                term=typed,
            )
        _require_same_columns(typed, W, tasks)
        with_intercept = {part.weights for part in W.parts if part.weights.intercept}
        if len(with_intercept) > 1:
            names = " and ".join(sorted(w.name for w in with_intercept))
            raise ModelError(
                f"{names} both carry an intercept, and only their sum would be determined",
                term=typed,
                write_instead="write intercept=True on one of them only",
            )
        for weights in with_intercept:
            if weights.tasks.n_tasks != tasks.n_tasks and columns_of(W) is None:
                raise ModelError(
                    f"the intercept of {weights.name} has {weights.tasks.n_tasks} entries, not one a task",
                    term=typed,
                    write_instead=f"take columns of {weights.name}, such as {weights.name}[:, [0, 2]], or all",
                )
        atom = fitted(atom, tasks, typed)
        for weights in with_intercept:
            if not atom.takes_intercept:
                raise ModelError(
                    f"the intercept of {weights.name} alone makes this loss zero or does not matter, since its "
                    "labellings have a fixed number of positives",
                    term=typed,
                    write_instead="write "
                    + Spelled("Weights(tasks) without intercept=True", f"{weights.name} = {{}} in [weights]"),
                )
        latex = loss_latex(
            atom, W, with_intercept=bool(with_intercept), weighted=tasks.is_weighted, mean=mean
        )
        return Objective([Term(ONE, atom, W, typed, latex, tasks, bool(mean))])

    head = [parameter("W"), parameter("tasks")]
    return dressed(
        word, cls, head, [inspect.Parameter("mean", inspect.Parameter.KEYWORD_ONLY, default=False)]
    )


def label_loss(cls: type[losses.LabelGraphLoss]):
    def word(U, V, tasks, *args, **kwargs):
        shown = [getattr(one, "text", short(one)) for one in (U, V)] + ["tasks"]
        if "loss" in kwargs and isinstance(tasks, Tasks):
            kwargs["loss"] = label_graph.costs_in_order(
                kwargs["loss"], tasks, f"{cls.name}({', '.join(shown)}, loss=...)"
            )
        atom = _build(cls, args, kwargs, f"{cls.name}({', '.join(shown)})", U)
        shown += [f"{name}={label_graph.costs_text(value)}" for name, value in atom.arguments().items()]
        return label_graph.label_loss(atom, U, V, tasks, f"{cls.name}({', '.join(shown)})")

    return dressed(word, cls, [parameter("U"), parameter("V"), parameter("tasks")], [])


def _require_same_columns(typed: str, W: Affine, tasks: Tasks) -> None:
    """ModelError where weights made for other tasks have a feature or task of these at another position."""
    for part in W.parts:
        own = part.weights.tasks
        for kind, mapped, mine, theirs in (
            ("feature", part.left, own.feature_names, tasks.feature_names),
            ("task", part.right, own.task_names, tasks.task_names),
        ):
            name = None if mapped is not None else elsewhere(theirs, mine)
            if name is not None:
                raise ModelError(
                    f"{kind} {name!r} is number {theirs.index(name)} of these tasks, but number {mine.index(name)} "
                    f"of those that {part.weights.name} was made for",
                    term=typed,
                    write_instead=f"give the {kind}s in one order",
                )


def regularizer(cls: type[Regularizer], nested: Callable[..., Objective] | None = None):
    """nested : the word for groups of rows that hold each other, of a word whose `groups` are to be apart"""

    def word(W, *args, **kwargs):
        if isinstance(W, LearnedUnknown):
            return of_precision(cls, W, args, kwargs)
        _require_affine(cls, W)
        given = listed_once(cls, _given(cls, args, kwargs, _typed(cls, W, None)))
        parameters = by_position(cls, given, W, _typed(cls, W, None))
        families = families_of(cls.name, parameters["groups"]) if nested is not None else []
        if nested is not None and families:
            return sum_of_families(word, nested, W, given, families)
        atom = cls(**parameters)
        typed = _typed(cls, W, atom, given=given)
        atom = label_graph.grouped_by_edges(atom, W)
        problem = atom.check(W.shape)
        if problem:
            raise ModelError(f"{problem}", term=typed)
        return Objective([Term(ONE, atom, W, typed, atom.latex(W.latex))])

    return dressed(word, cls, [parameter("W")], [])


def structure(cls: type[structures.Structure]):
    names = [matrix.name for matrix in cls.learns]

    def word(W, *args, **kwargs):
        _require_affine(cls, W)
        given = dict(zip(names, args, strict=False))
        given |= {name: kwargs.pop(name) for name in names if name in kwargs and name not in given}
        missing = [name for name in names if name not in given]
        typed = _typed(cls, W, None, [short(given.get(name, name)) for name in names])
        if missing:
            advice = f"write {cls.name}(W, {', '.join(names)}) with"
            for i, matrix in enumerate(cls.learns):
                advice += f"{',' if i else ''} {matrix.name} = " + made(unknown_of(matrix).__name__)
            raise ModelError(f"{cls.name} needs {', '.join(missing)}", term=typed, write_instead=advice)
        atom = _build(cls, args[len(names) :], kwargs, typed, W)
        typed = _typed(cls, W, atom, [short(matrix) for matrix in given.values()])
        matrices = tuple(
            checked_matrix(cls, matrix, description, W, typed)
            for matrix, description in zip(given.values(), cls.learns, strict=True)
        )
        symbols = {
            description.name: matrix.latex
            for matrix, description in zip(matrices, cls.learns, strict=True)
            if isinstance(matrix, LearnedUnknown)
        }
        return Objective([Term(ONE, atom, W, typed, atom.latex(W.latex, symbols), learned=matrices)])

    return dressed(word, cls, [parameter("W"), *map(parameter, names)], [])


def mkl(cls: type[structures.MKLNorm]):
    def word(W, similarities, theta=None, p=None):
        _require_affine(cls, W)
        return mkl_word.mkl_norm(W, similarities, theta, p)

    optional = [parameter("theta", None), parameter("p", None)]
    return dressed(word, cls, [parameter("W"), parameter("similarities")], optional)


def constraint(cls: type[Set]):
    def word(W, *args, **kwargs):
        _require_affine(cls, W)
        atom = _build(cls, args, kwargs, _typed(cls, W, None), W)
        typed = _typed(cls, W, atom)
        problem = atom.check(W.shape)
        if problem:
            raise ModelError(f"{problem}", term=typed)
        return Constraint(atom, W, typed, atom.latex(W.latex), Operation("in", (atom, W.tree)))

    return dressed(word, cls, [parameter("W")], [])
