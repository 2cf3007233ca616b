"""Values of an estimator's `model=`: the name of a model, its statement as text, or a function of (W, tasks)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite
from typing import Any

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
            return TextModel(find(model), defaults or {}, edges)
        return TextModel(_typed(model, constraints, edges is not None), defaults or {}, edges)
    if callable(model):
        if constraints:
            raise ModelError(
                "a function states its constraints itself",
                argument="subject_to",
                write_instead="return (objective, [constraints])",
            )
        return FunctionModel(model)
    raise ModelError(
        f"model={quoted(model)}: write the name of a model ({', '.join(list(models())[:4])}, ...), a statement such as "
        "'logistic_loss(W, tasks) + lam * l21_norm(W)', or a function of (W, tasks)"
    )


@dataclass(frozen=True)
class TextModel:
    """A statement as text, of a paper or of the user: its parameters in the order typed, their defaults, and the words that it is made of."""

    model: NamedModel
    others: Mapping[str, Any]
    edges: Any = None

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.model.parameters

    @property
    def defaults(self) -> Mapping[str, Any]:
        of_others = {name: value for name, value in self.others.items() if name in self.parameters}
        return {**of_others, **self.model.defaults}

    @property
    def words(self) -> frozenset[str]:
        return _called_words(self.model.statement)

    def on(self, tasks: Tasks, values: Mapping[str, Any], intercept: bool) -> Problem:
        for name, value in values.items():
            number = as_float(value)
            if number is None or not isfinite(number):
                raise ModelError(
                    f"{name}={quoted(value)}", argument=name, write_instead="write a finite number"
                )
        own = isinstance(self.edges, str) and self.edges == OWN
        return self.model.on(tasks, values, intercept, None if own else self.edges)


@dataclass(frozen=True)
class FunctionModel:
    """A function of (W, tasks), its further arguments the parameters, that returns the objective, or (objective, constraints)."""

    function: Callable[..., Any]

    @cached_property
    def _arguments(self) -> dict[str, inspect.Parameter]:
        found = list(inspect.signature(self.function).parameters.values())
        if len(found) < 2 or any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in found):
            raise ModelError(
                f"{_called(self.function)}{inspect.signature(self.function)} is not a model",
                argument="model",
                write_instead="write a function of (W, tasks), and of its parameters by name, such as lambda W, tasks, lam=1.0: ...",
            )
        return {each.name: each for each in found[2:]}

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self._arguments)

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {
            name: each.default for name, each in self._arguments.items() if each.default is not each.empty
        }

    @property
    def words(self) -> None:
        return None

    def on(self, tasks: Tasks, values: Mapping[str, Any], intercept: bool) -> Problem:
        missing = [name for name in self.parameters if values.get(name, self.defaults.get(name)) is None]
        if missing:
            raise ModelError(f"{_called(self.function)} needs {' and '.join(missing)}", argument="model")
        given = {name: _parameter(name, value) for name, value in {**self.defaults, **values}.items()}
        made = self.function(Weights(tasks, intercept), tasks, **given)
        if isinstance(made, Problem):
            return made
        objective, constraints = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
        if not isinstance(objective, Objective):
            raise ModelError(
                f"{_called(self.function)} returned {quoted(objective)}",
                argument="model",
                write_instead="return an objective, or (objective, [constraints])",
            )
        return minimize(objective, constraints)


#: a model without its data
ModelSource = TextModel | FunctionModel


def _called(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


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
def _called_words(statement: str) -> frozenset[str]:
    calls = [node.func for node in ast.walk(ast.parse(statement)) if isinstance(node, ast.Call)]
    return frozenset(name.id for name in calls if isinstance(name, ast.Name))


@lru_cache(maxsize=64)
def _typed(statement: str, constraints: tuple[str, ...], over_labels: bool) -> NamedModel:
    """A user's statement, as named models hold theirs."""
    for text in (statement, *constraints):
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError) as error:
            raise ModelError(
                f"{text!r} cannot be read: {error.args[0]}",
                argument="model",
                write_instead="write a sum such as 'logistic_loss(W, tasks) + lam * l21_norm(W)'",
            ) from error
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id not in CALLABLE:
                raise ModelError(
                    f"{text!r}: there is no word {called.id!r}{nearest(called.id, CALLABLE)}",
                    argument="model",
                )
    weights, edges = (("U", "V"), "all") if over_labels else (_weights(statement), None)
    return NamedModel("model", statement, "", "", "", subject_to=constraints, weights=weights, edges=edges)


def _weights(statement: str) -> tuple[str, ...]:
    """The matrices that words are of: the names in their first arguments, as L and S in squared_loss(L + S, tasks)."""
    calls = [
        node
        for node in ast.walk(ast.parse(statement, mode="eval"))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in WORDS
        and node.args
    ]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    names = [node.id for call in calls for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)]
    return tuple(dict.fromkeys(name for name in names if name != "tasks" and name not in WORDS)) or ("W",)
