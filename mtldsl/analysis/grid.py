"""Which values of parameters are tried: those that are given, or a grid from where the weights vanish."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from mtldsl.analysis.lambda_max import lambda_max
from mtldsl.analysis.path import Solvable, checked_values
from mtldsl.compile.checks import on_weights
from mtldsl.compile.statement import Statement
from mtldsl.errors import ModelError
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_whole, quoted

__all__ = ["Grid", "grid_of", "path_values", "strengthens_losses"]

#: how many values a grid has, and over what range, where none are given
_VALUES, _RANGE = 20, 1000.0


class Grid:
    """Values of one parameter or several, in the order in which they are solved: the last parameter runs fastest, as a path."""

    def __init__(self, values: dict[Parameter, list[float]], weaker_is_larger: bool):
        self.values = values
        #: whether larger values of the (only) parameter mean less regularisation
        self.weaker_is_larger = weaker_is_larger

    @property
    def parameters(self) -> list[Parameter]:
        return list(self.values)

    @property
    def points(self) -> list[tuple[float, ...]]:
        return list(product(*self.values.values()))


def strengthens_losses(statement: Statement, parameter: Parameter) -> bool:
    """Whether larger values of the parameter mean less regularisation: it multiplies losses, or is the radius of a ball."""
    losses = [term for term in statement.objective.terms if term.is_loss]
    widens = any(parameter in constraint.of_radius for constraint in on_weights(statement.constraints))
    return widens or any(parameter in term.coefficient.parameters for term in losses)


def grid_of(problem: Solvable, lam, values, typed: str) -> Grid:
    """The grid that is meant by `cross_validate(lam, values)`; ModelError with what to write for anything else.

    lam : a Parameter, a list of them with a list of values each, or a dict {Parameter: values}
    """
    if isinstance(lam, Mapping):
        if values is not None:
            raise ModelError(
                "values stand in the dict already",
                term=f"{typed}({{...}}, values)",
                write_instead="leave them out",
            )
        lam, values = list(lam), list(lam.values())
    elif isinstance(lam, Parameter):
        lam, values = [lam], [values]
    else:
        listed = as_list(lam)
        if not listed:
            raise ModelError(
                f"{quoted(lam)} is not a parameter", term=typed, write_instead="write the Parameter of the model, such as lam = Parameter(1.0)"
            )  # fmt: skip
        lam, values = listed, as_list(values) if values is not None else [None] * len(listed)
    if values is None or len(values) != len(lam):
        raise ModelError(
            f"{len(lam)} parameters need a list of values each",
            term=typed,
            write_instead="write {lam: [...], mu: [...]}",
        )
    found: dict[Parameter, list[float]] = {}
    for parameter, own in zip(lam, values, strict=True):
        if own is None and len(lam) > 1:
            raise ModelError(
                "values of several parameters are not chosen by themselves",
                term=typed,
                write_instead="write {lam: [10.0, 1.0], mu: [1.0, 0.1]}",
            )
        count = _VALUES if own is None else as_whole(own)
        found[parameter] = (
            _geometric(problem, parameter, count, typed)
            if count is not None
            else checked_values(problem, parameter, own)
        )
        if not found[parameter]:
            raise ModelError("there are no values", term=f"{typed}({parameter.name}, [])")
    if len(found) != len(lam):
        raise ModelError("a parameter stands twice", term=typed)
    return Grid(found, isinstance(problem, Statement) and strengthens_losses(problem, lam[0]))


def path_values(problem, parameter: Parameter, values) -> list[float]:
    """The values of `path(lam, values)`: those that are given, or so many of the grid."""
    count = as_whole(values)
    if count is None:
        return checked_values(problem, parameter, values)
    return _geometric(problem, parameter, count, "path")


def _geometric(problem, parameter: Parameter, count: int, typed: str) -> list[float]:
    """From lambda_max on: down to 1/1000 of it for a multiple of the norm, up to 1000 times it for one of the losses."""
    if count < 2:
        raise ModelError(
            term=f"{typed}({quoted(parameter)}, values={count})",
            write_instead="write a list of values, or how many, at least 2",
        )
    checked_values(problem, parameter, [])
    try:
        start = lambda_max(problem, parameter)
    except ModelError as error:
        raise ModelError(
            f"values are not known by themselves ({error.what})",
            term=f"{typed}({parameter.name})",
            write_instead="give them, such as values=[10.0, 1.0, 0.1]",
        ) from error
    if not 0.0 < start < np.inf:
        raise ModelError(
            start.note or f"the weights vanish at {parameter.name} = {start:g}",
            term=f"{typed}({parameter.name})",
            write_instead="give values, such as values=[10.0, 1.0, 0.1]",
        )
    up = strengthens_losses(problem, parameter)
    return np.geomspace(float(start), start * _RANGE if up else start / _RANGE, count).tolist()
