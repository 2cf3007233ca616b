"""One named model: a statement in the language, and the problem that it states on given tasks."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from typing import Any

from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.language.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.parser import parse_constraint, parse_objective
from mtldsl.language.scalars import Parameter
from mtldsl.language.source_text import Source, kind_of
from mtldsl.language.vocabulary import CALLABLE, UNKNOWNS
from mtldsl.language.weights import Weights
from mtldsl.normal_form.statement import statement_text
from mtldsl.problems.problem import Problem, minimize


@dataclass(frozen=True, eq=False)
class NamedModel:
    """A model of a paper: `minimize statement subject to subject_to`, over `weights` and `learned`.

    name       : the paper's
    statement  : the objective in the language; what is not a word, an unknown or `tasks` is a parameter
    about      : one line, what the model assumes of the tasks
    source     : authors, title, venue, year, and the equation where the formula is printed there
    family     : the heading that it stands under
    subject_to : constraints in the language
    weights    : the weight matrices; an intercept goes with the first
    edges      : of a model over a graph of labels, whose weights are then those of the labels and of these edges: "all", or () for none
    learned    : what is learned beside them, name -> kind, as under [learned] of a problem file
    defaults   : parameter -> value, where the paper has one
    also       : other names of the same model
    note       : how other scalings and special cases are written

    >>> sparse = NamedModel("Lasso", "squared_loss(W, tasks) + rho * l1_norm(W)", "Few weights.", "Tibshirani 1996", "Sparse")
    >>> sparse.parameters
    ('rho',)
    >>> print(sparse)
    minimize    squared_loss(W, tasks) + rho * l1_norm(W)
    """

    name: str
    statement: str
    about: str
    source: str
    family: str = ""
    subject_to: tuple[str, ...] = ()
    weights: tuple[str, ...] = ("W",)
    edges: str | tuple | None = None
    learned: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        """The statement, as a problem prints its own."""
        return statement_text(self.statement, self.subject_to)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Their names, in the order typed."""
        known = {*CALLABLE, *self.weights, *self.learned, "tasks", "inf"}
        names = [name for text in (self.statement, *self.subject_to) for name in _names(ast.parse(text))]
        return tuple(dict.fromkeys(name for name in names if name not in known))

    @cached_property
    def coefficients(self) -> tuple[str, ...]:
        """The parameters that stand before words, and so may be changed between solves; the others are arguments of words."""
        arguments = [call for call in ast.walk(ast.parse(self.statement)) if isinstance(call, ast.Call)]
        inside = {name for text in self.subject_to for name in _names(ast.parse(text))}
        inside |= {
            name for call in arguments for part in [*call.args, *call.keywords] for name in _names(part)
        }
        return tuple(name for name in self.parameters if name not in inside)

    @property
    def usage(self) -> str:
        """Return how `mtl.model` is called for it.

        >>> NamedModel("Lasso", "squared_loss(W, tasks) + rho * l1_norm(W)", "", "", "").usage
        "model('Lasso', tasks, rho=...)"
        """
        shown = [f"{name}={self.defaults.get(name, '...')}" for name in self.parameters]
        return f"model({', '.join([repr(self.name), 'tasks', *shown])})"

    def complete(self, values: Mapping[str, Any], advice: str = "") -> dict[str, float]:
        """Values for every parameter, defaults included. ModelError where one is missing, unknown or not a number.

        advice : how the values are written where they came from; `usage` unless given
        """
        advice = advice or f"write {self.usage}"
        for name in values:
            if name not in self.parameters:
                raise ModelError(f"{self.name} has no parameter {name!r}", write_instead=advice)
        values = {**self.defaults, **values}
        missing = [name for name in self.parameters if name not in values]
        if missing:
            raise ModelError(f"{self.name} needs {' and '.join(missing)}", write_instead=advice)
        for name, value in values.items():
            if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
                typed = repr(value) if isinstance(value, Real) else kind_of(value)
                raise ModelError(
                    f"{name} must be a finite number, not {typed}", term=self.name, write_instead=advice
                )
        return {name: values[name] for name in self.parameters}

    def written(self, values: Mapping[str, float]) -> tuple[str, list[str]]:
        """(objective, constraints) as texts in which arguments of words are numbers; coefficients keep their names.

        >>> capped = NamedModel("Capped", "mu * capped_trace_norm(W, tau)", "", "", "")
        >>> capped.written({"mu": 1.0, "tau": 0.5})[0]
        'mu * capped_trace_norm(W, 0.5)'
        """
        numbers = {name: value for name, value in values.items() if name not in self.coefficients}
        return _with_numbers(self.statement, numbers), [
            _with_numbers(text, numbers) for text in self.subject_to
        ]

    def unknown_weights(self, tasks: Tasks, intercept: bool = False, edges=None) -> dict[str, Weights]:
        """The weight matrices by name; edges: in place of the model's. ModelError where it has none."""
        if self.edges is None:
            if edges is not None:
                raise ModelError(f"{self.name} has no edges between labels; {self._without('edges')}")
            return {
                name: Weights(tasks, intercept if i == 0 else False, name)
                for i, name in enumerate(self.weights)
            }
        nodes, between = self.weights
        return {
            nodes: NodeWeights(tasks, nodes, intercept=intercept),
            between: EdgeWeights(tasks, self.edges if edges is None else edges, between),
        }

    def _without(self, what: str) -> str:
        return f"leave out {what}, and write {self.usage}"

    def on(self, tasks: Tasks, values: Mapping[str, object], intercept: bool = False, edges=None) -> Problem:
        """The problem that the model states on these tasks."""
        values = self.complete(values)
        names: dict[str, object] = {"tasks": tasks}
        names |= self.unknown_weights(tasks, intercept, edges)
        names |= {name: UNKNOWNS[kind].declared(tasks, name) for name, kind in self.learned.items()}
        names |= {name: Parameter(values[name], name) for name in self.coefficients}
        objective, constraints = self.written(values)
        return minimize(
            parse_objective(Source.of(objective, self.name), names),
            [parse_constraint(Source.of(text, self.name), names) for text in constraints],
        )


def _names(tree: ast.AST) -> list[str]:
    """The names of variables in a text, in the order typed."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return [node.id for node in sorted(found, key=lambda node: (node.lineno, node.col_offset))]


def _with_numbers(text: str, numbers: Mapping[str, float]) -> str:
    """The text with numbers in place of their names; as it is where it has none of them."""
    tree = ast.parse(text, mode="eval")
    if not numbers.keys() & set(_names(tree)):
        return text

    class TextWriter(ast.NodeTransformer):
        def visit_Name(self, node):
            if node.id not in numbers:
                return node
            value = numbers[node.id]
            return ast.Constant(int(value) if isinstance(value, Integral) else float(value))

    return ast.unparse(TextWriter().visit(tree))
