"""The models that dual ascent on labellings takes, read from the normal form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.compile.normal_form import Block, NormalForm
from mtldsl.compile.single_block import single_loss
from mtldsl.compile.terms.label_graph import LabelGraphTerm
from mtldsl.system.memory import gib

__all__ = ["CliqueForm", "clique_form"]

#: Sparse inputs are made dense up to this many numbers.
_LARGEST_DENSE = 200_000_000


@dataclass(frozen=True)
class CliqueForm:
    """minimize  a / 2 ||U||^2 + b Omega_r(norms of the cliques' columns of V) + sum_i w_i H_i(U, V), over intercepts of labels too.

    r is the number of cliques where the penalty on V is a ridge: then Omega_r is 1/2 ||V||^2.
    """

    loss: LabelGraphTerm
    nodes: str
    edges: str | None  # None: there is no clique
    a: float
    b: float
    r: int
    unused: tuple[Block, ...] = ()  # those of a graph without edges
    intercept: str | None = None  # the block of the labels' intercepts, which are the last feature

    @property
    def n_cliques(self) -> int:
        return self.loss.cliques.n_cliques

    @property
    def selects(self) -> bool:
        """Whether the penalty leaves cliques out, so that not all need to be there."""
        return self.r < self.n_cliques


def clique_form(form: NormalForm) -> CliqueForm | str:
    """The model, or the reason why it is none of these."""
    for term in form.losses:
        if term.atom.labels != "indicators" or not term.atom.max_affine:
            return f"{term.typed} is not a clique_hinge."
    found = single_loss(form)
    if isinstance(found, str):
        return found
    loss: Any = found  # of such an atom: a LabelGraphTerm
    width = 2 * loss.cliques.n_labels
    places = [0, width] if loss.cliques.n_cliques else [0]
    constants = {block.name: block.intercept_of for block in form.blocks if block.intercept_of is not None}
    entries = [entry for entry in loss.map.entries if entry.block not in constants]
    intercept = next((entry.block for entry in loss.map.entries if entry.block in constants), None)
    plain = len(entries) == len(places) and loss.map.offset is None
    for entry in entries:
        whole = entry.left is None if intercept is None else _is_first(entry.left)
        plain = plain and entry.coefficient == 1.0 and whole and _is_slice(entry.right)
    starts = [int(entry.right.indices[0]) for entry in entries] if plain else []
    if starts != places:
        return f"{loss.typed} is not of NodeWeights and EdgeWeights themselves, but of expressions of them."
    names = [entry.block for entry in entries]
    if loss.tasks.is_sparse and loss.tasks.n_features * len(loss.truth) > _LARGEST_DENSE:
        return f"{loss.typed} has sparse inputs that would take {gib(8.0 * loss.tasks.n_features * len(loss.truth))} as dense ones."
    nodes, edges = names[0], names[1] if len(names) > 1 else None
    coefficients: dict[str, float] = {}
    r = loss.cliques.n_cliques
    for f in form.functions:
        block = f.map.identity_of
        if f.is_constraint or block is None or block not in names:
            return f"{f.typed} is not a penalty of the loss's weights alone."
        if (squares := f.atom.entry_quadratic) is not None:
            if np.ptp(squares) > 0:
                return f"{f.typed} has unequal weights."
            own = float(np.ravel(squares)[0])
        elif f.atom.k_support is not None and block == edges:
            if not _is_by_clique(f.atom, loss.cliques):
                return f"{f.typed} has other groups of columns than the cliques."
            own, r = 1.0, min(f.atom.k_support, r)
        else:
            return f"{f.typed} is neither a ridge nor, on the weights of edges, half a squared group or k-support norm."
        if block in coefficients and (block == edges and r < loss.cliques.n_cliques):
            return f"{f.typed} is a second penalty on {block}."
        coefficients[block] = coefficients.get(block, 0.0) + f.coefficient * own
    missing = [name for name in names if not coefficients.get(name, 0.0) > 0.0]
    if missing:
        return f"there is no penalty on {missing[0]}; add lam * ridge({missing[0]})."
    unused = tuple(block for block in form.blocks if block.name not in (*names, intercept))
    return CliqueForm(
        loss,
        nodes,
        edges,
        coefficients[nodes],
        1.0 if edges is None else coefficients[edges],
        r,
        unused,
        intercept,
    )


def _is_first(left) -> bool:
    """Whether it keeps all rows of a matrix and puts one more below them, as weights have it beside intercepts."""
    return left is not None and left.shape[0] == left.shape[1] + 1 and _is_slice(left.T)


def _is_slice(right) -> bool:
    """Whether a selector puts the columns, all of them, side by side into neighbouring places."""
    right = None if right is None else sparse.csr_array(right)
    return (
        right is not None
        and right.nnz == right.shape[0]
        and np.array_equal(right.indices, right.indices[0] + np.arange(right.nnz))
        and bool(np.all(right.data == 1.0))
    )


def _is_by_clique(atom, cliques) -> bool:
    if atom.columns is None:
        return False
    return [tuple(group) for group in atom.columns] == [
        tuple(cliques.columns(c).tolist()) for c in range(cliques.n_cliques)
    ]
