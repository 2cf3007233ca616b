"""From what was typed to the normal form: parameters become numbers, expressions become linear maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.function import Loss, MatrixFunction, SeparableLoss
from mtldsl.atoms.losses.label_graph import LabelGraphLoss
from mtldsl.atoms.losses.worst_task import WorstTaskLoss
from mtldsl.atoms.sets import ColumnsOnSimplex
from mtldsl.atoms.structures import Range, Structure
from mtldsl.compile.checks import check_convexity, on_weights, weights_of
from mtldsl.compile.loss_term import term_type
from mtldsl.compile.normal_form import Block, Entry, FunctionTerm, LinearMap, LossTerm, NormalForm
from mtldsl.compile.sparse_precisions import penalised_in, with_norms
from mtldsl.compile.terms.label_graph import LabelGraphTerm, labelled_totals
from mtldsl.compile.terms.label_intercepts import with_constant
from mtldsl.compile.terms.structure import StructureTerm
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constraint import Argument, Constraint
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint, ranges_of
from mtldsl.language.words.shares import intercepts_of

__all__ = ["known_map", "to_normal_form", "with_coefficients"]


def to_normal_form(
    objective: Objective,
    constraints: Sequence[Constraint | RangeConstraint],
    typed: str,
    known: dict[Term, tuple[tuple[float, ...], LossTerm]],
    maps: dict[Term, tuple[tuple[float, ...], LinearMap]],
) -> NormalForm:
    """The normal form at the parameters' present values. known, maps: losses and maps of functions made before, and the values then; those
    made here are added."""
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
    penalised = penalised_in(kept)
    terms = [_function_term(term, ranges, penalised, k, maps) for k, term in enumerate(others)]
    functions = []
    for term in terms:
        if isinstance(term, StructureTerm) and not any(term.names):  # all its matrices are given
            term, more = term.kept({})
            constant += more
        functions.append(term)
    said = [c for c in on_weights(constraints) if not c.atom.holds_all(c.argument.shape)]
    sets = [FunctionTerm(c.atom, 1.0, linear_map(c.argument), c.text) for c in said]
    return NormalForm(tuple(blocks), losses, tuple(functions + _join_simplex(sets)), typed, constant)


def with_coefficients(form: NormalForm, terms: Sequence[Term]) -> NormalForm | None:
    """The form with the present coefficients of its regularizers, which differ from those that it was made with in their size alone; terms are
    all of the objective's. None where the form's own functions are not theirs one by one."""
    others = [term for term in terms if not term.is_loss]
    values = [term.coefficient.value for term in others]
    plain = len(others) == len(form.functions) and min(values, default=0.0) > 0.0
    if not (plain and all(type(f) is FunctionTerm for f in form.functions)):
        return None
    if any(f.atom is not term.atom for f, term in zip(form.functions, others, strict=True)):
        return None
    functions = [
        FunctionTerm(f.atom, value, f.map, f.typed) for f, value in zip(form.functions, values, strict=True)
    ]
    return NormalForm(form.blocks, form.losses, tuple(functions), form.typed, form.constant)


def _function_term(term: Term, ranges: Mapping[Any, Range], penalised, k: int, maps) -> FunctionTerm:
    """k: its place among the functions of the model."""
    atom = cast(MatrixFunction, term.atom)
    if atom.is_reweighted:
        name = f"spectrum of term {k}"  # no name that a user could have given
        structure = cast(Structure, atom)
        return StructureTerm(structure, term.coefficient.value, linear_map(term.argument), term.text, (name,))
    if atom.weighs_kernels:
        return _weights_term(term, ranges, k)
    if not term.learned:
        return FunctionTerm(atom, term.coefficient.value, known_map(term, maps), term.text)
    said = [_said(m, ranges, penalised) if isinstance(m, LearnedUnknown) else m for m in term.learned]
    names = tuple(
        m.name if isinstance(m, LearnedUnknown) and not _is_fixed(about) else None
        for m, about in zip(term.learned, said, strict=True)
    )
    atom = cast(Structure, with_norms(term, penalised)).bound(
        SpectralMatrix.multiple_of_identity(about.lower, m.side) if _is_fixed(about) else about
        for m, about in zip(term.learned, said, strict=True)
    )
    return StructureTerm(atom, term.coefficient.value, linear_map(term.argument), term.text, names)


def _said(matrix: LearnedUnknown, ranges: Mapping[Any, Range], penalised) -> Range:
    """What constraints say of it; nothing where a norm of it is in the objective."""
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


def known_map(term: Term, maps) -> LinearMap:
    """The map of a term's argument; `maps` as in `to_normal_form`."""
    values = tuple(part.coefficient.value for part in term.argument.parts)
    if term not in maps or maps[term][0] != values:
        maps[term] = values, linear_map(term.argument)
    return maps[term][1]


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


def linear_map(expression: Argument) -> LinearMap:
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
