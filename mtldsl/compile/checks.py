"""What is in a model, and what is wrong with it before any number is crunched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.function import MatrixFunction
from mtldsl.atoms.structures import MKLNorm, Structure
from mtldsl.compile.normal_form import picks
from mtldsl.compile.sparse_precisions import check_penalised, penalised_in
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint, ranges_of
from mtldsl.language.words.shares import why_not_intercepts

__all__ = [
    "check_convexity",
    "check_model",
    "learned_of",
    "names_in",
    "on_weights",
    "parameters_of",
    "weights_of",
]


def on_weights(constraints) -> list[Constraint]:
    """Those of the constraints that are about weights, not about matrices that are learned."""
    return [c for c in constraints if not isinstance(c, RangeConstraint)]


def learned_of(objective: Objective) -> list[LearnedUnknown]:
    """Every matrix that the model learns, in the order typed."""
    found = [
        matrix for term in objective.terms for matrix in term.learned if isinstance(matrix, LearnedUnknown)
    ]
    return list(dict.fromkeys(found))


def names_in(objective: Objective, unknown: LearnedUnknown) -> tuple[str, ...]:
    """The names of a learned matrix's rows: those of the features or tasks, in the order in which its term's argument has them."""
    term = next(term for term in objective.terms if any(m is unknown for m in term.learned))
    if cast(MatrixFunction, term.atom).weighs_kernels:
        return cast(MKLNorm, term.atom).names
    argument = term.argument
    of_rows = unknown.axis == "features"
    factors = [
        part.left if of_rows else None if part.right is None else part.right.T for part in argument.parts
    ]
    if all(factor is None for factor in factors):
        return unknown.names
    if len(factors) == 1 and picks(factors[0]):
        source = argument.parts[0].weights.tasks
        names = source.feature_names if of_rows else source.task_names
        return tuple(names[j] for j in sparse.csr_array(factors[0]).indices)
    what = "row" if of_rows else "column"
    return tuple(f"{what} {i} of {argument.text}" for i in range(unknown.side))


def weights_of(objective: Objective, constraints: Sequence[Constraint | RangeConstraint]) -> list[Any]:
    """Every Weights of the model, or matrix of a label graph, in the order of first appearance."""
    arguments = [term.argument for term in objective.terms] + [c.argument for c in on_weights(constraints)]
    return list(dict.fromkeys(part.weights for argument in arguments for part in argument.parts))


def parameters_of(
    objective: Objective, constraints: Sequence[Constraint | RangeConstraint]
) -> list[Parameter]:
    """Every Parameter of the model, in the order typed: coefficients, those inside arguments, and radii."""
    found = [parameter for term in objective.terms for parameter in term.parameters]
    for constraint in on_weights(constraints):
        for part in constraint.argument.parts:
            found += sorted(part.coefficient.parameters, key=lambda p: p.name)
        found += sorted(constraint.of_radius, key=lambda p: p.name)
    return list(dict.fromkeys(found))


def check_model(objective: Objective, constraints: Sequence[Constraint | RangeConstraint]) -> None:
    """ModelError for a model that is not convex, has no loss, or whose names clash; quotes the term as typed."""
    if not any(term.is_loss for term in objective.terms):
        raise ModelError(
            "there is no loss, so no data enters the model",
            term=f"minimize({objective.text})",
            write_instead="add one, such as squared_loss(W, tasks)",
        )
    by_name: dict[str, Weights] = {}
    for weights in weights_of(objective, constraints):
        if by_name.setdefault(weights.name, weights) is not weights:
            raise ModelError(
                f"two different weight matrices are both called {weights.name!r}: give each a name, "
                'L, S = Weights(tasks, name="L"), Weights(tasks, name="S")'
            )
    names: dict[str, Parameter] = {}
    for parameter in parameters_of(objective, constraints):
        if names.setdefault(parameter.name, parameter) is not parameter:
            raise ModelError(
                f"two different parameters are both called {parameter.name!r}: give each a name, "
                'Parameter(1.0, name="mu")'
            )
    for term in objective.terms:
        if not (term.argument.parts or term.of_learned):
            raise ModelError(
                "this term contains no weights, so it is a constant",
                term=term.text,
                write_instead="leave it out",
            )
    shared = why_not_intercepts([term for term in objective.terms if term.is_loss])
    if shared:
        raise ModelError(shared, write_instead="let losses take the same columns, or columns of their own")
    check_convexity(objective)
    check_learned(objective, constraints)


def check_learned(objective: Objective, constraints) -> None:
    """ModelError for a matrix to be learned that lacks a bound, stands twice, or stands in no term."""
    names = {w.name for w in weights_of(objective, constraints)}
    owner: dict[LearnedUnknown, Term] = {}
    for term in objective.terms:
        for matrix in term.learned:
            if not isinstance(matrix, LearnedUnknown):
                continue
            if matrix in owner:
                raise ModelError(
                    f"{matrix.text} stands in {owner[matrix].atom_text} and again in {term.atom_text}: the closed form of its update "
                    "is known for one term",
                    write_instead="give each its own, " + matrix.declaration,
                )
            if matrix.name in names:
                raise ModelError(
                    f"two unknowns are both called {matrix.name!r}: give one another name, "
                    + matrix.declaration
                )
            owner[matrix] = term
            names.add(matrix.name)
    bounds = [c for c in constraints if isinstance(c, RangeConstraint)]
    for constraint in bounds:
        if constraint.unknown not in owner:
            raise ModelError(
                f"{constraint.unknown.text} is in no term of the objective, so that the constraint says nothing",
                term=constraint.text,
                write_instead="leave it out, or add the term",
            )
    ranges = ranges_of(bounds)
    check_penalised(objective.terms, bounds, ranges)
    penalised = penalised_in(objective.terms)
    for matrix, term in owner.items():
        if matrix in penalised:  # needs no bounds
            continue
        stated = ranges.get(matrix, matrix.unconstrained)
        if stated is None:
            raise ModelError(
                f"{matrix.text} has no bound: the larger its weights, the smaller the penalty. "
                f"Add to subject_to: p_norm({matrix.text}, 2) <= 1",
                term=term.text,
            )
        for bound, why in cast(Structure, term.atom).needs.items():
            if not 0 < getattr(stated, bound) < np.inf:
                line = {"lower": ">> 0.01", "upper": "<< 100", "trace": ".trace() <= 1"}[bound]
                line = f"{matrix.text}{'' if line.startswith('.') else ' '}{line}"
                raise ModelError(
                    f"{matrix.text} has no {_BOUNDS[bound]}: {why.format(name=matrix.text)}. Add to subject_to: {line}",
                    term=term.text,
                )


_BOUNDS = {"lower": "lower bound", "upper": "upper bound", "trace": "bound on its trace"}


def check_convexity(objective: Objective) -> None:
    for term in objective.terms:
        value = term.coefficient.value
        if value < 0:
            if not term.atom.convex:
                raise ModelError(
                    f"{term.atom_text} with the coefficient {value:g} < 0 is unbounded below, since its weights may "
                    f"grow without end. Nearest form that works: + {_positive(term)}",
                    term=term.text,
                )
            raise ModelError(
                f"{term.text} is not convex: {term.atom_text} is convex and its coefficient is {value:g} < 0, so the problem "
                f"is not convex. Nearest form that works: + {_positive(term)}"
            )


def _positive(term: Term) -> str:
    return f"{abs(term.coefficient.value):g} * {term.atom_text}"
