"""Canonicalization: a typed statement checked and made a normal form at the parameters' present values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal, SparseMatrixNormal
from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.atoms.learned_structures.structure import Range, Structure
from mtldsl.atoms.loss import Loss, SeparableLoss
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.atoms.losses.worst_task import WorstTaskLoss
from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.sets import ColumnsOnSimplex
from mtldsl.errors import ModelError
from mtldsl.language.constraints import Constraint, RangeConstraint, ranges_of
from mtldsl.language.expressions import column_names, row_names
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import Parameter
from mtldsl.language.substitution import intercepts_of, why_not_intercepts
from mtldsl.normal_form.form import Block, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.term import LinearMap, MapEntry, term_type
from mtldsl.normal_form.terms.label_graph_term import LabelGraphTerm, labelled_totals, with_constant
from mtldsl.normal_form.terms.structure_term import StructureTerm

# --------------------------------------------------------------------------------------------------------------
# Norms of learned precisions in a model: what is wrong with them, and the structure that such a term becomes a part of.


def learned_norm_terms(terms: Sequence[Term]) -> dict[LearnedUnknown, list[Term]]:
    """Every learned matrix of which a norm is a term -> these terms."""
    found: dict[LearnedUnknown, list[Term]] = {}
    for term in terms:
        if term.of_learned:
            found.setdefault(term.argument, []).append(term)  # type: ignore[arg-type]
    return found


def check_penalised(terms: Sequence[Term], bounds: Sequence, ranges: Mapping[Any, Any]) -> None:
    """ModelError for a norm of a matrix that is in no other term, that is bounded too, or beside which another one is learned."""
    for matrix, (norm, *_) in learned_norm_terms(terms).items():
        owner = next((term for term in terms if any(m is matrix for m in term.learned)), None)
        if owner is None:
            others = "W, np.eye(d), " if matrix.axis == "tasks" else "W, "
            rest = "" if matrix.axis == "tasks" else ", np.eye(m)"
            raise ModelError(
                f"{matrix.text} is in no other term of the objective, so that nothing is learned of it",
                term=norm.text,
                write_instead=f"add the term, such as matrix_normal({others}{matrix.text}{rest})",
            )
        for bound in bounds:
            if bound.unknown is matrix:
                raise ModelError(
                    f"{matrix.text} has the norm {norm.text} in the objective, which keeps it from growing without end as the log-determinant "
                    "keeps it from becoming singular; bounds on its eigenvalues beside that are not in the language",
                    term=bound.text,
                    write_instead="leave the bounds out, or the norm",
                )
        for other in owner.learned:
            fixed = ranges.get(other) if isinstance(other, LearnedUnknown) else None
            if other is matrix or not isinstance(other, LearnedUnknown):
                continue
            if fixed is None or fixed.lower != fixed.upper:
                side = "d" if other.axis == "features" else "m"
                raise ModelError(
                    f"{other.text} is learned beside {matrix.text} in {owner.atom_text}: for {matrix.text} with {norm.text} the minimum is "
                    "known where the other matrix is given",
                    term=norm.text,
                    write_instead=f"give an array, such as np.eye({side}), in place of {other.text}",
                )


def with_norms(term: Term, penalised: Mapping[LearnedUnknown, list[Term]]):
    """The structure of a term with the norms of its matrices in it; that of the term where there are none, or with the coefficient 0."""
    learned: list[Any] = [
        m if isinstance(m, LearnedUnknown) else None for m in term.learned
    ]  # arrays have no hash
    norms = [sum(one.coefficient.value for one in penalised.get(m, ())) for m in learned]
    if not any(norms):
        return term.atom
    first, second = (norm / term.coefficient.value for norm in norms)
    return SparseMatrixNormal.of(
        cast(MatrixNormal, term.atom), (first, second)
    )  # what else learns precisions


# --------------------------------------------------------------------------------------------------------------
# What is in a model, and what is wrong with it before any number is crunched.


def on_weights(constraints) -> list[Constraint]:
    """Those of the constraints that are about weights, not about matrices that are learned."""
    return [c for c in constraints if not isinstance(c, RangeConstraint)]


def learned_of(objective: Objective) -> list[LearnedUnknown]:
    """Every matrix that the model learns, in the order typed."""
    found = [
        matrix for term in objective.terms for matrix in term.learned if isinstance(matrix, LearnedUnknown)
    ]
    return list(dict.fromkeys(found))


def learned_row_names(objective: Objective, unknown: LearnedUnknown) -> tuple[str, ...]:
    """The names of a learned matrix's rows: those of the features or tasks, in the order in which its term's argument has them."""
    term = next(term for term in objective.terms if any(m is unknown for m in term.learned))
    if cast(MatrixFunction, term.atom).weighs_kernels:
        return cast(MKLNorm, term.atom).names
    argument, of_rows = term.argument, unknown.axis == "features"
    names = row_names(argument) if of_rows else column_names(argument)
    if names and len(set(names)) == len(names):
        return names
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
    for kind, found, example in (
        ("weight matrices", weights_of(objective, constraints), 'L, S = Weights(tasks, name="L"), Weights(tasks, name="S")'),
        ("parameters", parameters_of(objective, constraints), 'Parameter(1.0, name="mu")'),
    ):  # fmt: skip
        known: dict[str, Any] = {}
        for one in found:
            if known.setdefault(one.name, one) is not one:
                raise ModelError(
                    f"two different {kind} are both called {one.name!r}: use one in every term, or give each a name, {example}"
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
    penalised = learned_norm_terms(objective.terms)
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


# --------------------------------------------------------------------------------------------------------------
# From what was typed to the normal form: parameters become numbers, expressions become linear maps.


def to_normal_form(
    objective: Objective,
    constraints: Sequence[Constraint | RangeConstraint],
    typed: str,
    known: dict[Term, tuple[tuple[float, ...], LossTerm]],
) -> NormalForm:
    """The normal form at the parameters' present values. known: losses made before, and the values then; those made here are added."""
    check_convexity(objective)
    blocks = []
    used = {
        name: found for t in objective.terms if t.is_loss for name, found in intercepts_of(t.argument).items()
    }
    for weights in weights_of(objective, constraints):
        blocks.append(Block(weights.name, weights.shape))
        for name, (own, width) in used.items():
            if own is weights:
                blocks.append(Block(name, (1, width), intercept_of=weights.name))
    kept = [term for term in objective.terms if term.coefficient.value > 0]
    losses = tuple(_known_or_made(term, known) for term in kept if term.is_loss)
    ranges = ranges_of(c for c in constraints if isinstance(c, RangeConstraint))
    # of no columns, those of a graph without edges, every function is zero
    on_blocks = [term for term in kept if not (term.is_loss or term.of_learned)]
    others, constant = [term for term in on_blocks if 0 not in term.argument.shape], 0.0
    penalised = learned_norm_terms(kept)
    terms = [_function_term(term, ranges, penalised, k) for k, term in enumerate(others)]
    functions = []
    for term in terms:
        if isinstance(term, StructureTerm) and not any(term.names):  # all its matrices are given
            term, more = term.kept({})
            constant += more
        functions.append(term)
    said = [c for c in on_weights(constraints) if not c.atom.holds_all(c.argument.shape)]
    sets = [FunctionTerm(c.atom, 1.0, linear_map(c.argument), c.text) for c in said]
    return NormalForm(tuple(blocks), losses, tuple(functions + _join_simplex(sets)), typed, constant)


def _function_term(term: Term, ranges: Mapping[Any, Range], penalised, k: int) -> FunctionTerm:
    """k: its place among the functions of the model."""
    atom = cast(MatrixFunction, term.atom)
    if atom.is_reweighted:
        name = f"spectrum of term {k}"  # no name that a user could have given
        structure = cast(Structure, atom)
        return StructureTerm(structure, term.coefficient.value, linear_map(term.argument), term.text, (name,))
    if atom.weighs_kernels:
        return _weights_term(term, ranges, k)
    if not term.learned:
        return FunctionTerm(atom, term.coefficient.value, linear_map(term.argument), term.text)
    said = [
        _constraint_range(m, ranges, penalised) if isinstance(m, LearnedUnknown) else m for m in term.learned
    ]
    names = tuple(
        m.name if isinstance(m, LearnedUnknown) and not _is_fixed(about) else None
        for m, about in zip(term.learned, said, strict=True)
    )
    atom = cast(Structure, with_norms(term, penalised)).bound(
        SpectralMatrix.multiple_of_identity(about.lower, m.side) if _is_fixed(about) else about
        for m, about in zip(term.learned, said, strict=True)
    )
    return StructureTerm(atom, term.coefficient.value, linear_map(term.argument), term.text, names)


def _constraint_range(matrix: LearnedUnknown, ranges: Mapping[Any, Range], penalised) -> Range:
    """Return what constraints say of it; nothing where a norm of it is in the objective."""
    if matrix in ranges:
        return ranges[matrix]
    if matrix in penalised:
        return Range()
    raise ModelError(
        f"l1_norm({matrix.text}) has the coefficient 0, and {matrix.text} no bounds: it would grow without end",
        write_instead="write a coefficient > 0",
    )


def _weights_term(term: Term, ranges, k: int) -> StructureTerm:
    """Its weights have a name also where they are given or eliminated, so that a solver can say which belong to its point."""
    atom, name = cast(Structure, term.atom), f"kernel weights of term {k}"
    for theta in term.learned:
        learned = isinstance(theta, LearnedUnknown)
        atom, name = atom.bound([ranges[theta] if learned else theta]), theta.name if learned else name
    return StructureTerm(atom, term.coefficient.value, linear_map(term.argument), term.text, (name,))


def _is_fixed(about: Range | SpectralMatrix) -> bool:
    """Bounds that leave one matrix only."""
    return isinstance(about, Range) and about.lower == about.upper


def _known_or_made(term: Term, known) -> LossTerm:
    values = tuple(p.value for p in term.parameters)
    if term not in known or known[term][0] != values:
        known[term] = values, _loss_term(term)
    return known[term][1]


def _loss_term(term: Term) -> LossTerm:
    tasks, atom = term.tasks, term.atom
    assert tasks is not None and isinstance(atom, Loss)
    if term.worst:
        atom = WorstTaskLoss(cast(SeparableLoss, atom))
    coefficients = np.full(tasks.n_tasks, term.coefficient.value)
    if term.mean:
        # n_i counts a sample as often as its weight says, so that weights equal replication
        totals = labelled_totals(atom, tasks) if atom.labels == "indicators" else tasks.totals
        coefficients = coefficients / totals
    intercepts = tuple(intercepts_of(term.argument))
    if intercepts and atom.labels == "indicators":
        (name,) = intercepts
        labels = cast(LabelGraphLoss, atom).cliques.n_labels
        wider, image = with_constant(tasks, linear_map(term.argument), name, labels)
        return LabelGraphTerm(atom, coefficients, wider, image, (), term.text)
    return term_type(atom, tasks)(atom, coefficients, tasks, linear_map(term.argument), intercepts, term.text)


def linear_map(expression: Any) -> LinearMap:
    """The map of an affine expression; plain multiples of one block are added up first."""
    multiples: dict[str, float] = {}
    entries = []
    for part in expression.parts:
        coefficient = part.coefficient.value
        if part.left is None and part.right is None:
            multiples[part.weights.name] = multiples.get(part.weights.name, 0.0) + coefficient
        elif coefficient != 0.0:
            entries.append(MapEntry(part.weights.name, coefficient, part.left, part.right))
    plain = [MapEntry(name, coefficient) for name, coefficient in multiples.items() if coefficient != 0.0]
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
