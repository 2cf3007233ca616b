"""From what was typed to the normal form: parameters become numbers, expressions become linear maps."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.function import Loss
from mtldsl.atoms.sets import ColumnsOnSimplex
from mtldsl.atoms.structures import Range
from mtldsl.compile.normal_form import Block, Entry, FunctionTerm, LinearMap, LossTerm, NormalForm, picks
from mtldsl.compile.terms.label_graph import LabelGraphTerm
from mtldsl.compile.terms.radial import RadialTerm
from mtldsl.compile.terms.structure import StructureTerm
from mtldsl.compile.terms.structured import StructuredTerm
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint, ranges_of

__all__ = [
    "check_model",
    "learned_of",
    "names_in",
    "on_weights",
    "parameters_of",
    "to_normal_form",
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
    if term.atom.weighs_kernels:
        return term.atom.names
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


def weights_of(objective: Objective, constraints: list[Constraint]) -> list[Weights]:
    """Every Weights of the model, in the order of first appearance."""
    arguments = [term.argument for term in objective.terms] + [c.argument for c in on_weights(constraints)]
    return list(dict.fromkeys(part.weights for argument in arguments for part in argument.parts))


def parameters_of(objective: Objective, constraints: list[Constraint]) -> list[Parameter]:
    """Every Parameter of the model, in the order typed: coefficients, and those inside arguments."""
    found = [parameter for term in objective.terms for parameter in term.parameters]
    for constraint in on_weights(constraints):
        for part in constraint.argument.parts:
            found += sorted(part.coefficient.parameters, key=lambda p: p.name)
    return list(dict.fromkeys(found))


def check_model(objective: Objective, constraints: list[Constraint]) -> None:
    """ModelError for a model that is not convex, has no loss, or whose names clash; quotes the term as typed."""
    if not any(term.is_loss for term in objective.terms):
        raise ModelError(
            f"minimize({objective.text}): there is no loss, so no data enters the model; add one, such as squared_loss(W, tasks)"
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
        if not term.argument.parts:
            raise ModelError(
                "this term contains no weights, so it is a constant",
                term=term.text,
                write_instead="leave it out",
            )
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
    for matrix, term in owner.items():
        stated = ranges.get(matrix, matrix.unconstrained)
        if stated is None:
            raise ModelError(
                f"{matrix.text} has no bound: the larger its weights, the smaller the penalty. "
                f"Add to subject_to: p_norm({matrix.text}, 2) <= 1",
                term=term.text,
            )
        for bound, why in term.atom.needs.items():
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


def to_normal_form(objective: Objective, constraints: list[Constraint], typed: str) -> NormalForm:
    """The normal form at the parameters' present values."""
    check_convexity(objective)
    blocks = []
    used_in_loss = {p.weights for t in objective.terms if t.is_loss for p in t.argument.parts}
    for weights in weights_of(objective, constraints):
        blocks.append(Block(weights.name, weights.shape))
        if weights.intercept and weights in used_in_loss:
            blocks.append(Block(weights.intercept_name, (1, weights.shape[1]), intercept_of=weights.name))
    kept = [term for term in objective.terms if term.coefficient.value > 0]
    losses = tuple(_loss_term(term) for term in kept if term.is_loss)
    ranges = ranges_of(c for c in constraints if isinstance(c, RangeConstraint))
    # of no columns, those of a graph without edges, every function is zero
    others, constant = [term for term in kept if not term.is_loss and 0 not in term.argument.shape], 0.0
    terms = [_function_term(term, ranges, k) for k, term in enumerate(others)]
    functions = []
    for term in terms:
        if isinstance(term, StructureTerm) and not any(term.names):  # all its matrices are given
            term, more = term.kept({})
            constant += more
        functions.append(term)
    said = [c for c in on_weights(constraints) if not c.atom.holds_all(c.argument.shape)]
    sets = [FunctionTerm(c.atom, 1.0, linear_map(c.argument), c.text) for c in said]
    return NormalForm(tuple(blocks), losses, tuple(functions + _join_simplex(sets)), typed, constant)


def _function_term(term: Term, ranges: dict[LearnedUnknown, Range], k: int) -> FunctionTerm:
    """k: its place among the functions of the model."""
    if term.atom.is_reweighted:
        name = f"spectrum of term {k}"  # no name that a user could have given
        return StructureTerm(term.atom, term.coefficient.value, linear_map(term.argument), term.text, (name,))
    if term.atom.weighs_kernels:
        return _weights_term(term, ranges, k)
    if not term.learned:
        return FunctionTerm(term.atom, term.coefficient.value, linear_map(term.argument), term.text)
    said = [ranges[m] if isinstance(m, LearnedUnknown) else m for m in term.learned]
    names = tuple(
        m.name if isinstance(m, LearnedUnknown) and not _is_fixed(about) else None
        for m, about in zip(term.learned, said, strict=True)
    )
    atom = term.atom.bound(
        SpectralMatrix.multiple_of_identity(about.lower, m.side) if _is_fixed(about) else about
        for m, about in zip(term.learned, said, strict=True)
    )
    return StructureTerm(atom, term.coefficient.value, linear_map(term.argument), term.text, names)


def _weights_term(term: Term, ranges, k: int) -> StructureTerm:
    """Its weights have a name also where they are given or eliminated, so that a solver can say which belong to its point."""
    atom, name = term.atom, f"kernel weights of term {k}"
    for theta in term.learned:
        learned = isinstance(theta, LearnedUnknown)
        atom, name = atom.bound([ranges[theta] if learned else theta]), theta.name if learned else name
    return StructureTerm(atom, term.coefficient.value, linear_map(term.argument), term.text, (name,))


def _is_fixed(about: Range | SpectralMatrix) -> bool:
    """Bounds that leave one matrix only."""
    return isinstance(about, Range) and about.lower == about.upper


def _loss_term(term: Term) -> LossTerm:
    tasks = term.tasks
    coefficients = np.full(tasks.n_tasks, term.coefficient.value)
    if term.mean:
        # n_i counts a sample as often as its weight says, so that weights equal replication
        weights = tasks.sample_weights
        totals = tasks.counts if weights is None else np.add.reduceat(weights, tasks.offsets[:-1])
        coefficients = coefficients / totals
    intercepts = dict.fromkeys(p.weights.intercept_name for p in term.argument.parts if p.weights.intercept)
    return kind_of(term.atom)(
        term.atom, coefficients, tasks, linear_map(term.argument), tuple(intercepts), term.text
    )


def kind_of(loss: Loss) -> type[LossTerm]:
    """What a loss is a sum over: samples, labellings of a graph, or tasks."""
    if loss.separable:
        return LossTerm
    if loss.labels == "indicators":
        return LabelGraphTerm
    if loss.max_affine:
        return StructuredTerm
    return RadialTerm if loss.radial else LossTerm


def linear_map(expression: Affine) -> LinearMap:
    """The map of an affine expression; plain multiples of one block are added up first."""
    multiples: dict[str, float] = {}
    entries = []
    for part in expression.parts:
        coefficient = part.coefficient.value
        if part.left is None and part.right is None:
            multiples[part.weights.name] = multiples.get(part.weights.name, 0.0) + coefficient
        elif coefficient != 0.0:
            entries.append(Entry(part.weights.name, coefficient, part.left, part.right))
    plain = [Entry(name, coefficient) for name, coefficient in multiples.items() if coefficient != 0.0]
    offset = expression.offset
    if offset is not None and not np.any(offset):
        offset = None
    return LinearMap(tuple(plain + entries), expression.shape, offset)


def _join_simplex(sets: list[FunctionTerm]) -> list[FunctionTerm]:
    """W >= 0 together with W.sum(axis=0) == c is one set with an exact projection: the columns on the simplex."""
    for sums in sets:
        total, most = _numbers(sums.atom.interval)
        block = _column_sums_of(sums.map)
        if block is None or total is None or total != most or total <= 0:
            continue
        for sign in sets:
            if sign.map.identity_of == block and _numbers(sign.atom.interval) == (0.0, np.inf):
                joined = FunctionTerm(ColumnsOnSimplex(total), 1.0, sign.map, f"{sign.typed}, {sums.typed}")
                return [*_join_simplex([s for s in sets if s is not sums and s is not sign]), joined]
    return sets


def _numbers(interval) -> tuple:
    """(low, high) of an interval that is the same for all entries, else (None, None)."""
    return interval if interval is not None and all(map(np.isscalar, interval)) else (None, None)


def _column_sums_of(map: LinearMap) -> str | None:
    """The block whose column sums the map is, else None."""
    if len(map.entries) != 1 or map.offset is not None:
        return None
    (entry,) = map.entries
    left = entry.left
    if entry.coefficient != 1.0 or entry.right is not None or left is None or sparse.issparse(left):
        return None
    return entry.block if left.shape[0] == 1 and (left == 1.0).all() else None
