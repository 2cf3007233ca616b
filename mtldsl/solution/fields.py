"""Fields of a solution: how each is read from a solve, and how a file keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.language.objective import Term
from mtldsl.language.substitution import intercepts_of
from mtldsl.normal_form.canonicalize import linear_map
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.statement import Statement
from mtldsl.normal_form.terms.structure_term import Structures, learned_matrices
from mtldsl.solvers.run import SolveResult

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class SolvedModel:
    """One solve: the model as typed, its normal form, and what came out."""

    statement: Statement
    form: NormalForm
    outcome: SolveResult

    @property
    def blocks(self) -> Blocks:
        return self.outcome.blocks

    @cached_property
    def coef(self) -> np.ndarray:
        """(d, m) of the predictions that the first loss makes; where each loss has tasks of its own, of all of them."""
        return coef_of(self.statement, self.blocks)

    @property
    def intercept(self) -> np.ndarray | None:
        """(m,) of the same predictions; over a graph of labels 0 for the entries of edges, which have none."""
        return intercept_of(self.statement, self.blocks, self.coef.shape[1])

    @cached_property
    def structures(self) -> Structures:
        """Everything learned beside the weights, by name: as it came with the point, else the best for the weights."""
        known = self.outcome.structures
        return learned_matrices(self.form, self.blocks) if known is None else dict(known)


def coef_of(statement: Statement, blocks: Blocks) -> np.ndarray:
    """`SolvedModel.coef` of these blocks."""
    shares = statement.shares
    if shares is None:
        return np.array(linear_map(statement.first_loss.argument).forward(blocks))
    found = np.empty((shares.tasks.n_features, shares.tasks.n_tasks))
    for term, columns in zip(shares.terms, shares.columns, strict=True):
        found[:, columns] = linear_map(term.argument).forward(blocks)
    return found


def intercept_of(statement: Statement, blocks: Blocks, n_tasks: int) -> np.ndarray | None:
    """`SolvedModel.intercept` of these blocks, beside weights of so many columns."""
    shares = statement.shares
    if shares is None:
        own = _intercept(statement.first_loss, blocks)
        return None if own is None else np.append(own, np.zeros(n_tasks - own.size))
    each = [_intercept(term, blocks) for term in shares.terms]
    if all(one is None for one in each):
        return None
    found = np.zeros(n_tasks)
    for one, columns in zip(each, shares.columns, strict=True):
        found[columns] = 0.0 if one is None else one
    return found


def _intercept(term: Term, blocks: Blocks) -> np.ndarray | None:
    names = list(intercepts_of(term.argument))
    return blocks[names[0]][0].copy() if names else None


@dataclass(frozen=True)
class ObjectField:
    """A field that is an object, kept as plain facts in the JSON and arrays whose names begin with `prefix`.

    stored   : object -> (facts, arrays)
    restored : (facts, arrays) -> object; ValueError where they do not belong together
    """

    name: str
    prefix: str
    stored: Callable[[Any], tuple[Any, Arrays]]
    restored: Callable[[Any, Arrays], Any]

    @classmethod
    def of(cls, name: str, prefix: str, kind: type) -> ObjectField:
        """The part of a class that has both methods itself."""
        return cls(name, prefix, kind.stored, kind.restored)

    def put(self, value, plain: dict, arrays: Arrays) -> None:
        """Add what the file holds of the field."""
        if value is None:
            plain[self.name] = None
            return
        plain[self.name], own = self.stored(value)
        arrays |= {self.prefix + key: array for key, array in own.items()}

    def take(self, plain: dict, arrays: Arrays) -> Any:
        """The field from what the file holds. ValueError or KeyError where that is not whole."""
        facts, n = plain.get(self.name), len(self.prefix)
        if facts is None:
            return None
        own = {key[n:]: array for key, array in arrays.items() if key.startswith(self.prefix)}
        try:
            return self.restored(facts, own)
        except KeyError as lacking:
            raise KeyError(f"{self.prefix}{lacking.args[0]}") from None


def require_per_task(fields: dict, name: str, some: bool = False) -> None:
    """ValueError where a field of a file is neither None nor one number (m,) for every column of the weights, or for `some`."""
    array = fields[name]
    if array is None:
        return
    lacking = array.dtype.kind == "f" and np.isnan(array).any() and not some
    if array.dtype.kind != "f" or array.shape != fields["coef"].shape[1:] or lacking:
        raise ValueError(f"{name} is {array.dtype} {array.shape}, which no solution has")
