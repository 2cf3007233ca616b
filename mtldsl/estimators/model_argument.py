"""Values of an estimator's `model=`: the name of a model, its statement as text, or a function of (W, tasks)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from math import isfinite
from typing import Any

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.language.objective import Objective
from mtldsl.language.scalars import Parameter
from mtldsl.language.suggestions import nearest
from mtldsl.language.vocabulary import CALLABLE, WORDS
from mtldsl.language.weights import Weights
from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.named_models import find, models
from mtldsl.problems.problem import Problem, minimize
from mtldsl.utils.validation import as_float, quoted

#: the edges that a model over a graph of labels has by itself
OWN = "its own"


def read_model_argument(
    model, subject_to: Sequence[str] = (), defaults: Mapping[str, Any] | None = None, edges=None
) -> ModelSource:
    """Return what `model` says. ModelError where it is of another kind, or a name that no model has.

    subject_to : constraints as text, beside a statement; a name has its own
    defaults   : values of parameters that have none in a model
    edges      : of a model over a graph of labels, the edges that there may be, or `OWN`; None for models of other kinds

    >>> read_model_argument("logistic_loss(W, tasks) + lam * l21_norm(W)").parameters
    ('lam',)
    >>> read_model_argument("Robust-MTL").parameters
    ('rho1', 'rho2')
    """
    constraints = _constraints(subject_to)
    if isinstance(model, str):
        if "(" not in model and model.strip():
            if constraints:
                raise ModelError(
                    f"model={model!r} has its own constraints",
                    argument="subject_to",
                    write_instead="write the statement of the model, and subject_to beside it",
                )
            if model in WORDS:
                raise ModelError(
                    f"model={model!r} is a word, not a model",
                    write_instead=f"write penalty={model!r}, or a statement, such as 'logistic_loss(W, tasks) + lam * l21_norm(W)'",
                )
            return _of_statement(find(model), defaults or {}, edges)
        return _of_statement(_typed(model, constraints, edges is not None), defaults or {}, edges)
    if callable(model):
        if constraints:
            raise ModelError(
                "a function states its constraints itself",
                argument="subject_to",
                write_instead="return (objective, [constraints])",
            )
        return _of_function(model)
    raise ModelError(
        f"model={quoted(model)}: write the name of a model ({', '.join(list(models())[:4])}, ...), a statement such as "
        "'logistic_loss(W, tasks) + lam * l21_norm(W)', or a function of (W, tasks)"
    )


@dataclass(frozen=True)
class ModelSource:
    """A model without its data: its parameters in the order typed, their defaults, the words that it is made of (None: of a function, which
    does not say so before it is on data), and the problem on (tasks, values of the parameters, whether there is an intercept)."""

    parameters: tuple[str, ...]
    defaults: Mapping[str, Any]
    words: frozenset[str] | None
    on: Callable[[Tasks, Mapping[str, Any], bool], Problem]


def _of_statement(model: NamedModel, others: Mapping[str, Any], edges) -> ModelSource:
    """A statement as text, of a paper or of the user."""

    def on(tasks: Tasks, values: Mapping[str, Any], intercept: bool) -> Problem:
        for name, value in values.items():
            number = as_float(value)
            if number is None or not isfinite(number):
                raise ModelError(
                    f"{name}={quoted(value)}", argument=name, write_instead="write a finite number"
                )
        own = isinstance(edges, str) and edges == OWN
        values = {
            name: each.item() if isinstance(each, np.ndarray) else each for name, each in values.items()
        }
        return model.on(tasks, values, intercept, None if own else edges)

    of_others = {name: value for name, value in others.items() if name in model.parameters}
    return ModelSource(
        model.parameters,
        {**of_others, **model.defaults},
        frozenset(name for name, _ in _calls(model.statement)),
        on,
    )


def _of_function(function: Callable[..., Any]) -> ModelSource:
    """A function of (W, tasks), its further arguments the parameters, that returns the objective, or (objective, constraints)."""
    typed = getattr(function, "__name__", type(function).__name__)
    found = list(signature(function).parameters.values())
    if len(found) < 2 or any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in found):
        raise ModelError(
            f"{typed}{signature(function)} is not a model",
            argument="model",
            write_instead="write a function of (W, tasks), and of its parameters by name, such as lambda W, tasks, lam=1.0: ...",
        )
    parameters = tuple(each.name for each in found[2:])
    defaults = {each.name: each.default for each in found[2:] if each.default is not each.empty}

    def on(tasks: Tasks, values: Mapping[str, Any], intercept: bool) -> Problem:
        given = {**defaults, **values}
        missing = [name for name in parameters if given.get(name) is None]
        if missing:
            raise ModelError(f"{typed} needs {' and '.join(missing)}", argument="model")
        made = function(
            Weights(tasks, intercept),
            tasks,
            **{name: _parameter(name, value) for name, value in given.items()},
        )
        if isinstance(made, Problem):
            return made
        objective, constraints = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
        if not isinstance(objective, Objective):
            raise ModelError(
                f"{typed} returned {quoted(objective)}",
                argument="model",
                write_instead="return an objective, or (objective, [constraints])",
            )
        return minimize(objective, constraints)

    return ModelSource(parameters, defaults, None, on)


def _parameter(name: str, value):
    """A number under its name, so that a path can change it; anything else as it is."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return Parameter(value, name) if plain and value >= 0 else value


def _constraints(subject_to) -> tuple[str, ...]:
    if not isinstance(subject_to, list | tuple) or not all(isinstance(each, str) for each in subject_to):
        raise ModelError(
            f"subject_to={quoted(subject_to)}: write a list of constraints as text, such as ['W >= 0']"
        )
    return tuple(subject_to)


@lru_cache(maxsize=256)
def _calls(statement: str) -> list[tuple[str, list[ast.expr]]]:
    """(name, arguments) of every call in a text, in the order typed."""
    nodes = [node for node in ast.walk(ast.parse(statement, mode="eval")) if isinstance(node, ast.Call)]
    nodes.sort(key=lambda call: (call.lineno, call.col_offset))
    return [(node.func.id, node.args) for node in nodes if isinstance(node.func, ast.Name)]


@lru_cache(maxsize=64)
def _typed(statement: str, constraints: tuple[str, ...], over_labels: bool) -> NamedModel:
    """A user's statement, as named models hold theirs."""
    for k, text in enumerate((statement, *constraints)):
        try:
            called = _calls(text)
        except (SyntaxError, ValueError) as error:
            raise ModelError(
                f"{text!r} cannot be read: {error.args[0]}",
                argument="subject_to" if k else "model",
                write_instead="write a comparison such as 'W >= 0'"
                if k
                else "write a sum such as 'logistic_loss(W, tasks) + lam * l21_norm(W)'",
            ) from error
        strange = next((name for name, _ in called if name not in CALLABLE), None)
        if strange is not None:
            raise ModelError(
                f"{text!r}: there is no word {strange!r}{nearest(strange, CALLABLE)}", argument="model"
            )
    weights, edges = (("U", "V"), "all") if over_labels else (_weights(statement), None)
    return NamedModel("model", statement, "", "", "", subject_to=constraints, weights=weights, edges=edges)


def _weights(statement: str) -> tuple[str, ...]:
    """The matrices that words are of: the names in their first arguments, as L and S in squared_loss(L + S, tasks)."""
    first = [arguments[0] for name, arguments in _calls(statement) if name in WORDS and arguments]
    names = [node.id for one in first for node in ast.walk(one) if isinstance(node, ast.Name)]
    return tuple(dict.fromkeys(name for name in names if name != "tasks" and name not in WORDS)) or ("W",)
